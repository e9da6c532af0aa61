// The page of `paceline demo world`: the true town in grey, and what each observer sees of it.

import { setCapacity, world } from "./api";
import type { ObserverState, Reading, WorldState } from "./api.gen";
import { byId, el, text } from "./dom";

type Place = [number, number];

const CAPACITIES = ["32kbit", "64kbit", "128kbit", "256kbit", "512kbit", "1mbit", "4mbit"];
const ABOUT: Record<string, string> = {
  pilot: "pilot: follows a car, 10 Mbit/s",
  tower: "tower: everything twice per second",
  radio: "radio: follows a car over the thin link; a contract for the 12 most important cars",
};
const PERIOD_MS = 200;

const slider = byId("slider") as HTMLInputElement;
const problem = byId("problem");
const panels = new Map<string, { canvas: HTMLCanvasElement; figures: Map<string, HTMLElement> }>();

const FIGURES: [string, (reading: Reading) => string][] = [
  ["knows", (it) => `${it.cars} cars, up to ${it.near} near`],
  ["error near", (it) => `${it.near_error_m.toFixed(2)} m`],
  ["error far", (it) => `${it.far_error_m.toFixed(1)} m`],
  ["oldest near car", (it) => `${it.near_age_ms} ms`],
  ["received", (it) => `${(it.bits_per_s / 1000).toFixed(0)} kbit/s`],
  ["contract", (it) => it.contract],
];

function panel(name: string) {
  const known = panels.get(name);
  if (known) return known;
  const canvas = el("canvas", { role: "img", "aria-label": `The town as ${name} sees it` });
  const list = el("dl");
  const figures = new Map<string, HTMLElement>();
  for (const [label] of FIGURES) {
    const value = el("dd");
    list.append(el("dt", {}, label), value);
    figures.set(label, value);
  }
  byId("views").append(el("section", {}, el("h2", {}, ABOUT[name] ?? name), canvas, list));
  const made = { canvas, figures };
  panels.set(name, made);
  return made;
}

function draw(canvas: HTMLCanvasElement, town: WorldState, observer: ObserverState): void {
  const pixels = Math.round(canvas.clientWidth * devicePixelRatio);
  if (canvas.width !== pixels) canvas.width = canvas.height = pixels;
  const context = canvas.getContext("2d");
  if (!context || pixels === 0) return;
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(name);
  const margin = 0.04 * pixels;
  const scale = (pixels - 2 * margin) / town.side_m;
  const at = ([x, y]: Place): Place => [margin + x * scale, pixels - margin - y * scale];
  const dot = (place: Place, size: number) => {
    const [x, y] = at(place);
    context.beginPath();
    context.arc(x, y, size * devicePixelRatio, 0, 2 * Math.PI);
    context.fill();
  };
  context.clearRect(0, 0, pixels, pixels);
  context.fillStyle = colour("--truth");
  for (const car of town.cars) dot(car, 2);
  for (const [car, place, , age] of observer.seen) {
    const name = age < 700 ? "--fresh" : age < 2500 ? "--old" : "--older";
    context.fillStyle = context.strokeStyle = colour(name);
    const truth = town.cars[car];
    if (truth) {
      context.beginPath();
      context.moveTo(...at(truth));
      context.lineTo(...at(place));
      context.stroke();
    }
    dot(place, 3);
  }
  context.strokeStyle = colour("--ink");
  context.lineWidth = devicePixelRatio;
  context.beginPath();
  context.arc(...at(observer.position), 100 * scale, 0, 2 * Math.PI);
  context.stroke();
}

function show(town: WorldState): void {
  text(byId("capacity"), town.capacity);
  if (document.activeElement !== slider) slider.value = String(CAPACITIES.indexOf(town.capacity));
  for (const observer of town.observers) {
    const { canvas, figures } = panel(observer.name);
    draw(canvas, town, observer);
    for (const [label, of] of FIGURES) {
      const element = figures.get(label);
      if (element) text(element, of(observer.reading));
    }
  }
  document.documentElement.dataset["ready"] = "yes";
}

function complain(from: "poll" | "slider", error: unknown): void {
  problem.dataset["from"] = from;
  text(problem, error instanceof Error ? error.message : String(error));
}

async function poll(): Promise<void> {
  try {
    show(await world());
    if (problem.dataset["from"] === "poll") text(problem, "");
  } catch (error) {
    complain("poll", error);
  }
  setTimeout(poll, PERIOD_MS);
}

slider.addEventListener("change", async () => {
  try {
    await setCapacity(CAPACITIES[Number(slider.value)] ?? "");
    text(problem, "");
  } catch (error) {
    complain("slider", error);
  }
  slider.blur();
});

void poll();

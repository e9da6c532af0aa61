// The page of `paceline demo world`: the true town in grey, and what each observer sees of it.

type Place = [number, number];

interface Reading {
  cars: number;
  near: number;
  near_error_m: number;
  far_error_m: number;
  near_age_ms: number;
  bits_per_s: number;
  contract: string;
}

interface Observer {
  name: string;
  position: Place;
  reading: Reading;
  seen: [number, Place, number, number][];
}

interface World {
  side_m: number;
  capacity: string;
  cars: Place[];
  observers: Observer[];
}

const CAPACITIES = ["32kbit", "64kbit", "128kbit", "256kbit", "512kbit", "1mbit", "4mbit"];
const ABOUT: Record<string, string> = {
  pilot: "pilot: follows a car, 10 Mbit/s",
  tower: "tower: everything twice per second",
  radio: "radio: follows a car over the thin link; a contract for the 12 most important cars",
};
const PERIOD_MS = 200;

const view = (id: string): HTMLElement => {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element ${id}`);
  return found;
};

const slider = view("slider") as HTMLInputElement;
const problem = view("problem");
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
  const section = document.createElement("section");
  const title = document.createElement("h2");
  title.textContent = ABOUT[name] ?? name;
  const canvas = document.createElement("canvas");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `The town as ${name} sees it`);
  const list = document.createElement("dl");
  const figures = new Map<string, HTMLElement>();
  for (const [label] of FIGURES) {
    const term = document.createElement("dt");
    term.textContent = label;
    const value = document.createElement("dd");
    list.append(term, value);
    figures.set(label, value);
  }
  section.append(title, canvas, list);
  view("views").append(section);
  const made = { canvas, figures };
  panels.set(name, made);
  return made;
}

function draw(canvas: HTMLCanvasElement, world: World, observer: Observer): void {
  const pixels = Math.round(canvas.clientWidth * devicePixelRatio);
  if (canvas.width !== pixels) canvas.width = canvas.height = pixels;
  const context = canvas.getContext("2d");
  if (!context || pixels === 0) return;
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(name);
  const margin = 0.04 * pixels;
  const scale = (pixels - 2 * margin) / world.side_m;
  const at = ([x, y]: Place): Place => [margin + x * scale, pixels - margin - y * scale];
  const dot = (place: Place, size: number) => {
    const [x, y] = at(place);
    context.beginPath();
    context.arc(x, y, size * devicePixelRatio, 0, 2 * Math.PI);
    context.fill();
  };
  context.clearRect(0, 0, pixels, pixels);
  context.fillStyle = colour("--truth");
  for (const car of world.cars) dot(car, 2);
  for (const [car, place, , age] of observer.seen) {
    const name = age < 700 ? "--fresh" : age < 2500 ? "--old" : "--older";
    context.fillStyle = context.strokeStyle = colour(name);
    const truth = world.cars[car];
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

function show(world: World): void {
  view("capacity").textContent = world.capacity;
  if (document.activeElement !== slider) slider.value = String(CAPACITIES.indexOf(world.capacity));
  for (const observer of world.observers) {
    const { canvas, figures } = panel(observer.name);
    draw(canvas, world, observer);
    for (const [label, text] of FIGURES) {
      const element = figures.get(label);
      if (element) element.textContent = text(observer.reading);
    }
  }
}

async function poll(): Promise<void> {
  try {
    const answer = await fetch("/api/v1/world");
    const body = await answer.json();
    if (!answer.ok) throw new Error(body.error);
    show(body as World);
    if (problem.dataset["from"] === "poll") problem.textContent = "";
  } catch (error) {
    problem.dataset["from"] = "poll";
    problem.textContent = error instanceof Error ? error.message : String(error);
  }
  setTimeout(poll, PERIOD_MS);
}

slider.addEventListener("change", async () => {
  const capacity = CAPACITIES[Number(slider.value)];
  const answer = await fetch("/api/v1/world", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ capacity }),
  });
  problem.dataset["from"] = "slider";
  problem.textContent = answer.ok ? "" : ((await answer.json()) as { error: string }).error;
  slider.blur();
});

void poll();

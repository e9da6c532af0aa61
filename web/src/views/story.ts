// The story of the demo: three steps, what changed since the last click, and steering next to the same traffic in order
// of arrival. On a node without any program: commands to copy.

import { comparison } from "../api";
import type { Comparison, State } from "../api.gen";
import { Chart } from "../chart";
import { attribute, byId, el, Keyed, text } from "../dom";
import { hertz, time } from "../format";
import { badge, figures } from "../note";
import type { Sub, View } from "../store";
import { DelayChart, keys } from "./delaychart";
import { allRefusals, type Refused, refusalRow, showSwitches } from "./rest";

const STEER = "robot/steer";
const BULK = "robot/bulk";
const FLOOD = "flood";
/** The time range of both charts in seconds. */
const STORY_SECONDS = 30;
/** The seconds over which a value before and after a change is taken. */
const OVER = 5;

const COMMANDS = [
  ["publish pictures", "paceline pub a/b --test-card 320x240@30"],
  ["receive a part of them", "paceline sub a/b --max-hz 10 --size 160x120 --within 200ms"],
  ["see everything in a terminal", "paceline top"],
] as const;

function copyRow([what, command]: readonly [string, string]): HTMLElement {
  const button = el("button", { type: "button", class: "take", "aria-label": `Copy ${command}` }, "Copy");
  button.addEventListener("click", () => {
    void navigator.clipboard.writeText(command).then(() => text(button, "Copied"), () => text(button, "Select the text and copy it"));
  });
  return el("li", {}, el("span", { class: "about" }, what), el("code", {}, command), button);
}

/** Returns the subscription of the demo to this tag. */
function subscription(view: View, tag: string): Sub | undefined {
  return view.subs.find(({ sub }) => sub.pattern === tag);
}

function isOn(state: State, name: string): boolean {
  return state.switches.some((one) => one.name === name && one.on);
}

/** Returns the longest delay of the last seconds. */
function longest(sub: Sub | undefined, seconds: number): number {
  return Math.max(0, ...(sub?.ages ?? []).slice(-seconds).map(({ max }) => max));
}

/** Returns the mean delay of the last seconds with samples. */
function average(sub: Sub | undefined, seconds: number): number {
  const means = (sub?.ages ?? []).slice(-seconds).flatMap(({ mean }) => (mean > 0 ? [mean] : []));
  return means.reduce((sum, mean) => sum + mean, 0) / Math.max(1, means.length);
}

let steering: DelayChart | null = null;
const fifo = new Chart("Delay of robot/steer in order of arrival, simulated on an ideal host", time);
const fifoSays = el("span");
const fifoBound = el("span", { class: "bound" });
let compared: Comparison | null = null;
/** The mean delay of steering before the flood. */
let before: number | null = null;
/** The time of the first state with the flood, in milliseconds since 1970; null without it. */
let floodedSince: number | null = null;

let last: View | null = null;

/** Requests the comparison, once. */
const ask = (() => {
  let started = false;
  return () => {
    if (started) return;
    started = true;
    void comparison().then((found) => {
      compared = found;
      if (last) showDemo(last);
    }).catch(() => undefined);
  };
})();

/** Returns the number of seconds with the flood, the current one included; 0 without it. */
function flooded(state: State): number {
  return floodedSince === null ? 0 : 1 + Math.round((state.at_ms - floodedSince) / 1000);
}

function drawFifo(state: State, bound: number | null): void {
  if (!compared) return;
  // The simulated host has no load of its own, so only the effect of the flood is comparable with the live chart.
  const seconds = flooded(state);
  if (seconds === 0) {
    fifo.draw([], { top: (bound ?? 1000) * 1.2, mark: bound, seconds: STORY_SECONDS });
    text(fifoBound, bound === null ? "" : `bound ${time(bound)}`);
    text(fifoSays, "shown with the flood");
    return;
  }
  const end = Math.min(compared.max_us.length, compared.flood_s + seconds);
  const [max, mean] = [compared.max_us.slice(0, end), compared.mean_us.slice(0, end)];
  fifo.draw(
    [{ name: "longest", values: max, colour: "--bad" }, { name: "mean", values: mean, colour: "--mark", dashed: true }],
    { top: Math.max((bound ?? 0) * 1.2, 1000, ...max.slice(-STORY_SECONDS).map((us) => us * 1.1)), mark: bound, seconds: STORY_SECONDS },
  );
  text(fifoBound, bound === null ? "" : `bound ${time(bound)}`);
  text(fifoSays, `longest ${time(Math.max(0, ...max.slice(-STORY_SECONDS)))} in ${STORY_SECONDS} s`);
}

/** Returns the effect of the last click, with values before and after. */
function changed(view: View): { news: string; health: string } {
  const steer = subscription(view, STEER);
  const refused = view.subs.filter(({ sub }) => sub.refusals.length > 0);
  const no = refused.length > 0 ? `${refused.map(({ node, sub }) => `${node.name} ${sub.pattern}`).join(", ")} refused before the first byte. ` : "";
  if (isOn(view.state, FLOOD)) {
    const seconds = Math.min(STORY_SECONDS, flooded(view.state));
    const [now, mean] = [longest(steer, seconds), average(steer, seconds)];
    const bulk = subscription(view, BULK);
    const was = before === null ? "" : `${time(before)} → `;
    const kept = steer ? `; ${badge(steer)}: ${figures(steer)}` : "";
    const thrown = bulk ? `; bulk ${hertz(bulk.sub.health.delivered_hz ?? 0)} of ${hertz(bulk.sub.health.requested_hz ?? 0)}` : "";
    return { news: `${no}Flood for ${seconds} s: steering ${was}${time(mean)}, longest ${time(now)}${kept}${thrown}`, health: steer?.health ?? "idle" };
  }
  if (no) return { news: no.trim(), health: "warm" };
  if (longest(steer, STORY_SECONDS) === 0) return { news: "No steering command has been measured yet.", health: "idle" };
  return { news: `Steering takes ${time(average(steer, OVER))}, longest ${time(longest(steer, STORY_SECONDS))} in ${STORY_SECONDS} s. Turn on the flood to compare.`, health: steer?.health ?? "idle" };
}

const refusals = new Keyed<Refused>(byId("news-refusals"), ({ key }) => key, refusalRow);

/** Shows the parts that only the demo has. */
function showDemo(view: View): void {
  last = view;
  showSwitches(view);
  ask();
  const steer = subscription(view, STEER);
  if (steer && !steering) {
    steering = new DelayChart("robot/steer, live", STORY_SECONDS);
    const title = (what: string) => el("h3", {}, what);
    const simulated = el("figure", { class: "media plot" }, el("div", { class: "frame" }, fifo.element), el("figcaption", {}, keys({ fifo: "mean", worst: "longest" }), el("span", {}, "same traffic in order of arrival, on an ideal host"), fifoSays, fifoBound));
    byId("versus").replaceChildren(
      el("div", {}, title("Steering, live"), steering.element),
      el("div", {}, title("Steering under plain FIFO, simulated"), simulated),
    );
  }
  const flood = isOn(view.state, FLOOD);
  // The value before the flood is that of its last seconds without it.
  if (!flood) before = average(steer, OVER);
  floodedSince = flood ? (floodedSince ?? view.state.at_ms) : null;
  if (steer) steering?.update(steer);
  drawFifo(view.state, steer?.sub.within_us ?? null);
  const { news, health } = changed(view);
  text(byId("news"), news);
  attribute(byId("news"), "data-health", health);
  refusals.update(allRefusals(view).slice(0, 2));
}

/** Shows the story. */
export function showStory(view: View): void {
  const isDemo = view.state.switches.length > 0;
  byId("story").hidden = !isDemo;
  if (isDemo) showDemo(view);
  const isEmpty = !isDemo && view.subs.length === 0 && view.state.nodes.every(({ publishers }) => publishers.length === 0);
  const start = byId("start");
  if (isEmpty && byId("commands").childElementCount === 0) byId("commands").append(...COMMANDS.map(copyRow));
  start.hidden = !isEmpty;
}

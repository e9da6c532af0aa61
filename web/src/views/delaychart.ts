// The chart of a subscription's delay, with its bound and the longest delay shown.

import { Chart, range, recent } from "../chart";
import { el, text } from "../dom";
import { time } from "../format";
import type { Sub } from "../store";

/** Returns the legend of a chart: the class of each line, and its name. */
export function keys(lines: Record<string, string>): HTMLElement {
  const all = Object.entries(lines).map(([kind, name]) => el("span", { class: `key ${kind}` }, name));
  return el("span", { class: "keys" }, ...all);
}

export class DelayChart {
  readonly element: HTMLElement;
  readonly #chart: Chart;
  readonly #longest = el("span");
  readonly #bound = el("span", { class: "bound" });

  constructor(name: string, private readonly seconds?: number) {
    this.#chart = new Chart(`Delay of ${name} over time`, time);
    const caption = el("figcaption", {}, keys({ mean: "mean", longest: "longest" }), this.#longest, this.#bound);
    this.element = el("figure", { class: "media plot" }, el("div", { class: "frame" }, this.#chart.element), caption);
  }

  update(sub: Sub): void {
    const ages = recent(sub.ages, this.seconds);
    const max = ages.map((age) => age.max);
    const bound = sub.sub.within_us;
    // The axis includes every value that it shows.
    const top = Math.max((bound ?? 0) * 1.2, ...max.map((us) => us * 1.1), 1000);
    this.#chart.draw(
      [
        { name: "longest", values: max, colour: "--warm" },
        { name: "mean", values: ages.map((age) => age.mean), colour: "--accent", fill: true },
      ],
      { top, mark: bound, ...(this.seconds === undefined ? {} : { seconds: this.seconds }) },
    );
    const longest = Math.max(0, ...max);
    text(this.#longest, longest === 0 ? "" : `longest ${time(longest)} in ${this.seconds ?? range.seconds} s`);
    text(this.#bound, bound === null ? "" : `bound ${time(bound)}`);
  }

  gone(): void {
    this.#chart.gone();
  }
}

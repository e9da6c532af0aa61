// The chart of a subscription's delay, with its bound and the 99th percentile of its seconds.

import { Chart, quantile, recent } from "../chart";
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
  readonly #p99 = el("span", { title: "in 99 % of the seconds shown, the longest delay was at most this" });
  readonly #bound = el("span", { class: "bound" });

  constructor(name: string, private readonly seconds?: number) {
    this.#chart = new Chart(`Delay of ${name} over time`, time);
    const caption = el("figcaption", {}, keys({ mean: "mean", longest: "longest" }), this.#p99, this.#bound);
    this.element = el("figure", { class: "media plot" }, el("div", { class: "frame" }, this.#chart.element), caption);
  }

  update(sub: Sub): void {
    const ages = recent(sub.ages, this.seconds);
    const max = ages.map((age) => age.max);
    const bound = sub.sub.within_us;
    const highest = Math.max(...max.map((us) => us * 1.1), 1000);
    // One outlier must not flatten the chart, so values above three bounds are cut off.
    const top = bound === null ? highest : Math.max(bound * 1.2, Math.min(highest, bound * 3));
    this.#chart.draw(
      [
        { name: "longest", values: max, colour: "--warm" },
        { name: "mean", values: ages.map((age) => age.mean), colour: "--accent", fill: true },
      ],
      { top, mark: bound, ...(this.seconds === undefined ? {} : { seconds: this.seconds }) },
    );
    const p99 = quantile(max, 0.99);
    text(this.#p99, p99 === null ? "" : `p99 ${time(p99)}`);
    text(this.#bound, bound === null ? "" : `bound ${time(bound)}`);
  }

  gone(): void {
    this.#chart.gone();
  }
}

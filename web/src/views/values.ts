// The tags of a subscription to a pattern, with their rates and newest values.

import { values } from "../api";
import type { Value } from "../api.gen";
import { el, Keyed, type Shown, text } from "../dom";
import { hertz } from "../format";
import type { Sub } from "../store";

/** The number of tags that a card lists. */
const ROWS_MAX = 8;

interface Row {
  tag: string;
  rate: string;
  value: string;
}

function row({ tag }: Row): Shown<Row> {
  const [rate, value] = [el("span", { class: "total" }), el("code")];
  return {
    element: el("li", {}, el("div", { class: "line" }, el("span", { class: "who" }, tag), rate), value),
    update(item) {
      text(rate, item.rate);
      text(value, item.value);
    },
  };
}

export class ValueList {
  readonly #list = el("ul", { class: "values" });
  readonly #rest = el("p", { class: "rest" });
  readonly element = el("div", { class: "media taglist" }, this.#list, this.#rest);
  readonly #rows = new Keyed<Row>(this.#list, ({ tag }) => tag, row);
  readonly #watch: IntersectionObserver;
  #seen = false;
  #asking = false;
  #newest: Value[] = [];

  constructor(private readonly subscription: string) {
    this.#watch = new IntersectionObserver((entries) => {
      this.#seen = entries.at(-1)?.isIntersecting ?? false;
    });
    this.#watch.observe(this.element);
  }

  update(sub: Sub): void {
    const found = new Map(this.#newest.map((value) => [value.tag, value]));
    const rates = new Map(sub.publishers.map(({ tag, rate_hz }) => [tag, rate_hz]));
    const tags = [...new Set([...rates.keys(), ...found.keys()])].sort();
    this.#rows.update(tags.slice(0, ROWS_MAX).map((tag) => {
      const [rate, value] = [rates.get(tag), found.get(tag)];
      return {
        tag,
        rate: rate === undefined ? "" : `published at ${hertz(rate)}`,
        value: value ? (value.text ?? `${value.bytes} bytes, ${value.encoding}`) : "no value yet",
      };
    }));
    text(this.#rest, tags.length > ROWS_MAX ? `and ${tags.length - ROWS_MAX} further tags` : tags.length === 0 ? "no tag matches yet" : "");
    if (this.#seen) void this.#ask();
  }

  async #ask(): Promise<void> {
    if (this.#asking) return;
    this.#asking = true;
    this.#newest = await values(this.subscription).catch(() => this.#newest);
    this.#asking = false;
  }

  gone(): void {
    this.#watch.disconnect();
  }
}

// Sliders that change a subscription's rate, size and delay bound. Moving one asks the path whether it would grant the
// change; releasing it changes the request.

import { attempt, change } from "../api";
import { el, text } from "../dom";
import { hertz, time } from "../format";
import type { Sub } from "../store";

/** Waits for the slider to rest before asking, in milliseconds. */
const REST_MS = 250;
const RATES = [0.5, 1, 2, 3, 5, 8, 10, 15, 20, 25, 30, 50, 60, 100];
const WIDTHS = [80, 160, 240, 320, 480, 640, 960, 1280, 1920];
const DELAYS_MS = [5, 10, 20, 30, 50, 80, 100, 150, 200, 300, 500, 1000, 2000];

interface Kind {
  name: string;
  steps: number[];
  /** The present value; null if the request has none. */
  now(sub: Sub): number | null;
  label(value: number, sub: Sub): string;
  option(value: number, sub: Sub): string;
}

function height(width: number, { sub: { asked } }: Sub): number {
  const shape = asked.width && asked.height ? asked.height / asked.width : 0.75;
  return Math.max(2, Math.round((width * shape) / 2) * 2);
}

const rate: Kind = {
  name: "rate", steps: RATES,
  now: (sub) => sub.sub.asked.max_hz ?? sub.sub.health.requested_hz,
  label: (value) => `≤ ${hertz(value)}`,
  option: (value) => `--max-hz ${value}`,
};
const size: Kind = {
  name: "size", steps: WIDTHS,
  now: ({ sub }) => sub.asked.width,
  label: (value, sub) => `${value}×${height(value, sub)}`,
  option: (value, sub) => `--size ${value}x${height(value, sub)}`,
};
const delay: Kind = {
  name: "delay", steps: DELAYS_MS,
  now: ({ sub }) => (sub.within_us === null ? null : sub.within_us / 1000),
  label: (value) => `≤ ${time(value * 1000)}`,
  option: (value) => `--within ${value}ms`,
};

/** Returns the index of the step that is nearest to a value. */
function nearest(steps: readonly number[], value: number): number {
  const far = (step: number) => Math.abs(Math.log(step / value));
  return steps.reduce((best, step, at) => (far(step) < far(steps[best] ?? step) ? at : best), 0);
}

/** The controls of one card. */
export class Tune {
  readonly element: HTMLDetailsElement;
  readonly #answer = el("p", { class: "answer", role: "status" });
  readonly #rows: { kind: Kind; input: HTMLInputElement; output: HTMLElement; row: HTMLElement }[];
  #sub: Sub;
  #timer = 0;
  #requests = 0;

  constructor(first: Sub) {
    this.#sub = first;
    const name = `${first.node.name} ${first.sub.pattern}`;
    this.#rows = [rate, size, delay].map((kind) => {
      const input = el("input", { type: "range", min: 0, max: kind.steps.length - 1, step: 1, "aria-label": `${kind.name} of ${name}` });
      const output = el("output");
      input.addEventListener("input", () => this.#moved(kind, input, output));
      input.addEventListener("change", () => void this.#set(this.#option(kind, input)));
      return { kind, input, output, row: el("label", {}, el("span", {}, kind.name), input, output) };
    });
    this.element = el("details", { class: "tune" }, el("summary", {}, "change this request"), ...this.#rows.map(({ row }) => row), this.#answer);
  }

  update(sub: Sub): void {
    this.#sub = sub;
    if (!this.element.open) return;
    for (const { kind, input, output, row } of this.#rows) {
      row.hidden = kind === size && !sub.isPicture;
      if (document.activeElement === input) continue;
      const now = kind.now(sub);
      input.value = String(now === null || now <= 0 ? kind.steps.length - 1 : nearest(kind.steps, now));
      text(output, now === null ? "no limit" : kind.label(now, sub));
    }
  }

  #value(kind: Kind, input: HTMLInputElement): number {
    return kind.steps[Number(input.value)] ?? 1;
  }

  #option(kind: Kind, input: HTMLInputElement): string {
    return kind.option(this.#value(kind, input), this.#sub);
  }

  #moved(kind: Kind, input: HTMLInputElement, output: HTMLElement): void {
    text(output, kind.label(this.#value(kind, input), this.#sub));
    window.clearTimeout(this.#timer);
    const option = this.#option(kind, input);
    this.#timer = window.setTimeout(() => void this.#run(option, attempt, `with ${option}`), REST_MS);
  }

  #set(option: string): Promise<void> {
    window.clearTimeout(this.#timer);
    return this.#run(option, change, `changed to ${option}`);
  }

  async #run(option: string, act: typeof attempt, done: string): Promise<void> {
    const request = ++this.#requests;
    text(this.#answer, "…");
    const answer = await act(this.#sub.sub.id, option).then(
      (answer) => `${done}: ${answer}`,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
    // Only the newest answer counts.
    if (request === this.#requests) text(this.#answer, answer);
  }
}

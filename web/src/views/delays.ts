// Shows the delay split of each subscription, and of each stream that leads to no displayed
// subscription.

import type { Part } from "../delay";
import { byId, el, empty, Keyed, type Shown, text } from "../dom";
import { time } from "../format";
import type { View } from "../store";

const ROWS_MAX = 10;

/** A delay with its parts. */
interface Delay {
  key: string;
  who: string;
  total: number;
  bound: number | null;
  parts: Part[];
}

function delayRow(first: Delay): Shown<Delay> {
  const name = el("span", { class: "who" }, first.who);
  const total = el("span", { class: "total" });
  const bar = el("div", { class: "bar" });
  const parts = el("ol", { class: "parts" });
  const element = el("div", { class: "delay" }, el("div", { class: "line" }, name, total), bar, parts);
  return {
    element,
    update(delay) {
      // The remaining part of the bound stays empty.
      const scale = Math.max(delay.total, delay.bound ?? 0, 1);
      text(total, `${time(delay.total)}${delay.bound === null ? "" : ` of ${time(delay.bound)}`}`);
      delay.parts.forEach((part, at) => {
        const piece = (bar.children[at] ?? bar.appendChild(el("span", { class: `p${at % 4}` }))) as HTMLElement;
        piece.style.width = `${(part.us / scale) * 100}%`;
        const item = parts.children[at] ?? parts.appendChild(el("li", { class: `p${at % 4}` }));
        text(item, `${time(part.us)} ${part.name}`);
      });
      while (bar.children.length > delay.parts.length) bar.lastElementChild?.remove();
      while (parts.children.length > delay.parts.length) parts.lastElementChild?.remove();
    },
  };
}

const delays = new Keyed<Delay>(byId("delay"), ({ key }) => key, delayRow);

export function showDelays(view: View): void {
  const subs = view.subs.filter(({ sub, age, parts }) => age !== null && parts.length > 0 && sub.refusals.length === 0);
  const split: Delay[] = [
    ...subs.map(({ node, sub, age, parts }) => ({
      key: sub.id, who: `${node.name} · ${sub.pattern}`, total: age?.mean ?? 0, bound: sub.within_us, parts,
    })),
    // The subscribers of these streams are on another page, so the delay ends where they leave.
    ...view.passing.map(({ leg: { key, link, stream }, total, parts }) => ({
      key, who: `to ${view.names.get(stream.hop) ?? stream.hop} · ${stream.tag ?? stream.publisher}, ${stream.asked.form}, until it left ${link.name}`,
      total, bound: null, parts,
    })),
  ];
  const longest = [...split].sort((a, b) => b.total - a.total).slice(0, ROWS_MAX);
  // In a fixed order, so that rows do not jump.
  const shown = split.filter((delay) => longest.includes(delay));
  const flows = view.subs.some(({ sub }) => sub.rate_hz > 0) || view.legs.length > 0;
  empty("delay", shown, flows ? "Shown once samples have arrived between two readings." : "No samples are being delivered.");
  delays.update(shown);
}

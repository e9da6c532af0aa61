// Shows the state of each node's clock: the bound of its error, and the offset of the system clock.

import type { Node } from "../api.gen";
import { attribute, byId, el, Keyed, type Shown, text } from "../dom";
import { fine } from "../format";

/** Describes the state of a clock. */
export function clockText({ clock }: Node): string {
  if (!clock) return "no clock";
  if (clock.error_ns === null) return `${clock.status} · error unknown`;
  const off = clock.system_offset_ns / 1000;
  const system = `system clock ${fine(Math.abs(off))} ${off < 0 ? "behind" : "ahead"}`;
  return `${clock.status} · ± ${fine(Math.ceil(clock.error_ns / 1000))} · ${system}`;
}

function clockRow({ name }: Node): Shown<Node> {
  const state = el("span", { class: "total" });
  return {
    element: el("li", {}, el("div", { class: "line" }, el("span", { class: "who" }, `${name} · clock`), state)),
    update: (node) => text(state, clockText(node)),
  };
}

const clocks = new Keyed<Node>(byId("clocks"), ({ id }) => id, clockRow);

/** Shows the clocks if one of them follows a server. */
export function showClocks(nodes: Node[]): void {
  const shown = nodes.some(({ clock }) => clock && clock.status !== "unsynchronised") ? nodes : [];
  attribute(byId("clocks"), "hidden", shown.length === 0 ? "" : null);
  clocks.update(shown);
}

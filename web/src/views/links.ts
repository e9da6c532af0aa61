// Shows each link's use and its reservations, over time.

import type { Link, MeasuredCapacity, Node } from "../api.gen";
import { Chart, recent } from "../chart";
import { attribute, byId, el, Keyed, type Shown, text, whileSeen } from "../dom";
import { bits, count, fine, percent } from "../format";
import type { LinkView, Share } from "../store";

/** The number of contracts that a panel names; the rest are counted. */
const SHARES_MAX = 6;

/** A contract's reservation on the link, and the link's capacity if it has one. */
interface Part extends Share {
  of: number | null;
}

function shareRow(): Shown<Part> {
  const [what, held] = [el("span", { class: "who" }), el("span", { class: "total" })];
  const filled = el("span", { class: "drop" });
  return {
    element: el("li", {}, el("div", { class: "line" }, what, held), el("div", { class: "bar" }, filled)),
    update({ what: name, to, bits: holds, of }) {
      text(what, `${name} → ${to}`);
      text(held, bits(holds) + share(holds, of));
      const width = of ? `${Math.min(100, (holds / of) * 100).toFixed(1)}%` : "0%";
      if (filled.style.width !== width) filled.style.width = width;
    },
  };
}

/** The state of a measured capacity, and the part that contracts may use. */
function stateOf(found: MeasuredCapacity | null): string {
  if (found === null) return "";
  return found.estimate_bits_per_s === 0 ? ` · ${found.state}` : ` · measured, ${found.state} · contracts ${bits(found.contracts_bits_per_s)}`;
}

function panel(first: LinkView): Shown<LinkView> {
  const name = `${first.node.name} ${first.link.name}`;
  const title = el("h3");
  const use = el("strong");
  const held = el("strong");
  const capacity = el("strong");
  const rest = el("p", { class: "rest" });
  const chart = new Chart(`Use of link ${name} over time`, bits);
  const delays = new Chart(`Round trip and jitter of link ${name} over time`, fine);
  const trip = el("strong");
  const jitter = el("strong");
  const loss = el("strong");
  const monitor = el(
    "dl",
    { class: "legend" },
    el("div", { class: "use" }, el("dt", {}, "round trip"), el("dd", {}, trip)),
    el("div", { class: "held" }, el("dt", {}, "jitter"), el("dd", {}, jitter)),
    el("div", { class: "plain" }, el("dt", {}, "frames lost"), el("dd", {}, loss)),
  );
  const legend = el(
    "dl",
    { class: "legend" },
    el("div", { class: "use" }, el("dt", {}, "in use"), el("dd", {}, use)),
    el("div", { class: "held" }, el("dt", {}, "reserved by contracts"), el("dd", {}, held)),
    el("div", { class: "cap" }, el("dt", {}, "capacity"), el("dd", {}, capacity)),
  );
  const list = el("ul", { class: "shares", "aria-label": `Reservations by contracts on ${name}` });
  const parts = new Keyed<Part>(list, ({ key }) => key, shareRow);
  const element = el("article", { class: "panel link", "data-link": name }, title, chart.element, legend, list, delays.element, monitor, rest);
  return {
    element,
    update: whileSeen(element, ({ node, link, past, to, shares }: LinkView) => {
      text(title, `${node.name} → ${to.join(", ") || "no neighbour"} · ${link.name}`);
      text(use, link.use_bits_per_s === null ? "not measured" : bits(link.use_bits_per_s) + share(link.use_bits_per_s, link.capacity_bits_per_s));
      text(held, bits(link.reserved_bits_per_s) + share(link.reserved_bits_per_s, link.capacity_bits_per_s) + least(link));
      text(capacity, link.capacity_bits_per_s === null ? "no limit" : bits(link.capacity_bits_per_s) + stateOf(link.measured));
      parts.update(shares.slice(0, SHARES_MAX).map((one) => ({ ...one, of: link.capacity_bits_per_s })));
      const others = shares.length > SHARES_MAX ? `${shares.length - SHARES_MAX} further contracts · ` : "";
      text(rest, `${others}${link.streams.length} ${link.streams.length === 1 ? "stream" : "streams"} · ${count(link.frames)} frames · ${count(Math.round(link.wire_bytes / 1000))} kB since the start`);
      const full = link.capacity_bits_per_s !== null && (link.use_bits_per_s ?? 0) > link.capacity_bits_per_s * 0.97;
      attribute(element, "data-full", full ? "" : null);
      const seen = recent(past);
      // A chart that shows values must not stand below a dash.
      const measured = seen.findLast((at) => at.delay > 0);
      delays.element.hidden = measured === undefined;
      text(trip, measured ? fine(measured.delay) : "not measured");
      text(jitter, measured ? fine(measured.jitter) : "not measured");
      const worst = Math.max(...seen.map((at) => at.loss), 0);
      text(loss, `${((link.loss ?? 0) * 100).toFixed(1)} %, highest ${worst.toFixed(1)} %`);
      delays.draw(
        [
          { name: "round trip", values: seen.map((at) => at.delay), colour: "--accent", fill: true },
          { name: "jitter", values: seen.map((at) => at.jitter), colour: "--held", fill: true },
        ],
        { top: Math.max(...seen.map((at) => Math.max(at.delay, at.jitter) * 1.1), 100), mark: null },
      );
      // A measured capacity changes, so that it is drawn over time.
      const moves = link.measured !== null;
      const most = Math.max(link.capacity_bits_per_s ?? 0, ...seen.map((at) => (moves ? at.capacity : 0)));
      const top = Math.max(most * 1.12, ...seen.map((at) => at.use * 1.1), 1000);
      chart.draw(
        [
          { name: "in use", values: seen.map((at) => at.use), colour: "--accent", fill: true },
          { name: "reserved", values: seen.map((at) => at.reserved), colour: "--held", fill: true },
          ...(moves ? [{ name: "capacity", values: seen.map((at) => at.capacity), colour: "--mark", dashed: true }] : []),
        ],
        { top, mark: moves ? null : link.capacity_bits_per_s },
      );
    }),
    gone() {
      chart.gone();
      delays.gone();
    },
  };
}

/** Returns the capacity below which the link ends or reduces contracts. */
function least(link: Link): string {
  const needed = link.least_capacity_bits_per_s;
  return needed ? `, valid down to ${bits(needed)}` : "";
}

function share(part: number | null, whole: number | null): string {
  return part === null || !whole ? "" : ` (${percent(part, whole)})`;
}

const links = new Keyed<LinkView>(byId("links"), ({ node, link }) => `${node.id} ${link.name}`, panel);

function processorRow({ name }: Node): Shown<Node> {
  const held = el("span", { class: "total" });
  const filled = el("span", { class: "drop" });
  const what = el("span", { class: "who" }, `${name} · processor, reserved`);
  return {
    element: el("li", {}, el("div", { class: "line" }, what, held), el("div", { class: "bar" }, filled)),
    update({ processor }) {
      if (!processor) return;
      const { held_us_per_s: holds, most_us_per_s: most } = processor;
      text(held, `${(holds / 1e4).toFixed(1)} % of one core, at most ${percent(most, 1e6)}`);
      const width = most > 0 ? `${Math.min(100, (holds / most) * 100).toFixed(1)}%` : "0%";
      if (filled.style.width !== width) filled.style.width = width;
    },
  };
}

const processors = new Keyed<Node>(byId("processors"), ({ id }) => id, processorRow);

/** Shows the processor time reserved by contracts, for hosts that charge for it. */
export function showProcessors(nodes: Node[]): void {
  const charged = nodes.filter((node) => node.processor !== null);
  attribute(byId("processors"), "hidden", charged.length === 0 ? "" : null);
  processors.update(charged);
}

export function showLinks(all: LinkView[]): void {
  // Hide links without neighbours and capacity.
  const alive = all.filter(({ link }) => link.hops.length > 0 || link.capacity_bits_per_s !== null);
  const busy = alive.filter(({ link }) => link.streams.length > 0 || link.reserved_bits_per_s > 0);
  const shown = busy.length > 0 ? busy : alive;
  attribute(byId("links"), "data-empty", shown.length === 0 ? "No links to other nodes." : null);
  links.update(shown);
}

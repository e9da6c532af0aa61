// Deadlines, drops, refusals, publishers and switches.

import { change, turn } from "../api";
import type { Publisher, Reason, Switch } from "../api.gen";
import { attribute, byId, el, empty, Keyed, type Shown, Table, text } from "../dom";
import { bits, count, hertz, since, time, words } from "../format";
import { added, type Leg } from "../legs";
import { sum } from "../promise";
import type { View } from "../store";
import { showDelays } from "./delays";

/** The maximum number of rows of long tables. */
const ROWS_SHOWN = 200;

const deadlines = new Table<Leg>(
  "Targets of links",
  ["stream", "link", "target of the link", "sent in time", "late", "dropped", "windows beyond the target"],
  ({ key }) => key,
  ({ node, link, stream }) => {
    const { contract, broken_ago_us: ago } = stream;
    const promised = contract ? `${time(contract.deadline_us)}, ${contract.loss} may miss, ${bits(contract.bits_per_s)}` : "–";
    return [
      `${stream.tag ?? stream.publisher}, ${stream.asked.form}`, `${node.name} ${link.name}${stream.group ? ` via ${stream.group}` : ""}`, promised,
      count(stream.sent - stream.late), count(stream.late), count(sum(stream.dropped)),
      ago === null ? "0" : `${count(stream.violations)}, the last ${since(ago)}`,
    ];
  },
  "No stream has a contract. To request one, subscribe with --within.",
);
byId("deadlines").append(deadlines.element);

function showDeadlines(view: View): void {
  deadlines.update(view.legs.filter(({ stream }) => stream.contracted).slice(0, ROWS_SHOWN));
}

/** The drops of one reason, and the largest number of all reasons. */
interface DropRow {
  reason: Reason;
  samples: number;
  most: number;
}

function dropRow({ reason }: DropRow): Shown<DropRow> {
  const value = el("span", { class: "total" });
  const bar = el("div", { class: "bar" }, el("span", { class: "drop" }));
  const element = el("div", { class: "delay" }, el("div", { class: "line" }, el("span", { class: "who" }, words(reason)), value), bar);
  return {
    element,
    update({ samples, most }) {
      text(value, count(samples));
      const piece = bar.firstElementChild as HTMLElement;
      piece.style.width = `${(100 * samples) / Math.max(1, most)}%`;
    },
  };
}

const drops = new Keyed<DropRow>(byId("drops"), ({ reason }) => reason, dropRow);

function allDrops(view: View): [Reason, number][] {
  const rows = [
    ...view.state.nodes.map((node) => node.dropped),
    ...view.subs.map(({ sub }) => sub.dropped),
    ...view.legs.map(({ stream }) => stream.dropped),
    ...view.links.map(({ link }) => link.closed.dropped),
  ];
  return (Object.entries(rows.reduce(added, {})) as [Reason, number][]).sort(([, a], [, b]) => b - a);
}

export interface Refused {
  key: string;
  subscription: string;
  who: string;
  why: string;
  offer: string;
}

/** Returns the alternatives of an offer that `paceline set` takes: "try --max-hz 5, or --within 1s" has two. */
function alternatives(offer: string): string[] {
  const all = offer.replace(/^try /, "").split(", or ");
  return all.filter((one) => /^--[a-z-]+ \S+( --[a-z-]+ \S+)*$/.test(one));
}

/** Shows a refusal with buttons that take its offers. */
export function refusalRow({ who, subscription }: Refused): Shown<Refused> {
  const why = el("p", { class: "reason" });
  const offer = el("p", { class: "offer" });
  const takes = el("div", { class: "takes" });
  const problem = el("p", { class: "problem", role: "alert" });
  const take = (set: string) => {
    const button = el("button", { type: "button", class: "take" }, `Take ${set}`);
    button.addEventListener("click", () => {
      button.disabled = true;
      text(problem, "");
      change(subscription, set).catch((error: unknown) => {
        button.disabled = false;
        text(problem, error instanceof Error ? error.message : String(error));
      });
    });
    return button;
  };
  let shown = "";
  return {
    element: el("div", { class: "refusal" }, el("h3", {}, who), why, offer, takes, problem),
    update(item) {
      text(why, item.why);
      text(offer, item.offer);
      if (item.offer === shown) return;
      shown = item.offer;
      takes.replaceChildren(...alternatives(item.offer).map(take));
    },
  };
}

const refusals = new Keyed<Refused>(byId("refusals"), ({ key }) => key, refusalRow);

export function allRefusals(view: View): Refused[] {
  return view.subs.flatMap(({ node, sub }) =>
    sub.refusals.map((refusal, at) => {
      const end = refusal.lastIndexOf("; ");
      const [why, offer] = end < 0 ? [refusal, ""] : [refusal.slice(0, end), refusal.slice(end + 2)];
      const within = sub.within_us === null ? "" : `, within ${time(sub.within_us)}`;
      return { key: `${sub.id} ${at}`, subscription: sub.id, who: `${node.name} · ${sub.pattern}, ${sub.asked.form}${within}`, why, offer };
    }),
  );
}

const publishers = new Table<{ node: string; row: Publisher }>(
  "Publishers",
  ["tag", "node", "kind", "rate", "published", "subscribers"],
  ({ row }) => row.id,
  ({ node, row }) => [row.tag, node, `${row.kind}, ${row.encoding}`, hertz(row.rate_hz), count(row.published), row.matching ? "yes" : "none"],
  "No publishers yet. Try: paceline pub a/b --test-card 320x240@30",
);
byId("publishers").append(publishers.element);

let steps = 1;
const switches = new Keyed<Switch>(byId("switches"), ({ name }) => name, ({ name, label, about }) => {
  steps += 1;
  const problem = el("p", { class: "problem", role: "alert" });
  const note = el("span", { class: "about", id: `about-${name}` }, about);
  const button = el(
    "button",
    { type: "button", role: "switch", "aria-checked": "false", "aria-describedby": `about-${name}`, "data-switch": name },
    el("span", { class: "number", "aria-hidden": "true" }, String(steps)),
    el("span", {}, label),
    el("span", { class: "knob", "aria-hidden": "true" }),
  );
  button.addEventListener("click", () => {
    const on = button.getAttribute("aria-checked") !== "true";
    attribute(button, "aria-checked", String(on));
    text(problem, "");
    turn(name, on).catch((error: unknown) => {
      attribute(button, "aria-checked", String(!on));
      text(problem, error instanceof Error ? error.message : String(error));
    });
  });
  return { element: el("div", { class: "switch" }, button, note, problem), update: ({ on }) => attribute(button, "aria-checked", String(on)) };
});

function showDrops(view: View): void {
  const lost = allDrops(view);
  empty("drops", lost, "No sample was dropped.");
  drops.update(lost.map(([reason, samples]) => ({ reason, samples, most: lost[0]?.[1] ?? 0 })));
}

function showRefusals(view: View): void {
  const refused = allRefusals(view);
  empty("refusals", refused, "No request is refused.");
  refusals.update(refused);
}

function showPublishers(view: View): void {
  const rows = view.state.nodes.flatMap((node) => node.publishers.map((row) => ({ node: node.name, row })));
  publishers.update(rows.slice(0, ROWS_SHOWN));
}

export function showSwitches(view: View): void {
  byId("switches").hidden = view.state.switches.length === 0;
  switches.update(view.state.switches);
}

/** The views, each with the id of its element. */
export const parts: [string, (view: View) => void][] = [
  ["delay", showDelays],
  ["refusals", showRefusals],
  ["drops", showDrops],
  ["deadlines", showDeadlines],
  ["publishers", showPublishers],
];

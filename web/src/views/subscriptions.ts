// Shows requested, granted and delivered values side by side: a card for each of the first
// subscriptions, and a row for each other one.

import type { ReservedHop } from "../api.gen";
import { attribute, byId, el, Keyed, type Shown, Table, text } from "../dom";
import { bits, count, hertz, percent, time } from "../format";
import { badge, figures as counted, note, reason, windowOf } from "../note";
import { tolerance } from "../promise";
import type { Sub } from "../store";
import { DelayChart } from "./delaychart";
import { PictureView } from "./picture";
import { Tune } from "./tune";
import { ValueList } from "./values";

const CARDS_MAX = 12;
const HEADS = ["requested", "granted", "delivered"] as const;
type Cells = [string, string, string];

/** The number of hops that a card names. */
const HOPS_MAX = 4;

/** Converts "5/100" to words. */
function mayMiss(loss: string | null): string {
  if (loss === null) return "–";
  const [x, y] = tolerance(loss);
  return x === 0 ? "none\nmay miss" : `${x} of ${y}\nmay miss`;
}

function size(sub: Sub, picture: PictureView | null): Cells {
  const { width, height } = sub.sub.asked;
  const asked = width === null || height === null ? "original" : `${width}×${height}`;
  return sub.isPicture ? [asked, sub.sub.refusals.length > 0 ? "refused" : asked, picture?.size || "–"] : ["–", "–", "–"];
}

/** Returns the rows of a card's table. */
function figures(sub: Sub, picture: PictureView | null): Record<string, Cells> {
  const { asked, elastic, within_us, loss, health, refusals } = sub.sub;
  const refused = refusals.length > 0;
  const contract = sub.legs.find((leg) => leg.stream.contract)?.stream.contract ?? null;
  const bound = sub.grants.length > 0 ? Math.max(...sub.grants.map((grant) => grant.bound_us)) : null;
  const whole = bound !== null ? `≤ ${time(bound)}\nwhole path` : contract ? `≤ ${time(contract.deadline_us)}\non the link` : null;
  const plain = refused ? "refused" : within_us === null ? "best effort" : sub.legs.length ? "…" : "on this host";
  const limit = asked.max_hz === null ? "" : hertz(asked.max_hz);
  const counted = asked.every === null ? "" : `1 in ${asked.every}`;
  const all = counted !== "" && limit !== "" ? `${counted}, at most ${limit}` : counted || limit || "all";
  const rate = elastic ? `${all}\nstep ${elastic.step + 1} of ${elastic.ladder.length}` : all;
  return {
    rate: [
      asked.max_hz === null && health.requested_hz !== null ? `${rate}\n${hertz(health.requested_hz)}` : rate,
      contract ? `one per\n${time(contract.period_us)}` : plain,
      health.delivered_hz === null ? "none yet" : hertz(health.delivered_hz),
    ],
    size: size(sub, picture),
    delay: [
      within_us === null ? "–" : `≤ ${time(within_us)}`,
      refused ? plain : (whole ?? (within_us === null ? "–" : plain)),
      sub.age === null ? "no sample" : `${time(sub.age.mean)}\nmax ${time(sub.age.max)}`,
    ],
    loss: [
      within_us === null ? "–" : mayMiss(loss),
      contract ? mayMiss(contract.loss) : "–",
      `${count(health.lost)} lost${within_us === null ? "" : `, ${count(health.late)} late`}\n${windowOf(sub)}`,
    ],
  };
}

/** Returns the place where the samples are scaled, and the reason. */
function scaledAt({ sub }: Sub): string {
  const { asked, scaled_at: at, proxy } = sub;
  if (at.length === 0 || (asked.every === null && asked.max_hz === null && asked.width === null)) return "";
  const why = proxy === "auto" ? "chosen for the fewest bytes" : proxy === "publisher" ? "at the publisher by default" : `as requested: ${proxy}`;
  return ` · reduced at ${[...new Set(at)].slice(0, 3).join(", ")} (${why})`;
}

/** A hop of a granted path, and the reservation on its link. */
interface Hop {
  hop: ReservedHop;
  key: string;
  holds: number;
}

/**
 * Returns the granted path: the reservation of each node on its link, and the delay bound there.
 */
function way(sub: Sub): Hop[] {
  const [grant] = sub.grants;
  return (grant?.hops ?? []).slice(0, HOPS_MAX).map((hop) => {
    // The reservation of the link's scheduler includes headers, so it is the capacity that others
    // cannot use.
    const leg = sub.legs.find(({ node, link }) => node.id === hop.node && link.name === hop.link);
    return { hop, key: `${hop.node} ${hop.link}`, holds: leg?.stream.contract?.bits_per_s ?? hop.bits_per_s };
  });
}

function wayRow(): Shown<Hop> {
  const [where, holds, bound] = [el("span", { class: "who" }), el("span", { class: "held" }), el("span", { class: "within" })];
  return {
    element: el("li", {}, where, holds, bound),
    update({ hop, holds: held }) {
      text(where, `${hop.name} · ${hop.link}`);
      const part = hop.capacity_bits_per_s ? ` (${percent(held, hop.capacity_bits_per_s)})` : "";
      text(holds, hop.capacity_bits_per_s === null ? "no limit" : `${bits(held)}${part}`);
      text(bound, `≤ ${time(hop.bound_us)}`);
    },
  };
}

function card(first: Sub): Shown<Sub> {
  const tag = el("span", { class: "tag" }, first.sub.pattern);
  const title = el("h3", {}, first.node.name, " ", tag);
  const state = el("span", { class: "badge" });
  const total = el("p", { class: "figures" });
  const media = el("div");
  const why = el("p", { class: "why" });
  const below = el("p", { class: "note" });
  const body = el("tbody");
  const cells = new Map<string, HTMLTableCellElement[]>();
  for (const name of ["rate", "size", "delay", "loss"]) {
    const row = HEADS.map((head) => el("td", { class: head }));
    cells.set(name, row);
    body.append(el("tr", {}, el("th", { scope: "row" }, name), ...row));
  }
  const head = el("tr", {}, el("td"), ...HEADS.map((name) => el("th", { scope: "col", class: name }, name)));
  const table = el("table", { class: "three" }, el("caption", { class: "unseen" }, `${first.node.name} ${first.sub.pattern}`), el("thead", {}, head), body);
  const path = el("ol", { class: "path", "aria-label": "the granted path" });
  const hops = new Keyed<Hop>(path, ({ key }) => key, wayRow);
  const element = el("article", { class: "card", "data-id": first.sub.id }, el("header", {}, title, state), media, table, total, path, below);
  let picture: PictureView | null = null;
  let chart: DelayChart | ValueList | null = null;
  const tune = new Tune(first);
  element.append(tune.element);
  const no = el("div", { class: "frame no" }, el("strong", {}, "Refused."), why);
  return {
    element,
    update(sub) {
      attribute(element, "data-health", sub.health);
      text(state, badge(sub));
      total.hidden = sub.sub.refusals.length > 0;
      text(total, [counted(sub), reason(sub)].filter((part) => part !== "").join(": "));
      text(below, `${note(sub)}${scaledAt(sub)}`);
      hops.update(way(sub));
      const refused = sub.sub.refusals.length > 0;
      text(why, sub.sub.refusals[0] ?? "");
      if (refused) {
        picture?.gone();
        chart?.gone();
        picture = chart = null;
        if (media.firstElementChild !== no) media.replaceChildren(no);
      } else if (sub.isShown && !picture) {
        chart?.gone();
        chart = null;
        picture = new PictureView(sub.sub.id, `${sub.node.name} ${sub.sub.pattern}`);
        media.replaceChildren(picture.element);
      } else if (!picture && !chart) {
        const name = `${sub.node.name} ${sub.sub.pattern}`;
        chart = sub.sub.pattern.includes("*") ? new ValueList(sub.sub.id) : new DelayChart(name);
        media.replaceChildren(chart.element);
      }
      chart?.update(sub);
      tune.update(sub);
      for (const [name, row] of Object.entries(figures(sub, picture))) {
        row.forEach((value, at) => {
          const cell = cells.get(name)?.[at];
          if (cell) text(cell, value);
        });
      }
    },
    gone() {
      picture?.gone();
      chart?.gone();
    },
  };
}

const cards = new Keyed<Sub>(byId("cards"), ({ sub }) => sub.id, card);
const more = new Table<Sub>(
  "Further subscriptions",
  ["node", "pattern", "requested", "granted", "bound", "state", "delivered", "delay", "late", "lost"],
  ({ sub }) => sub.id,
  (sub) => {
    const rows = figures(sub, null);
    return [
      sub.node.name, sub.sub.pattern, sub.sub.asked.form, rows["rate"]?.[1] ?? "", rows["delay"]?.[1] ?? "", badge(sub), counted(sub),
      time(sub.age?.mean ?? null), count(sub.sub.health.late), count(sub.sub.health.lost),
    ];
  },
  "",
);
byId("more").append(more.element);

export function showSubscriptions(subs: Sub[]): void {
  attribute(byId("cards"), "data-empty", subs.length === 0 ? "No subscriptions yet." : null);
  // What changed last comes first.
  const ordered = [...subs].sort((a, b) => b.changed - a.changed);
  cards.update(ordered.slice(0, CARDS_MAX));
  const others = ordered.slice(CARDS_MAX);
  byId("more").hidden = others.length === 0;
  more.update(others);
}

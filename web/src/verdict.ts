// The summary sentence of the page: the current state, and separately the violations since the
// start.

import { count, since } from "./format";
import { broken, isBrokenNow } from "./promise";
import type { Health, Sub, View } from "./store";

/** The number of items named; the rest are counted. */
const NAMES_MAX = 2;

export interface Verdict {
  text: string;
  state: Health;
}

export function verdict({ subs, legs }: Pick<View, "subs" | "legs">): Verdict {
  const now = current(subs, legs);
  const refused = subs.filter(({ sub }) => sub.refusals.length > 0).length;
  const no = refused > 0 ? `; ${refused} refused, with an offer` : "";
  return { ...now, text: `${now.text}${past(legs)}${no}` };
}

/** Returns the current state. */
function current(subs: readonly Sub[], legs: View["legs"]): Verdict {
  const served = subs.filter(({ sub, health }) => sub.refusals.length === 0 && health !== "idle");
  const bad = served.filter(({ health }) => health === "bad").map(({ node, sub }) => `${node.name} ${sub.pattern}`);
  // These links also show contracts of subscriptions on nodes that are not displayed.
  const shown = keys(subs.filter(({ sub }) => sub.within_us !== null));
  const lost = legs.filter(({ key, stream }) => !shown.has(key) && isBrokenNow(stream));
  const names = [...bad, ...lost.map(({ node, link, stream }) => `${stream.tag ?? stream.publisher} on ${node.name} ${link.name}`)];
  if (names.length > 0) {
    const which = names.length === 1 ? "a contract is broken now" : `${names.length} contracts are broken now`;
    return { text: `${which}: ${named(names)}`, state: "bad" };
  }
  const short = served.filter(({ health }) => health !== "good");
  const promised = short.filter(({ sub }) => sub.within_us !== null);
  if (promised.length > 0) {
    const less = short.map(({ node, sub }) => `${node.name} ${sub.pattern}`);
    return { text: `${short.length} of ${served.length} subscriptions get less than requested: ${named(less)}`, state: "warm" };
  }
  if (short.length > 0) {
    return { text: `every contract is kept now; ${short.length} best-effort ${short.length === 1 ? "subscription gets" : "subscriptions get"} less than requested`, state: "good" };
  }
  if (served.length > 0) {
    const all = served.length === 1 ? "the subscription is" : `all ${served.length} subscriptions are`;
    return { text: `${all} served as requested`, state: "good" };
  }
  const own = keys(subs);
  const passing = legs.filter(({ key }) => !own.has(key));
  if (passing.length > 0) {
    const many = passing.length === 1 ? "1 stream leads" : `${passing.length} streams lead`;
    const held = passing.some(({ stream }) => stream.contract) ? "; every contract is kept now" : "";
    return { text: `${many} to other nodes${held}`, state: "good" };
  }
  return { text: subs.length === 0 ? "no subscriptions yet" : "no samples are arriving", state: "idle" };
}

function keys(subs: readonly Sub[]): Set<string> {
  return new Set(subs.flatMap((sub) => sub.legs.map(({ key }) => key)));
}

/** Returns the past violations; empty if there were none. */
function past(legs: View["legs"]): string {
  const { windows, agoUs } = broken(legs.map(({ stream }) => stream));
  if (windows === 0 || agoUs === null) return "";
  const many = windows === 1 ? "1 contract window" : `${count(windows)} contract windows`;
  return `; links broke ${many} since the start, the last ${since(agoUs)}`;
}

function named(names: readonly string[]): string {
  const rest = names.length - NAMES_MAX;
  return `${names.slice(0, NAMES_MAX).join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
}

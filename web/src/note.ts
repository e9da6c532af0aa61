// The texts of a subscription's card.

import { count, since } from "./format";
import type { Sub } from "./store";

/** Returns the state as text. */
export function badge({ sub }: Sub): string {
  return sub.health.label;
}

/** Returns the window of the figures as text. */
export function windowOf({ sub }: Sub): string {
  return `in ${Math.round(sub.health.window_us / 1e6)} s`;
}

/** Returns the requested, delivered, lost and late samples of the window. */
export function figures(sub: Sub): string {
  const { requested, delivered, lost, late } = sub.sub.health;
  const of = requested === null ? "" : ` of ${count(requested)}`;
  return `${count(delivered)}${of} ${windowOf(sub)}, ${count(lost)} lost${late > 0 ? `, ${count(late)} late` : ""}`;
}

/** Returns the reason of a state that is not as requested. */
export function reason({ sub }: Sub): string {
  return sub.refusals.length > 0 ? "" : (sub.health.reason ?? "");
}

/** Returns whether the subscription has a contract, whether it is kept, and for how long it was broken since the start. */
export function note({ sub, near, legs, grants }: Sub): string {
  const { state, broken_seconds: seconds, broken_ago_us: ago } = sub.health;
  const held = legs.some((leg) => leg.stream.contract);
  if (sub.refusals.length > 0) return "refused before the first sample was sent";
  const past = seconds > 0 && ago !== null ? ` · broken for ${count(seconds)} s since the start, the last ${since(ago)}` : "";
  if (near) return `on the same node, without a link${past}`;
  const none = "best effort: no link reserves capacity for it";
  if (sub.within_us === null) return held ? "best effort, on a stream reserved for other subscriptions" : none;
  if (!held && grants.length === 0) return `${none}${past}`;
  return `contract ${state === "broken" ? "broken now" : "kept now"}${past}`;
}

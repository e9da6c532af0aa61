// The texts of a subscription's card: its current state, and the history of its contract.

import { count, since } from "./format";
import { tolerance } from "./promise";
import type { Sub } from "./store";

const BADGES = { good: "as requested", warm: "less than requested", bad: "contract broken", idle: "no samples" };

/** Returns the current state, as text. */
export function badge({ sub, health }: Sub): string {
  if (sub.refusals.length > 0) return "refused";
  return health === "idle" && sub.publishers.length === 0 ? "no publisher" : BADGES[health];
}

/**
 * Returns whether the subscription has a contract, whether it is met now, and the violations on its
 * links since the start.
 */
export function note(sub: Sub): string {
  const held = sub.legs.filter((leg) => leg.stream.contract);
  if (sub.sub.refusals.length > 0) return "refused before the first sample was sent";
  if (sub.near) return "on the same node, without a link";
  if (sub.sub.within_us === null) {
    return held.length > 0 ? "best effort, on a stream reserved for other subscriptions" : "best effort: no link reserves capacity for it";
  }
  if (held.length === 0 && sub.grants.length === 0) return "best effort: no link reserves capacity for it";
  const state = sub.health === "bad" ? "broken now" : "kept now";
  if (held.length === 0) return `contract ${state} · its links are shown on other pages`;
  const { windows, agoUs } = sub.broken;
  const sizes = new Set(held.map(({ stream }) => tolerance(stream.contract?.loss ?? null)[1]));
  const [y] = sizes.size === 1 ? sizes : [];
  const last = agoUs === null ? "" : `, the last ${since(agoUs)}`;
  return `contract ${state} · ${onLinks(windows, y)} since the start${last}`;
}

/** Formats the violations on links. Without a loss tolerance, each window is one sample. */
function onLinks(windows: number, y: number | undefined): string {
  const many = windows === 0 ? "no" : count(windows);
  const s = windows === 1 || windows === 0 ? "" : "s";
  return y === 1 ? `${many} sample${s} late or lost on links` : `${many} window${s}${y === undefined ? "" : ` of ${y}`} broken`;
}

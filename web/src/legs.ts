// The streams of links, and the subscriptions that they carry.

import type { Drops, Link, Node, Reason, Reservation, State, Stream, Subscription } from "./api.gen";

/** A stream with its link and the sending node. */
export interface Leg {
  key: string;
  node: Node;
  link: Link;
  stream: Stream;
}

/** The maximum number of legs of a path. */
const LEGS_MAX = 8;

/** Returns all streams. While one stream replaces another, both exist and are merged to one. */
export function legsOf(state: State): Leg[] {
  const legs = new Map<string, Leg>();
  for (const node of state.nodes) {
    for (const link of node.links) {
      for (const stream of link.streams) {
        const key = [node.id, link.name, stream.publisher, stream.asked.form, stream.hop].join(" ");
        const other = legs.get(key);
        legs.set(key, { key, node, link, stream: other ? together(other.stream, stream) : stream });
      }
    }
  }
  return [...legs.values()];
}

function together(one: Stream, other: Stream): Stream {
  const contract = one.contract ?? other.contract;
  const agos = [one.broken_ago_us, other.broken_ago_us].filter((ago) => ago !== null);
  return {
    ...one,
    contract,
    contracted: contract !== null,
    ages: {
      entered: one.ages.entered + other.ages.entered,
      entered_us: one.ages.entered_us + other.ages.entered_us,
      left_us: one.ages.left_us + other.ages.left_us,
    },
    offered: one.offered + other.offered,
    sent: one.sent + other.sent,
    bytes: one.bytes + other.bytes,
    late: one.late + other.late,
    violations: one.violations + other.violations,
    broken_ago_us: agos.length > 0 ? Math.min(...agos) : null,
    too_early: one.too_early + other.too_early,
    too_long: one.too_long + other.too_long,
    dropped: added(one.dropped, other.dropped),
  };
}

/** Returns the sum of both drop counts, by reason. */
export function added(one: Drops, other: Drops): Drops {
  const all = { ...one };
  for (const [reason, samples] of Object.entries(other) as [Reason, number][]) {
    all[reason] = (all[reason] ?? 0) + samples;
  }
  return all;
}

/**
 * Returns the streams that carry a subscription, starting at the publisher, as far as they are
 * known.
 */
export function legsTo(node: Node, sub: Subscription, legs: readonly Leg[]): Leg[] {
  const way: Leg[] = [];
  const publisher = sub.publishers[0];
  if (publisher === undefined) return way;
  let at = node.id;
  while (way.length < LEGS_MAX && !publisher.startsWith(`${at}.`)) {
    const found = legs.filter(({ stream }) => stream.publisher === publisher && stream.hop === at);
    const leg = found.find(({ stream }) => stream.asked.form === sub.asked.form) ?? found[0];
    if (!leg) break;
    way.unshift(leg);
    at = leg.node.id;
  }
  return way;
}

/** Returns the grants by subscription. Every node of a path reports them; each is counted once. */
export function grantsOf(state: State): Map<string, Reservation[]> {
  const grants = new Map<string, Reservation[]>();
  for (const one of state.nodes.flatMap((node) => node.reservations)) {
    // Only the path of a spare leads through this node.
    if (one.hops.length === 0) continue;
    const known = grants.get(one.subscription) ?? [];
    if (known.some(({ publisher }) => publisher === one.publisher)) continue;
    known.push(one);
    grants.set(one.subscription, known);
  }
  return grants;
}

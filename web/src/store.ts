// From readings, one a second, to what the page shows: rates and means are differences of two readings.

import type { Drops, Link, Node, Publisher, Reservation, State, Stream, Subscription } from "./api.gen";

/** Seconds that charts look back. */
export const SECONDS = 120;

/** A stream with the link and the node that it leaves over. */
export interface Leg {
  node: Node;
  link: Link;
  stream: Stream;
}

/** A part of the way, and its mean share of the delay in the last second. */
export interface Part {
  name: string;
  us: number;
}

export type Health = "good" | "warm" | "bad" | "idle";

/** A subscription with everything that is known of it. */
export interface Sub {
  node: Node;
  sub: Subscription;
  publishers: Publisher[];
  /** What paths have promised it, of each publisher that they have. */
  grants: Reservation[];
  /** What it must get each second; null where nobody says. */
  expected: number | null;
  legs: Leg[];
  parts: Part[];
  /** Mean age at delivery in the last second. */
  age: number | null;
  /** Samples late or dropped in the last second. */
  missed: number;
  health: Health;
  isPicture: boolean;
  /** Mean and longest age, newest last. */
  ages: { mean: number; max: number }[];
}

/** What one contract holds of a link. */
export interface Share {
  key: string;
  what: string;
  to: string;
  bits: number;
}

/** A link with its past. */
export interface LinkView {
  shares: Share[];
  node: Node;
  link: Link;
  to: string[];
  past: { use: number; reserved: number }[];
}

export interface View {
  state: State;
  subs: Sub[];
  links: LinkView[];
  legs: Leg[];
  names: Map<string, string>;
}

export function sum(drops: Drops): number {
  return Object.values(drops).reduce((all, n) => all + (n ?? 0), 0);
}

function push<T>(past: T[], now: T): T[] {
  past.push(now);
  if (past.length > SECONDS) past.shift();
  return past;
}

const legKey = ({ node, link, stream }: Leg): string =>
  [node.id, link.name, stream.publisher, stream.asked.form, stream.hop].join(" ");

/** Keeps the reading before and the past of charts. */
export class Store {
  #subs = new Map<string, Pick<Sub, "sub" | "ages" | "parts">>();
  #legs = new Map<string, Stream>();
  #links = new Map<string, LinkView["past"]>();

  take(state: State): View {
    const names = new Map(state.nodes.map((node) => [node.id, node.name]));
    for (const { id, name } of state.known) names.set(id, name);
    const legs = state.nodes.flatMap((node) =>
      node.links.flatMap((link) => link.streams.map((stream) => ({ node, link, stream }))),
    );
    const publishers = new Map(state.nodes.flatMap((node) => node.publishers).map((one) => [one.id, one]));
    const grants = grantsOf(state);
    const subs = state.nodes.flatMap((node) =>
      node.subscriptions.map((sub) => this.#sub(node, sub, legs, publishers, grants.get(sub.id) ?? [])),
    );
    const links = state.nodes.flatMap((node) => node.links.map((link) => this.#link(node, link, names)));
    this.#legs = new Map(legs.map((leg) => [legKey(leg), leg.stream]));
    this.#subs = new Map(subs.map(({ sub, ages, parts }) => [sub.id, { sub, ages, parts }]));
    this.#links = new Map(links.map(({ node, link, past }) => [`${node.id} ${link.name}`, past]));
    return { state, subs, links, legs, names };
  }

  #link(node: Node, link: Link, names: Map<string, string>): LinkView {
    const past = this.#links.get(`${node.id} ${link.name}`) ?? [];
    push(past, { use: link.use_bits_per_s ?? 0, reserved: link.reserved_bits_per_s });
    return { node, link, past, shares: sharesOf(node, link, names), to: link.hops.map((hop) => names.get(hop) ?? hop) };
  }

  #sub(node: Node, sub: Subscription, legs: Leg[], all: Map<string, Publisher>, grants: Reservation[]): Sub {
    const before = this.#subs.get(sub.id);
    const publishers = sub.publishers.flatMap((id) => all.get(id) ?? []);
    const way = legsTo(node, sub, legs);
    const delivered = sub.delivered - (before?.sub.delivered ?? sub.delivered);
    const age = before && delivered > 0 ? (sub.age_sum_us - before.sub.age_sum_us) / delivered : null;
    const missed = before ? sub.late - before.sub.late + sum(sub.dropped) - sum(before.sub.dropped) : 0;
    const ages = before?.ages ?? [];
    if (before) push(ages, { mean: age ?? 0, max: sub.age_max_us });
    const expected = expectedRate(sub, publishers);
    const parts = age === null ? [] : this.#parts(way, age);
    const kinds = publishers.map((one) => one.encoding);
    return {
      node, sub, publishers, grants, expected, legs: way, age, missed, ages,
      // A second without a sample says nothing of where the delay goes: what was known stays.
      parts: parts.length > 0 ? parts : (before?.parts ?? []),
      health: health(sub, expected, missed),
      isPicture: kinds.some((kind) => kind.startsWith("image/") || kind.startsWith("video/raw")),
    };
  }

  /** Where the delay goes: before each link, on it, and after the last. */
  #parts(legs: Leg[], age: number): Part[] {
    const parts: Part[] = [];
    let so_far = 0;
    for (const leg of legs) {
      const before = this.#legs.get(legKey(leg));
      if (!before) return [];
      const { stream } = leg;
      const entered = stream.ages.entered - before.ages.entered;
      const sent = stream.sent - before.sent;
      if (entered <= 0 || sent <= 0) return [];
      const came = (stream.ages.entered_us - before.ages.entered_us) / entered;
      const left = (stream.ages.left_us - before.ages.left_us) / sent;
      parts.push({ name: `${leg.node.name}: until it is queued`, us: Math.max(0, came - so_far) });
      parts.push({ name: `link ${leg.link.name}: its turn, and its bytes`, us: Math.max(0, left - came) });
      so_far = left;
    }
    parts.push({ name: legs.length ? "the way, and delivery" : "on this host", us: Math.max(0, age - so_far) });
    return parts;
  }
}

/** Promises by subscription. Every node of a path tells of them: each counts once. */
function grantsOf(state: State): Map<string, Reservation[]> {
  const grants = new Map<string, Reservation[]>();
  for (const one of state.nodes.flatMap((node) => node.reservations)) {
    const known = grants.get(one.subscription) ?? [];
    if (known.some(({ publisher }) => publisher === one.publisher)) continue;
    known.push(one);
    grants.set(one.subscription, known);
  }
  return grants;
}

/** What contracts hold of a link, the largest first. */
function sharesOf(node: Node, link: Link, names: Map<string, string>): Share[] {
  const held = link.streams.flatMap((stream) => (stream.contract ? [{ stream, bits: stream.contract.bits_per_s }] : []));
  const shares = held.map(({ stream, bits }) => ({
    key: legKey({ node, link, stream }),
    what: `${stream.tag ?? stream.publisher}, ${stream.asked.form}`,
    to: names.get(stream.hop) ?? stream.hop,
    bits,
  }));
  return shares.sort((a, b) => b.bits - a.bits || a.key.localeCompare(b.key));
}

/** The streams that carry a subscription, from the publisher on. */
function legsTo(node: Node, sub: Subscription, legs: Leg[]): Leg[] {
  const way: Leg[] = [];
  const publisher = sub.publishers[0];
  if (publisher === undefined) return way;
  let at = node.id;
  while (way.length < 8 && !publisher.startsWith(`${at}.`)) {
    const found = legs.filter(({ stream }) => stream.publisher === publisher && stream.hop === at);
    const leg = found.find(({ stream }) => stream.asked.form === sub.asked.form) ?? found[0];
    if (!leg) break;
    way.unshift(leg);
    at = leg.node.id;
  }
  return way;
}

function expectedRate(sub: Subscription, publishers: Publisher[]): number | null {
  if (publishers.length === 0) return null;
  const rates = publishers.map((one) => {
    const hertz = one.period_us ? 1e6 / one.period_us : one.rate_hz;
    const rate = hertz / (sub.asked.every ?? 1);
    return sub.asked.max_hz === null ? rate : Math.min(rate, sub.asked.max_hz);
  });
  return rates.reduce((all, rate) => all + rate, 0);
}

/** Good: it gets its rate, and misses no more than it tolerates. */
function health(sub: Subscription, expected: number | null, missed: number): Health {
  if (sub.refusals.length > 0) return "bad";
  if (expected === null || expected === 0) return "idle";
  const [x, y] = (sub.loss ?? "0/1").split("/").map(Number);
  const tolerated = ((x ?? 0) / (y || 1)) * expected;
  if (missed > Math.max(tolerated, 0)) return sub.within_us === null ? "warm" : "bad";
  // One sample more or less in a second is how rates are counted, not a miss.
  return sub.rate_hz + 1.5 + tolerated < expected * 0.95 ? "warm" : "good";
}

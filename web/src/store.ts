// Converts readings, one per second, to the data that the page shows.

import type { Link, Node, Past, Publisher, Reservation, State, Subscription } from "./api.gen";
import { SECONDS_MAX } from "./chart";
import { Delays, type Part } from "./delay";
import { grantsOf, type Leg, legsOf, legsTo } from "./legs";
import { type Colour, colour } from "./promise";
import { decodesH264, H264 } from "./video";

/** The newest ages at delivery, both of the same samples, at most ten seconds old. */
export interface Ages {
  mean: number;
  max: number;
}

/** A subscription with all related data. */
export interface Sub {
  node: Node;
  sub: Subscription;
  publishers: Publisher[];
  /** The grants of its paths, one for each publisher that has one. */
  grants: Reservation[];
  legs: Leg[];
  /** True if its publisher is on the same node. */
  near: boolean;
  parts: Part[];
  age: Ages | null;
  /** The colour of its state. */
  health: Colour;
  isPicture: boolean;
  /** Its pictures can be shown here. */
  isShown: boolean;
  /** One entry per second, the newest last. */
  ages: Ages[];
  /** The number of the last change of the request, or of the appearance; 0 since the start of the page. */
  changed: number;
}

/** The reservation of one contract on a link. */
export interface Share {
  key: string;
  what: string;
  to: string;
  bits: number;
}

/** The state of a link in one second; `loss` is the part of lost frames in percent. */
export interface LinkPoint {
  use: number;
  reserved: number;
  capacity: number;
  delay: number;
  jitter: number;
  loss: number;
}

/** A link with its history. */
export interface LinkView {
  shares: Share[];
  node: Node;
  link: Link;
  to: string[];
  past: LinkPoint[];
}

export interface View {
  state: State;
  subs: Sub[];
  links: LinkView[];
  legs: Leg[];
  /** The parts of the delay of streams that lead to no displayed subscription. */
  passing: { leg: Leg; total: number; parts: Part[] }[];
  names: Map<string, string>;
}

function push<T>(past: T[], now: T, max: number): T[] {
  past.push(now);
  if (past.length > max) past.shift();
  return past;
}

/** Keeps the last readings and the history of charts. */
export class Store {
  #subs = new Map<string, Sub>();
  #links = new Map<string, LinkView["past"]>();
  readonly #delays = new Delays();
  #past: Past | null = null;
  #readings = 0;

  /** Takes the history that the server keeps. It contains the readings of this page. */
  remember(past: Past): void {
    if (this.#readings === 0) this.#past = past;
    for (const [id, sub] of this.#subs) sub.ages = agesOf(past, id) ?? sub.ages;
    for (const [key, link] of this.#links) link.splice(0, link.length, ...(useOf(past, key) ?? link));
  }

  take(state: State): View {
    this.#readings += 1;
    const names = new Map(state.nodes.map((node) => [node.id, node.name]));
    for (const { id, name } of state.known) names.set(id, name);
    const legs = legsOf(state);
    this.#delays.take(legs);
    const publishers = new Map(state.nodes.flatMap((node) => node.publishers).map((one) => [one.id, one]));
    const grants = grantsOf(state);
    const subs = state.nodes.flatMap((node) =>
      node.subscriptions.map((sub) => this.#sub(node, sub, legs, publishers, grants.get(sub.id) ?? [])),
    );
    const links = state.nodes.flatMap((node) => node.links.map((link) => this.#link(node, link, legs, names)));
    this.#subs = new Map(subs.map((sub) => [sub.sub.id, sub]));
    this.#links = new Map(links.map(({ node, link, past }) => [`${node.id} ${link.name}`, past]));
    // Later subscriptions and links began after this history.
    this.#past = null;
    return { state, subs, links, legs, passing: this.#passing(subs, legs), names };
  }

  #link(node: Node, link: Link, legs: readonly Leg[], names: Map<string, string>): LinkView {
    const key = `${node.id} ${link.name}`;
    const before = this.#links.get(key);
    const past = before ?? useOf(this.#past, key) ?? [];
    if (before) push(past, pointOf(link), SECONDS_MAX);
    const own = legs.filter((leg) => leg.node === node && leg.link === link);
    return { node, link, past, shares: sharesOf(own, names), to: link.hops.map((hop) => names.get(hop) ?? hop) };
  }

  #sub(node: Node, sub: Subscription, all: Leg[], known: Map<string, Publisher>, grants: Reservation[]): Sub {
    const before = this.#subs.get(sub.id);
    const publishers = sub.publishers.flatMap((id) => known.get(id) ?? []);
    const legs = legsTo(node, sub, all);
    const fresh = sub.age_mean_us === null ? null : { mean: sub.age_mean_us, max: sub.age_max_us };
    const ages = before?.ages ?? agesOf(this.#past, sub.id) ?? [];
    if (before) push(ages, fresh ?? { mean: 0, max: 0 }, SECONDS_MAX);
    const same = before ? requestOf(before.sub) === requestOf(sub) : this.#readings === 1;
    const changed = same ? (before?.changed ?? 0) : this.#readings;
    const age = fresh ?? (sub.health.delivered > 0 ? (before?.age ?? null) : null);
    const near = sub.publishers[0]?.startsWith(`${node.id}.`) ?? false;
    const end = legs.length > 0 ? "propagation and delivery" : near ? "on this host" : "path to this node";
    const isPicture = publishers.some(({ encoding: kind }) => kind.startsWith("image/") || kind.startsWith("video/raw"));
    return {
      node, sub, publishers, grants, legs, near, ages, age, changed,
      health: colour(sub.health.state),
      parts: age === null ? [] : this.#delays.parts(legs, age.mean, end),
      isPicture,
      isShown: isPicture || (decodesH264() && publishers.some(({ encoding: kind }) => kind.startsWith(H264))),
    };
  }

  #passing(subs: readonly Sub[], legs: readonly Leg[]): View["passing"] {
    const shown = new Set(subs.flatMap((sub) => sub.legs.map(({ key }) => key)));
    return legs.filter(({ key }) => !shown.has(key)).flatMap((leg) => {
      const total = this.#delays.ages(leg)?.left;
      if (total === undefined) return [];
      const parts = this.#delays.parts([leg], total, "").slice(0, -1);
      return [{ leg, total, parts }];
    });
  }
}

function agesOf(history: Past | null, id: string): Ages[] | undefined {
  const past = history?.subscriptions[id];
  return past?.mean_us.map((mean, at) => ({ mean, max: past.max_us[at] ?? 0 }));
}

function useOf(history: Past | null, key: string): LinkView["past"] | undefined {
  const past = history?.links[key];
  return past?.use_bits_per_s.map((use, at) => ({
    use,
    reserved: past.reserved_bits_per_s[at] ?? 0,
    capacity: past.capacity_bits_per_s[at] ?? 0,
    delay: past.delay_us[at] ?? 0,
    jitter: past.jitter_us[at] ?? 0,
    loss: (past.loss_ppm[at] ?? 0) / 1e4,
  }));
}

function pointOf(link: Link): LinkPoint {
  return {
    use: link.use_bits_per_s ?? 0, reserved: link.reserved_bits_per_s, capacity: link.capacity_bits_per_s ?? 0,
    delay: link.delay_us, jitter: link.jitter_us,
    loss: (link.loss ?? 0) * 100,
  };
}

/** Returns a text that changes with the request and its answer. */
function requestOf({ asked, within_us, loss, refusals }: Subscription): string {
  return [asked.form, within_us, loss, refusals.length > 0].join(" ");
}

/** Returns the reservations on a link, the largest first. */
function sharesOf(legs: readonly Leg[], names: Map<string, string>): Share[] {
  const shares = legs.flatMap(({ key, stream }) => {
    if (!stream.contract) return [];
    const what = `${stream.tag ?? stream.publisher}, ${stream.asked.form}`;
    return [{ key, what, to: names.get(stream.hop) ?? stream.hop, bits: stream.contract.bits_per_s }];
  });
  return shares.sort((a, b) => b.bits - a.bits || a.key.localeCompare(b.key));
}

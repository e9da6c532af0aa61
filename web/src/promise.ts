// Checks whether contracts are met now, independently of violations since the start.

import type { Stream, Subscription } from "./api.gen";

/**
 * A violation counts as current for this time in microseconds, or for one window if that is longer.
 */
export const NOW_US = 10e6;

/** The counters of a subscription at one reading; in a history, the newest is last. */
export interface Counted {
  at_us: number;
  /** The links whose drops are included in `missed`. */
  way: string;
  delivered: number;
  missed: number;
}

/** The violated windows of some streams. */
export interface Broken {
  /** The number since the start. */
  windows: number;
  /** The time since the last one in microseconds; null if there is none. */
  agoUs: number | null;
  /** True if one of them is current. */
  now: boolean;
}

export function sum(drops: Subscription["dropped"]): number {
  return Object.values(drops).reduce((all, n) => all + (n ?? 0), 0);
}

/** Converts "5/100" to numbers. Without a tolerance, no sample may miss. */
export function tolerance(loss: string | null): [x: number, y: number] {
  const [x, y] = (loss ?? "0/1").split("/").map(Number);
  return [x ?? 0, y || 1];
}

/**
 * Returns the number of samples delivered late. A sample dropped for being late counts as dropped.
 */
export function late(sub: Subscription): number {
  return Math.max(0, sub.late - (sub.dropped.deadline_missed ?? 0));
}

/** Returns the number of samples late or lost. */
export function missed(sub: Subscription): number {
  return late(sub) + sum(sub.dropped);
}

/** Returns the counters of a subscription, including drops on its path. */
export function counted(at_us: number, sub: Subscription, way: readonly { key: string; stream: Stream }[]): Counted {
  const lost = way.reduce((all, { stream }) => all + sum(stream.dropped), 0);
  return { at_us, way: way.map(({ key }) => key).join("; "), delivered: sub.delivered, missed: missed(sub) + lost };
}

/**
 * Returns true if the link allows fewer misses than requested. Its violations may then still be
 * within the requested tolerance.
 */
export function isStricter(contract: string, asked: string | null): boolean {
  const [[x, y], [most, of]] = [tolerance(contract), tolerance(asked)];
  return x * of < most * y;
}

/**
 * Returns true if a window of the stream was violated within the last 10 s, or within the length of
 * a window.
 */
export function isBrokenNow({ contract, broken_ago_us: ago }: Stream): boolean {
  if (contract === null || ago === null) return false;
  return ago < Math.max(NOW_US, tolerance(contract.loss)[1] * contract.period_us);
}

export function broken(streams: readonly Stream[]): Broken {
  const agos = streams.flatMap(({ broken_ago_us: ago }) => (ago === null ? [] : [ago]));
  return {
    windows: streams.reduce((all, { violations }) => all + violations, 0),
    agoUs: agos.length > 0 ? Math.min(...agos) : null,
    now: streams.some(isBrokenNow),
  };
}

/**
 * Returns true if there were more misses than the tolerance allows, whatever the alignment of
 * windows: n consecutive samples touch at most (n - 1) / y + 1 windows.
 */
export function isBeyond(history: readonly Counted[], loss: string | null): boolean {
  const [x, y] = tolerance(loss);
  const last = history.at(-1);
  return last !== undefined && history.slice(0, -1).some((then) => {
    const missed = last.missed - then.missed;
    const samples = last.delivered - then.delivered + missed;
    return missed > 0 && missed > x * (Math.ceil((samples - 1) / y) + 1);
  });
}

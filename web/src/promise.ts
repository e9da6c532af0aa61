// Whether promises are kept now, apart from what became of them since the start.

import type { Stream, Subscription } from "./api.gen";

/** A broken window counts as of now for so long, or for a window's length if that is longer. */
export const NOW_US = 10e6;

/** The counts of a subscription at one reading; the newest last. */
export interface Counted {
  at_us: number;
  /** The links whose drops are among the missed. */
  way: string;
  delivered: number;
  missed: number;
}

/** The broken windows of some streams. */
export interface Broken {
  /** Since the start. */
  windows: number;
  /** When the last of them was; null if none is. */
  agoUs: number | null;
  /** One of them is of now. */
  now: boolean;
}

export function sum(drops: Subscription["dropped"]): number {
  return Object.values(drops).reduce((all, n) => all + (n ?? 0), 0);
}

/** "5/100" as numbers; without a tolerance none may miss. */
export function tolerance(loss: string | null): [x: number, y: number] {
  const [x, y] = (loss ?? "0/1").split("/").map(Number);
  return [x ?? 0, y || 1];
}

/** Delivered late: a sample that was dropped for being late is counted as dropped. */
export function late(sub: Subscription): number {
  return Math.max(0, sub.late - (sub.dropped.deadline_missed ?? 0));
}

/** Late or lost. */
export function missed(sub: Subscription): number {
  return late(sub) + sum(sub.dropped);
}

/** The counts of a subscription, with what was dropped on its way. */
export function counted(at_us: number, sub: Subscription, way: readonly { key: string; stream: Stream }[]): Counted {
  const lost = way.reduce((all, { stream }) => all + sum(stream.dropped), 0);
  return { at_us, way: way.map(({ key }) => key).join("; "), delivered: sub.delivered, missed: missed(sub) + lost };
}

/** The link allows fewer misses than were asked for: what it breaks may still be within what was asked for. */
export function isStricter(contract: string, asked: string | null): boolean {
  const [[x, y], [most, of]] = [tolerance(contract), tolerance(asked)];
  return x * of < most * y;
}

/** A window of the stream was broken within the last 10 s, or within the length of a window. */
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
 * More misses arrived than the tolerance allows, however the windows lie: n samples in a row touch at most
 * (n - 1) / y + 1 windows.
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

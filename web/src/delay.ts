// Splits the delay of a stream: the mean age of samples before each link, on it, and after the
// last.

import type { Stream } from "./api.gen";
import type { Leg } from "./legs";

/** A part of the path, and its share of the mean delay. */
export interface Part {
  name: string;
  us: number;
}

/** The number of past readings kept, for streams that send less than one sample per second. */
const READINGS_MAX = 10;

/** The counters of a stream from which its delays follow. */
type Counters = Pick<Stream, "ages" | "sent">;

/** The counters of streams at the last readings. */
export class Delays {
  readonly #past = new Map<string, Counters[]>();

  /** Adds a reading. Closed streams are removed. */
  take(legs: readonly Leg[]): void {
    const keys = new Set(legs.map(({ key }) => key));
    for (const key of this.#past.keys()) if (!keys.has(key)) this.#past.delete(key);
    for (const { key, stream: { ages, sent } } of legs) {
      const past = this.#past.get(key) ?? [];
      // Whole readings would keep the memory of ten seconds alive.
      past.push({ ages, sent });
      if (past.length > READINGS_MAX + 1) past.shift();
      this.#past.set(key, past);
    }
  }

  /**
   * Returns the mean ages on arrival at the link and on leaving it, of the newest samples that did
   * both.
   */
  ages({ key, stream }: Leg): { came: number; left: number } | null {
    for (const before of this.#past.get(key)?.slice(0, -1).reverse() ?? []) {
      const entered = stream.ages.entered - before.ages.entered;
      const sent = stream.sent - before.sent;
      if (entered <= 0 || sent <= 0) continue;
      return {
        came: (stream.ages.entered_us - before.ages.entered_us) / entered,
        left: (stream.ages.left_us - before.ages.left_us) / sent,
      };
    }
    return null;
  }

  /**
   * Returns the parts of a delay of `total` over these links; `end` names the last part. Their sum
   * is `total`. The ages were not read at the same instant, so each is limited to the range from
   * the previous one to `total`.
   */
  parts(legs: readonly Leg[], total: number, end: string): Part[] {
    const parts: Part[] = [];
    let far = 0;
    const until = (name: string, us: number) => {
      const at = Math.min(Math.max(us, far), total);
      parts.push({ name, us: at - far });
      far = at;
    };
    for (const leg of legs) {
      const ages = this.ages(leg);
      if (!ages) return [];
      until(`${leg.node.name}: until queued`, ages.came);
      until(`link ${leg.link.name}: queueing and transmission`, ages.left);
    }
    until(end, total);
    return parts;
  }
}

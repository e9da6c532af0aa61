// Where the delay goes: the mean age of samples before each link, on it, and after the last.

import type { Stream } from "./api.gen";
import type { Leg } from "./legs";

/** A part of the way, and its share of the mean delay. */
export interface Part {
  name: string;
  us: number;
}

/** Readings that are looked back upon for streams that send less than once a second. */
const READINGS_MAX = 10;

/** The counts of streams at the last readings. */
export class Delays {
  readonly #past = new Map<string, Stream[]>();

  /** Takes the next reading; streams that are closed are forgotten. */
  take(legs: readonly Leg[]): void {
    const keys = new Set(legs.map(({ key }) => key));
    for (const key of this.#past.keys()) if (!keys.has(key)) this.#past.delete(key);
    for (const { key, stream } of legs) {
      const past = this.#past.get(key) ?? [];
      past.push(stream);
      if (past.length > READINGS_MAX + 1) past.shift();
      this.#past.set(key, past);
    }
  }

  /** Mean ages when samples came to the link and when they left it, of the newest that did both. */
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
   * The parts of a delay of `total` over these links; `end` names the last. Together they are `total`: the ages were
   * not read at the same instant, so each is held between the one before and the whole.
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
      until(`${leg.node.name}: until it is queued`, ages.came);
      until(`link ${leg.link.name}: its turn, and its bytes`, ages.left);
    }
    until(end, total);
    return parts;
  }
}

// The clock of the node, with a bound on its error (Cristian, "Probabilistic clock synchronization", 1989).

/** Clocks drift by less than 500 millionths. */
const DRIFT = 500e-6;
/** The measurements that are kept. */
const KEPT = 8;

interface Measured {
  /** This browser's time, in microseconds. */
  at: number;
  offset: number;
  error: number;
  trip: number;
}

/** This browser's time in microseconds, which never jumps. */
export function now(): number {
  return performance.now() * 1000;
}

/** The time of the node, estimated from messages and their answers. */
export class NodeClock {
  #measured: Measured[] = [];

  /** Takes the answer to a message that was sent at `sent`: the node's time when it answered. */
  take(sent: number, node: number): void {
    const at = now();
    const trip = at - sent;
    if (!(trip >= 0)) return;
    this.#measured.push({ at, offset: node - (sent + at) / 2, error: trip / 2, trip });
    this.#measured = this.#measured.slice(-KEPT);
  }

  /** Forgets everything, for another connection. */
  reset(): void {
    this.#measured = [];
  }

  get isKnown(): boolean {
    return this.#measured.length > 0;
  }

  /** The best measurement: the one whose error has grown least. */
  #best(): Measured {
    const at = now();
    const error = (it: Measured) => it.error + (at - it.at) * DRIFT;
    const best = this.#measured.reduce<Measured | undefined>((a, b) => (a && error(a) <= error(b) ? a : b), undefined);
    return best ?? { at, offset: 0, error: Infinity, trip: Infinity };
  }

  /** The node's time now, in microseconds of its own clock. */
  node(): number {
    return now() + this.#best().offset;
  }

  /** The largest error of `node`, in microseconds. */
  error(): number {
    const best = this.#best();
    return best.error + (now() - best.at) * DRIFT;
  }

  /** The smallest round trip of the last measurements, in microseconds. */
  roundTrip(): number {
    return Math.min(...this.#measured.map((it) => it.trip), Infinity);
  }
}

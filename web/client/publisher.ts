// Publishers.

import { now, type NodeClock } from "./clock";
import { Emitter } from "./emitter";
import type { Declaration, Grant } from "./types";
import { type Kind, writeSample } from "./wire";

/** The bytes that may wait in the connection before further samples are dropped. */
const WAITING_MAX = 256 << 10;

/** The events of a publisher. */
export interface PublisherEvents {
  /** The first subscription has come, or the last one has left. */
  matching: boolean;
  /** The path to a subscription has granted its request: the rate that it gets. */
  granted: Grant;
  /** The publisher cannot be made, in words. */
  error: string;
}

/** A connection as a publisher needs it. */
export interface Outlet {
  /** Sends a message; returns false while there is no connection. */
  send(message: ArrayBuffer): boolean;
  /** The bytes that wait in the connection. */
  waiting(): number;
}

/** A publisher of this page. */
export class Publisher extends Emitter<PublisherEvents> {
  readonly #say: (message: object) => void;
  readonly #outlet: Outlet;
  readonly #clock: NodeClock;
  readonly #ended: () => void;
  /** The samples that left this page. */
  published = 0;
  /** The samples that were dropped, because there was no connection or too much waited in it. Nothing old is sent later. */
  dropped = 0;
  /** Someone receives the samples. */
  matching = false;

  /** Use `Connection.publish`. */
  constructor(readonly id: number, readonly declaration: Declaration, say: (message: object) => void, outlet: Outlet, clock: NodeClock, ended: () => void) {
    super();
    [this.#say, this.#outlet, this.#clock, this.#ended] = [say, outlet, clock, ended];
  }

  /**
   * Publishes a sample. `capturedAt` is the time in milliseconds, as of `performance.now()`, at which it became true; now if left out.
   * Returns false if it was dropped.
   */
  put(payload: Uint8Array | string | object, { kind = this.declaration.kind ?? "data", capturedAt }: { kind?: Kind; capturedAt?: number } = {}): boolean {
    const bytes = payload instanceof Uint8Array ? payload : new TextEncoder().encode(typeof payload === "string" ? payload : JSON.stringify(payload));
    const behind = capturedAt === undefined ? 0 : Math.max(now() - capturedAt * 1000, 0);
    const times = { published: this.#clock.node() - behind, error: this.#clock.error(), captured: Date.now() * 1000 - behind };
    const sent = this.#clock.isKnown && this.#outlet.waiting() <= WAITING_MAX && this.#outlet.send(writeSample(this.id, kind, times, bytes));
    if (sent) this.published += 1;
    else this.dropped += 1;
    return sent;
  }

  /** Ends the publisher. */
  close(): void {
    this.#say({ op: "unpublish", id: this.id });
    this.#ended();
  }

  /** Declares it, also after a reconnection. */
  announce(): void {
    const { tag, encoding, hz, withinMs, loss, bytesMax } = this.declaration;
    const fields = { encoding, hz, within_ms: withinMs, loss, bytes_max: bytesMax };
    this.#say({ op: "publish", id: this.id, tag, ...Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) });
  }

  /** Takes a message about this publisher. */
  handle(message: Record<string, unknown>): void {
    if (message["op"] === "matching") {
      this.matching = message["matching"] === true;
      this.emit("matching", this.matching);
    } else if (message["op"] === "publisher_granted") {
      this.emit("granted", message["grant"] as Grant);
    } else {
      this.emit("error", String(message["error"] ?? message["op"]));
    }
  }
}

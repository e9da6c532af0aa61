// Subscriptions.

import type { NodeClock } from "./clock";
import { Emitter } from "./emitter";
import type { Form, Grant, Received, Refusal, Sample, SubscribeRequest, Want } from "./types";
import { RefusedError } from "./types";
import type { RawSample } from "./wire";

/** The samples that wait for the page, unless it says otherwise. */
const QUEUE = 64;

/** The events of a subscription. */
export interface SubscriptionEvents {
  sample: Sample;
  /** A path has granted the request. */
  granted: Grant;
  /** A path has refused it; samples of that publisher do not come. */
  refused: Refusal;
  /** Samples come without a promise, for the reason in words. */
  bestEffort: string;
  /** A promise ended: the path was lost, or the publisher has gone. */
  withdrawn: string;
  /** The capacity of a link falls; the promise still holds. In words. */
  warned: string;
  /** An elastic contract was reduced or restored, or the request has changed. */
  changed: Form;
  publishers: Received[];
  /** Samples that this browser's node has dropped so far, by reason. */
  dropped: Record<string, number>;
  /** The subscription cannot be made: the request is wrong, in words. */
  error: string;
}

/** The counts of a subscription. */
export interface Counts {
  /** Samples that have arrived. */
  received: number;
  /** Those beyond the delay bound. */
  late: number;
  /** Samples that the page did not take in time. */
  overflowed: number;
}

/** Writes the wishes as options. */
export function options(want: Want): Record<string, string | number> {
  const { maxHz, minHz, every, size, bitrate, quality, audio, withinMs, loss, importance } = want;
  const all = { max_hz: maxHz, min_hz: minHz, every, size, bitrate, quality, audio, within: withinMs === undefined ? undefined : `${Math.round(withinMs * 1000)}us`, loss, importance };
  return Object.fromEntries(Object.entries(all).filter((pair): pair is [string, string | number] => pair[1] !== undefined));
}

/** A running subscription. Its samples come as events, or `for await (const sample of subscription)`. */
export class Subscription extends Emitter<SubscriptionEvents> implements AsyncIterable<Sample> {
  readonly #send: (message: object) => void;
  readonly #clock: NodeClock;
  readonly #ended: () => void;
  readonly #queue: Sample[] = [];
  #wake: (() => void) | undefined;
  #reads = false;
  #closed = false;
  #tags = new Map<string, string>();
  /** The place of the last sample of each publisher on the grid of the requested rate. */
  #slots = new Map<string, number>();
  #settle!: { resolve: (grant: Grant | null) => void; reject: (error: Error) => void };

  /** The first answer of a path: the grant, or null for best effort. Rejects with a `RefusedError`. */
  readonly answer: Promise<Grant | null>;
  /** The newest grant; null without one. */
  grant: Grant | null = null;
  readonly counts: Counts = { received: 0, late: 0, overflowed: 0 };

  /** Use `Connection.subscribe`. */
  constructor(readonly id: number, public request: SubscribeRequest, send: (message: object) => void, clock: NodeClock, ended: () => void) {
    super();
    [this.#send, this.#clock, this.#ended] = [send, clock, ended];
    this.answer = new Promise((resolve, reject) => (this.#settle = { resolve, reject }));
    // A page that listens to events need not wait for it.
    this.answer.catch(() => undefined);
  }

  /** Changes the request. The former contract stays until the path has granted the new one. */
  change(want: Want): void {
    const { tag, fresh, queue } = this.request;
    this.request = { ...want, tag, ...(fresh === undefined ? {} : { fresh }), ...(queue === undefined ? {} : { queue }) };
    this.announce();
  }

  /** Ends the subscription. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#send({ op: "unsubscribe", id: this.id });
    this.#ended();
    this.#settle.reject(new Error("the subscription was closed"));
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Sample> {
    this.#reads = true;
    while (!this.#closed) {
      const next = this.#queue.shift();
      if (next) yield next;
      else await new Promise<void>((done) => (this.#wake = done));
    }
  }

  /** Sends the request, also after a reconnection. */
  announce(): void {
    const { tag, fresh } = this.request;
    this.grant = null;
    this.#send({ op: "subscribe", id: this.id, tag, want: options(this.request), ...(fresh === undefined ? {} : { fresh_ms: fresh }) });
  }

  /** Takes a message about this subscription. */
  handle(message: Record<string, unknown>): void {
    const text = String(message["text"] ?? "");
    switch (message["op"]) {
      case "granted":
        this.grant = message["grant"] as Grant;
        this.#settle.resolve(this.grant);
        return this.emit("granted", this.grant);
      case "refused": {
        const refusal = message["refusal"] as Refusal;
        this.#settle.reject(new RefusedError(refusal));
        return this.emit("refused", refusal);
      }
      case "best_effort":
        this.#settle.resolve(null);
        return this.emit("bestEffort", text);
      case "withdrawn":
        this.grant = null;
        return this.emit("withdrawn", String(message["publisher"]));
      case "warned":
        return this.emit("warned", text);
      case "changed":
        return this.emit("changed", message["form"] as Form);
      case "publishers": {
        const all = message["publishers"] as Received[];
        for (const { publisher, tag } of all) this.#tags.set(publisher, tag);
        // Without a contract nothing else answers.
        if (this.request.withinMs === undefined && all.length > 0) this.#settle.resolve(null);
        return this.emit("publishers", all);
      }
      case "dropped":
        return this.emit("dropped", message["dropped"] as Record<string, number>);
      default:
        this.#settle.reject(new Error(String(message["error"] ?? message["op"])));
        return this.emit("error", String(message["error"] ?? message["op"]));
    }
  }

  /** Takes a sample of one of its streams. */
  deliver(publisher: string, raw: RawSample): void {
    if (this.#closed || !this.#passes(publisher, raw)) return;
    const clock = this.#clock;
    const ageMs = (clock.node() - raw.published) / 1000;
    const bound = (raw.bound ?? Infinity) / 1000;
    const { withinMs, fresh } = this.request;
    const late = withinMs !== undefined && ageMs > withinMs;
    const sample: Sample = {
      tag: this.#tags.get(publisher) ?? this.request.tag,
      publisher,
      seq: raw.seq,
      kind: raw.kind,
      encoding: raw.encoding,
      payload: raw.payload,
      attachment: raw.attachment,
      capturedMs: raw.captured / 1000,
      ageMs: Math.max(ageMs, 0),
      ageErrorMs: clock.error() / 1000 + bound,
      late,
      mayAct: () => fresh === undefined || (clock.node() - raw.published + clock.error()) / 1000 + bound <= fresh,
    };
    this.counts.received += 1;
    this.counts.late += late ? 1 : 0;
    if (this.#reads) {
      this.#queue.push(sample);
      while (this.#queue.length > (this.request.queue ?? QUEUE)) {
        this.#queue.shift();
        this.counts.overflowed += 1;
      }
      this.#wake?.();
    }
    this.emit("sample", sample);
  }

  /** A stream may be shared with a faster subscription of this page; of such a one, this takes samples by their capture times. */
  #passes(publisher: string, { captured, kind }: RawSample): boolean {
    const hz = this.grant?.form.max_hz ?? this.request.maxHz;
    if (hz === undefined || captured === 0 || kind.startsWith("video")) return true;
    const slot = Math.floor((captured * hz) / 1e6 + 0.25);
    const passes = slot !== this.#slots.get(publisher);
    this.#slots.set(publisher, slot);
    return passes;
  }
}

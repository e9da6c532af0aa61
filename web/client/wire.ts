// The binary messages (docs/reference/browser.md).

/** The kinds of samples, by their codes. */
export const KINDS = ["data", "state", "picture", "audio", "video_i", "video_p", "video_b", "video_leading"] as const;
export type Kind = (typeof KINDS)[number];

/** Samples of this size and less are put together without a limit on their number; a larger one is refused. */
const BYTES_MAX = 64 << 20;
/** The samples of a stream that are put together at the same time. Parts of others come after the end of the former. */
const OPEN_MAX = 64;

/** A sample whose parts have all arrived. */
export interface RawSample {
  stream: number;
  /** Microseconds of the node's clock. */
  published: number;
  /** The true age exceeds the stated one by at most this, in microseconds; undefined if nobody knows. */
  bound: number | undefined;
  /** Microseconds since 1970. */
  captured: number;
  kind: Kind;
  seq: number;
  encoding: string;
  attachment: Uint8Array | undefined;
  payload: Uint8Array<ArrayBuffer>;
}

interface Unfinished extends RawSample {
  /** The bytes that have not arrived. */
  missing: number;
  /** The offsets of the parts that have, since a repaired part may come twice. */
  parts: Set<number>;
}

/** A sample waits for earlier ones of its stream until it has this age, in milliseconds, unless the node states another one. */
const HOLD_MS = 150;
/** The numbers of a stream's complete samples that are remembered, so that a repair delivers none twice. */
const DONE_MAX = 512;

/** A stream whose samples may arrive in another order. */
interface Order {
  /** The number of the next sample; -1 before the first one. */
  next: number;
  /** The age to which samples wait for earlier ones, in milliseconds. */
  hold: number;
  /** Complete samples that wait for earlier ones, and the ends of their waits. */
  held: Map<number, { sample: RawSample; until: number }>;
  done: Set<number>;
}

const utf8 = new TextDecoder();

/** A reader of the fields of a message. It throws a RangeError beyond the end. */
class Reader {
  readonly #view: DataView;
  readonly #bytes: Uint8Array<ArrayBuffer>;
  #at = 0;

  constructor(buffer: ArrayBuffer) {
    this.#view = new DataView(buffer);
    this.#bytes = new Uint8Array(buffer);
  }

  #next(bytes: number): number {
    const at = this.#at;
    this.#at += bytes;
    return at;
  }

  get isEmpty(): boolean {
    return this.#at >= this.#bytes.length;
  }
  u8(): number {
    return this.#view.getUint8(this.#next(1));
  }
  u16(): number {
    return this.#view.getUint16(this.#next(2), true);
  }
  u32(): number {
    return this.#view.getUint32(this.#next(4), true);
  }
  u64(): number {
    return Number(this.#view.getBigUint64(this.#next(8), true));
  }
  f64(): number {
    return this.#view.getFloat64(this.#next(8), true);
  }
  bytes(length: number): Uint8Array<ArrayBuffer> {
    const at = this.#next(length);
    if (at + length > this.#bytes.length) throw new RangeError("a message is too short");
    return this.#bytes.subarray(at, at + length);
  }
}

/** Puts samples together from the parts in messages, and in the order of their streams. */
export class Assembler {
  /** Unfinished samples by stream and number. */
  readonly #open = new Map<number, Map<number, Unfinished>>();
  readonly #orders = new Map<number, Order>();

  /** `isOrdered` is true if the carrier keeps the order and loses nothing; `clock` is the time in milliseconds. */
  constructor(readonly isOrdered: boolean, readonly clock = () => performance.now()) {}

  /** Takes a message. Returns its number; calls `found` with each sample that can be delivered. */
  take(message: ArrayBuffer, found: (sample: RawSample) => void): number {
    const reader = new Reader(message);
    const number = reader.u32();
    const sent = reader.f64();
    while (!reader.isEmpty) {
      const part = reader.u8();
      if (part === 0) break;
      const [stream, sample] = [reader.u32(), reader.u32()];
      if (part === 1) this.#first(reader, stream, sample);
      else if (part === 2) this.#further(reader, stream, sample);
      else if (part === 3) this.#giveUp(stream, sample, found);
      else throw new RangeError(`a message has an unknown part: ${part}`);
      const known = this.#open.get(stream)?.get(sample);
      if (known?.missing === 0) {
        this.#open.get(stream)?.delete(sample);
        this.#complete(sample, known, (sent - known.published) / 1000, found);
      }
    }
    return number;
  }

  /** Delivers samples that have waited long enough for earlier ones. Returns true if others still wait. */
  release(found: (sample: RawSample) => void): boolean {
    let waits = false;
    for (const order of this.#orders.values()) {
      const due = [...order.held].filter(([, { until }]) => this.clock() >= until).map(([number]) => number);
      if (due.length > 0) this.#advance(order, Math.max(...due) + 1, found);
      waits ||= order.held.size > 0;
    }
    return waits;
  }

  /** Sets the age to which the samples of a stream wait for earlier ones, in milliseconds. */
  hold(stream: number, age: number): void {
    this.#order(stream).hold = age;
  }

  #order(stream: number): Order {
    const order = this.#orders.get(stream) ?? { next: -1, hold: HOLD_MS, held: new Map(), done: new Set() };
    this.#orders.set(stream, order);
    return order;
  }

  #complete(number: number, sample: RawSample, age: number, found: (sample: RawSample) => void): void {
    if (this.isOrdered) return found(sample);
    const order = this.#order(sample.stream);
    if (order.done.has(number) || number < order.next) return;
    order.done.add(number);
    for (const old of order.done) {
      if (order.done.size <= DONE_MAX) break;
      order.done.delete(old);
    }
    order.held.set(number, { sample, until: this.clock() + Math.max(order.hold - age, 0) });
    if (order.next === -1) order.next = number;
    this.#advance(order, order.next, found);
  }

  /** Delivers the held samples below `until`, and those that follow without a gap. */
  #advance(order: Order, until: number, found: (sample: RawSample) => void): void {
    for (const number of [...order.held.keys()].sort((a, b) => a - b)) {
      if (number >= until && number !== order.next) break;
      const held = order.held.get(number);
      order.held.delete(number);
      order.next = number + 1;
      if (held) found(held.sample);
    }
    order.next = Math.max(order.next, until);
  }

  #giveUp(stream: number, number: number, found: (sample: RawSample) => void): void {
    this.#open.get(stream)?.delete(number);
    const order = this.#orders.get(stream);
    if (order?.next === number) this.#advance(order, number + 1, found);
  }

  #first(reader: Reader, stream: number, number: number): void {
    const flags = reader.u8();
    const published = reader.f64();
    const bound = flags & 4 ? reader.f64() : undefined;
    const captured = reader.f64();
    const kind = KINDS[reader.u8()] ?? "data";
    const seq = reader.u64();
    const encoding = utf8.decode(reader.bytes(reader.u8()));
    const attachment = flags & 2 ? reader.bytes(reader.u16()).slice() : undefined;
    const total = reader.u32();
    const piece = reader.bytes(reader.u32());
    if (this.#open.get(stream)?.has(number) || this.#orders.get(stream)?.done.has(number)) return;
    if (total > BYTES_MAX || piece.length > total) throw new RangeError("a sample is too long");
    const payload = new Uint8Array(total);
    payload.set(piece);
    const known = this.#open.get(stream) ?? new Map<number, Unfinished>();
    this.#open.set(stream, known);
    known.set(number, { stream, published, bound, captured, kind, seq, encoding, attachment, payload, missing: total - piece.length, parts: new Set() });
    for (const old of known.keys()) {
      if (known.size <= OPEN_MAX) break;
      known.delete(old);
    }
  }

  #further(reader: Reader, stream: number, number: number): void {
    reader.u8();
    const offset = reader.u32();
    const piece = reader.bytes(reader.u32());
    const known = this.#open.get(stream)?.get(number);
    if (!known || known.parts.has(offset)) return;
    known.parts.add(offset);
    if (offset + piece.length > known.payload.length) throw new RangeError("a part is beyond its sample");
    known.payload.set(piece, offset);
    known.missing -= piece.length;
  }
}

/** Writes the acknowledgement of messages. */
export function writeAck(numbers: number[]): ArrayBuffer {
  const view = new DataView(new ArrayBuffer(3 + 4 * numbers.length));
  view.setUint8(0, 1);
  view.setUint16(1, numbers.length, true);
  numbers.forEach((number, index) => view.setUint32(3 + 4 * index, number, true));
  return view.buffer;
}

/** Writes a sample. Times are microseconds: `published` of the node's clock, `captured` since 1970. */
export function writeSample(publisher: number, kind: Kind, times: { published: number; error: number; captured: number }, payload: Uint8Array): ArrayBuffer {
  const bytes = new Uint8Array(30 + payload.length);
  const view = new DataView(bytes.buffer);
  view.setUint8(0, 2);
  view.setUint32(1, publisher, true);
  view.setFloat64(5, times.published, true);
  view.setFloat64(13, times.error, true);
  view.setFloat64(21, times.captured, true);
  view.setUint8(29, KINDS.indexOf(kind));
  bytes.set(payload, 30);
  return bytes.buffer;
}

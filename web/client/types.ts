// Requests, answers and samples.

import type { Kind } from "./wire";

/** What a subscription asks for, as options of `paceline sub`. Without `within`, samples are best effort. */
export interface Want {
  /** At most so many samples per second. */
  maxHz?: number;
  /** The least rate that is accepted: the contract is elastic. */
  minHz?: number;
  /** One sample in so many. */
  every?: number;
  /** The size of pictures, such as `320x240`, and smaller ones that are accepted too: `640x480,320x240`. */
  size?: string;
  /** The bit rate, such as `500kbit`, or the most and the least: `2mbit..300kbit`. */
  bitrate?: string;
  /** The quality of JPEG pictures, 1 to 100. */
  quality?: number;
  /** The rate and channels of sound, such as `8000x1`. */
  audio?: string;
  /** The delay bound from publish to this page, in milliseconds. */
  withinMs?: number;
  /** The samples of each window that may be late or lost, such as `1/10`. */
  loss?: string;
  /** The importance of the contract, 0 to 100. */
  importance?: number;
}

/** A request for a tag or pattern. */
export interface SubscribeRequest extends Want {
  /** The tag, or a pattern such as `robot/*`. */
  tag: string;
  /** The age limit of commands in milliseconds: samples state whether they may act. */
  fresh?: number;
  /** The samples that wait for the page; beyond that the oldest is dropped and counted. 64 if left out. */
  queue?: number;
}

/** A form of samples. */
export interface Form {
  text: string;
  max_hz: number | null;
  every: number;
  size: string | null;
  bitrate: number | null;
}

/** The promise of a path. */
export interface Grant {
  publisher: string;
  /** The promise in words. */
  text: string;
  form: Form;
  /** The longest delay on the links of the path, in milliseconds. */
  bound_ms: number;
  /** The requested delay bound. */
  within_ms: number | null;
  /** The reserved rate of the last link. */
  bits_per_s: number | null;
}

/** A path's refusal. */
export interface Refusal {
  /** The reason in words, with numbers. */
  text: string;
  /** The link that refuses. */
  link: string;
  /** Options with which the path would grant the request; empty if there are none. */
  offer: Record<string, string | number>;
}

/** The refusal of a request as an error. */
export class RefusedError extends Error {
  constructor(readonly refusal: Refusal) {
    super(refusal.text);
    this.name = "RefusedError";
  }
}

/** A publisher that a subscription receives. */
export interface Received {
  publisher: string;
  tag: string;
  encoding: string;
}

/** A publisher of the network. */
export interface Source {
  tag: string;
  encoding: string;
  node: string;
  hz: number | null;
  size: string | null;
}

/** The link from the node to this page, in bits per second. */
export interface LinkState {
  /** The state of the measurement: unknown, measuring, stable, falling or outage. */
  state: string;
  estimate_bits_per_s: number;
  /** The part that contracts may use. */
  contracts_bits_per_s: number;
  /** The part that contracts have reserved. */
  reserved_bits_per_s: number;
}

/** The declaration of a publisher. */
export interface Declaration {
  tag: string;
  /** The media type, such as `application/json`; bytes if left out. */
  encoding?: string;
  /** The samples per second. */
  hz?: number;
  /** The delay bound of subscriptions that request none. */
  withinMs?: number;
  /** The loss that is tolerated, such as `1/10`. */
  loss?: string;
  /** The largest sample in bytes. */
  bytesMax?: number;
  /** The kind of samples: by default that of the media type. */
  kind?: Kind;
}

/** A sample. */
export interface Sample {
  tag: string;
  publisher: string;
  /** Its number at its publisher. */
  seq: number;
  kind: Kind;
  encoding: string;
  payload: Uint8Array<ArrayBuffer>;
  attachment: Uint8Array | undefined;
  /** The capture time in milliseconds since 1970, by the publisher's clock. */
  capturedMs: number;
  /** The time since publish when it arrived, in milliseconds. */
  ageMs: number;
  /** The true age differs from `ageMs` by at most this; infinite if a hop of the path has only an estimate. */
  ageErrorMs: number;
  /** The age exceeds the delay bound. */
  late: boolean;
  /** Returns whether a command may act now: it is certainly younger than `fresh`. Ask directly before the actuator. */
  mayAct(): boolean;
}

// The connection to a node, and its reconnection.

import { type Carrier, openWebSocket, openWebTransport } from "./carrier";
import { NodeClock, now } from "./clock";
import { Emitter } from "./emitter";
import { Publisher } from "./publisher";
import { Subscription } from "./subscription";
import type { Declaration, LinkState, Source, SubscribeRequest } from "./types";
import { Assembler, writeAck, type RawSample } from "./wire";

const PATH = "/api/v1/browser";
/** The measurements of the clock at the begin, and the times between them and later ones, in milliseconds. */
const FIRST_PINGS = 5;
const FIRST_PING_MS = 20;
const PING_MS = 2000;
/** A connection without any message for this time is dead. The node answers each ping. */
const SILENT_MS = 6000;
/** The times between attempts to connect again, in milliseconds. */
const AGAIN_MS = [100, 200, 500, 1000, 2000, 5000];
/** The acknowledgements in a message: they fit into a datagram. */
const ACKS_MAX = 200;
/** The interval of looking for samples that have waited long enough, in milliseconds. */
const RELEASE_MS = 30;
/** The samples that wait until it is known who receives their stream. */
const EARLY_MAX = 256;

/** The events of a connection. */
export interface ConnectionEvents {
  /** It is up, also again: subscriptions and publishers have been renewed. */
  up: void;
  /** It is down, for the reason in words. It connects again by itself. */
  down: string;
  /** The link to this page, once per second. */
  link: LinkState;
  /** An error that concerns no subscription and no publisher, in words. */
  error: string;
}

/** The options of `connect`. */
export interface ConnectOptions {
  /** A token of `http_tokens`, for pages of other origins; a page of the node has a cookie. */
  token?: string;
  /** What carries the messages. By default WebTransport, and WebSocket where that is not to be had. */
  carrier?: "webtransport" | "websocket";
}

/** The readers of a stream. */
interface Readers {
  publisher: string;
  subscriptions: number[];
}

/** A connection to a node. It connects again by itself after it was lost. */
export class Connection extends Emitter<ConnectionEvents> {
  readonly #url: URL;
  readonly #options: ConnectOptions;
  readonly clock = new NodeClock();
  #carrier: Carrier | undefined;
  /** The number of the present carrier: what former ones still say does not count. */
  #turn = 0;
  /** WebTransport did not open: something on the path refuses it. */
  #avoids = false;
  #assembler = new Assembler(true);
  #readers = new Map<number, Readers>();
  #early: RawSample[] = [];
  readonly #subscriptions = new Map<number, Subscription>();
  readonly #publishers = new Map<number, Publisher>();
  readonly #questions = new Map<number, { resolve: (sources: Source[]) => void; reject: (error: Error) => void }>();
  #next = 1;
  #pings = 0;
  #heard = 0;
  #timers: number[] = [];
  #acks: number[] = [];
  #attempt = 0;
  /** Calls `#acknowledge` in the next turn of the page; a timer would wait for up to 4 ms. */
  readonly #turns = new MessageChannel();
  #releases = 0;
  #closed = false;
  /** The name of the node; empty before the first connection. */
  node = "";
  /** The id of this browser's own node. */
  id = "";
  /** The token grants publishing. */
  mayPublish = false;
  /** It is up. */
  isUp = false;
  /** The newest state of the link; undefined before the first one. */
  link: LinkState | undefined;

  /** Use `connect`. */
  constructor(url: URL, options: ConnectOptions) {
    super();
    [this.#url, this.#options] = [url, options];
    this.#turns.port1.onmessage = () => this.#acknowledge();
    document.addEventListener("visibilitychange", () => {
      // A hidden page may have slept, and its clock with it.
      if (!document.hidden) this.#ping();
    });
    void this.#open();
  }

  /** What carries the messages; undefined without a connection. */
  get carrier(): Carrier["name"] | undefined {
    return this.#carrier?.name;
  }

  /** Subscribes. The paths answer as events of the subscription, and its `answer`. */
  subscribe(request: SubscribeRequest): Subscription {
    const id = this.#next++;
    const subscription = new Subscription(id, request, (message) => this.#say(message), this.clock, () => this.#subscriptions.delete(id));
    this.#subscriptions.set(id, subscription);
    if (this.isUp) subscription.announce();
    return subscription;
  }

  /** Declares a publisher. */
  publish(declaration: Declaration): Publisher {
    const id = this.#next++;
    const outlet = {
      send: (message: ArrayBuffer) => this.isUp && this.#send(message),
      waiting: () => this.#carrier?.waiting() ?? 0,
    };
    const publisher = new Publisher(id, declaration, (message) => this.#say(message), outlet, this.clock, () => this.#publishers.delete(id));
    this.#publishers.set(id, publisher);
    if (this.isUp) publisher.announce();
    return publisher;
  }

  /** Returns the publishers whose tags match a pattern. */
  sources(pattern = "**"): Promise<Source[]> {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      if (!this.isUp) return reject(new Error("there is no connection"));
      this.#questions.set(id, { resolve, reject });
      this.#say({ op: "sources", id, pattern });
    });
  }

  /** Closes the connection; its subscriptions and publishers end. */
  close(): void {
    this.#closed = true;
    this.#down("it was closed");
  }

  async #open(): Promise<void> {
    const turn = ++this.#turn;
    const mine = () => this.#turn === turn && !this.#closed;
    const heard = () => {
      this.#heard = now();
      return mine();
    };
    const listener = {
      text: (message: string) => { if (heard()) this.#take(JSON.parse(message) as Record<string, unknown>); },
      binary: (message: ArrayBuffer) => { if (heard()) this.#takeBinary(message); },
      closed: (why: string) => { if (mine()) this.#down(why); },
    };
    try {
      const carrier = await this.#choose(listener);
      if (!mine()) return carrier.close();
      this.#carrier = carrier;
      this.#assembler = new Assembler(carrier.name === "websocket");
      [this.#heard, this.#pings] = [now(), 0];
      this.#ping();
      this.#timers.push(window.setInterval(() => this.#check(), PING_MS));
    } catch (error) {
      if (mine()) this.#down(error instanceof Error ? error.message : String(error));
    }
  }

  async #choose(listener: Parameters<typeof openWebSocket>[1]): Promise<Carrier> {
    const { carrier, token } = this.#options;
    const socket = new URL(this.#url);
    if (token !== undefined) socket.searchParams.set("token", token);
    if (carrier === "websocket" || (carrier === undefined && this.#avoids)) return openWebSocket(socket, listener);
    try {
      return await openWebTransport(this.#url, token, listener);
    } catch (error) {
      if (carrier === "webtransport") throw error;
      this.#avoids = true;
      return openWebSocket(socket, listener);
    }
  }

  /** Ends this connection, and opens another one after a pause. */
  #down(why: string): void {
    this.#timers.forEach((timer) => window.clearInterval(timer));
    [this.#timers, this.#acks, this.#early] = [[], [], []];
    const wasUp = this.isUp;
    this.isUp = false;
    this.#turn += 1;
    this.#carrier?.close();
    this.#carrier = undefined;
    this.#readers.clear();
    this.clock.reset();
    this.#questions.forEach(({ reject }) => reject(new Error(why)));
    this.#questions.clear();
    if (wasUp || this.#closed || this.#attempt === 0) this.emit("down", why);
    if (this.#closed) return;
    const pause = AGAIN_MS[Math.min(this.#attempt, AGAIN_MS.length - 1)] ?? 0;
    this.#attempt += 1;
    window.setTimeout(() => { if (!this.#closed) void this.#open(); }, pause);
  }

  #check(): void {
    if (now() - this.#heard > SILENT_MS * 1000) this.#down("the node is silent");
    else this.#ping();
  }

  #ping(): void {
    this.#say({ op: "ping", at: now() });
  }

  #send(message: string | ArrayBuffer): boolean {
    this.#carrier?.send(message);
    return this.#carrier !== undefined;
  }

  #say(message: object): void {
    this.#send(JSON.stringify(message));
  }

  #take(message: Record<string, unknown>): void {
    const id = Number(message["id"]);
    switch (message["op"]) {
      case "pong":
        this.clock.take(Number(message["at"]), Number(message["node"]));
        this.#pings += 1;
        if (this.#pings < FIRST_PINGS) window.setTimeout(() => this.#ping(), FIRST_PING_MS);
        return;
      case "welcome":
        this.node = String(message["node"]);
        this.id = String(message["id"]);
        this.mayPublish = message["may_publish"] === true;
        return;
      case "ready":
        this.isUp = true;
        this.#attempt = 0;
        this.#subscriptions.forEach((subscription) => subscription.announce());
        this.#publishers.forEach((publisher) => publisher.announce());
        return this.emit("up", undefined);
      case "stream":
        this.#readers.set(Number(message["stream"]), message as unknown as Readers);
        this.#assembler.hold(Number(message["stream"]), Number(message["hold_ms"]));
        return this.#deliverEarly();
      case "link":
        this.link = message as unknown as LinkState;
        return this.emit("link", this.link);
      case "sources":
        this.#questions.get(id)?.resolve(message["sources"] as Source[]);
        this.#questions.delete(id);
        return;
      default: {
        const concerned = this.#subscriptions.get(id) ?? this.#publishers.get(id);
        if (concerned) return concerned.handle(message);
        const question = this.#questions.get(id);
        this.#questions.delete(id);
        if (question) return question.reject(new Error(String(message["error"])));
        if (message["op"] === "error") this.emit("error", String(message["error"]));
      }
    }
  }

  #takeBinary(message: ArrayBuffer): void {
    const deliver = (sample: RawSample) => this.#deliver(sample);
    const number = this.#assembler.take(message, deliver);
    if (!this.#assembler.isOrdered) this.#release();
    // Messages that have arrived together are acknowledged together, in the next turn of the page.
    if (this.#acks.push(number) === 1) this.#turns.port2.postMessage(0);
  }

  #acknowledge(): void {
    if (this.#acks.length > 0) this.#carrier?.hint(writeAck(this.#acks.slice(0, ACKS_MAX)));
    this.#acks = this.#acks.slice(ACKS_MAX);
    if (this.#acks.length > 0) this.#turns.port2.postMessage(0);
  }

  /** Delivers samples that have waited for lost ones, now and later. */
  #release(): void {
    const waits = this.#assembler.release((sample) => this.#deliver(sample));
    if (waits && this.#releases === 0) {
      this.#releases = window.setTimeout(() => {
        this.#releases = 0;
        this.#release();
      }, RELEASE_MS);
    }
  }

  #deliver(sample: RawSample): void {
    const readers = this.#readers.get(sample.stream);
    if (!readers) {
      this.#early.push(sample);
      if (this.#early.length > EARLY_MAX) this.#early.shift();
      return;
    }
    for (const id of readers.subscriptions) this.#subscriptions.get(id)?.deliver(readers.publisher, sample);
  }

  #deliverEarly(): void {
    const early = this.#early;
    this.#early = [];
    early.forEach((sample) => this.#deliver(sample));
  }
}

/**
 * Connects to a node, by default the one that serves this page. Resolves once its path is measured, so that contracts can be
 * requested; it takes at most two seconds, and two more where the path has no WebTransport.
 */
export function connect(url: string | URL = location.href, options: ConnectOptions = {}): Promise<Connection> {
  const place = new URL(PATH, new URL(url, location.href));
  const connection = new Connection(place, options);
  return new Promise((resolve, reject) => {
    const fail = (why: string) => {
      stop();
      connection.close();
      reject(new Error(why));
    };
    const ends = [
      connection.on("up", () => { stop(); resolve(connection); }),
      connection.on("error", fail),
      connection.on("down", (why) => fail(`${place.host}: ${why}`)),
    ];
    const stop = () => ends.forEach((end) => end());
  });
}

// What carries the messages: WebTransport, or WebSocket where that is refused.

/** The calls of a carrier. */
export interface CarrierListener {
  text(message: string): void;
  binary(message: ArrayBuffer): void;
  /** It has ended, for the reason in words; nothing follows. */
  closed(why: string): void;
}

/** A connection for messages. */
export interface Carrier {
  readonly name: "webtransport" | "websocket";
  /** Sends a message in order and reliably. */
  send(message: string | ArrayBuffer): void;
  /** Sends a message that may be lost, where the carrier can. */
  hint(message: ArrayBuffer): void;
  /** The bytes that wait. */
  waiting(): number;
  close(): void;
}

const PROTOCOL = "paceline.browser.v1";
/** Where WebTransport is not answered within this time, something on the path refuses UDP. */
const OPEN_MS = 1500;
/** The bit of a record's length that marks a binary message. */
const BINARY = 0x8000_0000;
/** The longest record, in bytes. */
const RECORD_MAX = 64 << 20;

/** Opens a WebSocket at a place of the node. */
export function openWebSocket(url: URL, listener: CarrierListener): Promise<Carrier> {
  const place = new URL(url);
  place.protocol = place.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(place, PROTOCOL);
  socket.binaryType = "arraybuffer";
  const carrier: Carrier = {
    name: "websocket",
    send: (message) => { if (socket.readyState === WebSocket.OPEN) socket.send(message); },
    hint: (message) => carrier.send(message),
    waiting: () => socket.bufferedAmount,
    close: () => socket.close(),
  };
  return new Promise((resolve, reject) => {
    let isOpen = false;
    socket.onopen = () => {
      isOpen = true;
      resolve(carrier);
    };
    socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => (typeof data === "string" ? listener.text(data) : listener.binary(data));
    socket.onclose = ({ reason }) => {
      const why = reason || "the connection was lost";
      if (isOpen) listener.closed(why);
      else reject(new Error(why));
    };
  });
}

/** The answer of a node that serves WebTransport. */
interface Offered {
  port: number;
  /** The SHA-256 of its certificate, in hexadecimal digits. */
  hash: string;
  /** A ticket for one connection. */
  ticket: string;
}

/** Opens WebTransport. Fails where the browser, the node or the path does not have it. */
export async function openWebTransport(url: URL, token: string | undefined, listener: CarrierListener): Promise<Carrier> {
  if (!("WebTransport" in globalThis)) throw new Error("this browser has no WebTransport, or only for pages over https");
  const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  const answer = await fetch(new URL("/api/v1/webtransport", url), { headers });
  if (!answer.ok) throw new Error(`the node does not serve WebTransport: ${answer.status}`);
  const { port, hash, ticket } = (await answer.json()) as Offered;
  const value = Uint8Array.from(hash.match(/../g) ?? [], (digits) => Number.parseInt(digits, 16));
  const place = `https://${url.hostname}:${port}${url.pathname}?ticket=${ticket}`;
  const transport = new WebTransport(place, { serverCertificateHashes: [{ algorithm: "sha-256", value }], congestionControl: "low-latency" });
  transport.closed.catch(() => undefined);
  const late = new Promise<never>((_, reject) => setTimeout(() => reject(new Error("no answer over UDP")), OPEN_MS));
  try {
    await Promise.race([transport.ready, late]);
    return await begin(transport, listener);
  } catch (error) {
    transport.close();
    throw error;
  }
}

async function begin(transport: WebTransport, listener: CarrierListener): Promise<Carrier> {
  const stream = await transport.createBidirectionalStream();
  const [records, datagrams] = [stream.writable.getWriter(), transport.datagrams.writable.getWriter()];
  let [waiting, isOpen] = [0, true];
  const end = (why: string) => {
    if (isOpen) listener.closed(why);
    isOpen = false;
  };
  transport.closed.then(() => end("the connection was closed"), (error: unknown) => end(String(error)));
  void readRecords(stream.readable, listener).then(() => end("the node has ended the connection"), (error: unknown) => end(String(error)));
  void readDatagrams(transport.datagrams.readable, listener).catch(() => undefined);
  return {
    name: "webtransport",
    send(message) {
      const bytes = typeof message === "string" ? new TextEncoder().encode(message) : new Uint8Array(message);
      const record = new Uint8Array(4 + bytes.length);
      new DataView(record.buffer).setUint32(0, bytes.length + (typeof message === "string" ? 0 : BINARY), true);
      record.set(bytes, 4);
      waiting += record.length;
      records.write(record).then(() => { waiting -= record.length; }, () => undefined);
    },
    hint(message) {
      datagrams.write(new Uint8Array(message)).catch(() => undefined);
    },
    waiting: () => waiting,
    close() {
      isOpen = false;
      transport.close();
    },
  };
}

/** Reads the records of a stream: a length of four bytes, little-endian, and so many bytes. */
async function readRecords(readable: ReadableStream<Uint8Array>, listener: CarrierListener): Promise<void> {
  const [reader, utf8] = [readable.getReader(), new TextDecoder()];
  let buffer = new Uint8Array(0);
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const joined = new Uint8Array(buffer.length + value.length);
    joined.set(buffer);
    joined.set(value, buffer.length);
    buffer = joined;
    while (buffer.length >= 4) {
      const head = new DataView(buffer.buffer, buffer.byteOffset).getUint32(0, true);
      const [isBinary, length] = [head >= BINARY, head % BINARY];
      if (length > RECORD_MAX) throw new Error("a record is too long");
      if (buffer.length < 4 + length) break;
      const record = buffer.slice(4, 4 + length);
      buffer = buffer.subarray(4 + length);
      if (isBinary) listener.binary(record.buffer);
      else listener.text(utf8.decode(record));
    }
  }
}

async function readDatagrams(readable: ReadableStream<Uint8Array>, listener: CarrierListener): Promise<void> {
  const reader = readable.getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    listener.binary(value.slice().buffer as ArrayBuffer);
  }
}

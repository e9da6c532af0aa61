// Reads a recording with Foxglove's libraries, by the rules of its app for schemas.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { foxgloveMessageSchemas } from "@foxglove/schemas/internal.js";
import { McapIndexedReader, McapStreamReader } from "@mcap/core";
import { loadDecompressHandlers, protobufFromBinaryDescriptor } from "@mcap/support";

const BINARY = process.env.PACELINE_BIN ?? "../target/debug/paceline";
const LIMIT_MS = 60_000;
const [WIDTH, HEIGHT] = [160, 120];

let folder, file;
/** The channels of each topic, each with its schema and its messages. */
const topics = new Map();

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "paceline-recording-"));
  file = join(folder, "run.mcap");
  const odometry = { frame: "odom", pose: { x: 1.5, y: -2 }, covariance: [0.1, 0.2], valid: true, note: null, faults: [], rows: [[1, 2], [3]] };
  const lines = (name, all) => {
    writeFileSync(join(folder, name), all.map((one) => `${one}\n`).join(""));
    return ["--file", join(folder, name), "--hz", "20", "--loop"];
  };
  const publishers = [
    ["run/camera", "--test-card", `${WIDTH}x${HEIGHT}@20`],
    ["run/odometry", ...lines("odometry", [JSON.stringify(odometry)]), "--encoding", "application/json"],
    ["run/counts", ...lines("counts", ["[1, 2]", "7"]), "--encoding", "application/json"],
    ["run/log", ...lines("log", ["grüß", "zwei"])],
    ["run/bytes", ...lines("bytes", ["\u0001\u0002"]), "--encoding", "application/x-own"],
    ["run/sound", "--file", sound(), "--loop"],
  ].map((args) => start("pub", ...args));
  // The delay bound of one second lets the recorder report misses per publisher.
  const record = start("record", "run/**", "-o", file, "--duration", "5s", "--within", "1000ms", "--loss", "1/2");
  const [code, told] = await record.ended;
  for (const publisher of publishers) publisher.child.kill("SIGTERM");
  await Promise.all(publishers.map((publisher) => publisher.ended));
  assert.equal(code, 0, told);
  await read();
}, { timeout: LIMIT_MS });

after(() => rmSync(folder, { recursive: true, force: true }));

function start(...args) {
  const environment = { ...process.env, PACELINE_RUNTIME_DIR: join(folder, "host") };
  const child = spawn(BINARY, args, { stdio: ["ignore", "ignore", "pipe"], env: environment });
  let told = "";
  child.stderr.on("data", (data) => { told += data; });
  return { child, ended: new Promise((done) => child.once("close", (code) => done([code, told]))) };
}

/** A second of silence: 8,000 samples of 16 bits. */
function sound() {
  const head = Buffer.alloc(44);
  head.write("RIFF");
  head.writeUInt32LE(36 + 16_000, 4);
  head.write("WAVEfmt ", 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(8_000, 24);
  head.writeUInt32LE(16_000, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write("data", 36);
  head.writeUInt32LE(16_000, 40);
  writeFileSync(join(folder, "sound.wav"), Buffer.concat([head, Buffer.alloc(16_000)]));
  return join(folder, "sound.wav");
}

async function read() {
  const bytes = readFileSync(file);
  const readable = {
    size: async () => BigInt(bytes.length),
    read: async (offset, size) => bytes.subarray(Number(offset), Number(offset + size)),
  };
  const decompressHandlers = await loadDecompressHandlers();
  const reader = await McapIndexedReader.Initialize({ readable, decompressHandlers });
  for (const channel of reader.channelsById.values()) {
    const of = { channel, schema: reader.schemasById.get(channel.schemaId), messages: [] };
    topics.set(channel.topic, [...(topics.get(channel.topic) ?? []), of]);
  }
  let before = 0n;
  for await (const message of reader.readMessages()) {
    assert.ok(message.logTime >= before, "in the order of their times");
    before = message.logTime;
    const { topic } = reader.channelsById.get(message.channelId);
    topics.get(topic).find((of) => of.channel.id === message.channelId).messages.push(message);
  }
  // The same without the index, with every checksum verified.
  const stream = new McapStreamReader({ decompressHandlers, validateCrcs: true });
  stream.append(bytes);
  let messages = 0n;
  for (let record = stream.nextRecord(); record; record = stream.nextRecord()) {
    messages += record.type === "Message" ? 1n : 0n;
  }
  assert.ok(stream.done(), "nothing is left over");
  assert.equal(messages, reader.statistics.messageCount);
}

/** Returns the only channel of a topic. */
function only(topic) {
  const channels = topics.get(topic);
  assert.equal(channels?.length, 1, `${topic} of ${[...topics.keys()]}`);
  assert.ok(channels[0].messages.length > 10, `${channels[0].messages.length} of ${topic}`);
  return channels[0];
}

/** Returns the messages of a protobuf channel, as the app's panels receive them. */
function decoded({ channel, schema, messages }) {
  assert.deepEqual([channel.messageEncoding, schema.encoding], ["protobuf", "protobuf"]);
  const root = protobufFromBinaryDescriptor(schema.data);
  root.resolveAll();
  const type = root.lookupType(schema.name);
  // The schema must equal Foxglove's definition of the type: names, numbers and types.
  const known = foxgloveMessageSchemas[schema.name.replace("foxglove.", "")];
  assert.ok(known, schema.name);
  const names = {
    primitive: (of) => (of.name === "uint32" ? "fixed32" : of.name),
    nested: (of) => of.schema.protoEquivalent,
    enum: (of) => `foxglove.${of.enum.parentSchemaName}.${of.enum.protobufEnumName}`,
  };
  // Fields without a number get the next unused ones.
  const said = new Set(known.fields.map((field) => field.protobufFieldNumber));
  const free = Array.from({ length: known.fields.length }, (_, at) => at + 1).filter((number) => !said.has(number));
  const expected = known.fields.map(({ name, type: of, protobufFieldNumber }) => [name, protobufFieldNumber ?? free.shift(), names[of.type](of)]);
  const found = type.fieldsArray.map((field) => [field.name, field.id, (field.resolvedType?.fullName ?? field.type).replace(/^\./, "")]);
  const sorted = (rows) => rows.sort(([, a], [, b]) => a - b);
  assert.deepEqual(sorted(found), sorted(expected), schema.name);
  return messages.map((message) => {
    const value = type.toObject(type.decode(message.data), { defaults: true });
    const { seconds, nanos } = value.timestamp;
    assert.equal(BigInt(seconds.toString()) * 1_000_000_000n + BigInt(nanos), message.publishTime);
    return value;
  });
}

/** Checks that the app accepts a JSON schema. Otherwise it shows nothing of the channel. */
function assertTaken(schema, at) {
  assert.equal(schema.type, "object", at);
  for (const [name, field] of Object.entries(schema.properties)) {
    const value = field.type === "array" ? field.items : field;
    assert.ok(["boolean", "string", "number", "integer", "object"].includes(value.type), `${at}.${name}: ${JSON.stringify(field)}`);
    if (value.type === "object") assertTaken(value, `${at}.${name}`);
  }
}

/** Returns the messages of a JSON channel. */
function parsed({ channel, schema, messages }) {
  assert.deepEqual([channel.messageEncoding, schema.encoding], ["json", "jsonschema"]);
  const text = new TextDecoder();
  if (schema.data.length > 0) assertTaken(JSON.parse(text.decode(schema.data)), channel.topic);
  return messages.map((message) => JSON.parse(text.decode(message.data)));
}

/** Returns width and height of a JPEG picture, from its frame header. */
function sizeOf(picture) {
  const view = new DataView(picture.buffer, picture.byteOffset, picture.byteLength);
  assert.equal(view.getUint16(0), 0xffd8);
  for (let at = 2; at < view.byteLength; at += 2 + view.getUint16(at + 2)) {
    const marker = view.getUint16(at);
    if (marker >= 0xffc0 && marker <= 0xffc2) return [view.getUint16(at + 7), view.getUint16(at + 5)];
  }
  return undefined;
}

test("pictures are compressed images of the right size", () => {
  for (const image of decoded(only("run/camera"))) {
    assert.deepEqual([image.format, image.frame_id], ["jpeg", "run/camera"]);
    assert.deepEqual(sizeOf(image.data), [WIDTH, HEIGHT]);
    assert.deepEqual([...image.data.subarray(-2)], [0xff, 0xd9], "whole");
  }
});

test("text is recorded as a log, sound as audio", () => {
  const lines = decoded(only("run/log"));
  assert.deepEqual(new Set(lines.map(({ message }) => message)), new Set(["grüß", "zwei"]));
  assert.ok(lines.every(({ name, level }) => name === "run/log" && level === 2));
  for (const block of decoded(only("run/sound"))) {
    assert.deepEqual([block.format, block.sample_rate, block.number_of_channels, block.data.length], ["pcm-s16", 8_000, 1, 320]);
  }
});

test("telemetry is JSON with a usable schema", () => {
  const odometry = only("run/odometry");
  for (const one of parsed(odometry)) assert.deepEqual([one.pose.x, one.note, one.rows], [1.5, null, [[1, 2], [3]]]);
  const { properties } = JSON.parse(new TextDecoder().decode(odometry.schema.data));
  assert.deepEqual(Object.keys(properties).sort(), ["covariance", "frame", "pose", "valid"]);
  // Not objects, so there are no fields to plot.
  const counts = only("run/counts");
  assert.equal(counts.schema.data.length, 0);
  assert.deepEqual(new Set(parsed(counts).map((one) => JSON.stringify(one))), new Set(["[1,2]", "7"]));
});

test("other payloads have only their media type", () => {
  const { channel, schema } = only("run/bytes");
  assert.deepEqual([channel.messageEncoding, schema.name, schema.encoding, schema.data.length], ["application/x-own", "application/x-own", "", 0]);
});

test("qos/events match docs/reference/json.md", () => {
  const events = parsed(only("qos/events"));
  const [, section] = readFileSync("../docs/reference/json.md", "utf8").split("## `qos/events` in a recording");
  const rows = section.split("\n## ")[0].matchAll(/^\| (`.*?) \| (.*) \|$/gm);
  const documented = new Map([...rows].flatMap(([, names, fields]) =>
    [...names.matchAll(/`(\w+)`/g)].map(([, name]) => [name, new Set([...fields.matchAll(/`(\w+)`/g)].map(([, field]) => field))])));
  for (const event of events) {
    const fields = documented.get(event.event);
    assert.ok(fields, `${event.event} is not among ${[...documented.keys()]}`);
    for (const name of Object.keys(event)) assert.ok(name === "event" || fields.has(name), `${event.event}: ${name}`);
  }
  assert.equal(events[0].event, "begin");
  assert.equal(events.at(-1).event, "end");
  const counted = [...topics].filter(([topic]) => topic !== "qos/events").flatMap(([, channels]) => channels);
  assert.equal(events.at(-1).samples, counted.reduce((sum, { messages }) => sum + messages.length, 0));
  const camera = events.filter((event) => event.event === "delivered" && event.tag === "run/camera");
  assert.ok(camera.length >= 3, "once a second");
  assert.deepEqual(Object.keys(camera[0].age_us).sort(), ["max", "p50", "p99"]);
  assert.equal(camera.at(-1).samples, only("run/camera").messages.length);
});

test("messages are in sequence order and carry their metadata", () => {
  for (const topic of [...topics.keys()].filter((topic) => topic !== "qos/events")) {
    const { channel, messages } = only(topic);
    assert.deepEqual(["publisher", "node", "kind", "encoding"].filter((name) => !channel.metadata.has(name)), []);
    for (const [at, message] of messages.entries()) {
      assert.ok(message.publishTime <= message.logTime, "captured before it arrived");
      if (at > 0) assert.ok(message.sequence > messages[at - 1].sequence && message.publishTime >= messages[at - 1].publishTime);
    }
  }
});

// A viewer with Foxglove's own client library: topics, schemas, pictures, contracts, and answers to wrong requests.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import foxglove from "@foxglove/ws-protocol";
import { protobufFromBinaryDescriptor } from "@mcap/support";
import { WebSocket } from "ws";
import { BINARY, LIMIT_MS } from "./demo.mjs";

const { FoxgloveClient } = foxglove;
const PROTOCOLS = ["foxglove.sdk.v1", FoxgloveClient.SUPPORTED_SUBPROTOCOL];
let folder, url;
const children = [];

async function freePort() {
  const server = createServer();
  const port = await new Promise((done) => server.listen(0, "127.0.0.1", () => done(server.address().port)));
  server.close();
  return port;
}

function start(host, args, stdout = "ignore") {
  const child = spawn(BINARY, [...args, "--runtime-dir", join(folder, host)], { stdio: ["pipe", stdout, "ignore"] });
  children.push(child);
  return child;
}

// A robot behind a link of 2 Mbit/s, and the console with the server.
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "plf-"));
  const port = await freePort();
  const link = (end) => ["--link", `name=radio,${end}=tcp/127.0.0.1:${port},capacity=2mbit`];
  const node = start("console", ["node", "--json", "--name", "console", "--foxglove", "127.0.0.1:0", ...link("listen")], "pipe");
  const { value } = await createInterface({ input: node.stdout })[Symbol.asyncIterator]().next();
  url = JSON.parse(value).foxglove;
  start("robot", ["pub", "robot/camera", "--test-card", "320x240@30", ...link("connect")]);
  const pose = start("robot", ["pub", "robot/pose", "-", "--encoding", "application/json"]);
  let x = 0;
  const timer = setInterval(() => pose.stdin.write(`{"x":${x++},"ok":true}\n`), 50);
  pose.stdin.on("error", () => clearInterval(timer));
  pose.once("exit", () => clearInterval(timer));
});

after(async () => {
  const ended = children.map((child) => child.exitCode ?? child.signalCode ?? new Promise((done) => child.once("exit", done)));
  children.forEach((child) => child.kill("SIGKILL"));
  await Promise.all(ended);
  rmSync(folder, { recursive: true, force: true });
});

/** Connects with Foxglove's client; collects channels, messages and statuses. */
function connect(query = "", protocols = PROTOCOLS) {
  const client = new FoxgloveClient({ ws: new WebSocket(`${url}${query}`, protocols) });
  const seen = { client, channels: new Map(), messages: [], statuses: [], info: undefined, parameters: [] };
  client.on("serverInfo", (info) => { seen.info = info; });
  client.on("advertise", (all) => all.forEach((channel) => seen.channels.set(channel.topic, channel)));
  client.on("unadvertise", (ids) => [...seen.channels].filter(([, it]) => ids.includes(it.id)).forEach(([topic]) => seen.channels.delete(topic)));
  client.on("message", (message) => seen.messages.push({ ...message, at: Date.now() }));
  client.on("status", (status) => seen.statuses.push(status));
  client.on("parameterValues", (values) => seen.parameters.push(values));
  client.on("error", () => {});
  return seen;
}

async function until(what, isTrue) {
  const end = Date.now() + LIMIT_MS;
  while (!isTrue()) {
    assert.ok(Date.now() < end, what());
    await new Promise((done) => setTimeout(done, 20));
  }
}

async function subscribed(seen, topic) {
  await until(() => `no ${topic}`, () => seen.channels.has(topic));
  const channel = seen.channels.get(topic);
  return [channel, seen.client.subscribe(channel.id)];
}

/** Returns the pictures: width from the header of each JPEG. */
function pictures(channel, messages) {
  const schema = Buffer.from(channel.schema, "base64");
  const type = protobufFromBinaryDescriptor(schema).lookupType(channel.schemaName);
  return messages.map((message) => {
    const data = message.data;
    return type.decode(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  });
}

test("the client library shows topics, decodes pictures and plots numbers", { timeout: LIMIT_MS }, async () => {
  for (const protocols of [PROTOCOLS, [FoxgloveClient.SUPPORTED_SUBPROTOCOL]]) {
    const seen = connect("?max_hz=10&size=160x120", protocols);
    const [camera, cameraId] = await subscribed(seen, "robot/camera");
    const [pose, poseId] = await subscribed(seen, "robot/pose");
    assert.match(seen.info.name, /^Paceline console$/);
    assert.deepEqual([camera.encoding, camera.schemaName, camera.schemaEncoding], ["protobuf", "foxglove.CompressedImage", "protobuf"]);
    assert.equal(pose.encoding, "json");
    const of = (id) => seen.messages.filter((message) => message.subscriptionId === id);
    await until(() => `${of(cameraId).length} pictures, ${of(poseId).length} poses`, () => of(cameraId).length >= 10 && of(poseId).length >= 10);
    for (const [place, { format, data }] of pictures(camera, of(cameraId)).entries()) {
      assert.equal(format, "jpeg");
      assert.deepEqual([data[0], data[1]], [0xff, 0xd8], `picture ${place}`);
      assert.equal(jpegWidth(data), 160);
    }
    const poses = of(poseId).map(({ data }) => JSON.parse(new TextDecoder().decode(data)));
    assert.ok(poses.every((one, place) => place === 0 || one.x > poses[place - 1].x));
    // Capture times since 1970.
    const age = Date.now() - Number(of(poseId).at(-1).timestamp / 1_000_000n);
    assert.ok(age >= 0 && age < 10_000, `${age} ms`);
    seen.client.close();
  }
});

/** The width in the frame header of a JPEG. */
function jpegWidth(data) {
  let place = 2;
  while (data[place + 1] < 0xc0 || data[place + 1] > 0xc2) place += 2 + data[place + 2] * 256 + data[place + 3];
  return data[place + 7] * 256 + data[place + 8];
}

test("a contract in the address is granted, and one that does not fit is refused with an offer", { timeout: LIMIT_MS }, async () => {
  const seen = connect("?max_hz=5&size=80x60&within=300ms&loss=1/10");
  const [camera, id] = await subscribed(seen, "robot/camera");
  await until(() => JSON.stringify(seen.statuses), () => seen.statuses.some(({ message }) => /robot\/camera: granted/.test(message)));
  seen.messages.length = 0;
  await new Promise((done) => setTimeout(done, 4_000));
  const got = seen.messages.filter((message) => message.subscriptionId === id);
  assert.ok(got.length >= 16 && got.length <= 24, `${got.length} pictures in 4 s`);
  assert.ok(pictures(camera, got).every(({ data }) => jpegWidth(data) === 80));
  seen.client.close();

  // 30 Hz of the full size do not fit into 2 Mbit/s.
  const other = connect("?within=100ms&loss=1/10");
  await subscribed(other, "robot/camera");
  await until(() => JSON.stringify(other.statuses), () => other.statuses.some(({ level, message }) => level === 2 && /robot\/camera: refused: .*radio/.test(message)));
  assert.equal(other.messages.length, 0, "no sample of a refused request");
  other.client.close();
});

test("a parameter changes the request of a topic while it runs", { timeout: LIMIT_MS }, async () => {
  const seen = connect("?max_hz=10&size=160x120");
  const [camera, id] = await subscribed(seen, "robot/camera");
  await until(() => "no pictures", () => seen.messages.length >= 3);
  seen.client.setParameters([{ name: "robot/camera", value: "--max-hz 4 --size 80x60" }], "one");
  await until(() => JSON.stringify(seen.parameters), () => seen.parameters.some((one) => one.id === "one"));
  assert.deepEqual(seen.parameters.at(-1).parameters, [{ name: "robot/camera", value: "--max-hz 4 --size 80x60" }]);
  await until(() => `${jpegWidth(pictures(camera, seen.messages.slice(-1))[0].data)}`, () => jpegWidth(pictures(camera, seen.messages.slice(-1))[0].data) === 80);
  assert.ok(seen.messages.every((message) => message.subscriptionId === id));
  seen.client.setParameters([{ name: "robot/camera", value: "--max-hertz 4" }], "two");
  await until(() => JSON.stringify(seen.statuses), () => seen.statuses.some(({ level, message }) => level === 2 && /robot\/camera: .*--max-hertz/.test(message)));
  assert.equal(seen.parameters.find((one) => one.id === "two")?.parameters[0].value ?? "--max-hz 4 --size 80x60", "--max-hz 4 --size 80x60");
  // Without a value the topic has the request of the address again; here it is as published.
  const plain = connect();
  const [, wide] = await subscribed(plain, "robot/camera");
  plain.client.setParameters([{ name: "robot/camera", value: "--size 80x60" }], "small");
  await until(() => JSON.stringify(plain.statuses), () => plain.messages.length > 0 && jpegWidth(pictures(camera, plain.messages.slice(-1))[0].data) === 80);
  plain.client.setParameters([{ name: "robot/camera", value: null }], "all");
  await until(() => JSON.stringify(plain.statuses), () => jpegWidth(pictures(camera, plain.messages.slice(-1))[0].data) === 320);
  assert.equal(plain.messages.at(-1).subscriptionId, wide);
  plain.client.close();
  seen.client.close();
});

/** The status and text of a refused connection. */
function refusal(query, { protocols = PROTOCOLS, ...options } = {}) {
  return new Promise((done, failed) => {
    const socket = new WebSocket(`${url}${query}`, protocols, options);
    socket.once("open", () => { socket.close(); failed(new Error(`${query} was accepted`)); });
    socket.on("error", () => {});
    socket.once("unexpected-response", (_, response) => {
      let text = "";
      response.on("data", (data) => { text += data; });
      response.once("end", () => done([response.statusCode, text]));
    });
  });
}

test("wrong addresses, protocols and pages of other sites get a reason", { timeout: LIMIT_MS }, async () => {
  const [option, why] = await refusal("?max_hertz=5");
  assert.equal(option, 400);
  assert.match(why, /--max-hertz.*--max-hz/s);
  assert.deepEqual((await refusal("", { protocols: ["mqtt"] }))[0], 400);
  assert.deepEqual((await refusal("", { origin: "https://example.com" }))[0], 403);
  const page = await fetch(url.replace("ws:", "http:"));
  assert.equal(page.status, 426);
  assert.match(await page.text(), /Foxglove/);
  for (const origin of ["https://app.foxglove.dev", "http://localhost:8080"]) {
    const socket = new WebSocket(url, PROTOCOLS, { origin });
    await new Promise((done, failed) => { socket.once("open", done); socket.once("error", failed); });
    socket.close();
  }
});

test("a viewer that sends nonsense or does not read disturbs nobody", { timeout: LIMIT_MS }, async () => {
  const silent = new WebSocket(url, PROTOCOLS);
  // The channels may arrive in the same read as the end of the handshake.
  const channels = await new Promise((done) => silent.on("message", (data, binary) => {
    const message = binary ? {} : JSON.parse(data);
    if (message.op === "advertise" && message.channels.some(({ topic }) => topic === "robot/camera")) done(message.channels);
  }));
  const { id } = channels.find(({ topic }) => topic === "robot/camera");
  silent.send(JSON.stringify({ op: "subscribe", subscriptions: [{ id: 1, channelId: id }] }));
  silent.pause();
  const wrong = new WebSocket(url, PROTOCOLS);
  const answers = [];
  wrong.on("message", (data, binary) => { if (!binary) answers.push(JSON.parse(data)); });
  await new Promise((done) => wrong.once("open", done));
  for (const text of ["", "[]", '{"op":"subscribe","subscriptions":[{"id":1,"channelId":99999}]}', '{"op":"advertise","channels":[]}', '{"op":"setParameters","parameters":[{"name":"a","value":[1]}]}']) wrong.send(text);
  wrong.send(Buffer.from([1, 2, 3]));
  await until(() => JSON.stringify(answers), () => ["not one of the protocol", "no channel 99999", "offers nothing else", "must be text"].every((part) => answers.some(({ op, message }) => op === "status" && message.includes(part))));
  const seen = connect("?max_hz=5&size=80x60");
  await subscribed(seen, "robot/camera");
  await until(() => `${seen.messages.length} pictures`, () => seen.messages.length >= 10);
  seen.client.close();
  wrong.close();
  silent.terminate();
});

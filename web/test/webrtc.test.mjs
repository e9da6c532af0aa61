// Browsers as viewers over WebRTC: pictures and sound of a request, contracts and refusals, late viewers, and wrong requests.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { BINARY, LIMIT_MS, startBrowser, until } from "./demo.mjs";
import { BITS, COLUMNS, H264, PART, encode, watch } from "./marks.mjs";

/** H.264 with B pictures that no others need. */
const WITH_B = ["-c:v", "libx264", "-preset", "veryfast", "-bf", "2", "-x264-params", "b-pyramid=none:scenecut=0:bframes=2:b-adapt=0:rc-lookahead=3", "-g", "30", "-pix_fmt", "yuv420p", "-f", "h264"];
let folder, url, browser, page, server;
const children = [];
const ends = [];

function start(host, args, stdio = ["pipe", "ignore", "ignore"]) {
  const child = spawn(BINARY, [...args, "--runtime-dir", join(folder, host)], { stdio });
  child.stdin?.on("error", () => {});
  children.push(child);
  return child;
}

async function freePort() {
  const server = createServer();
  const port = await new Promise((done) => server.listen(0, "127.0.0.1", () => done(server.address().port)));
  server.close();
  return port;
}

// A robot behind a link of 2 Mbit/s, and the console with the server.
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "plv-"));
  const port = await freePort();
  const link = (end) => ["--link", `name=radio,${end}=tcp/127.0.0.1:${port},capacity=2mbit`];
  const serve = ["--http", "127.0.0.1:0", "--webrtc", "127.0.0.1:0"];
  const log = process.env.PACELINE_TEST_LOG ? "inherit" : "ignore";
  const node = start("console", ["node", "--json", "--name", "console", ...serve, ...link("listen")], ["ignore", "pipe", log]);
  const { value } = await createInterface({ input: node.stdout })[Symbol.asyncIterator]().next();
  const line = JSON.parse(value);
  url = line.http;
  assert.match(line.webrtc[0], /^127\.0\.0\.1:\d+$/);
  const camera = start("robot", ["pub", "robot/camera", "-", ...link("connect")]);
  ends.push(encode(camera.stdin, { codec: H264 }));
  server = node.pid;
  const film = start("robot", ["pub", "robot/film", "-"]);
  ends.push(encode(film.stdin, { codec: WITH_B, hz: 15 }));
  const tone = join(folder, "tone.wav");
  execFileSync("ffmpeg", ["-v", "error", "-f", "lavfi", "-i", "sine=frequency=1000:sample_rate=48000:duration=5", tone]);
  start("robot", ["pub", "robot/microphone", "--file", tone, "--loop"]);
  start("robot", ["pub", "robot/card", "--test-card", "320x240@10"]);
  browser = await startBrowser("--autoplay-policy=no-user-gesture-required", "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream=fps=30");
  // Any document of this origin.
  page = await browser.newPage({ bypassCSP: true });
  await page.goto(new URL("webrtc", url).href);
  await page.evaluate(`globalThis.watch = ${watch}`);
}, { timeout: LIMIT_MS });

after(async () => {
  await browser?.close();
  ends.forEach((end) => end());
  const ended = children.map((child) => child.exitCode ?? child.signalCode ?? new Promise((done) => child.once("exit", done)));
  children.forEach((child) => child.kill("SIGKILL"));
  await Promise.all(ended);
  rmSync(folder, { recursive: true, force: true });
});

/** Views an address in the page, as `name`. Returns the status, the headers and the body of the answer. */
function view(name, address, kinds = ["video"]) {
  return page.evaluate(async ([name, address, kinds, marks]) => {
    const peer = new RTCPeerConnection();
    for (const kind of kinds) peer.addTransceiver(kind, { direction: "recvonly" });
    const view = { peer, seen: [], stream: new MediaStream() };
    (globalThis.views ??= {})[name] = view;
    peer.ontrack = ({ track }) => view.stream.addTrack(track);
    await peer.setLocalDescription();
    const answer = await fetch(address, { method: "POST", headers: { "content-type": "application/sdp" }, body: peer.localDescription.sdp });
    const body = await answer.text();
    if (answer.status === 201) {
      view.video = document.createElement("video");
      [view.video.autoplay, view.video.muted] = [true, !kinds.includes("audio")];
      document.body.append(view.video);
      view.video.srcObject = view.stream;
      globalThis.watch(view.video, view.seen, marks);
      await peer.setRemoteDescription({ type: "answer", sdp: body });
      view.location = answer.headers.get("location");
    }
    return { status: answer.status, body, headers: Object.fromEntries(answer.headers) };
  }, [name, address, kinds, { bits: BITS, columns: COLUMNS, part: PART }]);
}

const seen = (name) => page.evaluate((name) => globalThis.views[name].seen, name);
const report = (name, kind) => page.evaluate(async ([name, kind]) => {
  const all = [...(await globalThis.views[name].peer.getStats()).values()];
  return all.find((one) => one.type === "inbound-rtp" && one.kind === kind);
}, [name, kind]);

async function close(name) {
  const location = await page.evaluate((name) => globalThis.views[name].location, name);
  const ended = await fetch(new URL(location, url), { method: "DELETE" });
  assert.equal(ended.status, 200);
  await page.evaluate((name) => {
    const { peer, video } = globalThis.views[name];
    peer.close();
    video?.remove();
  }, name);
  await until("the session has ended", async () => (await fetch(new URL(location, url))).status === 404);
}

test("a browser shows a tag, and each picture is right", { timeout: LIMIT_MS }, async () => {
  const { status, body, headers } = await view("plain", "/whep/robot/camera");
  assert.equal(status, 201, body);
  assert.match(headers.location, /^\/webrtc\/[0-9a-f]{32}$/);
  assert.match(headers.etag, /^"[0-9a-f]{32}"$/);
  assert.equal(headers["content-type"], "application/sdp");
  await until("60 pictures", async () => (await seen("plain")).length >= 60);
  const pictures = await seen("plain");
  assert.deepEqual(pictures.filter(({ delay }) => delay === null), [], "each mark can be read");
  assert.ok(pictures.every(({ size }) => size === "320x240"));
  assert.ok(pictures.every(({ time }, at) => at === 0 || time >= pictures[at - 1].time), "in order");
  const { framesDecoded, framesDropped, packetsLost, codecId } = await report("plain", "video");
  assert.ok(framesDecoded >= 60 && packetsLost === 0, JSON.stringify({ framesDecoded, framesDropped, packetsLost, codecId }));
  const state = await (await fetch(new URL(headers.location, url))).json();
  assert.ok(state.connected && state.packets > 60, JSON.stringify(state));
  await close("plain");
});

test("equal requests share a subscription in the requested form, and one that joins late sees the past at once", { timeout: LIMIT_MS }, async () => {
  const address = "/whep/robot/camera?max_hz=10&size=160x120&within=500ms&loss=1/10";
  const first = await view("first", address);
  assert.equal(first.status, 201, first.body);
  await until("20 pictures", async () => (await seen("first")).length >= 20);
  assert.deepEqual((await seen("first")).filter(({ size, delay }) => size !== "160x120" || delay === null), []);
  const state = await (await fetch(new URL(first.headers.location, url))).json();
  assert.match(state.answer, /^granted: /);
  const begun = Date.now();
  await view("second", address);
  await until("a picture of the late viewer", async () => (await seen("second")).length >= 1);
  const took = Date.now() - begun;
  const { keyFramesDecoded, framesDecoded } = await report("second", "video");
  assert.ok(keyFramesDecoded >= 1 && framesDecoded >= 1, JSON.stringify({ took, keyFramesDecoded, framesDecoded }));
  const { nodes } = JSON.parse(execFileSync(BINARY, ["ls", "--json", "--runtime-dir", join(folder, "console")], { encoding: "utf8" }));
  const own = nodes.flatMap(({ subscriptions }) => subscriptions).filter((one) => one.pattern === "robot/camera" && JSON.stringify(one).includes("160"));
  assert.equal(own.length, 1, JSON.stringify(own));
  await close("first");
  await close("second");
});

test("a request that a path refuses is answered with the addresses that it would grant", { timeout: LIMIT_MS }, async () => {
  const { status, body } = await view("refused", "/whep/robot/camera?max_hz=10&size=160x120&bitrate=1mbit&within=5ms");
  assert.equal(status, 409, body);
  const { error, offers } = JSON.parse(body);
  assert.match(error, /radio/);
  assert.ok(offers.length > 0 && offers.every(({ set, address }) => /^--/.test(set) && address.startsWith("/whep/robot/camera?")), body);
  const granted = await view("granted", offers[0].address);
  assert.equal(granted.status, 201, `${offers[0].address}: ${granted.body}`);
  await until("a picture", async () => (await seen("granted")).length >= 1);
  await close("granted");
});

test("sound is a second track, coded as Opus", { timeout: LIMIT_MS + 5_000 }, async () => {
  const { status, body } = await view("both", "/whep/robot/camera?sound=robot/microphone", ["video", "audio"]);
  assert.equal(status, 201, body);
  let reports;
  await until("pictures and sound", async () => {
    reports = [await report("both", "video"), await report("both", "audio")];
    // The sine of ffmpeg has an amplitude of one eighth.
    return reports[0]?.framesDecoded >= 10 && Math.abs(reports[1]?.audioLevel - 0.125) < 0.02;
  }).catch((error) => assert.fail(`${error.message}: ${JSON.stringify(reports)}`));
  const codecs = await page.evaluate(async () => [...(await globalThis.views.both.peer.getStats()).values()].filter(({ type }) => type === "codec").map(({ mimeType }) => mimeType));
  assert.ok(codecs.includes("audio/opus") && codecs.includes("video/H264"), codecs.join());
  await close("both");
});

test("a viewer that requests a key picture gets the pictures since the last one again", { timeout: LIMIT_MS }, async () => {
  await view("keys", "/whep/robot/camera");
  await until("pictures", async () => (await seen("keys")).length >= 10);
  await page.evaluate(async () => {
    const code = `onrtctransform = ({ transformer }) => {
      transformer.readable.pipeTo(transformer.writable);
      setTimeout(() => transformer.sendKeyFrameRequest(), 450);
    };`;
    const worker = new Worker(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
    const { peer } = globalThis.views.keys;
    peer.getReceivers()[0].transform = new RTCRtpScriptTransform(worker);
  });
  const location = await page.evaluate(() => globalThis.views.keys.location);
  const state = async () => (await fetch(new URL(location, url))).json();
  await until("an answered request", async () => (await state()).key_answers >= 1);
  const count = (await seen("keys")).length;
  await until("pictures behind it", async () => (await seen("keys")).length >= count + 30);
  const later = (await seen("keys")).slice(count);
  assert.deepEqual(later.filter(({ delay }) => delay === null), []);
  await close("keys");
});

test("wrong requests get a reason", { timeout: LIMIT_MS }, async () => {
  const post = async (address, body, headers = { "content-type": "application/sdp" }) => {
    const answer = await fetch(new URL(address, url), { method: "POST", headers, body });
    return [answer.status, await answer.text()];
  };
  const { offer, sound } = await page.evaluate(async () => {
    const made = async (kind) => {
      const peer = new RTCPeerConnection();
      peer.addTransceiver(kind, { direction: "recvonly" });
      const { sdp } = await peer.createOffer();
      peer.close();
      return sdp;
    };
    return { offer: await made("video"), sound: await made("audio") };
  });
  const candidates = Array.from({ length: 1000 }, (_, at) => `a=candidate:${at} 1 udp 2122260223 10.0.${at >> 8}.${at & 255} 5000 typ host\r\n`).join("");
  const cases = [
    ["/whep/robot/camera", "no offer", undefined, 400, /session description/],
    ["/whep/robot/camera", offer.slice(0, offer.length / 2), undefined, 400, /session description|fingerprint/],
    ["/whep/robot/camera", "x".repeat(70_000), undefined, 413, /65536 bytes/],
    ["/whep/robot/camera", offer, { "content-type": "text/plain" }, 415, /application\/sdp/],
    ["/whep/", offer, undefined, 400, /names no tag/],
    ["/whep/robot/camera?max_hertz=5", offer, undefined, 400, /--max-hertz.*--max-hz/],
    ["/whep/robot/nothing", offer, undefined, 404, /nobody publishes it/],
    ["/whep/robot/card", offer, undefined, 415, /image\/jpeg.*publish H\.264/],
    ["/whep/robot/camera", sound, undefined, 422, /no video/],
    ["/whep/robot/camera", offer.replace(/H264/g, "H999"), undefined, 422, /not H\.264/],
    ["/whep/robot/camera", offer, { "content-type": "application/sdp", origin: "https://example.com" }, 403, /another site/],
  ];
  for (const [address, body, headers, status, why] of cases) {
    const [found, text] = await post(address, body, headers);
    assert.equal(found, status, `${address}: ${text}`);
    assert.match(text, why);
  }
  assert.equal((await post("/whep/robot/camera", offer + candidates))[0], 201, "a thousand candidates cost nothing");
  const options = await fetch(new URL("/whep/robot/camera", url), { method: "OPTIONS" });
  assert.deepEqual([options.status, options.headers.get("accept-post")], [204, "application/sdp"]);
  assert.equal((await fetch(new URL("/whep/robot/camera", url))).status, 405);
  const { headers: { location } } = await view("ice", "/whep/robot/camera");
  const patch = (headers) => fetch(new URL(location, url), { method: "PATCH", headers, body: "a=ice-ufrag:x\r\n" });
  assert.equal((await patch({ "content-type": "application/trickle-ice-sdpfrag" })).status, 204);
  assert.equal((await patch({ "content-type": "application/trickle-ice-sdpfrag", "if-match": "*" })).status, 422);
  assert.equal((await patch({})).status, 415);
  assert.equal((await fetch(new URL("/webrtc/0", url), { method: "DELETE" })).status, 404);
  await close("ice");
});

/** Publishes the fake camera and microphone of the browser. Returns the status and the body of the answer. */
function publish(name, address, codec) {
  return page.evaluate(async ([name, address, codec]) => {
    const media = await navigator.mediaDevices.getUserMedia({ video: { width: 640, height: 480, frameRate: 30 }, audio: true });
    const peer = new RTCPeerConnection();
    (globalThis.views ??= {})[name] = { peer };
    media.getTracks().forEach((track) => peer.addTrack(track, media));
    const codecs = RTCRtpReceiver.getCapabilities("video").codecs.filter(({ mimeType }) => mimeType === codec);
    peer.getTransceivers().find(({ sender }) => sender.track.kind === "video").setCodecPreferences(codecs);
    await peer.setLocalDescription();
    const answer = await fetch(address, { method: "POST", headers: { "content-type": "application/sdp" }, body: peer.localDescription.sdp });
    const body = await answer.text();
    if (answer.status === 201) await peer.setRemoteDescription({ type: "answer", sdp: body });
    globalThis.views[name].location = answer.headers.get("location");
    return { status: answer.status, body };
  }, [name, address, codec]);
}

test("a browser's camera and microphone become publishers, which another one views", { timeout: LIMIT_MS }, async () => {
  const { status, body } = await publish("phone", "/whip/phone/camera?sound=phone/microphone", "video/H264");
  assert.equal(status, 201, body);
  let viewed;
  await until("its tags", async () => (viewed = await view("mirror", "/whep/phone/camera?sound=phone/microphone", ["video", "audio"])).status === 201);
  await until("its pictures", async () => (await seen("mirror")).length >= 60);
  assert.equal((await seen("mirror")).at(-1).size, "640x480");
  // The fake microphone beeps once per second.
  await until("its sound", async () => (await report("mirror", "audio"))?.totalAudioEnergy > 0);
  const location = await page.evaluate(() => globalThis.views.phone.location);
  const state = await (await fetch(new URL(location, url))).json();
  assert.ok(state.samples > 60 && state.losses === "", JSON.stringify(state));
  await view("late", "/whep/phone/camera");
  await until("a late viewer's pictures", async () => (await seen("late")).length >= 5);
  for (const name of ["mirror", "late", "phone"]) await close(name);
});

test("publishers without tracks, with VP8 alone and with options are refused with the reason", { timeout: LIMIT_MS }, async () => {
  const vp8 = await publish("vp8", "/whip/phone/other", "video/VP8");
  assert.equal(vp8.status, 422, vp8.body);
  assert.match(vp8.body, /not H\.264/);
  const option = await publish("option", "/whip/phone/other?max_hz=5", "video/H264");
  assert.deepEqual([option.status, /max_hz=5.*sound=TAG/.test(option.body)], [400, true], option.body);
  const empty = await page.evaluate(async () => {
    const peer = new RTCPeerConnection();
    peer.createDataChannel("none");
    const { sdp } = await peer.createOffer();
    peer.close();
    const answer = await fetch("/whip/phone/other", { method: "POST", headers: { "content-type": "application/sdp" }, body: sdp });
    return [answer.status, await answer.text()];
  });
  assert.deepEqual([empty[0], /neither pictures nor sound/.test(empty[1])], [422, true], empty[1]);
});

test("B pictures are left out, and the others are shown in order", { timeout: LIMIT_MS }, async () => {
  const { status, body, headers } = await view("film", "/whep/robot/film");
  assert.equal(status, 201, body);
  await until("20 pictures", async () => (await seen("film")).length >= 20);
  const pictures = await seen("film");
  assert.deepEqual(pictures.filter(({ delay }) => delay === null), []);
  assert.ok(pictures.every(({ time }, at) => at === 0 || time >= pictures[at - 1].time), "in order");
  const state = await (await fetch(new URL(headers.location, url))).json();
  assert.ok(state.left_out_reordered > 20 && state.left_out_needs === 0, JSON.stringify(state));
  await close("film");
});

test("a flood of data channel messages costs no memory and disturbs no other viewer", { timeout: LIMIT_MS }, async () => {
  const memory = () => Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${server}/status`, "utf8"))[1]);
  await view("calm", "/whep/robot/camera");
  await until("pictures", async () => (await seen("calm")).length >= 10);
  const before = memory();
  const sent = await page.evaluate(async () => {
    const peer = globalThis.flood = new RTCPeerConnection();
    peer.addTransceiver("video", { direction: "recvonly" });
    const channel = peer.createDataChannel("flood");
    await peer.setLocalDescription();
    const answer = await fetch("/whep/robot/camera", { method: "POST", headers: { "content-type": "application/sdp" }, body: peer.localDescription.sdp });
    await peer.setRemoteDescription({ type: "answer", sdp: await answer.text() });
    await new Promise((done) => { channel.onopen = done; });
    const message = new Uint8Array(16_384);
    let bytes = 0;
    const end = Date.now() + 3_000;
    while (Date.now() < end) {
      if (channel.bufferedAmount < 1_000_000) {
        channel.send(message);
        bytes += message.length;
      } else await new Promise((done) => setTimeout(done, 5));
    }
    return bytes - channel.bufferedAmount;
  });
  assert.ok(sent > 5_000_000, `${sent} bytes`);
  assert.ok(memory() - before < 40_000, `${memory() - before} kB`);
  const count = (await seen("calm")).length;
  await until("more pictures", async () => (await seen("calm")).length >= count + 10);
  assert.equal((await seen("calm")).slice(1).filter(({ delay }) => delay === null).length, 0);
  await page.evaluate(() => globalThis.flood.close());
  await close("calm");
});

test("to view is to read, and to publish is to change", { timeout: LIMIT_MS }, async () => {
  const [read, change] = ["0123456789abcdef", "fedcba9876543210"];
  writeFileSync(join(folder, "tokens"), `read ${read}\nchange ${change}\n`, { mode: 0o600 });
  writeFileSync(join(folder, "config.toml"), `http = "127.0.0.1:0"\nwebrtc = "127.0.0.1:0"\nhttp_tokens = "${join(folder, "tokens")}"\n`);
  const node = start("guarded", ["node", "--json", "--config", join(folder, "config.toml")], ["ignore", "pipe", "ignore"]);
  const { value } = await createInterface({ input: node.stdout })[Symbol.asyncIterator]().next();
  const { http } = JSON.parse(value);
  const offer = await page.evaluate(async () => {
    const peer = new RTCPeerConnection();
    peer.addTransceiver("video", { direction: "sendrecv" });
    const { sdp } = await peer.createOffer();
    peer.close();
    return sdp;
  });
  const status = async (path, token) => {
    const headers = { "content-type": "application/sdp", ...(token && { authorization: `Bearer ${token}` }) };
    return (await fetch(new URL(path, http), { method: "POST", headers, body: offer })).status;
  };
  assert.deepEqual(await Promise.all([
    status("/whep/robot/camera"), status("/whep/robot/camera", "wrong-wrong-wrong"), status("/whep/robot/camera", read),
    status("/whip/robot/camera", read), status("/whip/robot/camera", change),
  ]), [401, 401, 404, 403, 201]);
});

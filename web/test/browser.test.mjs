// A page as a peer: the client in Chromium against a real node, with contracts, pictures and commands.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { BINARY, LIMIT_MS, open, startBrowser, startNode, until } from "./demo.mjs";
import { throughRelay } from "./lossy.mjs";

let node, browser, page;
const complaints = [];

before(async () => {
  [node, browser] = await Promise.all([startNode(), startBrowser()]);
  node.run(["pub", "robot/camera", "--test-card", "320x240@20"]);
  node.run(["pub", "robot/pose", "x=1", "--hz", "20", "--largest", "100B"]);
  page = await open(browser, node.url, complaints);
  // The page of the node: its origin, and its cookie if there are tokens.
  await page.evaluate(async () => {
    const { connect, Screen } = await import("/client.js");
    Object.assign(window, { connect, Screen, connection: await connect() });
  });
}, { timeout: LIMIT_MS });

after(async () => {
  await browser?.close();
  await node?.end();
  assert.deepEqual(complaints, []);
});

test("a page is told the node, and lists publishers", { timeout: 3 * LIMIT_MS }, async () => {
  const { about, sources } = await page.evaluate(async () => {
    const { node, id, mayPublish, clock } = connection;
    const find = async () => (await connection.sources("robot/*")).map(({ tag, encoding }) => [tag, encoding]);
    let sources = await find();
    for (let turn = 0; turn < 100 && sources.length < 2; turn += 1) {
      await new Promise((done) => setTimeout(done, 50));
      sources = await find();
    }
    return { about: { node, id, mayPublish, error: clock.error() }, sources };
  });
  assert.ok(about.node.length > 0 && about.id.length > 0 && about.mayPublish, JSON.stringify(about));
  assert.ok(about.error < 50_000, `the clock is known within ${about.error} us`);
  assert.deepEqual(sources.sort(), [["robot/camera", "image/jpeg"], ["robot/pose", "text/plain"]]);
});

test("a contract is granted over the measured path, and samples arrive with ages", { timeout: 3 * LIMIT_MS }, async () => {
  const got = await page.evaluate(async () => {
    const poses = connection.subscribe({ tag: "robot/pose", withinMs: 500 });
    const grant = await poses.answer;
    const samples = [];
    for await (const { tag, payload, ageMs, ageErrorMs, late } of poses) {
      samples.push({ tag, text: new TextDecoder().decode(payload), ageMs, ageErrorMs, late });
      if (samples.length === 20) break;
    }
    poses.close();
    return { grant, samples };
  });
  assert.match(got.grant.text, /browser-1/, JSON.stringify(got.grant));
  assert.ok(got.samples.every(({ tag, text }) => tag === "robot/pose" && text.startsWith("x=1")), JSON.stringify(got.samples[0]));
  assert.ok(got.samples.every(({ ageMs, late }) => ageMs < 500 && !late), JSON.stringify(got.samples));
});

test("a request beyond the path is refused before the first sample, with an offer that is granted", { timeout: 3 * LIMIT_MS }, async () => {
  const got = await page.evaluate(async () => {
    const want = { tag: "robot/camera", withinMs: 1 };
    const first = connection.subscribe(want);
    const refusal = await first.answer.then(() => null, (error) => error.refusal ?? String(error));
    const received = first.counts.received;
    first.close();
    return { refusal, received };
  });
  assert.ok(got.refusal?.text, JSON.stringify(got));
  assert.equal(got.received, 0);
});

for (const carrier of ["websocket", "webtransport"]) {
  test(`pictures are shown at the requested rate and size over ${carrier}`, { timeout: 3 * LIMIT_MS }, async () => {
    const got = await page.evaluate(async (carrier) => {
      const other = await connect(undefined, { carrier });
      const canvas = document.body.appendChild(document.createElement("canvas"));
      const pictures = other.subscribe({ tag: "robot/camera", maxHz: 10, size: "160x120", withinMs: 500 });
      const screen = new Screen(pictures, canvas);
      const grant = await pictures.answer;
      await new Promise((done) => setTimeout(done, 3000));
      const { counts } = screen;
      const used = other.carrier;
      other.close();
      return { used, grant, counts, size: [canvas.width, canvas.height] };
    }, carrier);
    assert.equal(got.used, carrier);
    assert.deepEqual(got.size, [160, 120], JSON.stringify(got));
    assert.ok(got.counts.shown >= 22 && got.counts.shown <= 33, JSON.stringify(got));
    assert.equal(got.counts.errors, 0);
  });
}

test("over datagrams that are lost, a contract repairs them and delivers in order", { timeout: 3 * LIMIT_MS }, async () => {
  // The policy of the page allows its own port; the relay has another one.
  const other = await browser.newPage({ bypassCSP: true });
  const relayed = throughRelay(other, { delayMs: 10, oneIn: 50 });
  await other.goto(node.url);
  const got = await other.evaluate(async () => {
    const { connect } = await import("/client.js");
    const connection = await connect(undefined, { carrier: "webtransport" });
    const poses = connection.subscribe({ tag: "robot/pose", withinMs: 500 });
    await poses.answer;
    const seqs = [];
    for await (const { seq } of poses) if (seqs.push(seq) === 120) break;
    connection.close();
    return { seqs, late: poses.counts.late };
  });
  const { counts, end } = await relayed;
  end();
  await other.close();
  assert.ok(counts.lost > 3, JSON.stringify(counts));
  const gaps = got.seqs.slice(1).filter((seq, index) => seq !== got.seqs[index] + 1);
  assert.deepEqual(gaps, [], got.seqs.join(" "));
});

test("the capacity of a thin path is measured, and an elastic camera keeps its deadline on it", { timeout: 3 * LIMIT_MS }, async () => {
  // The policy of the page allows its own port; the relay has another one.
  const other = await browser.newPage({ bypassCSP: true });
  const relayed = throughRelay(other, { delayMs: 20, bitsPerS: 4e6 });
  await other.goto(node.url);
  const got = await other.evaluate(async () => {
    const { connect } = await import("/client.js");
    const connection = await connect(undefined, { carrier: "webtransport" });
    const camera = connection.subscribe({ tag: "robot/camera", maxHz: 30, minHz: 2, size: "320x240,160x120", withinMs: 500 });
    const links = [];
    connection.on("link", (link) => links.push(link.estimate_bits_per_s));
    const grant = await camera.answer;
    await new Promise((done) => setTimeout(done, 8000));
    connection.close();
    return { grant, links, counts: camera.counts };
  });
  (await relayed).end();
  await other.close();
  assert.ok(got.grant && got.counts.received >= 10 && got.counts.late === 0, JSON.stringify(got));
  // The middle of the last measurements: 4 Mbit/s, and the headers that the relay does not count.
  const middle = got.links.slice(-5).sort((a, b) => a - b)[2];
  assert.ok(middle > 2.5e6 && middle < 6e6, JSON.stringify(got));
});

test("video is decoded by the page", { timeout: 3 * LIMIT_MS }, async () => {
  const coder = spawn("ffmpeg", ["-loglevel", "error", "-re", "-f", "lavfi", "-i", "testsrc=size=320x240:rate=20", "-c:v", "libx264", "-tune", "zerolatency", "-g", "20", "-pix_fmt", "yuv420p", "-f", "h264", "-"], { stdio: ["ignore", "pipe", "inherit"] });
  const pub = spawn(BINARY, ["pub", "robot/video", "-", "--hz", "20"], { stdio: ["pipe", "ignore", "ignore"], env: node.env });
  pub.stdin.on("error", () => undefined);
  coder.stdout.pipe(pub.stdin);
  try {
    const got = await page.evaluate(async () => {
      const canvas = document.body.appendChild(document.createElement("canvas"));
      const video = connection.subscribe({ tag: "robot/video" });
      const screen = new Screen(video, canvas);
      let why = "";
      screen.onerror = (error) => { why = error; };
      for (let turn = 0; turn < 200 && screen.counts.shown < 40; turn += 1) await new Promise((done) => setTimeout(done, 100));
      const { counts } = screen;
      screen.close();
      video.close();
      return { counts, why, size: [canvas.width, canvas.height] };
    });
    assert.ok(got.counts.shown >= 40 && got.counts.errors === 0, JSON.stringify(got));
    assert.deepEqual(got.size, [320, 240]);
  } finally {
    coder.kill("SIGKILL");
    pub.kill("SIGKILL");
  }
});

test("a wrong request names the field, and disturbs nothing else", { timeout: 3 * LIMIT_MS }, async () => {
  const errors = await page.evaluate(async () => {
    const failed = (request) => connection.subscribe(request).answer.then(() => "none", (error) => error.message);
    return [
      await failed({ tag: "robot/camera", maxHz: -1 }),
      await failed({ tag: "robot//camera" }),
      await failed({ tag: "robot/camera", size: "big" }),
    ];
  });
  assert.match(errors[0], /max-hz/);
  assert.match(errors[1], /robot\/\/camera/);
  assert.match(errors[2], /size/);
});

test("commands of a page arrive with the age of their whole way, and stale ones do not act", { timeout: 3 * LIMIT_MS }, async () => {
  const sub = spawn(BINARY, ["sub", "robot/steer", "--json", "--fresh", "300ms"], { stdio: ["ignore", "pipe", "ignore"], env: node.env });
  const lines = [];
  createInterface({ input: sub.stdout }).on("line", (line) => lines.push(JSON.parse(line)));
  try {
    await page.evaluate(async () => {
      window.steer = connection.publish({ tag: "robot/steer", encoding: "application/json", hz: 50, bytesMax: 100 });
      await new Promise((done) => { const stop = steer.on("matching", (matches) => { if (matches) { stop(); done(); } }); });
      window.timer = setInterval(() => steer.put({ left: 0.5 }), 20);
    });
    await until("commands arrive", async () => lines.length > 50);
    const { published, dropped } = await page.evaluate(() => {
      clearInterval(timer);
      return { published: steer.published, dropped: steer.dropped };
    });
    assert.ok(published > 50 && dropped === 0, `${published} ${dropped}`);
    // Captured two seconds ago: too old to act.
    const before = lines.length;
    await page.evaluate(() => { for (let i = 0; i < 10; i += 1) steer.put({ left: 1 }, { capturedAt: performance.now() - 2000 }); });
    await new Promise((done) => setTimeout(done, 700));
    const after = lines.slice(before).filter((line) => JSON.stringify(line).includes('"left":1'));
    assert.deepEqual(after, []);
  } finally {
    sub.kill("SIGKILL");
    await page.evaluate(() => steer.close());
  }
});

test("the browser is a node of the network like others", { timeout: 3 * LIMIT_MS }, async () => {
  const nodes = JSON.parse(execFileSync(BINARY, ["ls", "--json"], { encoding: "utf8", env: node.env, timeout: LIMIT_MS })).nodes;
  const names = nodes.map(({ name }) => name);
  assert.ok(names.some((name) => /^browser 127\.0\.0\.1/.test(name)), names.join(", "));
  const gate = nodes.find(({ name }) => name.endsWith("(browsers)"));
  const link = gate.links.find(({ name }) => name === "browser-1");
  assert.ok(link.measured.contracts_bits_per_s > 1e6, JSON.stringify(link.measured));
});

// The operator's page: camera, values and steering, on a desktop and on a phone, with a page that freezes.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { BINARY, LIMIT_MS, startBrowser, startNode, until } from "./demo.mjs";

const SHOTS = process.env.PACELINE_SHOTS ?? join(tmpdir(), "paceline-page");
/** The age limit of the robot. */
const FRESH_MS = 300;
let node, browser, page, robot;
const complaints = [];
/** The commands on which the robot acts, with their times. */
const commands = [];

before(async () => {
  [node, browser] = await Promise.all([startNode(), startBrowser()]);
  node.run(["pub", "robot/camera", "--test-card", "640x480@20"]);
  node.run(["pub", "robot/battery", '{"volts":24.1,"percent":80}', "--hz", "5"]);
  robot = spawn(BINARY, ["sub", "robot/velocity", "--fresh", `${FRESH_MS}ms`, "--out", "-"], { stdio: ["ignore", "pipe", "ignore"], env: node.env });
  createInterface({ input: robot.stdout }).on("line", (line) => commands.push({ at: Date.now(), ...JSON.parse(line) }));
  page = await opened({ viewport: { width: 1280, height: 800 } });
}, { timeout: LIMIT_MS });

after(async () => {
  await browser?.close();
  robot?.kill("SIGKILL");
  await node?.end();
  assert.deepEqual(complaints, []);
});

async function opened(options) {
  const shown = await browser.newPage(options);
  shown.setDefaultTimeout(LIMIT_MS);
  shown.on("console", (message) => { if (["error", "warning"].includes(message.type())) complaints.push(message.text()); });
  await shown.goto(`${node.url}operator`);
  await until("a picture is shown", async () => /ms old$/.test(await shown.textContent("#age")));
  return shown;
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const newest = () => commands.at(-1) ?? {};

test("camera, values and contracts are shown", { timeout: 3 * LIMIT_MS }, async () => {
  await until("the battery is shown", async () => /robot\/battery.*24\.1/.test(await page.textContent("#values")));
  await until("the camera has a contract", async () => /^camera: granted/.test(await page.textContent("#contract-camera")));
  await until("the link is shown", async () => /bit\/s, (measuring|stable|falling) .* reserved .* of .*bit\/s/.test(await page.textContent("#link")));
  assert.match(await page.textContent("#up"), /connected over Web(Transport|Socket)/);
  // The canvas has colours, not one.
  const colours = await page.evaluate(() => {
    const canvas = document.querySelector("#camera");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return new Set(Array.from({ length: 500 }, (_, index) => data.slice(index * 1600, index * 1600 + 3).join())).size;
  });
  assert.ok(colours > 20, `${colours} colours`);
});

test("nothing is sent before Drive, and STOP ends it with zeros", { timeout: 3 * LIMIT_MS }, async () => {
  await page.keyboard.down("ArrowUp");
  await pause(300);
  assert.equal(commands.length, 0);
  await page.keyboard.up("ArrowUp");
  await page.click("#arm");
  await page.keyboard.down("ArrowUp");
  await until("the robot is told to go forward", async () => newest().forward === 1);
  await page.keyboard.up("ArrowUp");
  await until("the robot is told to stand", async () => newest().forward === 0);
  await page.keyboard.down("KeyA");
  await until("the robot is told to turn", async () => newest().left === 1);
  await page.click("#stop");
  await until("the robot is told to stop", async () => newest().forward === 0 && newest().left === 0);
  await page.keyboard.up("KeyA");
  await pause(800);
  const sent = commands.length;
  await pause(300);
  assert.equal(commands.length, sent, "nothing follows");
});

test("a page that freezes sends nothing old, and drives again when it wakes", { timeout: 3 * LIMIT_MS }, async () => {
  await page.click("#arm");
  await page.keyboard.down("ArrowUp");
  await until("the robot drives", async () => newest().forward === 1);
  const before = commands.length;
  const began = Date.now();
  await page.evaluate(() => { const end = performance.now() + 3000; while (performance.now() < end); });
  const during = commands.slice(before).filter(({ at }) => at > began + 500 && at < began + 2900);
  assert.deepEqual(during, [], "the robot acts on nothing while the page is frozen");
  const awake = commands.length;
  await until("the robot drives again", async () => commands.length > awake + 5);
  await page.click("#stop");
  await page.keyboard.up("ArrowUp");
});

test("the page fits on a phone, and its stick steers", { timeout: 3 * LIMIT_MS }, async () => {
  mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: join(SHOTS, "operator-desktop.png") });
  const phone = await opened({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  const outside = await phone.evaluate(() => ["#camera", "#stop", "#pad", "#arm"].filter((id) => {
    const { bottom, right, width } = document.querySelector(id).getBoundingClientRect();
    return bottom > innerHeight + 1 || right > innerWidth + 1 || width === 0;
  }));
  assert.deepEqual(outside, [], "all of it is visible without scrolling");
  await phone.tap("#arm");
  const { x, y, width } = await phone.locator("#pad").boundingBox();
  await phone.bringToFront();
  // A page that loses the focus lets go of the stick, as it should: then the operator takes it again.
  await until("the robot is told half the speed", async () => {
    await phone.mouse.up();
    await phone.mouse.move(x + width / 2, y + width / 2);
    await phone.mouse.down();
    await phone.mouse.move(x + width / 2, y + width * 0.3);
    await pause(400);
    return newest().forward > 0.4 && newest().forward < 0.6;
  });
  await phone.screenshot({ path: join(SHOTS, "operator-phone.png") });
  await phone.mouse.up();
  await phone.tap("#stop");
  await phone.close();
});

// Measures the cost of the page: bytes, first paint, and CPU time with a hundred streams of the
// given flight log. `npm run bench -- --short` runs for seconds to check that it works; its figures
// are no measurement.

import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { open, startBrowser, startDemo, until } from "./demo.mjs";

const BINARY = process.env.PACELINE_BIN ?? "../target/debug/paceline";
const ARGUMENTS = process.argv.slice(2);
const SHORT = ARGUMENTS.includes("--short");
const [FLIGHT, ONLY] = ARGUMENTS.filter((word) => word !== "--short");
const SECONDS = SHORT ? 1 : 20;
const LOADS = SHORT ? 1 : 9;
const SETTLES_MS = SHORT ? 500 : 5000;
const PUBLISHERS = 7;
const TICKS_PER_S = 100;

/** Returns the CPU seconds so far of a process's threads whose names satisfy `chosen`. */
function cpu(pid, chosen = () => true) {
  let ticks = 0;
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    const stat = readFileSync(`/proc/${pid}/task/${task}/stat`, "utf8");
    const name = stat.slice(stat.indexOf("(") + 1, stat.lastIndexOf(")"));
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (chosen(name)) ticks += Number(fields[11]) + Number(fields[12]);
  }
  return ticks / TICKS_PER_S;
}

/** Returns all processes of the browser, the only Chromium that descends from this process. */
function browserProcesses() {
  const parents = new Map();
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      parents.set(Number(pid), Number(stat.slice(stat.lastIndexOf(")") + 4).split(" ")[0]));
    } catch { /* it has just ended */ }
  }
  const below = (pid) => pid === process.pid || (parents.has(pid) && below(parents.get(pid)));
  const isBrowser = (pid) => { try { return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("chrom"); } catch { return false; } };
  return [...parents.keys()].filter((pid) => below(pid) && isBrowser(pid));
}

const percent = (seconds) => `${((seconds / SECONDS) * 100).toFixed(1)} %`;
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

async function firstPaint(browser) {
  const demo = await startDemo();
  await pause(3000);
  const paints = [];
  const readies = [];
  for (let load = 0; load < LOADS; load += 1) {
    const context = await browser.newContext();
    const begun = performance.now();
    const page = await open(context, demo.url, []);
    readies.push(performance.now() - begun);
    const paint = () => page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
    paints.push(await until("a paint", paint));
    await context.close();
  }
  await demo.end();
  const middle = (all) => Math.round(all.sort((a, b) => a - b)[Math.floor(LOADS / 2)]);
  console.log(`first contentful paint, median of ${LOADS} | ${middle(paints)} ms`);
  console.log(`page opened until the first figures, median of ${LOADS} | ${middle(readies)} ms`);
}

async function hundredStreams(browser) {
  const folders = ["a", "b"].map((name) => mkdtempSync(join(tmpdir(), `plb-${name}-`)));
  const server = createServer();
  const port = await new Promise((done) => server.listen(0, "127.0.0.1", () => done(server.address().port)));
  server.close();
  const children = [];
  const run = (args, stdout = "ignore") => {
    const child = spawn(BINARY, args, { stdio: ["ignore", stdout, "ignore"] });
    children.push(child);
    return child;
  };
  try {
    const link = `name=wide,listen=tcp/127.0.0.1:${port},capacity=50mbit`;
    const node = run(["node", "--json", "--http", "127.0.0.1:0", "--runtime-dir", folders[0], "--link", link], "pipe");
    const [line] = await createInterface({ input: node.stdout })[Symbol.asyncIterator]().next().then(({ value }) => [value]);
    const { http } = JSON.parse(line);
    run(["sub", "fleet/**", "--json", "--runtime-dir", folders[1], "--link", `connect=tcp/127.0.0.1:${port},capacity=50mbit`]);
    for (let number = 0; number < PUBLISHERS; number += 1) {
      run(["pub", `fleet/${number}`, "--file", FLIGHT, "--speed", "1", "--loop", "--runtime-dir", folders[0]]);
    }
    const streams = async () => (await (await fetch(`${http}api/v1/streams`)).json()).rows.filter((row) => row.link === "wide").length;
    const count = await until("a hundred streams", async () => { const n = await streams(); return n >= 100 && n; });
    await pause(SETTLES_MS);
    const alone = cpu(node.pid);
    await pause(SECONDS * 1000);
    const without = cpu(node.pid) - alone;
    const all = () => browserProcesses().map((pid) => cpu(pid)).reduce((a, b) => a + b, 0);
    const empty = await browser.newPage({ viewport: { width: 1400, height: 1000 } });
    await pause(2000);
    const resting = all();
    await pause(SECONDS * 1000);
    console.log(`the browser with an empty page, all its processes, of one core | ${percent(all() - resting)}`);
    await empty.close();
    const page = await open(browser, http, []);
    await pause(SETTLES_MS);
    const before = { node: cpu(node.pid), http: cpu(node.pid, (name) => name.startsWith("paceline-http")), browser: all() };
    await pause(SECONDS * 1000);
    const since = (what, now) => now - before[what];
    const threads = since("http", cpu(node.pid, (name) => name.startsWith("paceline-http")));
    console.log(`streams on the link | ${count}`);
    console.log(`threads that serve HTTP, of one core | ${percent(threads)}`);
    console.log(`whole node with the page open, of one core | ${percent(since("node", cpu(node.pid)))}`);
    console.log(`whole node, nobody looks, of one core | ${percent(without)}`);
    console.log(`the browser, all its processes, of one core | ${percent(since("browser", all()))}`);
    await page.close();
  } finally {
    children.forEach((child) => child.kill("SIGKILL"));
    folders.forEach((folder) => rmSync(folder, { recursive: true, force: true }));
  }
}

const dist = "../crates/paceline-http/pages/dist";
const files = readdirSync(dist, { recursive: true }).map((name) => join(dist, name)).filter((name) => statSync(name).isFile());
console.log(`bundle, ${files.length} files | ${files.reduce((all, name) => all + statSync(name).size, 0)} bytes`);
const browser = await startBrowser();
try {
  if (!FLIGHT || ONLY !== "only-streams") await firstPaint(browser);
  if (FLIGHT) await hundredStreams(browser);
} finally {
  await browser.close();
}

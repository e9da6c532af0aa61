// Starts a demo for the tests, and a browser.

import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

export const BINARY = process.env.PACELINE_BIN ?? "../target/debug/paceline";
const BROWSER = process.env.CHROMIUM ?? "/usr/bin/chromium";
/** The time limit of any step, in milliseconds. */
export const LIMIT_MS = 30_000;
/** Without these options the browser contacts hosts of its vendor at every start. */
const QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

/** Starts `paceline demo`, with `scene` if one is given. Returns its URL and a function that ends it. */
export async function startDemo(...scene) {
  const child = spawn(BINARY, ["demo", ...scene, "--json", "--http", "127.0.0.1:0"], { stdio: ["ignore", "ignore", "pipe"] });
  const said = [];
  for await (const line of createInterface({ input: child.stderr })) {
    said.push(line);
    const url = /^(?:dashboard|the town): (http:\S+)$/.exec(line)?.[1];
    if (url) {
      const ended = new Promise((done) => child.once("exit", done));
      // Discard further output, so that a full pipe does not block the demo.
      child.stderr.resume();
      return {
        url,
        folder: `${process.env.TMPDIR ?? "/tmp"}/paceline-demo-${child.pid}`,
        async end() {
          child.kill("SIGTERM");
          await ended;
        },
      };
    }
  }
  throw new Error(`the demo ended: ${said.join("\n")}`);
}

/** Starts `paceline node` with a page, in a runtime folder of its own. */
export async function startNode() {
  const folder = mkdtempSync(join(tmpdir(), "plw-"));
  const env = { ...process.env, PACELINE_RUNTIME_DIR: folder, XDG_CONFIG_HOME: folder };
  const node = spawn(BINARY, ["node", "--json", "--http", "127.0.0.1:0"], { stdio: ["ignore", "pipe", "ignore"], env });
  const all = [node];
  for await (const line of createInterface({ input: node.stdout })) {
    return {
      url: JSON.parse(line).http,
      env,
      run: (args) => all.push(spawn(BINARY, args, { stdio: "ignore", env })),
      async end() {
        await Promise.all(all.map((child) => {
          const ended = new Promise((done) => child.once("exit", done));
          child.kill("SIGTERM");
          return ended;
        }));
        rmSync(folder, { recursive: true, force: true });
      },
    };
  }
  throw new Error("the node ended");
}

/** Returns the nodes from `paceline ls --json` at one node of the demo. */
export function ls(demo, role) {
  const args = ["ls", "--json", "--runtime-dir", `${demo.folder}/${role}`];
  return JSON.parse(execFileSync(BINARY, args, { encoding: "utf8", timeout: LIMIT_MS })).nodes;
}

/** Starts a browser, with more options if given. */
export async function startBrowser(...more) {
  return chromium.launch({ executablePath: BROWSER, args: [...QUIET, ...more] });
}

/**
 * Returns a page that shows its first figures. Console errors and warnings are added to
 * `complaints`.
 */
export async function open(browser, url, complaints, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1400, height: 1000 }, ...options });
  page.setDefaultTimeout(LIMIT_MS);
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(`${message.text()} ${message.location().url}`);
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.goto(url);
  await page.waitForSelector("html[data-ready]");
  return page;
}

/** Calls `look` until its result is true, and returns the result. */
export async function until(what, look) {
  const end = Date.now() + LIMIT_MS;
  let last;
  while (Date.now() < end) {
    last = await look();
    if (last) return last;
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error(`not within ${LIMIT_MS / 1000} s: ${what}; last: ${JSON.stringify(last)}`);
}

// The page of a relay: streams pass through it to subscribers on other pages, and one of its
// contracts is violated.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { LIMIT_MS, open, startBrowser, until } from "./demo.mjs";
import { startRelay } from "./relay.mjs";

let relay, browser, page;
const complaints = [];

before(async () => {
  [relay, browser] = await Promise.all([startRelay(), startBrowser()]);
  page = await open(browser, relay.url, complaints, { viewport: { width: 1400, height: 3000 } });
}, { timeout: LIMIT_MS });

after(async () => {
  await browser?.close();
  await relay?.end();
});

/** Returns the relay's thin link. */
async function thin() {
  const { nodes } = await (await fetch(`${relay.url}api/v1/state`)).json();
  return nodes.find(({ name }) => name === "relay").links.find(({ name }) => name === "thin");
}

const camera = ({ streams }) => streams.find(({ contracted }) => contracted);
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const verdict = () => page.textContent("#verdict");
/** Converts "1.5 Mbit/s" to bit/s. */
const bits = (text) => {
  const [, number, unit] = /([\d.]+) (\w*bit)\/s/.exec(text);
  return Number(number) * { bit: 1, kbit: 1e3, Mbit: 1e6, Gbit: 1e9 }[unit];
};

test("each line shows the traffic of its two nodes, and a link at most its capacity", async () => {
  const link = await until("both streams flow and fill the link", async () => {
    const link = await thin();
    return link.streams.length === 2 && camera(link)?.sent > 10 && link.use_bits_per_s > 1.8e6 && link;
  });
  assert.ok(link.use_bits_per_s <= 2.1e6, `${link.use_bits_per_s}`);
  const each = link.neighbours.map(({ use_bits_per_s: use }) => use);
  assert.equal(each.length, 2);
  assert.ok(Math.abs(each.reduce((a, b) => a + b, 0) - link.use_bits_per_s) <= 2, `${each} make up ${link.use_bits_per_s}`);
  // Both from one drawing; "relay to operator over thin: 300 kbit/s · link 2.00 Mbit/s of 2.00
  // Mbit/s".
  const drawn = await until("both lines are drawn", async () => {
    const lines = ((await page.locator("#topology svg").getAttribute("aria-label")) ?? "").split("; ");
    const found = lines.filter((line) => /^relay to (operator|archive) over thin: .* · link .*bit\/s of 2.00 Mbit\/s$/.test(line));
    const [all] = found.map((line) => bits(line.split(" · ")[1]));
    return found.length === 2 && all > 1.8e6 && { all, each: found.map(bits) };
  });
  assert.ok(drawn.each.every((use) => use < drawn.all), JSON.stringify(drawn));
  assert.ok(Math.abs(drawn.each.reduce((a, b) => a + b, 0) - drawn.all) < 0.02 * drawn.all, JSON.stringify(drawn));
});

test("subscriptions behind links have their whole delay and a verdict on the relay's page", async () => {
  const rows = page.locator("#delay .delay");
  await until("a row for each", async () => (await rows.count()) >= 2);
  assert.equal(await page.locator("#delay").getAttribute("data-empty"), null);
  // From the publisher, which is behind another link, to the subscriber.
  const whole = /operator · camera.*robot: until queued.*relay: until queued.*link thin: queueing and transmission.*delivery/;
  await until("its whole path is known", async () => whole.test((await rows.allTextContents()).join("\n")));
  // The page reads the nodes of the subscribers too.
  const kept = /served as requested|less than requested/;
  await until("the summary shows it", async () => kept.test(await verdict()));
});

test("a broken contract is shown now, and after recovery as a past violation", async () => {
  const row = page.locator("#deadlines tr", { hasText: "relay thin" });
  const cell = (head) => row.locator(`td[data-head="${head}"]`).textContent();
  const { operator } = relay.children;
  await until("windows are broken", async () => {
    // Shorter than the time after which a silent neighbour is considered lost and its streams are
    // closed.
    operator.kill("SIGSTOP");
    await pause(1_000);
    operator.kill("SIGCONT");
    const end = Date.now() + 2_000;
    while (Date.now() < end) {
      if (camera(await thin())?.violations > 0) return true;
      await pause(100);
    }
    return false;
  });
  // The subscriber was stopped, so its samples were late or lost.
  await until("the whole page shows it", async () => /contracts? (is|are) broken now: .*operator camera/.test(await verdict()));
  await until("it is kept again, and the past violation is shown", async () => {
    const note = await page.locator(".card", { hasText: "operator camera" }).locator(".note").textContent();
    return /^contract kept now · broken for \d+ s since the start, the last \d+ s ago/.test(note);
  });
  assert.match(await cell("windows beyond the target"), /^\d+, the last \d+ s ago$/);
});

test("the page logged no errors", () => assert.deepEqual(complaints, []));

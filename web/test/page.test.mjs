// Tests of the page in a real browser, with a real demo.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { LIMIT_MS, ls, open, startBrowser, startDemo, startNode, until } from "./demo.mjs";

let demo, browser, page;
const complaints = [];
/** Subscriptions that a test has ended: until the next state, the page still asks for their pictures. */
const ended = [];

before(async () => {
  [demo, browser] = await Promise.all([startDemo(), startBrowser()]);
  // Tall enough for the whole page, because hidden sections are not updated.
  page = await open(browser, demo.url, complaints, { viewport: { width: 1400, height: 4000 } });
}, { timeout: LIMIT_MS });

after(async () => {
  await browser?.close();
  await demo?.end();
});

/** The folder of the screenshots. */
const SHOTS = process.env.PACELINE_SHOTS ?? join(tmpdir(), "paceline-page");
const DESKTOP = { width: 1440, height: 900 };
const SCREENS = [
  ["desktop", { viewport: DESKTOP, colorScheme: "light" }],
  ["dark", { viewport: DESKTOP, colorScheme: "dark" }],
  ["phone", { viewport: { width: 390, height: 844 }, colorScheme: "light", hasTouch: true }],
];

/** Saves pictures of the page at `url` on three screens, once `look` is true there. */
async function shoot(name, url, look) {
  mkdirSync(SHOTS, { recursive: true });
  for (const [screen, options] of SCREENS) {
    const shot = await open(browser, url, complaints, options);
    await until(`${name} is shown on ${screen}`, () => look(shot));
    await shot.screenshot({ path: join(SHOTS, `${name}-${screen}.png`) });
    if (screen !== "phone") {
      const low = await shot.evaluate(() => ["#news", "#versus", "#start"].flatMap((id) => {
        const part = document.querySelector(id);
        return part && part.checkVisibility() && part.getBoundingClientRect().bottom > innerHeight ? [id] : [];
      }));
      assert.deepEqual(low, [], `${name} on ${screen} is visible without scrolling`);
    }
    await shot.close();
  }
}

const card = (about, from = page) => from.locator(".card", { has: from.locator("h3", { hasText: about }) });
const state = async () => (await fetch(`${demo.url}api/v1/state`)).json();

test("the three pictures update as small thumbnails in the received form", async () => {
  const figures = page.locator("figure[data-seq]");
  await until("three pictures", async () => (await figures.count()) === 3);
  const seqs = () => figures.evaluateAll((all) => all.map((one) => Number(one.dataset.seq)));
  const first = await seqs();
  await until("all of them moved", async () => (await seqs()).every((seq, at) => seq > first[at]));
  const shown = () => figures.evaluateAll((all) => all.map((one) => {
    const image = one.querySelector("img");
    return { size: `${image.naturalWidth}x${image.naturalHeight}`, of: image.alt, caption: one.querySelector("figcaption").textContent };
  }));
  // A picture that is being replaced has no size.
  let all = [];
  await until("all of them are shown", async () => (all = await shown()).every(({ size }) => size !== "0x0"));
  // The cards are in the order of their last changes, which differs from run to run.
  const sizes = (node) => all.filter(({ of }) => of.includes(`by ${node} `)).map(({ size }) => size);
  assert.deepEqual([sizes("console"), sizes("operator")], [["320x240", "320x240"], ["160x120"]]);
  const console_ = all.find(({ of }) => of.includes("by console "));
  assert.match(console_.caption, /640×480/, "the console receives a larger picture than the page shows");
  // At most five requests per second, averaged over the elapsed time.
  let asked = 0;
  const begun = Date.now();
  page.on("request", (request) => { asked += request.url().includes("/pictures/") ? 1 : 0; });
  await until("some pictures were requested", async () => asked >= 12);
  assert.ok(asked / 3 <= ((Date.now() - begun) / 1000) * 5 + 2, `${asked} in ${Date.now() - begun} ms`);
});

// Documentation shows this picture: docs/internals/testing.md has the command.
test("a picture of the page can be saved", { skip: !process.env.PACELINE_SCREENSHOT }, async () => {
  const shot = await open(browser, demo.url, complaints, { viewport: { width: 1280, height: 1000 }, deviceScaleFactor: 0.65, colorScheme: "light" });
  await until("pictures are there", async () => (await shot.locator("figure[data-seq]").count()) === 3);
  // The charts of steering cover 30 s, and the first seconds include the start of the browser.
  await shot.waitForTimeout(35_000);
  await shot.screenshot({ path: process.env.PACELINE_SCREENSHOT });
  await shot.close();
});

test("invisible pictures are not requested", async () => {
  const small = await open(browser, demo.url, complaints, { viewport: { width: 1400, height: 300 } });
  let asked = 0;
  small.on("request", (request) => { asked += request.url().includes("/pictures/") ? 1 : 0; });
  await small.evaluate(() => window.scrollTo(0, document.body.scrollHeight));
  // Pictures in flight may still arrive; two events later none does.
  for (let event = 0; event < 2; event += 1) {
    const pulse = await small.textContent("#pulse");
    await until("the next event", async () => (await small.textContent("#pulse")) !== pulse);
    if (event === 0) asked = 0;
  }
  assert.equal(asked, 0);
  await small.close();
});

test("figures match ls --json", async () => {
  const published = (nodes) => nodes.find((node) => node.name === "robot").publishers.find((one) => one.tag === "robot/steer").published;
  const shown = async () => {
    const row = page.locator("#publishers tr", { hasText: "robot/steer" });
    return Number((await row.locator("td[data-head=published]").textContent()).replaceAll(" ", ""));
  };
  const first = published(ls(demo, "robot"));
  const between = await until("the page shows the count", async () => {
    const count = await shown();
    return count >= first && count;
  });
  const last = published(ls(demo, "robot"));
  assert.ok(first <= between && between <= last, `${first} ≤ ${between} ≤ ${last}`);
  const operator = ls(demo, "operator").find((node) => node.name === "operator");
  for (const subscription of operator.subscriptions) {
    const told = (await state()).nodes.find((node) => node.name === "operator");
    const same = told.subscriptions.find(({ id }) => id === subscription.id);
    assert.deepEqual([same.asked, same.within_us, same.loss], [subscription.asked, subscription.within_us, subscription.loss]);
    const text = await page.locator(`[data-id="${subscription.id}"] td.requested`).allTextContents();
    assert.ok(text.includes(`≤ ${subscription.within_us / 1000} ms`), text.join("; "));
  }
});

test("requested, granted and delivered values are side by side", async () => {
  const operator = card("operator robot/camera").first();
  const heads = await operator.locator("thead th").allTextContents();
  assert.deepEqual(heads, ["requested", "granted", "delivered"]);
  const rate = () => operator.locator("tbody tr", { hasText: "rate" }).locator("td").allTextContents();
  await until("the request is delivered", async () => {
    const [asked, granted, delivered] = await rate();
    return asked === "5.0 Hz" && granted.startsWith("one per") && /^[45]\.\d Hz$/.test(delivered);
  });
  assert.match(await operator.locator(".note").textContent(), /^contract (kept|broken) now/);
});

test("figures on one page do not contradict each other", async () => {
  /** Converts "5.0 ms" or "1.20 s" to microseconds. */
  const time = (text) => {
    const [, number, unit] = /([\d.]+) (m?s)/.exec(text);
    return Number(number) * (unit === "s" ? 1e6 : 1e3);
  };
  const read = () => page.evaluate(() => {
    const cells = [...document.querySelectorAll(".card")].map((card) => [...card.querySelectorAll("td.delivered")].map((cell) => cell.textContent));
    const notes = [...document.querySelectorAll(".card")].map((card) => [card.querySelector(".badge").textContent, card.querySelector(".note").textContent, card.querySelector(".figures").textContent]);
    const delays = [...document.querySelectorAll("#delay .delay")].map((row) => [row.querySelector(".total").textContent, [...row.querySelectorAll("li")].map((part) => part.textContent)]);
    return { cells, notes, delays, verdict: document.querySelector("#verdict").textContent, empty: document.querySelector("#delay").dataset.empty };
  });
  let compared = 0;
  for (let event = 0; event < 5; event += 1) {
    const pulse = await page.textContent("#pulse");
    await until("the next event", async () => (await page.textContent("#pulse")) !== pulse);
    const { cells, notes, delays, verdict, empty } = await read();
    for (const [, , delay] of cells.filter(([, , delay]) => delay?.includes("max"))) {
      const [mean, max] = delay.split("max");
      assert.ok(time(mean) <= time(max), delay);
      compared += 1;
    }
    for (const [total, parts] of delays) {
      const [all, sum] = [time(total.split(" of ")[0]), parts.reduce((us, part) => us + time(part), 0)];
      // Each figure is rounded to 0.1 ms below 10 ms, and to 1 ms above.
      assert.ok(Math.abs(all - sum) <= (all < 9_950 ? 50 : 500) * (parts.length + 1), `${total}: ${parts.join(" + ")}`);
    }
    for (const [badge, note] of notes.filter(([, note]) => note.startsWith("contract"))) assert.equal(badge === "contract broken", note.startsWith("contract broken"), `${badge}: ${note}`);
    assert.equal(notes.some(([badge]) => badge === "contract broken"), /broken now/.test(verdict), verdict);
    for (const [badge, , figures] of notes.filter(([badge, , figures]) => badge !== "refused" && / of /.test(figures))) {
      const [, delivered, of, lost] = /^([\d ]+) of ([\d ]+) in \d+ s, ([\d ]+) lost/.exec(figures).map((text) => Number(text.replaceAll(" ", "")));
      assert.equal(delivered + lost, of, figures);
      // Both steering and the camera tolerate some losses; the other requests tolerate none.
      if (badge === "as requested") assert.ok(lost <= 0.15 * of, figures);
    }
    if (cells.some(([rate]) => rate.endsWith("Hz") && !rate.startsWith("0.0"))) assert.notEqual(empty, "No samples are being delivered.");
  }
  assert.ok(compared > 0, "some card had a delay");
});

test("cards, API and metrics have the same figures at each instant", async () => {
  const spaced = (count) => count.toLocaleString("en").replaceAll(",", " ");
  const read = () => page.evaluate(async () => {
    const get = async (path) => (await fetch(path)).text();
    const [before, metrics, after] = [await get("/api/v1/state"), await get("/metrics"), await get("/api/v1/state")];
    const cards = Object.fromEntries([...document.querySelectorAll(".card")].map((card) => {
      const cell = (row, column) => [...card.querySelectorAll("tbody tr")][row].querySelectorAll("td")[column].textContent;
      return [card.dataset.id, { badge: card.querySelector(".badge").textContent, figures: card.querySelector(".figures").textContent, rate: cell(0, 2), loss: cell(3, 2) }];
    }));
    return { state: JSON.parse(before), same: before === after, metrics, cards, at: document.documentElement.dataset.at, verdict: document.querySelector("#verdict").textContent };
  });
  let [instants, compared] = [0, 0];
  await until("ten instants are compared", async () => {
    const { state, same, metrics, cards, at, verdict } = await read();
    if (!same || at !== String(state.at_ms)) return false;
    instants += 1;
    assert.equal(verdict.toLowerCase(), state.health.text.toLowerCase());
    for (const { id, health, refusals } of state.nodes.flatMap(({ subscriptions }) => subscriptions)) {
      const card = cards[id];
      if (!card || refusals.length > 0) continue;
      const { requested, delivered, lost, late } = health;
      const metric = (name) => Number(metrics.split("\n").find((line) => line.startsWith(`paceline_subscription_window_${name}_samples{`) && line.includes(`"${id}"`)).split(" ").at(-1));
      assert.deepEqual(["requested", "delivered", "lost", "late"].map(metric), [requested, delivered, lost, late]);
      assert.equal(card.badge, health.label);
      assert.ok(card.figures.startsWith(`${spaced(delivered)} of ${spaced(requested)} in ${Math.round(health.window_us / 1e6)} s, ${spaced(lost)} lost`), card.figures);
      assert.ok(card.loss.startsWith(`${spaced(lost)} lost`), card.loss);
      const rate = health.delivered_hz;
      if (rate !== null) assert.equal(card.rate, `${rate < 9.95 ? rate.toFixed(1) : Math.round(rate)} Hz`);
      compared += 1;
    }
    await new Promise((done) => setTimeout(done, 500));
    return instants >= 10;
  });
  assert.ok(compared >= 20, `${compared}`);
});

test("the card shows the granted path and its reservation on the link", async () => {
  const operator = card("operator robot/camera").first();
  const hop = operator.locator(".path li", { hasText: "robot · thin" });
  await hop.waitFor();
  const { nodes } = await state();
  const robot = nodes.find(({ name }) => name === "robot");
  const id = await operator.getAttribute("data-id");
  const grant = nodes.flatMap(({ reservations }) => reservations).find(({ subscription }) => subscription === id);
  const promised = grant.hops.find(({ link }) => link === "thin");
  const thin = robot.links.find(({ name }) => name === "thin");
  const held = thin.streams.find(({ tag }) => tag === "robot/camera").contract.bits_per_s;
  const told = (await hop.locator("span").allTextContents()).join(" | ");
  const share = Math.round((held / promised.capacity_bits_per_s) * 100);
  assert.ok(told.includes(`(${share} %)`) && told.includes(`≤ ${Math.round(promised.bound_us / 1000)}`), `${told}: ${JSON.stringify(promised)}`);
  const delay = await operator.locator("tbody tr", { hasText: "delay" }).locator("td.granted").textContent();
  assert.match(delay, new RegExp(`^≤ ${Math.round(grant.bound_us / 1000)} ms\nwhole path$`));
  // The link lists each contract; their sum is the reserved rate.
  const rows = page.locator('[data-link="robot thin"] .shares li');
  await until("each contract has a row", async () => (await rows.count()) === thin.streams.filter(({ contract }) => contract).length);
  assert.match(await rows.first().textContent(), /^robot\/\w+, .* → operator.*bit\/s \(\d+ %\)$/);
  const together = thin.streams.reduce((all, { contract }) => all + (contract?.bits_per_s ?? 0), 0);
  assert.equal(together, thin.reserved_bits_per_s);
});

test("invisible sections are updated only after scrolling to them", async () => {
  const small = await open(browser, demo.url, complaints, { viewport: { width: 1400, height: 300 } });
  const shown = () => small.locator("#publishers tbody").textContent();
  const next = async () => {
    const pulse = await small.textContent("#pulse");
    await until("the next event", async () => (await small.textContent("#pulse")) !== pulse);
  };
  await next();
  const first = await shown();
  await next();
  await next();
  assert.equal(await shown(), first);
  await small.locator("#publishers").scrollIntoViewIfNeeded();
  await until("it is the newest", async () => (await shown()) !== first && (await shown()).includes("robot/steer"));
  await small.close();
});

test("the switch floods the thin link while contracted streams continue", async () => {
  const thin = async () => {
    const robot = (await state()).nodes.find((node) => node.name === "robot");
    const link = robot.links.find(({ name }) => name === "thin");
    return { link, of: (tag) => link.streams.find((stream) => stream.tag === tag) };
  };
  const before = await thin();
  const button = page.getByRole("switch", { name: "Flood the thin link" });
  assert.equal(await button.getAttribute("aria-checked"), "false");
  await button.click();
  await until("the link is full and the flood is dropped", async () => {
    const { link, of } = await thin();
    const flood = of("robot/bulk");
    return link.use_bits_per_s > link.capacity_bits_per_s * 0.9 && Object.values(flood?.dropped ?? {}).some((n) => n > 0);
  });
  assert.equal(await button.getAttribute("aria-checked"), "true");
  await card("operator robot/bulk").waitFor();
  await page.locator('[data-link="robot thin"] .use strong', { hasText: /9\d %|100 %/ }).waitFor();
  await page.locator("#drops .who", { hasText: /queue full|expired/ }).waitFor();
  const during = await thin();
  for (const tag of ["robot/steer", "robot/camera"]) {
    const [was, is] = [before.of(tag), during.of(tag)];
    assert.ok(is.contracted && is.sent > was.sent, `${tag} continues`);
    assert.equal(is.contract.bits_per_s, was.contract.bits_per_s, `${tag} keeps its reservation`);
    // A busy machine may delay single samples, but no contracted sample is dropped for the flood.
    assert.ok(is.sent - was.sent >= 0.9 * (is.offered - was.offered) - 2, `${tag}: ${JSON.stringify(is)}`);
  }
  // The consequence is next to the switch.
  await page.locator("#news", { hasText: /^Flood for \d+ s: steering [\d.]+ (µs|ms) → [\d.]+ (µs|ms), longest [\d.]+ (µs|ms); .*\d of \d+.* lost.*; bulk [\d.]+ Hz of [\d.]+ Hz$/ }).waitFor();
  assert.match(await page.locator("#cards h3").first().textContent(), /operator robot\/bulk/, "what changed comes first");
  await page.locator("#versus figcaption", { hasText: /longest [\d.]+ s in \d+ s/ }).waitFor();
  await shoot("flood", demo.url, async (shot) => (await shot.textContent("#news")).startsWith("Flood for ") && /longest [\d.]+ s in/.test(await shot.textContent("#versus")));
  await button.click();
  await card("operator robot/bulk").waitFor({ state: "detached" });
});

test("charts begin with the history of the server", async () => {
  const { subscriptions, links } = await (await fetch(`${demo.url}api/v1/history`)).json();
  const steer = (await state()).nodes.flatMap((node) => node.subscriptions).find(({ pattern }) => pattern === "robot/steer");
  const past = subscriptions[steer.id];
  assert.ok(past.mean_us.length > 5 && past.mean_us.length === past.max_us.length, JSON.stringify(past));
  assert.ok(past.rate_millihertz.some((rate) => rate > 50_000), JSON.stringify(past.rate_millihertz));
  assert.ok(Object.keys(links).some((name) => name.endsWith(" thin")));
  const ranges = page.getByRole("group", { name: "Time range of the charts" }).getByRole("button");
  await ranges.last().click();
  assert.deepEqual(await ranges.evaluateAll((all) => all.map((one) => one.getAttribute("aria-pressed"))), ["false", "true"]);
  await ranges.first().click();
});

test("sliders try a change and make it", async () => {
  const operator = page.locator(".card", { has: page.locator("h3", { hasText: "operator robot/camera" }) }).first();
  const id = await operator.getAttribute("data-id");
  const asked = async () => (await state()).nodes.flatMap((node) => node.subscriptions).find((sub) => sub.id === id).asked;
  await operator.locator("summary").click();
  const slider = operator.getByRole("slider", { name: "rate of operator robot/camera" });
  const answer = operator.locator(".answer");
  await until("the slider shows the request", async () => (await operator.locator("output").first().textContent()) === "≤ 5.0 Hz");
  // Moving asks only. The page does not move a slider in use.
  await slider.focus();
  await slider.evaluate((input) => { input.value = 2; input.dispatchEvent(new Event("input")); });
  await answer.filter({ hasText: /^with --max-hz 2: would be granted within .* over thin of robot \(2 Mbit\/s\)$/ }).waitFor();
  assert.equal((await asked()).max_hz, 5);
  await slider.evaluate((input) => input.dispatchEvent(new Event("change")));
  await answer.filter({ hasText: /^changed to --max-hz 2: granted within / }).waitFor();
  await until("the state has it", async () => (await asked()).max_hz === 2);
  await slider.evaluate((input) => { input.value = 4; input.dispatchEvent(new Event("change")); });
  await until("the former rate is back", async () => (await asked()).max_hz === 5);
  await operator.locator("summary").click();
});

test("an excessive request is refused with an offer", async () => {
  const button = page.getByRole("switch", { name: "Request too much" });
  await button.focus();
  await page.keyboard.press("Space");
  const refusal = page.locator("#refusals .refusal");
  await refusal.waitFor();
  assert.match(await refusal.locator(".reason").textContent(), /link 'thin' of 'robot' can't carry it: it needs .* are left/);
  assert.match(await refusal.locator(".offer").textContent(), /^try --/);
  await page.locator("#verdict", { hasText: "1 subscription is refused: operator robot/camera" }).waitFor();
  await page.locator("#news", { hasText: /^operator robot\/camera refused before the first byte/ }).waitFor();
  await page.locator("#news-refusals").getByRole("button", { name: /^Take --/ }).first().waitFor();
  await shoot("refusal", demo.url, async (shot) => (await shot.locator("#news-refusals .refusal").count()) === 1);
  await page.keyboard.press("Enter");
  await refusal.waitFor({ state: "detached" });
});

test("a button takes the offer of a refusal", async () => {
  const button = page.getByRole("switch", { name: "Request too much" });
  await button.click();
  const refusal = page.locator("#refusals .refusal");
  await refusal.waitFor();
  const refused = (await state()).nodes.flatMap((node) => node.subscriptions).filter((sub) => sub.refusals.length > 0);
  ended.push(...refused.map((sub) => sub.id));
  const take = refusal.getByRole("button", { name: /^Take --/ }).first();
  await take.click();
  await refusal.waitFor({ state: "detached" });
  const subscriptions = await state().then((now) => now.nodes.flatMap((node) => node.subscriptions));
  assert.ok(subscriptions.every((sub) => sub.refusals.length === 0));
  await button.click();
});

test("every control is reachable by keyboard, in order", async () => {
  const fresh = await open(browser, demo.url, complaints);
  const reached = [];
  for (let press = 0; press < 16; press += 1) {
    await fresh.keyboard.press("Tab");
    reached.push(await fresh.evaluate(() => {
      const at = document.activeElement;
      const outline = getComputedStyle(at).outlineStyle;
      return `${at.dataset.switch || at.getAttribute("aria-label") || at.getAttribute("href") || at.tagName} ${outline}`;
    }));
  }
  const names = reached.join(" | ");
  assert.match(names, /#subscriptions solid.*flood solid.*greed solid.*(BUTTON solid.*){2}(SUMMARY solid.*){4}Targets of links solid.*metrics solid/, names);
  await fresh.close();
});

for (const [name, width] of [["a phone's width", 360], ["a tablet's width", 768]]) {
  test(`${name}: nothing is wider than the screen`, async () => {
    const phone = await open(browser, demo.url, complaints, { viewport: { width, height: 740 }, hasTouch: true });
    const wide = await phone.evaluate(() => [...document.querySelectorAll("body *")]
      .filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest(".scroll, .unseen"))
      .map((one) => one.className || one.tagName));
    assert.deepEqual(wide, []);
    assert.ok(await phone.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    const switches = await phone.locator("[role=switch]").evaluateAll((all) => all.map((one) => one.getBoundingClientRect().height));
    assert.ok(switches.every((height) => height >= 44), "large enough for a finger");
    await phone.close();
  });
}

for (const colorScheme of ["dark", "light"]) {
  test(`${colorScheme}: text has enough contrast`, async () => {
    const themed = await open(browser, demo.url, complaints, { colorScheme });
    const poor = await themed.evaluate(contrast);
    assert.deepEqual(poor, []);
    await themed.close();
  });
}

/** Returns the texts with a contrast below 4.5 : 1 against their background. Runs in the page. */
function contrast() {
  const rgb = (text) => (text.match(/[\d.]+/g) ?? []).map(Number);
  const light = (colour) => {
    const [r, g, b] = colour.map((one) => one / 255).map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = rgb(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour.slice(0, 3);
    }
    return [255, 255, 255];
  };
  const own = (element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  return [...document.querySelectorAll("body *")].filter((one) => own(one) && one.checkVisibility()).flatMap((one) => {
    const style = getComputedStyle(one);
    const [a, b] = [light(rgb(one instanceof SVGElement ? style.fill : style.color)), light(behind(one))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    return ratio < 4.5 ? [`${one.textContent}: ${ratio.toFixed(2)}`] : [];
  });
}

test("the layout is stable when figures change", async () => {
  const steady = await open(browser, demo.url, complaints);
  await until("pictures and charts are shown", async () => (await steady.locator("figure[data-seq]").count()) === 3);
  await steady.evaluate(() => {
    window.shifts = 0;
    window.moved = new Set();
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) {
        window.shifts += entry.value;
        for (const { node } of entry.sources) window.moved.add(node?.parentElement?.className || node?.nodeName);
      }
    }).observe({ type: "layout-shift" });
  });
  for (let event = 0; event < 5; event += 1) {
    const pulse = await steady.textContent("#pulse");
    await until("the next event", async () => (await steady.textContent("#pulse")) !== pulse);
  }
  const { shifts, moved } = await steady.evaluate(() => ({ shifts: window.shifts, moved: [...window.moved] }));
  assert.ok(shifts < 0.02, `layout shift ${shifts}: ${moved.join(", ")}`);
  await steady.close();
});

test("the tour is on the first screen", async () => {
  await shoot("tour", demo.url, async (shot) => (await shot.textContent("#news")).startsWith("Steering takes ") && (await shot.locator("#versus canvas").count()) === 2);
});

test("a video in H.264 has pictures", async (t) => {
  const node = await startNode();
  const film = await open(browser, node.url, complaints);
  try {
    const can = async () => "VideoDecoder" in globalThis && (await VideoDecoder.isConfigSupported({ codec: "avc1.42E01E" })).supported;
    if (!(await film.evaluate(can))) return t.skip("this browser does not decode H.264");
    node.run(["pub", "robot/film", "--file", "../xtask/src/film.264", "--loop"]);
    node.run(["sub", "robot/film", "--json"]);
    const figure = film.locator(".card figure[data-seq]");
    await figure.waitFor();
    assert.match(await figure.locator("figcaption").textContent(), /^#\d+ · 160×120 · .* kB · .* old$/);
    const image = figure.locator("img");
    const seen = await image.evaluate((img) => {
      const canvas = new OffscreenCanvas(img.naturalWidth, img.naturalHeight);
      const context = canvas.getContext("2d");
      context.drawImage(img, 0, 0);
      return { size: [img.naturalWidth, img.naturalHeight], colours: new Set(context.getImageData(0, 0, canvas.width, canvas.height).data).size };
    });
    assert.deepEqual(seen.size, [160, 120]);
    assert.ok(seen.colours > 10, "it is not one grey area");
  } finally {
    await film.close();
    await node.end();
  }
});

test("an empty node shows commands, and a pattern its tags with values", async () => {
  const node = await startNode();
  try {
    await shoot("empty", node.url, async (shot) => (await shot.locator("#commands code").count()) === 3);
    const empty = await open(browser, node.url, complaints, { viewport: DESKTOP });
    assert.equal(await empty.locator("#story").isVisible(), false, "only the demo has a story");
    const commands = await empty.locator("#commands code").allTextContents();
    assert.match(commands.join("; "), /^paceline pub a\/b .*; paceline sub a\/b .*; paceline top$/);
    node.run(["pub", "drone/1/state", '{"battery": 71}', "--hz", "5"]);
    node.run(["pub", "drone/2/state", "landed", "--hz", "5"]);
    node.run(["sub", "drone/**"]);
    const [first, second] = [/^drone\/1\/state.*Hz\{"battery": 71\}$/, /^drone\/2\/state.*landed$/];
    await empty.locator("#start").waitFor({ state: "hidden" });
    const rows = empty.locator(".card .values li");
    await until("both tags have values", async () => {
      const told = await rows.allTextContents();
      return told.length === 2 && first.test(told[0]) && second.test(told[1]);
    });
    const names = await until("the nodes are named", async () => {
      const found = await empty.locator("#topology .name").allTextContents();
      return found.includes("sub-drone") && found;
    });
    assert.deepEqual(["pub-state", "pub-state-2", "sub-drone"].filter((name) => !names.includes(name)), []);
    await empty.close();
  } finally {
    await node.end();
  }
});

test("the page of the town shows three views, and its slider sets the capacity", async () => {
  const town = await startDemo("world");
  try {
    const shown = await open(browser, town.url, complaints, { viewport: DESKTOP });
    assert.equal(await shown.locator("#views canvas").count(), 3);
    const world = new URL("/api/v1/world", town.url);
    const capacity = async () => (await (await fetch(world)).json()).capacity;
    assert.equal(await capacity(), "256kbit");
    await shown.locator("dd", { hasText: /^granted$/ }).waitFor();
    await shown.locator("#slider").focus();
    await shown.keyboard.press("ArrowLeft");
    await until("the slider set the capacity", async () => (await capacity()) === "128kbit");
    await shown.locator("#capacity", { hasText: /^128kbit$/ }).waitFor();
    const drawn = () => shown.locator("canvas").evaluateAll((all) => all.every((one) => one.width > 0 && one.getContext("2d").getImageData(0, 0, one.width, one.height).data.some((byte) => byte > 0)));
    await until("every view is drawn", drawn);
    const wrong = await fetch(world, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ capacity: "x" }) });
    const { error } = await wrong.json();
    assert.deepEqual([wrong.status, /^capacity 'x' must be a number with a unit/.test(error), await capacity()], [400, true, "128kbit"], error);
    await shown.close();
  } finally {
    await town.end();
  }
});

test("the page logged no errors", () => {
  const late = (complaint) => ended.some((id) => complaint.includes(`404 (Not Found)`) && complaint.includes(`/api/v1/pictures/${id}`));
  assert.deepEqual(complaints.filter((complaint) => !late(complaint)), []);
});

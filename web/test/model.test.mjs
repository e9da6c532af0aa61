// Tests of the page's data model, without a browser.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createServer } from "vite";

let server, Store, verdict, note, badge, edges;

before(async () => {
  server = await createServer({ server: { middlewareMode: true }, appType: "custom", logLevel: "error" });
  const load = (name) => server.ssrLoadModule(`/src/${name}.ts`);
  ({ Store } = await load("store"));
  ({ verdict } = await load("verdict"));
  ({ note, badge } = await load("note"));
  ({ edges } = await load("edges"));
});

after(() => server.close());

const [ROBOT, RELAY, OPERATOR] = ["a", "b", "c"];
const asked = (more = {}) => ({ form: "all", every: null, max_hz: null, width: null, height: null, ...more });

/** A stream of 100 samples per second, after `second` seconds. */
const stream = (second, more = {}) => ({
  publisher: `${ROBOT}.1`, tag: "steer", asked: asked(), hop: OPERATOR, contracted: true,
  contract: { period_us: 10_000, deadline_us: 15_000, loss: "5/100", bits_per_s: 100_000 },
  ages: { entered: second * 100, entered_us: second * 100 * 1_000, left_us: second * 100 * 4_000 },
  offered: second * 100, sent: second * 100, bytes: second * 6_400, late: 0, violations: 0, broken_ago_us: null,
  too_early: 0, too_long: 0, dropped: {}, ...more,
});

const link = (streams, more = {}) => ({
  name: "thin", at_us: 0, capacity_bits_per_s: 2e6, use_bits_per_s: 1e6, reserved_bits_per_s: 100_000, round_trip_us: 100, delay_us: 120, jitter_us: 20, frames_dropped: 0, loss: 0,
  hops: [OPERATOR], neighbours: [{ id: OPERATOR, wire_bytes: 0, use_bits_per_s: 1e6 }], wire_bytes: 0, frames: 0, streams,
  closed: { offered: 0, sent: 0, late: 0, dropped: {} }, classes: [], muted: [], mended: { repeated: 0, repeated_bytes: 0, given_up: 0 }, ...more,
});

const node = (second, id, name, more = {}) => ({
  id, name, at_us: second * 1e6, publishers: [], subscriptions: [], buffers: [], links: [], reservations: [], processor: null, dropped: {}, ...more,
});

const publisher = { id: `${ROBOT}.1`, tag: "steer", kind: "data", encoding: "application/octet-stream", period_us: 10_000, published: 0, rate_hz: 100, matching: true };

const subscription = (second, more = {}) => ({
  id: `${OPERATOR}.0`, pattern: "steer", asked: asked(), within_us: 20_000, loss: "5/100", proxy: "publisher", publishers: [`${ROBOT}.1`],
  refusals: [], delivered: second * 100, bytes: second * 6_400, rate_hz: 100, late: 0, age_max_us: 9_000, age_mean_us: 5_000,
  age_sum_us: second * 100 * 5_000, dropped: {}, ...more,
});

/**
 * Returns the views of a robot, a thin link and an operator, one for each second; `shape` modifies
 * the readings.
 */
function views(seconds, shape = {}) {
  const store = new Store();
  return Array.from({ length: seconds + 1 }, (_, second) => taken(store, second, shape));
}

function taken(store, second, shape = {}) {
  const streams = [stream(second, shape.stream?.(second))];
  const nodes = [
    node(second, ROBOT, "robot", { publishers: [publisher], links: [link(streams, shape.link?.(second))] }),
    node(second, OPERATOR, "operator", { subscriptions: [subscription(second, shape.sub?.(second))] }),
  ];
  const reading = { schema: 1, at_ms: second * 1_000, known: [], switches: [], nodes };
  return store.take(shape.state?.(reading, second) ?? reading);
}

test("charts contain each second of the server's history once", () => {
  const history = (seconds) => {
    const values = Array.from({ length: seconds }, (_, second) => second);
    const link = { use_bits_per_s: values, reserved_bits_per_s: values, delay_us: values, jitter_us: values, loss_ppm: values };
    return { subscriptions: { [`${OPERATOR}.0`]: { mean_us: values, max_us: values, rate_millihertz: values } }, links: { [`${ROBOT} thin`]: link } };
  };
  const lengths = ({ subs, links }) => [subs[0].ages.length, links[0].past.length];
  const early = new Store();
  early.remember(history(5));
  assert.deepEqual(lengths(taken(early, 5)), [5, 5], "the history contains the first reading");
  assert.deepEqual(lengths(taken(early, 6)), [6, 6]);
  const late = new Store();
  taken(late, 598);
  const view = taken(late, 599);
  assert.deepEqual(lengths(view), [1, 1]);
  late.remember(history(600));
  const last = { use: 599, reserved: 599, delay: 599, jitter: 599, loss: 0.0599 };
  assert.deepEqual(view.links[0].past.at(-1), last, "it replaces the readings");
  const next = taken(late, 600);
  assert.deepEqual(lengths(next), [600, 600]);
  assert.deepEqual([next.subs[0].ages[0], next.subs[0].ages.at(-1)], [{ mean: 1, max: 1 }, { mean: 5_000, max: 9_000 }]);
});

test("a recovered contract reads as kept now with past violations", () => {
  const view = views(3, { stream: () => ({ violations: 5, broken_ago_us: 42e6 }) }).at(-1);
  assert.equal(note(view.subs[0]), "contract kept now · 5 windows of 100 broken since the start, the last 42 s ago");
  assert.equal(badge(view.subs[0]), "as requested");
  assert.deepEqual(verdict(view), {
    text: "the subscription is served as requested; links broke 5 contract windows since the start, the last 42 s ago",
    state: "good",
  });
});

test("a contract that is broken now is never shown as kept", () => {
  // A best-effort subscription that gets less must not turn the summary to "every contract is kept".
  const best = subscription(0, { id: `${OPERATOR}.1`, pattern: "bulk", within_us: null, loss: null, rate_hz: 1, delivered: 0 });
  const state = (reading) => {
    reading.nodes[1].subscriptions.push(best);
    return reading;
  };
  const view = views(3, { state, stream: () => ({ violations: 5, broken_ago_us: 3e6 }) }).at(-1);
  assert.deepEqual(view.subs.map(({ health }) => health), ["bad", "warm"]);
  assert.equal(badge(view.subs[0]), "contract broken");
  assert.match(note(view.subs[0]), /^contract broken now · 5 windows of 100 broken since the start, the last 3 s ago$/);
  const told = verdict(view);
  assert.equal(told.state, "bad");
  assert.match(told.text, /^a contract is broken now: operator steer; links broke 5 contract windows since the start/);
  const kept = views(3, { state }).at(-1);
  assert.equal(verdict(kept).text, "every contract is kept now; 1 best-effort subscription gets less than requested");
});

test("a violation counts as current for one window if that exceeds ten seconds", () => {
  const slow = { period_us: 1e6, deadline_us: 1e6, loss: "5/100", bits_per_s: 1_000 };
  const at = (ago) => views(1, { stream: () => ({ contract: slow, violations: 1, broken_ago_us: ago }) }).at(-1).subs[0].broken.now;
  assert.deepEqual([at(30e6), at(99e6), at(101e6)], [true, true, false]);
});

test("only misses beyond every window's tolerance break a contract", () => {
  const lost = (each) => views(4, { sub: (second) => ({ delivered: second * (100 - each), dropped: { link_loss: second * each } }) }).at(-1).subs[0];
  assert.equal(lost(5).health, "good");
  assert.equal(lost(20).health, "bad");
  assert.equal(note(lost(20)), "contract broken now · no window of 100 broken since the start");
  const slow = (second) => ({ loss: "1/10", delivered: second * 100 - Math.min(second, 1), dropped: { link_loss: Math.min(second, 1) } });
  assert.equal(views(1, { sub: slow }).at(-1).subs[0].health, "good", "1 of 10 may miss");
  const none = (second) => ({ loss: null, dropped: second > 1 ? { deadline_missed: 1 } : {}, late: second > 1 ? 1 : 0 });
  assert.equal(views(2, { sub: none }).at(-1).subs[0].health, "bad", "none may miss");
});

test("violations of a stricter link contract within the requested tolerance break no contract", () => {
  const strict = { period_us: 10_000, deadline_us: 15_000, loss: "0/1", bits_per_s: 100_000 };
  const lost = (each) => views(4, { stream: (second) => ({ contract: strict, violations: second * each, broken_ago_us: second * each ? 1e6 : null, dropped: { deadline_missed: second * each } }), sub: (second) => ({ delivered: second * (100 - each) }) }).at(-1);
  const few = lost(4);
  assert.equal(badge(few.subs[0]), "as requested");
  assert.equal(note(few.subs[0]), "contract kept now · 16 samples late or lost on links since the start, the last 1 s ago");
  assert.equal(verdict(few).text, "the subscription is served as requested; links broke 16 contract windows since the start, the last 1 s ago");
  assert.equal(badge(lost(20).subs[0]), "contract broken", "drops on links count as misses");
});

test("drops on a path count once the path is known", () => {
  const state = (reading, second) => {
    if (second < 2) reading.nodes[0].links = [];
    return reading;
  };
  const view = views(3, { state, stream: () => ({ dropped: { queue_full: 900 } }) }).at(-1);
  assert.equal(badge(view.subs[0]), "as requested");
});

test("a sample dropped for lateness counts once", () => {
  const view = views(2, { sub: (second) => ({ late: second * 5, dropped: { deadline_missed: second * 5 } }) }).at(-1);
  assert.deepEqual(view.subs[0].history.map(({ missed }) => missed), [0, 5, 10]);
});

test("the mean age is at most the maximum of the same samples", () => {
  // A slow reader: most samples are subtracted from the delivered ones, together with their ages.
  const sub = (second) => ({ delivered: second, age_sum_us: second * 400_000, age_mean_us: 5_000, age_max_us: 9_000 });
  for (const { subs } of views(3, { sub })) {
    assert.deepEqual(subs[0].age, { mean: 5_000, max: 9_000 });
    for (const { mean, max } of subs[0].ages) assert.ok(mean <= max);
  }
});

test("the parts of a delay add up to the delay on the card", () => {
  const [, , view] = views(2, { sub: () => ({ age_mean_us: 3_000, age_max_us: 3_500 }) });
  const { parts, age } = view.subs[0];
  assert.equal(parts.reduce((all, { us }) => all + us, 0), age.mean);
  assert.ok(parts.every(({ us }) => us >= 0), "even if the link's counts were read at another instant");
  const whole = views(2).at(-1).subs[0].parts.map(({ us }) => us);
  assert.deepEqual(whole, [1_000, 3_000, 1_000]);
});

test("streams with one sample per two seconds always show a delay", () => {
  const half = (second) => Math.floor(second / 2);
  const slow = { period_us: 2e6, deadline_us: 1e6, loss: "0/1", bits_per_s: 1_000 };
  const all = views(8, {
    stream: (second) => ({ contract: slow, sent: half(second), offered: half(second), ages: { entered: Math.floor((second + 1) / 2), entered_us: 0, left_us: half(second) * 4_000 } }),
    sub: (second) => ({ delivered: half(second), rate_hz: (second % 2 ? 0 : 1), age_mean_us: second % 2 ? null : 5_000, age_max_us: second % 2 ? 0 : 9_000 }),
  });
  for (const { subs } of all.slice(3)) {
    assert.deepEqual(subs[0].age, { mean: 5_000, max: 9_000 });
    assert.ok(subs[0].parts.length === 3, JSON.stringify(subs[0].parts));
  }
});

test("streams to nodes that are not displayed have a delay and a verdict", () => {
  const state = (reading) => ({ ...reading, nodes: reading.nodes.slice(0, 1), known: [{ id: OPERATOR, name: "operator" }] });
  const view = views(2, { state }).at(-1);
  assert.equal(view.subs.length, 0);
  assert.deepEqual(view.passing.map(({ total, parts }) => [total, parts.map(({ us }) => us)]), [[4_000, [1_000, 3_000]]]);
  assert.equal(verdict(view).text, "1 stream leads to other nodes; every contract is kept now");
  const lost = views(2, { state, stream: () => ({ violations: 1, broken_ago_us: 0 }) }).at(-1);
  assert.match(verdict(lost).text, /^a contract is broken now: steer on robot thin; links broke 1 contract window since the start, the last 0 s ago$/);
});

test("a publisher on a node that is not displayed is still counted", () => {
  const state = (reading) => ({ ...reading, nodes: reading.nodes.slice(1), known: [{ id: ROBOT, name: "robot" }] });
  const [sub] = views(3, { state }).at(-1).subs;
  assert.equal(badge(sub), "as requested");
  assert.equal(sub.parts.at(-1).name, "path to this node");
  const [silent] = views(12, { state, sub: () => ({ delivered: 7, rate_hz: 0, age_mean_us: null }) }).at(-1).subs;
  assert.equal(badge(silent), "no samples");
});

test("a best-effort subscription on a contracted stream has no contract", () => {
  const view = views(2, { stream: () => ({ violations: 1, broken_ago_us: 0 }), sub: () => ({ within_us: null, loss: null }) }).at(-1);
  assert.equal(note(view.subs[0]), "best effort, on a stream reserved for other subscriptions");
  assert.equal(badge(view.subs[0]), "as requested");
  assert.match(verdict(view).text, /^a contract is broken now: steer on robot thin;/);
});

test("each edge shows only the traffic between its two nodes", () => {
  const relay = { node: { id: RELAY }, link: link([stream(1), stream(1, { hop: "d" })], {
    name: "hub", hops: [ROBOT, OPERATOR, "d"], use_bits_per_s: 1.9e6,
    neighbours: [{ id: OPERATOR, use_bits_per_s: 1.5e6 }, { id: "d", use_bits_per_s: 3e5 }, { id: ROBOT, use_bits_per_s: 1e5 }],
  }) };
  const robot = { node: { id: ROBOT }, link: link([stream(1, { hop: RELAY })], { hops: [RELAY], neighbours: [{ id: RELAY, use_bits_per_s: 8e5 }], use_bits_per_s: 8e5 }) };
  const drawn = edges([relay, robot]).map(({ from, to, use, linkUse, neighbours, streams }) => [from, to, use, linkUse, neighbours, streams]);
  assert.deepEqual(drawn, [
    // Towards the relay, in the direction of the stream.
    [ROBOT, RELAY, 8e5, 8e5, 1, 1],
    [RELAY, OPERATOR, 1.5e6, 1.9e6, 3, 1],
    [RELAY, "d", 3e5, 1.9e6, 3, 1],
  ]);
});

test("a stream and its replacement are merged", () => {
  const double = (reading, second) => {
    reading.nodes[0].links[0].streams.push(stream(0, { sent: second, violations: 1, broken_ago_us: 50e6, dropped: { queue_full: 2 } }));
    return reading;
  };
  const view = views(2, { state: double }).at(-1);
  assert.equal(view.legs.length, 1);
  assert.deepEqual([view.legs[0].stream.sent, view.legs[0].stream.dropped, view.subs[0].broken.windows], [202, { queue_full: 2 }, 1]);
  assert.equal(view.links[0].shares.length, 1);
});

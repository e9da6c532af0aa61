// Tests of the page's data model, without a browser.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createServer } from "vite";

let server, Store, figures, reason, note, badge, edges;

before(async () => {
  server = await createServer({ server: { middlewareMode: true }, appType: "custom", logLevel: "error" });
  const load = (name) => server.ssrLoadModule(`/src/${name}.ts`);
  ({ Store } = await load("store"));
  ({ figures, reason, note, badge } = await load("note"));
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

/** The result that the server computes. */
const health = (more = {}) => ({
  state: "served", label: "as requested", window_us: 10e6, requested: 1_000, delivered: 1_000, lost: 0, lost_before: 0, late: 0,
  requested_hz: 100, delivered_hz: 100, reason: null, broken_seconds: 0, broken_ago_us: null, ...more,
});

const subscription = (second, more = {}) => ({
  health: health(),
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

test("a card shows the result of the server and computes none of its own", () => {
  const shown = (more) => views(1, { sub: () => ({ health: health(more) }) }).at(-1).subs[0];
  const good = shown({});
  assert.deepEqual([badge(good), good.health, figures(good), reason(good)], ["as requested", "good", "1 000 of 1 000 in 10 s, 0 lost", ""]);
  assert.equal(note(good), "contract kept now");
  const why = "179 of 233 lost on link 'thin' of 'robot' (superseded)";
  const starved = shown({ state: "short", label: "less than requested", requested: 233, delivered: 54, lost: 179, reason: why });
  assert.deepEqual([badge(starved), starved.health, figures(starved), reason(starved)], ["less than requested", "warm", "54 of 233 in 10 s, 179 lost", why]);
  const broken = shown({ state: "broken", label: "contract broken", late: 7, broken_seconds: 12, broken_ago_us: 0 });
  assert.deepEqual([badge(broken), broken.health], ["contract broken", "bad"]);
  assert.equal(note(broken), "contract broken now · broken for 12 s since the start, the last 0 s ago");
  // Violations of a link's own target are no violation of the request.
  const stricter = views(3, { stream: () => ({ violations: 817, broken_ago_us: 1e6 }) }).at(-1).subs[0];
  assert.deepEqual([badge(stricter), note(stricter)], ["as requested", "contract kept now"]);
  const best = views(2, { sub: () => ({ within_us: null, loss: null }) }).at(-1).subs[0];
  assert.equal(note(best), "best effort, on a stream reserved for other subscriptions");
});

test("charts contain each second of the server's history once", () => {
  const history = (seconds) => {
    const values = Array.from({ length: seconds }, (_, second) => second);
    const link = { use_bits_per_s: values, reserved_bits_per_s: values, capacity_bits_per_s: values, delay_us: values, jitter_us: values, loss_ppm: values };
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
  const last = { use: 599, reserved: 599, capacity: 599, delay: 599, jitter: 599, loss: 0.0599 };
  assert.deepEqual(view.links[0].past.at(-1), last, "it replaces the readings");
  const next = taken(late, 600);
  assert.deepEqual(lengths(next), [600, 600]);
  assert.deepEqual([next.subs[0].ages[0], next.subs[0].ages.at(-1)], [{ mean: 1, max: 1 }, { mean: 5_000, max: 9_000 }]);
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
  assert.deepEqual([view.legs[0].stream.sent, view.legs[0].stream.dropped, view.legs[0].stream.violations], [202, { queue_full: 2 }, 1]);
  assert.equal(view.links[0].shares.length, 1);
});

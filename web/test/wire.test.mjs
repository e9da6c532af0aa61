// The parts of samples, put together in any order, against a model that knows which messages arrived.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createServer } from "vite";

let server, Assembler, writeAck, writeSample;

before(async () => {
  server = await createServer({ server: { middlewareMode: true }, appType: "custom", logLevel: "error" });
  ({ Assembler, writeAck, writeSample } = await server.ssrLoadModule("/client/wire.ts"));
});

after(() => server.close());

/** A generator of numbers from 0 on below `below`, the same for the same seed. */
function random(seed) {
  let state = seed >>> 0 || 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

/** Writes a message with one part of a sample. */
function part(number, stream, sample, payload, from, to) {
  const bytes = [];
  const u32 = (value) => bytes.push(...new Uint8Array(new Uint32Array([value]).buffer));
  const f64 = (value) => bytes.push(...new Uint8Array(new Float64Array([value]).buffer));
  u32(number);
  f64(5e6);
  bytes.push(from === 0 ? 1 : 2);
  u32(stream);
  u32(sample);
  bytes.push(to === payload.length ? 1 : 0);
  if (from === 0) {
    [5e6, 2e6].forEach(f64);
    bytes.push(0, ...new Uint8Array(new BigUint64Array([BigInt(sample)]).buffer), 4, ...Buffer.from("text"));
    u32(payload.length);
  } else {
    u32(from);
  }
  u32(to - from);
  bytes.push(...payload.subarray(from, to), ...new Array(number % 3).fill(0));
  return new Uint8Array(bytes).buffer;
}

test("any order, repetition and loss of parts gives each whole sample once, in order", () => {
  for (let seed = 1; seed <= 200; seed += 1) {
    const next = random(seed);
    const messages = [];
    const whole = new Set();
    for (let sample = 0; sample < 30; sample += 1) {
      const payload = Uint8Array.from({ length: next(40) }, () => next(256));
      const cuts = [...new Set([0, ...Array.from({ length: next(4) }, () => next(payload.length + 1)), payload.length])].sort((a, b) => a - b);
      const parts = cuts.length === 1 ? [[0, 0]] : cuts.slice(1).map((to, index) => [cuts[index], to]);
      const lost = next(10) === 0;
      if (!lost) whole.add(sample);
      parts.forEach(([from, to], index) => {
        if (lost && index === parts.length - 1) return;
        const message = part(messages.length, 7, sample, payload, from, to);
        // It comes after its first part at the latest so many messages later, and sometimes twice.
        for (let copy = next(5) === 0 ? 2 : 1; copy > 0; copy -= 1) messages.push({ at: sample * 3 + index + next(8) + (index > 0 ? 8 : 0), message });
      });
    }
    messages.sort((a, b) => a.at - b.at);
    let time = 0;
    const assembler = new Assembler(false, () => time);
    assembler.hold(7, 400);
    const found = [];
    for (const { message } of messages) assembler.take(message, (sample) => found.push(sample.seq));
    time = 399;
    assembler.release(() => assert.fail(`seed ${seed}: too early`));
    time = 400;
    assembler.release((sample) => found.push(sample.seq));
    assert.deepEqual(found, [...found].sort((a, b) => a - b), `seed ${seed}: in order`);
    assert.equal(new Set(found).size, found.length, `seed ${seed}: once`);
    const first = found[0];
    // A sample before the first complete one belongs to the time before the stream.
    assert.deepEqual(found, [...whole].filter((seq) => seq >= first), `seed ${seed}`);
  }
});

test("in an ordered carrier samples pass at once, and what is malformed is an error", () => {
  const assembler = new Assembler(true);
  const found = [];
  const payload = Uint8Array.from([1, 2, 3, 4]);
  assert.equal(assembler.take(part(9, 1, 5, payload, 0, 2), (sample) => found.push(sample)), 9);
  assert.equal(found.length, 0);
  assembler.take(part(10, 1, 5, payload, 2, 4), (sample) => found.push(sample));
  assert.deepEqual([...found[0].payload], [1, 2, 3, 4]);
  const message = part(11, 1, 6, payload, 0, 4);
  for (let end = 12; end < message.byteLength - 3; end += 1) {
    const cut = message.slice(0, end);
    try {
      new Assembler(true).take(cut, () => assert.fail(`a sample of ${end} bytes`));
    } catch (error) {
      assert.ok(error instanceof RangeError, String(error));
    }
  }
});

test("acknowledgements and samples have the bytes of the reference", () => {
  assert.deepEqual([...new Uint8Array(writeAck([1, 258]))], [1, 2, 0, 1, 0, 0, 0, 2, 1, 0, 0]);
  const sample = new Uint8Array(writeSample(3, "audio", { published: 1, error: 0, captured: 2 }, Uint8Array.from([9])));
  assert.deepEqual([sample[0], sample[1], sample[29], sample[30], sample.length], [2, 3, 3, 9, 31]);
});

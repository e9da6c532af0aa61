// A relay for UDP on this host that delays and loses packets.

import { createSocket } from "node:dgram";
import { once } from "node:events";

/**
 * Starts a relay to a port of this host. Each way takes `delayMs`, and loses one packet in `oneIn` (0 for none), chosen by a
 * generator that always begins alike. The way to the page carries `bitsPerS`, with a queue of `queueMs`. Returns its port, its counts, and a function that ends it.
 */
export async function startRelay(port, { delayMs = 0, oneIn = 0, bitsPerS = Infinity, queueMs = 100 }) {
  const counts = { passed: 0, lost: 0 };
  const door = createSocket("udp4");
  const behind = new Map();
  let state = 1;
  const loses = () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return oneIn > 0 && (state >>> 0) % oneIn === 0;
  };
  let isOpen = true;
  let freeAt = 0;
  const pass = (bytes, send) => {
    const now = performance.now();
    freeAt = Math.max(freeAt, now);
    if (loses() || freeAt - now > queueMs) {
      counts.lost += 1;
      return;
    }
    counts.passed += 1;
    freeAt += ((bytes + 28) * 8000) / bitsPerS;
    setTimeout(() => { if (isOpen) send(); }, freeAt - now + delayMs);
  };
  door.on("message", (packet, { address, port: from }) => {
    let socket = behind.get(from);
    if (!socket) {
      socket = createSocket("udp4");
      socket.on("message", (answer) => pass(answer.length, () => door.send(answer, from, address)));
      socket.bind(0, "127.0.0.1");
      behind.set(from, socket);
    }
    pass(0, () => socket.send(packet, port, "127.0.0.1"));
  });
  door.bind(0, "127.0.0.1");
  await once(door, "listening");
  return {
    port: door.address().port,
    counts,
    end() {
      isOpen = false;
      [door, ...behind.values()].forEach((socket) => socket.close());
    },
  };
}

/** Lets a page reach WebTransport of its node through a relay. Returns the relay, once the page has asked for it. */
export function throughRelay(page, conditions) {
  let found, failed;
  const relay = new Promise((done, reject) => { [found, failed] = [done, reject]; });
  const routed = page.route("**/api/v1/webtransport", async (route) => {
    const answer = await route.fetch();
    const offered = await answer.json();
    const started = await startRelay(offered.port, conditions);
    found(started);
    await route.fulfill({ response: answer, json: { ...offered, port: started.port } });
  });
  routed.catch(failed);
  return relay;
}

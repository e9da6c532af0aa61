// Prints the delay from capture to screen of a tag that Chromium views by WebRTC, read from marks in the pictures:
// node test/webrtc-delay.mjs [SECONDS [WIDTHxHEIGHT [OPTIONS]]]

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { BINARY, startBrowser } from "./demo.mjs";
import { BITS, COLUMNS, H264, PART, encode, watch } from "./marks.mjs";

const [seconds = "30", size = "640x480", options = ""] = process.argv.slice(2);
const [width, height] = size.split("x").map(Number);
const folder = mkdtempSync(join(tmpdir(), "plt-"));
const start = (args, stdio) => spawn(BINARY, [...args, "--runtime-dir", folder], { stdio });
const node = start(["node", "--json", "--http", "127.0.0.1:0", "--webrtc", "127.0.0.1:0"], ["ignore", "pipe", "ignore"]);
const { value } = await createInterface({ input: node.stdout })[Symbol.asyncIterator]().next();
const { http } = JSON.parse(value);
const camera = start(["pub", "robot/camera", "-"], ["pipe", "ignore", "ignore"]);
const end = encode(camera.stdin, { width, height, codec: H264 });
const browser = await startBrowser();
const page = await browser.newPage({ bypassCSP: true });
await page.goto(new URL("webrtc", http).href);
await page.evaluate(`globalThis.watch = ${watch}`);
const answer = await page.evaluate(async ([address, marks]) => {
  const peer = new RTCPeerConnection();
  peer.addTransceiver("video", { direction: "recvonly" });
  const video = document.body.appendChild(document.createElement("video"));
  [video.autoplay, video.muted, globalThis.peer, globalThis.seen] = [true, true, peer, []];
  peer.ontrack = ({ track }) => { video.srcObject = new MediaStream([track]); };
  globalThis.watch(video, globalThis.seen, marks);
  await peer.setLocalDescription();
  const answer = await fetch(address, { method: "POST", headers: { "content-type": "application/sdp" }, body: peer.localDescription.sdp });
  const body = await answer.text();
  if (answer.status === 201) await peer.setRemoteDescription({ type: "answer", sdp: body });
  return [answer.status, body];
}, [`/whep/robot/camera${options && `?${options}`}`, { bits: BITS, columns: COLUMNS, part: PART }]);
if (answer[0] !== 201) throw new Error(answer.join(" "));
// The first second has the pictures that precede the viewer.
await new Promise((done) => setTimeout(done, 2_000));
const before = await page.evaluate(() => globalThis.seen.length);
await new Promise((done) => setTimeout(done, Number(seconds) * 1_000));
const { seen, stats } = await page.evaluate(async () => ({
  seen: globalThis.seen,
  stats: [...(await globalThis.peer.getStats()).values()].find(({ type }) => type === "inbound-rtp"),
}));
const shown = seen.slice(before);
const delays = shown.flatMap(({ delay }) => (delay === null ? [] : [delay])).sort((a, b) => a - b);
const at = (part) => delays[Math.min(delays.length - 1, Math.floor(delays.length * part))];
console.log(`${size} at 30 Hz, ${seconds} s: ${shown.length} pictures shown, ${shown.length - delays.length} unreadable; delay p50 ${at(0.5)} ms, p90 ${at(0.9)} ms, p99 ${at(0.99)} ms, most ${at(1)} ms; ${stats.framesDropped} of ${stats.framesReceived} dropped by the browser, ${stats.packetsLost} packets lost, ${stats.freezeCount} freezes`);
await browser.close();
end();
await Promise.all([camera, node].map((child) => new Promise((done) => { child.once("exit", done); child.kill("SIGKILL"); })));
rmSync(folder, { recursive: true, force: true });
process.exit(0);

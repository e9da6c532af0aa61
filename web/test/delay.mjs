// Measures the delay of pictures from their capture to the canvas of a page, read from the marks in the pictures of the test
// card, by carrier and format: node test/delay.mjs [SECONDS]

import { startBrowser, startNode } from "./demo.mjs";
import { throughRelay } from "./lossy.mjs";

const SECONDS = Number(process.argv[2] ?? 20);
/** The camera. */
const CARD = ["pub", "robot/camera", "--test-card", "640x480@30"];

/** Runs in the page: shows pictures for a while, and returns the delays in milliseconds. */
async function measure({ carrier, want, seconds }) {
  const { connect, Screen } = await import("/client.js");
  const connection = await connect(undefined, { carrier });
  const canvas = document.body.appendChild(document.createElement("canvas"));
  const subscription = connection.subscribe({ tag: "robot/camera", withinMs: 500, ...want });
  const screen = new Screen(subscription, canvas);
  const delays = [];
  // The marks are blocks of 24 columns and 20 rows; bits 64 to 127 from row 14 on are the time in microseconds.
  screen.onpicture = () => {
    const { width, height } = canvas;
    const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
    let micros = 0n;
    for (let bit = 64; bit < 128; bit += 1) {
      const [x, y] = [Math.floor((bit % 24 + 0.5) * width / 24), Math.floor((14 + Math.floor(bit / 24) + 0.5) * height / 20)];
      micros = (micros << 1n) | BigInt(data[4 * (y * width + x) + 1] > 126 ? 1 : 0);
    }
    delays.push((performance.timeOrigin + performance.now()) - Number(micros) / 1000);
  };
  const grant = await subscription.answer.catch((error) => { throw new Error(`refused: ${error.message}`); });
  delays.length = 0;
  await new Promise((done) => setTimeout(done, seconds * 1000));
  connection.close();
  return { delays, form: grant?.form.text ?? "best effort" };
}

/** The conditions of a measurement. */
const RUNS = [
  { carrier: "webtransport", path: "loopback" },
  { carrier: "websocket", path: "loopback" },
  { carrier: "webtransport", path: "50 ms, 2 % loss", relay: { delayMs: 25, oneIn: 50 } },
];

const node = await startNode();
const browser = await startBrowser();
node.run(CARD);
try {
  console.log("| carrier, format | path | pictures | p50 ms | p99 ms | max ms |\n| --- | --- | --- | --- | --- | --- |");
  for (const { carrier, path, relay } of RUNS) {
    for (const want of [{ maxHz: 30 }, { maxHz: 15, size: "320x240" }]) {
      const page = await browser.newPage({ bypassCSP: true });
      const lossy = relay && throughRelay(page, relay);
      await page.goto(node.url);
      const { delays, form } = await page.evaluate(measure, { carrier, want, seconds: SECONDS });
      await page.close();
      (await lossy)?.end();
      const sorted = delays.sort((a, b) => a - b);
      const at = (part) => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))]?.toFixed(1);
      console.log(`| ${carrier}, JPEG, ${form} | ${path} | ${sorted.length} | ${at(0.5)} | ${at(0.99)} | ${at(1)} |`);
    }
  }
} finally {
  await browser.close();
  await node.end();
}

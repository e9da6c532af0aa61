// Pictures that show when they were captured, as blocks of black and white, so that a page can read their delay.

import { spawn } from "node:child_process";

/** The bits of a mark: 24 of the time in milliseconds, and 8 of their sum. */
export const BITS = 32;
/** The blocks of a row, and their size relative to the width of the picture. */
export const COLUMNS = 16;
export const PART = 20;

/** Returns the bits of a time. */
export function bitsOf(ms) {
  const time = Math.floor(ms) % 2 ** 24;
  const sum = ((time >> 16) + (time >> 8) + time) & 0xff;
  const all = time * 256 + sum;
  return Array.from({ length: BITS }, (_, at) => Math.floor(all / 2 ** (BITS - 1 - at)) % 2);
}

/** Returns a picture in I420 of a gradient that moves, with a mark. */
function picture(width, height, number, ms) {
  const bytes = Buffer.alloc((width * height * 3) / 2, 128);
  for (let y = 0; y < height; y += 1) bytes.fill(64 + ((y + number) % 96), y * width, (y + 1) * width);
  const block = width / PART;
  bitsOf(ms).forEach((bit, at) => {
    const [left, top] = [(at % COLUMNS + 2) * block, (Math.floor(at / COLUMNS) + 2) * block];
    for (let y = top; y < top + block; y += 1) bytes.fill(bit ? 235 : 16, y * width + left, y * width + left + block);
  });
  return bytes;
}

/**
 * Writes marked pictures to an encoder in real time, and its output to `out`. Returns a function that ends it. `codec` has the
 * options of ffmpeg for the stream.
 */
export function encode(out, { width = 320, height = 240, hz = 30, codec }) {
  const input = ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", `${width}x${height}`, "-r", `${hz}`, "-i", "-"];
  const ffmpeg = spawn("ffmpeg", ["-v", "error", "-fflags", "nobuffer", "-probesize", "32", ...input, ...codec, "-flush_packets", "1", "-"], { stdio: ["pipe", "pipe", "ignore"] });
  ffmpeg.stdout.pipe(out);
  ffmpeg.stdin.on("error", () => {});
  out.on("error", () => {});
  const begun = performance.now();
  let number = 0;
  const timer = setInterval(() => {
    while (number / hz <= (performance.now() - begun) / 1000) {
      // A busy machine skips pictures instead of sending old ones.
      const late = (performance.now() - begun) / 1000 - number / hz > 2 / hz;
      if (!late && ffmpeg.stdin.writableLength < width * height * 3) ffmpeg.stdin.write(picture(width, height, number, Date.now()));
      number += 1;
    }
  }, 2);
  return () => {
    clearInterval(timer);
    ffmpeg.kill("SIGKILL");
  };
}

/** H.264 in Annex B without B pictures, with a key picture each second. */
export const H264 = ["-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-g", "30", "-pix_fmt", "yuv420p", "-f", "h264"];

/**
 * Runs in a page: collects the pictures of a video element with the delays of their marks in milliseconds, `null` for a picture
 * whose mark cannot be read.
 */
export function watch(video, seen, { bits, columns, part }) {
  const canvas = new OffscreenCanvas(1, 1);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const look = (_, about) => {
    const at = Date.now();
    video.requestVideoFrameCallback(look);
    if (canvas.width !== video.videoWidth) [canvas.width, canvas.height] = [video.videoWidth, video.videoHeight];
    context.drawImage(video, 0, 0);
    const block = canvas.width / part;
    const { data } = context.getImageData(0, 0, canvas.width, Math.min(canvas.height, Math.ceil(block * 5)));
    let all = 0;
    for (let bit = 0; bit < bits; bit += 1) {
      const x = Math.floor((bit % columns + 2.5) * block);
      const y = Math.floor((Math.floor(bit / columns) + 2.5) * block);
      all = all * 2 + (data[(y * canvas.width + x) * 4 + 1] > 128 ? 1 : 0);
    }
    // Chromium announces the first picture before it can be drawn.
    if (all === 0 && seen.length === 0) return;
    const time = Math.floor(all / 256);
    const right = (((time >> 16) + (time >> 8) + time) & 0xff) === all % 256 && time > 0;
    seen.push({ size: `${canvas.width}x${canvas.height}`, time, delay: right ? (at - time + 2 ** 24) % 2 ** 24 : null, rtp: about.rtpTimestamp });
  };
  video.requestVideoFrameCallback(look);
}

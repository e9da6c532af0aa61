// Pictures of a subscription on a canvas: H.264, H.265 and AV1 by WebCodecs, JPEG and PNG by the browser's decoders.

import type { Subscription } from "./subscription";
import type { Sample } from "./types";

/** Pictures that may wait for the decoder; beyond that it starts again at a key picture. */
const WAITING_MAX = 16;

/** The counts of a screen. */
export interface ScreenCounts {
  /** Pictures on the canvas. */
  shown: number;
  /** Pictures that were left out, because those before them are missing or the decoder was too slow. */
  skipped: number;
  /** Errors of the decoder. */
  errors: number;
}

/** Returns the name of the profile and level (RFC 6381) of a key picture in the format of Annex B; undefined without parameters. */
function codecOf(encoding: string, data: Uint8Array): string | undefined {
  const hex = (byte: number | undefined) => (byte ?? 0).toString(16).padStart(2, "0");
  if (encoding.startsWith("video/h264")) {
    const at = unit(data, (type) => (type & 0x1f) === 7);
    return at === undefined ? undefined : `avc1.${hex(data[at + 1])}${hex(data[at + 2])}${hex(data[at + 3])}`;
  }
  if (encoding.startsWith("video/h265")) return "hev1.1.6.L123.B0";
  if (encoding.startsWith("video/av1")) return "av01.0.08M.08";
  return undefined;
}

/** Returns the place of the first unit of a type behind its start code. */
function unit(data: Uint8Array, is: (type: number) => boolean): number | undefined {
  for (let at = 0; at + 7 < data.length; at += 1) {
    if (data[at] === 0 && data[at + 1] === 0 && data[at + 2] === 1 && is(data[at + 3] ?? 0)) return at + 3;
  }
  return undefined;
}

/** Shows the pictures of a subscription. */
export class Screen {
  readonly #canvas: HTMLCanvasElement;
  readonly #context: CanvasRenderingContext2D | null;
  #decoder: VideoDecoder | undefined;
  #codec = "";
  #waitsForKey = true;
  #decoding = false;
  readonly #pending = new Map<number, Sample>();
  readonly #stop: () => void;
  readonly counts: ScreenCounts = { shown: 0, skipped: 0, errors: 0 };
  /** Called after a picture was drawn, with its sample. */
  onpicture: ((sample: Sample) => void) | undefined;
  /** Called with the error of the decoder, in words. */
  onerror: ((why: string) => void) | undefined;

  constructor(subscription: Subscription, canvas: HTMLCanvasElement) {
    this.#canvas = canvas;
    this.#context = canvas.getContext("2d", { alpha: false, desynchronized: true });
    this.#stop = subscription.on("sample", (sample) => this.#take(sample));
  }

  /** Ends the pictures. The subscription stays. */
  close(): void {
    this.#stop();
    this.#reset();
  }

  #take(sample: Sample): void {
    if (sample.encoding.startsWith("image/")) void this.#still(sample);
    else this.#video(sample);
  }

  async #still(sample: Sample): Promise<void> {
    // A newer picture replaces one that waits.
    if (this.#decoding) {
      this.counts.skipped += 1;
      return;
    }
    this.#decoding = true;
    try {
      const picture = await createImageBitmap(new Blob([sample.payload], { type: sample.encoding }));
      this.#draw(picture, picture.width, picture.height, sample);
      picture.close();
    } catch (error) {
      this.#fail(String(error));
    } finally {
      this.#decoding = false;
    }
  }

  #video(sample: Sample): void {
    const isKey = sample.kind === "video_i";
    // The node leaves pictures out only so that the rest can be decoded, so a gap in the numbers is no loss.
    if (isKey) this.#configure(sample);
    if (this.#waitsForKey || !this.#decoder || this.#decoder.decodeQueueSize > WAITING_MAX) {
      this.#waitsForKey = true;
      this.counts.skipped += 1;
      return;
    }
    const timestamp = Math.round(sample.capturedMs * 1000);
    this.#pending.set(timestamp, sample);
    for (const old of this.#pending.keys()) {
      if (this.#pending.size <= 4 * WAITING_MAX) break;
      this.#pending.delete(old);
    }
    this.#decoder.decode(new EncodedVideoChunk({ type: isKey ? "key" : "delta", timestamp, data: sample.payload }));
  }

  #configure(sample: Sample): void {
    const codec = codecOf(sample.encoding, sample.payload);
    if (codec === undefined || !("VideoDecoder" in globalThis)) {
      const where = "over plain HTTP from another host, browsers have no decoder: use https";
      this.#fail(codec === undefined ? `${sample.encoding} cannot be shown here` : where);
      return;
    }
    if (codec !== this.#codec || this.#decoder?.state !== "configured") {
      this.#reset();
      this.#codec = codec;
      this.#decoder = new VideoDecoder({
        output: (frame) => {
          const shown = this.#pending.get(frame.timestamp);
          this.#pending.delete(frame.timestamp);
          this.#draw(frame, frame.displayWidth, frame.displayHeight, shown);
          frame.close();
        },
        error: (error) => {
          this.#fail(error.message);
          this.#reset();
        },
      });
      this.#decoder.configure({ codec, optimizeForLatency: true });
    }
    this.#waitsForKey = false;
  }

  #draw(picture: CanvasImageSource, width: number, height: number, sample: Sample | undefined): void {
    if (this.#canvas.width !== width || this.#canvas.height !== height) {
      [this.#canvas.width, this.#canvas.height] = [width, height];
    }
    this.#context?.drawImage(picture, 0, 0);
    this.counts.shown += 1;
    if (sample) this.onpicture?.(sample);
  }

  #fail(why: string): void {
    this.counts.errors += 1;
    this.onerror?.(why);
  }

  #reset(): void {
    if (this.#decoder && this.#decoder.state !== "closed") this.#decoder.close();
    this.#decoder = undefined;
    this.#codec = "";
    this.#waitsForKey = true;
    this.#pending.clear();
  }
}

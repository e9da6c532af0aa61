// A picture as its subscriber receives it, updated at most five times per second and only while
// visible.

import { picture } from "../api";
import { attribute, el, text } from "../dom";
import { time } from "../format";
import { H264, still } from "../video";

const EVERY_MS = 200;
/** The longest side of a picture on the page, in pixels. */
const SIDE = 320;

/** The picture of one subscription. */
export class PictureView {
  readonly element = el("figure", { class: "media" });
  readonly #image = el("img", { alt: "", width: 320, height: 240, decoding: "async" });
  readonly #frame = el("div", { class: "frame" }, this.#image);
  readonly #caption = el("figcaption", {}, "no picture yet");
  readonly #watch: IntersectionObserver;
  #seen = false;
  #asking = false;
  #seq: string | null = null;
  #shown = "";
  /** The size of the last picture as received. */
  size = "";

  constructor(private readonly subscription: string, name: string) {
    this.#image.alt = `Pictures received by ${name}`;
    this.element.append(this.#frame, this.#caption);
    this.#watch = new IntersectionObserver((entries) => {
      this.#seen = entries.at(-1)?.isIntersecting ?? false;
    });
    this.#watch.observe(this.element);
    views.add(this);
  }

  gone(): void {
    this.#watch.disconnect();
    views.delete(this);
    URL.revokeObjectURL(this.#shown);
  }

  async look(): Promise<void> {
    if (!this.#seen || this.#asking) return;
    this.#asking = true;
    try {
      const found = await picture(this.subscription, this.#seq);
      if (!found) return;
      const shown = found.blob.type === H264 ? await still(found.blob, SIDE) : found.blob;
      const url = URL.createObjectURL(shown);
      const before = this.#shown;
      this.#image.src = url;
      // Decode first, so that no gap is visible between two pictures. A failure leaves the old
      // picture.
      await this.#image.decode().catch(() => undefined);
      URL.revokeObjectURL(before);
      this.#shown = url;
      this.#seq = found.seq;
      this.size = found.size;
      attribute(this.element, "data-seq", found.seq);
      text(this.#caption, `#${found.seq} · ${found.size} · ${(found.bytes / 1000).toFixed(1)} kB · ${time(found.ageUs)} old`);
    } catch {
      // The server is unreachable, or the picture cannot be decoded; the next call tries again.
    } finally {
      this.#asking = false;
    }
  }
}

const views = new Set<PictureView>();

window.setInterval(() => {
  if (!document.hidden) for (const view of views) void view.look();
}, EVERY_MS);

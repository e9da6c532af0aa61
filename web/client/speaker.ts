// The sound of a subscription: Opus and AAC by WebCodecs, 16-bit samples as they are.

import type { Subscription } from "./subscription";
import type { Sample } from "./types";

/** The time that blocks wait for later ones, in seconds. */
const AHEAD = 0.06;
/** Blocks that would wait for longer are dropped: sound behind the pictures would never catch up. */
const BEHIND = 0.3;

/** Returns a parameter of a media type, such as `rate`. */
function parameter(encoding: string, name: string): number | undefined {
  const found = encoding.split(";").map((part) => part.split("=")).find(([key]) => key?.trim() === name);
  return found?.[1] === undefined ? undefined : Number(found[1]);
}

/** Plays the sound of a subscription. Browsers need a click of the user before `start`. */
export class Speaker {
  readonly #context = new AudioContext({ latencyHint: "interactive" });
  readonly #stop: () => void;
  #decoder: AudioDecoder | undefined;
  #encoding = "";
  /** The time of the next block. */
  #next = 0;
  /** Blocks that were played, and those that came too late or too early for that. */
  readonly counts = { played: 0, dropped: 0, errors: 0 };

  constructor(subscription: Subscription) {
    this.#stop = subscription.on("sample", (sample) => this.#take(sample));
  }

  /** Starts the sound, in the handler of a click. */
  start(): Promise<void> {
    return this.#context.resume();
  }

  /** Ends the sound. The subscription stays. */
  close(): void {
    this.#stop();
    if (this.#decoder && this.#decoder.state !== "closed") this.#decoder.close();
    void this.#context.close();
  }

  #take(sample: Sample): void {
    const { encoding, payload } = sample;
    const [rate, channels] = [parameter(encoding, "rate") ?? 48_000, parameter(encoding, "channels") ?? 1];
    if (encoding.startsWith("audio/pcm;") || encoding === "audio/pcm") return this.#pcm(payload, rate, channels);
    const codec = encoding.startsWith("audio/opus") ? "opus" : undefined;
    if (codec === undefined || !("AudioDecoder" in globalThis)) {
      this.counts.errors += 1;
      return;
    }
    if (encoding !== this.#encoding || this.#decoder?.state !== "configured") {
      this.#encoding = encoding;
      this.#decoder = new AudioDecoder({
        output: (data) => { this.#decoded(data); data.close(); },
        error: () => { this.counts.errors += 1; this.#encoding = ""; },
      });
      this.#decoder.configure({ codec, sampleRate: rate, numberOfChannels: channels });
    }
    this.#decoder.decode(new EncodedAudioChunk({ type: "key", timestamp: Math.round(sample.capturedMs * 1000), data: payload }));
  }

  #decoded(data: AudioData): void {
    const buffer = this.#context.createBuffer(data.numberOfChannels, data.numberOfFrames, data.sampleRate);
    for (let channel = 0; channel < data.numberOfChannels; channel += 1) {
      data.copyTo(buffer.getChannelData(channel), { planeIndex: channel, format: "f32-planar" });
    }
    this.#play(buffer);
  }

  #pcm(payload: Uint8Array<ArrayBuffer>, rate: number, channels: number): void {
    const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
    const frames = Math.floor(payload.byteLength / 2 / channels);
    if (frames === 0) return;
    const buffer = this.#context.createBuffer(channels, frames, rate);
    for (let channel = 0; channel < channels; channel += 1) {
      const out = buffer.getChannelData(channel);
      for (let frame = 0; frame < frames; frame += 1) out[frame] = view.getInt16(2 * (frame * channels + channel), true) / 32_768;
    }
    this.#play(buffer);
  }

  #play(buffer: AudioBuffer): void {
    const now = this.#context.currentTime;
    if (this.#next < now) this.#next = now + AHEAD;
    if (this.#next > now + BEHIND || this.#context.state !== "running") {
      this.counts.dropped += 1;
      return;
    }
    const source = this.#context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.#context.destination);
    source.start(this.#next);
    this.#next += buffer.duration;
    this.counts.played += 1;
  }
}

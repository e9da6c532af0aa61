// Decodes single H.264 pictures, in browsers that can (WebCodecs).

/** The type of H.264 pictures in the format of Annex B. */
export const H264 = "video/h264";

let decodes = false;

if ("VideoDecoder" in globalThis) {
  void VideoDecoder.isConfigSupported({ codec: "avc1.42E01E" }).then(
    ({ supported }) => { decodes = supported === true; },
    () => undefined,
  );
}

/** Returns true if this browser decodes H.264. It does not over plain HTTP from other hosts. */
export function decodesH264(): boolean {
  return decodes;
}

/** Returns the name of the profile and level (RFC 6381) from the sequence parameter set. */
function codecOf(data: Uint8Array): string {
  for (let at = 0; at + 7 < data.length; at += 1) {
    if (data[at] === 0 && data[at + 1] === 0 && data[at + 2] === 1 && ((data[at + 3] ?? 0) & 0x1f) === 7) {
      const bytes = [...data.subarray(at + 4, at + 7)];
      return `avc1.${bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
    }
  }
  throw new Error("no sequence parameter set");
}

function decoded(data: Uint8Array): Promise<VideoFrame> {
  return new Promise((done, failed) => {
    const decoder = new VideoDecoder({ output: done, error: failed });
    decoder.configure({ codec: codecOf(data), optimizeForLatency: true });
    decoder.decode(new EncodedVideoChunk({ type: "key", timestamp: 0, data }));
    decoder.flush().then(() => failed(new Error("no picture")), failed).finally(() => decoder.close());
  });
}

/** Returns an H.264 picture at which decoding can start as a JPEG picture, at most `side` pixels wide and high. */
export async function still(video: Blob, side: number): Promise<Blob> {
  const frame = await decoded(new Uint8Array(await video.arrayBuffer()));
  try {
    const scale = Math.min(1, side / Math.max(frame.displayWidth, frame.displayHeight));
    const canvas = new OffscreenCanvas(Math.max(1, frame.displayWidth * scale), Math.max(1, frame.displayHeight * scale));
    canvas.getContext("2d")?.drawImage(frame, 0, 0, canvas.width, canvas.height);
    return await canvas.convertToBlob({ type: "image/jpeg" });
  } finally {
    frame.close();
  }
}

// Client of the API of this origin.

import type { Change, State, Turn } from "./api.gen";

/** The page reports silence after this time without an event, in milliseconds. */
const SILENT_MS = 4000;

/** Follows the state. Calls back with null when no event arrives any more. */
export function follow(told: (state: State | null) => void): void {
  let timer = 0;
  const waits = () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => told(null), SILENT_MS);
  };
  // It reconnects by itself.
  const events = new EventSource("/api/v1/events");
  events.addEventListener("state", (event) => {
    waits();
    // A hidden page is not updated; the next event arrives within a second.
    if (!document.hidden) told(JSON.parse((event as MessageEvent<string>).data) as State);
  });
  waits();
}

/** Turns a switch. Throws the server's error message. */
export async function turn(name: string, on: boolean): Promise<void> {
  await post(`/api/v1/switches/${encodeURIComponent(name)}`, { on } satisfies Turn);
}

/**
 * Changes a subscription to options of `paceline set`, such as `--max-hz 5`. Throws the server's error message, or the
 * refusal of the path.
 */
export async function change(subscription: string, set: string): Promise<void> {
  const answer = await post(`/api/v1/subscriptions/${subscription}`, { set } satisfies Change);
  const { refused } = (await answer.json()) as { refused: string[] };
  if (refused.length > 0) throw new Error(`refused: ${refused.join("; ")}`);
}

async function post(path: string, body: object): Promise<Response> {
  const answer = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (answer.ok) return answer;
  const told = (await answer.json().catch(() => null)) as { error?: string } | null;
  throw new Error(told?.error ?? `the server answered ${answer.status}`);
}

/** A picture as its subscriber receives it. */
export interface Picture {
  seq: string;
  size: string;
  bytes: number;
  ageUs: number;
  blob: Blob;
}

/** Returns the newest picture of a subscription, or null if none is newer than `after`. */
export async function picture(subscription: string, after: string | null): Promise<Picture | null> {
  const query = after === null ? "" : `?after=${after}`;
  const answer = await fetch(`/api/v1/pictures/${subscription}${query}`);
  if (answer.status !== 200) return null;
  const header = (name: string) => answer.headers.get(`x-paceline-${name}`) ?? "";
  return {
    seq: header("seq"),
    size: header("size").replace("x", "×"),
    bytes: Number(header("bytes")),
    ageUs: Number(header("age-us")),
    blob: await answer.blob(),
  };
}

// Client of the API of this origin.

import type { Change, Comparison, Past, State, Turn, Value, Values, WorldChange, WorldState } from "./api.gen";

/** The page reports silence after this time without an event, in milliseconds. */
const SILENT_MS = 4000;

/** Follows the state. Calls back with null when no event arrives any more. */
export function follow(notify: (state: State | null) => void): void {
  let timer = 0;
  const waits = () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => notify(null), SILENT_MS);
  };
  // It reconnects by itself.
  const events = new EventSource("/api/v1/events");
  events.addEventListener("state", (event) => {
    waits();
    // A hidden page is not updated; the next event arrives within a second.
    if (!document.hidden) notify(JSON.parse((event as MessageEvent<string>).data) as State);
  });
  waits();
}

/** Turns a switch. Throws the server's error message. */
export async function turn(name: string, on: boolean): Promise<void> {
  await post(`/api/v1/switches/${encodeURIComponent(name)}`, { on } satisfies Turn);
}

/** Returns the history that the server keeps; null if it does not answer. */
export async function history(): Promise<Past | null> {
  const answer = await fetch("/api/v1/history").catch(() => null);
  return answer?.ok ? ((await answer.json()) as Past) : null;
}

/** Returns the newest value of each tag of a subscription. */
export async function values(subscription: string): Promise<Value[]> {
  const answer = await fetch(`/api/v1/values/${subscription}`);
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  return ((await answer.json()) as Values).rows;
}

/** Returns the demo's traffic in order of arrival; null without one. */
export async function comparison(): Promise<Comparison | null> {
  const answer = await fetch("/api/v1/comparison");
  return answer.status === 200 ? ((await answer.json()) as Comparison) : null;
}

/** Returns the town of `paceline demo world`. Throws the server's error message. */
export async function world(): Promise<WorldState> {
  const answer = await fetch("/api/v1/world");
  if (!answer.ok) throw new Error(await message(answer));
  return (await answer.json()) as WorldState;
}

/** Sets the capacity of the town's radio link, such as `256kbit`. Throws the server's error message. */
export async function setCapacity(capacity: string): Promise<void> {
  await post("/api/v1/world", { capacity } satisfies WorldChange);
}

interface Changed {
  answer: string;
  granted: string[];
  refused: string[];
}

/** Asks whether a subscription's path would grant the options in place of the present request. Throws the server's error. */
export async function attempt(subscription: string, set: string): Promise<string> {
  const { answer, granted, refused } = await changed(subscription, { set, dry_run: true });
  if (refused.length > 0) return `would be refused: ${refused.join("; ")}`;
  return answer === "granted" ? `would be granted ${granted.join("; ")}` : answer === "best_effort" ? "best effort, nothing is reserved" : "some nodes did not answer";
}

/**
 * Changes a subscription to options of `paceline set`, such as `--max-hz 5`. Returns the answer. Throws the server's error
 * message, or the refusal of the path.
 */
export async function change(subscription: string, set: string): Promise<string> {
  const { granted, refused } = await changed(subscription, { set, dry_run: false });
  if (refused.length > 0) throw new Error(`refused: ${refused.join("; ")}`);
  return granted.length > 0 ? `granted ${granted.join("; ")}` : "in force";
}

async function changed(subscription: string, body: Change): Promise<Changed> {
  const answer = await post(`/api/v1/subscriptions/${subscription}`, body);
  return (await answer.json()) as Changed;
}

async function post(path: string, body: object): Promise<Response> {
  const answer = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (answer.ok) return answer;
  throw new Error(await message(answer));
}

/** Returns the error message of an answer. */
async function message(answer: Response): Promise<string> {
  const body = (await answer.json().catch(() => null)) as { error?: string } | null;
  return body?.error ?? `the server answered ${answer.status}`;
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

// The states of subscriptions as colours, and small figures of contracts. The server compares requests with deliveries; the
// page only displays its result.

import type { Health, Subscription } from "./api.gen";

export type Colour = "good" | "warm" | "bad" | "idle";

const COLOURS: Record<Health["state"], Colour> = {
  served: "good", short: "warm", broken: "bad", refused: "bad", silent: "idle", no_publisher: "idle",
};

/** Returns the colour of a state. */
export function colour(state: Health["state"]): Colour {
  return COLOURS[state];
}

export function sum(drops: Subscription["dropped"]): number {
  return Object.values(drops).reduce((all, n) => all + (n ?? 0), 0);
}

/** Converts "5/100" to numbers. Without a tolerance, no sample may miss. */
export function tolerance(loss: string | null): [x: number, y: number] {
  const [x, y] = (loss ?? "0/1").split("/").map(Number);
  return [x ?? 0, y || 1];
}

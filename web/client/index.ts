// The client of a Paceline node for browsers: subscriptions with contracts, and publishers (docs/guides/browser.md).

export { connect, Connection, type ConnectionEvents, type ConnectOptions } from "./connection";
export { NodeClock } from "./clock";
export { Publisher, type PublisherEvents } from "./publisher";
export { Screen, type ScreenCounts } from "./screen";
export { Speaker } from "./speaker";
export { Subscription, type Counts, type SubscriptionEvents } from "./subscription";
export * from "./types";
export type { Kind } from "./wire";

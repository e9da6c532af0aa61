// Written from the structs of the API by PACELINE_REWRITE_TYPES=1 cargo test; not by hand.

export type Reason = "deadline_missed" | "queue_full" | "superseded" | "link_down" | "link_loss" | "no_route" | "subscriber_full" | "cannot_scale" | "scaler_busy" | "duplicate" | "too_large" | "undecodable" | "policed" | "loop" | "not_imported" | "not_exported" | "expired";

export type Drops = { [reason in Reason]?: number };

export type State = { schema: number, 
/**
 * Milliseconds since 1970 by this host's clock.
 */
at_ms: number, 
/**
 * By name.
 */
nodes: Array<Node>, 
/**
 * Nodes that are known and not asked.
 */
known: Array<Known>, 
/**
 * What can be turned on and off here; only in the demo.
 */
switches: Array<Switch>, };

export type Known = { id: string, name: string, };

export type Switch = { name: string, 
/**
 * What to call it.
 */
label: string, 
/**
 * What it does, in a sentence.
 */
about: string, on: boolean, };

export type Turn = { on: boolean, };

export type Node = { id: string, name: string, 
/**
 * When its counts were read, by a clock of its own: only differences mean something.
 */
at_us: number, publishers: Array<Publisher>, subscriptions: Array<Subscription>, buffers: Array<Buffer>, links: Array<Link>, 
/**
 * What is promised on paths that begin, end or lead through it.
 */
reservations: Array<Reservation>, 
/**
 * What promises take of its host's processors; null if they are not charged there.
 */
processor: Processor | null, 
/**
 * Samples that arrived and found nobody to go to.
 */
dropped: Drops, 
/**
 * Threads that stand still.
 */
stalled: Array<Stalled>, };

export type Publisher = { id: string, tag: string, kind: string, encoding: string, period_us: number | null, published: number, rate_hz: number, matching: boolean, };

export type Subscription = { id: string, pattern: string, asked: Asked, within_us: number | null, loss: string | null, proxy: string, publishers: Array<string>, refusals: Array<string>, delivered: number, bytes: number, rate_hz: number, late: number, 
/**
 * Of the samples that arrived in the last second or more.
 */
age_max_us: number, 
/**
 * Of the same samples; null if none arrived.
 */
age_mean_us: number | null, 
/**
 * The ages of all samples delivered since the start, together.
 */
age_sum_us: number, dropped: Drops, };

export type Asked = { 
/**
 * In words.
 */
form: string, every: number | null, max_hz: number | null, width: number | null, height: number | null, };

export type Buffer = { 
/**
 * The subscription that feeds it.
 */
id: string, pattern: string, samples_max: number, bytes_max: number, age_max_us: number, samples: number, bytes: number, oldest_ns: number | null, newest_ns: number | null, };

export type Link = { name: string, 
/**
 * When its counts and those of its streams were read, by its node's clock.
 */
at_us: number, capacity_bits_per_s: number | null, 
/**
 * From one reading to the next.
 */
use_bits_per_s: number | null, 
/**
 * What its streams' contracts hold of it, together.
 */
reserved_bits_per_s: number, round_trip_us: number, hops: Array<string>, 
/**
 * What goes to each of them.
 */
neighbours: Array<Neighbour>, wire_bytes: number, frames: number, frames_lost: number, streams: Array<Stream>, closed: Closed, classes: Array<Class>, muted: Array<Muted>, mended: Mended, };

export type Neighbour = { id: string, 
/**
 * Bytes sent to it since the link found it, as they count on the wire.
 */
wire_bytes: number, 
/**
 * From one reading to the next.
 */
use_bits_per_s: number | null, };

export type Reservation = { publisher: string, 
/**
 * If the publisher's node answered.
 */
tag: string | null, subscription: string, 
/**
 * The delay bound that was asked for.
 */
within_us: number | null, 
/**
 * What the links of the path promise together.
 */
bound_us: number, 
/**
 * The publisher's node first.
 */
hops: Array<ReservedHop>, };

export type ReservedHop = { node: string, name: string, link: string, capacity_bits_per_s: number | null, bits_per_s: number, burst_bytes: number, bound_us: number, };

export type Processor = { held_us_per_s: number, 
/**
 * The most that may be held: `processor_percent`.
 */
most_us_per_s: number, };

export type Stream = { publisher: string, tag: string | null, asked: Asked, hop: string, contracted: boolean, 
/**
 * What this link has promised to it.
 */
contract: Contract | null, ages: Ages, offered: number, sent: number, bytes: number, late: number, 
/**
 * Windows broken since the stream was opened.
 */
violations: number, 
/**
 * Dropped after the first segment was sent, so the next hop counts them as lost too.
 */
aborted: number, 
/**
 * How long ago the last of them was, when the link's counts were read; null if there is none.
 */
broken_ago_us: number | null, 
/**
 * More than the contract allows: too soon, or longer than declared.
 */
too_early: number, too_long: number, dropped: Drops, };

export type Contract = { period_us: number, deadline_us: number, loss: string, bits_per_s: number, };

export type Ages = { 
/**
 * Samples that the link took.
 */
entered: number, 
/**
 * Their ages then, together.
 */
entered_us: number, 
/**
 * The ages of those that were sent, when they left, together.
 */
left_us: number, };

export type Closed = { offered: number, sent: number, late: number, dropped: Drops, };

export type Class = { name: string, parent: string | null, peer: string | null, share: number, served_bytes: number, guaranteed_bytes: number, streams: number, offered: number, sent: number, late: number, violations: number, dropped: Drops, };

export type Muted = { peer: string, 
/**
 * What it sent too much of: `control`, samples `unasked` for, or `malformed` frames.
 */
flood: string, 
/**
 * It is not heard now.
 */
muted: boolean, 
/**
 * How often it was muted.
 */
times: number, 
/**
 * What was dropped: messages, samples or frames.
 */
dropped: number, };

export type Mended = { 
/**
 * Pieces that were sent again.
 */
repeated: number, 
/**
 * Their payload bytes.
 */
repeated_bytes: number, 
/**
 * Samples that could no longer arrive in time.
 */
given_up: number, };

export type Stalled = { thread: string, 
/**
 * How late it is.
 */
for_us: number, };

// Written from the structs of the API by PACELINE_REWRITE_TYPES=1 cargo test; not by hand.

export type Reason = "deadline_missed" | "queue_full" | "superseded" | "link_down" | "link_loss" | "no_route" | "subscriber_full" | "cannot_scale" | "scaler_busy" | "duplicate" | "too_large" | "undecodable" | "policed" | "loop" | "not_imported" | "not_exported" | "expired" | "over_budget" | "stale" | "out_of_order" | "over_rights";

export type Drops = { [reason in Reason]?: number };

export type State = { schema: number, 
/**
 * Milliseconds since 1970 by this host's clock.
 */
at_ms: number, 
/**
 * Nodes, sorted by name.
 */
nodes: Array<Node>, 
/**
 * Nodes that are known but not queried.
 */
known: Array<Known>, 
/**
 * Load switches; only in the demo.
 */
switches: Array<Switch>, };

export type Known = { id: string, name: string, };

export type Switch = { name: string, 
/**
 * Label for display.
 */
label: string, 
/**
 * Description in one sentence.
 */
about: string, on: boolean, };

export type Turn = { on: boolean, };

export type Change = { 
/**
 * Options of `paceline set`, such as `--max-hz 5 --size 160x120`.
 */
set: string, 
/**
 * Only asks whether the changed request would be granted in place of the present one; changes nothing.
 */
dry_run: boolean, };

export type Comparison = { tag: string, 
/**
 * The second in which the flood starts.
 */
flood_s: number, 
/**
 * Mean delay in microseconds; 0 if no sample arrived.
 */
mean_us: Array<number>, 
/**
 * Largest delay in microseconds.
 */
max_us: Array<number>, };

export type WorldChange = { 
/**
 * The capacity of the thin link, such as `256kbit`.
 */
capacity: string, };

export type WorldState = { side_m: number, 
/**
 * The capacity of the radio link.
 */
capacity: string, 
/**
 * The true position of each car.
 */
cars: Array<[number, number]>, observers: Array<ObserverState>, };

export type ObserverState = { name: string, position: [number, number], reading: Reading, 
/**
 * The number of a car, its seen position, its error in metres and its age in milliseconds.
 */
seen: Array<[number, [number, number], number, number]>, };

export type Reading = { name: string, 
/**
 * The number of cars that it knows.
 */
cars: number, 
/**
 * The greatest number of cars within 100 m.
 */
near: number, 
/**
 * The mean distance between the true and the seen position of near cars, in metres.
 */
near_error_m: number, 
/**
 * The same of all other known cars.
 */
far_error_m: number, 
/**
 * The greatest age of a near car.
 */
near_age_ms: number, 
/**
 * The traffic of its link from the town.
 */
bits_per_s: number, contract: ContractState, };

export type ContractState = "none" | "requested" | "granted" | "refused" | "withdrawn";

export type Past = { 
/**
 * By id of the subscription.
 */
subscriptions: { [key in string]: SubscriptionPast }, 
/**
 * By id of the node and name of the link, with a space between them.
 */
links: { [key in string]: LinkPast }, };

export type SubscriptionPast = { 
/**
 * Mean age at delivery in microseconds; 0 if no sample arrived.
 */
mean_us: Array<number>, 
/**
 * Largest age at delivery in microseconds.
 */
max_us: Array<number>, 
/**
 * Delivered samples per second, in thousandths.
 */
rate_millihertz: Array<number>, };

export type LinkPast = { use_bits_per_s: Array<number>, reserved_bits_per_s: Array<number>, 
/**
 * Round trips in microseconds.
 */
delay_us: Array<number>, 
/**
 * Their jitter in microseconds.
 */
jitter_us: Array<number>, 
/**
 * Lost frames per million.
 */
loss_ppm: Array<number>, };

export type Values = { 
/**
 * At most 64 tags, in alphabetical order.
 */
rows: Array<Value>, };

export type Value = { tag: string, seq: number, encoding: string, bytes: number, 
/**
 * The payload if it is text or JSON, at most 120 characters; null otherwise.
 */
text: string | null, };

export type Node = { id: string, name: string, 
/**
 * Time at which the counters were read, by the node's own clock: only differences are
 * meaningful.
 */
at_us: number, publishers: Array<Publisher>, subscriptions: Array<Subscription>, buffers: Array<Buffer>, links: Array<Link>, 
/**
 * Reservations on paths that begin at, end at or cross this node.
 */
reservations: Array<Reservation>, 
/**
 * Processor time reserved by contracts on this host; null if admission does not charge it.
 */
processor: Processor | null, 
/**
 * Queue space of the node for contracts, on all its links and for its subscribers together; null for an earlier
 * version. `greatest_bytes` includes payloads that its subscribers had not read.
 */
buffer: QueueBuffer | null, 
/**
 * Memory of the node for the input of its neighbours; null for an earlier version.
 */
memory: NeighbourMemory | null, 
/**
 * Samples that arrived without any recipient.
 */
dropped: Drops, 
/**
 * Threads that are blocked.
 */
stalled: Array<Stalled>, 
/**
 * State of its clock; null for a node of an earlier version.
 */
clock: NodeClock | null, 
/**
 * Publishers, subscriptions and other entries of nodes that the node cannot read and ignores.
 */
unread: Array<Unread>, };

export type Publisher = { id: string, tag: string, kind: string, encoding: string, period_us: number | null, published: number, rate_hz: number, 
/**
 * True if the rate differs from the declared one by more than a tenth; false in a pause.
 */
off_rate: boolean, matching: boolean, };

export type Subscription = { id: string, pattern: string, asked: RequestedForm, within_us: number | null, loss: string | null, proxy: string, 
/**
 * Names of the nodes that scale the samples, one per publisher of `publishers`.
 */
scaled_at: Array<string>, publishers: Array<string>, refusals: Array<string>, delivered: number, bytes: number, rate_hz: number, late: number, 
/**
 * Largest age of the samples that arrived in the last second or more.
 */
age_max_us: number, 
/**
 * Mean age of the same samples; null if none arrived.
 */
age_mean_us: number | null, 
/**
 * Sum of the ages of all samples delivered since the start.
 */
age_sum_us: number, dropped: Drops, 
/**
 * Largest jitter of a publisher's samples at arrival, by RFC 3550.
 */
jitter_us: number, 
/**
 * Samples that were published between two that arrived, but did not arrive.
 */
lost: number, 
/**
 * Delivery by time; null without one.
 */
timed: Timed | null, };

export type Timed = { 
/**
 * `fresh`, `ordered`, `spacing`, `max_jitter` or `sync_group`.
 */
method: string, 
/**
 * The setting as on the command line.
 */
setting: string, released: number, late: number, early: number, refused: number, silences: number, unknown: number, beyond: number, jumps: number, jitter_in_us: number | null, jitter_out_us: number | null, added_us: number | null, wakeup_us: number | null, bound_us: number | null, };

export type NodeClock = { 
/**
 * `unsynchronised`, `synchronised`, `holdover` or `disrupted`.
 */
status: string, 
/**
 * Bound of its error; null if it is unknown.
 */
error_us: number | null, 
/**
 * The system clock minus this clock; null if its error is unknown.
 */
system_offset_us: number | null, };

export type RequestedForm = { 
/**
 * Description for display.
 */
form: string, every: number | null, max_hz: number | null, width: number | null, height: number | null, };

export type Buffer = { 
/**
 * Id of the subscription that feeds the buffer.
 */
id: string, pattern: string, samples_max: number, bytes_max: number, age_max_us: number, samples: number, bytes: number, oldest_ns: number | null, newest_ns: number | null, };

export type Link = { name: string, 
/**
 * Time at which the counters of the link and its streams were read, by its node's clock.
 */
at_us: number, capacity_bits_per_s: number | null, 
/**
 * Rate between the last two readings.
 */
use_bits_per_s: number | null, 
/**
 * Rate reserved by the contracts of its streams.
 */
reserved_bits_per_s: number, 
/**
 * Minimum of 10 to 20 s.
 */
round_trip_us: number, 
/**
 * Last round trip of the slowest neighbour.
 */
delay_us: number, 
/**
 * Jitter of the round trips, by RFC 3550.
 */
jitter_us: number, hops: Array<string>, 
/**
 * Traffic to each of the hops.
 */
neighbours: Array<Neighbour>, wire_bytes: number, frames: number, frames_lost: number, 
/**
 * Frames lost by a carrier that may lose them.
 */
frames_dropped: number, 
/**
 * Part of the frames lost between the last two readings.
 */
loss: number | null, streams: Array<Stream>, closed: Closed, classes: Array<Class>, muted: Array<Muted>, mended: Repaired, 
/**
 * Null for a link without a capacity or a neighbour.
 */
buffer: QueueBuffer | null, };

export type Neighbour = { id: string, 
/**
 * Bytes sent to this node since the link found it, including headers on the wire.
 */
wire_bytes: number, 
/**
 * Rate between the last two readings.
 */
use_bits_per_s: number | null, 
/**
 * Silence after which it counts as down.
 */
down_after_us: number, 
/**
 * Bytes of the node's memory for neighbours that this one uses.
 */
memory_bytes: number, };

export type NeighbourMemory = { used_bytes: number, bytes: number, 
/**
 * Greatest number of bytes that were used at once since the start.
 */
greatest_bytes: number, };

export type Reservation = { publisher: string, 
/**
 * Tag; null if the publisher's node did not answer.
 */
tag: string | null, subscription: string, 
/**
 * Requested delay bound.
 */
within_us: number | null, 
/**
 * Sum of the delays guaranteed by the links of the path.
 */
bound_us: number, 
/**
 * Nodes of the path, the publisher's first; empty on a node that only the spare's path leads through.
 */
hops: Array<ReservedHop>, 
/**
 * Nodes of the spare's path; empty without a spare, and on a node that only the first path leads through.
 */
spare: Array<ReservedHop>, };

export type ReservedHop = { node: string, name: string, link: string, capacity_bits_per_s: number | null, bits_per_s: number, burst_bytes: number, bound_us: number, 
/**
 * True if the processor is reserved for the node.
 */
realtime: boolean, };

export type Processor = { held_us_per_s: number, 
/**
 * Limit of the reservations: `processor_percent`.
 */
most_us_per_s: number, };

export type Stream = { publisher: string, tag: string | null, asked: RequestedForm, hop: string, contracted: boolean, 
/**
 * Contract of the stream on this link.
 */
contract: Contract | null, ages: Ages, offered: number, sent: number, bytes: number, late: number, 
/**
 * Violated windows since the stream was opened.
 */
violations: number, 
/**
 * Samples dropped after their first segment was sent, so the next hop also counts them as
 * lost.
 */
aborted: number, 
/**
 * Time from the last violation to the reading of the counters; null if there was none.
 */
broken_ago_us: number | null, 
/**
 * Multicast group from which the hop receives it; null with unicast.
 */
group: string | null, 
/**
 * Samples in excess of the contract: too early, or longer than declared.
 */
too_early: number, too_long: number, dropped: Drops, };

export type Contract = { period_us: number, deadline_us: number, loss: string, bits_per_s: number, };

export type Ages = { 
/**
 * Samples that the link accepted.
 */
entered: number, 
/**
 * Sum of their ages at that time.
 */
entered_us: number, 
/**
 * Sum of the ages of the sent samples when they left the link.
 */
left_us: number, };

export type Closed = { offered: number, sent: number, late: number, dropped: Drops, };

export type Class = { name: string, parent: string | null, peer: string | null, share: number, served_bytes: number, guaranteed_bytes: number, 
/**
 * Rate that the class guarantees to contracts; 0 if it guarantees nothing.
 */
guaranteed_bits_per_s: number, 
/**
 * Part of it that contracts reserve.
 */
reserved_bits_per_s: number, streams: number, offered: number, sent: number, late: number, violations: number, dropped: Drops, };

export type Muted = { peer: string, 
/**
 * Kind of excess traffic: `control` messages, `unasked` samples or `malformed` frames.
 */
flood: string, 
/**
 * True if the neighbour is muted now.
 */
muted: boolean, 
/**
 * Number of times that the neighbour was muted.
 */
times: number, 
/**
 * Dropped messages, samples or frames.
 */
dropped: number, };

export type Repaired = { 
/**
 * Retransmitted pieces.
 */
repeated: number, 
/**
 * Payload bytes of the retransmitted pieces.
 */
repeated_bytes: number, 
/**
 * Samples that could no longer arrive in time.
 */
given_up: number, };

export type QueueBuffer = { 
/**
 * Most bytes that all contracts together can have queued.
 */
reserved_bytes: number, bytes: number, 
/**
 * Greatest number of bytes of contracted samples in the queues since the start.
 */
greatest_bytes: number, };

export type Stalled = { thread: string, 
/**
 * Delay of the iteration in microseconds.
 */
for_us: number, };

export type Unread = { 
/**
 * Id of the node that announced it.
 */
node: string, entry: string, reason: string, };

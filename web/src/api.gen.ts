// Written from the structs of the API by PACELINE_REWRITE_TYPES=1 cargo test; not by hand.

export type Reason = "deadline_missed" | "queue_full" | "superseded" | "link_down" | "link_loss" | "no_route" | "subscriber_full" | "cannot_scale" | "scaler_busy" | "duplicate" | "too_large" | "undecodable" | "policed" | "loop" | "not_imported" | "not_exported" | "expired" | "over_budget" | "stale" | "out_of_order" | "over_rights";

export type Drops = { [reason in Reason]?: number };

export type State = { 
/**
 * Version of the answer: 1.
 */
schema: number, 
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

export type Known = { 
/**
 * Id of the node.
 */
id: string, 
/**
 * Display name of the node.
 */
name: string, };

export type Switch = { 
/**
 * Name in requests.
 */
name: string, 
/**
 * Label for display.
 */
label: string, 
/**
 * Description in one sentence.
 */
about: string, 
/**
 * True if the load is on.
 */
on: boolean, };

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

export type Comparison = { 
/**
 * Tag of the compared stream.
 */
tag: string, 
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

export type WorldState = { 
/**
 * Length of a side of the town in metres.
 */
side_m: number, 
/**
 * The capacity of the radio link.
 */
capacity: string, 
/**
 * The true position of each car.
 */
cars: Array<[number, number]>, 
/**
 * The observers, in a fixed order.
 */
observers: Array<ObserverState>, };

export type ObserverState = { 
/**
 * Display name.
 */
name: string, 
/**
 * Position in metres.
 */
position: [number, number], 
/**
 * Measured over the last second.
 */
reading: Reading, 
/**
 * The number of a car, its seen position, its error in metres and its age in milliseconds.
 */
seen: Array<[number, [number, number], number, number]>, };

export type Reading = { 
/**
 * Display name of the observer.
 */
name: string, 
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
bits_per_s: number, 
/**
 * State of the contract with the town.
 */
contract: ContractState, };

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

export type Node = { 
/**
 * Id of the node.
 */
id: string, 
/**
 * Display name.
 */
name: string, 
/**
 * Time at which the counters were read, by the node's own clock: only differences are
 * meaningful.
 */
at_us: number, 
/**
 * Its publishers.
 */
publishers: Array<Publisher>, 
/**
 * Its subscriptions.
 */
subscriptions: Array<Subscription>, 
/**
 * Its pull buffers.
 */
buffers: Array<Buffer>, 
/**
 * Its links.
 */
links: Array<Link>, 
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

export type Publisher = { 
/**
 * Id of the publisher.
 */
id: string, 
/**
 * Tag of its samples.
 */
tag: string, 
/**
 * Kind of its samples.
 */
kind: string, 
/**
 * Media type of its samples.
 */
encoding: string, 
/**
 * Declared period; null if none is declared.
 */
period_us: number | null, 
/**
 * Samples since the start.
 */
published: number, 
/**
 * Samples per second.
 */
rate_hz: number, 
/**
 * True if the rate differs from the declared one by more than a tenth; false in a pause.
 */
off_rate: boolean, 
/**
 * True if any subscription matches.
 */
matching: boolean, };

export type Subscription = { 
/**
 * Id of the subscription.
 */
id: string, 
/**
 * Pattern of its tags.
 */
pattern: string, 
/**
 * Requested form.
 */
asked: RequestedForm, 
/**
 * Requested delay bound; null if none is requested.
 */
within_us: number | null, 
/**
 * Requested loss tolerance, such as `1/10`; null if none is requested.
 */
loss: string | null, 
/**
 * Place of the scaling: `publisher`, `subscriber`, `auto` or `node:NAME`.
 */
proxy: string, 
/**
 * Names of the nodes that scale the samples, one per publisher of `publishers`.
 */
scaled_at: Array<string>, 
/**
 * Ids of the received publishers.
 */
publishers: Array<string>, 
/**
 * Reasons of the publishers that refuse it, in words.
 */
refusals: Array<string>, 
/**
 * Samples since the start.
 */
delivered: number, 
/**
 * Payload bytes since the start.
 */
bytes: number, 
/**
 * Delivered samples per second, over the last second or more.
 */
rate_hz: number, 
/**
 * Samples that were older than `within_us` at their arrival, or when the application took them, since the start.
 */
late: number, 
/**
 * The part of `late` that arrived in time: the samples waited in the process of the subscription.
 */
overdue: number, 
/**
 * Largest age of the samples that the application took in the last second or more, or that were dropped unread.
 */
age_max_us: number, 
/**
 * Mean age of the same samples; null without any.
 */
age_mean_us: number | null, 
/**
 * Sum of the ages of all samples delivered since the start.
 */
age_sum_us: number, 
/**
 * Samples dropped at this node since the start.
 */
dropped: Drops, 
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
setting: string, 
/**
 * Released samples.
 */
released: number, 
/**
 * Samples that arrived after their release or after a later one.
 */
late: number, 
/**
 * Samples released before their time, because too many waited.
 */
early: number, 
/**
 * Samples dropped because of their time.
 */
refused: number, 
/**
 * Starts of the safe action.
 */
silences: number, 
/**
 * Samples of unknown order.
 */
unknown: number, 
/**
 * Samples that exceeded the maximum jitter.
 */
beyond: number, 
/**
 * Jumps of capture times.
 */
jumps: number, 
/**
 * Jitter at arrival, by RFC 3550.
 */
jitter_in_us: number | null, 
/**
 * Jitter at release, by RFC 3550.
 */
jitter_out_us: number | null, 
/**
 * Added delay.
 */
added_us: number | null, 
/**
 * Wake-up delay of 99 % of the releases.
 */
wakeup_us: number | null, 
/**
 * Error of the clock or of the ages, plus `wakeup_us`.
 */
bound_us: number | null, };

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
form: string, 
/**
 * One sample in this many; null for every sample.
 */
every: number | null, 
/**
 * Largest rate; null if none is requested.
 */
max_hz: number | null, 
/**
 * Width in pixels; null for the full size.
 */
width: number | null, 
/**
 * Height in pixels; null for the full size.
 */
height: number | null, };

export type Buffer = { 
/**
 * Id of the subscription that feeds the buffer.
 */
id: string, 
/**
 * Pattern of its tags.
 */
pattern: string, 
/**
 * Limit of its samples.
 */
samples_max: number, 
/**
 * Limit of its bytes.
 */
bytes_max: number, 
/**
 * Limit of the age of a sample.
 */
age_max_us: number, 
/**
 * Buffered samples.
 */
samples: number, 
/**
 * Buffered bytes.
 */
bytes: number, 
/**
 * First capture time in nanoseconds since 1970 UTC; null if it is empty.
 */
oldest_ns: number | null, 
/**
 * Last capture time in nanoseconds since 1970 UTC; null if it is empty.
 */
newest_ns: number | null, };

export type Link = { 
/**
 * Name of the link.
 */
name: string, 
/**
 * Time at which the counters of the link and its streams were read, by its node's clock.
 */
at_us: number, 
/**
 * Capacity; null without one.
 */
capacity_bits_per_s: number | null, 
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
jitter_us: number, 
/**
 * Ids of its neighbours.
 */
hops: Array<string>, 
/**
 * Traffic to each of the hops.
 */
neighbours: Array<Neighbour>, 
/**
 * Bytes sent, with an estimate of all headers.
 */
wire_bytes: number, 
/**
 * Frames sent.
 */
frames: number, 
/**
 * Frames lost by a transport that should keep order; 0 unless the transport has a fault.
 */
frames_lost: number, 
/**
 * Frames lost by a carrier that may lose them.
 */
frames_dropped: number, 
/**
 * Part of the frames lost between the last two readings.
 */
loss: number | null, 
/**
 * Open streams.
 */
streams: Array<Stream>, 
/**
 * Sums over closed streams.
 */
closed: Closed, 
/**
 * Its classes; empty without classes.
 */
classes: Array<Class>, 
/**
 * Neighbours that flooded the node.
 */
muted: Array<Muted>, 
/**
 * Retransmissions on a QUIC link.
 */
mended: Repaired, 
/**
 * Null for a link without a capacity or a neighbour.
 */
buffer: QueueBuffer | null, };

export type Neighbour = { 
/**
 * Id of the neighbour.
 */
id: string, 
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

export type NeighbourMemory = { 
/**
 * Buffered samples, messages and streams.
 */
used_bytes: number, 
/**
 * The limit.
 */
bytes: number, 
/**
 * Greatest number of bytes that were used at once since the start.
 */
greatest_bytes: number, };

export type Reservation = { 
/**
 * Id of the publisher.
 */
publisher: string, 
/**
 * Tag; null if the publisher's node did not answer.
 */
tag: string | null, 
/**
 * Id of the subscription.
 */
subscription: string, 
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

export type ReservedHop = { 
/**
 * Id of the node that sends.
 */
node: string, 
/**
 * Display name of the node.
 */
name: string, 
/**
 * Name of the link.
 */
link: string, 
/**
 * Capacity of the link; null if nothing is reserved.
 */
capacity_bits_per_s: number | null, 
/**
 * Reserved rate.
 */
bits_per_s: number, 
/**
 * Reserved burst.
 */
burst_bytes: number, 
/**
 * Delay bound of the link.
 */
bound_us: number, 
/**
 * True if the processor is reserved for the node.
 */
realtime: boolean, };

export type Processor = { 
/**
 * Reserved time in microseconds of one processor per second.
 */
held_us_per_s: number, 
/**
 * Limit of the reservations: `processor_percent`.
 */
most_us_per_s: number, };

export type Stream = { 
/**
 * Id of the publisher.
 */
publisher: string, 
/**
 * Tag; null if the publisher's node did not answer.
 */
tag: string | null, 
/**
 * Requested form.
 */
asked: RequestedForm, 
/**
 * Id of the next node.
 */
hop: string, 
/**
 * True if it has a contract.
 */
contracted: boolean, 
/**
 * Contract of the stream on this link.
 */
contract: Contract | null, 
/**
 * Sums of the ages of its samples.
 */
ages: Ages, 
/**
 * Samples passed to the link.
 */
offered: number, 
/**
 * Samples whose last byte was sent.
 */
sent: number, 
/**
 * Bytes sent.
 */
bytes: number, 
/**
 * Sent samples that missed their deadline.
 */
late: number, 
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
too_early: number, 
/**
 * Samples longer than the contract permits.
 */
too_long: number, 
/**
 * Samples that were not sent.
 */
dropped: Drops, };

export type Contract = { 
/**
 * Time between two samples.
 */
period_us: number, 
/**
 * Longest time from arrival at the link to the end of service.
 */
deadline_us: number, 
/**
 * Loss tolerance, such as `1/10`.
 */
loss: string, 
/**
 * Reserved rate.
 */
bits_per_s: number, };

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

export type Closed = { 
/**
 * Samples passed to the link.
 */
offered: number, 
/**
 * Samples whose last byte was sent.
 */
sent: number, 
/**
 * Sent samples that missed their deadline.
 */
late: number, 
/**
 * Samples that were not sent.
 */
dropped: Drops, };

export type Class = { 
/**
 * Name of the class.
 */
name: string, 
/**
 * Name of the class above; null directly below the link.
 */
parent: string | null, 
/**
 * Id of the next hop for a class per peer; null for other classes.
 */
peer: string | null, 
/**
 * Its part of a busy link, 0 to 1; 0 with only a guarantee.
 */
share: number, 
/**
 * Bytes sent on the wire.
 */
served_bytes: number, 
/**
 * Bytes sent because of the guarantee.
 */
guaranteed_bytes: number, 
/**
 * Rate that the class guarantees to contracts; 0 if it guarantees nothing.
 */
guaranteed_bits_per_s: number, 
/**
 * Part of it that contracts reserve.
 */
reserved_bits_per_s: number, 
/**
 * Open streams.
 */
streams: number, 
/**
 * Samples passed to the link.
 */
offered: number, 
/**
 * Samples whose last byte was sent.
 */
sent: number, 
/**
 * Sent samples that missed their deadline.
 */
late: number, 
/**
 * Windows that exceeded the loss tolerance.
 */
violations: number, 
/**
 * Samples that were not sent.
 */
dropped: Drops, };

export type Muted = { 
/**
 * Id of the neighbour.
 */
peer: string, 
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
reserved_bytes: number, 
/**
 * Size of the space.
 */
bytes: number, 
/**
 * Greatest number of bytes of contracted samples in the queues since the start.
 */
greatest_bytes: number, };

export type Stalled = { 
/**
 * Name of the thread.
 */
thread: string, 
/**
 * Delay of the iteration in microseconds.
 */
for_us: number, };

export type Unread = { 
/**
 * Id of the node that announced it.
 */
node: string, 
/**
 * The kind of the entry, in words.
 */
entry: string, 
/**
 * The reason, in words.
 */
reason: string, };

// Written from the structs of the API by PACELINE_REWRITE_TYPES=1 cargo test; not by hand.

export type Reason = "deadline_missed" | "queue_full" | "superseded" | "link_down" | "link_loss" | "no_route" | "subscriber_full" | "cannot_scale" | "scaler_busy" | "duplicate" | "too_large" | "undecodable" | "policed" | "loop" | "not_imported" | "not_exported" | "expired" | "over_budget" | "stale" | "out_of_order" | "over_rights" | "processor_busy";

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
 * State of all subscriptions, in one sentence.
 */
health: NetworkHealth, 
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
 * Capacity, as configured or as measured; 0 without one.
 */
capacity_bits_per_s: Array<number>, 
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
 * Time at which the counters were read, by the node's own clock: only differences are meaningful. The growth of a
 * counter between two readings, divided by the difference of their times, is a rate. The counters of links have an
 * earlier time of their own.
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
 * Queue space of the node for contracts, on all its links and for its subscribers together. `greatest_bytes` includes
 * payloads that its subscribers had not read.
 */
buffer: QueueBuffer | null, 
/**
 * Memory of the node for the input of its neighbours.
 */
memory: NeighbourMemory | null, 
/**
 * Samples dropped by the node, by reason: they arrived without a subscriber, or were not published.
 */
dropped: Drops, 
/**
 * Threads that are blocked: their next iteration is more than 2 s late.
 */
stalled: Array<Stalled>, 
/**
 * State of its clock.
 */
clock: NodeClock | null, 
/**
 * Publishers, subscriptions and other entries of other nodes that the node cannot read and ignores, at most 64.
 */
unread: Array<Unread>, 
/**
 * Time for which its threads waited for a processor; null if the kernel does not count it.
 */
processor_wait: ProcessorWait | null, 
/**
 * Rows that are left out of this status, because an answer has at most 1 MiB.
 */
left_out: number, };

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
 * Samples per second, over the last second or more; in Rust in millihertz.
 */
rate_hz: number, 
/**
 * True if the rate differs from the declared one by more than a tenth and by more than one sample per second; false in a
 * pause.
 */
off_rate: boolean, 
/**
 * True if any subscription, on any node, matches the tag.
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
 * Steps of an elastic contract; absent for others.
 */
elastic?: Elastic, 
/**
 * Importance of its contract, 0 to 100.
 */
importance: number, 
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
 * Names of the nodes that scale the samples, one per publisher of `publishers`, in order.
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
 * Delivered samples per second, over the last second or more; in Rust in millihertz.
 */
rate_hz: number, 
/**
 * Samples that were older than `within` at their arrival, or when the application took them, since the start. The dropped
 * ones of them also count in `dropped`.
 */
late: number, 
/**
 * The part of `late` that arrived in time: the samples waited in the process of the subscription, because it was slow or
 * not scheduled.
 */
overdue: number, 
/**
 * Largest age of the samples that the application took in the last second or more, or that were dropped unread; zero
 * without any. Samples that wait unread do not count yet.
 */
age_max_us: number, 
/**
 * Mean age of the same samples, at most the largest; null without any.
 */
age_mean_us: number | null, 
/**
 * Sum of the ages of all samples that the application took since the start. Divided by `delivered` it is their mean,
 * apart from samples that wait unread.
 */
age_sum_us: number, 
/**
 * Samples dropped at this node since the start.
 */
dropped: Drops, 
/**
 * Largest jitter of a publisher's samples at arrival, by RFC 3550: the running mean of the changes of their ages.
 */
jitter_us: number, 
/**
 * Samples that were published between two that arrived, but did not arrive. 0 unless every sample is requested.
 */
lost: number, 
/**
 * Delivery by time; null without one.
 */
timed: Timed | null, 
/**
 * The players of an RTSP server that share the subscription; absent for others.
 */
players?: Players, 
/**
 * The requested, delivered and lost samples of the last seconds, and whether that is as requested.
 */
health: Health, };

export type Elastic = { 
/**
 * Number of the current step in `ladder`, from 0.
 */
step: number, 
/**
 * Forms of all steps in words, from the most that is requested to the least that is accepted.
 */
ladder: Array<string>, };

export type Health = { 
/**
 * `no_publisher`, `silent`, `served`, `short`, `broken` or `refused`.
 */
state: "no_publisher" | "silent" | "served" | "short" | "broken" | "refused", 
/**
 * The state in words.
 */
label: string, 
/**
 * The time that the figures cover: up to 10 s, and less after a change of the request or of the publishers.
 */
window_us: number, 
/**
 * Samples that the publishers sent and the request includes; null if their number is unknown.
 */
requested: number | null, 
/**
 * Delivered samples, including late ones.
 */
delivered: number, 
/**
 * Requested samples that were not delivered.
 */
lost: number, 
/**
 * The part of `lost` that did not arrive at the node of the subscription. It dropped the rest.
 */
lost_before: number, 
/**
 * Delivered samples that were later than the delay bound.
 */
late: number, 
/**
 * Rate of `requested`; null if it is unknown. In Rust in millihertz.
 */
requested_hz: number | null, 
/**
 * Rate of `delivered`; null before the first second. In Rust in millihertz.
 */
delivered_hz: number | null, 
/**
 * The dominant reason of late or lost samples, or of the refusal, in words; null without any.
 */
reason: string | null, 
/**
 * Seconds in the state `broken` since the start.
 */
broken_seconds: number, 
/**
 * Time since the subscription was last in the state `broken`; null if it never was.
 */
broken_ago_us: number | null, };

export type NetworkHealth = { 
/**
 * The worst state of a subscription: `broken`, `short`, `refused`, `served` or `silent`; `no_publisher` without any.
 */
state: Health["state"], 
/**
 * The sentence.
 */
text: string, };

export type Timed = { 
/**
 * The method: `fresh`, `ordered`, `spacing`, `max_jitter` or `sync_group`.
 */
method: string, 
/**
 * The setting in the form of the command line, such as `100ms:zero`, `time 50ms` or `stage=150ms`.
 */
setting: string, 
/**
 * Samples that were released to the application.
 */
released: number, 
/**
 * Samples that arrived after their release time or after a later sample had left.
 */
late: number, 
/**
 * Samples that left before their release time, because too many waited.
 */
early: number, 
/**
 * Samples that were dropped because of their time: not provably young, or after a later one.
 */
refused: number, 
/**
 * Starts of the safe action.
 */
silences: number, 
/**
 * Released samples whose order the bounds of their times do not decide.
 */
unknown: number, 
/**
 * Samples whose delay differed by more than the accepted jitter.
 */
beyond: number, 
/**
 * Jumps of capture times.
 */
jumps: number, 
/**
 * The largest jitter of a publisher's arrivals by RFC 3550.
 */
jitter_in_us: number | null, 
/**
 * The largest jitter of a publisher's releases by RFC 3550.
 */
jitter_out_us: number | null, 
/**
 * The delay that is added to the fastest sample, or the constant delay.
 */
added_us: number | null, 
/**
 * The time by which the thread woke up too late in 99 % of the last 512 releases.
 */
wakeup_us: number | null, 
/**
 * The largest difference of a release from its time: clock or age error, plus wake-up; null if it is unknown.
 */
bound_us: number | null, };

export type Players = { 
/**
 * Players that receive the samples now.
 */
players: number, 
/**
 * RTP packets that were sent.
 */
packets: number, 
/**
 * Pictures that were left out because the player read too slowly.
 */
left_out_slow: number, 
/**
 * Pictures that were left out because they need an earlier one that was.
 */
left_out_needs: number, 
/**
 * Blocks of sound that were left out because the player read too slowly.
 */
left_out_sound: number, 
/**
 * Packets up to the highest sequence number that each player reported.
 */
reported: number, 
/**
 * The part of `reported` that did not arrive, as the players reported it.
 */
lost: number, 
/**
 * The largest lost part of the packets between the last two reports of a present player, 0 to 1.
 */
loss_max: number, 
/**
 * The largest jitter in the last report of a present player.
 */
jitter_max_us: number, 
/**
 * The largest round trip of a present player, from its last report; null if no player states when it received a sender report.
 */
round_trip_max_us: number | null, };

export type NodeClock = { 
/**
 * The state: `unsynchronised`, `synchronised`, `holdover` or `disrupted`.
 */
status: string, 
/**
 * Time of the report in nanoseconds since 1970, by this clock.
 */
time_ns: number, 
/**
 * Bound of its error in nanoseconds; null if it is unknown.
 */
error_ns: number | null, 
/**
 * Number of steps of the clock.
 */
epoch: number, 
/**
 * The system clock minus this clock, in nanoseconds.
 */
system_offset_ns: number, 
/**
 * Frequency error of the host's raw clock; positive if it is slow. In Rust in parts per trillion.
 */
frequency_ppm: number, 
/**
 * Jitter of the combined servers in nanoseconds.
 */
jitter_ns: number, 
/**
 * Stratum of this node; null while it is not synchronised.
 */
stratum: number | null, 
/**
 * The leap second that a majority of the servers announces: `none`, `insert` or `delete`.
 */
leap: string, 
/**
 * Number of corrections.
 */
updates: number, 
/**
 * Number of disruptions.
 */
disruptions: number, 
/**
 * Cause of the last disruption: `suspend`, `step`, `contradiction` or `leap_second`.
 */
disruption: string | null, 
/**
 * True if the clock follows the one of the host's node.
 */
follows_host: boolean, 
/**
 * The service for NTP clients; null without one.
 */
serves: TimeService | null, 
/**
 * The servers.
 */
servers: Array<TimeServer>, };

export type TimeService = { 
/**
 * The address at which the node serves time.
 */
address: string, 
/**
 * Answered requests.
 */
answered: number, 
/**
 * Requests answered by a kiss-of-death.
 */
kissed: number, 
/**
 * Requests dropped because they were over the rate limit.
 */
limited: number, 
/**
 * Packets that are no requests.
 */
malformed: number, 
/**
 * Requests by a key that this node does not have.
 */
unauthenticated: number, };

export type TimeServer = { 
/**
 * Its kind: `server`, `neighbour` or `system`.
 */
kind: string, 
/**
 * `HOST:PORT` of a server as configured, the name of a neighbour, or `system`.
 */
address: string, 
/**
 * Number of the symmetric key of a server; null without one.
 */
key: number | null, 
/**
 * Its part in the selection, such as `selected` or `falseticker`.
 */
part: string, 
/**
 * Its stratum; null before a usable answer.
 */
stratum: number | null, 
/**
 * The answers to the last 8 requests, one bit each; the lowest bit is the last request.
 */
reach: number, 
/**
 * Interval of requests.
 */
poll_us: number, 
/**
 * Its time minus that of the clock, in nanoseconds, by the best of the last 8 measurements. A clock that has not
 * been synchronised has the time of the system clock.
 */
offset_ns: number, 
/**
 * Round-trip delay of that measurement in nanoseconds.
 */
delay_ns: number, 
/**
 * Jitter of its measurements in nanoseconds.
 */
jitter_ns: number, 
/**
 * Bound of the offset's error in nanoseconds; null without a measurement.
 */
error_ns: number | null, 
/**
 * Number of usable answers.
 */
answers: number, 
/**
 * Number of unusable answers, by cause.
 */
rejected: { [key in string]: number }, };

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
height: number | null, 
/**
 * Sampling rate of sound in samples per second; absent for the publisher's own.
 */
audio_hz?: number | null, 
/**
 * Channels of sound; absent for the publisher's own.
 */
channels?: number | null, 
/**
 * Largest bit rate that whole samples are left out for; absent without one.
 */
max_bits_per_s?: number | null, 
/**
 * Bit rate of the encoder; absent for the default.
 */
bitrate_bits_per_s?: number | null, 
/**
 * Quality of JPEG pictures, 1 to 100; absent for the default.
 */
quality?: number | null, 
/**
 * Id of the node between the ends that scales the samples; absent without one.
 */
via?: string | null, };

export type Buffer = { 
/**
 * Id of the subscription that fills the buffer.
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
 * Buffered payload bytes.
 */
bytes: number, 
/**
 * First capture time in nanoseconds since 1970 UTC, by its publisher's clock; null if it is empty.
 */
oldest_ns: number | null, 
/**
 * Last capture time in nanoseconds since 1970 UTC, by its publisher's clock; null if it is empty.
 */
newest_ns: number | null, };

export type Link = { 
/**
 * Name of the link.
 */
name: string, 
/**
 * Time at which the counters of the link and its streams were read, by its node's clock: at most 250 ms before `at` of the
 * node.
 */
at_us: number, 
/**
 * Capacity, as configured or as measured; null without one.
 */
capacity_bits_per_s: number | null, 
/**
 * Measurement of the capacity; null unless it is measured.
 */
measured: MeasuredCapacity | null, 
/**
 * Medium that the link shares with others; null without one, and without a neighbour.
 */
medium: Medium | null, 
/**
 * Rate sent over the last second or more; null in the first two seconds of the node.
 */
use_bits_per_s: number | null, 
/**
 * Rate reserved by the contracts of its streams.
 */
reserved_bits_per_s: number, 
/**
 * Smallest capacity at which all its contracts stay, of a measured one the part for contracts; 0 without contracts, null
 * without a capacity, with classes, and in the first two seconds of the node.
 */
least_capacity_bits_per_s: number | null, 
/**
 * Smallest round trip of 10 to 20 s; zero if none was measured.
 */
round_trip_us: number, 
/**
 * Last round trip of the slowest neighbour, without acknowledgement delay; zero if none was measured.
 */
delay_us: number, 
/**
 * Jitter of the round trips, by RFC 3550, of the neighbour with the largest; it includes both directions.
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
 * Bytes sent, with an estimate of the headers of all layers.
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
 * Frames lost by a carrier that may lose them, such as QUIC. The losses of TCP are not visible, and appear as jitter.
 */
frames_dropped: number, 
/**
 * Part of the frames lost over the last second or more, 0 to 1; null if none was sent.
 */
loss: number | null, 
/**
 * Open streams.
 */
streams: Array<Stream>, 
/**
 * Sums over closed streams.
 */
closed: Counters, 
/**
 * Its classes in tree order, each followed by its traffic per neighbour; empty without classes.
 */
classes: Array<Class>, 
/**
 * Neighbours that are or were muted, because they flooded the node.
 */
muted: Array<Muted>, 
/**
 * Retransmissions; all zero on transports without loss, such as TCP.
 */
repairs: Repairs, 
/**
 * Queue space of the link for contracts; null for a link without a capacity or a neighbour.
 */
buffer: QueueBuffer | null, };

export type MeasuredCapacity = { 
/**
 * `unknown`, `measuring`, `stable`, `falling` or `outage`.
 */
state: string, 
/**
 * The most probable capacity; during an outage, the last one before it. 0 before the first measurement.
 */
estimate_bits_per_s: number, 
/**
 * The conservative end of the confidence interval, at which the link sends; it uses less while a queue drains.
 */
low_bits_per_s: number, 
/**
 * The optimistic end; null if nothing bounds the capacity.
 */
high_bits_per_s: number | null, 
/**
 * The part of it that contracts may use: 95 % of the conservative end, of the last second or two after a rise.
 */
contracts_bits_per_s: number, };

export type Medium = { 
/**
 * Name of the medium.
 */
name: string, 
/**
 * Sum of the rates that all its links may have: 15/16 of its capacity.
 */
allottable_bits_per_s: number, 
/**
 * Rate of this link.
 */
allotted_bits_per_s: number, 
/**
 * Sum of the least rates that the contracts of all links need.
 */
reserved_bits_per_s: number, 
/**
 * Number of its links.
 */
links: number, 
/**
 * Id of the node that manages it.
 */
manager: string, };

export type Neighbour = { 
/**
 * Id of the neighbour.
 */
id: string, 
/**
 * Bytes sent to this node since the link found it, counted like those of the link.
 */
wire_bytes: number, 
/**
 * Rate sent over the last second or more; null in the first two seconds.
 */
use_bits_per_s: number | null, 
/**
 * Silence after which it counts as down: 1.8 s, and longer on a link below 200 kbit/s, whose idle hops use 2 % of the
 * capacity. The slower end of the link determines it.
 */
down_after_us: number, 
/**
 * Bytes of the node's memory for neighbours that this one uses.
 */
memory_bytes: number, };

export type NeighbourMemory = { 
/**
 * Used bytes.
 */
used_bytes: number, 
/**
 * The limit: `neighbour_memory`.
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
 * Tag; null if the node does not know the publisher.
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
 * True if the reserved traffic was learned from the publisher's samples of the last minute and not declared.
 */
learned: boolean, 
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
 * Reserved rate, including headers.
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
 * True if the processors are reserved at both ends of the hop.
 */
realtime: boolean, };

export type Processor = { 
/**
 * Reserved time, rounded up.
 */
held_us_per_s: number, 
/**
 * Limit of the reservations: `processor_percent`.
 */
most_us_per_s: number, };

export type ProcessorWait = { 
/**
 * Waiting time of the thread that waited longest, in microseconds per second, over the last second or more.
 */
longest_us_per_s: number, };

export type Stream = { 
/**
 * Id of the publisher.
 */
publisher: string, 
/**
 * Tag; null if the node does not know the publisher.
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
 * True if it has a contract; false for best effort.
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
 * Time from the last violation to the reading of the counters, with a resolution of 250 ms; null if there was none since
 * the stream was opened.
 */
broken_ago_us: number | null, 
/**
 * Multicast group from which the hop receives it; null with unicast. Lost pieces are unicast in both cases.
 */
group: string | null, 
/**
 * Samples passed to the link.
 */
offered: number, 
/**
 * Samples whose last byte was sent.
 */
sent: number, 
/**
 * Payload bytes sent, including those of aborted samples.
 */
bytes: number, 
/**
 * Sent samples that missed their deadline.
 */
late: number, 
/**
 * Windows in which more samples missed their deadline than the loss tolerance allows.
 */
violations: number, 
/**
 * Samples dropped after their first segment was sent, so the next hop also counts them as lost.
 */
aborted: number, 
/**
 * Samples in excess of the contract: ahead of their period by more than earlier hops may cause.
 */
too_early: number, 
/**
 * Samples in excess of the contract: longer than declared.
 */
too_long: number, 
/**
 * Samples that were not sent.
 */
dropped: Drops, };

export type Contract = { 
/**
 * Shortest time between two samples.
 */
period_us: number, 
/**
 * Longest time from the arrival of a sample at the link to the end of its transmission.
 */
deadline_us: number, 
/**
 * Loss tolerance, such as `1/10`.
 */
loss: string, 
/**
 * Reserved rate; 0 if it is unknown.
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

export type Counters = { 
/**
 * Samples passed to the link.
 */
offered: number, 
/**
 * Samples whose last byte was sent.
 */
sent: number, 
/**
 * Payload bytes sent, including those of aborted samples.
 */
bytes: number, 
/**
 * Sent samples that missed their deadline.
 */
late: number, 
/**
 * Windows in which more samples missed their deadline than the loss tolerance allows.
 */
violations: number, 
/**
 * Samples dropped after their first segment was sent, so the next hop also counts them as lost.
 */
aborted: number, 
/**
 * Samples in excess of the contract: ahead of their period by more than earlier hops may cause.
 */
too_early: number, 
/**
 * Samples in excess of the contract: longer than declared.
 */
too_long: number, 
/**
 * Samples that were not sent.
 */
dropped: Drops, };

export type Class = { 
/**
 * Name of the class; for the class of a neighbour, the name of the class above it.
 */
name: string, 
/**
 * Name of the class above; null directly below the link.
 */
parent: string | null, 
/**
 * Id of the next hop for a class per neighbour; null for other classes.
 */
peer: string | null, 
/**
 * Its part of a busy link, 0 to 1; 0 with only a guarantee. For the class of a neighbour, the part of all neighbours
 * together.
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
 * Payload bytes sent, including those of aborted samples.
 */
bytes: number, 
/**
 * Sent samples that missed their deadline.
 */
late: number, 
/**
 * Windows in which more samples missed their deadline than the loss tolerance allows.
 */
violations: number, 
/**
 * Samples dropped after their first segment was sent, so the next hop also counts them as lost.
 */
aborted: number, 
/**
 * Samples in excess of the contract: ahead of their period by more than earlier hops may cause.
 */
too_early: number, 
/**
 * Samples in excess of the contract: longer than declared.
 */
too_long: number, 
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
 * True if the neighbour is muted now. Its other traffic is still forwarded, unless none of its frames can be decoded.
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

export type Repairs = { 
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
given_up: number, 
/**
 * The share of the capacity that is reserved for retransmission, in thousandths: it follows the loss of a measured link. 0 on
 * links that keep order.
 */
share_per_mille: number, };

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
 * Name of the thread: `paceline-engine`, or `paceline-` followed by the name of a link.
 */
thread: string, 
/**
 * Delay of its next iteration.
 */
for_us: number, };

export type Unread = { 
/**
 * Id of the node that announced it.
 */
node: string, 
/**
 * The entry in words, such as `publisher 3 'robot/camera'`.
 */
entry: string, 
/**
 * The reason, in words.
 */
reason: string, };

//! Compares the summary of a hand-made record with sums computed by hand.

use paceline_proto::ids::{NodeId, PublisherId};
use paceline_proto::reason::{DropReason, Drops, StreamCounters};
use paceline_sched::{Duration, Instant};
use paceline_sim::scenario::{
    Carried, DelayQuantiles, Plan, Published, ReceivedSample, Record, Streamed, SubscriberRecord,
    Summary, Windows,
};

const FILE: &str = r#"
name = "by hand"
duration = "1s"
warm_up = "2s"
[[node]]
name = "a"
[[node]]
name = "b"
[[link]]
between = ["a", "b"]
rate = "1Mbit/s"
[[publisher]]
node = "a"
tag = "t"
hz = 10
bytes = "100B"
[[subscriber]]
node = "b"
tag = "t"
within = "50ms"
loss = "1/5"
[[fault]]
at = "0.35s"
cut = ["a", "b"]
for = "0.1s"
"#;

/// The delay of each sample in milliseconds. The third and the eighth were lost.
const ARRIVES_AFTER_MS: [Option<u64>; 10] =
    [Some(10), Some(20), None, Some(60), Some(30), Some(40), Some(10), None, Some(20), Some(30)];

const ID: PublisherId = PublisherId { node: NodeId(7), index: 0 };

fn record() -> Record {
    let start = Instant::from_nanos(5_000_000_000);
    let at = |ms: u64| start + Duration::from_millis(ms);
    // Two samples of the warm-up; the second arrives after the start of the measurement.
    let warm_up = [at(0) - Duration::from_millis(200), at(0) - Duration::from_millis(100)];
    let published: Vec<_> = warm_up.into_iter().chain((0..10).map(|k| at(100 * k))).collect();
    let arrival = |seq: u64, at| ReceivedSample { from: ID, seq, at, bytes: 100 };
    let mut arrivals = vec![arrival(1, at(5))];
    for (k, after) in (0..).zip(ARRIVES_AFTER_MS) {
        arrivals.extend(after.map(|after| arrival(k + 2, at(100 * k + after))));
    }
    // A duplicate counts once.
    arrivals.push(arrival(2, at(999)));
    let mut drops = Drops::default();
    drops.add(DropReason::DeadlineMissed, 2);
    let counters =
        StreamCounters { offered: 12, sent: 10, bytes: 1_000, drops, ..Default::default() };
    Record {
        start,
        published: vec![Published { publisher: 0, id: ID, at: published }],
        received: vec![SubscriberRecord { arrivals, drops, ..SubscriberRecord::default() }],
        links: vec![[Carried { bytes: 25_000, lost: Some(3) }, Carried { bytes: 500, lost: None }]],
        dropped: vec![[drops, Drops::default()]],
        streams: vec![Streamed { link: 0, direction: 0, publisher: 0, counters }],
    }
}

#[test]
fn sums_match_a_hand_computation() {
    let plan = Plan::read(FILE, "by-hand.toml").unwrap_or_else(|why| panic!("{why}"));
    let sums = Summary::of(&plan, &record(), 1);
    let [flow] = &sums.flows[..] else { panic!("{:?}", sums.flows) };
    assert_eq!((flow.sent, flow.delivered, flow.bytes), (10, 8, 800));
    assert_eq!(flow.rate_millihertz, 8_000);
    assert_eq!(flow.late, 1, "60 ms are more than 50");
    // In order: 10, 10, 20, 20, 30, 30, 40, 60 ms. The median is the fourth, the others are the eighth of
    // eight.
    let ms = 1_000_000;
    let delays = DelayQuantiles { p50: 20 * ms, p99: 60 * ms, p999: 60 * ms, max: 60 * ms };
    assert_eq!(flow.delay_ns, Some(delays));
    // The first five miss two, the other five one.
    assert_eq!(flow.windows, Some(Windows { all: 2, violated: 1 }));
    // From 120 to 360 ms: the duplicate does not end a gap.
    assert_eq!(flow.gap_ns, 240 * ms);
    assert_eq!(flow.dropped.get("deadline_missed"), Some(&2));
    assert_eq!(flow.refused, None);
    let [there, back] = &sums.links[..] else { panic!("{:?}", sums.links) };
    // One second at 1 Mbit/s is 125,000 bytes.
    assert_eq!((there.wire_bytes, there.used_ppm, there.lost), (25_000, Some(200_000), Some(3)));
    assert_eq!((back.from.as_str(), back.used_ppm, back.lost), ("b", Some(4_000), None));
    assert_eq!((there.dropped.get("deadline_missed"), back.dropped.len()), (Some(&2), 0));
    let [stream] = &sums.streams[..] else { panic!("{:?}", sums.streams) };
    assert_eq!((stream.offered, stream.sent, stream.dropped.len()), (12, 10, 1));
    // The fault ends at 450 ms. The next sample is published at 500 ms and arrives at 540 ms.
    let [fault] = &sums.faults[..] else { panic!("{:?}", sums.faults) };
    assert_eq!((fault.ran, fault.again, fault.again_after_ns), (1, 1, Some(90 * ms)));
}

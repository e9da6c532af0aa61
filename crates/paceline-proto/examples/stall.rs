//! What a link's turns cost after it stood still for seconds with as many streams as it carries, and all of
//! their queues full: the longest turn, and all of them.
//!
//! `cargo run -p paceline-proto --example stall [-- POLICY]`

use bytes::Bytes;
use paceline_proto::link::{Link, LinkSpec, MISSES_PER_TURN, STREAMS_MAX, StreamSpec};
use paceline_proto::receive::Receiver;
use paceline_proto::wire::frame::FrameBuf;
use paceline_proto::{Encoding, Form, Kind, NodeId, PublisherId, Sample, Timestamp};
use paceline_sched::discipline::StreamIndex;
use paceline_sched::{Capacity, Contract, Duration, Instant, Late, LossTolerance, Policy};

/// What a stream with such a contract may have waiting.
const WAITING: u64 = 64;
const PERIOD: Duration = Duration::from_millis(10);

const HERE: NodeId = NodeId(1);
const THERE: NodeId = NodeId(2);

/// A link whose hop is up.
fn connected(policy: Policy) -> (Link, Instant) {
    let capacity = Capacity::from_bits_per_s(1_000_000_000).ok();
    let mut ends = [
        (Link::new(LinkSpec { capacity, policy, ..LinkSpec::default() }), Receiver::new(), THERE),
        (Link::new(LinkSpec::default()), Receiver::new(), HERE),
    ];
    let mut now = Instant::from_millis(10_000);
    ends.iter_mut().for_each(|(link, _, other)| link.add_hop(now, *other, 1));
    let mut frame = FrameBuf::default();
    for _ in 0..20 {
        now += Duration::from_millis(50);
        for from in [0, 1] {
            let mut sent: Vec<Bytes> = Vec::new();
            if let Some((link, ..)) = ends.get_mut(from) {
                link.handle_timeout(now);
                while link.poll_frame(now, &mut frame).is_some() {
                    sent.push(frame.to_bytes());
                }
            }
            let Some((link, receiver, other)) = ends.get_mut(1 - from) else { continue };
            for bytes in sent {
                let heard = receiver.handle_frame(now, link.epoch(*other), bytes, |_| ());
                if let Ok(heard) = heard {
                    link.handle_heard(now, *other, &heard);
                }
            }
        }
    }
    let [(link, ..), _] = ends;
    assert!(link.hops().all(|(_, hop)| hop.is_up()), "the hop came up");
    (link, now)
}

/// Fills every stream's queue.
fn fill(link: &mut Link, now: Instant) {
    let contract = Contract {
        period: PERIOD,
        deadline: PERIOD.mul_div(WAITING - 2, 1),
        loss: LossTolerance::NONE,
        late: Late::Drop,
        jitter: Duration::ZERO,
    };
    for index in 0..STREAMS_MAX {
        let publisher = PublisherId { node: HERE, index };
        let plain = StreamSpec::best_effort(publisher, THERE, Form::FULL, Kind::Data);
        link.open_stream(StreamIndex(index), StreamSpec { contract: Some(contract), ..plain });
        for seq in 0..WAITING {
            let sample = Sample {
                seq,
                captured: Timestamp::default(),
                born: now,
                kind: Kind::Data,
                encoding: Encoding::Bytes,
                payload: Bytes::from_static(&[0; 64]),
            };
            assert!(link.handle_sample(now, StreamIndex(index), sample), "it has room");
        }
    }
}

/// Takes turns at `now` until nothing is due at once any more.
#[expect(clippy::disallowed_methods, reason = "it measures")]
fn catch_up(link: &mut Link, now: Instant) -> Vec<std::time::Duration> {
    let (mut turns, mut frame) = (Vec::new(), FrameBuf::default());
    loop {
        let start = std::time::Instant::now();
        link.handle_timeout(now);
        while link.poll_frame(now, &mut frame).is_some() {}
        turns.push(start.elapsed());
        if link.poll_timeout() > now {
            return turns;
        }
    }
}

fn main() {
    let named = std::env::args().nth(1).map(|name| name.parse());
    let policy: Policy =
        named.transpose().unwrap_or_else(|error| panic!("{error}")).unwrap_or_default();
    // Up to 2 s a hop may be silent; after that what waits for it is given up as a whole.
    for (millis, what) in [(1_900, "1.9 s, its hop there"), (30_000, "30 s, its hop gone")] {
        let (mut link, now) = connected(policy);
        fill(&mut link, now);
        let turns = catch_up(&mut link, now + Duration::from_millis(millis));
        let given_up: u64 = link.streams().map(|(_, _, n, _)| n.drops.total()).sum();
        let all: std::time::Duration = turns.iter().sum();
        println!(
            "{policy}, {STREAMS_MAX} streams, a stall of {what}: {given_up} samples given up in {} \
             turns (at most {MISSES_PER_TURN} each), the longest {:?}, all {all:?}",
            turns.len(),
            turns.iter().max().copied().unwrap_or_default()
        );
    }
}

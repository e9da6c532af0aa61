//! Measures the iterations of links after a stall of seconds, with ten thousand streams whose queues are
//! full: the longest iteration, and the sum of all.
//!
//! Each link iterates on its own and carries [`STREAMS_MAX`] streams, so ten thousand streams are those of
//! three links. One iteration of a full link is measured as well.
//!
//! `cargo run --release -p paceline-proto --example stall [-- POLICY]`

use bytes::Bytes;
use paceline_proto::link::{Link, LinkSpec, MISSES_PER_TURN, StreamSpec};
use paceline_proto::receive::Receiver;
use paceline_proto::wire::STREAMS_MAX;
use paceline_proto::wire::frame::FrameBuf;
use paceline_proto::{DropReason, Encoding, Form, Kind, NodeId, PublisherId, RawSample, Timestamp};
use paceline_sched::discipline::StreamIndex;
use paceline_sched::{Capacity, Contract, Duration, Instant, Late, LossTolerance, Policy};

/// The number of samples that a stream with this contract may have queued.
const WAITING: u64 = 64;
const PERIOD: Duration = Duration::from_millis(10);

/// The number of repetitions. Other load on the machine makes some iterations long, but rarely the same one
/// in each run.
const RUNS: usize = 5;

/// The duration of an iteration.
type Took = std::time::Duration;

const HERE: NodeId = NodeId(1);
const THERE: NodeId = NodeId(2);

/// Returns a link whose hop is up.
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

/// Fills the queues of `streams` streams.
fn fill(link: &mut Link, streams: u32, now: Instant) {
    let contract = Contract {
        period: PERIOD,
        deadline: PERIOD.mul_div(WAITING - 2, 1),
        loss: LossTolerance::NONE,
        late: Late::Drop,
        jitter: Duration::ZERO,
    };
    for index in 0..streams {
        let publisher = PublisherId { node: HERE, index };
        let plain = StreamSpec::best_effort(publisher, THERE, Form::FULL, Kind::Data);
        link.open_stream(StreamIndex(index), StreamSpec { contract: Some(contract), ..plain });
        for seq in 0..WAITING {
            let sample = RawSample {
                seq,
                captured: Timestamp::default(),
                shift: 0,
                published_at: now,
                doubt: Duration::ZERO,
                kind: Kind::Data,
                encoding: Encoding::Bytes,
                payload: Bytes::from_static(&[0; 64]),
                attachment: None,
            };
            assert!(link.handle_sample(now, StreamIndex(index), sample), "it has room");
        }
    }
}

/// Runs iterations at `now` until nothing more is due at once.
#[expect(clippy::disallowed_methods, reason = "it measures")]
fn catch_up(link: &mut Link, now: Instant) -> Vec<Took> {
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

/// Stalls `links` links with `streams` streams each for `stall`. Returns the durations of their iterations,
/// and the number of samples dropped for `reason`.
fn measure(
    policy: Policy,
    (links, streams): (u32, u32),
    stall: Duration,
    reason: DropReason,
) -> (Vec<Took>, u64) {
    let (mut turns, mut given_up) = (Vec::new(), 0);
    for _ in 0..links {
        let (mut link, now) = connected(policy);
        fill(&mut link, streams, now);
        turns.extend(catch_up(&mut link, now + stall));
        given_up += link.streams().map(|(_, _, n, _)| n.drops.of(reason)).sum::<u64>();
    }
    (turns, given_up)
}

fn print(policy: Policy, links: u32, streams: u32) {
    // A hop may be silent for up to 1.8 s; after that all samples queued for it are dropped at once.
    for (millis, what, reason) in [
        (1_200, "1.2 s, hop there", DropReason::DeadlineMissed),
        (30_000, "30 s, hop gone", DropReason::LinkDown),
    ] {
        let stall = Duration::from_millis(millis);
        let (mut turns, given_up) = measure(policy, (links, streams), stall, reason);
        let mut worst = turns.iter().max().copied();
        for _ in 1..RUNS {
            let (again, _) = measure(policy, (links, streams), stall, reason);
            assert_eq!(turns.len(), again.len(), "every run is identical");
            worst = worst.max(again.iter().max().copied());
            turns.iter_mut().zip(again).for_each(|(turn, again)| *turn = again.min(*turn));
        }
        let micros = |took: Option<Took>| took.unwrap_or_default().as_micros();
        println!(
            "| {policy} | {links} × {streams} | {what} | {given_up} | {} | {} | {} | {} |",
            turns.len(),
            micros(Some(turns.iter().sum())),
            micros(turns.iter().max().copied()),
            micros(worst),
        );
    }
}

fn main() {
    let named = std::env::args().nth(1).map(|name| name.parse::<Policy>());
    let named = named.transpose().unwrap_or_else(|error| panic!("{error}"));
    println!(
        "In µs; a turn gives up at most {MISSES_PER_TURN} samples. Each turn is the shortest of"
    );
    println!("{RUNS} runs, which do the same; the last column is the longest that there was.\n");
    println!(
        "| discipline | streams | stall | given up | turns | all turns | longest turn | ever |"
    );
    println!("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |");
    let wanted = |policy: &Policy| named.is_none_or(|name| name == *policy);
    for policy in Policy::ALL.into_iter().filter(wanted) {
        print(policy, 3, 3_334);
        print(policy, 1, STREAMS_MAX);
    }
}

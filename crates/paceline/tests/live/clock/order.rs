//! Ten publishers on three nodes whose clocks follow each other over links: the order of their samples.

use crate::support::{SOON, free_endpoint, isolated, wait_until};
use paceline::delivery::{Placement, TimeBuffering};
use paceline::time::{ClockConfig, ClockStatus};
use paceline::{LinkConfig, Node, Publisher, PutOptions, Subscriber, Timestamp};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

const HOLD: Duration = Duration::from_millis(50);
const ROUNDS: u64 = 100;
const PUBLISHERS: u64 = 10;
/// 2^16 us: a bound of clocks that are up to 50 ms off.
const UNSURE: u8 = 16;

fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap()
}

/// Reads the clock of `node` within a few microseconds. Returns the stamp and the true instant.
fn stamp(node: &Node) -> (Timestamp, u64) {
    loop {
        let before = monotonic();
        let reading = node.clock().now();
        if monotonic() - before < 5_000 {
            return (Timestamp { nanos: reading.nanos, error: reading.error_byte() }, before);
        }
    }
}

/// Publishes with clocks that are `off` nanoseconds ahead, if they are not synchronised. Returns the numbers of samples whose
/// order was known, unknown and late, and of those that were declared in order and were not.
fn run(
    nodes: [&Node; 3],
    publishers: &mut [Publisher],
    samples: &mut Subscriber,
    off: &[i64],
) -> [u64; 4] {
    for _ in 0..ROUNDS {
        for (at, publisher) in publishers.iter_mut().enumerate() {
            let (mut captured, truth) = stamp(nodes[at % 3]);
            if let Some(off) = off.get(at) {
                captured.nanos = captured.nanos.saturating_add_signed(*off);
                captured.error = UNSURE;
            }
            let options = PutOptions { captured: Some(captured), ..PutOptions::default() };
            publisher.put_with(truth.to_le_bytes().to_vec(), options).unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let (mut counts, mut last) = ([0; 4], 0);
    for number in 0..ROUNDS * PUBLISHERS {
        let sample = samples.recv_timeout(SOON).unwrap_or_else(|error| panic!("{number}: {error}"));
        let truth = u64::from_le_bytes(sample.payload.as_ref().try_into().unwrap());
        match sample.placement {
            Some(Placement::InOrder) => {
                counts[0] += 1;
                counts[3] += u64::from(truth + 5_000 < last);
            }
            Some(Placement::Unknown) => counts[1] += 1,
            Some(Placement::Late) => counts[2] += 1,
            None => panic!("a sample without a placement"),
        }
        last = truth;
    }
    counts
}

#[test]
fn samples_of_ten_publishers_on_three_nodes_leave_in_the_order_of_their_times() {
    let end = free_endpoint();
    let system = ClockConfig::new().system(Duration::from_micros(50));
    let listen = LinkConfig::new("down").listen(&end);
    let root = Node::builder().isolated().name("root").clock(system).link(listen).open().unwrap();
    let follow = |name: &str| isolated(name, [LinkConfig::new("up").connect(&end)]);
    let (one, two) = (follow("one"), follow("two"));
    let nodes = [&root, &one, &two];
    for node in nodes {
        wait_until("it is synchronised", || node.clock().status() == ClockStatus::Synchronised);
    }
    let declare = |at: u64| {
        let node = nodes[usize::try_from(at % 3).unwrap()];
        node.publisher(&format!("sensor/{at}")).declare().unwrap()
    };
    let mut publishers: Vec<_> = (0..PUBLISHERS).map(declare).collect();
    let order = TimeBuffering::by_time(HOLD);
    let samples = root.subscriber("sensor/*").queue(10_000).ordered(order);
    let mut samples = samples.declare().unwrap();
    assert!(publishers.iter().all(|publisher| publisher.wait_matching(SOON)));
    let synchronised = run(nodes, &mut publishers, &mut samples, &[]);
    let off: Vec<i64> = (0..10).map(|at| (at * 37 % 101 - 50) * 1_000_000).collect();
    let unsure = run(nodes, &mut publishers, &mut samples, &off);
    println!(
        "known, unknown, late, wrong: synchronised {synchronised:?}, clocks off by up to 50 ms {unsure:?}"
    );
    assert_eq!((synchronised[3], unsure[3]), (0, 0), "{synchronised:?} {unsure:?}");
    assert!(synchronised[0] > 0, "{synchronised:?}");
}

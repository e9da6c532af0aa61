//! Best effort on a link with three times its capacity of traffic.
//!
//! The test prints the ages. They are proved in virtual time.

use crate::sums;
use crate::support::{SOON, at_rate, pair, wait_until};
use paceline::status::{DropReason, LinkCounters, PublisherId};
use paceline::{Capacity, Node};
use std::time::Duration;

/// Returns the counters of a publisher's samples on the robot's link.
fn counters(robot: &Node, publisher: PublisherId) -> LinkCounters {
    let status = robot.status_of(&[robot.id()], SOON);
    let mut streams = status.iter().flat_map(|node| &node.links).flat_map(|link| &link.streams);
    streams.find(|stream| stream.publisher == publisher).map(|it| it.counters).unwrap_or_default()
}

#[test]
fn live_data_expires_and_file_data_waits() {
    let thin = Capacity::from_bits_per_s(1_000_000).unwrap();
    let (robot, operator) = pair(|link| link.capacity(thin));
    let mut lidar = robot.publisher("lidar").hz(50.0).declare().unwrap();
    let mut file = robot.publisher("file").declare().unwrap();
    let scans = operator.subscriber("lidar").queue(1_000);
    let mut scans = scans.declare().unwrap();
    let mut pieces = operator.subscriber("file").declare().unwrap();
    assert!(lidar.wait_matching(SOON) && file.wait_matching(SOON));
    at_rate(50, 300, |_| {
        lidar.put(vec![0; 7_500]).unwrap();
    });
    let settled = || {
        let LinkCounters { offered, sent, dropped: drops, .. } = counters(&robot, lidar.id());
        offered == 300 && sent + drops.total() == 300
    };
    wait_until("every scan is sent or dropped", settled);
    let LinkCounters { sent, dropped: drops, .. } = counters(&robot, lidar.id());
    let mut got = Vec::new();
    wait_until("sent samples arrive", || {
        got.extend(std::iter::from_fn(|| scans.try_recv()).map(|scan| scan.age));
        got.len() as u64 == sent
    });
    println!("{sent} of 300 scans, the oldest after {:?}; {drops:?}", got.iter().max());
    assert!(drops.of(DropReason::Expired) > 50, "{drops:?}");
    assert_eq!(drops.of(DropReason::Expired), drops.total(), "for no other reason");

    // Publish at once for about five seconds of the link's capacity.
    (0..10).for_each(|_| assert_eq!(file.put_blocking(vec![0; 55_000]).unwrap().dropped, 0));
    let ages: Vec<Duration> = (0..10).map(|_| pieces.recv_timeout(SOON).unwrap().age).collect();
    assert!(ages[9] > Duration::from_secs(3), "it waited for longer than live data may: {ages:?}");
    assert_eq!(counters(&robot, file.id()).dropped.total(), 0);
    sums::check(&[&robot, &operator]);
}

//! A thin link shared by commands and pictures.
//!
//! The test checks counters and prints delays. The delays are proved in virtual time and measured
//! by `paceline-lab bench main-job`.

use crate::sums;
use crate::support::{SOON, at_rate, pair, wait_until};
use paceline::status::DropReason;
use paceline::{Capacity, Kind, Late};
use std::time::Duration;

#[test]
fn steering_shares_a_narrow_link_with_a_saturating_camera() {
    let thin = Capacity::from_bits_per_s(2_000_000).unwrap();
    let (robot, operator) = pair(|link| link.capacity(thin));
    let camera = robot.publisher("camera").kind(Kind::Picture).hz(30.0);
    let mut camera = camera.declare().unwrap();
    // Without a declared size, the contract begins only once the first samples have shown it.
    let steer = robot.publisher("steer").hz(100.0).bytes_max(64).late(Late::Send);
    let mut steer = steer.declare().unwrap();
    let mut pictures = operator.subscriber("camera").declare().unwrap();
    let commands = operator.subscriber("steer").within(Duration::from_millis(10));
    let mut commands = commands.queue(1_000).declare().unwrap();
    assert!(camera.wait_matching(SOON) && steer.wait_matching(SOON));
    at_rate(100, 300, |n| {
        if n % 10 < 3 {
            camera.put(vec![0; 30_000]).unwrap();
        }
        steer.put(vec![0; 64]).unwrap();
    });
    // Counters are published four times per second.
    std::thread::sleep(Duration::from_millis(900));
    let mut ages: Vec<_> = std::iter::from_fn(|| commands.try_recv()).map(|s| s.age).collect();
    ages.sort();
    assert_eq!(ages.len(), 300, "every command arrives");
    println!("commands p50 {:?} p99 {:?} max {:?}", ages[150], ages[297], ages[299]);
    let got = std::iter::from_fn(|| pictures.try_recv()).count() as u64;
    println!("{got} pictures in 3 s");
    assert!((15..=25).contains(&got), "{got} pictures in 3 s over a link for 7.5 a second");
    let counters = || {
        let status = robot.status(SOON);
        let robot = status.iter().find(|node| node.name == "robot").unwrap();
        let mut streams = robot.links[0].streams.iter();
        streams.find(|stream| !stream.contracted).unwrap().counters
    };
    // The counters of links are up to 250 ms old.
    wait_until("sent samples were received", || counters().sent == got);
    let counters = counters();
    assert_eq!(counters.offered, 90);
    assert_eq!(
        counters.dropped.of(DropReason::Superseded),
        90 - got,
        "and the rest has a drop reason"
    );
    sums::check(&[&robot, &operator]);
}

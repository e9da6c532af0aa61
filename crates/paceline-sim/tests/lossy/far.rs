//! Contracts over long and fast paths, with thousands of frames under way.

use super::path::{Path, millis};
use paceline_proto::control::PublisherSpec;
use paceline_sched::{Capacity, Late};
use paceline_sim::ask::{Ask as _, all, data};
use paceline_sim::impair::{Impairment, Loss};

/// Publishes 20 kB a hundred times per second with a contract, and checks that each sample arrives in time.
fn keeps_a_contract(mbits: u64, delay: u64, within: u64, wire: Impairment) {
    let rate = Capacity::from_bits_per_s(mbits * 1_000_000).ok();
    let mut path = Path::new(mbits + delay, Impairment { rate, delay: millis(delay), ..wire });
    let (period, bytes_max) = (Some(millis(10)), Some(20_000));
    let spec = PublisherSpec { period, bytes_max, late: Late::Drop, ..data("camera") };
    let publisher = path.publish(spec);
    let subscription = path.subscribe(all("camera").within_ms(within));
    assert_eq!(path.world.grants(subscription).len(), 1, "{mbits} Mbit/s, {delay} ms");
    path.run(publisher, millis(10), 500, 20_000);
    let got = path.got(subscription);
    let oldest = got.iter().map(|sample| sample.age).max().unwrap();
    let (repairs, fates) = path.repairs();
    println!("{mbits} Mbit/s, {delay} ms: {oldest:?}, {repairs:?} {fates:?}");
    assert_eq!(got.len(), 500, "{:?}", path.world.drops(subscription));
    assert!(oldest <= millis(within));
    assert!(fates.mistaken < 10, "{fates:?}");
    assert!(path.is_at_rest());
}

#[test]
fn a_contract_is_kept_whatever_the_delay() {
    for (mbits, delay, within) in [(30, 5, 60), (30, 80, 150), (200, 20, 50), (200, 250, 300)] {
        keeps_a_contract(mbits, delay, within, Impairment::NONE);
    }
}

#[test]
fn a_contract_with_time_for_repairs_is_kept_under_loss() {
    let loss = Loss::Random { ppm: 5_000 };
    // Two repairs of the same frame take five times the delay.
    for (mbits, delay, within) in [(50, 20, 180), (200, 80, 600)] {
        keeps_a_contract(mbits, delay, within, Impairment { loss, ..Impairment::NONE });
    }
}

//! Links that measure their capacity.

use crate::support::{SOON, pair, wait_until};
use paceline::class::CapacityError;
use paceline::contract::RefusalReason;
use paceline::{Capacity, LinkCapacity, SubscriberEvent};
use std::time::Duration;

/// 3.2 Mbit/s: more than a link begins with.
const HZ: f64 = 20.0;
const BYTES: u64 = 20_000;

fn range(text: &str) -> LinkCapacity {
    text.parse().unwrap()
}

#[test]
fn the_first_contract_waits_for_the_measurement_and_is_not_refused() {
    let (robot, operator) = pair(|link| link.capacity(range("auto")));
    let mut lidar = robot.publisher("lidar").hz(HZ).bytes_max(BYTES).declare().unwrap();
    let lidars = operator.subscriber("lidar").within(Duration::from_millis(200));
    let mut lidars = lidars.declare().unwrap();
    let mut granted = None;
    wait_until("the contract is granted", || {
        while let Some(event) = lidars.try_event() {
            if let SubscriberEvent::Refused(_, refusal) = &event {
                panic!("{refusal}");
            }
            if let SubscriberEvent::Granted(grant) = event {
                granted = Some(grant);
            }
        }
        granted.is_some()
    });
    println!("{}", granted.unwrap());
    lidar.put(vec![7; 20_000]).unwrap();
    assert_eq!(lidars.recv_timeout(SOON).unwrap().payload.len(), 20_000);
    let fixed = Capacity::from_bits_per_s(1_000_000).unwrap();
    let measured = CapacityError::Measured("radio".to_owned());
    assert_eq!(robot.set_capacity("radio", fixed), Err(measured));
    wait_until("the status shows the measurement", || {
        let status = robot.status(SOON);
        let links = status.iter().flat_map(|node| &node.links);
        let found = links.filter(|link| link.name == "radio").find_map(|link| link.measured);
        found.is_some_and(|found| found.contracts_bits_per_s > 3_200_000)
    });
}

#[test]
fn a_maximum_bounds_the_measurement() {
    let (robot, operator) = pair(|link| link.capacity(range("auto ..2mbit")));
    let _lidar = robot.publisher("lidar").hz(HZ).bytes_max(BYTES).declare().unwrap();
    let lidars = operator.subscriber("lidar").within(Duration::from_millis(200));
    let lidars = lidars.declare().unwrap();
    let mut refused = None;
    wait_until("2 Mbit/s refuse it", || {
        while let Some(event) = lidars.try_event() {
            if let SubscriberEvent::Refused(_, refusal) = event {
                refused = Some(refusal);
            }
        }
        refused.is_some()
    });
    let refusal = refused.unwrap();
    assert_eq!((refusal.link.as_str(), refusal.reason), ("radio", RefusalReason::Capacity));
    assert!(refusal.available_bytes_per_s <= 250_000, "{refusal}");
}

//! Links that measure their capacity.

use crate::cable::Cable;
use crate::support::{SOON, free_endpoint, isolated, pair, wait_until, wait_within};
use paceline::class::CapacityError;
use paceline::contract::RefusalReason;
use paceline::{Capacity, LinkCapacity, LinkConfig, SubscriberEvent};
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

/// A link of stated 20 Mbit/s that carries 2 Mbit/s: the excess of its contracts is refused, and comes back with the capacity.
#[test]
fn a_stated_capacity_is_contradicted_by_a_measurement_and_confirmed_later() {
    let endpoint = free_endpoint();
    let stated = Capacity::from_bits_per_s(20_000_000).unwrap();
    let near = LinkConfig::new("radio").listen(&endpoint).capacity(stated);
    let robot = isolated("robot", [near]);
    let cable = Cable::new(&endpoint);
    let far = LinkConfig::new("radio").connect(&cable.endpoint()).capacity(stated);
    let operator = isolated("operator", [far]);
    let mut data = robot.publisher("data").declare().unwrap();
    let mut lidar = robot.publisher("lidar").hz(HZ).bytes_max(BYTES).declare().unwrap();
    let lidars = operator.subscriber("lidar").within(Duration::from_millis(200));
    let mut lidars = lidars.declare().unwrap();
    let _all = operator.subscriber("data").declare().unwrap();
    let mut reason = None;
    let mut look = |is_over: &dyn Fn(&Option<RefusalReason>) -> bool| {
        // Best-effort data, so that the link is never idle.
        data.put(vec![7; 20_000]).unwrap();
        lidar.put(vec![7; 20_000]).unwrap();
        std::thread::sleep(Duration::from_millis(15));
        _ = lidars.try_recv();
        while let Some(event) = lidars.try_event() {
            if let SubscriberEvent::Granted(grant) = &event {
                println!("{grant}");
                reason = None;
            }
            if let SubscriberEvent::Refused(_, refusal) = event {
                println!("{refusal}");
                reason = Some(refusal.reason);
            }
        }
        is_over(&reason)
    };
    let measured = || {
        let status = robot.status(SOON);
        let links = status.into_iter().flat_map(|node| node.links);
        links.filter(|link| link.name == "radio").find_map(|link| link.measured)
    };
    for _ in 0..200 {
        look(&|_| false);
    }
    assert_eq!(measured(), None, "nothing contradicts it");
    cable.limit(2_000_000);
    wait_within("the contract ends", Duration::from_secs(10), || {
        look(&|reason| *reason == Some(RefusalReason::Capacity))
    });
    wait_within("the status shows the measurement", Duration::from_secs(5), || {
        look(&|_| true) && measured().is_some_and(|found| found.contracts_bits_per_s < 3_200_000)
    });
    cable.limit(0);
    wait_within("the contract is granted again", Duration::from_secs(30), || {
        look(&Option::is_none)
    });
    wait_within("the capacity is confirmed", Duration::from_secs(40), || {
        look(&|_| true) && measured().is_none()
    });
}

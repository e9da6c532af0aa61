//! The first samples of a publisher reach all existing subscriptions on all nodes.

use crate::sums;
use crate::support::{SOON, free_endpoint, isolated, pair};
use paceline::{Capacity, LinkConfig, Node, Subscriber};
use std::collections::BTreeMap;

/// The number of publishers that each test declares in sequence.
const PUBLISHERS: usize = 40;

/// Waits until `node` knows a subscription to `new/*` of another node.
fn meet(node: &Node) {
    let probe = node.publisher("new/probe").declare().unwrap();
    assert!(probe.wait_matching(SOON));
}

/// Receives `count` payloads and groups them by tag.
fn arrive(subscriber: &mut Subscriber, count: usize) -> BTreeMap<String, Vec<u64>> {
    let mut got: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for n in 0..count {
        let delivery = subscriber.recv_timeout(SOON);
        let delivery = delivery.unwrap_or_else(|error| panic!("{n} of {count} arrived: {error}"));
        let number = u64::from_le_bytes(delivery.payload[..8].try_into().unwrap());
        got.entry(delivery.tag.to_string()).or_default().push(number);
    }
    got
}

fn number(n: u64) -> Vec<u8> {
    n.to_le_bytes().to_vec()
}

/// Declares many publishers in sequence. Each publishes one sample at once and ends after `stays`.
fn each_first_sample_arrives(robot: &Node, subscriber: &mut Subscriber) {
    meet(robot);
    let mut publishers = Vec::new();
    for n in 0..PUBLISHERS {
        let publisher = robot.publisher(&format!("new/{n}"));
        let mut publisher = publisher.hz(1.0).bytes_max(100).declare().unwrap();
        publisher.put(number(n as u64)).unwrap();
        publishers.push(publisher);
    }
    let got = arrive(subscriber, PUBLISHERS);
    assert_eq!(got.len(), PUBLISHERS, "{got:?}");
}

#[test]
fn the_first_sample_reaches_a_subscription_of_another_node() {
    let (robot, operator) = pair(|link| link);
    let mut subscriber = operator.subscriber("new/*").declare().unwrap();
    each_first_sample_arrives(&robot, &mut subscriber);
    sums::check(&[&robot, &operator]);
}

#[test]
fn the_first_sample_crosses_intermediate_nodes() {
    let ends = [free_endpoint(), free_endpoint()];
    let link = LinkConfig::new;
    let robot = isolated("robot", [link("ab").listen(&ends[0])]);
    let _relay = isolated("relay", [link("ba").connect(&ends[0]), link("bc").listen(&ends[1])]);
    let operator = isolated("operator", [link("cb").connect(&ends[1])]);
    let mut subscriber = operator.subscriber("new/*").declare().unwrap();
    each_first_sample_arrives(&robot, &mut subscriber);
    sums::check(&[&robot, &operator]);
}

#[test]
fn the_first_sample_waits_for_a_requested_contract() {
    let capacity = Capacity::from_bits_per_s(10_000_000).unwrap();
    let (robot, operator) = pair(|link| link.capacity(capacity));
    let subscriber = operator.subscriber("new/*").within(SOON);
    let mut subscriber = subscriber.declare().unwrap();
    each_first_sample_arrives(&robot, &mut subscriber);
    sums::check(&[&robot, &operator]);
}

#[test]
fn samples_published_before_the_outputs_are_known_keep_their_order() {
    let (robot, operator) = pair(|link| link);
    let far = operator.subscriber("new/*").queue(1_000);
    let mut far = far.declare().unwrap();
    let near = robot.subscriber("new/1").queue(1_000);
    let mut near = near.declare().unwrap();
    meet(&robot);
    for n in 0..2 {
        let mut publisher = robot.publisher(&format!("new/{n}")).declare().unwrap();
        for k in 0..100 {
            publisher.put(number(k)).unwrap();
        }
        assert!(publisher.close(SOON), "all of it is sent");
    }
    let got = arrive(&mut far, 200);
    assert!(got.values().all(|numbers| numbers.iter().copied().eq(0..100)), "{got:?}");
    let got = arrive(&mut near, 100);
    assert!(got["new/1"].iter().copied().eq(0..100), "{got:?}");
    sums::check(&[&robot, &operator]);
}

#[test]
fn samples_arrive_after_their_publisher_closed() {
    let (robot, operator) = pair(|link| link);
    let mut subscriber = operator.subscriber("new/*").declare().unwrap();
    meet(&robot);
    for n in 0..PUBLISHERS {
        let mut publisher = robot.publisher(&format!("new/{n}")).declare().unwrap();
        publisher.put(number(n as u64)).unwrap();
    }
    let got = arrive(&mut subscriber, PUBLISHERS);
    assert_eq!(got.len(), PUBLISHERS, "{got:?}");
    sums::check(&[&robot, &operator]);
}

//! Contracts that publishers request for subscriptions without one.

use super::net::{Net, camera, link, promised};
use paceline_proto::Pattern;
use paceline_proto::control::{BestEffort, PublisherSpec, SubscriptionSpec};
use paceline_sched::Duration;

/// Carries one camera with its headers, but not two.
const THIN: u64 = 400_000;

fn row() -> Net {
    let mut net = Net::new(3);
    for hop in 1..3 {
        let name = format!("link{hop}");
        net.join_over(hop - 1, hop, link(&name, Some(THIN)), link(&name, Some(THIN)));
    }
    net.settle();
    net
}

fn requesting(tag: &str) -> PublisherSpec {
    PublisherSpec { within: promised(tag).within, ..camera(tag) }
}

fn best_effort(tag: &str) -> SubscriptionSpec {
    SubscriptionSpec::all_of(Pattern::new(tag).unwrap())
}

#[test]
fn a_subscription_without_a_request_gets_the_contract_of_its_publisher() {
    let mut net = row();
    let left = net.publish(0, requesting("left"));
    let user = net.subscribe(2, best_effort("left"));
    net.settle();
    assert_eq!(net.held(), [1, 1, 1]);
    assert!(net.seen[2].granted.contains_key(&(user, left)));
    net.unsubscribe(user);
    net.run(Duration::from_secs(1));
    assert_eq!(net.held(), [0, 0, 0]);
}

#[test]
fn it_gets_best_effort_while_the_path_refuses_and_the_contract_afterwards() {
    let mut net = row();
    let [left, right] = ["left", "right"].map(|tag| net.publish(0, requesting(tag)));
    let other = net.subscribe(2, promised("right"));
    net.settle();
    let user = net.subscribe(2, best_effort("left"));
    net.settle();
    assert_eq!(net.heard(other), [right]);
    assert_eq!(net.heard(user), [left], "no contract, but the samples");
    assert_eq!(net.seen[2].best_effort, [(user, left, BestEffort::Refused)]);
    assert!(net.seen[2].refused.is_empty(), "it requested nothing that can be refused");
    assert!(!net.seen[2].granted.contains_key(&(user, left)));
    // A request of its own is refused as always.
    let strict = net.subscribe(2, promised("left"));
    net.settle();
    assert!(net.heard(strict).is_empty());
    assert_eq!(net.seen[2].refused.len(), 1);
    net.unsubscribe(strict);
    net.unsubscribe(other);
    net.run(Duration::from_secs(20));
    assert!(net.seen[2].granted.contains_key(&(user, left)), "granted once there is room");
    assert_eq!(net.heard(user), [left]);
    net.assert_delivered();
}

#[test]
fn a_refused_request_of_the_publisher_keeps_a_change_of_the_subscription() {
    let mut net = row();
    let [left, _] = ["left", "right"].map(|tag| net.publish(0, requesting(tag)));
    let user = net.subscribe(2, promised("left"));
    net.settle();
    net.nodes[2].update_subscription(net.now, user, best_effort("left"));
    net.drain(2);
    net.settle();
    assert_eq!(net.held(), [1, 1, 1], "the publisher's request instead of its own");
    let other = net.subscribe(2, best_effort("right"));
    net.settle();
    assert_eq!(net.seen[2].best_effort.iter().filter(|it| it.0 == other).count(), 1);
    assert_eq!(net.heard(user), [left]);
    net.assert_delivered();
}

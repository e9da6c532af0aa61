//! Reservations with an idle time: released without samples, and requested again by the next one.

use super::net::{Net, camera, index, link, promised};
use core::num::NonZeroU32;
use paceline_proto::control::{BestEffort, IDLE_MIN, SubscriptionSpec};
use paceline_proto::{Form, PublisherId, Rate};
use paceline_sched::Duration;
use std::collections::BTreeSet;

/// Carries one camera with its headers, but not two.
const THIN: u64 = 400_000;
const HALF: Duration = Duration::from_millis(500);

fn row(nodes: usize) -> Net {
    let mut net = Net::new(nodes);
    for hop in 1..nodes {
        let name = format!("link{hop}");
        net.join_over(hop - 1, hop, link(&name, Some(THIN)), link(&name, Some(THIN)));
    }
    net.settle();
    net
}

fn idle(tag: &str, seconds: u64) -> SubscriptionSpec {
    SubscriptionSpec { idle: Some(Duration::from_secs(seconds)), ..promised(tag) }
}

impl Net {
    /// Lets time pass, in which all nodes report that nothing was published.
    fn run_reporting(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.run(Duration::from_millis(50).min(end.since(self.now)));
            for node in 0..self.nodes.len() {
                self.nodes[node].handle_published(self.now, &BTreeSet::new());
                self.drain(node);
            }
            self.settle();
        }
    }

    /// Reports samples of a publisher, and delivers all messages.
    fn put(&mut self, publisher: PublisherId) {
        let node = index(publisher.node);
        self.nodes[node].handle_published(self.now, &BTreeSet::from([publisher]));
        self.drain(node);
        self.settle();
    }

    /// Returns for each node before the last whether it sends the publisher's samples under a contract.
    fn contracts(&self, publisher: PublisherId) -> Vec<bool> {
        let with = |node: usize| {
            let outputs = self.outputs(node, publisher, Form::FULL);
            outputs.iter().any(|output| output.demand.is_some())
        };
        (0..self.nodes.len() - 1).map(with).collect()
    }
}

#[test]
fn an_unused_reservation_is_released_and_the_next_sample_requests_it_again() {
    let mut net = row(3);
    let left = net.publish(0, camera("left"));
    let user = net.subscribe(2, idle("left", 3));
    net.settle();
    assert_eq!(net.held(), [1, 1, 1]);
    for _ in 0..20 {
        net.run_reporting(HALF);
        net.put(left);
    }
    assert_eq!(net.held(), [1, 1, 1], "samples keep it");
    net.run_reporting(Duration::from_millis(2_900));
    assert_eq!(net.held(), [1, 1, 1], "before the idle time");
    net.run_reporting(HALF);
    assert_eq!(net.held(), [0, 0, 0], "after the idle time");
    assert!(net.seen[2].granted.is_empty() && net.seen[0].granted.is_empty(), "both are notified");
    assert_eq!(net.seen[2].best_effort, [(user, left, BestEffort::Idle)]);
    assert!(net.seen[2].refused.is_empty(), "idle is no refusal");
    // The stream stays, without a contract on any node.
    assert_eq!(net.heard(user), [left]);
    assert_eq!(net.contracts(left), [false, false]);
    net.run_reporting(Duration::from_secs(30));
    assert_eq!(net.held(), [0, 0, 0], "time alone requests nothing");
    net.put(left);
    assert_eq!(net.held(), [1, 1, 1], "a sample requests it");
    assert_eq!(net.contracts(left), [true, true]);
    assert!(net.seen[2].granted.contains_key(&(user, left)));
    net.run_reporting(Duration::from_secs(4));
    assert_eq!(net.held(), [0, 0, 0], "the idle time begins again");
    net.unsubscribe(user);
    net.settle();
    net.assert_delivered();
}

#[test]
fn an_idle_reservation_leaves_its_capacity_to_others_and_may_then_be_refused() {
    let mut net = row(3);
    let [left, right] = ["left", "right"].map(|tag| net.publish(0, camera(tag)));
    let user = net.subscribe(2, idle("left", 2));
    net.settle();
    let other = net.subscribe(2, promised("right"));
    net.settle();
    assert!(net.heard(other).is_empty(), "no room next to the used one");
    net.run_reporting(Duration::from_secs(8));
    assert_eq!(net.heard(other), [right], "its capacity is free");
    assert_eq!(net.heard(user), [left], "as best effort");
    net.seen[2].refused.clear();
    net.put(left);
    net.run_reporting(HALF);
    assert!(net.heard(user).is_empty(), "refused like any request");
    let [refusal] = &net.seen[2].refused[..] else { panic!("{:?}", net.seen[2].refused) };
    assert_eq!((refusal.subscription, refusal.publisher), (user, left));
    net.unsubscribe(other);
    for _ in 0..12 {
        net.run_reporting(HALF);
        net.put(left);
    }
    assert_eq!(net.heard(user), [left]);
    assert!(net.seen[2].granted.contains_key(&(user, left)), "granted once there is room");
}

#[test]
fn a_change_and_a_new_path_of_an_idle_stream_keep_their_promises() {
    let mut net = row(3);
    let left = net.publish(0, camera("left"));
    let user = net.subscribe(2, idle("left", 2));
    net.settle();
    net.run_reporting(Duration::from_secs(3));
    assert_eq!(net.held(), [0, 0, 0]);
    // A changed request is a request.
    let form = Form { rate: Rate::every(NonZeroU32::new(2).unwrap()), ..Form::FULL };
    net.nodes[2].update_subscription(net.now, user, SubscriptionSpec { form, ..idle("left", 6) });
    net.drain(2);
    net.settle();
    assert_eq!(net.held(), [1, 1, 1]);
    net.run_reporting(Duration::from_secs(5));
    assert_eq!(net.held(), [1, 1, 1], "the new idle time applies");
    net.run_reporting(Duration::from_secs(2));
    assert_eq!(net.held(), [0, 0, 0]);
    // Without an idle time it stays.
    net.nodes[2].update_subscription(net.now, user, SubscriptionSpec { form, ..promised("left") });
    net.drain(2);
    net.run_reporting(Duration::from_secs(60));
    assert_eq!(net.held(), [1, 1, 1]);
    // The loss of a hop while idle, and its return.
    net.nodes[2].update_subscription(net.now, user, idle("left", 2));
    net.drain(2);
    net.run_reporting(Duration::from_secs(3));
    assert_eq!(net.held(), [0, 0, 0]);
    net.part(1, 2);
    net.run_reporting(HALF);
    net.put(left);
    net.join_over(1, 2, link("link2", Some(THIN)), link("link2", Some(THIN)));
    net.run_reporting(Duration::from_secs(1));
    assert_eq!(net.heard(user), [left]);
    net.put(left);
    assert_eq!(net.held(), [1, 1, 1]);
    assert!(net.seen[2].granted.contains_key(&(user, left)));
}

#[test]
fn the_idle_time_is_at_least_two_periods_and_one_second() {
    let mut net = row(2);
    let slow = camera("slow");
    let slow = net.publish(
        0,
        paceline_proto::control::PublisherSpec { period: Some(Duration::from_secs(5)), ..slow },
    );
    net.subscribe(1, SubscriptionSpec { idle: Some(IDLE_MIN), ..promised("slow") });
    net.settle();
    net.run_reporting(Duration::from_millis(9_900));
    assert_eq!(net.held(), [1, 1], "one sample is missing, not two");
    net.put(slow);
    net.run_reporting(Duration::from_millis(9_900));
    assert_eq!(net.held(), [1, 1]);
    net.run_reporting(Duration::from_millis(200));
    assert_eq!(net.held(), [0, 0]);
}

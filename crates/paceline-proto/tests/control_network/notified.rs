//! Both ends of a contract are notified at once of every change to it.

use super::net::{Net, Notification, all, camera, id, link, promised};
use bytes::Bytes;
use core::mem;
use paceline_proto::control::{StreamExcess, Topic};
use paceline_proto::{Excess, Form};
use paceline_sched::Duration;

const THIN: u64 = 400_000;

/// Takes the notifications at the ends `nodes` since the last call, and asserts that they are equal at all of
/// them.
fn notified<const N: usize>(net: &mut Net, nodes: [usize; N]) -> Vec<Notification> {
    let mut all = nodes.map(|node| mem::take(&mut net.seen[node].notified)).into_iter();
    let first = all.next().unwrap();
    assert!(all.all(|other| other == first), "the ends received different messages");
    first
}

fn granted<const N: usize>(nodes: [usize; N]) -> Notification {
    Notification::Granted(nodes.map(id).to_vec())
}

/// Returns a diamond with two paths from node 0 to node 3.
fn diamond() -> Net {
    let mut net = Net::new(4);
    for (one, other) in [(0, 1), (1, 3), (0, 2), (2, 3)] {
        let name = format!("link{one}{other}");
        net.join_over(one, other, link(&name, Some(THIN)), link(&name, Some(THIN)));
    }
    net.settle();
    net
}

#[test]
fn both_ends_are_notified_of_a_grant_a_new_path_a_loss_and_the_end() {
    let mut net = diamond();
    let left = net.publish(0, camera("left"));
    net.settle();
    assert_eq!(notified(&mut net, [0, 1, 2, 3]), []);
    let user = net.subscribe(3, promised("left"));
    net.settle();
    assert_eq!(notified(&mut net, [0, 3]), [granted([0, 1])]);
    assert_eq!(notified(&mut net, [1, 2]), [], "a relay is not an end");
    net.part(0, 1);
    net.run(Duration::from_secs(1));
    // The publisher's node saw the hop go down before it could request the other path.
    assert_eq!(notified(&mut net, [0, 3]), [Notification::Withdrawn, granted([0, 2])]);
    net.part(0, 2);
    net.run(Duration::from_secs(1));
    assert_eq!(notified(&mut net, [0, 3]), [Notification::Withdrawn], "there is no path");
    net.join_over(0, 2, link("link02", Some(THIN)), link("link02", Some(THIN)));
    net.run(Duration::from_secs(1));
    assert_eq!(notified(&mut net, [0, 3]), [granted([0, 2])]);
    // A better path is reserved before the old one is released, so the contract stays in force.
    net.join_over(0, 3, link("short", Some(THIN)), link("short", Some(THIN)));
    net.run(Duration::from_secs(1));
    assert_eq!(notified(&mut net, [0, 3]), [granted([0])]);
    // Best effort needs no reservation.
    net.nodes[3].update_subscription(net.now, user, all("left"));
    net.drain(3);
    net.run(Duration::from_secs(1));
    assert_eq!(notified(&mut net, [0, 3]), [Notification::Withdrawn]);
    assert_eq!(net.heard(user), [left]);
    net.run(Duration::from_secs(60));
    assert_eq!(notified(&mut net, [0, 1, 2, 3]), [], "nothing changes, so nobody is notified");
}

#[test]
fn both_ends_are_notified_of_refusals_and_departures() {
    let mut net = Net::new(3);
    net.join_over(0, 1, link("wide", Some(THIN * 9)), link("wide", Some(THIN * 9)));
    net.join_over(1, 2, link("thin", Some(THIN)), link("thin", Some(THIN)));
    net.settle();
    for tag in ["left", "right"] {
        net.publish(0, camera(tag));
    }
    let first = net.subscribe(2, promised("left"));
    net.settle();
    assert_eq!(notified(&mut net, [0, 2]), [granted([0, 1])]);
    let second = net.subscribe(2, promised("right"));
    net.settle();
    assert_eq!(notified(&mut net, [0, 2]), [Notification::Refused(id(1))]);
    net.unsubscribe(first);
    net.run(Duration::from_secs(6));
    assert_eq!(
        notified(&mut net, [0, 2]),
        [Notification::Withdrawn, granted([0, 1])],
        "there is room now"
    );
    let first = net.subscribe(2, promised("left"));
    net.settle();
    assert_eq!(notified(&mut net, [0, 2]), [Notification::Refused(id(1))]);
    // Unsubscribing during a refusal is notified as well.
    net.unsubscribe(first);
    net.settle();
    assert_eq!(notified(&mut net, [0, 2]), [Notification::Withdrawn]);
    net.unsubscribe(second);
    net.settle();
    assert_eq!(notified(&mut net, [0, 2]), [Notification::Withdrawn]);
    assert_eq!(notified(&mut net, [1]), []);
}

#[test]
fn subscriptions_are_notified_by_each_node_of_their_path_of_excess() {
    let mut net = Net::new(4);
    for (one, other) in [(0, 1), (1, 2), (1, 3)] {
        net.join_over(one, other, link("wide", Some(THIN * 9)), link("wide", Some(THIN * 9)));
    }
    net.settle();
    let camera_left = net.publish(0, camera("left"));
    net.publish(0, camera("right"));
    let [near, far] = [1, 2].map(|node| net.subscribe(node, promised("left")));
    let other = net.subscribe(2, promised("right"));
    net.subscribe(3, all("left"));
    net.settle();
    assert_eq!(net.seen[2].granted.len(), 2, "{other:?} has a contract, too");
    let excess = |early, long| Excess { early, long };
    let counted = |hop, excess| {
        [StreamExcess { publisher: camera_left, form: Form::FULL, hop: id(hop), excess }]
    };
    let heard = |net: &mut Net| {
        [0, 1, 2, 3].map(|node| mem::take(&mut net.seen[node].excess)).into_iter().flatten()
    };
    net.nodes[0].report_excess(net.now, &counted(1, excess(3, 7)));
    net.drain(0);
    net.settle();
    let all: Vec<_> = heard(&mut net).collect();
    let [at_near, at_far] = [near, far].map(|to| (to, camera_left, id(0), excess(3, 7)));
    assert_eq!(all, [at_near, at_far]);
    // The excess that a later hop counts is reported only to subscriptions behind it, and only to contracted
    // ones.
    net.nodes[1].report_excess(net.now, &counted(2, excess(0, 1)));
    net.drain(1);
    let said = net.queues[&(1, 2)].back().unwrap().clone();
    net.nodes[1].report_excess(net.now, &counted(3, excess(0, 1)));
    net.drain(1);
    net.settle();
    let all: Vec<_> = heard(&mut net).collect();
    assert_eq!(all, [(far, camera_left, id(1), excess(0, 1))]);
    // Reports from nodes off the path are ignored, and truncated ones are counted.
    let again = said.slice(said.len() - 19..);
    assert_eq!(again[0], Topic::Excess.code());
    net.nodes[3].ask(net.now, id(2), again);
    net.nodes[3].ask(net.now, id(2), Bytes::from(vec![Topic::Excess.code(), 1, 2]));
    net.drain(3);
    net.settle();
    assert_eq!((heard(&mut net).count(), net.nodes[2].rejected()), (0, 1));
}

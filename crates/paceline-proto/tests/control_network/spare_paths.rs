//! The choice of both paths of a contract with a spare.

use super::net::{Net, camera, id, promised};
use super::spare::{NARROW, Run, THIN, diamond, join, nodes, spared};
use paceline_proto::NodeId;
use paceline_proto::control::{RefusalReason, SubscriptionSpec};
use paceline_sched::Duration;

/// Returns a network in which the shortest path from 0 to 3, over 1 and 2, has no second path next to it: one longer path
/// uses its last link, and the other one its first link.
fn crossed() -> Net {
    let mut net = Net::new(8);
    let hops = [(0, 1), (1, 2), (2, 3), (0, 4), (4, 5), (5, 2), (1, 6), (6, 7), (7, 3)];
    for (from, to) in hops {
        join(&mut net, from, to, THIN);
    }
    net.settle();
    net
}

#[test]
fn two_paths_are_reserved_if_none_is_left_next_to_the_shortest_one() {
    let path = |relays: [usize; 4]| relays.map(id).to_vec();
    let both = (path([0, 1, 6, 7]), path([0, 4, 5, 2]));
    let mut run = Run::new(crossed(), spared("camera"));
    assert_eq!(run.granted(), Some(both.clone()));
    assert_eq!(run.sends_to(), Some(id(1)));
    run.net.assert_delivered();
    // Without the spare, the samples take the shortest path.
    let one = run.net.subscribe(3, promised("camera"));
    run.net.settle();
    let grant = &run.net.seen[3].granted[&(one, run.publisher)];
    let shortest = [0, 1, 2].map(id).to_vec();
    assert_eq!(nodes(&grant.hops), shortest);
    // They would arrive at node 3 in addition to those on the longer path.
    assert_eq!(run.granted(), Some((shortest.clone(), vec![])));
    let refusal = run.net.seen[3].unspared.last().expect("the reason");
    assert_eq!(refusal.reason, RefusalReason::SpareMeets { other: one });
    assert_eq!(
        refusal.to_string(),
        format!(
            "no spare: a node on the two paths would get each sample twice, also for subscription {one} of 'node3': end \
             that subscription, add a link for a second path, or request the contract without a spare"
        )
    );
    run.net.assert_delivered();
    run.net.unsubscribe(one);
    run.net.run(Duration::from_secs(5));
    assert_eq!(run.granted(), Some(both.clone()));
    run.net.part(6, 7);
    run.net.settle();
    assert_eq!(run.granted(), Some((shortest, vec![])), "there is no second path now");
    let refusal = run.net.seen[3].unspared.last().expect("the reason");
    assert_eq!(refusal.reason, RefusalReason::NoSecondPath { shared: true });
    join(&mut run.net, 6, 7, THIN);
    run.net.run(Duration::from_secs(5));
    assert_eq!(run.granted(), Some(both));
    run.net.assert_delivered();
}

#[test]
fn a_dry_run_tests_the_paths_that_a_subscription_gets() {
    let mut net = crossed();
    let publisher = net.publish(0, camera("camera"));
    net.settle();
    let survey = net.nodes[3].survey(net.now, publisher, spared("camera")).unwrap();
    net.drain(3);
    net.settle();
    let (number, complete, grant, refusal, _) = net.seen[3].surveyed.pop().unwrap();
    assert_eq!((number, complete, refusal), (survey, true, None));
    let subscription = net.subscribe(3, spared("camera"));
    net.settle();
    let (predicted, granted) = (grant.unwrap(), &net.seen[3].granted[&(subscription, publisher)]);
    assert_eq!((&predicted.hops, &predicted.spare), (&granted.hops, &granted.spare));
    assert_eq!(predicted.bound, granted.bound);
}

/// Returns the paths that a dry run of a change to `request` predicts.
fn try_change(run: &mut Run, request: SubscriptionSpec) -> Option<(Vec<NodeId>, Vec<NodeId>)> {
    let (now, of) = (run.net.now, (run.subscription, run.publisher));
    run.net.nodes[3].survey_change(now, of.0, of.1, request).unwrap();
    run.net.drain(3);
    run.net.settle();
    let (_, complete, grant, refusal, _) = run.net.seen[3].surveyed.pop().unwrap();
    assert!(complete && refusal.is_none(), "{refusal:?}");
    grant.map(|grant| (nodes(&grant.hops), nodes(&grant.spare)))
}

#[test]
fn a_dry_run_of_a_change_tests_the_paths_that_the_changed_subscription_gets() {
    let mut run = Run::new(crossed(), promised("camera"));
    assert_eq!(run.granted(), Some(([0, 1, 2].map(id).to_vec(), vec![])));
    // The present samples on the shortest path end with the change.
    for within in [150, 250].map(Duration::from_millis) {
        let request = SubscriptionSpec { within: Some(within), ..spared("camera") };
        let expected = try_change(&mut run, request.clone());
        assert_eq!(expected, Some(([0, 1, 6, 7].map(id).to_vec(), [0, 4, 5, 2].map(id).to_vec())));
        run.net.nodes[3].update_subscription(run.net.now, run.subscription, request);
        run.net.drain(3);
        run.net.settle();
        run.net.run(Duration::from_secs(3));
        assert_eq!(run.granted(), expected);
    }
}

#[test]
fn a_path_that_refuses_before_the_spare_is_requested_is_named() {
    let mut net = diamond([THIN; 4]);
    let subscription = net.subscribe(3, spared("camera"));
    net.settle();
    let publisher = net.publish(0, camera("camera"));
    // The publisher's node learns of a shorter path before its request is granted, and then asks for that one.
    join(&mut net, 0, 3, NARROW);
    net.settle();
    net.run(Duration::from_secs(5));
    let run = Run { net, publisher, subscription };
    run.assert_nothing();
    let refusal = run.refusal();
    assert_eq!((&refusal.link[..], refusal.reason), ("link03", RefusalReason::Capacity));
}

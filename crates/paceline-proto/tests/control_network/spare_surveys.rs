//! Surveys of the two paths of a contract with a spare.

use super::net::{Net, id, link, promised};
use super::spare::{NARROW, Run, THIN, diamond, join, spared};
use paceline_proto::control::{Refusal, RefusalReason, SubscriptionSpec};
use paceline_proto::{Form, Size};
use paceline_sched::Duration;

/// Carries small pictures, but no camera.
const SLIM: u64 = 310_000;

/// Delivers all messages except those of the hop `held`.
fn settle_without(net: &mut Net, held: (usize, usize)) {
    loop {
        let ready = |(hop, queue): &(&(usize, usize), &std::collections::VecDeque<_>)| {
            **hop != held && !queue.is_empty()
        };
        let Some((&(from, to), _)) = net.queues.iter().find(ready) else { return };
        net.deliver(from, to);
    }
}

/// Requests more of a contract, and returns the refusals of the change.
fn change(run: &mut Run, spec: SubscriptionSpec, held: (usize, usize)) -> Vec<Refusal> {
    run.net.nodes[3].update_subscription(run.net.now, run.subscription, spec);
    run.net.drain(3);
    settle_without(&mut run.net, held);
    run.net.seen[3].taken_back.pop().map(|(_, refusals, _)| refusals).unwrap_or_default()
}

#[test]
fn the_answers_of_one_path_are_not_taken_for_those_of_the_other() {
    let mut run = Run::new(diamond([THIN; 4]), spared("camera"));
    run.assert_carried(1, 2);
    // The second path no longer carries the camera. The answers of its relay to the survey are late.
    run.net.nodes[0].handle_hop_up(run.net.now, id(2), link("link02", Some(NARROW)));
    run.net.drain(0);
    settle_without(&mut run.net, (2, 0));
    assert!(run.net.seen[3].unspared.is_empty(), "its survey is open");
    // Meanwhile the first path refuses a change, and its nodes answer.
    let within = Some(Duration::from_millis(30));
    let refusals = change(&mut run, SubscriptionSpec { within, ..spared("camera") }, (2, 0));
    let [refusal] = &refusals[..] else { panic!("{refusals:?}") };
    assert_eq!((&refusal.link[..], refusal.spare), ("link01", false), "{refusal:?}");
    assert!(run.net.seen[3].unspared.is_empty(), "nothing is known of the second path yet");
    run.net.run(Duration::from_secs(3));
    assert_eq!(run.granted(), Some((vec![id(0), id(1)], vec![])));
    let [refusal] = &run.net.seen[3].unspared[..] else { panic!("{:?}", run.net.seen[3].unspared) };
    assert_eq!((&refusal.link[..], refusal.reason), ("link02", RefusalReason::Capacity));
}

#[test]
fn a_node_of_both_paths_tests_a_change_next_to_the_right_reservation() {
    // Two squares in a row share node 2. Each link carries one camera, but those of the publisher only small pictures.
    let offer = |spare: bool| {
        let mut net = Net::new(6);
        for (from, to) in [(0, 1), (1, 2), (2, 3), (0, 4), (4, 2), (2, 5), (5, 3)] {
            join(&mut net, from, to, if from == 0 { SLIM } else { THIN });
        }
        net.settle();
        let size = Some(Size { width: 400, height: 300 });
        let small = Form { size, ..Form::FULL };
        let request = SubscriptionSpec { spare, ..promised("camera") };
        let mut run = Run::new(net, SubscriptionSpec { form: small, ..request.clone() });
        run.net.run(Duration::from_secs(3));
        let (first, second) = run.granted().expect("a contract");
        assert_eq!((first.len(), second.len()), (3, if spare { 4 } else { 0 }));
        assert_eq!(first[1], id(1), "over the slim link");
        let refusals = change(&mut run, request, (5, 0));
        let [refusal] = &refusals[..] else { panic!("{refusals:?}") };
        (refusal.node, refusal.link.clone(), refusal.offer)
    };
    assert_eq!(offer(true), offer(false));
}

#[test]
fn a_dry_run_of_a_change_replaces_the_present_reservations() {
    // Each link carries one camera, but no small pictures next to it.
    let small = Form { size: Some(Size { width: 400, height: 300 }), ..Form::FULL };
    for spare in [false, true] {
        let request = SubscriptionSpec { spare, ..promised("camera") };
        let before = SubscriptionSpec { form: small, ..request.clone() };
        let mut run = Run::new(diamond([THIN; 4]), before);
        run.net.run(Duration::from_secs(3));
        assert!(run.granted().is_some());
        let (now, changed, publisher) = (run.net.now, run.subscription, run.publisher);
        let surveyed = |net: &mut Net| {
            net.drain(3);
            net.settle();
            let (_, complete, _, refusal, _) = net.seen[3].surveyed.pop().unwrap();
            assert!(complete);
            refusal.map(|refusal| refusal.reason)
        };
        run.net.nodes[3].survey(now, publisher, request.clone()).unwrap();
        assert_eq!(surveyed(&mut run.net), Some(RefusalReason::Capacity), "next to it");
        run.net.nodes[3].survey_change(now, changed, publisher, request.clone()).unwrap();
        assert_eq!(surveyed(&mut run.net), None);
        assert!(change(&mut run, request, (9, 9)).is_empty());
        run.net.run(Duration::from_secs(3));
        let grant = &run.net.seen[3].granted[&(changed, publisher)];
        assert_eq!((grant.revision, !grant.spare.is_empty()), (1, spare));
    }
}

//! The protocol among nodes in a row: every order of events at small sizes, random orders at larger
//! sizes, and invalid input.

use super::message::{Accept, Admit, Deny, HopShare, Refresh, Share};
use super::*;
use crate::link::{AdmissionTest, LinkParameters};
use crate::traffic::Traffic;
use crate::verdict::Resource;
use paceline_sched::{Capacity, LossTolerance};

mod classes;
mod model;
mod paths;
mod processor;
mod world;

use world::{World, forward, millis, wanted};

fn granted(world: &mut World, node: usize, key: Key) -> Granted {
    let answer = world.answer_of(node, key);
    let Some(PathAnswer::Granted(granted)) = answer else { panic!("not granted: {answer:?}") };
    granted
}

fn denied(world: &mut World, node: usize, key: Key) -> (NodeIndex, Reason) {
    let answer = world.answer_of(node, key);
    let Some(PathAnswer::Denied { node, reason }) = answer else {
        panic!("not denied: {answer:?}")
    };
    (node, reason)
}

#[test]
fn a_path_is_reserved_in_one_round_trip_and_released() {
    let mut world = World::row(4);
    let key = world.request(0, &forward(&[0, 1, 2, 3], 4)).unwrap();
    world.deliver_all();
    let granted = granted(&mut world, 0, key);
    assert_eq!(granted.path, [0, 1, 2, 3].map(NodeIndex));
    assert_eq!((granted.forward, granted.backward), (Some(millis(300)), None));
    let bounds: Vec<_> =
        granted.hops.iter().map(|hop| hop.forward.map(|share| share.bound)).collect();
    assert_eq!(bounds, [Some(millis(100)), Some(millis(100)), Some(millis(100)), None]);
    // The burst grows at each node by the delay that the node may add.
    let bursts: Vec<_> = granted.hops.iter().filter_map(|hop| Some(hop.forward?.burst)).collect();
    assert_eq!(bursts, [1_000, 51_000, 101_000]);
    assert_eq!(world.held(), [4, 4, 4, 0]);
    world.run(millis(60_000));
    assert_eq!(world.held(), [4, 4, 4, 0], "it lives as long as it is refreshed");
    world.close(0, key);
    world.deliver_all();
    assert_eq!(world.held(), [0; 4]);
    world.check_empty_after(millis(10_000));
}

#[test]
fn subscribers_reserve_upstream_and_conversations_get_both_directions_or_none() {
    let mut world = World::row(3);
    let path = [0, 1, 2].map(NodeIndex).to_vec();
    let backward = Request {
        path: path.clone(),
        label: Vec::new(),
        weights: Vec::new(),
        forward: None,
        backward: Some(wanted(1, 4)),
        scaled: None,
        link: None,
        work: 0,
        idle: None,
    };
    let key = world.request(0, &backward).unwrap();
    world.deliver_all();
    let answer = granted(&mut world, 0, key);
    assert_eq!((answer.forward, answer.backward), (None, Some(millis(300))));
    // Relaxed by ACCEPT: the source's link first, then the next one with its delay variation.
    let bursts: Vec<_> =
        answer.hops.iter().map(|hop| hop.backward.map(|share| share.burst)).collect();
    assert_eq!(bursts, [None, Some(76_000), Some(1_000)]);
    let both = Request {
        forward: Some(wanted(2, 7)),
        backward: Some(wanted(3, 7)),
        scaled: None,
        label: vec![7],
        weights: Vec::new(),
        path,
        link: None,
        work: 0,
        idle: None,
    };
    let talk = world.request(0, &both).unwrap();
    world.deliver_all();
    let (node, reason) = denied(&mut world, 0, talk);
    let Reason::Refused { forward: false, refusal } = reason else { panic!("{reason}") };
    assert_eq!(
        (node, refusal.resource, refusal.needed),
        (NodeIndex(1), Resource::Rate, 11_000_000)
    );
    assert!(refusal.offer.rate.is_some_and(|rate| rate <= 6_000_000), "{refusal}");
    assert_eq!(world.held(), [0, 4, 4], "neither direction is reserved");
    world.close(0, key);
    world.run(millis(1_000));
    let talk = world.request(0, &both).unwrap();
    world.deliver_all();
    granted(&mut world, 0, talk);
    assert_eq!(world.held(), [7, 14, 7]);
    world.close(2, talk);
    world.deliver_all();
    assert_eq!(world.ended(0, talk), Some(None), "the other end closed it");
    world.check_empty_after(millis(10_000));
}

#[test]
fn hops_share_a_delay_bound_by_weight_in_both_directions() {
    let mut world = World::row(4);
    let both = Request {
        weights: vec![1, 2, 1],
        backward: Some(wanted(7, 2)),
        ..forward(&[0, 1, 2, 3], 2)
    };
    let key = world.request(0, &both).unwrap();
    world.deliver_all();
    let hops = granted(&mut world, 0, key).hops;
    let bounds = |of: fn(&HopShare) -> Option<Share>| -> Vec<_> {
        hops.iter().filter_map(|hop| Some(of(hop)?.bound)).collect()
    };
    assert_eq!(bounds(|hop| hop.forward), [75, 150, 75].map(millis));
    assert_eq!(bounds(|hop| hop.backward), [75, 150, 75].map(millis));
    world.close(0, key);
    world.check_empty_after(millis(10_000));
}

#[test]
fn a_change_keeps_the_old_grant_until_the_new_one_is_certain() {
    let mut world = World::row(3);
    let key = world.request(0, &forward(&[0, 1, 2], 4)).unwrap();
    let other = world.request(1, &forward(&[1, 2], 3)).unwrap();
    world.deliver_all();
    granted(&mut world, 0, key);
    granted(&mut world, 1, other);
    world.change(0, key, &forward(&[0, 1, 2], 8)).unwrap();
    assert_eq!(world.change(0, key, &forward(&[0, 1, 2], 8)), Err(RequestError::Pending));
    assert_eq!(world.held(), [8, 7, 0], "the larger of both during the request");
    world.deliver_all();
    let (node, reason) = denied(&mut world, 0, key);
    assert_eq!(node, NodeIndex(1));
    assert!(matches!(reason, Reason::Refused { forward: true, .. }), "{reason}");
    assert_eq!(world.held(), [4, 7, 0]);
    for mbit in [6, 2] {
        world.change(0, key, &forward(&[0, 1, 2], mbit)).unwrap();
        world.deliver_all();
        granted(&mut world, 0, key);
        assert_eq!(world.held(), [mbit, mbit + 3, 0]);
    }
    world.run(millis(20_000));
    assert_eq!(world.held(), [2, 5, 0]);
}

#[test]
fn the_peer_may_decline_give_slack_or_never_answer() {
    let mut world = World::row(3);
    world.deciding = None;
    let key = world.request(0, &forward(&[0, 1, 2], 4)).unwrap();
    world.deliver_all();
    let name = world.asked.pop().unwrap();
    assert!(world.decide(2, name, Decision::Decline));
    assert!(!world.decide(2, name, Decision::Decline));
    world.deliver_all();
    assert_eq!(denied(&mut world, 0, key), (NodeIndex(2), Reason::Declined));
    assert_eq!(world.held(), [0; 3]);
    let key = world.request(0, &forward(&[0, 1, 2], 4)).unwrap();
    world.deliver_all();
    let name = world.asked.pop().unwrap();
    world.decide(2, name, Decision::Accept { slack: millis(100) });
    world.deliver_all();
    assert_eq!(granted(&mut world, 0, key).forward, Some(millis(400)));
    let silent = world.request(0, &forward(&[0, 1, 2], 4)).unwrap();
    world.run(millis(2_500));
    assert_eq!(denied(&mut world, 0, silent), (NodeIndex(0), Reason::Timeout));
    assert_eq!(world.held(), [4, 4, 0]);
}

#[test]
fn a_destination_that_dies_frees_the_path_within_a_lifetime() {
    for notified in [false, true] {
        let mut world = World::row(3);
        let key = world.request(0, &forward(&[0, 1, 2], 4)).unwrap();
        world.deliver_all();
        granted(&mut world, 0, key);
        world.die(2, notified);
        world.run(if notified { millis(1) } else { millis(5_300) });
        assert_eq!(world.held(), [0, 0, 0], "notified: {notified}");
        assert_eq!(world.ended(0, key), Some(Some(Reason::PeerLost)));
    }
}

#[test]
fn a_restarted_node_is_asked_again_without_interruption() {
    let mut world = World::row(3);
    let key = world.request(0, &forward(&[0, 1, 2], 4)).unwrap();
    world.deliver_all();
    granted(&mut world, 0, key);
    world.restart(1, false);
    assert_eq!(world.held(), [4, 0, 0]);
    world.run(millis(2_000));
    assert_eq!(world.held(), [4, 4, 0]);
    assert_eq!((world.ended(0, key), world.answer_of(0, key)), (None, None));
    // Both ends restart: the reservation of the old origin ends, and a new request is granted.
    world.restart(0, false);
    world.restart(2, false);
    let key = world.request(0, &forward(&[0, 1, 2], 8)).unwrap();
    world.deliver_all();
    granted(&mut world, 0, key);
    assert_eq!(world.held(), [8, 8, 0]);
}

#[test]
fn lifetimes_follow_the_senders_period_and_idle_reservations_close() {
    let mut world = World::row(2);
    let slow = Timing { refresh: Duration::from_secs(30), ..Timing::default() };
    world.set_timing(0, slow);
    let key = world.request(0, &forward(&[0, 1], 4)).unwrap();
    world.deliver_all();
    granted(&mut world, 0, key);
    world.die(1, false);
    world.run(Duration::from_secs(150));
    assert_eq!(world.held()[0], 4, "157.5 s, whatever the others' period is");
    world.run(Duration::from_secs(8));
    assert_eq!(world.held()[0], 0);
    let mut world = World::row(2);
    let idle = Request { idle: Some(millis(3_000)), ..forward(&[0, 1], 4) };
    let key = world.request(0, &idle).unwrap();
    world.run(millis(2_000));
    world.used(0, key);
    world.run(millis(2_900));
    world.close_unused(0);
    assert_eq!(world.held(), [4, 0]);
    world.run(millis(200));
    assert_eq!(world.held(), [4, 0], "there may be data that was not reported yet");
    world.close_unused(0);
    assert_eq!(world.held(), [0, 0]);
    assert_eq!(world.idled, [(0, key)]);
    assert_eq!(world.ended(0, key), None);
}

#[test]
fn contradictory_requests_are_refused_by_name_and_reserve_nothing() {
    let mut world = World::row(3);
    let error = |world: &mut World, request: &Request| world.request(0, request).unwrap_err();
    let whole = forward(&[0, 1, 2], 4);
    for path in [
        vec![],
        vec![NodeIndex(0)],
        vec![NodeIndex(1), NodeIndex(0)],
        [0, 1, 0].map(NodeIndex).to_vec(),
    ] {
        let nodes = path.len();
        let wrong = Request { path, ..whole.clone() };
        assert_eq!(error(&mut world, &wrong), RequestError::Path { nodes });
    }
    let long = Request { path: (0..33).map(NodeIndex).collect(), ..whole.clone() };
    assert_eq!(error(&mut world, &long), RequestError::Path { nodes: 33 });
    for weights in [vec![1], vec![1, 0], vec![1, 2, 3]] {
        let count = weights.len();
        let wrong = Request { weights, ..whole.clone() };
        assert_eq!(error(&mut world, &wrong), RequestError::Weights { weights: count, hops: 2 });
    }
    let nothing = Request { forward: None, ..whole.clone() };
    assert_eq!(error(&mut world, &nothing), RequestError::Nothing);
    let one = Request { backward: whole.forward, ..whole.clone() };
    assert_eq!(error(&mut world, &one), RequestError::OneTrunk);
    let zero = Request {
        forward: Some(Wanted { within: Duration::ZERO, ..wanted(1, 4) }),
        ..whole.clone()
    };
    assert_eq!(error(&mut world, &zero), RequestError::NoTime);
    let stranger = Request { path: [0, 9].map(NodeIndex).to_vec(), ..whole.clone() };
    assert_eq!(error(&mut world, &stranger), RequestError::Denied(Reason::NoRoute));
    let forever =
        Request { forward: Some(Wanted { within: Duration::MAX, ..wanted(1, 4) }), ..whole };
    assert_eq!(error(&mut world, &forever), RequestError::Denied(Reason::Impossible));
    assert_eq!(world.held(), [0; 3]);
    assert!(world.nodes.iter().all(Reservations::is_empty));
    // A later node may know the network better than the origin.
    let key = world.request(0, &forward(&[0, 1, 7], 4)).unwrap();
    world.deliver_all();
    assert_eq!(denied(&mut world, 0, key), (NodeIndex(1), Reason::NoRoute));
    assert_eq!(world.held(), [0; 3]);
}

#[test]
fn the_whole_link_is_granted_once_and_an_oversized_request_is_refused() {
    let mut world = World::row(3);
    let first = world.request(0, &forward(&[0, 1, 2], 9)).unwrap();
    let again = Request { forward: Some(wanted(99, 9)), ..forward(&[0, 1, 2], 9) };
    let text = world.request(0, &again).unwrap_err().to_string();
    assert!(text.contains("rate in bit/s: 18000000 needed, 10000000 available"), "{text}");
    world.deliver_all();
    granted(&mut world, 0, first);
    // A request that fits here and not there is refused there again for a while, without a test.
    let mut killer = World::row(3);
    let held = killer.request(1, &forward(&[1, 2], 8)).unwrap();
    killer.deliver_all();
    granted(&mut killer, 1, held);
    let name =
        |seq| Name { key: Key { origin: NodeIndex(0), number: 0 }, stamp: Stamp { epoch: 1, seq } };
    let ask = |seq| Admit {
        name: name(seq),
        path: [0, 1, 2].map(NodeIndex).to_vec(),
        label: Vec::new(),
        weights: Vec::new(),
        period: millis(1_000),
        forward: Some(wanted(77, 4)),
        backward: None,
        scaled: None,
        spent: Duration::ZERO,
    };
    let mut retries = Vec::new();
    for seq in 1..4 {
        killer.hear(1, 0, ReserveMessage::Admit(Box::new(ask(seq))));
        let Some(ReserveMessage::Deny(deny)) = killer.flight.pop().map(|flight| flight.2) else {
            panic!()
        };
        assert!(matches!(deny.reason, Reason::Refused { .. }));
        assert_eq!(deny.name, name(seq));
        retries.push(deny.retry);
    }
    assert_eq!(retries, [millis(500); 3]);
    killer.run(millis(501));
    killer.hear(1, 0, ReserveMessage::Admit(Box::new(ask(4))));
    let Some(ReserveMessage::Deny(deny)) = killer.flight.pop().map(|flight| flight.2) else {
        panic!()
    };
    assert_eq!(deny.retry, millis(1_000), "twice as long each time");
    assert_eq!(killer.held(), [0, 8, 0]);
}

#[test]
fn forged_and_replayed_messages_change_nothing() {
    let mut world = World::row(4);
    let key = world.request(0, &forward(&[0, 1, 2, 3], 4)).unwrap();
    world.deliver_all();
    let answer = granted(&mut world, 0, key);
    let name = Name { key, stamp: world.nodes[1].installed(key).unwrap() };
    let newer = Name { stamp: Stamp { epoch: 9, seq: 9 }, ..name };
    let deny = |name, reason| {
        ReserveMessage::Deny(Deny { name, node: NodeIndex(3), reason, retry: Duration::ZERO })
    };
    let admit = |path: &[u64], weights: &[u32]| {
        ReserveMessage::Admit(Box::new(Admit {
            name: newer,
            path: path.iter().copied().map(NodeIndex).collect(),
            weights: weights.to_vec(),
            label: Vec::new(),
            period: millis(1_000),
            forward: Some(wanted(1, 1)),
            backward: None,
            scaled: None,
            spent: Duration::ZERO,
        }))
    };
    let accept = Accept { name, slack: millis(9), backward: None, hops: answer.hops.clone() };
    for (at, from, message) in [
        (1, 2, admit(&[0, 1, 2], &[])),
        (1, 0, admit(&[2, 1, 0], &[])),
        (1, 0, admit(&[0, 2, 1], &[])),
        (1, 0, admit(&[0, 1, 1], &[])),
        (2, 1, admit(&[1, 2], &[])),
        (1, 0, admit(&[0, 1, 2], &[1])),
        (1, 0, admit(&[0, 1, 2], &[1, 2, 3])),
        (2, 3, ReserveMessage::Accept(accept.clone())),
        (1, 0, ReserveMessage::Accept(accept)),
        (1, 0, deny(name, Reason::PeerLost)),
        (2, 3, deny(name, Reason::Timeout)),
        (1, 2, deny(newer, Reason::PeerLost)),
        (2, 1, ReserveMessage::Close(Name { stamp: Stamp { epoch: 1, seq: 0 }, ..name })),
        (
            1,
            2,
            ReserveMessage::Refresh(Refresh {
                back: false,
                period: millis(1_000),
                names: vec![name],
            }),
        ),
        (1, 3, ReserveMessage::Close(newer)),
    ] {
        let before = world.held();
        world.hear(at, from, message.clone());
        world.deliver_all();
        assert_eq!(world.held(), before, "{message:?}");
        assert_eq!(world.nodes[1].installed(key), Some(name.stamp), "{message:?}");
    }
    // Replays all messages once more, in the same order.
    for (from, to, message) in world.sent.clone() {
        world.hear(usize::try_from(to.0).unwrap(), from.0, message);
    }
    world.run(millis(20_000));
    assert_eq!(world.held(), [4, 4, 4, 0]);
    assert!(world.nodes[1].ignored() > 5);
}

#[test]
fn impossible_answers_are_not_trusted() {
    let share = |mbit: u64, bound| Some(Share { rate: mbit * 1_000_000, burst: 1_000, bound });
    let hop = |node, forward| HopShare { node: NodeIndex(node), forward, backward: None };
    for hops in [
        vec![],
        vec![hop(1, None), hop(1, None)],
        vec![hop(2, None)],
        vec![hop(2, None), hop(1, share(3, millis(1)))],
        vec![hop(2, None), hop(1, None)],
        vec![hop(9, None), hop(1, share(4, millis(1)))],
    ] {
        let mut world = World::row(3);
        let key = world.request(0, &forward(&[0, 1, 2], 4)).unwrap();
        world.flight.clear();
        let name = Name { key, stamp: Stamp { epoch: 1, seq: 1 } };
        let lie = Accept { name, slack: Duration::ZERO, backward: None, hops };
        world.hear(0, 1, ReserveMessage::Accept(lie));
        world.deliver_all();
        assert_eq!(world.ended(0, key), Some(Some(Reason::Contradiction)));
        assert_eq!(world.held(), [0; 3]);
    }
    // An answer that matches the request cannot be distinguished from a correct one.
    let mut world = World::row(3);
    let key = world.request(0, &forward(&[0, 1, 2], 4)).unwrap();
    world.flight.clear();
    let name = Name { key, stamp: Stamp { epoch: 1, seq: 1 } };
    let hops = vec![hop(2, None), hop(1, share(4, millis(1)))];
    world.hear(
        0,
        1,
        ReserveMessage::Accept(Accept { name, slack: Duration::ZERO, backward: None, hops }),
    );
    granted(&mut world, 0, key);
    world.run(millis(3_000));
    assert_eq!(
        world.held(),
        [4, 4, 0],
        "its refreshes are unknown there, so it is requested again"
    );
}

#[test]
fn clock_jumps_end_only_expired_reservations_and_leak_nothing() {
    let mut world = World::row(3);
    let key = world.request(0, &forward(&[0, 1, 2], 4)).unwrap();
    world.deliver_all();
    granted(&mut world, 0, key);
    // Backwards: no time has passed.
    world.nodes[1].tick(Instant::ZERO);
    world.run(millis(3_000));
    assert_eq!(world.held(), [4, 4, 0]);
    // One node jumps ahead by a day: it has received nothing for a day, and ends its reservations.
    world.nodes[1].tick(Instant::from_millis(86_400_000));
    world.collect(1);
    world.deliver_all();
    assert_eq!(world.held(), [0; 3]);
    assert_eq!(world.ended(0, key), Some(Some(Reason::PeerLost)));
    let key = world.request(0, &forward(&[0, 1, 2], 4)).unwrap();
    world.deliver_all();
    granted(&mut world, 0, key);
}

#[test]
fn ten_thousand_simultaneous_requests_are_answered_and_released() {
    let mut world = World::row(3);
    let mut keys = Vec::new();
    for number in 0..10_000 {
        let small =
            Wanted { traffic: Traffic::leaky(100, 2_000, 100).unwrap(), ..wanted(number, 1) };
        let request = Request { forward: Some(small), ..forward(&[0, 1, 2], 1) };
        if let Ok(key) = world.request(0, &request) {
            keys.push(key);
        }
    }
    assert_eq!(keys.len(), 1_875, "100 bytes each within 150 ms at 10 Mbit/s");
    world.deliver_all();
    // The traffic is burstier after the first node, so the second has room for fewer.
    let granted = keys.clone();
    let granted = granted
        .iter()
        .filter(|key| matches!(world.answer_of(0, **key), Some(PathAnswer::Granted(_))));
    assert_eq!(granted.count(), 1_358);
    assert_eq!(world.nodes[1].link(LinkId(1)).unwrap().ledger().installed.rate, 2_716_000);
    for key in keys {
        world.close(0, key);
    }
    world.deliver_all();
    world.check_empty_after(millis(10_000));
}

#[test]
fn a_shrinking_link_keeps_what_fits_and_reports_the_rest() {
    let mut world = World::row(3);
    let small = world.request(0, &forward(&[0, 1, 2], 2)).unwrap();
    let request = Request { forward: Some(wanted(1 << 70, 6)), ..forward(&[0, 1, 2], 6) };
    let large = world.request(0, &request).unwrap();
    world.deliver_all();
    for key in [small, large] {
        granted(&mut world, 0, key);
    }
    let spec = |mbit: u64| {
        LinkParameters::new(
            Capacity::from_bits_per_s(mbit * 1_000_000).unwrap(),
            AdmissionTest::Edf,
            0,
        )
    };
    world.change_link(1, spec(9));
    assert_eq!(world.held(), [8, 8, 0], "everything still fits");
    world.change_link(1, spec(5));
    world.deliver_all();
    assert_eq!(world.held(), [2, 2, 0]);
    let Some(Some(Reason::Refused { forward: true, refusal })) = world.ended(0, large) else {
        panic!("{:?}", world.ended(0, large));
    };
    assert_eq!((refusal.resource, refusal.needed), (Resource::Rate, 8_000_000));
    assert_eq!(world.ended(2, large), Some(None));
    world.close(0, small);
    world.check_empty_after(millis(10_000));
}

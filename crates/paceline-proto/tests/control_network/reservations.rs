//! Reservations of whole paths: their holders, refusals, and the remaining state after failures.

use super::net::{Net, all, camera, id, index, link, promised};
use core::num::NonZeroU32;
use paceline_proto::control::{
    Grant, PublisherSpec, RefusalReason, SubscriptionSpec, TrafficTrial,
};
use paceline_proto::plan::Target;
use paceline_proto::{Envelope, Form, PublisherId, Rate, SubscriptionId};
use paceline_sched::Duration;

/// Carries one camera with its headers, but not two.
const THIN: u64 = 400_000;
const WIDE: u64 = 10_000_000;

impl Net {
    pub(crate) fn granted(&self, node: usize) -> Vec<Grant> {
        self.nodes[node].grants().collect()
    }

    /// Returns the number of reservations in which each node takes part.
    pub(crate) fn held(&self) -> Vec<usize> {
        (0..self.nodes.len()).map(|node| self.granted(node).len()).collect()
    }

    /// Returns `true` if samples from the publisher's node reach the subscription, and `false` if none leave
    /// that node.
    fn reaches(&self, publisher: PublisherId, subscription: SubscriptionId) -> bool {
        let (mut node, mut first) = (index(publisher.node), true);
        loop {
            let outputs = self.outputs(node, publisher, Form::FULL);
            if outputs.iter().any(|it| it.subscriptions.contains(&subscription)) {
                let to = |target| match target {
                    Target::Hop(hop) => Some(index(hop)),
                    Target::Local => None,
                };
                let of = outputs.iter().find(|it| it.subscriptions.contains(&subscription));
                match to(of.unwrap().target) {
                    None => return true,
                    Some(next) => (node, first) = (next, false),
                }
            } else {
                assert!(first, "node {node} gets samples of an unrelated stream");
                return false;
            }
        }
    }

    /// Delivers all messages, and calls `look` after each one.
    pub(crate) fn settle_looking(&mut self, mut look: impl FnMut(&Self)) {
        for _ in 0..10_000 {
            let ready =
                self.queues.iter().find(|(_, queue)| !queue.is_empty()).map(|(&hop, _)| hop);
            let Some((from, to)) = ready else { return };
            self.deliver(from, to);
            look(self);
        }
        panic!("the nodes never stop sending");
    }
}

/// Returns a chain of `hops` hops. All are fast except hop `thin`, counted from 0.
fn chain(hops: usize, thin: usize) -> Net {
    let mut net = Net::new(hops + 1);
    for hop in 0..hops {
        let bytes = Some(if hop == thin { THIN } else { WIDE });
        let name = format!("link{hop}");
        net.join_over(hop, hop + 1, link(&name, bytes), link(&name, bytes));
    }
    net.settle();
    net
}

/// A local socket, a radio and another socket: hops without queueing take little of the delay bound.
#[test]
fn unqueued_streams_leave_the_delay_bound_to_queued_streams() {
    let mut net = Net::new(4);
    for (hop, capacity) in [None, Some(THIN), None].into_iter().enumerate() {
        let name = format!("link{hop}");
        net.join_over(hop, hop + 1, link(&name, capacity), link(&name, capacity));
    }
    net.settle();
    let left = net.publish(0, camera("left"));
    let within = Some(Duration::from_millis(100));
    let user = net.subscribe(3, SubscriptionSpec { within, ..promised("left") });
    net.settle();
    assert_eq!(net.heard(user), [left]);
    let bounds = net.seen[3].granted[&(user, left)].hops.iter().map(|hop| hop.bound);
    assert!(bounds.eq([9_000, 78_500, 9_000].map(Duration::from_micros)));
    // Each node uses the granted part of the bound.
    let gone = [0, 10, 90, 100].map(Duration::from_millis);
    for (node, gone) in gone.into_iter().enumerate() {
        let [output] = net.outputs(node, left, Form::FULL) else { panic!("node {node}") };
        assert_eq!(output.upstream, gone, "node {node}");
    }
    net.assert_delivered();
}

#[test]
fn a_path_reserves_all_or_nothing_and_names_the_refusing_hop() {
    for (hops, thin, back) in
        [(2, 0), (2, 1), (3, 0), (3, 1), (3, 2), (4, 0), (4, 1), (4, 2), (4, 3)]
            .into_iter()
            .flat_map(|(hops, thin)| [(hops, thin, false), (hops, thin, true)])
    {
        let mut net = chain(hops, thin);
        let (from, to) = if back { (hops, 0) } else { (0, hops) };
        let refuser = if back { thin + 1 } else { thin };
        let [left, right] = ["left", "right"].map(|tag| net.publish(from, camera(tag)));
        let first = net.subscribe(to, promised("left"));
        net.settle();
        assert_eq!(net.heard(first), [left]);
        let grant = &net.seen[to].granted[&(first, left)];
        assert_eq!(grant.hops.len(), hops);
        assert!(grant.hops.iter().all(|hop| hop.bytes_per_s == 300_000));
        let sum = grant.hops.iter().fold(Duration::ZERO, |sum, hop| sum.saturating_add(hop.bound));
        assert_eq!(sum, grant.bound);
        assert!(grant.bound < Duration::from_millis(200), "{}", grant.bound);
        let mut path: Vec<_> = (0..=hops).map(id).collect();
        if back {
            path.reverse();
        }
        assert!(grant.hops.iter().map(|hop| hop.node).eq(path[..hops].iter().copied()));
        let second = net.subscribe(to, promised("right"));
        net.settle();
        assert!(net.heard(second).is_empty());
        let [refusal] = &net.seen[to].refused[..] else { panic!("{:?}", net.seen[to].refused) };
        assert_eq!((refusal.subscription, refusal.publisher), (second, right));
        assert_eq!(refusal.node, id(refuser), "{hops} hops, thin at {thin}, back {back}");
        assert_eq!(
            (&refusal.node_name[..], &refusal.link[..]),
            (&format!("node{refuser}")[..], &format!("link{thin}")[..])
        );
        // A refused request reserves nothing on any link, including the fast ones.
        assert_eq!(net.held(), vec![1; hops + 1]);
        for node in 0..=hops {
            assert!(net.outputs(node, right, Form::FULL).is_empty());
        }
        net.unsubscribe(first);
        net.run(Duration::from_secs(6));
        assert_eq!(net.heard(second), [right], "there is room now");
        net.unsubscribe(second);
        net.settle();
        assert_eq!(net.held(), vec![0; hops + 1]);
        net.assert_converged();
    }
}

#[test]
fn nothing_leaves_before_the_whole_path_is_ready() {
    let mut net = chain(4, 3);
    let left = net.publish(0, camera("left"));
    net.settle();
    let subscription = net.subscribe(4, promised("left"));
    let mut seen = (0, 0);
    net.settle_looking(
        |net| {
            if net.reaches(left, subscription) { seen.1 += 1 } else { seen.0 += 1 }
        },
    );
    assert!(seen.0 > 8, "the subscription, the request and the answer take four hops each");
    assert!(net.reaches(left, subscription));
}

#[test]
fn an_offer_is_valid_on_the_whole_path() {
    let mut net = Net::new(4);
    let tighter = Some(160_000);
    net.join_over(0, 1, link("wide", Some(WIDE)), link("wide", Some(WIDE)));
    net.join_over(1, 2, link("thin", Some(250_000)), link("thin", Some(250_000)));
    net.join_over(2, 3, link("thinner", tighter), link("thinner", tighter));
    net.settle();
    let left = net.publish(0, camera("left"));
    let refused = net.subscribe(
        3,
        SubscriptionSpec { within: Some(Duration::from_secs(1)), ..promised("left") },
    );
    net.settle();
    assert!(net.heard(refused).is_empty());
    let refusal = net.seen[3].refused[0].clone();
    assert_eq!((refusal.node, &refusal.link[..]), (id(1), "thin"));
    let millihertz = u32::try_from(refusal.offer.max_millihertz.unwrap()).unwrap();
    // 152,000 bytes per second of the slower link's reservable capacity: 12.6 pictures of 12,000 bytes.
    assert!((12_400..=12_667).contains(&millihertz), "{millihertz}");
    let rate = Rate::max(NonZeroU32::new(millihertz).unwrap());
    let offered = SubscriptionSpec {
        form: Form { rate, ..Form::FULL },
        within: Some(Duration::from_secs(1)),
        ..promised("left")
    };
    let kept = net.subscribe(3, offered);
    net.settle();
    assert_eq!(net.heard(kept), [left], "the offer is granted");
}

#[test]
fn a_dry_run_reserves_nothing() {
    let mut net = chain(3, 1);
    let left = net.publish(0, camera("left"));
    net.settle();
    let now = net.now;
    for (within, fits) in [(200, true), (60, false)] {
        let request =
            SubscriptionSpec { within: Some(Duration::from_millis(within)), ..promised("left") };
        let number = net.nodes[3].survey(now, left, request).unwrap();
        net.drain(3);
        net.settle();
        let (survey, complete, grant, refusal, _) = net.seen[3].surveyed.pop().unwrap();
        let grant = grant.unwrap();
        assert_eq!((survey, complete, grant.hops.len()), (number, true, 3));
        assert_eq!(grant.within, Some(Duration::from_millis(within)));
        assert_eq!(refusal.is_none(), fits, "{refusal:?}");
        let notified = refusal.map(|refusal| (refusal.node, refusal.link, refusal.offer.within));
        let offered = notified.map(|(node, link, within)| {
            assert_eq!((node, &link[..]), (id(1), "link1"));
            within.unwrap()
        });
        assert!(offered.is_none_or(|offered| offered > Duration::from_millis(60)));
        assert_eq!(net.held(), [0; 4]);
    }
    assert_eq!(net.nodes[3].survey(now, PublisherId { index: 9, ..left }, all("left")), None);
    // The survey waits at most 0.5 s for a node that does not answer.
    net.nodes[3].survey(now, left, promised("left")).unwrap();
    net.drain(3);
    net.queues.clear();
    net.run(Duration::from_secs(1));
    let (_, complete, _, refusal, _) = net.seen[3].surveyed.pop().unwrap();
    assert_eq!((complete, refusal), (false, None));
    // Best effort needs no reservation.
    net.nodes[3].survey(net.now, left, all("left")).unwrap();
    net.drain(3);
    net.settle();
    let (_, complete, grant, refusal, _) = net.seen[3].surveyed.pop().unwrap();
    assert_eq!((complete, grant, refusal), (true, None, None));
}

/// Of trials with growing traffic, those up to some size are granted, and the largest of them is granted when the
/// publisher declares it.
#[test]
fn granted_trials_are_granted_when_they_are_declared() {
    let mut net = chain(3, 1);
    let period = Duration::from_millis(40);
    let within = Duration::from_millis(400);
    let trials: Vec<_> = (1..=40)
        .map(|step| TrafficTrial {
            period,
            bytes_max: 1_000 * step,
            envelope: Envelope::declared(1_000 * step, 25_000 * step),
            within,
        })
        .collect();
    let of = |trial: &TrafficTrial| PublisherSpec {
        period: Some(trial.period),
        bytes_max: Some(trial.bytes_max),
        envelope: Some(trial.envelope),
        ..camera("left")
    };
    let left = net.publish(0, of(&trials[39]));
    net.settle();
    let request = SubscriptionSpec { within: Some(within), ..promised("left") };
    net.nodes[3].survey_trials(net.now, left, request.clone(), trials.clone()).unwrap();
    net.drain(3);
    net.settle();
    let (.., fits) = net.seen[3].surveyed.pop().unwrap();
    let granted = fits.count_ones();
    assert!((1..40).contains(&granted), "{granted} granted");
    assert_eq!(fits, (1 << granted) - 1);
    for (number, fits) in [(granted - 1, true), (granted, false)] {
        let mut net = chain(3, 1);
        let left = net.publish(0, of(&trials[number as usize]));
        let asked = net.subscribe(3, request.clone());
        net.settle();
        assert_eq!(net.heard(asked) == [left], fits, "trial {number}");
    }
}

#[test]
fn the_buffer_of_every_node_of_a_path_limits_its_contracts() {
    for small in 0..=2 {
        let mut net = chain(2, 9);
        let left = net.publish(0, camera("left"));
        let right = net.publish(0, camera("right"));
        let first = net.subscribe(2, promised("left"));
        net.settle();
        let space = net.nodes[small].host_buffer_use();
        assert!(space.held > 0 && net.heard(first) == [left], "node {small}: {space:?}");
        net.nodes[small].set_host_buffer(space.held + 5_000);
        net.drain(small);
        net.settle();
        assert_eq!(net.heard(first), [left]);
        // A dry run has the same answer, and so has the same form again, which shares the space.
        let now = net.now;
        net.nodes[2].survey(now, right, promised("right")).unwrap();
        net.drain(2);
        net.settle();
        let (.., predicted, _) = net.seen[2].surveyed.pop().unwrap();
        net.subscribe(2, promised("left"));
        let second = net.subscribe(2, promised("right"));
        net.settle();
        let [refusal] = &net.seen[2].refused[..] else { panic!("{:?}", net.seen[2].refused) };
        let RefusalReason::HostBuffer { needed, available } = refusal.reason else {
            panic!("node {small}: {refusal}");
        };
        assert_eq!((refusal.node, available), (id(small), space.held + 5_000));
        assert_eq!(refusal.subscription, second);
        assert!(needed > available, "{needed}");
        assert_eq!(predicted.map(|it| it.reason), Some(refusal.reason));
        let text = refusal.to_string();
        let named = format!("the host buffer of 'node{small}' is too small");
        assert!(text.starts_with(&named) && text.contains("; try --"), "{text}");
        // The offer fits, and a larger buffer has room for all.
        net.nodes[small].set_host_buffer(needed);
        net.drain(small);
        net.run(Duration::from_secs(10));
        assert_eq!(
            (net.heard(second), net.nodes[small].host_buffer_use().held),
            (&[right][..], needed)
        );
        // A smaller one ends both.
        net.nodes[small].set_host_buffer(1);
        net.drain(small);
        net.settle();
        assert_eq!(net.nodes[small].host_buffer_use().held, 0);
    }
}

#[test]
fn a_dead_node_leaves_no_reservation_behind() {
    let mut net = Net::new(4);
    for (one, other) in [(0, 1), (1, 3), (0, 2), (2, 3)] {
        let name = format!("link{one}{other}");
        net.join_over(one, other, link(&name, Some(THIN)), link(&name, Some(THIN)));
    }
    net.settle();
    let left = net.publish(0, camera("left"));
    let user = net.subscribe(3, promised("left"));
    net.settle();
    assert_eq!(net.held(), [1, 1, 0, 1]);
    net.part(0, 1);
    net.part(1, 3);
    net.run(Duration::from_secs(1));
    assert_eq!((net.held(), net.heard(user)), (vec![1, 0, 1, 1], &[left][..]));
    assert!(net.reaches(left, user));
    net.part(2, 3);
    net.run(Duration::from_secs(1));
    assert_eq!(net.held(), [0; 4], "the subscriber is gone for all others");
    assert!(net.heard(user).is_empty());
    net.join_over(2, 3, link("link23", Some(THIN)), link("link23", Some(THIN)));
    net.run(Duration::from_secs(1));
    assert_eq!((net.held(), net.heard(user)), (vec![1, 0, 1, 1], &[left][..]));
}

#[test]
fn a_better_path_is_taken_without_a_gap() {
    let mut net = chain(3, 9);
    let left = net.publish(0, camera("left"));
    let user = net.subscribe(3, promised("left"));
    net.settle();
    for (node, back) in [(0, 3), (3, 0)] {
        net.up.insert((node, back));
        net.nodes[node].handle_hop_up(net.now, id(back), link("short", Some(WIDE)));
        net.drain(node);
    }
    net.settle_looking(|net| assert!(net.reaches(left, user), "a gap"));
    assert_eq!(net.held(), [1, 0, 0, 1], "reservations on the old path only are released");
    assert_eq!(net.seen[3].granted[&(user, left)].hops.len(), 1);
    // A shorter path that is too slow is not used, and the existing one stays.
    net.join_over(0, 3, link("short", Some(100_000)), link("short", Some(100_000)));
    net.run(Duration::from_secs(30));
    assert!(net.heard(user).is_empty(), "the shortest path cannot carry it");
}

#[test]
fn any_message_may_be_lost_or_duplicated() {
    for twice in [false, true] {
        for number in 0..40 {
            let mut net = chain(3, 1);
            let left = net.publish(0, camera("left"));
            net.settle();
            let user = net.subscribe(3, promised("left"));
            for at in 0..=number {
                let ready = net.queues.iter().find(|(_, queue)| !queue.is_empty());
                let Some((&(from, to), _)) = ready else { break };
                if at < number {
                    net.deliver(from, to);
                } else {
                    let queue = net.queues.get_mut(&(from, to)).unwrap();
                    let first = queue.pop_front().unwrap();
                    if twice {
                        queue.extend([first.clone(), first]);
                    }
                }
            }
            net.run(Duration::from_secs(40));
            assert_eq!(net.heard(user), [left], "message {number}");
            assert_eq!(net.held(), [1; 4], "message {number}");
            net.unsubscribe(user);
            net.run(Duration::from_secs(40));
            assert_eq!(net.held(), [0; 4], "message {number}");
        }
    }
}

#[test]
fn best_effort_delivery_continues_until_a_contract_request_is_answered() {
    let mut net = chain(3, 1);
    let left = net.publish(0, camera("left"));
    let user = net.subscribe(3, all("left"));
    net.settle();
    net.nodes[3].update_subscription(net.now, user, promised("left"));
    net.drain(3);
    net.settle_looking(|net| {
        assert!(net.reaches(left, user), "a gap");
        assert_eq!(net.heard(user), [left]);
    });
    assert_eq!(net.held(), [1; 4]);
    let contract = |net: &Net| net.outputs(1, left, Form::FULL)[0].contract;
    assert!(contract(&net).is_some(), "it is limited to the grant");
    net.run(Duration::from_secs(6));
    net.assert_delivered();
    // With `or_stop`, a stream that cannot be admitted stops.
    let right = net.publish(0, camera("right"));
    let other = net.subscribe(3, all("right"));
    net.settle();
    assert!(net.reaches(right, other));
    let or_stop = SubscriptionSpec { or_stop: true, ..promised("right") };
    net.nodes[3].update_subscription(net.now, other, or_stop);
    net.drain(3);
    net.settle();
    assert!(net.heard(other).is_empty());
    assert!(net.outputs(0, right, Form::FULL).is_empty());
}

#[test]
fn a_change_of_form_leaves_no_gap() {
    let mut net = chain(3, 1);
    let left = net.publish(0, camera("left"));
    let user = net.subscribe(3, promised("left"));
    net.settle();
    let every = NonZeroU32::new(2).unwrap();
    let form = Form { rate: Rate::every(every), ..Form::FULL };
    let sparse = SubscriptionSpec { form, ..promised("left") };
    net.nodes[3].update_subscription(net.now, user, sparse);
    net.drain(3);
    let mut sent = Vec::new();
    net.settle_looking(|net| {
        // The form that leaves the publisher's node is forwarded by all others.
        let leaving = net.outputs(0, left, Form::FULL)[0].form;
        sent.push(leaving);
        for node in 1..=3 {
            let there = net.outputs(node, left, leaving);
            assert!(there.iter().any(|it| it.subscriptions.contains(&user)), "{leaving} at {node}");
        }
    });
    assert_eq!((sent.first(), sent.last()), (Some(&Form::FULL), Some(&form)));
    net.run(Duration::from_secs(6));
    net.assert_delivered();
}

//! Second paths: reserved before the first sample, and taken over without a request.

use super::net::{Net, camera, id, link, promised};
use bytes::Bytes;
use paceline_admit::reserve::{ReserveMessage, codec};
use paceline_proto::control::{
    GrantedHop, HopInfo, PublisherSpec, Refusal, RefusalReason, SubscriptionSpec,
};
use paceline_proto::plan::{SourceKey, Target};
use paceline_proto::{Form, NodeId, PublisherId, SubscriptionId, Tag};
use paceline_sched::Duration;
use std::collections::VecDeque;

/// Carries one camera with its headers, but not two.
pub(super) const THIN: u64 = 400_000;
/// Carries no camera.
pub(super) const NARROW: u64 = 100_000;
/// The first byte of a message of the reservation protocol.
const RESERVE: u8 = 7;

pub(super) fn spared(pattern: &str) -> SubscriptionSpec {
    SubscriptionSpec { spare: true, ..promised(pattern) }
}

/// Returns the nodes 0 and 3, joined over 1 and over 2. `out` are the capacities toward node 3: over 1, then over 2.
pub(super) fn diamond(out: [u64; 4]) -> Net {
    let mut net = Net::new(4);
    for ((from, to), bytes) in [(0, 1), (1, 3), (0, 2), (2, 3)].into_iter().zip(out) {
        join(&mut net, from, to, bytes);
    }
    net.settle();
    net
}

pub(super) fn join(net: &mut Net, from: usize, to: usize, bytes: u64) {
    let name = format!("link{from}{to}");
    net.join_over(from, to, link(&name, Some(bytes)), link(&name, Some(THIN)));
}

/// A publisher and a subscription, at nodes 0 and 3.
pub(super) struct Run {
    pub(super) net: Net,
    pub(super) publisher: PublisherId,
    pub(super) subscription: SubscriptionId,
}

pub(super) fn nodes(hops: &[GrantedHop]) -> Vec<NodeId> {
    hops.iter().map(|hop| hop.node).collect()
}

impl Run {
    pub(super) fn new(mut net: Net, request: SubscriptionSpec) -> Self {
        let subscription = net.subscribe(3, request);
        let publisher = net.publish(0, camera("camera"));
        net.settle();
        Self { net, publisher, subscription }
    }

    /// Returns the nodes of the first path and of the spare, as the subscriber knows them.
    pub(super) fn granted(&self) -> Option<(Vec<NodeId>, Vec<NodeId>)> {
        let grant = self.net.seen[3].granted.get(&(self.subscription, self.publisher))?;
        Some((nodes(&grant.hops), nodes(&grant.spare)))
    }

    /// Returns the node to which the publisher's node sends with a contract.
    pub(super) fn sends_to(&self) -> Option<NodeId> {
        let outputs = self.net.outputs(0, self.publisher, Form::FULL);
        let hops = outputs.iter().filter(|output| output.contract.is_some());
        let mut hops = hops.filter_map(|output| match output.target {
            Target::Hop(hop) => Some(hop),
            Target::Local => None,
        });
        let first = hops.next();
        assert_eq!(hops.next(), None, "samples travel on one path");
        first
    }

    /// Asserts that samples travel over `first`, and that the other relay only keeps its link free.
    pub(super) fn assert_carried(&mut self, first: usize, spare: usize) {
        assert_eq!(self.granted(), Some((vec![id(0), id(first)], vec![id(0), id(spare)])));
        assert_eq!(self.sends_to(), Some(id(first)));
        assert!(self.net.outputs(spare, self.publisher, Form::FULL).is_empty());
        // After a takeover, the first samples may arrive before its announcement.
        let source = SourceKey { publisher: self.publisher, form: Form::FULL };
        assert_eq!(self.net.seen[3].from[&source], [id(1), id(2)]);
        assert_eq!(self.net.held(), [1; 4]);
        assert!(reserved(&self.net).iter().all(|bytes| *bytes > 0), "{:?}", reserved(&self.net));
        self.net.assert_delivered();
    }

    pub(super) fn assert_nothing(&self) {
        assert_eq!((self.granted(), self.sends_to()), (None, None));
        assert_eq!((self.net.held(), reserved(&self.net)), (vec![0; 4], vec![0; 4]));
    }

    pub(super) fn refusal(&self) -> &Refusal {
        self.net.seen[3].refused.last().expect("a refusal")
    }
}

/// Returns the bytes reserved in the queues of each of the four links.
pub(super) fn reserved(net: &Net) -> Vec<u64> {
    let held = |(node, name): (usize, &str)| {
        net.nodes[node].buffer_use(name).map_or(0, |buffer| buffer.held)
    };
    [(0, "link01"), (1, "link13"), (0, "link02"), (2, "link23")].map(held).to_vec()
}

fn is_request(message: &Bytes) -> bool {
    message.first() == Some(&RESERVE)
        && matches!(codec::decode(&message[1..]), Ok(ReserveMessage::Admit(_)))
}

/// Delivers messages until node 0 sends to `hop`. Returns true if a request for a reservation was sent meanwhile.
fn requests_until(run: &mut Run, hop: usize) -> bool {
    for _ in 0..1_000 {
        if run.net.queues.values().flatten().any(is_request) {
            return true;
        }
        if run.sends_to() == Some(id(hop)) {
            return false;
        }
        let ready = run.net.queues.iter().find(|(_, queue)| !queue.is_empty());
        let Some((&(from, to), _)) = ready else { panic!("node 0 never sends to {hop}") };
        run.net.deliver(from, to);
    }
    panic!("the nodes never stop sending")
}

#[test]
fn both_paths_are_reserved_before_the_first_sample_and_one_carries_it() {
    let mut net = diamond([THIN; 4]);
    let subscription = net.subscribe(3, spared("camera"));
    let publisher = net.publish(0, camera("camera"));
    let mut run = Run { net: Net::new(0), publisher, subscription };
    net.settle_looking(|net| {
        if !net.outputs(0, publisher, Form::FULL).is_empty() {
            assert_eq!(net.held(), [1; 4]);
        }
    });
    run.net = net;
    run.assert_carried(1, 2);
    // Each relay knows the reservation of its own path.
    let of = |node: usize| run.net.granted(node).pop().unwrap();
    assert_eq!((nodes(&of(1).hops), nodes(&of(1).spare)), (vec![id(0), id(1)], vec![]));
    assert_eq!((nodes(&of(2).hops), nodes(&of(2).spare)), (vec![], vec![id(0), id(2)]));
    let text = run.net.granted(3).pop().unwrap().to_string();
    assert!(text.ends_with("with a spare over link02 of node0 and link23 of node2"), "{text}");
    run.net.run(Duration::from_secs(30));
    run.assert_carried(1, 2);
    run.net.unsubscribe(subscription);
    run.net.run(Duration::from_secs(1));
    run.assert_nothing();
}

#[test]
fn a_failed_link_or_node_moves_the_samples_to_the_spare_without_a_request() {
    let cuts: [&[(usize, usize)]; 3] = [&[(0, 1)], &[(1, 3)], &[(0, 1), (1, 3)]];
    for cut in cuts {
        let mut run = Run::new(diamond([THIN; 4]), spared("camera"));
        run.assert_carried(1, 2);
        for (one, other) in cut {
            run.net.part(*one, *other);
        }
        if cut.contains(&(0, 1)) {
            assert_eq!(run.sends_to(), Some(id(2)), "at once, before any message");
        }
        assert!(!requests_until(&mut run, 2), "{cut:?}: nothing is requested");
        run.net.settle();
        assert_eq!(run.granted(), Some((vec![id(0), id(2)], vec![])), "{cut:?}");
        assert_eq!(run.sends_to(), Some(id(2)));
        let notified = &run.net.seen[3].notified;
        assert!(
            !notified.contains(&super::net::Notification::Withdrawn),
            "the promise stays: {notified:?}"
        );
        // The subscription learns why it has no spare now, once.
        let [refusal] = &run.net.seen[3].unspared[..] else {
            panic!("{:?}", run.net.seen[3].unspared)
        };
        assert_eq!(refusal.reason, RefusalReason::NoSecondPath { shared: true });
        run.net.run(Duration::from_secs(20));
        assert_eq!(run.net.seen[3].unspared.len(), 1);
        assert_eq!(run.sends_to(), Some(id(2)));
        // It gets a new one with the link.
        for (from, to) in cut {
            join(&mut run.net, *from, *to, THIN);
        }
        run.net.run(Duration::from_secs(3));
        run.assert_carried(1, 2);
        run.net.unsubscribe(run.subscription);
        run.net.run(Duration::from_secs(1));
        run.assert_nothing();
    }
}

#[test]
fn a_shortest_path_that_refuses_leaves_the_stream_on_the_longer_spare() {
    // Over 2 the path is longer, and its first relay has a short cut that carries no camera.
    let mut net = Net::new(5);
    for (from, to, bytes) in
        [(0, 1, THIN), (1, 3, THIN), (0, 2, THIN), (2, 4, THIN), (4, 3, THIN), (2, 1, NARROW)]
    {
        join(&mut net, from, to, bytes);
    }
    net.settle();
    let mut run = Run::new(net, spared("camera"));
    let longer = vec![id(0), id(2), id(4)];
    assert_eq!(run.granted(), Some((vec![id(0), id(1)], longer.clone())));
    run.net.part(0, 1);
    let key = (run.subscription, run.publisher);
    run.net.settle_looking(|net| assert!(net.seen[3].granted.contains_key(&key)));
    for _ in 0..200 {
        run.net.run(Duration::from_millis(100));
        assert_eq!(run.granted(), Some((longer.clone(), vec![])));
    }
}

#[test]
fn a_contract_with_a_spare_is_no_half_of_a_tie() {
    let mut run = Run::new(diamond([THIN; 4]), spared("camera"));
    run.assert_carried(1, 2);
    // A stranger ties its subscription at the publisher's host to the camera.
    let commands = run.net.publish(3, super::two_way::commands());
    let with = Some(Tag::new("camera").unwrap());
    run.net.subscribe(0, SubscriptionSpec { with, ..promised("cmd") });
    run.net.run(Duration::from_secs(5));
    assert_eq!(run.sends_to(), Some(id(1)), "the running contract goes on");
    assert!(run.net.outputs(3, commands, Form::FULL).is_empty());
    assert_eq!(run.net.seen[0].refused.len(), 1, "the stranger learns it");
}

#[test]
fn the_loss_of_the_spare_does_not_touch_the_stream() {
    let mut run = Run::new(diamond([THIN; 4]), spared("camera"));
    let installs = run.net.seen[0].installs;
    run.net.part(2, 3);
    run.net.run(Duration::from_secs(2));
    assert_eq!(run.granted(), Some((vec![id(0), id(1)], vec![])));
    assert_eq!(run.net.seen[0].installs, installs, "nothing changes at the publisher");
    assert_eq!(reserved(&run.net)[2..], [0, 0], "nothing of the broken path stays reserved");
    assert_eq!(run.net.seen[3].unspared.len(), 1);
    join(&mut run.net, 2, 3, THIN);
    run.net.run(Duration::from_secs(2));
    run.assert_carried(1, 2);
    assert_eq!(run.net.seen[0].installs, installs);
}

#[test]
fn a_refused_half_leaves_nothing_reserved_and_names_its_link() {
    for (link, capacity) in [(0, "link01"), (1, "link13"), (2, "link02"), (3, "link23")] {
        let mut out = [THIN; 4];
        // The widest path is the first one, so a narrow link is on the spare's unless both are narrow.
        out[link] = NARROW;
        let mut run = Run::new(diamond(out), spared("camera"));
        run.net.run(Duration::from_secs(1));
        run.assert_nothing();
        let refusal = run.refusal();
        assert_eq!((refusal.reason, &refusal.link[..]), (RefusalReason::Capacity, capacity));
        assert!(refusal.spare && refusal.available_bytes_per_s < refusal.needed_bytes_per_s);
        let text = refusal.to_string();
        let node = refusal.node_name.clone();
        assert!(text.starts_with(&format!("no spare: link '{capacity}' of '{node}'")), "{text}");
        let refusals = run.net.seen[3].refused.len();
        let mut free = 0;
        for _ in 0..40 {
            run.net.run(Duration::from_millis(250));
            assert_eq!((run.granted(), run.sends_to()), (None, None));
            free += usize::from(run.net.held() == [0; 4]);
        }
        assert_eq!((free, run.net.seen[3].refused.len()), (40, refusals), "retries notify nobody");
        // The same request without a spare fits; a smaller form fits twice.
        let one = run.net.subscribe(3, promised("camera"));
        run.net.run(Duration::from_secs(1));
        assert!(run.net.seen[3].granted.contains_key(&(one, run.publisher)));
        run.net.unsubscribe(one);
        let small = PublisherSpec { bytes_max: Some(2_000), ..camera("camera") };
        run.net.update(run.publisher, small);
        run.net.run(Duration::from_secs(5));
        let spare = if link < 2 { [2, 1] } else { [1, 2] };
        run.assert_carried(spare[0], spare[1]);
    }
}

#[test]
fn a_path_without_a_second_one_is_refused_with_the_hop_that_all_share() {
    let mut net = Net::new(4);
    for (from, to) in [(0, 1), (1, 2), (1, 3), (2, 3)] {
        join(&mut net, from, to, THIN);
    }
    net.settle();
    let mut run = Run::new(net, spared("camera"));
    run.assert_nothing();
    let refusal = run.refusal();
    assert_eq!(refusal.reason, RefusalReason::NoSecondPath { shared: true });
    assert_eq!((&refusal.link[..], refusal.node), ("link01", id(0)));
    assert_eq!(
        refusal.to_string(),
        "no spare: every path crosses link 'link01' of 'node0'; add a link for a second path, or request the contract \
         without a spare"
    );
    run.net.run(Duration::from_secs(20));
    assert_eq!(run.net.seen[3].refused.len(), 1, "reported once");
    join(&mut run.net, 0, 2, THIN);
    run.net.run(Duration::from_secs(2));
    run.assert_carried(1, 2);
}

#[test]
fn paths_over_one_link_of_a_node_are_no_two_paths() {
    // The robot or the operator reaches both relays over one radio.
    for end in [0, 3] {
        let mut net = Net::new(4);
        for relay in [1, 2] {
            let name = |node: usize| match node == end {
                true => "radio".to_owned(),
                false => format!("eth{node}"),
            };
            let hop = |name: &str| link(name, Some(2 * THIN));
            net.join_over(0, relay, hop(&name(0)), hop("near"));
            net.join_over(relay, 3, hop("far"), hop(&name(3)));
        }
        // The other end has a link of its own to each relay.
        let other = 3 - end;
        net.join_over(other, 2, link("second", Some(2 * THIN)), link("side", Some(2 * THIN)));
        net.settle();
        let mut run = Run::new(net, spared("camera"));
        run.assert_nothing();
        let refusal = run.refusal();
        assert_eq!(refusal.reason, RefusalReason::NoSecondPath { shared: true });
        assert_eq!((&refusal.link[..], refusal.node), ("radio", id(end)));
        // A second radio gives it a second path.
        let (second, far) = (link("radio2", Some(2 * THIN)), link("other", Some(2 * THIN)));
        run.net.part(end, 2);
        run.net.join_over(end, 2, second, far);
        run.net.run(Duration::from_secs(3));
        let (first, spare) = run.granted().expect("both paths");
        assert_eq!(first.len() + spare.len(), 4);
        assert_ne!(first[1], spare[1]);
        run.net.assert_delivered();
    }
}

#[test]
fn a_second_path_that_comes_and_goes_leaves_nothing_reserved() {
    // The hop goes down again after each number of messages: before the answer of the first path, or of the spare.
    for messages in 0.. {
        let mut net = diamond([THIN; 4]);
        net.part(2, 3);
        net.settle();
        let mut run = Run::new(net, spared("camera"));
        assert_eq!(run.refusal().reason, RefusalReason::NoSecondPath { shared: true });
        join(&mut run.net, 2, 3, THIN);
        for _ in 0..messages {
            let ready = run.net.queues.iter().find(|(_, queue)| !queue.is_empty());
            let Some((&(from, to), _)) = ready else { break };
            run.net.deliver(from, to);
        }
        let is_done = run.net.queues.values().all(VecDeque::is_empty);
        if is_done {
            run.net.run(Duration::from_secs(3));
            run.assert_carried(1, 2);
            assert!(messages > 20, "requests were in transit");
            return;
        }
        run.net.part(2, 3);
        run.net.run(Duration::from_secs(3));
        // Both paths may have been granted before the loss of the second one.
        match run.granted() {
            Some((_, spare)) => assert_eq!((spare, run.sends_to()), (vec![], Some(id(1)))),
            None => run.assert_nothing(),
        }
    }
}

#[test]
fn a_change_adds_and_removes_a_spare_while_the_stream_continues() {
    let mut run = Run::new(diamond([THIN, THIN, NARROW, THIN]), promised("camera"));
    let (publisher, subscription) = (run.publisher, run.subscription);
    assert_eq!(run.granted(), Some((vec![id(0), id(1)], vec![])));
    let change = |run: &mut Run, spec| {
        run.net.nodes[3].update_subscription(run.net.now, subscription, spec);
        run.net.drain(3);
        run.net.settle_looking(|net| {
            assert!(!net.outputs(0, publisher, Form::FULL).is_empty(), "no gap");
            assert_eq!(net.heard(subscription), [publisher]);
        });
        run.net.run(Duration::from_secs(3));
    };
    // Without room for the spare the contract stays as it is.
    change(&mut run, spared("camera"));
    assert_eq!(run.granted(), Some((vec![id(0), id(1)], vec![])));
    let [refusal] = &run.net.seen[3].unspared[..] else { panic!("{:?}", run.net.seen[3].unspared) };
    assert_eq!((refusal.reason, &refusal.link[..]), (RefusalReason::Capacity, "link02"));
    assert_eq!(reserved(&run.net)[2..], [0, 0]);
    run.net.nodes[0].handle_hop_up(run.net.now, id(2), link("link02", Some(THIN)));
    run.net.drain(0);
    run.net.run(Duration::from_secs(5));
    run.assert_carried(1, 2);
    // A stricter bound holds on both paths.
    change(
        &mut run,
        SubscriptionSpec { within: Some(Duration::from_millis(150)), ..spared("camera") },
    );
    run.assert_carried(1, 2);
    change(&mut run, promised("camera"));
    assert_eq!(run.granted(), Some((vec![id(0), id(1)], vec![])));
    assert_eq!(reserved(&run.net)[2..], [0, 0], "the spare is released");
    run.net.assert_delivered();
}

#[test]
fn the_hops_between_processes_of_a_host_are_shared() {
    // 4 is a process of the host 0, and 5 one of the host 3.
    let mut net = Net::new(6);
    for (from, to) in [(0, 1), (1, 3), (0, 2), (2, 3)] {
        join(&mut net, from, to, THIN);
    }
    for (process, host) in [(4, 0), (5, 3)] {
        let own = HopInfo { own: true, ..link("host", None) };
        net.join_over(process, host, own.clone(), own);
    }
    net.settle();
    let subscription = net.subscribe(5, spared("camera"));
    let publisher = net.publish(4, camera("camera"));
    net.settle();
    let key = (subscription, publisher);
    let paths = |net: &Net| {
        let grant = &net.seen[5].granted[&key];
        (nodes(&grant.hops), nodes(&grant.spare))
    };
    let path = |relay: usize| vec![id(4), id(0), id(relay), id(3)];
    assert_eq!(paths(&net), (path(1), path(2)));
    net.assert_delivered();
    net.part(1, 3);
    net.settle();
    assert_eq!(paths(&net), (path(2), vec![]));
    assert!(!net.seen[5].notified.contains(&super::net::Notification::Withdrawn));
    net.assert_reached();
    join(&mut net, 1, 3, THIN);
    net.run(Duration::from_secs(3));
    assert_eq!(paths(&net), (path(1), path(2)));
    net.unsubscribe(subscription);
    net.run(Duration::from_secs(1));
    assert_eq!((net.held(), reserved(&net)), (vec![0; 6], vec![0; 4]));
}

#[test]
fn paths_without_a_node_in_common_are_preferred_to_those_without_a_link_in_common() {
    // Two squares in a row share node 2; a longer path avoids it.
    let mut net = Net::new(7);
    for (from, to) in [(0, 1), (1, 2), (2, 3), (0, 4), (4, 2), (2, 5), (5, 3)] {
        join(&mut net, from, to, THIN);
    }
    net.settle();
    let mut run = Run::new(net, spared("camera"));
    let path = |relays: &[usize]| relays.iter().map(|relay| id(*relay)).collect::<Vec<_>>();
    assert_eq!(run.granted(), Some((path(&[0, 1, 2]), path(&[0, 4, 2, 5]))));
    run.net.assert_delivered();
    run.net.part(2, 3);
    run.net.settle();
    run.net.assert_reached();
    assert_eq!(run.net.seen[3].unspared.len(), 1, "every path crosses link 25 now");
    join(&mut run.net, 2, 3, THIN);
    join(&mut run.net, 4, 6, THIN);
    join(&mut run.net, 6, 5, THIN);
    run.net.run(Duration::from_secs(3));
    assert_eq!(run.granted(), Some((path(&[0, 1, 2]), path(&[0, 4, 6, 5]))));
    run.net.assert_delivered();
}

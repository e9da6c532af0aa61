//! Proxies at named nodes between publisher and subscriber.

use super::net::{Net, Notification, all, camera, id, link, one_in, promised};
use paceline_proto::control::{CpuBudget, CpuCost, PublisherSpec, RefusalReason, SubscriptionSpec};
use paceline_proto::form::ScaledForm;
use paceline_proto::plan::Target;
use paceline_proto::{Form, Proxy, PublisherId, Size};
use paceline_sched::Duration;

const SMALL: Form = Form { size: Some(Size { width: 320, height: 240 }), ..Form::FULL };

fn at(node: usize, spec: SubscriptionSpec) -> SubscriptionSpec {
    SubscriptionSpec { proxy: Proxy::Node(format!("node{node}").into()), ..spec }
}

/// Returns `form` as it travels behind the proxy `node`.
fn via(node: usize, form: Form) -> Form {
    Form { via: Some(id(node)), ..form }
}

fn ring(capacity: Option<u64>) -> Net {
    let mut net = Net::new(4);
    for (one, other) in [(0, 1), (1, 2), (0, 3), (3, 2)] {
        net.join_over(one, other, link("eth", capacity), link("eth", capacity));
    }
    net.settle();
    net
}

#[test]
fn the_full_stream_flows_to_the_proxy_and_one_scaled_stream_from_there() {
    let mut net = Net::joined(5, &[(0, 1), (1, 2), (2, 3), (2, 4)]);
    let publisher = net.publish(0, camera("camera"));
    let users = [3, 4, 3]
        .map(|node| net.subscribe(node, at(1, SubscriptionSpec { form: SMALL, ..all("camera") })));
    net.settle();
    let [first] = net.outputs(0, publisher, Form::FULL) else { panic!() };
    assert_eq!(
        (first.target, first.form, first.scale),
        (Target::Hop(id(1)), Form::FULL, Form::FULL)
    );
    let [second] = net.outputs(1, publisher, Form::FULL) else { panic!() };
    let behind = via(1, SMALL);
    assert_eq!((second.target, second.form, second.scale), (Target::Hop(id(2)), behind, SMALL));
    assert_eq!(second.subscriptions.len(), 3, "scaled once for all");
    let third = net.outputs(2, publisher, behind);
    let third: Vec<_> = third.iter().map(|it| (it.target, it.form, it.scale)).collect();
    let to = |node| (Target::Hop(id(node)), behind, Form::FULL);
    assert_eq!(third, [to(3), to(4)]);
    let path = net.nodes[3].stream_path(publisher, users[0]).unwrap();
    assert_eq!((path.proxy, path.first, path.last), (id(1), Form::FULL, behind));
    net.assert_delivered();
    net.assert_converged();
}

#[test]
fn several_places_on_one_tag_do_not_mix() {
    let mut net = Net::chain(4);
    let publisher = net.publish(0, camera("camera"));
    let small = || SubscriptionSpec { form: SMALL, ..all("camera") };
    for spec in [
        small(),
        SubscriptionSpec { proxy: Proxy::Subscriber, ..small() },
        at(1, small()),
        at(2, small()),
        at(0, small()),
        at(3, small()),
        at(1, SubscriptionSpec { form: one_in(3), ..all("camera") }),
        at(2, all("camera")),
    ] {
        net.subscribe(3, spec);
    }
    net.settle();
    let leaves: Vec<Form> =
        net.outputs(0, publisher, Form::FULL).iter().map(|it| it.form).collect();
    assert_eq!(leaves, [Form::FULL, SMALL], "one full stream for all places further on");
    net.assert_delivered();
    net.assert_converged();
}

#[test]
fn the_path_leads_through_a_proxy_beside_the_shortest_one() {
    let mut net = ring(None);
    let publisher = net.publish(0, camera("camera"));
    let direct = net.subscribe(2, all("camera"));
    // A proxy that scales nothing is a relay.
    let relayed = net.subscribe(2, at(3, all("camera")));
    net.settle();
    let nodes = |user| net.nodes[1].stream_path(publisher, user).unwrap().nodes;
    assert_eq!(nodes(direct), [0, 1, 2].map(id));
    assert_eq!(nodes(relayed), [0, 3, 2].map(id));
    net.assert_delivered();
    net.assert_converged();
}

#[test]
fn an_unknown_or_remote_proxy_is_refused_by_name_until_it_can_be_used() {
    let mut net = Net::joined(4, &[(0, 1), (1, 2)]);
    let publisher = net.publish(0, camera("camera"));
    let user = net.subscribe(2, at(3, SubscriptionSpec { form: SMALL, ..all("camera") }));
    net.settle();
    let refusal = |net: &Net| {
        let refusal = net.seen[2].refused.last().unwrap().clone();
        (refusal.reason, refusal.link)
    };
    let named = |apart| (RefusalReason::NoProxy { apart }, "node3".to_owned());
    assert_eq!(refusal(&net), named(false));
    assert!(net.heard(user).is_empty());
    assert!(net.outputs(0, publisher, Form::FULL).is_empty());
    // A node behind one link only would get and return the samples over the same node.
    net.join(1, 3);
    net.run(Duration::from_secs(5));
    assert_eq!(refusal(&net), named(true));
    net.join(3, 2);
    net.run(Duration::from_secs(5));
    assert_eq!(net.heard(user), [publisher]);
    net.assert_delivered();
    // It fails: the subscription is notified.
    net.part(1, 3);
    net.part(3, 2);
    net.settle();
    assert_eq!(refusal(&net), named(false));
    assert!(net.heard(user).is_empty());
    net.assert_converged();
}

#[test]
fn a_contract_reserves_both_forms_and_leaves_nothing_behind() {
    let mut net = ring(Some(1_000_000));
    let publisher = net.publish(0, camera("camera"));
    let spec = at(3, SubscriptionSpec { form: one_in(5), ..promised("camera") });
    let user = net.subscribe(2, spec);
    net.settle();
    assert_eq!(net.heard(user), [publisher]);
    let grant = net.seen[2].granted[&(user, publisher)].clone();
    let hops: Vec<_> = grant.hops.iter().map(|hop| (hop.node, hop.bytes_per_s)).collect();
    assert_eq!(hops, [(id(0), 300_000), (id(3), 60_000)]);
    let sum = grant.hops.iter().fold(Duration::ZERO, |sum, hop| sum.saturating_add(hop.bound));
    assert_eq!(sum, grant.bound);
    assert_eq!(net.held(), [1, 0, 1, 1]);
    let [full] = net.outputs(0, publisher, Form::FULL) else { panic!() };
    let [scaled] = net.outputs(3, publisher, Form::FULL) else { panic!() };
    let periods = [full, scaled].map(|it| it.contract.unwrap().period);
    assert_eq!(periods, [38, 190].map(Duration::from_millis));
    assert_eq!(scaled.upstream, full.upstream.saturating_add(Duration::from_millis(100)));
    net.assert_delivered();
    net.assert_within_capacity();
    net.unsubscribe(user);
    net.run(Duration::from_secs(10));
    assert_eq!(net.held(), [0; 4]);
    net.assert_converged();
}

#[test]
fn a_refusal_names_the_link_behind_the_proxy_and_its_offer_is_granted() {
    let mut net = Net::new(3);
    net.join_over(0, 1, link("wide", Some(1_000_000)), link("wide", Some(1_000_000)));
    net.join_over(1, 2, link("thin", Some(50_000)), link("thin", Some(50_000)));
    net.settle();
    let publisher = net.publish(0, camera("camera"));
    let spec = at(1, SubscriptionSpec { form: one_in(5), ..promised("camera") });
    let user = net.subscribe(2, spec.clone());
    net.settle();
    assert!(net.heard(user).is_empty());
    let refusal = net.seen[2].refused.last().unwrap().clone();
    assert_eq!((refusal.node, refusal.link.as_str()), (id(1), "thin"));
    assert_eq!(net.held(), [0; 3]);
    let size = refusal.offer.size.unwrap();
    let form = Form { size: Some(size), ..one_in(5) };
    let smaller = net.subscribe(2, SubscriptionSpec { form, ..spec });
    net.settle();
    assert_eq!(net.heard(smaller), [publisher], "{refusal}");
    net.assert_delivered();
}

#[test]
fn scaling_is_charged_to_the_processor_of_the_proxy_as_measured_there() {
    let mut net = Net::chain(3);
    let cost = CpuCost { sample_nanos: 1_000, byte_picos: 0 };
    net.nodes[1].set_processor(CpuBudget { cost, nanos_per_s: 300_000_000 });
    for (one, other) in [(0, 1), (1, 2)] {
        let wide = || link("radio", Some(100_000_000));
        net.join_over(one, other, wide(), wide());
    }
    net.settle();
    let measured = |millis| {
        let work = Duration::from_millis(millis);
        vec![ScaledForm { form: SMALL, bytes_max: 5_000, takes: work, work }]
    };
    let publisher = net.publish(0, PublisherSpec { scaled: measured(4), ..camera("left") });
    let user = net.subscribe(2, at(1, SubscriptionSpec { form: SMALL, ..promised("left") }));
    net.settle();
    assert_eq!(net.heard(user), [publisher]);
    // 25 samples per second, at the publisher's cost until the proxy has measured its own.
    let held = |net: &Net| net.nodes[1].processor_use().unwrap().held;
    assert_eq!(held(&net), 100_025_000);
    net.nodes[1].set_scaling(net.now, publisher, measured(8));
    net.drain(1);
    net.run(Duration::from_secs(1));
    assert_eq!((held(&net), net.heard(user)), (200_025_000, &[publisher][..]));
    net.nodes[1].set_scaling(net.now, publisher, measured(20));
    net.drain(1);
    net.run(Duration::from_secs(1));
    let refusal = net.seen[2].refused.last().unwrap().clone();
    let reason = RefusalReason::Processor { needed: 500_025_000, available: 300_000_000 };
    assert_eq!((refusal.reason, refusal.node), (reason, id(1)));
    assert_eq!(held(&net), 0);
    assert!(net.heard(user).is_empty());
}

#[test]
fn scaling_for_subscribers_is_charged_to_the_processor_of_their_node_once_per_form() {
    let mut net = Net::new(3);
    let cost = CpuCost { sample_nanos: 1_000, byte_picos: 0 };
    net.nodes[2].set_processor(CpuBudget { cost, nanos_per_s: 300_000_000 });
    for (one, other) in [(0, 1), (1, 2)] {
        let wide = || link("radio", Some(100_000_000));
        net.join_over(one, other, wide(), wide());
    }
    net.settle();
    let tiny = Form { size: Some(Size { width: 160, height: 120 }), ..Form::FULL };
    let measured = |millis| {
        let work = Duration::from_millis(millis);
        [tiny, SMALL].map(|form| ScaledForm { form, bytes_max: 5_000, takes: work, work }).to_vec()
    };
    let publisher = net.publish(0, PublisherSpec { scaled: measured(4), ..camera("left") });
    let here = |form| SubscriptionSpec { form, proxy: Proxy::Subscriber, ..promised("left") };
    let [one, same] = [SMALL; 2].map(|form| net.subscribe(2, here(form)));
    net.settle();
    // 25 samples per second, at the publisher's cost until this node has measured its own. Delivery costs nothing.
    let held = |net: &Net| net.nodes[2].processor_use().unwrap().held;
    assert_eq!((net.heard(one), net.heard(same)), (&[publisher][..], &[publisher][..]));
    assert_eq!(held(&net), 100_000_000);
    let other = net.subscribe(2, here(tiny));
    net.settle();
    assert_eq!((net.heard(other), held(&net)), (&[publisher][..], 200_000_000));
    // The full stream is not scaled.
    net.subscribe(2, here(Form::FULL));
    net.settle();
    assert_eq!(held(&net), 200_000_000);
    net.nodes[2].set_scaling(net.now, publisher, measured(8));
    net.drain(2);
    net.run(Duration::from_secs(1));
    let refusal = net.seen[2].refused.last().unwrap().clone();
    let reason = RefusalReason::Processor { needed: 400_000_000, available: 300_000_000 };
    assert_eq!((refusal.reason, refusal.node), (reason, id(2)));
    assert!(held(&net) <= 300_000_000, "{}", held(&net));
    for user in [one, same, other] {
        net.unsubscribe(user);
    }
    net.settle();
    assert_eq!(held(&net), 0);
}

#[test]
fn a_contract_ends_with_its_proxy_and_returns_with_it() {
    let mut net = ring(Some(1_000_000));
    let publisher = net.publish(0, camera("camera"));
    let user = net.subscribe(2, at(3, SubscriptionSpec { form: SMALL, ..promised("camera") }));
    net.settle();
    assert_eq!(net.heard(user), [publisher]);
    net.part(0, 3);
    net.part(3, 2);
    net.run(Duration::from_secs(1));
    let refusal = net.seen[2].refused.last().unwrap().clone();
    assert_eq!(refusal.reason, RefusalReason::NoProxy { apart: false });
    let held = |net: &Net| [0, 1, 2].map(|node| net.granted(node).len());
    assert_eq!(held(&net), [0; 3]);
    assert!(net.outputs(0, publisher, Form::FULL).is_empty());
    let eth = || link("eth", Some(1_000_000));
    net.join_over(0, 3, eth(), eth());
    net.join_over(3, 2, eth(), eth());
    net.run(Duration::from_secs(10));
    assert_eq!(net.heard(user), [publisher]);
    net.assert_delivered();
}

fn auto(spec: SubscriptionSpec) -> SubscriptionSpec {
    SubscriptionSpec { proxy: Proxy::Auto, ..spec }
}

#[test]
fn the_publisher_chooses_places_and_moves_them_only_for_a_gain() {
    let mut net = Net::joined(5, &[(0, 1), (1, 2), (1, 3), (1, 4)]);
    let publisher = net.publish(0, camera("camera"));
    let half = SubscriptionSpec { form: one_in(2), ..all("camera") };
    let user = net.subscribe(2, auto(half.clone()));
    net.settle();
    let place = |net: &Net, user| net.nodes[4].stream_path(publisher, user).unwrap().proxy;
    assert_eq!(place(&net, user), id(0), "one stream is smallest if it is scaled at once");
    // With all small pictures to another node, the first link carries less if the hub scales.
    let small = SubscriptionSpec { form: SMALL, ..all("camera") };
    let other = net.subscribe(3, auto(small));
    let full = net.subscribe(4, all("camera"));
    net.run(Duration::from_secs(5));
    assert_eq!(place(&net, other), id(1));
    assert_eq!(place(&net, full), id(0));
    net.assert_delivered();
    net.unsubscribe(full);
    net.unsubscribe(other);
    net.run(Duration::from_secs(10));
    assert_eq!(place(&net, user), id(0));
    net.assert_delivered();
    net.assert_converged();
    net.unsubscribe(user);
    net.run(Duration::from_secs(10));
    net.assert_converged();
}

#[test]
fn a_chosen_proxy_that_fails_is_replaced() {
    let mut net = ring(Some(1_000_000));
    let publisher = net.publish(0, camera("camera"));
    let full = net.subscribe(2, promised("camera"));
    let small = net.subscribe(2, auto(SubscriptionSpec { form: SMALL, ..promised("camera") }));
    net.run(Duration::from_secs(2));
    assert_eq!(net.heard(small), [publisher]);
    // The whole stream arrives anyway, but a contract is not carried by another stream.
    net.part(0, 1);
    net.part(1, 2);
    net.run(Duration::from_secs(2));
    for user in [full, small] {
        assert_eq!(net.heard(user), [publisher]);
        let path = net.nodes[2].stream_path(publisher, user).unwrap();
        assert_eq!(path.nodes, [0, 3, 2].map(id));
    }
    net.assert_delivered();
    net.unsubscribe(small);
    net.unsubscribe(full);
    net.run(Duration::from_secs(10));
    assert_eq!(net.held(), [0; 4]);
}

/// A pseudo-random sequence.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % most
    }

    fn place(&mut self, most: usize) -> usize {
        usize::try_from(self.below(most as u64)).unwrap()
    }
}

/// Delivers some messages in random order, lets a millisecond pass, and sometimes changes the scaling time that a node
/// between the ends has measured.
fn jostle(net: &mut Net, chance: &mut Chance, publisher: PublisherId) {
    loop {
        let ready = net.queues.iter().filter(|(_, queue)| !queue.is_empty());
        let ready: Vec<_> = ready.map(|(hop, _)| *hop).collect();
        if ready.is_empty() || chance.below(4) == 0 {
            break;
        }
        let (from, to) = ready[chance.place(ready.len())];
        net.deliver(from, to);
    }
    net.now += Duration::from_millis(1);
    if chance.below(6) == 0 {
        let (node, takes) = (1 + chance.place(2), Duration::from_millis(1 + chance.below(4)));
        let form = ScaledForm { form: SMALL, bytes_max: 500, takes, work: takes };
        net.nodes[node].set_scaling(net.now, publisher, vec![form]);
        net.drain(node);
    }
    for node in 0..net.nodes.len() {
        if net.nodes[node].poll_timeout() <= net.now {
            net.nodes[node].handle_timeout(net.now);
            net.drain(node);
        }
    }
}

#[test]
fn a_moved_contract_is_never_withdrawn() {
    for seed in 0..100 {
        let mut net = Net::new(4);
        let eth = || link("eth", Some(1_000_000));
        (1..4).for_each(|n| net.join_over(n - 1, n, eth(), eth()));
        net.settle();
        let publisher = net.publish(0, camera("camera"));
        let asked = SubscriptionSpec { form: SMALL, ..promised("camera") };
        let user = net.subscribe(3, asked.clone());
        net.run(Duration::from_secs(1));
        assert_eq!(net.heard(user), [publisher]);
        let mut chance = Chance(seed);
        for _ in 0..20 {
            let spec = match chance.place(4) {
                0 => asked.clone(),
                3 => SubscriptionSpec { proxy: Proxy::Subscriber, ..asked.clone() },
                node => at(node, asked.clone()),
            };
            let _ = net.nodes[3].change_subscription(net.now, user, &spec);
            net.drain(3);
            for _ in 0..30 {
                jostle(&mut net, &mut chance, publisher);
                assert_eq!(net.heard(user), [publisher], "{seed}: to {}", spec.proxy);
            }
            net.run(Duration::from_secs(chance.below(3)));
        }
        assert!(
            !net.seen[3].notified.contains(&Notification::Withdrawn),
            "{seed}: {:?}",
            net.seen[3].notified
        );
    }
}

#[test]
fn two_planners_compete_for_a_link_and_the_reservation_decides() {
    let mut net = Net::new(4);
    let eth = |bytes| link("eth", Some(bytes));
    (0..2).for_each(|end| net.join_over(end, 2, eth(1_000_000), eth(1_000_000)));
    // One small camera fits.
    net.join_over(2, 3, eth(150_000), eth(150_000));
    net.settle();
    let publishers = [net.publish(0, camera("left")), net.publish(1, camera("right"))];
    let asked = |tag| auto(SubscriptionSpec { form: SMALL, ..promised(tag) });
    let users = ["left", "right"].map(|tag| net.subscribe(3, asked(tag)));
    net.run(Duration::from_secs(3));
    let heard = users.map(|user| net.heard(user).len());
    assert_eq!(heard.iter().sum::<usize>(), 1, "{heard:?}");
    let loser = usize::from(heard[0] == 1);
    let refusal = net.seen[3].refused.last().unwrap().clone();
    assert_eq!((refusal.subscription, refusal.node), (users[loser], id(2)), "{refusal}");
    assert_eq!(refusal.link, "eth");
    net.unsubscribe(users[1 - loser]);
    net.run(Duration::from_secs(20));
    assert_eq!(net.heard(users[loser]), [publishers[loser]]);
    net.assert_delivered();
}

#[test]
fn a_node_that_dies_while_it_plans_leaves_nothing_reserved() {
    for steps in 0..24 {
        let mut net = ring(Some(1_000_000));
        let publisher = net.publish(0, camera("camera"));
        net.settle();
        let small = SubscriptionSpec { form: SMALL, ..promised("camera") };
        let user = net.subscribe(2, auto(small));
        for _ in 0..steps {
            let ready = net.queues.iter().find(|(_, queue)| !queue.is_empty());
            let Some((from, to)) = ready.map(|(hop, _)| *hop) else { break };
            net.deliver(from, to);
        }
        [1, 3].into_iter().for_each(|other| net.part(0, other));
        net.run(Duration::from_secs(30));
        assert_eq!(net.held(), [0; 4], "after {steps} messages");
        assert!(net.heard(user).is_empty());
        let eth = || link("eth", Some(1_000_000));
        [1, 3].into_iter().for_each(|other| net.join_over(0, other, eth(), eth()));
        net.run(Duration::from_secs(10));
        assert_eq!(net.heard(user), [publisher], "after {steps} messages");
        net.assert_delivered();
    }
}

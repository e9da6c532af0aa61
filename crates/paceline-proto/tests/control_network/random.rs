//! Random networks, random changes and random delivery order.

use super::net::{Net, all, camera, link, one_in, promised};
use paceline_proto::control::{PublisherSpec, SubscriptionSpec};
use paceline_proto::{Form, Proxy, Size, SubscriptionId};
use paceline_sched::Duration;
use proptest::prelude::*;

pub(super) const NODES: usize = 6;
const TAGS: [&str; 3] = ["robot/left", "robot/right", "arm"];
const PATTERNS: [&str; 4] = ["robot/left", "robot/*", "**", "arm"];

#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Joins two nodes over links of this capacity: of the first node, over its only radio or a link of its own.
    Join(usize, usize, Option<u64>, bool),
    Part(usize, usize),
    Publish(usize, usize),
    Subscribe(usize, SubscriptionSpec),
    Unsubscribe(prop::sample::Index),
    Update(prop::sample::Index, SubscriptionSpec),
    /// Delivers up to this many messages of the hop at this position.
    Deliver(prop::sample::Index, usize),
    Repeat(prop::sample::Index),
    Swap(prop::sample::Index),
    Lose(prop::sample::Index),
}

pub(super) fn subscription() -> impl Strategy<Value = SubscriptionSpec> {
    let form = prop_oneof![
        Just(Form::FULL),
        (1u32..4).prop_map(one_in),
        Just(Form { size: Some(Size { width: 320, height: 240 }), ..Form::FULL }),
        Just(Form { size: Some(Size { width: 640, height: 480 }), ..Form::FULL }),
        Just(Form { size: Some(Size { width: 1_000, height: 10 }), ..Form::FULL }),
    ];
    let node = |name: &str| Proxy::Node(name.into());
    let nodes = [node("node1"), node("node2"), node("node9")];
    let proxies =
        [Proxy::Publisher, Proxy::Subscriber].into_iter().chain(nodes).collect::<Vec<_>>();
    let proxy = prop::sample::select(proxies);
    (0..PATTERNS.len(), form, proxy, any::<bool>()).prop_map(|(pattern, form, proxy, contract)| {
        let pattern = PATTERNS[pattern];
        let spec = if contract { promised(pattern) } else { all(pattern) };
        SubscriptionSpec { form, proxy, ..spec }
    })
}

/// The histories that a strategy draws.
#[derive(Clone, Copy, Default)]
pub(super) struct Histories {
    /// Messages are lost, repeated and swapped.
    pub(super) chaos: bool,
    /// Changed subscriptions stop rather than keep their old contract.
    pub(super) or_stop: bool,
    /// Some subscriptions leave the place of the proxy to the publisher's node. Then streams may move, and those before a
    /// move continue for a while.
    pub(super) auto: bool,
    /// Most subscriptions request a contract with a spare, and two nodes may be joined by links of their own.
    pub(super) spares: bool,
}

/// Returns a strategy for subscriptions.
fn any_place(of: Histories) -> impl Strategy<Value = SubscriptionSpec> {
    (subscription(), 0..4_u32).prop_map(move |(spec, choice)| match choice {
        0 if of.auto => SubscriptionSpec { proxy: Proxy::Auto, ..spec },
        1.. if of.spares => {
            let proxy = if choice == 1 { Proxy::Subscriber } else { Proxy::Publisher };
            SubscriptionSpec { spare: true, within: promised("**").within, proxy, ..spec }
        }
        _ => spec,
    })
}

/// Returns a strategy for steps.
pub(super) fn step(of: Histories) -> impl Strategy<Value = Step> {
    let Histories { chaos, or_stop, spares, .. } = of;
    let node = || 0..NODES;
    let any = || any::<prop::sample::Index>();
    let capacity = prop::option::of(prop::sample::select(vec![200_000u64, 400_000, 1_000_000]));
    prop_oneof![
        4 => (node(), node(), capacity).prop_map(move |(a, b, capacity)| {
            // A contract ends when the shortest path has no capacity. The node 0 has a radio only.
            let capacity = capacity.or(spares.then_some(3_000_000));
            Step::Join(a, b, capacity, spares && a > 0)
        }),
        1 => (node(), node()).prop_map(|(a, b)| Step::Part(a, b)),
        2 => (node(), 0..TAGS.len()).prop_map(|(node, tag)| Step::Publish(node, tag)),
        3 => (node(), any_place(of)).prop_map(|(node, spec)| Step::Subscribe(node, spec)),
        1 => any().prop_map(Step::Unsubscribe),
        1 => (any(), any_place(of)).prop_map(move |(which, spec)| {
            Step::Update(which, SubscriptionSpec { or_stop, ..spec })
        }),
        8 => (any(), 1..6usize).prop_map(|(hop, count)| Step::Deliver(hop, count)),
        i32::from(chaos).unsigned_abs() => any().prop_map(Step::Repeat),
        i32::from(chaos).unsigned_abs() => any().prop_map(Step::Swap),
        i32::from(chaos).unsigned_abs() => any().prop_map(Step::Lose),
    ]
}

/// Returns the hop at a position among those with messages in transit.
fn busy(net: &Net, at: prop::sample::Index) -> Option<(usize, usize)> {
    let busy: Vec<_> = net.queues.iter().filter(|(_, queue)| !queue.is_empty()).collect();
    (!busy.is_empty()).then(|| *busy[at.index(busy.len())].0)
}

pub(super) fn make(net: &mut Net, users: &mut Vec<SubscriptionId>, step: Step) {
    match step {
        Step::Join(a, b, capacity, own) if a != b => {
            let name = if own { format!("to{b}") } else { "radio".to_owned() };
            net.join_over(a, b, link(&name, capacity), link(&format!("to{a}"), capacity));
        }
        Step::Part(a, b) if a != b => net.part(a, b),
        Step::Join(..) | Step::Part(..) => {}
        Step::Publish(node, tag) => {
            // Publishers of every second node request contracts for subscriptions without one.
            let within = promised(TAGS[tag]).within.filter(|_| node % 2 == 1);
            net.publish(node, PublisherSpec { within, ..camera(TAGS[tag]) });
        }
        Step::Subscribe(node, spec) => users.push(net.subscribe(node, spec)),
        Step::Unsubscribe(which) if !users.is_empty() => {
            net.unsubscribe(users.swap_remove(which.index(users.len())));
        }
        Step::Update(which, spec) if !users.is_empty() => {
            let user = users[which.index(users.len())];
            let node = super::net::index(user.node);
            net.nodes[node].update_subscription(net.now, user, spec);
            net.drain(node);
        }
        Step::Unsubscribe(_) | Step::Update(..) => {}
        Step::Deliver(hop, count) => {
            if let Some((from, to)) = busy(net, hop) {
                for _ in 0..count {
                    net.deliver(from, to);
                }
            }
        }
        Step::Repeat(hop) => {
            let queue = busy(net, hop).and_then(|hop| net.queues.get_mut(&hop));
            if let Some((queue, first)) = queue.and_then(|q| q.front().cloned().map(|m| (q, m))) {
                queue.push_back(first);
            }
        }
        Step::Swap(hop) => {
            if let Some(queue) = busy(net, hop).and_then(|hop| net.queues.get_mut(&hop)) {
                let last = queue.len() - 1;
                queue.swap(0, last);
            }
        }
        Step::Lose(hop) => {
            if let Some(queue) = busy(net, hop).and_then(|hop| net.queues.get_mut(&hop)) {
                queue.pop_front();
            }
        }
    }
}

fn after(steps: Vec<Step>) -> Net {
    let mut net = Net::new(NODES);
    let mut users = Vec::new();
    for step in steps {
        make(&mut net, &mut users, step);
    }
    net
}

/// Asserts that the contracts on a link never exceed it, and that refusals settle.
pub(super) fn assert_admitted(net: &mut Net) {
    net.run(Duration::from_secs(120));
    let quiet: Vec<usize> = net.seen.iter().map(|seen| seen.installs).collect();
    let listing = net.listing(0);
    net.run(Duration::from_secs(60));
    assert_eq!(quiet, net.seen.iter().map(|seen| seen.installs).collect::<Vec<_>>());
    assert_eq!(listing, net.listing(0));
    net.assert_converged();
    net.assert_delivered();
    net.assert_within_capacity();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_network_converges_within_a_second(steps in prop::collection::vec(step(Histories { or_stop: true, ..Histories::default() }), 1..80)) {
        let mut net = after(steps);
        net.run(Duration::from_secs(1));
        net.assert_converged();
        net.assert_reached();
        net.assert_within_capacity();
        assert_admitted(&mut net);
    }

    /// Deliveries from before a change continue for a while unless the subscription reverts the change.
    #[test]
    fn reverted_changes_terminate(steps in prop::collection::vec(step(Histories { auto: true, ..Histories::default() }), 1..80)) {
        let mut net = after(steps);
        net.run(Duration::from_secs(6));
        net.assert_converged();
        net.assert_reached();
        net.assert_within_capacity();
        assert_admitted(&mut net);
    }

    #[test]
    fn digests_repair_faults(steps in prop::collection::vec(step(Histories { chaos: true, or_stop: true, auto: true, spares: false }), 1..80)) {
        let mut net = after(steps);
        net.run(Duration::from_secs(11));
        net.assert_converged();
        net.assert_reached();
        assert_admitted(&mut net);
    }
}

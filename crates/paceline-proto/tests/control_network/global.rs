//! Random histories of small networks, compared with a reference model.

use super::net::{Net, camera, id, index, link};
use super::random::subscription;
use super::truth::Truth;
use paceline_proto::control::{PublisherSpec, SubscriptionSpec};
use paceline_proto::{Kind, Pattern};
use paceline_sched::{Duration, Late};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::cell::Cell;
use std::io::Write as _;

const NODES: usize = 5;
const HISTORIES: u32 = 10_000;
const TAGS: [&str; 4] = ["robot/left", "robot/right", "arm", "@pull/arm"];
const PATTERNS: [&str; 6] = ["robot/left", "robot/*", "**", "arm", "@pull/**", "*/arm"];

#[derive(Clone, Debug)]
enum Step {
    Join(usize, usize),
    Part(usize, usize),
    Publish(usize, PublisherSpec),
    Redeclare(Index, PublisherSpec),
    Unpublish(Index),
    Subscribe(usize, SubscriptionSpec),
    Update(Index, SubscriptionSpec),
    Unsubscribe(Index),
    /// Delivers some of the messages in transit.
    Deliver(Index, usize),
    /// Delivers all messages and checks the invariants.
    Look,
}

fn publisher() -> impl Strategy<Value = PublisherSpec> {
    let kind = prop::sample::select(vec![Kind::Picture, Kind::Picture, Kind::Data]);
    let late = prop::sample::select(vec![Late::Drop, Late::Drop, Late::Send]);
    let waits = prop::bool::weighted(0.3);
    (0..TAGS.len(), kind, any::<bool>(), late, waits).prop_map(|(tag, kind, sized, late, waits)| {
        let spec = PublisherSpec { late, waits, ..camera(TAGS[tag]) };
        let (size, encoding) = match (kind, sized) {
            (Kind::Picture, true) => (spec.size, spec.encoding),
            _ => (None, paceline_proto::Encoding::Bytes),
        };
        PublisherSpec { kind, size, encoding, ..spec }
    })
}

fn asking() -> impl Strategy<Value = SubscriptionSpec> {
    (subscription(), 0..PATTERNS.len(), prop::bool::weighted(0.1)).prop_map(
        |(spec, pattern, local)| {
            let pattern = Pattern::new(PATTERNS[pattern]).unwrap();
            SubscriptionSpec { pattern, local, ..spec }
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let (node, any) = (|| 0..NODES, any::<Index>);
    prop_oneof![
        5 => (node(), node()).prop_map(|(a, b)| Step::Join(a, b)),
        2 => (node(), node()).prop_map(|(a, b)| Step::Part(a, b)),
        3 => (node(), publisher()).prop_map(|(node, spec)| Step::Publish(node, spec)),
        1 => (any(), publisher()).prop_map(|(which, spec)| Step::Redeclare(which, spec)),
        1 => any().prop_map(Step::Unpublish),
        4 => (node(), asking()).prop_map(|(node, spec)| Step::Subscribe(node, spec)),
        1 => (any(), asking()).prop_map(|(which, spec)| Step::Update(which, spec)),
        1 => any().prop_map(Step::Unsubscribe),
        5 => (any(), 1..5usize).prop_map(|(hop, count)| Step::Deliver(hop, count)),
        1 => Just(Step::Look),
    ]
}

/// Returns the key at a random position of a map.
fn pick<K: Copy, V>(map: &std::collections::BTreeMap<K, V>, at: Index) -> Option<K> {
    (!map.is_empty()).then(|| *map.keys().nth(at.index(map.len())).unwrap())
}

fn make(net: &mut Net, truth: &mut Truth, step: Step) {
    match step {
        Step::Join(a, b) if a != b => {
            net.join_over(a, b, link("eth", None), link("radio", None));
            truth.hops.extend([(id(a), id(b)), (id(b), id(a))]);
        }
        Step::Part(a, b) if a != b => {
            net.part(a, b);
            truth.hops.retain(|hop| *hop != (id(a), id(b)) && *hop != (id(b), id(a)));
        }
        Step::Join(..) | Step::Part(..) => {}
        Step::Publish(node, spec) => {
            truth.publishers.insert(net.publish(node, spec.clone()), spec);
        }
        Step::Subscribe(node, spec) => {
            truth.subscriptions.insert(net.subscribe(node, spec.clone()), spec);
        }
        Step::Deliver(hop, count) => {
            let busy: Vec<_> = net.queues.iter().filter(|(_, queue)| !queue.is_empty()).collect();
            if !busy.is_empty() {
                let (from, to) = *busy[hop.index(busy.len())].0;
                for _ in 0..count {
                    net.deliver(from, to);
                }
            }
        }
        Step::Look => {
            // Also let deliveries end that continue while paths are being answered.
            net.run(Duration::from_secs(5));
            truth.assert_holds(net);
        }
        Step::Redeclare(which, spec) => {
            let Some(id) = pick(&truth.publishers, which) else { return };
            net.nodes[index(id.node)].update_publisher(net.now, id, spec.clone());
            net.drain(index(id.node));
            truth.publishers.insert(id, spec);
        }
        Step::Unpublish(which) => {
            let Some(id) = pick(&truth.publishers, which) else { return };
            net.nodes[index(id.node)].unpublish(net.now, id);
            net.drain(index(id.node));
            truth.publishers.remove(&id);
        }
        Step::Update(which, spec) => {
            let Some(id) = pick(&truth.subscriptions, which) else { return };
            // Other tests cover the contract that stays in force after a refused change.
            let spec = SubscriptionSpec { or_stop: true, ..spec };
            net.nodes[index(id.node)].update_subscription(net.now, id, spec.clone());
            net.drain(index(id.node));
            let revision = net.nodes[index(id.node)].subscription(id).unwrap().revision;
            let same = truth.subscriptions[&id].asks_the_same(&spec);
            let or_stop = if same { truth.subscriptions[&id].or_stop } else { true };
            truth.subscriptions.insert(id, SubscriptionSpec { revision, or_stop, ..spec });
        }
        Step::Unsubscribe(which) => {
            let Some(id) = pick(&truth.subscriptions, which) else { return };
            net.unsubscribe(id);
            truth.subscriptions.remove(&id);
        }
    }
}

#[test]
fn every_node_acts_on_the_global_truth() {
    let count = Cell::new(0u32);
    let config = Config { cases: HISTORIES, failure_persistence: None, ..Config::default() };
    let chance = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let steps = prop::collection::vec(step(), 1..40);
    let result = TestRunner::new_with_rng(config, chance).run(&steps, |steps| {
        count.set(count.get() + 1);
        let (mut net, mut truth) = (Net::new(NODES), Truth::default());
        steps.into_iter().for_each(|step| make(&mut net, &mut truth, step));
        make(&mut net, &mut truth, Step::Look);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    // Write past the test harness's capture of output, so that the number of histories is visible.
    let _ = writeln!(std::io::stderr(), "models: control: {} histories", count.get());
}

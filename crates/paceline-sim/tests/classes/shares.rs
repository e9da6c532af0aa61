//! The shares of streams and classes on a link under every discipline, and the isolation of floods.

use paceline_proto::control::PublisherSpec;
use paceline_proto::link::{ClassPolice, ClassTree, LinkClass, LinkSpec, Match};
use paceline_proto::reason::DropReason;
use paceline_proto::tag::Pattern;
use paceline_sched::curve::Curve;
use paceline_sched::hfsc::Curves;
use paceline_sched::{Capacity, Duration, LossTolerance, Policy};
use paceline_sim::ask::{Ask as _, Declare as _, all, data, payloads};
use paceline_sim::{LinkIx, NodeIx, Pub, Sub, WireSpec, World};
use std::sync::Arc;

const THIN: u64 = 2_000_000;

fn thin() -> Capacity {
    Capacity::from_bits_per_s(THIN).unwrap()
}

/// Creates a node with a link of little capacity to each of `ends`.
fn star(ends: &[&str], policy: Policy, classes: &[LinkClass]) -> (World, LinkIx, Vec<NodeIx>) {
    let mut world = World::new(1);
    let hub = world.add_node("hub");
    let tree = ClassTree::new(classes.to_vec(), Some(thin())).unwrap();
    let classes = (!classes.is_empty()).then(|| Arc::new(tree));
    let out = world.add_link(
        hub,
        "out",
        LinkSpec { capacity: Some(thin()), policy, classes, ..LinkSpec::default() },
    );
    let nodes: Vec<NodeIx> = ends.iter().map(|name| world.add_node(name)).collect();
    for &node in &nodes {
        let back = world.add_link(node, "back", LinkSpec::default());
        let wire = WireSpec::limited(Some(thin()));
        world.join(out, back, wire, WireSpec::default());
    }
    (world, out, nodes)
}

fn declared(tag: &str, hertz: u64, bytes: u64) -> PublisherSpec {
    PublisherSpec { bytes_max: Some(bytes), ..data(tag) }.hertz(hertz)
}

/// Returns the payload bytes sent by each publisher.
fn sent(world: &World, from: NodeIx, to: NodeIx, publishers: &[Pub]) -> Vec<u64> {
    publishers.iter().map(|&publisher| world.stream(from, to, publisher).bytes).collect()
}

/// Runs three contracts for 3, 2 and 1 parts of the capacity, all of which send far more, and two best-effort
/// streams. Returns the bytes of both groups.
fn overloaded(policy: Policy) -> (Vec<u64>, Vec<u64>) {
    let (mut world, out, ends) = star(&["end"], policy, &[]);
    let hub = out.node;
    let asked = [("a", 30), ("b", 20), ("c", 10)];
    let contracts: Vec<Pub> =
        asked.iter().map(|(tag, hertz)| world.publish(hub, declared(tag, *hertz, 1_000))).collect();
    let others: Vec<Pub> = ["x", "y"].iter().map(|tag| world.publish(hub, data(tag))).collect();
    for (tag, _) in asked {
        world.subscribe(ends[0], all(tag).within_ms(500));
    }
    for tag in ["x", "y"] {
        world.subscribe(ends[0], all(tag));
    }
    world.run_for(Duration::from_secs(2));
    for &publisher in contracts.iter().chain(&others) {
        world.every(publisher, Duration::from_millis(4), 5_000, payloads(1_000));
    }
    world.run_for(Duration::from_secs(2));
    let all: Vec<Pub> = contracts.iter().chain(&others).copied().collect();
    let before = sent(&world, hub, ends[0], &all);
    world.run_for(Duration::from_secs(15));
    let after = sent(&world, hub, ends[0], &all);
    let mut got: Vec<u64> =
        after.iter().zip(before).map(|(after, before)| after - before).collect();
    let best_effort = got.split_off(3);
    println!("{policy}: contracts {got:?}, best effort {best_effort:?}");
    (got, best_effort)
}

#[test]
fn share_disciplines_give_contracts_their_requested_rate() {
    for policy in [Policy::Wf2qPlus, Policy::Hfsc] {
        let (got, best_effort) = overloaded(policy);
        let whole: u64 = got.iter().sum();
        for (bytes, parts) in got.iter().zip([3, 2, 1]) {
            let wanted = whole * parts / 6;
            assert!(bytes.abs_diff(wanted) <= wanted / 20, "{policy}: {got:?}");
        }
        assert_eq!(best_effort, [0, 0], "{policy}: contracts that send too much go first");
    }
}

#[test]
fn best_effort_shares_the_remaining_capacity_evenly() {
    for policy in [Policy::Wf2qPlus, Policy::Hfsc, Policy::Vds] {
        let (mut world, out, ends) = star(&["end"], policy, &[]);
        let hub = out.node;
        let contract = world.publish(hub, declared("contract", 50, 1_000));
        let others: Vec<Pub> =
            ["x", "y", "z"].iter().map(|tag| world.publish(hub, data(tag))).collect();
        let heard = world.subscribe(ends[0], all("contract").within_ms(100));
        for tag in ["x", "y", "z"] {
            world.subscribe(ends[0], all(tag));
        }
        world.run_for(Duration::from_secs(2));
        world.every(contract, Duration::from_millis(20), 500, payloads(1_000));
        for &publisher in &others {
            world.every(publisher, Duration::from_millis(5), 2_000, payloads(1_000));
        }
        world.run_for(Duration::from_secs(9));
        let got = sent(&world, hub, ends[0], &others);
        let (least, most) = (*got.iter().min().unwrap(), *got.iter().max().unwrap());
        println!("{policy}: best effort {got:?}");
        assert!(least > 300_000 && most - least <= most / 50, "{policy}: {got:?}");
        assert!(world.delivered(heard).len() >= 449, "{policy}");
        assert!(world.delivered(heard).iter().all(|sample| !sample.late), "{policy}");
    }
}

fn named(name: &str, wants: Match) -> LinkClass {
    LinkClass { name: name.to_owned(), wants, ..LinkClass::default() }
}

fn tags(pattern: &str) -> Match {
    Match { tags: vec![Pattern::new(pattern).unwrap()], ..Match::default() }
}

/// Starts two contracts that fit, and a flood of 64-byte samples on a tag of its own. Returns the contracts
/// and the flood's publisher.
fn flood(
    world: &mut World,
    hub: NodeIx,
    victim: NodeIx,
    flooded: NodeIx,
) -> (Vec<(Sub, Pub)>, Pub) {
    let loss = LossTolerance::new(1, 4).unwrap();
    let contracts: Vec<Pub> = ["steering", "state"]
        .iter()
        .map(|tag| world.publish(hub, declared(tag, 50, 400)))
        .collect();
    let flood = world.publish(hub, data("flood"));
    let subscriptions: Vec<Sub> = ["steering", "state"]
        .iter()
        .map(|tag| world.subscribe(victim, all(tag).within_ms(30).losing(loss)))
        .collect();
    world.subscribe(flooded, all("flood"));
    world.run_for(Duration::from_secs(2));
    for &publisher in &contracts {
        world.every(publisher, Duration::from_millis(20), 500, payloads(400));
    }
    // A sample every 50 µs is more than ten times the capacity.
    world.every(flood, Duration::from_micros(50), 160_000, payloads(64));
    (subscriptions.into_iter().zip(contracts).collect(), flood)
}

fn check(world: &World, hub: NodeIx, victim: NodeIx, contracts: &[(Sub, Pub)]) {
    for &(subscription, publisher) in contracts {
        let counters = world.stream(hub, victim, publisher);
        assert_eq!(counters.violations, 0, "{counters:?}");
        assert_eq!((counters.late, counters.drops.total()), (0, 0), "{counters:?}");
        assert!(world.delivered(subscription).len() >= 390);
    }
}

#[test]
fn a_flood_of_small_samples_violates_no_window_with_or_without_classes() {
    let limit = Some(ClassPolice::from(
        &"leaky:20p,200p/s + leaky:20kB,400kbit else drop".parse().unwrap(),
    ));
    let guarantee = Curves {
        real_time: Curve::linear(1_000_000).ok(),
        link_share: Curve::linear(1_000_000).ok(),
        upper_limit: None,
    };
    let contracted = Match { contracted: Some(true), ..Match::default() };
    let contracts = LinkClass { curves: guarantee, ..named("contracts", contracted) };
    let policed = LinkClass { police: limit, ..named("flood", tags("flood")) };
    for (classes, most) in [(vec![], u64::MAX), (vec![contracts, policed], 8 * 200 + 20)] {
        let (mut world, out, ends) = star(&["end"], Policy::Vds, &classes);
        let (contracts, flood) = flood(&mut world, out.node, ends[0], ends[0]);
        world.run_for(Duration::from_secs(8));
        check(&world, out.node, ends[0], &contracts);
        let counters = world.stream(out.node, ends[0], flood);
        println!("{} classes: flood {counters:?}", classes.len());
        assert!(counters.offered > 159_000, "except samples still queued at the link");
        assert!(counters.sent > 1_000 && counters.sent <= most, "{counters:?}");
        assert_eq!(counters.drops.of(DropReason::Policed) > 150_000, most < u64::MAX);
        world.check();
    }
}

#[test]
fn a_flood_by_one_peer_affects_only_itself() {
    // Without classes the streams of both peers share by round robin, so the flood gets three of four parts.
    for (per_peer, least) in [(false, 20), (true, 45)] {
        let class = LinkClass { per_peer, ..named("peers", Match::default()) };
        let classes: &[LinkClass] = if per_peer { &[class] } else { &[] };
        let (mut world, out, ends) = star(&["calm", "storm"], Policy::Vds, classes);
        let hub = out.node;
        let tags = ["calm/1", "storm/1", "storm/2", "storm/3"];
        let publishers: Vec<Pub> = tags.iter().map(|tag| world.publish(hub, data(tag))).collect();
        world.subscribe(ends[0], all("calm/*"));
        world.subscribe(ends[1], all("storm/*"));
        world.run_for(Duration::from_secs(2));
        for &publisher in &publishers {
            world.every(publisher, Duration::from_millis(2), 5_000, payloads(500));
        }
        world.run_for(Duration::from_secs(10));
        let calm = world.stream(hub, ends[0], publishers[0]).bytes;
        let storm: u64 =
            publishers.iter().skip(1).map(|&p| world.stream(hub, ends[1], p).bytes).sum();
        let part = calm * 100 / (calm + storm);
        println!("per_peer {per_peer}: {part} % for the calm peer");
        assert!((least..=least + 10).contains(&part), "{per_peer}: {part} %");
        let views = world.link(out).classes();
        assert_eq!(views.len(), if per_peer { 3 } else { 0 });
        if let [all, first, second] = views.as_slice() {
            assert_eq!(all.served, first.served + second.served);
            assert_eq!((all.streams, first.streams + second.streams), (4, 4));
        }
    }
}

#[test]
fn a_contract_to_one_peer_keeps_its_windows_during_a_flood_to_another() {
    let contracted = Match { contracted: Some(true), ..Match::default() };
    let real_time = Curve::linear(1_000_000).ok();
    let curves = Curves { real_time, ..Curves::default() };
    let classes = [
        LinkClass { curves, ..named("contracts", contracted) },
        LinkClass { per_peer: true, ..named("peers", Match::default()) },
    ];
    let (mut world, out, ends) = star(&["calm", "storm"], Policy::Vds, &classes);
    let (contracts, _) = flood(&mut world, out.node, ends[0], ends[1]);
    world.run_for(Duration::from_secs(8));
    check(&world, out.node, ends[0], &contracts);
    world.check();
}

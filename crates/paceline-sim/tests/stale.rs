//! Samples queued during an outage expire by their age: old commands are never delivered.

use paceline_proto::control::PublisherSpec;
use paceline_sched::{Capacity, Duration, Late};
use paceline_sim::ask::{Ask as _, Declare as _, all, data, payloads};
use paceline_sim::impair::Impairment;
use paceline_sim::{LinkPlan, NodeIx, Sub, World};

const BOUND_MS: u64 = 200;

/// The kinds of outages.
#[derive(Clone, Copy, Debug)]
enum Outage {
    Cut,
    Blackout,
    StalledRelay,
    StalledSubscriber,
}

/// Creates a chain of two hops with commands under load.
fn chain(seed: u64, late: Late) -> (World, [NodeIx; 3], Sub) {
    let mut world = World::new(seed);
    let nodes = ["robot", "relay", "operator"].map(|name| world.add_node(name));
    let plan = LinkPlan { capacity: Capacity::from_bits_per_s(2_000_000).ok() };
    world.connect(nodes[0], nodes[1], plan);
    world.connect(nodes[1], nodes[2], plan);
    let commands = world.publish(nodes[0], PublisherSpec { late, ..data("steering").hertz(50) });
    let end = world.subscribe(nodes[2], all("steering").within_ms(BOUND_MS));
    world.run_for(Duration::from_secs(2));
    world.every(commands, Duration::from_millis(20), 3_000, payloads(500));
    world.run_for(Duration::from_secs(3));
    (world, nodes, end)
}

#[test]
fn after_an_outage_nothing_old_is_delivered() {
    for outage in [Outage::Cut, Outage::Blackout, Outage::StalledRelay, Outage::StalledSubscriber] {
        for seconds in [1, 10, 30] {
            let (mut world, [_, relay, operator], end) = chain(9, Late::Drop);
            let wire = world.impairment(relay, operator);
            let dark = Impairment { blackout: true, ..wire };
            match outage {
                Outage::Cut => world.cut(relay, operator),
                Outage::Blackout => world.impair(relay, operator, dark),
                Outage::StalledRelay => world.stall(relay),
                Outage::StalledSubscriber => world.stall(operator),
            }
            world.run_for(Duration::from_secs(seconds));
            let before = world.delivered(end).len();
            match outage {
                Outage::Cut => world.restore(relay, operator),
                Outage::Blackout => world.impair(relay, operator, wire),
                Outage::StalledRelay => world.resume(relay),
                Outage::StalledSubscriber => world.resume(operator),
            }
            world.run_for(Duration::from_secs(4));
            let after = &world.delivered(end)[before..];
            let oldest = after.iter().map(|sample| sample.age).max().unwrap();
            let late = after.iter().filter(|sample| sample.late).count();
            println!(
                "{outage:?} {seconds} s: {} arrived, {late} late, oldest {oldest}",
                after.len()
            );
            assert!(after.len() >= 50, "{outage:?} {seconds} s: {}", after.len());
            assert_eq!(late, 0, "{outage:?} {seconds} s: oldest {oldest}");
            world.check();
        }
    }
}

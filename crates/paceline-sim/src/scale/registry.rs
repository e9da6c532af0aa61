//! What the registry of one connected network costs.

use super::{Network, Plan};
use crate::ask::data;
use crate::net::NodeIx;
use crate::world::World;
use paceline_sched::Duration;

/// For how long a network is looked at while nothing changes.
const REST: Duration = Duration::from_secs(20);
/// How often nodes compare versions.
const COMPARED: Duration = Duration::from_secs(5);
/// How often it is looked whether everybody knows of a change, and for how long at most.
const LOOK_EVERY: Duration = Duration::from_micros(100);
const LOOKS_MAX: u64 = 50_000;

/// What a registry costs; bytes are those on the wire, of both directions of a link together.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RegistryCost {
    /// Links.
    pub links: u64,
    /// Bytes a second on each link while nothing changes: probes and digests.
    pub rest: u64,
    /// Bytes on each link, beyond those, when one publisher is added.
    pub change: u64,
    /// How long it takes until every node knows of it.
    pub known_after: Duration,
}

fn publishers_known(world: &World, nodes: usize) -> usize {
    let views = (0..nodes).flat_map(|node| world.control(NodeIx(node)).nodes());
    views.map(|view| view.publishers.len()).sum()
}

/// Builds a network, and looks at what its registry sends at rest and at a change.
#[must_use]
pub fn registry(seed: u64, plan: Plan) -> RegistryCost {
    let Network { mut world, .. } = Network::new(seed, plan);
    world.run_for(Duration::from_secs(10));
    let links = world.wires().max(2) / 2;
    let before = world.bytes();
    world.run_for(REST);
    let rest = (world.bytes() - before) / links / (REST.as_micros() / 1_000_000);
    let known = publishers_known(&world, plan.nodes);
    let before = world.bytes();
    let began = world.now();
    // At the end of a branch: it has the farthest to go.
    world.publish(NodeIx(plan.nodes.saturating_sub(1)), data("one/more"));
    let mut known_after = Duration::ZERO;
    for _ in 0..LOOKS_MAX {
        if publishers_known(&world, plan.nodes) == known + plan.nodes {
            break;
        }
        world.run_for(LOOK_EVERY);
        known_after = world.now().since(began);
    }
    // Versions are compared once in this time: what rest would have cost is taken off.
    world.run_for(COMPARED.saturating_sub(known_after));
    let rested = rest * (COMPARED.as_micros() / 1_000_000);
    let change = ((world.bytes() - before) / links).saturating_sub(rested);
    RegistryCost { links, rest, change, known_after }
}

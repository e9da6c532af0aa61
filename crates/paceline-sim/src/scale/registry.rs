//! Measures the cost of the registry of one connected network.

use super::{Network, ScalePlan};
use crate::ask::data;
use crate::handle::NodeIx;
use crate::world::World;
use paceline_sched::Duration;

/// The duration of the measurement at rest, in which nodes compare versions four times.
const REST: Duration = Duration::from_secs(24);
/// The time after a change is known until its acknowledgements have been sent. The frames of a change also replace later
/// probes, which is not counted.
const ANSWERED: Duration = Duration::from_millis(100);
/// The interval of checks whether all nodes know a change, and the number of checks after which it gives up.
const LOOK_EVERY: Duration = Duration::from_micros(100);
const LOOKS_MAX: u64 = 50_000;

/// The cost of a registry. Bytes are those on the wire, of both directions of a link together.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RegistryCost {
    /// Number of links.
    pub links: u64,
    /// Bytes per second on each link at rest: probes and digests.
    pub rest: u64,
    /// Additional bytes on each link until a publisher that is added is known.
    pub change: u64,
    /// The time until every node knows the added publisher.
    pub known_after: Duration,
}

fn publishers_known(world: &World, nodes: usize) -> usize {
    let views = (0..nodes).flat_map(|node| world.control(NodeIx(node)).nodes());
    views.map(|view| view.publishers.len()).sum()
}

/// Builds a network and measures the registry traffic at rest and after a change.
#[must_use]
pub fn registry(seed: u64, plan: ScalePlan) -> RegistryCost {
    let Network { mut world, .. } = Network::new(seed, plan);
    world.run_for(Duration::from_secs(10));
    let links = world.wires().max(2) / 2;
    let before = world.bytes();
    world.run_for(REST);
    let rest = (world.bytes() - before) / links / (REST.as_micros() / 1_000_000);
    let known = publishers_known(&world, plan.nodes);
    let before = world.bytes();
    let began = world.now();
    // A node at the end of a branch, from which a change takes the longest path.
    world.publish(NodeIx(plan.nodes.saturating_sub(1)), data("one/more"));
    let mut known_after = Duration::ZERO;
    for _ in 0..LOOKS_MAX {
        if publishers_known(&world, plan.nodes) == known + plan.nodes {
            break;
        }
        world.run_for(LOOK_EVERY);
        known_after = world.now().since(began);
    }
    world.run_for(ANSWERED);
    let rested = rest * world.now().since(began).as_micros() / 1_000_000;
    let change = ((world.bytes() - before) / links).saturating_sub(rested);
    RegistryCost { links, rest, change, known_after }
}

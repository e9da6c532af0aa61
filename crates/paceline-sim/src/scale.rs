//! Networks of a thousand nodes, to see what many streams cost.
//!
//! A plan's nodes are divided into sites: in each one hub, to which every other node, an end, is joined
//! by a link. Each end publishes on tags of its own and subscribes, by one pattern, to those of the end
//! after it, so every sample takes two hops and every hub hands on what its whole site publishes.
//!
//! Sites are not joined to each other. Within a connected network every node knows every publisher and
//! subscription, and finds all paths by itself: that costs each node memory by the publisher and time by
//! the square of the nodes (docs/scale.md), so a thousand nodes with a hundred thousand publishers are
//! not one network but many. A plan of one site says what one network costs.

mod registry;

pub use registry::{RegistryCost, registry};

use crate::ages::Ages;
use crate::ask::{all, data};
use crate::net::{LinkPlan, NodeIx, Pub, Sub};
use crate::world::World;
use bytes::Bytes;
use paceline_sched::{Capacity, Duration};

/// How large a network is, and what it carries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Plan {
    /// Nodes in all.
    pub nodes: usize,
    /// Nodes of a site, its hub among them; at least 2. The last site may have fewer.
    pub site: usize,
    /// Streams in all, each of one publisher to one subscription over two hops.
    pub streams: usize,
    /// Samples a second of each stream; at least 1.
    pub hertz: u64,
    /// Bytes of a sample.
    pub bytes: usize,
    /// What each direction of each link carries; whatever comes if not given.
    pub capacity: Option<Capacity>,
    /// For how long publishers publish, in seconds.
    pub seconds: u64,
    /// How many different times within a period publishers publish at: 1 for all at once.
    pub phases: u64,
}

/// What became of a plan.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Outcome {
    /// Samples published, and those that were delivered.
    pub published: u64,
    /// Samples delivered.
    pub delivered: u64,
    /// Samples that were sent over a hop, each hop counted.
    pub hops: u64,
    /// Frames on all wires, what answers them included.
    pub frames: u64,
    /// How often nodes took a turn.
    pub turns: u64,
    /// How old samples were when they were delivered.
    pub ages: Ages,
}

/// A network as a plan says, up and known to itself, with nothing published yet.
pub struct Network {
    /// The world that it is in.
    pub world: World,
    plan: Plan,
    publishers: Vec<Pub>,
    subscriptions: Vec<Sub>,
}

/// The nodes of each site, hub first.
fn sites(world: &mut World, plan: Plan) -> Vec<Vec<NodeIx>> {
    let size = plan.site.max(2);
    let names: Vec<usize> = (0..plan.nodes).collect();
    let mut sites = Vec::new();
    for (number, of) in names.chunks(size).enumerate().filter(|(_, of)| of.len() > 1) {
        let nodes = (0..of.len()).map(|k| world.add_node(&format!("s{number}n{k}"))).collect();
        sites.push(nodes);
    }
    sites
}

impl Network {
    /// Builds it, and lets five seconds pass.
    #[must_use]
    pub fn new(seed: u64, plan: Plan) -> Self {
        let mut world = World::new(seed);
        world.keep_deliveries(false);
        let sites = sites(&mut world, plan);
        let ends: usize = sites.iter().map(|site| site.len() - 1).sum();
        let (mut publishers, mut subscriptions) = (Vec::new(), Vec::new());
        let mut left = plan.streams;
        let mut ends_left = ends;
        for (number, site) in sites.iter().enumerate() {
            let Some((&hub, ends)) = site.split_first() else { continue };
            for (place, &end) in ends.iter().enumerate() {
                world.connect(end, hub, LinkPlan { capacity: plan.capacity });
                let count = left.div_ceil(ends_left.max(1));
                (left, ends_left) = (left - count, ends_left - 1);
                for stream in 0..count {
                    let tag = format!("s{number}/{place}/{stream}");
                    publishers.push(world.publish(end, data(&tag)));
                }
                let next = (place + 1) % ends.len();
                subscriptions.push(world.subscribe(end, all(&format!("s{number}/{next}/*"))));
            }
        }
        world.run_for(Duration::from_secs(5));
        Self { world, plan, publishers, subscriptions }
    }

    /// Publishes as planned, and lets another second pass for what is on its way.
    pub fn run(&mut self) -> Outcome {
        let Self { world, plan, publishers, .. } = self;
        let period = Duration::from_secs(1).mul_div(1, plan.hertz.max(1));
        let (turns, frames) = (world.turns(), world.frames());
        let count = plan.hertz.max(1) * plan.seconds;
        let payload = Bytes::from(vec![7; plan.bytes]);
        for (number, &publisher) in (0..).zip(publishers.iter()) {
            // Neighbours in number are apart in time.
            let phase = (number * 7_919) % plan.phases.max(1);
            let after = period.mul_div(phase, plan.phases.max(1));
            let payload = payload.clone();
            world.every_after(
                publisher,
                (after, period),
                count,
                Box::new(move |_| payload.clone()),
            );
        }
        world.run_for(Duration::from_secs(plan.seconds + 1));
        let (turns, frames) = (world.turns() - turns, world.frames() - frames);
        let published = count * publishers.len() as u64;
        let mut outcome = Outcome { published, turns, frames, ..Outcome::default() };
        for &subscription in &self.subscriptions {
            let counted = self.world.counted(subscription);
            outcome.delivered += counted.samples;
            outcome.ages.merge(&counted.ages);
        }
        outcome.hops = self.world.hops();
        outcome
    }
}

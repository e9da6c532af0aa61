//! Networks of a thousand nodes, to measure the cost of many streams.
//!
//! The nodes are divided into sites. Each site has one hub, and a link joins it to every other node of the
//! site, called an end. Each end publishes on tags of its own and subscribes, by one pattern, to those of the
//! next end. Every sample thus takes two hops, and every hub forwards all samples of its site.
//!
//! Sites are connected only if the plan has a backbone: a line of their hubs, and one subscription in each site to a
//! stream half the line away. Otherwise sites share nothing, so their sums grow with their number by construction.
//!
//! Within a connected network every node knows every publisher and
//! subscription and computes all paths. That costs each node memory in proportion to the publishers and time
//! in proportion to the square of the nodes (docs/benchmarks/scale.md). A thousand nodes with a hundred thousand
//! publishers are therefore many networks, not one. A plan with one site measures the cost of a single
//! network.

mod registry;

pub use registry::{RegistryCost, registry};

use crate::ages::AgeHistogram;
use crate::ask::{all, data};
use crate::handle::{LinkPlan, NodeIx, Pub, Sub};
use crate::world::World;
use bytes::Bytes;
use paceline_sched::{Capacity, Duration};

/// The size of a network and its load.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ScalePlan {
    /// The total number of nodes.
    pub nodes: usize,
    /// Nodes per site including the hub, at least 2. The last site may have fewer.
    pub site: usize,
    /// The total number of streams, each from one publisher to one subscription over two hops.
    pub streams: usize,
    /// Samples per second of each stream, at least 1.
    pub hertz: u64,
    /// Bytes per sample.
    pub bytes: usize,
    /// The capacity of each direction of each link; `None` means unlimited.
    pub capacity: Option<Capacity>,
    /// The capacity of each direction of each link of the line that joins the hubs of neighbouring sites. With it, the
    /// first end of each site subscribes to the first end of the site half the line away, instead of its neighbour.
    /// `None` leaves the sites unconnected.
    pub backbone: Option<Capacity>,
    /// The duration of publishing, in seconds.
    pub seconds: u64,
    /// The number of different phases within a period at which publishers publish; 1 for all at once.
    pub phases: u64,
}

/// The result of a plan.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ScaleResult {
    /// Samples published.
    pub published: u64,
    /// Samples delivered.
    pub delivered: u64,
    /// The part of them that crossed the backbone.
    pub crossed: u64,
    /// Samples sent over a hop, each hop counted.
    pub hops: u64,
    /// Frames on all wires, including acknowledgements.
    pub frames: u64,
    /// Iterations of all nodes.
    pub turns: u64,
    /// The ages of samples at delivery.
    pub ages: AgeHistogram,
}

/// A network built from a plan, with all links up and nothing published yet.
pub struct Network {
    /// The world that contains the network.
    pub world: World,
    plan: ScalePlan,
    publishers: Vec<Pub>,
    /// The subscriptions within a site, and those across the backbone.
    subscriptions: Vec<Sub>,
    crossing: Vec<Sub>,
}

/// Adds the nodes. Returns them by site, hub first.
fn sites(world: &mut World, plan: ScalePlan) -> Vec<Vec<NodeIx>> {
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
    /// Builds the network, and lets five seconds pass.
    #[must_use]
    pub fn new(seed: u64, plan: ScalePlan) -> Self {
        let mut world = World::new(seed);
        world.keep_deliveries(false);
        let sites = sites(&mut world, plan);
        let ends: usize = sites.iter().map(|site| site.len() - 1).sum();
        if plan.backbone.is_some() {
            let hubs: Vec<NodeIx> = sites.iter().filter_map(|site| site.first().copied()).collect();
            for (&hub, &next) in hubs.iter().zip(hubs.iter().skip(1)) {
                world.connect(hub, next, LinkPlan { capacity: plan.backbone });
            }
        }
        let (mut publishers, mut subscriptions) = (Vec::new(), Vec::new());
        let mut crossing = Vec::new();
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
                if plan.backbone.is_some() && place == 0 && sites.len() > 1 {
                    let far = (number + sites.len() / 2) % sites.len();
                    crossing.push(world.subscribe(end, all(&format!("s{far}/0/*"))));
                    continue;
                }
                let next = (place + 1) % ends.len();
                subscriptions.push(world.subscribe(end, all(&format!("s{number}/{next}/*"))));
            }
        }
        world.run_for(Duration::from_secs(5));
        Self { world, plan, publishers, subscriptions, crossing }
    }

    /// Publishes as planned, and lets one further second pass for samples in flight.
    pub fn run(&mut self) -> ScaleResult {
        let Self { world, plan, publishers, .. } = self;
        let period = Duration::from_secs(1).mul_div(1, plan.hertz.max(1));
        let (turns, frames) = (world.turns(), world.frames());
        let count = plan.hertz.max(1) * plan.seconds;
        let payload = Bytes::from(vec![7; plan.bytes]);
        for (number, &publisher) in (0..).zip(publishers.iter()) {
            // Adjacent publishers get distant phases.
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
        let mut outcome = ScaleResult { published, turns, frames, ..ScaleResult::default() };
        for (&subscription, crosses) in self
            .subscriptions
            .iter()
            .map(|subscription| (subscription, false))
            .chain(self.crossing.iter().map(|subscription| (subscription, true)))
        {
            let counted = self.world.counted(subscription);
            outcome.delivered += counted.samples;
            outcome.crossed += if crosses { counted.samples } else { 0 };
            outcome.ages.merge(&counted.ages);
        }
        outcome.hops = self.world.hops();
        outcome
    }
}

//! Random problems from seeds.

use paceline_plan::{
    CostModel, DelayModel, Objective, PlanLink, PlanNode, PlanProblem, PlanSubscriber, PlanTag,
    SampleCpu,
};
use paceline_sched::{Capacity, Duration};

/// A generator of numbers (Knuth's multiplier, upper bits).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub(crate) fn below(&mut self, count: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % count
    }

    fn pick<T: Copy + Default>(&mut self, of: &[T]) -> T {
        of.get(self.index(of.len())).copied().unwrap_or_default()
    }

    pub(crate) fn index(&mut self, count: usize) -> usize {
        let below = self.below(u64::try_from(count).unwrap_or(1));
        usize::try_from(below).unwrap_or(0)
    }
}

/// The sizes of a random problem.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) nodes: usize,
    pub(crate) tags: usize,
    pub(crate) publishers: usize,
    pub(crate) subscribers: usize,
    pub(crate) proxies: usize,
    /// True if links and nodes have limits.
    pub(crate) limits: bool,
    /// True if links may lie on segments with multicast.
    pub(crate) segments: bool,
}

impl Sizes {
    /// One tag, whose problems enumeration solves.
    pub(crate) const ONE_TAG: Self = Self {
        nodes: 8,
        tags: 1,
        publishers: 2,
        subscribers: 4,
        proxies: 3,
        limits: false,
        segments: false,
    };
    /// Several tags that compete for links and nodes.
    pub(crate) const LIMITED: Self =
        Self { tags: 3, subscribers: 3, proxies: 2, limits: true, ..Self::ONE_TAG };
}

/// Returns a connected random problem of at most these sizes.
pub(crate) fn problem(seed: u64, sizes: Sizes) -> PlanProblem {
    let mut random = Random::new(seed);
    let count = 2 + random.index(sizes.nodes - 1);
    let mut problem =
        PlanProblem::new((0..count).map(|node| PlanNode::new(&format!("n{node}"))).collect());
    for node in 1..count {
        add(&mut problem, &mut random, node, sizes.limits);
    }
    for _ in 0..random.index(count) {
        let node = random.index(count);
        add(&mut problem, &mut random, node, sizes.limits);
    }
    problem.cost =
        random.pick(&[CostModel::PerSubscriber, CostModel::SharedUpstream, CostModel::Multicast]);
    problem.delays = random.pick(&[DelayModel::Periods, DelayModel::Links, DelayModel::Bounds]);
    problem.objective =
        random.pick(&[Objective::Bandwidth, Objective::Cpu, Objective::Weighted(1e6)]);
    problem.proxies = 1 + random.index(sizes.proxies);
    for tag in 0..1 + random.index(sizes.tags) {
        let tag = self::tag(&mut random, tag, count, sizes);
        problem.tags.push(tag);
    }
    if sizes.segments {
        (problem.cost, problem.objective) = (CostModel::Multicast, Objective::Bandwidth);
        // Stars whose subscribers receive few forms, so that links share copies.
        for node in 1..count {
            if !problem.links.iter().any(|link| (link.from, link.to) == (0, node)) {
                problem.links.extend([PlanLink::new(0, node), PlanLink::new(node, 0)]);
            }
        }
        for to in problem.tags.iter_mut().flat_map(|tag| &mut tag.subscribers) {
            (to.scale, to.bytes) = (1 + to.scale % 2, 100);
        }
        for link in &mut problem.links {
            link.segment = random.pick(&[None, Some(0), Some(0), Some(0), Some(1)]);
        }
    }
    if sizes.limits {
        for node in &mut problem.nodes {
            node.cpu = (random.below(3) == 0).then(|| 0.02 + 0.01 * random.index(30) as f64);
        }
    }
    problem
}

/// Adds a link in both directions between a node and an earlier one, unless it exists.
fn add(problem: &mut PlanProblem, random: &mut Random, node: usize, limits: bool) {
    let other = random.index(node.max(1));
    if node == other || problem.links.iter().any(|link| (link.from, link.to) == (node, other)) {
        return;
    }
    let mut link = PlanLink::new(node, other);
    link.delay = Duration::from_millis(1 + random.below(20));
    if limits && random.below(2) == 0 {
        link.capacity = Capacity::from_bits_per_s(100_000 + random.below(20) * 50_000).ok();
    }
    problem.links.push(link.back());
    problem.links.push(link);
}

fn tag(random: &mut Random, number: usize, count: usize, sizes: Sizes) -> PlanTag {
    let period = Duration::from_millis(10 * (1 + random.below(5)));
    let bytes = 100 * (1 + random.below(10));
    let mut tag = PlanTag::new(&format!("t{number}"), random.index(count), period, bytes);
    for _ in 1..1 + random.index(sizes.publishers) {
        let publisher = random.index(count);
        if !tag.publishers.contains(&publisher) {
            tag.publishers.push(publisher);
        }
    }
    let cost = |random: &mut Random| random.index(20) as f64 * 1e-5;
    tag.cpu = SampleCpu { receive: cost(random), send: cost(random), scale: cost(random) };
    for _ in 0..1 + random.index(sizes.subscribers) {
        let scale = u32::try_from(1 + random.below(4)).unwrap_or(1);
        let bytes = if random.below(2) == 0 { bytes } else { bytes / (1 + random.below(4)) };
        let within = (random.below(3) > 0).then(|| Duration::from_millis(30 + random.below(400)));
        tag.subscribers.push(PlanSubscriber { node: random.index(count), scale, bytes, within });
    }
    if random.below(5) == 0 {
        tag.allowed = Some(vec![random.index(count), random.index(count)]);
    }
    tag
}

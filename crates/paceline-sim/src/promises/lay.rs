//! Builds a random network with random requests.

use super::source::Source;
use super::{Asked, Publishes, Run};
use crate::ask::{all, blanks, data, pictures};
use crate::handle::NodeIx;
use crate::random::Random;
use crate::wire::WireSpec;
use paceline_proto::control::{PublisherSpec, SubscriptionSpec};
use paceline_proto::form::Rate;
use paceline_proto::link::LinkSpec;
use paceline_sched::{Capacity, Duration, Instant, Late, LossTolerance, Policy};
use std::collections::{BTreeMap, VecDeque};

/// Two joined nodes, and the capacity of each direction in bits per second; 0 means unlimited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Joined {
    pub(super) a: NodeIx,
    pub(super) b: NodeIx,
    pub(super) bits: u64,
}

/// Payload bytes of a segment, and bytes of its headers.
const SEGMENT: u64 = 1_090;
const HEADERS: u64 = 110;
/// Sizes of the background messages in bytes.
const SMALL: u64 = 128;
const LARGE: u64 = 65_536;
/// The most small messages per second and link; the rest of the background consists of large ones.
const SMALL_MAX: u64 = 500;
const NANOS: u64 = 1_000_000_000;

/// Returns the bytes on the wire of a sample of `bytes`.
const fn on_wire(bytes: u64) -> u64 {
    bytes + bytes.div_ceil(SEGMENT) * HEADERS
}

/// Returns a loss tolerance, for `part` of 1,000 requests.
fn loss(chance: &mut Random, part: u32) -> Option<LossTolerance> {
    let windows = [(1, 2), (1, 4), (2, 5), (1, 10), (3, 10), (1, 100)];
    let (x, y) = chance.chance(part).then(|| chance.one_of(&windows))??;
    LossTolerance::new(x, y).ok()
}

/// Returns a capacity of 64 kbit/s to 100 Mbit/s, log-uniform, or 0 for unlimited.
fn capacity(chance: &mut Random) -> u64 {
    if chance.chance(150) {
        return 0;
    }
    let doubled = chance.below(10);
    (64_000 + chance.below(64_001)).saturating_mul(1 << doubled).min(100_000_000)
}

impl Run {
    /// Adds two to eight nodes, joined to a tree with up to two additional links.
    pub(super) fn lay(&mut self, policy: Policy) {
        let mut nodes: Vec<NodeIx> = Vec::new();
        let mut pairs: Vec<(NodeIx, NodeIx)> = Vec::new();
        for k in 0..2 + self.chance.below(7) {
            let node = self.world.add_node(&format!("n{k}"));
            pairs.extend(self.chance.one_of(&nodes).map(|other| (other, node)));
            nodes.push(node);
        }
        for _ in 0..self.chance.below(3) {
            let two = (self.chance.one_of(&nodes), self.chance.one_of(&nodes));
            if let (Some(a), Some(b)) = two
                && a < b
                && !pairs.contains(&(a, b))
            {
                pairs.push((a, b));
            }
        }
        for (a, b) in pairs {
            let bits = capacity(&mut self.chance);
            self.join(Joined { a, b, bits }, policy);
        }
        self.nodes = nodes;
    }

    fn join(&mut self, joined: Joined, policy: Policy) {
        let Joined { a, b, bits } = joined;
        let capacity = Capacity::from_bits_per_s(bits).ok();
        let spec = LinkSpec { capacity, policy, ..LinkSpec::default() };
        let there = LinkSpec { classes: self.classes(capacity), ..spec.clone() };
        let here = LinkSpec { classes: self.classes(capacity), ..spec };
        let here = self.world.add_link(a, &format!("to-{}", b.0), here);
        let there = self.world.add_link(b, &format!("to-{}", a.0), there);
        let wire = WireSpec::limited(capacity);
        self.world.join(here, there, wire, wire);
        self.limit_buffer(here);
        self.limit_buffer(there);
        self.joined.push(joined);
    }

    /// Returns the number of links on the shortest path from `from` to each node, and their least capacity.
    fn paths(&self, from: NodeIx) -> BTreeMap<NodeIx, (u64, u64)> {
        let mut paths = BTreeMap::from([(from, (0, u64::MAX))]);
        let mut next = VecDeque::from([from]);
        while let Some(node) = next.pop_front() {
            let (hops, least) = paths.get(&node).copied().unwrap_or_default();
            for Joined { a, b, bits } in self.joined.iter().copied() {
                let to = if a == node { b } else { a };
                if a != node && b != node || paths.contains_key(&to) {
                    continue;
                }
                let bits = if bits == 0 { u64::MAX } else { bits };
                paths.insert(to, (hops + 1, least.min(bits)));
                next.push_back(to);
            }
        }
        paths
    }

    /// Returns the other nodes, with the number of links and the least capacity on the path to each.
    pub(super) fn paths_from(&self, node: NodeIx) -> Vec<(NodeIx, (u64, u64))> {
        self.paths(node).into_iter().filter(|(to, _)| *to != node).collect()
    }

    /// Adds a publisher with one or two subscriptions.
    pub(super) fn add_asked(&mut self) {
        let Some(node) = self.chance.one_of(&self.nodes) else { return };
        let paths = self.paths_from(node);
        let Some((to, path)) = self.chance.one_of(&paths) else { return };
        let place = self.add_publisher(node, path, true);
        let other = self.chance.one_of(&paths).filter(|_| self.chance.chance(300));
        self.add_subscription(place, to, path);
        if let Some((to, path)) = other {
            self.add_subscription(place, to, path);
        }
        self.add_several(place);
        self.code(place);
    }

    /// Adds a publisher for a subscription at the end of `path`. It may pause, and request contracts, if it is `free`.
    pub(super) fn add_publisher(&mut self, node: NodeIx, path: (u64, u64), free: bool) -> usize {
        let least = path.1;
        let least = if least == u64::MAX { 100_000_000 } else { least };
        let place = self.publishers.len();
        let mut spec = self.declare(place, least);
        let period = spec.period.unwrap_or_default();
        let mut source = Source::new(&mut self.chance, period, spec.bytes_max.unwrap_or_default());
        source.start = Instant::FAR;
        source.vary(&mut spec, self.mix.varies);
        source.play(&mut spec, self.mix.films, &self.films);
        self.declare_forms(&mut spec);
        let idles = self.idle_chance.chance(self.mix.idle) && free;
        let idle = idles.then(|| Duration::from_millis(1_000 + self.idle_chance.below(1_000)));
        if let Some(idle) = idle {
            let more = Duration::from_millis(self.idle_chance.below(2_000));
            source.pause = idle.saturating_add(period.mul_div(2, 1)).saturating_add(more);
        }
        if self.wish_chance.chance(self.mix.by_publisher) && free {
            let takes = spec.scaled.iter().map(|one| one.takes).max().unwrap_or_default();
            spec.within = Some(self.within(path, source.bytes_max, takes));
            spec.loss = loss(&mut self.wish_chance, self.mix.lossy);
        }
        let publisher = self.world.publish(node, spec.clone());
        let paths = self.paths_from(node);
        self.publishers.push(Publishes { node, publisher, spec, source, idle, paths });
        place
    }

    /// Declares a stream that uses a part of a link of `bits` bit/s.
    fn declare(&mut self, place: usize, bits: u64) -> PublisherSpec {
        let chance = &mut self.chance;
        let most = 1 + chance.below(60);
        let share = bits / 100 * (1 + chance.below(most));
        // At most two seconds of its share, and at least enough to stay below 2,000 samples per second.
        let most = (share / 8 * 2).clamp(140, 60_000);
        let least = (share / 8 / 2_000).clamp(130, most);
        let bytes = least.saturating_mul(1 << chance.below(9)).min(least + chance.below(most));
        let bytes = bytes.clamp(20, 64_000);
        let period = on_wire(bytes).saturating_mul(8 * NANOS) / share.max(1);
        PublisherSpec {
            period: Some(Duration::from_nanos(period.clamp(500_000, 4 * NANOS))),
            bytes_max: Some(bytes),
            waits: false,
            latch: false,
            late: if chance.chance(500) { Late::Drop } else { Late::Send },
            ..data(&format!("asked/{place}"))
        }
    }

    /// Adds a subscription with a contract at `to`.
    pub(super) fn add_subscription(&mut self, place: usize, to: NodeIx, path: (u64, u64)) {
        let mut spec = self.request(place, to, path);
        let Some(it) = self.publishers.get(place) else { return };
        if it.idle.is_some() && self.idle_chance.chance(800) {
            spec.idle = it.idle;
        }
        // The publisher requests the contract.
        if it.spec.within.is_some() && self.wish_chance.chance(700) {
            (spec.within, spec.loss) = (None, None);
        }
        self.subscribe(place, to, spec);
    }

    /// Returns a delay bound over `hops` hops with the least capacity `least`, and after the time for scaling.
    fn within(&mut self, (hops, least): (u64, u64), bytes: u64, scaling: Duration) -> Duration {
        let least = least.min(100_000_000);
        let sample = on_wire(bytes) * 8 * 1_000 / least.max(1);
        // The longest packet of other streams: 2 ms, or 1,200 bytes.
        let other = (1_300 * 8 * 1_000 / least.max(1)).max(2);
        let need = (sample + other + 1) * hops;
        let within = need + need * self.chance.below(40) / 10 + 4 * hops + self.chance.below(20);
        // A class is slower than its link.
        let slower = if self.mix.classes > 0 { 1 + self.class_chance.below(3) } else { 1 };
        Duration::from_millis(within * slower).saturating_add(scaling)
    }

    /// Returns a request for a contract at `to`, with `path` from the publisher.
    pub(super) fn request(
        &mut self,
        place: usize,
        to: NodeIx,
        path: (u64, u64),
    ) -> SubscriptionSpec {
        let mut spec = all(&format!("asked/{place}"));
        let Some(source) = self.publishers.get(place).map(|it| it.source) else { return spec };
        let (scaling, bytes) = self.scale(place, to, &mut spec);
        spec.within = Some(self.within(path, bytes, scaling));
        let rate = self.rate(source.period);
        if !spec.form.converts() {
            spec.form.rate = rate;
        }
        spec.loss = loss(&mut self.chance, self.mix.lossy);
        spec
    }

    pub(super) fn subscribe(&mut self, place: usize, to: NodeIx, spec: SubscriptionSpec) {
        let Some(publisher) = self.publishers.get(place) else { return };
        self.world.keep_deliveries(true);
        let subscription = self.world.subscribe(to, spec.clone());
        self.asked.push(Asked::new((subscription, to), place, spec, &publisher.spec));
    }

    fn rate(&mut self, period: Duration) -> Rate {
        let whole = 1_000 * NANOS / period.as_nanos().max(1);
        let number = |n: u64| u32::try_from(n).ok().and_then(core::num::NonZeroU32::new);
        if self.chance.chance(self.mix.every) {
            number(2 + self.chance.below(4)).map_or(Rate::ALL, Rate::every)
        } else if self.chance.chance(self.mix.max) {
            number(whole / 8 + self.chance.below(whole)).map_or(Rate::ALL, limited)
        } else {
            Rate::ALL
        }
    }

    /// Offers every link one and a half times its capacity as best effort.
    pub(super) fn flood(&mut self) {
        self.world.keep_deliveries(false);
        for Joined { a, b, bits } in self.joined.clone() {
            if bits == 0 {
                continue;
            }
            for (from, to) in [(a, b), (b, a)] {
                let small = (bits * 3 / 4 / (on_wire(SMALL) * 8)).clamp(1, SMALL_MAX);
                let rest = bits * 3 / 2 - (small * on_wire(SMALL) * 8).min(bits);
                let large = (rest / 8).max(1);
                let small = NANOS / small;
                let large = NANOS.saturating_mul(on_wire(LARGE)) / large;
                for (name, bytes, period) in [("small", SMALL, small), ("large", LARGE, large)] {
                    self.flood_by(
                        &format!("{name}/{}/{}", from.0, to.0),
                        (from, to),
                        bytes,
                        period,
                    );
                }
            }
        }
    }

    fn flood_by(&mut self, tag: &str, (from, to): (NodeIx, NodeIx), bytes: u64, nanos: u64) {
        let mut spec = match self.chance.below(2) {
            0 => PublisherSpec { bytes_max: Some(bytes), ..data(tag) },
            _ => pictures(tag, 1, bytes),
        };
        let period = Duration::from_nanos(nanos);
        spec.period = Some(period);
        let publisher = self.world.publish(from, spec);
        self.world.subscribe(to, all(tag));
        let len = usize::try_from(bytes).unwrap_or_default();
        self.floods.push((publisher, period, len));
    }

    pub(super) fn begin_flood(&mut self) {
        for (publisher, period, len) in self.floods.clone() {
            self.world.every(publisher, period, u64::MAX, blanks(len));
        }
    }
}

/// Returns a rate of at most `millihertz`, for some limits of every second sample.
pub(super) const fn limited(millihertz: core::num::NonZeroU32) -> Rate {
    let counted = match core::num::NonZeroU32::new(2) {
        Some(two) if millihertz.get().is_multiple_of(4) => Rate::every(two),
        _ => Rate::ALL,
    };
    counted.at_most(millihertz)
}

//! The random network of a run: nodes, links, publishers and subscriptions.

use super::{Cuts, Source};
use crate::ask::{Declare as _, data, pictures, video};
use crate::handle::NodeIx;
use crate::impair::Loss;
use crate::random::Random;
use crate::wire::WireSpec;
use crate::world::World;
use paceline_proto::Carrier;
use paceline_proto::control::PublisherSpec;
use paceline_proto::link::LinkSpec;
use paceline_sched::{Capacity, Duration, Late};
use std::sync::Arc;

impl Cuts {
    pub(super) fn new(seed: u64) -> Self {
        let mut run = Self {
            world: World::new(seed),
            chance: Random::new(!seed),
            pairs: Vec::new(),
            relays: Vec::new(),
            spared: !seed.is_multiple_of(2),
            sources: Vec::new(),
            subscriptions: Vec::new(),
        };
        let (first, last) = run.lay();
        for place in 0..5 {
            run.add_source(place, first, last);
        }
        run
    }

    /// Joins the first node and the last over one to three relays, and over an alternative path of one or
    /// two.
    fn lay(&mut self) -> (NodeIx, NodeIx) {
        let (first, last) = (self.world.add_node("first"), self.world.add_node("last"));
        for (path, most) in [("m", 3), ("n", 2)] {
            let mut end = first;
            for k in 0..=self.chance.below(most) {
                let relay = self.world.add_node(&format!("{path}{k}"));
                self.relays.push(relay);
                self.join(end, relay);
                end = relay;
            }
            self.join(end, last);
        }
        (first, last)
    }

    fn join(&mut self, a: NodeIx, b: NodeIx) {
        let carrier = self.chance.one_of(&[Carrier::Ordered, Carrier::Datagrams]);
        let bits = self.chance.one_of(&[0, 5_000_000, 20_000_000, 100_000_000]).unwrap_or_default();
        let mut capacity = Capacity::from_bits_per_s(bits).ok();
        let carrier = carrier.unwrap_or_default();
        if carrier == Carrier::Datagrams {
            capacity = capacity.or_else(|| Capacity::from_bits_per_s(50_000_000).ok());
        }
        let spec = LinkSpec { capacity, carrier, ..LinkSpec::default() };
        let mut wire = WireSpec::limited(capacity);
        wire.impairment.delay = Duration::from_micros(50 + self.chance.below(10_000));
        if carrier == Carrier::Datagrams && self.chance.chance(500) {
            wire.impairment.loss = Loss::Random { ppm: 10_000 };
            wire.impairment.reorder_ppm = 10_000;
            wire.impairment.reorder_by = Duration::from_millis(2);
            wire.impairment.duplicate_ppm = 5_000;
        }
        let here = self.world.add_link(a, &format!("to{}", b.0), spec.clone());
        let there = self.world.add_link(b, &format!("to{}", a.0), spec);
        let wires = self.world.join(here, there, wire, wire);
        self.pairs.push((a, b, wires));
    }

    /// Adds a publisher of a random kind at either end, and its subscriptions: one at the other end, and
    /// sometimes another behind a relay.
    fn add_source(&mut self, place: usize, first: NodeIx, last: NodeIx) {
        let tag = format!("t/{place}");
        let (hertz, bytes) = (5 + self.chance.below(120), 20 + self.chance.below(900));
        let (spec, bytes, group, within): (PublisherSpec, _, _, _) = match place {
            0 => (data(&tag).hertz(hertz), bytes, None, None),
            1 => (data(&tag).hertz(hertz), bytes, None, Some(300)),
            2 => (data(&tag).hertz(10), bytes * 20, None, None),
            3 => (pictures(&tag, 15, bytes * 8), bytes * 8, None, None),
            _ => (video(&tag, 25, bytes * 4), bytes * 4, Some("IPPPPPPP"), None),
        };
        let late = if self.chance.chance(500) { Late::Drop } else { Late::Send };
        let spec = PublisherSpec { late, bytes_max: Some(bytes), ..spec };
        let period = spec.period.unwrap_or(Duration::from_secs(1));
        let (from, to) = if self.chance.chance(700) { (first, last) } else { (last, first) };
        let publisher = self.world.publish(from, spec);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.sources.push(Source { publisher, period, bytes, group, put: Arc::default() });
        self.subscribe(to, place, within);
        if self.chance.chance(300)
            && let Some(relay) = self.chance.one_of(&self.relays)
        {
            let leaf = self.world.add_node(&format!("leaf{place}"));
            self.join(relay, leaf);
            self.subscribe(leaf, place, None);
        }
    }
}

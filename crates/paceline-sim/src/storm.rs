//! Chaos tests: random networks under all kinds of faults, and the invariants that hold nevertheless.
//!
//! A seed determines the nodes, the links, the publishers and subscribers, and the faults: cuts, losses,
//! stalls, crashes and clock errors. After each second of the world all invariants are checked. These are the
//! world's own sums ([`World::run_for`]) and the deliveries. Every subscription receives each publisher's
//! samples at most once, in order, and only on matching tags. No sample is late where late samples must be
//! dropped. In the end all faults are removed. Then every node must know the whole registry, and every
//! subscription must receive samples from each of its publishers.

mod oracle;

use crate::ask::{Ask as _, Declare as _, all, data, payloads, pictures};
use crate::handle::{LinkPlan, NodeIx, Pub, Sub};
use crate::random::Random;
use crate::world::World;
use crate::{ClockSpec, Payload};
use oracle::Oracle;
use paceline_proto::control::{PublisherSpec, SubscriptionSpec};
use paceline_sched::{Capacity, Duration, Late, LossTolerance};

/// The duration of the faults, in seconds.
const STORM_SECONDS: u64 = 10;
/// The longest recovery: links come up, registries are compared, and queues drain.
const CALM: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);
/// Ten years in nanoseconds.
const TEN_YEARS: u64 = 10 * 365 * 86_400 * 1_000_000_000;

/// The result of a chaos test.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StormResult {
    /// Samples that links sent, each hop counted.
    pub samples: u64,
    /// Samples delivered to subscriptions.
    pub delivered: u64,
    /// Faults injected.
    pub faults: u64,
}

struct Storm {
    world: World,
    chance: Random,
    nodes: Vec<NodeIx>,
    pairs: Vec<(NodeIx, NodeIx)>,
    publishers: Vec<(Pub, PublisherSpec)>,
    subscriptions: Vec<(Sub, SubscriptionSpec)>,
    oracle: Oracle,
    faults: u64,
}

/// Runs the chaos test of `seed`. The same seed gives the same run.
///
/// # Panics
/// Panics if an invariant does not hold; the message contains the seed.
#[must_use]
pub fn run(seed: u64) -> StormResult {
    let mut storm = Storm::new(seed);
    storm.world.run_for(Duration::from_secs(3));
    storm.publish(STORM_SECONDS);
    for _ in 0..STORM_SECONDS {
        for _ in 0..1 + storm.chance.below(2) {
            storm.fault();
        }
        storm.world.run_for(SECOND);
        storm.check_oracle();
    }
    storm.end_faults();
    storm.world.run_for(CALM);
    storm.check_oracle();
    storm.oracle.check_known(&storm.world, &storm.nodes, storm.publishers.len());
    let before = storm.oracle.mark(&storm.world);
    storm.publish(2);
    storm.world.run_for(Duration::from_secs(4));
    storm.check_oracle();
    storm.oracle.check_calm(&storm.world, &storm.publishers, &before);
    StormResult {
        samples: storm.world.hops(),
        delivered: storm.oracle.delivered(&storm.world),
        faults: storm.faults,
    }
}

fn period_of(spec: &PublisherSpec) -> Duration {
    spec.period.unwrap_or(SECOND)
}

impl Storm {
    fn new(seed: u64) -> Self {
        let (world, chance) = (World::new(seed), Random::new(!seed));
        let mut storm = Self {
            world,
            chance,
            nodes: Vec::new(),
            pairs: Vec::new(),
            publishers: Vec::new(),
            subscriptions: Vec::new(),
            oracle: Oracle::new(seed),
            faults: 0,
        };
        storm.lay();
        for _ in 0..2 + storm.chance.below(5) {
            storm.add_publisher();
        }
        for _ in 0..2 + storm.chance.below(7) {
            storm.add_subscription();
        }
        storm
    }

    /// Adds two to eight nodes, joined to a tree with up to two shortcuts.
    fn lay(&mut self) {
        for k in 0..2 + self.chance.below(7) {
            let node = self.world.add_node(&format!("n{k}"));
            if let Some(other) = self.chance.one_of(&self.nodes) {
                self.pairs.push((other, node));
            }
            self.nodes.push(node);
        }
        for _ in 0..self.chance.below(3) {
            let two = (self.chance.one_of(&self.nodes), self.chance.one_of(&self.nodes));
            if let (Some(a), Some(b)) = two
                && a < b
                && !self.pairs.contains(&(a, b))
            {
                self.pairs.push((a, b));
            }
        }
        for place in 0..self.pairs.len() {
            let bits = self.chance.one_of(&[0, 0, 3_000_000, 20_000_000, 100_000_000]);
            let capacity = Capacity::from_bits_per_s(bits.unwrap_or_default()).ok();
            if let Some(&(a, b)) = self.pairs.get(place) {
                self.world.connect(a, b, LinkPlan { capacity });
            }
        }
    }

    fn add_publisher(&mut self) {
        let Some(node) = self.chance.one_of(&self.nodes) else { return };
        let number = self.publishers.len();
        let bytes = 20 + self.chance.below(1_000);
        let mut spec = match self.chance.below(3) {
            0 => pictures(&format!("camera/{number}"), 5 + self.chance.below(15), bytes * 8),
            _ => PublisherSpec { bytes_max: Some(bytes), ..data(&format!("data/{number}")) }
                .hertz(10 + self.chance.below(90)),
        };
        spec.late = if self.chance.chance(500) { Late::Drop } else { Late::Send };
        let publisher = self.world.publish(node, spec.clone());
        self.publishers.push((publisher, spec));
    }

    fn add_subscription(&mut self) {
        let number = self.chance.below(self.publishers.len() as u64);
        let one = [format!("data/{number}"), format!("camera/{number}")];
        let [data, camera] = [one[0].as_str(), one[1].as_str()];
        let pattern = self.chance.one_of(&["**", "data/*", "camera/*", data, camera]);
        let (Some(node), Some(pattern)) = (self.chance.one_of(&self.nodes), pattern) else {
            return;
        };
        let mut spec = all(pattern);
        let proxy = format!("n{}", self.chance.below(self.nodes.len() as u64));
        match self.chance.below(10) {
            0 => spec = spec.max_hertz(10),
            1 => spec = spec.one_in(2).scaled_here(),
            2 => spec = spec.within_ms(20 + self.chance.below(400)),
            3 => spec = spec.within_ms(500 + self.chance.below(400)),
            4 => {
                spec = spec.within_ms(50 + self.chance.below(100));
                if let Ok(loss) = LossTolerance::new(1, 4) {
                    spec = spec.losing(loss);
                }
            }
            5 => spec = spec.one_in(3).scaled_at(&proxy),
            6 => spec = spec.one_in(3).scaled_at(&proxy).within_ms(300 + self.chance.below(400)),
            7 => spec = spec.one_in(3).scaled_anywhere().within_ms(300 + self.chance.below(400)),
            _ => {}
        }
        let subscription = self.world.subscribe(node, spec.clone());
        self.oracle.add(subscription);
        self.subscriptions.push((subscription, spec));
    }

    /// Makes every publisher publish for `seconds`.
    fn publish(&mut self, seconds: u64) {
        for (publisher, spec) in &self.publishers {
            let period = period_of(spec);
            let count = Duration::from_secs(seconds).as_nanos() / period.as_nanos().max(1);
            let len = usize::try_from(spec.bytes_max.unwrap_or(8)).unwrap_or(8);
            let payload: Payload = payloads(len);
            self.world.every(*publisher, period, count, payload);
        }
    }

    fn fault(&mut self) {
        let pair = self.chance.one_of(&self.pairs);
        let (Some((a, b)), Some(node)) = (pair, self.chance.one_of(&self.nodes)) else { return };
        self.faults += 1;
        match self.chance.below(12) {
            0 => self.world.cut(a, b),
            1 | 2 => self.world.restore(a, b),
            3 => self.world.crash(node),
            4 | 5 => self.world.restart(node),
            6 => self.world.stall(node),
            7 => self.world.resume(node),
            8 => {
                let per_mille = self.chance.one_of(&[0, 1, 20, 200]).unwrap_or_default();
                self.world.set_loss(a, b, per_mille);
            }
            9 => {
                let drift = i32::try_from(self.chance.below(401)).unwrap_or_default() - 200;
                self.world.set_clock(node, ClockSpec { drift_ppm: drift });
            }
            10 => {
                let by = self.chance.below(2 * TEN_YEARS).cast_signed();
                self.world.step_clock(node, by - TEN_YEARS.cast_signed());
            }
            _ if self.subscriptions.len() < 12 => self.add_subscription(),
            _ => {}
        }
    }

    fn end_faults(&mut self) {
        for &(a, b) in &self.pairs {
            self.world.restore(a, b);
            self.world.set_loss(a, b, 0);
        }
        for &node in &self.nodes {
            self.world.restart(node);
            self.world.resume(node);
        }
    }

    fn check_oracle(&mut self) {
        self.oracle.check(&self.world, &self.publishers, &self.subscriptions);
    }
}

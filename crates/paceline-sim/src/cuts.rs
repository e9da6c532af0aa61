//! Link cuts under load: every published sample is delivered or reported, for each subscriber, exactly.
//!
//! A seed determines a network with a chain of nodes and an alternative path, links on ordered carriers and
//! on datagrams that may be lost, reordered and duplicated, publishers of several kinds and sizes, and the cuts. A cut takes both directions of a link,
//! or one, or all links of a relay, or restarts the relay. It lasts from a few milliseconds, which no link
//! notices, to several seconds, which change the path. The publishers go on meanwhile.
//!
//! In every second network, contracts have a spare on the alternative path.
//!
//! In the end all links are up. Then each subscription must have received or missed every sample that was
//! published since its first one. If only one subscription receives a publisher, and no relay restarted, the
//! drops that all nodes have reported for that publisher equal the missed samples.

mod lay;
mod oracle;

use crate::ask::Ask as _;
use crate::handle::{NodeIx, Payload, Pub, Sub};
use crate::random::Random;
use crate::world::World;
use core::fmt;
use oracle::Account;
use paceline_sched::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The time for links to come up, for registries to be compared, and for queues to drain.
const CALM: Duration = Duration::from_secs(20);
/// The samples that each publisher publishes after the last cut, so that every loss before them shows.
const MARKERS: u64 = 20;

/// The faults of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Faults {
    /// Only links are cut. All nodes keep their counters.
    Links,
    /// Relays restart as well, and lose their counters.
    Relays,
}

/// The sums of one or several runs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CutsResult {
    /// Cuts, including restarts of relays.
    pub cuts: u64,
    /// Samples published while a subscription was served, counted once per subscription.
    pub published: u64,
    /// Samples delivered.
    pub delivered: u64,
    /// Samples that the subscriptions report as missing.
    pub missing: u64,
    /// The missing samples of publishers with one subscription that a node reported with a reason.
    pub reported: u64,
    /// All missing samples of these publishers.
    pub of: u64,
}

impl CutsResult {
    /// Adds the sums of another run.
    pub const fn add(&mut self, other: &Self) {
        self.cuts += other.cuts;
        self.published += other.published;
        self.delivered += other.delivered;
        self.missing += other.missing;
        self.reported += other.reported;
        self.of += other.of;
    }
}

impl fmt::Display for CutsResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cuts, published, delivered, missing, reported, of } = self;
        write!(
            f,
            "{cuts} cuts: {published} samples published = {delivered} delivered + {missing} missing; nodes \
             reported {reported} of {of} drops"
        )
    }
}

/// A publisher under load.
#[derive(Debug)]
struct Source {
    publisher: Pub,
    period: Duration,
    bytes: usize,
    /// A group of pictures, if it is a video.
    group: Option<&'static str>,
    /// Samples published.
    put: Arc<AtomicU64>,
}

impl Source {
    /// Returns payloads that count the published samples.
    fn payloads(&self) -> Payload {
        let (put, bytes, group) = (Arc::clone(&self.put), self.bytes, self.group);
        Box::new(move |_| {
            let number = put.fetch_add(1, Ordering::Relaxed);
            match group {
                Some(group) => {
                    let kind = crate::ask::video_kind(group, number);
                    crate::ask::video_payload(number, kind, bytes)
                }
                None => crate::ask::payload(number, bytes),
            }
        })
    }
}

struct Cuts {
    world: World,
    chance: Random,
    /// The joined nodes, and the wires of both directions.
    pairs: Vec<(NodeIx, NodeIx, (usize, usize))>,
    relays: Vec<NodeIx>,
    /// True if contracts have a spare.
    spared: bool,
    sources: Vec<Source>,
    /// Subscriptions with the index of their source.
    subscriptions: Vec<(Sub, usize)>,
}

/// Cuts links `cuts` times under load in the network of `seed`, and checks the sums.
///
/// # Errors
/// Returns a description of the first sum that is wrong.
pub fn run(seed: u64, cuts: u64, faults: Faults) -> Result<CutsResult, String> {
    let mut run = Cuts::new(seed);
    run.world.run_for(Duration::from_secs(3));
    run.publish(Duration::from_secs(2));
    run.world.run_for(Duration::from_secs(4));
    let before = run.accounts();
    for _ in 0..cuts {
        run.cut(faults);
    }
    for (a, b, _) in &run.pairs {
        run.world.set_loss(*a, *b, 0);
    }
    run.world.run_for(CALM);
    for source in &run.sources {
        let period = source.period.max(Duration::from_millis(50));
        run.world.every(source.publisher, period, MARKERS, source.payloads());
    }
    run.world.run_for(CALM);
    let mut sums = CutsResult { cuts, ..CutsResult::default() };
    for (before, after) in before.iter().zip(run.accounts()) {
        after.check(before, faults, &mut sums).map_err(|why| format!("seed {seed}: {why}"))?;
    }
    Ok(sums)
}

impl Cuts {
    /// Makes every publisher publish for a time.
    fn publish(&mut self, time: Duration) {
        for source in &self.sources {
            let count = time.as_nanos() / source.period.as_nanos().max(1);
            self.world.every(source.publisher, source.period, count, source.payloads());
        }
    }

    /// Returns the account of each subscription.
    fn accounts(&self) -> Vec<Account> {
        let of = |&(subscription, place): &(Sub, usize)| {
            let source = self.sources.get(place)?;
            let alone = self.subscriptions.iter().filter(|(_, it)| *it == place).count() == 1;
            Some(Account::read(&self.world, subscription, source, alone))
        };
        self.subscriptions.iter().filter_map(of).collect()
    }

    /// Cuts something under load, and restores it after a while.
    fn cut(&mut self, faults: Faults) {
        let before = self.chance.below(600);
        let lasts = match self.chance.below(3) {
            0 => 1 + self.chance.below(100),
            1 => 200 + self.chance.below(1_500),
            _ => 2_000 + self.chance.below(6_000),
        };
        let after = self.chance.below(1_500);
        self.publish(Duration::from_millis(before + lasts + after));
        self.run_for(before);
        let relay = self.chance.one_of(&self.relays);
        let pair = self.chance.one_of(&self.pairs);
        let (Some(relay), Some((a, b, (there, back)))) = (relay, pair) else { return };
        match self.chance.below(6) {
            0 => {
                self.world.cut_wire((there, there));
                self.run_for(lasts);
                self.world.restore_wire((there, there));
            }
            1 => {
                self.world.cut_wire((back, back));
                self.run_for(lasts);
                self.world.restore_wire((back, back));
            }
            2 => self.isolate(relay, lasts),
            3 if faults == Faults::Relays => {
                self.world.crash(relay);
                self.run_for(lasts);
                self.world.restart(relay);
            }
            _ => {
                self.world.cut(a, b);
                self.run_for(lasts);
                self.world.restore(a, b);
            }
        }
        self.run_for(after);
    }

    /// Cuts all links of a relay.
    fn isolate(&mut self, relay: NodeIx, lasts: u64) {
        let its = |(a, b, _): &&(NodeIx, NodeIx, _)| *a == relay || *b == relay;
        let wires: Vec<_> = self.pairs.iter().filter(its).map(|(_, _, wires)| *wires).collect();
        wires.iter().for_each(|wires| self.world.cut_wire(*wires));
        self.run_for(lasts);
        wires.iter().for_each(|wires| self.world.restore_wire(*wires));
    }

    fn run_for(&mut self, millis: u64) {
        self.world.run_for(Duration::from_millis(millis));
    }

    fn subscribe(&mut self, node: NodeIx, place: usize, within: Option<u64>) {
        let mut spec = crate::ask::all(&format!("t/{place}"));
        if let Some(within) = within {
            spec = spec.within_ms(within);
            if self.spared {
                spec = spec.spared();
            }
        }
        let subscription = self.world.subscribe(node, spec);
        self.subscriptions.push((subscription, place));
    }
}

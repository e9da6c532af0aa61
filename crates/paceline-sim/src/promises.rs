//! Random networks whose links are all offered more than they carry, and what they promise all the same.
//!
//! A seed decides the nodes, what joins them, what is published and asked for; sources are as bad as what they
//! declared allows. Whatever is granted must be kept, by the world's own time: no sample without a loss
//! tolerance is late or lost, and no window of y samples, as the source numbered them, misses more than x.

mod lay;
mod oracle;
mod source;

use crate::net::{NodeIx, Pub};
use crate::random::Random;
use crate::world::World;
use core::fmt;
use lay::Joined;
use oracle::Asked;
use paceline_sched::{Duration, Policy};
use source::Source;
use std::collections::BTreeMap;

/// Until everybody knows everybody and all that was asked for is answered.
const SETTLING: Duration = Duration::from_secs(6);
const STEP: Duration = Duration::from_millis(500);
/// Samples of the asking streams and of the flood that a run has, roughly.
const SAMPLES: u64 = 30_000;
const NANOS: u64 = 1_000_000_000;

/// The disciplines whose links keep the delays that they promise.
pub const POLICIES: &[Policy] = &[
    Policy::Vds,
    Policy::DWCS,
    Policy::Edf,
    Policy::DelayEdd,
    Policy::StaticPriority,
    Policy::Hfsc,
];

/// What subscriptions ask for: of a thousand so many.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Mix {
    /// Tolerate loss.
    pub lossy: u32,
    /// Want one sample in n.
    pub every: u32,
    /// Of the others: want a highest rate.
    pub max: u32,
}

impl Default for Mix {
    fn default() -> Self {
        Self { lossy: 0, every: 125, max: 125 }
    }
}

/// What a run came to, or several.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Outcome {
    /// Samples that came under a promise.
    pub samples: u64,
    /// Samples that links carried, each once for every link: those, and the best effort beside them.
    pub carried: u64,
    /// Windows that were judged, of one sample where no loss is tolerated.
    pub windows: u64,
    /// Samples that came late, or did not come, within their windows.
    pub missed: u64,
    /// What was granted.
    pub granted: u64,
    /// What was refused.
    pub refused: u64,
    /// The longest delay in thousandths of the bound asked for.
    pub worst: u64,
    /// Of the links of runs, each run's fullest: what of it was promised, in thousandths, summed.
    pub used: u64,
    /// Runs.
    pub runs: u64,
}

impl Outcome {
    /// Takes another run into the sums.
    pub fn add(&mut self, other: &Self) {
        self.samples += other.samples;
        self.carried += other.carried;
        self.windows += other.windows;
        self.missed += other.missed;
        self.granted += other.granted;
        self.refused += other.refused;
        self.worst = self.worst.max(other.worst);
        self.used += other.used;
        self.runs += other.runs;
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { samples, carried, windows, missed, granted, refused, worst, used, runs } = self;
        let used = used / (*runs).max(1);
        write!(
            f,
            "{runs} networks, {samples} samples (links carried {carried}), {windows} windows, \
             {missed} missed within them; "
        )?;
        write!(
            f,
            "{granted} granted, {refused} refused; the worst used {}.{} % of ",
            worst / 10,
            worst % 10
        )?;
        write!(f, "its bound; of the fullest link {}.{} % promised", used / 10, used % 10)
    }
}

/// A publisher of streams that something is asked of.
struct Publishes {
    publisher: Pub,
    source: Source,
    /// The nodes that may ask, with how many hops are before each and what the thinnest carries.
    ways: Vec<(NodeIx, (u64, u64))>,
}

struct Run {
    world: World,
    chance: Random,
    nodes: Vec<NodeIx>,
    joined: Vec<Joined>,
    publishers: Vec<Publishes>,
    asked: Vec<Asked>,
    floods: Vec<(Pub, Duration, usize)>,
    outcome: Outcome,
    mix: Mix,
}

/// Runs the network of `seed`; the same seed gives the same.
///
/// # Errors
/// The first promise that is not kept.
pub fn run(seed: u64) -> Result<Outcome, String> {
    run_under(seed, policy(seed), Mix::default())
}

/// [`run`], with a loss tolerance in three of ten subscriptions.
///
/// # Errors
/// The first promise that is not kept.
pub fn run_tolerant(seed: u64) -> Result<Outcome, String> {
    run_under(seed, policy(seed), Mix { lossy: 300, ..Mix::default() })
}

fn policy(seed: u64) -> Policy {
    Random::new(seed).one_of(POLICIES).unwrap_or_default()
}

/// [`run`], all links under one discipline.
///
/// # Errors
/// The first promise that is not kept.
pub fn run_under(seed: u64, policy: Policy, mix: Mix) -> Result<Outcome, String> {
    let mut run = Run {
        world: World::new(seed),
        chance: Random::new(!seed),
        nodes: Vec::new(),
        joined: Vec::new(),
        publishers: Vec::new(),
        asked: Vec::new(),
        floods: Vec::new(),
        outcome: Outcome { runs: 1, ..Outcome::default() },
        mix,
    };
    run.lay(policy);
    run.flood();
    for _ in 0..4 + run.chance.below(15) {
        run.add_asked();
    }
    run.world.run_for(SETTLING);
    run.begin();
    run.go_on().map_err(|error| format!("seed {seed} under {policy}: {error}"))?;
    Ok(run.outcome)
}

impl Run {
    fn begin(&mut self) {
        let together = self.chance.chance(500);
        self.begin_flood();
        for place in 0..self.publishers.len() {
            self.begin_publishing(place, together);
        }
    }

    /// A publisher begins: with all others, or anywhere in its period.
    fn begin_publishing(&mut self, place: usize, together: bool) {
        let (now, off) = (self.world.now(), self.chance.next());
        let Some(it) = self.publishers.get_mut(place) else { return };
        let off = if together { 0 } else { off % it.source.period.as_nanos().max(1) };
        it.source.start = now + Duration::from_nanos(1_000_000 + off);
        let (publisher, source) = (it.publisher, it.source);
        self.world.at_times(publisher, source.times(), u64::MAX, source.payloads());
    }

    fn go_on(&mut self) -> Result<(), String> {
        let end = self.world.now() + self.length();
        while self.world.now() < end {
            self.world.run_for(STEP);
            self.look()?;
            self.change();
        }
        self.close()
    }

    /// So long that there are about enough samples.
    fn length(&self) -> Duration {
        let asking = self.publishers.iter().map(|it| it.source.period);
        let all = self.floods.iter().map(|(_, period, _)| *period).chain(asking);
        let each_second: u64 = all.map(|period| NANOS / period.as_nanos().max(1) + 1).sum();
        let millis = SAMPLES * 1_000 / each_second.max(1);
        Duration::from_millis(millis.clamp(5_000, 60_000))
    }

    /// Now and then somebody asks for something more, or for nothing any more.
    fn change(&mut self) {
        match self.chance.below(40) {
            0 => {
                let place = self.publishers.len();
                self.add_asked();
                self.begin_publishing(place, false);
            }
            1 => {
                let place = self.chance.place(self.publishers.len());
                let ways = self.publishers.get(place).map(|it| it.ways.clone());
                if let Some((to, way)) = self.chance.one_of(&ways.unwrap_or_default()) {
                    self.add_subscription(place, to, way);
                }
            }
            2 => {
                let place = self.chance.place(self.asked.len());
                let now = self.world.now();
                if let Some(asked) = self.asked.get_mut(place).filter(|it| it.ended.is_none()) {
                    asked.ended = Some(now);
                    self.world.unsubscribe(asked.subscription);
                }
            }
            _ => {}
        }
    }

    fn look(&mut self) -> Result<(), String> {
        for asked in &mut self.asked {
            let Some(it) = self.publishers.get(asked.place) else { continue };
            let seen = asked.look(&self.world, &it.source, &mut self.outcome);
            seen.map_err(|error| format!("{error}: {:?} of {:?}", asked.spec, it.source))?;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        let now = self.world.now();
        for asked in &self.asked {
            let Some(it) = self.publishers.get(asked.place) else { continue };
            let closed = asked.close(now, &it.source, &mut self.outcome);
            closed.map_err(|error| format!("{error}: {:?} of {:?}", asked.spec, it.source))?;
            self.outcome.granted += u64::from(asked.granted.is_some());
            self.outcome.refused += u64::from(asked.granted.is_none() && asked.refused);
        }
        self.blame_nobody()?;
        self.outcome.used = self.fullest();
        self.outcome.carried = self.world.hops();
        Ok(())
    }

    /// Every source keeps what it declared, so nothing may be taken for more, however hops let it bunch up.
    fn blame_nobody(&self) -> Result<(), String> {
        for publisher in self.publishers.iter().map(|it| it.publisher) {
            for &from in &self.nodes {
                for &to in &self.nodes {
                    let excess = self.world.stream(from, to, publisher).excess;
                    if excess.total() > 0 {
                        return Err(format!("{excess:?} of {publisher:?} from {from:?} to {to:?}"));
                    }
                }
            }
        }
        Ok(())
    }

    /// What of the fullest link is promised in the end, in thousandths.
    fn fullest(&self) -> u64 {
        let mut links: BTreeMap<_, (u64, BTreeMap<String, u64>)> = BTreeMap::new();
        for asked in self.asked.iter().filter(|it| it.ended.is_none()) {
            let Some(grant) = &asked.granted else { continue };
            // Subscriptions to one form share what is held for it.
            let stream = format!("{} {:?}", asked.place, asked.spec.form);
            for hop in &grant.hops {
                let Some(capacity) = hop.capacity else { continue };
                let link = links.entry((hop.node, &hop.link)).or_default();
                link.0 = capacity.bits_per_s();
                let rate = link.1.entry(stream.clone()).or_default();
                *rate = (*rate).max(hop.bytes_per_s * 8);
            }
        }
        let part = |(bits, rates): (u64, BTreeMap<String, u64>)| {
            rates.values().sum::<u64>() * 1_000 / bits.max(1)
        };
        links.into_values().map(part).max().unwrap_or_default()
    }
}

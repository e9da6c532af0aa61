//! Random networks with overloaded links, and a check of their contracts.
//!
//! A seed determines the nodes, the links, the publishers and the requests. Sources use their declarations to
//! the worst permitted extent. Every grant must be met, by the world's own time. Without a loss tolerance, no
//! sample may be late or lost. Otherwise no window of y samples, as the source numbered them, may miss more
//! than x.

mod buffers;
mod classes;
mod film;
mod lay;
mod mix;
mod offers;
mod oracle;
mod scaled;
mod several;
mod source;
mod tied;

use crate::handle::{NodeIx, Pub};
use crate::random::Random;
use crate::world::World;
use buffers::Reserved;
use core::mem;
pub use film::{Film, generated_films};
use lay::Joined;
pub use mix::{Mix, PromisesResult};
use oracle::Asked;
use paceline_proto::control::PublisherSpec;
use paceline_sched::{Duration, Policy};
use scaled::Scaling;
use source::Source;
use std::collections::BTreeMap;
use tied::Tie;

/// The time until all nodes know each other and all requests are answered.
const SETTLING: Duration = Duration::from_secs(6);
const STEP: Duration = Duration::from_millis(500);
/// The approximate number of samples in a run, background included.
const SAMPLES: u64 = 30_000;
const NANOS: u64 = 1_000_000_000;
/// Distinguishes the draws of classes.
const CLASSES: u64 = 0x636c_6173_7365_7300;
const SCALED: u64 = 0x7363_616c_6564_0000;
const TIED: u64 = 0x7469_6564_0000_0000;
const IDLE: u64 = 0x6964_6c65_0000_0000;
const WISHES: u64 = 0x7769_7368_6573_0000;
const SHARED: u64 = 0x7368_6172_6564_0000;
/// The time within which an ended request leaves nothing reserved, on the slowest links.
const RELEASED_WITHIN: Duration = Duration::from_secs(30);

/// The disciplines whose links guarantee delays.
pub const POLICIES: &[Policy] = &[
    Policy::Vds,
    Policy::DWCS,
    Policy::Edf,
    Policy::DelayEdd,
    Policy::StaticPriority,
    Policy::Hfsc,
];

/// More disciplines whose links guarantee delays. Networks are drawn without them, so that the networks of earlier seeds
/// stay as they were.
pub const MORE_POLICIES: &[Policy] =
    &[Policy::Rcsp, Policy::StopAndGo, Policy::Rpq, Policy::Wf2qPlus];

/// A publisher that subscriptions with contracts can request.
struct Publishes {
    node: NodeIx,
    publisher: Pub,
    spec: PublisherSpec,
    source: Source,
    /// The idle time of its reservations.
    idle: Option<Duration>,
    /// The nodes that may subscribe. Each has its number of hops and the least capacity on its path.
    paths: Vec<(NodeIx, (u64, u64))>,
}

struct Run {
    world: World,
    chance: Random,
    /// The draws of classes, so that a network is the same without them.
    class_chance: Random,
    /// The draws of scaled, tied, idle and publishers' requests.
    scale_chance: Random,
    tie_chance: Random,
    idle_chance: Random,
    wish_chance: Random,
    share_chance: Random,
    scaling: Scaling,
    nodes: Vec<NodeIx>,
    joined: Vec<Joined>,
    buffers: Vec<Reserved>,
    publishers: Vec<Publishes>,
    /// The indices of the publishers that several subscriptions request at different rates.
    several: Vec<usize>,
    asked: Vec<Asked>,
    ties: Vec<Tie>,
    floods: Vec<(Pub, Duration, usize)>,
    outcome: PromisesResult,
    mix: Mix,
    films: Vec<Film>,
}

/// Runs the network of `seed`, with classes on one of four links. The same seed gives the same run.
///
/// # Errors
/// Returns the first contract that was broken.
pub fn run(seed: u64) -> Result<PromisesResult, String> {
    run_under(seed, policy(seed), Mix { classes: 250, ..Mix::default() })
}

/// Like [`run`], with a loss tolerance in three of ten subscriptions, and with envelopes of three of ten publishers.
///
/// # Errors
/// Returns the first contract that was broken.
pub fn run_tolerant(seed: u64) -> Result<PromisesResult, String> {
    run_under(seed, policy(seed), Mix { lossy: 300, varies: 300, classes: 250, ..Mix::default() })
}

/// Like [`run`], with every kind of request ([`Mix::FULL`]).
///
/// # Errors
/// Returns the first contract that was broken.
pub fn run_full(seed: u64) -> Result<PromisesResult, String> {
    run_under(seed, policy(seed), Mix::FULL)
}

/// Like [`run_full`], with the sizes of these films for half of the publishers without another envelope.
///
/// # Errors
/// Returns the first contract that was broken.
pub fn run_films(seed: u64, films: &[Film]) -> Result<PromisesResult, String> {
    run_with(seed, policy(seed), (Mix { films: 500, ..Mix::FULL }, films))
}

/// Like [`run_full`], where refused requests take an offer of their refusal.
///
/// # Errors
/// Returns the first offer that was refused, or contract that was broken.
pub fn run_offers(seed: u64) -> Result<PromisesResult, String> {
    run_under(seed, policy(seed), Mix { offers: 1_000, tied: 0, idle: 0, shared: 0, ..Mix::FULL })
}

fn policy(seed: u64) -> Policy {
    Random::new(seed).one_of(POLICIES).unwrap_or_default()
}

/// Like [`run`], with all links under one discipline, and with generated films.
///
/// # Errors
/// Returns the first contract that was broken.
pub fn run_under(seed: u64, policy: Policy, mix: Mix) -> Result<PromisesResult, String> {
    run_with(seed, policy, (mix, &generated_films()))
}

fn run_with(
    seed: u64,
    policy: Policy,
    (mix, films): (Mix, &[Film]),
) -> Result<PromisesResult, String> {
    let mut run = Run {
        world: World::new(seed),
        chance: Random::new(!seed),
        class_chance: Random::new(seed ^ CLASSES),
        scale_chance: Random::new(seed ^ SCALED),
        tie_chance: Random::new(seed ^ TIED),
        idle_chance: Random::new(seed ^ IDLE),
        wish_chance: Random::new(seed ^ WISHES),
        share_chance: Random::new(seed ^ SHARED),
        scaling: Scaling::default(),
        nodes: Vec::new(),
        joined: Vec::new(),
        buffers: Vec::new(),
        publishers: Vec::new(),
        several: Vec::new(),
        asked: Vec::new(),
        ties: Vec::new(),
        floods: Vec::new(),
        outcome: PromisesResult { runs: 1, ..PromisesResult::default() },
        mix,
        films: films.to_vec(),
    };
    run.lay(policy);
    run.prepare_scaling();
    run.flood();
    for _ in 0..4 + run.chance.below(15) {
        run.add_asked_or_tied();
    }
    run.world.run_for(SETTLING);
    let offers = run.take_offers();
    run.begin();
    let result = offers.and_then(|()| run.go_on()).and_then(|()| run.release());
    result.map_err(|error| format!("seed {seed} under {policy}: {error}"))?;
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

    /// Starts a publisher: in phase with all others, or at any point of its period.
    fn begin_publishing(&mut self, place: usize, together: bool) {
        let (now, off) = (self.world.now(), self.chance.next());
        let Some(it) = self.publishers.get_mut(place) else { return };
        let off = if together { 0 } else { off % it.source.period.as_nanos().max(1) };
        it.source.start = now + Duration::from_nanos(1_000_000 + off);
        let (publisher, source) = (it.publisher, it.source);
        self.world.at_times(publisher, source.times(), u64::MAX, source.payloads(&self.films));
    }

    fn go_on(&mut self) -> Result<(), String> {
        let end = self.world.now() + self.length();
        while self.world.now() < end {
            self.world.run_for(STEP);
            self.look()?;
            self.change();
            self.change_several();
        }
        self.close()
    }

    /// Returns the run's length, chosen to give about [`SAMPLES`] samples.
    fn length(&self) -> Duration {
        let asking = self.publishers.iter().map(|it| it.source.period);
        let all = self.floods.iter().map(|(_, period, _)| *period).chain(asking);
        let each_second: u64 = all.map(|period| NANOS / period.as_nanos().max(1) + 1).sum();
        let millis = SAMPLES * 1_000 / each_second.max(1);
        Duration::from_millis(millis.clamp(5_000, 60_000))
    }

    /// Occasionally adds a publisher or a subscription, or ends a subscription.
    fn change(&mut self) {
        match self.chance.below(40) {
            0 => {
                let before = self.publishers.len();
                self.add_asked_or_tied();
                for place in before..self.publishers.len() {
                    self.begin_publishing(place, false);
                }
            }
            1 => {
                let place = self.chance.place(self.publishers.len());
                let paths = self.publishers.get(place).map(|it| it.paths.clone());
                if let Some((to, path)) = self.chance.one_of(&paths.unwrap_or_default()) {
                    self.add_subscription(place, to, path);
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
        self.look_at_buffers()?;
        for asked in &mut self.asked {
            let Some(it) = self.publishers.get(asked.place) else { continue };
            let seen = asked.look(&self.world, (it.publisher, &it.source), &mut self.outcome);
            seen.map_err(|error| format!("{error}: {:?} of {:?}", asked.spec, it.source))?;
        }
        self.look_at_ties()
    }

    fn close(&mut self) -> Result<(), String> {
        let now = self.world.now();
        for asked in &self.asked {
            let Some(it) = self.publishers.get(asked.place) else { continue };
            let closed = asked.close(now, &it.source, &mut self.outcome);
            closed.map_err(|error| format!("{error}: {:?} of {:?}", asked.spec, it.source))?;
            self.outcome.granted += u64::from(asked.granted.is_some());
            self.outcome.refused += u64::from(asked.granted.is_none() && asked.refused);
            self.outcome.shared +=
                u64::from(asked.granted.is_some() && self.several.contains(&asked.place));
            self.outcome.by_publisher +=
                u64::from(asked.granted.is_some() && !asked.spec.wants_contract());
        }
        self.count_ties();
        self.blame_nobody()?;
        self.outcome.used = self.fullest();
        self.outcome.carried = self.world.hops();
        Ok(())
    }

    /// Ends all requests, and checks that nothing stays reserved.
    fn release(&mut self) -> Result<(), String> {
        for (publisher, ..) in mem::take(&mut self.floods) {
            self.world.unpublish(publisher);
        }
        for asked in self.asked.iter().filter(|it| it.ended.is_none()) {
            self.world.unsubscribe(asked.subscription);
        }
        let end = self.world.now() + RELEASED_WITHIN;
        let mut left = self.reserved();
        while left.is_some() && self.world.now() < end {
            self.world.run_for(Duration::from_secs(1));
            left = self.reserved();
        }
        left.map_or(Ok(()), |left| Err(format!("after all requests have ended: {left}")))
    }

    /// Returns a reservation or buffer that is not free.
    fn reserved(&self) -> Option<String> {
        let grant = |node: &NodeIx| {
            let grant = self.world.control(*node).grants().next()?;
            Some(format!("{node:?} reserves {grant:?}"))
        };
        self.nodes.iter().find_map(grant).or_else(|| self.reserved_buffer())
    }

    /// Checks that no stream was policed: every source keeps its declaration, even if hops bunch its samples.
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

    /// Returns the reserved share of the fullest link at the end, in thousandths.
    fn fullest(&self) -> u64 {
        let mut links: BTreeMap<_, (u64, BTreeMap<String, u64>)> = BTreeMap::new();
        for asked in self.asked.iter().filter(|it| it.ended.is_none()) {
            let Some(grant) = &asked.granted else { continue };
            // Subscriptions to one form share a reservation.
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

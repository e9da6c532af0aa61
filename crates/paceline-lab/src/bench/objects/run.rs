//! Runs a way to send the cars over the link and measures what observers see.

use super::link::{Link, Packet};
use super::world::{CARS, OBSERVERS, Scene};
use paceline_objects::Motion;
use paceline_objects::motion::distance;
use paceline_sched::{Duration, Instant};
use paceline_sim::Random;
use std::collections::VecDeque;

/// The first part of a run, which is not measured.
const WARM_UP: Duration = Duration::from_secs(10);
/// The time after which a loss is known.
const REPORT: Duration = Duration::from_millis(100);
/// The error in metres of a car that an observer does not know.
const UNKNOWN: f64 = 1_000.0;

/// A way to send cars to observers.
pub(super) trait Method {
    /// Returns the messages to be sent now.
    fn tick(&mut self, scene: &Scene) -> Vec<Packet>;

    /// Returns the longest time from an exchange until its update has arrived, for promised ones.
    fn delay(&self) -> Duration {
        Duration::ZERO
    }

    /// Notes that a message arrived.
    fn delivered(&mut self, _packet: &Packet, _now: Instant) {}

    /// Notes that a message was lost.
    fn lost(&mut self, _packet: &Packet, _now: Instant) {}
}

/// The measurements of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    /// The weight of each sample, and the error in metres.
    samples: Vec<(f32, f32)>,
    bytes: u64,
    updates: u64,
    pub(super) promised: u64,
    pub(super) late: u64,
    unknown: u64,
    span: Duration,
}

impl Outcome {
    /// Returns the percentile of the errors, each multiplied by its relevance.
    pub(super) fn weighted_percentile(&self, per_mille: usize) -> f64 {
        let mut errors: Vec<_> =
            self.samples.iter().map(|(weight, error)| weight * error).collect();
        let rank = (errors.len() * per_mille).div_ceil(1_000).saturating_sub(1);
        if errors.is_empty() {
            return f64::NAN;
        }
        let (_, value, _) = errors.select_nth_unstable_by(rank, f32::total_cmp);
        f64::from(*value)
    }

    /// Returns the mean of the errors, each multiplied by its relevance.
    pub(super) fn weighted_mean(&self) -> f64 {
        let sum: f64 = self.samples.iter().map(|(weight, error)| f64::from(weight * error)).sum();
        sum / super::super::stats::count(self.samples.len())
    }

    /// Returns the error that 99 % of the relevance does not exceed, in metres.
    pub(super) fn percentile_of_relevance(&self) -> f64 {
        let mut samples = self.samples.clone();
        samples.sort_unstable_by(|(_, one), (_, other)| one.total_cmp(other));
        let all: f64 = samples.iter().map(|(weight, _)| f64::from(*weight)).sum();
        let mut below = 0.0;
        let reached = samples.iter().find(|(weight, _)| {
            below += f64::from(*weight);
            below >= all * 0.99
        });
        reached.map_or(f64::NAN, |(_, error)| f64::from(*error))
    }

    /// Returns the share of the link that was used, in percent.
    pub(super) fn used_percent(&self) -> f64 {
        let seconds = paceline_objects::motion::seconds(self.span);
        let rate = super::super::stats::float(super::link::RATE);
        super::super::stats::float(self.bytes) / (seconds * rate) * 100.0
    }

    pub(super) fn updates_per_second(&self) -> f64 {
        super::super::stats::float(self.updates) / paceline_objects::motion::seconds(self.span)
    }

    pub(super) fn promised_percent(&self) -> f64 {
        let float = super::super::stats::float;
        float(self.promised) / float(self.updates.max(1)) * 100.0
    }

    /// Returns the number of samples of cars that an observer did not know.
    pub(super) const fn unknown(&self) -> u64 {
        self.unknown
    }
}

/// The newest motion of each car at each observer.
struct Replicas(Vec<Vec<Option<Motion>>>);

impl Replicas {
    fn apply(&mut self, packet: &Packet, motions: &[Motion]) {
        let observers = self.0.iter_mut().enumerate();
        for (_, cars) in
            observers.filter(|(number, _)| packet.observer.is_none_or(|only| only == *number))
        {
            for (car, motion) in packet.cars.iter().zip(motions) {
                if let Some(known) = cars.get_mut(*car)
                    && known.is_none_or(|known| known.at < motion.at)
                {
                    *known = Some(*motion);
                }
            }
        }
    }

    fn error(&self, scene: &Scene, observer: usize, car: usize) -> Option<f64> {
        let known = self.0.get(observer)?.get(car).copied().flatten()?;
        let truth = scene.cars.get(car)?;
        Some(distance(truth.position, known.position_at(scene.now)))
    }
}

/// Runs a method through all scenes over a link that loses nothing.
pub(super) fn run(method: &mut dyn Method, scenes: &[Scene]) -> Outcome {
    run_with_loss(method, scenes, 0)
}

/// Runs a method through all scenes over a link that loses so many of 1,000 messages. The sender knows of a loss one
/// report interval later. The link retransmits nothing.
pub(super) fn run_with_loss(
    method: &mut dyn Method,
    scenes: &[Scene],
    loss_permille: u64,
) -> Outcome {
    let mut random = Random::new(7);
    let mut losses: VecDeque<(Instant, Packet)> = VecDeque::new();
    let delay = method.delay();
    let mut outcome = Outcome::default();
    let mut link: Link<(Packet, Vec<Motion>)> = Link::new();
    let mut replicas = Replicas(vec![vec![None; CARS]; OBSERVERS]);
    let begin = scenes.first().map_or(Instant::ZERO, |scene| scene.now) + WARM_UP;
    for scene in scenes {
        let measured = scene.now >= begin;
        while losses.front().is_some_and(|(known, _)| *known <= scene.now) {
            let lost = losses.pop_front();
            lost.iter().for_each(|(_, packet)| method.lost(packet, scene.now));
        }
        while let Some((at, (packet, motions))) = link.receive(scene.now) {
            if random.next() % 1_000 < loss_permille {
                losses.push_back((at + REPORT, packet));
                continue;
            }
            replicas.apply(&packet, &motions);
            if measured {
                let late = packet.promised.iter().filter(|due| at.since(**due) > delay).count();
                outcome.late += u64::try_from(late).unwrap_or_default();
            }
            method.delivered(&packet, scene.now);
        }
        if measured {
            outcome.observe(scene, &replicas);
        }
        for packet in method.tick(scene) {
            let motion = |car: &usize| scene.cars.get(*car).copied();
            let motions: Vec<_> = packet.cars.iter().filter_map(motion).collect();
            if measured {
                outcome.count(&packet);
            }
            link.send(scene.now, packet.bytes, (packet, motions));
        }
    }
    outcome.span = scenes.last().map_or(Instant::ZERO, |scene| scene.now).since(begin);
    outcome
}

impl Outcome {
    fn observe(&mut self, scene: &Scene, replicas: &Replicas) {
        for observer in 0..OBSERVERS {
            for car in 0..CARS {
                let error = replicas.error(scene, observer, car);
                self.unknown += u64::from(error.is_none());
                let weight = scene.relevance(observer, car);
                self.samples.push((single(weight), single(error.unwrap_or(UNKNOWN))));
            }
        }
    }

    fn count(&mut self, packet: &Packet) {
        let length = |length: usize| u64::try_from(length).unwrap_or_default();
        let copies = if packet.observer.is_some() { 1 } else { length(OBSERVERS) };
        self.bytes += packet.bytes;
        self.updates += length(packet.cars.len()) * copies;
        self.promised += length(packet.promised.len());
    }
}

#[expect(clippy::cast_possible_truncation, reason = "seven digits are enough for an error")]
fn single(value: f64) -> f32 {
    value as f32
}

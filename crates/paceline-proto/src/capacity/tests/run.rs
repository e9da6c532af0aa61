//! Runs of the estimator over a bottleneck: a contract stream, data that fills the rest, and probes.

use super::bottleneck::{Bottleneck, Dice, Path, float};
use crate::capacity::{
    CapacityEstimate, CapacityEstimator, CapacityState, Departure, Receipt, time_of,
};
use paceline_sched::{Capacity, Duration, Instant};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The interval at which the sender polls the estimator, and at which the run is recorded.
const TICK: Duration = Duration::from_millis(5);
/// The rate of the sender's interface.
const LINE: u64 = 10_000_000_000;
const FRAME: u64 = 1_200;
/// A contract sample is late after this time.
const DEADLINE: Duration = Duration::from_millis(100);

/// The load of the link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// The bytes of the contract's frames on the wire and their interval; no contract if 0.
    pub(super) contract: (u64, Duration),
    /// Data that is paced to the conservative end, and limited to this rate by the application.
    pub(super) elastic: Option<u64>,
    /// The application limits the elastic data from the first to the second instant to this rate.
    pub(super) limited: Option<(Instant, Instant, u64)>,
}

impl Load {
    /// Steering at 100 Hz and data that fills the link.
    pub(super) const FULL: Self =
        Self { contract: (150, Duration::from_millis(10)), elastic: Some(u64::MAX), limited: None };
}

/// One moment of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) at: Instant,
    pub(super) truth: u64,
    pub(super) found: CapacityEstimate,
}

/// The results of a run.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) moments: Vec<Moment>,
    /// Arrivals of data and of probes, in bytes.
    pub(super) data: u64,
    pub(super) probes: u64,
    /// Departures, delays and late samples of the contract.
    pub(super) late: Vec<Instant>,
    pub(super) samples: u64,
    pub(super) lost: u64,
}

impl Report {
    /// Returns the largest ratio of two estimates from `from` to `until`.
    pub(super) fn spread(&self, from: Instant, until: Instant) -> f64 {
        let part = || self.between(from, until).map(|it| it.found.estimate);
        float(part().max().unwrap()) / float(part().min().unwrap().max(1))
    }

    pub(super) fn between(&self, from: Instant, until: Instant) -> impl Iterator<Item = &Moment> {
        self.moments.iter().filter(move |it| from <= it.at && it.at < until)
    }

    /// Returns the part of the link that was granted: the integral of the pace, where the link has that much.
    pub(super) fn granted(&self, from: Instant, until: Instant) -> f64 {
        let part = || self.between(from, until);
        let granted: f64 = part().map(|it| float(it.found.pace.min(it.truth))).sum();
        granted / part().map(|it| float(it.truth)).sum::<f64>()
    }

    /// Returns the part of the link by which the conservative end exceeded it.
    pub(super) fn excess(&self, from: Instant, until: Instant) -> f64 {
        let part = || self.between(from, until);
        let excess: f64 = part().map(|it| float(it.found.low.saturating_sub(it.truth))).sum();
        excess / part().map(|it| float(it.truth)).sum::<f64>()
    }

    /// Returns the time from `from` until the conservative end is at most the capacity.
    pub(super) fn noticed(&self, from: Instant) -> Option<Duration> {
        let fits = |it: &&Moment| it.found.low <= it.truth;
        self.between(from, Instant::FAR).find(fits).map(|it| it.at.since(from))
    }

    /// Returns the time from `from` until the conservative end is `percent` of the capacity.
    pub(super) fn climbed(&self, from: Instant, percent: u64) -> Option<Duration> {
        let high = |it: &&Moment| it.found.low >= it.truth * percent / 100;
        self.between(from, Instant::FAR).find(high).map(|it| it.at.since(from))
    }

    pub(super) fn has_been(&self, state: CapacityState) -> bool {
        self.moments.iter().any(|it| it.found.state == state)
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Tick,
    Contract,
    Elastic,
    Arrival { number: u64 },
    AckTimer,
    Ack { index: u64 },
}

struct Sent {
    at: Instant,
    bytes: u64,
    contract: bool,
    probe: bool,
    /// It requests an acknowledgement at once, as the last frame of a train.
    requests: bool,
}

#[derive(Debug)]
struct Ack {
    ranges: Vec<(u64, u64)>,
    held: Duration,
    arrived: Option<u32>,
}

/// A sender and a receiver with a bottleneck between them.
pub(super) struct Run {
    path: Path,
    load: Load,
    dice: Dice,
    now: Instant,
    pub(super) estimator: CapacityEstimator,
    bottleneck: Bottleneck,
    events: BTreeMap<(Instant, u64), Event>,
    order: u64,
    next: u64,
    line: Instant,
    /// Probes postpone data by their bytes, as a pacer does.
    debt: u64,
    sent: BTreeMap<u64, Sent>,
    waiting: BTreeSet<u64>,
    arrived: VecDeque<(u64, Instant)>,
    ack_timer: bool,
    acks: BTreeMap<u64, Ack>,
    last_ack: Instant,
    report: Report,
}

impl Run {
    pub(super) fn new(path: Path, load: Load, seed: u64) -> Self {
        let mut run = Self {
            path,
            load,
            dice: Dice::new(seed),
            now: Instant::ZERO,
            estimator: CapacityEstimator::new(None, None),
            bottleneck: Bottleneck::default(),
            events: BTreeMap::new(),
            order: 0,
            next: 0,
            line: Instant::ZERO,
            debt: 0,
            sent: BTreeMap::new(),
            waiting: BTreeSet::new(),
            arrived: VecDeque::new(),
            ack_timer: false,
            acks: BTreeMap::new(),
            last_ack: Instant::ZERO,
            report: Report::default(),
        };
        run.schedule(Instant::ZERO, Event::Tick);
        run.schedule(Instant::from_millis(3), Event::Elastic);
        if run.load.contract.0 > 0 {
            run.schedule(Instant::from_millis(1), Event::Contract);
        }
        run
    }

    /// Runs until `end` and returns the report.
    pub(super) fn until(mut self, end: Instant) -> Report {
        while let Some(((at, _), event)) = self.events.pop_first() {
            if at >= end {
                break;
            }
            self.now = at;
            self.handle(event);
        }
        self.report
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.order += 1;
        self.events.insert((at.max(self.now), self.order), event);
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Tick => self.tick(),
            Event::Contract => {
                let (bytes, interval) = self.load.contract;
                self.send(bytes, false, false, true);
                self.schedule(self.now + interval, Event::Contract);
            }
            Event::Elastic => self.elastic(),
            Event::Arrival { number } => self.arrive(number),
            Event::AckTimer => {
                self.ack_timer = false;
                self.acknowledge();
            }
            Event::Ack { index } => self.handle_ack(index),
        }
    }

    fn tick(&mut self) {
        self.estimator.handle_timeout(self.now);
        if let Some(request) = self.estimator.probe(self.now) {
            let frames = request.bytes.div_ceil(FRAME).max(5);
            for left in (0..frames).rev() {
                let bytes = (request.bytes / frames).max(60);
                self.send(bytes, left > 0, true, false);
                self.debt += bytes;
            }
        }
        let (at, truth) = (self.now, self.path.trace.at(self.now));
        self.report.moments.push(Moment { at, truth, found: self.estimator.estimate() });
        self.schedule(self.now + TICK, Event::Tick);
    }

    fn elastic(&mut self) {
        let Some(mut rate) = self.load.elastic else { return };
        let mut limited = rate != u64::MAX;
        if let Some((from, until, most)) = self.load.limited
            && from <= self.now
            && self.now < until
        {
            (rate, limited) = (most, true);
        }
        let (bytes, interval) = self.load.contract;
        let contract = bytes * 8_000_000_000 / interval.as_nanos().max(1);
        let pace = self.estimator.estimate().pace.saturating_sub(contract);
        let rate = rate.min(pace);
        if rate < 1_000 {
            self.schedule(self.now + TICK, Event::Elastic);
            return;
        }
        // Short frames on a slow link.
        let frame = (rate / 8 / 20).clamp(100, FRAME);
        self.send(frame, !limited, false, false);
        let bytes = frame + std::mem::take(&mut self.debt);
        self.schedule(self.now + Duration::from_nanos(time_of(bytes, rate)), Event::Elastic);
    }

    fn send(&mut self, bytes: u64, backlogged: bool, probe: bool, contract: bool) {
        let number = self.next;
        self.next += 1;
        let left = self.line.max(self.now) + Duration::from_nanos(time_of(bytes, LINE));
        self.line = left;
        let departure = Departure { number, bytes, left, backlogged, probe };
        self.estimator.handle_sent(self.now, &departure);
        self.sent.insert(
            number,
            Sent { at: self.now, bytes, contract, probe, requests: probe && !backlogged },
        );
        self.waiting.insert(number);
        self.report.samples += u64::from(contract);
        match self.bottleneck.pass(&self.path, &mut self.dice, left, bytes) {
            Some(at) => self.schedule(at, Event::Arrival { number }),
            None => self.report.lost += 1,
        }
    }

    fn arrive(&mut self, number: u64) {
        let sent = &self.sent[&number];
        if sent.probe {
            self.report.probes += sent.bytes;
        } else {
            self.report.data += sent.bytes;
        }
        if sent.contract && self.now.since(sent.at) > DEADLINE {
            self.report.late.push(sent.at);
        }
        self.arrived.push_back((number, self.now));
        if sent.requests || self.arrived.len() >= self.path.coalesced {
            self.acknowledge();
        } else if !self.ack_timer {
            self.ack_timer = true;
            self.schedule(self.now + Duration::from_millis(25), Event::AckTimer);
        }
    }

    fn acknowledge(&mut self) {
        let Some((_, last)) = self.arrived.back().copied() else { return };
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for (number, _) in self.arrived.drain(..) {
            match ranges.last_mut().filter(|(_, end)| *end + 1 == number) {
                Some(range) => range.1 = number,
                None => ranges.push((number, number)),
            }
        }
        // The receiver's clock has another origin.
        let micros = u32::try_from((last.as_nanos() / 1_000 + 4_294_000_000) & 0xffff_ffff);
        let arrived = micros.ok().filter(|_| self.path.stamps);
        self.order += 1;
        let ack = Ack { ranges, held: self.now.since(last), arrived };
        let jitter = Duration::from_nanos(self.dice.below(self.path.ack_jitter.as_nanos()));
        self.last_ack = self.last_ack.max(self.now + self.path.delay + jitter);
        self.acks.insert(self.order, ack);
        self.schedule(self.last_ack, Event::Ack { index: self.order });
    }

    fn handle_ack(&mut self, index: u64) {
        let Some(ack) = self.acks.remove(&index) else { return };
        for (first, newest) in ack.ranges {
            let receipt = Receipt { first, newest, held: ack.held, arrived: ack.arrived };
            self.estimator.handle_ack(self.now, &receipt);
            for number in first..=newest {
                self.waiting.remove(&number);
                self.sent.remove(&number);
            }
            // The carrier keeps order, so a gap is a loss.
            while let Some(lost) = self.waiting.first().copied().filter(|it| *it < newest) {
                self.waiting.remove(&lost);
                self.sent.remove(&lost);
                self.estimator.handle_lost(self.now, lost);
            }
        }
    }
}

/// Runs an estimator with a typed range over a path.
pub(super) fn ranged(path: Path, load: Load, range: (u64, u64), until: Instant) -> Report {
    let bits = |bits| Capacity::from_bits_per_s(bits).ok();
    let mut run = Run::new(path, load, 1);
    run.estimator = CapacityEstimator::new(bits(range.0), bits(range.1));
    run.until(until)
}

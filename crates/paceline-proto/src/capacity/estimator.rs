//! The estimator: evidence in, estimate and wake-ups out.

use super::arrival::{ArrivalClock, PathDelay, signed};
use super::frames::{SentFrame, SentFrames};
use super::losses::LossWindow;
use super::probing::{Haste, Probing};
use super::samples::{RateSamples, part};
use super::trains::{TrainSample, Trains};
use super::trend::{Step, Trend};
use super::{CapacityEstimate, CapacityState, Departure, ProbeRequest, Receipt, time_of};
use paceline_sched::{Capacity, Duration, Instant};

/// The lengths of steps in which the growth of the delay is looked for: a fast fall, and a slow one.
const FINE: u64 = 10_000_000;
const COARSE: u64 = 100_000_000;
/// A queue shorter than this is no fall, whatever the jitter.
const QUEUE_MIN: u64 = 10_000_000;
/// Nor is one shorter than this multiple of the jitter: for evenly distributed delays, that is their range.
const JITTERS: u64 = 3;
/// A rate above this part of the estimate, in percent, is no fall.
const SAME: u64 = 97;
/// The factor by which a measurement may raise the estimate, in percent: during the first ones, later, and after a raise that
/// was followed by a fall.
const FIRST_RAISE: u64 = 400;
const RAISE: u64 = 200;
const CAUTIOUS_RAISE: u64 = 115;
/// Only a train that was sent at more than this part of the estimate, in percent, can be close to the capacity.
const FASTER: u64 = 150;
/// A fall within this time after a raise contradicts it; raises are cautious for some time then. A link may pass short trains
/// faster than sustained data.
const CONTRADICTS: Duration = Duration::from_secs(1);
const CAUTION: Duration = Duration::from_secs(5);
/// The silence that is an outage: at least this time, and three round trips.
const SILENCE_MIN: Duration = Duration::from_millis(250);
const SILENCE_TRIPS: u64 = 3;
/// The known queue is forgotten after this time without acknowledgements.
const STANDS: Duration = Duration::from_secs(1);
/// The queue of our own bytes that is expected in front of the link, at most.
const AHEAD_MAX: Duration = Duration::from_millis(100);
/// Without an estimate, only bytes that left within this time count as ours in front of the link.
const TOGETHER: Duration = Duration::from_millis(5);
/// The time that a queue may take to drain, in addition to its length and two round trips.
const SLACK: Duration = Duration::from_millis(100);
/// The time within which a queue should drain, in addition to a round trip.
const DRAINS: Duration = Duration::from_millis(200);
/// Frames with others ahead show the delay of the path only if there are no other frames: they count as slower by this time.
const NOT_ALONE: u64 = 1_000_000_000;
/// A longer queue than this is not jitter.
const NOISE_MAX: u64 = 20_000_000;
/// A train is longer than this multiple of the jitter.
const CLEARER: u64 = 5;

/// A queue that drains after a fall.
#[derive(Clone, Copy, Debug)]
struct Drain {
    /// It should have become shorter by then.
    until: Instant,
    queued: u64,
    /// The estimate before the fall. Arrivals alone, which the peer reports, are no evidence for more.
    before: u64,
}

/// The estimator of one link's capacity, for one hop.
///
/// Calls are of three kinds: `handle_…` take evidence at a time, which never goes backwards; [`Self::estimate`] and
/// [`Self::probe`] return outputs; [`Self::poll_timeout`] returns the time at which [`Self::handle_timeout`] must be called.
#[derive(Debug)]
pub struct CapacityEstimator {
    min: u64,
    max: u64,
    now: Instant,
    frames: SentFrames,
    clock: ArrivalClock,
    path: PathDelay,
    trains: Trains,
    fine: Trend,
    coarse: Trend,
    losses: LossWindow,
    loss_window: u64,
    samples: RateSamples,
    probing: Probing,
    state: CapacityState,
    drain: Option<Drain>,
    /// The newest frame that has arrived.
    newest: Option<u64>,
    delivered: u64,
    /// The departure of the first frame since the last progress, or that progress.
    unanswered: Option<Instant>,
    last_ack: Instant,
    last_step: Instant,
    trip: Duration,
    /// The bytes of ours that the link should have to send, at a time.
    ahead: (u64, Instant),
    largest: u64,
    raised: Option<Instant>,
    cautious_until: Instant,
    /// Nothing was measured since an outage.
    doubtful: bool,
    /// The mean queue in nanoseconds that is not explained by our own bytes: mostly jitter.
    noise: u64,
    contradictions: u64,
    /// Frames that have arrived, and lost ones.
    counted: (u64, u64),
}

impl CapacityEstimator {
    /// Returns an estimator without measurements. The estimate stays within `min..=max`, where given.
    #[must_use]
    pub fn new(min: Option<Capacity>, max: Option<Capacity>) -> Self {
        Self {
            min: min.map_or(0, Capacity::bits_per_s),
            max: max.map_or(u64::MAX, Capacity::bits_per_s),
            now: Instant::ZERO,
            frames: SentFrames::default(),
            clock: ArrivalClock::new(),
            path: PathDelay::new(),
            trains: Trains::default(),
            fine: Trend::new(FINE),
            coarse: Trend::new(COARSE),
            losses: LossWindow::default(),
            loss_window: 0,
            samples: RateSamples::default(),
            probing: Probing::new(),
            state: CapacityState::Unknown,
            drain: None,
            newest: None,
            delivered: 0,
            unanswered: None,
            last_ack: Instant::ZERO,
            last_step: Instant::ZERO,
            trip: Duration::ZERO,
            ahead: (0, Instant::ZERO),
            largest: 0,
            raised: None,
            cautious_until: Instant::ZERO,
            doubtful: false,
            noise: 0,
            contradictions: 0,
            counted: (0, 0),
        }
    }

    /// Records a frame that was sent. A number that is not higher than all earlier ones is ignored.
    pub fn handle_sent(&mut self, now: Instant, sent: &Departure) {
        self.pass(now);
        let ahead = self.expected_ahead(sent);
        // If everything has arrived, nothing stands in front of the link.
        let standing = if self.frames.is_waiting() { self.standing() } else { 0 };
        if !self.frames.note(sent, ahead) {
            return;
        }
        self.largest = sent.bytes.max(self.largest - self.largest / 64);
        self.probing.note_sent(self.now, sent.bytes, sent.probe);
        let estimate = self.samples.estimate();
        let before = estimate.map_or(0, |estimate| time_of(ahead - sent.bytes, estimate));
        self.trains.note_sent(sent, standing.saturating_add(before));
        self.unanswered = self.unanswered.or(Some(sent.left.max(self.now)));
    }

    /// Processes an acknowledgement. It is ignored if it covers a frame that was never sent.
    pub fn handle_ack(&mut self, now: Instant, receipt: &Receipt) {
        self.pass(now);
        let range = (receipt.first, receipt.newest);
        if !self.frames.has_sent(range) {
            self.contradictions = self.contradictions.saturating_add(1);
            return;
        }
        let Self { frames, trains, losses, delivered, counted, .. } = self;
        let mut progress = false;
        let last = frames.arrive(range, |frame| {
            progress = true;
            *delivered = delivered.saturating_add(frame.bytes);
            counted.0 += 1;
            trains.count(frame);
            losses.note_arrived(frame.bytes);
        });
        let Some(last) = last.filter(|_| progress) else { return };
        self.recover();
        self.unanswered = self.frames.is_waiting().then_some(self.now);
        if self.newest.is_none_or(|newest| newest < last.number) {
            self.newest = Some(last.number);
            self.note_arrival(&last, receipt);
            while let Some(sample) = self.trains.next_sample(last.number) {
                self.handle_sample(sample);
            }
        }
        self.last_ack = self.now;
    }

    /// Records that a frame is lost. It may still be acknowledged later.
    pub fn handle_lost(&mut self, now: Instant, number: u64) {
        self.pass(now);
        if let Some(bytes) = self.frames.lose(number) {
            self.losses.note_lost(bytes);
            self.counted.1 += 1;
        }
    }

    /// Processes the passage of time: silence is an outage.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.pass(now);
        if self.silent_at() <= self.now && self.state != CapacityState::Outage {
            self.state = CapacityState::Outage;
            self.drain = None;
            self.trains.forget();
            self.fine.forget();
            self.coarse.forget();
        }
    }

    /// Returns the time at which [`Self::handle_timeout`] or [`Self::probe`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Instant {
        let silent =
            if self.state == CapacityState::Outage { Instant::FAR } else { self.silent_at() };
        silent.min(self.probing.due(self.now, self.budget(), self.haste()))
    }

    /// Returns the train of probes that should be sent now, if one is due. It stays due until its frames are recorded.
    #[must_use]
    pub fn probe(&mut self, now: Instant) -> Option<ProbeRequest> {
        self.pass(now);
        self.probing.request(self.now, self.budget(), self.haste())
    }

    /// Returns the number of acknowledgements that covered frames which were never sent.
    #[must_use]
    pub const fn contradictions(&self) -> u64 {
        self.contradictions
    }

    /// Returns the numbers of frames that have arrived, and of those that counted as lost; some of these may have arrived later.
    #[must_use]
    pub const fn frames(&self) -> (u64, u64) {
        self.counted
    }

    /// Returns the present estimate.
    #[must_use]
    pub fn estimate(&self) -> CapacityEstimate {
        let (estimate, mut low) = self.budget();
        let estimate = self.bounded(estimate);
        if self.doubtful {
            low /= 2;
        }
        let (low, high) = match self.state {
            CapacityState::Unknown => (self.min, self.max),
            CapacityState::Outage => {
                (self.min, self.bounded(self.samples.high().unwrap_or(u64::MAX)))
            }
            CapacityState::Measuring | CapacityState::Stable | CapacityState::Falling => {
                (self.bounded(low), self.bounded(self.samples.high().unwrap_or(u64::MAX)))
            }
        };
        let pace = match self.state {
            CapacityState::Outage => 0,
            CapacityState::Falling => part(low, self.drain_percent()),
            CapacityState::Unknown | CapacityState::Measuring | CapacityState::Stable => low,
        };
        CapacityEstimate { estimate, low, high, pace, state: self.state }
    }

    /// Returns the numbers of remembered frames and trains.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> (usize, usize) {
        (self.frames.len(), self.trains.len())
    }

    fn bounded(&self, rate: u64) -> u64 {
        rate.max(self.min).min(self.max)
    }

    /// Returns the estimate and its conservative end; zero before the first measurement.
    fn budget(&self) -> (u64, u64) {
        let low = self.samples.low().unwrap_or_default();
        (self.samples.estimate().unwrap_or_default(), low)
    }

    const fn haste(&self) -> Haste {
        match self.state {
            CapacityState::Unknown | CapacityState::Measuring => Haste::Changing,
            CapacityState::Stable => Haste::Steady,
            CapacityState::Falling => Haste::Paused,
            CapacityState::Outage => Haste::Silent,
        }
    }

    fn pass(&mut self, now: Instant) {
        self.now = self.now.max(now);
        let train = Duration::from_nanos(self.noise.saturating_mul(CLEARER));
        self.probing.earn(self.now, self.budget(), train);
    }

    /// Returns the bytes that the link should have to send when `sent` leaves, at the estimated capacity.
    fn expected_ahead(&mut self, sent: &Departure) -> u64 {
        let (ahead, since) = self.ahead;
        let pause = sent.left.since(since);
        let left = match Capacity::from_bits_per_s(self.budget().0) {
            Ok(capacity) => {
                let most = capacity.bytes_in(AHEAD_MAX);
                ahead.min(most).saturating_sub(capacity.bytes_in(pause))
            }
            Err(_) if pause > TOGETHER => 0,
            Err(_) => ahead,
        };
        let ahead = left.saturating_add(sent.bytes).max(sent.bytes);
        self.ahead = (ahead, sent.left.max(since));
        ahead
    }

    /// Returns the queue that is known to stand in front of the link, in nanoseconds.
    fn standing(&self) -> u64 {
        let known = self.fine.last().filter(|_| self.now.since(self.last_step) < STANDS);
        known.map_or(0, |step| step.queued)
    }

    fn silent_at(&self) -> Instant {
        let patience = self.trip.mul_div(SILENCE_TRIPS, 1).max(SILENCE_MIN);
        let known = self.newest.is_some();
        self.unanswered.filter(|_| known).map_or(Instant::FAR, |since| since + patience)
    }

    /// Ends an outage, because data has arrived.
    fn recover(&mut self) {
        if self.state == CapacityState::Outage {
            self.settle();
            self.doubtful = self.samples.estimate().is_some();
            self.probing.hurry();
        }
    }

    /// Sets the state that the measurements support, without a fall or an outage.
    fn settle(&mut self) {
        self.drain = None;
        self.state = match self.samples.estimate() {
            None => CapacityState::Unknown,
            Some(_) if self.samples.agree() => CapacityState::Stable,
            Some(_) => CapacityState::Measuring,
        };
    }

    /// Processes the arrival of the newest frame.
    fn note_arrival(&mut self, frame: &SentFrame, receipt: &Receipt) {
        let took = self.now.since(frame.left);
        // A frame cannot have waited before it was sent.
        let held = if receipt.held <= took { receipt.held } else { Duration::ZERO };
        let smoothed = self.trip.mul_div(7, 8).saturating_add(took.mul_div(1, 8));
        self.trip = if self.trip.is_zero() { took } else { smoothed.max(took.mul_div(1, 2)) };
        let (arrived, anew) = self.clock.arrival(self.now - held, receipt.arrived);
        if anew {
            self.path.forget();
            self.trains.forget();
            self.fine.forget();
            self.coarse.forget();
        }
        let delay = signed(arrived, frame.left.as_nanos());
        let estimate = self.samples.estimate();
        let own = estimate.map_or(0, |estimate| time_of(frame.ahead, estimate));
        // Others ahead took their time at a capacity that may have changed since.
        let alone = frame.ahead <= frame.bytes;
        let own = if alone { own } else { own.saturating_add(NOT_ALONE) };
        self.path.note(self.now, delay, frame.ahead, own);
        let Some((least, ahead)) = self.path.least() else { return };
        self.trains.measure(frame, delay, (least, ahead));
        let Some(estimate) = estimate else { return };
        let own = time_of(frame.ahead.saturating_sub(ahead), estimate);
        let beyond = u64::try_from(delay.saturating_sub(least)).unwrap_or(0);
        let queued = beyond.saturating_sub(own);
        let step = Step { arrived, queued, delivered: self.delivered };
        let noise = queued.min(NOISE_MAX);
        self.noise = self.noise - self.noise / 256 + noise / 256;
        if self.fine.note(step) {
            self.last_step = self.now;
            self.handle_step();
        }
        if self.coarse.note(step) {
            self.handle_coarse_step(arrived, estimate);
        }
    }

    /// Returns the growth of the delay that is a fall, in nanoseconds.
    fn threshold(&self) -> u64 {
        let jitter = self.path.jitter().as_nanos().saturating_mul(JITTERS);
        let frame = self.samples.estimate().map_or(0, |estimate| time_of(self.largest, estimate));
        QUEUE_MIN.max(jitter).max(frame)
    }

    fn handle_step(&mut self) {
        let threshold = self.threshold();
        let Some(drain) = self.drain else {
            if let Some(rate) = self.fine.growth(threshold) {
                self.handle_fall(rate);
            }
            return;
        };
        let queued = self.standing();
        if queued <= threshold / 2 {
            self.settle();
            self.probing.hurry();
        } else if let Some(rate) = self.fine.busy_rate(threshold / 2).filter(|rate| *rate > 0) {
            self.samples.replace(rate.min(drain.before));
        }
        if self.drain.is_some() && self.now >= drain.until {
            self.handle_slow_drain(queued, drain);
        }
    }

    /// Handles a queue that should be shorter by now. If it has neither grown nor become shorter although less was sent, there
    /// is no queue: the path has become longer.
    fn handle_slow_drain(&mut self, queued: u64, drain: Drain) {
        if (part(drain.queued, 90)..part(drain.queued, 110)).contains(&queued) {
            self.path.lengthen(queued);
            self.fine.forget();
            self.coarse.forget();
            self.settle();
            self.probing.hurry();
        } else {
            self.drain = Some(self.drain_of(queued, drain.before));
        }
    }

    fn drain_of(&self, queued: u64, before: u64) -> Drain {
        let trips = self.trip.mul_div(2, 1);
        let until = self.now + trips + Duration::from_nanos(queued) + SLACK;
        Drain { until, queued, before }
    }

    fn handle_coarse_step(&mut self, arrived: u64, estimate: u64) {
        let nanos = arrived.saturating_sub(self.loss_window);
        self.loss_window = arrived;
        let lossy = self.losses.end(nanos, estimate);
        if self.drain.is_none() {
            let threshold = self.threshold();
            if let Some(rate) = self.coarse.growth(threshold).or(lossy) {
                self.handle_fall(rate);
            }
            // A queue that neither grows nor drains delays every sample behind it.
            let standing = self.coarse.busy_rate(threshold.saturating_mul(2));
            if let Some(rate) = standing.filter(|_| self.drain.is_none()) {
                self.begin_drain(rate.min(estimate));
            }
        }
    }

    /// Processes a fall: the link delivers `rate` bits per second, less than is sent.
    fn handle_fall(&mut self, rate: u64) {
        if self.samples.estimate().is_none_or(|estimate| rate > part(estimate, SAME)) {
            return;
        }
        if self.raised.is_some_and(|raised| self.now.since(raised) < CONTRADICTS) {
            self.cautious_until = self.now + CAUTION;
        }
        self.begin_drain(rate);
    }

    fn begin_drain(&mut self, rate: u64) {
        let before = self.samples.estimate().unwrap_or_default();
        self.samples.replace(rate);
        // Trains in flight have been measured in part before the fall.
        self.trains.forget();
        self.doubtful = false;
        self.state = CapacityState::Falling;
        self.drain = Some(self.drain_of(self.standing(), before));
        self.coarse.forget();
    }

    /// Returns `rate`, bounded by the factor by which one measurement may raise the estimate.
    fn raisable(&self, rate: u64) -> u64 {
        let usual = match self.state {
            CapacityState::Unknown | CapacityState::Measuring => FIRST_RAISE,
            CapacityState::Stable | CapacityState::Falling | CapacityState::Outage => RAISE,
        };
        let factor = if self.now < self.cautious_until { CAUTIOUS_RAISE } else { usual };
        let estimate = self.samples.estimate();
        estimate.map_or(rate, |estimate| rate.min(part(estimate, factor)))
    }

    fn handle_sample(&mut self, sample: TrainSample) {
        if sample.rate == 0 {
            return;
        }
        let before = self.samples.estimate();
        let rate = self.raisable(sample.rate);
        let draining = self.drain.is_some();
        // Paced data does not stress the link, unless its capacity has fallen: then the delay grows.
        let fast = before.is_none_or(|before| sample.sent > part(before, FASTER));
        if sample.stressed && sample.clear && fast && !draining {
            self.samples.note(rate);
            self.doubtful = false;
            // The first low measurement asks for another one soon.
            if before.is_some_and(|before| rate < part(before, 80)) {
                self.probing.hurry();
            }
        } else {
            self.samples.note_bound(rate);
        }
        if self.samples.estimate() > before.map(|before| part(before, 110)) {
            self.raised = Some(self.now);
        }
        if !draining {
            self.settle();
        }
    }

    /// Returns the part of the conservative end at which a queue drains, in percent: within a round trip and 200 ms, or nearly
    /// as fast as possible.
    fn drain_percent(&self) -> u64 {
        let queued = self.standing();
        let within = self.trip.saturating_sub(Duration::from_nanos(queued)).saturating_add(DRAINS);
        let filled = queued.saturating_mul(100) / within.as_nanos().max(1);
        100_u64.saturating_sub(filled).clamp(10, 80)
    }
}

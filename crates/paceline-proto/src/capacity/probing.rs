//! The budget of probe bytes.
//!
//! Probes are trains: only bytes that leave together show the rate of the bottleneck when samples use a part of it. They cost
//! at most 5 % of the conservative estimate in the long run. A train occupies the link for about [`TRAIN`], which bounds
//! the delay of a sample behind it (20 ms if acknowledgements have much jitter).

use super::ProbeRequest;
use super::samples::part;
use paceline_sched::{Duration, Instant};

/// The time for which a train should occupy the link: without jitter, and at most.
const TRAIN: Duration = Duration::from_millis(8);
pub(crate) const TRAIN_LONGEST: Duration = Duration::from_millis(20);
/// The smallest and the largest train in bytes. The smallest one has several frames.
const TRAIN_MIN: u64 = 1_000;
const TRAIN_MAX: u64 = 256_000;
/// The smallest train on a slow link, and the part of a second that it may take longer than [`TRAIN`], in percent.
const TRAIN_LEAST: u64 = 300;
const SLOW: u64 = 5;
/// The bytes of a probe during an outage.
const SILENT_BYTES: u64 = 100;
/// The part of the conservative estimate that probes may use, in percent.
const SHARE: u64 = 5;
/// The bytes that probes may use before anything is known of the link, in each second of the first two.
const START: u64 = 3_000;
/// The interval of trains while the estimate changes, when it is stable, and on an idle link.
const CHANGING: Duration = Duration::from_millis(160);
const STEADY: Duration = Duration::from_millis(500);
const IDLE: Duration = Duration::from_secs(5);
/// A link without data for this time is idle.
const IDLE_AFTER: Duration = Duration::from_secs(10);

/// The pace at which trains are requested.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Haste {
    /// The estimate is unknown or changes.
    Changing,
    /// The estimate is stable.
    Steady,
    /// Nothing may be sent, except for one small frame to find out whether the link works again.
    Silent,
    /// A queue drains. A probe would only prolong it.
    Paused,
}

/// The budget of probe bytes, and the time of the next train.
#[derive(Debug)]
pub(super) struct Probing {
    /// Millionths of a byte, so that no credit is lost to rounding.
    credit: u128,
    updated: Option<Instant>,
    /// The last train, or its last frame.
    last: Option<Instant>,
    /// The last frame with data.
    used: Instant,
    /// The time for which the next train should occupy the link.
    train: Duration,
}

const MICRO: u128 = 1_000_000;

impl Probing {
    pub(super) const fn new() -> Self {
        Self {
            credit: START as u128 * MICRO,
            updated: None,
            last: None,
            used: Instant::ZERO,
            train: TRAIN,
        }
    }

    /// Returns the bytes of one train at `rate` bits per second.
    fn train(&self, rate: u64) -> u64 {
        let bytes = u128::from(rate) * u128::from(self.train.as_nanos()) / 8_000_000_000;
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        // On a slow link, a train of the usual bytes would delay samples for too long.
        let slow = part(rate / 8, SLOW).clamp(TRAIN_LEAST, TRAIN_MIN);
        bytes.max(if rate == 0 { TRAIN_MIN } else { slow }).min(TRAIN_MAX)
    }

    /// Earns the credit of the time since the last call, at `low` bits per second; at most that of one train.
    /// The next train should take at least `train`.
    pub(super) fn earn(&mut self, now: Instant, (estimate, low): (u64, u64), train: Duration) {
        self.train = train.max(TRAIN).min(TRAIN_LONGEST);
        let since = now.since(self.updated.unwrap_or(now)).min(Duration::from_secs(60));
        self.updated = Some(now);
        // Before the first measurement, the bytes of a small train in a second.
        let share = if estimate == 0 { START * 8 } else { part(low, SHARE) };
        let earned = u128::from(share) * u128::from(since.as_micros()) / 8;
        let most = u128::from(self.train(estimate).max(START)) * MICRO;
        self.credit = (self.credit + earned).min(most.max(self.credit));
    }

    /// Records a frame that was sent.
    pub(super) fn note_sent(&mut self, now: Instant, bytes: u64, probe: bool) {
        if probe {
            self.credit = self.credit.saturating_sub(u128::from(bytes) * MICRO);
            self.last = Some(now);
        } else {
            self.used = now;
        }
    }

    /// Makes the next train due at once, if the budget allows it.
    pub(super) const fn hurry(&mut self) {
        self.last = None;
    }

    /// Returns the time at which the next train is due, for the budget: [`Instant::FAR`] if none will be.
    pub(super) fn due(&self, now: Instant, (estimate, low): (u64, u64), haste: Haste) -> Instant {
        let idle = now.since(self.used) > IDLE_AFTER;
        let interval = match haste {
            Haste::Paused => return Instant::FAR,
            Haste::Silent => STEADY,
            Haste::Changing => CHANGING,
            Haste::Steady if idle => IDLE,
            Haste::Steady => STEADY,
        };
        let paced = self.last.map_or(now, |last| last + interval);
        let bytes = u128::from(self.wanted(estimate, haste)) * MICRO;
        let share = if estimate == 0 { START * 8 } else { part(low, SHARE) };
        let lacks = bytes.saturating_sub(self.credit);
        let wait = (lacks * 8).div_ceil(u128::from(share.max(1)));
        paced.max(now + Duration::from_micros(u64::try_from(wait).unwrap_or(u64::MAX / 1_000)))
    }

    fn wanted(&self, estimate: u64, haste: Haste) -> u64 {
        match haste {
            Haste::Silent => SILENT_BYTES,
            Haste::Changing | Haste::Steady | Haste::Paused => self.train(estimate),
        }
    }

    /// Returns the train that is due.
    pub(super) fn request(
        &self,
        now: Instant,
        (estimate, low): (u64, u64),
        haste: Haste,
    ) -> Option<ProbeRequest> {
        let due = self.due(now, (estimate, low), haste);
        let bytes = self.wanted(estimate, haste);
        (due <= now).then(|| ProbeRequest { bytes, until: now + CHANGING })
    }
}

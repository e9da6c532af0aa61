//! A simulated bottleneck: a trace of its capacity, a queue, delays, losses and acknowledgements.

use paceline_sched::{Duration, Instant};
use std::collections::VecDeque;

/// A generator of random numbers that its seed determines completely (SplitMix64).
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`; 0 if that is 0.
    pub(super) const fn below(&mut self, bound: u64) -> u64 {
        self.next() % if bound == 0 { 1 } else { bound }
    }
}

/// The capacity over time: from each instant on, in bits per second. Times ascend from zero.
#[derive(Clone, Debug)]
pub(super) struct Trace(pub(super) Vec<(Instant, u64)>);

impl Trace {
    /// Returns a trace of `(seconds, bits per second)`.
    pub(super) fn of(parts: &[(f64, f64)]) -> Self {
        Self(parts.iter().map(|(at, bits)| (seconds(*at), whole(*bits))).collect())
    }

    pub(super) fn at(&self, time: Instant) -> u64 {
        let index = self.0.partition_point(|(from, _)| *from <= time);
        index.checked_sub(1).map_or(0, |index| self.0[index].1)
    }

    /// Returns the time at which `bytes` have been sent that begin at `from`.
    pub(super) fn sent(&self, from: Instant, bytes: u64) -> Instant {
        let mut bits = u128::from(bytes) * 8_000_000_000;
        let mut now = from;
        let mut index = self.0.partition_point(|(begin, _)| *begin <= from).saturating_sub(1);
        loop {
            let rate = u128::from(self.0[index].1);
            let end = self.0.get(index + 1).map_or(Instant::FAR, |(end, _)| *end);
            let fits = rate * u128::from(end.since(now).as_nanos());
            if bits <= fits {
                let nanos = u64::try_from(bits / rate.max(1)).unwrap_or(u64::MAX);
                return now + Duration::from_nanos(nanos);
            }
            if end == Instant::FAR {
                return end;
            }
            bits -= fits;
            now = end;
            index += 1;
        }
    }

    /// Returns the bytes that the link can send from `from` to `until`.
    pub(super) fn bytes(&self, from: Instant, until: Instant) -> f64 {
        let mut sum = 0.0;
        for (index, (begin, rate)) in self.0.iter().enumerate() {
            let end = self.0.get(index + 1).map_or(Instant::FAR, |(end, _)| *end).min(until);
            sum += float(*rate) / 8.0 * float(end.since((*begin).max(from)).as_nanos()) / 1e9;
        }
        sum
    }
}

pub(super) fn seconds(seconds: f64) -> Instant {
    Instant::from_nanos(whole(seconds * 1e9))
}

/// Converts a number that is not negative; test traces are far below the limit.
#[expect(clippy::cast_possible_truncation, reason = "rates and times of tests fit")]
#[expect(clippy::cast_sign_loss, reason = "not negative")]
pub(super) const fn whole(number: f64) -> u64 {
    number as u64
}

#[expect(clippy::cast_precision_loss, reason = "for ratios in reports")]
pub(super) const fn float(number: u64) -> f64 {
    number as f64
}

/// The properties of a path through the bottleneck.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub(super) trace: Trace,
    /// The delay of each direction.
    pub(super) delay: Duration,
    /// The bottleneck queues at most the bytes of this time at its present capacity.
    pub(super) buffer: Duration,
    /// Random loss in parts per million.
    pub(super) loss_ppm: u64,
    /// Acknowledgements are delayed by a random time below this, in order.
    pub(super) ack_jitter: Duration,
    /// Frames are delayed by a random time below this behind the bottleneck, in order.
    pub(super) jitter: Duration,
    /// The receiver acknowledges this number of frames together, or after 25 ms, like TCP.
    pub(super) coalesced: usize,
    /// The receiver sends time stamps.
    pub(super) stamps: bool,
    /// Bytes that pass the bottleneck at once after a pause, as through a token bucket.
    pub(super) bucket: u64,
    /// The path is longer by a time from an instant on.
    pub(super) longer: Option<(Instant, Duration)>,
}

impl Path {
    pub(super) fn new(trace: Trace) -> Self {
        Self {
            trace,
            delay: Duration::from_millis(20),
            buffer: Duration::from_millis(100),
            loss_ppm: 0,
            ack_jitter: Duration::ZERO,
            jitter: Duration::ZERO,
            coalesced: 1,
            stamps: false,
            bucket: 0,
            longer: None,
        }
    }
}

/// The queue of the bottleneck.
#[derive(Debug, Default)]
pub(super) struct Bottleneck {
    queue: VecDeque<(Instant, u64)>,
    bytes: u64,
    busy: Instant,
    last: Instant,
    /// The time at which the token bucket is full.
    full: Instant,
}

impl Bottleneck {
    /// Returns the arrival of a frame at the receiver that enters the queue at `now`; `None` if it is lost.
    pub(super) fn pass(
        &mut self,
        path: &Path,
        dice: &mut Dice,
        now: Instant,
        bytes: u64,
    ) -> Option<Instant> {
        while let Some((_, done)) = self.queue.pop_front_if(|(sent, _)| *sent <= now) {
            self.bytes -= done;
        }
        let room = path.trace.at(now) * path.buffer.as_micros() / 8_000_000;
        if self.bytes > 0 && self.bytes + bytes > room.max(3_000) {
            return None;
        }
        // A bucket of tokens: the link is ahead of its rate by at most the bucket.
        let rate = path.trace.at(now).max(1);
        let ahead = Duration::from_nanos(super::super::time_of(path.bucket, rate));
        self.full = path.trace.sent(self.full.max(now), bytes);
        let sent = if path.bucket == 0 { self.full } else { (self.full - ahead).max(now) };
        self.busy = sent.max(self.busy);
        self.queue.push_back((self.busy, bytes));
        self.bytes += bytes;
        if dice.below(1_000_000) < path.loss_ppm || self.busy == Instant::FAR {
            return None;
        }
        let jitter = Duration::from_nanos(dice.below(path.jitter.as_nanos()));
        let longer = path.longer.filter(|(from, _)| *from <= now);
        let delay = path.delay.saturating_add(longer.map_or(Duration::ZERO, |(_, by)| by));
        self.last = self.last.max(self.busy + delay + jitter);
        Some(self.last)
    }
}

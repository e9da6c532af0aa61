//! Trains of frames that were sent without a pause, and the rates at which they were delivered.
//!
//! A train that enters an empty queue faster than the bottleneck leaves it at the rate of the bottleneck (packet trains:
//! Dovrolis, Ramanathan and Moore, 2001). The last frame arrives when the bottleneck has sent all bytes before it, so the bytes
//! of the train, divided by the time from the earliest possible arrival of its first byte, never exceed the capacity. Jitter
//! and other traffic only lengthen that time. The rate is therefore a lower bound of the capacity, whoever limited the sender,
//! and close to it if the train was sent clearly faster. As in delivery rate estimation (draft-ietf-ccwg-bbr, Cardwell et
//! al., 2026; draft-cheng-iccrg-delivery-rate-estimation, Cheng et al., 2022), a rate is never above that of sending, which
//! excludes compressed acknowledgements.

use super::frames::SentFrame;
use super::samples::part;
use super::{Departure, rate};
use paceline_sched::{Duration, Instant};
use std::collections::VecDeque;

/// The number of trains in flight that are remembered.
const TRAINS_MAX: usize = 16;
/// A train that lasts longer is split, so that each one describes the present.
const LASTS: Duration = Duration::from_millis(250);
/// A train that has more bytes is split.
const BYTES_MAX: u64 = 4_000_000;
/// A train is stressed if it was delivered at less than this part of the rate of sending, in percent.
const STRESSED: u64 = 80;

/// A train that took less than this time, in nanoseconds, only shows the rate of its bytes in this time: the delays of
/// processes and interrupts are not much shorter, and a link may pass a few frames at once.
const TOOK_MIN: u64 = 1_000_000;
/// A train met an empty queue if the queue that was known before it is at most this part of its time, as a fraction.
const CLEAR: u64 = 4;

/// The result of a train.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct TrainSample {
    /// A lower bound of the capacity in bits per second.
    pub(super) rate: u64,
    /// The rate of sending.
    pub(super) sent: u64,
    /// The train was sent clearly faster than it was delivered, so the bound is close to the capacity.
    pub(super) stressed: bool,
    /// The queue that was known when the train began is short compared with the time of the train.
    pub(super) clear: bool,
}

#[derive(Debug)]
struct Train {
    first: u64,
    last: u64,
    begin: Instant,
    end: Instant,
    first_bytes: u64,
    bytes: u64,
    probe: bool,
    open: bool,
    delivered: u64,
    /// The queue that was known when it began, in nanoseconds.
    standing: u64,
    /// The highest rate so far, and the time of that delivery in nanoseconds.
    best: Option<(u64, u64)>,
}

impl Train {
    const fn new(sent: &Departure, standing: u64) -> Self {
        Self {
            first: sent.number,
            last: sent.number,
            begin: sent.left,
            end: sent.left,
            first_bytes: sent.bytes,
            bytes: sent.bytes,
            probe: sent.probe,
            open: true,
            delivered: 0,
            standing,
            best: None,
        }
    }

    fn extend(&mut self, sent: &Departure) {
        self.last = sent.number;
        self.end = sent.left;
        self.bytes = self.bytes.saturating_add(sent.bytes);
        // Frames with samples pass between those of a probe, and do not end it.
        let ended = !sent.backlogged && (sent.probe || !self.probe);
        let long = sent.left.since(self.begin) > LASTS || self.bytes > BYTES_MAX;
        self.open = !ended && !long;
    }

    const fn contains(&self, number: u64) -> bool {
        self.first <= number && number <= self.last
    }

    /// Returns the rate of sending.
    fn sent_rate(&self) -> u64 {
        let span = self.end.since(self.begin).as_nanos();
        rate(self.bytes.saturating_sub(self.first_bytes), span)
    }

    fn measure(&mut self, frame: &SentFrame, queued: i64, ahead: u64) {
        // The time from the earliest possible arrival of the first frame.
        let span = frame.left.since(self.begin).as_nanos();
        let took = span.saturating_add(u64::try_from(queued).unwrap_or(0)).max(TOOK_MIN);
        let found = rate(self.delivered.saturating_sub(ahead), took);
        let sent = rate(self.delivered.saturating_sub(self.first_bytes), span);
        let found = found.min(sent);
        if self.best.is_none_or(|(best, _)| best < found) {
            self.best = Some((found, took));
        }
    }

    fn sample(&self) -> Option<TrainSample> {
        let (rate, took) = self.best?;
        let sent = self.sent_rate();
        Some(TrainSample {
            rate,
            sent,
            stressed: rate < part(sent, STRESSED),
            clear: self.standing <= took / CLEAR,
        })
    }
}

/// The trains in flight.
#[derive(Debug, Default)]
pub(super) struct Trains {
    trains: VecDeque<Train>,
}

impl Trains {
    /// Records a frame that was sent into a queue of `standing` nanoseconds.
    pub(super) fn note_sent(&mut self, sent: &Departure, standing: u64) {
        if let Some(train) = self.trains.back_mut().filter(|train| train.open) {
            if sent.probe && !train.probe {
                train.open = false;
            } else {
                train.extend(sent);
                return;
            }
        }
        if sent.backlogged {
            if self.trains.len() >= TRAINS_MAX {
                self.trains.pop_front();
            }
            self.trains.push_back(Train::new(sent, standing));
        }
    }

    /// Counts a frame that has arrived for the first time.
    pub(super) fn count(&mut self, frame: &SentFrame) {
        if let Some(train) = self.trains.iter_mut().find(|train| train.contains(frame.number)) {
            train.delivered = train.delivered.saturating_add(frame.bytes);
        }
    }

    /// Measures the trains that have arrived with `frame`, the newest one, `delay` after its departure. The empty path has a
    /// delay of `least` with `ahead` bytes. A frame after a train shows that the train has arrived, too.
    pub(super) fn measure(&mut self, frame: &SentFrame, delay: i64, (least, ahead): (i64, u64)) {
        for train in self.trains.iter_mut().filter(|train| train.first < frame.number) {
            // The first frame may have left at any rate, so a single one is no train. Half of a train is one.
            if train.delivered > train.first_bytes && train.delivered >= train.bytes / 2 {
                train.measure(frame, delay.saturating_sub(least), ahead);
            }
        }
    }

    /// Returns the result of the oldest train that has ended, if all of it has been acknowledged up to `newest` or skipped.
    pub(super) fn next_sample(&mut self, newest: u64) -> Option<TrainSample> {
        while self.trains.front().is_some_and(|train| !train.open && train.last <= newest) {
            let sample = self.trains.pop_front().and_then(|train| train.sample());
            if sample.is_some() {
                return sample;
            }
        }
        None
    }

    /// Forgets all trains, because their arrivals are on another time line.
    pub(super) fn forget(&mut self) {
        self.trains.clear();
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.trains.len()
    }
}

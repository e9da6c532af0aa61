//! The clocks of a file: how their times become release times.

use super::MessageTimes;

/// A regular topic has at least this many intervals.
const INTERVALS_MIN: u32 = 16;
/// Times of a topic that go back, or two clocks that differ, by at most this, in nanoseconds, are no step of a clock.
pub(super) const JITTER: i128 = 100_000_000;
const HALF: u32 = 1 << 31;

/// The offset of a clock: a release time is a time of the clock and the offset.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Offset {
    now: Option<i128>,
    /// The offset before. A clock may jump for one message only.
    before: Option<i128>,
}

impl Offset {
    pub(super) const fn is_set(&self) -> bool {
        self.now.is_some()
    }

    pub(super) fn set(&mut self, offset: i128) {
        if self.now != Some(offset) {
            self.before = self.now.replace(offset);
        }
    }

    /// Moves a clock that is set.
    pub(super) fn shift(&mut self, by: i128) {
        if let Some(now) = self.now {
            self.set(now + by);
        }
    }

    /// Returns the release time by the current offset.
    pub(super) fn now(&self, time: u64) -> i128 {
        i128::from(time) + self.now.unwrap_or_default()
    }

    /// Returns the release time by the current offset, and that offset.
    pub(super) fn current(&self, time: u64) -> (i128, i128) {
        (self.now(time), self.now.unwrap_or_default())
    }

    /// Returns the release time by the offset before, and that offset.
    pub(super) fn former(&self, time: u64) -> Option<(i128, i128)> {
        self.before.map(|offset| (i128::from(time) + offset, offset))
    }
}

/// The messages of a topic so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Topic {
    pub(super) offset: Offset,
    /// The times of the last message.
    pub(super) published: Option<u64>,
    arrival: Option<u64>,
    sequence: u32,
    /// The latest release time.
    at: Option<i128>,
    intervals: u32,
    longest: i128,
}

impl Topic {
    /// Records a message that is released at `at`.
    pub(super) fn note(&mut self, stamp: &MessageTimes, at: i128) {
        if let Some(before) = self.at {
            self.intervals = self.intervals.saturating_add(1);
            self.longest = self.longest.max(at - before);
        }
        self.at = self.at.max(Some(at));
        (self.published, self.arrival) = (stamp.published, stamp.arrival);
        self.sequence = stamp.sequence;
    }

    /// Returns the longest interval between two messages of a regular topic; `None` for a topic with too few messages.
    pub(super) fn longest_interval(&self) -> Option<i128> {
        (self.intervals >= INTERVALS_MIN).then_some(self.longest)
    }

    /// Returns the release time `at` of the next message unless a clock step would move it before an earlier message.
    /// Messages that arrived out of order may be moved.
    pub(super) fn in_order(&self, stamp: &MessageTimes, at: i128) -> Option<i128> {
        let Some(last) = self.at.filter(|last| at < *last && self.is_later(stamp)) else {
            return Some(at);
        };
        (last - at <= JITTER).then_some(last)
    }

    /// Returns true if a message follows the last one, by their numbers, or else by their arrival.
    fn is_later(&self, stamp: &MessageTimes) -> bool {
        match stamp.sequence.wrapping_sub(self.sequence) {
            0 => stamp.arrival > self.arrival,
            ahead => ahead < HALF,
        }
    }
}

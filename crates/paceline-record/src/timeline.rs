//! Release times of the messages of a file, from times that may be wrong.
//!
//! A file states up to two times of a message: its publication, by the publisher's clock, and its arrival, by the
//! recorder's clock. Either clock may be set while it is used, or be damaged in the file. [`ReplayTimeline`] follows one of
//! them and checks it against the other one, message by message, in the order of the file:
//!
//! 1. A time that continues the replay, from [`BACK`] before its newest message to [`PAUSE`] behind it, is used.
//! 2. Otherwise the other time is used if it continues the replay. From then on the first clock is aligned to it.
//! 3. If neither does, the next [`LOOK`] messages decide. If they continue the replay, the message alone is wrong, and
//!    it is released at once. Otherwise both clocks jumped. A pause is kept if both clocks agree on it, or if
//!    there is one clock only. It is cut if it is longer than [`PAUSE_MAX`], or if topics that were regular
//!    before would have been silent for it: their messages follow at once.
//!
//! Messages of one topic keep the order of their sequence numbers, and without these the order of the file.

mod clock;
mod jumps;

use clock::{JITTER, Offset, Topic};
pub use jumps::{Jump, Jumps};
use std::collections::{BTreeMap, VecDeque};

/// A message may be released this long before the newest one in nanoseconds; a file may be out of order by as much.
pub(crate) const BACK: i128 = 5_000_000_000;
/// Pauses up to this, in nanoseconds, are always kept.
const PAUSE: i128 = 10_000_000_000;
/// Longer pauses, in nanoseconds, are always cut.
const PAUSE_MAX: i128 = 86_400_000_000_000;
/// The number of messages that decide about a jump.
const LOOK: usize = 64;
/// The number of messages among them that suffice.
const VOTES: usize = 8;
/// A pause of this many times the longest interval of a regular topic contradicts the topic.
const TIMES_LONGER: i128 = 32;
/// A clock that is set once or twice can be followed.
const MISFITS_MIN: u64 = 4;
/// The release time of the first message. Later messages may be earlier.
const START: i128 = 4 * BACK;

/// The clock that a replay follows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Order {
    /// One of the others, whichever fits the file.
    #[default]
    Auto,
    /// The publication times, by the publishers' clocks.
    Published,
    /// The arrival times, by the recorder's clock.
    Came,
}

/// The times of a message in a file, in nanoseconds since any epoch.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct MessageTimes {
    /// The number of its channel.
    pub channel: u16,
    /// Its sequence number in the channel, 0 in all messages if there are none.
    pub sequence: u32,
    /// The time of its arrival.
    pub arrival: Option<u64>,
    /// The time of its publication.
    pub published: Option<u64>,
    /// True if the arrival times are those of a clock that nobody can set.
    pub steady: bool,
}

/// Turns the times of messages into release times. Pass the messages in the order of the file.
#[derive(Clone, Debug)]
pub struct ReplayTimeline {
    order: Order,
    /// True if agreeing pauses that contradict regular topics are cut.
    doubts: bool,
    /// The latest release time; `None` before the first message.
    line: Option<i128>,
    arrival: Offset,
    /// The offset of the publication times of a new topic.
    common: Offset,
    topics: BTreeMap<u16, Topic>,
    waiting: VecDeque<MessageTimes>,
    messages: u64,
    misfits: u64,
    jumps: Jumps,
}

/// A release time, and the offset of the clock by which it is one.
type Fit = (i128, i128);

/// The release times by the clocks of a message that continue the replay.
#[derive(Clone, Copy)]
struct Proposed {
    published: Option<Fit>,
    arrival: Option<Fit>,
}

impl ReplayTimeline {
    /// Returns the state before the first message. [`Order::Auto`] follows the publication times, and cuts pauses that
    /// contradict regular topics; the other orders keep them.
    #[must_use]
    pub fn new(order: Order) -> Self {
        Self::doubting(order, order == Order::Auto)
    }

    /// Returns the state before the first message, that cuts pauses which contradict regular topics if `doubts`.
    pub(crate) fn doubting(order: Order, doubts: bool) -> Self {
        Self {
            order,
            doubts,
            line: None,
            arrival: Offset::default(),
            common: Offset::default(),
            topics: BTreeMap::new(),
            waiting: VecDeque::new(),
            messages: 0,
            misfits: 0,
            jumps: Jumps::default(),
        }
    }

    /// Adds the next message of the file.
    pub fn push(&mut self, stamp: MessageTimes) {
        self.waiting.push_back(stamp);
    }

    /// Returns the release time of the next message in nanoseconds. Returns `None` until later messages are known, at
    /// most 64; if `ended`, there are none.
    pub fn release(&mut self, ended: bool) -> Option<u64> {
        let stamp = *self.waiting.front()?;
        let Some(line) = self.line else {
            self.waiting.pop_front();
            return Some(self.begin(&stamp));
        };
        let proposed = self.proposed(&stamp, line);
        let at = match self.fitting(&stamp, proposed) {
            Some(at) => self.follow(&stamp, proposed, at),
            None if ended || self.waiting.len() > LOOK => self.jump(&stamp, line),
            None => return None,
        };
        self.waiting.pop_front();
        self.messages += 1;
        self.line = Some(line.max(at));
        let topic = self.topics.entry(stamp.channel).or_default();
        topic.note(&stamp, at);
        Some(u64::try_from(at).unwrap_or(u64::MAX))
    }

    /// Returns the jumps that were cut, and the pauses that were kept.
    #[must_use]
    pub const fn jumps(&self) -> &Jumps {
        &self.jumps
    }

    /// Returns true if several messages, and more than one in 100, did not fit the clock that is followed.
    pub(crate) const fn is_misled(&self) -> bool {
        self.misfits >= MISFITS_MIN && self.misfits * 100 > self.messages
    }

    /// Returns how many messages did not fit the clock that is followed.
    pub(crate) const fn misfits(&self) -> u64 {
        self.misfits
    }

    fn begin(&mut self, stamp: &MessageTimes) -> u64 {
        self.line = Some(START);
        if let Some(time) = stamp.arrival {
            self.arrival.set(START - i128::from(time));
        }
        self.align(stamp, START);
        self.messages += 1;
        self.topics.entry(stamp.channel).or_default().note(stamp, START);
        u64::try_from(START).unwrap_or_default()
    }

    /// Sets the clock of a message's topic so that the message is released at `at`; also that of new topics unless the
    /// topic is new itself, and may have a clock of its own.
    fn align(&mut self, stamp: &MessageTimes, at: i128) {
        let Some(time) = stamp.published else { return };
        let offset = at - i128::from(time);
        let topic = self.topics.entry(stamp.channel).or_default();
        if topic.offset.is_set() || !self.common.is_set() {
            self.common.set(offset);
        }
        topic.offset.set(offset);
    }

    /// Returns the times that continue the replay.
    fn proposed(&self, stamp: &MessageTimes, line: i128) -> Proposed {
        let topic = self.topics.get(&stamp.channel);
        let fits = |(at, _): &Fit| (line - BACK..=line + PAUSE).contains(at);
        let ordered = |(at, offset): Fit| match topic {
            Some(topic) => Some((topic.in_order(stamp, at)?, offset)),
            None => Some((at, offset)),
        };
        let current = |offset: &Offset, time: Option<u64>| {
            let time = time.filter(|_| offset.is_set())?;
            Some(offset.current(time)).filter(fits).and_then(ordered)
        };
        let former = |offset: &Offset, time: Option<u64>| {
            offset.former(time?).filter(fits).and_then(ordered)
        };
        // Of two damaged times, the second may fit by the offset of the first, but only by chance as well as the other
        // clock.
        let from = |fit: &Fit, near: Option<Fit>| near.map_or(0, |(near, _)| (fit.0 - near).abs());
        let fitting = |offset: &Offset, time: Option<u64>, near: Option<Fit>| {
            let former = former(offset, time).filter(|fit| from(fit, near) <= JITTER);
            current(offset, time).into_iter().chain(former).min_by_key(|fit| from(fit, near))
        };
        let by_topic = topic.and_then(|topic| current(&topic.offset, stamp.published));
        let arrival = fitting(&self.arrival, stamp.arrival, by_topic);
        let own = topic.and_then(|topic| fitting(&topic.offset, stamp.published, arrival));
        // The clocks of one host are set together. A new topic has no clock of its own yet.
        let is_new = topic.is_none_or(|topic| !topic.offset.is_set());
        let common = fitting(&self.common, stamp.published, arrival)
            .filter(|fit| is_new || from(fit, arrival) <= JITTER);
        let published = own.or(common);
        Proposed { published, arrival }
    }

    /// Returns the time of the clock that is followed, or else that of the other one.
    fn fitting(&self, stamp: &MessageTimes, proposed: Proposed) -> Option<i128> {
        let Proposed { published, arrival } = proposed;
        let fit = match self.order {
            Order::Auto | Order::Published => published.or(arrival),
            Order::Came => arrival.or(published),
        };
        // A time that stands still has no information.
        fit.map(|(at, _)| at).or_else(|| self.line.filter(|_| self.stands_still(stamp)))
    }

    fn stands_still(&self, stamp: &MessageTimes) -> bool {
        let topic = self.topics.get(&stamp.channel);
        let same = |topic: &Topic| topic.published == stamp.published;
        stamp.arrival.is_none() && (stamp.published.is_none() || topic.is_some_and(same))
    }

    /// Releases a message at `at`, and aligns the clock that does not fit.
    fn follow(&mut self, stamp: &MessageTimes, proposed: Proposed, at: i128) -> i128 {
        let by_arrival = self.order == Order::Came;
        match (stamp.arrival, proposed.arrival) {
            (Some(time), None) => {
                let by = self.arrival.now(time) - at;
                self.arrival.set(at - i128::from(time));
                if by_arrival {
                    self.misfit(stamp, at, by);
                }
            }
            (_, Some((_, offset))) => self.arrival.set(offset),
            (None, None) => {}
        }
        match proposed.published {
            Some((_, offset)) => {
                self.topics.entry(stamp.channel).or_default().offset.set(offset);
            }
            None if stamp.published.is_none() || self.stands_still(stamp) => {}
            None => {
                let by = self.expected(stamp).unwrap_or(at) - at;
                if !by_arrival {
                    self.misfit(stamp, at, by);
                }
                self.align(stamp, at);
            }
        }
        at
    }

    /// Counts a message that does not fit the clock that is followed. A new topic may have a clock of its own, which is
    /// no jump.
    fn misfit(&mut self, stamp: &MessageTimes, at: i128, by: i128) {
        self.misfits += 1;
        if self.topics.get(&stamp.channel).is_some_and(|topic| topic.offset.is_set()) {
            self.cut(stamp, at, by);
        }
    }

    fn cut(&mut self, stamp: &MessageTimes, at: i128, by: i128) {
        let at = u64::try_from(at).unwrap_or_default();
        self.jumps.cut(Jump { channel: stamp.channel, at, by });
    }

    /// Returns the release time by the publisher's clock if the clock did not jump.
    fn expected(&self, stamp: &MessageTimes) -> Option<i128> {
        let topic = self.topics.get(&stamp.channel).map(|topic| &topic.offset);
        let offset = topic.filter(|offset| offset.is_set()).unwrap_or(&self.common);
        stamp.published.filter(|_| offset.is_set()).map(|time| offset.now(time))
    }

    /// Decides about a message of which no time continues the replay.
    fn jump(&mut self, stamp: &MessageTimes, line: i128) -> i128 {
        let arrival =
            stamp.arrival.filter(|_| self.arrival.is_set()).map(|time| self.arrival.now(time));
        let published = self.expected(stamp);
        let by = match self.order {
            Order::Auto | Order::Published => published.or(arrival),
            Order::Came => arrival.or(published),
        };
        let Some(far) = by else {
            self.set_all(stamp, line, None);
            return line;
        };
        if self.is_alone(arrival, published, line) {
            self.misfit(stamp, line, far - line);
            return line;
        }
        let believable = line..=line + PAUSE_MAX;
        let trusted = arrival.filter(|at| stamp.steady && believable.contains(at));
        let pause = trusted.or_else(|| self.pause(arrival, published, far, line));
        if let Some(at) = pause {
            self.jumps.keep(at - line);
            self.set_all(stamp, at, None);
            return at;
        }
        self.misfits += 1;
        self.cut(stamp, line, far - line);
        self.set_all(stamp, line, Some(line - far));
        line
    }

    /// Returns the time behind a pause that is kept.
    fn pause(
        &self,
        arrival: Option<i128>,
        published: Option<i128>,
        far: i128,
        line: i128,
    ) -> Option<i128> {
        let agree = arrival.zip(published).is_none_or(|(a, b)| (a - b).abs() <= BACK);
        let pause = far - line;
        let kept = agree && (0..=PAUSE_MAX).contains(&pause) && !self.is_contradicted(pause);
        kept.then_some(far)
    }

    /// Aligns both clocks, and those of the other topics by as much as this message's clock was.
    fn set_all(&mut self, stamp: &MessageTimes, at: i128, by: Option<i128>) {
        if let Some(time) = stamp.arrival {
            self.arrival.set(at - i128::from(time));
        }
        self.align(stamp, at);
        if let Some(by) = by {
            let others = self.topics.iter_mut().filter(|(channel, _)| **channel != stamp.channel);
            others.for_each(|(_, topic)| topic.offset.shift(by));
        }
    }

    /// Returns true if the next messages continue the replay, so that only the first one is wrong.
    fn is_alone(&self, arrival: Option<i128>, published: Option<i128>, line: i128) -> bool {
        let near = |at: Option<i128>, far: Option<i128>| {
            at.zip(far).is_some_and(|(at, far)| (at - far).abs() <= PAUSE)
        };
        let (mut before, mut behind) = (0, 0);
        for next in self.waiting.iter().skip(1) {
            let Proposed { published: own, arrival: came } = self.proposed(next, line);
            let came_far = next.arrival.map(|time| self.arrival.now(time));
            if near(came_far, arrival) || near(self.expected(next), published) {
                behind += 1;
            } else if own.is_some() || came.is_some() {
                before += 1;
            }
            if before + behind >= VOTES {
                break;
            }
        }
        before > behind
    }

    /// Returns true if a topic that goes on after the pause was regular before it.
    fn is_contradicted(&self, pause: i128) -> bool {
        let regular = |stamp: &MessageTimes| {
            let longest = self.topics.get(&stamp.channel).and_then(Topic::longest_interval);
            longest.is_some_and(|longest| pause > longest.saturating_mul(TIMES_LONGER))
        };
        self.doubts && self.waiting.iter().any(regular)
    }
}

#[cfg(test)]
mod tests;

//! WF²Q+: worst-case fair weighted fair queueing (Bennett & Zhang, SIGCOMM 1996 and ToN 1997).
//!
//! A link that could serve all streams at once, each at its rate, would begin the head of a stream at
//! the virtual start S and end it at the virtual finish F = S + L/r. Of the heads that it would have
//! begun (S ≤ V) the one that it would end first is next. S is where the head before it ended; for a
//! stream that had none, not before V. Virtual time V advances by L/Σr with each segment, Σr over all
//! ranked streams that take part, idle ones too, and is never behind the least S of those that wait. A
//! head that comes while a segment is on its way finds V as it was when that began: taken as it will be
//! at the end, it would cost that head a second segment of delay.
//!
//! With Lmax the longest segment and Σr ≤ C: a backlogged stream is never more than Lmax behind its rate,
//! whatever the others do, and a packet of a leaky bucket (σ, r) waits at most σ/r + Lmax/C. While all
//! streams are backlogged each is within Lmax of the fluid link in both directions. While some are idle
//! it is not quite: the fluid link hands their shares on at once, and V lags behind its virtual time
//! (`tests/fair_bounds.rs`). A stream that leaves and joins again at once has its tag forgotten, so it
//! may gain a segment each time: whoever admits streams waits L/r with that.
//!
//! **Arithmetic.** Tags are virtual seconds in fixed point with 56 bits behind the point. While a stream
//! is backlogged its remainder is carried on, so its tags are its exact tags rounded down, however long
//! it goes on: an error of less than 2^-56 s, which at 2^40 bytes per second is 2^-16 of a byte. V is
//! rounded in the same way, and once more whenever a stream joins or leaves. 70 bits are before the
//! point: a link of 100 GB/s whose only stream has a rate of 1 byte per second uses them up in 370
//! years; tags then stay at the last value, and ties go to the lowest stream index.
//!
//! **What happens to tags.** A head that is withdrawn or missed costs nothing: its S passes to the one
//! that follows. A stream that has none, or is suspended, keeps its S and begins again at V if that is
//! later: it saves nothing up. When nobody waits any more, V moves on to the last tag, so that nothing
//! is held against anybody when they come back.

use super::Terms;
use super::rules::{Arrival, Rules as CoreRules, owed};
use super::stream::Stream;
use crate::time::Instant;
use crate::tournament::{Key, Tournament};

/// Bits of virtual time behind the point, in seconds.
const FRACTION: u32 = 56;
/// The rank of heads that are not eligible: the last of their class.
const NOT_ELIGIBLE: u128 = owed(u128::MAX);
/// The last tag.
const LAST: u128 = NOT_ELIGIBLE - 1;

/// Virtual time, and who waits for it.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    now: Tag,
    /// Virtual time when the segment that left last has ended: now, from the next pick on.
    ended: Tag,
    /// The latest tag so far.
    latest: u128,
    /// Σr of all ranked streams that take part, at least 1.
    rates: u64,
    /// How many of them have a head and are not suspended.
    backlogged: u32,
    /// The heads that are not eligible, by S: up to 24 bytes for each stream.
    waiting: Tournament<u128>,
}

impl Default for Rules {
    fn default() -> Self {
        let now = Tag { at: 0, carry: 0 };
        Self { now, ended: now, latest: 0, rates: 0, backlogged: 0, waiting: Tournament::new() }
    }
}

/// A point of virtual time.
#[derive(Clone, Copy, Debug)]
struct Tag {
    at: u128,
    /// What was rounded away, in units of 1/rate.
    carry: u64,
}

impl Tag {
    /// `bytes` at `rate` later. A segment counts as a byte at least: nothing is for free.
    fn after(self, bytes: u32, rate: u64) -> Self {
        let rate = u128::from(rate.max(1));
        let units = (u128::from(bytes.max(1)) << FRACTION) + u128::from(self.carry);
        let carry = u64::try_from(units % rate).unwrap_or_default();
        Self { at: (self.at + units / rate).min(LAST), carry }
    }
}

/// Of one stream: 48 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// S of its head; without one, F of the last.
    start: Tag,
    rate: u64,
    index: u32,
}

impl Rules {
    /// The stream had nothing to be picked and has now.
    fn begin(&mut self, share: &mut Share) {
        self.backlogged += 1;
        if share.start.at < self.now.at {
            share.start = Tag { at: self.now.at, carry: 0 };
        }
    }

    /// The stream has nothing to be picked any more.
    fn end(&mut self, share: &Share) {
        self.waiting.set(share.index, Key::ABSENT);
        self.backlogged = self.backlogged.saturating_sub(1);
        if self.backlogged == 0 {
            self.now = self.ended;
            if self.now.at < self.latest {
                self.set_now(self.latest);
            }
        }
    }

    /// Virtual time jumps to `at`.
    const fn set_now(&mut self, at: u128) {
        self.now = Tag { at, carry: 0 };
        self.ended = self.now;
    }

    /// Another Σr: what was carried was counted in the last one.
    const fn set_rates(&mut self, rates: u64) {
        (self.rates, self.ended.carry) = (rates, 0);
    }
}

/// The rank of an eligible head: F.
fn finish(stream: &Stream<Share>) -> u128 {
    stream.own.start.after(stream.segment, stream.own.rate).at
}

impl CoreRules for Rules {
    type Own = Share;

    fn reserve(&mut self, streams: usize) {
        self.waiting.grow(streams);
    }

    fn open(&mut self, terms: &Terms) -> Share {
        let rate = terms.share();
        if terms.ranks() {
            self.set_rates(self.rates.saturating_add(rate));
        }
        Share { start: Tag { at: 0, carry: 0 }, rate, index: 0 }
    }

    fn announced(&mut self, stream: &mut Stream<Share>, arrival: Arrival) {
        stream.own.index = arrival.index.0;
        if stream.ranks() && !stream.suspended && !arrival.follows {
            self.begin(&mut stream.own);
        }
    }

    fn rank(&mut self, stream: &mut Stream<Share>) -> Option<u128> {
        if !stream.ranks() {
            return None;
        }
        if stream.suspended {
            return Some(NOT_ELIGIBLE);
        }
        let Share { start, index, .. } = stream.own;
        if start.at <= self.now.at {
            self.waiting.set(index, Key::ABSENT);
            return Some(owed(finish(stream)));
        }
        self.waiting.set(index, start.at);
        Some(NOT_ELIGIBLE)
    }

    fn sent(&mut self, stream: &mut Stream<Share>, bytes: u32) -> Option<u128> {
        self.now = self.ended;
        self.ended = self.now.after(bytes, self.rates);
        let share = &mut stream.own;
        share.start = share.start.after(bytes, share.rate);
        self.latest = self.latest.max(share.start.at);
        if stream.has_head() { self.rank(stream) } else { None }
    }

    fn prepare(
        &mut self,
        _: Instant,
        streams: &mut [Option<Stream<Share>>],
        ranks: &mut Tournament<u128>,
    ) {
        self.now = self.ended;
        loop {
            let (start, slot) = self.waiting.best();
            if start == Key::ABSENT {
                return;
            }
            if start > self.now.at {
                if ranks.best().0 < NOT_ELIGIBLE {
                    return;
                }
                // Whoever waits has nobody to wait for.
                self.set_now(start);
            }
            self.waiting.set(slot, Key::ABSENT);
            if let Some(Some(stream)) = streams.get(slot as usize) {
                ranks.set(slot, owed(finish(stream)));
            }
        }
    }

    fn emptied(&mut self, stream: &mut Stream<Share>) {
        if stream.ranks() && !stream.suspended {
            self.end(&stream.own);
        }
    }

    fn suspended(&mut self, stream: &mut Stream<Share>) {
        if stream.ranks() && stream.has_head() {
            self.end(&stream.own);
        }
    }

    fn resumed(&mut self, stream: &mut Stream<Share>) {
        if stream.ranks() && stream.has_head() {
            self.begin(&mut stream.own);
        }
    }

    fn closed(&mut self, stream: &mut Stream<Share>) {
        if !stream.ranks() {
            return;
        }
        if !stream.suspended && stream.has_head() {
            self.end(&stream.own);
        }
        self.set_rates(self.rates.saturating_sub(stream.own.rate));
    }
}

#[cfg(test)]
mod tests;

//! WF²Q+: worst-case fair weighted fair queueing (Bennett & Zhang, SIGCOMM 1996 and ToN 1997).
//!
//! The model is a fluid link that serves all streams at once, each at its rate. It begins the head of a
//! stream at the virtual start S and ends it at the virtual finish F = S + L/r. A head is eligible if
//! the fluid link would have begun it (S ≤ V). The eligible head with the lowest F is sent next. S is
//! the finish of the preceding head; for a stream that had none, it is at least V.
//!
//! Virtual time V advances by L/Σr with each segment. Σr includes all ranked streams, also idle ones. V
//! is never behind the lowest S of the waiting heads. A head that arrives during a segment uses V as of
//! the segment's start. With V as of its end, that head would wait for a second segment.
//!
//! Let Lmax be the longest segment and Σr ≤ C. A backlogged stream is never more than Lmax behind its
//! rate, whatever the others do. A packet of a leaky bucket (σ, r) waits at most σ/r + Lmax/C. While all
//! streams are backlogged, each is within Lmax of the fluid link in both directions. While some are idle
//! the difference can be larger: the fluid link distributes their shares at once, and V lags behind its
//! virtual time (`tests/fair_bounds.rs`). A stream that leaves and joins again at once loses its tag, so
//! it may gain one segment each time. Admission must therefore wait L/r before such a stream joins
//! again.
//!
//! **Arithmetic.** Tags are virtual seconds in fixed point with 56 fraction bits. While a stream is
//! backlogged its rounding remainder is carried over. Its tags are then the exact tags rounded down, for
//! any length of time. The error is below 2^-56 s, which at 2^40 bytes per second is 2^-16 of a byte. V
//! is rounded in the same manner, and once more whenever a stream joins or leaves. The integer part has
//! 70 bits. A link of 100 GB/s whose only stream has a rate of 1 byte per second uses them up in 370
//! years; tags then saturate, and ties are resolved by the lowest stream index.
//!
//! **Tags.** A head that is withdrawn or missed costs nothing: its S passes to the following head. A
//! stream without a head, or a suspended one, keeps its S and begins again at V if that is later, so it
//! accumulates no credit. When no stream is backlogged any more, V advances to the last tag, so that
//! returning streams carry no penalty.

use super::Terms;
use super::rules::{Arrival, Rules as CoreRules, owed};
use super::stream::Stream;
use crate::time::Instant;
use crate::tournament::{Key, Tournament};

/// The fraction bits of virtual time, which is in seconds.
const FRACTION: u32 = 56;
/// The rank of heads that are not eligible: the last of their class.
const NOT_ELIGIBLE: u128 = owed(u128::MAX);
/// The last tag.
const LAST: u128 = NOT_ELIGIBLE - 1;

/// Virtual time and the heads that are not yet eligible.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    now: Tag,
    /// Virtual time at the end of the last segment; it takes effect at the next pick.
    ended: Tag,
    /// The latest tag so far.
    latest: u128,
    /// Σr of all ranked streams, at least 1.
    rates: u64,
    /// The number of ranked streams that have a head and are not suspended.
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

/// A point in virtual time.
#[derive(Clone, Copy, Debug)]
struct Tag {
    at: u128,
    /// The rounding remainder in units of 1/rate.
    carry: u64,
}

impl Tag {
    /// Returns the tag `bytes` at `rate` later. A segment counts as at least one byte, so that none is
    /// free.
    fn after(self, bytes: u32, rate: u64) -> Self {
        let rate = u128::from(rate.max(1));
        let units = (u128::from(bytes.max(1)) << FRACTION) + u128::from(self.carry);
        let carry = u64::try_from(units % rate).unwrap_or_default();
        Self { at: (self.at + units / rate).min(LAST), carry }
    }
}

/// The tags of one stream: 48 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// S of the head; without a head, F of the last one.
    start: Tag,
    rate: u64,
    index: u32,
}

impl Rules {
    /// Handles a stream that becomes backlogged.
    fn begin(&mut self, share: &mut Share) {
        self.backlogged += 1;
        if share.start.at < self.now.at {
            share.start = Tag { at: self.now.at, carry: 0 };
        }
    }

    /// Handles a stream that is no longer backlogged.
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

    /// Sets virtual time to `at`.
    const fn set_now(&mut self, at: u128) {
        self.now = Tag { at, carry: 0 };
        self.ended = self.now;
    }

    /// Changes Σr and drops the remainder, which was in units of the old one.
    const fn set_rates(&mut self, rates: u64) {
        (self.rates, self.ended.carry) = (rates, 0);
    }
}

/// Returns the rank of an eligible head, F.
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
                // Only ineligible heads wait, so virtual time advances to the first of them.
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

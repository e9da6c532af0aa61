//! One stream of a hop whose frames may be lost: what came is delivered once and in order.
//!
//! *Selective*: a sample behind a gap waits until the gap is mended, until the sender gives up what is
//! missing, or until it would itself come too late. *None*: it waits only as long as what is missing may
//! merely have been overtaken. *Go-back-n*: nothing waits; what does not come in its turn is refused,
//! and a frame that brought it counts as not arrived, so that the sender says it again.

use super::assembly::Assembly;
use crate::reason::DropReason;
use crate::retransmit::Retransmit;
use crate::sample::Kind;
use crate::wire::segment::{Mend, SampleHead};
use crate::wire::{NUMBER_STEP_MAX, SAMPLE_BYTES_MAX};
use bytes::Bytes;
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// How far a sample may be ahead of the first that is missing.
const AHEAD_MAX: u64 = 4_096;
/// A sample that waits takes this much memory in addition to its pieces, as an estimate.
const SAMPLE_COST: usize = 512;
/// How long what came waits for what is missing where nobody said how long it may.
const HOLD_MAX: Duration = Duration::from_secs(4);
/// What may merely have been overtaken is waited for so long at most.
const OVERTAKEN_MAX: Duration = Duration::from_millis(10);

/// A piece of a sample as it came.
#[derive(Debug)]
pub(super) struct Came {
    pub(super) number: u64,
    pub(super) head: Option<SampleHead>,
    pub(super) offset: usize,
    pub(super) last: bool,
    pub(super) payload: Bytes,
    /// Half the least round trip: what a head's age grows by on its way.
    pub(super) half_round_trip: Duration,
}

/// What is delivered, or never will be.
#[derive(Debug)]
pub(super) enum Sorted {
    Sample(SampleHead, Instant, Bytes),
    Lost(u64, DropReason, Option<Kind>),
}

/// A sample that has begun to come.
#[derive(Debug)]
struct Held {
    head: Option<(SampleHead, Instant)>,
    assembly: Assembly,
    /// When anything of it last came.
    since: Instant,
    /// The frame that brought its newest piece.
    frame: u64,
    /// The sender will not send the rest, or it makes no sense.
    given_up: Option<DropReason>,
}

impl Held {
    /// Bytes of memory that it takes, as an estimate.
    fn cost(&self) -> usize {
        SAMPLE_COST + self.assembly.cost()
    }

    fn is_whole(&self) -> bool {
        self.given_up.is_none() && self.head.is_some() && self.assembly.is_whole()
    }
}

/// Which frames are still missing that may merely have been overtaken: those of the last three numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Missing {
    /// The lowest of them; none if there is none.
    pub(super) first: Option<u64>,
}

/// The state of one stream.
#[derive(Debug, Default)]
pub(super) struct Sorter {
    mend: Mend,
    /// The number of the next sample to deliver.
    next: u64,
    /// Before this number nothing is waited for any more: too much came behind it.
    waits_from: u64,
    held: BTreeMap<u64, Held>,
    bytes: usize,
    half_round_trip: Duration,
    /// The hop went down since the last sample: the samples before the next one were lost with it.
    parted: bool,
}

impl Sorter {
    /// Sets how it is repaired. Samples before `mend.first` were sent while the hop was up before, and are lost; of a
    /// number that cannot be none counts as lost.
    pub(super) fn set_mend(&mut self, mend: Mend, out: &mut Vec<Sorted>) {
        self.mend = mend;
        if self.next.saturating_add(NUMBER_STEP_MAX) < mend.first {
            self.part(out);
            self.next = self.next.max(mend.first);
        } else if self.next < mend.first {
            self.parted = true;
            self.skip_to(mend.first, out);
        }
    }

    /// The hop went down: what is whole is delivered, and the rest is lost.
    pub(super) fn part(&mut self, out: &mut Vec<Sorted>) {
        self.flush(DropReason::LinkDown, out);
        self.parted = true;
    }

    /// No sample below `number` will arrive any more.
    pub(super) fn skip_to(&mut self, number: u64, out: &mut Vec<Sorted>) {
        if let Some(before) = number.checked_sub(1) {
            self.release_to(Some(before), out);
        }
        let reason = if self.parted { DropReason::LinkDown } else { DropReason::LinkLoss };
        self.parted = false;
        let samples = number.saturating_sub(self.next);
        if samples > 0 {
            out.push(Sorted::Lost(samples, reason, None));
            self.next = number;
        }
    }

    /// The number of the next sample to deliver.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// Bytes of memory that it holds, as an estimate.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes a piece that frame `frame` brought; false if it came out of its turn and is to be sent
    /// again.
    pub(super) fn put(&mut self, now: Instant, frame: u64, came: Came, room: usize) -> bool {
        let Came { number, head, offset, last, payload, half_round_trip } = came;
        self.half_round_trip = half_round_trip;
        if number < self.next {
            return true;
        }
        if self.mend.retransmit == Retransmit::GoBackN {
            let have = self.held.get(&number).map_or(0, |held| held.assembly.have());
            if number > self.in_turn() || offset > have {
                return false;
            }
        }
        self.waits_from = self.waits_from.max(number.saturating_sub(AHEAD_MAX));
        let fits = payload.len() <= room && offset + payload.len() <= SAMPLE_BYTES_MAX;
        self.hold(now, frame, number, room);
        let Some(held) = self.held.get_mut(&number) else { return true };
        held.frame = held.frame.max(frame);
        if held.given_up.is_some() {
            return true;
        }
        let (before, cost) = (held.assembly.have(), held.cost());
        let end = offset + payload.len();
        let mut agrees = fits && (!last || held.assembly.set_total(end));
        if let Some(head) = head {
            agrees &= held.assembly.set_total(head.total);
            let born = now - head.age.saturating_add(half_round_trip);
            held.head.get_or_insert((head, born));
        }
        agrees = agrees && held.assembly.put(offset, payload);
        if held.assembly.have() > before || held.is_whole() {
            held.since = now;
        }
        if !agrees {
            held.assembly = Assembly::default();
            held.given_up = Some(if fits { DropReason::LinkLoss } else { DropReason::TooLarge });
        }
        self.bytes = self.bytes - cost + held.cost();
        true
    }

    /// Makes a place for a sample that is new. If there is no room for it, nothing before it is waited for any more, and
    /// it is lost itself.
    fn hold(&mut self, now: Instant, frame: u64, number: u64, room: usize) {
        let Entry::Vacant(place) = self.held.entry(number) else { return };
        if room < SAMPLE_COST {
            self.waits_from = self.waits_from.max(number);
            return;
        }
        let (head, assembly, since, given_up) = (None, Assembly::default(), now, None);
        place.insert(Held { head, assembly, since, frame, given_up });
        self.bytes += SAMPLE_COST;
    }

    /// The sample whose turn it is: what came in the frame at hand is not delivered yet.
    fn in_turn(&self) -> u64 {
        self.held.last_key_value().map_or(self.next, |(number, held)| {
            number + u64::from(held.is_whole() || held.given_up.is_some())
        })
    }

    /// The sender gives up a sample; false if that came out of its turn.
    pub(super) fn abort(&mut self, now: Instant, frame: u64, number: u64, room: usize) -> bool {
        if number < self.next {
            return true;
        }
        if self.mend.retransmit == Retransmit::GoBackN && number > self.in_turn() {
            return false;
        }
        self.waits_from = self.waits_from.max(number.saturating_sub(AHEAD_MAX));
        self.hold(now, frame, number, room);
        let Some(held) = self.held.get_mut(&number) else { return true };
        // The sender may not know yet that all of it came.
        if !held.is_whole() && held.given_up.is_none() {
            let cost = held.cost();
            held.assembly = Assembly::default();
            held.given_up = Some(DropReason::DeadlineMissed);
            self.bytes = self.bytes - cost + held.cost();
        }
        true
    }

    /// What may be delivered by now, or has to be given up, in order.
    pub(super) fn release(&mut self, now: Instant, missing: Missing, out: &mut Vec<Sorted>) {
        let forced =
            |(number, held): (&u64, &Held)| self.is_forced(now, missing, held).then_some(*number);
        // Everything before it is given up if it is not there.
        let force = self.held.iter().rev().find_map(forced);
        let force = force.max(self.waits_from.checked_sub(1));
        self.release_to(force, out);
    }

    /// The stream is over: what is whole is delivered, the rest is not coming.
    pub(super) fn flush(&mut self, reason: DropReason, out: &mut Vec<Sorted>) {
        let last = self.held.keys().next_back().copied();
        for held in self.held.values_mut().filter(|held| !held.is_whole()) {
            held.given_up.get_or_insert(reason);
        }
        self.release_to(last, out);
    }

    fn release_to(&mut self, force: Option<u64>, out: &mut Vec<Sorted>) {
        while let Some((&number, held)) = self.held.first_key_value() {
            let forced = force.is_some_and(|force| number <= force);
            let gap = number - self.next;
            if gap > 0 {
                if !forced {
                    return;
                }
                out.push(Sorted::Lost(gap, DropReason::LinkLoss, None));
                self.next = number;
            }
            if !held.is_whole() && held.given_up.is_none() && !forced {
                return;
            }
            let Some(held) = self.held.remove(&number) else { return };
            self.bytes -= held.cost();
            self.next = number + 1;
            let whole = held.is_whole();
            let reason = held.given_up.unwrap_or(DropReason::LinkLoss);
            match held.head {
                Some((head, born)) if whole => {
                    out.push(Sorted::Sample(head, born, held.assembly.join()));
                }
                head => out.push(Sorted::Lost(1, reason, head.map(|(head, _)| head.kind))),
            }
        }
    }

    /// True if what came waits no longer for what is missing before it.
    fn is_forced(&self, now: Instant, missing: Missing, held: &Held) -> bool {
        let settled = match self.mend.retransmit {
            Retransmit::None => missing.first.is_none_or(|first| first > held.frame),
            Retransmit::GoBackN | Retransmit::Selective => false,
        };
        (held.is_whole() || held.given_up.is_some()) && settled || now >= self.until(held)
    }

    /// How long what came waits.
    fn until(&self, held: &Held) -> Instant {
        match (self.mend.retransmit, self.mend.hold, &held.head) {
            (Retransmit::None, _, _) if held.is_whole() || held.given_up.is_some() => {
                let quarter = self.half_round_trip.mul_div(1, 4);
                held.since + quarter.max(Duration::from_millis(1)).min(OVERTAKEN_MAX)
            }
            // In time itself, if whoever is behind this hop gets it at once.
            (_, Some(hold), Some((_, born))) if held.is_whole() => (*born + hold).max(held.since),
            (_, Some(hold), _) => held.since + hold.min(HOLD_MAX),
            (_, None, _) => held.since + HOLD_MAX,
        }
    }

    /// When something has to be given up if nothing comes before.
    pub(super) fn next_timeout(&self) -> Instant {
        self.held.values().map(|held| self.until(held)).min().unwrap_or(Instant::FAR)
    }
}

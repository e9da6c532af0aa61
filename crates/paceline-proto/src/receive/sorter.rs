//! Ordering of one stream on a carrier that may lose frames: delivers each sample once and in order.
//!
//! *Selective*: a sample behind a gap is buffered until the gap is repaired or given up by the sender, or
//! until the sample itself would be late. *None*: it is buffered only as long as the missing samples may
//! merely be reordered. *Go-back-n*: nothing is buffered. Samples out of order are refused, and their frame
//! counts as not received, so that the sender retransmits them.

use super::assembly::Assembly;
use super::lost::Lost;
use crate::reason::DropReason;
use crate::retransmit::Retransmit;
use crate::wire::segment::{Retransmission, SampleHead};
use crate::wire::{NUMBER_STEP_MAX, SAMPLE_BYTES_MAX};
use bytes::Bytes;
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The maximum distance of a sample from the first missing one.
const AHEAD_MAX: u64 = 4_096;
/// The estimated memory of a buffered sample in addition to its pieces, in bytes.
const SAMPLE_COST: usize = 512;
/// The maximum buffering time if the sender states none.
const HOLD_MAX: Duration = Duration::from_secs(4);
/// The maximum time to wait for reordered frames.
const OVERTAKEN_MAX: Duration = Duration::from_millis(10);

/// A received piece of a sample.
#[derive(Debug)]
pub(super) struct Came {
    pub(super) number: u64,
    pub(super) head: Option<SampleHead>,
    pub(super) offset: usize,
    pub(super) last: bool,
    pub(super) payload: Bytes,
    /// Half the minimum round trip, which estimates the path delay.
    pub(super) half_round_trip: Duration,
}

/// An ordered result: a sample, or a loss.
#[derive(Debug)]
pub(super) enum Sorted {
    Sample(SampleHead, Instant, Bytes),
    Lost(Lost),
}

/// A sample that has begun to arrive.
#[derive(Debug)]
struct Held {
    head: Option<(SampleHead, Instant)>,
    assembly: Assembly,
    /// The arrival time of its newest content.
    since: Instant,
    /// The number of the frame with its newest piece.
    frame: u64,
    /// The reason why it will not be completed: the sender gave it up, or its pieces contradict each other.
    given_up: Option<DropReason>,
}

impl Held {
    /// Returns its estimated memory, in bytes.
    fn cost(&self) -> usize {
        SAMPLE_COST + self.assembly.cost()
    }

    fn is_whole(&self) -> bool {
        self.given_up.is_none() && self.head.is_some() && self.assembly.is_whole()
    }
}

/// The missing frames that may merely be reordered: those among the last three numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Missing {
    /// The lowest of them, if any.
    pub(super) first: Option<u64>,
}

/// The state of one stream.
#[derive(Debug, Default)]
pub(super) struct Sorter {
    retransmission: Retransmission,
    /// The number of the next sample to deliver.
    next: u64,
    /// Samples below this number are no longer waited for, because too much has arrived behind them.
    waits_from: u64,
    held: BTreeMap<u64, Held>,
    bytes: usize,
    half_round_trip: Duration,
    /// The hop went down since the last sample, which explains samples missing before the next one.
    parted: bool,
}

impl Sorter {
    /// Sets the retransmission mode. Samples before `retransmission.first` were sent before the hop last came up, and
    /// are lost. If that number is impossible, none counts as lost.
    pub(super) fn set_retransmission(
        &mut self,
        retransmission: Retransmission,
        out: &mut Vec<Sorted>,
    ) {
        self.retransmission = retransmission;
        if self.next.saturating_add(NUMBER_STEP_MAX) < retransmission.first {
            self.part(out);
            self.next = self.next.max(retransmission.first);
        } else if self.next < retransmission.first {
            self.parted = true;
            self.skip_to(retransmission.first, out);
        }
    }

    /// Delivers complete samples and drops the rest after the hop went down.
    pub(super) fn part(&mut self, out: &mut Vec<Sorted>) {
        self.flush(DropReason::LinkDown, out);
        self.parted = true;
    }

    /// Reports all samples below `number` that have not arrived as lost.
    pub(super) fn skip_to(&mut self, number: u64, out: &mut Vec<Sorted>) {
        if let Some(before) = number.checked_sub(1) {
            self.release_to(Some(before), out);
        }
        let reason = if self.parted { DropReason::LinkDown } else { DropReason::LinkLoss };
        self.parted = false;
        let samples = number.saturating_sub(self.next);
        if samples > 0 {
            out.push(Sorted::Lost(Lost::unseen(samples, reason)));
            self.next = number;
        }
    }

    /// Returns the number of the next sample to deliver.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// Returns the estimated memory of the buffered samples, in bytes.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the arrival time of the first sample that waits.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.held.values().next().map(|held| held.since)
    }

    /// Returns the arrival time and the number of the newest sample that is not whole.
    pub(super) fn newest(&self) -> Option<(Instant, u64)> {
        let begun = |held: &&Held| !held.is_whole() && held.assembly.have() > 0;
        let all = self.held.iter().filter(|(_, held)| begun(held));
        all.map(|(number, held)| (held.since, *number)).max()
    }

    /// Delivers the first sample, or drops it for this reason if it is not whole.
    pub(super) fn drop_first(&mut self, reason: DropReason, out: &mut Vec<Sorted>) {
        let Some(mut first) = self.held.first_entry() else { return };
        if !first.get().is_whole() {
            first.get_mut().given_up.get_or_insert(reason);
        }
        let number = *first.key();
        self.release_to(Some(number), out);
    }

    /// Gives up the newest sample that is not whole. It waits for its turn, without content.
    pub(super) fn refuse_newest(&mut self, reason: DropReason) {
        let newest = self.newest().and_then(|(_, number)| self.held.get_mut(&number));
        let Some(held) = newest else { return };
        let cost = held.cost();
        held.assembly = Assembly::default();
        held.given_up = Some(reason);
        self.bytes = self.bytes - cost + held.cost();
    }

    /// Adds a piece received in frame `frame`. Returns `false` if it is out of order and must be
    /// retransmitted.
    pub(super) fn put(&mut self, now: Instant, frame: u64, came: Came, room: usize) -> bool {
        let Came { number, head, offset, last, payload, half_round_trip } = came;
        self.half_round_trip = half_round_trip;
        if number < self.next {
            return true;
        }
        if self.retransmission.retransmit == Retransmit::GoBackN {
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
            let published_at = now - head.age.saturating_add(half_round_trip);
            held.head.get_or_insert((head, published_at));
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

    /// Creates the entry of a new sample. Without room, the sample is lost, and earlier ones are no longer
    /// waited for.
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

    /// Returns the number of the next sample that go-back-n accepts. Samples of the current frame are not
    /// delivered yet.
    fn in_turn(&self) -> u64 {
        self.held.last_key_value().map_or(self.next, |(number, held)| {
            number + u64::from(held.is_whole() || held.given_up.is_some())
        })
    }

    /// Records that the sender gives up a sample. Returns `false` if that is out of order.
    pub(super) fn abort(&mut self, now: Instant, frame: u64, number: u64, room: usize) -> bool {
        if number < self.next {
            return true;
        }
        if self.retransmission.retransmit == Retransmit::GoBackN && number > self.in_turn() {
            return false;
        }
        self.waits_from = self.waits_from.max(number.saturating_sub(AHEAD_MAX));
        self.hold(now, frame, number, room);
        let Some(held) = self.held.get_mut(&number) else { return true };
        // The sample may be complete although the sender does not know that yet.
        if !held.is_whole() && held.given_up.is_none() {
            let cost = held.cost();
            held.assembly = Assembly::default();
            held.given_up = Some(DropReason::DeadlineMissed);
            self.bytes = self.bytes - cost + held.cost();
        }
        true
    }

    /// Delivers or gives up samples as far as possible at `now`, in order.
    pub(super) fn release(&mut self, now: Instant, missing: Missing, out: &mut Vec<Sorted>) {
        let forced =
            |(number, held): (&u64, &Held)| self.is_forced(now, missing, held).then_some(*number);
        // Samples before it that are incomplete are given up.
        let force = self.held.iter().rev().find_map(forced);
        let force = force.max(self.waits_from.checked_sub(1));
        self.release_to(force, out);
    }

    /// Ends the stream: delivers complete samples and gives up the others.
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
                out.push(Sorted::Lost(Lost::unseen(gap, DropReason::LinkLoss)));
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
                Some((head, published_at)) if whole => {
                    out.push(Sorted::Sample(head, published_at, held.assembly.join()));
                }
                head => {
                    let begun = head.map(|(head, _)| (head.seq, head.kind));
                    out.push(Sorted::Lost(Lost { samples: 1, reason, begun }));
                }
            }
        }
    }

    /// Returns `true` if a sample no longer waits for missing ones before it.
    fn is_forced(&self, now: Instant, missing: Missing, held: &Held) -> bool {
        let settled = match self.retransmission.retransmit {
            Retransmit::None => missing.first.is_none_or(|first| first > held.frame),
            Retransmit::GoBackN | Retransmit::Selective => false,
        };
        (held.is_whole() || held.given_up.is_some()) && settled || now >= self.until(held)
    }

    /// Returns the time until which a sample is buffered.
    fn until(&self, held: &Held) -> Instant {
        match (self.retransmission.retransmit, self.retransmission.hold, &held.head) {
            (Retransmit::None, _, _) if held.is_whole() || held.given_up.is_some() => {
                let quarter = self.half_round_trip.mul_div(1, 4);
                held.since + quarter.max(Duration::from_millis(1)).min(OVERTAKEN_MAX)
            }
            // The sample itself is still in time if the next hop receives it at once.
            (_, Some(hold), Some((_, published_at))) if held.is_whole() => {
                (*published_at + hold).max(held.since)
            }
            (_, Some(hold), _) => held.since + hold.min(HOLD_MAX),
            (_, None, _) => held.since + HOLD_MAX,
        }
    }

    /// Returns the time at which a sample must be given up if nothing arrives before.
    pub(super) fn next_timeout(&self) -> Instant {
        self.held.values().map(|held| self.until(held)).min().unwrap_or(Instant::FAR)
    }
}

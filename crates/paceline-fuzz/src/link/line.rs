//! One stream of the model.

use super::Setup;
use super::frame::on_wire;
use paceline_proto::form::Rate;
use paceline_proto::link::StreamSpec;
use paceline_proto::{DropReason, RawSample};
use paceline_sched::{Contract, Duration, Instant, Late};
use std::collections::BTreeSet;

/// The head of a stream, as announced to the discipline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) arrived: Instant,
    /// Its position in the order of all heads of the link.
    pub(super) serial: u64,
    /// Until then the head is ahead of its period.
    pub(super) release: Instant,
    pub(super) deadline: Instant,
    /// The head was already counted as met or missed.
    pub(super) counted: bool,
    /// It waited before its stream got a contract, and is served as best effort.
    pub(super) demoted: bool,
}

/// Counters of a stream's samples.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Counts {
    pub(super) offered: u64,
    pub(super) sent: u64,
    pub(super) bytes: u64,
    pub(super) late: u64,
    pub(super) drops: Vec<DropReason>,
}

#[derive(Debug)]
pub(super) struct Line {
    pub(super) spec: StreamSpec,
    /// The stream's number on the wire.
    pub(super) id: u32,
    pub(super) up: bool,
    pub(super) announced: bool,
    pub(super) queue: Vec<RawSample>,
    /// The number of samples from before the contract, which are all that are queued.
    demoted: usize,
    pub(super) head: Option<Head>,
    /// The link remembers that a late head waits here.
    pub(super) noted: bool,
    /// Bytes sent of the head; `None` before its first piece.
    pub(super) begun: Option<usize>,
    /// The number of the current sample, or of the next one whose transmission begins.
    pub(super) number: u64,
    next_release: Instant,
    /// Whether each sample since the start of the contract missed its deadline.
    misses: Vec<bool>,
    violations_before: u64,
    /// The position of the next requested sample, if known.
    expected: Option<u64>,
    /// Streams served in round robin since this head began to wait.
    pub(super) passed: BTreeSet<u32>,
    pub(super) counts: Counts,
}

impl Line {
    pub(super) fn new(spec: StreamSpec, id: u32, up: bool) -> Self {
        Self {
            spec,
            id,
            up,
            announced: false,
            queue: Vec::new(),
            demoted: 0,
            head: None,
            noted: false,
            begun: None,
            number: 0,
            next_release: Instant::ZERO,
            misses: Vec::new(),
            violations_before: 0,
            expected: None,
            passed: BTreeSet::new(),
            counts: Counts::default(),
        }
    }

    /// Returns the most samples that may be queued.
    ///
    /// These are the samples that fit into the deadline, the slack of later hops and the permitted earliness,
    /// plus two.
    fn limit(&self) -> usize {
        self.spec.contract.map_or(256, |contract| {
            let early = self.spec.upstream.saturating_add(contract.jitter);
            let waits = contract.deadline.saturating_add(self.spec.slack).saturating_add(early);
            let periods = waits.as_nanos() / contract.period.as_nanos();
            usize::try_from(periods).unwrap().clamp(2, 254) + 2
        })
    }

    fn newest_only(&self) -> bool {
        self.spec.contract.is_none() && self.spec.kind.is_replaced()
    }

    pub(super) fn has_room(&self) -> bool {
        let bytes: usize = self.queue.iter().map(|sample| sample.payload.len()).sum();
        let gives_way = self.demoted > 0;
        !self.up
            || self.newest_only()
            || gives_way
            || self.queue.len() < self.limit() && bytes < 4 << 20
    }

    /// Returns true if the next sample to serve is under a contract.
    pub(super) fn is_promised(&self) -> bool {
        self.spec.contract.is_some() && self.demoted == 0
    }

    /// Returns false if the sample was dropped.
    pub(super) fn offer(&mut self, now: Instant, sample: RawSample, serial: &mut u64) -> bool {
        self.counts.offered += 1;
        if !self.up {
            self.counts.drops.push(DropReason::LinkDown);
            return false;
        }
        self.count_up_to(&sample);
        let mut replaces = false;
        if self.newest_only() {
            // Without a contract it takes over the position of the sample that it replaces.
            replaces = self.spec.contract.is_none() && self.begun.is_none() && self.head.is_some();
            let kept = usize::from(self.begun.is_some());
            let dropped = self.queue.split_off(kept.min(self.queue.len()));
            self.counts.drops.extend(dropped.iter().map(|_| DropReason::Superseded));
        } else if !self.has_room() {
            self.counts.drops.push(DropReason::QueueFull);
            // The next sample will reveal the gap.
            self.expected = self.place_of(&sample);
            return false;
        }
        self.queue.push(sample);
        if self.queue.len() == 1 && !replaces {
            self.announce(now, serial);
        }
        true
    }

    /// Makes the first queued sample the head.
    pub(super) fn announce(&mut self, now: Instant, serial: &mut u64) {
        self.passed.clear();
        self.head = None;
        let Some(first) = self.queue.first() else { return };
        *serial += 1;
        let arrived = (first.published_at + self.spec.upstream).min(now);
        let (mut release, mut deadline) = (arrived, Instant::FAR);
        if let Some(contract) = self.spec.contract {
            // As early as it arrived, if the contract and its jitter permit.
            if self.demoted == 0 {
                release = arrived.max(self.next_release - contract.jitter);
                self.next_release = self.next_release.max(arrived) + contract.period;
            }
            deadline = release + contract.deadline;
        }
        let (serial, demoted) = (*serial, self.demoted > 0);
        self.head = Some(Head { arrived, serial, release, deadline, counted: false, demoted });
    }

    /// Drops the samples from before the contract in favour of one under it. Returns the number of the head if its
    /// transmission had begun.
    pub(super) fn give_way(&mut self) -> Option<u64> {
        if self.demoted == 0 {
            return None;
        }
        let begun = self.begun.is_some().then_some(self.number);
        let judged = usize::from(self.head.take().is_some_and(|head| head.counted));
        self.misses.extend((judged..self.demoted).map(|_| true));
        self.counts.drops.extend(self.queue.drain(..).map(|_| DropReason::Superseded));
        self.number += u64::from(begun.is_some());
        (self.demoted, self.begun) = (0, None);
        begun
    }

    /// Changes the contract. A new contract starts new periods, and a new window unless its loss tolerance is that of the
    /// one before. An equal contract changes nothing.
    pub(super) fn update(&mut self, now: Instant, spec: StreamSpec, serial: &mut u64) {
        let terms = |spec: &StreamSpec| (contract(spec), spec.background);
        if terms(&self.spec) == terms(&spec) {
            self.spec = spec;
            return;
        }
        let loss = |spec: &StreamSpec| spec.contract.map(|contract| contract.loss);
        let continues = self.up && loss(&spec).is_some() && loss(&self.spec) == loss(&spec);
        if continues {
            self.uncount_head();
            self.next_release = Instant::ZERO;
        } else {
            self.forget_contract();
        }
        let gets_contract = self.spec.contract.is_none() && spec.contract.is_some();
        self.spec = spec;
        if gets_contract {
            self.demoted = self.queue.len();
        } else if self.spec.contract.is_none() {
            self.demoted = 0;
        }
        if self.up {
            if !continues {
                self.count_queue();
            }
            self.announce(now, serial);
        }
    }

    /// Aligns a new window by the samples in the queue.
    fn count_queue(&mut self) {
        let place = |sample: Option<&RawSample>| sample.and_then(|sample| self.place_of(sample));
        let (first, last) = (place(self.queue.first()), place(self.queue.last()));
        self.expected = last.map(|last| last + 1);
        if let (Some(first), Some(last)) = (first, last) {
            self.count_unseen(first);
            self.count_absent(last + 1 - first - self.queue.len() as u64, true);
        }
    }

    /// Removes the result of a head that was counted before it ends, because it will be counted again. If it was the last
    /// of its window, the misses before it are forgotten.
    fn uncount_head(&mut self) {
        let window = usize::try_from(self.window()).unwrap();
        if window == 0 || !self.head.is_some_and(|head| head.counted) {
            return;
        }
        let before = self.violations();
        let counted = self.misses.len() % window;
        let last = self.misses.iter().rposition(|missed| *missed).unwrap();
        if counted == 0 {
            let kept = self.misses.len() - window;
            self.misses.truncate(kept);
            self.misses.extend((1..window).map(|_| false));
        } else if last >= self.misses.len() - counted {
            self.misses.remove(last);
        } else {
            self.misses.pop();
        }
        self.violations_before += before - self.violations();
    }

    fn forget_contract(&mut self) {
        self.violations_before = self.violations();
        self.misses.clear();
        self.next_release = Instant::ZERO;
        self.expected = None;
    }

    /// Returns the sample's position among the requested ones; only for windows longer than one sample.
    fn place_of(&self, sample: &RawSample) -> Option<u64> {
        let Rate { every, max_millihertz: None, bits_per_s: None } = self.spec.form.rate else {
            return None;
        };
        (self.window() > 1).then_some(sample.seq / u64::from(every.get()))
    }

    fn window(&self) -> u64 {
        self.spec.contract.map_or(0, |contract| contract.loss.y()).into()
    }

    /// Accounts for the samples before this one. Windows are those of the source: a missing sample was lost
    /// upstream or precedes the stream.
    fn count_up_to(&mut self, sample: &RawSample) {
        let Some(place) = self.place_of(sample) else { return };
        match self.expected {
            Some(expected) => self.count_absent(place - expected, true),
            None => self.count_unseen(place),
        }
        self.expected = Some(place + 1);
    }

    /// Counts the samples before one at `place` that the link has not seen. They may have used up the tolerance of their
    /// window; no windows of video are promised.
    fn count_unseen(&mut self, place: u64) {
        let loss = self.spec.contract.map_or(0, |contract| contract.loss.x());
        let tolerated = if self.spec.kind.is_video() { 0 } else { u64::from(loss) };
        // Samples from before the contract are counted when they are replaced.
        let tolerated = tolerated.saturating_sub(self.demoted as u64);
        let within = if self.window() > 1 { place % self.window() } else { 0 };
        self.count_absent(within.min(tolerated), true);
        self.count_absent(within.saturating_sub(tolerated), false);
    }

    /// Records `samples` absent samples with the given result. Whole windows of them are already over.
    fn count_absent(&mut self, samples: u64, missed: bool) {
        let within = if self.window() > 1 { samples % self.window() } else { 0 };
        self.misses.extend((0..within).map(|_| missed));
    }

    pub(super) fn take_down(&mut self) {
        self.forget_contract();
        let dropped = self.queue.drain(..).map(|_| DropReason::LinkDown);
        self.counts.drops.extend(dropped);
        (self.up, self.announced) = (false, false);
        // The numbers continue when the hop is up again.
        self.number += u64::from(self.begun.is_some());
        (self.head, self.begun, self.demoted) = (None, None, 0);
    }

    /// Removes the head, sent or not. Returns its number if its transmission had begun.
    pub(super) fn pop(&mut self, now: Instant, serial: &mut u64) -> Option<u64> {
        self.queue.remove(0);
        self.demoted = self.demoted.saturating_sub(1);
        let number = self.begun.take().map(|_| self.number);
        self.number += u64::from(number.is_some());
        self.announce(now, serial);
        number
    }

    /// Returns the latest instant at which service of the head may begin and still end in time.
    pub(super) fn latest_start(&self, setup: &Setup) -> Option<Instant> {
        let (head, first) = (self.head?, self.queue.first()?);
        self.spec.contract?;
        let left = first.payload.len() - self.begun.unwrap_or(0);
        Some(head.deadline - service(setup, left as u64))
    }

    /// Records that the head cannot end in time. Returns true if it must be dropped.
    pub(super) fn miss(&mut self, now: Instant, setup: &Setup) -> bool {
        let (Some(head), Some(contract)) = (&mut self.head, contract(&self.spec)) else {
            return false;
        };
        if !core::mem::replace(&mut head.counted, true) {
            self.misses.push(true);
            self.noted |= is_patient(&self.spec);
        }
        if contract.late == Late::Drop {
            return true;
        }
        // It will be late: its deadline advances by whole periods until it can be met.
        let left = self.queue.first().map_or(0, |first| first.payload.len());
        let finish = now + service(setup, (left - self.begun.unwrap_or(0)) as u64);
        while head.deadline < finish {
            head.deadline += contract.period;
        }
        false
    }

    /// Returns true if the head would be late at its destination too, although the link would have waited for
    /// it.
    pub(super) fn is_hopeless(&self, now: Instant, setup: &Setup) -> bool {
        let (Some(first), Some(contract)) = (self.queue.first(), self.spec.contract) else {
            return false;
        };
        let left = first.payload.len() - self.begun.unwrap_or(0);
        let leaves = now + service(setup, left as u64);
        let worth_until =
            first.published_at + self.spec.upstream + contract.deadline + self.spec.slack;
        is_patient(&self.spec) && worth_until < leaves
    }

    /// Returns true if the head cannot leave within its part of the delay bound.
    pub(super) fn is_late(&self, now: Instant, setup: &Setup) -> bool {
        let head = self.queue.first().zip(self.spec.contract);
        head.is_some_and(|(it, contract)| {
            let left = it.payload.len() - self.begun.unwrap_or(0);
            let leaves = now + service(setup, left as u64);
            it.published_at + self.spec.upstream + contract.deadline < leaves
        })
    }

    /// Drops a hopeless head. Returns its number if its transmission had begun.
    pub(super) fn give_up(&mut self, now: Instant, serial: &mut u64) -> Option<u64> {
        if self.head.is_some_and(|head| !head.counted) {
            self.misses.push(true);
        }
        self.counts.drops.push(DropReason::DeadlineMissed);
        self.pop(now, serial)
    }

    /// Returns the number of heads dropped for being late.
    pub(super) fn given_up(&self) -> u64 {
        let missed = |reason: &&DropReason| **reason == DropReason::DeadlineMissed;
        self.counts.drops.iter().filter(missed).count() as u64
    }

    /// Records that the service of the head ended at `now`.
    pub(super) fn serve(&mut self, now: Instant) {
        self.counts.sent += 1;
        let (Some(head), Some(_)) = (self.head, self.spec.contract) else { return };
        let late = now > head.deadline;
        if !head.counted {
            self.misses.push(late);
        }
        self.counts.late += u64::from(late || head.counted);
    }

    /// Returns the number of windows of y samples with more than x misses.
    pub(super) fn violations(&self) -> u64 {
        let loss = self.spec.contract.map(|contract| (contract.loss.x(), contract.loss.y()));
        let Some((x, y)) = loss.filter(|(_, y)| *y > 0) else { return self.violations_before };
        let windows = self.misses.chunks(usize::try_from(y).unwrap());
        let broken = windows.filter(|window| {
            window.iter().filter(|missed| **missed).count() > usize::try_from(x).unwrap()
        });
        self.violations_before + broken.count() as u64
    }
}

/// Returns true if a late head stays queued: it tolerates no loss, and later hops have slack.
fn is_patient(spec: &StreamSpec) -> bool {
    let drops = |contract: &Contract| contract.late == Late::Drop && contract.loss.x() == 0;
    spec.contract.as_ref().is_some_and(drops) && spec.slack > Duration::ZERO
}

/// Returns the contract as announced to the link's discipline.
fn contract(spec: &StreamSpec) -> Option<Contract> {
    spec.contract.map(|it| if is_patient(spec) { it.with_late(Late::Send) } else { it })
}

/// Returns the transmission time of `bytes` of payload, with 64 bytes of headers per frame and the overhead
/// on the wire.
fn service(setup: &Setup, bytes: u64) -> Duration {
    let frames = bytes.div_ceil(setup.frame_bytes() - 64).max(1);
    let frame = (bytes + 64).min(setup.frame_bytes());
    setup.wire_time(bytes + frames * (64 + on_wire(frame) - frame))
}

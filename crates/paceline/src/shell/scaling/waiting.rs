//! What waits for a worker: bounded, in order, with rules for what gives way.

use super::super::port::Port;
use super::SLOTS_MAX;
use paceline_proto::video::DecodeGate;
use paceline_proto::{DropReason, Kind, Sample};
use std::collections::{BTreeMap, VecDeque};

/// Samples and payload bytes that wait for a worker that needs every one of them.
const SAMPLES_MAX: usize = 64;
const BYTES_MAX: usize = 16 << 20;

/// A sample and the outputs that want it.
pub(super) struct Job {
    pub(super) sample: Sample,
    pub(super) slots: u64,
}

/// Something to be done by the worker.
pub(super) enum Work {
    Sample(Job),
    /// From here on the port has its part.
    Open(u32, Port),
    Close(u32),
    /// Hand on whatever is kept, then call this.
    Finish(Box<dyn FnOnce() + Send>),
}

/// What gives way.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Rule {
    /// One sample waits, the newest: a picture that waits for its scaler is soon worth nothing.
    NewestOne,
    /// Many samples wait; the oldest gives way.
    NewestMany,
    /// Many samples wait; everything up to the next one that stands alone gives way, since nothing
    /// between can be decoded.
    WholeVideo,
}

/// Losses by output and reason.
pub(super) type Lost = BTreeMap<(u32, DropReason), u64>;

/// What waits for one worker.
pub(super) struct Waiting {
    rule: Rule,
    work: VecDeque<Work>,
    samples: usize,
    bytes: usize,
    /// Whether the next video sample can be decoded.
    gate: DecodeGate,
    /// The newest sample that was taken.
    newest: Option<u64>,
    lost: Lost,
    /// The task is with the pool: queued or being served.
    queued: bool,
}

impl Waiting {
    pub(super) fn new(rule: Rule) -> Self {
        Self {
            rule,
            work: VecDeque::new(),
            samples: 0,
            bytes: 0,
            gate: DecodeGate::new(),
            newest: None,
            lost: Lost::new(),
            queued: false,
        }
    }

    /// Opens a place for what comes from the sample `seq` on, which may wait already for others.
    pub(super) fn open(&mut self, slot: u32, port: Port, seq: u64) {
        let waits = |work: &Work| matches!(work, Work::Sample(job) if job.sample.seq >= seq);
        let at = self.work.iter().position(waits).unwrap_or(self.work.len());
        self.work.insert(at, Work::Open(slot, port));
    }

    /// Takes other work that is no sample.
    pub(super) fn add(&mut self, work: Work) {
        self.work.push_back(work);
    }

    fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.work.iter().filter_map(|work| match work {
            Work::Sample(job) => Some(job),
            Work::Open(..) | Work::Close(_) | Work::Finish(_) => None,
        })
    }

    /// Takes a sample for the output `slot`; false if it was dropped, which is counted.
    pub(super) fn push(&mut self, sample: Sample, slot: u32) -> bool {
        let bit = 1u64.checked_shl(slot).unwrap_or_default();
        let last = self.work.iter_mut().rev().find_map(|work| match work {
            Work::Sample(job) => Some(job),
            Work::Open(..) | Work::Close(_) | Work::Finish(_) => None,
        });
        if let Some(job) = last
            && job.sample.seq == sample.seq
        {
            job.slots |= bit;
            return true;
        }
        let room = match self.rule {
            Rule::NewestOne => {
                self.make_room(0, sample.payload.len());
                true
            }
            Rule::NewestMany => {
                self.make_room(SAMPLES_MAX - 1, sample.payload.len());
                true
            }
            // The worker has it already, for another output: what it makes is for all of them.
            Rule::WholeVideo if self.newest.is_some_and(|newest| sample.seq <= newest) => {
                return true;
            }
            Rule::WholeVideo => self.admit_video(&sample, slot),
        };
        if room {
            self.samples += 1;
            self.bytes += sample.payload.len();
            self.newest = Some(sample.seq);
            self.work.push_back(Work::Sample(Job { sample, slots: bit }));
        }
        room
    }

    /// Drops the oldest until `samples` and one of `bytes` are within bounds.
    fn make_room(&mut self, samples: usize, bytes: usize) {
        while self.samples > samples || self.samples > 0 && self.bytes + bytes > BYTES_MAX {
            self.drop_first_samples(1);
        }
    }

    fn admit_video(&mut self, sample: &Sample, slot: u32) -> bool {
        if !self.gate.admit(sample.kind) {
            self.count_lost(slot, DropReason::Undecodable, 1);
            return false;
        }
        while self.is_full_for(sample.payload.len()) {
            // Up to the next that stands alone: among those that wait, this one, or one to come.
            let Some(next) = self.next_alone() else {
                self.drop_first_samples(self.samples);
                if sample.kind == Kind::VideoI {
                    return true;
                }
                self.gate.lost();
                self.count_lost(slot, DropReason::Undecodable, 1);
                return false;
            };
            self.drop_first_samples(next);
        }
        true
    }

    /// The place among the waiting samples of the first, save the very first, that stands alone.
    fn next_alone(&self) -> Option<usize> {
        let alone =
            |(place, job): (usize, &Job)| (job.sample.kind == Kind::VideoI).then_some(place);
        self.jobs().enumerate().skip(1).find_map(alone)
    }

    /// Drops the first `count` samples that wait: one for want of room, the others because of it.
    fn drop_first_samples(&mut self, count: usize) {
        let mut left = count;
        let mut reason = DropReason::ScalerBusy;
        let Self { work, lost, samples, bytes, rule, .. } = self;
        work.retain(|work| {
            let Work::Sample(job) = work else { return true };
            if left == 0 {
                return true;
            }
            left -= 1;
            *samples -= 1;
            *bytes -= job.sample.payload.len();
            for slot in (0..SLOTS_MAX).filter(|slot| job.slots >> slot & 1 == 1) {
                *lost.entry((slot, reason)).or_default() += 1;
            }
            if *rule == Rule::WholeVideo {
                reason = DropReason::Undecodable;
            }
            false
        });
    }

    const fn is_full_for(&self, bytes: usize) -> bool {
        self.samples >= SAMPLES_MAX || self.samples > 0 && self.bytes + bytes > BYTES_MAX
    }

    /// True if whoever can wait for room should: the next sample may make another one give way.
    /// Pictures that stand alone give way as they come, whoever waits.
    pub(super) fn is_full(&self) -> bool {
        self.rule != Rule::NewestOne && self.would_displace()
    }

    /// True if the next sample may make another one give way.
    pub(super) fn would_displace(&self) -> bool {
        match self.rule {
            Rule::NewestOne => self.samples > 0,
            Rule::NewestMany | Rule::WholeVideo => self.is_full_for(BYTES_MAX / 2),
        }
    }

    /// Counts samples that were lost before they came here.
    pub(super) fn count_lost(&mut self, slot: u32, reason: DropReason, samples: u64) {
        *self.lost.entry((slot, reason)).or_default() += samples;
    }

    /// True if the task must be queued at the pool now.
    pub(super) fn begin(&mut self) -> bool {
        let begins = !self.queued && !self.work.is_empty();
        self.queued |= begins;
        begins
    }

    /// True if there is more to do; else the task is no longer with the pool.
    pub(super) fn goes_on(&mut self) -> bool {
        self.queued = !self.work.is_empty();
        self.queued
    }

    /// The next thing to do, and what was lost meanwhile. Without one the task is no longer with the
    /// pool.
    pub(super) fn next(&mut self) -> (Option<Work>, Lost) {
        let work = self.work.pop_front();
        if let Some(Work::Sample(job)) = &work {
            self.samples -= 1;
            self.bytes -= job.sample.payload.len();
        }
        self.queued = work.is_some();
        (work, std::mem::take(&mut self.lost))
    }
}

#[cfg(test)]
mod tests;

//! The bounded queue of a scaling worker, with rules for displacing samples.

use super::super::Port;
use paceline_node::install::SCALER_OUTPUTS_MAX;
use paceline_proto::video::{DecodeGate, Group, Joining, Next};
use paceline_proto::{DropReason, Kind, RawSample};
use std::collections::{BTreeMap, VecDeque};

/// The limits of samples and payload bytes for a worker that needs every sample.
const SAMPLES_MAX: usize = 64;
const BYTES_MAX: usize = 16 << 20;

/// A sample and the outputs that requested it.
pub(super) struct Job {
    pub(super) sample: RawSample,
    pub(super) slots: u64,
    /// A picture of a video from before its outputs opened: it is decoded for later ones.
    pub(super) past: bool,
}

/// An item of work.
pub(super) enum Work {
    Sample(Job),
    /// Connects a port, which receives the samples from here on.
    Open(u32, Port),
    Close(u32),
    /// Delivers delayed pictures, then calls the function.
    Finish(Box<dyn FnOnce() + Send>),
}

/// The rule for displacing samples.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Rule {
    /// Keep only the newest sample: a picture that waits for its scaler is soon worthless.
    NewestOne,
    /// Keep many samples; drop the oldest.
    NewestMany,
    /// Keep many samples; drop everything up to the next picture that can be decoded alone, because
    /// the pictures in between cannot be.
    WholeVideo,
}

/// Losses by output and reason.
pub(super) type Lost = BTreeMap<(u32, DropReason), u64>;

/// The queue of one worker.
pub(super) struct Waiting {
    rule: Rule,
    /// A newer sample displaces older ones of best effort.
    displaces: bool,
    work: VecDeque<Work>,
    samples: usize,
    bytes: usize,
    /// Whether the next video sample can be decoded.
    gate: DecodeGate,
    /// The sequence number of the newest accepted sample.
    newest: Option<u64>,
    lost: Lost,
    joining: Joining,
    /// The sample before which outputs last joined, and its treatment.
    joined: Option<(u64, Next)>,
    /// True while the pool has the task, queued or running.
    queued: bool,
}

impl Waiting {
    pub(super) fn new(rule: Rule) -> Self {
        Self {
            rule,
            displaces: rule == Rule::NewestOne,
            work: VecDeque::new(),
            samples: 0,
            bytes: 0,
            gate: DecodeGate::new(),
            newest: None,
            lost: Lost::new(),
            joining: Joining::default(),
            joined: None,
            queued: false,
        }
    }

    /// Keeps every sample of a stream with a contract: the path may deliver several at once, each still in time.
    pub(super) const fn set_promised(&mut self, promised: bool) {
        if self.displaces {
            self.rule = if promised { Rule::NewestMany } else { Rule::NewestOne };
        }
    }

    /// Connects a port from the sample `seq` on, which may already be queued for other outputs. It
    /// precedes queued units of the group of pictures that is joined.
    pub(super) fn open(&mut self, slot: u32, port: Port, seq: u64) {
        let follows = |job: &Job| job.past || job.sample.seq >= seq;
        let waits = |work: &Work| matches!(work, Work::Sample(job) if follows(job));
        let at = self.work.iter().position(waits).unwrap_or(self.work.len());
        self.work.insert(at, Work::Open(slot, port));
    }

    /// Returns true if the worker has taken the unit `seq` of a video, which it decodes only once.
    pub(super) fn has_begun(&self, seq: u64) -> bool {
        self.rule == Rule::WholeVideo
            && self.newest.is_some_and(|newest| seq <= newest)
            && self.jobs().all(|job| job.sample.seq != seq)
    }

    /// Queues units of the current group of pictures before `sample`, for the output `slot`. All outputs join
    /// together: the worker decodes each unit once. Returns the treatment of `sample`.
    ///
    /// Key pictures are scaled if the outputs take old ones; the other units are only references.
    pub(super) fn join(&mut self, group: &Group, sample: &RawSample, slot: u32, old: bool) -> Next {
        if self.joining.is_live() {
            // The worker decodes the video already.
            return Next::Follow;
        }
        if let Some((seq, next)) = self.joined
            && seq == sample.seq
        {
            return next;
        }
        // A quarter of the queue remains for new samples.
        let room = (SAMPLES_MAX - SAMPLES_MAX / 4).saturating_sub(self.samples);
        let (units, next) = self.joining.step(group, Some(sample), room);
        let take =
            |unit: &RawSample| self.push(unit.clone(), slot, unit.kind != Kind::VideoI || !old);
        let taken = units.iter().all(take);
        let next = if taken { next } else { Next::Wait(self.joining.give_up()) };
        if let Next::Wait(lost @ 1..) = next {
            self.count_lost(slot, DropReason::Undecodable, lost);
        }
        self.joined = Some((sample.seq, next));
        next
    }

    /// Queues work other than a sample.
    pub(super) fn add(&mut self, work: Work) {
        self.work.push_back(work);
    }

    fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.work.iter().filter_map(|work| match work {
            Work::Sample(job) => Some(job),
            Work::Open(..) | Work::Close(_) | Work::Finish(_) => None,
        })
    }

    /// Queues a sample for the output `slot`; returns false if it was dropped and counted.
    pub(super) fn push(&mut self, sample: RawSample, slot: u32, past: bool) -> bool {
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
            // The worker already has the sample for another output, and its result is for all of
            // them.
            Rule::WholeVideo if self.newest.is_some_and(|newest| sample.seq <= newest) => {
                return true;
            }
            Rule::WholeVideo => self.admit_video(&sample, slot),
        };
        if room {
            self.samples += 1;
            self.bytes += sample.payload.len();
            self.newest = Some(sample.seq);
            self.work.push_back(Work::Sample(Job { sample, slots: bit, past }));
        }
        room
    }

    /// Drops the oldest samples until at most `samples` and the payload limit, with `bytes` more,
    /// remain.
    fn make_room(&mut self, samples: usize, bytes: usize) {
        while self.samples > samples || self.samples > 0 && self.bytes + bytes > BYTES_MAX {
            self.drop_first_samples(1);
        }
    }

    fn admit_video(&mut self, sample: &RawSample, slot: u32) -> bool {
        if !self.gate.admit(sample.kind) {
            self.count_lost(slot, DropReason::Undecodable, 1);
            return false;
        }
        while self.is_full_for(sample.payload.len()) {
            // Drop up to the next picture that can be decoded alone: a queued one, this one, or a
            // later one.
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

    /// Returns the index of the first queued sample, except the very first, that can be decoded
    /// alone.
    fn next_alone(&self) -> Option<usize> {
        let alone =
            |(place, job): (usize, &Job)| (job.sample.kind == Kind::VideoI).then_some(place);
        self.jobs().enumerate().skip(1).find_map(alone)
    }

    /// Drops the first `count` samples. Of a video, those after the first count as undecodable.
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
            for slot in (0..SCALER_OUTPUTS_MAX).filter(|slot| job.slots >> slot & 1 == 1) {
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

    /// Returns true if a publisher should wait because its next sample may displace another.
    /// Independent pictures are always displaced without waiting.
    pub(super) fn is_full(&self) -> bool {
        self.rule != Rule::NewestOne && self.would_displace()
    }

    /// Returns true if the next sample may displace another.
    pub(super) fn would_displace(&self) -> bool {
        match self.rule {
            Rule::NewestOne => self.samples > 0,
            Rule::NewestMany | Rule::WholeVideo => self.is_full_for(BYTES_MAX / 2),
        }
    }

    /// Counts samples that were lost before the scaler.
    pub(super) fn count_lost(&mut self, slot: u32, reason: DropReason, samples: u64) {
        *self.lost.entry((slot, reason)).or_default() += samples;
    }

    /// Returns true if the task must be queued at the pool now.
    pub(super) fn begin(&mut self) -> bool {
        let begins = !self.queued && !self.work.is_empty();
        self.queued |= begins;
        begins
    }

    /// Returns true if there is more work; otherwise the pool releases the task.
    pub(super) fn goes_on(&mut self) -> bool {
        self.queued = !self.work.is_empty();
        self.queued
    }

    /// Returns the next item of work and the losses so far. Without work the pool releases the
    /// task.
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

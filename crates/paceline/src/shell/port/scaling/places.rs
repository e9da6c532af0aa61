//! The outputs of a scaling worker.

use super::super::Port;
use crate::shell::clock;
use paceline_proto::video::{DecodeGate, Group, GroupBudget, Next};
use paceline_proto::{DropReason, RawSample};
use paceline_sched::Instant;

/// Selects every output.
pub(super) const ALL: u64 = u64::MAX;

struct Place {
    port: Port,
    gate: DecodeGate,
}

/// The receivers of a coder's results.
pub(in crate::shell) trait Takers {
    /// Returns true if a receiver needs a picture that can be decoded alone.
    fn waits_for_key(&mut self) -> bool;
    /// Delivers a picture.
    fn give(&mut self, sample: &RawSample);
    /// Reports that the unit `seq` produces no picture.
    fn fail(&mut self, seq: u64, reason: DropReason, why: &str);
}

/// The outputs of a task, by slot.
pub(super) struct Places {
    places: Vec<Option<Place>>,
    /// The current group of pictures of the scaled video.
    group: Group,
    /// The samples since the last result that could not be scaled.
    failed: u64,
    /// The problem of the last one of them.
    problem: Option<String>,
}

impl Places {
    pub(super) fn new(groups: GroupBudget) -> Self {
        Self { places: Vec::new(), group: Group::new(groups), failed: 0, problem: None }
    }

    /// Returns the number of samples since the last result that could not be scaled.
    pub(super) const fn failed(&self) -> u64 {
        self.failed
    }

    /// Notes why a sample could not be scaled.
    pub(super) fn set_problem(&mut self, why: &str) {
        self.problem = Some(why.to_owned());
    }

    /// Returns why the last one of the failed samples could not be scaled; empty if it is unknown.
    pub(super) fn problem(&self) -> &str {
        self.problem.as_deref().unwrap_or_default()
    }

    /// Forgets the pictures so far.
    pub(super) fn reset(&mut self) {
        self.group.handle_lost(None);
    }

    pub(super) fn open(&mut self, slot: u32, port: Port) {
        let at = slot as usize;
        if self.places.len() <= at {
            self.places.resize_with(at + 1, || None);
        }
        if let Some(place) = self.places.get_mut(at) {
            let mut opened = Place { port, gate: DecodeGate::new() };
            opened.joins(clock::now(), &self.group, None);
            *place = Some(opened);
        }
    }

    pub(super) fn close(&mut self, slot: u32) {
        if let Some(place) = self.places.get_mut(slot as usize) {
            *place = None;
        }
    }

    /// Returns true if `slot` is the only output.
    pub(super) fn is_last(&self, slot: u32) -> bool {
        (0..).zip(&self.places).all(|(at, place): (u32, _)| at == slot || place.is_none())
    }

    /// Counts samples that the outputs in `slots` do not receive.
    pub(super) fn count(&mut self, slots: u64, reason: DropReason, samples: u64) {
        if reason == DropReason::CannotScale {
            self.failed += samples;
        }
        of(&mut self.places, slots).for_each(|place| place.port.count(reason, samples));
    }

    /// Delivers a sample to those outputs in `slots` that can decode it.
    pub(super) fn give(&mut self, slots: u64, sample: &RawSample) {
        self.failed = 0;
        let now = clock::now();
        for place in of(&mut self.places, slots) {
            if sample.kind.is_video() && place.joins(now, &self.group, Some(sample)) {
                continue;
            }
            if !sample.kind.is_video() {
                place.port.push(now, sample.clone());
            } else if !place.gate.admit(sample.kind) {
                place.port.count(DropReason::Undecodable, 1);
            } else if !place.port.push(now, sample.clone()) {
                place.gate.broke(sample.kind);
            }
        }
        self.group.add(sample);
    }
}

impl Place {
    /// Lets receivers join in the middle of the current group. Returns true if the next sample waits there.
    fn joins(&mut self, now: Instant, group: &Group, next: Option<&RawSample>) -> bool {
        match self.port.join(now, group, next) {
            Next::Defer => return true,
            Next::Follow => self.gate.join(),
            Next::Skip | Next::Wait(_) => {}
        }
        false
    }
}

/// Returns the outputs in `slots`.
fn of(places: &mut [Option<Place>], slots: u64) -> impl Iterator<Item = &mut Place> {
    let wanted = move |at: usize| slots.checked_shr(u32::try_from(at).unwrap_or(64));
    places.iter_mut().enumerate().filter_map(move |(at, place)| {
        place.as_mut().filter(|_| wanted(at).is_some_and(|bits| bits & 1 == 1))
    })
}

impl Takers for Places {
    /// New subscribers of an existing output are reported once.
    fn waits_for_key(&mut self) -> bool {
        let newcomer = |place: &mut Place| match &mut place.port {
            Port::Local(local) => local.has_newcomer(),
            Port::Ring(_) | Port::Scale(_) => false,
        };
        let places = self.places.iter_mut().flatten();
        places.fold(false, |waits, place| newcomer(place) | !place.gate.is_open() | waits)
    }

    fn give(&mut self, sample: &RawSample) {
        Self::give(self, ALL, sample);
    }

    fn fail(&mut self, seq: u64, reason: DropReason, why: &str) {
        tracing::debug!("video {seq}: {why}");
        if reason == DropReason::CannotScale {
            self.set_problem(why);
        }
        self.count(ALL, reason, 1);
    }
}

//! The outputs of a scaling worker.

use super::super::Port;
use crate::shell::clock;
use paceline_proto::video::DecodeGate;
use paceline_proto::{DropReason, RawSample};

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
#[derive(Default)]
pub(super) struct Places(Vec<Option<Place>>);

impl Places {
    pub(super) fn open(&mut self, slot: u32, port: Port) {
        let at = slot as usize;
        if self.0.len() <= at {
            self.0.resize_with(at + 1, || None);
        }
        if let Some(place) = self.0.get_mut(at) {
            *place = Some(Place { port, gate: DecodeGate::new() });
        }
    }

    pub(super) fn close(&mut self, slot: u32) {
        if let Some(place) = self.0.get_mut(slot as usize) {
            *place = None;
        }
    }

    /// Returns true if `slot` is the only output.
    pub(super) fn is_last(&self, slot: u32) -> bool {
        (0..).zip(&self.0).all(|(at, place): (u32, _)| at == slot || place.is_none())
    }

    fn of(&mut self, slots: u64) -> impl Iterator<Item = &mut Place> {
        let wanted = move |at: usize| slots.checked_shr(u32::try_from(at).unwrap_or(64));
        let places = self.0.iter_mut().enumerate();
        places.filter_map(move |(at, place)| {
            place.as_mut().filter(|_| wanted(at).is_some_and(|bits| bits & 1 == 1))
        })
    }

    /// Counts samples that the outputs in `slots` do not receive.
    pub(super) fn count(&mut self, slots: u64, reason: DropReason, samples: u64) {
        self.of(slots).for_each(|place| place.port.count(reason, samples));
    }

    /// Delivers a sample to those outputs in `slots` that can decode it.
    pub(super) fn give(&mut self, slots: u64, sample: &RawSample) {
        let now = clock::now();
        for place in self.of(slots) {
            if !sample.kind.is_video() {
                place.port.push(now, sample.clone());
            } else if !place.gate.admit(sample.kind) {
                place.port.count(DropReason::Undecodable, 1);
            } else if !place.port.push(now, sample.clone()) {
                place.gate.broke(sample.kind);
            }
        }
    }
}

impl Takers for Places {
    /// New subscribers of an existing output are reported once.
    fn waits_for_key(&mut self) -> bool {
        let newcomer = |place: &mut Place| match &mut place.port {
            Port::Local(local) => local.has_newcomer(),
            Port::Ring(_) | Port::Scale(_) => false,
        };
        let places = self.0.iter_mut().flatten();
        places.fold(false, |waits, place| newcomer(place) | !place.gate.is_open() | waits)
    }

    fn give(&mut self, sample: &RawSample) {
        Self::give(self, ALL, sample);
    }

    fn fail(&mut self, seq: u64, reason: DropReason, why: &str) {
        tracing::debug!("video {seq}: {why}");
        self.count(ALL, reason, 1);
    }
}

//! Class policers at the entry of a link.
//!
//! A sample is charged with its size on the wire if sent alone, including headers, so that very small samples
//! are not nearly free. A constraint in packets bounds their number as well. A class that drops does so on
//! arrival. A class that delays leaves the sample in the stream's queue, unknown to the discipline. Of each
//! stream only the head waits for the policer, in FIFO order, so that streams alternate. Deadlines keep
//! running meanwhile. A class that demotes queues the sample behind the others of its stream (`demoted.rs`).

use super::classes::{Gate, Home};
use super::stream::Stream;
use super::{Link, StreamIndex};
use crate::reason::DropReason;
use crate::sample::RawSample;
use paceline_sched::Instant;
use paceline_sched::police::{Action, Conformance, PoliceResult};

/// The outcome of policing a sample at entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Entry {
    Conforms,
    /// It exceeds the rate of its class, and is sent if nothing else needs the link.
    Demoted,
    /// It was dropped.
    Dropped,
}

impl Link {
    /// Polices an arriving sample. A dropped sample is counted.
    pub(super) fn enters(&mut self, now: Instant, index: StreamIndex, sample: &RawSample) -> Entry {
        if self.class_streams.is_none() {
            return Entry::Conforms;
        }
        let bytes = self.pacer.wire.sample_bytes(sample.payload.len());
        let Some(stream) = self.streams.get(index).filter(|stream| stream.up) else {
            return Entry::Conforms;
        };
        let (home, demotes) = (stream.home, stream.may_be_demoted());
        let Some(gate) = self.gate(home) else { return Entry::Conforms };
        let action = gate.police.action;
        let passes = match action {
            Action::Delay => gate.police.policers.check(now, bytes) != Conformance::Never,
            Action::Drop | Action::Demote => gate.police.police(now, bytes) == PoliceResult::Pass,
        };
        if passes {
            return Entry::Conforms;
        }
        if action == Action::Demote && demotes != Entry::Dropped {
            return demotes;
        }
        if let Some(stream) = self.streams.get_mut(index) {
            stream.counters.offered += 1;
            stream.counters.drops.add(DropReason::Policed, 1);
            stream.gate.broke(sample.kind);
        }
        self.judge_skipped(index, 1);
        Entry::Dropped
    }

    /// Returns `true` if the head of a stream may be announced; otherwise the head waits for its policer.
    pub(super) fn passes(&mut self, now: Instant, index: StreamIndex) -> bool {
        if self.class_streams.as_ref().is_none_or(|class_streams| !class_streams.has_gates()) {
            return true;
        }
        self.drop_expired_before_charging(now, index);
        let Some(stream) = self.streams.get(index) else { return true };
        let (home, held) = (stream.home, stream.held);
        let Some(bytes) = stream.head().filter(|_| !stream.passed).map(|s| s.payload.len()) else {
            return true;
        };
        let bytes = self.pacer.wire.sample_bytes(bytes);
        let Some(gate) = self.gate(home).filter(|gate| gate.police.action == Action::Delay) else {
            return true;
        };
        if held {
            return false;
        }
        let passes = gate.waiting.is_empty() && gate.admits(now, bytes);
        if !passes {
            gate.waiting.push_back(index);
        }
        if let Some(stream) = self.streams.get_mut(index) {
            (stream.passed, stream.held) = (passes, !passes);
        }
        passes
    }

    /// Announces the heads that conform at `now`.
    pub(super) fn open_gates(&mut self, now: Instant) {
        let Some(class_streams) = &self.class_streams else { return };
        let homes: Vec<_> = class_streams.due_gates(now).collect();
        for home in homes {
            self.open_gate(now, home);
        }
    }

    fn open_gate(&mut self, now: Instant, home: Home) {
        loop {
            let Some(index) = self.gate(Some(home)).and_then(|gate| gate.waiting.pop_front())
            else {
                return;
            };
            let Some(stream) = self.streams.get_mut(index) else { continue };
            if !stream.held || stream.home != Some(home) {
                continue;
            }
            self.drop_expired_before_charging(now, index);
            let Some(stream) = self.streams.get_mut(index) else { continue };
            let Some(bytes) = stream.head().map(|sample| sample.payload.len()) else {
                stream.held = false;
                continue;
            };
            let bytes = self.pacer.wire.sample_bytes(bytes);
            let Some(gate) = self.gate(Some(home)) else { return };
            if !gate.admits(now, bytes) {
                gate.waiting.push_front(index);
                return;
            }
            if let Some(stream) = self.streams.get_mut(index) {
                (stream.passed, stream.held) = (true, false);
            }
            self.announce_head(now, index);
        }
    }

    fn gate(&mut self, home: Option<Home>) -> Option<&mut Gate> {
        self.class_streams.as_mut()?.gate(home?)
    }
}

impl Stream {
    /// Resets the state of the head after it changed: the new head must be policed too.
    pub(super) const fn head_changed(&mut self) {
        (self.passed, self.head_came) = (false, None);
    }
}

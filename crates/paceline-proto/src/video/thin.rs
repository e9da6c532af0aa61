//! Temporal scaling of video by dropping alone.

use super::DecodeGate;
use crate::form::Rate;
use crate::sample::Kind;
use crate::temporal::TemporalScaler;
use paceline_sched::Duration;

/// The largest number of references that may pass beyond the samples due, before dropping is not enough.
const BURST: u32 = 3;
/// The same in a group without a known one before it, if nothing can take over.
const BURST_UNKNOWN: u32 = 1;
/// The largest number of samples that pass later because no I followed when they were due.
const OWED_MAX: u32 = 2;
/// The number of consecutive I from which on a stream has nothing else.
const ALONE_MIN: u32 = 3;

/// The decision on a video sample of a stream with a rate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Thinned {
    /// The sample belongs to the thinned stream.
    Pass,
    /// The rate excludes the sample; this is no loss.
    Drop,
    /// I and P alone exceed the rate. This sample does not belong to the thinned stream, and neither does any
    /// sample up to the next I that fits. A scaler that must meet the rate decodes and re-encodes from here.
    /// Without one ([`Thinner::set_alone`]), the sample was due and nothing replaces it: it counts as undecodable.
    TooDense,
    /// The sample depends on one that was dropped for another reason ([`Thinner::broke`]).
    Undecodable,
}

/// Thins video to a rate by dropping samples that no other depends on.
///
/// A [`TemporalScaler`] determines the number of samples due. I and P always pass; a B passes only while
/// fewer samples have passed than are due. The stream is therefore as evenly spread as its references allow.
/// Since the start, the number passed is at most the number due plus 3. It is at least the number due if
/// every sample was decodable. Over any stretch the rate is thus met to within 3 samples.
///
/// If I and P alone are faster than the rate, the result is [`Thinned::TooDense`], and a caller with a decoder takes
/// over. Without one ([`Self::set_alone`]), the next group is thinned to its I, which passes if a sample has become due
/// since the last one. Each further group is thinned as the one before it would have allowed. A stream of I alone is
/// thinned in the same way, which is exact.
///
/// Passed samples are always decodable. Otherwise, credit does not accumulate while no sample passes.
#[derive(Clone, Debug)]
pub struct Thinner {
    due: TemporalScaler,
    gate: DecodeGate,
    /// Samples passed minus samples due: 0 to [`BURST`].
    ahead: u32,
    /// The gate is closed because the references were too dense.
    dense: bool,
    /// Nothing can take over where references are too dense.
    alone: bool,
    /// The groups of a stream that is thinned alone.
    groups: Groups,
    /// Samples that were due while only I pass: 0 to [`OWED_MAX`].
    owed: u32,
    /// The number of consecutive I, up to this one.
    row: u32,
    /// The rate has excluded a leading sample of this group. Others may depend on it, so none passes.
    left_out: bool,
}

/// Compares the references of groups with the samples due.
#[derive(Clone, Copy, Debug, Default)]
struct Groups {
    /// The largest excess of references in the current group.
    burst: u32,
    /// References minus samples due, from 0 to `burst`.
    excess: u32,
    /// The references of the current group exceed the burst, and those of the group before did.
    crowded: bool,
    before: bool,
    begun: bool,
}

impl Groups {
    const NEW: Self =
        Self { burst: BURST_UNKNOWN, excess: 0, crowded: false, before: false, begun: false };

    fn note(&mut self, kind: Kind, due: bool) {
        if kind == Kind::VideoI {
            if self.begun {
                (self.before, self.crowded, self.burst) = (self.crowded, false, BURST);
            }
            self.begun = true;
        }
        let needed = matches!(kind, Kind::VideoI | Kind::VideoP);
        let excess = (self.excess + u32::from(needed)).saturating_sub(u32::from(due));
        self.crowded |= excess > self.burst;
        self.excess = excess.min(self.burst);
    }
}

impl Thinner {
    /// Creates a thinner to `rate`; `period` is the source's declared period, if any.
    #[must_use]
    pub const fn new(rate: Rate, period: Option<Duration>) -> Self {
        Self {
            due: TemporalScaler::new(rate, period),
            gate: DecodeGate::new(),
            ahead: 0,
            dense: false,
            alone: false,
            groups: Groups::NEW,
            owed: 0,
            row: 0,
            left_out: false,
        }
    }

    /// Sets whether a decoder can take over where references are too dense. By default it can.
    pub const fn set_alone(&mut self, alone: bool) {
        self.alone = alone;
    }

    /// Returns whether the sample `seq` of `kind`, captured at `captured_ns`, belongs to the thinned stream.
    ///
    /// Call this once for each sample of the source, in order.
    #[must_use]
    pub fn offer(&mut self, kind: Kind, seq: u64, captured_ns: u64) -> Thinned {
        let due = self.due.take(seq, captured_ns);
        // The sample is the one due, unless an earlier sample passed ahead of its time.
        let in_turn = due && self.ahead == 0;
        self.ahead -= u32::from(due && !in_turn);
        self.groups.note(kind, due);
        self.row = if kind == Kind::VideoI { self.row.saturating_add(1) } else { 0 };
        if self.row >= ALONE_MIN || self.alone && self.groups.before {
            self.offer_key(kind, in_turn)
        } else {
            self.offer_any(kind, in_turn)
        }
    }

    /// Passes an I if a sample has become due since the last one, and nothing else.
    fn offer_key(&mut self, kind: Kind, in_turn: bool) -> Thinned {
        if kind == Kind::VideoI && (in_turn || self.owed > 0) {
            self.owed -= u32::from(!in_turn);
            self.dense = false;
            return if self.gate.admit(kind) { Thinned::Pass } else { Thinned::Undecodable };
        }
        self.gate.lost();
        self.dense = true;
        self.wait(in_turn)
    }

    /// Lets a due sample wait for the next I. One beyond [`OWED_MAX`] is missing.
    fn wait(&mut self, in_turn: bool) -> Thinned {
        if in_turn && self.owed >= OWED_MAX {
            return Thinned::TooDense;
        }
        self.owed += u32::from(in_turn);
        Thinned::Drop
    }

    /// Passes references, and others while fewer samples have passed than are due.
    fn offer_any(&mut self, kind: Kind, in_turn: bool) -> Thinned {
        self.dense &= kind != Kind::VideoI;
        self.left_out &= kind != Kind::VideoI;
        if !self.gate.admit(kind) {
            let waits = self.left_out && kind == Kind::VideoLeading;
            return match self.dense {
                true => self.too_dense(in_turn),
                false if waits => self.wait(in_turn),
                false => Thinned::Undecodable,
            };
        }
        let burst = if self.alone { self.groups.burst } else { BURST };
        match kind {
            _ if in_turn => Thinned::Pass,
            _ if self.owed > 0 => {
                self.owed -= 1;
                Thinned::Pass
            }
            Kind::VideoI | Kind::VideoP if self.ahead < burst => {
                self.ahead += 1;
                Thinned::Pass
            }
            Kind::VideoI | Kind::VideoP => {
                self.gate.broke(kind);
                self.dense = true;
                self.too_dense(in_turn)
            }
            Kind::VideoB
            | Kind::VideoLeading
            | Kind::Data
            | Kind::State
            | Kind::Picture
            | Kind::Audio => {
                self.gate.broke(kind);
                self.left_out |= kind == Kind::VideoLeading;
                Thinned::Drop
            }
        }
    }

    /// Without a decoder, the next I replaces a due sample.
    fn too_dense(&mut self, in_turn: bool) -> Thinned {
        if self.alone { self.wait(in_turn) } else { Thinned::TooDense }
    }

    /// Returns true if references since the last I have passed, so that a P can.
    #[must_use]
    pub const fn follows(&self) -> bool {
        self.gate.is_open()
    }

    /// Returns the number of samples that passed before they were due.
    #[must_use]
    pub const fn ahead(&self) -> u32 {
        self.ahead
    }

    /// Returns the scaler that determines the samples due, for another way to provide the rate from the next
    /// sample on.
    #[must_use]
    pub fn scaler(&self) -> TemporalScaler {
        self.due.clone()
    }

    /// Records that a passed sample of `kind` was dropped later.
    pub const fn broke(&mut self, kind: Kind) {
        self.gate.broke(kind);
    }
}

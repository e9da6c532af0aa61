//! Temporal scaling of video by dropping alone.

use super::DecodeGate;
use crate::form::Rate;
use crate::sample::Kind;
use crate::temporal::TemporalScaler;
use paceline_sched::Duration;

/// The largest number of references that may pass beyond the samples due, before dropping is not enough.
const BURST: u32 = 3;
/// The largest number of samples that pass later because the references were too dense when they were due.
const BEHIND_MAX: u32 = 1_000;

/// The decision on a video sample of a stream with a rate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Thinned {
    /// The sample belongs to the thinned stream.
    Pass,
    /// The rate excludes the sample; this is no loss.
    Drop,
    /// I and P alone exceed the rate. This sample does not belong to the thinned stream, and neither does any
    /// sample up to the next I that fits. A scaler that must meet the rate decodes and re-encodes from here;
    /// without one, the sample counts as undecodable.
    TooDense,
    /// The sample depends on one that was dropped for another reason ([`Thinner::broke`]).
    Undecodable,
}

/// Thins video to a rate by dropping samples that no other depends on.
///
/// A [`TemporalScaler`] determines the number of samples due. I and P always pass; a B passes only while
/// fewer samples have passed than are due. The stream is therefore as evenly spread as its references allow.
/// Since the start, the number passed is at most the number due plus 3. It is at least the number due if
/// every sample was decodable. Over any stretch the rate is thus met to within 3 samples. A stream of I alone
/// is thinned exactly. If I and P alone are faster than the rate, the result is [`Thinned::TooDense`]. A
/// caller without a scaler ignores it: the first samples of each group pass, as many as were due.
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
    /// Samples that were due while the references were too dense; as many pass later.
    behind: u32,
    /// The number of consecutive I, up to this one.
    alone: u32,
}

impl Thinner {
    /// Creates a thinner to `rate`; `period` is the source's declared period, if any.
    #[must_use]
    pub const fn new(rate: Rate, period: Option<Duration>) -> Self {
        let due = TemporalScaler::new(rate, period);
        Self { due, gate: DecodeGate::new(), ahead: 0, dense: false, behind: 0, alone: 0 }
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
        self.dense &= kind != Kind::VideoI;
        self.alone = if kind == Kind::VideoI { self.alone.saturating_add(1) } else { 0 };
        if !self.gate.admit(kind) {
            if !self.dense {
                self.behind = 0;
                return Thinned::Undecodable;
            }
            self.behind += u32::from(in_turn && self.behind < BEHIND_MAX);
            return Thinned::TooDense;
        }
        if in_turn {
            return Thinned::Pass;
        }
        if self.behind > 0 {
            self.behind -= 1;
            return Thinned::Pass;
        }
        match kind {
            // Pictures that all decode alone are thinned one by one. A P after one that was dropped needs
            // a scaler, as where references are too dense.
            Kind::VideoI if self.alone > BURST => {
                self.gate.broke(kind);
                self.dense = true;
                Thinned::Drop
            }
            Kind::VideoI | Kind::VideoP if self.ahead < BURST => {
                self.ahead += 1;
                Thinned::Pass
            }
            Kind::VideoI | Kind::VideoP => {
                self.gate.broke(kind);
                self.dense = true;
                Thinned::TooDense
            }
            Kind::VideoB
            | Kind::VideoLeading
            | Kind::Data
            | Kind::State
            | Kind::Picture
            | Kind::Audio => {
                self.gate.broke(kind);
                Thinned::Drop
            }
        }
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

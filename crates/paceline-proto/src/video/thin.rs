//! Temporal scaling of video by dropping alone.

use super::DecodeGate;
use crate::form::Rate;
use crate::sample::Kind;
use crate::temporal::TemporalScaler;
use paceline_sched::Duration;

/// How many samples more than are due references may bring, before dropping is not enough.
const BURST: u32 = 3;

/// What becomes of a sample of video whose stream has a rate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Thinned {
    /// It belongs to the thinned stream.
    Pass,
    /// It does not: the rate leaves it out, which is no loss.
    Drop,
    /// I and P alone exceed the rate: this one does not belong to the thinned stream, and neither does
    /// anything up to the next I that fits. Whoever needs the rate decodes and codes again from here;
    /// whoever cannot counts it as undecodable.
    TooDense,
    /// It needs something that did not pass for another reason ([`Thinner::broke`]).
    Undecodable,
}

/// Thins video to a rate by leaving out what nothing depends on.
///
/// A [`TemporalScaler`] says how many samples are due. I and P always pass; a B passes only while fewer
/// have passed than are due, so the stream is as evenly spread as its references allow. At any time
/// since the beginning, samples that did pass = samples due + at most 3, and at least those due where
/// everything could be decoded: over any stretch the rate is met to within 3 samples, and never
/// exceeded by more. Where I and P alone come faster the answer is [`Thinned::TooDense`].
///
/// What passes can always be decoded. A credit is not saved up while nothing passes.
#[derive(Clone, Debug)]
pub struct Thinner {
    due: TemporalScaler,
    gate: DecodeGate,
    /// How many more samples have passed than were due: 0 to [`BURST`].
    ahead: u32,
    /// The gate is closed because the references were too dense.
    dense: bool,
}

impl Thinner {
    /// A thinner to `rate` of a source whose publisher declared `period`, if it did.
    #[must_use]
    pub const fn new(rate: Rate, period: Option<Duration>) -> Self {
        let due = TemporalScaler::new(rate, period);
        Self { due, gate: DecodeGate::new(), ahead: 0, dense: false }
    }

    /// Whether the sample `seq` of `kind`, captured at `captured_ns`, belongs to the thinned stream.
    ///
    /// To be called once for each sample of the source, in order.
    #[must_use]
    pub fn offer(&mut self, kind: Kind, seq: u64, captured_ns: u64) -> Thinned {
        let due = self.due.take(seq, captured_ns);
        // It takes the place of the one that is due, if none has been taken ahead of its time.
        let in_turn = due && self.ahead == 0;
        self.ahead -= u32::from(due && !in_turn);
        self.dense &= kind != Kind::VideoI;
        if !self.gate.admit(kind) {
            return if self.dense { Thinned::TooDense } else { Thinned::Undecodable };
        }
        match kind {
            _ if in_turn => Thinned::Pass,
            Kind::VideoI | Kind::VideoP if self.ahead < BURST => {
                self.ahead += 1;
                Thinned::Pass
            }
            Kind::VideoI | Kind::VideoP => {
                self.gate.broke(kind);
                self.dense = true;
                Thinned::TooDense
            }
            Kind::VideoB | Kind::Data | Kind::State | Kind::Picture | Kind::Audio => Thinned::Drop,
        }
    }

    /// A sample of `kind` that passed was dropped after all.
    pub const fn broke(&mut self, kind: Kind) {
        self.gate.broke(kind);
    }
}

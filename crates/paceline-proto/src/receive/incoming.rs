//! A stream that arrives on a carrier that keeps order.

use super::{Lost, Received};
use crate::form::Form;
use crate::ids::PublisherId;
use crate::reason::DropReason;
use crate::wire::NUMBER_STEP_MAX;
use crate::wire::codec::WireError;
use crate::wire::segment::SampleHead;
use bytes::BytesMut;
use paceline_sched::Instant;

#[derive(Debug)]
pub(super) struct Unfinished {
    pub(super) head: SampleHead,
    /// The publish time of the sample, on the local clock.
    pub(super) published_at: Instant,
    /// The arrival of its first piece.
    pub(super) since: Instant,
    pub(super) bytes: BytesMut,
}

#[derive(Debug)]
pub(super) struct Incoming {
    /// The number on the wire. Streams in the same slot have different numbers.
    pub(super) id: u32,
    pub(super) publisher: PublisherId,
    pub(super) form: Form,
    /// The number of the next sample to begin.
    pub(super) next_number: u64,
    pub(super) unfinished: Option<Unfinished>,
    /// The hop went down since the last sample, which explains samples missing before the next one.
    pub(super) parted: bool,
}

impl Incoming {
    /// Reports the unseen samples below `number` as lost.
    ///
    /// # Errors
    /// Returns a [`WireError`] for an impossible number; then no sample is reported.
    pub(super) fn skip_to(
        &mut self,
        number: u64,
        found: &mut impl FnMut(Received),
    ) -> Result<(), WireError> {
        let (publisher, form) = (self.publisher, self.form);
        let reason = if self.parted { DropReason::LinkDown } else { DropReason::LinkLoss };
        let samples = check_step(self.next_number, number)?;
        self.next_number = number;
        self.parted = false;
        if samples > 0 {
            found(Received::Lost { publisher, form, lost: Lost::unseen(samples, reason) });
        }
        Ok(())
    }

    /// Returns the loss of a sample that has begun to arrive.
    pub(super) const fn lost_one(&self, head: &SampleHead, reason: DropReason) -> Received {
        let (publisher, form) = (self.publisher, self.form);
        let lost = Lost { samples: 1, reason, begun: Some((head.seq, head.kind)) };
        Received::Lost { publisher, form, lost }
    }
}

/// Returns the number of missing samples before sample `number` of a stream that expects `next`.
///
/// # Errors
/// Returns [`WireError::TooLarge`] for a gap that is larger than a link can lose, and [`WireError::Invalid`]
/// for a number that has already passed.
const fn check_step(next: u64, number: u64) -> Result<u64, WireError> {
    let field = "sample number";
    let max = next.saturating_add(NUMBER_STEP_MAX);
    if number > max {
        return Err(WireError::TooLarge { field, value: number, max });
    }
    match number.checked_sub(next) {
        Some(missing) => Ok(missing),
        None => Err(WireError::Invalid(field)),
    }
}

//! The outcome of a change, which the subscription's node reports by request number.

use crate::control::Control;
use crate::control::data::codec::{put_refusal, read_refusal};
use crate::control::data::grant::Grant;
use crate::control::data::refusal::Refusal;
use crate::ids::{NodeId, SubscriptionId};
use crate::topic::Topic;
use crate::wire::{Reader, WireError, Writer};
use bytes::Bytes;
use paceline_sched::Instant;

/// The most grants or refusals per answer; a pattern may match more publishers.
const ROWS_MAX: usize = 64;

const UNKNOWN: u8 = 0;
const PENDING: u8 = 1;
const REPLACED: u8 = 2;
const IN_FORCE: u8 = 3;
const REFUSED: u8 = 4;

/// The outcome of one request of a subscription.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ChangeOutcome {
    /// The subscription no longer exists, or it never made this request.
    Unknown,
    /// A path has not answered yet. The previous grant stays in force until then.
    Pending,
    /// A later request replaced this one.
    Replaced,
    /// The request is in force.
    InForce {
        /// The grants of the paths; empty if only best effort was requested, or no promise was possible.
        grants: Vec<Grant>,
    },
    /// A path refused the request.
    Refused {
        /// One refusal per publisher.
        refusals: Vec<Refusal>,
        /// True if the previous request is in force again.
        kept: bool,
    },
}

impl ChangeOutcome {
    /// Decodes the body of [`ControlOutput::Answered`](crate::control::ControlOutput::Answered) for
    /// [`Control::ask_outcome`].
    ///
    /// # Errors
    /// Returns [`WireError`] if the body is no outcome.
    pub fn decode(body: Bytes) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let outcome = match reader.u8("outcome")? {
            UNKNOWN => Self::Unknown,
            PENDING => Self::Pending,
            REPLACED => Self::Replaced,
            IN_FORCE => {
                let count = reader.len(ROWS_MAX, "grants")?;
                let grants = (0..count).map(|_| Grant::read(&mut reader));
                Self::InForce { grants: grants.collect::<Result<_, _>>()? }
            }
            REFUSED => {
                let kept = reader.flag("kept")?;
                let count = reader.len(ROWS_MAX, "refusals")?;
                let refusals = (0..count).map(|_| read_refusal(&mut reader));
                Self::Refused { refusals: refusals.collect::<Result<_, _>>()?, kept }
            }
            _ => return Err(WireError::Invalid("outcome")),
        };
        reader.finish()?;
        Ok(outcome)
    }

    fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        match self {
            Self::Unknown => out.put_u8(UNKNOWN),
            Self::Pending => out.put_u8(PENDING),
            Self::Replaced => out.put_u8(REPLACED),
            Self::InForce { grants } => {
                out.put_u8(IN_FORCE);
                let grants = grants.get(..ROWS_MAX).unwrap_or(grants);
                out.put_varint(grants.len() as u64);
                grants.iter().for_each(|grant| grant.write(&mut out));
            }
            Self::Refused { refusals, kept } => {
                out.put_u8(REFUSED);
                out.put_flag(*kept);
                let refusals = refusals.get(..ROWS_MAX).unwrap_or(refusals);
                out.put_varint(refusals.len() as u64);
                refusals.iter().for_each(|refusal| put_refusal(&mut out, refusal));
            }
        }
        out.into()
    }
}

impl Control {
    /// Requests the outcome of request `revision` from the subscription's node, which may be this one.
    ///
    /// Returns the number of the question.
    /// [`ControlOutput::Answered`](crate::control::ControlOutput::Answered) with that number carries a
    /// [`ChangeOutcome`].
    pub fn ask_outcome(&mut self, now: Instant, id: SubscriptionId, revision: u64) -> u64 {
        let mut body = vec![Topic::Outcome.code()];
        body.put_varint(id.index.into());
        body.put_varint(revision);
        self.ask(now, id.node, body.into())
    }

    pub(in crate::control) fn answer_outcome(&mut self, request: u64, from: NodeId, body: Bytes) {
        let Ok((index, revision)) = decode(body) else {
            self.rejected += 1;
            return;
        };
        let outcome = self.change_outcome(SubscriptionId { node: self.me, index }, revision);
        self.answer(self.now, request, from, outcome.encode());
    }
}

/// Returns the number of the subscription in the body of a question for an outcome.
pub(in crate::control) fn subscription_of_outcome(body: Bytes) -> Result<u32, WireError> {
    decode(body).map(|(index, _)| index)
}

fn decode(body: Bytes) -> Result<(u32, u64), WireError> {
    let mut reader = Reader::new(body);
    let asked = (reader.varint32("subscription")?, reader.varint("revision")?);
    reader.finish()?;
    Ok(asked)
}

//! What has become of a change: asked of the subscription's node, by the number of the request.

use super::Control;
use super::ask::Topic;
use super::codec::{put_refusal, read_refusal};
use super::grant::Grant;
use super::refusal::Refusal;
use crate::ids::{NodeId, SubscriptionId};
use crate::wire::{Reader, WireError, Writer};
use bytes::Bytes;
use paceline_sched::Instant;

/// The most grants or refusals of one answer; a pattern may match more publishers.
const ROWS_MAX: usize = 64;

const UNKNOWN: u8 = 0;
const PENDING: u8 = 1;
const REPLACED: u8 = 2;
const IN_FORCE: u8 = 3;
const REFUSED: u8 = 4;

/// What has become of one request of a subscription.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ChangeOutcome {
    /// There is no such subscription any more, or it never made this request.
    Unknown,
    /// A path has not answered yet. Until then what was granted before stays in force.
    Pending,
    /// A later request replaced it.
    Replaced,
    /// It is in force.
    InForce {
        /// What the paths promise; none where nothing is asked for but best effort, or nothing could be promised.
        grants: Vec<Grant>,
    },
    /// A path refused it.
    Refused {
        /// Why, for each publisher.
        refusals: Vec<Refusal>,
        /// The request before is in force again.
        kept: bool,
    },
}

impl ChangeOutcome {
    /// Reads what [`Output::Answered`](super::Output::Answered) brought for [`Control::ask_outcome`].
    ///
    /// # Errors
    /// [`WireError`] if it is none.
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
    /// Asks the node of a subscription, which may be this one, what has become of request `revision`.
    /// [`Output::Answered`](super::Output::Answered) with the number that this returns brings a [`ChangeOutcome`].
    pub fn ask_outcome(&mut self, now: Instant, id: SubscriptionId, revision: u64) -> u64 {
        let mut body = vec![Topic::Outcome.code()];
        body.put_varint(id.index.into());
        body.put_varint(revision);
        self.ask(now, id.node, body.into())
    }

    pub(super) fn answer_outcome(&mut self, request: u64, from: NodeId, body: Bytes) {
        let Ok((index, revision)) = decode(body) else {
            self.rejected += 1;
            return;
        };
        let outcome = self.change_outcome(SubscriptionId { node: self.me, index }, revision);
        self.answer(self.now, request, from, outcome.encode());
    }
}

fn decode(body: Bytes) -> Result<(u32, u64), WireError> {
    let mut reader = Reader::new(body);
    let asked = (reader.varint32("subscription")?, reader.varint("revision")?);
    reader.finish()?;
    Ok(asked)
}

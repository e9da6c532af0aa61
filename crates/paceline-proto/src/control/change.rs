//! A subscription asks for something else, whoever wants that: its own program, or somebody at another node.
//!
//! The subscription's node does it and says whether it could. What is promised follows as it does from any
//! other change of a record ([`super::admission`]): what is installed stays until the path has answered.

use super::ask::Topic;
use super::codec::{put_subscription, read_subscription};
use super::spec::SubscriptionSpec;
use super::{Control, Output};
use crate::ids::{NodeId, SubscriptionId};
use crate::wire::{Reader, WireError, Writer};
use bytes::Bytes;
use paceline_sched::Instant;

/// What a subscription's node says to a change.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ChangeAnswer {
    /// It asks for that now.
    Done,
    /// There is no such subscription, or what was asked for would make another one of it: another pattern,
    /// or a buffer of what was none.
    Unknown,
}

impl ChangeAnswer {
    /// Reads what [`Output::Answered`] brought for [`Control::change_subscription`].
    ///
    /// # Errors
    /// [`WireError`] if it is none.
    pub fn decode(body: Bytes) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let done = reader.flag("change")?;
        reader.finish()?;
        Ok(if done { Self::Done } else { Self::Unknown })
    }

    fn encode(self) -> Bytes {
        let mut out = Vec::new();
        out.put_flag(self == Self::Done);
        out.into()
    }
}

impl Control {
    /// What a subscription of any node that is known asks for.
    #[must_use]
    pub fn subscription(&self, id: SubscriptionId) -> Option<&SubscriptionSpec> {
        self.registry.record(id.node)?.subscriptions.get(&id)
    }

    /// Asks the node of a subscription, which may be this one, to let it ask for `spec`.
    /// [`Output::Answered`] with the number that this returns brings a [`ChangeAnswer`].
    pub fn change_subscription(
        &mut self,
        now: Instant,
        id: SubscriptionId,
        spec: &SubscriptionSpec,
    ) -> u64 {
        let mut body = vec![Topic::Change.code()];
        body.put_varint(id.index.into());
        put_subscription(&mut body, spec);
        self.ask(now, id.node, body.into())
    }

    /// Somebody wants a subscription of this node to ask for something else.
    pub(super) fn answer_change(&mut self, request: u64, from: NodeId, body: Bytes) {
        let Ok((index, spec)) = decode(body) else {
            self.rejected += 1;
            return;
        };
        let subscription = SubscriptionId { node: self.me, index };
        let before = self.subscription(subscription);
        let fits = before.is_some_and(|before| {
            let SubscriptionSpec { pattern, holds, local, .. } = before;
            (pattern, *holds, *local) == (&spec.pattern, spec.holds, spec.local)
                && !pattern.is_private()
        });
        if fits && before != Some(&spec) {
            self.update_subscription(self.now, subscription, spec.clone());
            self.outputs.push_back(Output::Changed { subscription, spec });
        }
        let answer = if fits { ChangeAnswer::Done } else { ChangeAnswer::Unknown };
        self.answer(self.now, request, from, answer.encode());
    }
}

fn decode(body: Bytes) -> Result<(u32, SubscriptionSpec), WireError> {
    let mut reader = Reader::new(body);
    let (index, spec) = (reader.varint32("subscription")?, read_subscription(&mut reader)?);
    reader.finish()?;
    Ok((index, spec))
}

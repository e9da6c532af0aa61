//! Changes of a subscription's request, by its own program or by another node.
//!
//! The subscription's node numbers the new request ([`SubscriptionSpec::revision`]) and announces it.
//! Reservations, grants and refusals carry that number, so every answer belongs to one request
//! ([`super::admission`]). Until the paths have answered, their previous grants stay in force. If one of them
//! refuses, the change is rolled back: the subscription returns to its previous request and number, as if
//! there had been no change. A change with [`SubscriptionSpec::or_stop`] is not rolled back.

use super::Answer;
use super::outcome::ChangeOutcome;
use super::streams::publishers_of;
use crate::control::data::codec::{put_lack, put_subscription, read_lack, read_subscription};
use crate::control::data::elastic::Adaptation;
use crate::control::data::ids::PairKey;
use crate::control::data::refusal::Refusal;
use crate::control::data::spec::SubscriptionSpec;
use crate::control::membership::registry::Change;
use crate::control::{Control, ControlOutput};
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use crate::rights::Lack;
use crate::tag::Pattern;
use crate::topic::Topic;
use crate::wire::{Reader, WireError, Writer};
use bytes::Bytes;
use paceline_sched::Instant;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The number of rolled-back changes that are remembered for later queries.
const TAKEN_BACK_MAX: usize = 256;

/// Changes of this node's subscriptions.
#[derive(Debug, Default)]
pub(in crate::control) struct State {
    /// The last number assigned to a request.
    last: u64,
    /// The subscriptions with a change that some path has not answered.
    open: BTreeMap<SubscriptionId, Open>,
    /// The subscriptions of this node with an unanswered path request.
    unanswered: BTreeSet<SubscriptionId>,
    /// The changes that were rolled back, oldest first.
    taken_back: VecDeque<(SubscriptionId, u64, Vec<Refusal>)>,
}

/// The state before an open change.
#[derive(Debug)]
struct Open {
    /// The previous request.
    before: SubscriptionSpec,
    /// The publishers that the subscription received then.
    heard: BTreeSet<PublisherId>,
}

/// The answer of a subscription's node to a change.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ChangeAnswer {
    /// The subscription's request has changed.
    Done {
        /// The number of the new request.
        revision: u64,
    },
    /// There is no such subscription, or the new request would make it a different one: another pattern, or
    /// another use of pull buffers.
    Unknown,
    /// The policy of the subscription's node does not allow the change.
    Denied(Lack),
}

impl ChangeAnswer {
    /// Decodes the body of [`ControlOutput::Answered`] for [`Control::change_subscription`].
    ///
    /// # Errors
    /// Returns [`WireError`] if the body is no such answer.
    pub fn decode(body: Bytes) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let answer = match reader.u8("change")? {
            0 => Self::Unknown,
            1 => Self::Done { revision: reader.varint("revision")? },
            2 => Self::Denied(read_lack(&mut reader)?),
            _ => return Err(WireError::Invalid("change")),
        };
        reader.finish()?;
        Ok(answer)
    }

    pub(in crate::control) fn encode(self) -> Bytes {
        let mut out = Vec::new();
        match self {
            Self::Unknown => out.put_u8(0),
            Self::Done { revision } => {
                out.put_u8(1);
                out.put_varint(revision);
            }
            Self::Denied(lack) => {
                out.put_u8(2);
                put_lack(&mut out, lack);
            }
        }
        out.into()
    }
}

impl Control {
    /// Returns the request of a subscription of any known node.
    #[must_use]
    pub fn subscription(&self, id: SubscriptionId) -> Option<&SubscriptionSpec> {
        self.membership.registry.record(id.node)?.subscriptions.get(&id)
    }

    /// Returns true if a subscription of any node uses only samples with proved ages.
    #[must_use]
    pub fn wants_proofs(&self) -> bool {
        let all =
            self.membership.registry.all().flat_map(|(_, record)| record.subscriptions.values());
        { all }.any(|spec| spec.proves)
    }

    /// Requests a change to `spec` from the node of a subscription, which may be this one.
    ///
    /// Returns the number of the question. [`ControlOutput::Answered`] with that number carries a
    /// [`ChangeAnswer`].
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

    /// Changes a subscription of this node on request, and answers.
    pub(in crate::control) fn answer_change(&mut self, request: u64, from: NodeId, body: Bytes) {
        let Ok((index, spec)) = decode(body) else {
            self.rejected += 1;
            return;
        };
        let subscription = SubscriptionId { node: self.me, index };
        let fits = self.subscription(subscription).is_some_and(|before| {
            let SubscriptionSpec { pattern, holds, local, .. } = before;
            (pattern, *holds, *local) == (&spec.pattern, spec.holds, spec.local)
                && !pattern.is_private()
        });
        if fits && from != self.me {
            self.outputs.push_back(ControlOutput::ChangedFor { node: from, subscription });
        }
        let answer = match fits {
            true => ChangeAnswer::Done { revision: self.change(subscription, spec) },
            false => ChangeAnswer::Unknown,
        };
        self.answer(self.now, request, from, answer.encode());
    }

    /// Changes the request of a subscription of this node to `spec`. Returns the number of the new request.
    pub(in crate::control) fn change(
        &mut self,
        subscription: SubscriptionId,
        spec: SubscriptionSpec,
    ) -> u64 {
        self.begin_change(subscription, spec, None)
    }

    /// Changes the request of a subscription of this node, by a program or by the `adaptation` of an elastic contract.
    pub(in crate::control) fn begin_change(
        &mut self,
        subscription: SubscriptionId,
        mut spec: SubscriptionSpec,
        adaptation: Option<Box<Adaptation>>,
    ) -> u64 {
        let Some(before) = self.subscription(subscription).cloned() else { return 0 };
        if before.asks_the_same(&spec) {
            return before.revision;
        }
        self.contracts.changes.last += 1;
        spec.revision = self.contracts.changes.last;
        let heard = publishers_of(&self.streams.heard, subscription).collect();
        // An unanswered change was never in force, so keep the request before it.
        self.contracts.changes.open.entry(subscription).or_insert(Open { before, heard });
        self.announce(Change::Subscribe(subscription.index, spec.clone()), None);
        if adaptation.is_none() {
            self.contracts.elastic.requested(subscription, self.contracts.changes.last);
        }
        self.outputs.push_back(ControlOutput::Changed { subscription, spec, adaptation });
        self.contracts.changes.last
    }

    /// Returns the changes to roll back, given the refusals of the current requests.
    pub(in crate::control) fn refused_changes(
        &self,
        answers: &BTreeMap<PairKey, Refusal>,
    ) -> BTreeMap<SubscriptionId, Vec<Refusal>> {
        let mut refused: BTreeMap<SubscriptionId, Vec<Refusal>> = BTreeMap::new();
        for ((subscription, publisher), refusal) in answers {
            // A changed contract stays without its spare.
            if !refusal.spare && self.was_in_force(*subscription, *publisher) {
                refused.entry(*subscription).or_default().push(refusal.clone());
            }
        }
        refused
    }

    /// Returns true if a refusal of the current request must restore the previous one for this publisher.
    fn was_in_force(&self, subscription: SubscriptionId, publisher: PublisherId) -> bool {
        let or_stop = self.subscription(subscription).is_none_or(|spec| spec.or_stop);
        let booked = || self.contracts.admission.booking_of((subscription, publisher)).is_some();
        let open = self.contracts.changes.open.get(&subscription);
        !or_stop && open.is_some_and(|open| open.heard.contains(&publisher) || booked())
    }

    /// Rolls back the refused changes, and ends those that all paths have answered.
    pub(in crate::control) fn follow_changes(
        &mut self,
        refused: BTreeMap<SubscriptionId, Vec<Refusal>>,
        unanswered: BTreeSet<SubscriptionId>,
    ) {
        for (subscription, refusals) in refused {
            self.take_back(subscription, refusals);
        }
        self.contracts.changes.unanswered = unanswered;
        let State { open, unanswered, .. } = &mut self.contracts.changes;
        let done = |id: &SubscriptionId| !unanswered.contains(id);
        let ended: Vec<SubscriptionId> = open.keys().copied().filter(done).collect();
        for subscription in ended {
            self.contracts.changes.open.remove(&subscription);
            if let Some(spec) = self.subscription(subscription).cloned() {
                self.outputs.push_back(ControlOutput::InForce { subscription, spec });
            }
        }
    }

    /// Restores a subscription's request before its last change.
    fn take_back(&mut self, subscription: SubscriptionId, refusals: Vec<Refusal>) {
        let Some(Open { before, .. }) = self.contracts.changes.open.remove(&subscription) else {
            return;
        };
        let Some(now) = self.subscription(subscription).map(|spec| spec.revision) else { return };
        if self.contracts.changes.taken_back.len() >= TAKEN_BACK_MAX {
            self.contracts.changes.taken_back.pop_front();
        }
        self.contracts.changes.taken_back.push_back((subscription, now, refusals.clone()));
        self.announce(Change::Subscribe(subscription.index, before.clone()), None);
        self.outputs.push_back(ControlOutput::ChangeRefused {
            subscription,
            refusals,
            spec: before,
        });
    }

    /// Handles a refusal outside any record. Returns true if it answered a change, which is then rolled back.
    pub(in crate::control) fn hear_refused_change(&mut self, refusal: &Refusal) -> bool {
        let (subscription, publisher) = (refusal.subscription, refusal.publisher);
        let refused = !refusal.spare && self.was_in_force(subscription, publisher);
        if refused {
            self.take_back(subscription, vec![refusal.clone()]);
        }
        refused
    }

    /// Returns the outcome of request `revision` of a subscription of this node.
    pub(in crate::control) fn change_outcome(
        &self,
        subscription: SubscriptionId,
        revision: u64,
    ) -> ChangeOutcome {
        let State { open, unanswered, taken_back, .. } = &self.contracts.changes;
        let same = |(id, of, _): &&(SubscriptionId, u64, Vec<Refusal>)| {
            (*id, *of) == (subscription, revision)
        };
        if let Some((.., refusals)) = taken_back.iter().rev().find(same) {
            return ChangeOutcome::Refused { refusals: refusals.clone(), kept: true };
        }
        let Some(now) = self.subscription(subscription) else { return ChangeOutcome::Unknown };
        // The steps of an elastic contract belong to the request of the program.
        let adapted = self.contracts.elastic.is_of(subscription, revision);
        if now.revision != revision && !adapted {
            return match revision <= self.contracts.changes.last {
                true => ChangeOutcome::Replaced,
                false => ChangeOutcome::Unknown,
            };
        }
        if self.dirty || open.contains_key(&subscription) || unanswered.contains(&subscription) {
            return ChangeOutcome::Pending;
        }
        let its = self.contracts.answers.iter().filter(|(key, _)| key.0 == subscription);
        let answers: Vec<&Answer> = its.map(|(_, answer)| answer).collect();
        let refusals: Vec<Refusal> = answers.iter().filter_map(|it| it.refused.clone()).collect();
        if !refusals.is_empty() {
            return ChangeOutcome::Refused { refusals, kept: false };
        }
        let grants = answers.iter().filter_map(|it| it.granted.clone());
        ChangeOutcome::InForce { grants: grants.collect() }
    }

    /// Removes the open change of a subscription that has ended.
    pub(in crate::control) fn forget_changes(&mut self, subscription: SubscriptionId) {
        self.contracts.changes.open.remove(&subscription);
        self.contracts.elastic.forget(subscription);
    }

    /// Returns the request that a refusal of the open change of a subscription would restore.
    pub(in crate::control) fn request_before(
        &self,
        subscription: SubscriptionId,
        publisher: PublisherId,
    ) -> Option<&SubscriptionSpec> {
        let open = self.contracts.changes.open.get(&subscription)?;
        self.was_in_force(subscription, publisher).then_some(&open.before)
    }
}

/// Returns the pattern in the body of a request for a change.
pub(in crate::control) fn pattern_of_change(body: Bytes) -> Result<Pattern, WireError> {
    decode(body).map(|(_, spec)| spec.pattern)
}

fn decode(body: Bytes) -> Result<(u32, SubscriptionSpec), WireError> {
    let mut reader = Reader::new(body);
    let (index, spec) = (reader.varint32("subscription")?, read_subscription(&mut reader)?);
    reader.finish()?;
    Ok((index, spec))
}

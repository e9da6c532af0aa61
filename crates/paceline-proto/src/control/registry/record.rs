//! A node's record of itself, and its changes.

use crate::control::refusal::Refusal;
use crate::control::spec::{HopInfo, PublisherSpec, SubscriptionSpec};
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use crate::wire::WireError;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most publishers of one node.
pub const PUBLISHERS_MAX: usize = 65_536;
/// The most subscriptions of one node.
pub const SUBSCRIPTIONS_MAX: usize = 65_536;
/// The most neighbours of one node.
pub const NEIGHBOURS_MAX: usize = 4_096;
/// The most refusals in the record of one node.
pub const REFUSALS_MAX: usize = 4_096;
/// The most marks of contracts in the record of one node.
pub(in crate::control) const MARKS_MAX: usize = 4_096;
/// The most computed places of proxies in the record of one node.
pub(in crate::control) const PLACES_MAX: usize = 4_096;

/// A (subscription, publisher) pair, the subject of a grant or refusal.
pub(crate) type PairKey = (SubscriptionId, PublisherId);

/// The state of a contract that other nodes need to know, as announced by the publisher's node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mark {
    /// Its reservation was released after its idle time. Its samples are sent as best effort.
    Idle,
    /// Its path has granted it, and it waits for the opposite contract or has it.
    Reserved,
    /// Its path has refused it since the opposite contract was reserved.
    Refused,
    /// It has a spare, and the marked reservation carries its samples.
    Carried,
}

impl Mark {
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Idle => 0,
            Self::Reserved => 1,
            Self::Refused => 2,
            Self::Carried => 3,
        }
    }

    pub(crate) const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Idle),
            1 => Some(Self::Reserved),
            2 => Some(Self::Refused),
            3 => Some(Self::Carried),
            _ => None,
        }
    }
}

/// A node's record of itself.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Record {
    pub(crate) version: u64,
    pub(crate) name: String,
    pub(crate) publishers: BTreeMap<PublisherId, Arc<PublisherSpec>>,
    pub(crate) subscriptions: BTreeMap<SubscriptionId, SubscriptionSpec>,
    pub(crate) neighbours: BTreeMap<NodeId, HopInfo>,
    pub(crate) refusals: BTreeMap<PairKey, Refusal>,
    /// The marks of contracts of its publishers, with the revision of the request; for [`Mark::Carried`], with the number
    /// of the reservation.
    pub(crate) marks: BTreeMap<PairKey, (u64, Mark)>,
    /// The nodes that scale the samples of its publishers for subscriptions that leave the choice to this node.
    pub(crate) places: BTreeMap<PairKey, NodeId>,
}

/// A change of a record; it raises the record's version by one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Change {
    /// A new publisher, or a new spec of an existing one.
    Publish(u32, Arc<PublisherSpec>),
    Unpublish(u32),
    /// A new subscription, or a new spec of an existing one.
    Subscribe(u32, SubscriptionSpec),
    Unsubscribe(u32),
    /// A new neighbour, or a new hop to an existing one.
    HopUp(NodeId, HopInfo),
    HopDown(NodeId),
    /// A new refusal, or new figures of an existing one.
    Refuse(Refusal),
    Release(SubscriptionId, PublisherId),
    /// A new mark of a request's revision or of a reservation's number, or another one.
    Mark(PairKey, u64, Mark),
    Unmark(SubscriptionId, PublisherId),
    /// A computed place of a proxy, or another one.
    Place(PairKey, NodeId),
    Unplace(SubscriptionId, PublisherId),
}

impl Record {
    /// Returns about the encoded size.
    pub(super) fn bytes(&self) -> usize {
        let publishers = self.publishers.values();
        let publishers =
            publishers.map(|of| 32 + of.tag.as_str().len() + of.encoding.as_str().len());
        let asked = self.subscriptions.values().map(|of| 32 + of.pattern.as_str().len());
        let hops = self.neighbours.values().map(|hop| 24 + hop.link_name.len());
        let refusals = self.refusals.values().map(|_| 128);
        let marks = self.marks.values().map(|_| 32);
        let places = self.places.values().map(|_| 32);
        let parts = publishers.chain(asked).chain(hops).chain(refusals).chain(marks).chain(places);
        self.name.len() + parts.sum::<usize>()
    }

    /// Applies the change to `node`'s record, or changes nothing on error.
    pub(crate) fn apply(&mut self, node: NodeId, change: Change) -> Result<(), WireError> {
        match change {
            Change::Publish(index, spec) => {
                let id = PublisherId { node, index };
                let others = self.publishers.len() - usize::from(self.publishers.contains_key(&id));
                below(others, PUBLISHERS_MAX, "publishers")?;
                self.publishers.insert(id, spec);
            }
            Change::Unpublish(index) => {
                self.publishers.remove(&PublisherId { node, index });
            }
            Change::Subscribe(index, spec) => {
                let id = SubscriptionId { node, index };
                let known = usize::from(self.subscriptions.contains_key(&id));
                below(self.subscriptions.len() - known, SUBSCRIPTIONS_MAX, "subscriptions")?;
                self.subscriptions.insert(id, spec);
            }
            Change::Unsubscribe(index) => {
                self.subscriptions.remove(&SubscriptionId { node, index });
            }
            Change::HopUp(hop, info) => {
                let others =
                    self.neighbours.len() - usize::from(self.neighbours.contains_key(&hop));
                below(others, NEIGHBOURS_MAX, "neighbours")?;
                self.neighbours.insert(hop, info);
            }
            Change::HopDown(hop) => {
                self.neighbours.remove(&hop);
            }
            Change::Refuse(refusal) => {
                let key = (refusal.subscription, refusal.publisher);
                let others = self.refusals.len() - usize::from(self.refusals.contains_key(&key));
                below(others, REFUSALS_MAX, "refusals")?;
                self.refusals.insert(key, refusal);
            }
            Change::Release(subscription, publisher) => {
                self.refusals.remove(&(subscription, publisher));
            }
            Change::Mark(key, revision, mark) => {
                let others = self.marks.len() - usize::from(self.marks.contains_key(&key));
                below(others, MARKS_MAX, "marks")?;
                self.marks.insert(key, (revision, mark));
            }
            Change::Unmark(subscription, publisher) => {
                self.marks.remove(&(subscription, publisher));
            }
            Change::Place(key, place) => {
                let others = self.places.len() - usize::from(self.places.contains_key(&key));
                below(others, PLACES_MAX, "places")?;
                self.places.insert(key, place);
            }
            Change::Unplace(subscription, publisher) => {
                self.places.remove(&(subscription, publisher));
            }
        }
        self.version += 1;
        Ok(())
    }
}

/// Returns an error for one more item than `max`.
pub(super) fn below(count: usize, max: usize, field: &'static str) -> Result<(), WireError> {
    if count < max {
        return Ok(());
    }
    Err(WireError::TooLarge { field, value: count as u64 + 1, max: max as u64 })
}

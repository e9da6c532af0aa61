//! A node's record of itself, and its changes.

use super::table::{Table, Unread};
use crate::control::data::ids::PairKey;
use crate::control::data::refusal::Refusal;
use crate::control::data::spec::{HopInfo, PublisherSpec, SubscriptionSpec};
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use crate::medium::MediumLink;
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
/// The most links on shared media in the record of one node.
pub(in crate::control) const MEDIA_MAX: usize = 64;

/// The limit of each table, and its name.
pub(in crate::control) const PUBLISHERS: (usize, &str) = (PUBLISHERS_MAX, "publishers");
pub(in crate::control) const SUBSCRIPTIONS: (usize, &str) = (SUBSCRIPTIONS_MAX, "subscriptions");
pub(in crate::control) const NEIGHBOURS: (usize, &str) = (NEIGHBOURS_MAX, "neighbours");
pub(in crate::control) const REFUSALS: (usize, &str) = (REFUSALS_MAX, "refusals");
pub(in crate::control) const MARKS: (usize, &str) = (MARKS_MAX, "marks");
pub(in crate::control) const PLACES: (usize, &str) = (PLACES_MAX, "places");
pub(in crate::control) const MEDIA: (usize, &str) = (MEDIA_MAX, "links on media");

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

/// The place of an entry in a node's record.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum EntryKey {
    Publisher(u32),
    Subscription(u32),
    Neighbour(NodeId),
    Refusal(PairKey),
    Mark(PairKey),
    Place(PairKey),
    Medium(u32),
}

/// A node's record of itself.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Record {
    pub(crate) version: u64,
    pub(crate) name: String,
    pub(crate) publishers: Table<PublisherId, Arc<PublisherSpec>>,
    pub(crate) subscriptions: Table<SubscriptionId, SubscriptionSpec>,
    pub(crate) neighbours: Table<NodeId, HopInfo>,
    pub(crate) refusals: Table<PairKey, Refusal>,
    /// The marks of contracts of its publishers, with the revision of the request; for [`Mark::Carried`], with the number
    /// of the reservation.
    pub(crate) marks: Table<PairKey, (u64, Mark)>,
    /// The nodes that scale the samples of its publishers for subscriptions that leave the choice to this node.
    pub(crate) places: Table<PairKey, NodeId>,
    /// Its links on shared media, by its own numbers.
    pub(crate) media: Table<u32, MediumLink>,
}

/// A change of a record; it raises the record's version by one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Change {
    /// A new publisher, or a new spec of an existing one.
    Publish(u32, Arc<PublisherSpec>),
    /// A new subscription, or a new spec of an existing one.
    Subscribe(u32, SubscriptionSpec),
    /// A new neighbour, or a new hop to an existing one.
    HopUp(NodeId, HopInfo),
    /// A new refusal, or new figures of an existing one.
    Refuse(Refusal),
    /// A new mark of a request's revision or of a reservation's number, or another one.
    Mark(PairKey, u64, Mark),
    /// A computed place of a proxy, or another one.
    Place(PairKey, NodeId),
    /// A new link on a shared medium, or its new state.
    Medium(u32, Box<MediumLink>),
    /// An entry of which this node can read only the place.
    Unread(EntryKey, Unread),
    /// The end of an entry.
    Remove(EntryKey),
}

impl Change {
    /// Returns the place of the changed entry.
    pub(crate) const fn key(&self) -> EntryKey {
        match self {
            Self::Publish(index, _) => EntryKey::Publisher(*index),
            Self::Subscribe(index, _) => EntryKey::Subscription(*index),
            Self::HopUp(node, _) => EntryKey::Neighbour(*node),
            Self::Refuse(refusal) => EntryKey::Refusal((refusal.subscription, refusal.publisher)),
            Self::Mark(pair, ..) => EntryKey::Mark(*pair),
            Self::Place(pair, _) => EntryKey::Place(*pair),
            Self::Medium(index, _) => EntryKey::Medium(*index),
            Self::Unread(key, _) | Self::Remove(key) => *key,
        }
    }
}

/// Returns the memory of an entry in a table: half of a node of the tree is in use after entries in order, and texts are
/// allocations. A process has been measured to use 427 bytes for a subscription of 1 byte.
const fn held<V>() -> usize {
    size_of::<V>() * 2 + 48
}

/// Returns the least memory of a record with so many publishers and subscriptions.
pub(in crate::control) const fn least_held(publishers: usize, subscriptions: usize) -> usize {
    publishers * held::<PublisherSpec>() + subscriptions * held::<SubscriptionSpec>()
}

impl Record {
    /// Returns about the memory that the record uses: its entries, their texts, and the places of both in the tables.
    pub(in crate::control) fn held_bytes(&self) -> usize {
        let publishers = self.publishers.values();
        let publishers = publishers
            .map(|of| held::<PublisherSpec>() + of.tag.as_str().len() + of.encoding.as_str().len());
        let asked = self.subscriptions.values();
        let asked = asked.map(|of| held::<SubscriptionSpec>() + of.pattern.as_str().len());
        let hops = self.neighbours.values().map(|hop| held::<HopInfo>() + hop.link_name.len());
        let refusals = self.refusals.values().map(|_| held::<Refusal>());
        let media = self.media.values().map(MediumLink::held_bytes);
        let small = self.marks.len() + self.places.len();
        let unread = self.unread().map(|(_, unread)| held::<Unread>() + unread.bytes.len());
        let parts = publishers.chain(asked).chain(hops).chain(refusals).chain(media).chain(unread);
        size_of::<Self>() + self.name.len() + small * held::<(u64, u64)>() + parts.sum::<usize>()
    }

    /// Returns the entries that this node cannot read.
    pub(crate) fn unread(&self) -> impl Iterator<Item = (EntryKey, &Unread)> + '_ {
        fn keyed<'t, K>(
            unread: &'t BTreeMap<K, Unread>,
            key: impl Fn(&K) -> EntryKey + 't,
        ) -> impl Iterator<Item = (EntryKey, &'t Unread)> + 't {
            unread.iter().map(move |(at, unread)| (key(at), unread))
        }
        let publishers = keyed(self.publishers.unread(), |id| EntryKey::Publisher(id.index));
        let asked = keyed(self.subscriptions.unread(), |id| EntryKey::Subscription(id.index));
        let hops = keyed(self.neighbours.unread(), |node| EntryKey::Neighbour(*node));
        let refusals = keyed(self.refusals.unread(), |pair| EntryKey::Refusal(*pair));
        let marks = keyed(self.marks.unread(), |pair| EntryKey::Mark(*pair));
        let places = keyed(self.places.unread(), |pair| EntryKey::Place(*pair));
        let media = keyed(self.media.unread(), |index| EntryKey::Medium(*index));
        publishers.chain(asked).chain(hops).chain(refusals).chain(marks).chain(places).chain(media)
    }

    /// Applies the change to `node`'s record, or changes nothing on error.
    pub(crate) fn apply(&mut self, node: NodeId, change: Change) -> Result<(), WireError> {
        let key = change.key();
        match change {
            Change::Publish(index, spec) => {
                self.publishers.set(PublisherId { node, index }, Ok(spec), PUBLISHERS)?;
            }
            Change::Subscribe(index, spec) => {
                self.subscriptions.set(SubscriptionId { node, index }, Ok(spec), SUBSCRIPTIONS)?;
            }
            Change::HopUp(hop, info) => self.neighbours.set(hop, Ok(info), NEIGHBOURS)?,
            Change::Refuse(refusal) => {
                let pair = (refusal.subscription, refusal.publisher);
                self.refusals.set(pair, Ok(refusal), REFUSALS)?;
            }
            Change::Mark(pair, revision, mark) => {
                self.marks.set(pair, Ok((revision, mark)), MARKS)?;
            }
            Change::Place(pair, place) => self.places.set(pair, Ok(place), PLACES)?,
            Change::Medium(index, link) => self.media.set(index, Ok(*link), MEDIA)?,
            Change::Unread(_, unread) => self.set_unread(node, key, unread)?,
            Change::Remove(_) => self.remove(node, key),
        }
        self.version += 1;
        Ok(())
    }

    fn set_unread(&mut self, node: NodeId, key: EntryKey, unread: Unread) -> Result<(), WireError> {
        match key {
            EntryKey::Publisher(index) => {
                self.publishers.set(PublisherId { node, index }, Err(unread), PUBLISHERS)
            }
            EntryKey::Subscription(index) => {
                self.subscriptions.set(SubscriptionId { node, index }, Err(unread), SUBSCRIPTIONS)
            }
            EntryKey::Neighbour(hop) => self.neighbours.set(hop, Err(unread), NEIGHBOURS),
            EntryKey::Refusal(pair) => self.refusals.set(pair, Err(unread), REFUSALS),
            EntryKey::Mark(pair) => self.marks.set(pair, Err(unread), MARKS),
            EntryKey::Place(pair) => self.places.set(pair, Err(unread), PLACES),
            EntryKey::Medium(index) => self.media.set(index, Err(unread), MEDIA),
        }
    }

    fn remove(&mut self, node: NodeId, key: EntryKey) {
        match key {
            EntryKey::Publisher(index) => self.publishers.remove(&PublisherId { node, index }),
            EntryKey::Subscription(index) => {
                self.subscriptions.remove(&SubscriptionId { node, index });
            }
            EntryKey::Neighbour(hop) => self.neighbours.remove(&hop),
            EntryKey::Refusal(pair) => self.refusals.remove(&pair),
            EntryKey::Mark(pair) => self.marks.remove(&pair),
            EntryKey::Place(pair) => self.places.remove(&pair),
            EntryKey::Medium(index) => self.media.remove(&index),
        }
    }
}

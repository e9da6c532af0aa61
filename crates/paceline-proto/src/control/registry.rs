//! The registry: one record per node, which only that node originates, identical on every node.

use super::refusal::Refusal;
use super::spec::{HopInfo, PublisherSpec, SubscriptionSpec};
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use crate::wire::WireError;
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most nodes in a registry.
pub const NODES_MAX: usize = 4_096;
/// The most publishers of one node.
pub const PUBLISHERS_MAX: usize = 65_536;
/// The most subscriptions of one node.
pub const SUBSCRIPTIONS_MAX: usize = 65_536;
/// The most neighbours of one node.
pub const NEIGHBOURS_MAX: usize = 4_096;
/// The most refusals in the record of one node.
pub const REFUSALS_MAX: usize = 4_096;
/// The longest name of a node or link, in bytes.
pub const NAME_BYTES_MAX: usize = 255;

/// The largest version of a record, far below overflow.
pub(crate) const VERSION_MAX: u64 = 1 << 62;

/// The time for which the record of an unreachable node is kept. A link that recovers earlier need not fetch
/// everything again.
const FORGET_AFTER: Duration = Duration::from_secs(30);

/// A (subscription, publisher) pair, the subject of a grant or refusal.
pub(crate) type PairKey = (SubscriptionId, PublisherId);

/// A node's record of itself.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Record {
    pub(crate) version: u64,
    pub(crate) name: String,
    pub(crate) publishers: BTreeMap<PublisherId, Arc<PublisherSpec>>,
    pub(crate) subscriptions: BTreeMap<SubscriptionId, SubscriptionSpec>,
    pub(crate) neighbours: BTreeMap<NodeId, HopInfo>,
    pub(crate) refusals: BTreeMap<PairKey, Refusal>,
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
}

/// The result of applying a change.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Applied {
    /// The change was the next one.
    New,
    /// The change was already known.
    Old,
    /// Earlier changes are missing.
    Gap,
}

fn below(count: usize, max: usize, field: &'static str) -> Result<(), WireError> {
    if count < max {
        return Ok(());
    }
    Err(WireError::TooLarge { field, value: count as u64 + 1, max: max as u64 })
}

impl Record {
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
        }
        self.version += 1;
        Ok(())
    }
}

/// A record, and the instant at which its node became unreachable.
#[derive(Clone, Debug)]
struct Entry {
    record: Record,
    unreachable_since: Option<Instant>,
}

/// The records of all nodes known to this one.
#[derive(Clone, Debug)]
pub(crate) struct Registry {
    entries: BTreeMap<NodeId, Entry>,
}

impl Registry {
    /// Creates the registry of a node that has just started and knows only itself.
    pub(crate) fn new(me: NodeId, name: String) -> Self {
        let record = Record { version: 1, name, ..Record::default() };
        Self { entries: BTreeMap::from([(me, Entry { record, unreachable_since: None })]) }
    }

    /// Returns all records, in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = (NodeId, &Record)> + '_ {
        self.entries.iter().map(|(&node, entry)| (node, &entry.record))
    }

    pub(crate) fn record(&self, node: NodeId) -> Option<&Record> {
        self.entries.get(&node).map(|entry| &entry.record)
    }

    /// Returns the version of a node's record; 0 if there is none.
    pub(crate) fn version(&self, node: NodeId) -> u64 {
        self.record(node).map_or(0, |record| record.version)
    }

    /// Returns true if both nodes list each other. A single entry may describe a link that no longer exists.
    pub(crate) fn linked(&self, one: NodeId, other: NodeId) -> bool {
        let lists = |from, to| {
            self.record(from).is_some_and(|record: &Record| record.neighbours.contains_key(&to))
        };
        lists(one, other) && lists(other, one)
    }

    /// Applies a change if it leads to `version` and that is exactly one above the current version.
    pub(crate) fn apply(
        &mut self,
        node: NodeId,
        version: u64,
        change: Change,
    ) -> Result<Applied, WireError> {
        let Some(entry) = self.entries.get_mut(&node) else { return Ok(Applied::Gap) };
        let next = entry.record.version + 1;
        match version.cmp(&next) {
            core::cmp::Ordering::Less => Ok(Applied::Old),
            core::cmp::Ordering::Greater => Ok(Applied::Gap),
            core::cmp::Ordering::Equal => entry.record.apply(node, change).map(|()| Applied::New),
        }
    }

    /// Replaces a record if the new one is newer. A node that was never reachable counts as unreachable from
    /// `now` on.
    pub(crate) fn replace(
        &mut self,
        now: Instant,
        node: NodeId,
        record: Record,
    ) -> Result<Applied, WireError> {
        if let Some(entry) = self.entries.get_mut(&node) {
            if record.version <= entry.record.version {
                return Ok(Applied::Old);
            }
            entry.record = record;
            return Ok(Applied::New);
        }
        if self.entries.len() >= NODES_MAX {
            self.evict()?;
        }
        self.entries.insert(node, Entry { record, unreachable_since: Some(now) });
        Ok(Applied::New)
    }

    /// Removes the node that has been unreachable for the longest time.
    fn evict(&mut self) -> Result<(), WireError> {
        let since = |(&node, entry): (&NodeId, &Entry)| Some((entry.unreachable_since?, node));
        let Some((_, oldest)) = self.entries.iter().filter_map(since).min() else {
            return below(self.entries.len(), NODES_MAX, "nodes");
        };
        self.entries.remove(&oldest);
        Ok(())
    }

    /// Updates the reachability of all nodes at `now`.
    pub(crate) fn mark(&mut self, now: Instant, reaches: impl Fn(NodeId) -> bool) {
        for (&node, entry) in &mut self.entries {
            let since = entry.unreachable_since.unwrap_or(now);
            entry.unreachable_since = (!reaches(node)).then_some(since);
        }
    }

    /// Removes the nodes that have been unreachable for [`FORGET_AFTER`].
    pub(crate) fn forget(&mut self, now: Instant) {
        self.entries.retain(|_, entry| {
            entry.unreachable_since.is_none_or(|since| since + FORGET_AFTER > now)
        });
    }

    /// Returns the instant at which to call [`Self::forget`] next.
    pub(crate) fn forget_at(&self) -> Instant {
        let since = self.entries.values().filter_map(|entry| entry.unreachable_since).min();
        since.map_or(Instant::FAR, |since| since + FORGET_AFTER)
    }
}

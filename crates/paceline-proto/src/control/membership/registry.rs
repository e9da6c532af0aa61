//! The registry: one record per node, which only that node originates, identical on every node.

mod record;
mod table;

pub(in crate::control) use record::least_held;
pub(crate) use record::{Change, EntryKey, Mark, Record};
pub(in crate::control) use record::{
    MARKS, MARKS_MAX, MEDIA, NEIGHBOURS, PLACES, PLACES_MAX, PUBLISHERS, REFUSALS, SUBSCRIPTIONS,
};
pub use record::{NEIGHBOURS_MAX, PUBLISHERS_MAX, REFUSALS_MAX, SUBSCRIPTIONS_MAX};
pub(crate) use table::{Read, Table, Unread};

use crate::control::data::ids::PairKey;
use crate::control::data::spec::HopInfo;
use crate::ids::NodeId;
use crate::wire::WireError;
use paceline_sched::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use table::below;

/// The most nodes in a registry.
pub const NODES_MAX: usize = 4_096;

/// The largest version of a record, far below overflow.
pub(crate) const VERSION_MAX: u64 = 1 << 62;

/// An owner announces itself above a version that others invent: at once up to this version, and beyond it
/// by this step at a time.
const OUTBID_MAX: u64 = 1 << 60;
const OUTBID_STEP: u64 = 1 << 32;
/// The largest version of a record that is seen for the first time.
const FIRST_VERSION_MAX: u64 = 1 << 61;
/// An unreachable node whose record another neighbour delivered is replaced after this time, even by an older
/// record: nothing confirms the first one.
const UNCONFIRMED_FOR: Duration = Duration::from_secs(1);
/// The default of the memory of all records of other nodes together, in bytes.
const BYTES_MAX: usize = 32 << 20;

/// The leaves of one identity may use one in so many parts of it.
const LEAF_PART: usize = 8;

/// The memory of an entry that a change adds, next to its encoded bytes. A short subscription takes about 450 bytes.
const CHANGE_BYTES: usize = 448;
/// The size of changes after which a record's own size is computed again.
const MEASURE_AFTER: usize = 4_096;

/// The time for which the record of an unreachable node is kept. A link that recovers earlier need not fetch
/// everything again.
const FORGET_AFTER: Duration = Duration::from_secs(30);

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

/// The memory that a message adds, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Added {
    /// By an entry of this encoded size.
    Change(usize),
    /// By a record in place of the one before.
    Record(usize),
}

impl Added {
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::Change(bytes) | Self::Record(bytes) => bytes,
        }
    }
}

/// Returns the highest version that an owner with `version` outbids.
fn highest_outbid(version: u64) -> u64 {
    version.saturating_add(OUTBID_STEP).max(OUTBID_MAX)
}

/// A record, and its costs.
#[derive(Clone, Debug)]
struct Entry {
    record: Record,
    /// The instant at which its node became unreachable.
    unreachable_since: Option<Instant>,
    /// The memory: of the record when it arrived, and of each change since then.
    bytes: usize,
    /// The memory when it was last computed.
    exact: usize,
    /// The neighbour that delivered it, in whose share it counts.
    from: NodeId,
}

/// The records of all nodes known to this one.
#[derive(Clone, Debug)]
pub(crate) struct Registry {
    me: NodeId,
    entries: BTreeMap<NodeId, Entry>,
    /// The memory of the records of all other nodes.
    bytes: usize,
    /// The largest size of them.
    bytes_max: usize,
    /// The number of changes of hops so far.
    hop_changes: u64,
}

impl Registry {
    /// Creates the registry of a node that has just started and knows only itself.
    pub(crate) fn new(me: NodeId, name: String) -> Self {
        let record = Record { version: 1, name, ..Record::default() };
        let entry = Entry { record, unreachable_since: None, bytes: 0, exact: 0, from: me };
        Self {
            me,
            entries: BTreeMap::from([(me, entry)]),
            bytes: 0,
            bytes_max: BYTES_MAX,
            hop_changes: 0,
        }
    }

    /// Sets the largest memory of the records of all other nodes, in bytes.
    pub(crate) const fn set_bytes_max(&mut self, bytes: usize) {
        self.bytes_max = bytes;
    }

    /// Returns the memory of the records of all other nodes, in bytes.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Checks that `from`, neighbours of one identity that do not relay, have room for a message of `bytes` about `node`: an
    /// addition, or a whole record.
    pub(crate) fn check_leaves(
        &self,
        from: &BTreeSet<NodeId>,
        node: NodeId,
        added: Added,
    ) -> Result<(), WireError> {
        let theirs = |of: &NodeId, entry: &Entry| {
            from.contains(&entry.from) || from.contains(of) || *of == node
        };
        let theirs = || self.entries.iter().filter(|(of, entry)| theirs(of, entry));
        let (others, adds) = match added {
            Added::Change(bytes) => (None, bytes + CHANGE_BYTES),
            Added::Record(bytes) => (Some(node), bytes),
        };
        let used = |bytes: fn(&Entry) -> usize| -> usize {
            let counted = theirs().filter(|(of, _)| Some(**of) != others);
            counted.map(|(_, entry)| bytes(entry)).sum()
        };
        let max = self.bytes_max / LEAF_PART;
        if used(|entry| entry.bytes) + adds <= max {
            return Ok(());
        }
        // Changes may have overestimated the records.
        let value = used(|entry| entry.record.held_bytes()) + adds;
        if value <= max {
            return Ok(());
        }
        let (value, max) = (value as u64, max as u64);
        Err(WireError::TooLarge { field: "bytes of the records of a leaf", value, max })
    }

    /// Returns the number of changes of hops so far: paths stay the same while it does.
    pub(crate) const fn hop_changes(&self) -> u64 {
        self.hop_changes
    }

    pub(crate) const fn me(&self) -> NodeId {
        self.me
    }

    /// Returns all records, in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = (NodeId, &Record)> + '_ {
        self.entries.iter().map(|(&node, entry)| (node, &entry.record))
    }

    pub(crate) fn record(&self, node: NodeId) -> Option<&Record> {
        self.entries.get(&node).map(|entry| &entry.record)
    }

    /// Returns the mark of a pair, whatever its request is.
    pub(crate) fn any_mark_of(&self, key: PairKey) -> Option<Mark> {
        self.record(key.1.node)?.marks.get(&key).map(|(_, mark)| *mark)
    }

    /// Returns the number of the reservation that carries the samples of a pair with a spare; `None` until both paths are
    /// reserved.
    pub(crate) fn carrier_of(&self, key: PairKey) -> Option<u64> {
        let (number, mark) = self.record(key.1.node)?.marks.get(&key)?;
        (*mark == Mark::Carried).then_some(*number)
    }

    /// Returns the mark of request `revision` of a pair, which its publisher's node has announced.
    pub(crate) fn mark_of(&self, key: PairKey, revision: u64) -> Option<Mark> {
        let (of, mark) = self.record(key.1.node)?.marks.get(&key)?;
        (*of == revision).then_some(*mark)
    }

    /// Returns the node that the publisher's node has chosen to scale the samples of a pair.
    pub(crate) fn place_of(&self, key: PairKey) -> Option<NodeId> {
        self.record(key.1.node)?.places.get(&key).copied()
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

    /// Returns true if `node` is a process of the host of `host`: both say so.
    pub(crate) fn is_own(&self, host: NodeId, node: NodeId) -> bool {
        self.claims(host, node) && self.claims(node, host)
    }

    /// Returns true if `host` says that `node` and itself are processes of one host.
    pub(crate) fn claims(&self, host: NodeId, node: NodeId) -> bool {
        let hop = self.record(host).and_then(|record| record.neighbours.get(&node));
        hop.is_some_and(|hop| hop.own)
    }

    /// Returns the first neighbour that receives the same multicast groups of `from` as `to`; `to` itself if it receives
    /// none.
    pub(crate) fn first_on_segment(&self, from: NodeId, to: NodeId) -> NodeId {
        let Some(record) = self.record(from) else { return to };
        let own = record.neighbours.get(&to).filter(|hop| hop.multicast);
        let same =
            |hop: &HopInfo| own.is_some_and(|own| hop.multicast && hop.link_name == own.link_name);
        let mut neighbours = record.neighbours.iter();
        neighbours.find(|(_, hop)| same(hop)).map_or(to, |(node, _)| *node)
    }

    /// Applies a change of `bytes` encoded bytes if it leads to `version` and that is exactly one above the
    /// current version.
    pub(crate) fn apply(
        &mut self,
        (node, version): (NodeId, u64),
        (change, bytes): (Change, usize),
    ) -> Result<Applied, WireError> {
        let Some(entry) = self.entries.get(&node) else { return Ok(Applied::Gap) };
        match version.cmp(&(entry.record.version + 1)) {
            core::cmp::Ordering::Less => return Ok(Applied::Old),
            core::cmp::Ordering::Greater => return Ok(Applied::Gap),
            core::cmp::Ordering::Equal => {}
        }
        if node != self.me {
            self.make_room((entry.from, node), bytes + CHANGE_BYTES)?;
        }
        let Some(entry) = self.entries.get_mut(&node) else { return Ok(Applied::Gap) };
        let is_hop = matches!(change.key(), EntryKey::Neighbour(_));
        entry.record.apply(node, change)?;
        self.hop_changes += u64::from(is_hop);
        if node != self.me {
            let bytes = bytes + CHANGE_BYTES;
            entry.bytes += bytes;
            self.bytes += bytes;
            self.measure(node);
        }
        Ok(Applied::New)
    }

    /// Replaces a record of `node`, which the neighbour `from` delivered, if the new one is newer. `bytes` is
    /// its encoded size. A node that was never reachable counts as unreachable from `now` on.
    pub(crate) fn replace(
        &mut self,
        now: Instant,
        (from, node): (NodeId, NodeId),
        (record, bytes): (Record, usize),
    ) -> Result<Applied, WireError> {
        let known = self.entries.get(&node);
        let before = known.map_or(0, |entry| entry.record.version);
        if record.version <= before && !self.is_unconfirmed(now, (from, node)) {
            return Ok(Applied::Old);
        }
        // The highest version of an honest node, with a step of margin for changes in transit.
        let highest =
            known.map_or(FIRST_VERSION_MAX, |_| highest_outbid(before).saturating_add(OUTBID_STEP));
        if record.version > highest {
            let (field, value) = ("version of a record", record.version);
            return Err(WireError::TooLarge { field, value, max: highest });
        }
        let bytes = bytes.max(record.held_bytes());
        let own = known.map_or(0, |entry| entry.bytes);
        let since = known.map_or(Some(now), |entry| entry.unreachable_since);
        if known.is_none() {
            while self.entries.len() >= NODES_MAX {
                if !self.evict((from, node), |_| 1) {
                    below(self.entries.len(), NODES_MAX, "nodes")?;
                }
            }
        }
        self.make_room((from, node), bytes.saturating_sub(own))?;
        self.bytes = self.bytes - own + bytes;
        let hops = self.record(node).map(|before| &before.neighbours);
        self.hop_changes += u64::from(hops != Some(&record.neighbours));
        let entry = Entry { record, unreachable_since: since, bytes, exact: bytes, from };
        self.entries.insert(node, entry);
        Ok(Applied::New)
    }

    /// Makes room for `bytes` more of `node`, delivered by `from`.
    fn make_room(&mut self, pair: (NodeId, NodeId), bytes: usize) -> Result<(), WireError> {
        while self.bytes.saturating_add(bytes) > self.bytes_max {
            if !self.evict(pair, |entry| entry.bytes) {
                let value = (self.bytes as u64).saturating_add(bytes as u64);
                let (field, max) = ("bytes of all records", self.bytes_max as u64);
                return Err(WireError::TooLarge { field, value, max });
            }
        }
        Ok(())
    }

    /// Removes one node in favour of `node`, which `from` delivered. Returns false if `from` has used its
    /// share.
    ///
    /// Unreachable nodes leave first. After that, nodes of the neighbour that has delivered most leave, the
    /// largest first, but no neighbour of this node.
    fn evict(&mut self, (from, node): (NodeId, NodeId), weight: impl Fn(&Entry) -> usize) -> bool {
        if self.evict_unreachable(node) {
            return true;
        }
        let mut shares: BTreeMap<NodeId, usize> = BTreeMap::new();
        for entry in self.entries.values() {
            *shares.entry(entry.from).or_default() += weight(entry);
        }
        let most = shares.into_iter().max_by_key(|(_, share)| *share).map(|(most, _)| most);
        if most == Some(from) {
            return false;
        }
        let of_most = |(other, entry): &(&NodeId, &Entry)| {
            **other != node && Some(entry.from) == most && !self.is_neighbour(**other)
        };
        let candidates = self.entries.iter().filter(of_most);
        let largest = candidates.max_by_key(|(_, entry)| entry.bytes).map(|(other, _)| *other);
        largest.inspect(|largest| self.remove(*largest)).is_some()
    }

    /// Computes the size of a record again if its changes may have overestimated it.
    fn measure(&mut self, node: NodeId) {
        let Some(entry) = self.entries.get_mut(&node) else { return };
        if entry.bytes > entry.exact.saturating_mul(2).saturating_add(MEASURE_AFTER) {
            let bytes = entry.record.held_bytes();
            self.bytes = self.bytes - entry.bytes + bytes;
            (entry.bytes, entry.exact) = (bytes, bytes);
        }
    }

    fn is_neighbour(&self, node: NodeId) -> bool {
        node == self.me
            || self.record(self.me).is_some_and(|mine| mine.neighbours.contains_key(&node))
    }

    /// Removes the node, other than `keep`, that has been unreachable for the longest time.
    fn evict_unreachable(&mut self, keep: NodeId) -> bool {
        let since = |(&node, entry): (&NodeId, &Entry)| {
            (node != keep).then_some((entry.unreachable_since?, node))
        };
        let oldest = self.entries.iter().filter_map(since).min();
        oldest.inspect(|(_, oldest)| self.remove(*oldest)).is_some()
    }

    fn remove(&mut self, node: NodeId) {
        if let Some(gone) = self.entries.remove(&node) {
            self.bytes -= gone.bytes;
            self.hop_changes += 1;
        }
    }

    /// Raises the version of this node's record above one that others claim, as far as others accept. Returns
    /// the record if it has changed.
    pub(crate) fn outbid(&mut self, version: u64) -> Option<&Record> {
        let entry = self.entries.get_mut(&self.me)?;
        if version <= entry.record.version || version >= VERSION_MAX {
            return None;
        }
        entry.record.version = version.min(highest_outbid(entry.record.version)) + 1;
        Some(&entry.record)
    }

    /// Returns true if a record of `node` that `from` delivers replaces the known one whatever its version.
    pub(crate) fn is_unconfirmed(&self, now: Instant, (from, node): (NodeId, NodeId)) -> bool {
        self.entries.get(&node).is_some_and(|entry| {
            let since = entry.unreachable_since;
            entry.from != from && since.is_some_and(|since| since + UNCONFIRMED_FOR <= now)
        })
    }

    /// Returns true if the node was reachable at the last [`Self::mark`].
    pub(crate) fn is_reachable(&self, node: NodeId) -> bool {
        self.entries.get(&node).is_some_and(|entry| entry.unreachable_since.is_none())
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
        let gone = |(&node, entry): (&NodeId, &Entry)| {
            let since = entry.unreachable_since?;
            (since + FORGET_AFTER <= now).then_some(node)
        };
        let gone: Vec<NodeId> = self.entries.iter().filter_map(gone).collect();
        gone.into_iter().for_each(|node| self.remove(node));
    }

    /// Removes the records that the neighbour `from` delivered, except those of neighbours.
    pub(crate) fn forget_from(&mut self, from: NodeId) {
        let delivered = self.entries.iter().filter(|(_, entry)| entry.from == from);
        let nodes: Vec<NodeId> = delivered.map(|(&node, _)| node).collect();
        let gone = nodes.into_iter().filter(|&node| node == from || !self.is_neighbour(node));
        gone.collect::<Vec<_>>().into_iter().for_each(|node| self.remove(node));
    }

    /// Returns the instant at which to call [`Self::forget`] next.
    pub(crate) fn forget_at(&self) -> Instant {
        let since = self.entries.values().filter_map(|entry| entry.unreachable_since).min();
        since.map_or(Instant::FAR, |since| since + FORGET_AFTER)
    }
}

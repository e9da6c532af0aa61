//! Reports of entries in the records of other nodes that this node cannot read.

use super::registry::{Change, EntryKey, Record, Unread};
use crate::control::data::output::UnreadEntry;
use crate::control::{Control, ControlOutput};
use crate::ids::NodeId;
use crate::tag::TAG_BYTES_MAX;
use crate::wire::Reader;
use std::collections::BTreeMap;

/// The most entries that one report names.
const NAMED_MAX: usize = 16;

impl UnreadEntry {
    fn new((key, unread): (EntryKey, &Unread)) -> Self {
        let (entry, named) = match key {
            EntryKey::Publisher(index) => (format!("publisher {index}"), true),
            EntryKey::Subscription(index) => (format!("subscription {index}"), true),
            EntryKey::Neighbour(node) => (format!("neighbour {node} on link"), true),
            EntryKey::Refusal((of, by)) => (format!("refusal of {of} for {by}"), false),
            EntryKey::Mark((of, by)) => (format!("mark of {of} and {by}"), false),
            EntryKey::Place((of, by)) => (format!("place of the proxy of {of} and {by}"), false),
            EntryKey::Medium(index) => (format!("link {index} on medium"), true),
        };
        let name = Reader::new(unread.bytes.clone()).text(TAG_BYTES_MAX, "name").ok();
        let entry = match name.filter(|_| named) {
            Some(name) => format!("{entry} '{name}'"),
            None => entry,
        };
        Self { entry, error: unread.error }
    }
}

impl Control {
    /// Returns the entries in the records of other nodes that this node cannot read. They have no effect here.
    pub fn unread(&self) -> impl Iterator<Item = (NodeId, UnreadEntry)> + '_ {
        self.membership.registry.all().flat_map(|(node, record)| {
            record.unread().map(move |unread| (node, UnreadEntry::new(unread)))
        })
    }

    /// Returns the report of the entries of a new record that this node cannot read, without those of the known one.
    pub(in crate::control) fn unread_in(
        &self,
        node: NodeId,
        record: &Record,
    ) -> Option<ControlOutput> {
        let known = self.membership.registry.record(node).into_iter().flat_map(Record::unread);
        let known: BTreeMap<EntryKey, &Unread> = known.collect();
        let fresh = |(key, unread): &(EntryKey, &Unread)| known.get(key) != Some(unread);
        let mut fresh = record.unread().filter(fresh);
        let entries: Vec<_> = fresh.by_ref().take(NAMED_MAX).map(UnreadEntry::new).collect();
        let more = fresh.count();
        (!entries.is_empty()).then_some(ControlOutput::Unread { node, entries, more })
    }

    /// Returns the report of a change that this node cannot read.
    pub(in crate::control) fn unread_change(
        node: NodeId,
        change: &Change,
    ) -> Option<ControlOutput> {
        let Change::Unread(key, unread) = change else { return None };
        let entries = vec![UnreadEntry::new((*key, unread))];
        Some(ControlOutput::Unread { node, entries, more: 0 })
    }
}

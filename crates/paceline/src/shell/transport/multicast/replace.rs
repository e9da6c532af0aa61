//! Groups with a new key: the remaining members receive the former group until all of them have joined the new one.

use super::message::Message;
use super::state::{Former, Group, State};
use paceline_proto::link::GroupMembers;
use paceline_proto::{Form, NodeId, PublisherId};
use std::collections::BTreeSet;

/// The number of ticks, one per [`PROBE_EVERY`](super::PROBE_EVERY), after which a former group ends, even if members have
/// not joined the new one. A member that left may read it until then.
const FORMER_TICKS_MAX: u64 = 3;

impl State {
    /// Returns the group that replaces `group`, because a member has left that must not read what follows.
    pub(super) fn replace(
        &mut self,
        stream: (PublisherId, Form),
        group: Group,
        nodes: &BTreeSet<NodeId>,
    ) -> Option<Group> {
        let place = group.place;
        let group = self.keep(group, nodes);
        match self.former.remove(&stream) {
            // Members have not joined `group` yet, and the one before it serves them.
            Some(former) => {
                self.keep(group, &BTreeSet::new());
                let group = self.keep(former.group, nodes);
                self.former.insert(stream, Former { group, ..former });
            }
            None => {
                let ends = self.ticks + FORMER_TICKS_MAX;
                self.former.insert(stream, Former { group, ends });
            }
        }
        self.new_group(place)
    }

    /// Lets all members except these leave a group.
    pub(super) fn keep(&self, mut group: Group, nodes: &BTreeSet<NodeId>) -> Group {
        let leave = Message::Leave(group.id);
        let gone = group.members.keys().filter(|node| !nodes.contains(node));
        gone.for_each(|node| self.send_message(*node, &leave));
        group.members.retain(|node, _| nodes.contains(node));
        group
    }

    /// Ends the former groups of which all members have joined the new one, and those whose time is over. Returns true if
    /// there were any.
    pub(super) fn end_former(&mut self) -> bool {
        let is_over = |(stream, former): &(&(PublisherId, Form), &Former)| {
            let joined = |node: &NodeId| {
                let group = self.groups.get(stream);
                group.is_none_or(|group| group.members.get(node) == Some(&true))
            };
            former.ends <= self.ticks || former.group.members.keys().all(joined)
        };
        let over = self.former.iter().filter(is_over).map(|(stream, _)| *stream);
        let over: Vec<(PublisherId, Form)> = over.collect();
        for stream in &over {
            if let Some(former) = self.former.remove(stream) {
                self.keep(former.group, &BTreeSet::new());
            }
        }
        !over.is_empty()
    }

    /// Returns the groups of a stream, the newest first.
    pub(super) fn groups_of(&self, stream: (PublisherId, Form)) -> impl Iterator<Item = &Group> {
        let former = self.former.get(&stream).map(|former| &former.group);
        self.groups.get(&stream).into_iter().chain(former)
    }

    /// Returns the members of each stream that have joined a group of it.
    pub(super) fn joined(&self) -> GroupMembers {
        let joined = |stream: &(PublisherId, Form)| {
            let members = self.groups_of(*stream).flat_map(|group| &group.members);
            (*stream, members.filter(|(_, joined)| **joined).map(|(node, _)| *node).collect())
        };
        self.groups.keys().map(joined).collect()
    }
}

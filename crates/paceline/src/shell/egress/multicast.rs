//! Which streams of the link go to multicast groups.

use super::Egress;
use crate::shell::command::Command;
use paceline_proto::NodeId;
use std::collections::BTreeSet;

/// The state of the groups that the link follows.
#[derive(Default)]
pub(super) struct Following {
    /// Streams were opened or closed since the last look.
    pub(super) streams_changed: bool,
    version: u64,
    /// The neighbours that receive groups, as the engine knows them.
    told: BTreeSet<NodeId>,
}

impl Egress {
    /// Follows changes of the streams, and of the neighbours that receive groups.
    pub(super) fn follow_groups(&mut self) {
        let Self { link, transport, following, engine, index, .. } = self;
        let Some(multicast) = transport.multicast() else { return };
        let version = multicast.version();
        if version == following.version && !following.streams_changed {
            return;
        }
        (following.version, following.streams_changed) = (version, false);
        let able = multicast.able();
        multicast.want(link.shared_by(&able));
        link.set_groups(multicast.joined());
        if following.told != able
            && engine.offer(Command::Multicast { link: *index, nodes: able.clone() })
        {
            following.told = able;
        }
    }

    /// Leaves out neighbours to which frames in groups get lost, although they answer probes.
    pub(super) fn leave_out_deaf(&self) {
        let Some(multicast) = self.transport.multicast() else { return };
        let deaf = self.link.hops().filter(|(_, hop)| hop.misses_groups());
        let able = multicast.able();
        deaf.filter(|(node, _)| able.contains(node))
            .for_each(|(node, _)| multicast.leave_out(node));
    }
}

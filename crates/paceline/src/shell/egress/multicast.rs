//! Which streams of the link go to multicast groups.

use super::Egress;
use paceline_proto::NodeId;
use std::collections::BTreeMap;

/// The state of the groups that the link follows.
#[derive(Default)]
pub(super) struct Following {
    /// Streams were opened or closed since the last look.
    pub(super) streams_changed: bool,
    version: u64,
    /// The neighbours that lost too many frames in a row, with the number of looks since.
    losing: BTreeMap<NodeId, u32>,
}

/// The number of looks after which such a neighbour is left out. Acknowledgements that a busy host delays show earlier that
/// nothing was lost.
const LOOKS_MIN: u32 = 3;

impl Egress {
    /// Follows changes of the streams, and of the neighbours that receive groups.
    pub(super) fn follow_groups(&mut self) {
        let Self { link, transport, following, .. } = self;
        let Some(multicast) = transport.multicast() else { return };
        let version = multicast.version();
        if version == following.version && !following.streams_changed {
            return;
        }
        (following.version, following.streams_changed) = (version, false);
        multicast.want(link.shared_by(&multicast.able()));
        link.set_groups(multicast.joined());
    }

    /// Leaves out neighbours to which frames in groups get lost, although they answer probes.
    pub(super) fn leave_out_losing(&mut self) {
        let Some(multicast) = self.transport.multicast() else { return };
        let before = std::mem::take(&mut self.following.losing);
        let losing = self.link.hops().filter(|(_, hop)| hop.misses_groups());
        for (node, _) in losing {
            let looks = before.get(&node).map_or(1, |looks| looks + 1);
            if looks == LOOKS_MIN {
                multicast.leave_out(node);
            }
            self.following.losing.insert(node, looks);
        }
    }
}

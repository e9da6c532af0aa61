//! Another capacity for an open link.

use super::Engine;
use super::LinkCommand;
use crate::error::CapacityError;
use paceline_proto::control::HopInfo;
use paceline_sched::{Capacity, Instant};

impl Engine {
    /// The link schedules by it from its next turn on, and whatever was promised over it is judged
    /// anew.
    pub(super) fn set_capacity(
        &mut self,
        now: Instant,
        name: &str,
        capacity: Capacity,
    ) -> Result<(), CapacityError> {
        let unknown = || CapacityError::UnknownLink(name.to_owned());
        // The host's own link is not the user's to name.
        let host = self.host.as_ref().map(|(_, index)| *index);
        let mut links = self.links.iter_mut().enumerate();
        let named = links.find(|(at, link)| Some(*at) != host && link.config.name == name);
        let (at, link) = named.ok_or_else(unknown)?;
        if link.config.capacity.is_none() {
            return Err(CapacityError::NoCapacity(name.to_owned()));
        }
        if link.config.capacity == Some(capacity) {
            return Ok(());
        }
        link.config.capacity = Some(capacity);
        link.handle.send(LinkCommand::Capacity(capacity));
        let hops: Vec<_> =
            self.hops.iter().filter(|(_, link)| **link == at).map(|(node, _)| *node).collect();
        for node in hops {
            let hop = HopInfo { link_name: name.to_owned(), capacity: Some(capacity) };
            self.control.handle_hop_up(now, node, hop);
        }
        Ok(())
    }
}

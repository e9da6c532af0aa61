//! Another capacity or other classes for an open link.

use super::Engine;
use super::EngineLink;
use super::LinkCommand;
use crate::error::{CapacityError, ClassesError};
use crate::node::classes;
use paceline_proto::control::HopInfo;
use paceline_proto::link::LinkClass;
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
        let (at, link) = self.link_mut(name).ok_or_else(unknown)?;
        if link.config.capacity.is_none() {
            return Err(CapacityError::NoCapacity(name.to_owned()));
        }
        if link.config.capacity == Some(capacity) {
            return Ok(());
        }
        let wrong = |error| CapacityError::Classes(name.to_owned(), error);
        if let Some(tree) = classes(&link.config).map_err(wrong)? {
            tree.fits(Some(capacity)).map_err(wrong)?;
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

    /// The link seats its streams in them from its next turn on.
    pub(super) fn set_classes(
        &mut self,
        name: &str,
        wanted: Vec<LinkClass>,
    ) -> Result<(), ClassesError> {
        let unknown = || ClassesError::UnknownLink(name.to_owned());
        let (_, link) = self.link_mut(name).ok_or_else(unknown)?;
        let before = std::mem::replace(&mut link.config.classes, wanted);
        match classes(&link.config) {
            Ok(tree) => {
                link.handle.send(LinkCommand::Classes(tree));
                Ok(())
            }
            Err(error) => {
                link.config.classes = before;
                Err(ClassesError::Class(name.to_owned(), error))
            }
        }
    }

    /// A link by its name; the host's own is not the user's to name.
    fn link_mut(&mut self, name: &str) -> Option<(usize, &mut EngineLink)> {
        let host = self.host.as_ref().map(|(_, index)| *index);
        let mut links = self.links.iter_mut().enumerate();
        links.find(|(at, link)| Some(*at) != host && link.config.name == name)
    }
}

//! Another capacity or other classes for an open link.

use super::Engine;
use super::EngineLink;
use super::LinkCommand;
use crate::check::classes;
use crate::error::{CapacityError, ClassesError};
use paceline_proto::control::WayChange;
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
        for node in self.ways.behind(at) {
            // It may be used no longer, or now; if it stays, it carries something else.
            let mut change = self.ways.up(node, at, Some(capacity));
            if change == WayChange::Same && self.ways.link(node) == Some(at) {
                change = WayChange::Up(at);
            }
            self.change_way(now, node, change);
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

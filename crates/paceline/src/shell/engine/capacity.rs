//! Changes of an open link's capacity and classes.

use super::Engine;
use super::EngineLink;
use super::LinkCommand;
use crate::check::classes;
use crate::error::{CapacityError, ClassesError};
use paceline_node::capacity::CapacityChange;
use paceline_proto::control::{ControlOutput, WayChange};
use paceline_proto::link::LinkClass;
use paceline_proto::medium::Medium;
use paceline_sched::{Capacity, Instant};

impl Engine {
    /// Sets the capacity of a link, and of its medium if that follows it. Its scheduler applies it at its next iteration, and admission
    /// re-evaluates every contract on the link.
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
        if link.config.measured.is_some() {
            return Err(CapacityError::Measured(name.to_owned()));
        }
        let wrong = |error| CapacityError::Classes(name.to_owned(), error);
        if let Some(tree) = classes(&link.config).map_err(wrong)? {
            tree.fits(Some(capacity)).map_err(wrong)?;
        }
        let follows = link.config.medium_follows_capacity;
        let medium = link.config.medium.as_mut();
        if medium.is_none() {
            link.handle.send(LinkCommand::Capacity(capacity));
        } else if let Some(medium) = medium.filter(|_| follows) {
            if capacity.bits_per_s() < Medium::CAPACITY_MIN {
                let (link, medium) = (name.to_owned(), medium.name.clone());
                return Err(CapacityError::Medium { link, medium, capacity });
            }
            medium.capacity = capacity;
            let medium = medium.clone();
            self.control.set_medium(name, medium);
        }
        let of_medium = self.links.get(at).and_then(|it| Some(it.config.medium.as_ref()?.capacity));
        self.apply_capacity(now, at, of_medium.map_or(capacity, |it| it.min(capacity)));
        Ok(())
    }

    /// Follows the capacity of a link: as measured, or as stated after a measurement that had contradicted it. Its scheduler
    /// has done so already.
    pub(super) fn follow_capacity(&mut self, now: Instant, at: usize, change: CapacityChange) {
        let Some(link) = self.links.get(at) else { return };
        let (capacity, measured) = match change {
            CapacityChange::Measured(measured) | CapacityChange::Contradicted { measured, .. } => {
                (measured, true)
            }
            CapacityChange::Stated(stated) => (stated, false),
            CapacityChange::Repairs(share) => {
                return self.control.set_repairs(&link.config.name, share);
            }
            CapacityChange::Falls(fall) => {
                return self.control.handle_fall(now, &link.config.name, &fall);
            }
        };
        self.control.set_measured(&link.config.name, measured);
        self.apply_capacity(now, at, capacity);
        self.unmeasured.end(at);
    }

    /// Notes that a link could not be measured in time.
    pub(super) fn warn_unmeasured(&self, at: usize) {
        let Some((link, capacity)) =
            self.links.get(at).and_then(|it| Some((it, it.config.capacity?)))
        else {
            return;
        };
        tracing::warn!(
            "link '{}': its capacity could not be measured within 2 s; contracts may use {capacity} until then",
            link.config.name
        );
    }

    /// Follows the rate of a link on its medium. Before its first neighbour, only its configuration has its own capacity.
    pub(super) fn follow_allotment(&self, output: ControlOutput) {
        let ControlOutput::Allotted { link: name, capacity } = output else { return };
        if let Some(link) = self.links.iter().find(|link| link.config.name == name) {
            tracing::debug!("link '{name}': its rate on the medium is {capacity}");
            let most = link.config.capacity.unwrap_or(capacity);
            link.handle.send(LinkCommand::Capacity(capacity.min(most)));
        }
    }

    /// Logs nodes that state another capacity of a medium than this one.
    pub(super) fn warn_media(&mut self) {
        for link in &self.links {
            let (name, Some(own)) = (&link.config.name, &link.config.medium) else { continue };
            let view = self.control.medium(name).map(|(view, _)| view);
            let differs = view.as_ref().and_then(|view| view.differs);
            if self.differing.get(name).copied() == differs {
                continue;
            }
            let Some((view, (node, bits))) = view.zip(differs) else {
                self.differing.remove(name);
                continue;
            };
            self.differing.insert(name.clone(), (node, bits));
            let other = self.control.name(node).unwrap_or_default();
            let shown =
                |bits| Capacity::from_bits_per_s(bits).map_or(String::new(), |it| it.to_string());
            tracing::warn!(
                "link '{name}': this node states {} for medium '{}', and '{other}' states {}; the smallest \
                 one of all nodes counts, {}: give it the same capacity on all nodes",
                own.capacity,
                own.name,
                shown(bits),
                shown(view.capacity)
            );
        }
    }

    /// Lets admission evaluate every contract on the link again with this capacity.
    fn apply_capacity(&mut self, now: Instant, at: usize, capacity: Capacity) {
        let Some(link) = self.links.get_mut(at) else { return };
        link.config.capacity = Some(capacity);
        for node in self.ways.behind(at) {
            // The route to the node may move to or from this link. If it stays here, its capacity
            // has changed.
            let mut change = self.ways.up(node, at, Some(capacity));
            if change == WayChange::Same && self.ways.link(node) == Some(at) {
                change = WayChange::Up(at);
            }
            self.change_way(now, node, change);
        }
    }

    /// Sets the classes of a link. Its scheduler applies them at its next iteration, and admission tests every
    /// contract in its class again.
    pub(super) fn set_classes(
        &mut self,
        name: &str,
        wanted: Vec<LinkClass>,
    ) -> Result<(), ClassesError> {
        let unknown = || ClassesError::UnknownLink(name.to_owned());
        let (_, link) = self.link_mut(name).ok_or_else(unknown)?;
        if let Some(medium) = link.config.medium.as_ref().filter(|_| !wanted.is_empty()) {
            return Err(ClassesError::Medium {
                link: name.to_owned(),
                medium: medium.name.clone(),
            });
        }
        let before = std::mem::replace(&mut link.config.classes, wanted);
        match classes(&link.config) {
            Ok(tree) => {
                link.handle.send(LinkCommand::Classes(tree.clone()));
                self.control.set_classes(name, tree);
                Ok(())
            }
            Err(error) => {
                link.config.classes = before;
                Err(ClassesError::Class(name.to_owned(), error))
            }
        }
    }

    /// Finds a link by name. The host link is excluded: users cannot configure it.
    fn link_mut(&mut self, name: &str) -> Option<(usize, &mut EngineLink)> {
        let host = self.host.as_ref().map(|(_, index)| *index);
        let mut links = self.links.iter_mut().enumerate();
        links.find(|(at, link)| Some(*at) != host && link.config.name == name)
    }
}

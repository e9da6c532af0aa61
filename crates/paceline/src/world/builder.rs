//! Joins a world.

use super::channels::Channels;
use super::engine;
use super::error::WorldError;
use super::handle::SharedWorld;
use super::state::{Shared, State};
use crate::Node;
use crate::shell::clock;
use paceline_objects::participant::ParticipantSettings;
use paceline_objects::{Participant, PeerId};
use std::sync::Arc;

/// Joins a world. Created by [`Node::world`].
#[must_use = "nothing is joined before join()"]
pub struct WorldBuilder<'a> {
    node: &'a Node,
    world: String,
    name: String,
    settings: ParticipantSettings,
}

impl Node {
    /// Returns a builder for a participant of the world of this name, such as `town`.
    ///
    /// The objects of the world are not samples of tags; see [`crate::world`].
    pub fn world(&self, name: &str) -> WorldBuilder<'_> {
        WorldBuilder {
            node: self,
            world: name.to_owned(),
            name: short(self.name()).to_owned(),
            settings: ParticipantSettings::default(),
        }
    }
}

impl WorldBuilder<'_> {
    /// Sets the name of the participant; by default that of the node.
    pub fn name(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    /// Sets limits and the size of packets.
    pub fn settings(self, settings: ParticipantSettings) -> Self {
        Self { settings, ..self }
    }

    /// Joins the world.
    ///
    /// # Errors
    /// A name or setting that is out of range, and what [`PublisherBuilder::declare`](crate::PublisherBuilder::declare)
    /// and [`SubscriberBuilder::declare`](crate::SubscriberBuilder::declare) return.
    pub fn join(self) -> Result<SharedWorld, WorldError> {
        let Self { node, world, name, settings } = self;
        let text = world.as_str();
        if text.is_empty() || text.len() > 100 || text.contains('*') || text.contains("/@") {
            return Err(WorldError::Name(text.chars().take(120).collect()));
        }
        let id = PeerId::of_node(node.id().0, engine::random());
        let participant = Participant::new(id, &name, settings, clock::now())?;
        let shared = Arc::new(Shared::new(node.clone(), world.clone(), State::new(participant)));
        let channels = Channels::open(node, &world, id, settings.fragment_bytes, &shared)?;
        let thread = engine::start(channels, Arc::clone(&shared))?;
        Ok(SharedWorld::new(shared, thread))
    }
}

/// Returns the part of a name that fits into the name of a participant.
fn short(name: &str) -> &str {
    let end = (0..=name.len().min(64)).rev().find(|end| name.is_char_boundary(*end));
    name.get(..end.unwrap_or(0)).unwrap_or_default()
}

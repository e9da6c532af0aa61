//! Participants that are gone.

use super::peer::Remembered;
use super::{Participant, SILENCE};
use crate::ids::PeerId;
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;

/// How long the description and the schemas of a silent participant are kept, and its paths that do not yield. It
/// publishes its description again at least once per minute.
const KEPT: Duration = Duration::from_secs(600);

impl Participant {
    /// Remembers a participant that is gone. Beyond the greatest number, the node with the most of them loses its oldest.
    pub(super) fn remember(&mut self, id: PeerId, remembered: Remembered, now: Instant) {
        self.memories.set(id, Some(now + KEPT));
        self.remembered.insert(id, remembered);
        if self.remembered.len() <= self.settings.peers_max {
            return;
        }
        let mut counts = BTreeMap::<u64, usize>::new();
        for id in self.remembered.keys() {
            *counts.entry(id.node()).or_default() += 1;
        }
        let heaviest = counts.into_iter().max_by_key(|(_, count)| *count).map(|(node, _)| node);
        let its = self.remembered.iter().filter(|(id, _)| Some(id.node()) == heaviest);
        if let Some(oldest) = its.min_by_key(|(_, peer)| peer.heard).map(|(id, _)| *id) {
            self.remembered.remove(&oldest);
            self.memories.set(oldest, None);
            self.replicas.forget(oldest);
        }
    }

    /// Returns the memory of a participant that is back.
    pub(super) fn recall(&mut self, id: PeerId) -> Remembered {
        self.memories.set(id, None);
        self.remembered.remove(&id).unwrap_or_default()
    }

    /// Frees the descriptions and schemas of participants that have been silent for long, and returns when the next ones
    /// are.
    pub(super) fn forget_silent_for_long(&mut self, now: Instant) -> Option<Instant> {
        while let Some(id) = self.memories.due(now) {
            self.memories.set(id, None);
            if let Some(remembered) = self.remembered.get_mut(&id) {
                remembered.about = None;
            }
            self.replicas.forget(id);
        }
        self.memories.first().map(|(at, _)| at)
    }
}

const _: () = assert!(KEPT.as_nanos() > SILENCE.as_nanos());

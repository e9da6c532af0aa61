//! Requests for the objects, schemas and interests that had no room.

use super::Participant;
use crate::packet::PeerDescription;
use paceline_sched::{Duration, Instant};

/// The shortest time between two of these requests.
const RETRY: Duration = Duration::from_secs(5);

impl Participant {
    /// Asks owners to introduce their objects again, and serves observers, for which there is room again. Returns when to
    /// try next.
    pub(super) fn retry(&mut self, now: Instant) -> Option<Instant> {
        if self.unserved.is_empty() && !self.replicas.has_refused() {
            return None;
        }
        if now < self.retry_at {
            return Some(self.retry_at);
        }
        self.retry_at = now + RETRY;
        for owner in self.replicas.retries() {
            if let Some(peer) = self.peers.get_mut(&owner) {
                peer.forget_objects();
            }
        }
        for id in std::mem::take(&mut self.unserved) {
            let about = self.peers.get(&id).and_then(|peer| peer.about.as_ref());
            if let Some(PeerDescription { interest: Some(interest), .. }) = about {
                self.serve(id, interest.clone(), now);
            }
        }
        Some(self.retry_at)
    }
}

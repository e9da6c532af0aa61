//! The claims that the next views carry.

use crate::ids::PeerId;
use crate::packet::{Claim, ObserverView};
use crate::shares::Shares;
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;

/// How long a claim is repeated.
const REPEATED: Duration = Duration::from_secs(2);
/// How many views carry a claim at least before another one replaces it.
const VIEWS_MIN: u32 = 2;

/// The claims that the next views carry, with fair shares of the nodes that cause them.
#[derive(Debug)]
pub(super) struct Claims {
    claims: BTreeMap<String, Entry>,
    shares: Shares,
}

#[derive(Debug)]
struct Entry {
    claim: Claim,
    until: Instant,
    views: u32,
    cause: u64,
}

impl Claims {
    pub(super) const fn new() -> Self {
        Self { claims: BTreeMap::new(), shares: Shares::new(ObserverView::CLAIMS_MAX) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }

    /// Adds a claim that a packet of a node causes, and returns whether there is room. A claim that several views have
    /// carried gives its place to a new one of the same cause.
    pub(super) fn insert(&mut self, claim: Claim, cause: u64, now: Instant) -> bool {
        let until = now + REPEATED;
        if let Some(entry) = self.claims.get_mut(&claim.path) {
            (entry.claim, entry.until) = (claim, until);
            return true;
        }
        if !self.shares.has_room(cause) {
            let its = self.claims.iter().filter(|(_, entry)| entry.cause == cause);
            let oldest = its.max_by_key(|(_, entry)| entry.views);
            let Some(path) =
                oldest.filter(|(_, entry)| entry.views >= VIEWS_MIN).map(|(path, _)| path.clone())
            else {
                return false;
            };
            self.claims.remove(&path);
            self.shares.free_of(cause, 1);
        }
        let room = self.shares.take(cause, 1);
        if room {
            self.claims.insert(claim.path.clone(), Entry { claim, until, views: 0, cause });
        }
        room
    }

    pub(super) fn withdraw(&mut self, path: &str, owner: PeerId) {
        if self.claims.get(path).is_some_and(|entry| entry.claim.owner == owner)
            && let Some(entry) = self.claims.remove(path)
        {
            self.shares.free_of(entry.cause, 1);
        }
    }

    /// Returns the claims of a view.
    pub(super) fn publish(&mut self, now: Instant) -> Vec<Claim> {
        let shares = &mut self.shares;
        let carried = self.claims.values_mut().map(|entry| {
            entry.views += 1;
            entry.claim.clone()
        });
        let carried = carried.collect();
        self.claims.retain(|_, entry| {
            let stays = now < entry.until;
            if !stays {
                shares.free_of(entry.cause, 1);
            }
            stays
        });
        carried
    }
}

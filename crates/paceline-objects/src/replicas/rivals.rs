//! Copies of objects whose path belongs to an owner of higher rank.

use super::{ReplicaEvent, Replicas};
use crate::ids::{ObjectIndex, PeerId};
use crate::packet::Introduction;
use crate::replica::{Made, Replica};
use std::sync::Arc;

impl Replicas {
    /// Takes the introduction of an object whose path belongs to an owner of higher rank.
    pub(super) fn introduce_rival(
        &mut self,
        owner: PeerId,
        object: ObjectIndex,
        introduction: &Introduction,
        made: Made,
    ) {
        let table = self.owners.entry(owner).or_default();
        if table.objects.len() >= self.limit {
            self.counts.too_many += 1;
            return;
        }
        let schema = table.schemas.get(&introduction.schema);
        let rival = Replica::new(owner, object, introduction, schema, made);
        table.objects.insert(object, Arc::clone(rival.path()));
        self.rival(rival);
    }

    /// Keeps the copy of an object whose path belongs to an owner of higher rank, until its own owner ends it.
    pub(super) fn rival(&mut self, replica: Replica) {
        if let Some(object) = replica.object() {
            let rivals = self.rivals.entry(Arc::clone(replica.path())).or_default();
            rivals.insert((replica.owner(), object), replica);
        }
    }

    /// Lets the rivals of ended objects count: of each, the one of the highest rank.
    pub(super) fn promote(&mut self) {
        for path in std::mem::take(&mut self.promoted) {
            if self.replicas.contains_key(&path) {
                continue;
            }
            let Some(rivals) = self.rivals.get_mut(&path) else { continue };
            let rank = |((owner, _), rival): &(&(PeerId, ObjectIndex), &Replica)| {
                (std::cmp::Reverse(rival.epoch()), *owner)
            };
            let best = rivals.iter().min_by_key(rank).map(|(key, _)| *key);
            let Some(rival) = best.and_then(|key| rivals.remove(&key)) else { continue };
            if rivals.is_empty() {
                self.rivals.remove(&path);
            }
            let groups = rival.arrived();
            self.replicas.insert(Arc::clone(&path), rival);
            self.events.push(ReplicaEvent::Created(Arc::clone(&path)));
            if !groups.is_empty() {
                self.events.push(ReplicaEvent::Changed(path, groups));
            }
        }
    }
}

/// Returns whether an owner with an epoch outranks another one: the higher epoch does, then the lower number.
#[must_use]
pub(crate) fn outranks(one: (PeerId, u32), other: (PeerId, u32)) -> bool {
    (std::cmp::Reverse(one.1), one.0) < (std::cmp::Reverse(other.1), other.0)
}

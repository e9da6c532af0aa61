//! Copies of objects whose path belongs to an owner of higher rank.

use super::{ReplicaEvent, Replicas, table_of};
use crate::ids::{ObjectIndex, PeerId};
use crate::packet::{Claim, Introduction, outranks};
use crate::replica::{Made, Replica};
use std::ops::Bound;
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
        let table = table_of(&mut self.owners, &mut self.budget, owner);
        if table.objects.len() >= self.limit {
            self.refuse_object(owner);
            return;
        }
        let bytes = Replica::bytes_of(introduction);
        let Some(charge) = self.budget.charge(owner.node(), bytes) else {
            self.refuse(owner);
            return;
        };
        let schema = table.schemas.get(&introduction.schema);
        let rival = Replica::new(owner, object, introduction, schema, (made, charge));
        table.objects.insert(object, Arc::clone(rival.path()));
        if rival.schema().is_none() {
            table.unknown.insert(object, introduction.schema);
        }
        self.rival(rival);
    }

    /// Keeps the copy of an object whose path belongs to an owner of higher rank, until its own owner ends it.
    pub(super) fn rival(&mut self, replica: Replica) {
        if let Some(object) = replica.object() {
            let rivals = self.rivals.entry(Arc::clone(replica.path())).or_default();
            rivals.insert((replica.owner(), object), replica);
        }
    }

    /// Returns paths of more than one owner after one of them, each with the claim of the owner that counts and a rival that
    /// would yield. There is no claim to those of this participant.
    pub(crate) fn conflicts(
        &self,
        after: Option<&Arc<str>>,
        max: usize,
    ) -> Vec<(Arc<str>, Option<Claim>, PeerId)> {
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        let rivals = self.rivals.range::<Arc<str>, _>((after, Bound::Unbounded));
        let conflicts = rivals.filter_map(|(path, rivals)| {
            let known = self.replicas.get(path).map(Replica::rank);
            let mut yielding = rivals.values().filter(|rival| rival.ownership().yields);
            let rival =
                yielding.find(|rival| known.is_none_or(|(owner, _)| owner != rival.owner()))?;
            let claim =
                known.map(|(owner, ownership)| Claim { path: path.to_string(), owner, ownership });
            Some((Arc::clone(path), claim, rival.owner()))
        });
        conflicts.take(max).collect()
    }

    /// Returns whether a path has more than one owner.
    pub(crate) fn has_rivals(&self) -> bool {
        !self.rivals.is_empty()
    }

    /// Lets the rival of a new owner count that has introduced its object before the old owner reported the move, and
    /// returns whether there is one.
    pub(super) fn succeed(&mut self, path: &Arc<str>, to: PeerId) -> bool {
        let Some(rivals) = self.rivals.get_mut(path) else { return false };
        let key = rivals.range((to, ObjectIndex(0))..).map(|(key, _)| *key).next();
        let Some(rival) = key.filter(|key| key.0 == to).and_then(|key| rivals.remove(&key)) else {
            return false;
        };
        if rivals.is_empty() {
            self.rivals.remove(path);
        }
        self.reserved.remove(path, to);
        self.replicas.insert(Arc::clone(path), rival);
        self.events.push(ReplicaEvent::OwnerChanged(Arc::clone(path), to));
        true
    }

    /// Lets the rivals of ended objects count: of each, the one of the highest rank.
    pub(crate) fn promote(&mut self) {
        for path in std::mem::take(&mut self.promoted) {
            if self.replicas.contains_key(&path) {
                continue;
            }
            let Some(rivals) = self.rivals.get_mut(&path) else { continue };
            let best = rivals.iter().reduce(|best, next| {
                if outranks(next.1.rank(), best.1.rank()) { next } else { best }
            });
            let best = best.map(|(key, _)| *key);
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

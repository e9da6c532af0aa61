//! Introductions of objects, and which owner of a path counts.

use super::{ReplicaEvent, Replicas, table_of};
use crate::ids::{ObjectIndex, PeerId};
use crate::packet::{Claim, Introduction, Ownership, is_newer, outranks};
use crate::replica::{Made, Replica};
use std::sync::Arc;

impl Replicas {
    /// Takes the introduction of an object. Of two owners the one of the higher rank counts, and the other one is to be
    /// informed. An owner that does not yield stays until it ends the object, hands it over or leaves.
    pub(super) fn introduce(
        &mut self,
        owner: PeerId,
        object: ObjectIndex,
        introduction: &Introduction,
        made: Made,
    ) {
        let path: Arc<str> = introduction.path.as_str().into();
        let moving = self.moving.contains_key(&path);
        if !self.replicas.contains_key(&path) {
            self.reserved.pass(&path, owner);
        }
        if let Some(replica) = self.replicas.get(&path).filter(|replica| replica.owner() != owner) {
            let claim = |(owner, ownership)| Claim { path: path.to_string(), owner, ownership };
            let (known, new) = (replica.rank(), (owner, introduction.ownership));
            if self.stays(replica, new) {
                self.claims.push(claim(known));
                self.introduce_rival(owner, object, introduction, made);
                return;
            }
            if !moving {
                self.claims.push(claim(new));
            }
        }
        if let Some(replica) =
            self.replicas.get(&path).filter(|replica| replica.owner() == owner && !moving)
        {
            if !is_newer(introduction.ownership.epoch, replica.ownership().epoch) {
                self.end(owner, object);
                return;
            }
            // It was deleted and created again; the deletion is on its way.
            if let Some(before) = replica.object() {
                self.end(owner, before);
            }
            self.replicas.remove(&path);
            self.events.push(ReplicaEvent::Deleted(Arc::clone(&path)));
        }
        self.place(owner, object, introduction, (path, made));
    }

    /// Returns whether the owner of a replica keeps its path although another one introduces an object there.
    fn stays(&self, replica: &Replica, new: (PeerId, Ownership)) -> bool {
        if !new.1.yields && self.reserved.get(replica.path()) == Some(new.0) {
            return false;
        }
        !replica.ownership().yields || !outranks(new, replica.rank())
    }

    /// Makes an object count whose owner has the highest rank.
    fn place(
        &mut self,
        owner: PeerId,
        object: ObjectIndex,
        introduction: &Introduction,
        (path, made): (Arc<str>, Made),
    ) {
        let table = table_of(&mut self.owners, &mut self.budget, owner);
        if table.objects.len() >= self.limit {
            self.refuse_object(owner);
            return;
        }
        let same = |known: &&Replica| known.fingerprint() == introduction.schema;
        let known = self.replicas.get(&path).filter(same).map(Replica::bytes);
        let bytes = known.unwrap_or_else(|| Replica::bytes_of(introduction));
        let Some(charge) = self.budget.charge(owner.node(), bytes) else {
            self.refuse(owner);
            return;
        };
        table.objects.insert(object, Arc::clone(&path));
        self.moving.remove(&path);
        self.reserved.remove(&path, owner);
        let known = self.replicas.remove(&path);
        // Both remain: one of them is a rival.
        let outranked = known.as_ref().filter(|known| known.owner() != owner).cloned();
        match known.filter(|known| known.fingerprint() == introduction.schema) {
            Some(mut replica) => {
                replica.belong(owner, Some(object), introduction.ownership);
                replica.recharge(charge);
                if let Some(schema) = table.schemas.get(&introduction.schema) {
                    replica.follow_schema(schema);
                }
                if replica.schema().is_none() {
                    table.unknown.insert(object, introduction.schema);
                }
                self.replicas.insert(Arc::clone(&path), replica);
                self.events.push(ReplicaEvent::OwnerChanged(Arc::clone(&path), owner));
            }
            None => {
                if outranked.is_some() {
                    self.events.push(ReplicaEvent::Deleted(Arc::clone(&path)));
                }
                let schema = table.schemas.get(&introduction.schema);
                let replica = Replica::new(owner, object, introduction, schema, (made, charge));
                if replica.schema().is_none() {
                    table.unknown.insert(object, introduction.schema);
                }
                self.replicas.insert(Arc::clone(&path), replica);
                self.events.push(ReplicaEvent::Created(path));
            }
        }
        if let Some(outranked) = outranked {
            self.rival(outranked);
        }
    }
}

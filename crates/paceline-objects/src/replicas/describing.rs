//! The schemas of owners.

use super::{ReplicaEvent, Replicas, table_of};
use crate::ids::PeerId;
use crate::replica::KnownSchema;
use crate::schema::Schema;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Replicas {
    pub(crate) fn schema(&self, owner: PeerId, fingerprint: u64) -> Option<Arc<Schema>> {
        let known = self.owners.get(&owner)?.schemas.get(&fingerprint)?;
        Some(Arc::clone(&known.schema))
    }

    /// Returns whether some schemas of an owner had no room.
    pub(crate) fn lacks_schemas(&self, owner: PeerId) -> bool {
        self.owners.get(&owner).is_some_and(|table| table.lacks_schemas)
    }

    /// Takes the schemas of an owner. Those that are known stay; new ones without room are left out.
    pub(crate) fn describe(&mut self, owner: PeerId, schemas: Vec<Schema>) {
        let table = table_of(&mut self.owners, &mut self.budget, owner);
        let mut wanted: BTreeMap<_, _> =
            schemas.into_iter().map(|schema| (schema.fingerprint(), schema)).collect();
        table.schemas.retain(|fingerprint, known| {
            let stays = wanted.get(fingerprint).is_some_and(|schema| *schema == *known.schema);
            if stays {
                wanted.remove(fingerprint);
            }
            stays
        });
        table.lacks_schemas = false;
        for (fingerprint, schema) in wanted {
            if let Some(charge) = self.budget.charge(owner.node(), schema.memory_bytes()) {
                table.schemas.insert(fingerprint, KnownSchema::new(schema, charge));
            } else {
                table.lacks_schemas = true;
                self.counts.over_share += 1;
            }
        }
        self.teach(owner);
    }

    /// Decodes what waited for the schemas of an owner.
    fn teach(&mut self, owner: PeerId) {
        let Some(table) = self.owners.get_mut(&owner) else { return };
        let known: Vec<_> = table
            .unknown
            .iter()
            .filter(|(_, schema)| table.schemas.contains_key(schema))
            .map(|(object, _)| *object)
            .collect();
        let mut refused = false;
        for object in known {
            table.unknown.remove(&object);
            let Some(path) = table.objects.get(&object) else { continue };
            let rivals = self.rivals.get_mut(path);
            let rival = rivals.and_then(|rivals| rivals.get_mut(&(owner, object)));
            let is_rival = rival.is_some();
            let replica = rival.or_else(|| self.replicas.get_mut(path));
            let Some(replica) = replica.filter(|replica| replica.schema().is_none()) else {
                continue;
            };
            let Some(schema) = table.schemas.get(&replica.fingerprint()) else { continue };
            let mask = replica.learn(schema);
            refused |= replica.schema().is_none();
            if !is_rival && !mask.is_empty() {
                self.events.push(ReplicaEvent::Changed(Arc::clone(path), mask));
            }
        }
        if refused {
            self.refuse(owner);
        }
    }
}

//! The memory that neighbours share: who uses it, and who drops samples when it is full.

use super::super::lock;
use super::{Arriving, Neighbour, RxSources};
use paceline_proto::NodeId;
use paceline_proto::memory::{Debtor, debtor};
use paceline_proto::receive::Victim;
use paceline_sched::Instant;
use std::sync::{Arc, Mutex, Weak};

/// The neighbours of all links, and former ones whose streams are kept.
#[derive(Default)]
pub(super) struct Holders(Mutex<Vec<Weak<Neighbour>>>);

impl RxSources {
    /// Adds a neighbour that may use memory.
    pub(super) fn add_holder(&self, neighbour: &Arc<Neighbour>) {
        let mut holders = lock(&self.holders.0);
        holders.retain(|it| it.strong_count() > 0);
        holders.push(Arc::downgrade(neighbour));
    }

    /// Returns the memory that each neighbour of a link uses, in bytes.
    pub(crate) fn memory_of(&self, link: usize) -> Vec<(NodeId, usize)> {
        let holders = lock(&self.holders.0);
        let all = holders.iter().filter_map(Weak::upgrade).filter(|it| it.link == link);
        all.map(|it| (it.node, it.share.used())).collect()
    }

    /// Drops samples until the memory is within its limit. `own` has just received a frame. Costs a few loads as
    /// long as there is room.
    pub(super) fn make_room(&self, now: Instant, own: &Arc<Neighbour>) {
        loop {
            let excess = self.memory.excess();
            if excess == 0 {
                return;
            }
            let (debtor, victim) = self.debtor(own);
            if debtor.give_back(self, now, (excess, victim)) == 0 {
                return self.memory.note_greatest();
            }
        }
    }

    fn debtor(&self, own: &Arc<Neighbour>) -> (Arc<Neighbour>, Victim) {
        let holders: Vec<_> = lock(&self.holders.0).iter().filter_map(Weak::upgrade).collect();
        let others = holders.into_iter().filter(|it| !Arc::ptr_eq(it, own));
        let others = others.map(|it| {
            let samples = it.share.samples();
            (it, samples)
        });
        match debtor(own.share.samples(), others) {
            Debtor::Other(other) => (other, Victim::Oldest),
            Debtor::Own => (own.clone(), Victim::Newest),
        }
    }
}

impl Neighbour {
    /// Drops unfinished samples, then ones that wait for their subscription, until at least `bytes` are free or none
    /// is left. Returns the bytes that it has freed.
    fn give_back(
        &self,
        sources: &RxSources,
        now: Instant,
        (bytes, victim): (usize, Victim),
    ) -> usize {
        let mut guard = lock(&self.state);
        let Arriving { reader, batch, .. } = &mut *guard;
        let mut freed = reader.receiver_mut().give_back(bytes, victim, |item| batch.push(item));
        sources.hand_over(now, self.node, batch.drain(..), |bytes| self.waits(now, bytes));
        drop(guard);
        if freed < bytes {
            let waiting = &mut lock(&sources.sources);
            freed += waiting.give_back(self.node, bytes - freed, &sources.drops);
        }
        if freed > 0 {
            let limit = sources.memory.limit();
            crate::warn_limited!(
                "neighbour {} has lost samples of {freed} bytes: the {limit} bytes of memory for neighbours are full; \
                 raise neighbour_memory if all of them are expected",
                self.node
            );
        }
        freed
    }
}

//! Which groups an update carries.

use super::objects::ObjectState;
use crate::schema::GroupMask;

/// The groups of an object in the order in which they were last carried, those that waited longest first.
#[derive(Clone, Debug, Default)]
pub(super) struct GroupOrder(Vec<u8>);

impl GroupOrder {
    pub(super) fn new(groups: usize) -> Self {
        // An object of one group needs no order.
        let groups = u8::try_from(groups).unwrap_or(u8::MAX);
        Self(if groups > 1 { (0..groups).collect() } else { Vec::new() })
    }

    /// Returns the groups of an update that carries at least `fidelity_permille` of the state's bytes: those in
    /// `dirty` first, and of these and the others those that waited longest.
    pub(super) fn choose(
        &self,
        object: &ObjectState,
        dirty: GroupMask,
        fidelity_permille: u16,
    ) -> GroupMask {
        if fidelity_permille == 0 && !dirty.is_empty() {
            return dirty;
        }
        if fidelity_permille >= 1_000 || self.0.is_empty() {
            return object.groups();
        }
        let needed = (object.bytes() * u64::from(fidelity_permille)).div_ceil(1_000);
        let mut chosen = GroupMask::default();
        let mut bytes = 0;
        let waiting = self.0.iter().filter(|group| dirty.has(usize::from(**group)));
        let others = self.0.iter().filter(|group| !dirty.has(usize::from(**group)));
        for group in waiting.chain(others) {
            if bytes >= needed && !chosen.is_empty() {
                break;
            }
            let group = GroupMask::of(usize::from(*group));
            bytes += object.bytes_of(group);
            chosen = chosen.with(group);
        }
        chosen
    }

    /// Notes that groups were carried.
    pub(super) fn carried(&mut self, groups: GroupMask) {
        self.0.sort_by_key(|group| groups.has(usize::from(*group)));
    }
}

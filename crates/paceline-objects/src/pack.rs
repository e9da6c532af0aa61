//! Packs the updates of a message into fragments.

use crate::contract::losable_fragments;
use crate::packet::{Fragment, UpdateRecord};

/// An update to pack, with the size and fidelity that determine its losable part.
#[derive(Clone, Debug, PartialEq)]
pub struct OutgoingUpdate {
    /// The update with all groups that the message carries.
    pub record: UpdateRecord,
    /// The size of the object's whole state in bytes, `s`.
    pub state_bytes: usize,
    /// The least share of the state that must arrive, `f`, in thousandths.
    pub fidelity_permille: u16,
}

/// The updates of one fragment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PackedFragment {
    /// The updates.
    pub updates: Vec<UpdateRecord>,
    /// Whether the contract permits its loss.
    pub losable: bool,
}

/// Packs updates into fragments of at most `limit` bytes with header, `l` of the paper.
///
/// An update that fits into a fragment is never split, and shares one with its neighbours. The groups of a larger
/// update have fragments of their own; of these, as many are losable as its fidelity permits, spread evenly (West and
/// Schwan 1997, section 3.2). A group is never split: one that exceeds the limit makes a larger fragment.
#[must_use]
pub fn pack(updates: Vec<OutgoingUpdate>, limit: usize) -> Vec<PackedFragment> {
    let room = limit.saturating_sub(Fragment::HEADER);
    let mut packed = Vec::new();
    let mut shared = PackedFragment::default();
    let mut used = 0;
    for update in updates {
        let len = update.record.len();
        if len > room && update.record.groups.len() > 1 {
            packed.extend(split(update, room));
            continue;
        }
        if used + len > room && !shared.updates.is_empty() {
            packed.push(std::mem::take(&mut shared));
            used = 0;
        }
        used += len;
        shared.updates.push(update.record);
    }
    if !shared.updates.is_empty() {
        packed.push(shared);
    }
    packed
}

/// Splits an update into fragments of its own.
fn split(update: OutgoingUpdate, room: usize) -> Vec<PackedFragment> {
    let OutgoingUpdate { record, state_bytes, fidelity_permille } = update;
    let carried: usize = record.groups.iter().map(|(_, bytes)| bytes.len()).sum();
    let head = record.head_len(record.mask());
    let empty = UpdateRecord { groups: Vec::new(), ..record.clone() };
    let mut parts: Vec<UpdateRecord> = Vec::new();
    let mut used = 0;
    for (group, bytes) in record.groups {
        let len = UpdateRecord::group_len(&bytes);
        match parts.last_mut() {
            Some(part) if used + len <= room => part.groups.push((group, bytes)),
            Some(_) | None => {
                used = head;
                parts.push(UpdateRecord { groups: vec![(group, bytes)], ..empty.clone() });
            }
        }
        used += len;
    }
    let largest = parts.iter().map(payload).max().unwrap_or(0);
    let losable = losable_fragments(parts.len(), state_bytes, largest, carried, fidelity_permille);
    let positions = spread(parts.len(), losable);
    parts
        .into_iter()
        .enumerate()
        .map(|(position, part)| PackedFragment {
            losable: positions.contains(&position),
            updates: vec![part],
        })
        .collect()
}

fn payload(part: &UpdateRecord) -> usize {
    part.groups.iter().map(|(_, bytes)| bytes.len()).sum()
}

/// Returns the positions of `losable` among `fragments`, at least ⌊p/x⌋ apart.
fn spread(fragments: usize, losable: usize) -> Vec<usize> {
    let step = fragments.checked_div(losable).unwrap_or(1).max(1);
    (0..losable).map(|number| number * step + step - 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ObjectIndex;
    use bytes::Bytes;
    use proptest::prelude::*;

    fn update(object: u32, groups: &[usize], fidelity_permille: u16) -> OutgoingUpdate {
        let groups: Vec<_> = groups
            .iter()
            .enumerate()
            .map(|(group, len)| (group, Bytes::from(vec![7; *len])))
            .collect();
        let state_bytes = groups.iter().map(|(_, bytes)| bytes.len()).sum();
        let record = UpdateRecord {
            object: ObjectIndex(object),
            introduction: None,
            fate: None,
            age: 5,
            groups,
        };
        OutgoingUpdate { record, state_bytes, fidelity_permille }
    }

    proptest! {
        /// Every group is in exactly one fragment, fragments are within the limit, and what the contract permits to
        /// lose leaves at least the fidelity, evenly spread.
        #[test]
        fn fragments_keep_fidelity(
            objects in prop::collection::vec((prop::collection::vec(1..300_usize, 1..20), 1..=1_000_u16), 1..20),
            limit in 400..2_000_usize,
        ) {
            let updates: Vec<_> = objects
                .iter()
                .enumerate()
                .map(|(object, (groups, fidelity))| update(u32::try_from(object).unwrap(), groups, *fidelity))
                .collect();
            let packed = pack(updates.clone(), limit);
            for fragment in &packed {
                let len: usize = fragment.updates.iter().map(UpdateRecord::len).sum();
                prop_assert!(Fragment::HEADER + len <= limit);
            }
            for OutgoingUpdate { record, state_bytes, fidelity_permille } in &updates {
                let of = |losable: Option<bool>| {
                    packed
                        .iter()
                        .filter(|fragment| losable.is_none_or(|losable| fragment.losable == losable))
                        .flat_map(|fragment| &fragment.updates)
                        .filter(|update| update.object == record.object)
                        .collect::<Vec<_>>()
                };
                let mut groups: Vec<_> = of(None).iter().flat_map(|update| update.groups.clone()).collect();
                groups.sort_by_key(|(group, _)| *group);
                prop_assert_eq!(&groups, &record.groups);
                let kept: usize = of(Some(false)).into_iter().map(payload).sum();
                prop_assert!(kept * 1_000 >= state_bytes * usize::from(*fidelity_permille));
                let parts = of(None).len();
                let lost = of(Some(true)).len();
                prop_assert!(lost * 1_000 <= (1_000 - usize::from(*fidelity_permille)) * parts);
                if lost > 1 {
                    let positions: Vec<_> = packed
                        .iter()
                        .filter(|fragment| fragment.updates.iter().any(|update| update.object == record.object))
                        .enumerate()
                        .filter(|(_, fragment)| fragment.losable)
                        .map(|(position, _)| position)
                        .collect();
                    prop_assert!(positions.windows(2).all(|pair| pair[1] - pair[0] >= parts / lost));
                }
            }
        }
    }

    #[test]
    fn small_updates_share_a_fragment_and_are_never_losable() {
        let packed = pack((0..10).map(|object| update(object, &[20, 20], 1)).collect(), 1_200);
        assert_eq!(packed.len(), 1);
        assert!(!packed[0].losable);
    }

    #[test]
    fn a_large_update_of_half_fidelity_may_lose_every_second_fragment() {
        let packed = pack(vec![update(1, &[1_000; 8], 500)], 1_200);
        assert_eq!(
            packed.iter().map(|fragment| fragment.losable).collect::<Vec<_>>(),
            [false, true].repeat(4)
        );
        let complete = pack(vec![update(1, &[1_000; 8], 1_000)], 1_200);
        assert!(complete.iter().all(|fragment| !fragment.losable));
    }
}

use super::*;
use crate::sample::{Encoding, Timestamp};
use bytes::Bytes;
use paceline_sched::Instant;
use proptest::prelude::*;

fn sample(seq: u64, kind: Kind, bytes: usize) -> RawSample {
    RawSample {
        seq,
        captured: Timestamp::default(),
        shift: 0,
        published_at: Instant::ZERO,
        doubt: Default::default(),
        kind,
        encoding: Encoding::Bytes,
        payload: Bytes::from(vec![0; bytes]),
        attachment: None,
    }
}

fn kind(letter: char) -> Kind {
    match letter {
        'I' => Kind::VideoI,
        'P' => Kind::VideoP,
        'L' => Kind::VideoLeading,
        _ => Kind::VideoB,
    }
}

fn group_of(kinds: &str, group: &mut Group) -> Vec<u64> {
    for (seq, letter) in (0..).zip(kinds.chars()) {
        group.add(&sample(seq, kind(letter), 1));
    }
    group.units.iter().map(|unit| unit.seq).collect()
}

#[test]
fn a_group_has_the_references_since_the_last_key_picture() {
    assert_eq!(group_of("PPBIPBLPB", &mut Group::default()), [3, 4, 7]);
    assert_eq!(group_of("PB", &mut Group::default()), [0; 0]);
    let mut group = Group::default();
    group_of("IPBP", &mut group);
    group.handle_lost(Some(Kind::VideoB));
    assert_eq!(group.units.len(), 3);
    group.handle_lost(Some(Kind::VideoP));
    group.add(&sample(9, Kind::VideoP, 1));
    assert!(group.units.is_empty(), "a reference is missing until the next key picture");
}

#[test]
fn groups_have_bounds_of_their_own_and_together() {
    let budget = GroupBudget::default();
    let mut groups: Vec<_> = (0..9).map(|_| Group::new(budget.clone())).collect();
    for group in &mut groups {
        group.add(&sample(0, Kind::VideoI, BYTES_MAX));
    }
    let stored: Vec<_> = groups.iter().map(|group| group.units.len()).collect();
    assert_eq!(stored, [1, 1, 1, 1, 1, 1, 1, 1, 0], "8 of 16 MiB fill the budget");
    groups.truncate(1);
    let [group] = &mut groups[..] else { return };
    group.add(&sample(1, Kind::VideoP, 1));
    assert!(group.units.is_empty() && group.bytes == 0, "more than one group may have");
    assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    group.add(&sample(2, Kind::VideoI, 1));
    for seq in 3..3 + UNITS_MAX as u64 {
        assert!(!group.units.is_empty());
        group.add(&sample(seq, Kind::VideoP, 1));
    }
    assert!(group.units.is_empty());
}

/// Plays a video to a receiver that joins at `joins`; returns the delivered sequence numbers and the
/// number of losses that it was told.
fn received(kinds: &str, joins: usize, rooms: &[usize]) -> (Vec<u64>, u64) {
    let (mut group, mut joining) = (Group::default(), Joining::default());
    let (mut delivered, mut lost, mut open) = (Vec::new(), 0, false);
    for ((seq, letter), room) in (0u64..).zip(kinds.chars()).zip(rooms.iter().cycle()) {
        let next = sample(seq, kind(letter), 1);
        if seq >= joins as u64 {
            let mut deliver = true;
            if !joining.is_live() {
                let (units, treatment) = joining.step(&group, Some(&next), *room);
                delivered.extend(units.iter().map(|unit| unit.seq));
                match treatment {
                    Next::Follow => open = true,
                    Next::Defer => deliver = false,
                    Next::Skip => {}
                    Next::Wait(missed) => lost += missed,
                }
            }
            open |= next.kind == Kind::VideoI;
            match (deliver, open) {
                (true, true) => delivered.push(seq),
                (true, false) => lost += 1,
                (false, _) => {}
            }
        }
        group.add(&next);
    }
    if let State::Behind(behind) = joining.state {
        lost += behind.missed();
    }
    (delivered, lost)
}

#[test]
fn a_receiver_catches_up_in_portions() {
    let all: Vec<u64> = (0..12).collect();
    assert_eq!(received("IPPPPPPPPPPP", 6, &[100]), (all.clone(), 0));
    // Two units per sample: it gains one on the source with each.
    assert_eq!(received("IPPPPPPPPPPP", 6, &[2]), (all, 0));
    // Without room it never catches up, and starts with the next key picture.
    assert_eq!(received("IPPPIPP", 2, &[0]), (vec![4, 5, 6], 2));
    assert_eq!(received("IPPPIPP", 2, &[1]), (vec![0, 1, 4, 5, 6], 2));
    assert_eq!(received("IPBPBIP", 2, &[1]), (vec![0, 1, 3, 4, 5, 6], 1));
}

proptest! {
    /// Whatever the structure and the room, each delivered picture follows all its references, in order,
    /// and each picture since the receiver joined is delivered or lost.
    #[test]
    fn joined_videos_are_decodable_and_complete(
        kinds in "[IPPPPPBB]{1,60}",
        joins in 0usize..40,
        rooms in proptest::collection::vec(0usize..5, 1..8),
    ) {
        let (delivered, lost) = received(&kinds, joins, &rooms);
        prop_assert!(delivered.is_sorted_by(|a, b| a < b), "{delivered:?}");
        let letters: Vec<char> = kinds.chars().collect();
        for &seq in &delivered {
            let at = usize::try_from(seq).unwrap();
            if letters[at] == 'I' {
                continue;
            }
            let key = letters[..at].iter().rposition(|letter| *letter == 'I');
            prop_assert!(key.is_some(), "{seq} of {kinds} has no key picture");
            let references = (key.unwrap_or_default()..at).filter(|at| letters[*at] != 'B');
            for reference in references {
                prop_assert!(delivered.contains(&(reference as u64)), "{seq} needs {reference}");
            }
        }
        let since = delivered.iter().filter(|seq| **seq >= joins as u64).count() as u64;
        prop_assert_eq!(since + lost, letters.len().saturating_sub(joins) as u64);
    }
}

use super::*;
use crate::pull::merge::merge;
use crate::pull::{Answered, Find, Found, Holding, PullPlan, SampleSpan, Selection};
use crate::tag::Tag;
use core::num::NonZeroU32;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Returns pictures of these kinds, numbered from 0, at 30 per second.
fn film(kinds: &str) -> Vec<Held> {
    let kind = |letter| match letter {
        'I' => Kind::VideoI,
        'P' => Kind::VideoP,
        _ => Kind::VideoB,
    };
    let held =
        |(seq, letter)| Held { seq, captured_ns: seq * 33_333_333, bytes: 9, kind: kind(letter) };
    (0..).zip(kinds.chars()).map(held).collect()
}

fn holder(node: u64, hops: usize, items: Vec<Held>) -> Answered {
    let (first, last) = (items[0], items[items.len() - 1]);
    let span = SampleSpan {
        oldest_seq: first.seq,
        newest_seq: last.seq,
        oldest_ns: first.captured_ns,
        newest_ns: last.captured_ns,
    };
    let publisher = crate::ids::PublisherId { node: NodeId(9), index: 0 };
    let found = Found { holdings: vec![Holding { publisher, span, items }], more: false };
    Answered { node: NodeId(node), hops, found }
}

fn plan(answers: &[Answered], rate: Rate, resized: bool) -> PullPlan {
    let selection = Selection::Seq { first: 0, last: u64::MAX };
    let tag = Tag::new("camera").unwrap();
    merge(&Find { tag, publisher: None, selection, rate, after: None }, resized, answers)
}

fn seqs(plan: &PullPlan) -> Vec<u64> {
    plan.items.iter().map(|item| item.held.seq).collect()
}

fn every(n: u32) -> Rate {
    Rate::every(NonZeroU32::new(n).unwrap())
}

fn max_hz(hertz: u32) -> Rate {
    Rate::max(NonZeroU32::new(hertz * 1_000).unwrap())
}

#[test]
fn a_rate_reachable_by_dropping_needs_no_coding() {
    let film = [holder(1, 0, film(&"IBBPBBPBBPBB".repeat(5)))];
    let thin = plan(&film, max_hz(10), false);
    assert!(thin.coded.is_empty());
    assert_eq!(seqs(&thin), (0..60).step_by(3).collect::<Vec<_>>());
    let all = plan(&film, Rate::ALL, false);
    assert!(all.coded.is_empty() && all.items.len() == 60);
    assert_eq!(seqs(&plan(&film, every(1), false)).len(), 60);
}

#[test]
fn holders_return_nothing_after_a_gap_between_them() {
    let film = film("IPPPPPPPIPP");
    let part = |from: usize, to: usize| film[from..to].to_vec();
    // The second holder has picture 2 as well, so nothing can be missing between them.
    let whole = plan(&[holder(1, 0, part(0, 3)), holder(2, 1, part(2, 11))], Rate::ALL, false);
    assert_eq!((seqs(&whole), whole.undecodable), ((0..11).collect(), 0));
    // No holder has pictures 2 and 3, so a reference between the two parts may be missing.
    let hole = plan(&[holder(1, 0, part(0, 3)), holder(2, 1, part(4, 11))], Rate::ALL, false);
    assert_eq!((seqs(&hole), hole.undecodable), (vec![0, 1, 2, 8, 9, 10], 4));
}

#[test]
fn a_rate_below_the_reference_rate_is_recoded_exactly() {
    let film = [holder(1, 0, film(&"IPPPPPPPPPPP".repeat(5)))];
    let plan = plan(&film, every(4), false);
    assert_eq!(plan.coded.len(), 1);
    assert_eq!(seqs(&plan), (0..60).step_by(4).collect::<Vec<_>>());
}

#[test]
fn another_size_is_recoded_at_any_rate() {
    let film = [holder(1, 0, film(&"IBBPBB".repeat(5)))];
    for (rate, step) in [(Rate::ALL, 1), (every(2), 2)] {
        let plan = plan(&film, rate, true);
        assert_eq!(plan.coded.len(), 1);
        assert_eq!(seqs(&plan), (0..30).step_by(step).collect::<Vec<_>>());
    }
    // The first picture, and then the instants of the grid.
    let limited = seqs(&plan(&film, max_hz(10), true));
    assert_eq!((limited.len(), limited[0]), (10, 0));
    assert!(limited[1..].windows(2).all(|pair| pair[1] - pair[0] == 3), "{limited:?}");
}

#[test]
fn the_recoding_holder_has_every_needed_picture() {
    let film = film("IPPPIPPPIPPP");
    // The nearest holder starts inside the first group and ends inside the last.
    let near = holder(1, 0, film[2..10].to_vec());
    let answers = [near, holder(2, 1, film)];
    let of = |plan: PullPlan| plan.items.iter().map(|item| item.holder.0).collect::<Vec<_>>();
    let coded = plan(&answers, Rate::ALL, true);
    assert_eq!(of(coded), [2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 2, 2]);
    // Without re-encoding, each picture is fetched from its nearest holder, regardless of its references.
    let whole = plan(&answers, Rate::ALL, false);
    assert_eq!(of(whole), [2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2]);
}

#[test]
fn an_incomplete_group_is_not_recoded() {
    let film = film("IPPPIPPP");
    let answers = [holder(1, 0, film[..2].to_vec()), holder(2, 1, film[2..].to_vec())];
    let coded = plan(&answers, Rate::ALL, true);
    assert_eq!((seqs(&coded), coded.undecodable), (vec![0, 1, 4, 5, 6, 7], 2));
    assert_eq!(seqs(&plan(&answers, Rate::ALL, false)), (0..8).collect::<Vec<_>>());
}

#[test]
fn two_codings_of_a_video_are_not_mixed() {
    let film = film("IPPPIPPP");
    let small: Vec<Held> = film.iter().step_by(2).map(|held| Held { bytes: 2, ..*held }).collect();
    for answers in [
        [holder(1, 0, small.clone()), holder(2, 1, film.clone())],
        [holder(2, 0, film.clone()), holder(1, 1, small)],
    ] {
        let plan = plan(&answers, Rate::ALL, false);
        assert!(plan.items.iter().all(|item| item.holder == NodeId(2)), "{plan:?}");
        assert_eq!(seqs(&plan), (0..8).collect::<Vec<_>>());
        let publisher = plan.items[0].publisher;
        assert_eq!(plan.apart, BTreeSet::from([(NodeId(1), publisher)]));
    }
    // A film thinned by dropping alone has the same coding.
    let thinned: Vec<Held> = film.iter().filter(|held| held.seq != 3).copied().collect();
    let plan = plan(&[holder(1, 0, thinned), holder(2, 1, film)], Rate::ALL, false);
    assert!(plan.apart.is_empty() && plan.items.len() == 8);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_picture_is_returned_without_its_references(
        kinds in "I[IPBBB]{0,60}",
        n in 1u32..6,
        resized in any::<bool>(),
    ) {
        let rows = film(&kinds);
        let plan = plan(&[holder(1, 0, rows.clone())], every(n), resized);
        let got: BTreeSet<u64> = seqs(&plan).into_iter().collect();
        let due = rows.iter().filter(|held| held.seq % u64::from(n) == 0).count();
        if plan.coded.is_empty() {
            prop_assert!((due..=due + 3).contains(&got.len()), "{} of {due}", got.len());
            for seq in &got {
                // Everything from its I picture on that it refers to.
                let upto = rows.iter().take_while(|held| held.seq <= *seq).collect::<Vec<_>>();
                let group = upto.iter().rposition(|held| held.kind == Kind::VideoI).unwrap();
                let mut needed = upto[group..].iter().filter(|held| held.kind != Kind::VideoB);
                prop_assert!(needed.all(|held| got.contains(&held.seq)), "{seq}");
            }
        } else {
            prop_assert!(got.iter().all(|seq| seq % u64::from(n) == 0));
            prop_assert_eq!(got.len(), due);
        }
    }
}

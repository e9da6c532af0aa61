use super::*;
use crate::form::Rate;
use crate::pull::PullBuffer;
use crate::pull::buffer::tests::{rates, row, select, selections};
use crate::pull::limits::Limits;
use crate::sample::{RawSample, Timestamp};
use crate::tag::Tag;
use paceline_sched::{Duration, Instant};
use proptest::prelude::*;

fn publisher(index: u32) -> PublisherId {
    PublisherId { node: NodeId(1), index }
}

fn find(selection: Selection, rate: Rate) -> Find {
    let tag = Tag::new("robot/camera").unwrap();
    Find { tag, publisher: None, selection, rate, after: None }
}

/// Publisher 0 sends data, publisher 1 pictures of which some are I pictures, both 100 times per second.
fn sample(publisher: u32, seq: u64, starts: &[bool]) -> RawSample {
    let kind = match (publisher, starts.get(usize::try_from(seq).unwrap())) {
        (0, _) => Kind::Data,
        (_, Some(true)) => Kind::VideoI,
        _ if seq % 3 == 2 => Kind::VideoB,
        _ => Kind::VideoP,
    };
    let captured = Timestamp { nanos: seq * 10_000_000, error: 0 };
    let payload = vec![0; usize::try_from(seq).unwrap() + 1].into();
    RawSample { seq, captured, kind, payload, ..RawSample::default() }
}

fn buffer() -> PullBuffer {
    PullBuffer::new(Limits::new(10_000, 64 << 20, Duration::from_secs(10)).unwrap())
}

/// Stores these samples of publisher 0.
fn hold(buffer: &mut PullBuffer, seqs: core::ops::Range<u64>) {
    for seq in seqs {
        buffer.push(Instant::ZERO, publisher(0), sample(0, seq, &[]));
    }
}

fn answered(node: u64, hops: usize, buffer: &mut PullBuffer, find: &Find) -> Answered {
    let found = buffer.find_page(Instant::ZERO, find, |_| true);
    assert!(!found.more);
    Answered { node: NodeId(node), hops, found }
}

fn seqs(plan: &PullPlan) -> Vec<u64> {
    plan.items.iter().map(|item| item.held.seq).collect()
}

/// The samples of a holder: one stretch per publisher, with gaps.
type Part = [(u64, u64, Vec<u64>); 2];

fn part() -> impl Strategy<Value = Part> {
    let stretch = || (0..40u64, 0..30u64, prop::collection::vec(0..60u64, 0..6));
    [stretch(), stretch()]
}

fn fill(part: &Part, starts: &[bool]) -> PullBuffer {
    let mut buffer = buffer();
    for (index, (first, count, holes)) in (0..).zip(part) {
        for seq in (*first..first + count).filter(|seq| !holes.contains(seq)) {
            buffer.push(Instant::ZERO, publisher(index), sample(index, seq, starts));
        }
    }
    buffer
}

/// Returns the samples of a publisher at all holders, each with its nearest holder.
fn union(index: u32, parts: &[(usize, Part)], starts: &[bool]) -> BTreeMap<u64, (Held, NodeId)> {
    let mut all = BTreeMap::new();
    let mut by_distance: Vec<_> = (1..).zip(parts).collect();
    by_distance.sort_by_key(|&(node, (hops, _))| (*hops, node));
    for (node, (_, part)) in by_distance {
        let (first, count, holes) = &part[index as usize];
        for seq in (*first..first + count).filter(|seq| !holes.contains(seq)) {
            let held = row(&sample(index, seq, starts));
            all.entry(seq).or_insert((held, NodeId(node)));
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn several_holders_answer_like_a_single_one(
        parts in prop::collection::vec((0..4usize, part()), 0..4),
        starts in prop::collection::vec(prop::bool::weighted(0.15), 70),
        selection in selections(),
        rate in rates(),
    ) {
        let find = find(selection, rate);
        let answers: Vec<Answered> = (1..)
            .zip(&parts)
            .map(|(node, (hops, part))| answered(node, *hops, &mut fill(part, &starts), &find))
            .collect();
        let plan = merge(&find, false, &answers);
        prop_assert_eq!(plan.absence.is_some(), plan.items.is_empty());
        prop_assert_eq!(plan.explain(&find).is_some(), plan.items.is_empty());
        let mut undecodable = 0;
        let mut gaps = false;
        for index in 0..2 {
            let all = union(index, &parts, &starts);
            let rows: Vec<Held> = all.values().map(|(held, _)| *held).collect();
            // Ranges at several holders are thinned twice, so the rate is only an upper bound.
            let exact = rate == Rate::ALL || !selection.is_range() || parts.len() <= 1;
            // Pictures of a video after a gap between holders cannot be decoded.
            let follow = rows.windows(2).all(|pair| pair[1].seq == pair[0].seq + 1);
            let hole = index == 1 && parts.len() > 1 && !follow;
            gaps |= hole;
            let mut expected = select(&rows, &selection, if exact { rate } else { Rate::ALL });
            let needs = |held: &Held| matches!(held.kind, Kind::VideoP | Kind::VideoB);
            let useless = expected.iter().take_while(|held| needs(held)).count();
            expected.drain(..useless);
            undecodable += useless;
            let mine = plan.items.iter().filter(|item| item.publisher == publisher(index));
            let mine: Vec<&PlanItem> = mine.collect();
            let got: Vec<Held> = mine.iter().map(|item| item.held).collect();
            if hole {
                prop_assert!(got.iter().all(|held| expected.contains(held)));
                let alone = expected.iter().filter(|held| held.kind == Kind::VideoI);
                prop_assert!(rate != Rate::ALL || alone.clone().all(|held| got.contains(held)));
            } else if index == 1 && rate != Rate::ALL {
                // Video thinning has its own tests. Here, no other pictures are returned, and no reference is
                // left out unless the video is re-encoded. Nothing refers to an I next to another one.
                prop_assert!(got.iter().all(|held| expected.contains(held)));
                let starts = |at: usize| expected.get(at).is_none_or(|it| it.kind == Kind::VideoI);
                let alone = |at: usize| at > 0 && (at - 1..=at + 1).all(starts);
                let whole = expected.iter().enumerate().filter(|(at, held)| {
                    held.kind != Kind::VideoB && !alone(*at)
                });
                let kept = whole.into_iter().all(|(_, held)| got.contains(held));
                prop_assert!(!plan.coded.is_empty() || kept, "{got:?} of {expected:?}");
            } else if exact || index == 1 {
                prop_assert_eq!(&got, &expected, "publisher {} of {:?}", index, selection);
            } else {
                prop_assert!(got.iter().all(|held| expected.contains(held)));
                prop_assert_eq!(got.is_empty(), expected.is_empty());
                prop_assert!(got.is_sorted_by(|a, b| a.seq < b.seq));
            }
            if exact && plan.coded.is_empty() {
                prop_assert!(mine.iter().all(|item| item.holder == all[&item.held.seq].1));
            }
        }
        if plan.coded.is_empty() && !gaps {
            prop_assert_eq!(plan.undecodable, undecodable);
        }
    }

    #[test]
    fn pages_contain_each_item_once_and_respect_their_size(
        parts in prop::collection::vec((0..4usize, part()), 1..4),
        samples in 1..10usize,
        bytes in 1..400u64,
    ) {
        let find = find(Selection::Seq { first: 0, last: u64::MAX }, Rate::ALL);
        let answers: Vec<Answered> = (1..)
            .zip(&parts)
            .map(|(node, (hops, part))| answered(node, *hops, &mut fill(part, &[true; 70]), &find))
            .collect();
        let plan = merge(&find, false, &answers);
        let pages = plan.pages(samples, bytes);
        let fetched = pages.iter().flat_map(|page| {
            page.seqs.iter().map(|&seq| (page.publisher, seq, page.holder))
        });
        let planned = plan.items.iter().map(|item| (item.publisher, item.held.seq, item.holder));
        prop_assert_eq!(fetched.collect::<Vec<_>>(), planned.collect::<Vec<_>>());
        for page in &pages {
            prop_assert!(page.seqs.len() <= samples);
            prop_assert!(page.bytes <= bytes || page.seqs.len() == 1);
        }
    }
}

#[test]
fn the_newest_three_of_all_holders_are_fetched_from_the_nearest() {
    let (mut near, mut far) = (buffer(), buffer());
    hold(&mut near, 0..5);
    hold(&mut far, 3..7);
    let newest = find(Selection::Newest(3), Rate::ALL);
    let answers = [answered(9, 1, &mut near, &newest), answered(4, 2, &mut far, &newest)];
    let plan = merge(&newest, false, &answers);
    assert_eq!(seqs(&plan), [4, 5, 6]);
    let holders: Vec<u64> = plan.items.iter().map(|item| item.holder.0).collect();
    assert_eq!(holders, [9, 4, 4]);
    // At the same distance the lowest id counts, in any order of answers.
    let answers = [answered(9, 1, &mut near, &newest), answered(4, 1, &mut far, &newest)];
    assert!(merge(&newest, false, &answers).items.iter().all(|item| item.holder == NodeId(4)));
    // The third newest of all is not the third newest of any holder.
    let third = find(Selection::Nth(3), Rate::ALL);
    let answers = [answered(9, 1, &mut near, &third), answered(4, 2, &mut far, &third)];
    assert_eq!(seqs(&merge(&third, false, &answers)), [4]);
}

#[test]
fn an_empty_result_states_its_reason() {
    let mut held = buffer();
    hold(&mut held, 10..20);
    let empty = |selection, publisher| {
        let find = Find { publisher, ..find(selection, Rate::ALL) };
        let plan = merge(&find, false, &[answered(1, 0, &mut held.clone(), &find)]);
        (plan.absence, plan.explain(&find).unwrap_or_default())
    };
    let seq = |first, last| Selection::seq(first, last).unwrap();
    let (why, text) = empty(seq(2, 9), None);
    assert_eq!(why, Some(Absence::Expired));
    assert_eq!(
        text,
        "sequence numbers 2 to 9 of 'robot/camera' expired; buffered are 10 to 19, captured from \
         0.100 s to 0.190 s of publisher 0000000000000001.0"
    );
    assert_eq!(empty(seq(20, 30), None).0, Some(Absence::NotYet));
    assert_eq!(empty(Selection::time(0, 99_999_999).unwrap(), None).0, Some(Absence::Expired));
    assert_eq!(
        empty(Selection::time(200_000_000, 1 << 40).unwrap(), None).0,
        Some(Absence::NotYet)
    );
    let between = Selection::time(111_000_000, 112_000_000).unwrap();
    assert_eq!(empty(between, None).0, Some(Absence::Missing));
    assert_eq!(empty(Selection::nth(11).unwrap(), None).0, Some(Absence::TooFew));
    let (why, text) = empty(Selection::newest(1).unwrap(), Some(publisher(7)));
    assert_eq!(why, Some(Absence::NoSuchPublisher(publisher(7))));
    assert!(text.contains("publisher 0000000000000001.7"), "{text}");
    assert_eq!(empty(seq(10, 10), None), (None, String::new()));

    let newest = find(Selection::newest(1).unwrap(), Rate::ALL);
    let nobody = merge(&newest, false, &[]);
    assert_eq!(nobody.absence, Some(Absence::NoHolder));
    assert!(nobody.explain(&newest).unwrap().contains("no node buffers 'robot/camera'"));
    let nothing = merge(&newest, false, &[answered(1, 0, &mut buffer(), &newest)]);
    assert_eq!(nothing.absence, Some(Absence::NothingHeld));
    let mut headless = buffer();
    headless.push(Instant::ZERO, publisher(1), sample(1, 4, &[]));
    let headless = merge(&newest, false, &[answered(1, 0, &mut headless, &newest)]);
    assert_eq!((headless.absence, headless.undecodable), (Some(Absence::Undecodable), 1));
}

#[test]
fn a_plan_terminates() {
    let held = |seq| Held { seq, captured_ns: seq, bytes: 1, kind: Kind::Data };
    let span = SampleSpan { oldest_seq: 0, newest_seq: 40_000, oldest_ns: 0, newest_ns: 40_000 };
    let holdings = (0..2).map(|index| crate::pull::Holding {
        publisher: publisher(index),
        span,
        items: (0..40_000).map(held).collect(),
    });
    let found = Found { holdings: holdings.collect(), more: false };
    let all = find(Selection::Seq { first: 0, last: u64::MAX }, Rate::ALL);
    let plan = merge(&all, false, &[Answered { node: NodeId(1), hops: 0, found }]);
    assert!(plan.more);
    assert_eq!(plan.items.len(), ITEMS_MAX);
}

#[test]
fn several_buffers_of_a_node_answer_like_a_single_one() {
    let mut buffers = [buffer(), buffer()];
    for seq in 0..3_000 {
        let keeps = usize::from(seq % 4 == 0);
        buffers[keeps].push(Instant::ZERO, publisher(0), sample(0, seq, &[]));
        buffers[0].push(Instant::ZERO, publisher(2), sample(0, seq, &[]));
    }
    let mut all = find(Selection::Seq { first: 0, last: u64::MAX }, Rate::ALL);
    let mut found = Found::default();
    loop {
        let parts = buffers.iter_mut().map(|b| b.find_page(Instant::ZERO, &all, |_| true));
        let page = Found::union(parts.collect());
        assert!(page.len() <= crate::pull::PAGE_ITEMS);
        all.after = page.next();
        found.append(page);
        if all.after.is_none() {
            break;
        }
    }
    assert_eq!(found.holdings.len(), 2);
    for holding in &found.holdings {
        let seqs: Vec<u64> = holding.items.iter().map(|item| item.seq).collect();
        assert!(seqs.into_iter().eq(0..3_000), "{}", holding.publisher);
        assert_eq!((holding.span.oldest_seq, holding.span.newest_seq), (0, 2_999));
    }
}

#[test]
fn separately_thinned_buffers_of_a_node_are_thinned_together() {
    let every = |n| Rate::every(core::num::NonZeroU32::new(n).unwrap());
    let find = find(Selection::Seq { first: 0, last: u64::MAX }, every(2));
    let mut buffers = [buffer(), buffer()];
    hold(&mut buffers[0], 0..20);
    hold(&mut buffers[1], 1..20);
    let parts = buffers.iter_mut().map(|b| b.find_page(Instant::ZERO, &find, |_| true));
    let found = Found::union(parts.collect());
    assert_eq!(found.len(), 11, "the second one also has its first sample");
    let plan = merge(&find, false, &[Answered { node: NodeId(1), hops: 0, found }]);
    assert_eq!(seqs(&plan), (0..20).step_by(2).collect::<Vec<_>>());
}

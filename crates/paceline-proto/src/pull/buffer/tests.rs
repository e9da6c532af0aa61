use super::*;
use crate::ids::NodeId;
use crate::sample::{Encoding, Kind, Timestamp};
use core::num::NonZeroU32;
use paceline_sched::Duration;
use proptest::prelude::*;

fn publisher(index: u32) -> PublisherId {
    PublisherId { node: NodeId(1), index }
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn sample(seq: u64, published_at: u64, captured_ns: u64, len: usize, kind: Kind) -> RawSample {
    RawSample {
        seq,
        captured: Timestamp { nanos: captured_ns, error: 0 },
        shift: 0,
        published_at: at(published_at),
        doubt: Default::default(),
        kind,
        encoding: Encoding::Bytes,
        payload: vec![0; len].into(),
        attachment: None,
    }
}

fn limits(samples: usize, bytes: u64, age_ms: u64) -> Limits {
    Limits::new(samples, bytes, Duration::from_millis(age_ms)).unwrap()
}

/// A simple reference model of the buffer: all samples in one list.
#[derive(Clone)]
struct Twin {
    limits: Limits,
    held: Vec<(PublisherId, RawSample)>,
}

impl Twin {
    fn push(&mut self, now: Instant, publisher: PublisherId, sample: &RawSample) -> Pushed {
        let seq = sample.seq;
        if sample.payload.len() as u64 > self.limits.bytes() {
            return Pushed::TooLarge;
        }
        if now.since(sample.published_at) > self.limits.age() {
            return Pushed::TooOld;
        }
        if self.has(publisher, seq) {
            return Pushed::Duplicate;
        }
        self.held.push((publisher, sample.clone()));
        let gone = self.shrink(now);
        if self.has(publisher, seq) { Pushed::Held(gone) } else { Pushed::TooOld }
    }

    fn shrink(&mut self, now: Instant) -> usize {
        let before = self.held.len();
        while self.is_beyond(now) {
            let oldest = self.oldest().unwrap();
            self.held.remove(oldest);
        }
        before - self.held.len()
    }

    fn has(&self, publisher: PublisherId, seq: u64) -> bool {
        self.held.iter().any(|(id, held)| (*id, held.seq) == (publisher, seq))
    }

    fn bytes(&self) -> u64 {
        self.held.iter().map(|(_, held)| held.payload.len() as u64).sum()
    }

    fn is_beyond(&self, now: Instant) -> bool {
        let too_old = |at: usize| now.since(self.held[at].1.published_at) > self.limits.age();
        self.held.len() > self.limits.samples()
            || self.bytes() > self.limits.bytes()
            || self.oldest().is_some_and(too_old)
    }

    /// Returns the earliest published of the lowest sequence numbers of all publishers.
    fn oldest(&self) -> Option<usize> {
        let lowest = |id| self.of(id).first().map(|held| held.seq);
        let fronts = self.held.iter().enumerate();
        let fronts = fronts.filter(|(_, (id, held))| lowest(*id) == Some(held.seq));
        fronts.min_by_key(|(_, (id, held))| (held.published_at, *id)).map(|(at, _)| at)
    }

    fn of(&self, publisher: PublisherId) -> Vec<Held> {
        let mine = self.held.iter().filter(|(id, _)| *id == publisher);
        let mut held: Vec<Held> = mine.map(|(_, held)| row(held)).collect();
        held.sort_by_key(|held| held.seq);
        held
    }

    fn find(&self, wanted: Option<PublisherId>, selection: &Selection, rate: Rate) -> Found {
        let mut ids: Vec<PublisherId> = self.held.iter().map(|(id, _)| *id).collect();
        ids.sort_unstable();
        ids.dedup();
        let holdings = ids.into_iter().filter(|id| wanted.is_none_or(|wanted| wanted == *id));
        let holdings = holdings.map(|publisher| {
            let all = self.of(publisher);
            let (oldest, newest) = (all[0], all[all.len() - 1]);
            let span = SampleSpan {
                oldest_seq: oldest.seq,
                newest_seq: newest.seq,
                oldest_ns: oldest.captured_ns,
                newest_ns: newest.captured_ns,
            };
            Holding { publisher, span, items: select(&all, selection, rate) }
        });
        Found { holdings: holdings.collect(), more: false }
    }
}

pub(in crate::pull) fn row(sample: &RawSample) -> Held {
    Held {
        seq: sample.seq,
        captured_ns: sample.captured.nanos,
        bytes: u32::try_from(sample.payload.len()).unwrap(),
        kind: sample.kind,
    }
}

/// The specification of a selection, implemented directly.
pub(in crate::pull) fn select(all: &[Held], selection: &Selection, rate: Rate) -> Vec<Held> {
    let from_newest = |held: &Held| all.iter().filter(|other| other.seq >= held.seq).count();
    let is = |held: &Held| match *selection {
        Selection::Newest(n) => from_newest(held) <= n as usize,
        Selection::Nth(n) => from_newest(held) == n as usize,
        Selection::Seq { first, last } => first <= held.seq && held.seq <= last,
        Selection::Time { from_ns, to_ns } => {
            from_ns <= held.captured_ns && held.captured_ns <= to_ns
        }
    };
    let chosen: Vec<Held> = all.iter().filter(|held| is(held)).copied().collect();
    let (Some(first), Some(last)) = (chosen.first(), chosen.last()) else { return chosen };
    if first.kind.is_video() {
        let mut before = all.iter().filter(|held| held.seq <= first.seq);
        let start = before.rfind(|held| held.kind == Kind::VideoI);
        let start = start.map_or(0, |held| held.seq);
        let run = all.iter().filter(|held| start <= held.seq && held.seq <= last.seq);
        return run.copied().collect();
    }
    let mut scaler = TemporalScaler::new(rate, None);
    chosen.into_iter().filter(|held| scaler.take(held.seq, held.captured_ns)).collect()
}

pub(in crate::pull) fn rates() -> impl Strategy<Value = Rate> {
    let nonzero = |n| NonZeroU32::new(n).unwrap();
    prop_oneof![
        3 => Just(Rate::ALL),
        1 => (1..5u32).prop_map(move |n| Rate::every(nonzero(n))),
        1 => (1..200u32).prop_map(move |n| Rate::max(nonzero(n * 1_000))),
    ]
}

pub(in crate::pull) fn selections() -> impl Strategy<Value = Selection> {
    prop_oneof![
        (1..20u32).prop_map(Selection::Newest),
        (1..20u32).prop_map(Selection::Nth),
        (0..40u64, 0..20u64).prop_map(|(first, n)| Selection::Seq { first, last: first + n }),
        (0..400u64, 0..200u64).prop_map(|(from, n)| Selection::Time {
            from_ns: from * 1_000_000,
            to_ns: (from + n) * 1_000_000,
        }),
    ]
}

/// A sample of publisher 0, 1 or 2; publisher 2 is a camera. Sequence numbers increase, with occasional steps
/// back and repeats.
#[derive(Clone, Debug)]
struct Push {
    publisher: u32,
    seq: u64,
    late_ms: u64,
    wait_ms: u64,
    captured_ms: u64,
    len: usize,
    start: bool,
}

fn pushes() -> impl Strategy<Value = Vec<Push>> {
    let jump = prop_oneof![6 => Just(1i64), 1 => -3..4i64];
    let clock = prop_oneof![8 => Just(0i64), 1 => -60..60i64];
    let one = (0..3u32, jump, 0..8u64, 0..15u64, clock, 0..40usize, 0..4u8);
    prop::collection::vec(one, 1..90).prop_map(|all| {
        let mut next = [0i64; 3];
        let mut now = 0i64;
        all.into_iter()
            .map(|(publisher, jump, late_ms, wait_ms, clock, len, start)| {
                let seq = &mut next[publisher as usize];
                *seq = (*seq + jump).max(0);
                now += i64::try_from(wait_ms).unwrap();
                let captured_ms = (now + clock).max(0).unsigned_abs();
                let (seq, start) = (seq.unsigned_abs(), start == 0);
                Push { publisher, seq, late_ms, wait_ms, captured_ms, len, start }
            })
            .collect()
    })
}

fn pushed(push: &Push, now: u64) -> RawSample {
    let kind = match (push.publisher, push.start) {
        (2, true) => Kind::VideoI,
        (2, false) if push.seq % 3 == 2 => Kind::VideoB,
        (2, false) => Kind::VideoP,
        _ => Kind::Data,
    };
    let published_at = now.saturating_sub(push.late_ms);
    sample(push.seq, published_at, push.captured_ms * 1_000_000, push.len, kind)
}

/// Returns all pages of a holder's answer, each of at most `items` samples and `holdings` publishers.
fn pages(buffer: &PullBuffer, find: &Find, items: usize, holdings: usize) -> Found {
    let mut found = Found::default();
    let mut find = find.clone();
    loop {
        let page = buffer.search(&Search::part(&find, items, holdings), |_| true);
        assert!(page.len() <= items && page.holdings.len() <= holdings);
        let after = page.next();
        assert_eq!(after.is_some(), page.more);
        assert!(after.is_none() || after > find.after, "it does not continue");
        found.append(page);
        find.after = after;
        if after.is_none() {
            return found;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_buffer_agrees_with_its_reference_model(
        pushes in pushes(),
        bounds in (1..30usize, 1..600u64, 1..400u64),
        asked in prop::collection::vec((prop::option::of(0..4u32), selections(), rates()), 1..6),
        (items, holdings) in (1..7usize, 1..4usize),
    ) {
        let limits = limits(bounds.0, bounds.1, bounds.2);
        let mut buffer = PullBuffer::new(limits);
        let mut twin = Twin { limits, held: Vec::new() };
        let mut now = 1_000;
        for push in &pushes {
            now += push.wait_ms;
            let sample = pushed(push, now);
            let id = publisher(push.publisher);
            let expected = twin.push(at(now), id, &sample);
            prop_assert_eq!(buffer.push(at(now), id, sample), expected, "{:?}", push);
            prop_assert_eq!((buffer.len(), buffer.bytes()), (twin.held.len(), twin.bytes()));
            prop_assert!(buffer.len() <= limits.samples() && buffer.bytes() <= limits.bytes());
        }
        buffer.expire(at(now));
        twin.shrink(at(now));
        for (id, held) in &twin.held {
            prop_assert_eq!(buffer.fetch(*id, held.seq).map(row), Some(row(held)));
        }
        for (wanted, selection, rate) in asked {
            let wanted = wanted.map(publisher);
            let found = buffer.find(at(now), wanted, &selection, rate);
            prop_assert_eq!(found, twin.find(wanted, &selection, rate), "{:?}", selection);
            let tag = crate::tag::Tag::new("tag").unwrap();
            let find = Find { tag, publisher: None, selection, rate, after: None };
            let whole = buffer.search(&Search::part(&find, usize::MAX, usize::MAX), |_| true);
            prop_assert_eq!(pages(&buffer, &find, items, holdings), whole);
        }
    }
}

#[test]
fn the_oldest_sample_of_any_publisher_is_evicted_first() {
    let mut buffer = PullBuffer::new(limits(3, 1_000, 10_000));
    let data = |seq, published_at| sample(seq, published_at, 0, 10, Kind::Data);
    assert_eq!(buffer.push(at(1), publisher(0), data(0, 1)), Pushed::Held(0));
    assert_eq!(buffer.push(at(2), publisher(1), data(0, 2)), Pushed::Held(0));
    assert_eq!(buffer.push(at(3), publisher(0), data(1, 3)), Pushed::Held(0));
    assert_eq!(buffer.push(at(4), publisher(1), data(1, 4)), Pushed::Held(1));
    assert_eq!(buffer.push(at(5), publisher(1), data(1, 4)), Pushed::Duplicate);
    assert!(buffer.fetch(publisher(0), 0).is_none() && buffer.fetch(publisher(1), 0).is_some());
    assert_eq!(buffer.push(at(5), publisher(2), data(9, 0)), Pushed::TooOld, "no room next to it");
    assert_eq!(
        buffer.push(at(5), publisher(2), sample(0, 5, 0, 1_001, Kind::Data)),
        Pushed::TooLarge
    );
    buffer.expire(at(10_003));
    assert_eq!(buffer.len(), 2);
    buffer.expire(at(10_004));
    assert_eq!((buffer.len(), buffer.bytes(), buffer.is_empty()), (1, 10, false));
    buffer.forget(publisher(1));
    assert_eq!((buffer.len(), buffer.bytes(), buffer.is_empty()), (0, 0, true));
}

#[test]
fn a_small_payload_does_not_retain_its_frame() {
    let frame = Bytes::from(vec![7u8; 60_000]);
    let mut buffer = PullBuffer::new(limits(10, 1 << 20, 1_000));
    let small = RawSample { payload: frame.slice(100..200), ..RawSample::default() };
    buffer.push(at(0), publisher(0), small);
    assert!(frame.is_unique());
    let large = RawSample { seq: 1, payload: frame.slice(..SLICE_MAX), ..RawSample::default() };
    buffer.push(at(0), publisher(0), large);
    assert!(!frame.is_unique());
    assert_eq!(buffer.fetch(publisher(0), 0).unwrap().payload, frame.slice(100..200));
}

#[test]
fn video_is_returned_from_an_i_picture_on_without_thinning() {
    let mut buffer = PullBuffer::new(limits(100, 1 << 20, 100_000));
    for seq in 0..40u64 {
        let kind = if seq % 10 == 3 { Kind::VideoI } else { Kind::VideoP };
        buffer.push(at(seq), publisher(0), sample(seq, seq, seq * 1_000_000, 9, kind));
    }
    let rate = Rate::every(NonZeroU32::new(2).unwrap());
    let mut seqs = |selection: Selection| -> (u64, u64, usize) {
        let found = buffer.find(at(40), None, &selection, rate);
        let items = &found.holdings[0].items;
        (items[0].seq, items[items.len() - 1].seq, items.len())
    };
    assert_eq!(seqs(Selection::newest(2).unwrap()), (33, 39, 7));
    assert_eq!(seqs(Selection::nth(10).unwrap()), (23, 30, 8));
    assert_eq!(seqs(Selection::seq(13, 14).unwrap()), (13, 14, 2));
    assert_eq!(seqs(Selection::time(15_500_000, 16_000_000).unwrap()), (13, 16, 4));
    // No I picture precedes these here, but another holder may have it.
    assert_eq!(seqs(Selection::seq(2, 2).unwrap()), (0, 2, 3));
}

#[test]
fn a_search_is_answered_in_pages_with_a_continuation() {
    let mut buffer = PullBuffer::new(limits(5_000, 1 << 20, 100_000));
    for seq in 0..2_500 {
        buffer.push(at(0), publisher(0), sample(seq, 0, seq, 1, Kind::Data));
    }
    buffer.push(at(0), publisher(1), sample(0, 0, 0, 1, Kind::Data));
    let tag = crate::tag::Tag::new("tag").unwrap();
    let (selection, rate) = (Selection::seq(10, u64::MAX).unwrap(), Rate::ALL);
    let mut find = Find { tag, publisher: None, selection, rate, after: None };
    let mut lens = Vec::new();
    loop {
        let page = buffer.find_page(at(0), &find, |_| true);
        lens.push(page.len());
        find.after = page.next();
        if find.after.is_none() {
            assert_eq!(page.holdings.len(), 2, "it lists publishers without selected samples");
            break;
        }
    }
    assert_eq!(lens, [PAGE_ITEMS, PAGE_ITEMS, 2_490 - 2 * PAGE_ITEMS]);
    let other_tag = buffer.find_page(at(0), &find, |id| id == publisher(1));
    assert_eq!(other_tag.holdings.len(), 1);
}

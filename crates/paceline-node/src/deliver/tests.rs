//! A delivery against a naive model: every sample is delivered, waits or is dropped for one reason, in order, and is late by
//! the instant at which the application takes it.

use super::*;
use paceline_proto::{NodeId, Pattern, Tag};
use paceline_sched as sched;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::VecDeque;

const MS: u64 = 1_000_000;
const PUBLISHER: PublisherId = PublisherId { node: NodeId(1), index: 0 };

fn spec(within: Option<u64>) -> SubscriptionSpec {
    let mut spec = SubscriptionSpec::all_of(Pattern::new("a").unwrap());
    spec.within = within.map(sched::Duration::from_millis);
    spec
}

/// One step: a sample with this number and age arrives, or the application reads so many samples.
#[derive(Clone, Copy, Debug)]
enum Step {
    Arrive {
        seq: u64,
        age: u64,
    },
    Read(usize),
    Wait(u64),
    /// The status is read.
    Report,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..200_u64, 0..60_u64).prop_map(|(seq, age)| Step::Arrive { seq, age }),
        (0..4_usize).prop_map(Step::Read),
        (0..40_u64).prop_map(Step::Wait),
        Just(Step::Report),
    ]
}

/// The expected samples and counters.
#[derive(Default)]
struct Model {
    newest: Option<u64>,
    seen: Vec<u64>,
    /// The number and the publish time of each sample, and whether it arrived late.
    waiting: VecDeque<(u64, u64, bool)>,
    late: u64,
    overdue: u64,
    dropped: u64,
    gaps: u64,
    /// The ages of the samples that left the queue since the last report.
    ages: Vec<u64>,
    /// The sum of the ages of the samples that were read.
    age_sum: u64,
}

impl Model {
    fn arrive(
        &mut self,
        now: u64,
        (seq, age): (u64, u64),
        late: Late,
        (within, room): (u64, usize),
    ) {
        if self.newest.is_some_and(|newest| seq <= newest) {
            self.dropped += u64::from(!self.seen.contains(&seq));
            self.seen.push(seq);
            return;
        }
        self.gaps += self.newest.map_or(0, |newest| seq - newest - 1);
        (self.newest, _) = (Some(seq), self.seen.push(seq));
        self.late += u64::from(age > within);
        if age > within && late == Late::Drop {
            self.dropped += 1;
            return;
        }
        self.waiting.push_back((seq, now - age, age > within));
        if self.waiting.len() > room {
            let unread = self.waiting.pop_front();
            self.ages.extend(unread.map(|(_, published, _)| now - published));
            self.dropped += 1;
        }
    }

    /// Returns the number, the age and the lateness of the next sample.
    fn read(&mut self, now: u64, within: u64) -> Option<(u64, u64, bool)> {
        let (seq, published, was_late) = self.waiting.pop_front()?;
        let age = now - published;
        self.overdue += u64::from(age > within && !was_late);
        self.age_sum += age;
        self.ages.push(age);
        Some((seq, age, age > within))
    }
}

proptest! {
    #[test]
    fn the_application_sees_what_a_naive_model_sees(
        steps in vec(step(), 1..200),
        drops in any::<bool>(),
        within in 1..50_u64,
        room in 1..8_usize,
    ) {
        let late = if drops { Late::Drop } else { Late::Send };
        let (mut delivery, mut model) = (Delivery::queued(&spec(Some(within)), room), Model::default());
        let (tag, mut now) = (Tag::new("a").unwrap(), 1_000);
        let (mut arrivals, mut read) = (0, 0);
        for step in steps {
            match step {
                Step::Wait(time) => now += time,
                Step::Report => {
                    let ages = std::mem::take(&mut model.ages);
                    let (sum, samples) = (ages.iter().sum::<u64>(), ages.len() as u64);
                    let seen = delivery.take_ages();
                    prop_assert_eq!(seen.longest, ages.into_iter().max().unwrap_or(0) * MS);
                    prop_assert_eq!(seen.mean(), (sum * MS).checked_div(samples));
                }
                Step::Arrive { seq, age } => {
                    let published_at = Instant::from_nanos((now - age) * MS);
                    let sample = RawSample { seq, published_at, ..RawSample::default() };
                    let from = Origin { tag: &tag, publisher: PUBLISHER, late };
                    let handled = delivery.handle_sample(Instant::from_nanos(now * MS), &from, sample);
                    arrivals += u64::from(!matches!(handled, DeliveryFate::Repeated));
                    model.arrive(now, (seq, age), late, (within, room));
                }
                Step::Read(samples) => for _ in 0..samples {
                    let taken = delivery.read(Instant::from_nanos(now * MS)).map(|it| it.sample);
                    read += u64::from(taken.is_some());
                    let seen = taken.map(|it| (it.seq, u64::try_from(it.age.as_millis()).unwrap(), it.late));
                    prop_assert_eq!(seen, model.read(now, within));
                }
            }
            let counts = delivery.counts();
            prop_assert_eq!((counts.late, counts.overdue), (model.late, model.overdue));
            prop_assert_eq!((counts.gaps, counts.drops().total()), (model.gaps, model.dropped));
            let waiting = model.waiting.len() as u64;
            prop_assert_eq!(counts.delivered, read + waiting);
            prop_assert_eq!(counts.late_in_all(), model.late + model.overdue);
            prop_assert_eq!(counts.age_sum, model.age_sum * MS);
            prop_assert_eq!(arrivals, read + waiting + model.dropped);
        }
    }
}

#[test]
fn a_bound_is_the_longer_of_two_during_a_change() {
    let mut delivery = Delivery::direct(&spec(Some(20)));
    let tag = Tag::new("a").unwrap();
    let late = |delivery: &mut Delivery, seq| {
        let sample = RawSample { seq, ..RawSample::default() };
        let from = Origin { tag: &tag, publisher: PUBLISHER, late: Late::Send };
        match delivery.handle_sample(Instant::from_millis(30), &from, sample) {
            DeliveryFate::Taken(taken) => taken.sample.late,
            other @ (DeliveryFate::Queued
            | DeliveryFate::Staged
            | DeliveryFate::Dropped(_)
            | DeliveryFate::Repeated) => panic!("{other:?}"),
        }
    };
    assert!(late(&mut delivery, 0));
    delivery.relax(&spec(Some(40)));
    assert!(!late(&mut delivery, 1));
    delivery.relax(&spec(Some(10)));
    assert!(!late(&mut delivery, 2), "the shorter bound is not in force");
    delivery.change(&spec(Some(10)));
    assert!(late(&mut delivery, 3));
    delivery.change(&spec(None));
    assert!(!late(&mut delivery, 4) && !delivery.has_bound());
}

#[test]
fn losses_before_the_first_sample_are_counted() {
    let mut delivery = Delivery::direct(&spec(None));
    delivery.handle_lost(DropReason::LinkLoss, 3);
    assert_eq!(delivery.counts().drops().of(DropReason::LinkLoss), 3);
}

#[test]
fn a_latched_sample_is_not_late_and_follows_no_newer_one() {
    let mut delivery = Delivery::queued(&spec(Some(20)), 4);
    let tag = Tag::new("a").unwrap();
    let from = Origin { tag: &tag, publisher: PUBLISHER, late: Late::Send };
    let now = Instant::from_millis(10_000);
    let sample = RawSample { seq: 7, published_at: now, ..RawSample::default() };
    delivery.handle_sample(now, &from, sample);
    let latched = delivery.read(now).unwrap().sample;
    let older = Sample { seq: 6, ..latched.clone() };
    let fate = delivery.handle_latched(now, PUBLISHER, older);
    assert!(matches!(fate, DeliveryFate::Repeated));
    let fate = delivery.handle_latched(now, PUBLISHER, Sample { seq: 8, ..latched });
    assert!(matches!(fate, DeliveryFate::Queued));
    assert_eq!(delivery.read(now).map(|taken| taken.sample.seq), Some(8));
}

#[test]
fn waiting_for_a_callback_makes_a_sample_overdue_and_a_command_stale() {
    let tag = Tag::new("a").unwrap();
    let from = Origin { tag: &tag, publisher: PUBLISHER, late: Late::Drop };
    let (arrived, now) = (Instant::from_millis(1_000), Instant::from_millis(1_100));
    let sample = RawSample { published_at: arrived, ..RawSample::default() };
    let moments = Moments { now, ..Moments::at(arrived) };
    let handle = |delivery: &mut Delivery| {
        delivery.handle(moments, &from, Needed::default(), sample.clone(), |_| {})
    };
    let mut delivery = Delivery::direct(&spec(Some(20)));
    let fate = handle(&mut delivery);
    assert!(matches!(fate, DeliveryFate::Taken(taken) if taken.sample.late));
    assert_eq!(
        (delivery.counts().late, delivery.counts().overdue),
        (0, 1),
        "the network was in time"
    );

    let mut delivery = Delivery::direct(&spec(None));
    let limit = sched::Duration::from_millis(50);
    delivery.set_timing(DeliveryTiming::Fresh(Fresh::new(limit, SafeAction::Hold)));
    assert!(matches!(handle(&mut delivery), DeliveryFate::Dropped(DropReason::Stale)));
    assert_eq!(delivery.fresh().unwrap().decisions().released, 0);
}

#[test]
fn only_the_planned_wait_for_a_release_was_requested() {
    let tag = Tag::new("a").unwrap();
    let from = Origin { tag: &tag, publisher: PUBLISHER, late: Late::Drop };
    let ms = sched::Duration::from_millis;
    let published_at = Instant::from_millis(1_000);
    let sample = RawSample { published_at, ..RawSample::default() };
    // The release is due 40 ms after publish, as the delay bound.
    for (woken, late) in [(1_041, false), (1_090, true)] {
        let mut delivery = Delivery::direct(&spec(Some(40)));
        delivery.set_timing(DeliveryTiming::Staged(Staged::delayed(ms(40), ms(1))));
        let fate = delivery.handle_sample(published_at, &from, sample.clone());
        assert!(matches!(fate, DeliveryFate::Staged));
        let taken = delivery.poll(Instant::from_millis(woken), || None);
        assert!(
            matches!(taken, Some(DeliveryFate::Taken(taken)) if taken.sample.late == late),
            "{woken}"
        );
        assert!(delivery.poll(Instant::from_millis(woken), || None).is_none());
    }
}

#[test]
fn a_sample_is_overdue_if_only_the_stall_of_this_process_made_it_late() {
    let tag = Tag::new("a").unwrap();
    let from = Origin { tag: &tag, publisher: PUBLISHER, late: Late::Send };
    let (published_at, arrived) = (Instant::from_millis(1_000), Instant::from_millis(1_100));
    let (most, less): (fn(_, _) -> _, fn(_, _) -> _) =
        (|_, _| sched::Duration::from_millis(90), |_, _| sched::Duration::from_millis(70));
    for (stalled, counted) in [(most, (0, 1)), (less, (1, 0))] {
        let mut delivery = Delivery::direct(&spec(Some(20)));
        let sample = RawSample { published_at, ..RawSample::default() };
        let moments = Moments { stalled, ..Moments::at(arrived) };
        let fate = delivery.handle(moments, &from, Needed::default(), sample, |_| {});
        assert!(matches!(fate, DeliveryFate::Taken(taken) if taken.sample.late));
        let counts = delivery.counts();
        assert_eq!((counts.late, counts.overdue, counts.late_in_all()), (counted.0, counted.1, 1));
    }
}

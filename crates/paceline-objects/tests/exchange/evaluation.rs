//! The evaluation of pairs by semantic functions.

use super::*;

#[test]
fn objects_in_range_are_evaluated_ten_times_per_second_in_batches() {
    let mut list = ExchangeList::new(ExchangeSettings::default());
    for object in 0..1_000 {
        let x = if object % 2 == 0 { 50.0 } else { 5_000.0 };
        list.create(ObjectIndex(object), &facts(x, &[1], START), START).unwrap();
    }
    let unplaced = ObjectFacts { motion: None, ..facts(0.0, &[1], START) };
    list.create(ObjectIndex(1_000), &unplaced, START).unwrap();
    list.join(ANN, Observer::at([0.0; 3], 100.0, START), START).unwrap();
    let (mut times, mut pairs) = (Vec::new(), 0);
    while let Some(now) = list.next_wake().filter(|wake| *wake < at(1_000)) {
        let Some(batch) = list.next_batch(now) else {
            while list.poll(now, &u64::MAX, 1_000).is_some() {}
            continue;
        };
        times.push(now);
        pairs += batch.pairs.len();
        assert!(batch.pairs.len() <= 256);
        let decided = batch.decide(&mut |_: &PairView<'_>| Some(every(100)), &()).unwrap();
        assert!(list.accept(&decided, now));
    }
    assert_eq!((times.len(), pairs), (20, 10 * 501));
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "batches are spread");
}

#[test]
fn objects_leave_the_range_beyond_its_border() {
    let mut list = ExchangeList::new(ExchangeSettings::default());
    list.create(CAR, &facts(99.0, &[1], START), START).unwrap();
    list.join(ANN, Observer::at([0.0; 3], 100.0, START), START).unwrap();
    let mut in_range = |x: f64, now: Instant| {
        list.change(CAR, &facts(x, &[1], now), GroupMask(0), now).unwrap();
        let batch = list.next_batch(now)?;
        let decided = batch.decide(&mut |_: &PairView<'_>| Some(every(50)), &()).unwrap();
        list.accept(&decided, now);
        Some(batch.pairs.len())
    };
    assert_eq!(in_range(101.0, at(0)), None);
    assert_eq!(in_range(99.0, at(100)), Some(1));
    assert_eq!(in_range(109.0, at(200)), Some(1));
    assert_eq!(in_range(111.0, at(300)), None);
    assert_eq!(in_range(105.0, at(400)), None);
    assert_eq!(list.pairs(), 0);
}

#[test]
fn one_of_many_moving_objects_is_found_soon_after_it_comes_into_range() {
    let mut list = ExchangeList::new(ExchangeSettings::default());
    for object in 0..20_000 {
        let velocity = [-30.0, 0.0, 0.0];
        let x = if object == 19_000 { 160.0 } else { 50_000.0 };
        let motion = Some(Motion { position: [x, 0.0, 0.0], velocity, at: START });
        list.create(ObjectIndex(object), &ObjectFacts { motion, ..facts(x, &[1], START) }, START)
            .unwrap();
    }
    list.join(ANN, Observer::at([0.0; 3], 100.0, START), START).unwrap();
    // It crosses the border after 2 s, and nothing else asks for evaluations.
    let found = std::iter::from_fn(|| {
        let now = list.next_wake().filter(|wake| *wake < at(3_000))?;
        Some((now, list.next_batch(now)))
    });
    let found = found.filter(|(_, batch)| batch.is_some()).map(|(now, _)| now).next().unwrap();
    assert!((at(2_000)..at(2_250)).contains(&found), "{found:?}");
}

#[test]
fn a_function_that_does_not_return_in_time_is_disabled() {
    let mut list = list();
    let batch = list.next_batch(START).unwrap();
    let late = batch.decide(&mut |_: &PairView<'_>| Some(every(20)), &()).unwrap();
    list.next_batch(at(49));
    assert_eq!(list.disabled(batch.peer), None);
    while list.next_batch(at(50)).is_some() {}
    let budget = ExchangeSettings::default().function_budget;
    assert_eq!(list.disabled(batch.peer), Some(&SemanticError::TooSlow(budget)));
    assert!(!list.accept(&late, at(51)), "a late batch changes nothing");
    // The fallback rule: both objects in range once per second.
    while list.next_batch(at(400)).is_some() {}
    assert_eq!(list.pairs(), 2);
    list.enable(batch.peer);
    let peers = (0..8).filter_map(|sweep| list.next_batch(at(600 + 100 * sweep)));
    assert!(peers.map(|batch| batch.peer).any(|peer| peer == batch.peer));
}

#[test]
fn the_end_of_an_earlier_function_does_not_disable_the_next_one() {
    let mut list = list();
    let batch = list.next_batch(START).unwrap();
    list.enable(batch.peer);
    list.reject(&batch, SemanticError::Failed("the earlier one".to_owned()));
    assert_eq!(list.disabled(batch.peer), None);
    // Nobody answers for the earlier function, and the next one has its whole budget.
    let next = (60..400)
        .step_by(20)
        .find_map(|millis| list.next_batch(at(millis)).filter(|next| next.peer == batch.peer));
    let next = next.expect("it is evaluated again");
    assert_eq!(list.disabled(batch.peer), None);
    list.reject(&next, SemanticError::Failed("this one".to_owned()));
    assert!(list.disabled(batch.peer).is_some());
}

#[test]
fn a_function_that_decides_nonsense_is_disabled() {
    let mut list = list();
    let batch = list.next_batch(START).unwrap();
    let decided = batch.decided(vec![Some(every(50).weight(f64::NAN)); 2]);
    assert!(!list.accept(&decided, START));
    let reason = list.disabled(batch.peer);
    assert!(matches!(reason, Some(SemanticError::Terms(TermsError::Weight(_)))), "{reason:?}");
}

#[test]
fn a_sweep_without_a_range_has_each_object_once() {
    let mut list = ExchangeList::new(ExchangeSettings::default());
    let create = |list: &mut ExchangeList, object| {
        list.create(ObjectIndex(object), &facts(0.0, &[1], START), START).unwrap();
    };
    (0..1_000).for_each(|object| create(&mut list, object));
    list.join(ANN, Observer::EVERYWHERE, START).unwrap();
    let mut evaluated = Vec::new();
    for millis in 0..100 {
        while let Some(batch) = list.next_batch(at(millis)) {
            assert!(batch.pairs.len() <= 256);
            let decided = batch.decide(&mut |_: &PairView<'_>| Some(every(100)), &()).unwrap();
            assert!(list.accept(&decided, at(millis)));
            evaluated.extend(decided.terms.into_iter().map(|(object, _)| object.0));
            if evaluated.len() == 256 {
                // Objects that come and leave during the sweep.
                create(&mut list, 1_000);
                list.delete(ObjectIndex(700), at(millis)).unwrap();
            }
        }
    }
    assert_eq!(evaluated, (0..=1_000).filter(|object| *object != 700).collect::<Vec<_>>());
    assert_eq!(list.pairs(), 1_000);
}

#[test]
fn very_many_pairs_are_evaluated_at_a_limited_rate() {
    let mut list = ExchangeList::new(ExchangeSettings::default());
    for object in 0..10_000 {
        list.create(ObjectIndex(object), &facts(0.0, &[1], START), START).unwrap();
    }
    for peer in 0..20 {
        list.join(PeerId(peer), Observer::EVERYWHERE, START).unwrap();
    }
    // 200,000 pairs, of which 100,000 per 100 ms are evaluated.
    let (mut now, mut pairs, mut most) = (at(100), 0, 0);
    while now < at(300) {
        let before = pairs;
        while let Some(batch) = list.next_batch(now) {
            pairs += batch.pairs.len();
            list.accept(&batch.decided(vec![None; batch.pairs.len()]), now);
        }
        most = most.max(pairs - before);
        let next = list.next_wake().expect("others are due");
        assert!(next > now, "it wants to wake up without anything to do");
        now = next;
    }
    assert!((200_000..=204_600).contains(&pairs), "{pairs} pairs in 200 ms");
    assert!(most <= 4_096 + 256, "{most} pairs at once");
}

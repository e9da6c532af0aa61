//! Random demands and histories, compared with naive implementations.

use super::*;
use crate::traffic::nanobits;

/// One byte per nanosecond: numbers are small enough to check every instant.
const FAST: u64 = 8_000_000_000;

fn small(state: &mut u64) -> StreamDemand {
    let mut within = |low: u64, high: u64| low + scatter(state) % (high - low + 1);
    let rate = within(1, 30) * FAST / 100;
    let peak_burst = within(1, 60);
    let (peak_rate, burst) = match within(0, 2) {
        0 => (rate, peak_burst),
        _ => (rate + within(0, 150) * FAST / 100, peak_burst + within(0, 80)),
    };
    let traffic =
        Traffic::new(Dual { peak_burst, peak_rate, burst, rate }, within(1, peak_burst), 1 << 40);
    StreamDemand::new(traffic.unwrap(), Duration::from_nanos(within(1, 400))).unwrap()
}

#[test]
fn the_edf_test_matches_a_check_of_every_instant() {
    let (mut state, mut admitted, mut refused) = (3, 0, 0);
    for round in 0..300 {
        let capacity = Capacity::from_bits_per_s(FAST).unwrap();
        let other = if round & 1 == 0 { 0 } else { scatter(&mut state) % 40 };
        let mut edf = Admission::new(LinkParameters::new(capacity, AdmissionTest::Edf, other));
        let mut held: Vec<(u64, StreamDemand)> = Vec::new();
        for number in 0..24 {
            if scatter(&mut state) & 3 == 0 && !held.is_empty() {
                let place = usize::try_from(scatter(&mut state)).unwrap() % held.len();
                let (gone, _) = held.remove(place);
                edf.release(Trunk(gone.into()), holder(gone));
                continue;
            }
            // Sometimes an admitted stream changes its demand.
            let number = match held.last() {
                Some((last, _)) if scatter(&mut state) & 3 == 0 => *last,
                _ => number,
            };
            let demand = small(&mut state);
            let kept = held.iter().find(|(at, _)| *at == number).map(|(_, demand)| *demand);
            let charged = kept.map_or(demand, |kept| kept.join(&demand));
            let mut all: Vec<Due> = held
                .iter()
                .filter(|(at, _)| *at != number)
                .map(|(_, demand)| Due { traffic: *demand.traffic(), deadline: demand.deadline() })
                .collect();
            all.push(Due { traffic: *charged.traffic(), deadline: charged.deadline() });
            let rates: u64 = all.iter().map(|due| due.traffic.rate()).sum();
            let twin = rates <= FAST && (0..40_000 / 8).all(|at| met(capacity, &all, other, at));
            let verdict = edf.hold(Trunk(number.into()), holder(number), &demand);
            assert_eq!(
                matches!(verdict, AdmissionResult::Granted(_)),
                twin,
                "{round}: {all:?} {other}"
            );
            if twin {
                edf.commit(Trunk(number.into()), holder(number), None);
                held.retain(|(at, _)| *at != number);
                held.push((number, demand));
                admitted += 1;
            } else {
                refused += 1;
            }
        }
        for (number, _) in held {
            edf.release(Trunk(number.into()), holder(number));
        }
        assert!(edf.is_empty());
    }
    assert!(admitted > 300 && refused > 300, "{admitted} {refused}");
}

#[test]
fn random_histories_of_every_rule_end_at_exactly_zero() {
    let rules = [
        AdmissionTest::SigmaRho { burst: 5_000, rate: FAST },
        AdmissionTest::Fifo,
        AdmissionTest::StaticPriority,
        AdmissionTest::Edf,
        AdmissionTest::Vds { coincide: true },
        AdmissionTest::Vds { coincide: false },
        AdmissionTest::Dwcs { coincide: false },
        AdmissionTest::Hfsc,
        AdmissionTest::Rcsp,
        AdmissionTest::StopAndGo,
        AdmissionTest::Rpq,
        AdmissionTest::Shares,
    ];
    let loss = |x, y| LossTolerance::new(x, y).unwrap();
    let tolerances = [LossTolerance::NONE, loss(1, 3), loss(9, 10)];
    let mut state = 9;
    for rule in rules {
        let mut granted = 0;
        for _ in 0..40 {
            let spec = LinkParameters::new(Capacity::from_bits_per_s(FAST).unwrap(), rule, 60);
            let line = spec.capacity.bits_per_s();
            let mut link = Admission::new(spec);
            for _ in 0..120 {
                let trunk = Trunk(u128::from(scatter(&mut state) % 6));
                let holder = holder(scatter(&mut state) % 3);
                let demand = small(&mut state);
                // Two rotations of rotating priority queues take a millisecond.
                let longer = if rule == AdmissionTest::Rpq { 20_000 } else { 20 };
                let demand = demand
                    .with_deadline(Duration::from_nanos(demand.deadline().as_nanos() * longer))
                    .unwrap()
                    .with_loss(tolerances[usize::try_from(scatter(&mut state)).unwrap() % 3]);
                match scatter(&mut state) % 6 {
                    0..=2 => {
                        let before = *link.ledger();
                        match link.hold(trunk, holder, &demand) {
                            AdmissionResult::Granted(_) => granted += 1,
                            AdmissionResult::Refused(_) => assert_eq!(*link.ledger(), before),
                        }
                    }
                    3 => _ = link.commit(trunk, holder, Some(&demand)),
                    4 => link.cancel(trunk, holder),
                    _ => link.release(trunk, holder),
                }
                assert!(
                    link.ledger().held.rate <= line
                        && link.ledger().installed.rate <= link.ledger().held.rate,
                    "{rule:?}: {:?}",
                    link.ledger()
                );
            }
            for trunk in 0..6 {
                for number in 0..3 {
                    link.release(Trunk(trunk), holder(number));
                }
            }
            assert!(link.is_empty(), "{rule:?}");
        }
        assert!(granted > 100, "{rule:?}: {granted}");
    }
}

#[test]
fn the_static_priority_test_matches_a_check_of_every_level() {
    use crate::bounds::{LatencyRate, Sum, static_priority};
    let (mut state, mut admitted, mut refused) = (21, 0, 0);
    for round in 0..400 {
        let capacity = Capacity::from_bits_per_s(FAST).unwrap();
        let other = if round & 1 == 0 { 0 } else { scatter(&mut state) % 40 };
        let latency = Duration::from_nanos(scatter(&mut state) % 3 * 10);
        let spec = LinkParameters {
            latency,
            ..LinkParameters::new(capacity, AdmissionTest::StaticPriority, other)
        };
        let (mut link, mut held) = (Admission::new(spec), BTreeMap::new());
        for _ in 0..30 {
            let number = scatter(&mut state) % 12;
            if scatter(&mut state).is_multiple_of(5) {
                link.release(Trunk(number.into()), holder(number));
                held.remove(&number);
                continue;
            }
            let demand = small(&mut state);
            let longer = Duration::from_nanos(demand.deadline().as_nanos() * 4);
            let level = u32::try_from(scatter(&mut state) % 5).unwrap();
            let demand = demand.with_deadline(longer).unwrap().with_level(level);
            let mut all: BTreeMap<u64, StreamDemand> = held.clone();
            let charged = all.get(&number).map_or(demand, |kept: &StreamDemand| kept.join(&demand));
            all.insert(number, charged);
            // The stream keeps its previous priority level.
            let demand = demand.with_level(charged.level());
            let of = |keep: &dyn Fn(u32) -> bool| {
                all.values()
                    .filter(|it| keep(it.level()))
                    .map(|it| *it.traffic())
                    .collect::<Vec<_>>()
            };
            let twin = all.values().all(|it| {
                let lower = of(&|level| level > it.level()).iter().map(Traffic::packet).max();
                let (before, own) =
                    (of(&|level| level < it.level()), of(&|level| level == it.level()));
                let lower = lower.unwrap_or(0).max(other);
                let server = LatencyRate::link(capacity, latency);
                let bound = static_priority(server, Sum::of(&before), Sum::of(&own), lower);
                bound.is_some_and(|bound| bound <= it.deadline())
            });
            let verdict = link.hold(Trunk(number.into()), holder(number), &demand);
            assert_eq!(matches!(verdict, AdmissionResult::Granted(_)), twin, "{round}: {all:?}");
            if twin {
                link.commit(Trunk(number.into()), holder(number), None);
                held.insert(number, demand);
                admitted += 1;
            } else {
                refused += 1;
            }
        }
    }
    assert!(admitted > 500 && refused > 500, "{admitted} {refused}");
}

/// Returns true if the samples of every level that has streams fit into its time, computed from the definition. Level `n`
/// has 2^n ns, and twice as long a deadline if `doubled`.
fn levels_fit(all: &[StreamDemand], (other, latency): (u64, u64), doubled: bool) -> bool {
    let level = |it: &StreamDemand| {
        let deadline = it.deadline().as_nanos() / if doubled { 2 } else { 1 };
        (0..60).take_while(|n| 1_u64 << n <= deadline).last()
    };
    all.iter().all(|own| {
        let Some(own) = level(own) else { return false };
        let time = 1_u64 << own;
        let of = |it: &&StreamDemand| level(it).is_some_and(|level| level <= own);
        let sum = |it: &StreamDemand| it.traffic().nanobits_in(u128::from(time - 1));
        let needed: u128 = all.iter().filter(of).map(sum).sum();
        let later = all.iter().filter(|it| level(it) > Some(own)).map(|it| it.traffic().packet());
        let blocking = later.max().unwrap_or(0).max(other);
        needed + nanobits(blocking) <= u128::from(FAST) * u128::from(time.saturating_sub(latency))
    })
}

#[test]
fn the_tests_by_levels_and_frames_match_their_definition() {
    for (rule, doubled) in [(AdmissionTest::Rcsp, false), (AdmissionTest::StopAndGo, true)] {
        let (mut state, mut admitted, mut refused) = (33, 0, 0);
        for round in 0..400 {
            let capacity = Capacity::from_bits_per_s(FAST).unwrap();
            let other = if round & 1 == 0 { 0 } else { scatter(&mut state) % 40 };
            let latency = scatter(&mut state) % 3 * 10;
            let spec = LinkParameters {
                latency: Duration::from_nanos(latency),
                ..LinkParameters::new(capacity, rule, other)
            };
            let (mut link, mut held) = (Admission::new(spec), BTreeMap::new());
            for _ in 0..30 {
                let number = scatter(&mut state) % 12;
                if scatter(&mut state).is_multiple_of(5) {
                    link.release(Trunk(number.into()), holder(number));
                    held.remove(&number);
                    continue;
                }
                let demand = small(&mut state);
                let longer = Duration::from_nanos(demand.deadline().as_nanos() * 4);
                let demand = demand.with_deadline(longer).unwrap();
                let mut all: BTreeMap<u64, StreamDemand> = held.clone();
                let kept = all.get(&number);
                let charged = kept.map_or(demand, |kept: &StreamDemand| kept.join(&demand));
                all.insert(number, charged);
                let all: Vec<StreamDemand> = all.into_values().collect();
                let rates: u64 = all.iter().map(|it| it.traffic().rate()).sum();
                let twin = rates <= FAST && levels_fit(&all, (other, latency), doubled);
                let verdict = link.hold(Trunk(number.into()), holder(number), &demand);
                let granted = matches!(verdict, AdmissionResult::Granted(_));
                assert_eq!(granted, twin, "{rule:?} {round}: {all:?}");
                if twin {
                    link.commit(Trunk(number.into()), holder(number), None);
                    held.insert(number, demand);
                    admitted += 1;
                } else {
                    refused += 1;
                }
            }
            // After a stream moves to a later level, the installed set still fits.
            let all: Vec<StreamDemand> = held.into_values().collect();
            assert!(levels_fit(&all, (other, latency), doubled), "{rule:?} {round}: {all:?}");
        }
        assert!(admitted > 500 && refused > 500, "{rule:?}: {admitted} {refused}");
    }
}

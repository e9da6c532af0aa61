use super::*;
use crate::contract::{Contract, Late, LossTolerance};
use crate::curve::Curve;
use crate::discipline::{LeafSpec, RuleSet, ServiceClass, Terms};
use crate::hfsc::Curves;
use alloc::vec;
use std::string::{String, ToString};

const SLOT: u64 = 1_000_000;

fn index(place: usize) -> StreamIndex {
    StreamIndex(u32::try_from(place).unwrap())
}

fn nanos(count: u64) -> Duration {
    Duration::from_nanos(count)
}

fn at(count: u64) -> Instant {
    Instant::from_nanos(count)
}

fn contract(x: u32, y: u32, slots: u64) -> Contract {
    let loss = LossTolerance::new(x, y).unwrap_or(LossTolerance::EDF);
    Contract::every(nanos(slots * SLOT)).unwrap().with_loss(loss)
}

fn stream(class: impl Into<ServiceClass>) -> Spec {
    Spec {
        terms: Terms::new(class.into()),
        sizes: vec![],
        arrivals: Arrivals::Backlogged,
        police: None,
        class: None,
    }
}

fn streams(specs: &[(u32, u32, u64)]) -> Vec<Spec> {
    specs.iter().map(|&(x, y, slots)| stream(Some(contract(x, y, slots)))).collect()
}

fn slots(policy: Policy, ahead: Ahead, count: u64) -> Setup {
    let (link, end) = (LinkTiming::Slots(nanos(SLOT)), at(count * SLOT));
    Setup { policy, ahead, link, segment: u32::MAX, end }
}

fn original() -> Policy {
    Policy::Dwcs { ordering: RuleSet::Original, adjustment: RuleSet::Original }
}

fn decisions(setup: Setup, streams: Vec<Spec>) -> Vec<SampleDecision> {
    let decided = |step| match step {
        Step::Decided(decision) => Some(decision),
        Step::Chosen(_) => None,
    };
    Timeline::new(setup, streams).filter_map(decided).collect()
}

/// Returns the stream served in each slot as a letter, `.` for an empty one.
fn served(setup: Setup, streams: Vec<Spec>) -> String {
    let mut line = String::new();
    for decision in decisions(setup, streams).iter().filter(|decision| decision.finish.is_some()) {
        while (line.len() as u64) < decision.at.as_nanos() / SLOT {
            line.push('.');
        }
        line.push(char::from(b'A' + u8::try_from(decision.stream.0).unwrap()));
    }
    line
}

fn tallies(setup: Setup, streams: &[Spec]) -> Vec<Tally> {
    let loss = |spec: &Spec| spec.terms.contract().map_or(LossTolerance::EDF, |c| c.loss);
    let mut tallies: Vec<_> = streams.iter().map(|spec| Tally::new(loss(spec))).collect();
    for decision in decisions(setup, streams.to_vec()) {
        tallies[decision.stream.0 as usize].record(&decision);
    }
    tallies
}

/// The schedules of the slot model itself, with the samples of this stream one period apart.
#[test]
fn the_schedules_match_the_slot_model() {
    let e2 = streams(&[(9, 10, 1), (0, 1, 10), (0, 1, 10)]);
    let e7 = streams(&[(0, 1, 2), (1, 2, 3), (2, 3, 3), (3, 4, 6)]);
    let run =
        |policy, streams: &Vec<Spec>| served(slots(policy, Ahead::Waits, 24), streams.clone());
    assert_eq!(run(Policy::DWCS, &e2), "AAAAAAAAABAAAAAAAAACAAAA");
    assert_eq!(run(original(), &e2), "BCAAAAAAAABCAAAAAAAABCAA");
    assert_eq!(run(Policy::Vds, &e2), "ABCAAAAAAAABCAAAAAAAABCA");
    assert_eq!(run(Policy::DWCS, &e7), "ABCAADABCAACABCAABABCAAB");
    let e5 = streams(&[(0, 0, 2), (0, 0, 3), (0, 0, 6)]);
    for policy in [Policy::DWCS, Policy::Edf, Policy::DelayEdd, Policy::Vds] {
        assert_eq!(served(slots(policy, Ahead::Waits, 12), e5.clone()), "ABABACABABAC", "{policy}");
    }
    let e1 = streams(&[(1, 2, 1), (3, 4, 1), (6, 8, 1)]);
    for policy in [Policy::DWCS, original()] {
        assert_eq!(served(slots(policy, Ahead::Competes, 12), e1.clone()), "ABACABACABAC");
    }
}

#[test]
fn a_head_ahead_of_its_period_waits_shares_or_competes() {
    let set = || vec![stream(Some(contract(0, 1, 3))), stream(ServiceClass::BestEffort)];
    let run = |ahead| served(slots(Policy::DWCS, ahead, 6), set());
    assert_eq!(run(Ahead::Waits), "ABBABB");
    assert_eq!(run(Ahead::Shares), "AABABA", "the second is ahead by no more than its deadline");
    assert_eq!(run(Ahead::Competes), "AAAAAA");
    let alone = || vec![stream(Some(contract(0, 1, 3)))];
    assert_eq!(served(slots(Policy::DWCS, Ahead::Waits, 7), alone()), "A..A..A");
    assert_eq!(served(slots(Policy::DWCS, Ahead::Shares, 4), alone()), "AAAA");
}

#[test]
fn samples_arrive_at_their_instants_and_take_the_time_of_their_bytes() {
    let capacity = Capacity::from_bytes_per_s(1_000_000).unwrap();
    let setup = Setup {
        policy: Policy::Fifo,
        ahead: Ahead::Waits,
        link: LinkTiming::Capacity(capacity),
        segment: 400,
        end: at(10_000_000),
    };
    let mut one = stream(ServiceClass::BestEffort);
    one.sizes = vec![1_000, 100];
    one.arrivals = Arrivals::At(vec![at(5), at(5), at(2_000_000)]);
    let found = decisions(setup, vec![one]);
    let seen: Vec<_> = found
        .iter()
        .map(|d| (d.seq, d.at.as_nanos(), d.finish.unwrap().as_nanos(), d.bytes))
        .collect();
    // 1,000 bytes are segments of 400, 400 and 200.
    let expected = [
        (0, 800_005, 1_000_005, 1_000),
        (1, 1_000_005, 1_100_005, 100),
        (2, 2_800_000, 3_000_000, 1_000),
    ];
    assert_eq!(seen, expected);
    assert_eq!(found[1].delay, Some(nanos(1_100_000)));
    assert!(found.iter().all(|d| d.window.is_none() && d.outcome == Outcome::OnTime));
}

#[test]
fn late_samples_are_sent_or_dropped_as_contracted() {
    let mut both = streams(&[(0, 2, 2), (0, 2, 2), (0, 2, 2)]);
    if let ServiceClass::Contracted(contract) = &mut both[2].terms.class {
        contract.late = Late::Send;
    }
    let sums = tallies(slots(Policy::Fifo, Ahead::Waits, 20), &both);
    assert!(sums[2].late > 0 && sums[2].dropped == 0);
    assert!(sums.iter().take(2).any(|sum| sum.dropped > 0 && sum.late == 0));
    assert_eq!(sums.iter().map(|sum| sum.busy.as_nanos()).sum::<u64>(), 20 * SLOT);
}

/// E6: windows of two and of three; the second stream misses three in a row and keeps its windows.
#[test]
fn sums_count_windows_and_runs_from_the_decisions() {
    let e6 = streams(&[(1, 2, 1), (2, 3, 1)]);
    let sums = tallies(slots(Policy::DWCS, Ahead::Waits, 30), &e6);
    assert_eq!((sums[0].violations, sums[1].violations), (0, 0));
    assert_eq!((sums[0].windows, sums[1].windows), (15, 10));
    assert_eq!((sums[1].run_max, sums[1].misses_max), (3, 2));
    assert_eq!(sums[0].on_time + sums[1].on_time, 30);
    assert_eq!(sums[0].decided(), 30);
    let e3 = streams(&[(0, 1, 1), (0, 2, 1)]);
    let sums = tallies(slots(Policy::DWCS, Ahead::Waits, 8), &e3);
    assert_eq!((sums[0].violations, sums[1].violations), (4, 4));
    let sums = tallies(slots(original(), Ahead::Waits, 8), &e3);
    assert_eq!((sums[0].violations, sums[1].violations), (5, 3));
}

#[test]
fn the_state_before_a_decision_is_readable() {
    let mut timeline =
        Timeline::new(slots(Policy::DWCS, Ahead::Waits, 8), streams(&[(0, 1, 1), (0, 2, 1)]));
    let mut trace = vec![];
    while let Some(step) = timeline.next() {
        let Step::Chosen(pick) = step else { continue };
        let state = |stream| {
            let (window, deadline) = (timeline.window(stream)?, timeline.deadline(stream)?);
            Some((window.x, window.y, window.tagged, deadline.as_nanos() / SLOT))
        };
        trace.push((state(index(0)).unwrap(), state(index(1)).unwrap(), pick.stream.0));
    }
    assert_eq!(trace[0], ((0, 1, false, 1), (0, 2, false, 1), 1));
    assert_eq!(trace[1], ((0, 2, true, 2), (0, 1, false, 2), 0));
    assert_eq!(trace[5], ((0, 2, true, 6), (0, 2, false, 6), 0));
    assert_eq!(trace.len(), 8);
    // A deadline is known before the sample arrives.
    let mut alone = Timeline::new(slots(Policy::Vds, Ahead::Waits, 9), streams(&[(1, 2, 4)]));
    assert!(matches!(alone.next(), Some(Step::Chosen(_))));
    assert!(matches!(alone.next(), Some(Step::Decided(_))));
    assert_eq!(alone.deadline(index(0)), Some(at(8 * SLOT)));
    assert_eq!((alone.window(index(7)), alone.deadline(index(7))), (None, None));
}

#[test]
fn samples_queued_at_the_end_are_counted() {
    let mut few = stream(ServiceClass::BestEffort);
    few.arrivals = Arrivals::Every { first: at(0), every: nanos(SLOT / 4), count: 1_000 };
    let mut timeline = Timeline::new(slots(Policy::Fifo, Ahead::Waits, 10), vec![few]);
    assert_eq!(timeline.by_ref().filter(|step| matches!(step, Step::Decided(_))).count(), 10);
    assert_eq!(timeline.waiting(index(0)), 30);
    assert_eq!(timeline.waiting(index(1)), 0);
    assert_eq!(timeline.now(), at(10 * SLOT));
    let every =
        |first, every, count| Arrivals::Every { first: at(first), every: nanos(every), count };
    assert_eq!(every(3, 2, 9).before(at(3)), 0);
    assert_eq!(every(3, 2, 9).before(at(4)), 1);
    assert_eq!(every(3, 2, 9).before(at(6)), 2);
    assert_eq!(every(3, 2, 9).before(at(1_000)), 9);
    assert_eq!(Arrivals::At(vec![at(1), at(2)]).before(at(2)), 1);
}

/// Numbers at the ends of their ranges: the run ends, and reports nothing impossible.
#[test]
fn extreme_numbers_terminate() {
    let extremes = [0, 1, 2, u64::MAX / 2, u64::MAX - 1, u64::MAX];
    let mut runs = 0;
    for (link, end) in extremes.iter().flat_map(|a| extremes.iter().map(move |b| (*a, *b))) {
        for (period, first) in extremes.iter().flat_map(|a| extremes.iter().map(move |b| (*a, *b)))
        {
            for policy in Policy::ALL {
                let capacity = Capacity::from_bytes_per_s(link.max(1)).unwrap();
                let ahead = [Ahead::Waits, Ahead::Shares, Ahead::Competes][runs % 3];
                let link = if runs % 2 == 0 {
                    LinkTiming::Slots(nanos(link))
                } else {
                    LinkTiming::Capacity(capacity)
                };
                let setup = Setup { policy, ahead, link, segment: 0, end: at(end) };
                let mut contract = contract(1, 3, 1);
                (contract.period, contract.deadline) = (nanos(period), nanos(first));
                (contract.jitter, contract.late) = (nanos(first), Late::Send);
                let mut one = stream(Some(contract));
                one.sizes = vec![0, u32::MAX];
                let mut two = one.clone();
                two.arrivals =
                    Arrivals::Every { first: at(first), every: nanos(period), count: u64::MAX };
                let mut last = Instant::ZERO;
                for step in
                    Timeline::new(setup, vec![one, two, stream(ServiceClass::Background)]).take(50)
                {
                    let Step::Chosen(pick) = step else { continue };
                    assert!(pick.at >= last && pick.at < setup.end);
                    last = pick.at;
                }
                runs += 1;
            }
        }
    }
}

#[test]
fn a_link_guarantees_windows_only_where_proved() {
    let doubts = |policy, specs: &[(u32, u32, u64)]| {
        Doubt::all(&slots(policy, Ahead::Waits, 1), &streams(specs))
    };
    let e8 = [(1, 2, 3), (1, 2, 3), (1, 3, 3), (2, 3, 3), (0, 1, 3)];
    let mixed = [(9, 10, 1), (0, 1, 10), (0, 1, 10)];
    let full = [(6, 7, 7), (3, 8, 1), (1, 3, 4), (2, 7, 4)];
    assert_eq!(doubts(Policy::DWCS, &e8), []);
    assert_eq!(doubts(Policy::Vds, &e8), []);
    assert_eq!(doubts(original(), &e8), [Doubt::OriginalRules(original())]);
    assert_eq!(doubts(Policy::Fifo, &e8), [Doubt::NoWindows(Policy::Fifo)]);
    let many = Load { utilisation: 1_000_000, offered: 1_666_667 };
    // Each term is rounded down, so a full link never counts as more than full.
    let near = |load: Load| load.utilisation.abs_diff(many.utilisation) <= 1;
    let [Doubt::EdfOverload(Policy::Edf, load)] = doubts(Policy::Edf, &e8)[..] else { panic!() };
    assert!(near(load) && load.offered == many.offered, "{load:?}");
    let [Doubt::MixedPeriods(least, most)] = doubts(Policy::DWCS, &mixed)[..] else { panic!() };
    assert_eq!((least, most), (nanos(SLOT), nanos(10 * SLOT)));
    let text = Doubt::MixedPeriods(least, most).to_string();
    assert!(text.contains("from 1 ms to 10 ms") && text.contains("try vds"), "{text}");
    let [Doubt::MixedPeriodsVds(load)] = doubts(Policy::Vds, &full)[..] else { panic!() };
    assert!(Doubt::MixedPeriodsVds(load).to_string().contains("need 0.990 of it"));
    let [Doubt::Overload(load)] = doubts(Policy::DWCS, &[(0, 1, 1), (0, 2, 1)])[..] else {
        panic!()
    };
    assert!(Doubt::Overload(load).to_string().contains("need 2.000 of the link"));
    assert_eq!(doubts(Policy::DWCS, &[(0, 0, 1), (2, 2, 1), (1, 1, 7)]), [], "no window at all");
}

#[test]
fn the_assumptions_of_the_proofs_are_checked() {
    let setup = slots(Policy::DWCS, Ahead::Waits, 1);
    let mut long = streams(&[(0, 1, 8), (0, 1, 8)]);
    long[0].sizes = vec![3, 1];
    let cut = Setup { segment: 1, ..setup };
    let [Doubt::MixedTimes(least, most)] = Doubt::all(&cut, &long)[..] else { panic!() };
    assert_eq!((least, most), (nanos(SLOT), nanos(3 * SLOT)));
    long[1].sizes = vec![3];
    long[0].sizes = vec![3];
    let [Doubt::Misfit(period, service)] = Doubt::all(&cut, &long)[..] else { panic!() };
    assert_eq!((period, service), (nanos(8 * SLOT), nanos(3 * SLOT)));
    let mut other = streams(&[(0, 1, 8)]);
    if let ServiceClass::Contracted(contract) = &mut other[0].terms.class {
        contract.deadline = nanos(SLOT);
    }
    other[0].arrivals = Arrivals::At(vec![]);
    assert_eq!(Doubt::all(&setup, &other), [Doubt::OtherDeadlines, Doubt::OtherArrivals]);
}

#[test]
fn policed_samples_are_refused_on_arrival_or_wait_until_they_conform() {
    let mut one = stream(ServiceClass::BestEffort);
    one.sizes = vec![100];
    one.arrivals = Arrivals::Every { first: at(0), every: nanos(SLOT), count: 10 };
    // 100 bytes at once, and 100 more every 2 ms.
    one.police = Some("leaky:100B,50kB/s else drop".parse().unwrap());
    let mut other = one.clone();
    other.police = Some("leaky:100B,50kB/s else delay".parse().unwrap());
    let setup = Setup { end: at(30 * SLOT), ..slots(Policy::Fifo, Ahead::Waits, 30) };
    let sums = tallies(setup, &[one.clone(), other.clone()]);
    assert_eq!((sums[0].on_time, sums[0].policed), (5, 5));
    assert_eq!((sums[1].on_time, sums[1].policed), (10, 0));
    let seen = decisions(setup, vec![one]);
    let refused: Vec<_> =
        seen.iter().filter(|d| d.outcome == Outcome::Policed).map(|d| (d.seq, d.at)).collect();
    assert_eq!(refused, [1, 3, 5, 7, 9].map(|seq| (seq, at(seq * SLOT))));
    let seen = decisions(setup, vec![other.clone()]);
    let sent: Vec<_> = seen.iter().map(|d| (d.seq, d.at.as_nanos() / SLOT)).collect();
    assert_eq!(sent, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(|seq| (seq, 2 * seq)));
    assert_eq!(
        seen[9].delay,
        Some(nanos(10 * SLOT)),
        "counted from arrival, not from passing the policer"
    );
    let short = Setup { end: at(9 * SLOT), ..setup };
    let mut timeline = Timeline::new(short, vec![other]);
    assert_eq!(timeline.by_ref().filter(|step| matches!(step, Step::Decided(_))).count(), 5);
    assert_eq!(timeline.waiting(index(0)), 4);
}

#[test]
fn demoted_samples_share_round_robin_and_yield_to_conforming_samples() {
    // 100 bytes at once, and 100 more every 4 slots; one sample per slot, with a deadline of 8 slots.
    let mut camera = stream(Some(Contract { late: Late::Drop, ..contract(0, 1, 8) }));
    camera.sizes = vec![100];
    camera.arrivals = Arrivals::Every { first: at(0), every: nanos(SLOT), count: 8 };
    camera.police = Some("leaky:100B,25kB/s else demote".parse().unwrap());
    let seen = |others: Vec<Spec>| -> Vec<_> {
        let all = [vec![camera.clone()], others].concat();
        let seen = decisions(slots(Policy::Edf, Ahead::Shares, 40), all);
        seen.iter()
            .filter(|it| it.stream.0 == 0)
            .map(|it| (it.seq, it.outcome, it.at.as_nanos() / SLOT))
            .collect()
    };
    let idle = seen(vec![]);
    assert_eq!(idle, [0, 1, 2, 3, 4, 5, 6, 7].map(|seq| (seq, Outcome::OnTime, seq)), "alone");
    let mut steering = stream(Some(contract(0, 1, 1)));
    steering.arrivals = Arrivals::Every { first: at(SLOT), every: nanos(SLOT), count: 3 };
    let mut later = steering.clone();
    later.arrivals = Arrivals::Every { first: at(5 * SLOT), every: nanos(SLOT), count: 12 };
    let busy = seen(vec![steering, later]);
    let (met, given_up) = (Outcome::OnTime, Outcome::Dropped);
    assert_eq!(
        busy,
        [
            (0, met, 0),
            (1, given_up, 4),
            (2, given_up, 4),
            (3, given_up, 4),
            (4, met, 4),
            // Each a slot after the latest start that would have been on time.
            (5, given_up, 13),
            (6, given_up, 14),
            (7, given_up, 15),
        ]
    );
}

/// Three nanoseconds per period, and seconds between two samples: a wake-up at each deadline would take
/// forever.
#[test]
fn late_heads_behind_an_upper_limit_cost_no_time_while_queued() {
    let rate = |bits| Some(Curve::linear(bits).unwrap());
    let mut one = stream(Some(Contract {
        period: nanos(3),
        deadline: nanos(3),
        loss: LossTolerance::new(1, 3).unwrap(),
        late: Late::Send,
        jitter: Duration::ZERO,
    }));
    // A byte every ten seconds.
    let slow = Curves { real_time: None, link_share: rate(8), upper_limit: rate(1) };
    one.arrivals = Arrivals::At(vec![at(0); 3]);
    one.terms = one.terms.with_curves(slow);
    let link = LinkTiming::Capacity(Capacity::from_bytes_per_s(1_000_000_000).unwrap());
    let (ahead, segment, end) = (Ahead::Shares, u32::MAX, at(100_000 * SLOT));
    let setup = Setup { policy: Policy::Hfsc, ahead, link, segment, end };
    let seen = |decisions: Vec<SampleDecision>| -> Vec<_> {
        decisions.iter().map(|d| (d.at.as_nanos() / SLOT, d.outcome)).collect()
    };
    use Outcome::{Late as TooLate, OnTime};
    let expected = [(0, OnTime), (8_000, TooLate), (16_000, TooLate)];
    assert_eq!(seen(decisions(setup, vec![one.clone()])), expected);
    // The same in a class, whose discipline has windows that change at each deadline.
    let mut tree = Hierarchy::new();
    let leaf = LeafSpec { curves: slow, policy: Policy::DWCS, eligibility: ahead.eligibility() };
    one.class = Some(tree.add_leaf(ClassIndex::ROOT, &leaf).unwrap());
    let mut run = Timeline::with_classes(setup, tree, vec![one]);
    let decided: Vec<_> = run
        .by_ref()
        .filter_map(|step| match step {
            Step::Decided(decision) => Some(decision),
            Step::Chosen(_) => None,
        })
        .collect();
    assert_eq!(seen(decided.clone()), expected);
    // The second sample's deadlines at 6, 9, … ns passed by 8 s: 1/2 → 0/1, then y' increases.
    let tolerance = |d: &SampleDecision| d.window.map(|window| (window.x, window.y, window.tagged));
    assert_eq!(tolerance(&decided[0]), Some((1, 2, false)));
    assert_eq!(tolerance(&decided[1]), Some((0, 2_666_666_665, true)));
}

//! DWCS as an emulation of other disciplines, with special contracts (West & Poellabauer 2000; West,
//! Zhang, Schwan & Poellabauer 2004).
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test may panic")]

use paceline_sched::contract::{Contract, Late, LossTolerance};
use paceline_sched::discipline::{
    Discipline, Eligibility, Head, Left, Policy, Scheduler, ServiceClass, StreamIndex, Terms,
};
use paceline_sched::time::{Duration, Instant};
use random::{Random, run};

#[path = "support/random.rs"]
mod random;

const STREAMS: u32 = 6;

fn nanos(random: &mut Random, low: u64, high: u64) -> Duration {
    Duration::from_nanos(random.within(low, high))
}

/// Runs both links with the same random samples. They must select the same streams and report the same
/// misses.
fn same(seed: u64, random: &mut Random, links: &mut [Discipline; 2]) -> Result<(), String> {
    let mut now = Instant::ZERO;
    let mut heads = [None; STREAMS as usize];
    for step in 0..80 {
        let stream = u32::try_from(random.within(0, u64::from(STREAMS) - 1)).unwrap();
        let slot = &mut heads[stream as usize];
        if slot.is_none() {
            let head = Head::whole(now, nanos(random, 1, 9), 1);
            *slot = Some(head.left);
            for link in &mut *links {
                link.handle_head(StreamIndex(stream), head);
            }
        }
        if random.once_in(4) {
            now += nanos(random, 0, 30);
        }
        loop {
            let [one, other] = links.each_mut().map(|link| link.poll_missed(now));
            let whose = |miss: Option<paceline_sched::discipline::Miss>| {
                miss.map(|miss| (miss.stream, miss.dropped))
            };
            if whose(one) != whose(other) {
                return Err(format!("seed {seed} step {step}: {one:?} and {other:?}"));
            }
            let Some(miss) = one else { break };
            if miss.dropped {
                heads[miss.stream.0 as usize] = None;
            }
        }
        let [one, other] = links.each_mut().map(|link| link.pick(now));
        if one != other {
            return Err(format!("seed {seed} step {step}: {one:?} and {other:?}"));
        }
        let Some(stream) = one.filter(|_| random.once_in(2)) else { continue };
        let Some(left) = heads[stream.0 as usize].take() else { continue };
        now += left.service;
        for link in &mut *links {
            link.handle_served(stream, 1, now);
        }
    }
    Ok(())
}

fn contract(random: &mut Random, loss: LossTolerance) -> Contract {
    let late = random.one_of(&[Late::Drop, Late::Send]);
    let contract = Contract::every(nanos(random, 1, 40)).unwrap();
    Contract { deadline: nanos(random, 1, 60), late, ..contract }.with_loss(loss)
}

fn without_windows(seed: u64, policy: Policy) -> Result<(), String> {
    let mut random = Random(seed);
    let eligibility = random.one_of(&[Eligibility::OncePerPeriod, Eligibility::WorkConserving]);
    let mut links = [policy, Policy::DelayEdd].map(|policy| Discipline::new(policy, eligibility));
    for stream in 0..STREAMS {
        let contract = contract(&mut random, LossTolerance::EDF);
        for link in &mut links {
            link.join(StreamIndex(stream), Some(contract));
        }
    }
    same(seed, &mut random, &mut links)
}

/// 0/0 for all, in either rule set.
#[test]
fn without_windows_dwcs_is_earliest_due_date() {
    use paceline_sched::discipline::RuleSet::{Later, Original};
    for (ordering, adjustment) in [(Later, Later), (Original, Original)] {
        let policy = Policy::Dwcs { ordering, adjustment };
        run("earliest due date", 5_000, |seed| without_windows(seed, policy));
    }
}

/// The same 0/0 with a period that never begins before the next arrival. A deadline is then relative to
/// its sample's arrival.
#[test]
fn without_windows_and_between_long_pauses_dwcs_is_earliest_deadline_first() {
    run("earliest deadline first", 5_000, |seed| {
        let mut random = Random(seed);
        let mut links = [Policy::DWCS, Policy::Edf]
            .map(|policy| Discipline::new(policy, Eligibility::OncePerPeriod));
        for stream in 0..STREAMS {
            let contract = contract(&mut random, LossTolerance::EDF);
            let contract =
                Contract { period: Duration::from_nanos(1), late: Late::Drop, ..contract };
            for link in &mut links {
                link.join(StreamIndex(stream), Some(contract));
            }
        }
        same(seed, &mut random, &mut links)
    });
}

/// Static priority: deadlines as far apart as the levels, each longer than any run.
#[test]
fn deadlines_far_apart_make_dwcs_a_static_priority() {
    run("static priority", 5_000, |seed| {
        let mut random = Random(seed);
        let mut links = [Policy::DWCS, Policy::StaticPriority]
            .map(|policy| Discipline::new(policy, Eligibility::WorkConserving));
        // No two streams share a level: within one, the two disciplines order differently.
        for (stream, level) in (0..STREAMS).zip([3, 0, 5, 1, 4, 2]) {
            let deadline = Duration::from_secs(1 + level);
            let contract = Contract {
                period: Duration::from_nanos(1),
                deadline,
                ..Contract::every(Duration::from_secs(1)).unwrap()
            };
            let priority = u32::try_from(level).unwrap();
            let terms = Terms::new(ServiceClass::Contracted(contract)).with_priority(priority);
            for link in &mut links {
                link.join(StreamIndex(stream), terms);
            }
        }
        same(seed, &mut random, &mut links)
    });
}

/// Best effort next to real time: a stream that may miss everything is last among equal deadlines.
#[test]
fn a_stream_that_may_miss_all_is_best_effort_among_real_time_streams() {
    let mut link = Discipline::new(Policy::DWCS, Eligibility::WorkConserving);
    let slot = Duration::from_nanos(1);
    let loss = |x, y| LossTolerance::new(x, y).unwrap();
    for (stream, loss) in [loss(4, 4), loss(1, 2), loss(3, 4)].into_iter().enumerate() {
        let contract = Contract::every(slot).unwrap().with_loss(loss);
        link.join(StreamIndex(u32::try_from(stream).unwrap()), Some(contract));
    }
    let mut served = [0; 3];
    for at in 0..400 {
        let now = Instant::from_nanos(at);
        // A missed head is replaced; the second stream pauses for some time.
        for stream in 0..3 {
            if stream != 1 || at < 200 {
                link.handle_head(StreamIndex(stream), Head::whole(now, slot, 1));
            }
        }
        let picked = link.pick(now).unwrap();
        served[picked.0 as usize] += 1;
        let service = link.handle_served(picked, 1, now + slot);
        assert!(!service.violated);
        while let Some(miss) = link.poll_missed(now + slot) {
            assert!(!miss.violated);
        }
    }
    // Half and a quarter of the slots, as the contracts require; the other stream gets the rest.
    assert!(served[1] >= 100 && served[2] >= 100, "{served:?}");
    assert!(served[0] > 0, "{served:?}");
}

/// Fair shares are in `tests/shares.rs`; round robin is the simplest of them.
#[test]
fn equal_windows_make_dwcs_a_round_robin() {
    let mut link = Discipline::new(Policy::DWCS, Eligibility::WorkConserving);
    let slot = Duration::from_nanos(1);
    let contract = Contract::every(slot).unwrap();
    for stream in 0..STREAMS {
        let loss = LossTolerance::new(STREAMS - 1, STREAMS).unwrap();
        link.join(StreamIndex(stream), Some(contract.with_loss(loss)));
    }
    let mut order = Vec::new();
    for at in 0..u64::from(4 * STREAMS) {
        let now = Instant::from_nanos(at);
        for stream in 0..STREAMS {
            let left = Left { service: slot, segment: 1, last: true };
            link.handle_head(StreamIndex(stream), Head { arrived: now, left });
        }
        let picked = link.pick(now).unwrap();
        link.handle_served(picked, 1, now + slot);
        order.push(picked.0);
        while link.poll_missed(now + slot).is_some() {}
    }
    for round in order.chunks(STREAMS as usize) {
        let mut all = round.to_vec();
        all.sort_unstable();
        assert_eq!(all, (0..STREAMS).collect::<Vec<_>>());
    }
}

use super::*;
use proptest::prelude::*;
use std::sync::Arc;

const BURST: u64 = BestEffortRegulator::BURST.as_nanos();

fn regulator(sample_nanos: u64, byte_picos: u64, nanos_per_s: u64) -> BestEffortRegulator {
    BestEffortRegulator::new(CpuBudget { cost: CpuCost { sample_nanos, byte_picos }, nanos_per_s })
}

/// A leaky bucket as the text defines it: a level that charges raise and time lowers.
struct Naive {
    /// In nanoseconds of processor time, times a second.
    level: u128,
    rate: u64,
    at: u64,
    /// What the regulator may have charged in excess, because it rounds payments to whole nanoseconds.
    rounded: u128,
}

impl Naive {
    fn drain(&mut self, now: u64) {
        let paid = u128::from(self.rate) * u128::from(now - self.at);
        self.level = self.level.saturating_sub(paid);
        self.at = now;
    }

    fn charge(&mut self, cost: u64) {
        self.level += u128::from(cost) * u128::from(SECOND);
        self.rounded += 2 * u128::from(self.rate);
    }

    fn has_room(&self, more: u128) -> bool {
        self.level + more <= u128::from(BURST) * u128::from(SECOND)
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// So many samples of a length after so many nanoseconds.
    Samples(u64, u64, u8),
    Rate(u64, u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let gap = prop_oneof![Just(0), 0..20_000_u64, 0..5_000_000_u64];
    let length = prop_oneof![Just(64), 0..2_000_u64, Just(1 << 20)];
    let rate = prop_oneof![Just(0), Just(1), 1..1_000_000_u64, 1_000_000..2_000_000_000_u64];
    let samples =
        (gap.clone(), length, 1..40_u8).prop_map(|(gap, bytes, n)| Step::Samples(gap, bytes, n));
    let rates = (gap, rate).prop_map(|(gap, rate)| Step::Rate(gap, rate));
    prop::collection::vec(prop_oneof![6 => samples, 1 => rates], 1..80)
}

proptest! {
    /// The regulator follows the naive bucket: it never passes a sample that the bucket refuses, and refuses none that fits
    /// with room for the rounding of payments to whole nanoseconds.
    #[test]
    fn it_is_a_leaky_bucket(
        cost in (0..200_000_u64, 0..2_000_u64),
        rate in prop_oneof![Just(0), 1..2_000_000_000_u64],
        steps in steps(),
    ) {
        let regulator = regulator(cost.0, cost.1, rate);
        let mut naive = Naive { level: 0, rate, at: 0, rounded: 0 };
        let mut now = 1_000_000_u64;
        naive.at = now;
        for step in steps {
            match step {
                Step::Rate(gap, rate) => {
                    now += gap;
                    naive.drain(now);
                    regulator.set_rate(Instant::from_nanos(now), rate);
                    // One nanosecond of time at either rate, and one of processor time without a rate.
                    naive.rounded += 2 * u128::from(naive.rate.max(rate)) + u128::from(SECOND);
                    naive.rate = rate;
                }
                Step::Samples(gap, bytes, count) => {
                    now += gap;
                    for _ in 0..count {
                        naive.drain(now);
                        let passes = regulator.take(Instant::from_nanos(now), bytes);
                        if passes {
                            prop_assert!(naive.rate > 0 && naive.has_room(0), "{} at {now}", naive.level);
                            naive.charge(regulator.cost.of_sample(bytes));
                        } else if naive.rate > 0 {
                            let more = naive.rounded + u128::from(naive.rate);
                            prop_assert!(!naive.has_room(more), "{} at {now}, ±{more}", naive.level);
                        }
                    }
                }
            }
        }
    }

    /// Within any interval, at most the burst, one sample and the rate pass.
    #[test]
    fn the_passed_time_is_bounded_in_every_interval(
        cost in 1..300_000_u64,
        rate in 1..2_000_000_000_u64,
        gaps in prop::collection::vec(0..400_000_u64, 1..200),
    ) {
        let regulator = regulator(cost, 0, rate);
        let (mut now, mut passed) = (0_u64, Vec::new());
        for gap in gaps {
            now += gap;
            passed.extend(regulator.take(Instant::from_nanos(now), 64).then_some(now));
        }
        for (first, from) in passed.iter().enumerate() {
            for (last, to) in passed.iter().enumerate().skip(first) {
                let used = u128::from(cost) * (last - first + 1) as u128 * u128::from(SECOND);
                let paid = u128::from(rate) * u128::from(to - from);
                let most = u128::from(BURST + cost) * u128::from(SECOND) + paid;
                prop_assert!(used <= most, "{used} of {most} from {from} to {to}");
            }
        }
    }

    /// After the stated time and not before, the next sample passes.
    #[test]
    fn the_wait_is_exact(cost in 1..300_000_u64, rate in 1_000..2_000_000_000_u64, taken in 0..200_u8) {
        let regulator = regulator(cost, 0, rate);
        let now = Instant::from_millis(1);
        for _ in 0..taken {
            let _ = regulator.take(now, 64);
        }
        let wait = regulator.wait(now).unwrap();
        if wait > Duration::ZERO {
            let before = now + wait.saturating_sub(Duration::from_nanos(1));
            prop_assert!(!regulator.take(before, 64));
        }
        prop_assert!(regulator.take(now + wait, 64));
    }
}

#[test]
fn a_sample_that_costs_more_than_the_burst_passes_and_is_paid_for() {
    let regulator = regulator(0, 1_000, 100_000_000);
    let now = Instant::from_millis(1);
    // 8 ms of processor time: 80 ms at a tenth of a processor, less those of the burst.
    assert!(regulator.take(now, 8_000_000));
    assert!(!regulator.take(now + Duration::from_millis(69), 1));
    assert!(regulator.take(now + Duration::from_millis(70), 1));
}

#[test]
fn unpaid_charges_survive_a_time_without_a_rate() {
    let regulator = regulator(4_000_000, 0, 1_000_000_000);
    let at = |millis: u64| Instant::from_millis(1 + millis);
    assert!(regulator.take(at(0), 64));
    regulator.set_rate(at(1), 0);
    assert_eq!((regulator.take(at(500), 64), regulator.wait(at(500))), (false, None));
    // 3 ms are unpaid, 1 ms of them within the burst: 4 ms at half of a processor.
    regulator.set_rate(at(1_000), 500_000_000);
    assert_eq!(regulator.wait(at(1_000)), Some(Duration::from_millis(4)));
    assert!(!regulator.take(at(1_003), 64));
    assert!(regulator.take(at(1_004), 64));
}

#[test]
fn earlier_instants_permit_nothing_more() {
    let regulator = regulator(1_000_000, 0, 500_000_000);
    let late = Instant::from_millis(1_000);
    while regulator.take(late, 64) {}
    assert!(!regulator.take(Instant::from_millis(10), 64));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a node's threads share a regulator")]
fn threads_together_stay_within_the_share() {
    let rate = 200_000_000;
    let regulator = Arc::new(regulator(10_000, 0, rate));
    let clock = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (regulator, clock) = (regulator.clone(), clock.clone());
            std::thread::spawn(move || {
                let mut passed = 0_u64;
                loop {
                    let now = clock.fetch_add(2_000, Ordering::Relaxed);
                    if now > 100_000_000 {
                        return passed;
                    }
                    passed += u64::from(regulator.take(Instant::from_nanos(now), 64));
                }
            })
        })
        .collect();
    let passed: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    // 20 ms at the rate, the burst, and one sample.
    let most = (20_000_000 + BURST) / 10_000 + 1;
    assert!((most - 50..=most).contains(&passed), "{passed} of {most}");
}

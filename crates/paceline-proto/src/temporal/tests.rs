use super::*;
use crate::capture::CaptureGrid;
use proptest::prelude::*;

const BASE: u64 = 1_700_000_000_000_000_000;
const PERIOD: Duration = Duration::from_nanos(33_333_333);

fn nonzero(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).unwrap()
}

fn max_hz(hertz: u32) -> Rate {
    Rate::max(nonzero(hertz * 1_000))
}

/// Returns the indexes of the times that a scaler of a publisher takes. The first one has the sequence number `seq`.
fn taken_from(seq: u64, rate: Rate, period: Option<Duration>, times: &[u64]) -> Vec<u64> {
    let mut scaler = TemporalScaler::new(rate, period);
    let mut grid = CaptureGrid::new(period);
    let number = |seq, at| {
        let shift = grid.shift(at);
        period.map_or(seq, |period| CaptureGrid::number(at, shift, period))
    };
    let numbers: Vec<u64> = (seq..)
        .zip(times)
        .map(|(seq, at)| (seq, *at))
        .scan(number, |number, (seq, at)| Some(number(seq, at)))
        .collect();
    let all = (0..).zip(numbers).zip(times);
    all.filter(|((_, number), at)| scaler.take(*number, **at))
        .map(|((index, _), _)| index)
        .collect()
}

fn taken(rate: Rate, period: Option<Duration>, times: &[u64]) -> Vec<u64> {
    taken_from(0, rate, period, times)
}

fn at_30_hz() -> Vec<u64> {
    (0..300u64).map(|k| BASE + k * 1_000_000_000 / 30).collect()
}

#[test]
fn thirty_to_ten_hz_keeps_one_in_three_and_to_twenty_two_in_three() {
    for declared in [Some(PERIOD), None] {
        let of = |rate| taken(rate, declared, &at_30_hz());
        let ten = of(max_hz(10));
        assert!(ten.len().abs_diff(100) <= 1);
        assert!(ten[1..].windows(2).all(|pair| pair[1] - pair[0] == 3));
        let twenty = of(max_hz(20));
        assert!(twenty.len().abs_diff(200) <= 1);
        assert!(twenty.windows(2).all(|pair| pair[1] - pair[0] <= 2));
        assert_eq!(of(max_hz(30)).len(), 300);
        assert_eq!(of(max_hz(60)).len(), 300);
        assert!(of(max_hz(29)).len().abs_diff(290) <= 1);
        // Of 15 Hz that remain, 10 Hz: two of three.
        let both = of(Rate::every(nonzero(2)).at_most(nonzero(10_000)));
        assert!(both.len().abs_diff(100) <= 1, "{}", both.len());
        let gaps: Vec<u64> = both[1..].windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| [2, 4].contains(gap)), "{gaps:?}");
    }
}

#[test]
fn pauses_and_clock_steps_cost_at_most_two_samples() {
    let year = 365 * 86_400_000_000_000;
    for declared in [Some(PERIOD), None] {
        for step in [-10 * year, -1, 1_000_000_000, 10 * year] {
            let stepped = |from: usize| -> Vec<u64> {
                let all = at_30_hz().into_iter().enumerate();
                all.map(|(k, at)| if k < from { at } else { at.saturating_add_signed(step) })
                    .collect()
            };
            for rate in [max_hz(10), Rate::every(nonzero(3))] {
                let got = taken(rate, declared, &stepped(100));
                let after = got.iter().filter(|&&index| index >= 100).count();
                assert!((65..=69).contains(&after), "{declared:?} {step}: {after}");
                let late = taken(rate, declared, &stepped(1)).len();
                assert!((99..=102).contains(&late), "{declared:?} {step}: {late}");
            }
        }
    }
}

#[test]
fn one_in_n_keeps_its_phase_across_losses() {
    let seen = |aligned: bool| {
        let mut scaler = TemporalScaler::new(Rate::every(nonzero(3)), None);
        if aligned {
            scaler.align();
        }
        let all = [5, 6, 7, 8, 9, 10, 13, 14, 15, 17].into_iter();
        all.filter(|&seq| scaler.take(seq, 0)).collect::<Vec<_>>()
    };
    assert_eq!(seen(false), [5, 6, 9, 13, 15], "13 replaces 12");
    assert_eq!(seen(true), [6, 9, 15], "another stream may have carried 12");
}

#[test]
fn samples_of_a_publisher_that_is_slower_than_the_limit_all_pass() {
    let slow: Vec<u64> = (0..50).map(|k| BASE + k * 10_000_000_123).collect();
    for declared in [Some(Duration::from_nanos(10_000_000_123)), None] {
        assert_eq!(taken(max_hz(5), declared, &slow).len(), 50);
    }
}

#[test]
fn every_time_of_a_source_that_bursts_has_its_share() {
    // Ten samples at once, each second, declared as 10 Hz.
    let burst: Vec<u64> = (0..1_000).map(|k| BASE + k / 10 * 1_000_000_000).collect();
    let declared = Some(Duration::from_millis(100));
    let half = taken(Rate::every(nonzero(2)), declared, &burst);
    assert!(half.len().abs_diff(500) <= 2, "{}", half.len());
}

#[test]
fn a_stream_of_a_clock_that_stands_still_goes_on() {
    let mut scaler = TemporalScaler::new(max_hz(10), None);
    scaler.begin_after(0, BASE);
    let taken = (1..=100_u64).filter(|seq| {
        let arrival = Instant::from_millis(seq * 50);
        scaler.take_numbered((*seq, *seq), BASE, Some(arrival))
    });
    assert_eq!(taken.count(), 24, "every 200 ms");
}

/// Returns the indices that a scaler of a contract takes, by the numbers of the publisher's grid.
fn taken_aligned(rate: Rate, period: Duration, times: &[u64], from: usize) -> Vec<usize> {
    let mut grid = CaptureGrid::new(Some(period));
    let mut scaler = TemporalScaler::new(rate, Some(period));
    scaler.align();
    let numbers: Vec<u64> =
        times.iter().map(|at| CaptureGrid::number(*at, grid.shift(*at), period)).collect();
    let takes = |k: &usize| scaler.take_numbered((*k as u64, numbers[*k]), times[*k], None);
    (from..times.len()).filter(takes).collect()
}

#[test]
fn a_contract_of_a_publisher_below_its_declared_rate_does_not_starve() {
    // 10 Hz are published, and 100 or 30 Hz declared: at least as many remain as of samples at the declared rate.
    for (declared, limit, least) in [(10, 5, 19), (10, 1, 3), (33, 5, 65), (33, 1, 12)] {
        for phase in (0..20).map(|k| k * 5_000_000) {
            let times: Vec<u64> = (0..400).map(|k| BASE + phase + k * 100_000_000).collect();
            let got =
                taken_aligned(max_hz(limit), Duration::from_millis(declared), &times, 0).len();
            assert!(got >= least, "{declared} ms, {limit} Hz, phase {phase}: {got} of 400");
        }
    }
}

#[test]
fn a_late_capture_does_not_move_a_contract_to_other_instants() {
    let mut times: Vec<u64> = (0..600).map(|k| BASE + k * 33_333_333).collect();
    times[30] += 15_000_000;
    times[31] += 3_000_000;
    for limit in [5, 7, 10, 20] {
        let early = taken_aligned(max_hz(limit), PERIOD, &times, 0);
        let late = taken_aligned(max_hz(limit), PERIOD, &times, 60);
        let same = |all: &[usize]| all.iter().copied().filter(|k| *k >= 80).collect::<Vec<_>>();
        assert_eq!(same(&early), same(&late), "{limit} Hz");
        assert!(early.len().abs_diff(20 * limit as usize) <= 3, "{limit} Hz: {}", early.len());
    }
}

#[test]
fn a_pause_leaves_no_instants_to_later_samples() {
    let times = [500, 5_900, 5_950, 6_000, 6_050]
        .map(|millis| BASE / 1_000_000_000 * 1_000_000_000 + millis * 1_000_000);
    assert_eq!(taken(max_hz(1), None, &times).len(), 3, "one of each second");
}

#[test]
fn a_sample_that_was_held_for_a_new_stream_begins_it() {
    for declared in [Some(PERIOD), None] {
        for rate in [Rate::every(nonzero(3)), max_hz(10)] {
            let taken = |first: u64| {
                let mut scaler = TemporalScaler::new(rate, declared);
                scaler.begin_after(1, BASE);
                scaler.take(first, BASE)
            };
            assert!(taken(0) && taken(1), "{rate} of {declared:?}: held");
            assert!(
                !taken(2),
                "{rate} of {declared:?}: another stream may have carried the instant"
            );
        }
    }
}

fn rates() -> impl Strategy<Value = Rate> {
    let both = |(n, hertz)| Rate::every(nonzero(n)).at_most(nonzero(hertz * 1_000));
    prop_oneof![
        (1..9_u32).prop_map(|n| Rate::every(nonzero(n))),
        (1..40_u32).prop_map(max_hz),
        (1..9_u32, 1..40_u32).prop_map(both),
    ]
}

proptest! {
    #[test]
    fn aligned_scalers_take_the_same_samples_wherever_they_begin(
        asked in rates(),
        begin in 0..50_u64,
        lost in prop::collection::btree_set(0..300_u64, 0..20),
    ) {
        let taken = |begin: u64| {
            let mut scaler = TemporalScaler::new(asked, Some(PERIOD));
            scaler.align();
            (begin..300).filter(|seq| !lost.contains(seq)).filter(|seq| scaler.take(*seq, seq * PERIOD.as_nanos())).collect::<Vec<_>>()
        };
        let (all, later) = (taken(0), taken(begin));
        // Without the first sample of the publisher, the first instant is not too close to it.
        let same: Vec<_> = all.iter().skip(1).copied().filter(|seq| *seq >= begin).collect();
        let from = same.first().copied().unwrap_or(300);
        prop_assert_eq!(same, later.iter().copied().filter(|seq| *seq >= from).collect::<Vec<_>>());
        prop_assert!(later.iter().filter(|seq| **seq < from).count() <= 2);
    }

    /// The left picture, the right one and the information of one camera: their publishers began at different captures, with
    /// other sequence numbers, and so did the subscriptions.
    #[test]
    fn publishers_of_the_same_captures_are_thinned_to_the_same_instants(
        asked in rates(),
        phase in 0..33_333_333_u64,
        jitter in prop::collection::vec(0..10_000_000_u64, 400),
        begins in prop::collection::vec((0..120_usize, 0..1_000_u64), 2..4),
        joins in prop::collection::vec(0..60_usize, 4),
        declared in any::<bool>(),
    ) {
        let times: Vec<u64> = jitter.iter().zip(0..).map(|(jitter, k)| BASE + phase + k * 33_333_333 + jitter).collect();
        // Away from the middle between two instants, where the averages first have to agree.
        let grid = (times[0] - jitter[0] + 5_000_000) % 33_333_333;
        let declared = declared.then_some(PERIOD);
        prop_assume!(declared.is_none() || grid.abs_diff(16_666_666) > 7_000_000);
        // Sequence numbers say nothing about captures: without a period, publishers must begin together.
        prop_assume!(declared.is_some() || asked.every == NonZeroU32::MIN);
        let first = |list: &[u64], from: u64| -> Vec<u64> { list.iter().copied().filter(|at| *at >= from).collect() };
        let streams: Vec<Vec<u64>> = begins.iter().zip(&joins).map(|((begin, seq), join)| {
            let got = taken_from(*seq, asked, declared, &times[*begin..]);
            got.into_iter().map(|index| index + *begin as u64).filter(|index| *index >= (begin + join) as u64).collect()
        }).collect();
        let both_begun = begins.iter().zip(&joins).map(|((begin, _), join)| begin + join + 1).max().unwrap() as u64;
        // The first sample of a publisher always passes.
        let mut misses = 0;
        for stream in &streams[1..] {
            let (one, other) = (first(&streams[0], both_begun), first(stream, both_begun));
            misses += one.iter().filter(|at| !other.contains(at)).count();
            misses += other.iter().filter(|at| !one.contains(at)).count();
        }
        // Next to the rate of the source, one instant may have been left to the next capture before a stream began.
        let near = declared.is_none() && asked.interval().is_some_and(|limit| limit < Duration::from_millis(44));
        prop_assert!(misses <= if near { begins.len() - 1 } else { 0 }, "{} misses: {:?}", misses, streams);
    }

    #[test]
    fn the_rate_is_exact_under_jitter(
        asked in 1u32..=40,
        jitter in prop::collection::vec(0u64..14_000_000, 600),
        declared in any::<bool>(),
    ) {
        let times: Vec<u64> = jitter.iter().enumerate().map(|(k, j)| BASE + k as u64 * 33_333_333 + j).collect();
        let got = taken(max_hz(asked), declared.then_some(PERIOD), &times).len() as i64;
        let want = i64::from(asked.min(30)) * 20;
        prop_assert!((got - want).abs() <= 2, "{} Hz gave {} of {}", asked, got, want);
    }

    #[test]
    fn any_samples_can_be_offered(
        asked in rates(),
        samples in prop::collection::vec((any::<u64>(), any::<u64>()), 0..50),
        period in prop::option::of(any::<u64>()),
    ) {
        let mut scaler = TemporalScaler::new(asked, period.map(Duration::from_nanos));
        for (number, at) in samples {
            scaler.take(number, at);
        }
    }
}

//! Files with known true times, whose clocks are then set, and times damaged.

use super::*;
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;
const EPOCH: u64 = 1_700_000_000 * SECOND;

/// A message, and its true time after the first one.
#[derive(Clone, Debug)]
struct Truth {
    stamp: MessageTimes,
    at: u64,
}

/// Returns the messages of topics with these periods in nanoseconds for `lasts` nanoseconds, in order of arrival.
fn file(periods: &[u64], lasts: u64) -> Vec<Truth> {
    let mut all = Vec::new();
    for (channel, period) in (0..).zip(periods) {
        for number in 0..=lasts / period {
            let at = number * period + u64::from(channel) * 300_000;
            // A network delays messages by up to 10 ms.
            let lag = (number * 7 + u64::from(channel) * 3) % 10 * 1_000_000;
            let (published, arrival) = (Some(EPOCH + at), Some(EPOCH + at + lag));
            let sequence = u32::try_from(number).unwrap();
            let stamp = MessageTimes { channel, sequence, arrival, published, steady: false };
            all.push(Truth { stamp, at });
        }
    }
    all.sort_by_key(|truth| truth.stamp.arrival);
    all
}

/// Returns the release times of all messages, after the first one, in nanoseconds.
fn released(order: Order, stamps: impl IntoIterator<Item = MessageTimes>) -> (Vec<i128>, Jumps) {
    let mut timeline = ReplayTimeline::new(order);
    let (mut times, mut count) = (Vec::new(), 0);
    for stamp in stamps {
        timeline.push(stamp);
        count += 1;
        times.extend(std::iter::from_fn(|| timeline.release(false)));
        assert!(count - times.len() <= LOOK, "the look-ahead is bounded");
    }
    times.extend(std::iter::from_fn(|| timeline.release(true)));
    assert_eq!(times.len(), count, "each message has a time");
    (times.iter().map(|at| i128::from(*at) - START).collect(), timeline.jumps.clone())
}

fn stamps(truths: &[Truth]) -> Vec<MessageTimes> {
    truths.iter().map(|truth| truth.stamp).collect()
}

/// Returns the longest time in which nothing is released.
fn longest_pause(times: &[i128]) -> i128 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).map(|two| two[1] - two[0]).max().unwrap_or_default()
}

fn add(time: &mut Option<u64>, by: i64) {
    *time = time.map(|time| time.saturating_add_signed(by));
}

const HOUR: i64 = 3_600_000_000_000;

#[test]
fn messages_at_time_zero_before_wall_time_cause_no_pause() {
    for zero in [Some(0), Some(7), None] {
        for order in [Order::Auto, Order::Published, Order::Came] {
            let mut all = stamps(&file(&[SECOND / 10, SECOND], 5 * SECOND));
            for stamp in &mut all[..3] {
                (stamp.arrival, stamp.published) = (zero, zero);
            }
            let (times, _) = released(order, all);
            assert!(longest_pause(&times) <= i128::from(SECOND), "{order:?}: {times:?}");
            assert!(*times.iter().max().unwrap() > 4 * i128::from(SECOND), "{order:?}");
        }
    }
}

#[test]
fn a_publishers_clock_that_is_set_is_followed_by_arrival() {
    for by in [HOUR, -HOUR, 24 * 365 * HOUR] {
        let truths = file(&[SECOND / 10, SECOND / 4], 20 * SECOND);
        let mut all = stamps(&truths);
        for stamp in all[100..].iter_mut().filter(|stamp| stamp.channel == 0) {
            add(&mut stamp.published, by);
        }
        let (times, jumps) = released(Order::Auto, all);
        for (at, truth) in times.iter().zip(&truths) {
            assert!((at - i128::from(truth.at)).abs() < 20_000_000, "{by}: {at}, {}", truth.at);
        }
        assert_eq!(jumps.count, 1);
        let jump = jumps.first[0];
        assert!((jump.by - i128::from(by)).abs() < 20_000_000, "{jump:?}");
    }
}

#[test]
fn a_host_clock_that_is_set_for_all_causes_no_pause() {
    for by in [HOUR, -HOUR, 60_000_000_000] {
        let truths = file(&[SECOND / 10, SECOND / 4], 20 * SECOND);
        let mut all = stamps(&truths);
        for stamp in &mut all[100..] {
            add(&mut stamp.published, by);
            add(&mut stamp.arrival, by);
        }
        let (times, jumps) = released(Order::Auto, all.clone());
        for (at, truth) in times.iter().zip(&truths) {
            assert!((at - i128::from(truth.at)).abs() < 200_000_000, "{by}: {at}, {}", truth.at);
        }
        assert_eq!((jumps.count, jumps.pauses), (1, 0), "{by}: {jumps:?}");
        // A clock that nobody can set proves that the pause is real.
        all.iter_mut().for_each(|stamp| stamp.steady = true);
        let (times, jumps) = released(Order::Auto, all.clone());
        let pauses = u64::from(by > 0);
        assert_eq!((jumps.count, jumps.pauses), (1 - pauses, pauses), "{by}: {jumps:?}");
        assert_eq!(longest_pause(&times) > i128::from(by.abs()) / 2, by > 0);
        // So does the user who chooses a clock.
        all.iter_mut().for_each(|stamp| stamp.steady = false);
        let (_, jumps) = released(Order::Published, all);
        assert_eq!((jumps.count, jumps.pauses), (1 - pauses, pauses), "{by}: {jumps:?}");
    }
}

#[test]
fn the_pauses_of_a_rare_topic_are_kept() {
    let lone = file(&[600 * SECOND], 1_800 * SECOND);
    for (truths, pauses) in [(file(&[600 * SECOND, SECOND], 1_800 * SECOND), 0), (lone, 3)] {
        for order in [Order::Auto, Order::Published, Order::Came] {
            let (times, jumps) = released(order, stamps(&truths));
            assert_eq!((jumps.count, jumps.pauses), (0, pauses), "{order:?}: {jumps:?}");
            for (at, truth) in times.iter().zip(&truths) {
                assert!((at - i128::from(truth.at)).abs() < 20_000_000, "{order:?}");
            }
        }
    }
    // One clock alone, and a single interval.
    let stamp = |at: u64, sequence| MessageTimes {
        sequence,
        published: Some(at),
        ..MessageTimes::default()
    };
    let (times, _) = released(Order::Auto, [stamp(EPOCH, 0), stamp(EPOCH + 60 * SECOND, 1)]);
    assert_eq!(times, [0, i128::from(60 * SECOND)]);
}

#[test]
fn small_steps_back_keep_the_order_of_each_topic() {
    for steady in [true, false] {
        let mut all = stamps(&file(&[SECOND / 100, SECOND / 10], 10 * SECOND));
        let half = all.len() / 2;
        for (place, stamp) in all.iter_mut().enumerate() {
            stamp.steady = steady;
            add(&mut stamp.published, if place < half { 0 } else { -2_000_000_000 });
        }
        let (times, jumps) = released(Order::Auto, all.clone());
        for channel in 0..2 {
            let its = times.iter().zip(&all).filter(|(_, stamp)| stamp.channel == channel);
            let its: Vec<_> = its.map(|(at, _)| *at).collect();
            assert!(its.is_sorted(), "{channel}");
        }
        assert!(jumps.count >= 1);
        assert!(longest_pause(&times) < i128::from(SECOND));
    }
}

#[test]
fn messages_that_arrived_late_are_moved_to_their_time() {
    let mut all = stamps(&file(&[SECOND / 10], 3 * SECOND));
    // The sixth is retransmitted, and arrives after the ninth.
    let mut late = all.remove(5);
    late.arrival = all[7].arrival;
    all.insert(8, late);
    let (times, jumps) = released(Order::Auto, all);
    assert_eq!((times[8], jumps.count), (i128::from(SECOND / 2), 0));
}

#[test]
fn a_damaged_time_near_an_earlier_one_is_not_used() {
    // Two messages of a topic, whose stamps are wrong by hours, and by 400 ms more or less than each other.
    for (arrival, by) in
        [(false, 400_000_000), (false, -400_000_000), (true, 400_000_000), (true, -400_000_000)]
    {
        let truths = file(&[SECOND], 60 * SECOND);
        let mut all = stamps(&truths);
        for (place, more) in [(20, 0), (30, by)] {
            let time = if arrival { &mut all[place].arrival } else { &mut all[place].published };
            add(time, -9_810_000_000_000 + more);
        }
        let (times, _) = released(if arrival { Order::Came } else { Order::Auto }, all);
        let begin = times[0] - i128::from(truths[0].at);
        for (at, truth) in times.iter().zip(&truths) {
            assert!((at - begin - i128::from(truth.at)).abs() < 50_000_000);
        }
    }
}

#[test]
fn topics_whose_times_stand_still_follow_the_others() {
    // A flight log: no arrival times, and topics that always have the same time.
    let mut all = Vec::new();
    for number in 0..2_000_u32 {
        let at = SECOND + u64::from(number) * 10_000_000;
        let published = Some(if number % 3 == 0 { 5 * SECOND } else { at });
        let channel = u16::try_from(number % 3).unwrap();
        all.push(MessageTimes { channel, sequence: number, published, ..MessageTimes::default() });
    }
    let (times, jumps) = released(Order::Auto, all);
    assert_eq!(*times.last().unwrap() / 1_000_000_000, 15);
    assert!(longest_pause(&times) <= 5 * i128::from(SECOND), "{jumps:?}");
}

/// A fault of a clock.
#[derive(Clone, Debug)]
struct Fault {
    at: prop::sample::Index,
    /// The channel whose publication times it changes; `None` for the arrival times.
    channel: u16,
    by: i64,
    /// False for one message only.
    stays: bool,
}

fn faults() -> impl Strategy<Value = Vec<Fault>> {
    let by = prop_oneof![
        30_000_000_000..10 * HOUR,
        -10 * HOUR..-30_000_000_000,
        (-300_000_000 * 1_000_000_000..i64::MAX / 8)
            .prop_filter("it is a jump", |by| by.unsigned_abs() > 30 * SECOND),
    ];
    let one = (any::<prop::sample::Index>(), 0..3u16, by, any::<bool>());
    let one = one.prop_map(|(at, channel, by, stays)| Fault { at, channel, by, stays });
    prop::collection::vec(one, 1..5)
}

fn periods() -> impl Strategy<Value = Vec<u64>> {
    let dense = 20_000_000..SECOND;
    (dense, 100_000_000..20 * SECOND, SECOND..100 * SECOND).prop_map(|(a, b, c)| vec![a, b, c])
}

/// Applies faults to the publication times, or to the arrival times.
fn apply(all: &mut [MessageTimes], faults: &[Fault], arrival: bool) {
    for fault in faults {
        let from = fault.at.index(all.len());
        let until = if fault.stays { all.len() } else { from + 1 };
        for stamp in &mut all[from..until] {
            if arrival {
                add(&mut stamp.arrival, fault.by);
            } else if !fault.stays || stamp.channel == fault.channel {
                add(&mut stamp.published, fault.by);
            }
        }
    }
}

/// Returns true if a clock is set by so little, from one message of a topic to the next one, that its times still
/// continue the replay: two faults together may amount to that.
fn has_small_steps(truths: &[Truth], all: &[MessageTimes]) -> bool {
    let by = |now: Option<u64>, before: Option<u64>| Some(i128::from(now?) - i128::from(before?));
    (0..3).any(|channel| {
        let its = truths.iter().zip(all).filter(|(_, stamp)| stamp.channel == channel);
        let its = its.map(|(truth, stamp)| {
            (by(stamp.published, truth.stamp.published), by(stamp.arrival, truth.stamp.arrival))
        });
        let its: Vec<_> = its.collect();
        let small = |a: Option<i128>, b: Option<i128>| {
            a.zip(b).is_some_and(|(a, b)| a != b && (a - b).abs() <= PAUSE + BACK)
        };
        its.windows(2).any(|two| small(two[0].0, two[1].0) || small(two[0].1, two[1].1))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The reference is the true time.
    #[test]
    fn one_true_clock_is_enough(
        periods in periods(), faults in faults(), arrival in any::<bool>(), by_arrival in any::<bool>(),
    ) {
        let truths = file(&periods, 60 * SECOND);
        let mut all = stamps(&truths);
        apply(&mut all, &faults, arrival);
        prop_assume!(!has_small_steps(&truths, &all));
        let order = if by_arrival { Order::Came } else { Order::Auto };
        let (times, _) = released(order, all);
        // Each alignment adds the lag of one message.
        let begin = times[0] - i128::from(truths[0].at);
        for (place, (at, truth)) in times.iter().zip(&truths).enumerate() {
            let off = at - begin - i128::from(truth.at);
            prop_assert!(off.abs() < 200_000_000, "message {place}: {off}");
        }
    }

    #[test]
    fn clocks_that_are_set_together_cause_no_pause_and_keep_the_order(
        periods in periods(), faults in faults(),
    ) {
        let truths = file(&periods, 60 * SECOND);
        let mut all = stamps(&truths);
        for Fault { at, by, stays, .. } in &faults {
            // A topic is regular after a while, and may be silent for 32 times its interval.
            // Behind the last message no other one shows that it is wrong.
            let from = truths.len() / 2 + at.index(truths.len() / 2 - 10);
            let by = *by * 2;
            let until = if *stays { all.len() } else { from + 1 };
            for stamp in &mut all[from..until] {
                add(&mut stamp.published, by);
                add(&mut stamp.arrival, by);
            }
        }
        let (times, jumps) = released(Order::Auto, all.clone());
        // Two jumps that differ little leave a pause that the rule of regular topics keeps.
        let believable = i128::from(periods[0]) * TIMES_LONGER;
        let differ = faults.iter().fold(vec![0], |sums, fault| {
            let by = i128::from(fault.by) * 2;
            sums.iter().flat_map(|sum| [sum - by, *sum, sum + by]).collect()
        });
        let is_close = differ.iter().any(|sum| *sum != 0 && sum.abs() <= believable + BACK);
        let pause = if is_close { believable } else { i128::from(periods[0]) };
        let limit = pause.max(PAUSE) + BACK;
        prop_assert!(longest_pause(&times) <= limit, "{} of {limit}, {jumps:?}", longest_pause(&times));
        for channel in 0..3 {
            let its = times.iter().zip(&all).filter(|(_, stamp)| stamp.channel == channel);
            let its: Vec<_> = its.map(|(at, _)| *at).collect();
            prop_assert!(its.is_sorted(), "{channel}");
        }
    }

    #[test]
    fn any_times_give_a_bounded_course(
        stamps in prop::collection::vec(
            (0..3u16, any::<u32>(), any::<Option<u64>>(), any::<Option<u64>>(), any::<bool>()), 1..200,
        ),
        by in prop::sample::select(vec![Order::Auto, Order::Published, Order::Came]),
    ) {
        let all = stamps.into_iter().map(|(channel, sequence, arrival, published, steady)| {
            MessageTimes { channel, sequence, arrival, published, steady }
        });
        let all: Vec<_> = all.collect();
        let (times, _) = released(by, all);
        let mut line = i128::MIN;
        for at in times {
            prop_assert!(line == i128::MIN || at >= line - BACK, "{at} behind {line}");
            prop_assert!(line == i128::MIN || at <= line + PAUSE_MAX, "{at} behind {line}");
            line = line.max(at);
        }
    }
}

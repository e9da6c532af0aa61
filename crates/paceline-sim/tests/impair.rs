//! The network emulator: instants computed by hand, and rates over a million packets.

use paceline_sched::{Capacity, Duration, Instant};
use paceline_sim::impair::{Emulator, Impairment, Loss, PPM_MAX, WireKind};

const MILLION: u64 = 1_000_000;

fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn datagrams(impairment: Impairment) -> Emulator<u64> {
    Emulator::new(WireKind::Datagrams, impairment, 100_000, 7)
}

fn reliable(impairment: Impairment) -> Emulator<u64> {
    Emulator::new(WireKind::Reliable, impairment, 100_000, 7)
}

/// Returns all arrivals with their instants until no packet is in flight.
fn arrivals(emulator: &mut Emulator<u64>) -> Vec<(Instant, u64)> {
    let mut all = Vec::new();
    while emulator.next_at() < Instant::FAR {
        let at = emulator.next_at();
        all.extend(emulator.poll(at).map(|item| (at, item)));
    }
    all
}

/// Sends a million packets of 100 bytes, one per millisecond. Returns their numbers in the order of arrival.
fn run(emulator: &mut Emulator<u64>) -> Vec<u64> {
    let mut arrived = Vec::new();
    for number in 0..MILLION {
        let now = ms(number);
        while let Some(item) = emulator.poll(now) {
            arrived.push(item);
        }
        emulator.handle(now, 100, number);
    }
    arrived.extend(arrivals(emulator).iter().map(|(_, item)| item));
    let counters = emulator.counters();
    let sent = counters.packets + counters.duplicated;
    assert_eq!(sent, counters.delivered + counters.dropped.total(), "{counters:?}");
    assert_eq!(counters.delivered, arrived.len() as u64);
    arrived
}

/// Sends packets, one per millisecond. Returns the numbers of the lost ones.
fn losses(emulator: &mut Emulator<u64>, packets: u64) -> Vec<u64> {
    let each = (0..packets).filter_map(|number| {
        while emulator.poll(ms(number)).is_some() {}
        emulator.handle(ms(number), 100, number)
    });
    each.collect()
}

fn within(share: u64, expected: u64, tolerance: u64) {
    println!("{share} of a million, expected {expected} ± {tolerance}");
    assert!(share.abs_diff(expected) <= tolerance, "{share} instead of {expected}");
}

#[test]
fn without_impairment_a_packet_arrives_as_it_is_sent() {
    let mut none = datagrams(Impairment::NONE);
    assert_eq!((none.next_at(), none.poll(ms(5))), (Instant::FAR, None));
    assert_eq!(none.handle(ms(5), 1_500, 1), None);
    assert_eq!((none.next_at(), none.poll(ms(5)), none.poll(ms(5))), (ms(5), Some(1), None));
}

#[test]
fn packets_leave_at_the_rate_and_wait_in_a_bounded_queue() {
    // 1 000 bytes take 4 ms. The queue of 4 500 bytes has no room for a fifth whole packet.
    let rate = Capacity::from_bits_per_s(2_000_000).ok();
    let delay = Duration::from_millis(10);
    let thin = Impairment { rate, delay, queue_bytes: 4_500, ..Impairment::NONE };
    let mut thin = datagrams(thin);
    let dropped: Vec<Option<u64>> = (0..6).map(|k| thin.handle(ms(100), 1_000, k)).collect();
    assert_eq!(dropped, [None, None, None, None, Some(4), Some(5)]);
    // At 102 ms half of the first one has left, so 3 500 bytes are queued.
    assert_eq!(thin.handle(ms(102), 1_001, 6), Some(6));
    assert_eq!(thin.handle(ms(102), 1_000, 7), None);
    let expected = [(ms(114), 0), (ms(118), 1), (ms(122), 2), (ms(126), 3), (ms(130), 7)];
    assert_eq!(arrivals(&mut thin), expected);
    // An empty queue accepts a packet that is larger than the queue.
    assert_eq!(thin.handle(ms(200), 9_000, 8), None);
    assert_eq!(arrivals(&mut thin), [(ms(246), 8)]);
    let counters = thin.counters();
    assert_eq!((counters.packets, counters.delivered, counters.dropped.queue), (9, 6, 3));
    assert_eq!(counters.waited_max, Duration::from_millis(14));
    assert_eq!(counters.delivered_bytes, 14_000);
}

#[test]
fn a_reliable_wire_keeps_packets_beyond_the_queue() {
    let rate = Capacity::from_bits_per_s(2_000_000).ok();
    let mut thin = reliable(Impairment { rate, queue_bytes: 1_000, ..Impairment::NONE });
    assert!((0..5).all(|k| thin.handle(ms(0), 1_000, k).is_none()));
    let expected: Vec<_> = (0..5).map(|k| (ms(4 * k + 4), k)).collect();
    assert_eq!(arrivals(&mut thin), expected);
}

#[test]
fn jitter_is_uniform_and_keeps_the_order() {
    let (delay, jitter) = (Duration::from_millis(5), Duration::from_nanos(99));
    let mut apart = datagrams(Impairment { delay, jitter, ..Impairment::NONE });
    let mut tenths = [0_u64; 10];
    for number in 0..MILLION {
        apart.handle(ms(number * 10), 100, number);
        let late = apart.next_at().since(ms(number * 10 + 5)).as_nanos();
        tenths[usize::try_from(late / 10).unwrap()] += 1;
        assert_eq!(apart.poll(ms(number * 10 + 9)), Some(number));
    }
    tenths.iter().for_each(|&tenth| within(tenth, 100_000, 1_500));
    // One packet per millisecond with a jitter of 20 ms would be reordered if jitter permitted it.
    let mut close = datagrams(Impairment { jitter: Duration::from_millis(20), ..Impairment::NONE });
    let arrived = run(&mut close);
    assert!(arrived.iter().copied().eq(0..MILLION));
    assert_eq!(close.counters().reordered, 0);
}

#[test]
fn random_loss_has_the_configured_share() {
    for ppm in [0, 1, 10_000, 300_000, PPM_MAX] {
        let mut lossy = datagrams(Impairment { loss: Loss::Random { ppm }, ..Impairment::NONE });
        run(&mut lossy);
        // Five standard deviations.
        let tolerance = (25 * u64::from(ppm) * u64::from(PPM_MAX - ppm) / MILLION).isqrt();
        within(lossy.counters().dropped.loss, u64::from(ppm), tolerance);
    }
}

#[test]
fn bursts_have_the_configured_share_and_length() {
    let loss = Loss::GilbertElliott {
        good_to_bad_ppm: 10_000,
        bad_to_good_ppm: 250_000,
        loss_good_ppm: 0,
        loss_bad_ppm: PPM_MAX,
    };
    let mut lossy = datagrams(Impairment { loss, ..Impairment::NONE });
    let (mut bursts, mut before) = (0_u64, None);
    let lost = losses(&mut lossy, MILLION);
    for number in &lost {
        bursts += u64::from(before != number.checked_sub(1) || before.is_none());
        before = Some(*number);
    }
    // The bad state has a share of 1 / (1 + 25), and lasts four packets on average.
    within(lost.len() as u64, 38_462, 1_500);
    let length = lost.len() as u64 * 1_000 / bursts;
    println!("{length} thousandths of a packet a burst");
    assert!((3_900..=4_100).contains(&length), "{length}");
}

#[test]
fn the_bad_state_may_lose_only_a_part() {
    let loss = Loss::GilbertElliott {
        good_to_bad_ppm: 100_000,
        bad_to_good_ppm: 100_000,
        loss_good_ppm: 10_000,
        loss_bad_ppm: 400_000,
    };
    let mut lossy = datagrams(Impairment { loss, ..Impairment::NONE });
    run(&mut lossy);
    within(lossy.counters().dropped.loss, 205_000, 5_000);
}

#[test]
fn delayed_packets_are_overtaken() {
    let by = Duration::from_millis(10);
    let delay = Duration::from_millis(20);
    let delaying = Impairment { delay, reorder_ppm: PPM_MAX, reorder_by: by, ..Impairment::NONE };
    let mut emulator = datagrams(delaying);
    emulator.handle(ms(0), 100, 0);
    emulator.set(ms(1), Impairment { reorder_ppm: 0, ..delaying });
    (1..=12).for_each(|k| assert_eq!(emulator.handle(ms(k), 100, k), None));
    let order: Vec<u64> = arrivals(&mut emulator).iter().map(|&(_, item)| item).collect();
    // Of two packets that arrive at once, the one sent first is first.
    assert_eq!(order, [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 10, 11, 12]);
    assert_eq!(emulator.counters().reordered, 1);
}

#[test]
fn reordering_has_the_configured_share() {
    let by = Duration::from_millis(5);
    let some = Impairment { reorder_ppm: 50_000, reorder_by: by, ..Impairment::NONE };
    let mut emulator = datagrams(some);
    let mut arrived = run(&mut emulator);
    // A delayed packet is not overtaken if the four behind it are delayed too: once in 160 000.
    within(emulator.counters().reordered, 50_000, 1_200);
    arrived.sort_unstable();
    assert!(arrived.into_iter().eq(0..MILLION), "nothing is lost or duplicated");
}

#[test]
fn duplicates_follow_immediately() {
    let mut emulator = datagrams(Impairment { duplicate_ppm: 20_000, ..Impairment::NONE });
    let arrived = run(&mut emulator);
    within(emulator.counters().duplicated, 20_000, 700);
    let same = arrived.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert_eq!(same as u64, emulator.counters().duplicated);
    assert_eq!(emulator.counters().reordered, 0);
}

#[test]
fn packets_sent_in_a_blackout_never_arrive() {
    let usual = Impairment { delay: Duration::from_millis(10), ..Impairment::NONE };
    let mut emulator = datagrams(usual);
    assert_eq!(emulator.handle(ms(0), 100, 0), None);
    emulator.set(ms(1), Impairment { blackout: true, ..usual });
    assert_eq!(emulator.handle(ms(1), 100, 1), Some(1));
    emulator.set(ms(2), usual);
    assert_eq!(emulator.handle(ms(2), 100, 2), None);
    assert_eq!(arrivals(&mut emulator), [(ms(10), 0), (ms(12), 2)]);
    assert_eq!(emulator.counters().dropped.blackout, 1);
}

#[test]
fn a_reliable_wire_continues_after_a_blackout() {
    let usual = Impairment { delay: Duration::from_millis(10), ..Impairment::NONE };
    let mut emulator = reliable(usual);
    emulator.handle(ms(0), 100, 0);
    emulator.set(ms(5), Impairment { blackout: true, ..usual });
    emulator.handle(ms(6), 100, 1);
    assert_eq!((emulator.next_at(), emulator.poll(ms(900))), (Instant::FAR, None));
    emulator.set(ms(1_000), usual);
    emulator.handle(ms(1_001), 100, 2);
    // The round-trip time and the minimum timeout.
    assert_eq!(arrivals(&mut emulator), [(ms(1_220), 0), (ms(1_220), 1), (ms(1_220), 2)]);
    emulator.handle(ms(2_000), 100, 3);
    assert_eq!(arrivals(&mut emulator), [(ms(2_010), 3)]);
}

#[test]
fn a_loss_on_a_reliable_wire_delays_all_later_packets() {
    let delay = Duration::from_millis(20);
    let lossy = Impairment { delay, loss: Loss::Random { ppm: PPM_MAX }, ..Impairment::NONE };
    let mut emulator = reliable(lossy);
    emulator.handle(ms(0), 100, 0);
    emulator.set(ms(1), Impairment { loss: Loss::None, ..lossy });
    emulator.handle(ms(1), 100, 1);
    // Lost eight times: 240 ms, 480 ms and so on are 255 times the first timeout, plus 20 ms.
    assert_eq!(arrivals(&mut emulator), [(ms(61_220), 0), (ms(61_220), 1)]);
    assert_eq!(emulator.counters().retransmitted, 8);

    let everything = Impairment {
        loss: Loss::Random { ppm: 10_000 },
        jitter: Duration::from_millis(3),
        reorder_ppm: 10_000,
        duplicate_ppm: 10_000,
        ..lossy
    };
    let mut emulator = reliable(everything);
    assert!(run(&mut emulator).into_iter().eq(0..MILLION));
    let counters = emulator.counters();
    within(counters.retransmitted, 10_101, 600);
    assert_eq!((counters.reordered, counters.duplicated, counters.dropped.total()), (0, 0, 0));
}

#[test]
fn packets_in_flight_are_bounded() {
    let long = Impairment {
        delay: Duration::from_secs(1_000),
        duplicate_ppm: 500_000,
        reorder_ppm: 500_000,
        ..Impairment::NONE
    };
    let mut emulator = Emulator::new(WireKind::Datagrams, long, 100, 1);
    for number in 0..1_000_u64 {
        emulator.handle(ms(number), 100, number);
        assert!(emulator.in_flight() <= 100);
    }
    let counters = *emulator.counters();
    assert_eq!((counters.in_flight_max, emulator.in_flight()), (100, 100));
    assert_eq!(counters.packets + counters.duplicated, 100 + counters.dropped.overflow);
    emulator.clear();
    assert_eq!((emulator.next_at(), emulator.counters().dropped.cleared), (Instant::FAR, 100));
}

#[test]
fn a_shorter_delay_keeps_the_order_and_time_never_goes_back() {
    let long = Impairment { delay: Duration::from_millis(50), ..Impairment::NONE };
    let mut emulator = datagrams(long);
    emulator.handle(ms(10), 100, 0);
    emulator.set(ms(11), Impairment { delay: Duration::from_millis(5), ..long });
    emulator.handle(ms(12), 100, 1);
    emulator.handle(ms(2), 100, 2);
    assert_eq!(arrivals(&mut emulator), [(ms(60), 0), (ms(60), 1), (ms(60), 2)]);
    emulator.handle(ms(1), 100, 3);
    assert_eq!(arrivals(&mut emulator), [(ms(65), 3)]);
}

#[test]
fn each_decision_depends_only_on_the_seed() {
    let lossy = Impairment { loss: Loss::Random { ppm: 100_000 }, ..Impairment::NONE };
    let other = Impairment {
        jitter: Duration::from_millis(7),
        reorder_ppm: 50_000,
        duplicate_ppm: 50_000,
        ..lossy
    };
    let lost = |impairment, seed| {
        let mut emulator = Emulator::new(WireKind::Datagrams, impairment, 1_000, seed);
        losses(&mut emulator, 1_000)
    };
    assert_eq!(lost(lossy, 3), lost(lossy, 3));
    assert_ne!(lost(lossy, 3), lost(lossy, 4));
    assert_eq!(
        lost(lossy, 3),
        lost(other, 3),
        "jitter, reordering and duplicates change no losses"
    );
}

#[test]
fn an_impairment_reports_whether_it_keeps_all_packets() {
    assert!(Impairment::default().keeps_all());
    let rate = Capacity::from_bits_per_s(1_000).ok();
    let slow = Impairment { rate, jitter: Duration::from_secs(1), ..Impairment::NONE };
    assert!(slow.keeps_all());
    for bad in [
        Impairment { loss: Loss::Random { ppm: 1 }, ..slow },
        Impairment { reorder_ppm: 1, ..slow },
        Impairment { duplicate_ppm: 1, ..slow },
        Impairment { blackout: true, ..slow },
    ] {
        assert!(!bad.keeps_all(), "{bad:?}");
    }
}

use super::*;
use std::string::{String, ToString};
use std::vec::Vec;

fn parse(text: &str) -> Constraint {
    text.parse().unwrap()
}

fn policer(text: &str) -> Policer {
    Policer::new(parse(text))
}

fn ns(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

/// Sends packets of `len` as early as the policer permits, up to `until`. Returns their instants.
fn greedy(policer: &mut Policer, len: u64, until: Instant) -> Vec<u64> {
    let (mut now, mut sent) = (Instant::ZERO, Vec::new());
    while now <= until {
        match policer.police(now, len) {
            Conformance::Conforms => sent.push(now.as_nanos()),
            Conformance::At(at) => now = at,
            Conformance::Never => break,
        }
    }
    sent
}

#[test]
fn a_greedy_source_gets_exactly_the_burst_and_the_rate() {
    // 10 Mbit/s is a byte each 800 ns, so packets of 1,500 bytes are exactly 1.2 ms apart.
    let sent = greedy(&mut policer("leaky:22500B,10mbit"), 1_500, Instant::from_millis(1_000));
    assert_eq!(sent.iter().filter(|&&at| at == 0).count(), 15);
    assert!(sent.iter().skip(15).zip(1..).all(|(&at, n)| at == n * 1_200_000));
    let bound = parse("leaky:22500B,10mbit").bound(Duration::from_secs(1));
    assert_eq!((bound, sent.len() as u64), (22_500 + 1_250_000, bound / 1_500));
    // At 3 bit/s and 7 packets/s the spacing is not a whole number of nanoseconds. Rounding loses
    // nothing, as long as the burst has room for one packet in addition to the one that waits for its
    // nanosecond.
    let slow = greedy(&mut policer("leaky:2B,3bit"), 1, Instant::from_millis(3_600_000));
    assert_eq!(slow.len(), 2 + 3 * 3_600 / 8);
    let odd = greedy(&mut policer("leaky:2p,7p/s"), 9_999, Instant::from_millis(1_000_000));
    assert_eq!(odd.len(), 2 + 7_000);
}

#[test]
fn rates_from_one_bit_to_beyond_a_terabit_are_kept_exactly() {
    for rate in [1, 2, 999, 280_000_000, 68_000_000_000, 69_000_000_000, 800_000_000_000] {
        let constraint = Constraint::leaky(PolicedUnit::Bytes, 9_000, rate).unwrap();
        let mut policer = Policer::new(constraint);
        let (mut now, mut bytes) = (Instant::ZERO, 0u64);
        for _ in 0..10_000 {
            match policer.police(now, 64) {
                Conformance::Conforms => bytes += 64,
                Conformance::At(at) => now = at,
                Conformance::Never => panic!("{rate}"),
            }
        }
        let bound = constraint.bound(now.since(Instant::ZERO));
        assert!(bytes <= bound && bytes + 128 > bound, "{rate}: {bytes} of {bound}");
    }
}

#[test]
fn a_jumping_window_lets_twice_its_burst_through_at_once() {
    let mut window = policer("jumping:22500B,18ms");
    let end = Instant::from_millis(18) - Duration::from_nanos(1);
    for at in [end, end + Duration::from_nanos(1)] {
        for _ in 0..5 {
            assert_eq!(window.police(at, 4_500), Conformance::Conforms);
        }
        let next = at.as_nanos() / 18_000_000 + 1;
        assert_eq!(window.police(at, 1), Conformance::At(ns(next * 18_000_000)));
        assert_eq!(window.police(at, 0), Conformance::Conforms);
    }
    let bound = |nanos| window.constraint().bound(Duration::from_nanos(nanos));
    assert_eq!((bound(0), bound(1), bound(18_000_000)), (22_500, 45_000, 45_000));
    assert_eq!(bound(18_000_001), 67_500);
}

#[test]
fn a_moving_window_spaces_packets_and_never_doubles_its_burst() {
    let mut window = policer("moving:2ms,10ms,50ms,1500B");
    let sent = greedy(&mut window, 1_500, Instant::from_millis(110));
    let millis: Vec<u64> = sent.iter().map(|nanos| nanos / 1_000_000).collect();
    assert_eq!(millis, [0, 2, 4, 6, 8, 50, 52, 54, 56, 58, 100, 102, 104, 106, 108]);
    assert_eq!(window.check(Instant::from_millis(200), 1_501), Conformance::Never);
    let bound = |millis| window.constraint().bound(Duration::from_millis(millis));
    assert_eq!([bound(0), bound(2), bound(8), bound(49)], [1_500, 3_000, 7_500, 7_500]);
    assert_eq!([bound(50), bound(52), bound(100)], [9_000, 10_500, 16_500]);
}

#[test]
fn a_dual_bucket_sends_its_burst_at_the_peak_rate() {
    let mut dual = policer("dual:1500B,100mbit,22500B,10mbit");
    let sent = greedy(&mut dual, 1_500, Instant::from_millis(100));
    // b − M at p − r: 21,000 bytes at 90 Mbit/s take 1.867 ms; 16 packets are sent by then.
    let last_at_peak = sent.iter().zip(sent.iter().skip(1)).filter(|(a, b)| *b - *a == 120_000);
    assert_eq!(last_at_peak.count(), 15);
    assert!(sent.iter().zip(sent.iter().skip(17)).skip(1).all(|(a, b)| b - a > 1_200_000));
    let bound = |nanos| dual.constraint().bound(Duration::from_nanos(nanos));
    assert_eq!((bound(0), bound(120_000), bound(100_000_000)), (1_500, 3_000, 147_500));
}

#[test]
fn every_bound_is_reached() {
    for text in [
        "leaky:5p,7p/s",
        "leaky:3B,70kbit",
        "moving:2ms,10ms,50ms,1p",
        "moving:0s,7ms,50ms,1p",
        "dual:1p,100p/s,9p,10p/s",
    ] {
        let constraint = parse(text);
        let sent = greedy(&mut Policer::new(constraint), 1, Instant::from_millis(200));
        for (count, &at) in (1..).zip(&sent) {
            let reached = sent.iter().filter(|&&other| other <= at).count();
            let bound = constraint.bound(Duration::from_nanos(at));
            assert_eq!(bound, reached as u64, "{text}: packet {count} at {at}");
        }
    }
}

/// The leaky bucket as built in seed 003: a credit of one packet after a number of ticks of a 1 ms
/// timer.
fn timer_driven(requested_mbits: u64, packet: u64, until_ms: u64) -> (u64, u64) {
    let period_ms = packet * 8 / (requested_mbits * 1_000);
    let burst = 22_500 / packet;
    let (mut credit, mut sent) = (burst, 0);
    for now in 0..until_ms {
        if now % period_ms == 0 && now > 0 {
            credit = (credit + 1).min(burst);
        }
        sent += credit;
        credit = 0;
    }
    (period_ms, sent - burst)
}

#[test]
fn a_timer_exceeds_the_rate_by_a_fifth_and_the_clock_meets_it() {
    let (period_ms, packets) = timer_driven(10, 4_500, 9_001);
    assert_eq!(period_ms, 3);
    assert_eq!(packets * 4_500 * 8 / 9, 12_000_000);
    let sent = greedy(&mut policer("leaky:22500B,10mbit"), 4_500, Instant::from_millis(9_000));
    let burst = sent.iter().filter(|&&at| at == 0).count() as u64;
    assert_eq!(burst, 5);
    assert_eq!((sent.len() as u64 - burst) * 4_500 * 8 / 9, 10_000_000);
    // The window that XTP uses for this burst and this rate.
    let window = Duration::from_nanos(22_500 * 8_000_000_000 / 10_000_000);
    assert_eq!(window, Duration::from_millis(18));
    let sent = greedy(&mut policer("jumping:22500B,18ms"), 4_500, Instant::from_millis(17_999));
    assert_eq!(sent.len() as u64 * 4_500 * 8 / 18, 10_000_000);
}

#[test]
fn packet_and_byte_limits_combine_and_a_refusal_charges_nothing() {
    let mut both: Combined = "leaky:8000B,8kbit + leaky:4p,1p/s".parse().unwrap();
    for _ in 0..4 {
        assert_eq!(both.police(Instant::ZERO, 1), Conformance::Conforms);
    }
    assert_eq!(both.police(Instant::ZERO, 1), Conformance::At(Instant::from_millis(1_000)));
    // 7,996 bytes are left, and refused requests do not use them up.
    for _ in 0..100 {
        assert_eq!(both.police(Instant::ZERO, 7_996), Conformance::At(Instant::from_millis(1_000)));
    }
    assert_eq!(both.police(Instant::from_millis(1_000), 7_996), Conformance::Conforms);
    assert_eq!(both.police(Instant::from_millis(1_000), 8_001), Conformance::Never);
    assert_eq!(Combined::default().police(Instant::ZERO, u64::MAX), Conformance::Conforms);
}

#[test]
fn nonconforming_packets_wait_or_drop_or_become_best_effort() {
    let police = |action: &str| -> Police {
        std::format!("leaky:1000B,8kbit else {action}").parse().unwrap()
    };
    for (action, soon, too_long) in [
        ("delay", PoliceResult::DelayUntil(Instant::from_millis(500)), PoliceResult::Drop),
        ("drop", PoliceResult::Drop, PoliceResult::Drop),
        ("demote", PoliceResult::Demote, PoliceResult::Demote),
    ] {
        let mut police = police(action);
        assert_eq!(police.police(Instant::ZERO, 1_000), PoliceResult::Pass);
        assert_eq!(police.police(Instant::ZERO, 500), soon);
        assert_eq!(police.police(Instant::ZERO, 1_001), too_long);
        assert_eq!(police.police(Instant::from_millis(500), 500), PoliceResult::Pass);
    }
}

#[test]
fn a_backward_clock_grants_nothing() {
    for text in ["leaky:10B,8bit", "jumping:10B,10s", "moving:0s,1s,10s,10B"] {
        let mut policer = policer(text);
        let now = Instant::from_millis(15_000);
        while policer.police(now, 1) == Conformance::Conforms {}
        let Conformance::At(at) = policer.check(now, 1) else { panic!("{text}") };
        for back in [Instant::ZERO, Instant::from_millis(9_999), now] {
            assert_eq!(policer.check(back, 1), Conformance::At(at), "{text}");
        }
        assert_eq!(policer.check(at, 1), Conformance::Conforms);
    }
}

#[test]
fn years_of_silence_give_one_burst_and_no_more() {
    let years = ns(u64::MAX - 20_000_000_000);
    let constraints =
        ["leaky:3p,1p/s", "jumping:3p,1s", "moving:0s,1s,3s,1p", "dual:1p,9p/s,3p,1p/s"];
    for text in constraints {
        let mut policer = policer(text);
        assert_eq!(policer.police(ns(1), 1), Conformance::Conforms);
        let burst = policer.constraint().bound(Duration::ZERO);
        for _ in 0..burst {
            assert_eq!(policer.police(years, 1), Conformance::Conforms, "{text}");
        }
        assert!(matches!(policer.police(years, 1), Conformance::At(at) if at > years), "{text}");
    }
}

#[test]
fn an_instant_beyond_the_clock_is_never() {
    let mut slow = Policer::new(Constraint::leaky(PolicedUnit::Bytes, u64::MAX, 1).unwrap());
    assert_eq!(slow.police(Instant::ZERO, u64::MAX), Conformance::Conforms);
    assert_eq!(slow.police(Instant::ZERO, u64::MAX), Conformance::Never);
    assert_eq!(slow.police(Instant::ZERO, 1), Conformance::At(Instant::from_millis(8_000)));
    let mut last = policer("jumping:1B,18000s");
    assert_eq!(last.police(Instant::FAR, 1), Conformance::Conforms);
    assert_eq!(last.police(Instant::FAR, 1), Conformance::Never);
    assert_eq!(parse("leaky:1B,800gbit").bound(Duration::MAX), u64::MAX);
}

#[test]
fn forced_charges_delay_later_packets() {
    let mut policer = policer("leaky:1000B,8kbit");
    policer.charge(Instant::ZERO, 3_000);
    assert_eq!(policer.check(Instant::ZERO, 1), Conformance::At(Instant::from_millis(2_001)));
    for _ in 0..3 {
        policer.charge(Instant::ZERO, u64::MAX);
    }
    assert_eq!(policer.check(Instant::ZERO, 0), Conformance::Never);
}

#[test]
fn constraints_round_trip_through_text() {
    for text in [
        "leaky:22500B,10mbit",
        "leaky:32p,2500p/s",
        "jumping:5p,18ms",
        "moving:0ns,10ms,1s,1500B",
        "dual:1500B,100mbit,22500B,1544kbit",
    ] {
        assert_eq!(parse(text).to_string(), text);
    }
    assert_eq!(parse(" leaky: 22.5kB , 1.25 MB/s"), parse("leaky:22500B,10 Mbit/s"));
    assert_eq!(parse("jumping:1B,1500us"), parse("jumping:1B,1.5ms"));
}

#[test]
fn errors_name_the_field_its_value_its_range_and_a_fix() {
    let error = |text: &str| -> String { text.parse::<Police>().unwrap_err().to_string() };
    for (text, parts) in [
        ("leaky:0B,1mbit else drop", ["burst is 0 bytes", "from 1 to", "largest packet"]),
        ("leaky:1p,0p/s else drop", ["rate is 0 packets/s", "from 1 to", "omit the policer"]),
        ("leaky:1B,1000000001gbit else drop", ["bit/s", "to 1000000000000000000", "omit"]),
        ("jumping:1B,0ms else drop", ["window is 0", "1 ns or more", "18ms"]),
        ("moving:1ms,0s,1s,1B else drop", ["average time between packets is 0", "1 ns", "ms"]),
        ("moving:2ms,1ms,1s,1B else drop", ["2 ms", "from 0 to the average of 1 ms", "lower it"]),
        ("moving:0s,2s,1s,1B else drop", ["interval is 1 s", "at least", "raise it"]),
        ("moving:0s,1us,1s,1B else drop", ["1 s", "more than 16384 packets", "shorten"]),
        ("moving:0s,1s,1s,2p else drop", ["2 packets", "must be 1", "in bytes"]),
        ("moving:0s,1s,1s,0B else drop", ["largest packet is 0 bytes", "from 1", "give"]),
        ("dual:1B,1mbit,9B,2mbit else drop", ["1000000 bit/s", "from the sustained", "raise"]),
        ("dual:9B,2mbit,1B,1mbit else drop", ["9 bytes", "from 1 to 1", "lower it"]),
        ("bucket:1B,1mbit else drop", ["'bucket'", "leaky, jumping, moving or dual", "example"]),
        ("leaky else drop", ["0 parameters", "leaky:BURST,RATE", "leaky:22500B,10mbit"]),
        ("leaky:1B,1bit,1bit else drop", ["3 parameters", "BURST", "example"]),
        ("leaky:1,1mbit else drop", ["burst '1'", "its unit", "22500B"]),
        ("leaky:1.5B,1mbit else drop", ["burst '1.5B'", "whole", "22500B"]),
        ("leaky:1B,10m else drop", ["rate '10m'", "mbit", "10mbit"]),
        ("jumping:1B,18 else drop", ["window '18'", "with a unit", "18ms"]),
        ("jumping:1B,18446744074s else drop", ["window '18446744074s'", "whole", "18ms"]),
        ("leaky:5p,10mbit else drop", ["bytes and packets at once", "write leaky", "join"]),
        ("leaky:5p,10p/s", ["action ''", "not known", "else delay, else drop or else demote"]),
        ("leaky:5p,10p/s else wait", ["action 'wait'", "not known", "else drop"]),
    ] {
        let error = error(text);
        assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
    }
    let nine = std::vec!["leaky:1p,1p/s"; 9].join("+");
    assert!(nine.parse::<Combined>().unwrap_err().to_string().contains("9 policers"));
    let thin = parse("leaky:1499B,1mbit").for_packets_of(1_500).unwrap_err().to_string();
    assert!(thin.contains("1499 bytes") && thin.contains("1500 bytes"), "{thin}");
    assert!(parse("leaky:1p,1p/s").for_packets_of(u64::MAX).is_ok());
}

#[test]
fn parsing_any_text_never_panics() {
    let alphabet: Vec<char> =
        "leakyjumpingmovdual:,.0123456789BkMGbitp/snu µs+else".chars().collect();
    let mut seed = 7u64;
    let mut random = |most: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(seed >> 33).unwrap() % most
    };
    for _ in 0..50_000 {
        let mut text = ["leaky:", "jumping:1B,", "moving:", "dual:", ""][random(5)].to_string();
        for _ in 0..random(24) {
            text.push(alphabet[random(alphabet.len())]);
        }
        let _ = (text.parse::<Constraint>(), text.parse::<Police>());
    }
}

#[test]
fn a_policer_is_small() {
    assert!(size_of::<Policer>() <= 96, "{}", size_of::<Policer>());
}

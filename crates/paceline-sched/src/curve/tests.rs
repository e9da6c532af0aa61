use super::*;
use crate::capacity::Capacity;
use std::string::ToString;
use std::vec::Vec;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn curve(m1: u64, d: Duration, m2: u64) -> Curve {
    Curve::two_piece(m1, d, m2).unwrap()
}

/// SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number of random magnitude up to 2^`bits`.
fn magnitude(state: &mut u64, bits: u64) -> u64 {
    let width = random(state) % bits;
    random(state) & ((1 << width) | ((1 << width) - 1))
}

#[test]
fn a_curve_with_equal_pieces_has_one_piece_and_others_have_two() {
    let voice = curve(6_000_000, ms(10), 2_000_000);
    assert!(voice.is_concave());
    assert_eq!(voice.bytes_at(ms(10)), 7_500);
    assert_eq!(voice.bytes_at(ms(18)), 9_500);
    assert_eq!(voice.time_for(7_500), ms(10));
    assert_eq!(voice.time_for(9_500), ms(18));
    assert_eq!(voice.time_for(0), Duration::ZERO);
    assert_eq!(voice.to_string(), "6000000 bit/s for 10 ms, then 2000000 bit/s");

    let late = curve(0, ms(5), 8_000);
    assert!(!late.is_concave());
    assert_eq!(late.bytes_at(ms(5)), 0);
    assert_eq!(late.time_for(1), ms(6));
    assert_eq!(late.time_for(0), Duration::ZERO);

    let line = Curve::linear(8_000).unwrap();
    assert_eq!(curve(8_000, ms(7), 8_000), line);
    assert_eq!(curve(1, Duration::ZERO, 8_000), line);
    assert_eq!((line.m1(), line.d(), line.m2()), (8_000, Duration::ZERO, 8_000));
    assert_eq!(line.time_for(3), ms(3));
    assert_eq!(line.to_string(), "8000 bit/s");
}

#[test]
fn a_burst_is_served_within_its_time_and_the_rate_holds_in_the_long_run() {
    // tc-hfsc(8): m1 = umax ÷ dmax if the burst is steeper than the rate.
    let steep = Curve::burst(1_500, ms(10), 400_000).unwrap();
    assert_eq!((steep.m1(), steep.d(), steep.m2()), (1_200_000, ms(10), 400_000));
    // Otherwise nothing before dmax − umax ÷ rate: 20 ms − 1,500 bytes at 1.2 Mbit/s.
    let flat = Curve::burst(1_500, ms(20), 1_200_000).unwrap();
    assert_eq!((flat.m1(), flat.d(), flat.m2()), (0, ms(10), 1_200_000));
    assert_eq!(Curve::burst(1_500, ms(10), 1_200_000), Curve::linear(1_200_000));
    assert_eq!(Curve::burst(0, Duration::ZERO, 9), Curve::linear(9));
    assert_eq!(Curve::burst(0, ms(3), 9), Curve::two_piece(0, ms(3), 9));
    let mut state = 1;
    for _ in 0..20_000 {
        let (umax, dmax) =
            (magnitude(&mut state, 40), Duration::from_nanos(magnitude(&mut state, 50)));
        let rate = magnitude(&mut state, 43) + 1;
        if let Ok(curve) = Curve::burst(umax, dmax, rate) {
            assert!(curve.bytes_at(dmax) >= umax, "{umax} bytes in {dmax} at {rate}: {curve}");
            assert!(curve.time_for(umax) <= dmax, "{umax} bytes in {dmax} at {rate}: {curve}");
            assert_eq!(curve.m2(), rate);
        }
    }
}

#[test]
fn invalid_curves_are_refused_with_names_and_numbers() {
    let error = |curve: Result<Curve, CurveError>| curve.unwrap_err().to_string();
    assert_eq!(Curve::linear(0), Err(CurveError::Nothing));
    assert_eq!(Curve::two_piece(0, ms(5), 0), Err(CurveError::Nothing));
    assert_eq!(Curve::two_piece(7, Duration::ZERO, 0), Err(CurveError::Nothing));
    assert_eq!(Curve::burst(0, ms(5), 0), Err(CurveError::Nothing));
    assert_eq!(Curve::two_piece(7, ms(5), 0), Err(CurveError::Ends { m1: 7, d: ms(5) }));
    assert!(matches!(Curve::burst(10, ms(5), 0), Err(CurveError::Ends { .. })));
    assert!(error(Curve::linear(0)).contains("from 1 to 10000000000000 bit/s"));
    let much = RATE_MAX + 1;
    assert!(error(Curve::linear(much)).contains("m2 = 10000000000001 bit/s"));
    assert!(error(Curve::two_piece(much, ms(1), 1)).contains("m1 = 10000000000001 bit/s"));
    assert!(error(Curve::burst(u64::MAX, Duration::from_nanos(1), 1)).contains("m1"));
    assert!(error(Curve::burst(9, Duration::ZERO, 1)).contains("burst of 9 bytes within 0 ns"));
    assert!(error(Curve::two_piece(7, ms(5), 0)).contains("7 bit/s for 5 ms, then 0 bit/s"));
}

#[test]
fn the_inverse_is_the_first_nanosecond_at_which_the_bytes_are_served() {
    let mut state = 2;
    for _ in 0..20_000 {
        let (m1, m2) = (magnitude(&mut state, 43), magnitude(&mut state, 43) + 1);
        let (m1, m2) = (m1.min(RATE_MAX), m2.min(RATE_MAX));
        let curve = curve(m1, Duration::from_nanos(magnitude(&mut state, 60)), m2);
        let bytes = magnitude(&mut state, 63);
        let time = curve.time_for(bytes);
        if time == Duration::MAX {
            assert!(curve.bytes_at(Duration::from_nanos(u64::MAX - 1)) < bytes, "{curve}: {bytes}");
            continue;
        }
        assert!(curve.bytes_at(time) >= bytes, "{curve}: {bytes} bytes at {time}");
        if !time.is_zero() {
            let before = time.saturating_sub(Duration::from_nanos(1));
            assert!(curve.bytes_at(before) < bytes, "{curve}: {bytes} bytes before {time}");
        }
    }
}

#[test]
fn the_slowest_and_the_fastest_rates_are_exact_and_the_ends_saturate() {
    let slow = Curve::linear(1).unwrap();
    assert_eq!(slow.time_for(1), Duration::from_secs(8));
    assert_eq!(slow.bytes_at(Duration::from_secs(80)), 10);
    assert_eq!(slow.bytes_at(Duration::MAX), u64::MAX / 8_000_000_000);
    assert_eq!(slow.time_for(u64::MAX), Duration::MAX);
    let fast = Curve::linear(800_000_000_000).unwrap();
    assert_eq!(fast.bytes_at(Duration::from_nanos(1)), 100);
    assert_eq!(fast.time_for(101), Duration::from_nanos(2));
    assert_eq!(fast.bytes_at(Duration::MAX), u64::MAX);
    let fastest = curve(RATE_MAX, Duration::MAX, 1);
    assert_eq!(fastest.bytes_at(Duration::MAX), u64::MAX);
    assert_eq!(curve(0, Duration::MAX, RATE_MAX).time_for(1), Duration::MAX);
}

#[test]
fn curves_fit_only_if_they_fit_at_every_corner_and_in_the_long_run() {
    let link = Capacity::from_bits_per_s(10_000_000).unwrap();
    let a = curve(6_000_000, ms(10), 2_000_000);
    // At 10 ms 80 kbit of 100 kbit, then 9 of 10 Mbit/s.
    assert_eq!(fits(&[a, curve(2_000_000, ms(10), 7_000_000)], link), Ok(()));
    // At 10 ms 110 kbit of 100 kbit, although again 9 of 10 Mbit/s.
    let refused = fits(&[a, curve(5_000_000, ms(10), 7_000_000)], link);
    let expected = FitError::Burst { at: ms(10), promised: 13_750, carried: 12_500 };
    assert_eq!(refused, Err(expected));
    let text = expected.to_string();
    assert!(text.contains("13750 bytes within 10 ms") && text.contains("carries 12500"), "{text}");
    let rates = fits(&[a, curve(0, ms(10), 8_000_001)], link);
    assert_eq!(rates, Err(FitError::Rate { promised: 10_000_001, carried: 10_000_000 }));
    assert!(rates.unwrap_err().to_string().contains("promise 10000001 bit/s"));
    assert_eq!(fits(&[a, curve(0, ms(10), 8_000_000)], link), Ok(()));
    assert_eq!(fits(&[], link), Ok(()));
    let huge = [curve(RATE_MAX, Duration::MAX, 1); 3];
    assert!(fits(&huge, link).is_err());
}

#[test]
fn the_admission_test_agrees_with_adding_up_the_curves_at_every_corner() {
    let mut state = 3;
    let (mut fitting, mut refused) = (0, 0);
    for _ in 0..5_000 {
        let number = 1 + random(&mut state) % 6;
        let curves: Vec<Curve> = (0..number)
            .map(|_| {
                let rate = |state: &mut u64| 1 + random(state) % 4_000;
                let (m1, m2) = (rate(&mut state), rate(&mut state));
                curve(m1, ms(random(&mut state) % 50), m2)
            })
            .collect();
        let link = Capacity::from_bytes_per_s(1 + random(&mut state) % 2_000).unwrap();
        let bits = u128::from(link.bits_per_s());
        let sum = |at: Duration| -> u128 {
            curves.iter().map(|c| c.nanobits_at(u128::from(at.as_nanos()))).sum()
        };
        let corner =
            curves.iter().map(Curve::d).filter(|&d| sum(d) > bits * u128::from(d.as_nanos()));
        let rates: u64 = curves.iter().map(Curve::m2).sum();
        match fits(&curves, link) {
            Ok(()) => {
                assert_eq!((corner.min(), u128::from(rates) <= bits), (None, true));
                fitting += 1;
            }
            Err(FitError::Burst { at, .. }) => assert_eq!(corner.min(), Some(at)),
            Err(FitError::Rate { promised, .. }) => {
                assert_eq!((corner.min(), promised), (None, rates));
                refused += 1;
            }
        }
    }
    assert!(fitting > 100 && refused > 100, "{fitting} fitting, {refused} refused");
}

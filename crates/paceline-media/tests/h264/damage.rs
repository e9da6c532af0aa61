//! Damaged streams: every unit still has exactly one event, nothing panics, and decoding recovers at the
//! next I unit.

use openh264::encoder::Profile;
use paceline_media::h264::{Class, Event, Transcoder, Want, info, split};
use proptest::prelude::*;

use crate::support::{MADE, Made, classify, cut, size, slices, transcode};

/// Returns two groups of an I and two P units, small enough to damage byte by byte.
fn small(profile: Profile) -> Vec<Vec<u8>> {
    Made { size: "160x120", pictures: 6, every: 3, bits: 60_000, profile, ..MADE }.units()
}

fn transcoder() -> Transcoder {
    Transcoder::new(Some(size("80x60")), 10.0).unwrap()
}

/// Returns offsets in `unit` that affect different parts of a decoder: each start code and NAL header,
/// each byte of parameter sets, slice headers, and some slice data.
fn places(unit: &[u8]) -> Vec<(&'static str, usize)> {
    let mut places = Vec::new();
    let starts = (0..unit.len()).filter(|&at| unit[at..].starts_with(&[0, 0, 0, 1]));
    let starts: Vec<_> = starts.chain([unit.len()]).collect();
    for pair in starts.windows(2) {
        let (begin, end) = (pair[0], pair[1]);
        places.extend((begin..begin + 4).map(|at| ("start code", at)));
        places.push(("NAL header", begin + 4));
        let what = match unit[begin + 4] & 0x1f {
            7 => "SPS",
            8 => "PPS",
            _ => "slice header",
        };
        let head = if what == "slice header" { end.min(begin + 15) } else { end };
        places.extend((begin + 5..head).map(|at| (what, at)));
        places.extend((head..end).step_by(37).map(|at| ("slice data", at)));
    }
    places
}

#[test]
fn damage_at_every_kind_of_byte_is_reported_and_recovered() {
    for profile in [Profile::Baseline, Profile::High] {
        let units = small(profile);
        for number in 0..3 {
            let places = places(&units[number]);
            for (what, at) in places {
                for change in [0x01, 0x80, 0xff] {
                    let mut damaged = units.clone();
                    damaged[number][at] ^= change;
                    let output = transcode(&mut transcoder(), slices(&damaged), |_| true);
                    let repaired = &output.events[3..];
                    assert!(
                        repaired.iter().all(|event| matches!(event, Event::Coded { .. })),
                        "unit {number}, {what} at {at} ^ {change:#x}: {repaired:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn truncation_anywhere_is_reported_and_recovered() {
    for profile in [Profile::Baseline, Profile::High] {
        let units = small(profile);
        for number in 0..3 {
            for len in (0..units[number].len()).filter(|len| *len < 40 || len % 29 == 0) {
                let mut damaged = units.clone();
                damaged[number].truncate(len);
                let output = transcode(&mut transcoder(), slices(&damaged), |_| true);
                let repaired = &output.events[3..];
                let coded = repaired.iter().all(|event| matches!(event, Event::Coded { .. }));
                assert!(coded, "unit {number} cut to {len} bytes: {repaired:?}");
                assert!(!output.failed().is_empty(), "unit {number} cut to {len} bytes");
            }
        }
    }
}

#[test]
fn lost_and_added_emulation_prevention_is_reported_and_recovered() {
    let large = Made { size: "320x240", pictures: 6, every: 3, bits: 4_000_000, ..MADE }.units();
    let mut tried = 0;
    for number in 0..3 {
        let unit = &large[number];
        let escapes = (5..unit.len() - 3).filter(|&at| unit[at..].starts_with(&[0, 0, 3]));
        for at in escapes.take(8) {
            tried += 1;
            let mut lost = large.clone();
            lost[number].remove(at + 2);
            let mut doubled = large.clone();
            doubled[number].insert(at + 2, 3);
            let mut forbidden = large.clone();
            forbidden[number][at + 2] = 2;
            for damaged in [lost, doubled, forbidden] {
                let output = transcode(&mut transcoder(), slices(&damaged), |_| true);
                assert!(
                    output.events[3..].iter().all(|event| matches!(event, Event::Coded { .. }))
                );
            }
        }
    }
    println!("{tried} emulation prevention bytes");
    assert!(tried > 0);
}

#[test]
fn invalid_units_fail() {
    let units = MADE.units();
    let zeros = vec![0; 65_536];
    let two = [&units[0][..], &units[1]].concat();
    let stream = [b"", &zeros[..], b"no start code", &[0, 0, 1], &two];
    let output = transcode(&mut transcoder(), stream, |_| true);
    let failed = output.failed();
    assert_eq!(failed.len(), 5);
    assert!(failed[0].contains("no bytes at all"));
    assert!(failed[1].contains("65536 bytes without a start code"));
    assert!(failed[4].contains("a second picture begins in one access unit; cut the stream with"));
}

#[test]
fn a_unit_of_the_wrong_class_has_no_effect() {
    let units = small(Profile::High);
    for wrong in [Class::I, Class::P, Class::B] {
        let (mut transcoder, mut events) = (transcoder(), Vec::new());
        for unit in &units {
            transcoder.push(unit, wrong, &mut |_| Want::Yes, &mut |event| events.push(event));
        }
        transcoder.flush(&mut |_| Want::Yes, &mut |event| events.push(event));
        assert_eq!(events.len(), 6);
        assert!(events.iter().all(|event| matches!(event, Event::Coded { .. })));
    }
}

#[test]
fn parameter_sets_that_change_in_a_p_unit_are_refused() {
    let (high, base) = (small(Profile::High), small(Profile::Baseline));
    let end = base[0].windows(5).position(|bytes| bytes == [0, 0, 0, 1, 0x65]).unwrap();
    let mut units = high.clone();
    units[1] = [&base[0][..end], &high[1]].concat();
    let output = transcode(&mut transcoder(), slices(&units), |_| true);
    assert_eq!((output.coded().len(), output.failed().len()), (4, 2));
    assert!(output.failed()[0].contains("the SPS changes at a unit that is not I"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_bytes_have_one_event_each(
        units in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..6),
    ) {
        let bytes = units.concat();
        let _ = (info(&bytes), classify(&bytes), split(&bytes).count());
        transcode(&mut transcoder(), slices(&units), |_| true);
    }

    #[test]
    fn random_changes_have_one_event_per_unit(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        high in any::<bool>(),
    ) {
        let units = small(if high { Profile::High } else { Profile::Baseline });
        let mut stream = units.concat();
        for (place, byte) in changes {
            let at = place.index(stream.len());
            stream[at] = byte;
        }
        let whole: Vec<_> = split(&stream).map_while(Result::ok).map(|unit| unit.bytes).collect();
        transcode(&mut transcoder(), whole, |number| number % 2 == 0);
    }

    #[test]
    fn random_order_has_one_event_per_unit(
        order in prop::collection::vec((0..6_usize, any::<bool>()), 1..30),
    ) {
        let all = [small(Profile::High), small(Profile::Baseline)];
        let units = order.iter().map(|&(number, high)| all[usize::from(high)][number].as_slice());
        transcode(&mut transcoder(), units, |_| true);
    }
}

#[test]
fn damage_in_one_long_stream_costs_at_most_a_border() {
    let units = small(Profile::Baseline);
    let whole = units.concat();
    let begin = units[0].len() + units[1].len();
    for at in begin + 5..begin + 15 {
        for change in [0x01, 0x80, 0xff] {
            let mut stream = whole.clone();
            stream[at] ^= change;
            let cut = cut(&stream);
            assert!((5..=6).contains(&cut.len()), "{} units, {at} ^ {change:#x}", cut.len());
            assert_eq!(cut.concat(), stream);
        }
    }
}

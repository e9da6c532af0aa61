//! Test cards encoded by an encoder.

use openh264::encoder::Profile;
use paceline_media::MediaError;
use paceline_media::h264::{Class, Event, HAS_TRANSCODER, ParameterSets, Transcoder, info};

use crate::support::{MADE, Made, Shown, classes, classify, cut, decode, size, slices, transcode};

#[test]
fn an_encoders_stream_is_cut_into_its_pictures() {
    for (slice, profile) in
        [(None, Profile::Baseline), (Some(600), Profile::Baseline), (None, Profile::High)]
    {
        let units = Made { slice, profile, ..MADE }.units();
        let stream = units.concat();
        assert_eq!(cut(&stream), units);
        assert_eq!(classes(slices(&units)), "IPPPPPPPPP".repeat(3));
        assert_eq!(info(&stream).unwrap().unwrap().size, size("320x240"));
        let nals = stream.windows(4).filter(|bytes| bytes == &[0, 0, 0, 1]).count();
        assert_eq!(nals > 100, slice.is_some(), "{nals} NAL units");
    }
    let cropped = Made { size: "322x182", pictures: 1, ..MADE }.units();
    assert_eq!(info(&cropped[0]).unwrap().unwrap().size, size("322x182"));
}

#[test]
fn only_requested_pictures_are_output_at_the_requested_size() {
    const { assert!(HAS_TRANSCODER) };
    for profile in [Profile::Baseline, Profile::High] {
        for (to, shown) in
            [(Some("160x120"), "160x120"), (Some("200x240"), "200x240"), (None, "320x240")]
        {
            let units = Made { profile, ..MADE }.units();
            let mut transcoder = Transcoder::new(to.map(size), 10.0).unwrap();
            let output = transcode(&mut transcoder, slices(&units), |number| number % 3 == 0);
            assert_eq!(output.asked, (0..30).collect::<Vec<_>>());
            assert_eq!(output.failed(), [""; 0]);
            let pictures = output.shown();
            let cards: Vec<_> = pictures.iter().map(|picture| picture.card).collect();
            assert_eq!(cards, (0..10).map(|number| Some(number * 3)).collect::<Vec<_>>());
            assert!(pictures.iter().all(|picture| picture.size == size(shown)));
            for (number, event) in output.events.iter().enumerate() {
                assert_eq!(matches!(event, Event::Coded { .. }), number % 3 == 0);
            }
        }
    }
}

#[test]
fn i_pictures_come_first_every_two_seconds_and_on_request() {
    let units = Made { pictures: 24, every: 100, ..MADE }.units();
    let mut transcoder = Transcoder::new(Some(size("160x120")), 2.5).unwrap();
    let output = transcode(&mut transcoder, slices(&units), |_| true);
    let coded = || output.coded().into_iter().map(|(_, bytes)| bytes);
    assert_eq!(classes(coded()), "IPPPP".repeat(5)[..24]);
    for (class, bytes) in output.coded() {
        assert_eq!(info(bytes).unwrap().is_some(), class == Class::I, "I with parameter sets");
    }
    let mut transcoder = Transcoder::new(Some(size("160x120")), 30.0).unwrap();
    let mut classes = Vec::new();
    for (number, unit) in units.iter().enumerate() {
        if [5, 6, 20].contains(&number) {
            transcoder.request_key();
        }
        let class = if number == 0 { Class::I } else { Class::P };
        // Only even pictures are wanted: picture 6 satisfies the requests made at 5 and at 6.
        transcoder.push(unit, class, &mut |number| (number % 2 == 0).into(), &mut |event| {
            if let Event::Coded { class, .. } = event {
                classes.push(class);
            }
        });
    }
    let keys: Vec<_> = (0..12).filter(|&at| classes[at] == Class::I).collect();
    assert_eq!(keys, [0, 3, 10]);
}

#[test]
fn pictures_are_small_enough_and_good_enough() {
    let units = Made { size: "1280x720", pictures: 20, bits: 8_000_000, ..MADE }.units();
    let mut transcoder = Transcoder::new(Some(size("320x180")), 5.0).unwrap();
    let output = transcode(&mut transcoder, slices(&units), |number| number % 2 == 0);
    let cards: Vec<_> = output.shown().iter().map(|picture| picture.card).collect();
    assert_eq!(cards, (0..10).map(|number| Some(number * 2)).collect::<Vec<_>>());
    let bytes: usize = output.coded().iter().map(|(_, bytes)| bytes.len()).sum();
    println!("10 test cards of 320x180 take {bytes} bytes");
    assert!(bytes * 8 < 10 * 320 * 180, "less than a bit per pixel");
}

#[test]
fn a_size_above_the_source_is_refused_unit_by_unit() {
    let units = MADE.units();
    let mut transcoder = Transcoder::new(Some(size("640x240")), 10.0).unwrap();
    let output = transcode(&mut transcoder, slices(&units), |_| true);
    let refused =
        MediaError::SizeAboveSource { asked: size("640x240"), source_size: size("320x240") };
    assert!(output.events.iter().all(|event| *event == Event::Failed(refused.clone())));
    assert_eq!(output.asked, [0; 0]);
}

#[test]
fn impossible_requests_are_refused_at_once() {
    let message = |to: Option<&str>, hz| Transcoder::new(to.map(size), hz).unwrap_err().to_string();
    assert_eq!(
        message(Some("321x180"), 5.0),
        "h264 picture of 321x180 cannot be coded: a side is odd, and chroma has half the pixels; choose even sides in that range, such as 320x180"
    );
    for to in ["14x320", "320x14", "3842x2160", "2160x3842", "2162x2162"] {
        let message = message(Some(to), 5.0);
        assert!(message.contains("must be 16x16 to 3840x2160 or 2160x3840; choose"), "{message}");
    }
    for (hz, text) in [(0.0, "0"), (-1.0, "-1"), (f64::NAN, "NaN"), (1001.0, "1001")] {
        let start = format!("rate is {text} pictures per second, must be a number above 0");
        assert!(message(None, hz).starts_with(&start));
    }
}

#[test]
fn extreme_rates_and_sizes_are_coded() {
    let units = Made { pictures: 4, ..MADE }.units();
    for (to, hz) in [("16x16", 0.001), ("16x240", 1000.0), ("320x16", 60.0), ("318x238", 0.5)] {
        let mut transcoder = Transcoder::new(Some(size(to)), hz).unwrap();
        let output = transcode(&mut transcoder, slices(&units), |_| true);
        assert_eq!(output.failed(), [""; 0], "{to} at {hz}");
        assert!(output.shown().iter().all(|picture| picture.size == size(to)));
    }
}

#[test]
fn a_late_joiner_begins_at_an_i_unit() {
    let units = MADE.units();
    let mut transcoder = Transcoder::new(Some(size("160x120")), 10.0).unwrap();
    let output = transcode(&mut transcoder, slices(&units[4..]), |_| true);
    let failed = output.failed();
    assert_eq!(failed.len(), 6);
    assert!(
        failed.iter().all(|text| text.contains("no I unit has arrived yet; wait for the next"))
    );
    // Numbers count presented pictures only.
    assert_eq!(output.asked, (0..20).collect::<Vec<_>>());
    assert_eq!(output.shown().first().unwrap().card, Some(10));
}

#[test]
fn a_missing_reference_picture_fails_until_the_next_i_unit() {
    let units = MADE.units();
    let kept = slices(&units).enumerate().filter(|(number, _)| *number != 4).map(|(_, unit)| unit);
    let mut transcoder = Transcoder::new(Some(size("160x120")), 10.0).unwrap();
    let output = transcode(&mut transcoder, kept, |_| true);
    let shown: Vec<_> = output.shown().iter().filter_map(|picture| picture.card).collect();
    assert_eq!(shown, (0..4).chain(10..30).collect::<Vec<_>>());
    assert_eq!(output.failed().len(), 5);
}

#[test]
fn a_change_of_size_restarts_the_coder() {
    let large = Made { pictures: 10, every: 5, ..MADE };
    let small = Made { size: "240x160", ..large };
    let high = Made { profile: Profile::High, ..large };
    let units = [large.units(), small.units(), high.units(), small.units()].concat();
    for to in [None, Some("160x120")] {
        let mut transcoder = Transcoder::new(to.map(size), 30.0).unwrap();
        let output = transcode(&mut transcoder, slices(&units), |_| true);
        assert_eq!(output.failed(), [""; 0]);
        let pictures = output.shown();
        let expected = |number: usize| Shown {
            size: size(to.unwrap_or(if (number / 10).is_multiple_of(2) {
                "320x240"
            } else {
                "240x160"
            })),
            card: Some(number as u64 % 10),
            sum: pictures[number].sum,
        };
        assert_eq!(pictures, (0..40).map(expected).collect::<Vec<_>>());
        let keys: Vec<_> = output.coded().iter().map(|(class, _)| *class == Class::I).collect();
        assert!((0..40).all(|number| keys[number] == (number % 10 == 0)), "{keys:?}");
    }
    let mut transcoder = Transcoder::new(Some(size("320x240")), 30.0).unwrap();
    let output = transcode(&mut transcoder, slices(&units), |_| true);
    assert_eq!((output.coded().len(), output.failed().len()), (20, 20));
    assert!(output.failed().iter().all(|text| text.starts_with("size 320x240 is above")));
}

/// Returns a unit without its NAL units of these types.
fn without(unit: &[u8], types: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < unit.len() {
        let next = (at + 4..unit.len()).find(|&next| unit[next..].starts_with(&[0, 0, 0, 1]));
        let end = next.unwrap_or(unit.len());
        if !types.contains(&(unit[at + 4] & 0x1f)) {
            out.extend(&unit[at..end]);
        }
        at = end;
    }
    out
}

#[test]
fn missing_parameter_sets_fail_and_can_be_restored() {
    let units = MADE.units();
    for types in [&[7][..], &[8], &[7, 8]] {
        let bare = |number: usize| without(&units[number], types);
        let stream: Vec<_> = (0..30).map(bare).collect();
        let mut transcoder = Transcoder::new(Some(size("160x120")), 10.0).unwrap();
        let output = transcode(&mut transcoder, slices(&stream), |_| true);
        assert_eq!(output.failed().len(), 30);
        assert!(
            output.failed()[0].contains("have the sender put parameter sets before each I unit")
        );
        // Sent once, they serve all I units, also those of a transcoder that receives them in this
        // order.
        let once: Vec<_> = units[..10].iter().chain(&stream[10..]).cloned().collect();
        let output = transcode(&mut transcoder, slices(&once), |_| true);
        assert_eq!(output.coded().len(), 30);
        let mut sets = ParameterSets::new();
        let mut complete = |unit: &[u8]| sets.complete(unit, classify(unit).unwrap()).into_owned();
        let whole: Vec<_> = once.iter().map(|unit| complete(unit)).collect();
        assert_eq!(decode(slices(&whole[10..])).0.len(), 20);
        assert_eq!(decode(slices(&once[10..])).0.len(), 0);
    }
}

#[test]
fn undecodable_streams_are_described() {
    // High 4:4:4 Predictive, 4:4:4, 320x240; High, 4:2:0, 10 bits.
    for (sps, text) in [
        (&[0xf4, 0, 0x1e, 0x91, 0x96, 0x81, 0x41, 0xf9][..], "4:4:4"),
        (&[0x6e, 0, 0x1e, 0xa6, 0xcb, 0x40, 0xa0, 0xfc, 0x80], "10 bits"),
    ] {
        let mut units = Made { pictures: 3, ..MADE }.units();
        units[0] = [&[0, 0, 0, 1, 0x67], sps, &without(&units[0], &[7])].concat();
        assert!(info(&units[0]).unwrap().is_some(), "{:?}", info(&units[0]));
        let mut transcoder = Transcoder::new(Some(size("160x120")), 10.0).unwrap();
        let output = transcode(&mut transcoder, slices(&units), |_| true);
        assert_eq!(output.failed().len(), 3);
        for message in output.failed() {
            assert!(message.starts_with("h264 stream is coded as High "), "{message}");
            assert!(message.contains(text), "{message}");
            assert!(message.ends_with("have the sender encode it so, or request the full size"));
        }
    }
}

#[test]
fn an_i_unit_continues_after_a_flush() {
    let units = Made { profile: Profile::High, pictures: 90, every: 3, ..MADE }.units();
    let mut transcoder = Transcoder::new(Some(size("160x120")), 10.0).unwrap();
    for (number, group) in units.chunks(3).enumerate() {
        let output = transcode(&mut transcoder, slices(group), |_| true);
        assert_eq!(output.coded().len(), 3);
        let begin = number as u64 * 3;
        assert_eq!(output.asked, (begin..begin + 3).collect::<Vec<_>>());
    }
}

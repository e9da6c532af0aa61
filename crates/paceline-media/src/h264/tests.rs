use proptest::prelude::*;
use std::borrow::Cow;

use super::*;
use crate::{Format, Scaler, Size};

mod write;

use write::{Slice, aud, join, nal, pps, sei, slice, sps};

/// Returns the classes and lengths of the units of a complete stream.
fn units(stream: &[u8]) -> Vec<(Class, usize)> {
    split(stream)
        .map(|unit| unit.unwrap())
        .map(|unit| (unit.class, Nals::new(unit.bytes).count()))
        .collect()
}

/// Classifies a unit without any unit before it.
fn classify(unit: &[u8]) -> Result<Class, MediaError> {
    Classifier::new().classify(unit)
}

/// Returns a stream of groups of pictures with several slices, parameter sets (before each slice of some) and delimiters.
pub(crate) fn film(groups: u32) -> Vec<u8> {
    let group = |group: u32| {
        let mut nals = vec![aud(), sps(), pps(), sei()];
        for number in 0..8 {
            let of = if number == 0 { Slice::idr(group % 4) } else { Slice::p(number) };
            if number % 3 == 1 {
                nals.push(aud());
            }
            for part in 0..=number % 3 {
                if part > 0 && number == 2 {
                    nals.extend([sps(), pps()]);
                }
                nals.push(slice(Slice { first_mb: part * 40, ..of }));
            }
        }
        nals.concat()
    };
    (0..groups).flat_map(group).collect()
}

/// Completes a unit with its class.
fn complete<'a>(sets: &mut ParameterSets, unit: &'a [u8]) -> Cow<'a, [u8]> {
    sets.complete(unit, classify(unit).unwrap_or(Class::P))
}

fn refused(bytes: &[u8]) -> String {
    split(bytes).last().unwrap().unwrap_err().to_string()
}

#[test]
fn slices_of_one_picture_are_one_unit() {
    let stream = join(&[
        sps(),
        pps(),
        slice(Slice { first_mb: 0, ..Slice::idr(0) }),
        slice(Slice { first_mb: 40, ..Slice::idr(0) }),
        slice(Slice { first_mb: 0, ..Slice::p(1) }),
        slice(Slice { first_mb: 40, ..Slice::p(1) }),
        slice(Slice { first_mb: 80, ..Slice::p(1) }),
        slice(Slice { first_mb: 40, ..Slice::p(2) }),
        slice(Slice { first_mb: 0, ..Slice::p(2) }),
        slice(Slice { first_mb: 80, ..Slice::b(3, 2) }),
        slice(Slice { first_mb: 0, ..Slice::b(3, 2) }),
    ]);
    let (i, p, b) = (Class::I, Class::P, Class::B);
    assert_eq!(units(&stream), [(i, 4), (p, 3), (p, 2), (b, 2)]);
}

#[test]
fn each_field_that_differs_begins_a_unit() {
    let before = Slice::p(1);
    for (what, after) in [
        ("frame_num", Slice { frame_num: 2, ..before }),
        ("pic_order_cnt_lsb", Slice { order: 9, ..before }),
        ("nal_ref_idc", Slice { reference: 0, ..before }),
        ("pps", Slice { pps: 1, ..before }),
        ("idr", Slice { first_mb: 40, ..Slice::idr(1) }),
    ] {
        let other = write::pps_of(1, false);
        let after = Slice { first_mb: 40, ..after };
        let stream = join(&[sps(), pps(), other, slice(before), slice(after)]);
        assert_eq!(units(&stream).len(), 2, "{what}");
    }
    let both = [Slice::idr(0), Slice { first_mb: 40, ..Slice::idr(1) }];
    let stream = join(&[sps(), pps(), slice(both[0]), slice(both[1])]);
    assert_eq!(units(&stream).len(), 2, "idr_pic_id");
    // nal_ref_idc may differ as long as none is 0, and the same picture may be sent again.
    let strong = Slice { reference: 3, first_mb: 40, ..before };
    assert_eq!(units(&join(&[sps(), pps(), slice(before), slice(strong)])).len(), 1);
    assert_eq!(units(&join(&[sps(), pps(), slice(before), slice(before)])).len(), 2);
}

#[test]
fn without_parameter_sets_the_first_macroblock_begins_a_unit() {
    let stream = join(&[
        slice(Slice::p(1)),
        slice(Slice { first_mb: 40, ..Slice::p(1) }),
        slice(Slice::p(2)),
        slice(Slice::b(3, 4)),
    ]);
    assert_eq!(units(&stream), [(Class::P, 2), (Class::P, 1), (Class::B, 1)]);
}

#[test]
fn units_before_a_picture_belong_to_it() {
    let (end, filler) = (nal(0x0a, &[]), nal(0x0c, &[0xff, 0x80]));
    let stream = join(&[
        aud(),
        sps(),
        pps(),
        sei(),
        slice(Slice::idr(0)),
        filler,
        end,
        aud(),
        slice(Slice::p(1)),
        sei(),
        slice(Slice::p(2)),
        pps(),
        slice(Slice::p(3)),
    ]);
    let p = Class::P;
    assert_eq!(units(&stream), [(Class::I, 7), (p, 2), (p, 2), (p, 2)]);
}

#[test]
fn parameter_sets_repeated_before_each_slice_end_no_unit() {
    let sets = || join(&[sps(), pps()]);
    let more = |first_mb, before: Slice| slice(Slice { first_mb, ..before });
    let idr = || [slice(Slice::idr(0)), more(40, Slice::idr(0)), more(80, Slice::idr(0))];
    let [a, b, c] = idr();
    let first = join(&[aud(), sets(), sei(), sets(), a, sets(), b, pps(), c]);
    let stream = join(&[first.clone(), sets(), slice(Slice::p(1)), pps(), slice(Slice::p(2))]);
    assert_eq!(units(&stream), [(Class::I, 12), (Class::P, 3), (Class::P, 2)]);
    let plain = [&[aud(), sets(), sei(), sets()][..], &idr()].concat();
    assert_eq!(complete(&mut ParameterSets::new(), &first), join(&plain));
    // Another set, or a delimiter, begins a unit.
    for other in
        [write::pps_of(1, false), write::Sps { rows: 12, ..Default::default() }.write(), aud()]
    {
        let stream = join(&[sets(), slice(Slice::p(1)), other, more(40, Slice::p(1))]);
        assert_eq!(units(&stream).len(), 2);
    }
    // A set that returns to earlier bytes is a change.
    let newer = || write::pps_of(0, true);
    let stream = join(&[sets(), newer(), slice(Slice::p(1)), pps(), slice(Slice::p(1))]);
    assert_eq!(units(&stream).len(), 2);
}

#[test]
fn parameter_sets_before_a_second_field_or_after_a_change_stay() {
    let sps = write::Sps { fields: true, ..Default::default() }.write();
    let field = |first_mb, field| {
        slice(Slice { first_mb, field: Some(field), reference: 0, ..Slice::p(1) })
    };
    let pair = join(&[sps, pps(), field(0, 1), pps(), field(0, 2)]);
    assert_eq!(units(&pair), [(Class::B, 5)]);
    assert_eq!(complete(&mut ParameterSets::new(), &pair), pair);
    // The third set returns to the first one.
    let more = |first_mb| slice(Slice { first_mb, ..Slice::p(1) });
    let changed = || write::pps_of(0, true);
    let unit = join(&[pps(), more(0), changed(), more(40), pps(), more(80)]);
    assert_eq!(complete(&mut ParameterSets::new(), &unit), unit);
}

#[test]
fn prefixes_belong_to_the_following_slice() {
    let prefix = || nal(0x6e, &[0x80, 0, 7]);
    let more = Slice { first_mb: 40, ..Slice::p(1) };
    let stream = join(&[
        sps(),
        pps(),
        prefix(),
        slice(Slice::p(1)),
        prefix(),
        slice(more),
        prefix(),
        slice(Slice::p(2)),
    ]);
    assert_eq!(units(&stream), [(Class::P, 6), (Class::P, 2)]);
}

#[test]
fn redundant_slices_belong_to_the_current_picture() {
    let first = Slice { redundant: Some(0), ..Slice::p(1) };
    let again = Slice { redundant: Some(1), ..first };
    let next = Slice { redundant: Some(0), ..Slice::p(2) };
    let stream = join(&[sps(), write::pps_of(0, true), slice(first), slice(again), slice(next)]);
    assert_eq!(units(&stream), [(Class::P, 4), (Class::P, 1)]);
}

#[test]
fn units_joined_are_the_stream() {
    let stream =
        join(&[sps(), pps(), slice(Slice::idr(0)), slice(Slice::p(1)), slice(Slice::p(2))]);
    let dirty = [&[7, 0, 9], &stream[..], &[0, 0, 0, 0]].concat();
    let joined: Vec<u8> = split(&dirty).flat_map(|unit| unit.unwrap().bytes.to_vec()).collect();
    assert_eq!(joined, dirty[3..]);
    let mut short = Vec::new();
    for unit in split(&stream) {
        short.extend(&unit.unwrap().bytes[1..]);
    }
    // Start codes of three bytes are as valid as those of four.
    assert_eq!(units(&short).len(), 3);
}

#[test]
fn unit_classes_are_read_from_the_nal_headers() {
    let lone = |slice: Vec<u8>| classify(&join(&[slice]));
    assert_eq!(lone(slice(Slice::idr(0))), Ok(Class::I));
    assert_eq!(lone(slice(Slice::p(1))), Ok(Class::P));
    assert_eq!(lone(slice(Slice::b(1, 1))), Ok(Class::B));
    assert_eq!(lone(slice(Slice { kind: 7, ..Slice::b(1, 1) })), Ok(Class::B));
    let message = classify(&join(&[sps(), pps()])).unwrap_err().to_string();
    assert!(
        message.contains("of NAL units without a picture; pass whole access units"),
        "{message}"
    );
    let message = classify(&[]).unwrap_err().to_string();
    assert_eq!(message, "h264 stream at byte 0: no bytes at all; pass the bytes of an access unit");
    // A NAL header with the forbidden bit is damage, not a slice.
    assert!(classify(&[0, 0, 1, 0x85, 0x88]).is_err());
}

#[test]
fn an_intra_picture_is_key_with_a_recovery_point_or_if_the_stream_has_no_other_key() {
    let intra = |frame_num| slice(Slice { kind: 7, ..Slice::p(frame_num) });
    let (i, p) = (Class::I, Class::P);
    let stream =
        join(&[sps(), pps(), slice(Slice::idr(0)), intra(1), sei(), intra(2), slice(Slice::p(3))]);
    assert_eq!(units(&stream).iter().map(|unit| unit.0).collect::<Vec<_>>(), [i, p, i, p]);
    // Later slices of the picture count too.
    let mixed = join(&[intra(1), slice(Slice { first_mb: 40, ..Slice::p(1) })]);
    assert_eq!(classify(&[&sei()[..], &mixed].concat()), Ok(p));
    let mut stream = vec![sps(), pps(), slice(Slice::p(0)), intra(1)];
    stream.extend((2..320).map(|number| slice(Slice::p(number % 16))));
    stream.push(intra(0));
    let classes: Vec<Class> = units(&join(&stream)).into_iter().map(|unit| unit.0).collect();
    let keys: Vec<usize> = (0..classes.len()).filter(|&place| classes[place] == i).collect();
    assert_eq!(keys, [1, 320]);
    // A stream that has only such pictures starts at them.
    let group = |number: u32| [intra(number), slice(Slice::p(number + 1))];
    let stream = [vec![sps(), pps(), slice(Slice::idr(0))], [1, 3, 5, 7].map(group).concat()];
    let classes: Vec<Class> =
        units(&join(&stream.concat())).into_iter().map(|unit| unit.0).collect();
    assert_eq!(classes, [i, p, p, p, p, i, p, i, p]);
}

#[test]
fn each_picture_of_a_stream_of_intra_pictures_alone_is_key_and_completed() {
    for reference in [0, 2] {
        let intra = |frame_num| slice(Slice { kind: 7, reference, ..Slice::p(frame_num) });
        let stream = join(&[vec![sps(), pps()], (0..8).map(intra).collect()].concat());
        let mut sets = ParameterSets::new();
        let whole: Vec<_> = split(&stream).map(|unit| unit.unwrap()).collect();
        let completed: Vec<_> =
            whole.iter().map(|unit| sets.complete(unit.bytes, unit.class)).collect();
        for number in 3..8 {
            assert_eq!(whole[number].class, Class::I, "{number}");
            let slice = intra(u32::try_from(number).unwrap());
            assert_eq!(completed[number], join(&[sps(), pps(), slice]), "{number}");
        }
    }
}

#[test]
fn pictures_presented_before_an_open_key_are_leading() {
    let at = |frame_num, order| Slice { order, ..Slice::p(frame_num) };
    let stream = join(&[
        sps(),
        pps(),
        slice(Slice::idr(0)),
        slice(at(1, 4)),
        slice(Slice::b(2, 2)),
        sei(),
        slice(Slice { kind: 7, ..at(2, 10) }),
        slice(at(3, 8)),
        slice(Slice::b(4, 6)),
        // The order count wraps at 16.
        slice(at(4, 0)),
        slice(Slice::b(5, 14)),
        slice(Slice::b(5, 12)),
    ]);
    let classes: Vec<Class> = units(&stream).into_iter().map(|unit| unit.0).collect();
    let (i, p, b, l) = (Class::I, Class::P, Class::B, Class::Leading);
    assert_eq!(classes, [i, p, b, i, l, l, p, b, b]);
}

#[test]
fn the_two_fields_of_a_frame_are_one_unit() {
    let field = |bottom, before: Slice| Slice { field: Some(1 + u32::from(bottom)), ..before };
    let sps = || write::Sps { fields: true, ..write::Sps::default() }.write();
    let stream = join(&[
        sps(),
        pps(),
        slice(field(false, Slice::idr(0))),
        slice(field(true, Slice::p(0))),
        aud(),
        slice(field(false, Slice::p(1))),
        aud(),
        slice(field(true, Slice::p(1))),
        slice(Slice { field: Some(0), ..Slice::p(2) }),
        sei(),
        slice(field(true, Slice::b(3, 7))),
        slice(field(false, Slice::b(3, 6))),
        // Two frames whose other field is missing.
        slice(field(false, Slice::p(3))),
        slice(field(false, Slice::p(4))),
        aud(),
        sps(),
        pps(),
        slice(field(false, Slice::idr(1))),
        slice(Slice { first_mb: 40, ..field(false, Slice::idr(1)) }),
        slice(field(true, Slice::p(0))),
        slice(Slice { first_mb: 40, ..field(true, Slice::p(0)) }),
    ]);
    let (i, p, b) = (Class::I, Class::P, Class::B);
    assert_eq!(units(&stream), [(i, 4), (p, 4), (p, 1), (b, 3), (p, 1), (p, 1), (i, 7)]);
}

#[test]
fn size_and_rate_are_read_from_the_sps() {
    let info = |sps: Vec<u8>| info(&join(&[aud(), sps, pps()]));
    let size = |width, height| Size { width, height };
    let plain = write::Sps::default();
    assert_eq!(info(plain.write()), Ok(Some(StreamInfo { size: size(320, 240), hz: None })));
    let cropped = write::Sps { rows: 12, crop: Some(6), timing: Some((1, 50)), fields: false };
    assert_eq!(
        info(cropped.write()),
        Ok(Some(StreamInfo { size: size(320, 180), hz: Some(25.0) }))
    );
    for timing in [(0, 50), (1, 0), (1, u32::MAX)] {
        let strange = write::Sps { timing: Some(timing), ..plain };
        assert_eq!(info(strange.write()).unwrap().unwrap().hz, None);
    }
    let ntsc = write::Sps { timing: Some((1001, 60_000)), ..plain };
    let hz = info(ntsc.write()).unwrap().unwrap().hz.unwrap();
    assert!((hz - 29.97).abs() < 0.001);
    assert_eq!(super::info(&join(&[slice(Slice::p(1))])), Ok(None));
    assert_eq!(super::info(&[]), Ok(None));
    let refused = |sps: Vec<u8>| info(sps).unwrap_err().to_string();
    assert!(refused(nal(0x67, &[66, 1])).contains("at byte 6: SPS cannot be read: 3 bytes long"));
    assert!(refused(nal(0x67, &[66; 5000])).contains("5001 bytes long, must be 4 to 4096"));
    assert!(refused(nal(0x67, &[66, 0, 30, 1])).contains("SPS cannot be read: "));
    let nothing = write::Sps { crop: Some(120), ..plain };
    assert!(refused(nothing.write()).starts_with("height is 0"));
    for rows in [2_000, 70_000, 1 << 28, u32::MAX - 1] {
        let absurd = refused(write::Sps { rows, ..plain }.write());
        assert!(absurd.contains("height") || absurd.contains("SPS cannot be read"), "{absurd}");
    }
}

#[test]
fn invalid_streams_are_explained() {
    assert_eq!(split(&[]).next(), None);
    assert_eq!(
        refused(b"RIFF"),
        "h264 stream at byte 0: 4 bytes without a start code (00 00 01); pass an Annex B byte stream; convert mp4 with ffmpeg: -bsf:v h264_mp4toannexb"
    );
    assert!(refused(&[0; 65_536]).contains("65536 bytes without a start code"));
    assert!(refused(&[0, 0, 1]).contains("3 bytes of NAL units without a picture"));
    let stream = join(&[sps(), pps(), slice(Slice::idr(0)), sps(), pps()]);
    assert_eq!(split(&stream).count(), 2);
    assert!(refused(&stream).contains("without a picture; pass whole access units"));
}

#[test]
fn units_are_bounded() {
    let mut stream = join(&[slice(Slice::idr(0))]);
    let filler = nal(0x0c, &[]);
    for _ in 0..UNIT_NALS_MAX {
        stream.extend(&filler);
    }
    assert!(refused(&stream).contains("has more than 8192 NAL units; encode with fewer slices"));
    assert_eq!(classify(&stream), Ok(Class::I));
    let mut stream = join(&[slice(Slice::idr(0))]);
    stream.resize(UNIT_BYTES_MAX + 1, 0xff);
    let message = refused(&stream);
    assert!(message.contains("has 67108865 bytes, must be at most 67108864"), "{message}");
    assert!(classify(&stream).is_err());
    stream.pop();
    assert_eq!(split(&stream).filter(Result::is_ok).count(), 1);
}

#[test]
fn parameter_sets_are_put_before_i_units_that_lack_them() {
    let mut sets = ParameterSets::new();
    let whole = join(&[aud(), sps(), pps(), slice(Slice::idr(0))]);
    let bare = join(&[aud(), slice(Slice::idr(1))]);
    assert_eq!(*complete(&mut sets, &bare), bare);
    assert_eq!(*complete(&mut sets, &whole), whole);
    assert_eq!(*complete(&mut sets, &bare), join(&[aud(), sps(), pps(), slice(Slice::idr(1))]));
    let p = join(&[aud(), slice(Slice::p(1))]);
    assert_eq!(*complete(&mut sets, &p), p);
    // A PPS is inserted behind the unit's own SPS.
    let half = join(&[sps(), sei(), slice(Slice::idr(0))]);
    assert_eq!(*complete(&mut sets, &half), join(&[sps(), pps(), sei(), slice(Slice::idr(0))]));
    let half = join(&[pps(), slice(Slice::idr(0))]);
    assert_eq!(*complete(&mut sets, &half), join(&[sps(), pps(), slice(Slice::idr(0))]));
    // The latest set counts, and other PPS of the SPS are included.
    let newer = write::Sps { rows: 12, ..write::Sps::default() }.write();
    let between = join(&[newer.clone(), write::pps_of(1, false), slice(Slice::p(2))]);
    complete(&mut sets, &between);
    let bare = join(&[slice(Slice::idr(0))]);
    let all = join(&[newer, pps(), write::pps_of(1, false), slice(Slice::idr(0))]);
    assert_eq!(*complete(&mut sets, &bare), all);
    // Unneeded sets are not inserted into a complete unit, for they may be damaged.
    let whole = join(&[sps(), pps(), slice(Slice::idr(0))]);
    assert_eq!(*complete(&mut sets, &whole), whole);
}

#[test]
fn parameter_sets_kept_are_bounded() {
    let mut sets = ParameterSets::new();
    let bare = join(&[slice(Slice::idr(0))]);
    complete(&mut sets, &join(&[sps(), slice(Slice::p(1))]));
    for id in 0..=255 {
        let mut long = write::pps_of(id, false);
        long.resize(60_000, 0xff);
        complete(&mut sets, &join(&[long, slice(Slice::p(1))]));
        assert!(complete(&mut sets, &bare).len() <= 1024 * 1024 + 100);
    }
    complete(&mut sets, &join(&[sps(), pps(), slice(Slice::p(1))]));
    assert!(complete(&mut sets, &bare).len() > bare.len());
    let huge = [write::pps_of(0, false), vec![0xff; 100_000]].concat();
    let before = complete(&mut sets, &bare).len();
    complete(&mut sets, &join(&[huge, slice(Slice::p(1))]));
    assert_eq!(complete(&mut sets, &bare).len(), before);
}

#[test]
fn the_format_reads_sizes_but_does_not_scale() {
    let whole = join(&[sps(), pps(), slice(Slice::idr(0))]);
    assert_eq!(Format::H264.picture_size(&whole), Size::new(320, 240));
    let message = Format::H264.picture_size(&join(&[slice(Slice::p(1))])).unwrap_err().to_string();
    assert!(
        message.contains("has no SPS, so its size is not known; inspect an I unit"),
        "{message}"
    );
    let size = Size::new(160, 120).unwrap();
    assert_eq!(Format::H264.with_size(size), Format::H264);
    for bytes in [&whole[..], b"nothing"] {
        let message = Scaler::new().scale(&Format::H264, bytes, size).unwrap_err().to_string();
        assert!(message.ends_with("pass the stream through h264::Transcoder"), "{message}");
    }
}

/// Streams of NAL units that resemble real ones more than random bytes do.
fn nals() -> impl Strategy<Value = Vec<u8>> {
    let header = prop::sample::select(vec![
        0x67_u8, 0x68, 0x65, 0x41, 0x01, 0x09, 0x06, 0x6e, 0x0a, 0x0c, 0x02, 0x14, 0x85, 0x00,
    ]);
    let payload = prop::collection::vec(any::<u8>(), 0..40);
    let unit = prop_oneof![
        3 => (header, payload).prop_map(|(header, payload)| nal(header, &payload)),
        1 => Just(sps()),
        1 => Just(pps()),
        3 => (0..4_u32, 0..3_u32, any::<bool>()).prop_map(|(frame_num, first_mb, idr)| {
            let base = if idr { Slice::idr(frame_num) } else { Slice::p(frame_num) };
            slice(Slice { first_mb, ..base })
        }),
        1 => prop::collection::vec(prop::sample::select(vec![0_u8, 1, 3]), 0..20),
    ];
    prop::collection::vec(unit, 0..20).prop_map(|units| units.concat())
}

/// Returns true if a parameter set follows the first slice of a unit. Some senders repeat known sets there. A new one is out of
/// place: the classifier, which reads no further than it must, does not learn it, and the splitter, which reads all, does.
fn has_late_sets(unit: &[u8]) -> bool {
    let mut kinds = Nals::new(unit).map(|nal| nal.kind());
    kinds.any(|kind| matches!(kind, Kind::Slice { .. }))
        && kinds.any(|kind| matches!(kind, Kind::Sps | Kind::Pps))
}

/// Checks that units are pieces of the stream, in order and without gaps.
fn check_units(stream: &[u8]) {
    let first = Nals::new(stream).next().map(|nal| nal.begin);
    let mut at = first.unwrap_or_default();
    let mut whole = true;
    let mut classifier = Classifier::new();
    let mut in_order = true;
    for item in split(stream) {
        assert!(whole, "an item behind an error");
        let Ok(unit) = item else {
            whole = false;
            continue;
        };
        if in_order {
            assert_eq!(Ok(unit.class), classifier.classify(unit.bytes));
        }
        in_order &= !has_late_sets(unit.bytes);
        assert_eq!(unit.bytes, &stream[at..at + unit.bytes.len()]);
        assert!(!unit.bytes.is_empty());
        at += unit.bytes.len();
    }
    assert!(!whole || at == stream.len() || first.is_none());
    let _ = info(stream);
    let mut sets = ParameterSets::new();
    assert!(
        complete(&mut sets, stream).len() <= stream.len() * 2 + 300 * 4,
        "grows by its own sets at most"
    );
}

/// The slices of a picture, and whether the parameter sets precede each, as senders write them.
fn pictures() -> impl Strategy<Value = Vec<(Vec<bool>, bool)>> {
    let slices = prop::collection::vec(any::<bool>(), 1..6);
    prop::collection::vec((slices, any::<bool>()), 1..12)
}

proptest! {
    #[test]
    fn units_are_pictures_wherever_parameter_sets_are_repeated(
        pictures in pictures(),
        fields in any::<bool>(),
        delimited in any::<bool>(),
    ) {
        let sps = write::Sps { fields, ..Default::default() }.write();
        let sets = join(&[sps, pps()]);
        let (mut stream, mut counts) = (Vec::new(), Vec::new());
        for (frame_num, (slices, idr)) in (0..).zip(&pictures) {
            let idr = *idr || frame_num == 0;
            if delimited {
                stream.extend(aud());
            }
            for (at, repeated) in (0..).zip(slices) {
                if *repeated || frame_num + at == 0 {
                    stream.extend(&sets);
                }
                let kind = if idr { Slice::idr(frame_num) } else { Slice::p(frame_num) };
                let field = fields.then_some(0);
                stream.extend(slice(Slice { first_mb: at * 40, field, ..kind }));
            }
            counts.push(slices.len());
        }
        let units: Vec<_> = split(&stream).map(|unit| unit.unwrap().bytes).collect();
        let is_slice = |nal: &nal::Nal<'_>| matches!(nal.kind(), Kind::Slice { .. });
        let found: Vec<_> = units.iter().map(|unit| Nals::new(unit).filter(is_slice).count()).collect();
        prop_assert_eq!(found, counts);
        let mut kept = ParameterSets::new();
        for unit in units {
            // A published unit has no set behind a slice, and the same slices.
            let whole = complete(&mut kept, unit);
            let kinds: Vec<_> = Nals::new(&whole).collect();
            let first = kinds.iter().position(is_slice).unwrap();
            prop_assert!(kinds[first..].iter().all(is_slice));
            let slices = |unit: &[u8]| -> Vec<Vec<u8>> {
                Nals::new(unit).filter(is_slice).map(|nal| nal.bytes.to_vec()).collect()
            };
            prop_assert_eq!(slices(&whole), slices(unit));
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check_units(&bytes);
        let _ = classify(&bytes);
    }

    #[test]
    fn random_nal_units_never_panic(stream in nals()) {
        check_units(&stream);
    }

    #[test]
    fn streams_that_end_with_a_picture_are_returned_whole(stream in nals()) {
        let stream = [&join(&[sps(), pps(), slice(Slice::idr(0))])[..], &stream, &slice(Slice::p(7))].concat();
        let units: Result<Vec<_>, _> = split(&stream).collect();
        let joined: Vec<u8> = units.unwrap().iter().flat_map(|unit| unit.bytes).copied().collect();
        prop_assert_eq!(joined, stream);
    }
}

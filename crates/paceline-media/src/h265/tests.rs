use proptest::prelude::*;
use std::borrow::Cow;

use super::*;
use crate::bits::write::Bits;
use crate::{Format, Scaler, Size};

mod write;

use write::{aud, more, nal, pps, slice, slice_of, sps, vps};

const TRAIL_N: u8 = 0;
const TRAIL_R: u8 = 1;
const RADL_N: u8 = 6;
const RADL_R: u8 = 7;
const RASL_N: u8 = 8;
const RASL_R: u8 = 9;
const IDR: u8 = 19;
const CRA: u8 = 21;

const I: Class = Class::I;
const P: Class = Class::P;
const B: Class = Class::B;
const L: Class = Class::Leading;

/// Returns the classes and the numbers of NAL units of the units of a complete stream.
fn units(stream: &[u8]) -> Vec<(Class, usize)> {
    split(stream)
        .map(|unit| unit.unwrap())
        .map(|unit| (unit.class, Nals::new(unit.bytes).count()))
        .collect()
}

fn classes(stream: &[u8]) -> Vec<Class> {
    units(stream).into_iter().map(|(class, _)| class).collect()
}

/// Returns a stream of groups of pictures, with the parameter sets before each slice of the first one.
pub(crate) fn film(groups: usize) -> Vec<u8> {
    let pictures = [slice(TRAIL_R, 0), more(TRAIL_R), slice(TRAIL_N, 0), slice(TRAIL_R, 0)];
    let sets = [vps(), sps(), pps(0)];
    let key = [&[aud()][..], &sets, &[slice(IDR, 0)], &sets, &[more(IDR)]].concat();
    [key, pictures.into()].concat().concat().repeat(groups)
}

/// Completes a unit with its class, which the type of its first slice gives.
fn complete<'a>(sets: &mut H265ParameterSets, unit: &'a [u8]) -> Cow<'a, [u8]> {
    sets.complete(unit, H265Classifier::new().classify(unit).unwrap_or(P))
}

fn refused(bytes: &[u8]) -> String {
    split(bytes).last().unwrap().unwrap_err().to_string()
}

#[test]
fn the_type_gives_the_class() {
    let stream = |temporal_max| {
        let sps = write::Sps { temporal_max, ..write::Sps::default() }.write();
        let numbers = (0..=9).chain(16..=21).map(|number| slice(number, 0));
        [vps(), sps, pps(0)].into_iter().chain(numbers).collect::<Vec<_>>().concat()
    };
    // TRAIL, TSA, STSA, RADL, RASL, then BLA, IDR and CRA.
    let single = [B, P, B, P, B, P, B, P, L, L, I, I, I, I, I, I];
    assert_eq!(classes(&stream(0)), single);
    // Pictures of a higher sub-layer may need those of the lowest.
    let lowest = single.map(|class| if class == B { P } else { class });
    assert_eq!(classes(&stream(1)), lowest);
}

#[test]
fn only_the_highest_sub_layer_is_droppable() {
    let sps = write::Sps { temporal_max: 2, ..write::Sps::default() }.write();
    let pictures =
        [slice(IDR, 0), slice(TRAIL_N, 1), slice(TRAIL_N, 2), slice(TRAIL_R, 2), slice(RADL_N, 2)];
    let stream = [vps(), sps, pps(0), pictures.concat()].concat();
    assert_eq!(classes(&stream), [I, P, B, P, B]);
    // Without an SPS the number of sub-layers is not known.
    assert_eq!(classes(&pictures.concat()), [I, P, P, P, P]);
}

#[test]
fn radl_pictures_are_decodable_after_their_key_picture() {
    let pictures = [slice(IDR, 0), slice(RADL_R, 0), slice(RADL_N, 0), slice(TRAIL_R, 0)];
    let more = [slice(CRA, 0), slice(RASL_R, 0), slice(RADL_N, 0), slice(RASL_N, 0)];
    let stream = [vps(), sps(), pps(0), pictures.concat(), more.concat()].concat();
    assert_eq!(classes(&stream), [I, P, B, P, I, L, B, L]);
}

#[test]
fn a_field_is_not_droppable() {
    let sps = write::Sps { fields: true, ..write::Sps::default() }.write();
    let pictures = [slice(CRA, 0), slice(TRAIL_R, 0), slice(RASL_N, 0), slice(TRAIL_N, 0)];
    let stream = [vps(), sps, pps(0), pictures.concat()].concat();
    assert_eq!(classes(&stream), [I, P, L, P]);
}

#[test]
fn slices_and_suffixes_belong_to_their_picture() {
    let (prefix, suffix) = (nal(39, 0, 0, &[1, 1, 0x80]), nal(40, 0, 0, &[1, 1, 0x80]));
    let (end, filler, reserved) =
        (nal(36, 0, 0, &[]), nal(38, 0, 0, &[0xff, 0x80]), nal(48, 0, 0, &[1]));
    let stream = [
        [aud(), vps(), sps(), pps(0), prefix.clone(), slice(IDR, 0), more(IDR), suffix].concat(),
        [aud(), slice(TRAIL_R, 0), more(TRAIL_R), filler, end].concat(),
        [slice(TRAIL_N, 0), more(TRAIL_N)].concat(),
        [prefix, slice(TRAIL_R, 0)].concat(),
        [pps(1), slice(TRAIL_R, 0)].concat(),
        [reserved, slice(TRAIL_R, 0)].concat(),
    ];
    assert_eq!(units(&stream.concat()), [(I, 8), (P, 5), (B, 2), (P, 2), (P, 2), (P, 2)],);
}

#[test]
fn upper_layers_belong_to_the_base_picture() {
    let upper = |number| nal(number, 1, 0, &[0xa5, 0xa5]);
    let stream = [
        [vps(), sps(), nal(33, 1, 0, &[1, 2]), pps(0), slice(IDR, 0), upper(TRAIL_R)].concat(),
        [slice(TRAIL_N, 0), nal(34, 1, 0, &[1]), upper(TRAIL_R)].concat(),
        [slice(TRAIL_N, 0), upper(TRAIL_N)].concat(),
    ];
    assert_eq!(units(&stream.concat()), [(I, 6), (P, 3), (B, 2)]);
}

#[test]
fn two_pictures_in_one_unit_have_the_class_of_the_more_needed() {
    let mut classifier = H265Classifier::new();
    classifier.classify(&[sps(), slice(IDR, 0)].concat()).unwrap();
    let mut class =
        |numbers: [u8; 2]| classifier.classify(&numbers.map(|number| slice(number, 0)).concat());
    assert_eq!(class([TRAIL_N, TRAIL_N]), Ok(B));
    assert_eq!(class([TRAIL_N, TRAIL_R]), Ok(P));
    assert_eq!(class([RASL_N, RASL_R]), Ok(L));
    assert_eq!(class([RASL_N, TRAIL_N]), Ok(P));
    assert_eq!(class([TRAIL_N, IDR]), Ok(P));
    assert_eq!(class([IDR, TRAIL_N]), Ok(I));
}

#[test]
fn size_and_rate_are_read_from_the_sps() {
    let read = |sps: write::Sps| info(&[aud(), vps(), sps.write(), pps(0)].concat());
    let size = |width, height| Size { width, height };
    let plain = write::Sps::default();
    assert_eq!(read(plain), Ok(Some(StreamInfo { size: size(320, 240), hz: None })));
    let crop = Some([1, 2, 3, 4]);
    for (chroma, cropped) in
        [(0, size(317, 233)), (1, size(314, 226)), (2, size(314, 233)), (3, size(317, 233))]
    {
        let sps = write::Sps { chroma, crop, ..plain };
        assert_eq!(read(sps).unwrap().unwrap().size, cropped, "chroma_format_idc {chroma}");
    }
    for temporal_max in [0, 1, 6] {
        for rich in [false, true] {
            let timing = Some((1001, 60_000));
            let found = read(write::Sps { temporal_max, timing, rich, ..plain }).unwrap().unwrap();
            assert_eq!(found.size, size(320, 240));
            assert!((found.hz.unwrap() - 59.94).abs() < 0.001, "{temporal_max} {rich} {found:?}");
        }
    }
    for timing in [(0, 50), (1, 0), (1, u32::MAX)] {
        assert_eq!(read(write::Sps { timing: Some(timing), ..plain }).unwrap().unwrap().hz, None);
    }
    assert_eq!(info(&slice(TRAIL_R, 0)), Ok(None));
    assert_eq!(info(&[]), Ok(None));
}

#[test]
fn a_damaged_sps_is_explained() {
    let read = |payload: &[u8]| info(&nal(33, 0, 0, payload)).unwrap_err().to_string();
    assert_eq!(
        read(&[1, 2]),
        "h265 stream at byte 0: SPS cannot be read: 4 bytes end before profile_tier_level; have the sender encode the stream again"
    );
    assert!(read(&[0x0f]).contains("sps_max_sub_layers_minus1 is 7, must be 0 to 6"));
    let head = |width| write::Sps { width, ..write::Sps::default() };
    let payload = |sps: write::Sps| {
        let mut bits = Bits::default();
        sps.write_head(&mut bits);
        bits.bytes()
    };
    let message = read(&payload(head(70_000)));
    assert!(message.starts_with("width is 70000, must be a whole number from 1 to"), "{message}");
    assert!(read(&payload(head(0))).starts_with("width is 0"));
    let crop = Some([80, 80, 0, 0]);
    assert!(read(&payload(write::Sps { crop, ..head(320) })).starts_with("width is 0"));
    let crop = Some([u32::MAX - 1; 4]);
    assert!(read(&payload(write::Sps { crop, ..head(320) })).starts_with("width is 0"));
    // The size counts, even if what follows cannot be read.
    assert_eq!(info(&nal(33, 0, 0, &payload(head(320)))).unwrap().unwrap().size.width, 320);
}

#[test]
fn invalid_streams_are_explained() {
    assert_eq!(split(&[]).next(), None);
    assert_eq!(
        refused(b"RIFF"),
        "h265 stream at byte 0: 4 bytes without a start code (00 00 01); pass an Annex B byte stream; convert mp4 with ffmpeg: -bsf:v hevc_mp4toannexb"
    );
    assert!(refused(&[0, 0, 1]).contains("3 bytes of NAL units without the first slice"));
    let stream = [sps(), slice(IDR, 0), vps(), more(TRAIL_R)].concat();
    assert_eq!(split(&stream).count(), 2);
    assert!(refused(&stream).contains("without the first slice of a picture; pass whole access"));
    let message = H265Classifier::new().classify(&[]).unwrap_err().to_string();
    assert_eq!(message, "h265 stream at byte 0: no bytes at all; pass the bytes of an access unit");
    // The forbidden bit and a temporal id of 0 are damage, not a slice.
    assert!(H265Classifier::new().classify(&[0, 0, 1, 0x80 | IDR << 1, 1, 0x80]).is_err());
    assert!(H265Classifier::new().classify(&[0, 0, 1, IDR << 1, 0, 0x80]).is_err());
}

#[test]
fn units_are_bounded() {
    let mut stream = slice(IDR, 0);
    let filler = nal(38, 0, 0, &[]);
    for _ in 0..UNIT_NALS_MAX {
        stream.extend(&filler);
    }
    assert!(refused(&stream).contains("unit has more than 8192 NAL units; encode with fewer"));
    let mut stream = slice(IDR, 0);
    stream.resize(UNIT_BYTES_MAX + 1, 0xff);
    let message = refused(&stream);
    assert!(message.contains("unit has 67108865 bytes, must be at most 67108864"), "{message}");
    assert!(H265Classifier::new().classify(&stream).is_err());
    stream.pop();
    assert_eq!(split(&stream).filter(Result::is_ok).count(), 1);
}

#[test]
fn parameter_sets_are_put_before_key_units_that_lack_them() {
    let mut sets = H265ParameterSets::new();
    let mut complete = |parts: &[Vec<u8>]| complete(&mut sets, &parts.concat()).into_owned();
    let whole = [aud(), vps(), sps(), pps(0), slice(IDR, 0)];
    let bare = [aud(), slice(CRA, 0)];
    assert_eq!(complete(&bare), bare.concat());
    assert_eq!(complete(&whole), whole.concat());
    assert_eq!(complete(&bare), [aud(), vps(), sps(), pps(0), slice(CRA, 0)].concat());
    let p = [aud(), slice(TRAIL_R, 0)];
    assert_eq!(complete(&p), p.concat());
    // Each set is inserted behind the unit's own one to which it refers.
    let all = [vps(), sps(), pps(0), slice(IDR, 0)].concat();
    assert_eq!(complete(&[vps(), slice(IDR, 0)]), all);
    assert_eq!(complete(&[sps(), slice(IDR, 0)]), all);
    assert_eq!(complete(&[pps(0), slice(IDR, 0)]), all);
    assert_eq!(complete(&[vps(), sps(), slice(IDR, 0)]), all);
    assert_eq!(complete(&[vps(), pps(0), slice(IDR, 0)]), all);
    // The latest set counts, and other PPS of the SPS are included.
    let newer = write::Sps { width: 160, ..write::Sps::default() }.write();
    complete(&[newer.clone(), pps(1), slice(TRAIL_R, 0)]);
    let all = [vps(), newer, pps(0), pps(1), slice_of(IDR, 0, 1)].concat();
    assert_eq!(complete(&[slice_of(IDR, 0, 1)]), all);
    // A PPS that is not known.
    assert_eq!(complete(&[slice_of(IDR, 0, 2)]), slice_of(IDR, 0, 2));
}

#[test]
fn parameter_sets_repeated_before_each_slice_end_no_unit() {
    let sets = || [vps(), sps(), pps(0)].concat();
    let first = [aud(), sets(), slice(IDR, 0), sets(), more(IDR), pps(0), more(IDR)].concat();
    let stream = [first.clone(), sets(), slice(TRAIL_R, 0), more(TRAIL_R)].concat();
    assert_eq!(units(&stream), [(I, 11), (P, 5)]);
    let mut kept = H265ParameterSets::new();
    let plain = [aud(), sets(), slice(IDR, 0), more(IDR), more(IDR)].concat();
    assert_eq!(complete(&mut kept, &first), plain);
    // Another set begins a unit, also if the first slice of its picture is lost.
    let stream = [sets(), slice(IDR, 0), pps(1), more(IDR), slice(TRAIL_R, 0)].concat();
    assert_eq!(units(&stream), [(I, 4), (P, 3)]);
}

#[test]
fn parameter_sets_kept_are_bounded() {
    let mut sets = H265ParameterSets::new();
    let bare = slice(IDR, 0);
    complete(&mut sets, &[vps(), sps(), slice(TRAIL_R, 0)].concat());
    for id in 0..=63 {
        let mut long = pps(id);
        long.resize(60_000, 0xff);
        complete(&mut sets, &[long, slice(TRAIL_R, 0)].concat());
        assert!(complete(&mut sets, &bare).len() <= 1024 * 1024 + 200);
    }
    complete(&mut sets, &[vps(), sps(), pps(0), slice(TRAIL_R, 0)].concat());
    let before = complete(&mut sets, &bare).len();
    assert!(before > bare.len());
    let huge = [pps(0), vec![0xff; 100_000]].concat();
    complete(&mut sets, &[huge, slice(TRAIL_R, 0)].concat());
    assert_eq!(complete(&mut sets, &bare).len(), before);
}

#[test]
fn the_format_reads_sizes_but_does_not_scale() {
    let whole = [vps(), sps(), pps(0), slice(IDR, 0)].concat();
    assert_eq!(Format::H265.picture_size(&whole), Size::new(320, 240));
    assert_eq!(
        Format::H265.picture_size(&slice(TRAIL_R, 0)).unwrap_err().to_string(),
        "h265 unit of 9 bytes has no SPS, so its size is not known; inspect an I unit, which h265::H265ParameterSets completes"
    );
    let size = Size::new(160, 120).unwrap();
    assert_eq!(Format::H265.with_size(size), Format::H265);
    for bytes in [&whole[..], b"nothing"] {
        let message = Scaler::new().scale(&Format::H265, bytes, size).unwrap_err().to_string();
        assert!(message.starts_with("h265 video cannot be scaled"), "{message}");
    }
}

/// Streams of NAL units that resemble real ones more than random bytes do.
fn nals() -> impl Strategy<Value = Vec<u8>> {
    let payload = prop::collection::vec(any::<u8>(), 0..40);
    let sps = (0..7_u32, 0..4_u32, any::<bool>(), any::<bool>()).prop_map(
        |(temporal_max, chroma, rich, fields)| {
            write::Sps { temporal_max, chroma, rich, fields, ..write::Sps::default() }.write()
        },
    );
    let unit = prop_oneof![
        3 => (0..64_u8, 0..2_u8, 0..7_u8, payload)
            .prop_map(|(number, layer, temporal, payload)| nal(number, layer, temporal, &payload)),
        1 => sps,
        1 => Just([vps(), pps(0)].concat()),
        3 => (0..22_u8, 0..3_u8).prop_map(|(number, temporal)| slice(number, temporal)),
        1 => prop::collection::vec(prop::sample::select(vec![0_u8, 1, 3]), 0..20),
    ];
    prop::collection::vec(unit, 0..20).prop_map(|units| units.concat())
}

/// Checks that units are pieces of the stream, in order and without gaps.
fn check_units(stream: &[u8]) {
    let first = Nals::new(stream).next().map(|nal| nal.begin);
    let mut at = first.unwrap_or_default();
    let mut whole = true;
    let mut classifier = H265Classifier::new();
    for item in split(stream) {
        assert!(whole, "an item behind an error");
        let Ok(unit) = item else {
            whole = false;
            continue;
        };
        assert_eq!(Ok(unit.class), classifier.classify(unit.bytes));
        assert_eq!(unit.bytes, &stream[at..at + unit.bytes.len()]);
        assert!(!unit.bytes.is_empty());
        at += unit.bytes.len();
    }
    assert!(!whole || at == stream.len() || first.is_none());
    let _ = info(stream);
    let mut sets = H265ParameterSets::new();
    let completed = complete(&mut sets, stream).len();
    assert!(completed <= stream.len() * 2 + 100 * 4, "grows by its own sets at most");
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check_units(&bytes);
        let _ = H265Classifier::new().classify(&bytes);
    }

    #[test]
    fn random_nal_units_never_panic(stream in nals()) {
        check_units(&stream);
    }

    #[test]
    fn damaged_streams_never_panic(
        mut stream in nals(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        length in any::<prop::sample::Index>(),
    ) {
        for (at, flip) in flips {
            if let Some(byte) = (!stream.is_empty()).then(|| at.get_mut(&mut stream)) {
                *byte ^= flip;
            }
        }
        check_units(&stream);
        stream.truncate(length.index(stream.len() + 1));
        check_units(&stream);
    }

    #[test]
    fn streams_that_end_with_a_picture_are_returned_whole(stream in nals()) {
        let stream = [vps(), sps(), pps(0), slice(IDR, 0), stream, slice(TRAIL_R, 0)].concat();
        let units: Result<Vec<_>, _> = split(&stream).collect();
        let joined: Vec<u8> = units.unwrap().iter().flat_map(|unit| unit.bytes).copied().collect();
        prop_assert_eq!(joined, stream);
    }
}

use proptest::prelude::*;

use super::*;
use crate::bits::write::Bits;
use crate::{Format, Scaler, Size};

mod write;

use write::{Frame, delimiter, existing, frame, obu, obu_of, sequence};

const KEY: u32 = 0;
const INTER: u32 = 1;
const INTRA_ONLY: u32 = 2;
const SWITCH: u32 = 3;

const I: Class = Class::I;
const P: Class = Class::P;
const B: Class = Class::B;

/// Returns the first unit of a stream.
fn first() -> Vec<u8> {
    [delimiter(), sequence(), frame(KEY, true, 0xff)].concat()
}

/// Returns the classes of units behind a first one.
fn classes(units: &[Vec<Vec<u8>>]) -> Vec<Class> {
    let mut stream = first();
    for unit in units {
        stream.extend([delimiter(), unit.concat()].concat());
    }
    let classes: Vec<Class> = split(&stream).map(|unit| unit.unwrap().class).collect();
    assert_eq!(classes.len(), units.len() + 1);
    classes[1..].to_vec()
}

/// Returns a stream of groups of pictures.
pub(crate) fn film(groups: usize) -> Vec<u8> {
    let unit = |frame: Vec<u8>| [delimiter(), frame].concat();
    let others = [unit(frame(INTER, true, 1)), unit(frame(INTER, true, 0))];
    [first(), others.concat()].concat().repeat(groups)
}

fn refused(bytes: &[u8]) -> String {
    split(bytes).last().unwrap().unwrap_err().to_string()
}

#[test]
fn a_frame_that_is_not_kept_is_droppable() {
    let units = [
        vec![frame(INTER, true, 1)],
        vec![frame(INTER, true, 0)],
        vec![frame(INTRA_ONLY, true, 2)],
        vec![frame(INTRA_ONLY, true, 0)],
        vec![frame(SWITCH, true, 0)],
        vec![frame(KEY, true, 0)],
        vec![sequence(), frame(KEY, true, 0)],
    ];
    assert_eq!(classes(&units), [P, B, P, B, P, I, I]);
}

#[test]
fn a_unit_has_the_class_of_its_most_needed_frame() {
    let units = [
        vec![frame(INTER, false, 4), frame(INTER, true, 0)],
        vec![frame(INTER, false, 0), frame(INTER, true, 0)],
        vec![frame(INTER, true, 0), existing(2)],
        vec![frame(KEY, true, 0), frame(INTER, true, 1)],
        // The hidden frame needs one before the key frame.
        vec![frame(INTER, false, 4), frame(KEY, true, 0)],
    ];
    assert_eq!(classes(&units), [P, B, B, I, P]);
}

#[test]
fn an_existing_frame_is_droppable_unless_it_is_a_key_frame() {
    let units = [
        // All slots contain the first key frame.
        vec![existing(3)],
        vec![frame(INTER, false, 0b1000)],
        vec![existing(3)],
        vec![existing(2)],
        // Shown as a key frame, it replaced the frame in slot 3.
        vec![existing(3)],
        vec![frame(INTER, false, 0xff)],
        vec![frame(KEY, false, 0b1000), frame(INTER, true, 0)],
        vec![existing(2)],
        vec![existing(3)],
    ];
    assert_eq!(classes(&units), [P, P, B, P, P, P, P, B, P]);
}

#[test]
fn tiles_and_repeated_headers_are_no_further_frames() {
    let inter = frame(INTER, true, 0);
    let header = obu(3, &inter[2..]);
    let unit = vec![obu(5, &[1, 2]), header, obu(4, &[9; 200]), obu(7, &[9]), obu(15, &[0; 3])];
    assert_eq!(classes(&[unit]), [B]);
}

#[test]
fn before_the_first_sequence_header_every_unit_is_needed() {
    let mut classifier = Av1Classifier::new();
    for unit in [frame(KEY, true, 0), frame(INTER, true, 0), existing(1)] {
        assert_eq!(classifier.classify(&unit), Ok(P));
    }
    assert_eq!(classifier.classify(&first()), Ok(I));
    assert_eq!(classifier.classify(&frame(INTER, true, 0)), Ok(B));
}

#[test]
fn every_field_before_the_refreshed_slots_is_read() {
    let timing = Some((1, 25, None));
    let plain = write::Sequence::default();
    for sequence in [
        plain,
        write::Sequence { plain: true, ..plain },
        write::Sequence { timing, ..plain },
        write::Sequence { timing, rich: true, ..plain },
        write::Sequence { timing: Some((1, 25, Some(0))), rich: true, ..plain },
        write::Sequence { timing, rich: true, plain: true, ..plain },
    ] {
        let mut classifier = Av1Classifier::new();
        let key = Frame::of(KEY, true, 0xff).write(sequence);
        assert_eq!(classifier.classify(&[sequence.write(), key].concat()), Ok(I));
        for kind in [KEY, INTER, INTRA_ONLY] {
            for (shown, resilient) in [(false, false), (false, true), (true, false), (true, true)] {
                for layer in [(0, 0), (1, 0)] {
                    for (refresh, class) in [(0, B), (0x80, P), (1, P)] {
                        if kind == KEY && shown {
                            continue;
                        }
                        let frame = Frame { kind, shown, resilient, refresh, layer };
                        assert_eq!(classifier.classify(&frame.write(sequence)), Ok(class));
                    }
                }
            }
        }
    }
    let still = write::Sequence { still: true, ..plain };
    let unit = [still.write(), obu(6, &[0x80])].concat();
    assert_eq!(Av1Classifier::new().classify(&unit), Ok(I));
}

#[test]
fn size_and_rate_are_read_from_the_sequence_header() {
    let size = Size { width: 320, height: 240 };
    let plain = write::Sequence::default();
    let read = |sequence: write::Sequence| info(&[delimiter(), sequence.write()].concat());
    let hz = |timing| {
        let rich = true;
        let found = read(write::Sequence { timing: Some(timing), rich, ..plain }).unwrap().unwrap();
        assert_eq!(found.size, size);
        found.hz
    };
    assert_eq!(read(plain), Ok(Some(StreamInfo { size, hz: None })));
    let still = write::Sequence { still: true, ..plain };
    assert_eq!(read(still), Ok(Some(StreamInfo { size, hz: None })));
    assert_eq!(hz((1, 50, Some(1))), Some(25.0));
    assert_eq!(hz((1, 50, None)), None);
    assert_eq!(hz((0, 50, Some(0))), None);
    assert_eq!(hz((1, u32::MAX, Some(0))), None);
    assert_eq!(info(&frame(INTER, true, 0)), Ok(None));
    assert_eq!(info(&[]), Ok(None));
    // A still picture whose sides have 16 bits each.
    let mut huge = Bits::default();
    huge.bits(10, 0b11 << 5).bits(8, 0xff).bits(32, u32::MAX).bits(3, 0);
    let huge = obu(1, &huge.bytes());
    let message = info(&huge).unwrap_err().to_string();
    assert!(message.starts_with("width is 65536, must be a whole number from 1"), "{message}");
}

#[test]
fn invalid_streams_are_explained() {
    assert_eq!(split(&[]).next(), None);
    assert_eq!(
        refused(b"\x12\x00DKIF"),
        "av1 stream at byte 2: obu_has_size_field of header 0x44 is 0, must be 1; pass whole temporal units of OBUs with sizes; convert a file with ffmpeg: -c copy -f obu"
    );
    assert!(refused(&[0x92]).contains("byte 0: obu_forbidden_bit of header 0x92 is 1, must be 0"));
    assert!(refused(&[0x32]).contains("the header of an OBU is cut off"));
    assert!(refused(&[0x32, 5, 0]).contains("obu_size is 5, must be at most 1, the number of"));
    assert!(
        refused(&[0x32, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]).contains("obu_size is")
    );
    assert!(
        refused(&[0x32, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0]).contains("8 bytes")
    );
    assert!(refused(&[delimiter(), sequence()].concat()).contains("of OBUs without a frame; pass"));
    let stream = [first(), delimiter(), obu(1, &[0, 0])].concat();
    assert!(refused(&stream).contains("without a frame"));
    let stream = [first(), delimiter(), obu(1, &[0, 0]), frame(KEY, true, 0)].concat();
    let at = first().len() + 2;
    let start = format!("av1 stream at byte {at}: sequence header of 2 bytes ends too early; have");
    assert!(refused(&stream).starts_with(&start), "{}", refused(&stream));
    let stream = [first(), delimiter(), obu(6, &[0x30])].concat();
    assert!(refused(&stream).contains("frame header of 1 bytes ends before refresh_frame_flags"));
    let message = Av1Classifier::new().classify(&[]).unwrap_err().to_string();
    assert_eq!(message, "av1 stream at byte 0: no bytes at all; pass the bytes of a temporal unit");
}

#[test]
fn units_are_bounded() {
    let mut stream = first();
    for _ in 0..UNIT_OBUS_MAX {
        stream.extend(obu(15, &[]));
    }
    assert!(refused(&stream).contains("unit has more than 8192 OBUs; encode with fewer"));
    let stream = [first(), obu(15, &vec![0; UNIT_BYTES_MAX])].concat();
    assert!(refused(&stream).contains("must be at most 67108864; encode smaller pictures"));
    assert!(Av1Classifier::new().classify(&stream).is_err());
}

#[test]
fn the_sequence_header_is_put_before_key_frames_that_lack_it() {
    let mut header = SequenceHeader::new();
    let mut known = Av1Classifier::new();
    known.classify(&first()).unwrap();
    let mut complete = |parts: &[Vec<u8>]| {
        let unit = parts.concat();
        let class = known.clone().classify(&unit).unwrap_or(Class::P);
        header.complete(&unit, class).into_owned()
    };
    let bare = [delimiter(), obu(5, &[1]), frame(KEY, true, 0)];
    assert_eq!(complete(&bare), bare.concat());
    assert_eq!(complete(&[first()]), first());
    let whole = [delimiter(), sequence(), obu(5, &[1]), frame(KEY, true, 0)].concat();
    assert_eq!(complete(&bare), whole);
    assert_eq!(complete(&bare[1..]), [sequence(), bare[1..].concat()].concat());
    for other in [frame(INTER, true, 0), frame(KEY, false, 1), existing(1), obu(5, &[1])] {
        assert_eq!(complete(&[delimiter(), other.clone()]), [delimiter(), other].concat());
    }
    // The latest header counts.
    let newer = write::Sequence { timing: Some((1, 25, Some(0))), ..write::Sequence::default() };
    complete(&[delimiter(), newer.write(), frame(INTER, true, 0)]);
    let whole = [delimiter(), newer.write(), frame(KEY, true, 0)].concat();
    assert_eq!(complete(&[delimiter(), frame(KEY, true, 0)]), whole);
    // A header that cannot be read, or is too long, is not kept.
    complete(&[obu(1, &[0]), frame(INTER, true, 0)]);
    complete(&[obu_of(1, (0, 0), &[0; 5000]), frame(INTER, true, 0)]);
    assert_eq!(complete(&[delimiter(), frame(KEY, true, 0)]), whole);
}

#[test]
fn the_format_reads_sizes_but_does_not_scale() {
    assert_eq!(Format::Av1.picture_size(&first()), Size::new(320, 240));
    assert_eq!(
        Format::Av1.picture_size(&delimiter()).unwrap_err().to_string(),
        "av1 unit of 2 bytes has no sequence header, so its size is not known; inspect an I unit, which av1::SequenceHeader completes"
    );
    let size = Size::new(160, 120).unwrap();
    assert_eq!(Format::Av1.with_size(size), Format::Av1);
    for bytes in [&first()[..], b"nothing"] {
        let message = Scaler::new().scale(&Format::Av1, bytes, size).unwrap_err().to_string();
        assert!(message.starts_with("av1 video cannot be scaled"), "{message}");
    }
}

/// Streams of OBUs that resemble real ones more than random bytes do.
fn obus() -> impl Strategy<Value = Vec<u8>> {
    let payload = prop::collection::vec(any::<u8>(), 0..200);
    let sequence =
        (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(still, rich, plain)| {
            write::Sequence { still, timing: Some((1, 25, None)), rich, plain }.write()
        });
    let unit = prop_oneof![
        2 => (0..16_u8, payload).prop_map(|(number, payload)| obu(number, &payload)),
        2 => Just(delimiter()),
        1 => sequence,
        3 => (0..4_u32, any::<bool>(), 0..256_u32)
            .prop_map(|(kind, shown, refresh)| frame(kind, shown, refresh)),
        1 => (0..8_u32).prop_map(existing),
    ];
    prop::collection::vec(unit, 0..20).prop_map(|units| units.concat())
}

/// Checks that units are pieces of the stream, in order and without gaps.
fn check_units(stream: &[u8]) {
    let mut at = 0;
    let mut whole = true;
    let mut classifier = Av1Classifier::new();
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
    assert!(!whole || at == stream.len());
    let _ = info(stream);
    let mut header = SequenceHeader::new();
    header.complete(&first(), Class::I);
    assert!(header.complete(stream, Class::I).len() <= stream.len() + 4096);
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check_units(&bytes);
        let _ = Av1Classifier::new().classify(&bytes);
    }

    #[test]
    fn random_obus_never_panic(stream in obus()) {
        check_units(&stream);
    }

    #[test]
    fn damaged_streams_never_panic(
        mut stream in obus(),
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
}

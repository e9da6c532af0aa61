//! Modes of SVT-AV1 and libaom.

use paceline_media::av1::{Av1Classifier, SequenceHeader, info, split};
use paceline_media::{Format, Size};

use crate::ffmpeg::{Mode, encoded};
use crate::oracle::{check_stream, counts, damage};

const fn mode(
    name: &'static str,
    encoder: &'static str,
    args: &'static [&'static str],
) -> Mode<'static> {
    Mode { name, encoder, args }
}

const SVT: &str = "libsvtav1";
const AOM: &str = "libaom-av1";

/// One mode, and the least numbers of I and B units.
struct Case(Mode<'static>, usize, usize);

const CASES: &[Case] = &[
    Case(mode("SVT default", SVT, &[]), 1, 20),
    Case(mode("SVT, groups of 20", SVT, &["-g", "20"]), 3, 20),
    Case(mode("SVT, forward keys", SVT, &["-g", "25", "-svtav1-params", "irefresh-type=1"]), 1, 20),
    Case(mode("SVT, low delay", SVT, &["-g", "20", "-svtav1-params", "pred-struct=1"]), 3, 10),
    Case(mode("libaom", AOM, &["-cpu-used", "8", "-g", "20", "-lag-in-frames", "19"]), 3, 12),
    Case(mode("libaom, no lag", AOM, &["-cpu-used", "8", "-g", "20", "-lag-in-frames", "0"]), 3, 0),
    Case(mode("libaom, real time", AOM, REALTIME), 3, 0),
    Case(mode("libaom, resilient", AOM, RESILIENT), 3, 10),
    Case(mode("libaom, tile groups", AOM, TILE_GROUPS), 3, 10),
    Case(mode("libaom, intra only", AOM, INTRA), 50, 0),
    Case(mode("libaom, 10 bits", AOM, DEEP), 3, 12),
];

// Newer builds of libaom 3.6 stop at an assertion if they look ahead with intra pictures alone.
const INTRA: &[&str] = &["-cpu-used", "8", "-g", "0", "-lag-in-frames", "0"];
const REALTIME: &[&str] =
    &["-cpu-used", "8", "-g", "20", "-usage", "realtime", "-lag-in-frames", "0"];
const RESILIENT: &[&str] = &["-cpu-used", "8", "-g", "20", "-aom-params", "error-resilient=1"];
const TILE_GROUPS: &[&str] =
    &["-cpu-used", "8", "-g", "20", "-aom-params", "num-tile-groups=2:tile-columns=1"];
const DEEP: &[&str] = &["-cpu-used", "8", "-g", "20", "-pix_fmt", "yuv420p10le"];

/// Returns a unit without its sequence header, which every unit of these encoders that has one has behind
/// the delimiter.
fn bare(unit: &[u8]) -> Vec<u8> {
    match unit {
        [0x12, 0, 0x0a, size, rest @ ..] => [&[0x12, 0], &rest[usize::from(*size)..]].concat(),
        unit => unit.to_vec(),
    }
}

#[test]
fn streams_of_av1_encoders_are_thinned_and_joined_without_errors() {
    let test = "streams_of_av1_encoders_are_thinned_and_joined_without_errors";
    for Case(mode, keys, droppable) in CASES {
        let Some(stream) = encoded(test, "obu", mode) else { continue };
        let units: Vec<_> = split(&stream).map(Result::unwrap).collect();
        let found = counts(&units);
        assert!(found.i >= *keys && found.b >= *droppable, "{}: {found:?}", mode.name);
        let mut header = SequenceHeader::new();
        let complete = |unit: &[u8], class| header.complete(unit, class).into_owned();
        check_stream("obu", mode, &stream, &units, bare, complete);
        assert_eq!(Format::Av1.picture_size(&stream), Size::new(160, 120), "{}", mode.name);
    }
}

#[test]
fn damaged_av1_never_panics() {
    let test = "damaged_av1_never_panics";
    let Some(stream) = encoded(test, "obu", &mode("damaged", SVT, &["-g", "20"])) else { return };
    damage(&stream, |copy| {
        let mut header = SequenceHeader::new();
        let mut classifier = Av1Classifier::new();
        let _ = info(copy);
        for unit in split(copy).map_while(Result::ok) {
            assert_eq!(classifier.classify(unit.bytes), Ok(unit.class));
            let _ = classifier.classify(&header.complete(unit.bytes, unit.class));
        }
    });
}

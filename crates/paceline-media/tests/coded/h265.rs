//! Modes of x265.

use paceline_media::h265::{H265Classifier, H265ParameterSets, info, split};
use paceline_media::{Format, Size};

use crate::ffmpeg::{Mode, encoded};
use crate::oracle::{check_stream, counts, damage, letters};

/// A mode, and the least numbers of I, B and leading units. The mode's arguments are those of
/// `-x265-params`.
struct Case(&'static str, &'static str, [usize; 3]);

const CASES: &[Case] = &[
    Case("default", "", [1, 20, 0]),
    Case("groups of 20", ":keyint=20", [3, 15, 1]),
    Case("open GOP", ":keyint=20:open-gop=1:bframes=4:b-adapt=0", [3, 20, 5]),
    Case("closed GOP", ":keyint=20:open-gop=0", [3, 15, 0]),
    Case("RADL", RADL, [3, 15, 0]),
    Case("no pyramid", ":keyint=20:b-pyramid=0:b-adapt=0", [3, 30, 3]),
    Case("no B", ":keyint=20:bframes=0", [3, 0, 0]),
    Case("intra refresh", ":keyint=20:intra-refresh=1", [1, 0, 0]),
    Case("temporal layers", ":keyint=20:temporal-layers=1", [3, 15, 1]),
    Case(
        "slices, delimiters",
        ":keyint=20:slices=2:aud=1:hrd=1:vbv-maxrate=500:vbv-bufsize=500",
        [3, 15, 1],
    ),
    Case("intra only", ":keyint=1", [50, 0, 0]),
    Case("lossless", ":keyint=20:lossless=1", [3, 15, 1]),
    Case("fields", ":keyint=20:interlace=1", [3, 0, 1]),
    Case("scaling lists", ":keyint=20:scaling-list=default", [3, 15, 1]),
];

const RADL: &str = ":keyint=20:min-keyint=20:scenecut=0:open-gop=0:radl=3:bframes=3:b-adapt=0";

/// Returns a unit without its parameter sets (types 32 to 34).
fn bare(unit: &[u8]) -> Vec<u8> {
    let codes = unit.windows(3).enumerate().filter(|(_, code)| *code == [0, 0, 1]);
    let mut begins: Vec<usize> = codes.map(|(at, _)| at).collect();
    begins.push(unit.len());
    let nals = begins.windows(2).map(|pair| &unit[pair[0]..pair[1]]);
    nals.filter(|nal| !(32..=34).contains(&(nal[3] >> 1))).flatten().copied().collect()
}

#[test]
fn streams_of_x265_are_thinned_and_joined_without_errors() {
    let test = "streams_of_x265_are_thinned_and_joined_without_errors";
    for Case(name, params, [keys, droppable, leading]) in CASES {
        let params = format!("log-level=0{params}");
        let args = ["-x265-params", &params];
        let mode = Mode { name, encoder: "libx265", args: &args };
        let Some(stream) = encoded(test, "hevc", &mode) else { return };
        let units: Vec<_> = split(&stream).map(Result::unwrap).collect();
        let found = counts(&units);
        let enough = found.i >= *keys && found.b >= *droppable && found.leading >= *leading;
        assert!(enough, "{name}: {found:?} {}", letters(&units));
        let mut sets = H265ParameterSets::new();
        let complete = |unit: &[u8], class| sets.complete(unit, class).into_owned();
        check_stream("hevc", &mode, &stream, &units, bare, complete);
        assert_eq!(Format::H265.picture_size(&stream), Size::new(160, 120), "{name}");
        let hz = info(&stream).unwrap().unwrap().hz;
        assert!(hz.is_some_and(|hz| (hz - 25.0).abs() < 0.01), "{name}: {hz:?}");
    }
}

#[test]
fn damaged_h265_never_panics() {
    let test = "damaged_h265_never_panics";
    let args = ["-x265-params", "log-level=0:keyint=20"];
    let mode = Mode { name: "damaged", encoder: "libx265", args: &args };
    let Some(stream) = encoded(test, "hevc", &mode) else { return };
    damage(&stream, |copy| {
        let mut sets = H265ParameterSets::new();
        let mut classifier = H265Classifier::new();
        let _ = info(copy);
        for unit in split(copy).map_while(Result::ok) {
            assert_eq!(classifier.classify(unit.bytes), Ok(unit.class));
            let _ = classifier.classify(&sets.complete(unit.bytes, unit.class));
        }
    });
}

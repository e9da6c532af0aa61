//! Video of other encoders and modes, in full and thinned. The ordinary test has one mode of each encoder.

use crate::ffmpeg::ffmpeg;
use crate::foreign_video::{Outcome, THINNED, outcomes};
use crate::support::HostDir;
use paceline_media::codec::Codec;
use std::path::Path;
use std::process::{Command, Stdio};

/// A mode of an encoder: a program and its arguments. `IN` stands for a Y4M file, `OUT` for the stream, and `TYPES` for a
/// file of picture types that x264 reads.
struct Mode(&'static str, Codec, &'static str);

const X264: &str = "ffmpeg -v error -y -i IN -c:v libx264 -f h264";
const X265: &str = "ffmpeg -v error -y -i IN -c:v libx265 -f hevc";
const AV1: &str = "ffmpeg -v error -y -i IN -f obu";
const GST: &str = "gst-launch-1.0 -q filesrc location=IN ! y4mdec !";

const MODES: &[(&str, Mode)] = &[
    (X264, Mode("open GOP", Codec::H264, "-x264-params keyint=25:open-gop=1:bframes=3 OUT")),
    (
        X264,
        Mode(
            "pyramid",
            Codec::H264,
            "-x264-params keyint=25:bframes=5:b-adapt=0:b-pyramid=normal OUT",
        ),
    ),
    (
        X264,
        Mode(
            "strict pyramid",
            Codec::H264,
            "-x264-params keyint=25:bframes=7:b-adapt=0:b-pyramid=strict OUT",
        ),
    ),
    (
        X264,
        Mode(
            "gradual refresh",
            Codec::H264,
            "-x264-params keyint=20:intra-refresh=1:bframes=0 OUT",
        ),
    ),
    (X264, Mode("one group", Codec::H264, "-x264-params keyint=infinite:scenecut=0 OUT")),
    (
        X264,
        Mode(
            "one group, no B",
            Codec::H264,
            "-x264-params keyint=infinite:scenecut=0:bframes=0 OUT",
        ),
    ),
    (X264, Mode("slices, delimiters", Codec::H264, "-x264-params keyint=25:slices=4:aud=1 OUT")),
    (X264, Mode("zero latency", Codec::H264, "-tune zerolatency -x264-params keyint=25 OUT")),
    (X264, Mode("MBAFF", Codec::H264, "-flags +ilme+ildct -x264-params keyint=25:tff=1 OUT")),
    (X264, Mode("10 bits", Codec::H264, "-pix_fmt yuv420p10le -x264-params keyint=25 OUT")),
    (
        X264,
        Mode(
            "10 bits, one group, no B",
            Codec::H264,
            "-pix_fmt yuv420p10le -x264-params keyint=infinite:scenecut=0:bframes=0 OUT",
        ),
    ),
    (
        X264,
        Mode(
            "4:2:2, gradual refresh",
            Codec::H264,
            "-pix_fmt yuv422p -x264-params keyint=20:intra-refresh=1:bframes=0 OUT",
        ),
    ),
    (X264, Mode("4:4:4, intra", Codec::H264, "-pix_fmt yuv444p -x264-params keyint=1 OUT")),
    (
        "x264 --quiet --qpfile TYPES --keyint infinite --no-scenecut -o OUT IN",
        Mode("intra without IDR", Codec::H264, ""),
    ),
    (X265, Mode("default", Codec::H265, "-x265-params log-level=none:keyint=25 OUT")),
    (
        X265,
        Mode(
            "closed GOP",
            Codec::H265,
            "-x265-params log-level=none:keyint=25:open-gop=0:bframes=2 OUT",
        ),
    ),
    (X265, Mode("no B", Codec::H265, "-x265-params log-level=none:keyint=25:bframes=0 OUT")),
    (
        X265,
        Mode(
            "B without pyramid",
            Codec::H265,
            "-x265-params log-level=none:keyint=25:b-pyramid=0:b-adapt=0:bframes=3 OUT",
        ),
    ),
    (
        X265,
        Mode(
            "gradual refresh",
            Codec::H265,
            "-x265-params log-level=none:keyint=25:intra-refresh=1 OUT",
        ),
    ),
    (X265, Mode("fields", Codec::H265, "-x265-params log-level=none:keyint=25:interlace=1 OUT")),
    (X265, Mode("intra", Codec::H265, "-x265-params log-level=none:keyint=1 OUT")),
    (X265, Mode("one group", Codec::H265, "-x265-params log-level=none:keyint=-1:scenecut=0 OUT")),
    (AV1, Mode("SVT-AV1 in ffmpeg", Codec::Av1, "-c:v libsvtav1 -preset 10 -g 25 OUT")),
    (
        AV1,
        Mode(
            "SVT-AV1, low delay",
            Codec::Av1,
            "-c:v libsvtav1 -preset 10 -g 25 -svtav1-params pred-struct=1 OUT",
        ),
    ),
    (AV1, Mode("libaom in ffmpeg", Codec::Av1, "-c:v libaom-av1 -cpu-used 8 -g 25 OUT")),
    ("SvtAv1EncApp -i IN -b OUT --keyint 24 --preset 10", Mode("SvtAv1EncApp", Codec::Av1, "")),
    (
        "aomenc --quiet --obu --cpu-used=8 --rt --kf-max-dist=25 -o OUT IN",
        Mode("aomenc, real time", Codec::Av1, ""),
    ),
    (
        "aomenc --quiet --obu --cpu-used=8 --passes=1 --good --kf-max-dist=25 -o OUT IN",
        Mode("aomenc, good", Codec::Av1, ""),
    ),
    (
        GST,
        Mode(
            "x264enc",
            Codec::H264,
            "x264enc key-int-max=25 bframes=2 ! video/x-h264,stream-format=byte-stream ! filesink location=OUT",
        ),
    ),
    (
        GST,
        Mode(
            "x264enc, sets before each slice",
            Codec::H264,
            "x264enc key-int-max=25 sliced-threads=true threads=4 tune=zerolatency ! h264parse config-interval=-1 ! video/x-h264,stream-format=byte-stream,alignment=nal ! filesink location=OUT",
        ),
    ),
    (
        GST,
        Mode(
            "x264enc, interlaced",
            Codec::H264,
            "x264enc key-int-max=25 interlaced=true ! video/x-h264,stream-format=byte-stream ! filesink location=OUT",
        ),
    ),
    (
        GST,
        Mode(
            "openh264enc",
            Codec::H264,
            "openh264enc gop-size=25 bitrate=1000000 ! h264parse ! video/x-h264,stream-format=byte-stream ! filesink location=OUT",
        ),
    ),
    (
        GST,
        Mode(
            "x265enc",
            Codec::H265,
            "x265enc key-int-max=25 ! h265parse config-interval=-1 ! video/x-h265,stream-format=byte-stream ! filesink location=OUT",
        ),
    ),
    (
        GST,
        Mode(
            "x265enc, sets before each slice",
            Codec::H265,
            "x265enc key-int-max=25 option-string=slices=4 ! h265parse config-interval=-1 ! video/x-h265,stream-format=byte-stream,alignment=nal ! filesink location=OUT",
        ),
    ),
    (
        GST,
        Mode(
            "av1enc",
            Codec::Av1,
            "av1enc cpu-used=8 keyframe-max-dist=25 ! av1parse ! video/x-av1,stream-format=obu-stream,alignment=tu ! filesink location=OUT",
        ),
    ),
];

/// The modes of the ordinary test, one of each program, and those whose parameter sets or groups are unusual.
const SHORT: &[&str] = &[
    "10 bits, one group, no B",
    "intra without IDR",
    "fields",
    "SvtAv1EncApp",
    "aomenc, real time",
    "x264enc, sets before each slice",
    "x265enc, sets before each slice",
];
/// The pictures of each stream.
const PICTURES: usize = 75;

/// Runs the encoder of a mode; `None` if it is not installed.
fn encoded(folder: &Path, program: &str, mode: &Mode) -> Option<Vec<u8>> {
    let file = |name: &str| folder.join(name).display().to_string();
    let (input, output, types) = (file("in.y4m"), file("out"), file("types"));
    let line = format!("{program} {}", mode.2);
    let words = line.split_whitespace().map(|word| {
        let word = word.replace("IN", &input).replace("OUT", &output);
        if word == "TYPES" { types.clone() } else { word }
    });
    let words: Vec<String> = words.collect();
    let (name, args) = words.split_first()?;
    let mut command = Command::new(name);
    command.env("SVT_LOG", "0").args(args).stdin(Stdio::null());
    let ended = command.stdout(Stdio::null()).stderr(Stdio::piped()).output().ok()?;
    let errors = String::from_utf8_lossy(&ended.stderr).into_owned();
    // A plug-in of GStreamer, or an encoder of ffmpeg.
    if errors.contains("no element \"") || errors.contains("Unknown encoder") {
        return None;
    }
    assert!(ended.status.success(), "{}: {errors}", mode.0);
    let stream = std::fs::read(&output).unwrap();
    // Some programs write IVF, whatever the name of the file.
    let ivf = stream.starts_with(b"DKIF");
    let copy = ["-f", "ivf", "-i", &output, "-c", "copy", "-f", "obu", "-"];
    Some(if ivf { ffmpeg(&copy, b"")?.0 } else { stream })
}

/// Publishes the streams of these modes, in full and thinned, and prints a table of the results.
fn check(test: &str, modes: &[&(&str, Mode)]) {
    let folder = HostDir::new("modes");
    std::fs::create_dir_all(folder.path()).unwrap();
    let source = folder.path().join("in.y4m").display().to_string();
    let count = PICTURES.to_string();
    let input = ["-f", "lavfi", "-i", "testsrc2=s=352x288:r=25,gblur=sigma=2", "-frames:v", &count];
    let output = ["-pix_fmt", "yuv420p", "-y", &source];
    if ffmpeg(&[&input[..], &output].concat(), b"").is_none() {
        println!("skipped: {test} (ffmpeg is not installed)");
        return;
    }
    let types: String =
        (0..PICTURES).map(|n| format!("{n} {} -1\n", if n == 0 { 'I' } else { 'i' })).collect();
    std::fs::write(folder.path().join("types"), types).unwrap();
    let (mut found, mut counted) = (Vec::new(), 0);
    let names: Vec<_> = THINNED.iter().map(|form| form.name).collect();
    println!("| encoder | mode | {} |", names.join(" | "));
    for (program, mode) in modes {
        let name = program.split_whitespace().next().unwrap_or_default();
        let Some(stream) = encoded(folder.path(), program, mode) else {
            println!(
                "skipped: {test}: {name}, {} ({name} or its encoder is not installed)",
                mode.0
            );
            continue;
        };
        counted += 1;
        let all = outcomes((mode.0, mode.1), &stream, THINNED);
        let cells: Vec<_> = all.iter().map(|Outcome { text, .. }| text.as_str()).collect();
        println!("| {name} | {} {} | {} |", mode.1.name(), mode.0, cells.join(" | "));
        found.extend(
            all.into_iter().filter_map(|it| it.problem).map(|it| format!("{}: {it}", mode.0)),
        );
    }
    println!("{counted} of {} modes", modes.len());
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn streams_of_other_encoders_arrive_in_full_and_thinned() {
    let modes: Vec<_> = MODES.iter().filter(|(_, mode)| SHORT.contains(&mode.0)).collect();
    assert_eq!(modes.len(), SHORT.len());
    check("streams_of_other_encoders_arrive_in_full_and_thinned", &modes);
}

/// A minute of more modes, for `cargo xtask long`.
#[test]
#[ignore = "three minutes: cargo xtask long runs it"]
fn a_minute_of_more_encoders() {
    check("a_minute_of_more_encoders", &MODES.iter().collect::<Vec<_>>());
}

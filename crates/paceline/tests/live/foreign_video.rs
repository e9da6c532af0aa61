//! Video streams of other encoders, in every form: each form arrives decodable and complete, or its
//! absence has a reason that the subscriber sees.

use crate::ffmpeg::{ffmpeg, format_of, pictures, psnr};
use crate::support::{HostDir, SOON, at_rate, wait_until};
use paceline::contract::RefusalReason;
use paceline::status::DropReason;
use paceline::{Encoding, Kind, Node, Sample, Subscriber, SubscriberBuilder, SubscriberEvent};
use paceline_media::codec::{Codec, Units};
use paceline_media::video::Class;
use std::time::Duration;

/// The size of all generated streams.
const SIZE: (u32, u32) = (352, 288);
/// The number of pictures of each generated stream.
const PICTURES: usize = 75;

/// A stream that an encoder generates, and what can be done with it.
struct Stream {
    name: &'static str,
    codec: Codec,
    args: &'static [&'static str],
    /// False if the stream cannot be decoded, and so not be scaled.
    scaled: bool,
}

const fn scaled(name: &'static str, args: &'static [&'static str]) -> Stream {
    Stream { name, codec: Codec::H264, args, scaled: true }
}

const fn whole(name: &'static str, args: &'static [&'static str]) -> Stream {
    Stream { name, codec: Codec::H264, args, scaled: false }
}

const fn of(codec: Codec, name: &'static str, args: &'static [&'static str]) -> Stream {
    Stream { name, codec, args, scaled: false }
}

/// Streams of codecs for which there is no decoder.
const UNDECODED: &[Stream] = &[
    of(Codec::H265, "H.265", &["-c:v", "libx265", "-x265-params", "keyint=25:log-level=none"]),
    of(
        Codec::H265,
        "H.265, closed GOP",
        &["-c:v", "libx265", "-x265-params", "keyint=25:open-gop=0:bframes=2:log-level=none"],
    ),
    of(Codec::Av1, "AV1", &["-c:v", "libsvtav1", "-g", "25", "-preset", "10"]),
];

const STREAMS: &[Stream] = &[
    scaled("baseline", &["-profile:v", "baseline", "-x264-params", "keyint=25"]),
    scaled("open GOP", &["-profile:v", "main", "-x264-params", "keyint=25:open-gop=1:bframes=3"]),
    scaled("b-pyramid", &["-x264-params", "keyint=25:bframes=5:b-adapt=0:b-pyramid=strict"]),
    scaled("GOP of 250", &["-x264-params", "keyint=250:scenecut=0"]),
    scaled("no B", &["-x264-params", "keyint=250:scenecut=0:bframes=0"]),
    scaled("intra only", &["-x264-params", "keyint=1"]),
    scaled("intra refresh", &["-x264-params", "keyint=40:intra-refresh=1"]),
    scaled("slices", &["-x264-params", "keyint=25:slices=4"]),
    scaled("delimiters", &["-x264-params", "keyint=25:aud=1"]),
    scaled("full range", &["-pix_fmt", "yuvj420p", "-x264-params", "keyint=25"]),
    scaled("weighted", &["-vf", "fade=in:0:50", "-x264-params", "keyint=25:weightp=2"]),
    scaled("temporal", &["-x264-params", "keyint=25:direct=temporal:ref=8"]),
    scaled("scaling lists", &["-x264-params", "keyint=25:cqm=jvt"]),
    scaled("CAVLC", &["-x264-params", "keyint=25:cabac=0:8x8dct=0"]),
    whole("MBAFF", &["-flags", "+ilme+ildct", "-x264-params", "keyint=25:tff=1"]),
    whole("4:2:2", &["-pix_fmt", "yuv422p", "-x264-params", "keyint=25"]),
    whole("4:4:4", &["-pix_fmt", "yuv444p", "-x264-params", "keyint=25"]),
    whole("10 bits", &["-pix_fmt", "yuv420p10le", "-x264-params", "keyint=25"]),
    whole("10 bits, intra", &["-pix_fmt", "yuv420p10le", "-x264-params", "keyint=1"]),
    whole("monochrome", &["-pix_fmt", "gray", "-x264-params", "keyint=25"]),
    whole("lossless", &["-qp", "0", "-x264-params", "keyint=25"]),
];

fn generated(stream: &Stream) -> Option<Vec<u8>> {
    let source = format!("testsrc2=s={}x{}:r=25,gblur=sigma=2", SIZE.0, SIZE.1);
    let pictures = PICTURES.to_string();
    let input = ["-f", "lavfi", "-i", &source, "-frames:v", &pictures, "-c:v", "libx264"];
    let output = ["-f", format_of(stream.codec), "-"];
    let args = [&input[..], stream.args, &output].concat();
    ffmpeg(&args, b"").map(|(bytes, errors)| {
        assert!(errors.is_empty() && !bytes.is_empty(), "{}: {errors}", stream.name);
        bytes
    })
}

/// A requested form.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    pub(crate) name: &'static str,
    ask: fn(SubscriberBuilder<'_>) -> SubscriberBuilder<'_>,
    /// One picture in this many is due.
    every: usize,
    size: Option<(u32, u32)>,
}

const FORMS: &[Form] = &[
    Form { name: "all", ask: |it| it, every: 1, size: None },
    Form { name: "every 2", ask: |it| it.every(2), every: 2, size: None },
    Form { name: "every 5", ask: |it| it.every(5), every: 5, size: None },
    Form { name: "20 of 100 Hz", ask: |it| it.max_hz(20.0), every: 5, size: None },
    Form { name: "176x144", ask: |it| it.size(176, 144), every: 1, size: Some((176, 144)) },
    Form {
        name: "176x144, every 5",
        ask: |it| it.size(176, 144).every(5),
        every: 5,
        size: Some((176, 144)),
    },
];

/// The forms that only leave out pictures: all, half of them, and 5 of 25.
pub(crate) const THINNED: &[Form] = &[FORMS[0], FORMS[1], FORMS[3]];

/// The results of a form.
struct Received {
    samples: Vec<Sample>,
    /// The refusal, and the number of pictures that were published before it.
    refused: Option<(u32, RefusalReason)>,
    /// The number of samples that the link shed.
    shed: u64,
}

fn played(name: &str, codec: Codec, units: &[Vec<u8>], forms: &[Form]) -> Vec<Received> {
    let host = HostDir::new(&name.replace([' ', ':', ','], ""));
    let (robot, viewer) = (host.open("robot"), host.open("viewer"));
    let camera = robot.publisher("camera").encoding(Encoding::new(encoding(codec)));
    let mut camera = camera.hz(100.0).declare().unwrap();
    let asked = |form: &Form| (form.ask)(viewer.subscriber("camera").queue(1_000));
    let mut subscribers: Vec<Subscriber> =
        forms.iter().map(|form| asked(form).declare().unwrap()).collect();
    // A stream without a decoder is refused before the first picture, others after it.
    let known = |form: &&Form| form.size.is_none() || codec.has_transcoder();
    wait_heard(&robot, forms.iter().filter(known).count());
    let mut refused = vec![None; forms.len()];
    at_rate(100, u32::try_from(units.len()).unwrap(), |number| {
        camera.put_blocking(units[number as usize].clone()).unwrap();
        note_refusals(&mut subscribers, &mut refused, number + 1);
    });
    assert!(camera.close(Duration::from_secs(60)));
    // On a busy host the link sheds pictures that no other needs, and counts them.
    std::thread::sleep(Duration::from_millis(300));
    note_refusals(&mut subscribers, &mut refused, u32::MAX);
    let status = robot.status(SOON);
    let links = status.iter().flat_map(|node| &node.links);
    let shed = links.map(|link| link.closed.dropped.of(DropReason::QueueFull)).sum();
    let received = subscribers.into_iter().zip(refused).map(|(mut subscriber, refused)| {
        let next = || subscriber.recv_timeout(Duration::from_millis(50)).ok();
        Received { samples: std::iter::from_fn(next).collect(), refused, shed }
    });
    received.collect()
}

fn note_refusals(
    subscribers: &mut [Subscriber],
    refused: &mut [Option<(u32, RefusalReason)>],
    number: u32,
) {
    for (subscriber, refused) in subscribers.iter_mut().zip(refused) {
        for event in std::iter::from_fn(|| subscriber.try_event()) {
            if let SubscriberEvent::Refused(_, refusal) = event {
                refused.get_or_insert((number, refusal.reason));
            }
        }
    }
}

/// The result of a form in words, and its problem, if any.
pub(crate) struct Outcome {
    pub(crate) text: String,
    pub(crate) problem: Option<String>,
}

/// Publishes a stream, and checks forms without a size: pictures are complete, or as many as are due, and decodable; or
/// the subscriber soon receives a refusal.
pub(crate) fn outcomes((name, codec): (&str, Codec), bytes: &[u8], forms: &[Form]) -> Vec<Outcome> {
    let units = published(codec, bytes);
    let stream = Stream { name: "", codec, args: &[], scaled: false };
    let all = played(name, codec, &units, forms);
    let outcome = |(form, received): (&Form, &Received)| {
        let problem = problem(&stream, form, &units, received);
        let due = units.len().div_ceil(form.every);
        let text = match received.refused {
            Some((after, _)) => format!("refused after {after} pictures"),
            None => format!("{} of {due}", received.samples.len()),
        };
        let problem = problem.map(|problem| format!("{}: {problem}", form.name));
        let text = if problem.is_some() { format!("{text} (wrong)") } else { text };
        Outcome { text, problem }
    };
    forms.iter().zip(&all).map(outcome).collect()
}

/// Returns the units of a stream as they are published: parameter sets precede each key picture, and no other slice.
fn published(codec: Codec, bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut sets = Units::new(codec);
    let units = codec.split(bytes).map(Result::unwrap);
    units.map(|unit| sets.complete(unit.bytes, unit.class).into_owned()).collect()
}

fn wait_heard(node: &Node, subscriptions: usize) {
    wait_until("every subscriber receives the camera", || {
        let status = node.status(SOON);
        let all = status.iter().flat_map(|node| &node.subscriptions);
        all.filter(|subscription| !subscription.publishers.is_empty()).count() == subscriptions
    });
}

fn joined(samples: &[Sample]) -> Vec<u8> {
    samples.iter().flat_map(|sample| sample.payload.to_vec()).collect()
}

/// The pictures after which the structure of a video without a decoder is known, if its groups are longer, and the
/// pictures until its subscribers receive the refusal.
const KNOWN: u32 = 33;
const ANSWERED: u32 = 20;
/// The largest number of pictures beyond those that were due.
const AHEAD: usize = 3;

/// Returns a description if the samples of one form are not as requested.
fn problem(stream: &Stream, form: &Form, units: &[Vec<u8>], received: &Received) -> Option<String> {
    let Received { samples: got, refused, shed } = received;
    if !got.windows(2).all(|pair| pair[0].seq < pair[1].seq) {
        return Some("the order is wrong".to_owned());
    }
    if form.size.is_some() && !stream.scaled {
        let right = matches!(refused, Some((_, RefusalReason::Unscalable { .. })));
        let right = got.is_empty() && right;
        return (!right).then(|| format!("{} pictures, refused: {refused:?}", got.len()));
    }
    let delivered = joined(got);
    let size = form.size.unwrap_or(SIZE);
    let (shown, errors) = pictures(stream.codec, &delivered, size);
    let due = units.len().div_ceil(form.every);
    let counts = format!("{} of {due} due, {} shown", got.len(), shown.len());
    if shown.len() != got.len() || !errors.is_empty() {
        return Some(format!("{counts} {errors}"));
    }
    if let Some((after, reason)) = refused {
        let right = matches!(reason, RefusalReason::Unthinnable { .. });
        let soon = *after <= KNOWN + ANSWERED;
        return (!right || !soon || form.every == 1)
            .then(|| format!("refused after {after} pictures: {reason:?}"));
    }
    // References may pass before they are due, and the link of a busy host sheds others.
    let least = (due - 1).saturating_sub(usize::try_from(*shed).unwrap());
    if !(least..=due + AHEAD).contains(&got.len()) {
        return Some(counts);
    }
    if form.every > 1 {
        return None;
    }
    if form.size.is_none() {
        return incomplete(stream.codec, units, got, *shed);
    }
    let (source, _) = pictures(stream.codec, &units.concat(), size);
    let worst = shown.iter().zip(&source).map(|(a, b)| psnr(a, b)).fold(f64::MAX, f64::min);
    (worst < 28.0).then(|| format!("{worst:.1} dB"))
}

/// Returns a description if units are missing that the link has not shed, or that others need.
fn incomplete(codec: Codec, units: &[Vec<u8>], got: &[Sample], shed: u64) -> Option<String> {
    let mut rest = got.iter().peekable();
    let mut classes = Units::new(codec);
    let classes: Vec<_> = units.iter().map(|unit| classes.classify(unit).unwrap()).collect();
    let mut missing: Vec<_> = units.iter().zip(classes).collect();
    missing.retain(|(unit, _)| rest.next_if(|it| it.payload[..] == unit[..]).is_none());
    let needed = missing.iter().filter(|(_, class)| *class != Class::B).count();
    let counted = missing.len() as u64 <= shed;
    let whole = rest.next().is_none() && needed == 0 && counted;
    let missing = missing.len();
    (!whole).then(|| format!("{missing} missing, {needed} needed, {shed} shed"))
}

/// Returns the problems of all forms of one stream; `None` if ffmpeg is not installed.
fn problems(stream: &Stream) -> Option<Vec<String>> {
    let bytes = generated(stream)?;
    let units = stream.codec.split(&bytes).filter(Result::is_ok).count();
    assert_eq!(units, PICTURES, "{}", stream.name);
    Some(problems_of(stream, &bytes))
}

fn problems_of(stream: &Stream, bytes: &[u8]) -> Vec<String> {
    let units = published(stream.codec, bytes);
    let all = played(stream.name, stream.codec, &units, FORMS);
    assert_eq!(all[0].samples.first().map(|sample| sample.kind), Some(Kind::VideoI));
    let forms = FORMS.iter().zip(&all);
    let named = |form: &Form, problem| format!("{}, {}: {problem}", stream.name, form.name);
    let found = forms.filter_map(|(form, received)| {
        problem(stream, form, &units, received).map(|problem| named(form, problem))
    });
    found.collect()
}

fn encoding(codec: Codec) -> &'static str {
    match codec {
        Codec::H264 => "video/h264",
        Codec::H265 => "video/h265",
        Codec::Av1 => "video/av1",
    }
}

#[test]
fn streams_without_a_decoder_are_thinned_and_not_scaled() {
    for stream in UNDECODED {
        let Some(found) = problems(stream) else {
            println!("skipped: streams_without_a_decoder_are_thinned_and_not_scaled (no ffmpeg)");
            return;
        };
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}

#[test]
fn streams_of_x264_arrive_in_every_form() {
    let test = "streams_of_x264_arrive_in_every_form";
    let (first, second) = STREAMS.split_at(STREAMS.len() / 2);
    let run = |streams: &[Stream]| streams.iter().map(problems).collect::<Option<Vec<_>>>();
    let found = std::thread::scope(|scope| {
        let other = scope.spawn(|| run(second));
        [run(first), other.join().unwrap()]
    });
    for half in found {
        let Some(found) = half else {
            println!("skipped: {test} (ffmpeg is not installed)");
            return;
        };
        let found = found.concat();
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}

/// Field pairs (PAFF), and frames with field macroblocks, of the conformance suite.
#[test]
fn interlaced_streams_of_other_encoders_arrive_in_every_form() {
    let test = "interlaced_streams_of_other_encoders_arrive_in_every_form";
    let Some(folder) = std::env::var_os("PACELINE_DATA") else {
        println!("skipped: {test} (PACELINE_DATA is not set)");
        return;
    };
    if ffmpeg(&["-version"], &[]).is_none() {
        println!("skipped: {test} (no ffmpeg)");
        return;
    }
    for name in ["jvt_frext4_panasonic", "jvt_hpcamapalq_brcm_b"] {
        let path = std::path::Path::new(&folder).join(format!("video/{name}.264"));
        let bytes = std::fs::read(path).unwrap();
        let problems = problems_of(&whole(name, &[]), &bytes);
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }
}

/// The size changes in mid-stream, with new parameter sets.
#[test]
fn a_video_that_changes_its_size_arrives_in_every_form() {
    let stream = scaled("two sizes", &["-x264-params", "keyint=25"]);
    let smaller = scaled("two sizes", &["-vf", "scale=176:144", "-x264-params", "keyint=25"]);
    let Some(parts) = [&stream, &smaller].map(generated).into_iter().collect::<Option<Vec<_>>>()
    else {
        println!("skipped: a_video_that_changes_its_size_arrives_in_every_form (no ffmpeg)");
        return;
    };
    let bytes = [&parts[0][..], &parts[1], &parts[0]].concat();
    let ask: fn(SubscriberBuilder<'_>) -> SubscriberBuilder<'_> = |it| it.size(128, 104);
    let small = Form { name: "128x104", ask, every: 1, size: Some((128, 104)) };
    let units = published(stream.codec, &bytes);
    let all = played(stream.name, stream.codec, &units, &[FORMS[0], FORMS[1], small]);
    for (form, received) in [FORMS[0], FORMS[1], small].iter().zip(&all) {
        let problem = problem(&stream, form, &units, received);
        assert_eq!(problem, None, "{}", form.name);
    }
}

//! Streams that ffmpeg codes while they are published: from standard input, FIFOs and sockets.

use crate::ffmpeg::shell;
use crate::host::{Ended, Host, Running, arg, free_port};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Pictures and sound at their own pace.
const PICTURES: &str = "-re -f lavfi -i testsrc=size=160x120:rate=10";
const SOUND: &str = "-re -f lavfi -i sine=frequency=440:sample_rate=8000";

/// A stream: the name of a file with it, ffmpeg's input, its encoder, and further options; the media type of its samples
/// and their rate in Hz.
struct Stream {
    file: &'static str,
    input: &'static str,
    coder: &'static str,
    options: &'static str,
    encoding: &'static str,
    hz: f64,
}

const fn picture(
    file: &'static str,
    coder: &'static str,
    options: &'static str,
    encoding: &'static str,
) -> Stream {
    Stream { file, input: PICTURES, coder, options, encoding, hz: 10.0 }
}

const H264: Stream = picture(
    "h264.264",
    "libx264",
    "-preset ultrafast -tune zerolatency -g 10 -f h264",
    "video/h264",
);

/// Returns true if ffmpeg has these encoders; prints the name of the test otherwise.
fn has(test: &str, coders: &[&str]) -> bool {
    let Ok(listed) = Command::new("ffmpeg").args(["-v", "error", "-encoders"]).output() else {
        println!("skipped: {test} (ffmpeg is not installed)");
        return false;
    };
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let missing = coders.iter().find(|coder| !listed.contains(&format!(" {coder} ")));
    if let Some(missing) = missing {
        println!("skipped: {test} (ffmpeg has no {missing})");
    }
    missing.is_none()
}

impl Stream {
    /// Returns ffmpeg's command line for this many seconds, without its output.
    fn ffmpeg(&self, seconds: u32) -> String {
        let Self { input, coder, options, .. } = self;
        let kind = if self.input == SOUND { 'a' } else { 'v' };
        format!("ffmpeg -y -v error {input} -t {seconds} -c:{kind} {coder} {options}")
    }
}

/// Starts a subscription to `count` samples that writes them to a file.
fn subscribe(host: &Host, tag: &str, file: &Path, count: &str) -> Running {
    host.start(&["sub", tag, "--count", count, "--timeout", "30s", "--out", arg(file), "--json"])
}

/// Returns the numbers of the samples that ffprobe finds in a file.
fn decoded(file: &Path) -> String {
    let counted = Command::new("ffmpeg")
        .args(["-v", "error", "-i", arg(file), "-f", "framecrc", "-"])
        .output()
        .unwrap();
    assert!(counted.stderr.is_empty(), "{file:?}: {}", String::from_utf8_lossy(&counted.stderr));
    String::from_utf8(counted.stdout).unwrap()
}

/// Returns the last report of a publisher.
fn last_report(source: &Ended) -> Value {
    let reports = source.json();
    reports.into_iter().rfind(|line| line["published"].is_u64()).expect("a report")
}

/// Publishes streams that last far longer than the subscriptions to them.
fn publish_live(test: &str, streams: &[Stream]) {
    let coders: Vec<_> = streams.iter().map(|stream| stream.coder).collect();
    if !has(test, &coders) {
        return;
    }
    let host = Host::new();
    let _node = host.start_node();
    let out = |stream: &Stream| host.path(&format!("out-{}", stream.file));
    let subs: Vec<_> =
        streams.iter().map(|stream| subscribe(&host, stream.file, &out(stream), "15")).collect();
    host.wait_for_subscriptions(streams.len());
    let mut sources: Vec<_> = streams
        .iter()
        .map(|stream| {
            let line = format!("{} - | paceline pub {} - --json", stream.ffmpeg(16), stream.file);
            Running::gathered(shell(&host, &line).spawn().unwrap())
        })
        .collect();
    let subs: Vec<_> = subs.into_iter().map(Running::ended).collect();
    for (stream, sub) in streams.iter().zip(&subs) {
        assert_eq!(sub.code, Some(0), "{}: {} {:?}", stream.file, sub.stderr, sub.json());
    }
    for ((stream, sub), source) in streams.iter().zip(subs).zip(&mut sources) {
        let lines = sub.json();
        let state = source.child().try_wait().unwrap();
        assert_eq!(state, None, "{} ended before its samples arrived", stream.file);
        let numbers: Vec<_> = lines.iter().filter_map(|line| line["seq"].as_u64()).collect();
        if lines[0]["kind"] == "picture" {
            // A newer picture replaces one that waits.
            let few = numbers.is_sorted_by(|a, b| a < b) && numbers[14] < 24;
            assert!(few, "{}: {numbers:?}", stream.file);
        } else {
            assert_eq!(numbers, (0..15).collect::<Vec<_>>(), "{}: {lines:?}", stream.file);
        }
        let first = &lines[0];
        assert_eq!(first["encoding"], stream.encoding, "{first}");
        if stream.input == PICTURES {
            // The hash sums of the pictures.
            let lines = decoded(&out(stream));
            let pictures = lines.lines().filter(|line| !line.starts_with('#')).count();
            assert_eq!(pictures, 15, "{}: {lines}", stream.file);
        }
    }
    for (stream, source) in streams.iter().zip(sources) {
        let source = source.ended();
        assert_eq!(source.code, Some(0), "{}: {source:?}", stream.file);
        let last = last_report(&source);
        let due = stream.hz * 16.0;
        let published = last["published"].as_f64().unwrap();
        assert!((published - due).abs() <= 1.0, "{}: {last}", stream.file);
        assert_eq!(last["left_out"], Value::Null, "{last}");
    }
}

#[test]
fn coded_video_is_published_while_it_is_coded() {
    let obu = "-preset 12 -g 10 -svtav1-params lookahead=0:pred-struct=1 -f obu";
    let ivf = "-preset 12 -g 10 -svtav1-params lookahead=0:pred-struct=1 -f ivf";
    let hevc = "-preset ultrafast -tune zerolatency -x265-params log-level=none -g 10 -f hevc";
    publish_live(
        "coded_video_is_published_while_it_is_coded",
        &[
            H264,
            picture("hevc.265", "libx265", hevc, "video/h265"),
            picture("av1.obu", "libsvtav1", obu, "video/av1"),
            picture("ivf.obu", "libsvtav1", ivf, "video/av1"),
        ],
    );
}

#[test]
fn pictures_and_sound_are_published_while_they_are_made() {
    let raw = "video/raw;format=i420;width=160;height=120;range=limited";
    publish_live(
        "pictures_and_sound_are_published_while_they_are_made",
        &[
            picture("jpeg.mjpeg", "mjpeg", "-q:v 5 -pix_fmt yuvj422p -f mjpeg", "image/jpeg"),
            picture("raw.y4m", "wrapped_avframe", "-pix_fmt yuv420p -f yuv4mpegpipe", raw),
            Stream {
                file: "pcm.wav",
                input: SOUND,
                coder: "pcm_s16le",
                options: "-f wav",
                encoding: "audio/pcm;format=s16le;rate=8000;channels=1",
                hz: 50.0,
            },
            Stream {
                file: "opus.opus",
                input: SOUND,
                coder: "libopus",
                options: "-page_duration 100000 -f ogg",
                encoding: "audio/opus;rate=8000;channels=1",
                hz: 50.0,
            },
        ],
    );
}

#[test]
fn fifos_and_sockets_are_read_like_standard_input() {
    if !has("fifos_and_sockets_are_read_like_standard_input", &["libx264"]) {
        return;
    }
    let host = Host::new();
    let _node = host.start_node();
    let port = free_port();
    let ffmpeg = H264.ffmpeg(6);
    let lines = [
        ("fifo", format!("mkfifo fifo; {ffmpeg} fifo & paceline pub fifo --file fifo")),
        (
            "unix",
            format!(
                "{ffmpeg} -listen 1 unix:sock & until [ -S sock ] && paceline pub unix --file sock; do sleep 0.1; done"
            ),
        ),
        (
            "tcp",
            format!(
                "{ffmpeg} 'tcp://127.0.0.1:{port}?listen=1' & until paceline pub tcp --file tcp/127.0.0.1:{port}; do sleep 0.1; done"
            ),
        ),
    ];
    let subs: Vec<_> = lines
        .iter()
        .map(|(tag, _)| subscribe(&host, tag, &host.path(&format!("{tag}.264")), "15"))
        .collect();
    host.wait_for_subscriptions(lines.len());
    let sources: Vec<_> = lines
        .iter()
        .map(|(_, line)| Running::gathered(shell(&host, line).spawn().unwrap()))
        .collect();
    for ((tag, _), sub) in lines.iter().zip(subs) {
        let sub = sub.ended();
        assert_eq!(sub.code, Some(0), "{tag}: {sub:?}");
        let pictures = decoded(&host.path(&format!("{tag}.264")));
        assert_eq!(pictures.lines().filter(|line| !line.starts_with('#')).count(), 15, "{tag}");
    }
    for source in sources {
        let source = source.ended();
        source.said(0, "pictures of 160x120 at 10 Hz, video/h264");
    }
}

#[test]
fn a_stream_is_published_from_its_first_whole_picture() {
    if !has("a_stream_is_published_from_its_first_whole_picture", &["libx264", "mjpeg"]) {
        return;
    }
    let host = Host::new();
    let _node = host.start_node();
    // Without B pictures, which a queue of best effort sheds from a film that arrives at once.
    let films = "ffmpeg -v error -f lavfi -i testsrc=size=160x120:rate=10 -t 3 -c:v libx264 -bf 0 -g 10 film.264 && \
                 ffmpeg -v error -f lavfi -i testsrc=size=160x120:rate=10 -t 3 -c:v mjpeg film.mjpeg";
    assert!(shell(&host, films).status().unwrap().success());
    // Pictures that arrive at once, before the publisher is connected, replace each other: only the newest is certain.
    for (tag, encoding, left_out, count) in [
        ("film.264", "video/h264", "pictures need earlier ones and are left out", "20"),
        (
            "film.mjpeg",
            "image/jpeg",
            " bytes at byte 0 is skipped: no jpeg picture at byte 0: ",
            "1",
        ),
    ] {
        let sub = subscribe(&host, tag, &host.path(&format!("out-{tag}")), count);
        host.wait_for_subscriptions(1);
        let line = format!(
            "tail -c +1500 {tag} | paceline pub {tag} - --encoding {encoding} --hz 10 --late --json"
        );
        let source = Running::gathered(shell(&host, &line).spawn().unwrap()).ended();
        source.said(0, left_out);
        assert!(last_report(&source)["left_out"].as_u64() > Some(0), "{source:?}");
        let sub = sub.ended();
        assert_eq!(sub.code, Some(0), "{sub:?} {source:?}");
        decoded(&host.path(&format!("out-{tag}")));
    }
    // Damage between two pictures is an error, as in a file.
    let mut film = std::fs::read(host.path("film.mjpeg")).unwrap();
    let middle = film.len() / 2;
    film[middle..middle + 300].fill(0xff);
    std::fs::write(host.path("film.mjpeg"), film).unwrap();
    let pipe = "cat film.mjpeg | paceline pub film - --wait 0s --json";
    let pipe = Running::gathered(shell(&host, pipe).spawn().unwrap()).ended();
    pipe.said(1, "standard input: a damaged place of ");
    let file = host.run(&["pub", "film", "--file", "film.mjpeg", "--hz", "100", "--wait", "0s"]);
    file.said(1, "film.mjpeg: a damaged place of ");
    assert_eq!(last_report(&pipe)["published"], 29);
}

#[test]
fn both_sides_report_a_rate_that_is_not_the_declared_one() {
    if !has("both_sides_report_a_rate_that_is_not_the_declared_one", &["mjpeg"]) {
        return;
    }
    let host = Host::new();
    let _node = host.start_node();
    let sub = host.start(&["sub", "slow", "--size", "80x60", "--count", "90", "--timeout", "30s"]);
    host.wait_for_subscriptions(1);
    let line = "ffmpeg -v error -re -f lavfi -i testsrc=size=160x120:rate=10 -t 12 -c:v mjpeg -pix_fmt yuvj422p \
                -f mjpeg - | paceline pub slow - --hz 25";
    let source = Running::gathered(shell(&host, line).spawn().unwrap()).ended();
    source.said(0, "declared 25 Hz, sends ");
    let sub = sub.ended();
    sub.said(0, "rate: slow of ").said(0, "declared 25 Hz, sends ");
}

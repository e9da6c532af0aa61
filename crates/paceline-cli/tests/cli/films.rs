//! Films: published with their sound at their own times, and recorded so that they can be played after a kill.

use crate::ffmpeg::shell;
use crate::host::{Ended, Host, Running, arg};
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Pictures with B pictures, and sound that begins with them.
const FILM: &str = "ffmpeg -y -v error -f lavfi -t 4 -i testsrc2=s=160x120:r=25 -f lavfi -t 4 -i sine=r=48000 \
     -c:v libx264 -preset fast -bf 3 -g 25 -pix_fmt yuv420p -c:a aac";

/// Makes a film; without ffmpeg, prints the name of the test and returns false.
fn made(host: &Host, test: &str, output: &str) -> bool {
    let made = shell(host, &format!("{FILM} {output}")).output().unwrap();
    if !made.status.success() {
        println!("skipped: {test} (no ffmpeg with libx264)");
    }
    made.status.success()
}

/// Returns the times of a file's packets in seconds: pictures and sound, each in the order of the file.
fn times(file: &Path) -> [Vec<f64>; 2] {
    ["v:0", "a:0"].map(|stream| {
        let args = [
            "-v",
            "error",
            "-select_streams",
            stream,
            "-show_entries",
            "packet=pts_time",
            "-of",
            "csv=p=0",
        ];
        let probed = Command::new("ffprobe").args(args).arg(file).output().unwrap();
        let text = String::from_utf8_lossy(&probed.stdout).into_owned();
        text.lines().filter_map(|line| line.trim_end_matches(',').parse().ok()).collect()
    })
}

/// Checks that ffmpeg decodes a file without a message.
fn plays(file: &Path) {
    let played =
        Command::new("ffmpeg").args(["-v", "error", "-i", arg(file), "-f", "null", "-"]).output();
    let said = String::from_utf8_lossy(&played.unwrap().stderr).into_owned();
    let [pictures, _] = times(file);
    assert_eq!(said, "", "{file:?}: {pictures:?}");
}

fn samples(ended: &Ended) -> Vec<Value> {
    ended.json().into_iter().filter(|line| line.get("captured_ns").is_some()).collect()
}

/// Returns the capture times in milliseconds from the first one on.
fn captured(samples: &[Value]) -> Vec<f64> {
    let nanos = |sample: &Value| sample["captured_ns"].as_u64().unwrap();
    let first = samples.iter().map(nanos).min().unwrap();
    #[expect(clippy::cast_precision_loss, reason = "seconds")]
    samples.iter().map(|sample| (nanos(sample) - first) as f64 / 1e6).collect()
}

#[test]
fn a_film_is_published_with_its_sound_at_its_own_times() {
    let test = "a_film_is_published_with_its_sound_at_its_own_times";
    let host = Host::new();
    if !made(&host, test, "film.mp4") {
        return;
    }
    let _node = host.start_node();
    let sub = |tag: &str| host.start(&["sub", tag, "--json", "--count", "100", "--timeout", "30s"]);
    let (pictures, sound) = (sub("cam"), sub("mic"));
    host.wait_for_subscriptions(2);
    let sent = host.run(&["pub", "cam", "--file", "film.mp4", "--sound", "mic"]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert!(sent.stderr.contains("100 pictures of 160x120 at 25 Hz, video/h264"), "{sent:?}");
    let (pictures, sound) = (samples(&pictures.ended()), samples(&sound.ended()));
    let [shown, _] = times(&host.path("film.mp4"));
    let first = shown.iter().copied().fold(f64::MAX, f64::min);
    let close = |(ours, theirs): (&f64, &f64)| (ours - (theirs - first) * 1e3).abs() < 2.0;
    assert_eq!(pictures.len(), 100);
    let ours = captured(&pictures);
    assert!(ours.iter().zip(&shown).all(close), "{ours:?} {shown:?}");
    assert!(ours.windows(2).any(|pair| pair[0] > pair[1]), "pictures are in decoding order");
    assert!(sound.iter().all(|block| block["encoding"] == "audio/aac"), "{:?}", sound.first());
    let blocks = captured(&sound);
    assert!(blocks.windows(2).all(|pair| (pair[1] - pair[0] - 21.333).abs() < 2.0), "{blocks:?}");
}

#[test]
fn a_film_is_recorded_with_its_sound_and_can_be_played() {
    let test = "a_film_is_recorded_with_its_sound_and_can_be_played";
    let host = Host::new();
    if !made(&host, test, "film.mkv") {
        return;
    }
    let _node = host.start_node();
    for name in ["drive.mp4", "drive.mkv", "drive.ts"] {
        let out =
            ["sub", "cam", "--sound", "mic", "--out", name, "--count", "100", "--timeout", "30s"];
        let recorder = host.start(&out);
        host.wait_for_subscriptions(2);
        let sent = host.run(&["pub", "cam", "--file", "film.mkv", "--sound", "mic"]);
        assert_eq!(sent.code, Some(0), "{sent:?}");
        let ended = recorder.ended();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let file = host.path(name);
        plays(&file);
        let ([pictures, sound], [shown, heard]) = (times(&file), times(&host.path("film.mkv")));
        assert_eq!(pictures.len(), 100, "{name}");
        assert!(sound.len() > 180, "{name}: {} blocks", sound.len());
        // The same differences, between pictures and of pictures to sound, within a tick of Matroska and a block of sound.
        let close = |one: f64, other: f64, bound: f64| (one - other).abs() < bound;
        for (ours, theirs) in pictures.iter().zip(&shown) {
            assert!(close(ours - pictures[0], theirs - shown[0], 0.003), "{name}: {ours} {theirs}");
        }
        let (ours, theirs) = (pictures[0] - sound[0], shown[0] - heard[0]);
        assert!(close(ours, theirs, 0.025), "{name}: {ours} {theirs}");
    }
}

/// Returns the codec and the size of a file's pictures.
fn pictures_of(file: &Path) -> String {
    let entries = "stream=codec_name,width,height";
    let args = ["-v", "error", "-select_streams", "v", "-show_entries", entries, "-of", "csv=p=0"];
    let probed = Command::new("ffprobe").args(args).arg(file).output().unwrap();
    // Films in MPEG-TS are listed twice, by program.
    String::from_utf8_lossy(&probed.stdout).lines().next().unwrap_or_default().to_owned()
}

#[test]
fn the_rotation_of_a_film_is_in_its_recording() {
    let test = "the_rotation_of_a_film_is_in_its_recording";
    let host = Host::new();
    if !made(&host, test, "film.mp4") {
        return;
    }
    let turn = "ffmpeg -y -v error -i film.mp4 -c copy -metadata:s:v:0 rotate=90 turned.mp4";
    assert!(shell(&host, turn).output().unwrap().status.success());
    let rotation = |file: &str| {
        let args = ["-v", "error", "-select_streams", "v", "-show_entries"];
        let probed = Command::new("ffprobe")
            .args(args)
            .args(["stream_side_data=rotation", "-of", "csv=p=0"])
            .arg(host.path(file))
            .output();
        String::from_utf8_lossy(&probed.unwrap().stdout).trim().to_owned()
    };
    let stated = rotation("turned.mp4");
    assert!(!stated.is_empty());
    let _node = host.start_node();
    let out = ["sub", "cam", "--out", "again.mp4", "--count", "100", "--timeout", "30s"];
    let recorder = host.start(&out);
    host.wait_for_subscriptions(1);
    let sent = host.run(&["pub", "cam", "--file", "turned.mp4"]);
    assert_eq!((sent.code, recorder.ended().code), (Some(0), Some(0)), "{sent:?}");
    plays(&host.path("again.mp4"));
    assert_eq!(rotation("again.mp4"), stated);
    // A player turns the pictures of 160x120 once.
    let shown = "ffmpeg -y -v error -i again.mp4 -frames:v 1 shown.png";
    assert!(shell(&host, shown).output().unwrap().status.success());
    assert_eq!(pictures_of(&host.path("shown.png")), "png,120,160");
}

#[test]
fn a_recording_goes_on_in_another_file_when_size_or_codec_change() {
    let test = "a_recording_goes_on_in_another_file_when_size_or_codec_change";
    let host = Host::new();
    if !made(&host, test, "film.mp4") {
        return;
    }
    let coded = |size: &str, codec: &str, name: &str| {
        let line = format!(
            "ffmpeg -y -v error -f lavfi -t 2 -i testsrc2=s={size}:r=25 {codec} -pix_fmt yuv420p {name}"
        );
        assert!(shell(&host, &line).output().unwrap().status.success(), "{line}");
    };
    coded("160x120", "-c:v libx264 -bf 0 -g 25", "a.264");
    coded("320x240", "-c:v libx264 -bf 0 -g 25", "b.264");
    coded("160x120", "-c:v libx265 -x265-params log-level=error:bframes=0", "c.265");
    assert!(shell(&host, "cat a.264 b.264 > both.264").output().unwrap().status.success());
    std::fs::write(host.path("drive-2.ts"), "an earlier recording").unwrap();
    let _node = host.start_node();
    for (end, second, third) in [("mp4", 2, 3), ("mkv", 2, 3), ("ts", 3, 4)] {
        let name = format!("drive.{end}");
        let out = ["sub", "cam", "--out", &name, "--count", "150", "--timeout", "30s"];
        let recorder = host.start(&out);
        host.wait_for_subscriptions(1);
        for file in ["both.264", "c.265"] {
            let sent = host.run(&["pub", "cam", "--file", file, "--hz", "25"]);
            assert_eq!(sent.code, Some(0), "{sent:?}");
        }
        let next = format!("drive-{second}.{end}");
        recorder.ended().said(0, &format!("video/h264 of 320x240 now, and go on in {next}"));
        let files = [name, next, format!("drive-{third}.{end}")].map(|name| host.path(&name));
        let found = files.each_ref().map(|file| pictures_of(file));
        assert_eq!(found, ["h264,160,120", "h264,320,240", "hevc,160,120"]);
        for file in &files {
            plays(file);
            assert_eq!(times(file)[0].len(), 50, "{file:?}");
        }
    }
    assert_eq!(std::fs::read(host.path("drive-2.ts")).unwrap(), b"an earlier recording");
}

#[test]
fn a_film_whose_recorder_is_killed_can_be_played() {
    let test = "a_film_whose_recorder_is_killed_can_be_played";
    let host = Host::new();
    if !made(&host, test, "film.mp4") {
        return;
    }
    let _node = host.start_node();
    let _film = host.start(&["pub", "cam", "--file", "film.mp4", "--sound", "mic", "--loop"]);
    for name in ["drive.mp4", "drive.mkv", "drive.ts"] {
        let recorder = host.start(&["sub", "cam", "--sound", "mic", "--out", name]);
        host.wait_for_subscriptions(2);
        std::thread::sleep(Duration::from_millis(3_500));
        recorder.signal(Signal::KILL);
        drop(recorder);
        let file = host.path(name);
        plays(&file);
        let [pictures, sound] = times(&file);
        // Key pictures are one second apart, and the last second may be missing.
        assert!(
            pictures.len() > 25 && sound.len() > 40,
            "{name}: {} {}",
            pictures.len(),
            sound.len()
        );
    }
}

/// Publishes the output of a shell line, and returns the samples that arrive.
fn piped(host: &Host, line: &str, count: &str) -> Vec<Value> {
    let sub = host.start(&["sub", "cam", "--json", "--count", count, "--timeout", "30s"]);
    host.wait_for_subscriptions(1);
    let running = Running::gathered(shell(host, line).spawn().unwrap());
    let ended = running.ended();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    samples(&sub.ended())
}

#[test]
fn films_are_published_from_pipes_and_clear_errors_end_others() {
    let test = "films_are_published_from_pipes_and_clear_errors_end_others";
    let host = Host::new();
    if !made(&host, test, "film.mp4") {
        return;
    }
    let _node = host.start_node();
    let pipe = |format: &str| {
        format!(
            "ffmpeg -v error -re -i film.mp4 -t 1 -c copy {format} - | paceline pub cam - --sound mic --wait 5s"
        )
    };
    for format in ["-f mpegts", "-f matroska", "-movflags frag_keyframe+empty_moov -f mp4"] {
        let pictures = piped(&host, &pipe(format), "20");
        assert_eq!(pictures.len(), 20, "{format}");
        assert!(pictures.iter().all(|it| it["encoding"] == "video/h264"), "{format}");
    }
    let said = |line: &str, part: &str| {
        let ended = Running::gathered(shell(&host, line).spawn().unwrap()).ended();
        assert!(ended.code != Some(0) && ended.stderr.contains(part), "{line}: {ended:?}");
    };
    said(
        "cat film.mp4 | paceline pub cam -",
        "its index (moov) is behind its data, and a pipe cannot go back",
    );
    said("paceline pub cam --file film.mp4 --hz 10", "its units have times of their own");
    said(
        "head -c 3000 film.mp4 > cut.mp4; paceline pub cam --file cut.mp4",
        "it has no index (moov)",
    );
    said(
        "ffmpeg -v error -i film.mp4 -an -c:v mpeg2video old.ts; paceline pub cam --file old.ts",
        "is MPEG-2, which cannot be published; code its pictures again",
    );
    said(
        "ffmpeg -v error -i film.mp4 -an -c copy silent.mkv; paceline pub cam --file silent.mkv --sound mic",
        "silent.mkv has no sound; its tracks are H.264",
    );
}

#[test]
fn a_film_that_grows_is_published_to_its_end() {
    let test = "a_film_that_grows_is_published_to_its_end";
    let host = Host::new();
    if !made(&host, test, "film.mkv") {
        return;
    }
    let _node = host.start_node();
    let line = "ffmpeg -y -v error -re -i film.mkv -c copy -f matroska -cluster_time_limit 300 -flush_packets 1 grows.mkv";
    let writer = Running::gathered(shell(&host, line).spawn().unwrap());
    std::thread::sleep(Duration::from_secs(2));
    let sent = host.run(&["pub", "cam", "--file", "grows.mkv", "--wait", "0s", "--json"]);
    assert_eq!((sent.code, writer.ended().code), (Some(0), Some(0)), "{sent:?}");
    let known = sent.json();
    let published = known.last().and_then(|line| line["published"].as_u64());
    assert_eq!(published, Some(100), "{known:?}");
}

#[test]
fn the_properties_of_a_film_that_samples_lack_are_reported() {
    let test = "the_properties_of_a_film_that_samples_lack_are_reported";
    let host = Host::new();
    if !made(&host, test, "film.mp4") {
        return;
    }
    let _node = host.start_node();
    let copy =
        "ffmpeg -y -v error -ss 0.48 -i film.mp4 -c copy -metadata:s:v:0 rotate=90 turned.mp4";
    assert!(shell(&host, copy).output().unwrap().status.success());
    let sent = host.run(&["pub", "cam", "--file", "turned.mp4", "--count", "1", "--wait", "0s"]);
    for part in [
        "its pictures are to be shown rotated by 270° clockwise",
        "it is cut, and 12 pictures before its beginning are published",
        "its sound (AAC) is not published; --sound TAG publishes it",
    ] {
        assert!(sent.stderr.contains(part), "{part}: {sent:?}");
    }
}

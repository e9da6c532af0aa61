//! H.264, sound and still pictures, from files and into files.

#[path = "../../../paceline/tests/live/film.rs"]
mod film;

use crate::host::{Host, arg};
use film::{check_with_ffmpeg, decode, film};
use paceline_media::audio::{AudioFormat, Coding, read_wav, wav_header};
use paceline_media::h264;
use paceline_media::{PixelFormat, Size, TestCard, png};
use rustix::process::Signal;

#[test]
fn a_video_passes_unchanged_and_scaled() {
    let host = Host::new();
    let _node = host.start_node();
    let (file, copy, small) = (host.path("film.264"), host.path("copy.h264"), host.path("s.264"));
    let units = film(320, 240, 60, 20);
    std::fs::write(&file, units.concat()).unwrap();
    let whole = host.start(&[
        "sub",
        "film",
        "--out",
        arg(&copy),
        "--count",
        "60",
        "--timeout",
        "30s",
        "--json",
    ]);
    let half = host.start(&[
        "sub",
        "film",
        "--out",
        arg(&small),
        "--size",
        "160x120",
        "--every",
        "2",
        "--count",
        "30",
        "--timeout",
        "30s",
    ]);
    // Both subscribers exist before the first picture.
    host.wait_for_subscriptions(2);
    let player = host.run(&["pub", "film", "--file", arg(&file), "--hz", "20", "--wait", "20s"]);
    player.said(0, "film.264, 60 pictures of 320x240 at 20 Hz, video/h264");
    let whole = whole.ended();
    assert_eq!(whole.code, Some(0), "{whole:?}");
    assert!(std::fs::read(&copy).unwrap() == units.concat(), "unit by unit as it was");
    let lines = whole.json();
    assert_eq!((&lines[0]["kind"], &lines[1]["kind"]), (&"video_i".into(), &"video_p".into()));
    assert_eq!((&lines[0]["width"], &lines[0]["height"]), (&320.into(), &240.into()));
    assert_eq!(lines[0]["encoding"], "video/h264");
    let half = half.ended();
    assert_eq!(half.code, Some(0), "{half:?}");
    let stream = std::fs::read(&small).unwrap();
    let pictures = decode(h264::split(&stream).map(|unit| unit.unwrap().bytes));
    let cards: Vec<_> = pictures.iter().filter_map(|picture| picture.card).collect();
    assert_eq!(cards, (0..60).step_by(2).collect::<Vec<_>>());
    assert!(pictures.iter().all(|picture| picture.size == (160, 120)));
    check_with_ffmpeg("a_video_passes_unchanged_and_scaled", &stream, 30);
}

/// The parameter sets come only with the first picture, which needs an earlier one.
#[test]
fn parameter_sets_before_the_first_key_picture_are_kept() {
    let host = Host::new();
    let _node = host.start_node();
    let file = host.path("film.264");
    let units = film(160, 120, 20, 10);
    let (sets, picture) = (parameter_sets(&units[0]), slices(&units[10]));
    std::fs::write(&file, [&[sets, units[1].clone(), picture][..], &units[11..]].concat().concat())
        .unwrap();
    let copy = host.path("copy.h264");
    let sub =
        host.start(&["sub", "film", "--out", arg(&copy), "--count", "10", "--timeout", "30s"]);
    host.wait_for_subscriptions(1);
    let player = host.run(&["pub", "film", "--file", arg(&file), "--hz", "20", "--wait", "20s"]);
    player.said(0, "its first picture needs earlier ones and is left out");
    assert_eq!(sub.ended().code, Some(0));
    let stream = std::fs::read(&copy).unwrap();
    let pictures = decode(h264::split(&stream).map(|unit| unit.unwrap().bytes));
    assert_eq!(pictures.len(), 10);
}

/// Returns the NAL units before the first slice.
fn parameter_sets(unit: &[u8]) -> Vec<u8> {
    unit[..slice_begin(unit)].to_vec()
}

fn slices(unit: &[u8]) -> Vec<u8> {
    unit[slice_begin(unit)..].to_vec()
}

fn slice_begin(unit: &[u8]) -> usize {
    unit.windows(5).position(|bytes| bytes[..4] == [0, 0, 0, 1] && bytes[4] & 0x1f == 5).unwrap()
}

#[test]
fn a_video_loops_and_reports_its_default_rate() {
    let host = Host::new();
    let file = host.path("film.h264");
    let units = film(160, 120, 5, 5);
    // The first picture needs one that is missing.
    std::fs::write(&file, [units[1..].concat(), units.concat()].concat()).unwrap();
    let sub = host.start(&["sub", "film", "--count", "12", "--timeout", "30s", "--json"]);
    let player = host.start(&["pub", "film", "--file", arg(&file), "--loop", "--wait", "20s"]);
    let sub = sub.ended();
    assert_eq!(sub.code, Some(0), "{sub:?}");
    let alone: Vec<_> = sub.json()[..12].iter().map(|line| line["kind"] == "video_i").collect();
    let first = alone.iter().position(|alone| *alone).unwrap();
    assert_eq!(first, 0, "{alone:?}");
    assert!(alone.iter().enumerate().all(|(place, alone)| *alone == (place % 5 == 0)), "{alone:?}");
    player.signal(Signal::INT);
    let player = player.ended();
    player.said(0, "its first 4 pictures need earlier ones and are left out");
    if !player.stderr.contains("contains no rate; publishing 30") {
        assert!(player.stderr.contains(" Hz, video/h264"), "{}", player.stderr);
    }
}

#[test]
fn a_late_subscriber_sees_old_pictures_unless_it_has_a_deadline() {
    let host = Host::new();
    let _node = host.start_node();
    let file = host.path("film.264");
    // The first picture is the only one that needs no other.
    std::fs::write(&file, film(160, 120, 200, 200).concat()).unwrap();
    let _player = host.start(&["pub", "film", "--file", arg(&file), "--hz", "10"]);
    let until = std::time::Instant::now() + crate::host::LIMIT;
    loop {
        let ls: serde_json::Value =
            serde_json::from_str(&host.run(&["ls", "--json"]).text()).unwrap();
        let nodes = ls["nodes"].as_array().unwrap().iter();
        let mut films = nodes.filter_map(|node| node["publishers"].as_array()).flatten();
        if films.any(|film| film["published"].as_u64() > Some(1)) {
            break;
        }
        assert!(std::time::Instant::now() < until, "{ls}");
    }
    let sub = host.run(&["sub", "film", "--count", "5", "--timeout", "10s"]);
    assert!(sub.said(0, "").text().contains("delivered 5 samples"), "{sub:?}");
    let sub = host.run(&["sub", "film", "--count", "5", "--timeout", "3s", "--within", "500ms"]);
    sub.said(3, "waiting for a keyframe: ");
    assert!(sub.stderr.contains("waiting for a key picture of film"), "{}", sub.stderr);
}

#[test]
fn an_invalid_video_is_refused_by_name() {
    let host = Host::new();
    let (noise, empty) = (host.path("noise.264"), host.path("empty.264"));
    std::fs::write(&noise, [0x41; 1_000]).unwrap();
    std::fs::write(&empty, []).unwrap();
    host.run(&["pub", "a", "--file", arg(&noise)]).said(1, "noise.264");
    host.run(&["pub", "a", "--file", arg(&empty)]).said(1, "empty.264 has no pictures");
    host.run(&["pub", "a", "--file", arg(&noise), "--speed", "2"])
        .said(2, "--speed: only .ulg files support this option");
}

#[test]
fn sound_is_converted_as_requested() {
    let host = Host::new();
    let _node = host.start_node();
    let (file, phone) = (host.path("tone.wav"), host.path("phone.wav"));
    let format = AudioFormat::new(Coding::S16le, 48_000, 2).unwrap();
    let bytes: Vec<u8> =
        (0..48_000u32).flat_map(|n| [(n % 97) as u8, 0, (n % 97) as u8, 0]).collect();
    let header = wav_header(&format, u32::try_from(bytes.len()).unwrap());
    std::fs::write(&file, [header, bytes.clone()].concat()).unwrap();
    let same = host.start(&["sub", "tone", "--count", "50", "--timeout", "30s", "--json"]);
    let sub = host.start(&["sub", "tone", "--audio", "8000x1", "--out", arg(&phone), "--json"]);
    host.wait_for_subscriptions(2);
    let player = host.run(&["pub", "tone", "--file", arg(&file), "--wait", "20s"]);
    player.said(0, "tone.wav, 50 blocks at 50 Hz, audio/pcm;format=s16le;rate=48000;channels=2");
    let same = same.ended();
    assert_eq!(same.code, Some(0), "{same:?}");
    let lines = same.json();
    assert_eq!((&lines[0]["kind"], &lines[0]["bytes"]), (&"audio".into(), &3_840.into()));
    assert_eq!((&lines[0]["rate"], &lines[0]["channels"]), (&48_000.into(), &2.into()));
    // The header is correct although the command was interrupted.
    sub.signal(Signal::INT);
    let sub = sub.ended();
    assert_eq!(sub.code, Some(0), "{sub:?}");
    assert_eq!((&sub.json()[0]["rate"], &sub.json()[0]["channels"]), (&8_000.into(), &1.into()));
    let bytes = std::fs::read(&phone).unwrap();
    let wav = read_wav(&bytes).unwrap();
    assert_eq!(wav.format, AudioFormat::new(Coding::S16le, 8_000, 1).unwrap());
    assert_eq!(wav.note, None);
    assert!((15_600..=16_000).contains(&wav.data.len()), "{}", wav.data.len());
    host.run(&["sub", "tone", "--audio", "8000"]).said(2, "has no x; write RATExCHANNELS");
    host.run(&["pub", "tone", "--file", arg(&file), "--hz", "5"]).said(2, "has a fixed pace");
}

#[test]
fn a_still_picture_is_published_and_kept() {
    let host = Host::new();
    let (file, copy) = (host.path("card.png"), host.path("copy.png"));
    let mut card = TestCard::new(Size::new(320, 240).unwrap()).unwrap();
    std::fs::write(&file, png::encode(&card.draw(3, 4)).unwrap()).unwrap();
    let sub = host.start(&[
        "sub",
        "still",
        "--size",
        "160x120",
        "--out",
        arg(&copy),
        "--count",
        "1",
        "--timeout",
        "30s",
        "--json",
        "--read-card",
    ]);
    host.wait_for_subscriptions(1);
    let player = host.run(&["pub", "still", "--file", arg(&file), "--wait", "20s"]);
    player.said(0, "card.png, 1 picture of 320x240, image/png");
    let sub = sub.ended();
    assert_eq!(sub.code, Some(0), "{sub:?}");
    let line = &sub.json()[0];
    assert_eq!((&line["card_frame"], &line["width"]), (&3.into(), &160.into()));
    let kept = png::decode(&std::fs::read(&copy).unwrap(), PixelFormat::Rgb8).unwrap();
    assert_eq!(kept.as_picture().size(), Size::new(160, 120).unwrap());
    host.run(&["pub", "still", "--file", arg(&file), "--loop"]).said(2, "give --hz or --period");
    let cut = host.path("cut.png");
    std::fs::write(&cut, &std::fs::read(&file).unwrap()[..20]).unwrap();
    host.run(&["pub", "still", "--file", arg(&cut)]).said(1, "cut.png: png picture is cut off");
}

#[test]
fn pictures_before_a_late_join_are_not_missing() {
    let host = Host::new();
    let _node = host.start_node();
    let file = host.path("film.264");
    std::fs::write(&file, film(320, 240, 200, 100).concat()).unwrap();
    let _film = host.start(&["pub", "film", "--file", arg(&file), "--hz", "20", "--loop"]);
    let sub =
        |count: &str| host.run(&["sub", "film", "--count", count, "--timeout", "30s", "--json"]);
    // In the middle of a group of five seconds.
    let seq = sub("1").json()[0]["seq"].as_u64().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    let joined = sub("60");
    assert_eq!(joined.code, Some(0), "{joined:?}");
    let lines = joined.json();
    println!("{seq}: {:?}", lines.iter().map(|line| &line["seq"]).collect::<Vec<_>>());
    let summary = &lines[60]["summary"];
    assert_eq!(summary["missing"], 0, "{summary}");
}

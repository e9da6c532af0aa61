//! Cameras by RTSP: GStreamer's server, live, over TCP and UDP.

pub(crate) mod camera;
mod drift;
pub(crate) mod film;
mod guide;
mod rtp;
mod times;
mod trouble;

use crate::host::{Host, arg};
use camera::{Camera, LIVE, missing};
use film::Film;
use rustix::process::Signal;

#[test]
fn pictures_pass_unchanged_and_in_the_requested_form_over_tcp_and_udp() {
    if missing("pictures_pass_unchanged_and_in_the_requested_form_over_tcp_and_udp") {
        return;
    }
    let host = Host::new();
    let _node = host.start_node();
    let film = Film::new(&host, "film", (320, 240), 150);
    let camera = Camera::start(&host, &[&film.camera("x")]);
    for transport in [&[][..], &["--rtsp-udp"]] {
        let (whole, small) = (host.path("whole.264"), host.path("small.264"));
        let sub = ["sub", "cam", "--force", "--timeout", "30s", "--out"];
        let whole_sub = [&sub[..], &[arg(&whole), "--count", "100"]].concat();
        let small_sub =
            [&sub[..], &[arg(&small), "--size", "160x120", "--max-hz", "5", "--count", "10"]]
                .concat();
        let subs = [host.start(&whole_sub), host.start(&small_sub)];
        host.wait_for_subscriptions(2);
        let address = camera.address("x");
        let publisher = host
            .start(&[&["pub", "cam", "--rtsp", &address, "--wait", "20s"][..], transport].concat());
        for sub in subs {
            let ended = sub.ended();
            assert_eq!(ended.code, Some(0), "{ended:?}");
        }
        publisher.signal(Signal::INT);
        let said = publisher.ended();
        said.said(0, &format!("{address}, pictures of 320x240 at 25 Hz, video/h264"));
        assert!(!said.stderr.contains("left out"), "{}", said.stderr);
        film.check(&std::fs::read(&whole).unwrap(), 100);
        let sizes = film::probe(&small);
        assert_eq!(sizes, (160, 120, 10));
        host.wait_for_end("cam");
    }
}

#[test]
fn parameter_sets_before_each_slice_and_a_change_of_size_tear_no_picture() {
    if missing("parameter_sets_before_each_slice_and_a_change_of_size_tear_no_picture") {
        return;
    }
    let host = Host::new();
    let _node = host.start_node();
    // Films of four slices per picture, and GStreamer's sets before each slice.
    let films = [("a", (320, 240)), ("b", (480, 272))];
    let films = films.map(|(name, size)| Film::new(&host, name, size, 50));
    let both = Film::joined(&host, "both", &films);
    let camera = Camera::start(&host, &[&both.camera("x")]);
    let got = host.path("got.264");
    let sub = host.start(&["sub", "cam", "--out", arg(&got), "--count", "90", "--timeout", "30s"]);
    host.wait_for_subscriptions(1);
    let _publisher = host.start(&["pub", "cam", "--rtsp", &camera.address("x"), "--wait", "20s"]);
    let sub = sub.ended();
    assert_eq!(sub.code, Some(0), "{sub:?}");
    both.check(&std::fs::read(&got).unwrap(), 90);
}

#[test]
fn jpeg_and_h265_are_published() {
    if missing("jpeg_and_h265_are_published") {
        return;
    }
    let host = Host::new();
    let _node = host.start_node();
    let raw =
        "videotestsrc is-live=true ! video/x-raw,format=I420,width=320,height=240,framerate=25/1";
    let jpeg = format!("jpeg={raw} ! jpegenc ! rtpjpegpay name=pay0");
    let h265 = format!(
        "h265={raw} ! x265enc tune=zerolatency key-int-max=25 ! h265parse ! rtph265pay name=pay0 config-interval=-1"
    );
    let camera = Camera::start(&host, &[&jpeg, &h265]);
    for (name, file, encoding) in
        [("jpeg", "x.mjpeg", "image/jpeg"), ("h265", "x.265", "video/h265")]
    {
        let got = host.path(file);
        let sub = host.start(&[
            "sub",
            name,
            "--out",
            arg(&got),
            "--count",
            "30",
            "--timeout",
            "30s",
            "--json",
        ]);
        host.wait_for_subscriptions(1);
        let publisher =
            host.start(&["pub", name, "--rtsp", &camera.address(name), "--wait", "20s"]);
        let sub = sub.ended();
        assert_eq!(sub.code, Some(0), "{sub:?}");
        assert_eq!(sub.json()[0]["encoding"], encoding);
        assert_eq!(film::probe(&got), (320, 240, 30));
        publisher.signal(Signal::INT);
        publisher.ended().said(0, &format!("pictures of 320x240 at 25 Hz, {encoding}"));
    }
}

#[test]
fn the_sound_of_a_camera_has_a_tag_of_its_own() {
    if missing("the_sound_of_a_camera_has_a_tag_of_its_own") {
        return;
    }
    let host = Host::new();
    let _node = host.start_node();
    let source = "audiotestsrc is-live=true ! audioconvert ! audio/x-raw,rate";
    let sounds = [
        (
            "ulaw",
            "=8000,channels=1 ! mulawenc ! rtppcmupay",
            "audio/pcmu;rate=8000;channels=1",
            "x.wav",
        ),
        (
            "opus",
            "=48000,channels=2 ! opusenc ! rtpopuspay",
            "audio/opus;rate=48000;channels=2",
            "x.opus",
        ),
        ("aac", "=48000,channels=2 ! voaacenc ! rtpmp4gpay", "audio/aac", "x.aac"),
        (
            "l16",
            "=44100,channels=2 ! rtpL16pay",
            "audio/pcm;format=s16le;rate=44100;channels=2",
            "y.wav",
        ),
    ];
    let lines = sounds.map(|(name, coder, ..)| format!("{name}={LIVE} {source}{coder} name=pay1"));
    let camera = Camera::start(&host, &lines.each_ref().map(String::as_str));
    for (name, _, encoding, file) in sounds {
        let got = host.path(file);
        let sub = host.start(&[
            "sub",
            "mic",
            "--out",
            arg(&got),
            "--count",
            "20",
            "--timeout",
            "30s",
            "--json",
        ]);
        host.wait_for_subscriptions(1);
        let address = camera.address(name);
        let publisher =
            host.start(&["pub", "cam", "--rtsp", &address, "--sound", "mic", "--wait", "0s"]);
        let sub = sub.ended();
        assert_eq!(sub.code, Some(0), "{name}: {sub:?}");
        assert_eq!(sub.json()[0]["encoding"], encoding);
        film::check_sound(&got);
        publisher.signal(Signal::INT);
        publisher.ended().said(0, "publishing mic: blocks at ").said(0, encoding);
        host.wait_for_end("mic");
    }
}

#[test]
fn the_pictures_and_the_sound_of_a_camera_become_one_film_and_one_recording() {
    if missing("the_pictures_and_the_sound_of_a_camera_become_one_film_and_one_recording") {
        return;
    }
    let host = Host::new();
    let _node = host.start_node();
    let line = format!(
        "both={LIVE} audiotestsrc is-live=true ! audioconvert ! audio/x-raw,rate=48000,channels=2 ! voaacenc ! rtpmp4gpay name=pay1"
    );
    let camera = Camera::start(&host, &[&line]);
    let film =
        ["sub", "cam", "--sound", "mic", "--out", "drive.mp4", "--count", "50", "--timeout", "30s"];
    let (film, all) = (host.start(&film), host.start(&["record", "**", "--out", "run.mcap"]));
    host.wait_for_subscriptions(3);
    let address = camera.address("both");
    let publisher =
        host.start(&["pub", "cam", "--rtsp", &address, "--sound", "mic", "--wait", "0s"]);
    let film = film.ended();
    assert_eq!(film.code, Some(0), "{film:?}");
    all.signal(Signal::INT);
    let all = all.ended();
    assert_eq!(all.code, Some(0), "{all:?}");
    publisher.signal(Signal::INT);
    film::check_both(&host.path("drive.mp4"), 50);
    let judged = host.run(&["judge", "run.mcap", "--json"]).json();
    let streams = judged[0]["streams"].as_array().unwrap();
    let mut found: Vec<(&str, u64)> = streams
        .iter()
        .map(|stream| (stream["tag"].as_str().unwrap(), stream["samples"].as_u64().unwrap()))
        .collect();
    found.sort_unstable();
    assert!(matches!(found[..], [("cam", 50..), ("mic", 50..)]), "{found:?}");
}

#[test]
fn lost_packets_are_counted_and_no_damaged_picture_passes() {
    if missing("lost_packets_are_counted_and_no_damaged_picture_passes") {
        return;
    }
    let host = Host::new();
    let _node = host.start_node();
    let film = Film::new(&host, "film", (320, 240), 250);
    let lossy = film.camera("x").replace("name=pay0", "! identity drop-probability=0.02 name=pay0");
    let camera = Camera::start(&host, &[&lossy]);
    for transport in [&[][..], &["--rtsp-udp"]] {
        let got = host.path("got.264");
        let sub =
            ["sub", "cam", "--force", "--out", arg(&got), "--count", "30", "--timeout", "35s"];
        let sub = host.start(&sub);
        host.wait_for_subscriptions(1);
        let address = camera.address("x");
        let publish = ["pub", "cam", "--rtsp", &address, "--wait", "20s", "--json"];
        let publisher = host.start(&[&publish[..], transport].concat());
        let sub = sub.ended();
        assert_eq!(sub.code, Some(0), "{sub:?}");
        publisher.signal(Signal::INT);
        let publisher = publisher.ended();
        publisher.said(0, "with lost packets");
        let last = publisher.json().pop().unwrap();
        assert!(last["left_out"].as_u64() > Some(0), "{last}");
        film.check_parts(&std::fs::read(&got).unwrap());
        host.wait_for_end("cam");
    }
}

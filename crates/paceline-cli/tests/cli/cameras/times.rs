//! The capture times of sound and pictures.

use super::camera::{Camera, missing};
use crate::host::{Ended, Host};
use rustix::process::Signal;

/// The distance of pictures, and the length of a block of sound.
const PERIOD_NS: i64 = 200_000_000;

/// Returns the mean distance of the capture times from multiples of the period after `first`.
fn phase(ended: &Ended, first: i64) -> i64 {
    let times = ended.json().into_iter().filter_map(|line| line["captured_ns"].as_i64());
    let half = PERIOD_NS / 2;
    // The first ones precede the sender reports.
    let phases: Vec<i64> =
        times.skip(15).map(|time| (time - first + half).rem_euclid(PERIOD_NS) - half).collect();
    assert!(phases.len() >= 10, "{ended:?}");
    phases.iter().sum::<i64>() / i64::try_from(phases.len()).unwrap()
}

#[test]
fn sound_and_pictures_have_the_times_of_one_clock() {
    if missing("sound_and_pictures_have_the_times_of_one_clock") {
        return;
    }
    let host = Host::new();
    let _node = host.start_node();
    // Both begin a block of 200 ms at the same times.
    let stream = "x=videotestsrc is-live=true ! video/x-raw,format=I420,width=320,height=240,framerate=5/1 ! \
        x264enc tune=zerolatency key-int-max=5 ! rtph264pay name=pay0 \
        audiotestsrc is-live=true samplesperbuffer=1600 ! audio/x-raw,rate=8000,channels=1 ! mulawenc ! \
        rtppcmupay min-ptime=200000000 max-ptime=200000000 mtu=4000 name=pay1";
    let camera = Camera::start(&host, &[stream]);
    let publisher = host.start(&[
        "pub",
        "cam",
        "--rtsp",
        &camera.address("x"),
        "--sound",
        "mic",
        "--wait",
        "0s",
    ]);
    let subs = ["cam", "mic"]
        .map(|tag| host.start(&["sub", tag, "--count", "40", "--timeout", "30s", "--json"]));
    let [pictures, sound] = subs.map(|sub| sub.ended());
    publisher.signal(Signal::INT);
    publisher.ended().said(0, "publishing mic: blocks at 5 Hz");
    assert_eq!((pictures.code, sound.code), (Some(0), Some(0)), "{pictures:?} {sound:?}");
    let first = pictures.json()[20]["captured_ns"].as_i64().unwrap();
    let apart = (phase(&pictures, first) - phase(&sound, first)).abs();
    println!("sound and pictures are {:.1} ms apart", apart as f64 / 1e6);
    assert!(apart <= 20_000_000, "{apart} ns: {pictures:?} {sound:?}");
}

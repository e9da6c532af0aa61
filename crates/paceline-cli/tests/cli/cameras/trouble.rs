//! Cameras that are away, that request a login, and that send something else.

use super::camera::{Camera, LIVE, missing};
use crate::host::{Ended, Host, free_port};
use rustix::process::Signal;
use std::time::{Duration, Instant};

const SECRET: &str = "s3cret-of-the-camera";

/// The time in which a publisher that is ready sends.
const MOMENT: Duration = Duration::from_millis(500);

fn stream() -> String {
    format!("x={LIVE}")
}

#[test]
fn a_camera_that_is_late_or_starts_again_is_connected() {
    if missing("a_camera_that_is_late_or_starts_again_is_connected") {
        return;
    }
    let host = Host::new();
    let _node = host.start_node();
    for transport in [&[][..], &["--rtsp-udp"]] {
        let port = free_port();
        let address = format!("rtsp://127.0.0.1:{port}/x");
        let mut publisher =
            host.start(&[&["pub", "cam", "--rtsp", &address, "--json"][..], transport].concat());
        publisher.wait_until_said("connecting again until it sends");
        for start in 0..2 {
            let camera = Camera::at(&host, port, &[&stream()]);
            let began = Instant::now();
            let sub = host.run(&["sub", "cam", "--count", "25", "--timeout", "30s", "--json"]);
            assert_eq!(sub.code, Some(0), "start {start}: {sub:?}");
            println!(
                "start {start} {transport:?}: 25 pictures {:?} after the camera",
                began.elapsed()
            );
            drop(camera);
        }
        publisher.wait_until_said("sends again after ");
        publisher.signal(Signal::INT);
        let said = publisher.ended();
        said.said(0, "it cannot be reached: Connection refused");
        said.said(0, "connecting again until it sends").said(0, "sends again after ");
    }
}

#[test]
fn another_codec_after_a_reconnection_ends_the_command() {
    if missing("another_codec_after_a_reconnection_ends_the_command") {
        return;
    }
    let host = Host::new();
    let _node = host.start_node();
    let port = free_port();
    let camera = Camera::at(&host, port, &[&stream()]);
    let address = camera.address("x");
    let mut publisher = host.start(&["pub", "cam", "--rtsp", &address, "--wait", "0s"]);
    publisher.wait_until_said("publishing cam: ");
    drop(camera);
    let other =
        stream().replace("x264enc", "x265enc").replace("rtph264pay", "h265parse ! rtph265pay");
    let _other = Camera::at(&host, port, &[&other]);
    publisher
        .ended()
        .said(1, "it sends video/h265 now, it sent video/h264 before; start paceline pub again");
}

/// Publishes until standard error contains `part`, and checks the exit code.
fn publish(host: &Host, login: Option<&str>, args: &[&str], (code, part): (i32, &str)) -> Ended {
    let words = ["pub", "cam", "--log", "trace", "--wait", "0s"];
    let mut command = host.command(&[&words[..], args].concat());
    if let Some(login) = login {
        command.env("PACELINE_RTSP_LOGIN", login);
    }
    let mut running = crate::host::Running::gathered(command.spawn().unwrap());
    running.wait_until_said(part);
    std::thread::sleep(MOMENT);
    let ls = host.run(&["ls", "--json"]);
    assert!(!ls.text().contains(SECRET), "{}", ls.text());
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| running.signal(Signal::INT)));
    let ended = running.ended();
    let printed = format!("{} {}", ended.stderr, ended.text());
    assert!(!printed.contains(SECRET), "{printed}");
    ended.said(code, part);
    ended
}

#[test]
fn logins_are_checked_and_never_shown() {
    if missing("logins_are_checked_and_never_shown") {
        return;
    }
    let host = Host::new();
    let _node = host.start_node();
    let login = format!("admin:{SECRET}");
    let camera = Camera::at(&host, free_port(), &["--login", &login, &stream()]);
    let address = camera.address("x");
    let file = host.path("login.txt");
    std::fs::write(&file, format!("{login}\n")).unwrap();
    let with_file = ["--rtsp", &address, "--rtsp-login", "login.txt"];
    let plays = (0, "pictures of 320x240");
    publish(&host, None, &with_file, plays);
    publish(&host, Some(&login), &["--rtsp", &address], plays);
    let other = format!("{address}-2?password={SECRET}");
    let hidden = "x-2?…: the camera has no stream at this path (404)";
    publish(&host, Some(&login), &["--rtsp", &other], (1, hidden));
    let wrong = format!("admin:not-{SECRET}");
    let rejected =
        "the camera rejects the user or the password (401); check the line USER:PASSWORD";
    publish(&host, Some(&wrong), &["--rtsp", &address], (1, rejected));
    let requested = "requests a login (401); write USER:PASSWORD into a file";
    publish(&host, None, &["--rtsp", &address], (1, requested));
    let inside = format!("rtsp://{login}@127.0.0.1:{}/x", camera.port());
    let fix = "give --rtsp-login FILE, or set PACELINE_RTSP_LOGIN";
    publish(&host, None, &["--rtsp", &inside], (2, fix));
    let colon = "PACELINE_RTSP_LOGIN has no colon";
    publish(&host, Some(SECRET), &["--rtsp", &address], (2, colon));
    let file = ["--rtsp", &address, "--rtsp-login", "none.txt"];
    publish(&host, None, &file, (1, "cannot read --rtsp-login none.txt"));
}

#[test]
fn other_streams_are_refused_with_what_is_supported() {
    if missing("other_streams_are_refused_with_what_is_supported") {
        return;
    }
    let host = Host::new();
    let vp8 = "vp8=videotestsrc is-live=true ! vp8enc deadline=1 ! rtpvp8pay name=pay0";
    let sound = "sound=audiotestsrc is-live=true ! mulawenc ! rtppcmupay name=pay0";
    let camera = Camera::start(&host, &[vp8, sound, &stream()]);
    let refused = |name: &str, more: &[&str]| {
        host.run(&[&["pub", "cam", "--rtsp", &camera.address(name)][..], more].concat())
    };
    refused("vp8", &[])
        .said(1, "its pictures are VP8, must be H.264, H.265 or JPEG; choose one of these");
    refused("sound", &[]).said(1, "it has no pictures; give the address of a stream with video");
    refused("x", &["--sound", "mic"]).said(1, "it has no sound; leave --sound out");
    refused("none", &[]).said(1, "the camera has no stream at this path (404)");
    refused("x", &["--sound", "cam"]).said(2, "--sound cam: its pictures have this tag");
    refused("x", &["--loop"]).said(2, "--loop: a camera has no end; leave --loop out");
    refused("x", &["--chunk", "1kB"]).said(2, "--chunk: ");
    host.run(&["pub", "cam", "--rtsp", "192.0.2.1/x"])
        .said(2, "rtsp:// is missing; give rtsp://HOST/PATH");
    host.run(&["pub", "cam", "--rtsp", "http://192.0.2.1/x"]).said(2, "must begin with rtsp://");
    // A server of something else.
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("rtsp://{}/x", other.local_addr().unwrap());
    let mut publisher = host.start(&["pub", "cam", "--rtsp", &address]);
    let (mut stream, _) = other.accept().unwrap();
    std::io::Write::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    publisher.wait_until_said("connecting again until it sends");
    publisher.signal(Signal::INT);
    publisher.ended().said(130, "connecting again until it sends");
}

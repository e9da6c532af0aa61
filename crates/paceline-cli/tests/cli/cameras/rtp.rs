//! RTP without RTSP, sent by ffmpeg and GStreamer.

use super::camera::missing;
use super::film::Film;
use crate::host::{Host, arg, free_port};
use rustix::process::Signal;
use std::process::{Child, Command, Stdio};

/// A sender; dropping it ends its process.
struct SenderProcess(Child);

impl SenderProcess {
    fn start(program: &str, line: &str) -> Self {
        let words = line.split_whitespace();
        let child =
            Command::new(program).args(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Self(child.unwrap())
    }
}

impl Drop for SenderProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns a port whose three successors are free as well, most probably.
pub(super) fn ports() -> u16 {
    let port = free_port();
    for _ in 0..3 {
        let _ = free_port();
    }
    port + port % 2
}

#[test]
fn pictures_of_ffmpeg_pass_unchanged() {
    if missing("pictures_of_ffmpeg_pass_unchanged") {
        return;
    }
    let host = Host::new();
    let _node = host.start_node();
    let film = Film::new(&host, "film", (320, 240), 150);
    let (sdp, got) = (host.path("camera.sdp"), host.path("got.264"));
    let line = format!(
        "-v error -re -stream_loop -1 -f h264 -framerate 25 -i {} -c copy -f rtp -sdp_file {} rtp://127.0.0.1:{}",
        host.path("film.264").display(),
        sdp.display(),
        ports()
    );
    let _sender = SenderProcess::start("ffmpeg", &line);
    let until = std::time::Instant::now() + crate::host::LIMIT;
    while !std::fs::read_to_string(&sdp).is_ok_and(|text| text.contains("sprop")) {
        assert!(std::time::Instant::now() < until, "ffmpeg writes the description");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let sub = host.start(&["sub", "cam", "--out", arg(&got), "--count", "100", "--timeout", "30s"]);
    host.wait_for_subscriptions(1);
    let publisher = host.start(&["pub", "cam", "--rtp", "camera.sdp", "--wait", "20s"]);
    let sub = sub.ended();
    assert_eq!(sub.code, Some(0), "{sub:?}");
    film.check(&std::fs::read(&got).unwrap(), 100);
    publisher.signal(Signal::INT);
    publisher.ended().said(0, "camera.sdp, pictures of 320x240 at 25 Hz, video/h264");
}

#[test]
fn pictures_and_sound_of_gstreamer_arrive_and_other_types_are_named() {
    if missing("pictures_and_sound_of_gstreamer_arrive_and_other_types_are_named") {
        return;
    }
    let host = Host::new();
    let _node = host.start_node();
    let (video, audio) = (ports(), ports());
    let description = |kind: u8| {
        format!(
            "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=cam\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=video {video} RTP/AVP 96\r\n\
             a=rtpmap:96 H264/90000\r\nm=audio {audio} RTP/AVP {kind}\r\na=rtpmap:{kind} L16/44100/2\r\n"
        )
    };
    std::fs::write(host.path("right.sdp"), description(97)).unwrap();
    std::fs::write(host.path("wrong.sdp"), description(98)).unwrap();
    let line = format!(
        "-q {} audiotestsrc is-live=true ! audioconvert ! audio/x-raw,rate=44100,channels=2 ! rtpL16pay pt=97 ! \
         udpsink host=127.0.0.1 port={audio}",
        super::camera::LIVE.replace("name=pay0", &format!("pt=96 ! udpsink host=127.0.0.1 port={video}"))
    )
    .replace(&format!("port={video} config-interval=-1"), &format!("port={video}"))
    .replace("pt=96", "pt=96 config-interval=-1");
    let _sender = SenderProcess::start("gst-launch-1.0", &line);
    let sub = host.start(&["sub", "mic", "--count", "50", "--timeout", "30s", "--json"]);
    host.wait_for_subscriptions(1);
    let publisher =
        host.start(&["pub", "cam", "--rtp", "right.sdp", "--sound", "mic", "--wait", "0s"]);
    let sub = sub.ended();
    assert_eq!(sub.code, Some(0), "{sub:?}");
    assert_eq!(sub.json()[0]["encoding"], "audio/pcm;format=s16le;rate=44100;channels=2");
    publisher.signal(Signal::INT);
    publisher.ended().said(0, "right.sdp, pictures of 320x240 at 25 Hz, video/h264");
    let mut publisher =
        host.start(&["pub", "cam", "--rtp", "wrong.sdp", "--sound", "mic", "--wait", "0s"]);
    publisher.wait_until_said("correct its line m=");
    publisher.wait_until_said("publishing cam: ");
    std::thread::sleep(std::time::Duration::from_millis(500));
    publisher.signal(Signal::INT);
    publisher
        .ended()
        .said(0, "packets of payload type 97 arrive for a track of type 98; correct its line m=");
}

#[test]
fn unsuitable_descriptions_are_refused_with_a_fix() {
    let host = Host::new();
    let head = "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=cam\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n";
    for (name, text, code, said) in [
        ("a.sdp", "hello".to_owned(), 2, "--rtp: a.sdp: it is no session description"),
        (
            "b.sdp",
            format!("{head}m=video 0 RTP/AVP 26\r\n"),
            2,
            "port 0 in a line m= must be from 1 to 65534",
        ),
        ("c.sdp", head.to_owned(), 1, "c.sdp: it has no pictures"),
        (
            "d.sdp",
            format!("{head}m=video 9000 RTP/AVP 96\r\na=rtpmap:96 VP8/90000\r\n"),
            1,
            "its pictures are VP8, must be",
        ),
        (
            "e.sdp",
            format!("{head}m=video 9000 RTP/AVP 26\r\nc=IN IP4 192.0.2.1\r\n"),
            1,
            "cannot receive at 192.0.2.1:9000",
        ),
    ] {
        std::fs::write(host.path(name), text).unwrap();
        host.run(&["pub", "cam", "--rtp", name]).said(code, said);
    }
    host.run(&["pub", "cam", "--rtp", "none.sdp"]).said(1, "cannot read --rtp none.sdp");
}

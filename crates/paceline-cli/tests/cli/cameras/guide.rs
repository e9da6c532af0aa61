//! The commands of docs/guides/cameras.md, with a camera of this host.

use super::camera::{Camera, LIVE, missing};
use crate::ffmpeg::shell;
use crate::host::{Host, Running};
use rustix::process::Signal;
use std::path::Path;
use std::time::Duration;

/// The camera of the guide.
const ADDRESS: &str = "rtsp://192.168.1.20/stream";

#[test]
fn the_commands_of_the_guide_work() {
    if missing("the_commands_of_the_guide_work") {
        return;
    }
    let host = Host::new();
    let _node = host.start_node();
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/cameras.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let sound = "audiotestsrc is-live=true ! audio/x-raw,rate=8000,channels=1 ! mulawenc ! rtppcmupay name=pay1";
    let stream = format!("stream={LIVE} {sound}");
    let camera =
        Camera::at(&host, crate::host::free_port(), &["--login", "admin:PASSWORD", &stream]);
    let blocks = guide.split("```sh\n").skip(1).filter_map(|part| part.split("```").next());
    let lines: Vec<String> = blocks.flat_map(str::lines).map(str::to_owned).collect();
    assert!(lines.len() >= 8, "{lines:?}");
    // The tests of ffmpeg as a sender run plain RTP.
    let lines = lines.into_iter().filter(|line| !line.contains("camera.sdp"));
    for line in lines.map(|line| line.replace(ADDRESS, &camera.address("stream"))) {
        if !line.starts_with("paceline ") {
            assert!(shell(&host, &line).status().unwrap().success(), "{line}");
            continue;
        }
        let login = if line.contains("--rtsp-login") {
            ""
        } else {
            "PACELINE_RTSP_LOGIN=$(cat camera.txt) "
        };
        let program = line.replacen("paceline", &format!("exec \"{}\"", crate::BINARY), 1);
        let mut running =
            Running::gathered(shell(&host, &format!("{login}{program}")).spawn().unwrap());
        if line.starts_with("paceline pub ") {
            // Subscribers of it are checked by other tests.
            running.wait_until_said("stream, pictures of");
            // It waits for them for a second.
            std::thread::sleep(Duration::from_millis(1_500));
        } else {
            std::thread::sleep(Duration::from_millis(300));
        }
        running.signal(Signal::INT);
        let ended = running.ended();
        assert!(!ended.stderr.contains("error"), "{line}: {ended:?}");
        if line.starts_with("paceline pub ") {
            ended.said(0, "stream, pictures of 320x240 at 25 Hz, video/h264");
        }
    }
}

//! A camera in a process of its own.

use crate::host::{Host, free_port};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

/// The Python of the system, for which the packages of GStreamer are.
const PYTHON: &str = "/usr/bin/python3";
/// Pictures without an end.
pub(crate) const LIVE: &str = "videotestsrc is-live=true ! video/x-raw,format=I420,width=320,height=240,framerate=25/1 ! \
    x264enc tune=zerolatency key-int-max=25 ! rtph264pay name=pay0 config-interval=-1";

/// A running camera; dropping it ends its process.
pub(crate) struct Camera {
    child: Child,
    port: u16,
}

/// Returns true, and prints why, if this machine has no camera.
pub(crate) fn missing(test: &str) -> bool {
    let check = "import gi; gi.require_version('GstRtspServer', '1.0'); from gi.repository import Gst, GstRtspServer; \
        Gst.init(None); assert all(map(Gst.ElementFactory.find, ['x264enc', 'x265enc', 'rtph264pay', 'jpegenc', 'voaacenc', 'opusenc', 'vp8enc', 'h264parse', 'tsdemux']))";
    let ran = Command::new(PYTHON).args(["-c", check]).stderr(Stdio::null()).status();
    let found = ran.is_ok_and(|status| status.success());
    let programs = [("ffmpeg", "-version"), ("gst-launch-1.0", "--version")];
    if !found || programs.iter().any(|(name, flag)| Command::new(name).arg(flag).output().is_err())
    {
        println!(
            "skipped: {test} (no ffmpeg, or no GStreamer with an RTSP server, x264enc, x265enc, opusenc and voaacenc)"
        );
        return true;
    }
    false
}

impl Camera {
    pub(crate) fn start(host: &Host, streams: &[&str]) -> Self {
        Self::at(host, free_port(), streams)
    }

    pub(crate) fn at(host: &Host, port: u16, words: &[&str]) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/cameras/camera.py");
        let mut command = Command::new(PYTHON);
        command.arg(script).arg(port.to_string()).args(words).current_dir(host.path("."));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self { child, port }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn address(&self, name: &str) -> String {
        format!("rtsp://127.0.0.1:{}/{name}", self.port)
    }
}

impl Drop for Camera {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

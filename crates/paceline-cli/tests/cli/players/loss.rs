//! Players over UDP whose packets are lost: 2 % of them, by a proxy between the player and the node.

use super::server::{publish, serve};
use crate::cameras::camera::missing;
use crate::cameras::film::Film;
use crate::host::{Host, Running, arg};
use rustix::process::Signal;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};

const LOSS: &str = "0.02";

/// A proxy that drops packets.
struct LossyPath {
    child: Child,
    output: BufReader<ChildStdout>,
    port: String,
}

impl LossyPath {
    fn start(server: &str, seed: &str) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/players/lossy.py");
        let mut command = Command::new("python3");
        command.args([script, server, LOSS, seed]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut port = String::new();
        output.read_line(&mut port).unwrap();
        Self { child, output, port: port.trim().to_owned() }
    }

    fn url(&self, tag: &str) -> String {
        format!("rtsp://127.0.0.1:{}/{tag}", self.port)
    }

    /// Returns the numbers of packets that passed and that were dropped.
    fn ended(mut self) -> (u64, u64) {
        drop(self.child.stdin.take());
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        self.child.wait().unwrap();
        let numbers: Vec<u64> =
            text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [passed, dropped] = numbers[..] else { panic!("{text}") };
        (passed, dropped)
    }
}

/// Returns the port in an address.
fn port(url: &str) -> String {
    url.trim_start_matches("rtsp://127.0.0.1:").split('/').next().unwrap().to_owned()
}

#[test]
fn at_2_percent_loss_paceline_delivers_whole_pictures_and_counts_the_others() {
    if missing("at_2_percent_loss_paceline_delivers_whole_pictures_and_counts_the_others") {
        return;
    }
    let host = Host::new();
    let film = Film::new(&host, "film", (640, 360), 150);
    let (_node, url) = serve(&host, &[]);
    let _publisher = publish(&host, "cam", "film.264", &["--hz", "25", "--loop"]);
    let path = LossyPath::start(&port(&url("")), "7");
    let got = host.path("again.264");
    let sub = host.start(&["sub", "again", "--out", arg(&got), "--timeout", "60s"]);
    host.wait_for_subscriptions(1);
    let mut command = host.command(&[
        "pub",
        "again",
        "--rtsp",
        &path.url("cam"),
        "--rtsp-udp",
        "--hz",
        "25",
        "--wait",
        "20s",
        "--json",
    ]);
    let again = Running::gathered(command.spawn().unwrap());
    std::thread::sleep(std::time::Duration::from_secs(15));
    again.signal(Signal::INT);
    let again = again.ended();
    sub.signal(Signal::INT);
    let sub = sub.ended();
    assert_eq!((again.code, sub.code), (Some(0), Some(0)), "{again:?} {sub:?}");
    let summary = again.json().into_iter().rfind(|line| line["left_out"].is_u64());
    let left_out = summary.unwrap_or_else(|| panic!("{again:?}"))["left_out"].as_u64().unwrap();
    let (received, missing) = film.gaps(&std::fs::read(&got).unwrap());
    let (passed, dropped) = path.ended();
    println!(
        "{dropped} of {} packets lost: {received} pictures delivered, {missing} missing between them, {left_out} counted",
        passed + dropped
    );
    assert!(dropped > 0 && missing > 0, "the test has losses");
    // Up to a group was lost before the first picture that was delivered, and behind the last one.
    let ends = left_out.saturating_sub(missing);
    assert!(left_out >= missing && ends <= 50, "{left_out} counted, {missing} missing");
    again.said(0, "with lost packets");
}

#[test]
fn at_2_percent_loss_ffmpeg_and_gstreamer_go_on_and_their_reports_are_counted() {
    if missing("at_2_percent_loss_ffmpeg_and_gstreamer_go_on_and_their_reports_are_counted") {
        return;
    }
    let host = Host::new();
    let _film = Film::new(&host, "film", (640, 360), 150);
    let (_node, url) = serve(&host, &[]);
    let _publisher = publish(&host, "cam", "film.264", &["--hz", "25", "--loop"]);
    for (seed, program) in [("3", "ffmpeg"), ("5", "gst-launch-1.0")] {
        let path = LossyPath::start(&port(&url("")), seed);
        let from = path.url("cam");
        let location = format!("location={from}");
        let words: &[&str] = match program {
            "ffmpeg" => &[
                "-v",
                "error",
                "-max_delay",
                "0",
                "-rtsp_transport",
                "udp",
                "-i",
                &from,
                "-frames:v",
                "250",
                "-f",
                "null",
                "-",
            ],
            _ => &[
                "-q",
                "rtspsrc",
                &location,
                "protocols=udp",
                "latency=200",
                "!",
                "rtph264depay",
                "!",
                "avdec_h264",
                "!",
                "identity",
                "eos-after=251",
                "!",
                "fakesink",
            ],
        };
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let ended = Running::gathered(command.spawn().unwrap()).ended();
        assert_eq!(ended.code, Some(0), "{program}: {ended:?}");
        let (passed, dropped) = path.ended();
        println!(
            "{program}: 250 pictures, {dropped} of {} packets lost, {} lines of its decoder",
            passed + dropped,
            ended.stderr.lines().count()
        );
        assert!(dropped > 0, "the test has losses");
    }
    let players = players(&host, "cam");
    println!("reported: {players}");
    let count = |name: &str| players[name].as_u64().unwrap();
    let (reported, lost) = (count("reported"), count("lost"));
    assert!(reported > 0 && reported <= count("packets"), "{players}");
    // About 2 % of some hundred packets.
    assert!(lost > 0 && lost * 10 < reported, "{players}");
    assert_eq!(count("left_out_slow"), 0, "{players}");
}

/// Returns the players of a tag in the status.
fn players(host: &Host, tag: &str) -> serde_json::Value {
    let ls = host.status();
    let nodes = ls["nodes"].as_array().unwrap();
    let rows = nodes.iter().flat_map(|node| node["subscriptions"].as_array().unwrap());
    let mut own = rows.filter(|row| row["pattern"] == tag && !row["players"].is_null());
    own.next().unwrap_or_else(|| panic!("{ls}"))["players"].clone()
}

//! A node with a server of players, and the programs that read from it.

use crate::host::{Ended, Host, Running, arg, free_port};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The time in which each program must end.
const WITHIN: Duration = Duration::from_secs(30);

/// Starts the node of a host with a server of players. Returns it, and a function for the address of a tag.
pub(super) fn serve(host: &Host, more: &[&str]) -> (Running, impl Fn(&str) -> String + use<>) {
    let address = format!("127.0.0.1:{}", free_port());
    let args = [&["node", "--rtsp", &address, "--json"], more].concat();
    let mut command = host.command(&args);
    command.env("PACELINE_LOG", "info");
    let node = Running::gathered(command.spawn().unwrap());
    let until = Instant::now() + WITHIN;
    while std::net::TcpStream::connect(&address).is_err() {
        assert!(Instant::now() < until, "the server listens");
        std::thread::sleep(Duration::from_millis(10));
    }
    (node, move |tag: &str| format!("rtsp://{address}/{tag}"))
}

/// Publishes a file, and waits until the tag is known.
pub(super) fn publish(host: &Host, tag: &str, file: &str, more: &[&str]) -> Running {
    let running = host.start(&[&["pub", tag, "--file", file, "--wait", "0s"], more].concat());
    host.wait_for_publisher(tag);
    running
}

/// Runs a program that ends by itself.
fn run(command: &mut Command) -> Ended {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    Running::gathered(child.unwrap()).ended()
}

/// Runs ffmpeg.
pub(super) fn ffmpeg_words(words: &[&str]) {
    let ended = run(Command::new("ffmpeg").args(["-y", "-v", "error"]).args(words));
    assert_eq!(ended.code, Some(0), "{words:?}: {ended:?}");
}

/// Reads an address with ffmpeg, whose standard error is empty unless a decoder or its RTSP client complains.
pub(super) fn ffmpeg(host: &Host, url: &str, transport: &str, out: &[&str]) -> Ended {
    let words =
        ["-y", "-v", "error", "-max_delay", "500000", "-rtsp_transport", transport, "-i", url];
    let ended = run(Command::new("ffmpeg").args(words).args(out).current_dir(host.path(".")));
    // Its writers of plain streams count time in pictures, and a busy machine publishes two of them within one.
    let said = ended
        .stderr
        .lines()
        .filter(|line| !line.contains("non monotonically increasing dts to muxer"));
    let said: Vec<&str> = said.collect();
    assert!(said.is_empty(), "{url}: {said:?}");
    ended
}

/// Returns the error that ffmpeg shows for an address.
pub(super) fn said(host: &Host, url: &str) -> String {
    let words = ["-v", "error", "-rtsp_transport", "tcp", "-i", url, "-f", "null", "-"];
    let ended = run(Command::new("ffmpeg").args(words).current_dir(host.path(".")));
    assert_ne!(ended.code, Some(0), "{url}");
    ended.stderr
}

/// Reads pictures of H.264 with GStreamer.
pub(super) fn gstreamer(host: &Host, url: &str, transport: &str, out: &Path, pictures: u32) {
    let (location, protocols) = (format!("location={url}"), format!("protocols={transport}"));
    let file = format!("location={}", out.display());
    let words = [
        "-q",
        "rtspsrc",
        &location,
        &protocols,
        "latency=200",
        "!",
        "rtph264depay",
        "!",
        "video/x-h264,stream-format=byte-stream,alignment=au",
        "!",
        "identity",
    ];
    let end = format!("eos-after={}", pictures + 1);
    let words = [&words[..], &[&end, "!", "filesink", &file]].concat();
    let ended = run(Command::new("gst-launch-1.0").args(words).current_dir(host.path(".")));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.stderr.contains("ERROR"), "{ended:?}");
}

fn probe(words: &[&str]) -> Vec<String> {
    let ended = run(Command::new("ffprobe").args(["-v", "error", "-of", "csv=p=0"]).args(words));
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{words:?}");
    ended.text().lines().map(|line| line.trim_end_matches(',').to_owned()).collect()
}

/// Returns the codecs of a file's streams.
pub(super) fn streams(file: &Path) -> Vec<String> {
    probe(&["-show_entries", "stream=codec_name", arg(file)])
}

/// Returns the times of decoded pictures in seconds, in the order in which they are shown.
pub(super) fn times(url: &str, transport: &str, pictures: u32) -> Vec<f64> {
    let packets = format!("%+#{pictures}");
    let words = ["-rtsp_transport", transport, "-read_intervals", &packets, "-select_streams", "v"];
    let lines = probe(&[&words[..], &["-show_entries", "frame=pts_time", url]].concat());
    // ffprobe knows no time of the first picture of a stream with B pictures, and prints other data of pictures.
    let times: Vec<f64> = lines.iter().filter_map(|line| line.parse().ok()).collect();
    assert!(times.len() + 10 >= usize::try_from(pictures).unwrap(), "{lines:?}");
    times
}

/// Returns the times of the packets of pictures and sound in seconds.
pub(super) fn packet_times(url: &str, transport: &str) -> [Vec<f64>; 2] {
    let words = ["-rtsp_transport", transport, "-read_intervals", "%+6"];
    let show = ["-show_entries", "packet=stream_index,pts_time", url];
    let lines = probe(&[&words[..], &show].concat());
    ["0,", "1,"].map(|stream| {
        let own = lines.iter().filter_map(|line| line.strip_prefix(stream));
        own.filter_map(|time| time.split(',').next()?.parse().ok()).collect()
    })
}

/// Returns the capture times of samples in seconds.
pub(super) fn capture_times(sub: &Ended) -> Vec<f64> {
    assert_eq!(sub.code, Some(0), "{sub:?}");
    let nanos = sub.json().into_iter().filter_map(|line| line["captured_ns"].as_i64());
    nanos.map(|nanos| nanos as f64 / 1e9).collect()
}

/// Returns the mean distance of pictures and sound in seconds, of which both begin every `period`.
pub(super) fn apart(times: &[Vec<f64>; 2], period: f64) -> f64 {
    // The pictures since the key picture are sent at once, with other times.
    let [pictures, sound] = times.each_ref().map(|times| times.get(15..).unwrap_or_default());
    assert!(pictures.len() >= 15 && sound.len() >= 15, "{times:?}");
    let first = pictures[0];
    let mean = |times: &[f64]| {
        let half = period / 2.0;
        let phases = times.iter().map(|time| (time - first + half).rem_euclid(period) - half);
        phases.sum::<f64>() / times.len() as f64
    };
    mean(sound) - mean(pictures)
}

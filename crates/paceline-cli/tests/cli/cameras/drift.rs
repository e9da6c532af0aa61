//! A camera whose clocks drift: its pictures, its sound and its sender reports have three different paces.

use super::film::Film;
use super::rtp::ports;
use crate::host::{Ended, Host};
use bytes::Bytes;
use paceline_edge::{Packetizer, RtpHeader, SentReport, TrackFormat, ticks};
use rustix::process::Signal;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The distance of pictures, and the length of a block of sound, on the clock of the host.
const PERIOD_NS: i64 = 100_000_000;
/// A camera whose clock was never set.
const CAMERA_EPOCH_NS: i64 = 86_400_000_000_000;
/// The most by which sound and pictures may be apart.
const APART_MAX_NS: i64 = 20_000_000;

/// The drift of the clocks of a camera, and the time between its reports.
#[derive(Clone, Copy)]
struct Drift {
    pictures_ppm: i64,
    sound_ppm: i64,
    reports_ppm: i64,
    report_every: i64,
}

/// A track that is sent.
struct Track {
    socket: UdpSocket,
    port: u16,
    payload_type: u8,
    rate: u32,
    ppm: i64,
    packetizer: Packetizer,
    sequence: u16,
    sent: SentReport,
}

fn drifted(nanos: i64, ppm: i64) -> i64 {
    nanos + nanos / 1_000 * ppm / 1_000
}

impl Track {
    fn new(port: u16, payload_type: u8, format: TrackFormat, ppm: i64) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (rate, packetizer) = (format.clock_rate(), Packetizer::new(format));
        let sent = SentReport { ssrc: u32::from(port), ..SentReport::default() };
        Self { socket, port, payload_type, rate, ppm, packetizer, sequence: 0, sent }
    }

    /// Returns the RTP time of a time of the host.
    fn time(&self, nanos: i64) -> u32 {
        u32::try_from(ticks(drifted(nanos, self.ppm), self.rate)).unwrap()
    }

    fn send(&mut self, nanos: i64, unit: &Bytes) {
        for part in self.packetizer.cut(unit).unwrap() {
            let header = RtpHeader {
                marker: part.marker,
                payload_type: self.payload_type,
                sequence: self.sequence,
                time: self.time(nanos).wrapping_add(part.after),
                ssrc: self.sent.ssrc,
            };
            self.sequence = self.sequence.wrapping_add(1);
            self.sent.packets += 1;
            self.sent.bytes += u32::try_from(part.payload.len()).unwrap();
            let packet = [&header.to_bytes()[..], &part.payload].concat();
            let _ = self.socket.send_to(&packet, ("127.0.0.1", self.port));
        }
    }

    fn report(&mut self, nanos: i64, ppm: i64) {
        self.sent.nanos = u64::try_from(CAMERA_EPOCH_NS + drifted(nanos, ppm)).unwrap();
        self.sent.time = self.time(nanos);
        let report = self.sent.to_bytes("camera");
        let _ = self.socket.send_to(&report, ("127.0.0.1", self.port + 1));
    }
}

/// Sends pictures and sound until `over`.
fn send(film: &[Bytes], mut tracks: [Track; 2], drift: Drift, over: &AtomicBool) {
    let began = Instant::now();
    let sound = Bytes::from(vec![0xff; 800]);
    for number in 0_i64.. {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let nanos = number * PERIOD_NS;
        let due = began + Duration::from_nanos(u64::try_from(nanos).unwrap());
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let [pictures, blocks] = &mut tracks;
        if number % drift.report_every == 0 {
            pictures.report(nanos, drift.reports_ppm);
            blocks.report(nanos, drift.reports_ppm);
        }
        let picture = usize::try_from(number).unwrap() % film.len();
        pictures.send(nanos, &film[picture]);
        blocks.send(nanos, &sound);
    }
}

/// Returns by how much each capture time differs from its place in the flow of one per period.
fn deviations(ended: &Ended, first: i64) -> Vec<(i64, i64)> {
    let lines = ended.json();
    let samples = lines
        .iter()
        .filter_map(|line| Some((line["seq"].as_i64()?, line["captured_ns"].as_i64()?)));
    let mut place = None;
    let found = samples.map(|(seq, captured)| {
        let since = captured - first;
        // The first sample of a track may not be the first one of the camera.
        let shift =
            *place.get_or_insert_with(|| (since + PERIOD_NS / 2).div_euclid(PERIOD_NS) - seq);
        (seq + shift, since - (seq + shift) * PERIOD_NS)
    });
    found.collect()
}

/// Publishes the camera, and checks its times for a number of samples.
fn check(drift: Drift, samples: u32) {
    let host = Host::new();
    let _node = host.start_node();
    let _film = Film::new(&host, "film", (320, 240), 50);
    let bytes = std::fs::read(host.path("film.264")).unwrap();
    let units = paceline_media::h264::split(&bytes);
    let film: Vec<Bytes> = units.map(|unit| Bytes::copy_from_slice(unit.unwrap().bytes)).collect();
    let (video, audio) = (ports(), ports());
    let text = format!(
        "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=cam\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=video {video} RTP/AVP 96\r\n\
         a=rtpmap:96 H264/90000\r\nm=audio {audio} RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\n"
    );
    std::fs::write(host.path("camera.sdp"), text).unwrap();
    let count = samples.to_string();
    let timeout = format!("{}s", samples / 10 + 30);
    let subs = ["cam", "mic"]
        .map(|tag| host.start(&["sub", tag, "--count", &count, "--timeout", &timeout, "--json"]));
    host.wait_for_subscriptions(2);
    let publisher = host.start(&[
        "pub",
        "cam",
        "--rtp",
        "camera.sdp",
        "--sound",
        "mic",
        "--hz",
        "10",
        "--wait",
        "0s",
    ]);
    let tracks = [
        Track::new(video, 96, TrackFormat::H264, drift.pictures_ppm),
        Track::new(audio, 0, TrackFormat::Pcmu { rate: 8_000, channels: 1 }, drift.sound_ppm),
    ];
    let over = Arc::new(AtomicBool::new(false));
    let ends = over.clone();
    let sender = std::thread::spawn(move || send(&film, tracks, drift, &ends));
    std::thread::sleep(Duration::from_secs(u64::from(samples / 10)));
    let subs = subs.map(|sub| sub.ended());
    over.store(true, Ordering::Relaxed);
    sender.join().unwrap();
    publisher.signal(Signal::INT);
    let publisher = publisher.ended();
    assert!(!publisher.stderr.contains("lost"), "{}", publisher.stderr);
    let [pictures, sound] = subs;
    assert_eq!((pictures.code, sound.code), (Some(0), Some(0)), "{pictures:?} {sound:?}");
    let first = pictures.json()[0]["captured_ns"].as_i64().unwrap();
    let (pictures, sound) = (deviations(&pictures, first), deviations(&sound, first));
    let pairs = pictures.iter().filter_map(|(place, picture)| {
        let block = sound.iter().find(|(other, _)| other == place)?;
        Some((*place, picture - block.1))
    });
    // Two reports place the tracks next to each other.
    let settled = 2 * drift.report_every + 1;
    let apart: Vec<i64> =
        pairs.filter(|(place, _)| *place > settled).map(|(_, apart)| apart).collect();
    assert!(apart.len() * 10 > usize::try_from(samples).unwrap() * 7, "{} pairs", apart.len());
    let most = apart.iter().map(|apart| apart.abs()).max().unwrap();
    let free =
        PERIOD_NS * i64::from(samples) / 1_000_000 * (drift.sound_ppm - drift.pictures_ppm).abs();
    println!(
        "{} s: sound and pictures at most {:.1} ms apart; without the reports {:.1} ms at the end",
        samples / 10,
        most as f64 / 1e6,
        free as f64 / 1e6
    );
    assert!(free > 2 * APART_MAX_NS, "the drift would be noticed");
    assert!(most <= APART_MAX_NS, "{most} ns: {apart:?}");
}

#[test]
fn sound_and_pictures_of_drifting_clocks_stay_together() {
    if super::camera::missing("sound_and_pictures_of_drifting_clocks_stay_together") {
        return;
    }
    // 15 s with 80 times the drift of quartz clocks.
    let drift =
        Drift { pictures_ppm: -2_000, sound_ppm: 2_000, reports_ppm: 1_000, report_every: 10 };
    check(drift, 150);
}

#[test]
#[ignore = "takes ten minutes; `cargo xtask long` runs it"]
fn sound_and_pictures_of_drifting_clocks_stay_together_for_ten_minutes() {
    if super::camera::missing("sound_and_pictures_of_drifting_clocks_stay_together_for_ten_minutes")
    {
        return;
    }
    let drift = Drift { pictures_ppm: -150, sound_ppm: 150, reports_ppm: 100, report_every: 50 };
    check(drift, 6_000);
}

//! Players of RTSP: ffmpeg, GStreamer and Paceline itself read tags of a node, live, over TCP and UDP.

mod crowd;
mod loss;
mod raw;
mod server;

use crate::cameras::camera::{Camera, LIVE, missing};
use crate::cameras::film::{self, Film};
use crate::host::{Host, arg, free_port};
use raw::RawPlayer;
use rustix::process::Signal;
use server::{ffmpeg, ffmpeg_words, gstreamer, publish, said, serve};

#[test]
fn ffmpeg_and_gstreamer_read_every_slice_unchanged_over_tcp_and_udp() {
    if missing("ffmpeg_and_gstreamer_read_every_slice_unchanged_over_tcp_and_udp") {
        return;
    }
    let host = Host::new();
    let film = Film::new(&host, "film", (320, 240), 150);
    let (node, url) = serve(&host, &[]);
    let _publisher = publish(&host, "cam", "film.264", &["--hz", "25", "--loop"]);
    for transport in ["tcp", "udp"] {
        let got = host.path(&format!("ffmpeg-{transport}.264"));
        let out = ["-c", "copy", "-frames:v", "100", "-f", "h264", arg(&got)];
        ffmpeg(&host, &url("cam"), transport, &out).said(0, "");
        film.check(&std::fs::read(&got).unwrap(), 100);
        let got = host.path(&format!("gstreamer-{transport}.264"));
        gstreamer(&host, &url("cam"), transport, &got, 100);
        film.check(&std::fs::read(&got).unwrap(), 100);
    }
    node.signal(Signal::INT);
    let log = node.ended();
    assert!(!log.stderr.contains("left out"), "{}", log.stderr);
    log.said(0, "sets up rtsp://").said(0, " over UDP: best effort").said(0, "packets");
}

#[test]
fn a_player_of_paceline_and_a_decoder_read_the_requested_form() {
    if missing("a_player_of_paceline_and_a_decoder_read_the_requested_form") {
        return;
    }
    let host = Host::new();
    let film = Film::new(&host, "film", (320, 240), 150);
    let (_node, url) = serve(&host, &[]);
    let _publisher = publish(&host, "cam", "film.264", &["--hz", "25", "--loop"]);
    // Its own publisher is a player.
    let got = host.path("again.264");
    let sub =
        host.start(&["sub", "again", "--out", arg(&got), "--count", "50", "--timeout", "30s"]);
    host.wait_for_subscriptions(1);
    let _again = host.start(&["pub", "again", "--rtsp", &url("cam"), "--wait", "20s"]);
    let sub = sub.ended();
    assert_eq!(sub.code, Some(0), "{sub:?}");
    // It receives the pictures since the key picture at once.
    film.check(&std::fs::read(&got).unwrap(), 50);
    // A smaller form, decoded without a word.
    let small = url("cam?max_hz=5&size=160x120");
    ffmpeg(&host, &small, "tcp", &["-frames:v", "10", "-f", "null", "-"]).said(0, "");
    let got = host.path("small.264");
    let out = ["-c", "copy", "-frames:v", "10", "-f", "h264", arg(&got)];
    ffmpeg(&host, &small, "udp", &out).said(0, "");
    assert_eq!(film::probe(&got), (160, 120, 10));
}

#[test]
fn refusals_name_their_reason_and_the_address_that_is_granted() {
    if missing("refusals_name_their_reason_and_the_address_that_is_granted") {
        return;
    }
    let (robot, desk) = (Host::new(), Host::new());
    let port = free_port();
    let link = |end: &str| format!("name=thin,{end}=tcp/127.0.0.1:{port},capacity=300kbit");
    let _robot = robot.start(&["node", "--link", &link("listen")]);
    let (node, url) = serve(&desk, &["--link", &link("connect")]);
    let _publisher = robot.start(&["pub", "cam", "--test-card", "320x240@25"]);
    desk.wait_for_publisher("cam");
    let refused = |address: &str, parts: &[&str]| {
        let said = said(&desk, &url(address));
        assert!(parts.iter().all(|part| said.contains(part)), "{address}: {said}");
        said
    };
    let text = refused(
        "cam?within=200ms",
        &["453 Not Enough Bandwidth: try rtsp://127.0.0.1:", "link 'thin'"],
    );
    let offer = text.split("try ").nth(1).unwrap().split_whitespace().next().unwrap();
    let offer = offer.trim_end_matches([')', ';']);
    assert!(offer.contains("within=200ms&"), "{offer}");
    ffmpeg(&desk, offer, "tcp", &["-frames:v", "3", "-f", "null", "-"]).said(0, "");
    refused("nothing", &["404 Not Found: nothing: nobody publishes it; published: cam"]);
    refused("cam?max_hertz=3", &["451 Parameter Not Understood", "--max-hz, --every"]);
    let _values = desk.start(&["pub", "pose", "{\"x\": 1}", "--hz", "5"]);
    refused("pose", &["415 Unsupported Media Type: pose: its samples are application/json"]);
    node.signal(Signal::INT);
    node.ended().said(0, "Not Enough Bandwidth: try rtsp://");
}

#[test]
fn a_late_player_gets_a_picture_at_once_and_players_share_a_subscription() {
    if missing("a_late_player_gets_a_picture_at_once_and_players_share_a_subscription") {
        return;
    }
    let host = Host::new();
    // Key pictures are 20 s apart.
    let film = host.path("long.264");
    ffmpeg_words(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc=size=320x240:rate=25",
        "-frames:v",
        "500",
        "-c:v",
        "libx264",
        "-bf",
        "0",
        "-g",
        "500",
        "-x264-params",
        "scenecut=0",
        "-pix_fmt",
        "yuv420p",
        "-f",
        "h264",
        arg(&film),
    ]);
    let (_node, url) = serve(&host, &[]);
    let _publisher = publish(&host, "cam", "long.264", &["--hz", "25"]);
    let mut first = RawPlayer::open(&url("cam"));
    first.packets(200);
    let began = std::time::Instant::now();
    ffmpeg(&host, &url("cam"), "tcp", &["-frames:v", "20", "-f", "null", "-"]).said(0, "");
    let took = began.elapsed();
    println!("20 pictures after {took:.1?}");
    assert!(took.as_secs() < 8, "{took:?}, the next key picture would take longer");
    let _second = RawPlayer::open(&url("cam"));
    let ls = host.run(&["ls", "--json"]).text();
    assert_eq!(
        ls.matches("\"pattern\":\"cam\"").count().max(ls.matches("\"pattern\": \"cam\"").count()),
        1,
        "{ls}"
    );
}

#[test]
fn a_player_that_does_not_read_loses_whole_pictures_and_costs_others_nothing() {
    if missing("a_player_that_does_not_read_loses_whole_pictures_and_costs_others_nothing") {
        return;
    }
    let host = Host::new();
    ffmpeg_words(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc=size=640x360:rate=25,noise=alls=40:allf=t",
        "-frames:v",
        "100",
        "-c:v",
        "libx264",
        "-bf",
        "0",
        "-g",
        "25",
        "-preset",
        "ultrafast",
        "-pix_fmt",
        "yuv420p",
        "-f",
        "h264",
        arg(&host.path("film.264")),
    ]);
    let film = Film::of(host.path("film.264"));
    let (mut node, url) = serve(&host, &[]);
    let _publisher = publish(&host, "cam", "film.264", &["--hz", "25", "--loop"]);
    let mut stalled = RawPlayer::open(&url("cam"));
    let got = host.path("whole.264");
    let out = ["-c", "copy", "-frames:v", "250", "-f", "h264", arg(&got)];
    ffmpeg(&host, &url("cam"), "tcp", &out).said(0, "");
    film.check(&std::fs::read(&got).unwrap(), 250);
    node.wait_until_said("left out so far");
    // It reads again: only whole pictures arrive.
    film.check_parts(&stalled.pictures(120));
    node.signal(Signal::INT);
    node.ended().said(0, "pictures that the player read too slowly");
}

#[test]
fn a_login_is_requested_and_appears_nowhere() {
    if missing("a_login_is_requested_and_appears_nowhere") {
        return;
    }
    let host = Host::new();
    let _film = Film::new(&host, "film", (320, 240), 50);
    std::fs::write(host.path("players.txt"), "viewer:S3CRET7K\n").unwrap();
    host.run(&["node", "--rtsp", "0.0.0.0:0"]).said(2, "--rtsp-login FILE");
    let (node, url) = serve(&host, &["--rtsp-login", "players.txt"]);
    let _publisher = publish(&host, "cam", "film.264", &["--hz", "25", "--loop"]);
    let with = |login: &str| url("cam").replace("rtsp://", &format!("rtsp://{login}@"));
    for login in ["viewer:wrong", "other:S3CRET7K"] {
        let said = said(&host, &with(login));
        assert!(said.contains("401 Unauthorized"), "{said}");
    }
    assert!(said(&host, &url("cam")).contains("401 Unauthorized"));
    for transport in ["tcp", "udp"] {
        ffmpeg(&host, &with("viewer:S3CRET7K"), transport, &["-frames:v", "5", "-f", "null", "-"])
            .said(0, "");
    }
    let got = host.path("login.264");
    gstreamer(&host, &with("viewer:S3CRET7K"), "tcp", &got, 10);
    let ls = host.run(&["ls"]);
    node.signal(Signal::INT);
    let log = node.ended();
    for text in [&log.stderr, &log.text(), &ls.text(), &ls.stderr] {
        assert!(!text.contains("S3CRET7K"), "{text}");
    }
    log.said(0, "the name or the password is wrong");
}

#[test]
fn a_player_that_says_goodbye_can_still_end_its_session() {
    if missing("a_player_that_says_goodbye_can_still_end_its_session") {
        return;
    }
    let host = Host::new();
    let _film = Film::new(&host, "film", (320, 240), 50);
    let (node, url) = serve(&host, &[]);
    let _publisher = publish(&host, "cam", "film.264", &["--hz", "25", "--loop"]);
    let mut player = RawPlayer::open(&url("cam"));
    player.packets(20);
    // A busy machine sends PAUSE later than BYE.
    player.leave(&url("cam"), std::time::Duration::from_millis(2_500));
    node.signal(Signal::INT);
    node.ended().said(0, "left rtsp://");
}

#[test]
fn sound_of_another_tag_is_a_second_track() {
    if missing("sound_of_another_tag_is_a_second_track") {
        return;
    }
    let host = Host::new();
    let _film = Film::new(&host, "film", (320, 240), 150);
    let sine = "sine=frequency=440:sample_rate=48000:duration=60";
    for (name, coder) in [("mic.wav", "pcm_s16le"), ("mic.opus", "libopus")] {
        ffmpeg_words(&[
            "-f",
            "lavfi",
            "-i",
            sine,
            "-ac",
            "2",
            "-c:a",
            coder,
            arg(&host.path(name)),
        ]);
    }
    let (_node, url) = serve(&host, &[]);
    let _publisher = publish(&host, "cam", "film.264", &["--hz", "25", "--loop"]);
    let _wave = publish(&host, "mic/wave", "mic.wav", &[]);
    let _opus = publish(&host, "mic/opus", "mic.opus", &[]);
    let aac = "audiotestsrc is-live=true ! audio/x-raw,rate=48000,channels=2 ! voaacenc ! rtpmp4gpay name=pay1";
    let camera = Camera::start(&host, &[&format!("x={LIVE} {aac}")]);
    let address = camera.address("x");
    let _aac =
        host.start(&["pub", "other", "--rtsp", &address, "--sound", "mic/aac", "--wait", "0s"]);
    for (tag, format) in [("mic/wave", "pcm_s16be"), ("mic/opus", "opus"), ("mic/aac", "aac")] {
        for transport in ["tcp", "udp"] {
            let got = host.path(&format!("{format}-{transport}.mkv"));
            let out = ["-c", "copy", "-t", "3", arg(&got)];
            ffmpeg(&host, &url(&format!("cam?sound={tag}")), transport, &out).said(0, "");
            assert_eq!(server::streams(&got), ["h264", format], "{transport}");
            let out = ["-t", "1", "-f", "null", "-"];
            ffmpeg(&host, &url(tag), transport, &out).said(0, "");
        }
    }
}

#[test]
fn pictures_of_jpeg_and_with_b_pictures_are_read_in_order() {
    if missing("pictures_of_jpeg_and_with_b_pictures_are_read_in_order") {
        return;
    }
    let host = Host::new();
    let (_node, url) = serve(&host, &[]);
    let source = "testsrc=size=320x240:rate=25";
    let coders: [(&str, &[&str]); 4] = [
        (
            "b.264",
            &[
                "-c:v",
                "libx264",
                "-bf",
                "3",
                "-b_strategy",
                "0",
                "-x264-params",
                "b-pyramid=normal:scenecut=0",
            ],
        ),
        (
            "b.265",
            &["-c:v", "libx265", "-x265-params", "bframes=3:b-adapt=0:log-level=none:keyint=25"],
        ),
        ("plain.265", &["-c:v", "libx265", "-x265-params", "bframes=0:log-level=none:keyint=25"]),
        ("jpeg.mjpeg", &["-c:v", "mjpeg", "-huffman", "default", "-q:v", "5"]),
    ];
    for (name, coder) in coders {
        let film = host.path(name);
        let words =
            ["-f", "lavfi", "-i", source, "-frames:v", "150", "-g", "25", "-pix_fmt", "yuv420p"];
        let words = if name.ends_with("mjpeg") {
            [&words[..8], &["-pix_fmt", "yuvj420p"]].concat()
        } else {
            words.to_vec()
        };
        ffmpeg_words(&[&words, coder, &[arg(&film)]].concat());
        let tag = name.replace('.', "/");
        let _publisher = publish(&host, &tag, name, &["--hz", "25", "--loop"]);
        for transport in ["tcp", "udp"] {
            let times = server::times(&url(&tag), transport, 60);
            let steps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert!(steps.iter().all(|step| *step > 0.0), "{name}: {steps:?}");
            // After the pictures that were sent at once, they are 40 ms apart, unless the machine is busy.
            let even = steps.iter().skip(30).filter(|step| (**step - 0.04).abs() < 0.02).count();
            assert!(even >= 15, "{name}: {steps:?}");
        }
    }
}

#[test]
fn jpeg_pictures_with_other_code_tables_are_refused_with_a_remedy() {
    if missing("jpeg_pictures_with_other_code_tables_are_refused_with_a_remedy") {
        return;
    }
    let host = Host::new();
    let (_node, url) = serve(&host, &[]);
    let source = "testsrc=size=320x240:rate=25";
    ffmpeg_words(&[
        "-f",
        "lavfi",
        "-i",
        source,
        "-frames:v",
        "50",
        "-pix_fmt",
        "yuvj420p",
        "-huffman",
        "optimal",
        arg(&host.path("own.mjpeg")),
    ]);
    let _publisher = publish(&host, "own", "own.mjpeg", &["--hz", "25", "--loop"]);
    let text = said(&host, &url("own"));
    assert!(
        text.contains("415 Unsupported Media Type: own:") && text.contains("quality=80"),
        "{text}"
    );
    ffmpeg(&host, &url("own?quality=80"), "tcp", &["-frames:v", "10", "-f", "null", "-"])
        .said(0, "");
}

#[test]
fn hostile_bytes_are_answered_and_disturb_nobody() {
    if missing("hostile_bytes_are_answered_and_disturb_nobody") {
        return;
    }
    let host = Host::new();
    let film = Film::new(&host, "film", (320, 240), 100);
    let (node, url) = serve(&host, &[]);
    let _publisher = publish(&host, "cam", "film.264", &["--hz", "25", "--loop"]);
    let mut player = RawPlayer::open(&url("cam"));
    let long = format!("OPTIONS * RTSP/1.0\r\nCSeq: 1\r\nX: {}", "x".repeat(20_000));
    let other = "SETUP rtsp://h/cam RTSP/1.0\r\nCSeq: 1\r\nTransport: RTP/AVP;mode=\"\r\n\r\n";
    let address =
        "SETUP rtsp://h/cam RTSP/1.0\r\nCSeq: 1\r\nTransport: RTP/AVP;dest_addr=\"\\\"\r\n\r\n";
    let body = "OPTIONS * RTSP/1.0\r\nCSeq: 1\r\nContent-Length: 99999999999999\r\n\r\n";
    for (text, status) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], "400 "),
        (&[0xff; 30_000], "400 "),
        (long.as_bytes(), "400 "),
        (body.as_bytes(), "400 "),
        (other.as_bytes(), "461 "),
        (address.as_bytes(), "461 "),
        (b"PLAY rtsp://h/cam RTSP/1.0\r\nCSeq: 1\r\n\r\n", "455 "),
        (b"DESCRIBE rtsp://h/ca%00m RTSP/1.0\r\nCSeq: 1\r\n\r\n", "404 "),
    ] {
        let answer = raw::exchange(&url(""), text);
        assert!(answer.starts_with(&format!("RTSP/1.0 {status}")), "{status}: {answer}");
    }
    // Reports that are none, on the channel of reports and on others.
    for channel in [0, 1, 77] {
        player.send(&[&[b'$', channel, 0, 200][..], &[0x5a; 200]].concat());
    }
    film.check_parts(&player.pictures(60));
    node.signal(Signal::INT);
    node.ended().said(0, "a report of player").said(0, "cannot be read");
}

#[test]
fn another_codec_ends_the_players_and_a_new_one_reads_it() {
    if missing("another_codec_ends_the_players_and_a_new_one_reads_it") {
        return;
    }
    let host = Host::new();
    let _film = Film::new(&host, "film", (320, 240), 100);
    ffmpeg_words(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc=size=320x240:rate=25",
        "-frames:v",
        "100",
        "-c:v",
        "libx265",
        "-x265-params",
        "log-level=none:keyint=25",
        arg(&host.path("film.265")),
    ]);
    let (node, url) = serve(&host, &[]);
    let publisher = publish(&host, "cam", "film.264", &["--hz", "25", "--loop"]);
    let mut player = RawPlayer::open(&url("cam"));
    player.packets(20);
    publisher.signal(Signal::INT);
    assert_eq!(publisher.ended().code, Some(0));
    host.wait_for_end("cam");
    let _other = publish(&host, "cam", "film.265", &["--hz", "25", "--loop"]);
    assert!(player.goodbye(), "it receives BYE before the end");
    ffmpeg(&host, &url("cam"), "tcp", &["-frames:v", "10", "-f", "null", "-"]).said(0, "");
    node.signal(Signal::INT);
    node.ended().said(0, "its samples are video/h265 now; open the address again");
}

#[test]
fn sound_and_pictures_of_a_camera_stay_together() {
    if missing("sound_and_pictures_of_a_camera_stay_together") {
        return;
    }
    let host = Host::new();
    let (_node, url) = serve(&host, &[]);
    // Both begin a block of 100 ms at the same times.
    let stream = "x=videotestsrc is-live=true ! video/x-raw,format=I420,width=320,height=240,framerate=10/1 ! \
        x264enc tune=zerolatency key-int-max=10 ! rtph264pay name=pay0 \
        audiotestsrc is-live=true samplesperbuffer=800 ! audio/x-raw,rate=8000,channels=1 ! mulawenc ! \
        rtppcmupay min-ptime=100000000 max-ptime=100000000 mtu=4000 name=pay1";
    let camera = Camera::start(&host, &[stream]);
    let address = camera.address("x");
    let _publisher =
        host.start(&["pub", "cam", "--rtsp", &address, "--sound", "mic", "--wait", "0s"]);
    host.wait_for_publisher("mic");
    // The camera reports its clock every 5 s.
    std::thread::sleep(std::time::Duration::from_secs(6));
    for transport in ["tcp", "udp"] {
        let subs = ["cam", "mic"]
            .map(|tag| host.start(&["sub", tag, "--count", "60", "--timeout", "30s", "--json"]));
        let shown = server::apart(&server::packet_times(&url("cam?sound=mic"), transport), 0.1);
        let captured = subs.map(|sub| server::capture_times(&sub.ended()));
        let captured = server::apart(&captured, 0.1);
        let error = (shown - captured).abs() * 1e3;
        println!("over {transport}, the distance of sound and pictures differs by {error:.2} ms");
        assert!(error <= 20.0, "{shown} s instead of {captured} s over {transport}");
    }
}

//! Unsuitable inputs and outputs: rejected with a fix.

use crate::host::{Host, LIMIT, Running};
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Binary data with line breaks.
const NOISE: &[u8] = b"\x7fELF\n\xff\xd8\0\n\x1b[2J\xfe\n";

#[test]
fn an_unknown_file_type_is_refused_with_the_known_types() {
    let host = Host::new();
    for (name, fix) in [
        ("x.bin", "give --chunk SIZE to publish it in pieces"),
        ("film.mp4", "its beginning is damaged"),
        ("film.avi", "-c copy OUT.mkv"),
        ("log.mcap", "publish a recording with paceline replay"),
        ("without-end", "give --chunk SIZE"),
    ] {
        std::fs::write(host.path(name), NOISE).unwrap();
        let refused = host.run(&["pub", "t", "--file", name]);
        refused.said(2, &format!("--file {name}: its type is unknown and it is not UTF-8 text"));
        refused.said(2, fix).said(2, "WAV, Ogg with Opus, MP4");
    }
    // The binary data starts after 64 KiB of text.
    let mut late = b"line\n".repeat(20_000);
    late.extend_from_slice(b"\xff\n");
    std::fs::write(host.path("late"), late).unwrap();
    let refused = host.run(&["pub", "t", "--file", "late", "--wait", "0s"]);
    refused.said(1, "line 20001 is not UTF-8 text; give --chunk SIZE");
    let child = host.command(&["pub", "t", "-", "--wait", "0s"]).stdin(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    child.stdin.take().unwrap().write_all(NOISE).unwrap();
    let refused = Running::gathered(child).ended();
    refused.said(1, "cannot read standard input: line 2 is not UTF-8 text");
}

#[test]
fn bytes_are_published_unchanged_on_request() {
    let host = Host::new();
    let _node = host.start_node();
    std::fs::write(host.path("x.bin"), NOISE).unwrap();
    for how in [&["--chunk", "1kB"][..], &["--encoding", "application/x-lines"]] {
        let sub = [
            "sub",
            "t",
            "--out",
            "got.bin",
            "--force",
            "--count",
            if how[0] == "--chunk" { "1" } else { "3" },
        ];
        let sub = host.start(&[&sub[..], &["--timeout", "30s"]].concat());
        host.wait_for_subscriptions(1);
        let sent = host.run(&[&["pub", "t", "--file", "x.bin", "--wait", "20s"], how].concat());
        assert_eq!(sent.code, Some(0), "{sent:?}");
        let sub = sub.ended();
        assert_eq!(sub.code, Some(0), "{sub:?}");
        let got = std::fs::read(host.path("got.bin")).unwrap();
        let lines: Vec<u8> = NOISE.iter().copied().filter(|&byte| byte != b'\n').collect();
        assert_eq!(got, if how[0] == "--chunk" { NOISE } else { &lines });
    }
}

#[test]
fn a_file_contains_its_type_and_a_terminal_shows_only_text() {
    let host = Host::new();
    let _node = host.start_node();
    let _card = host.start(&["pub", "cam", "--test-card", "160x120@20"]);
    assert!(
        host.run(&["sub", "cam", "--out", "x.avi"]).code == Some(2) && !host.path("x.avi").exists()
    );
    let video = host.run(&["sub", "cam", "--out", "x.264", "--count", "1", "--timeout", "30s"]);
    video.said(1, "of cam is image/jpeg, a .264 file contains video/h264; give another name");
    let still = host.run(&["sub", "cam", "--out", "x.jpg", "--count", "3", "--timeout", "30s"]);
    assert_eq!(still.code, Some(0), "{still:?}");
    assert!(std::fs::read(host.path("x.jpg")).unwrap().starts_with(b"\xff\xd8"));
    let onto = |tag: &str| {
        let program = env!("CARGO_BIN_EXE_paceline");
        let line = format!("'{program}' sub {tag} --out - --count 1 --timeout 30s");
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).env("PACELINE_RUNTIME_DIR", host.path(""));
        script.stdin(Stdio::null()).output()
    };
    let Ok(shown) = onto("cam") else {
        println!(
            "skipped: a_file_contains_its_type_and_a_terminal_shows_only_text (script(1) is not installed)"
        );
        return;
    };
    let text = String::from_utf8_lossy(&shown.stdout);
    assert!(
        text.contains("that are not text: a terminal cannot show them; give --out FILE, or pipe"),
        "{text}"
    );
    assert!(!shown.stdout.contains(&0xff), "{text}");
    let mut lines =
        host.command(&["pub", "t", "-", "--wait", "20s"]).stdin(Stdio::piped()).spawn().unwrap();
    lines.stdin.take().unwrap().write_all("red \x1b[31m\u{202e}".as_bytes()).unwrap();
    let _lines = Running::gathered(lines);
    let shown = onto("t").unwrap();
    let text = String::from_utf8_lossy(&shown.stdout);
    assert!(text.contains("red \\u{1b}[31m\\u{202e}"), "{text:?}");
}

#[test]
fn a_size_of_text_and_the_sound_of_pictures_are_refused_before_the_first_sample() {
    let host = Host::new();
    let _node = host.start_node();
    std::fs::write(host.path("lines"), "a\nb\n").unwrap();
    let _card = host.start(&["pub", "cam", "--test-card", "160x120@20"]);
    let _text = host.start(&["pub", "t", "--file", "lines", "--hz", "10", "--loop"]);
    for (tag, flag, value, what) in [
        (
            "cam",
            "--audio",
            "8000x1",
            "--audio: cam has the type image/jpeg, which is not sound; leave --audio out",
        ),
        (
            "t",
            "--size",
            "80x60",
            "--size: t has the type text/plain, which is not a picture; leave --size out",
        ),
    ] {
        for (command, more) in [
            ("sub", &["--timeout", "20s"][..]),
            ("sub", &["--dry-run"]),
            ("watch", &["--print", "--duration", "20s"]),
            ("watch", &["--hz", "--duration", "20s"]),
            ("watch", &["--delay", "--duration", "20s"]),
        ] {
            let refused = host.run(&[&[command, tag, flag, value][..], more].concat());
            refused.said(2, what);
            assert!(refused.stdout.is_empty(), "{refused:?}");
        }
    }
    // A pattern may match pictures and sound.
    let all = host.run(&["sub", "*", "--audio", "8000x1", "--count", "2", "--timeout", "30s"]);
    assert_eq!(all.code, Some(0), "{all:?}");
}

#[test]
fn rates_and_delays_below_a_millisecond_are_not_zero() {
    let host = Host::new();
    let _node = host.start_node();
    std::fs::write(host.path("lines"), "a\nb\n".repeat(100)).unwrap();
    let _fast = host.start(&["pub", "t", "--file", "lines", "--hz", "4000", "--loop"]);
    let seconds = format!("{}s", LIMIT.as_secs());
    for measure in ["--hz", "--delay"] {
        let watch = ["watch", "t", measure, "--count", "2000", "--duration", &seconds];
        let reported = host.run(&watch);
        assert_eq!(reported.code, Some(0), "{reported:?}");
        let text = reported.text();
        let spreads: Vec<&str> = text.lines().filter(|line| line.starts_with("\tmin: ")).collect();
        assert!(!spreads.is_empty(), "{reported:?}");
        for line in spreads {
            let min = line.trim_start_matches("\tmin: ").split('s').next().unwrap();
            assert!(min.parse::<f64>().unwrap() > 0.0, "{line}");
        }
        if measure == "--delay" {
            let heads = text.lines().filter_map(|line| line.strip_prefix("average delay: "));
            assert!(
                heads.map(|head| head.parse::<f64>().unwrap()).all(|mean| mean > 0.0),
                "{text}"
            );
        }
    }
}

#[test]
fn watch_prints_the_requested_number() {
    let host = Host::new();
    let _node = host.start_node();
    std::fs::write(host.path("lines"), (0..500).map(|n| format!("{n}\n")).collect::<String>())
        .unwrap();
    let _fast = host.start(&["pub", "t", "--file", "lines", "--hz", "2000", "--loop"]);
    for count in [1usize, 7, 300] {
        let number = count.to_string();
        let print = ["watch", "t", "--print", "--count", &number, "--duration", "30s"];
        let echo = host.run(&print);
        assert_eq!(echo.code, Some(0), "{echo:?}");
        assert_eq!(echo.text().lines().filter(|line| *line == "---").count(), count);
    }
}

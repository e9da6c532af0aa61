//! Recordings: all samples are in the file, and the file stays readable after any failure.

mod attached;
pub(crate) mod foreign;
pub(crate) mod support;

use crate::host::{Host, Running, arg};
use paceline_record::{Judgement, Verdict};
use rustix::process::Signal;
use std::process::Command;
use std::time::{Duration, Instant};
use support::{events, messages, payloads, wait_for_bytes};

#[test]
fn received_samples_are_in_the_file_with_times_and_numbers() {
    let host = Host::new();
    let _node = host.start_node();
    let out = host.path("run.mcap");
    let _camera = host.start(&["pub", "robot/camera", "--test-card", "160x120@20"]);
    let record =
        host.start(&["record", "robot/**", "-o", arg(&out), "--within", "500ms", "--json"]);
    let copy = host.path("copy.mjpeg");
    let sub = host.run(&[
        "sub",
        "robot/camera",
        "--out",
        arg(&copy),
        "--count",
        "20",
        "--timeout",
        "30s",
        "--json",
    ]);
    assert_eq!(sub.code, Some(0), "{sub:?}");
    wait_for_bytes(&out, 20_000);
    record.signal(Signal::INT);
    let record = record.ended();
    assert_eq!(record.code, Some(0), "{record:?}");

    let bytes = std::fs::read(&out).unwrap();
    let (all, end) = messages(&bytes);
    assert!(end.is_none(), "{end:?}");
    let pictures = payloads(&all, "robot/camera");
    let lines = sub.json();
    for line in lines.iter().filter(|line| line["seq"].is_u64()) {
        let seq = u32::try_from(line["seq"].as_u64().unwrap()).unwrap();
        // The recorder may have started slightly later.
        let Some(picture) = pictures.iter().find(|(message, _)| message.sequence == seq) else {
            continue;
        };
        assert_eq!(line["captured_ns"], picture.0.publish_time);
        assert_eq!(line["bytes"], picture.1.len());
        assert!(picture.0.log_time >= picture.0.publish_time, "one clock");
    }
    assert!(pictures.windows(2).all(|two| two[1].0.sequence == two[0].0.sequence + 1));
    let samples = record.json().last().unwrap()["samples"].as_u64().unwrap();
    assert_eq!(samples, pictures.len() as u64);
    let channel = &pictures[0].0.channel;
    assert_eq!(channel.schema, "foxglove.CompressedImage");
    assert_eq!(channel.metadata["asked"], "all within 500 ms");
    assert_eq!(channel.metadata["period_us"], "50000");
    let reported = events(&all);
    for kind in ["begin", "joined", "path", "delivered", "link", "end"] {
        assert!(reported.iter().any(|event| event["event"] == kind), "{kind}: {reported:?}");
    }
    let judgement = Judgement::of(&bytes[..]).unwrap();
    assert_eq!(judgement.streams[0].verdict, Verdict::Kept, "{judgement:?}");
    assert_eq!(judgement.ended.as_deref(), Some("a signal"));
    let judged = host.run(&["judge", arg(&out)]);
    assert_eq!(judged.code, Some(0), "{judged:?}");
    let row = judged.text().lines().last().unwrap().to_owned();
    assert!(row.starts_with("robot/camera  kept "), "{row}");
    let judged = host.run(&["judge", arg(&out), "--json"]).json();
    assert_eq!(judged[0]["streams"][0]["verdict"], "kept");
    assert_eq!(judged[0]["samples"], samples);
    repeats_in_virtual_time(&host, &out, samples);
}

/// Repeats a recording of one camera over its path, and over a thinner one.
fn repeats_in_virtual_time(host: &Host, out: &std::path::Path, samples: u64) {
    let same = host.run(&["whatif", arg(out), "--json"]);
    assert_eq!(same.code, Some(0), "{same:?}");
    let stream = &same.json()[0]["streams"][0];
    assert_eq!(stream["verdict"], "granted");
    assert_eq!(stream["simulated"]["delivered"], samples);
    let rates = (&stream["simulated"]["rate_millihertz"], &stream["recorded"]["rate_hz"]);
    let (simulated, recorded) = (rates.0.as_f64().unwrap() / 1_000.0, rates.1.as_f64().unwrap());
    assert!((simulated / recorded - 1.0).abs() < 0.1, "{simulated} of {recorded} Hz");
    let thinner = host.run(&["whatif", arg(out), "--capacity", "path=200kbit"]);
    assert_eq!(thinner.code, Some(3), "{thinner:?}");
    let text = thinner.text();
    assert!(text.contains("link 'path' of") && text.contains("try --max-hz"), "{text}");
    let fewer = ["--set", "robot/camera.max_hz=1", "--set", "robot/*.within=5s"];
    let fewer =
        host.run(&[&["whatif", arg(out), "--capacity", "path=200kbit"], &fewer[..]].concat());
    assert_eq!(fewer.code, Some(0), "{fewer:?}");
    for (wrong, named) in [("up=1mbit", "no link of that name"), ("fast", "fast")] {
        let wrong = host.run(&["whatif", arg(out), "--capacity", wrong]);
        assert_eq!(wrong.code, Some(2), "{wrong:?}");
        assert!(wrong.stderr.contains(named), "{wrong:?}");
    }
}

#[test]
fn each_format_is_recorded_in_its_schema() {
    let host = Host::new();
    let (out, lines, sound) = (host.path("run.mcap"), host.path("l.txt"), host.path("s.wav"));
    std::fs::write(&lines, "one\ntwo\n").unwrap();
    std::fs::write(&sound, support::wave(8_000)).unwrap();
    let play = |tag: &str, more: &[&str]| host.start(&[&["pub", tag, "--loop"], more].concat());
    let publishers = [
        play("all/text", &["--file", arg(&lines), "--hz", "20"]),
        play("all/json", &["--file", arg(&lines), "--hz", "20", "--encoding", "application/json"]),
        play("all/sound", &["--file", arg(&sound)]),
        play(
            "all/data",
            &["--file", arg(&lines), "--hz", "20", "--encoding", "application/x-y;z=1"],
        ),
    ];
    let seconds =
        ["record", "all/**", "-o", arg(&out), "--duration", "4s", "--compression", "none"];
    let record = host.run(&seconds);
    assert_eq!(record.code, Some(0), "{record:?}");
    drop(publishers);
    let (all, end) = messages(&std::fs::read(&out).unwrap());
    assert!(end.is_none());
    for (tag, schema, encoding) in [
        ("all/text", "foxglove.Log", "protobuf"),
        // Declared as JSON but invalid: recorded as bytes.
        ("all/json", "application/json", "application/json"),
        ("all/sound", "foxglove.RawAudio", "protobuf"),
        ("all/data", "application/x-y;z=1", "application/x-y"),
    ] {
        let found = payloads(&all, tag);
        let (message, _) = found.first().unwrap_or_else(|| panic!("nothing of {tag}"));
        assert_eq!((message.channel.schema.as_str(), tag), (schema, tag));
        assert_eq!(message.channel.message_encoding, encoding);
    }
    assert!(
        payloads(&all, "all/text")
            .iter()
            .all(|(_, text)| [&b"one"[..], b"two"].contains(&&text[..]))
    );
}

#[test]
fn a_killed_recorder_leaves_a_readable_file() {
    let host = Host::new();
    let out = host.path("run.mcap");
    let _camera = host.start(&["pub", "cam", "--test-card", "320x240@30"]);
    let mut record = host.start(&["record", "cam", "-o", arg(&out)]);
    wait_for_bytes(&out, 200_000);
    record.signal(Signal::KILL);
    record.status();
    let bytes = std::fs::read(&out).unwrap();
    let (all, end) = messages(&bytes);
    let end = end.expect("it has no end");
    assert!(end.is_cut(), "{end}");
    let pictures = payloads(&all, "cam");
    assert!(!pictures.is_empty());
    assert!(pictures.windows(2).all(|two| two[1].0.sequence == two[0].0.sequence + 1));
    let judgement = Judgement::of(&bytes[..]).unwrap();
    assert!(judgement.cut.unwrap().starts_with("is cut off: it is complete up to byte "));
}

#[test]
fn a_full_disk_is_an_error_and_the_file_can_be_read() {
    let host = Host::new();
    let out = host.path("run.mcap");
    let _camera = host.start(&["pub", "cam", "--test-card", "320x240@30"]);
    // The shell sets a file size limit of 2,000 blocks of 512 or 1,024 bytes.
    let program = host.command(&[]).get_program().to_owned();
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 2000; exec \"$0\" \"$@\""]).arg(program);
    limited.args(["record", "cam", "-o", arg(&out), "--compression", "none"]);
    limited.env("PACELINE_RUNTIME_DIR", out.parent().unwrap());
    limited.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let ended = Running::gathered(limited.spawn().unwrap()).ended();
    ended.said(1, "run.mcap: cannot write: File too large");
    // The last pictures may leave too little room for the end of the file.
    let is_whole = ended.stderr.contains("the file is readable and contains ");
    let lacks_end = "the file has no end, which `paceline replay` does not need, and contains ";
    assert!(is_whole || ended.stderr.contains(lacks_end), "{}", ended.stderr);
    ended.said(1, "raise the limit of file sizes or give --max-bytes");
    let bytes = std::fs::read(&out).unwrap();
    assert!(bytes.len() <= 2_000 * 1_024, "{}", bytes.len());
    let (all, end) = messages(&bytes);
    assert!(!is_whole || end.is_none(), "it ends well: {end:?}");
    let pictures = payloads(&all, "cam");
    assert!(!pictures.is_empty());
    let reported = format!("contains {} samples, ", pictures.len());
    assert!(ended.stderr.contains(&reported), "{reported}: {}", ended.stderr);
}

#[test]
fn a_recording_ends_by_itself_and_replaces_no_file() {
    let host = Host::new();
    let out = host.path("run.mcap");
    let _camera = host.start(&["pub", "cam", "--test-card", "320x240@30"]);
    let record = ["record", "cam", "-o", arg(&out), "--max-bytes", "100kB"];
    assert_eq!(host.run(&record).code, Some(0));
    assert!(std::fs::metadata(&out).unwrap().len() >= 100_000);
    let (all, end) = messages(&std::fs::read(&out).unwrap());
    assert!(end.is_none());
    assert_eq!(events(&all).last().unwrap()["why"], "--max-bytes");
    host.run(&record).said(2, "run.mcap: it already exists; give --force to replace it");
    let again = [&record[..], &["--force", "--duration", "1s"]].concat();
    assert_eq!(host.run(&again).code, Some(0));
}

#[test]
fn the_request_may_change_during_a_recording() {
    let host = Host::new();
    let out = host.path("run.mcap");
    let _camera = host.start(&["pub", "cam", "--test-card", "320x240@20"]);
    let record = host.start(&["record", "cam", "-o", arg(&out)]);
    wait_for_bytes(&out, 50_000);
    let set = host.run(&["set", "cam", "--size", "160x120", "--max-hz", "10"]);
    assert_eq!(set.code, Some(0), "{set:?}");
    until("small pictures are recorded", || {
        let (all, _) = messages(&std::fs::read(&out).unwrap());
        let pictures = payloads(&all, "cam");
        pictures.last().is_some_and(|(_, picture)| {
            let small = paceline_media::Size { width: 160, height: 120 };
            paceline_media::Format::Jpeg.picture_size(picture) == Ok(small)
        })
    });
    record.signal(Signal::INT);
    record.ended().said(0, "the request changed: 10 Hz at 160x120");
    let (all, _) = messages(&std::fs::read(&out).unwrap());
    let reported = events(&all);
    let changed =
        reported.iter().find(|event| event["event"] == "changed").expect("it is reported");
    assert_eq!((&changed["pattern"], &changed["asked"]["width"]), (&"cam".into(), &160.into()));
    let last = reported.iter().rfind(|event| event["event"] == "delivered").unwrap();
    assert_eq!(last["missing"], serde_json::Value::Null);
}

#[test]
fn invalid_arguments_are_refused_before_anything_is_written() {
    let host = Host::new();
    let out = host.path("run.mcap");
    let none = host.path("none/run.mcap");
    let run = |more: &[&str]| host.run(&[&["record", "a"], more].concat());
    run(&[]).said(2, "--out <FILE>");
    run(&["-o", arg(&none)]).said(1, "create the folder first, or give another --out");
    run(&["-o", arg(&out), "--max-bytes", "10"])
        .said(2, "needs a unit: 10B, 0.01kB (allowed: B, kB, MB");
    run(&["-o", arg(&out), "--duration", "0s"]).said(2, "must be from 1ms to");
    run(&["-o", arg(&out), "--compression", "zip"]).said(2, "must be lz4 or none");
    host.run(&["record", "a//b", "-o", arg(&out)]).said(2, "'a//b'");
    assert!(!out.exists());
    run(&["-o", arg(&out), "--duration", "1s"]).said(3, "no publisher on a; no tag is published");
}

/// Waits until `done` returns true, checking every 20 ms.
pub(crate) fn until(what: &str, done: impl Fn() -> bool) {
    let limit = Instant::now() + crate::host::LIMIT;
    while !done() {
        assert!(Instant::now() < limit, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

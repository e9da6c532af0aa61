//! Truncated, corrupt, foreign and invalid files; flags that contradict each other.

use crate::host::{Host, arg};
use paceline_record::{About, Compression, RecordedSample, Recording};

/// A recording of this many text lines on each of these tags, one second apart.
fn recording(tags: &[&str], lines: u64) -> Vec<u8> {
    let mut recording = Recording::new(Compression::None, "test");
    let mut bytes = Vec::new();
    for number in 0..lines {
        for tag in tags {
            let at = 1_700_000_000_000_000_000 + number * 1_000_000_000;
            let sample = RecordedSample {
                tag,
                publisher: "0000000000000001.0",
                seq: number,
                encoding: "text/plain",
                captured_ns: at,
                came_ns: at,
                payload: b"a line",
                attachment: None,
            };
            recording.sample(&sample, About::default).unwrap();
        }
        recording.flush();
        bytes.extend(recording.take());
    }
    bytes.extend(recording.finish());
    bytes
}

/// A file of another program without chunks: a ROS 2 topic, and a topic with an unknown message encoding.
fn foreign() -> Vec<u8> {
    let text = |text: &str| {
        let length = u32::try_from(text.len()).unwrap().to_le_bytes();
        [&length[..], text.as_bytes()].concat()
    };
    let mut file = b"\x89MCAP0\r\n".to_vec();
    let mut record = |kind: u8, parts: &[&[u8]]| {
        let content = parts.concat();
        file.push(kind);
        file.extend((content.len() as u64).to_le_bytes());
        file.extend(content);
    };
    record(1, &[&text("ros2"), &text("other 1.0")]);
    record(3, &[&[1, 0], &text("sensor_msgs/msg/Imu"), &text("ros2msg"), &text("float64 x\n")]);
    record(4, &[&[1, 0, 1, 0], &text("/imu"), &text("cdr"), &[0; 4]]);
    record(4, &[&[2, 0, 0, 0], &text("//odd topic*"), &text(""), &[0; 4]]);
    for number in 0..5u64 {
        let time = (1_700_000_000_000_000_000 + number * 1_000_000).to_le_bytes();
        for channel in [1u8, 2] {
            let sequence = u32::try_from(number).unwrap().to_le_bytes();
            record(5, &[&[channel, 0], &sequence, &time, &time, &[0, 1, 0, 0, channel]]);
        }
    }
    record(15, &[&[0; 4]]);
    record(2, &[&[0; 20]]);
    file.extend(b"\x89MCAP0\r\n");
    file
}

#[test]
fn samples_of_other_recorders_are_published_unchanged() {
    let host = Host::new();
    let file = host.path("ros.mcap");
    std::fs::write(&file, foreign()).unwrap();
    let sub = host.start(&["sub", "imu", "--count", "5", "--timeout", "30s", "--json"]);
    host.wait_for_subscriptions(1);
    let replay = host.run(&["replay", arg(&file), "--speed", "max", "--wait", "20s"]);
    replay.said(0, "topic '//odd topic*' is not a tag: ");
    replay.said(0, "its 5 messages are left out; try --remap");
    let sub = sub.ended();
    assert_eq!(sub.code, Some(0), "{sub:?}");
    assert!(
        sub.json()[..5]
            .iter()
            .all(|line| line["encoding"] == "application/cdr;sensor_msgs/msg/Imu")
    );
    assert!(sub.json()[..5].iter().all(|line| line["bytes"] == 5));
    let both =
        ["replay", arg(&file), "--speed", "max", "--wait", "0s", "--remap", "//odd topic*=odd"];
    let replay = host.run(&both);
    assert_eq!(replay.code, Some(0), "{replay:?}");
    assert!(replay.text().contains("odd: 5 messages, 25 bytes, dropped 0"), "{}", replay.text());
}

#[test]
fn a_truncated_file_is_replayed_up_to_the_damage() {
    let host = Host::new();
    let (whole, cut) = (recording(&["a"], 5), host.path("cut.mcap"));
    let quick = ["replay", arg(&cut), "--speed", "max", "--wait", "0s"];
    std::fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let replay = host.run(&quick);
    replay.said(0, "cut.mcap is cut off: it is complete up to byte ");
    replay.said(0, "the part before it is replayed");
    assert!(replay.text().contains("a: "), "{}", replay.text());
    // Only the first bytes are intact.
    std::fs::write(&cut, &whole[..20]).unwrap();
    host.run(&quick).said(1, "cut.mcap has no whole sample: it is cut off");
    std::fs::write(&cut, &whole[..4]).unwrap();
    host.run(&quick).said(1, "cut.mcap is not an MCAP file");
}

#[test]
fn a_corrupt_file_is_named_with_the_position() {
    let host = Host::new();
    let broken = host.path("broken.mcap");
    let mut bytes = recording(&["a"], 5);
    // Corrupts the last chunk, before the index that repeats the channels.
    let at = bytes.windows(6).rposition(|text| text == b"a line").unwrap();
    bytes[at] ^= 0xff;
    std::fs::write(&broken, &bytes).unwrap();
    let replay = host.run(&["replay", arg(&broken), "--speed", "max", "--wait", "0s"]);
    replay.said(1, "cannot be read to its end: byte ");
    replay.said(1, ": a chunk: its checksum is ");
    assert!(replay.text().contains("a: 4 messages, 24 bytes"), "{}", replay.text());
}

#[test]
fn invalid_replays_are_refused_by_name() {
    let host = Host::new();
    let file = host.path("run.mcap");
    std::fs::write(&file, recording(&["robot/a", "robot/b"], 3)).unwrap();
    let run = |more: &[&str]| host.run(&[&["replay", arg(&file)], more].concat());
    run(&["--speed", "0"]).said(2, "must be a number from 0.01 to 1000 (times)");
    run(&["--speed", "-1"]).said(2, "must be a number from 0.01 to 1000 (times)");
    run(&["--from", "2s", "--to", "1s"]).said(2, "--from 2s is not before --to 1s");
    run(&["--from", "3s"]).said(2, "--from 3s: the recording lasts 2 s; give an earlier --from");
    run(&["--from=-1s"]).said(2, "must be a number with a unit");
    run(&["--from", "3"]).said(2, "needs a unit: 3s, 3000ms (allowed: ns, us, ms, s, min, h)");
    run(&["--tag", "robot/c"])
        .said(2, "--tag robot/c: nothing matches it; the file has robot/a, robot/b");
    run(&["--remap", "lab=x"])
        .said(2, "--remap lab: no topic begins with it; the file has robot/a, robot/b");
    run(&["--remap", "robot"]).said(2, "has no =; write OLD=NEW");
    run(&["--by", "luck"]).said(2, "must be published or arrival");
    let (none, noise) = (host.path("none.mcap"), host.path("noise.mcap"));
    std::fs::write(&noise, [7; 100]).unwrap();
    host.run(&["replay", arg(&none)]).said(1, "none.mcap: No such file");
    host.run(&["replay", arg(&noise)]).said(1, "noise.mcap is not an MCAP file: ");
    host.run(&["replay", arg(host.path("x").parent().unwrap())])
        .said(1, "it is not a file; give an MCAP file");
    let empty = host.path("empty.mcap");
    std::fs::write(&empty, Recording::new(Compression::Lz4, "test").finish()).unwrap();
    host.run(&["replay", arg(&empty)])
        .said(1, "empty.mcap has no samples; give a file with at least one");
}

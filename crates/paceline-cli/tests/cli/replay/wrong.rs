//! Truncated, corrupt, foreign and invalid files; flags that contradict each other.

use crate::host::{Host, arg};
use paceline_record::{About, Compression, Declared, RecordedSample, Recording};

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
fn a_corrupt_file_is_replayed_around_its_damage() {
    let host = Host::new();
    let broken = host.path("broken.mcap");
    let bytes = recording(&["a", "b"], 5);
    let quick = ["replay", arg(&broken), "--speed", "max", "--wait", "0s"];
    // One checksum covers all messages of a chunk, so the damaged one is unknown.
    let mut flipped = bytes.clone();
    let middle = bytes.windows(6).position(|text| text == b"a line").unwrap();
    flipped[middle] ^= 0xff;
    std::fs::write(&broken, &flipped).unwrap();
    let replay = host.run(&quick);
    replay.said(1, "a damaged place of 0 bytes at byte ");
    replay.said(1, ": a chunk: its checksum is ");
    assert!(replay.text().contains("a: 5 messages, 30 bytes"), "{}", replay.text());
    // The first chunk, which declares the channels; the end of the file repeats them.
    let mut zeroed = bytes;
    let end = middle + 10;
    zeroed[60..end].fill(0);
    std::fs::write(&broken, &zeroed).unwrap();
    let replay = host.run(&quick);
    replay.said(1, "is skipped: ");
    assert!(replay.text().contains("b: "), "{replay:?}");
}

/// A recording of ten messages of a topic in each second for 3 s. `times` returns the publication and the arrival time
/// of a message, in milliseconds after a wall time.
fn timed(times: impl Fn(u64) -> (u64, u64)) -> Vec<u8> {
    let mut bytes = b"\x89MCAP0\r\n".to_vec();
    let text = |text: &str| {
        [&u32::try_from(text.len()).unwrap().to_le_bytes()[..], text.as_bytes()].concat()
    };
    let mut record = |kind: u8, parts: &[&[u8]]| {
        let content = parts.concat();
        bytes.push(kind);
        bytes.extend((content.len() as u64).to_le_bytes());
        bytes.extend(content);
    };
    record(1, &[&text(""), &text("other 1.0")]);
    record(4, &[&[1, 0, 0, 0], &text("/imu"), &text("cdr"), &[0; 4]]);
    for number in 0..30u64 {
        let (published, arrival) = times(number);
        let [published, arrival] = [published, arrival].map(|ms| (ms * 1_000_000).to_le_bytes());
        let number = u32::try_from(number).unwrap().to_le_bytes();
        record(5, &[&[1, 0], &number, &arrival, &published, &[0, 1, 0, 0, 7]]);
    }
    record(15, &[&[0; 4]]);
    bytes
}

#[test]
fn jumps_of_the_times_are_cut_and_reported() {
    const WALL: u64 = 1_700_000_000_000;
    let host = Host::new();
    let file = host.path("jumps.mcap");
    let hour = |number: u64| if number < 20 { 0 } else { 3_600_000 };
    let replay = |times: &dyn Fn(u64) -> (u64, u64), more: &[&str]| {
        std::fs::write(&file, timed(times)).unwrap();
        let quick = ["replay", arg(&file), "--speed", "10", "--late", "--wait", "0s"];
        let replay = host.run(&[&quick, more].concat());
        assert!(replay.text().contains("imu: 30 messages"), "{replay:?}");
        replay
    };
    for zero in [0, 1] {
        let begins = |number: u64| match number {
            0..3 => (zero, zero),
            _ => (WALL + number * 100, WALL + number * 100 + 3),
        };
        replay(&begins, &[])
            .said(0, if zero == 0 { "replaying 2." } else { "is cut: +1700000000.2" });
    }
    let publisher = |number: u64| (WALL + number * 100 + hour(number), WALL + number * 100);
    let cut = replay(&publisher, &[]);
    cut.said(0, "a jump of its times is cut: +3600.0 s at 2.0");
    cut.said(0, "replaying 2.9");
    cut.said(0, "by published times");
    let both =
        |number: u64| (WALL + number * 100 + hour(number), WALL + number * 100 + hour(number));
    // The interval of the two messages is a part of the jump.
    replay(&both, &[]).said(0, "a jump of its times is cut: +3600.1 s");
    let arrival = |number: u64| (WALL + number * 100, WALL + number * 100 + hour(number));
    replay(&arrival, &["--by", "arrival"]).said(0, "by arrival times");
    // Any part of the file can be chosen.
    std::fs::write(&file, timed(publisher)).unwrap();
    let part = ["replay", arg(&file), "--speed", "max", "--wait", "0s", "--from", "2.5s"];
    let part = host.run(&part);
    assert!(part.text().contains("imu: 5 messages"), "{part:?}");
}

#[test]
fn a_topic_that_cannot_be_published_does_not_stop_the_others() {
    let host = Host::new();
    let file = host.path("odd.mcap");
    let mut recording = Recording::new(Compression::None, "test");
    for (tag, encoding) in [("good", "text/plain"), ("bad", "a\u{7}b"), ("@private", "text/plain")]
    {
        let sample = RecordedSample {
            tag,
            publisher: "0000000000000001.0",
            seq: 0,
            encoding,
            captured_ns: 1_700_000_000_000_000_000,
            came_ns: 1_700_000_000_000_000_000,
            payload: b"a line",
            attachment: None,
        };
        // No publisher has such a declaration.
        let declared = Declared { loss: Some((5, 2)), ..Declared::default() };
        recording.sample(&sample, || About { declared, ..About::default() }).unwrap();
    }
    std::fs::write(&file, recording.finish()).unwrap();
    let replay = host.run(&["replay", arg(&file), "--speed", "max", "--wait", "0s"]);
    replay.said(0, "topic 'bad' cannot be published: ");
    replay.said(0, "topic '@private' ");
    replay.said(0, "topic 'good': its recorded declaration cannot be restored: ");
    assert!(replay.text().contains("good: 1 messages"), "{}", replay.text());
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
    run(&["--by", "luck"]).said(2, "must be auto, published or arrival");
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

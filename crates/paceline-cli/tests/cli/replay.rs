//! Replays: recorded samples are published again, bit for bit, at their recorded times.

mod foreign;
mod wrong;

use crate::host::{Host, arg};
use crate::record::support::{messages, payloads, wait_for_bytes, wave};
use crate::record::until;
use crate::telemetry::flight;
use paceline_record::Message;
use rustix::process::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

/// Returns the payloads of each tag in sequence order.
fn by_tag(all: &[Message]) -> BTreeMap<String, Vec<Vec<u8>>> {
    let tags: BTreeSet<&str> = all
        .iter()
        .filter(|message| !message.channel.is_events())
        .map(|message| message.channel.topic.as_str())
        .collect();
    let of = |tag: &str| {
        let mut found = payloads(all, tag);
        found.sort_by_key(|(message, _)| message.sequence);
        let numbers: Vec<u32> = found.iter().map(|(message, _)| message.sequence).collect();
        assert!(numbers.windows(2).all(|two| two[0] + 1 == two[1]), "{tag}: none is missing");
        found.into_iter().map(|(_, payload)| payload).collect()
    };
    tags.into_iter().map(|tag| (tag.to_owned(), of(tag))).collect()
}

/// Returns the number of samples delivered to the subscriptions of this host.
fn delivered(host: &Host) -> Option<u64> {
    let ls = host.run(&["ls", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&ls.text()).ok()?;
    let nodes = document["nodes"].as_array()?.iter();
    let subscriptions = nodes.filter_map(|node| node["subscriptions"].as_array()).flatten();
    Some(subscriptions.filter_map(|one| one["delivered"].as_u64()).sum())
}

/// Runs `player` to its end while recording its samples.
fn record(host: &Host, pattern: &str, out: &Path, player: &[&str]) -> Vec<Message> {
    let _ = std::fs::remove_file(out);
    let recorder = host.start(&["record", pattern, "-o", arg(out), "--queue", "65536", "--json"]);
    host.wait_for_subscriptions(1);
    let played = host.run(&[player, &["--json"]].concat());
    assert_eq!(played.code, Some(0), "{played:?}");
    let reports = played.json();
    let published = reports.iter().rev().find_map(|line| line["published"].as_u64());
    // Samples sent by the player may still be in transit through the host's node.
    until("all that was published is delivered", || delivered(host) == published);
    recorder.signal(Signal::TERM);
    let ended = recorder.ended();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let last = ended.json().last().cloned().unwrap();
    assert_eq!(last["dropped"], serde_json::json!({}), "{last}");
    let (all, end) = messages(&std::fs::read(out).unwrap());
    assert!(end.is_none(), "{end:?}");
    all
}

/// Publishes and records a file, then replays the recording while recording again. Both recordings must have
/// the same bytes, counts, order and channels.
fn there_and_back(host: &Host, pattern: &str, publish: &[&str], speed: &str) {
    // Uses no separate node: a relaying node cannot slow down a publisher that is faster than its link.
    let (first, second) = (host.path("first.mcap"), host.path("second.mcap"));
    let once = record(host, pattern, &first, publish);
    let replay = ["replay", arg(&first), "--speed", speed, "--late", "--wait", "20s"];
    let again = record(host, pattern, &second, &replay);
    let (once_by_tag, again_by_tag) = (by_tag(&once), by_tag(&again));
    assert!(once_by_tag.values().any(|payloads| payloads.len() > 1));
    assert_eq!(once_by_tag.keys().collect::<Vec<_>>(), again_by_tag.keys().collect::<Vec<_>>());
    for (tag, payloads) in &once_by_tag {
        assert!(again_by_tag.get(tag) == Some(payloads), "{tag}: the same, bit for bit");
    }
    let channels = |all: &[Message]| -> BTreeMap<String, (String, String, String)> {
        let known = all.iter().filter(|message| !message.channel.is_events());
        let known = known.map(|message| {
            let channel = &message.channel;
            let kind = channel.metadata.get("kind").cloned().unwrap_or_default();
            // Each picture of a video has its own kind; the channel's kind is that of the first recorded
            // picture.
            let encoding = channel.metadata.get("encoding").cloned().unwrap_or_default();
            (channel.topic.clone(), (channel.schema.clone(), encoding, kind))
        });
        known.collect()
    };
    assert_eq!(channels(&once), channels(&again));
}

#[test]
fn a_flight_is_the_same_after_a_replay() {
    let host = Host::new();
    let file = host.path("flight.ulg");
    std::fs::write(&file, flight(900)).unwrap();
    let publish = ["pub", "uav", "--file", arg(&file), "--speed", "max", "--wait", "20s"];
    there_and_back(&host, "uav/**", &publish, "max");
    let json =
        ["pub", "uav", "--file", arg(&file), "--speed", "max", "--as", "json", "--wait", "20s"];
    there_and_back(&host, "uav/**", &json, "max");
}

#[test]
fn sound_is_the_same_after_a_replay() {
    let host = Host::new();
    let file = host.path("sound.wav");
    std::fs::write(&file, wave(12_000)).unwrap();
    there_and_back(&host, "mic", &["pub", "mic", "--file", arg(&file), "--wait", "20s"], "max");
}

#[test]
fn video_and_a_real_flight_are_the_same_after_a_replay() {
    let Some(folder) = std::env::var_os("PACELINE_DATA") else {
        println!(
            "skipped: video_and_a_real_flight_are_the_same_after_a_replay (PACELINE_DATA is not set)"
        );
        return;
    };
    let host = Host::new();
    let film = Path::new(&folder).join("video/jvt_ba1_ft_c_352x288.264");
    let publish = ["pub", "film", "--file", arg(&film), "--hz", "100", "--late", "--wait", "20s"];
    // At maximum speed a link would drop pictures.
    there_and_back(&host, "film", &publish, "1");
    let log = Path::new(&folder).join("telemetry/px4_log_small.ulg");
    let publish = ["pub", "uav", "--file", arg(&log), "--speed", "max", "--wait", "20s"];
    there_and_back(&host, "uav/**", &publish, "max");
}

#[test]
fn a_replayed_camera_can_be_scaled_and_begins_again() {
    let host = Host::new();
    let out = host.path("run.mcap");
    let camera = host.start(&["pub", "robot/camera", "--test-card", "320x240@20"]);
    let recorder = host.start(&["record", "robot/**", "-o", arg(&out)]);
    wait_for_bytes(&out, 100_000);
    recorder.signal(Signal::INT);
    assert_eq!(recorder.ended().code, Some(0));
    drop(camera);
    let (all, _) = messages(&std::fs::read(&out).unwrap());
    let pictures = payloads(&all, "robot/camera").len();
    let _replay =
        host.start(&["replay", arg(&out), "--loop", "--speed", "2", "--remap", "robot=lab/a"]);
    let sub = host.run(&[
        "sub",
        "lab/a/camera",
        "--size",
        "160x120",
        "--max-hz",
        "20",
        "--count",
        &(pictures + 5).to_string(),
        "--timeout",
        "35s",
        "--json",
        "--read-card",
    ]);
    assert_eq!(sub.code, Some(0), "{sub:?}");
    let lines = sub.json();
    assert!(lines[..lines.len() - 1].iter().all(|line| line["width"] == 160), "{lines:?}");
    let cards: Vec<u64> = lines.iter().filter_map(|line| line["card_frame"].as_u64()).collect();
    assert!(cards.windows(2).any(|two| two[1] < two[0]), "it begins again: {cards:?}");
}

#[test]
fn a_replay_keeps_the_pace_and_the_requested_part() {
    let host = Host::new();
    let out = host.path("run.mcap");
    let file = host.path("flight.ulg");
    // 3 s: one message every 10 ms.
    std::fs::write(&file, flight(300)).unwrap();
    let publish = ["pub", "uav", "--file", arg(&file), "--late", "--wait", "20s"];
    record(&host, "uav/**", &out, &publish);
    let began = Instant::now();
    let replay = |more: &[&str]| {
        host.run(&[&["replay", arg(&out), "--wait", "0s", "--json"], more].concat())
    };
    let counted = |more: &[&str]| {
        let ended = replay(more);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let topics = ended.json().iter().find_map(|line| line["topics"].as_array().cloned());
        let topics = topics.expect("a line of topics");
        topics.iter().map(|topic| topic["published"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(counted(&["--speed", "2", "--late"]), 300);
    assert!(began.elapsed() >= Duration::from_millis(1_450), "2.99 s at twice the speed");
    let part = counted(&["--speed", "max", "--from", "1s", "--to", "2s"]);
    assert!((50..=150).contains(&part), "a third, at the times of a busy host: {part}");
    let tag = ["--speed", "max", "--tag", "uav/gps"];
    assert_eq!(counted(&tag), 100);
    assert_eq!(counted(&["--speed", "max", "--count", "7"]), 7);
    assert_eq!(counted(&["--speed", "max", "--loop", "--count", "700"]), 700);
}

//! Telemetry files: each message once, in order, on its topic's tag.

use crate::host::{Ended, Host, arg};
use paceline_media::ulog::ULog;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// A flight log: two instances of `att` and one of `gps` alternate, one message every 10 ms.
pub(crate) fn flight(messages: u64) -> Vec<u8> {
    let mut file = vec![0x55, 0x4c, 0x6f, 0x67, 0x01, 0x12, 0x35, 1];
    file.extend(0u64.to_le_bytes());
    let mut record = |kind: u8, body: &[u8]| {
        file.extend(u16::try_from(body.len()).unwrap().to_le_bytes());
        file.push(kind);
        file.extend(body);
    };
    record(b'F', b"att:uint64_t timestamp;float[4] q;");
    record(b'F', b"gps:uint64_t timestamp;int32_t lat;int32_t lon;");
    for (id, instance, name) in [(0u16, 0u8, "att"), (1, 1, "att"), (2, 0, "gps")] {
        record(b'A', &[&[instance], &id.to_le_bytes()[..], name.as_bytes()].concat());
    }
    for number in 0..messages {
        let id = u16::try_from(number % 3).unwrap();
        let mut body = id.to_le_bytes().to_vec();
        body.extend((1_000_000 + number * 10_000).to_le_bytes());
        match id {
            2 => body
                .extend([i32::try_from(number).unwrap(), 7].into_iter().flat_map(i32::to_le_bytes)),
            _ => body.extend([0.25f32, 0.0, 0.5, 1.0].into_iter().flat_map(f32::to_le_bytes)),
        }
        record(b'D', &body);
    }
    file
}

/// Publishes a log at full speed, and checks that a subscriber to all topics receives each message once, in
/// order.
fn check_whole(host: &Host, file: &Path, messages: u64) -> Ended {
    let log = ULog::parse(&std::fs::read(file).unwrap()).unwrap();
    let count = messages.to_string();
    let sub = host.start(&[
        "sub",
        "uav/**",
        "--json",
        "--queue",
        "65536",
        "--count",
        &count,
        "--timeout",
        "35s",
    ]);
    host.wait_for_subscriptions(1);
    let began = Instant::now();
    let player =
        host.run(&["pub", "uav", "--file", arg(file), "--speed", "max", "--wait", "20s", "--json"]);
    assert_eq!(player.code, Some(0), "{player:?}");
    println!("{messages} messages published and sent in {:?}", began.elapsed());
    let sub = sub.ended();
    assert_eq!(sub.code, Some(0), "{}", sub.stderr);
    let lines = sub.json();
    assert_eq!(lines.len() as u64, messages + 1);
    let mut next: BTreeMap<String, u64> = BTreeMap::new();
    for line in &lines[..lines.len() - 1] {
        let number = next.entry(line["tag"].as_str().unwrap().to_owned()).or_default();
        assert_eq!(line["seq"], *number, "{line}");
        *number += 1;
    }
    let wanted: BTreeMap<String, u64> = log
        .topics()
        .iter()
        .filter(|topic| topic.messages > 0)
        .map(|topic| (format!("uav/{}", topic.suffix()), topic.messages))
        .collect();
    assert_eq!(next, wanted);
    let reported = player.json();
    let totals = reported.iter().find_map(|line| line["topics"].as_array()).unwrap();
    for total in totals {
        let published = wanted.get(total["tag"].as_str().unwrap()).copied().unwrap_or_default();
        assert_eq!((&total["published"], &total["dropped"]), (&published.into(), &0.into()));
    }
    sub
}

#[test]
fn a_flight_arrives_complete_and_in_order() {
    let host = Host::new();
    let file = host.path("flight.ulg");
    std::fs::write(&file, flight(3_000)).unwrap();
    let sub = check_whole(&host, &file, 3_000);
    let line = &sub.json()[0];
    assert_eq!((&line["tag"], &line["kind"]), (&"uav/att/0".into(), &"data".into()));
    assert_eq!(line["encoding"], "application/x-ulog;message=att");
}

#[test]
fn a_real_flight_arrives_complete_and_in_order() {
    let Some(folder) = std::env::var_os("PACELINE_DATA") else {
        println!("skipped: a_real_flight_arrives_complete_and_in_order (PACELINE_DATA is not set)");
        return;
    };
    let file = Path::new(&folder).join("telemetry/px4_flight.ulg");
    check_whole(&Host::new(), &file, 64_542);
}

#[test]
fn a_flight_keeps_its_times_and_can_be_read() {
    let host = Host::new();
    let file = host.path("flight.ulg");
    std::fs::write(&file, flight(90)).unwrap();
    let sub = host.start(&["sub", "uav/gps", "--out", "-", "--count", "20", "--timeout", "30s"]);
    host.wait_for_subscriptions(1);
    let began = Instant::now();
    let player = host.run(&[
        "pub",
        "uav",
        "--file",
        arg(&file),
        "--speed",
        "0.5",
        "--as",
        "json",
        "--count",
        "60",
        "--wait",
        "20s",
    ]);
    assert!(began.elapsed().as_millis() >= 1_180, "0.59 s at half the speed");
    player.said(0, "flight.ulg, 90 messages of 3 topics at 0.5x speed");
    assert!(player.text().contains("uav/gps: 20 messages, "), "{}", player.text());
    let sub = sub.ended();
    assert_eq!(sub.code, Some(0), "{sub:?}");
    for (number, line) in sub.json().iter().enumerate() {
        assert_eq!((&line["lat"], &line["lon"]), (&(number * 3 + 2).into(), &7.into()), "{line}");
    }
}

#[test]
fn flags_without_effect_on_a_flight_are_refused() {
    let host = Host::new();
    let (file, noise) = (host.path("flight.ulg"), host.path("noise.ulg"));
    std::fs::write(&file, flight(3)).unwrap();
    std::fs::write(&noise, [7; 100]).unwrap();
    let run = |more: &[&str]| host.run(&[&["pub", "uav", "--file", arg(&file)], more].concat());
    run(&["--hz", "5"]).said(2, "its messages have times; give --speed");
    run(&["--speed", "0"]).said(2, "must be a number from 0.01 to 1000 (times)");
    run(&["--as", "csv"]).said(2, "must be raw or json");
    host.run(&["pub", "uav", "--file", arg(&noise)]).said(1, "noise.ulg");
}

#[test]
fn a_damaged_flight_is_published_around_its_damage() {
    let host = Host::new();
    let file = host.path("flight.ulg");
    let mut bytes = flight(300);
    let middle = bytes.len() / 2;
    bytes[middle..middle + 100].fill(0);
    // A message with a wrong time causes no pause.
    let late = bytes.len() - 10 * 29;
    let at = bytes[late..].windows(3).position(|head| head == [26, 0, b'D']).unwrap() + late;
    bytes[at + 5..at + 13].copy_from_slice(&3_600_000_000u64.to_le_bytes());
    std::fs::write(&file, bytes).unwrap();
    let player = host.run(&[
        "pub",
        "uav",
        "--file",
        arg(&file),
        "--speed",
        "10",
        "--late",
        "--wait",
        "0s",
        "--json",
    ]);
    player.said(1, "flight.ulg: a damaged place of ");
    player.said(1, "a jump of its times is cut: +35");
    let reported = player.json();
    let totals = reported.iter().find_map(|line| line["topics"].as_array()).unwrap();
    let published: u64 = totals.iter().map(|total| total["published"].as_u64().unwrap()).sum();
    assert!((293..=297).contains(&published), "{published}");
}

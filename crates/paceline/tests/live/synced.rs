//! Groups of subscriptions that release their samples at the same instant.

use crate::support::{SOON, free_endpoint, isolated, wait_until};
use paceline::delivery::SyncReport;
use paceline::time::ClockConfig;
use paceline::{
    LinkConfig, Node, Publisher, PutOptions, Sample, SubscribeError, Subscription, Timestamp,
};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant, SystemTime};

const DELAY: Duration = Duration::from_millis(150);

/// A released sample: its capture time, and the instant of its release.
type Released = (u64, Instant);

fn wall() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    u64::try_from(since.as_nanos()).unwrap()
}

fn member(node: &Node, tag: &str, group: &str) -> (Subscription, Receiver<Released>) {
    let (got, seen) = channel();
    let deliver = move |sample: Sample| {
        let _ = got.send((sample.captured.nanos, Instant::now()));
    };
    let member = node.subscriber(tag).sync_group(group, DELAY).callback(deliver).unwrap();
    (member, seen)
}

/// Publishes something that was captured some time ago.
fn put(publisher: &mut Publisher, captured: u64) {
    let captured = Some(Timestamp { nanos: captured, error: Timestamp::UNKNOWN_ERROR });
    publisher.put_with(vec![1], PutOptions { captured, ..PutOptions::default() }).unwrap();
}

fn apart(a: Instant, b: Instant) -> Duration {
    a.max(b) - a.min(b)
}

#[test]
fn sound_waits_for_the_picture_of_the_same_time_without_any_clock() {
    let node = isolated("one", []);
    let (sound, sounds) = member(&node, "mic", "lips");
    let (picture, pictures) = member(&node, "camera", "lips");
    let mut mic = node.publisher("mic").declare().unwrap();
    let mut camera = node.publisher("camera").declare().unwrap();
    assert!(mic.wait_matching(SOON) && camera.wait_matching(SOON));
    // A wrong clock, by an hour: only differences count. A picture needs 40 ms more for its coding.
    let hour = 3_600_000_000_000;
    for step in 0..12 {
        put(&mut mic, wall() + hour);
        std::thread::sleep(Duration::from_millis(40));
        if step < 8 {
            put(&mut camera, wall() + hour - 40_000_000);
        }
    }
    // The camera has died after 8 pictures. The sound goes on.
    let heard: Vec<Released> = (0..12).map(|_| sounds.recv_timeout(SOON).unwrap()).collect();
    let seen: Vec<Released> = (0..8).map(|_| pictures.recv_timeout(SOON).unwrap()).collect();
    let mut differences = Vec::new();
    for ((spoken, heard), (shown, seen)) in heard.iter().zip(&seen) {
        let captured = Duration::from_nanos(spoken.abs_diff(*shown));
        differences.push(apart(*heard, *seen).abs_diff(captured));
    }
    differences.sort();
    println!("sound and picture: {differences:?}");
    // Without a group, each picture comes 40 ms too late.
    assert!(differences[4] < Duration::from_millis(20), "{differences:?}");
    let reports = [sound.sync_report().unwrap(), picture.sync_report().unwrap()];
    for report in &reports {
        let SyncReport { late, early, by_clocks, bound, clock_error, .. } = report;
        assert_eq!((*late, *early, *by_clocks, *bound, *clock_error), (0, 0, 0, None, None));
        assert_eq!((report.group.as_str(), report.delay), ("lips", DELAY));
    }
    assert_eq!((reports[0].released, reports[1].released), (12, 8));
}

#[test]
fn two_nodes_release_a_sample_at_the_same_instant() {
    let error = Duration::from_micros(500);
    let open = |name: &str, links: Vec<LinkConfig>| {
        let clock = ClockConfig::new().system(error);
        let builder = Node::builder().name(name).isolated().clock(clock);
        links.into_iter().fold(builder, |builder, link| builder.link(link)).open().unwrap()
    };
    let endpoint = free_endpoint();
    let source = open("source", vec![LinkConfig::new("all").listen(&endpoint)]);
    let receivers =
        ["left", "right"].map(|name| open(name, vec![LinkConfig::new("up").connect(&endpoint)]));
    for node in receivers.iter().chain([&source]) {
        wait_until("a known error", || node.clock().report().error_nanos.is_some());
    }
    let members = receivers.each_ref().map(|node| member(node, "camera", "wall"));
    let mut camera = source.publisher("camera").declare().unwrap();
    wait_until("both receive", || {
        camera.put(vec![1]).unwrap();
        members.iter().all(|(member, _)| member.sync_report().unwrap().released > 0)
    });
    for _ in 0..40 {
        camera.put(vec![1]).unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
    let (utc, now) = (wall(), Instant::now());
    std::thread::sleep(2 * DELAY);
    let [left, right] = members
        .each_ref()
        .map(|(_, seen)| seen.try_iter().collect::<std::collections::BTreeMap<u64, Instant>>());
    let mut mismatches: Vec<Duration> =
        left.iter().filter_map(|(captured, at)| Some(apart(*at, *right.get(captured)?))).collect();
    mismatches.sort();
    assert!(mismatches.len() >= 40, "{}", mismatches.len());
    let reports = members.each_ref().map(|(member, _)| member.sync_report().unwrap());
    println!("mismatch: median {:?}, {reports:#?}", mismatches[mismatches.len() / 2]);
    for (report, releases) in reports.iter().zip([&left, &right]) {
        assert_eq!((report.by_clocks, report.early), (report.released, 0));
        assert!(report.bound.unwrap() >= report.clock_error.unwrap());
        assert!(report.publisher_error.unwrap() >= error);
        // All clocks follow the system clock, so no release is before its time by more than the stated error.
        for (captured, at) in releases {
            let captured = now - Duration::from_nanos(utc - captured);
            assert!(*at + error * 4 >= captured + DELAY, "{:?}", *at - captured);
        }
    }
    // One of them dies.
    let [(left, seen), right] = members;
    drop(right);
    camera.put(vec![1]).unwrap();
    seen.recv_timeout(SOON).unwrap();
    assert_eq!(left.sync_report().unwrap().late, reports[0].late);
}

#[test]
fn wrong_groups_are_named() {
    let node = isolated("one", []);
    let sub = || node.subscriber("a");
    let millis = Duration::from_millis;
    for (builder, part) in [
        (sub().sync_group("", DELAY), "from 1 to 64 bytes"),
        (sub().sync_group(&"a".repeat(65), DELAY), "from 1 to 64 bytes"),
        (sub().sync_group("a", Duration::ZERO), "above 0 and at most 60 s"),
        (sub().sync_group("a", millis(60_001)), "above 0 and at most 60 s"),
        (sub().within(millis(200)).sync_group("a", DELAY), "make the delay at least as long"),
        (sub().spacing(DELAY..=DELAY).sync_group("a", DELAY), "spacing and sync_group"),
    ] {
        let error: SubscribeError = builder.check().unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
    let first = sub().sync_group("named", DELAY).declare().unwrap();
    let other = || sub().sync_group("named", millis(20)).declare();
    let error = other().err().unwrap().to_string();
    assert!(error.contains("its other members have 150ms"), "{error}");
    drop(first);
    assert!(wait_until("the group has ended", || other().is_ok()) < SOON);
}

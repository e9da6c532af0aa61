//! Commands without flags find each other on one host.

use crate::host::{Host, Running};
use std::io::Write as _;
use std::process::Stdio;
use std::time::Instant;

#[test]
fn two_terminals_two_commands_no_flags() {
    let host = Host::new();
    let _camera = host.start(&["pub", "a/b", "--test-card", "320x240@20"]);
    let sub =
        host.run(&["sub", "a/b", "--count", "20", "--timeout", "30s", "--json", "--read-card"]);
    assert_eq!(sub.code, Some(0), "{sub:?}");
    let lines = sub.json();
    assert_eq!(lines.len(), 21);
    for (sample, next) in lines.iter().zip(&lines[1..20]) {
        assert_eq!(sample["tag"], "a/b");
        assert_eq!((&sample["width"], &sample["height"]), (&320.into(), &240.into()));
        assert_eq!(sample["card_frame"], sample["seq"]);
        assert_eq!(sample["kind"], "picture");
        assert_eq!(sample["encoding"], "image/jpeg");
        assert_eq!(sample["seq"].as_u64().map(|seq| seq + 1), next["seq"].as_u64());
    }
    let summary = &lines[20]["summary"];
    assert_eq!(summary["delivered"], 20);
    assert_eq!(summary["missing"], 0);
    assert_eq!(summary["refused"], serde_json::json!([]));
    let rate = summary["rate_hz"].as_f64().unwrap();
    assert!((15.0..25.0).contains(&rate), "{rate}");
}

#[test]
fn a_subscriber_may_start_first() {
    let host = Host::new();
    let sub = host.start(&["sub", "robot/**", "--count", "3", "--timeout", "30s", "--json"]);
    let publisher =
        host.start(&["pub", "robot/pose", "--test-card", "160x120@10", "--count", "200"]);
    let sub = sub.ended();
    assert_eq!(sub.code, Some(0), "{sub:?}");
    assert_eq!(sub.json()[0]["tag"], "robot/pose");
    drop(publisher);
}

#[test]
fn each_subscriber_gets_its_own_rate_and_size() {
    let host = Host::new();
    let _camera = host.start(&["pub", "cam", "--test-card", "320x240@20"]);
    let common = ["--count", "12", "--timeout", "30s", "--json", "--read-card"];
    let ask = |own: &[&str]| host.start(&[&["sub", "cam"], own, &common].concat());
    let third = ask(&["--every", "4", "--size", "160x120"]);
    let tenth =
        ask(&["--max-hz", "10", "--proxy", "subscriber", "--within", "500ms", "--loss", "1/2"]);
    for (sub, step, width) in [(third, 4, 160), (tenth, 2, 320)] {
        let sub = sub.ended();
        assert_eq!(sub.code, Some(0), "{sub:?}");
        let lines = sub.json();
        let seqs: Vec<u64> = lines.iter().filter_map(|line| line["seq"].as_u64()).collect();
        let steps = seqs.windows(2).filter(|pair| pair[1] - pair[0] == step).count();
        assert!(steps >= 9, "steps of {step}: {seqs:?}");
        assert_eq!(lines[11]["width"], width);
        assert_eq!(lines[11]["card_frame"], lines[11]["seq"]);
    }
}

#[test]
fn lines_of_text_pass_through() {
    let host = Host::new();
    let sub = host.start(&["sub", "log", "--out", "-", "--count", "3", "--timeout", "30s"]);
    let mut publisher = host.command(&["pub", "log", "-", "--wait", "20s"]);
    let mut publisher = publisher.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = publisher.stdin.take().unwrap();
    stdin.write_all("one\ntwo\r\nthrée".as_bytes()).unwrap();
    drop(stdin);
    let publisher = Running::gathered(publisher).ended();
    assert_eq!(publisher.code, Some(0), "{publisher:?}");
    let sub = sub.ended();
    assert_eq!(sub.code, Some(0), "{sub:?}");
    assert_eq!(sub.text(), "one\ntwo\nthrée\n");
    assert!(sub.stderr.contains("delivered 3 samples"), "{}", sub.stderr);
}

#[test]
fn a_publisher_reports_each_second_and_ends_after_its_count() {
    let host = Host::new();
    let began = Instant::now();
    let publisher = host.run(&["pub", "t", "--test-card", "160x120@20", "--count", "30", "--json"]);
    assert_eq!(publisher.code, Some(0), "{publisher:?}");
    assert!(began.elapsed().as_millis() >= 1_400, "30 samples at 20 Hz take 1.45 s");
    let lines = publisher.json();
    let last = lines.last().unwrap();
    assert!(lines.len() >= 2, "{lines:?}");
    assert_eq!((&last["published"], &last["matching"]), (&30.into(), &false.into()));
}

#[test]
fn ls_shows_asked_and_delivered() {
    let host = Host::new();
    let _camera = host.start(&["pub", "robot/camera", "--test-card", "320x240@20"]);
    let _viewer = host.start(&[
        "sub", "robot/**", "--max-hz", "5", "--size", "160x120", "--within", "300ms", "--loss",
        "1/4",
    ]);
    let until = Instant::now() + crate::host::LIMIT;
    let subscription = loop {
        let ls = host.run(&["ls", "--json"]);
        assert_eq!(ls.code, Some(0), "{ls:?}");
        let document: serde_json::Value = serde_json::from_str(&ls.text()).unwrap();
        assert_eq!(document["schema"], 1);
        let nodes = document["nodes"].as_array().unwrap();
        let all = |key: &str| {
            let lists = nodes.iter().filter_map(|node| node[key].as_array());
            lists.flatten().cloned().collect::<Vec<_>>()
        };
        let (publishers, subscriptions) = (all("publishers"), all("subscriptions"));
        let delivered = |s: &serde_json::Value| s["delivered"].as_u64().is_some_and(|n| n > 0);
        if publishers.iter().any(|publisher| publisher["tag"] == "robot/camera")
            && let Some(found) = subscriptions.into_iter().find(delivered)
        {
            break found;
        }
        assert!(Instant::now() < until, "{document}");
    };
    assert_eq!(subscription["pattern"], "robot/**");
    assert_eq!(subscription["asked"]["max_hz"], 5.0);
    assert_eq!(subscription["asked"]["width"], 160);
    assert_eq!(
        (&subscription["within_us"], &subscription["loss"]),
        (&300_000.into(), &"1/4".into())
    );
    let table = host.run(&["ls"]).text();
    for part in ["NODES", "PUBLISHERS", "SUBSCRIPTIONS", "robot/camera", "5 Hz at 160x120", "1/4"] {
        assert!(table.contains(part), "{table}");
    }
    assert!(!table.contains('~'), "a program needs whole names: {table}");
}

#[test]
fn an_empty_host_is_reported() {
    let host = Host::new();
    let ls = host.run(&["ls", "--timeout", "200ms"]);
    assert_eq!(ls.code, Some(0), "{ls:?}");
    assert!(ls.text().starts_with("no other node answers"), "{ls:?}");
}

//! Values from the command line, latched ones, and the lists of tags.

use crate::host::Host;
use rustix::process::Signal;

#[test]
fn a_value_is_published_once_or_at_a_rate_with_its_type() {
    let host = Host::new();
    let _node = host.start_node();
    let sub = host.start(&["sub", "robot/goal", "--json", "--count", "1", "--timeout", "30s"]);
    host.wait_for_subscriptions(1);
    assert_eq!(host.run(&["pub", "robot/goal", r#"{"x": 3}"#, "--wait", "20s"]).code, Some(0));
    let goal = sub.ended();
    assert_eq!((&goal.json()[0]["encoding"], goal.code), (&"application/json".into(), Some(0)));
    let steer = ["pub", "robot/steer", "left", "--hz", "50", "--count", "20", "--wait", "20s"];
    let sub = host.start(&["sub", "robot/steer", "--json", "--count", "5", "--timeout", "30s"]);
    host.wait_for_subscriptions(1);
    assert_eq!(host.run(&steer).code, Some(0));
    let steer = sub.ended();
    assert_eq!((steer.json()[4]["encoding"].as_str(), steer.code), (Some("text/plain"), Some(0)));
}

#[test]
fn a_latched_value_reaches_late_subscribers_and_ls_shows_its_tag() {
    let host = Host::new();
    let _node = host.start_node();
    let publisher = host.start(&["pub", "robot/mode", "idle", "--latch"]);
    let _other = host.start(&["pub", "robot/camera", "--test-card", "160x120@10"]);
    for _ in 0..2 {
        let sub = ["sub", "robot/mode", "--out", "-", "--count", "1", "--timeout", "30s"];
        let late = host.run(&sub);
        assert_eq!((late.code, late.stdout.as_slice()), (Some(0), &b"idle\n"[..]), "{late:?}");
    }
    let tags = host.run(&["ls", "--tags"]);
    tags.said(0, "");
    let text = String::from_utf8(tags.stdout.clone()).unwrap();
    let first = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<_> = text.lines().map(first).collect();
    assert_eq!(lines[0], ["tag", "type", "Hz", "publishers", "subscribers"], "{text}");
    assert_eq!((lines[1][0].as_str(), lines[1][1].as_str()), ("robot/camera", "image/jpeg"));
    assert_eq!((lines[2][0].as_str(), lines[2][1].as_str()), ("robot/mode", "text/plain"));
    let one = host.run(&["ls", "robot/mode", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&one.stdout).unwrap();
    let publishers = document["nodes"].as_array().unwrap().iter();
    let publishers = publishers.flat_map(|node| node["publishers"].as_array().unwrap());
    assert!(publishers.map(|it| &it["tag"]).all(|tag| tag == "robot/mode"), "{document}");
    let none = host.run(&["ls", "robot/map"]);
    assert_eq!(none.code, Some(0));
    let text = String::from_utf8(none.stdout).unwrap();
    assert_eq!(text, "nothing matches robot/map; published tags: robot/camera, robot/mode\n");
    publisher.signal(Signal::INT);
    assert_eq!(publisher.ended().code, Some(0));
}

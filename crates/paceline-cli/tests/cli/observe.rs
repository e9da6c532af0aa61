//! `watch`: output like ROS 2, and by default no additional load on thin links.

use crate::host::{Ended, Host, LIMIT, Running, free_port};
use rustix::process::Signal;
use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Publishes lines from a pipe that stays open.
fn publish(host: &Host, args: &[&str], lines: &str) -> Running {
    let all = [&["pub"], args, &["-", "--wait", "20s"]].concat();
    let mut child = host.command(&all).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    Running::gathered(child)
}

/// Returns the numbers in a line such as `min: 0.033s max: 0.034s`.
fn numbers(line: &str) -> Vec<f64> {
    let words = line.split([' ', '\t']).map(|word| word.trim_end_matches(['s', ',']));
    words.filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn rates_bandwidth_and_delays_of_several_tags_have_the_lines_of_ros2() {
    let host = Host::new();
    let _node = host.start_node();
    let _fast = host.start(&["pub", "a/fast", "--test-card", "160x120@20"]);
    let _slow = host.start(&["pub", "a/slow", "--test-card", "160x120@5"]);
    let measured = |command: &str| {
        let ended = host.run(&["watch", "a/*", command, "--duration", "4s"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let text = ended.text();
        let blocks: Vec<Vec<String>> = text
            .split('[')
            .skip(1)
            .map(|block| block.lines().map(ToOwned::to_owned).collect())
            .collect();
        assert!(blocks.len() >= 4, "{text}");
        for block in &blocks {
            let [tag, head, body, three] = &block[..] else { panic!("four lines: {text}") };
            assert!(tag == "a/fast]" || tag == "a/slow]", "{text}");
            assert!(three.starts_with("\tasked: all | granted: "), "{three}");
            assert!(three.contains("granted: best effort | published: "), "{three}");
            assert!(three.contains(" Hz | delivered: "), "{three}");
            assert!(body.starts_with('\t') && !head.starts_with('\t'), "{text}");
        }
        blocks.into_iter().rev().find(|block| block[0] == "a/fast]").unwrap()
    };
    let hz = measured("--hz");
    assert!(hz[1].starts_with("average rate: "), "{hz:?}");
    assert!((10.0..30.0).contains(&numbers(&hz[1])[0]), "{hz:?}");
    let [min, max, spread, window] = numbers(&hz[2])[..] else { panic!("{hz:?}") };
    assert!(min <= 0.06 && max >= 0.04 && spread >= 0.0 && window >= 10.0, "{hz:?}");
    let bw = measured("--bw");
    assert!(bw[1].contains(" KB/s from ") && bw[1].ends_with(" messages"), "{bw:?}");
    assert!(bw[2].starts_with("\tMessage size mean: ") && bw[2].contains(" KB max: "), "{bw:?}");
    let delay = measured("--delay");
    assert!(delay[1].starts_with("average delay: "), "{delay:?}");
    assert!(numbers(&delay[2])[1] < 5.0, "{delay:?}");
}

#[test]
fn json_reports_published_granted_and_delivered() {
    let host = Host::new();
    let _node = host.start_node();
    let _card = host.start(&["pub", "cam", "--test-card", "160x120@20"]);
    let hz = host.run(&["watch", "cam", "--hz", "--max-hz", "5", "--count", "15", "--json"]);
    assert_eq!(hz.code, Some(0), "{hz:?}");
    let lines = hz.json();
    let last = lines.last().unwrap();
    assert_eq!((&last["tag"], &last["asked"]["form"]), (&"cam".into(), &"5 Hz".into()));
    assert_eq!(last["delivered"]["samples"], 15);
    let near = |value: &serde_json::Value, wanted: f64| {
        value.as_f64().is_some_and(|value| (value / wanted - 1.0).abs() < 0.4)
    };
    assert!(near(&last["granted"]["published_hz"], 20.0), "{last}");
    assert!(near(&last["granted"]["rate_hz"], 5.0) && near(&last["rate_hz"], 5.0), "{last}");
}

/// A robot that publishes over a thin link, and the operator's host behind it.
fn joined() -> (Host, Host, [Running; 3]) {
    let (robot, operator) = (Host::new(), Host::new());
    let port = free_port();
    let listen = format!("name=thin,listen=tcp/127.0.0.1:{port},capacity=2mbit");
    let connect = format!("name=back,connect=tcp/127.0.0.1:{port}");
    let there = robot.start(&["node", "--name", "robot", "--link", &listen]);
    let here = operator.start(&["node", "--name", "operator", "--link", &connect]);
    let camera = robot.start(&["pub", "cam", "--test-card", "320x240@20"]);
    (robot, operator, [there, here, camera])
}

/// Returns the forms of the streams on the robot's thin link.
fn forms(robot: &Host) -> Vec<String> {
    let ls = robot.run(&["ls", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&ls.text()).unwrap();
    let nodes = document["nodes"].as_array().unwrap();
    let links = nodes.iter().flat_map(|node| node["links"].as_array().unwrap());
    let thin = links.filter(|link| link["name"] == "thin");
    let streams = thin.flat_map(|link| link["streams"].as_array().unwrap());
    streams.map(|stream| stream["asked"]["form"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_observer_adds_nothing_to_a_thin_link_by_default() {
    let (robot, operator, _running) = joined();
    let unasked = operator.run(&["watch", "cam", "--hz", "--duration", "6s"]);
    unasked.said(
        3,
        "cam would arrive over link thin (2 Mbit/s), and no other subscriber receives it there",
    );
    unasked.said(3, "--max-hz 1 for one sample per second");
    assert_eq!(forms(&robot), Vec::<String>::new());
    let few = ["watch", "cam", "--hz", "--max-hz", "4", "--count", "4", "--duration", "20s"];
    let reported = operator.run(&few);
    assert_eq!(reported.code, Some(0), "{reported:?}");

    let few = ["sub", "cam", "--max-hz", "5", "--size", "160x120", "--json"];
    let sub = operator.start(&few);
    let until = Instant::now() + LIMIT;
    while forms(&robot) != ["5 Hz at 160x120"] {
        assert!(Instant::now() < until, "{:?}", forms(&robot));
    }
    let hz = operator.start(&["watch", "cam", "--hz", "--json"]);
    // A second observer must not keep the first one subscribed.
    let _other = operator.start(&["watch", "cam", "--bw", "--json"]);
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(forms(&robot), ["5 Hz at 160x120"], "they share one stream");
    sub.signal(Signal::INT);
    drop(sub.ended());
    // Without the subscriber the observers would load the link, so they unsubscribe.
    while !forms(&robot).is_empty() {
        assert!(Instant::now() < until, "{:?}", forms(&robot));
    }
    hz.signal(Signal::INT);
    let hz = hz.ended();
    hz.said(0, "subscribed to [cam]: 5 Hz at 160x120");
    hz.said(0, "not subscribed to [cam]: ");
    let lines = hz.json();
    assert!(lines.iter().any(|line| line["delivered"]["samples"].as_u64() > Some(5)), "{lines:?}");
}

fn echo(host: &Host, encoding: &[&str], lines: &str, args: &[&str]) -> Ended {
    let echo = host.start(&[&["watch", "t", "--print", "--duration", "30s"], args].concat());
    let _talk = publish(host, &[&["t"], encoding].concat(), lines);
    echo.ended()
}

#[test]
fn watch_prints_text_json_and_fields() {
    let host = Host::new();
    let _node = host.start_node();
    let text = echo(&host, &[], "one\ntwo\n", &["--count", "2"]);
    assert_eq!((text.code, text.text().as_str()), (Some(0), "one\n---\ntwo\n---\n"), "{text:?}");
    let json = ["--encoding", "application/json"];
    let lines = "{\"p\": {\"x\": 1.5}}\n{\"q\": 2}\n{\"p\": {\"x\": 3}}\n";
    let field = echo(&host, &json, lines, &["--count", "3", "--field", "p.x"]);
    assert_eq!(field.text(), "1.5\n---\n3\n---\n", "{field:?}");
    field.said(0, "--field p.x: sample 1 of t has no p; it has q");
    let once = echo(&host, &["--encoding", "x/y"], "abcdef\n", &["--once", "-l", "2B"]);
    assert_eq!(once.text(), "x/y, 6 bytes: 6162...\n---\n", "{once:?}");
    let line = echo(&host, &json, "{\"a\": 1}\n", &["--once", "--json"]);
    assert_eq!(line.json()[0]["json"]["a"], 1, "{line:?}");
    assert_eq!(line.json()[0]["seq"], 0, "{line:?}");
}

#[test]
fn an_unknown_tag_is_awaited_and_a_lost_publisher_is_reported() {
    let host = Host::new();
    let _node = host.start_node();
    let _other = host.start(&["pub", "b/other", "--test-card", "160x120@5"]);
    let hz = host.start(&["watch", "a/cam", "--hz", "--json"]);
    std::thread::sleep(Duration::from_secs(4));
    let mut card = host.start(&["pub", "a/cam", "--test-card", "160x120@10"]);
    std::thread::sleep(Duration::from_secs(4));
    card.child().kill().unwrap();
    let _ = card.child().wait();
    std::thread::sleep(Duration::from_secs(6));
    hz.signal(Signal::INT);
    let hz = hz.ended();
    hz.said(0, "no publisher on a/cam yet; published tags: b/other; still waiting");
    hz.said(0, "subscribed to [a/cam]: all");
    hz.said(0, "[a/cam]: its publisher has gone; still waiting");
    assert!(!hz.json().is_empty(), "{hz:?}");
}

#[test]
fn invalid_arguments_are_refused_and_standard_output_may_close() {
    let host = Host::new();
    host.run(&["watch", "a", "--hz", "--window", "0"])
        .said(2, "must be a whole number from 1 to 100000");
    host.run(&["watch", "--hz"]).said(2, "<TAG>");
    host.run(&["watch", "a//b", "--bw"]).said(2, "a//b");
    host.run(&["watch", "a", "--print", "--field", "x..y"]).said(2, "must be names joined by dots");
    host.run(&["watch", "a", "--hz", "--duration", "1s"])
        .said(3, "no sample within --duration 1s: ");
    host.run(&["watch", "a"]).said(2, "<--hz|--bw|--delay|--print>");
    host.run(&["watch", "a", "--hz", "--print"]).said(2, "cannot be used with");
    host.run(&["watch", "a", "--bw", "--once"]).said(2, "--once needs --print");
    host.run(&["watch", "a", "--print", "--window", "5"]).said(2, "--window measures samples");
    let _card = host.start(&["pub", "cam", "--test-card", "160x120@20"]);
    let print = host.run(&["watch", "cam", "--print", "--once", "--duration", "30s"]);
    assert!(print.text().starts_with("160x120 image/jpeg, "), "{print:?}");
    let mut echo = Running::unread(host.command(&["watch", "cam", "--print"]).spawn().unwrap());
    assert!(echo.first_line().starts_with("160x120 image/jpeg, "));
    assert_eq!(echo.status().code(), Some(0));
}

#[test]
fn text_and_json_are_printed_on_a_terminal_one_line_each() {
    let host = Host::new();
    let _node = host.start_node();
    let _pose = host.start(&["pub", "robot/pose", "{\"x\": 3.5}", "--hz", "10"]);
    let _goal = host.start(&["pub", "robot/goal", "left", "--hz", "10"]);
    let on_terminal = |sub: &str| {
        let mut command = host.command(&[]);
        let environment: Vec<_> = command
            .get_envs()
            .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
            .collect();
        command = std::process::Command::new("script");
        command.args(["-qec", &format!("exec '{}' {sub}", crate::BINARY), "/dev/null"]);
        command.envs(environment).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let ended = Running::gathered(command.spawn().ok()?).ended();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        Some(ended.text().replace('\r', ""))
    };
    let Some(pose) = on_terminal("sub robot/pose --count 3 --timeout 30s") else {
        println!("skipped: payloads on a terminal (script of util-linux makes one)");
        return;
    };
    assert!(pose.starts_with("{\"x\": 3.5}\n{\"x\": 3.5}\n{\"x\": 3.5}\ndelivered 3 "), "{pose}");
    assert!(!pose.contains("average rate"), "{pose}");
    let both = on_terminal("sub 'robot/*' --count 20 --timeout 30s").unwrap();
    for line in ["[robot/pose] {\"x\": 3.5}\n", "[robot/goal] left\n"] {
        assert!(both.contains(line), "{both}");
    }
    // A program reads lines of rates, as before.
    let piped = host.run(&["sub", "robot/pose", "--count", "15", "--timeout", "30s"]).text();
    assert!(piped.starts_with("average rate: "), "{piped}");
}

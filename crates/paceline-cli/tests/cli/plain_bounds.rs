//! Plain programs that put too much: too many keys, too large samples, too fast, messages of any size.

use crate::plain::{Pair, listen, node_of, put, wait_for};
use zenoh::Wait as _;

#[test]
fn keys_and_attachments_beyond_a_rules_bounds_are_counted() {
    let pair = Pair::new();
    let _robot = pair.start(&pair.robot, "[[import]]\nkey = \"robot/**\"\nkeys = 2\n");
    let here = pair.session_at(1);
    let count =
        |reason: &str| node_of(&pair.robot, "robot")["dropped"][reason].as_u64().unwrap_or(0);
    wait_for("drops are counted", || {
        for n in 0..10u64 {
            put(&here, &format!("robot/{n}"), n);
        }
        here.put("robot/0", "x").attachment(vec![0; 513]).wait().unwrap();
        (count("not_imported") >= 8 && count("too_large") >= 1).then_some(())
    });
    let log = std::fs::read_to_string(pair.robot.path("log")).unwrap();
    assert!(log.contains("import 1 (key 'robot/**'): has 2 keys, and takes no more"), "{log}");
    let robot = node_of(&pair.robot, "robot");
    assert_eq!(robot["publishers"].as_array().map(Vec::len), Some(2), "{robot}");
}

#[test]
fn what_is_larger_or_faster_than_its_rule_allows_is_dropped_by_name() {
    let pair = Pair::new();
    let rule = "[[import]]\nkey = \"robot/**\"\nmax_hz = 5\nmax_bytes = \"1kB\"\n";
    let _robot = pair.start(&pair.robot, rule);
    let here = pair.session_at(1);
    let robot = || node_of(&pair.robot, "robot");
    let published = || robot()["publishers"][0]["published"].as_u64().unwrap_or(0);
    wait_for("the key is there", || {
        put(&here, "robot/imu", 1);
        (published() > 0).then_some(())
    });
    for n in 0..500u64 {
        put(&here, "robot/imu", n);
        here.put("robot/imu", vec![0u8; 1_001]).wait().unwrap();
    }
    let told = wait_for("all came", || {
        let told = robot();
        (told["dropped"]["too_large"] == 500).then_some(told)
    });
    let dropped = told["dropped"]["policed"].as_u64().unwrap();
    // 500 samples at once are five a second: those that were already on their way, two, and one for each 200 ms that
    // this takes on a busy machine.
    assert!(dropped >= 400, "{told}");
    let log = std::fs::read_to_string(pair.robot.path("log")).unwrap();
    let named = ["'robot/imu' comes faster than max_hz", "takes at most 1000 bytes (max_bytes)"];
    assert!(named.iter().any(|part| log.contains(part)), "{log}");
    assert!(log.contains("import 1 (key 'robot/**'): "), "{log}");
}

#[test]
fn a_message_of_any_size_costs_the_others_nothing() {
    let pair = Pair::new();
    let mut robot = pair.start(&pair.robot, "[[import]]\nkey = \"robot/**\"\n");
    let _operator = pair.start(&pair.operator, "[[export]]\ntag = \"robot/imu\"\n");
    let (here, there) = (pair.session_at(1), pair.session_at(2));
    let got = listen(&there, "robot/imu");
    let comes = |what: &str| {
        wait_for(what, || {
            put(&here, "robot/imu", 1);
            got.try_recv().ok()
        });
    };
    comes("it comes before");
    // Zenoh takes it apart; beyond 64 MiB what receives it gives it up, and its connection may go with it.
    let large = pair.session_at(1);
    let _ = large.put("robot/imu", vec![1u8; 200 << 20]).wait();
    while got.try_recv().is_ok() {}
    comes("it comes after");
    while let Ok(sample) = got.try_recv() {
        assert!(sample.payload().len() < 10, "{} bytes went through", sample.payload().len());
    }
    // The node holds none of it: its memory is far from what was sent.
    let id = robot.child().id();
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes < 200 << 10, "{peak}");
}

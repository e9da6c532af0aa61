//! Plain programs that exceed their limits: too many keys, too large samples, too high rates, huge messages.

use crate::plain::{Pair, listen, node_of, put, wait_for};
use zenoh::Wait as _;
use zenoh::qos::CongestionControl;

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
    assert!(log.contains("import 1 (key 'robot/**'): has 2 keys, the maximum"), "{log}");
    let robot = node_of(&pair.robot, "robot");
    assert_eq!(robot["publishers"].as_array().map(Vec::len), Some(2), "{robot}");
}

#[test]
fn samples_beyond_a_rules_limits_are_dropped_by_name() {
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
        let large = here.put("robot/imu", vec![0u8; 1_001]);
        large.congestion_control(CongestionControl::Block).wait().unwrap();
    }
    let reported = wait_for("all came", || {
        let reported = robot();
        (reported["dropped"]["too_large"] == 500).then_some(reported)
    });
    let dropped = reported["dropped"]["policed"].as_u64().unwrap();
    // 500 samples within a moment arrive at a limit of five per second. Allowed are the two already in
    // transit, and one per 200 ms that the burst takes on a busy machine.
    assert!(dropped >= 400, "{reported}");
    let log = std::fs::read_to_string(pair.robot.path("log")).unwrap();
    let named = ["'robot/imu' arrives faster than max_hz", "takes at most 1000 bytes (max_bytes)"];
    assert!(named.iter().any(|part| log.contains(part)), "{log}");
    assert!(log.contains("import 1 (key 'robot/**'): "), "{log}");
}

/// Returns 1 GiB, or a quarter of the available memory if that is less.
fn gigabyte() -> usize {
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap();
    let left = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:")).unwrap();
    let kilobytes: usize = left.trim().trim_end_matches(" kB").parse().unwrap();
    let bytes = (kilobytes << 10) / 4;
    if bytes < 1 << 30 {
        println!("too little memory for a message of 1 GiB: it has {bytes} bytes");
    }
    bytes.clamp(200 << 20, 1 << 30)
}

/// Returns a process's peak memory in bytes.
fn peak(process: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

#[test]
fn a_message_of_a_gigabyte_does_not_affect_others() {
    let pair = Pair::new();
    let mut robot = pair.start(&pair.robot, "[[import]]\nkey = \"robot/**\"\n");
    let _operator = pair.start(&pair.operator, "[[export]]\ntag = \"robot/imu\"\n");
    let (here, there) = (pair.session_at(1), pair.session_at(2));
    let got = listen(&there, "robot/imu");
    let comes = |what: &str| {
        wait_for(what, || {
            put(&here, "robot/imu", 1);
            got.try_recv().ok()
        })
    };
    comes("it comes before");
    let before = peak(robot.child().id());
    // Blocks for room, so that the whole message is sent. Zenoh fragments it; the receiver discards it after
    // 64 MiB.
    let large = pair.session_at(1);
    let sent = std::thread::spawn(move || {
        let put = large.put("robot/imu", vec![1u8; gigabyte()]);
        put.congestion_control(CongestionControl::Block).wait().unwrap();
        large
    });
    let (mut meanwhile, mut longest) = (0, 0);
    while !sent.is_finished() {
        longest = comes("it comes meanwhile").payload().len().max(longest);
        meanwhile += 1;
    }
    let large = sent.join().unwrap();
    longest = comes("it comes after").payload().len().max(longest);
    assert!(meanwhile > 0 && longest < 10, "{longest} bytes went through");
    let robot_now = || node_of(&pair.robot, "robot");
    let reported = wait_for("it is counted", || {
        let reported = robot_now();
        (reported["dropped"]["too_large"] == 1).then_some(reported)
    });
    assert_eq!(reported["dropped"].as_object().unwrap().len(), 1, "{reported}");
    let log = std::fs::read_to_string(pair.robot.path("log")).unwrap();
    assert!(
        log.contains("dropped 1 messages of plain programs: each is larger than 64 MiB"),
        "{log}"
    );
    // The node never buffered the whole message: one connection may occupy only a bounded amount.
    let held = peak(robot.child().id()) - before;
    assert!(held < 128 << 20, "{held} bytes");
    // Samples of the same program still arrive.
    wait_for("it is heard", || {
        large.put("robot/imu", "whole").wait().unwrap();
        got.try_iter().any(|sample| sample.payload().to_bytes().as_ref() == b"whole").then_some(())
    });
}

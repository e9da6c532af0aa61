//! Delivery by time: commands that are never stale, and their safe action.

use crate::host::Host;
use crate::plain::{Pair, listen, put, wait_for};

#[test]
fn the_safe_action_follows_the_last_command() {
    let host = Host::new();
    let args = ["sub", "robot/camera", "--fresh", "300ms:zero", "--json", "--timeout", "4s"];
    let sub = host.start(&args);
    host.wait_for_subscriptions(1);
    let card =
        ["pub", "robot/camera", "--test-card", "160x120@20", "--count", "10", "--wait", "5s"];
    assert_eq!(host.run(&card).code, Some(0));
    let ended = sub.ended();
    let lines = ended.json();
    let (summary, samples) = lines.split_last().unwrap();
    let (last, commands) = samples.split_last().unwrap();
    assert_eq!(
        (&last["actuation"], &last["seq"]),
        (&"safe".into(), &commands.last().unwrap()["seq"])
    );
    for command in commands {
        assert_eq!(command["actuation"], "command", "{ended:?}");
        assert!(command["fresh_us"].as_u64().unwrap() < 300_000);
    }
    let decisions = &summary["summary"]["decisions"];
    assert_eq!(
        (&decisions["silences"], decisions["released"].as_u64()),
        (&1.into(), Some(commands.len() as u64))
    );
    ended.said(0, "has reached the age limit");
}

#[test]
fn plain_programs_get_no_stale_command_and_a_stop() {
    let pair = Pair::new();
    let _robot = pair.start(&pair.robot, "[[import]]\nkey = \"robot/**\"\n");
    let rules = "[[export]]\ntag = \"robot/**\"\nkey = \"far/{1}\"\nfresh = \"200ms:zero\"\n";
    let _operator = pair.start(&pair.operator, rules);
    let (here, there) = (pair.session_at(1), pair.session_at(2));
    let got = listen(&there, "far/**");
    let mut payloads = Vec::new();
    let mut n = 0;
    wait_for("a fresh command", || {
        put(&here, "robot/cmd", n);
        n += 1;
        payloads.extend(got.try_iter().map(|sample| sample.payload().to_bytes().to_vec()));
        (!payloads.is_empty()).then_some(())
    });
    let stop = wait_for("the stop", || {
        payloads.extend(got.try_iter().map(|sample| sample.payload().to_bytes().to_vec()));
        payloads.iter().skip(1).find(|payload| payload.iter().all(|byte| *byte == 0)).cloned()
    });
    assert!(!stop.is_empty());
}

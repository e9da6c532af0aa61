//! Delivery by time: commands that are never stale, and their safe action.

use crate::host::{Host, arg};
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

#[test]
fn a_recording_holds_the_decisions_and_ls_shows_the_settings() {
    let host = Host::new();
    let _node = host.start_node();
    let out = host.path("run.mcap");
    let record = ["record", "arm/*", "-o", arg(&out), "--fresh", "150ms"];
    let record = host.start(&record);
    let group = ["sub", "arm/*", "--sync-group", "stage=40ms", "--json", "--count", "2"];
    let group = host.start(&group);
    host.wait_for_subscriptions(2);
    let shows = |document: &serde_json::Value| {
        let all = document["nodes"].as_array().into_iter().flatten();
        let all =
            all.flat_map(|node| node["subscriptions"].as_array().cloned().unwrap_or_default());
        let timed: Vec<_> = all.map(|subscription| subscription["timed"].clone()).collect();
        let has = |method: &str, setting: &str| {
            timed.iter().any(|timed| timed["method"] == method && timed["setting"] == setting)
        };
        has("fresh", "150ms:hold") && has("sync_group", "stage=40ms")
    };
    wait_for("both settings", || {
        let document = host.run(&["ls", "--json"]).text();
        shows(&serde_json::from_str(&document).unwrap()).then_some(())
    });
    assert!(host.run(&["ls"]).text().contains("DELIVERY BY TIME"));
    for _ in 0..2 {
        assert_eq!(host.run(&["pub", "arm/velocity", "1", "--wait", "5s"]).code, Some(0));
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
    // A change of the request does not change the age limit.
    let changed = host.run(&["set", "arm/*", "--at", "record-arm", "--max-hz", "50"]);
    assert_eq!(changed.code, Some(0), "{changed:?}");
    let summary = group.ended().json().pop().unwrap();
    let sync = &summary["summary"]["sync"];
    assert_eq!((&sync["group"], &sync["delay_us"]), (&"stage".into(), &40_000.into()));
    assert_eq!((&sync["released"], &sync["by_clocks"]), (&2.into(), &0.into()));
    record.signal(rustix::process::Signal::INT);
    assert_eq!(record.ended().code, Some(0));
    let judged = host.run(&["judge", arg(&out), "--json"]);
    let judged = &judged.json()[0];
    assert_eq!(judged["asked"]["fresh_us"], 150_000);
    let decisions = &judged["decisions"];
    assert_eq!(decisions["limit_us"], 150_000);
    assert_eq!((&decisions["released"], &decisions["silences"]), (&2.into(), &2.into()));
    let text = host.run(&["judge", arg(&out)]).text();
    assert!(text.contains("commands: 2 released, 0 stale, 2 silences"), "{text}");
}

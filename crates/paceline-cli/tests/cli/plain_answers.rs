//! Queries of plain programs that a node answers from pull buffers.

use crate::host::{LIMIT, Running};
use crate::plain::{Pair, node_of, number, put, stamp, wait_for};
use rustix::process::Signal;
use std::time::Duration;
use zenoh::Wait;
use zenoh::bytes::Encoding;
use zenoh::qos::CongestionControl;
use zenoh::query::ConsolidationMode;

/// Starts a robot that buffers its samples, and an operator that answers queries for them.
fn start(pair: &Pair) -> [Running; 2] {
    let held =
        "[[import]]\nkey = \"robot/**\"\n[[buffer]]\npattern = \"robot/**\"\nsamples = 100\n";
    let rules = "[[export]]\ntag = \"robot/**\"\nkey = \"far/{1}\"\nqueries = true\n";
    [pair.start(&pair.robot, held), pair.start(&pair.operator, rules)]
}

/// Returns the number of samples that the robot buffers.
fn held(pair: &Pair) -> Option<u64> {
    node_of(&pair.robot, "robot")["buffers"][0]["samples"].as_u64()
}

#[test]
fn queries_are_answered_from_pull_buffers() {
    let pair = Pair::new();
    let _nodes = start(&pair);
    let (here, there) = (pair.session_at(1), pair.session_at(2));
    let ask = |selector: &str| {
        let get = there.get(selector.to_owned()).consolidation(ConsolidationMode::None);
        let replies = get.timeout(LIMIT).wait().unwrap();
        let replies: Vec<_> = replies.iter().map(zenoh::query::Reply::into_result).collect();
        replies
    };
    for n in 0..30 {
        put(&here, "robot/imu", n);
        std::thread::sleep(Duration::from_millis(5));
    }
    wait_for("samples are held", || held(&pair).filter(|held| *held >= 20));
    let newest =
        wait_for("the newest sample", || ask("far/imu").into_iter().next().and_then(Result::ok));
    assert_eq!(newest.key_expr().as_str(), "far/imu");
    assert_eq!(newest.encoding(), &Encoding::APPLICATION_CDR.with_schema("x/y"));
    assert_eq!(newest.attachment().unwrap().to_bytes().as_ref(), [7; 33]);
    let last = number(&newest);
    // The timestamps are in 2023; this range covers the samples from last - 9 to last - 5.
    let at = |n: u64| stamp(n).get_time().to_string_rfc3339_lossy();
    let between = ask(&format!("far/imu?_time=[{}..{}]", at(last - 9), at(last - 5)));
    let mut numbers: Vec<_> = between.into_iter().map(|reply| number(&reply.unwrap())).collect();
    numbers.sort_unstable();
    // RFC 3339 times have a resolution of 1 ns, Zenoh's timestamps of 0.25 ns.
    assert!(
        numbers.len() >= 4 && numbers.iter().all(|n| (last - 9..=last - 5).contains(n)),
        "{numbers:?}"
    );
    for (selector, what) in [
        ("far/imu?_time=[yesterday..]", "write _time=[FROM..TO]"),
        ("far/**", "query one key at a time"),
        ("far/nobody", "'robot/nobody'"),
    ] {
        let [Err(refused)] = &ask(selector)[..] else { panic!("{selector}") };
        let output = refused.payload().try_to_string().unwrap();
        assert!(output.contains(what), "{selector}: {output}");
    }
}

#[test]
fn the_end_of_a_rule_interrupts_its_answers() {
    let pair = Pair::new();
    let [_robot, operator] = start(&pair);
    let (here, there) = (pair.session_at(1), pair.session_at(2));
    // This history needs 20 s on the link. A shorter one would end before the removal.
    wait_for("the buffer is full", || {
        for _ in 0..100 {
            let put = here.put("robot/imu", vec![0; 50_000]);
            put.congestion_control(CongestionControl::Block).wait().unwrap();
        }
        held(&pair).filter(|held| *held == 100)
    });
    let replies = wait_for("the first sample", || {
        let get = there.get("far/imu?_max=100").consolidation(ConsolidationMode::None);
        let replies = get.timeout(Duration::from_secs(600)).wait().unwrap();
        replies.recv().is_ok_and(|first| first.result().is_ok()).then_some(replies)
    });
    pair.write(&pair.operator, "");
    operator.signal(Signal::HUP);
    let last = replies.iter().last().expect("an error ends the answer");
    let error = last.result().expect_err("the rule was removed").payload().try_to_string();
    let error = error.unwrap();
    assert!(error.starts_with("the rule that answers this query ended: "), "{error}");
}

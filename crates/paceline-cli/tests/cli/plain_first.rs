//! The first samples on new keys of plain programs, and large samples.

use crate::plain::{Pair, listen, node_of, put, wait_for};
use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;
use std::time::Duration;
use zenoh::Wait;
use zenoh::qos::CongestionControl;
use zenoh::sample::Sample;

const KEYS: usize = 40;
const IMPORT: &str = "[[import]]\nkey = \"robot/**\"\n";

/// Waits until samples cross both nodes.
fn meet(session: &zenoh::Session, got: &Receiver<Sample>) {
    wait_for("samples cross both nodes", || {
        put(session, "robot/met", 0);
        got.recv_timeout(Duration::from_millis(100)).ok()
    });
}

/// Puts the first sample on many keys, and expects all of them.
fn each_first_sample_arrives(export: &str) {
    let pair = Pair::new();
    let _robot = pair.start(&pair.robot, IMPORT);
    let _operator = pair.start(&pair.operator, export);
    let (here, there) = (pair.session_at(1), pair.session_at(2));
    let got = listen(&there, "far/**");
    meet(&here, &got);
    for n in 0..KEYS {
        put(&here, &format!("robot/new/{n}"), 1);
    }
    let mut samples: BTreeMap<String, u32> = BTreeMap::new();
    wait_for("the first sample of every key", || {
        let new = got.try_iter().map(|sample| sample.key_expr().to_string());
        for key in new.filter(|key| key.starts_with("far/new/")) {
            *samples.entry(key).or_default() += 1;
        }
        (samples.len() == KEYS).then_some(())
    });
    assert!(samples.values().all(|count| *count == 1), "{samples:?}");
    let dropped = &node_of(&pair.robot, "robot")["dropped"];
    assert!(dropped.as_object().is_none_or(serde_json::Map::is_empty), "{dropped}");
}

#[test]
fn the_first_sample_of_a_new_key_arrives() {
    each_first_sample_arrives("[[export]]\ntag = \"robot/**\"\nkey = \"far/{1}\"\n");
}

#[test]
fn the_first_sample_of_a_new_key_arrives_in_the_requested_form() {
    each_first_sample_arrives(
        "[[export]]\ntag = \"robot/**\"\nkey = \"far/{1}\"\nmax_hz = 10\nwithin = \"5s\"\n",
    );
}

/// One node imports samples and exports them on other keys; every large sample must reach another plain
/// program.
fn large_samples_arrive(bytes: usize, count: usize) {
    let pair = Pair::new();
    let rules = format!("{IMPORT}[[export]]\ntag = \"robot/**\"\nkey = \"far/{{1}}\"\n");
    let _robot = pair.start(&pair.robot, &rules);
    let (here, there) = (pair.session_at(1), pair.session_at(1));
    let got = listen(&there, "far/**");
    meet(&here, &got);
    for n in 0..count {
        let mut payload = vec![0; bytes];
        payload[..8].copy_from_slice(&n.to_le_bytes());
        let put = here.put("robot/large", payload);
        put.congestion_control(CongestionControl::Block).wait().unwrap();
    }
    let mut numbers = Vec::new();
    wait_for("all large samples", || {
        for sample in got.try_iter().filter(|it| it.key_expr().as_str() == "far/large") {
            assert_eq!(sample.payload().len(), bytes);
            let payload = sample.payload().to_bytes();
            numbers.push(usize::from_le_bytes(payload[..8].try_into().unwrap()));
        }
        (numbers.len() == count).then_some(())
    });
    assert!(numbers.iter().copied().eq(0..count), "{numbers:?}");
}

#[test]
fn samples_of_a_megabyte_reach_plain_programs() {
    large_samples_arrive(1 << 20, 40);
}

#[test]
fn samples_of_ten_megabytes_reach_plain_programs() {
    large_samples_arrive(10 << 20, 10);
}

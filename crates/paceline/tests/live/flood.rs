//! Flood attacks of a neighbour: control messages, unrequested samples, and malformed frames.

use crate::rogue::Rogue;
use crate::sums;
use crate::support::{SOON, free_endpoint, isolated, pair, wait_until};
use paceline::status::{Flood, MutedStatus};
use paceline::{LinkConfig, Node, Pattern};
use std::time::{Duration, Instant};

/// A generous timeout for muting a flood on any machine.
const LONG: Duration = Duration::from_secs(120);

fn muted(by: &Node) -> Option<MutedStatus> {
    let status = by.status_of(&[by.id()], SOON);
    status.iter().flat_map(|node| &node.links).flat_map(|link| &link.muted).copied().next()
}

#[test]
fn a_flooding_neighbour_is_muted_and_unmuted_automatically() {
    let (robot, operator) = pair(|link| link);
    let mut pose = robot.publisher("pose").declare().unwrap();
    let mut held = operator.subscriber("pose").declare().unwrap();
    assert!(pose.wait_matching(SOON));
    assert_eq!(muted(&operator), None);
    // Publishers are declared and dropped at the highest rate. Every change is announced to all
    // nodes.
    let began = Instant::now();
    while muted(&operator).is_none() {
        assert!(began.elapsed() < LONG, "it is received however much it sends");
        for _ in 0..2_000 {
            drop(robot.publisher("flood").declare().unwrap());
        }
    }
    let row = muted(&operator).unwrap();
    assert_eq!((row.peer, row.flood, row.times), (robot.id(), Flood::Control, 1));
    assert!(row.dropped > 0);
    // Other samples still arrive.
    assert_eq!(pose.put("still here").unwrap().dropped, 0);
    assert_eq!(held.recv_timeout(SOON).unwrap().payload, "still here");
    wait_until("it is received again", || muted(&operator).is_some_and(|row| !row.muted));
    // Dropped control messages are repaired later.
    let after = robot.publisher("after").declare().unwrap();
    let there = |pattern: &str| operator.sources(&Pattern::new(pattern).unwrap());
    wait_until("all its current messages are known", || there("after").len() == 1);
    wait_until("withdrawals during the mute are applied", || there("flood").is_empty());
    drop(after);
    sums::check(&[&robot, &operator]);
}

/// Sends a flood of frames by `send` to an operator that receives a robot's stream on the same
/// link.
fn mutes_a_rogue(flood: Flood, send: impl Fn(&mut Rogue)) {
    let endpoint = free_endpoint();
    let operator = isolated("operator", [LinkConfig::new("radio").listen(&endpoint)]);
    let robot = isolated("robot", [LinkConfig::new("radio").connect(&endpoint)]);
    let mut pose = robot.publisher("pose").declare().unwrap();
    let mut held = operator.subscriber("pose").declare().unwrap();
    assert!(pose.wait_matching(SOON));
    let mut next = {
        let mut number = 0;
        move || {
            number += 1;
            let text = format!("pose {number}");
            assert_eq!(pose.put(text.clone()).unwrap().dropped, 0);
            assert_eq!(held.recv_timeout(SOON).unwrap().payload, text);
        }
    };
    let mut rogue = Rogue::join(&endpoint);
    wait_until("the rogue is a neighbour", || rogue.greet());
    let began = Instant::now();
    while muted(&operator).is_none() {
        assert!(began.elapsed() < LONG, "it is read however much it sends");
        (0..2_000).for_each(|_| send(&mut rogue));
        next();
    }
    // The flood continues without costing any other stream a sample.
    for _ in 0..20 {
        (0..500).for_each(|_| send(&mut rogue));
        next();
    }
    let row = muted(&operator).unwrap();
    assert_eq!((row.peer, row.flood, row.muted, row.times), (rogue.id, flood, true, 1));
    wait_until("more is dropped", || muted(&operator).is_some_and(|row| row.dropped > 9_000));
    wait_until("it may send again", || muted(&operator).is_some_and(|row| !row.muted));
    let dropped = muted(&operator).unwrap().dropped;
    (0..100).for_each(|_| send(&mut rogue));
    next();
    let row = muted(&operator).unwrap();
    assert_eq!((row.muted, row.times, row.dropped), (false, 1, dropped), "that is not a flood");
}

#[test]
fn a_neighbour_flooding_invalid_frames_is_muted_and_unmuted_automatically() {
    mutes_a_rogue(Flood::Malformed, |rogue| rogue.send(vec![0xff; 64]));
}

#[test]
fn unrequested_samples_are_bounded_and_drop_no_others() {
    mutes_a_rogue(Flood::Unasked, |rogue| rogue.send_sample(100));
}

#[test]
fn an_impossible_sequence_number_ends_no_node() {
    let endpoint = free_endpoint();
    let operator = isolated("operator", [LinkConfig::new("radio").listen(&endpoint)]);
    let robot = isolated("robot", [LinkConfig::new("radio").connect(&endpoint)]);
    let mut pose = robot.publisher("pose").declare().unwrap();
    let mut held = operator.subscriber("pose").declare().unwrap();
    let mut all = operator.subscriber("**").declare().unwrap();
    assert!(pose.wait_matching(SOON));
    let mut rogue = Rogue::join(&endpoint);
    wait_until("the rogue is a neighbour", || rogue.greet());
    for number in [0, u64::MAX, 1, u64::MAX / 2, u64::MAX / 2, 2, 1 << 40] {
        rogue.send_numbered(number, 10);
    }
    wait_until("all of it is received", || rogue.is_heard());
    assert_eq!(pose.put("still here").unwrap().dropped, 0);
    assert_eq!(held.recv_timeout(SOON).unwrap().payload, "still here");
    assert_eq!(all.recv_timeout(SOON).unwrap().payload, "still here");
    assert_eq!(operator.fault(), None);
    let status = operator.status_of(&[operator.id()], SOON);
    assert!(status[0].dropped.total() < 100, "{:?}", status[0].dropped);
    sums::check(&[&operator, &robot]);
}

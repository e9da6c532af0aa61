//! A neighbour that floods a node with control.

use crate::support::{SOON, pair, wait_until};
use paceline::{MutedStatus, Node, Pattern};
use std::time::{Duration, Instant};

/// More than a flood takes until it is muted on any machine; only a test that fails goes on so long.
const LONG: Duration = Duration::from_secs(120);

fn muted(by: &Node) -> Option<MutedStatus> {
    let status = by.status_of(&[by.id()], SOON);
    status.iter().flat_map(|node| &node.links).flat_map(|link| &link.muted).copied().next()
}

#[test]
fn a_neighbour_that_floods_is_muted_and_heard_again_by_itself() {
    let (robot, operator) = pair(|link| link);
    let mut pose = robot.publisher("pose").unwrap().declare().unwrap();
    let mut held = operator.subscriber("pose").unwrap().declare().unwrap();
    assert!(pose.wait_matching(SOON));
    assert_eq!(muted(&operator), None);
    // The publishers of the robot come and go as fast as they can: each time all nodes are told.
    let began = Instant::now();
    while muted(&operator).is_none() {
        assert!(began.elapsed() < LONG, "it is heard however much it says");
        for _ in 0..2_000 {
            drop(robot.publisher("flood").unwrap().declare().unwrap());
        }
    }
    let row = muted(&operator).unwrap();
    assert_eq!((row.node, row.times), (robot.id(), 1));
    assert!(row.dropped > 0);
    // Samples go on.
    assert_eq!(pose.put("still here").unwrap().dropped, 0);
    assert_eq!(held.recv_timeout(SOON).unwrap().payload, "still here");
    wait_until("it is heard again", || muted(&operator).is_some_and(|row| !row.muted));
    // What was not heard is made good.
    let after = robot.publisher("after").unwrap().declare().unwrap();
    let there = |pattern: &str| operator.sources(&Pattern::new(pattern).unwrap());
    wait_until("all that it says now is known", || there("after").len() == 1);
    wait_until("what it took back while it was muted is gone", || there("flood").is_empty());
    drop(after);
}

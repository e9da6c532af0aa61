//! All state of a node is bounded.

use super::net::{Net, all, camera, id, link};
use bytes::Bytes;
use paceline_proto::control::{Control, ControlOutput, NAME_BYTES_MAX, NODES_MAX, PUBLISHERS_MAX};
use paceline_proto::wire::WireError;
use paceline_sched::Instant;
use proptest::prelude::*;

/// Returns the first message that a node sends, and drops the others.
fn message(node: &mut Control) -> Bytes {
    let outputs: Vec<ControlOutput> = core::iter::from_fn(|| node.poll_output()).collect();
    let sent = outputs.into_iter().find_map(|output| {
        if let ControlOutput::Send { message, .. } = output { Some(message) } else { None }
    });
    sent.unwrap()
}

/// Returns the first message of a node that has just met `to`.
fn introduction(node: usize, to: usize) -> Bytes {
    let mut stranger = Control::new(id(node), "stranger");
    let mut peer = Control::new(id(to), "peer");
    stranger.handle_hop_up(Instant::ZERO, id(to), link("eth", None));
    peer.handle_hop_up(Instant::ZERO, id(node), link("eth", None));
    message(&mut stranger);
    stranger.handle_message(Instant::ZERO, id(to), message(&mut peer)).unwrap();
    message(&mut stranger)
}

#[test]
fn a_full_registry_evicts_only_unreachable_nodes() {
    let mut net = Net::chain(2);
    for node in 2..NODES_MAX + 100 {
        let snapshot = introduction(node, node + 1);
        net.nodes[0].handle_message(net.now, id(1), snapshot).unwrap();
    }
    net.drain(0);
    assert_eq!(net.names(0), ["node0", "node1"]);
    assert_eq!(net.nodes[0].rejected(), 0);
    net.settle();
    net.assert_converged();
}

#[test]
fn publishers_beyond_the_record_limit_are_rejected_and_counted() {
    let mut node = Control::new(id(0), "node");
    for _ in 0..PUBLISHERS_MAX {
        node.publish(Instant::ZERO, camera("camera"));
    }
    assert_eq!(node.rejected(), 0);
    node.publish(Instant::ZERO, camera("camera"));
    assert_eq!(node.rejected(), 1);
    let publishers: usize = node.nodes().map(|view| view.publishers.len()).sum();
    assert_eq!(publishers, PUBLISHERS_MAX);
}

#[test]
fn long_names_are_truncated_at_a_character() {
    let node = Control::new(id(0), &"ö".repeat(NAME_BYTES_MAX));
    assert_eq!(node.nodes().next().unwrap().name, "ö".repeat(NAME_BYTES_MAX / 2));
}

#[test]
fn an_invalid_message_changes_nothing() {
    let mut net = Net::chain(2);
    let before = net.listing(0);
    let error = net.nodes[0].handle_message(net.now, id(1), Bytes::from_static(&[99]));
    assert_eq!(error, Err(WireError::Invalid("control message")));
    assert_eq!(net.nodes[0].rejected(), 1);
    assert_eq!(net.nodes[0].poll_output(), None);
    assert_eq!(net.listing(0), before);
}

proptest! {
    #[test]
    fn arbitrary_bytes_leave_a_working_node(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..20),
        kinds in prop::collection::vec(1u8..7, 20),
        known in any::<bool>(),
    ) {
        let mut net = Net::chain(2);
        for (mut bytes, kind) in messages.into_iter().zip(kinds) {
            bytes.insert(0, kind);
            if known && bytes.len() > 9 {
                bytes[1..9].copy_from_slice(&id(1).0.to_le_bytes());
            }
            let _ = net.nodes[0].handle_message(net.now, id(1), bytes.into());
            while net.nodes[0].poll_output().is_some() {}
        }
        let user = net.nodes[0].subscribe(net.now, all("camera"));
        let publisher = net.nodes[0].publish(net.now, camera("camera"));
        let heard = core::iter::from_fn(|| net.nodes[0].poll_output()).any(|output| {
            output == ControlOutput::Subscribed { subscription: user, publishers: vec![publisher] }
        });
        prop_assert!(heard);
    }
}

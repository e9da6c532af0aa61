//! Asking a node for its status.

use super::net::{Net, id};
use bytes::Bytes;
use paceline_proto::control::STATUS_BYTES_MAX;

#[test]
fn a_status_comes_over_three_hops() {
    let mut net = Net::chain(4);
    let request = net.nodes[0].request_status(net.now, id(3));
    net.drain(0);
    net.settle();
    assert_eq!(net.seen[3].status_wanted, [(request, id(0))]);
    let rows = Bytes::from_static(b"rows");
    net.nodes[3].handle_status(net.now, request, id(0), rows.clone());
    net.drain(3);
    net.settle();
    assert_eq!(net.seen[0].status, [(request, id(3), rows.clone())]);
    // A second answer was not asked for.
    net.nodes[3].handle_status(net.now, request, id(0), rows);
    net.drain(3);
    net.settle();
    assert_eq!(net.seen[0].status.len(), 1);
}

#[test]
fn a_node_may_ask_itself_and_nobody_answers_for_one_that_is_gone() {
    let mut net = Net::chain(3);
    let request = net.nodes[0].request_status(net.now, id(0));
    net.drain(0);
    assert_eq!(net.seen[0].status_wanted, [(request, id(0))]);
    net.nodes[0].handle_status(net.now, request, id(0), Bytes::new());
    net.drain(0);
    assert_eq!(net.seen[0].status, [(request, id(0), Bytes::new())]);
    net.part(1, 2);
    net.settle();
    net.messages = 0;
    assert_ne!(net.nodes[0].request_status(net.now, id(2)), request);
    net.drain(0);
    net.settle();
    assert_eq!(net.messages, 0);
}

#[test]
fn too_long_an_answer_is_not_sent() {
    let mut net = Net::chain(2);
    let request = net.nodes[0].request_status(net.now, id(1));
    net.drain(0);
    net.settle();
    let long = Bytes::from(vec![0; STATUS_BYTES_MAX + 1]);
    net.nodes[1].handle_status(net.now, request, id(0), long);
    net.drain(1);
    net.settle();
    assert!(net.seen[0].status.is_empty());
    assert_eq!(net.nodes[1].rejected(), 1);
}

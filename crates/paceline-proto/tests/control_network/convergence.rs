//! All nodes converge to the same knowledge.

use super::net::{Net, all, camera, id, link, promised};
use paceline_proto::control::{Control, ControlOutput, HopInfo};
use paceline_proto::{NodeId, SubscriptionId};
use paceline_sched::{Duration, Instant};

#[test]
fn chains_rings_and_stars_converge_without_any_time() {
    for hops in [
        vec![(0, 1), (1, 2), (2, 3)],
        vec![(0, 1), (1, 2), (2, 3), (3, 0)],
        vec![(0, 1), (0, 2), (0, 3)],
        vec![(3, 2), (1, 0), (2, 1)],
    ] {
        let mut net = Net::joined(4, &hops);
        net.assert_converged();
        net.publish(3, camera("robot/camera"));
        net.subscribe(1, all("robot/**"));
        net.settle();
        net.assert_converged();
        net.assert_delivered();
        assert_eq!(net.names(1), ["node0", "node1", "node2", "node3"]);
    }
}

#[test]
fn a_change_costs_one_small_message_per_hop_of_a_tree() {
    let mut net = Net::chain(4);
    net.messages = 0;
    net.publish(0, camera("robot/camera"));
    net.settle();
    assert_eq!(net.messages, 3);
}

#[test]
fn peers_are_notified_of_each_others_joining_and_leaving() {
    let mut net = Net::chain(3);
    let subscription = net.subscribe(2, all("robot/*"));
    let left = net.publish(0, camera("robot/left"));
    net.settle();
    assert_eq!(net.heard(subscription), [left]);
    assert_eq!(net.seen[0].matching.get(&left), Some(&true));
    let right = net.publish(1, camera("robot/right"));
    net.settle();
    assert_eq!(net.heard(subscription), [left, right]);
    net.nodes[0].unpublish(net.now, left);
    net.drain(0);
    net.settle();
    assert_eq!(net.heard(subscription), [right]);
    net.unsubscribe(subscription);
    net.settle();
    assert_eq!(net.seen[1].matching.get(&right), Some(&false));
    assert!(net.seen.iter().all(|seen| seen.installed.is_empty()));
}

#[test]
fn a_node_that_is_cut_off_is_ignored_at_once_and_forgotten_later() {
    let mut net = Net::chain(3);
    let publisher = net.publish(2, camera("camera"));
    let subscription = net.subscribe(0, all("camera"));
    net.settle();
    assert_eq!(net.heard(subscription), [publisher]);
    net.part(1, 2);
    net.settle();
    assert_eq!(net.names(0), ["node0", "node1"]);
    assert!(net.heard(subscription).is_empty());
    net.assert_converged();
    assert!(net.nodes[2].poll_timeout() <= net.now + Duration::from_secs(30));
    net.run(Duration::from_secs(31));
    // A node alone, with no state left to expire, needs no wake-up.
    assert_eq!(net.nodes[2].poll_timeout(), Instant::FAR);
    net.join(1, 2);
    net.settle();
    assert_eq!(net.heard(subscription), [publisher]);
    net.assert_converged();
}

#[test]
fn lost_nodes_are_not_revived_by_stale_records() {
    let mut net = Net::joined(4, &[(0, 1), (1, 2), (2, 0), (2, 3)]);
    net.part(2, 3);
    net.settle();
    for _ in 0..20 {
        // Links come up and go down while one node still remembers the dead node and another has forgotten
        // it.
        net.run(Duration::from_secs(3));
        net.part(0, 1);
        net.run(Duration::from_secs(1));
        net.join(0, 1);
    }
    net.run(Duration::from_secs(31));
    net.part(0, 1);
    net.part(0, 2);
    net.run(Duration::from_secs(31));
    assert_eq!(net.nodes[0].poll_timeout(), Instant::FAR, "node 0 remembers no other node");
}

#[test]
fn messages_lost_with_a_hop_arrive_when_it_returns() {
    let mut net = Net::chain(3);
    net.publish(0, camera("camera"));
    net.subscribe(2, all("camera"));
    // Both messages are in transit and get lost.
    net.part(0, 1);
    net.publish(0, camera("arm"));
    net.join(0, 1);
    net.settle();
    net.assert_converged();
    net.assert_delivered();
}

#[test]
fn a_hop_down_on_one_side_recovers_within_a_second() {
    let mut net = Net::chain(3);
    net.run(Duration::from_secs(2));
    net.queues.clear();
    net.nodes[0].handle_hop_down(net.now, id(1));
    net.up.remove(&(0, 1));
    net.drain(0);
    net.publish(0, camera("camera"));
    net.subscribe(2, all("camera"));
    net.settle();
    net.up.insert((0, 1));
    net.nodes[0].handle_hop_up(net.now, id(1), link("eth", None));
    net.drain(0);
    net.run(Duration::from_secs(1));
    net.assert_converged();
    net.assert_delivered();
}

#[test]
fn a_digest_repairs_lost_messages() {
    let mut net = Net::chain(3);
    net.publish(0, camera("camera"));
    net.queues.clear();
    net.run(Duration::from_secs(6));
    net.assert_converged();
}

#[test]
fn a_gap_triggers_an_immediate_record_request() {
    let mut net = Net::chain(3);
    net.publish(0, camera("left"));
    net.queues.clear();
    net.publish(0, camera("right"));
    net.settle();
    net.assert_converged();
}

#[test]
fn repeated_and_reordered_messages_do_no_harm() {
    let mut net = Net::chain(2);
    for n in 0..6 {
        net.publish(0, camera(&format!("camera/{n}")));
    }
    let queue = net.queues.get_mut(&(0, 1)).unwrap();
    let twice = queue.clone();
    queue.make_contiguous().reverse();
    queue.extend(twice);
    net.settle();
    net.assert_converged();
}

#[test]
fn unknown_users_and_strangers_change_nothing() {
    let mut net = Net::chain(2);
    let before = net.listing(0);
    let now = net.now;
    let nobody = SubscriptionId { node: id(0), index: 7 };
    net.nodes[0].unsubscribe(now, nobody);
    net.nodes[0].update_subscription(now, nobody, all("camera"));
    net.nodes[0].handle_hop_down(now, id(9));
    let mut stranger = Net::chain(2);
    stranger.publish(1, camera("camera"));
    let message = stranger.queues[&(1, 0)][0].clone();
    net.nodes[0].handle_message(now, id(9), message).unwrap();
    net.drain(0);
    assert_eq!(net.listing(0), before);
}

/// Exchanges the messages of two nodes until both are silent, without advancing time.
fn talk(nodes: &mut [Control; 2]) {
    for turn in 0.. {
        assert!(turn < 100, "they never stop sending");
        let mut silent = true;
        for from in 0..2 {
            while let Some(output) = nodes[from].poll_output() {
                if let ControlOutput::Send { message, .. } = output {
                    nodes[1 - from].handle_message(Instant::ZERO, id(from), message).unwrap();
                    silent = false;
                }
            }
        }
        if silent {
            return;
        }
    }
}

#[test]
fn a_greeting_before_the_hop_is_up_counts() {
    let mut nodes = [Control::new(id(0), "early"), Control::new(id(1), "late")];
    nodes[0].publish(Instant::ZERO, camera("a"));
    nodes[1].publish(Instant::ZERO, camera("b"));
    nodes[0].handle_hop_up(Instant::ZERO, id(1), link("eth", None));
    talk(&mut nodes);
    nodes[1].handle_hop_up(Instant::ZERO, id(0), link("eth", None));
    talk(&mut nodes);
    for node in &nodes {
        let publishers: usize = node.nodes().map(|view| view.publishers.len()).sum();
        assert_eq!(publishers, 2, "known at {}", node.me());
    }
}

#[test]
fn a_request_before_the_hop_is_up_is_answered_without_a_repeat() {
    let mut nodes = [Control::new(id(0), "early"), Control::new(id(1), "late")];
    nodes[0].publish(Instant::ZERO, camera("a"));
    nodes[1].subscribe(Instant::ZERO, promised("a"));
    for (node, other) in [(0, 1), (1, 0)] {
        nodes[node].handle_hop_up(Instant::ZERO, id(other), link("eth", Some(1_000_000)));
    }
    talk(&mut nodes);
    assert_eq!(nodes[0].grants().count(), 1, "as they discover each other");
    for (node, other) in [(0, 1), (1, 0)] {
        nodes[node].handle_hop_down(Instant::ZERO, id(other));
    }
    // The publisher's node remembers its peer from before.
    for (node, other) in [(0, 1), (1, 0)] {
        talk(&mut nodes);
        nodes[node].handle_hop_up(Instant::ZERO, id(other), link("eth", Some(1_000_000)));
    }
    talk(&mut nodes);
    assert_eq!(nodes[0].grants().count(), 1, "when they meet again");
}

#[test]
fn every_node_knows_the_links_of_other_paths() {
    let mut net = Net::new(4);
    net.join(0, 1);
    net.join_over(1, 2, link("thin", Some(250_000)), link("back", None));
    net.join(1, 3);
    net.settle();
    let path_of = |node: usize, from, to| {
        let path = net.nodes[node].path(id(from), id(to))?;
        let hop = |(from, to, hop): (NodeId, NodeId, &HopInfo)| {
            (from.0 - 1, to.0 - 1, hop.link_name.clone(), hop.capacity.map(|c| c.bytes_per_s()))
        };
        Some(path.into_iter().map(hop).collect::<Vec<_>>())
    };
    let (eth, thin, back) = ("eth".to_owned(), "thin".to_owned(), "back".to_owned());
    assert_eq!(
        path_of(3, 0, 2),
        Some(vec![(0, 1, eth.clone(), None), (1, 2, thin, Some(250_000))])
    );
    assert_eq!(path_of(3, 2, 0), Some(vec![(2, 1, back, None), (1, 0, eth, None)]));
    assert_eq!(path_of(3, 3, 3), Some(vec![]));
    assert_eq!(path_of(3, 0, 9), None, "nobody knows it");
}

//! Leaves that declare much: the others keep their streams.

use super::net::{Net, all, camera, id, link, promised};
use paceline_proto::control::{Control, RefusalReason};
use paceline_proto::plan::Target;
use paceline_proto::rights::{
    AccessPolicy, AccessRule, GrantedTags, Lack, PeerName, Quota, Right, RuleRights,
};
use paceline_proto::{Form, Pattern, PublisherId, SubscriptionId};
use paceline_sched::Duration;
use std::sync::Arc;

/// The most pairs of one identity at a node, with this node and with another identity.
const PAIRS_MAX: usize = 16_384;
const FEW_MAX: usize = 4_096;
const PUBLISHERS: usize = 256;

fn rule(name: &str, publish: &str, subscribe: &str) -> AccessRule {
    let pattern = |text: &str| Pattern::new(text).into_iter().collect();
    let tags = GrantedTags {
        publish: pattern(publish),
        subscribe: pattern(subscribe),
        ..GrantedTags::default()
    };
    let rights = Arc::new(RuleRights { tags, ..RuleRights::default() });
    AccessRule { peers: vec![name.to_owned()], rights }
}

/// Returns a network of a node with a policy and leaves with certificates of these names.
fn leaves(rules: Vec<AccessRule>, names: &[&str]) -> Net {
    let mut net = Net::new(1 + names.len());
    net.nodes[0].set_policy(net.now, Some(AccessPolicy { rules }));
    for (node, name) in (1..).zip(names) {
        net.nodes[0].set_peer(net.now, id(node), PeerName::Certified((*name).to_owned()));
        // A neighbour delivers its record only with the certificate's name.
        net.nodes[node] = Control::new(id(node), name);
        net.join_over(0, node, link("eth", Some(10_000_000)), link("eth", Some(10_000_000)));
    }
    net.settle();
    net
}

fn publish(net: &mut Net, node: usize, count: usize) -> Vec<PublisherId> {
    let now = net.now;
    let one = |number| camera(&format!("cam/{node}/{number}"));
    let ids = (0..count).map(|number| net.nodes[node].publish(now, one(number))).collect();
    net.drain(node);
    net.run(Duration::from_secs(2));
    ids
}

fn subscribe(net: &mut Net, node: usize, count: usize) -> Vec<SubscriptionId> {
    let now = net.now;
    let ids = (0..count).map(|_| net.nodes[node].subscribe(now, all("**"))).collect();
    net.drain(node);
    net.run(Duration::from_secs(2));
    ids
}

/// Returns the number of subscriptions of a node to which node 0 sends a publisher's samples.
fn served(net: &Net, publisher: PublisherId, node: usize) -> usize {
    let outputs = net.outputs(0, publisher, Form::FULL).iter();
    let to = outputs.filter(|output| output.target == Target::Hop(id(node)));
    to.map(|output| output.subscriptions.len()).sum()
}

#[test]
fn leaves_of_one_identity_take_part_in_a_limited_number_of_streams() {
    let rules = vec![rule("*", "", "**")];
    let mut net = leaves(rules, &["greedy", "greedy", "viewer"]);
    let cameras = publish(&mut net, 0, PUBLISHERS);
    let viewer = net.subscribe(3, promised("cam/0/1"));
    let each = PAIRS_MAX / PUBLISHERS / 2;
    for node in [1, 2] {
        subscribe(&mut net, node, each);
        assert_eq!(served(&net, cameras[9], node), each);
    }
    // One more: none of both is served, both get reasons, and the viewer keeps its contract.
    let last = subscribe(&mut net, 2, 1)[0];
    assert_eq!([1, 2].map(|node| served(&net, cameras[9], node)), [0, 0]);
    let refused = net.seen[1].refused.first().map(|refusal| refusal.reason);
    let limit = PAIRS_MAX as u64;
    let (right, quota) = (Right::Subscribe, Quota::Streams);
    let lack = Lack::Quota { right, quota, asked: Some(limit + 1), limit };
    assert_eq!(refused, Some(RefusalReason::Rights { of: id(1), lack }));
    assert_eq!((net.heard(viewer).len(), net.granted(3).len()), (1, 1));
    // A little less is not enough, so that one subscription does not decide on all of them each time.
    net.unsubscribe(last);
    net.run(Duration::from_secs(2));
    assert_eq!(served(&net, cameras[9], 1), 0);
    let now = net.now;
    let first: Vec<SubscriptionId> = net.nodes[0]
        .nodes()
        .filter(|view| view.id == id(1))
        .flat_map(|view| view.subscriptions.keys().copied().take(each / 4).collect::<Vec<_>>())
        .collect();
    first.into_iter().for_each(|id| net.nodes[1].unsubscribe(now, id));
    net.drain(1);
    net.run(Duration::from_secs(2));
    assert_eq!([1, 2].map(|node| served(&net, cameras[9], node)), [each - each / 4, each]);
    assert_eq!(net.granted(3).len(), 1);
}

#[test]
fn nobody_loses_streams_by_what_another_leaf_declares() {
    // The victim publishes to the viewer. The stranger has no right to that, the partner has.
    let rules =
        vec![rule("victim", "cam/**", ""), rule("viewer", "", "**"), rule("partner", "", "**")];
    let mut net = leaves(rules, &["victim", "viewer", "stranger", "partner"]);
    let cameras = publish(&mut net, 1, 10);
    subscribe(&mut net, 2, 1);
    let contract = net.subscribe(2, promised("cam/1/3"));
    net.run(Duration::from_secs(2));
    for node in [3, 4] {
        let count = FEW_MAX / 10 + 10;
        subscribe(&mut net, node, count);
        assert_eq!(served(&net, cameras[2], node), 0, "node {node}");
        assert_eq!(served(&net, cameras[2], 2), 1);
        assert_eq!((net.heard(contract).len(), net.granted(2).len()), (1, 1));
    }
}

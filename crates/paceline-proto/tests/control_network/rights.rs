//! Rights: each node carries, reserves, answers and shows only what its policy grants.

use super::net::{Net, all, camera, id, index, link, promised};
use bytes::Bytes;
use paceline_proto::control::{ChangeAnswer, Refusal, RefusalReason, SubscriptionSpec, Topic};
use paceline_proto::rights::{
    AccessPolicy, AccessRule, GrantedTags, Lack, PeerName, Quotas, Right, Rights, RuleRights,
};
use paceline_proto::{NodeId, Pattern, PublisherId};
use paceline_sched::Duration;
use proptest::prelude::*;
use std::sync::Arc;

const WIDE: u64 = 10_000_000;

fn patterns(texts: &[&str]) -> Vec<Pattern> {
    texts.iter().map(|text| Pattern::new(text).unwrap()).collect()
}

fn publishes(tags: &[&str]) -> RuleRights {
    let tags = GrantedTags { publish: patterns(tags), ..GrantedTags::default() };
    RuleRights { tags, ..RuleRights::default() }
}

fn subscribes(tags: &[&str]) -> RuleRights {
    let tags = GrantedTags { subscribe: patterns(tags), ..GrantedTags::default() };
    RuleRights { tags, ..RuleRights::default() }
}

fn policy(rules: impl IntoIterator<Item = (usize, RuleRights)>) -> AccessPolicy {
    let rule = |(node, rights)| AccessRule {
        peers: vec![format!("node{node}")],
        rights: Arc::new(rights),
    };
    AccessPolicy { rules: rules.into_iter().map(rule).collect() }
}

/// A network whose nodes know each other by certificates.
fn net(policies: Vec<Option<AccessPolicy>>, hops: &[(usize, usize)]) -> Net {
    let mut net = Net::new(policies.len());
    for (node, policy) in policies.into_iter().enumerate() {
        net.nodes[node].set_policy(net.now, policy);
    }
    for &(one, other) in hops {
        meet(&mut net, one, other);
    }
    net.settle();
    net
}

fn meet(net: &mut Net, one: usize, other: usize) {
    for (from, to) in [(one, other), (other, one)] {
        net.nodes[from].set_peer(net.now, id(to), PeerName::Certified(format!("node{to}")));
    }
    net.join_over(one, other, link("eth", Some(WIDE)), link("eth", Some(WIDE)));
}

fn tags_seen(net: &Net, node: usize, of: usize) -> Vec<String> {
    let views = net.nodes[node].nodes().filter(|view| view.id == id(of));
    let specs = views.flat_map(|view| view.publishers.values());
    specs.map(|spec| spec.tag.to_string()).collect()
}

fn lacks(refusals: &[Refusal]) -> Vec<(NodeId, usize, Lack)> {
    let lack = |refusal: &Refusal| {
        let RefusalReason::Rights { of, lack } = refusal.reason else { return None };
        Some((of, index(refusal.node), lack))
    };
    refusals.iter().filter_map(lack).collect()
}

fn set_policy(net: &mut Net, node: usize, policy: Option<AccessPolicy>) {
    net.nodes[node].set_policy(net.now, policy);
    net.drain(node);
    net.run(Duration::from_secs(5));
}

#[test]
fn a_leaf_gets_its_tags_and_neither_sees_nor_receives_others() {
    // 1 - 0 - 2: node 0 has a policy, node 1 is a viewer, node 2 a camera.
    let rules = policy([(1, subscribes(&["cam/*"])), (2, publishes(&["cam/**", "raw"]))]);
    let mut net = net(vec![Some(rules), None, None], &[(0, 1), (0, 2)]);
    let left = net.publish(2, camera("cam/left"));
    let raw = net.publish(2, camera("raw"));
    let forbidden = net.publish(2, camera("cmd/stop"));
    let own = net.publish(0, camera("raw"));
    let pictures = net.subscribe(1, promised("cam/left"));
    let everything = net.subscribe(1, all("**"));
    let exact = net.subscribe(1, promised("raw"));
    let local = net.subscribe(0, all("**"));
    net.run(Duration::from_secs(5));
    assert_eq!(net.heard(pictures), [left]);
    assert_eq!(net.heard(everything), [left]);
    assert_eq!(net.heard(exact), []);
    assert_eq!(net.heard(local), [own, left, raw], "and not {forbidden:?}");
    assert_eq!(net.granted(1).len(), 1);
    // The viewer gets a refusal that reveals no publisher.
    let missing = (id(1), 0, Lack::Right(Right::Subscribe));
    assert_eq!(lacks(&net.seen[1].refused), [missing]);
    assert_eq!(net.seen[1].refused[0].subscription, exact);
    assert_eq!(tags_seen(&net, 1, 2), ["cam/left"]);
    assert_eq!(tags_seen(&net, 1, 0), Vec::<String>::new());
    // The camera sees no subscription that it may not serve, and gets the refusal of its publisher.
    let refusals = net.nodes[2].nodes().flat_map(|view| view.refusals.values().cloned());
    let refusals: Vec<Refusal> =
        refusals.filter(|refusal| refusal.publisher == forbidden).collect();
    let mut lacks = lacks(&refusals);
    lacks.dedup();
    assert_eq!(lacks, [(id(2), 0, Lack::Right(Right::Publish))]);
    assert!(net.seen[0].from.keys().all(|source| source.publisher != forbidden));
}

#[test]
fn changed_rights_end_and_start_streams_and_change_the_view() {
    let mut net = net(vec![Some(policy([])), None, None], &[(0, 1), (0, 2)]);
    let left = net.publish(2, camera("cam"));
    let user = net.subscribe(1, promised("cam"));
    net.run(Duration::from_secs(5));
    assert_eq!((net.heard(user), net.names(1).len()), (&[][..], 2), "it sees only node 0");
    assert_eq!(net.held(), [0, 0, 0]);
    let open = || Some(policy([(1, subscribes(&["cam"])), (2, publishes(&["**"]))]));
    set_policy(&mut net, 0, open());
    assert_eq!((net.heard(user), tags_seen(&net, 1, 2)), (&[left][..], vec!["cam".to_owned()]));
    assert_eq!(net.held(), [1, 1, 1]);
    // The publisher's right ends: the reservation is released on all nodes.
    set_policy(&mut net, 0, Some(policy([(1, subscribes(&["cam"]))])));
    assert_eq!((net.heard(user), net.held()), (&[][..], vec![0, 0, 0]));
    set_policy(&mut net, 0, open());
    assert_eq!((net.heard(user), net.held()), (&[left][..], vec![1, 1, 1]));
    // The subscriber's right ends.
    set_policy(&mut net, 0, Some(policy([(2, publishes(&["**"]))])));
    assert_eq!((net.heard(user), net.held()), (&[][..], vec![0, 0, 0]));
    assert_eq!(net.names(1).len(), 2);
    set_policy(&mut net, 0, None);
    assert_eq!((net.heard(user), net.held()), (&[left][..], vec![1, 1, 1]));
}

#[test]
fn quotas_limit_contracts_and_the_refusal_names_the_limit() {
    let quotas = Quotas {
        max_millihertz: Some(25_000),
        bytes_per_s: Some(700_000),
        within_min: Some(Duration::from_millis(100)),
        streams: Some(2),
        ..Quotas::default()
    };
    let rule = RuleRights { quotas, ..subscribes(&["**"]) };
    let mut net = net(vec![Some(policy([(1, rule)])), None], &[(0, 1)]);
    for tag in ["a", "b", "c"] {
        net.publish(0, camera(tag));
    }
    let mut asked = Vec::new();
    let soon = SubscriptionSpec { within: Some(Duration::from_millis(50)), ..all("a") };
    for spec in [promised("a"), soon, promised("b"), promised("c")] {
        asked.push(net.subscribe(1, spec));
        net.run(Duration::from_secs(3));
    }
    let refused: Vec<String> = net.seen[1].refused.iter().map(ToString::to_string).collect();
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(refused[0].contains("at least a delay bound of 100 ms"), "{refused:?}");
    assert!(refused[1].contains("at most"), "{refused:?}");
    assert_eq!(net.granted(0).len(), 2);
    // The end of a stream makes room.
    net.unsubscribe(asked[0]);
    net.run(Duration::from_secs(5));
    assert_eq!(net.granted(0).len(), 2);
}

#[test]
fn eight_nodes_of_one_identity_share_its_quota() {
    let quotas = Quotas { streams: Some(2), ..Quotas::default() };
    let of = |peer: &str| AccessRule {
        peers: vec![peer.to_owned()],
        rights: Arc::new(RuleRights { quotas, ..subscribes(&["**"]) }),
    };
    for (peer, name) in [
        (PeerName::User("bob".to_owned()), "@user:bob"),
        (PeerName::Unknown, "@unknown"),
        (PeerName::Certified("viewer".to_owned()), "viewer"),
    ] {
        let mut net = Net::new(9);
        net.nodes[0].set_policy(net.now, Some(AccessPolicy { rules: vec![of(name)] }));
        for tag in ["a", "b", "c"] {
            net.publish(0, camera(tag));
        }
        for node in 1..9 {
            if name == "viewer" {
                net.nodes[node] = paceline_proto::control::Control::new(id(node), name);
            }
            net.nodes[0].set_peer(net.now, id(node), peer.clone());
            net.join_over(0, node, link("eth", Some(WIDE)), link("eth", Some(WIDE)));
            for tag in ["a", "b", "c"] {
                net.subscribe(node, promised(tag));
            }
        }
        net.run(Duration::from_secs(20));
        assert_eq!(net.granted(0).len(), 2, "{name}");
    }
}

#[test]
fn nothing_is_reserved_for_nodes_behind_a_leaf() {
    // Node 1 may relay nothing; node 2 behind it is not admitted.
    let rules = policy([(1, subscribes(&["map"]))]);
    let mut net = net(vec![Some(rules), None, None], &[(0, 1), (1, 2)]);
    net.publish(0, camera("cam"));
    net.publish(2, camera("map"));
    net.subscribe(1, promised("cam"));
    net.subscribe(2, promised("cam"));
    net.subscribe(0, promised("map"));
    net.run(Duration::from_secs(10));
    assert_eq!(net.granted(0).len(), 0);
    assert_eq!(net.names(0), ["node0", "node1"], "a leaf delivers only its own record");
}

#[test]
fn questions_need_rights_of_the_asking_node_and_of_each_relay() {
    let set = GrantedTags { set: patterns(&["cam/**"]), ..GrantedTags::default() };
    let setter = RuleRights { tags: set, ..RuleRights::default() };
    let relay = RuleRights { relay: true, observe: true, ..setter.clone() };
    let observer = RuleRights { observe: true, ..RuleRights::default() };
    let rules = policy([(1, relay), (2, setter), (3, observer)]);
    // 2 and 3 are behind 1.
    let mut net = net(vec![Some(rules), None, None, None], &[(0, 1), (1, 2), (1, 3)]);
    let user = net.subscribe(0, all("cam/left"));
    let other = net.subscribe(0, all("map"));
    net.run(Duration::from_secs(1));
    let status = Bytes::from(vec![Topic::Status.code()]);
    for node in [1, 2, 3] {
        net.nodes[node].ask(net.now, id(0), status.clone());
        net.drain(node);
    }
    net.settle();
    let askers: Vec<usize> = net.seen[0].asked.iter().map(|(_, from, _)| index(*from)).collect();
    assert_eq!(askers, [1, 3]);
    let denied = (id(2), id(2), Lack::Right(Right::Observe));
    assert_eq!(net.seen[0].denied.last(), Some(&denied));
    let mut change = |node: usize, of, spec: SubscriptionSpec| {
        let question = net.nodes[node].change_subscription(net.now, of, &spec);
        net.drain(node);
        net.settle();
        let answered = net.seen[node].answered.iter().find(|(it, ..)| *it == question);
        ChangeAnswer::decode(answered.unwrap().2.clone()).unwrap()
    };
    let denied = ChangeAnswer::Denied(Lack::Right(Right::Set));
    assert!(matches!(change(2, user, promised("cam/left")), ChangeAnswer::Done { .. }));
    assert_eq!(change(2, other, promised("map")), denied);
    assert_eq!(change(3, user, all("cam/left")), denied);
    assert_eq!(net.seen[0].changed_for, [(id(2), user)]);
}

#[test]
fn a_token_grants_rights_until_it_ends_and_reaches_nodes_behind_relays() {
    let relay = RuleRights { relay: true, ..subscribes(&["**"]) };
    let deep = policy([(1, relay)]);
    let open = policy([(0, RuleRights::all())]);
    // 0 - 1 - 2: both 0 and 1 have a policy, and neither names node 2.
    let mut net = net(vec![Some(deep), Some(open), None], &[(0, 1), (1, 2)]);
    net.publish(0, camera("cam"));
    let user = net.subscribe(2, promised("cam"));
    net.run(Duration::from_secs(1));
    assert_eq!(net.heard(user), []);
    net.nodes[2].show_token(net.now, Bytes::from_static(b"token"));
    net.drain(2);
    net.settle();
    assert_eq!(net.seen[1].tokens, [(id(2), Bytes::from_static(b"token"))]);
    assert_eq!(net.seen[0].tokens, [], "only verified tokens are passed on");
    let rights = || Rights::of([Arc::new(subscribes(&["cam"]))]);
    let token = Bytes::from_static(b"token");
    for node in [1, 0] {
        net.nodes[node].set_token(net.now, id(2), Some((rights(), token.clone())));
        net.drain(node);
        net.run(Duration::from_secs(5));
        assert_eq!(net.seen[0].tokens.len(), 1, "after it was verified at node {node}");
    }
    assert_eq!((net.heard(user).len(), net.held()), (1, vec![1, 1, 1]));
    net.nodes[0].set_token(net.now, id(2), None);
    net.drain(0);
    net.run(Duration::from_secs(5));
    assert_eq!((net.heard(user).len(), net.held()), (0, vec![0, 0, 0]));
}

#[test]
fn records_that_arrive_with_a_token_are_decided_on_with_its_rights() {
    let mut net = Net::new(3);
    for node in [0, 1] {
        net.nodes[node].set_policy(net.now, Some(policy([(1 - node, RuleRights::all())])));
    }
    net.publish(0, camera("cam"));
    let user = net.subscribe(2, promised("cam"));
    net.nodes[2].show_token(net.now, Bytes::from_static(b"token"));
    meet(&mut net, 0, 1);
    net.settle();
    meet(&mut net, 1, 2);
    // The hop came up at node 1 first, so node 2 answers its digest with a record right after the token.
    while net.deliver(1, 2) {}
    let rights = || Rights::of([Arc::new(subscribes(&["cam"]))]);
    let verified = |net: &mut Net, at: usize, from: usize| {
        for message in net.take(from, at) {
            net.nodes[at].handle_message(net.now, id(from), message).unwrap();
            while let Some((node, token)) = net.nodes[at].poll_token() {
                net.seen[at].tokens.push((node, token.clone()));
                net.nodes[at].set_token(net.now, node, Some((rights(), token)));
            }
        }
        net.drain(at);
    };
    verified(&mut net, 1, 2);
    verified(&mut net, 0, 1);
    assert_eq!([0, 1].map(|at| net.seen[at].tokens.len()), [1, 1]);
    net.run(Duration::from_secs(1));
    assert_eq!([0, 1].map(|at| net.seen[at].denied.len()), [0, 0]);
    assert_eq!(net.heard(user).len(), 1);
}

#[test]
fn a_neighbour_has_the_name_in_its_certificate() {
    let mut net = Net::new(2);
    net.nodes[0].set_policy(net.now, Some(policy([(1, subscribes(&["**"]))])));
    net.publish(0, camera("cam"));
    // The certificate says `node9`, and the record `node1`.
    net.nodes[0].set_peer(net.now, id(1), PeerName::Certified("node9".to_owned()));
    net.join(0, 1);
    let user = net.subscribe(1, all("cam"));
    net.run(Duration::from_secs(1));
    assert_eq!((net.heard(user), net.names(0)), (&[][..], vec!["node0".to_owned()]));
    assert!(net.nodes[0].contradictions() > 0);
}

/// The rights of each node at each node with a policy: publish and subscribe on `a` and `b`, and relay.
type Table = Vec<Option<Vec<[bool; 5]>>>;

fn to_policy(rows: &[[bool; 5]]) -> AccessPolicy {
    let of = |on: bool, tag: &'static str| if on { vec![tag] } else { vec![] };
    policy(rows.iter().enumerate().map(|(node, row)| {
        let mut rights = publishes(&[of(row[0], "a"), of(row[1], "b")].concat());
        rights.tags.subscribe = patterns(&[of(row[2], "a"), of(row[3], "b")].concat());
        rights.relay = row[4];
        (node, rights)
    }))
}

/// Returns true if the rules of all nodes on the path allow the stream, checked naively.
fn allowed(table: &Table, path: &[usize], tag: usize) -> bool {
    let (first, last) = (path[0], path[path.len() - 1]);
    path.iter().enumerate().all(|(at, &node)| {
        let Some(rows) = &table[node] else { return true };
        let before = at == 0 || {
            let before = path[at - 1];
            rows[before][tag] && rows[first][tag] && (before == first || rows[before][4])
        };
        let next = at + 1 == path.len() || {
            let next = path[at + 1];
            rows[next][2 + tag] && rows[last][2 + tag] && (next == last || rows[next][4])
        };
        before && next
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn streams_flow_exactly_where_every_policy_of_the_path_allows_them(
        parents in (0..1_usize, 0..2_usize, 0..3_usize),
        table in prop::collection::vec(
            prop::option::weighted(0.6, prop::collection::vec(prop::array::uniform5(
                prop::bool::weighted(0.8)), 4)), 4),
        contracts in any::<bool>(),
        late in any::<bool>(),
    ) {
        let parents = [0, parents.0, parents.1, parents.2];
        let hops: Vec<(usize, usize)> = (1..4).map(|node| (parents[node], node)).collect();
        let policies: Vec<_> =
            table.iter().map(|rows| rows.as_ref().map(|rows| to_policy(rows))).collect();
        let mut net = if late {
            let mut net = net(vec![None; 4], &hops);
            for (node, policy) in policies.into_iter().enumerate() {
                set_policy(&mut net, node, policy);
            }
            net
        } else {
            net(policies, &hops)
        };
        let mut ends: Vec<(usize, PublisherId, [paceline_proto::SubscriptionId; 2])> = Vec::new();
        for node in 0..4 {
            let publisher = net.publish(node, camera(["a", "b"][node % 2]));
            let spec = |tag| if contracts { promised(tag) } else { all(tag) };
            let users = ["a", "b"].map(|tag| net.subscribe(node, spec(tag)));
            ends.push((node, publisher, users));
        }
        net.run(Duration::from_secs(20));
        let path = |from: usize, to: usize| {
            let up = |mut node: usize| {
                let mut all = vec![node];
                while node != 0 {
                    node = parents[node];
                    all.push(node);
                }
                all
            };
            let (down, mut rise) = (up(to), up(from));
            let at = rise.iter().position(|node| down.contains(node)).unwrap();
            rise.truncate(at + 1);
            let top = down.iter().position(|node| *node == rise[at]).unwrap();
            rise.extend(down[..top].iter().rev());
            rise
        };
        for (from, publisher, _) in &ends {
            for (to, _, users) in &ends {
                let tag = from % 2;
                let expected = allowed(&table, &path(*from, *to), tag);
                let heard = net.heard(users[tag]).contains(publisher);
                prop_assert_eq!(heard, expected, "{:?} {:?}", path(*from, *to), net.seen[*to].refused);
            }
        }
        for node in 0..4 {
            prop_assert!(!net.seen[node].installed.iter().any(|(source, (_, outputs))| {
                let from = index(source.publisher.node);
                outputs.iter().flat_map(|output| &output.subscriptions).any(|user| {
                    !allowed(&table, &path(from, index(user.node)), from % 2)
                })
            }), "a stream that no path allows");
        }
    }
}

#[test]
fn processes_of_a_leafs_host_have_its_rights_and_no_others_behind_it_do() {
    // 0 has a policy that names 1. 2 is a process of the host of 1, and 3 another machine behind it.
    let rules = policy([(
        1,
        RuleRights {
            tags: GrantedTags {
                publish: patterns(&["cmd/*"]),
                subscribe: patterns(&["cam"]),
                ..GrantedTags::default()
            },
            ..RuleRights::default()
        },
    )]);
    let mut net = net(vec![Some(rules), None, None, None], &[(0, 1), (1, 3)]);
    let own = paceline_proto::control::HopInfo { own: true, ..link("host", None) };
    net.join_over(1, 2, own.clone(), own);
    net.settle();
    let cam = net.publish(0, camera("cam"));
    let secret = net.publish(0, camera("secret"));
    let command = net.publish(2, camera("cmd/stop"));
    let forged = net.publish(3, camera("cmd/go"));
    let users = [2, 3].map(|node| net.subscribe(node, promised("cam")));
    let other = net.subscribe(2, promised("secret"));
    let commands = net.subscribe(0, all("cmd/*"));
    net.run(Duration::from_secs(10));
    assert_eq!((net.heard(users[0]), net.heard(users[1])), (&[cam][..], &[][..]));
    assert_eq!((net.heard(other), net.heard(commands)), (&[][..], &[command][..]), "{forged:?}");
    assert_eq!(lacks(&net.seen[2].refused), [(id(1), 0, Lack::Right(Right::Subscribe))]);
    assert!(tags_seen(&net, 2, 0).iter().all(|tag| tag == "cam"), "{secret:?} is hidden");
    assert_eq!(net.names(0), ["node0", "node1", "node2"]);
}

#[test]
fn a_leaf_names_the_right_that_a_process_of_its_neighbours_host_lacks() {
    // 0 and 1 are leaves for each other, and 2 is a process of the host of 1.
    let rules = [policy([(1, subscribes(&["cam"]))]), policy([(0, publishes(&["**"]))])];
    let mut net = net([rules.map(Some).to_vec(), vec![None]].concat(), &[(0, 1)]);
    let own = paceline_proto::control::HopInfo { own: true, ..link("host", None) };
    for (one, other) in [(1, 2), (2, 1)] {
        net.nodes[one].set_peer(net.now, id(other), PeerName::Host);
    }
    net.join_over(1, 2, own.clone(), own);
    net.settle();
    net.publish(0, camera("secret"));
    net.subscribe(2, promised("secret"));
    net.run(Duration::from_secs(10));
    assert_eq!(lacks(&net.seen[2].refused), [(id(1), 0, Lack::Right(Right::Subscribe))]);
}

#[test]
fn a_dry_run_names_the_limit_of_a_right() {
    let quotas = Quotas { within_min: Some(Duration::from_millis(100)), ..Quotas::default() };
    let narrow = RuleRights { quotas, ..subscribes(&["left"]) };
    let mut net = net(vec![Some(policy([(1, narrow)])), None], &[(0, 1)]);
    let left = net.publish(0, camera("left"));
    net.settle();
    for (within, fits) in [(200, true), (60, false)] {
        let within = Some(Duration::from_millis(within));
        let request = SubscriptionSpec { within, ..promised("left") };
        net.nodes[1].survey(net.now, left, request).unwrap();
        net.drain(1);
        net.settle();
        let (_, complete, _, refusal, _) = net.seen[1].surveyed.pop().unwrap();
        let reason = refusal.map(|refusal| refusal.reason);
        let missing = matches!(reason, Some(RefusalReason::Rights { of, .. }) if of == id(1));
        assert!(complete && missing != fits && reason.is_none() == fits, "{reason:?}");
    }
}

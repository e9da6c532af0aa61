//! Classes of links: a contract is tested against the guarantee of its class.

use super::net::{Net, all, camera, link, promised};
use paceline_proto::control::{Control, PublisherSpec, Refusal, RefusalReason, SubscriptionSpec};
use paceline_proto::link::{ClassPolice, ClassTree, DEFAULT, LinkClass, Match, Unguaranteed};
use paceline_proto::tag::Pattern;
use paceline_proto::{Carrier, Form, PublisherId, SubscriptionId};
use paceline_sched::curve::Curve;
use paceline_sched::hfsc::Curves;
use paceline_sched::{Capacity, Duration, Policy};
use std::sync::Arc;

const BYTES_PER_S: u64 = 1_000_000;

fn capacity() -> Option<Capacity> {
    Capacity::from_bytes_per_s(BYTES_PER_S).ok()
}

/// Returns a class of the streams of one tag.
fn tagged(name: &str, tag: &str) -> LinkClass {
    let tags = vec![Pattern::new(tag).unwrap()];
    let wants = Match { tags, ..Match::default() };
    LinkClass { name: name.to_owned(), wants, ..LinkClass::default() }
}

/// Gives a class a guarantee of `bits` per second.
fn guaranteed(class: LinkClass, bits: u64) -> LinkClass {
    let real_time = Curve::linear(bits).ok();
    LinkClass { curves: Curves { real_time, ..Curves::default() }, ..class }
}

fn tree(classes: &[LinkClass]) -> Option<Arc<ClassTree>> {
    Some(Arc::new(ClassTree::new(classes.to_vec(), capacity()).unwrap()))
}

/// Returns a node, and one behind its link 'radio' with these classes.
fn divided(classes: &[LinkClass]) -> Net {
    let mut net = Net::new(2);
    net.nodes[0].set_classes("radio", tree(classes));
    net.join_over(0, 1, link("radio", Some(BYTES_PER_S)), link("radio", None));
    net.settle();
    net
}

/// Publishes a camera of 12,100 bytes on the wire at 5 Hz, and requests it within `millis`.
fn ask(net: &mut Net, tag: &str, millis: u64) -> (PublisherId, SubscriptionId) {
    let period = Some(Duration::from_millis(200));
    let publisher = net.publish(0, PublisherSpec { period, ..camera(tag) });
    let within = Some(Duration::from_millis(millis));
    let subscription = net.subscribe(1, SubscriptionSpec { within, ..promised(tag) });
    net.settle();
    (publisher, subscription)
}

fn refused(net: &Net) -> Vec<Refusal> {
    net.seen[1].refused.clone()
}

#[test]
fn a_contract_needs_the_guarantee_of_its_class_not_of_the_link() {
    let mut net = divided(&[guaranteed(tagged("left", "left/*"), 1_000_000)]);
    // At 1 Mbit/s the longest sample takes 97 ms, and up to 484 kbit/s are needed for each camera.
    let (first, heard) = ask(&mut net, "left/1", 190);
    assert_eq!((net.heard(heard), refused(&net).len()), (&[first][..], 0));
    let (_, second) = ask(&mut net, "left/2", 190);
    let [refusal] = &refused(&net)[..] else { panic!("{:?}", refused(&net)) };
    assert_eq!((refusal.subscription, refusal.class.as_str()), (second, "left"));
    assert!(matches!(refusal.reason, RefusalReason::Deadlines { .. }), "{refusal}");
    let text = refusal.to_string();
    assert!(text.starts_with("class 'left' of link 'radio' of 'node0' can't carry it"), "{text}");
    // The offered bound is one that the class grants.
    let within = refusal.offer.within.unwrap();
    net.unsubscribe(second);
    net.settle();
    let again = net.subscribe(1, SubscriptionSpec { within: Some(within), ..promised("left/2") });
    net.settle();
    assert_eq!((net.heard(again).len(), refused(&net).len()), (1, 1));
}

#[test]
fn a_class_without_a_guarantee_refuses_contracts_and_says_why() {
    let police = "leaky:20kB,400kbit else drop".parse().unwrap();
    let policed = LinkClass {
        police: Some(ClassPolice::from(&police)),
        ..guaranteed(tagged("policed", "policed"), 1_000_000)
    };
    let peers = LinkClass { per_peer: true, ..tagged("peers", "peers") };
    let mut net = divided(&[policed, peers, tagged("logs", "logs")]);
    let best_effort = net.publish(0, camera("free"));
    let free = net.subscribe(1, all("free"));
    let cases = [
        ("policed", "policed", Unguaranteed::Policed),
        ("peers", "peers", Unguaranteed::NoCurve),
        ("logs", "logs", Unguaranteed::NoCurve),
        ("other", DEFAULT, Unguaranteed::NoCurve),
    ];
    for (at, (tag, class, why)) in cases.into_iter().enumerate() {
        ask(&mut net, tag, 500);
        let refusals = refused(&net);
        let refusal = &refusals[at];
        assert_eq!(
            (refusal.class.as_str(), refusal.reason),
            (class, RefusalReason::NoGuarantee { why })
        );
        assert_eq!(refusal.offer, Default::default(), "nothing else would be granted either");
    }
    let text = refused(&net)[3].to_string();
    assert_eq!(
        text,
        "class 'default' of link 'radio' of 'node0' has no real_time and guarantees nothing: give it \
         real_time, or put contracts into a class with best_effort = false and real_time"
    );
    assert_eq!(net.heard(free), [best_effort], "best effort needs no guarantee");
}

#[test]
fn contracts_move_with_their_class_and_end_where_they_do_not_fit() {
    let wide = || guaranteed(tagged("one", "a"), 4_000_000);
    let mut net = divided(&[wide(), guaranteed(tagged("two", "b"), 2_000_000)]);
    let (a, first) = ask(&mut net, "a", 190);
    let (b, second) = ask(&mut net, "b", 190);
    assert_eq!((net.heard(first), net.heard(second)), (&[a][..], &[b][..]));
    // A class of another name and rate takes the stream over without a gap.
    net.nodes[0].set_classes("radio", tree(&[wide(), guaranteed(tagged("three", "b"), 1_000_000)]));
    net.drain(0);
    net.settle();
    assert_eq!((net.heard(second), refused(&net).len()), (&[b][..], 0));
    assert!(net.outputs(0, b, Form::FULL)[0].contract.is_some());
    // Now it falls into the class default, which guarantees nothing.
    net.nodes[0].set_classes("radio", tree(&[wide()]));
    net.drain(0);
    net.settle();
    let [refusal] = &refused(&net)[..] else { panic!("{:?}", refused(&net)) };
    assert_eq!((refusal.subscription, refusal.class.as_str()), (second, DEFAULT));
    assert_eq!(net.heard(first), [a]);
    // Without classes the link grants it again.
    net.nodes[0].set_classes("radio", None);
    net.drain(0);
    net.settle();
    net.run(Duration::from_secs(10));
    assert_eq!((net.heard(first), net.heard(second)), (&[a][..], &[b][..]));
}

#[test]
fn guarantees_beyond_the_part_of_a_quic_link_for_streams_are_none() {
    let classes = [guaranteed(tagged("all", "a"), 7_000_000)];
    for (carrier, fits) in [(Carrier::Ordered, true), (Carrier::Datagrams, false)] {
        let mut net = Net::new(2);
        net.nodes[0].set_link("radio", Policy::Vds, carrier);
        net.nodes[0].set_classes("radio", tree(&classes));
        net.join_over(0, 1, link("radio", Some(BYTES_PER_S)), link("radio", None));
        net.settle();
        ask(&mut net, "a", 500);
        let why = Unguaranteed::BeyondLink;
        let reasons: Vec<_> = refused(&net).iter().map(|it| it.reason).collect();
        let expected = if fits { vec![] } else { vec![RefusalReason::NoGuarantee { why }] };
        assert_eq!(reasons, expected, "{carrier:?}");
    }
}

#[test]
fn the_buffer_limits_the_bytes_that_contracts_may_have_queued() {
    let mut net = divided(&[
        guaranteed(tagged("left", "left/*"), 2_000_000),
        guaranteed(tagged("all", "**"), 4_000_000),
    ]);
    net.nodes[0].set_buffer("radio", 30_000);
    let most = |net: &Net| net.nodes[0].buffer_use("radio").unwrap();
    let (_, first) = ask(&mut net, "left/1", 150);
    // One sample of 12,000 bytes on the wire per 200 ms, which may be early by 20 ms.
    let one = most(&net).held;
    assert!((12_000..=24_000).contains(&one) && net.heard(first).len() == 1, "{one}");
    // Both classes share the buffer.
    let (_, second) = ask(&mut net, "right/1", 150);
    let [refusal] = &refused(&net)[..] else { panic!("{:?}", refused(&net)) };
    let buffer = RefusalReason::Buffer { needed: 2 * one, available: 30_000 };
    assert_eq!((refusal.subscription, refusal.reason), (second, buffer));
    let text = refusal.to_string();
    assert!(text.starts_with("the buffer of link 'radio' of 'node0' is too small"), "{text}");
    assert!(text.ends_with("or raise the link's buffer"), "{text}");
    // A larger buffer has room for both, and a smaller one for none.
    net.nodes[0].set_buffer("radio", 2 * one);
    net.drain(0);
    net.run(Duration::from_secs(10));
    assert_eq!((net.heard(second).len(), most(&net).held), (1, 2 * one));
    net.nodes[0].set_buffer("radio", one - 1);
    net.drain(0);
    net.settle();
    assert_eq!((net.heard(first).len(), net.heard(second).len(), most(&net).held), (0, 0, 0));
}

/// The figure of docs/concepts/classes.md.
#[test]
fn a_sample_of_400_bytes_needs_22_ms_in_a_class_of_1_mbit_on_a_link_of_2() {
    let half = guaranteed(tagged("half", "a/*"), 1_000_000);
    let capacity = Capacity::from_bits_per_s(2_000_000).ok();
    let mut net = Net::new(2);
    let tree = ClassTree::new(vec![half], capacity).unwrap();
    net.nodes[0].set_classes("radio", Some(Arc::new(tree)));
    net.join_over(0, 1, link("radio", Some(250_000)), link("radio", None));
    net.settle();
    // Each hop keeps 1.5 ms of the bound for itself.
    for (tag, within, granted) in [("a/1", 23, 0), ("a/2", 24, 1)] {
        let bytes_max = Some(400);
        net.publish(0, PublisherSpec { bytes_max, ..camera(tag) });
        let within = Some(Duration::from_millis(within));
        let heard = net.subscribe(1, SubscriptionSpec { within, ..promised(tag) });
        net.settle();
        assert_eq!(net.heard(heard).len(), granted, "{tag}: {:?}", refused(&net));
    }
}

/// A node on the path tests its own classes by the names of the publisher's node and its next hop.
#[test]
fn every_node_of_a_path_tests_its_own_classes() {
    let mut net = Net::chain(2);
    net.nodes.push(Control::new(super::net::id(2), "node2"));
    net.seen.push(super::net::Seen::default());
    let wants = Match {
        nodes: vec!["node0".to_owned()],
        peers: vec!["node2".to_owned()],
        ..Match::default()
    };
    let from = |bits| guaranteed(LinkClass { wants: wants.clone(), ..tagged("from", "x") }, bits);
    net.nodes[1].set_classes("radio", tree(&[from(2_000_000)]));
    net.join_over(1, 2, link("radio", Some(BYTES_PER_S)), link("eth", None));
    net.settle();
    let ask = |net: &mut Net, node: usize, tag: &str| {
        let period = Some(Duration::from_millis(200));
        net.publish(node, PublisherSpec { period, ..camera(tag) });
        let heard = net.subscribe(
            2,
            SubscriptionSpec { within: Some(Duration::from_millis(300)), ..promised(tag) },
        );
        net.settle();
        net.heard(heard).len()
    };
    assert_eq!(ask(&mut net, 0, "far"), 1);
    assert_eq!(ask(&mut net, 1, "near"), 0, "it is in the class default");
    let refusal = net.seen[2].refused.last().unwrap();
    assert_eq!((refusal.class.as_str(), refusal.node_name.as_str()), (DEFAULT, "node1"));
}

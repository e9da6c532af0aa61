use super::super::registry::{Record, Table};
use super::*;
use crate::control::ControlOutput;
use crate::control::contracts::booking;
use crate::control::contracts::pair::Pair;
use crate::control::data::route::Place;
use crate::control::data::spec::{HopInfo, PublisherSpec, SubscriptionSpec};
use crate::control::data::split::Split;
use crate::rights::{AccessRule, GrantedTags, Quotas, RuleRights};
use crate::tag::Pattern;
use paceline_admit::Trunk;
use paceline_admit::reserve::message::{Admit, Deny, Stamp};
use paceline_admit::reserve::{Key, Name, NodeIndex, Reason, ReserveMessage, Wanted};
use paceline_sched::{Capacity, Duration};
use std::sync::Arc;

const ME: NodeId = NodeId(1);
const VIEWER: NodeId = NodeId(2);
const INTRUDER: NodeId = NodeId(3);
const NOW: Instant = Instant::from_millis(5_000);

/// Returns a node that allows the intruder a tenth of each link, of 125,000 bytes per second.
fn relay(publisher: (PublisherId, Arc<PublisherSpec>)) -> Control {
    let all = Pattern::new("**").into_iter().collect::<Vec<_>>();
    let tags = GrantedTags { publish: all.clone(), ..GrantedTags::default() };
    let quotas = Quotas { share_percent: Some(10), ..Quotas::default() };
    let few = RuleRights { tags, quotas, ..RuleRights::default() };
    let rule =
        |name: &str, rights| AccessRule { peers: vec![name.to_owned()], rights: Arc::new(rights) };
    let rules = vec![rule("viewer", RuleRights::all()), rule("intruder", few)];
    let mut control = Control::new(ME, "me");
    control.set_policy(NOW, Some(AccessPolicy { rules }));
    let hop = || HopInfo::new("radio".to_owned(), Capacity::from_bits_per_s(1_000_000).ok());
    for (node, name) in [(VIEWER, "viewer"), (INTRUDER, "intruder")] {
        control.set_peer(NOW, node, PeerName::Certified(name.to_owned()));
        control.handle_hop_up(NOW, node, hop());
        let own = (node == INTRUDER).then(|| publisher.clone());
        let record = Record {
            version: 7,
            name: name.to_owned(),
            neighbours: Table::from_iter([(ME, hop())]),
            publishers: own.into_iter().collect(),
            ..Record::default()
        };
        let message = Message::Snapshot { node, record }.encode();
        control.handle_message(NOW, node, message).unwrap();
    }
    control
}

/// Returns true if the node grants a request of the intruder for a subscription that it has never seen.
fn grants(bytes_max: u64, backward: impl Fn(Wanted) -> Option<Wanted>) -> bool {
    let publisher = PublisherId { node: INTRUDER, index: 0 };
    let key = (SubscriptionId { node: VIEWER, index: 9 }, publisher);
    let spec = Arc::new(PublisherSpec {
        period: Some(Duration::from_millis(100)),
        bytes_max: Some(bytes_max),
        ..PublisherSpec::new(Tag::new("camera").unwrap())
    });
    let mut control = relay((publisher, spec.clone()));
    let request = SubscriptionSpec {
        within: Some(Duration::from_secs(1)),
        ..SubscriptionSpec::all_of(Pattern::new("camera").unwrap())
    };
    let path = [INTRUDER, ME, VIEWER];
    let split = Split::of(&control.membership.registry, &path);
    let pair = Pair::at(key, &spec, &request, Place::on(&path, split, INTRUDER).unwrap());
    let asked = booking::request(&pair, &path, split, None).unwrap();
    let name = Name {
        key: Key { origin: NodeIndex(INTRUDER.0), number: 1 },
        stamp: Stamp { epoch: 1, seq: 1 },
    };
    let admit = Admit {
        name,
        path: asked.path,
        weights: asked.weights,
        label: asked.label,
        period: Duration::from_secs(1),
        backward: backward(asked.forward.unwrap()),
        forward: asked.forward,
        scaled: asked.scaled.map(Box::new),
        spent: Duration::ZERO,
    };
    let message = Message::Reserve(Box::new(ReserveMessage::Admit(Box::new(admit)))).encode();
    control.handle_message(NOW, INTRUDER, message).unwrap();
    let outputs = std::iter::from_fn(|| control.poll_output());
    let sent: Vec<(NodeId, Message)> = outputs
        .filter_map(|output| {
            let ControlOutput::Send { hop, message } = output else { return None };
            Some((hop, Message::decode(message).unwrap()))
        })
        .collect();
    let answers = sent.iter().filter_map(|(hop, message)| {
        let Message::Reserve(message) = message else { return None };
        match (*hop, &**message) {
            (VIEWER, ReserveMessage::Admit(_)) => Some(true),
            (INTRUDER, ReserveMessage::Deny(Deny { reason: Reason::Declined, .. })) => Some(false),
            other => panic!("{other:?}"),
        }
    });
    let answers: Vec<bool> = answers.collect();
    assert_eq!(answers.len(), 1, "{sent:?}");
    answers[0]
}

#[test]
fn a_request_that_the_node_has_not_seen_is_limited_to_the_share_of_the_link() {
    assert!(grants(1_000, |_| None), "about 10,000 of 12,500 bytes/s");
    assert!(!grants(2_000, |_| None));
}

#[test]
fn a_request_against_the_direction_of_the_path_has_no_rights() {
    assert!(!grants(1_000, |wanted| Some(Wanted { trunk: Trunk(7), ..wanted })));
}

/// A node with a publisher, a viewer and a leaf that publishes nothing.
fn watched() -> (Control, PairKey) {
    let own = Arc::new(PublisherSpec::new(Tag::new("other").unwrap()));
    let mut control = relay((PublisherId { node: INTRUDER, index: 0 }, own));
    let publisher = control.publish(NOW, PublisherSpec::new(Tag::new("camera").unwrap()));
    let subscription = SubscriptionId { node: VIEWER, index: 0 };
    let wanted = SubscriptionSpec::all_of(Pattern::new("camera").unwrap());
    let change = Change::Subscribe(0, wanted);
    let message = Message::Delta { node: VIEWER, version: 8, change }.encode();
    control.handle_message(NOW, VIEWER, message).unwrap();
    (control, (subscription, publisher))
}

fn carries(control: &Control, key: PairKey) -> bool {
    let outputs = control.streams.installed.values().flat_map(|stream| &stream.outputs);
    outputs.into_iter().any(|output| output.subscriptions.contains(&key.0))
}

#[test]
fn a_leaf_refuses_no_streams_of_others() {
    let (mut control, key) = watched();
    while control.poll_output().is_some() {}
    assert!(carries(&control, key));
    let lack = Lack::Right(Right::Subscribe);
    let reason = RefusalReason::Rights { of: VIEWER, lack };
    let every = (key.0, PublisherId { node: INTRUDER, index: ANY });
    let forged = [key, every];
    let refusals = forged.map(|key| blank(key, INTRUDER, &control.membership.registry, reason));
    for (version, refusal) in (8..).zip(refusals.clone()) {
        let change = Change::Refuse(refusal);
        let message = Message::Delta { node: INTRUDER, version, change }.encode();
        control.handle_message(NOW, INTRUDER, message).unwrap();
    }
    let refusals: Table<_, _> =
        refusals.into_iter().map(|it| ((it.subscription, it.publisher), it)).collect();
    let check = |control: &mut Control, version: u64| {
        while let Some(output) = control.poll_output() {
            assert!(!matches!(output, ControlOutput::Refused { .. }), "{output:?}");
        }
        assert!(carries(control, key));
        assert_eq!(control.membership.registry.version(INTRUDER), version);
    };
    check(&mut control, 9);
    let before = control.membership.registry.record(INTRUDER).unwrap().clone();
    let record = Record { version: 20, refusals, ..before };
    let message = Message::Snapshot { node: INTRUDER, record }.encode();
    control.handle_message(NOW, INTRUDER, message).unwrap();
    check(&mut control, 20);
}

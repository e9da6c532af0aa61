//! Questions to a node, and the choice of the node to ask.

use super::net::{Net, all, camera, id, link, promised};
use bytes::Bytes;
use paceline_proto::control::{
    ANSWER_BYTES_MAX, ControlOutput, PublisherSpec, QUESTION_BYTES_MAX, SubscriptionSpec, Topic,
};
use paceline_proto::pull::{Question, private_pattern, private_tag};
use paceline_proto::{NodeId, PublisherId, Size, SubscriptionId, Tag};

fn body() -> Bytes {
    Bytes::from_static(b"\x00question")
}

#[test]
fn an_answer_crosses_three_hops() {
    let mut net = Net::chain(4);
    let request = net.nodes[0].ask(net.now, id(3), body());
    net.drain(0);
    net.settle();
    assert_eq!(net.seen[3].asked, [(request, id(0), body())]);
    let answer = Bytes::from_static(b"answer");
    net.nodes[3].answer(net.now, request, id(0), answer.clone());
    net.drain(3);
    net.settle();
    assert_eq!(net.seen[0].answered, [(request, id(3), answer.clone())]);
    // An answer that nobody requested is ignored.
    net.nodes[3].answer(net.now, request, id(0), answer);
    net.drain(3);
    net.settle();
    assert_eq!(net.seen[0].answered.len(), 1);
}

#[test]
fn a_node_may_query_itself_and_nobody_answers_for_a_lost_node() {
    let mut net = Net::chain(3);
    let request = net.nodes[0].ask(net.now, id(0), body());
    net.drain(0);
    assert_eq!(net.seen[0].asked, [(request, id(0), body())]);
    net.nodes[0].answer(net.now, request, id(0), Bytes::new());
    net.drain(0);
    assert_eq!(net.seen[0].answered, [(request, id(0), Bytes::new())]);
    net.part(1, 2);
    net.settle();
    net.messages = 0;
    assert_ne!(net.nodes[0].ask(net.now, id(2), body()), request);
    net.drain(0);
    net.settle();
    assert_eq!(net.messages, 0);
}

#[test]
fn an_answer_from_another_node_is_ignored() {
    let mut net = Net::chain(3);
    let request = net.nodes[0].ask(net.now, id(1), body());
    net.drain(0);
    net.settle();
    net.nodes[2].answer(net.now, request, id(0), Bytes::new());
    net.drain(2);
    net.settle();
    assert!(net.seen[0].answered.is_empty());
}

#[test]
fn overlong_queries_are_not_sent() {
    let mut net = Net::chain(2);
    net.nodes[0].ask(net.now, id(1), Bytes::from(vec![0; QUESTION_BYTES_MAX + 1]));
    assert_eq!((net.nodes[0].poll_output(), net.nodes[0].rejected()), (None, 1));
    let request = net.nodes[0].ask(net.now, id(1), Bytes::from(vec![0; QUESTION_BYTES_MAX]));
    net.drain(0);
    net.settle();
    net.nodes[1].answer(net.now, request, id(0), Bytes::from(vec![0; ANSWER_BYTES_MAX + 1]));
    net.drain(1);
    net.settle();
    assert!(net.seen[0].answered.is_empty());
    assert_eq!(net.nodes[1].rejected(), 1);
    net.nodes[1].answer(net.now, request, id(0), Bytes::from(vec![0; ANSWER_BYTES_MAX]));
    net.drain(1);
    net.settle();
    assert_eq!(net.seen[0].answered.len(), 1);
}

#[test]
fn a_query_states_its_subject() {
    let all = [
        Topic::Status,
        Topic::Pull,
        Topic::Room,
        Topic::Change,
        Topic::Feedback,
        Topic::Excess,
        Topic::Refused,
        Topic::Passages,
        Topic::Outcome,
        Topic::Time,
        Topic::Relax,
        Topic::Warning,
    ];
    for (code, topic) in (0..).zip(all) {
        assert_eq!(topic.code(), code);
        let question = Bytes::from(vec![topic.code(), 5]);
        assert_eq!(Topic::split(question), Some((topic, Bytes::from_static(&[5]))));
    }
    assert_eq!(Topic::split(Bytes::new()), None);
    assert_eq!(Topic::split(Bytes::from_static(&[12])), None);
    let done = Question::Done { pull: 3 };
    let (topic, rest) = Topic::split(done.encode()).unwrap();
    assert_eq!((topic, Question::decode(rest)), (Topic::Pull, Ok(done)));
}

#[test]
fn holders_are_found_from_the_nearest_on() {
    let mut net = Net::joined(5, &[(0, 1), (1, 2), (0, 3)]);
    let holds = |pattern: &str| SubscriptionSpec { holds: true, ..all(pattern) };
    let far = net.subscribe(2, holds("robot/camera"));
    let near = net.subscribe(1, SubscriptionSpec { local: true, ..holds("robot/**") });
    let beside = net.subscribe(3, holds("robot/*"));
    let here = net.subscribe(0, holds("**"));
    net.subscribe(3, all("robot/camera"));
    net.subscribe(3, holds("ship/camera"));
    net.subscribe(4, holds("robot/camera"));
    net.settle();
    let tag = Tag::new("robot/camera").unwrap();
    let expected = [(here, 0), (near, 1), (beside, 1), (far, 2)];
    assert_eq!(net.nodes[0].holders(&tag), expected);
    net.part(1, 2);
    net.settle();
    assert_eq!(net.nodes[0].holders(&tag), expected[..3]);
    net.unsubscribe(near);
    net.settle();
    assert_eq!(net.nodes[3].holders(&tag), [(beside, 0), (here, 1)]);
}

/// Returns a private publisher that serves another node's pull.
fn private(puller: NodeId) -> PublisherSpec {
    let publisher = PublisherId { node: NodeId(7), index: 0 };
    let tag = private_tag(puller, 1, publisher).unwrap();
    PublisherSpec { tag, ..camera("camera") }
}

#[test]
fn private_streams_are_background_and_reserve_no_capacity() {
    let mut net = Net::new(2);
    // There is capacity for one camera of 300,000 bytes/s, but not for two.
    net.join_over(0, 1, link("thin", Some(400_000)), link("thin", None));
    net.settle();
    let pulled: Vec<PublisherId> = (0..3).map(|_| net.publish(0, private(id(1)))).collect();
    let pattern = private_pattern(id(1), 1).unwrap();
    let mut asked = SubscriptionSpec { pattern, ..promised("x") };
    asked.form.size = Some(Size { width: 320, height: 240 });
    let form = asked.form;
    let pull: SubscriptionId = net.subscribe(1, asked);
    net.settle();
    let live = net.publish(0, camera("camera"));
    let watcher = net.subscribe(1, promised("camera"));
    net.settle();
    assert!(net.seen[1].refused.is_empty(), "{:?}", net.seen[1].refused);
    assert_eq!(net.heard(pull), pulled);
    assert_eq!(net.heard(watcher), [live]);
    for publisher in pulled {
        let [output] = net.outputs(0, publisher, Default::default()) else { panic!("no stream") };
        assert!(output.background && output.contract.is_none());
        assert_eq!(output.form, form);
    }
    let [output] = net.outputs(0, live, Default::default()) else { panic!("no stream") };
    assert!(!output.background && output.contract.is_some());
    assert_eq!(net.nodes[0].poll_output(), None::<ControlOutput>);
}

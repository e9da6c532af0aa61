//! Questions of members to processes behind a node with a policy: the rights of the origin decide on every path.

use super::net::{Net, camera, id, index, link, promised};
use bytes::Bytes;
use paceline_proto::control::{ChangeAnswer, HopInfo, SubscriptionSpec, Topic};
use paceline_proto::pull::{Answer, Fetch, Find, Making, Question, Selection};
use paceline_proto::rights::{
    AccessPolicy, AccessRule, GrantedTags, Lack, PeerName, Right, RuleRights,
};
use paceline_proto::{Pattern, PublisherId, Rate, SubscriptionId, Tag};
use paceline_sched::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// The process behind the node with the policy, and that node.
const PROCESS: usize = 0;
const BORDER: usize = 1;
const MEMBER: usize = 2;
const ITS_PROCESS: usize = 3;
const USER: usize = 4;
const RELAY: usize = 5;
const FAR: usize = 6;
/// Another process of the border's host and account.
const NEIGHBOUR: usize = 7;
const ORIGINS: [(usize, &str); 5] = [
    (MEMBER, "member with a certificate"),
    (ITS_PROCESS, "process of a member's host"),
    (USER, "other account of the host"),
    (FAR, "member behind a relay"),
    (NEIGHBOUR, "process of this host and account"),
];

/// The rights of the tested origins: one right, on the tag of the question or on another one.
const RIGHTS: [Option<(Right, &str)>; 11] = [
    None,
    Some((Right::Publish, "p/**")),
    Some((Right::Subscribe, "p/**")),
    Some((Right::Pull, "p/**")),
    Some((Right::Set, "p/**")),
    Some((Right::Observe, "")),
    Some((Right::Relay, "")),
    Some((Right::Publish, "q/**")),
    Some((Right::Subscribe, "q/**")),
    Some((Right::Pull, "q/**")),
    Some((Right::Set, "q/**")),
];

fn rule(right: Option<(Right, &str)>) -> RuleRights {
    let Some((right, tags)) = right else { return RuleRights::default() };
    let on = |this| match right == this {
        true => vec![Pattern::new(tags).unwrap()],
        false => Vec::new(),
    };
    RuleRights {
        tags: GrantedTags {
            publish: on(Right::Publish),
            subscribe: on(Right::Subscribe),
            pull: on(Right::Pull),
            set: on(Right::Set),
        },
        observe: right == Right::Observe,
        relay: right == Right::Relay,
        ..RuleRights::default()
    }
}

fn policy(right: Option<(Right, &str)>) -> AccessPolicy {
    let named =
        |peer: &str, rights| AccessRule { peers: vec![peer.to_owned()], rights: Arc::new(rights) };
    let tested = ["node2", "@user:bob", "node6"].map(|peer| named(peer, rule(right)));
    AccessPolicy { rules: tested.into_iter().chain([named("node5", RuleRights::all())]).collect() }
}

/// The network: 0 and 7 are processes of the host of 1, 3 of that of 2; 4 is another account; 6 is behind 5.
fn network(policy: Option<AccessPolicy>) -> Net {
    let mut net = Net::new(8);
    net.nodes[BORDER].set_policy(net.now, policy);
    let own = || HopInfo { own: true, ..link("host", None) };
    let certified = |node: usize| PeerName::Certified(format!("node{node}"));
    for (one, other, peers, hop) in [
        (PROCESS, BORDER, [PeerName::Host, PeerName::Host], own()),
        (NEIGHBOUR, BORDER, [PeerName::Host, PeerName::Host], own()),
        (BORDER, MEMBER, [certified(1), certified(2)], link("eth", None)),
        (MEMBER, ITS_PROCESS, [PeerName::Host, PeerName::Host], own()),
        (BORDER, USER, [PeerName::User("alice".into()), PeerName::User("bob".into())], own()),
        (BORDER, RELAY, [certified(1), certified(5)], link("eth", None)),
        (RELAY, FAR, [certified(5), certified(6)], link("eth", None)),
    ] {
        let [of_one, of_other] = peers;
        net.nodes[one].set_peer(net.now, id(other), of_other);
        net.nodes[other].set_peer(net.now, id(one), of_one);
        let hop = if one == BORDER && other == USER { link("host", None) } else { hop };
        net.join_over(one, other, hop.clone(), hop);
    }
    net.settle();
    net
}

/// The questions of the table, by name.
const QUESTIONS: [&str; 10] = [
    "status",
    "feedback",
    "passages",
    "find",
    "fetch",
    "order",
    "set",
    "outcome of a set",
    "room",
    "time",
];

/// Returns true if a node with this right alone may ask, by the documentation.
fn suffices(question: &str, right: Option<(Right, &str)>) -> bool {
    let Some((right, tags)) = right else { return false };
    let here = tags == "p/**";
    match question {
        "status" | "feedback" | "passages" => right == Right::Observe,
        "find" | "fetch" | "order" => right == Right::Pull && here,
        "set" | "outcome of a set" => right == Right::Set && here,
        "room" => match right {
            Right::Publish | Right::Subscribe | Right::Set => here,
            Right::Observe => true,
            Right::Pull | Right::Relay => false,
        },
        "time" => true,
        other => panic!("{other}"),
    }
}

/// What the questions are about: a stream and a subscription of each target.
struct Targets {
    publishers: [PublisherId; 2],
    subscriptions: [SubscriptionId; 2],
    /// The bodies of questions for the capacity of a path, by target.
    rooms: [Bytes; 2],
}

fn declare(net: &mut Net) -> ([PublisherId; 2], [SubscriptionId; 2]) {
    let publishers = [PROCESS, BORDER].map(|node| net.publish(node, camera("p/cam")));
    let subscriptions = [PROCESS, BORDER].map(|node| net.subscribe(node, promised("p/cmd")));
    net.run(Duration::from_secs(1));
    (publishers, subscriptions)
}

/// Returns the bodies of the questions for capacity that a member asks where everything is allowed.
fn rooms() -> [Bytes; 2] {
    let mut net = network(None);
    let (publishers, _) = declare(&mut net);
    publishers.map(|publisher| {
        net.nodes[MEMBER].survey(net.now, publisher, promised("p/cam")).unwrap();
        net.drain(MEMBER);
        // A control message: its code, two nodes, the number of the question and the rest of the errand.
        let sent = net.take(MEMBER, BORDER).into_iter();
        let question = sent
            .filter(|message| message[0] == 5)
            .find(|message| message[9..17] == publisher.node.0.to_le_bytes());
        let question = question.expect("a question to the node of the publisher");
        // The number, the hops left, no identity, and the length of the body in one or two bytes.
        let at = 20 + if question[20] < 128 { 1 } else { 2 };
        assert_eq!((question[19], question[at]), (0, Topic::Room.code()));
        net.settle();
        question.slice(at..)
    })
}

fn find(tag: &str) -> Question {
    let (tag, selection) = (Tag::new(tag).unwrap(), Selection::Newest(1));
    Question::Find(Find { tag, publisher: None, selection, rate: Rate::default(), after: None })
}

fn body(question: &str, of: usize, targets: &Targets) -> Bytes {
    let tag = || Tag::new("p/cam").unwrap();
    let topic = |topic: Topic| Bytes::from(vec![topic.code()]);
    match question {
        "status" => topic(Topic::Status),
        "feedback" => topic(Topic::Feedback),
        "passages" => topic(Topic::Passages),
        "time" => topic(Topic::Time),
        "room" => targets.rooms[of].clone(),
        "find" => find("p/cam").encode(),
        "fetch" => Question::Fetch(Fetch {
            pull: 1,
            tag: tag(),
            publisher: targets.publishers[of],
            making: Making::default(),
            seqs: vec![1],
            next: Vec::new(),
            fresh: false,
        })
        .encode(),
        "order" => Question::Order { tag: tag(), samples: 3 }.encode(),
        other => panic!("{other}"),
    }
}

/// Asks, and returns true if the target has answered or was asked; the border must have refused it otherwise.
fn passes(net: &mut Net, origin: usize, of: usize, question: &str, targets: &Targets) -> bool {
    let target = [PROCESS, BORDER][of];
    net.seen[target].asked.clear();
    net.seen[origin].answered.clear();
    net.seen[BORDER].denied.clear();
    let subscription = targets.subscriptions[of];
    let now = net.now;
    match question {
        "set" => {
            let spec = SubscriptionSpec { or_stop: true, ..promised("p/cmd") };
            net.nodes[origin].change_subscription(now, subscription, &spec);
        }
        "outcome of a set" => _ = net.nodes[origin].ask_outcome(now, subscription, 0),
        _ => _ = net.nodes[origin].ask(now, id(target), body(question, of, targets)),
    }
    net.drain(origin);
    net.settle();
    let answers = net.seen[origin].answered.clone();
    let refuses = |body: &Bytes| match question {
        "set" => matches!(ChangeAnswer::decode(body.clone()), Ok(ChangeAnswer::Denied(_))),
        "find" | "fetch" | "order" => {
            matches!(Answer::decode(body.clone()), Ok(Answer::Refused(_)))
        }
        _ => false,
    };
    let refused = answers.iter().any(|(.., body)| refuses(body));
    let asked = net.seen[target].asked.iter().any(|(_, from, _)| index(*from) == origin);
    let passed = asked || answers.iter().any(|(.., body)| !refuses(body));
    let says_so = matches!(question, "set" | "find" | "fetch" | "order");
    // A node without any right sees no path, so it does not even ask.
    let sent = net.nodes[origin].nodes().any(|view| view.id == id(target));
    let denied = !net.seen[BORDER].denied.is_empty();
    assert_eq!(refused, denied && says_so, "{question} of {origin} at {target}");
    assert_eq!(denied, sent && !passed, "{question} of {origin} at {target}");
    passed
}

#[test]
fn the_rights_of_the_origin_decide_on_every_question_to_a_node_and_to_processes_behind_it() {
    let rooms = rooms();
    let mut sufficient = BTreeMap::<&str, BTreeSet<&str>>::new();
    for right in RIGHTS {
        let mut net = network(Some(policy(right)));
        let (publishers, subscriptions) = declare(&mut net);
        let targets = Targets { publishers, subscriptions, rooms: rooms.clone() };
        for (origin, name) in ORIGINS {
            for (of, question) in (0..2).flat_map(|of| QUESTIONS.map(|question| (of, question))) {
                let expected = origin == NEIGHBOUR || suffices(question, right);
                let passed = passes(&mut net, origin, of, question, &targets);
                assert_eq!(passed, expected, "{question} of a {name} with {right:?} to {of}");
                if let Some((right, tags)) = right.filter(|_| passed && origin != NEIGHBOUR) {
                    let elsewhere = if tags == "q/**" { " on any tag" } else { "" };
                    let name = [right.name(), elsewhere].concat();
                    sufficient.entry(question).or_default().insert(name.leak());
                }
            }
        }
    }
    compare_with_the_document(&sufficient);
}

/// Compares the table in SECURITY.md with the result.
fn compare_with_the_document(sufficient: &BTreeMap<&str, BTreeSet<&str>>) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../SECURITY.md");
    let document = std::fs::read_to_string(&file).unwrap();
    let (begin, end) = ("<!-- questions: compared by a test -->\n", "<!-- end of questions -->");
    let (_, rest) = document.split_once(begin).unwrap();
    let (table, _) = rest.split_once(end).unwrap();
    let mut found = "| question | needs one of these rights |\n| --- | --- |\n".to_owned();
    for question in QUESTIONS {
        let rights: Vec<&str> = sufficient[question].iter().copied().collect();
        let any = rights.contains(&"set on any tag");
        let rights = if any { "any right".to_owned() } else { rights.join(", ") };
        found.push_str(&format!("| {question} | {rights} |\n"));
    }
    assert_eq!(table, found, "copy this table into SECURITY.md:\n{found}");
}

#[test]
fn a_process_with_a_policy_of_its_own_checks_the_identity_that_its_host_states() {
    let (open, mut net) = (policy(Some((Right::Observe, ""))), network(None));
    net.nodes[BORDER].set_policy(net.now, Some(open));
    // The process grants less than the border, and knows the nodes only by what the border states.
    let strict = AccessPolicy {
        rules: vec![AccessRule {
            peers: vec!["node6".to_owned(), "@user:bob".to_owned()],
            rights: Arc::new(rule(Some((Right::Observe, "")))),
        }],
    };
    net.nodes[PROCESS].set_policy(net.now, Some(strict));
    net.drain(BORDER);
    net.drain(PROCESS);
    net.settle();
    let (publishers, subscriptions) = declare(&mut net);
    let targets = Targets { publishers, subscriptions, rooms: rooms() };
    let askers: Vec<usize> = ORIGINS
        .into_iter()
        .map(|(origin, _)| origin)
        .filter(|&origin| {
            net.seen[PROCESS].denied.clear();
            net.seen[PROCESS].asked.clear();
            net.nodes[origin].ask(net.now, id(PROCESS), body("status", 0, &targets));
            net.drain(origin);
            net.settle();
            let denied = net.seen[PROCESS].denied.clone();
            let asked = !net.seen[PROCESS].asked.is_empty();
            assert_ne!(asked, !denied.is_empty());
            assert!(denied.iter().all(|(node, of, _)| (*node, *of) == (id(origin), id(origin))));
            asked
        })
        .collect();
    assert_eq!(askers, [USER, FAR, NEIGHBOUR]);
}

#[test]
fn the_border_records_each_use_of_a_right_behind_it() {
    let mut net = network(Some(policy(Some((Right::Observe, "")))));
    let (publishers, subscriptions) = declare(&mut net);
    let targets = Targets { publishers, subscriptions, rooms: rooms() };
    net.seen[BORDER].used.clear();
    for (origin, _) in ORIGINS {
        net.nodes[origin].ask(net.now, id(PROCESS), body("status", 0, &targets));
        net.drain(origin);
        net.settle();
    }
    let used = net.seen[BORDER].used.iter().map(|(node, at, right, _)| {
        assert_eq!((*at, *right), (id(PROCESS), Right::Observe));
        index(*node)
    });
    assert_eq!(used.collect::<Vec<_>>(), [MEMBER, ITS_PROCESS, USER, FAR]);
}

/// Returns the message of a question, as any program can write it. `who` is the encoded identity.
fn forged(from: usize, to: usize, who: &[u8], body: &Bytes) -> Bytes {
    let ends = [id(from), id(to)].map(|node| node.0.to_le_bytes()).concat();
    let length = u8::try_from(body.len()).expect("a short body");
    [&[5][..], &ends, &[77, 16], who, &[length], body].concat().into()
}

#[test]
fn a_member_gains_nothing_by_another_sender_or_identity() {
    let mut net = network(Some(policy(Some((Right::Subscribe, "p/**")))));
    let (publishers, subscriptions) = declare(&mut net);
    let targets = Targets { publishers, subscriptions, rooms: rooms() };
    let named = |kind: u8, name: &str| {
        let length = u8::try_from(name.len()).unwrap();
        [&[kind, length][..], name.as_bytes()].concat()
    };
    let identities = [vec![0], vec![1], named(2, "bob"), named(3, "node5"), named(3, "node1")];
    let senders = [MEMBER, ITS_PROCESS, USER, RELAY, FAR, NEIGHBOUR, PROCESS, BORDER];
    let questions = ["status", "feedback", "passages", "find", "fetch", "order"];
    let mut sent = 0;
    for (via, from) in [MEMBER, USER].into_iter().flat_map(|via| senders.map(|from| (via, from))) {
        for (of, question) in (0..2).flat_map(|of| questions.map(|question| (of, question))) {
            for who in &identities {
                let body = body(question, of, &targets);
                let message = forged(from, [PROCESS, BORDER][of], who, &body);
                let now = net.now;
                net.nodes[BORDER].handle_message(now, id(via), message).unwrap();
                net.drain(BORDER);
                sent += 1;
            }
        }
        net.settle();
    }
    assert_eq!((net.seen[PROCESS].asked.len(), net.seen[BORDER].asked.len()), (0, 0));
    assert_eq!(net.seen[BORDER].denied.len(), sent);
}

#[test]
fn a_member_cannot_answer_for_another_node_by_a_question_that_is_refused() {
    let mut net = network(Some(policy(Some((Right::Set, "p/**")))));
    let (_, subscriptions) = declare(&mut net);
    // A member behind the relay asks a process for a change. The answer is still on its way.
    let spec = SubscriptionSpec { or_stop: true, ..promised("p/cmd") };
    let asked = net.nodes[FAR].change_subscription(net.now, subscriptions[0], &spec);
    net.drain(FAR);
    let body = {
        let sent = net.take(FAR, RELAY);
        let question = sent.iter().find(|message| message[0] == 5).unwrap();
        let at = 20 + if question[20] < 128 { 1 } else { 2 };
        Bytes::copy_from_slice(&question[at..])
    };
    // Another one asks the same in its name, with its number, so that the border refuses.
    let ends = [id(FAR), id(PROCESS)].map(|node| node.0.to_le_bytes()).concat();
    let number = u8::try_from(asked).unwrap();
    let mut length = Vec::new();
    paceline_proto::wire::Writer::put_varint(&mut length, body.len() as u64);
    let message = [&[5][..], &ends, &[number, 16, 0], &length, &body].concat();
    net.nodes[BORDER].handle_message(net.now, id(MEMBER), message.into()).unwrap();
    net.drain(BORDER);
    net.settle();
    assert_eq!(net.seen[FAR].answered, [], "no answer in the name of the process");
    assert!(net.seen[BORDER].denied.contains(&(id(FAR), id(MEMBER), Lack::Right(Right::Relay))));
}

//! Answers to change requests: each answers its own request, and a refused change keeps the old contract.

use super::net::{Net, all, camera, id, index, link, promised};
use core::num::NonZeroU32;
use paceline_proto::control::{
    ChangeAnswer, ChangeOutcome, PublisherSpec, RefusalReason, SubscriptionSpec,
};
use paceline_proto::plan::Target;
use paceline_proto::{Form, PublisherId, Rate, Size, SubscriptionId};
use paceline_sched::Duration;
use std::collections::BTreeMap;

/// The last node. The publisher and the subscription are at the ends of three hops; the middle one is a
/// radio.
const LAST: usize = 3;

fn hertz(hertz: u32) -> SubscriptionSpec {
    let rate = Rate::max(NonZeroU32::new(hertz * 1_000).unwrap());
    SubscriptionSpec { form: Form { rate, ..Form::FULL }, ..promised("left") }
}

/// Returns a camera behind a radio with a capacity of `kilobytes` kB/s, and a subscription with the request
/// `asks`.
fn watched(kilobytes: u64, asks: SubscriptionSpec) -> (Net, PublisherId, SubscriptionId) {
    let mut net = Net::new(LAST + 1);
    for hop in 0..LAST {
        let bytes = (hop == 1).then_some(kilobytes * 1_000);
        let info = || link(&format!("link{hop}"), bytes);
        net.join_over(hop, hop + 1, info(), info());
    }
    net.settle();
    let left = net.publish(0, camera("left"));
    let user = net.subscribe(LAST, asks);
    net.settle();
    assert_eq!(net.heard(user), [left]);
    (net, left, user)
}

impl Net {
    /// Requests a change of `user` at node `from`, without delivering any message of it. Returns the
    /// request's id.
    fn want(&mut self, from: usize, user: SubscriptionId, spec: &SubscriptionSpec) -> u64 {
        let question = self.nodes[from].change_subscription(self.now, user, spec);
        self.drain(from);
        question
    }

    /// Returns the revision number of a change that `node` requested, once the answer has arrived.
    fn number(&self, node: usize, question: u64) -> Option<u64> {
        let mut answers = self.seen[node].answered.iter();
        let (.., body) = answers.find(|(request, ..)| *request == question)?;
        match ChangeAnswer::decode(body.clone()).unwrap() {
            ChangeAnswer::Done { revision } => Some(revision),
            ChangeAnswer::Unknown | ChangeAnswer::Denied(_) => panic!("{question}"),
        }
    }

    /// Returns the outcome of a request at the subscription's node, while no other message moves.
    fn outcome(&mut self, user: SubscriptionId, revision: u64) -> ChangeOutcome {
        let node = index(user.node);
        let question = self.nodes[node].ask_outcome(self.now, user, revision);
        self.drain(node);
        let answered = self.seen[node].answered.iter();
        let mut answers = answered.filter(|(request, ..)| *request == question);
        ChangeOutcome::decode(answers.next().unwrap().2.clone()).unwrap()
    }

    /// Returns `true` if samples from the publisher's node reach the subscription, in any form.
    fn flows(&self, publisher: PublisherId, user: SubscriptionId) -> bool {
        let (mut node, mut form) = (index(publisher.node), Form::FULL);
        for _ in 0..=LAST {
            let mut outputs = self.outputs(node, publisher, form).iter();
            let of = outputs.find(|it| it.subscriptions.contains(&user));
            match of.map(|it| (it.target, it.form)) {
                Some((Target::Hop(hop), leaves)) => (node, form) = (index(hop), leaves),
                Some((Target::Local, _)) => return true,
                None => return false,
            }
        }
        false
    }

    /// Delivers one message of the next hop in turn. Returns `false` if none is left.
    fn step(&mut self, turn: usize) -> bool {
        let ready: Vec<_> = self
            .queues
            .iter()
            .filter(|(_, queue)| !queue.is_empty())
            .map(|(hop, _)| *hop)
            .collect();
        let Some(&(from, to)) = ready.get(turn % ready.len().max(1)) else { return false };
        self.deliver(from, to)
    }
}

/// The revision number of each request, and whether it should be granted.
type Expected = BTreeMap<u64, bool>;

/// Asserts that no request has received the answer to another one.
fn assert_own_answers(net: &mut Net, user: SubscriptionId, expected: &Expected) {
    for (&revision, &fits) in expected {
        match net.outcome(user, revision) {
            ChangeOutcome::Pending | ChangeOutcome::Replaced => {}
            ChangeOutcome::InForce { grants } => {
                assert!(fits, "{revision} was granted: {grants:?}");
                let of: Vec<u64> = grants.iter().map(|grant| grant.revision).collect();
                assert_eq!(of, [revision]);
            }
            ChangeOutcome::Refused { refusals, kept } => {
                assert!(!fits && kept, "{revision} was refused: {refusals:?}");
                assert!(refusals.iter().all(|refusal| refusal.revision == revision));
            }
            ChangeOutcome::Unknown => panic!("{revision}"),
        }
    }
}

#[test]
fn no_request_gets_the_answer_of_another_request() {
    // The radio carries 15 Hz and 5 Hz, but not 25 Hz.
    let wishes = [(hertz(15), true), (hertz(25), false), (hertz(5), true)];
    // Try several numbers of message deliveries between two requests, in several orders.
    for (pause, order) in (0..60).step_by(4).flat_map(|n| (0..3).map(move |order| (n, order))) {
        let (mut net, _, user) = watched(250, hertz(10));
        let (mut expected, mut turn) = (Expected::new(), order);
        let known = |net: &Net, questions: &[(u64, bool)], expected: &mut Expected| {
            for &(question, fits) in questions {
                expected.extend(net.number(0, question).map(|number| (number, fits)));
            }
        };
        let mut questions = Vec::new();
        for (spec, fits) in &wishes {
            questions.push((net.want(0, user, spec), *fits));
            for _ in 0..pause {
                turn += order;
                net.step(turn);
                known(&net, &questions, &mut expected);
                assert_own_answers(&mut net, user, &expected);
            }
        }
        while net.step(turn) {
            turn += order;
            known(&net, &questions, &mut expected);
            assert_own_answers(&mut net, user, &expected);
        }
        net.run(Duration::from_secs(5));
        assert_eq!(expected.len(), 3);
        let last = *expected.keys().next_back().unwrap();
        let ChangeOutcome::InForce { grants } = net.outcome(user, last) else { panic!("{pause}") };
        assert_eq!((grants.len(), net.held()), (1, vec![1; 4]));
        net.assert_converged();
    }
}

/// Makes a request that is refused, and asserts that the stream continues at every moment.
fn refused_and_kept(
    net: &mut Net,
    left: PublisherId,
    user: SubscriptionId,
    asks: &SubscriptionSpec,
) {
    let before = net.nodes[LAST].subscription(user).unwrap().clone();
    let (notified, held) = (net.seen[LAST].notified.len(), net.held());
    let question = net.want(0, user, asks);
    net.settle_looking(|net| {
        assert!(net.flows(left, user), "a gap");
        assert_eq!(net.heard(user), [left]);
    });
    let revision = net.number(0, question).unwrap();
    let outcome = net.outcome(user, revision);
    let ChangeOutcome::Refused { refusals, kept: true } = &outcome else { panic!("{outcome:?}") };
    let (of, told_why, back) = net.seen[LAST].taken_back.last().unwrap();
    assert_eq!((*of, told_why, back), (user, refusals, &before));
    assert_eq!(refusals[0].revision, revision);
    net.run(Duration::from_secs(60));
    net.settle_looking(|net| assert!(net.flows(left, user)));
    assert_eq!((net.heard(user), net.held()), (&[left][..], held));
    assert_eq!(net.seen[LAST].notified.len(), notified, "no contract has changed");
    for node in 0..=LAST {
        assert_eq!(net.nodes[node].subscription(user), Some(&before));
        assert!(net.nodes[node].nodes().all(|view| view.refusals.is_empty()), "it is over");
    }
    assert_eq!(net.outcome(user, revision), outcome, "it is remembered");
    net.assert_converged();
}

#[test]
fn a_refused_change_keeps_the_contract() {
    let (mut net, left, user) = watched(250, hertz(15));
    let too_short = SubscriptionSpec { within: Some(Duration::from_millis(20)), ..hertz(15) };
    let size = Some(Size { width: 1_280, height: 960 });
    let too_large = SubscriptionSpec { form: Form { size, ..hertz(15).form }, ..hertz(15) };
    for asks in [hertz(25), too_short, too_large, hertz(25)] {
        refused_and_kept(&mut net, left, user, &asks);
    }
    let reasons: Vec<_> =
        net.seen[LAST].taken_back.iter().map(|(_, why, _)| why[0].reason).collect();
    assert_eq!(reasons[0], RefusalReason::Capacity);
    assert!(matches!(reasons[2], RefusalReason::SizeAboveSource { .. }), "{reasons:?}");
    assert_eq!(net.seen[LAST].taken_back[0].1[0].node, id(1));
}

#[test]
fn a_refused_contract_keeps_best_effort_delivery() {
    let (mut net, left, user) = watched(250, all("left"));
    refused_and_kept(&mut net, left, user, &promised("left"));
    assert!(net.seen[LAST].notified.is_empty(), "{:?}", net.seen[LAST].notified);
    let size = Some(Size { width: 1_280, height: 960 });
    let too_large = SubscriptionSpec { form: Form { size, ..Form::FULL }, ..all("left") };
    refused_and_kept(&mut net, left, user, &too_large);
}

#[test]
fn a_subscription_that_declines_best_effort_gets_nothing() {
    for before in [hertz(15), all("left")] {
        let (mut net, left, user) = watched(250, before);
        let question = net.want(0, user, &SubscriptionSpec { or_stop: true, ..hertz(25) });
        net.settle();
        let revision = net.number(0, question).unwrap();
        let outcome = net.outcome(user, revision);
        let ChangeOutcome::Refused { kept: false, .. } = outcome else { panic!("{outcome:?}") };
        assert!(net.heard(user).is_empty() && net.seen[LAST].taken_back.is_empty());
        assert_eq!(net.seen[LAST].refused.last().unwrap().revision, revision);
        assert_eq!(net.held(), [0; 4]);
        // It waits for capacity like any other refused request, or asks for less.
        let question = net.want(0, user, &hertz(5));
        net.settle();
        let revision = net.number(0, question).unwrap();
        assert!(matches!(net.outcome(user, revision), ChangeOutcome::InForce { .. }));
        assert_eq!(net.heard(user), [left]);
    }
}

#[test]
fn a_refusal_by_one_publisher_reverts_the_change_for_all() {
    let (mut net, left, user) = watched(260, SubscriptionSpec { within: None, ..hertz(1) });
    net.unsubscribe(user);
    let small = PublisherSpec { bytes_max: Some(1_000), ..camera("right") };
    let right = net.publish(0, small);
    let both =
        SubscriptionSpec { pattern: paceline_proto::Pattern::new("*").unwrap(), ..hertz(10) };
    let user = net.subscribe(LAST, both.clone());
    net.settle();
    assert_eq!(net.heard(user), [left, right]);
    let question = net.want(0, user, &SubscriptionSpec { form: Form::FULL, ..both });
    net.settle_looking(|net| assert!(net.flows(left, user) && net.flows(right, user)));
    net.run(Duration::from_secs(10));
    let revision = net.number(0, question).unwrap();
    let outcome = net.outcome(user, revision);
    let ChangeOutcome::Refused { refusals, kept: true } = outcome else { panic!("{outcome:?}") };
    assert_eq!(refusals.iter().map(|it| it.publisher).collect::<Vec<_>>(), [left]);
    assert_eq!((net.heard(user), net.held()), (&[left, right][..], vec![2; 4]));
    let granted = net.granted(LAST);
    assert!(granted.iter().all(|grant| grant.revision == 0), "{granted:?}");
    net.assert_converged();
}

/// The offer counts the resources that the change itself would release, and belongs to the refused request.
#[test]
fn the_offer_of_a_refused_change_is_granted() {
    let (mut net, _, user) = watched(250, hertz(15));
    let question = net.want(0, user, &hertz(25));
    net.settle();
    let revision = net.number(0, question).unwrap();
    let outcome = net.outcome(user, revision);
    let ChangeOutcome::Refused { refusals, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(refusals[0].needed_bytes_per_s, 300_000);
    let offered = refusals[0].offer.max_millihertz.unwrap();
    assert!(offered > 15_000, "{offered}: more than it has");
    let rate = Rate::max(NonZeroU32::new(u32::try_from(offered).unwrap()).unwrap());
    let less = SubscriptionSpec { form: Form { rate, ..Form::FULL }, ..promised("left") };
    let question = net.want(0, user, &less);
    net.settle();
    let revision = net.number(0, question).unwrap();
    assert!(matches!(net.outcome(user, revision), ChangeOutcome::InForce { .. }));
}

#[test]
fn any_message_about_a_refused_change_may_be_lost() {
    let messages = {
        let (mut net, _, user) = watched(250, hertz(15));
        let before = net.messages;
        net.want(LAST, user, &hertz(25));
        net.settle();
        net.messages - before
    };
    for number in 0..messages {
        let (mut net, left, user) = watched(250, hertz(15));
        let question = net.want(LAST, user, &hertz(25));
        let mut at = 0;
        while let Some((&hop, _)) = net.queues.iter().find(|(_, queue)| !queue.is_empty()) {
            if at == number {
                net.queues.get_mut(&hop).unwrap().pop_front();
            } else {
                net.deliver(hop.0, hop.1);
            }
            at += 1;
        }
        net.run(Duration::from_secs(40));
        assert_eq!((net.heard(user), net.held()), (&[left][..], vec![1; 4]), "message {number}");
        let revision = net.number(LAST, question).unwrap();
        let outcome = net.outcome(user, revision);
        assert!(
            matches!(outcome, ChangeOutcome::Refused { kept: true, .. }),
            "{number}: {outcome:?}"
        );
        net.assert_converged();
    }
}

#[test]
fn a_contract_lost_during_a_refused_change_is_refused_under_its_own_number() {
    let (mut net, _, user) = watched(250, hertz(5));
    net.want(0, user, &promised("left"));
    net.settle();
    assert_eq!(net.seen[LAST].taken_back.len(), 1);
    // The radio can no longer carry any of it.
    for (from, to) in [(1, 2), (2, 1)] {
        net.nodes[from].handle_hop_up(net.now, id(to), link("link1", Some(10_000)));
        net.drain(from);
    }
    net.run(Duration::from_secs(10));
    assert!(net.heard(user).is_empty());
    let refusal = net.seen[LAST].refused.last().unwrap();
    assert_eq!((refusal.revision, refusal.subscription), (0, user));
}

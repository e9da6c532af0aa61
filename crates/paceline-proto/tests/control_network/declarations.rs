//! Random declarations over the whole range of the API: other nodes read all of them, and none hides another.

#[path = "declarations/generator.rs"]
mod generator;

use super::net::{Net, index, link};
use generator::Generator;
use paceline_proto::control::{PublisherSpec, RefusalReason, SubscriptionSpec};
use paceline_proto::{PublisherId, SubscriptionId};
use paceline_sched::Duration;

/// The declarations that exist at once: a publisher and a subscription each.
const AT_ONCE: usize = 20;
/// The node of the publishers, one between, and the node of the subscriptions.
const FROM: usize = 0;
const OVER: usize = 1;
const TO: usize = 2;
/// The longest wait for an answer, in seconds. Some requests have none by then, which the summary counts.
const WAIT_MAX: u32 = 10;

type Pair = (PublisherId, SubscriptionId);

/// What happened to the pairs.
#[derive(Debug, Default)]
struct Tally {
    declared: usize,
    granted: usize,
    refused: usize,
    best_effort: usize,
    /// Open until the publisher shows its rate, or the size of its first picture, which decides on a bit rate.
    awaits_publisher: usize,
    unanswered: usize,
}

/// Makes a network with random capacities, declares [`AT_ONCE`] pairs in it, and checks what each node knows.
fn declare(chance: &mut Generator, tally: &mut Tally) {
    let mut net = Net::new(3);
    for (one, other) in [(FROM, OVER), (OVER, TO)] {
        let capacity = chance.capacity();
        net.join_over(one, other, link("one", capacity), link("other", capacity));
    }
    net.settle();
    let mut pairs: Vec<Pair> = Vec::new();
    let mut specs: Vec<(PublisherSpec, SubscriptionSpec)> = Vec::new();
    for number in 0..AT_ONCE {
        let tag = format!("tag/{number}");
        let (publisher, request) = (chance.publisher(&tag), chance.subscription(&tag));
        pairs.push((net.publish(FROM, publisher.clone()), net.subscribe(TO, request.clone())));
        specs.push((publisher, request));
    }
    // A node that joins later gets whole records instead of changes.
    net.run(Duration::from_secs(3));
    net.part(OVER, TO);
    net.join_over(OVER, TO, link("one", None), link("other", None));
    net.run(Duration::from_secs(3));
    for node in [FROM, OVER, TO] {
        assert_eq!(net.nodes[node].rejected(), 0, "node {node} refuses a message");
        assert_eq!(net.nodes[node].unread().count(), 0);
        assert_eq!(net.listing(node), net.listing(FROM), "one hides another");
    }
    for (&(publisher, subscription), (spec, request)) in pairs.iter().zip(&specs) {
        assert_eq!(net.nodes[TO].publisher(publisher), Some(spec));
        assert_eq!(net.nodes[FROM].subscription(subscription), Some(request));
    }
    // A path that is asked at the same time as others may be asked again.
    for _ in 0..WAIT_MAX {
        if pairs.iter().all(|&pair| answer(&net, pair).is_some()) {
            break;
        }
        net.run(Duration::from_secs(1));
    }
    for (pair, (spec, request)) in pairs.into_iter().zip(specs) {
        tally.declared += 1;
        let no_size = spec.kind.is_video() && spec.size.is_none();
        let unknown = spec.period.is_none() || no_size && request.form.bitrate.is_some();
        match answer(&net, pair) {
            Some(Answer::Granted) => tally.granted += 1,
            Some(Answer::Refused) => tally.refused += 1,
            Some(Answer::BestEffort) => tally.best_effort += 1,
            None if unknown => tally.awaits_publisher += 1,
            None => tally.unanswered += 1,
        }
    }
}

/// The answer to a request.
#[derive(Clone, Copy, Debug)]
enum Answer {
    Granted,
    Refused,
    BestEffort,
}

/// Returns the answer to a request; `None` while it is open. A node of the path judges a refused one.
fn answer(net: &Net, (publisher, subscription): Pair) -> Option<Answer> {
    let seen = &net.seen[index(subscription.node)];
    let key = (subscription, publisher);
    if seen.granted.contains_key(&key) {
        return Some(Answer::Granted);
    }
    if net.heard(subscription).contains(&publisher) {
        return Some(Answer::BestEffort);
    }
    if !seen.standing.contains(&key) {
        return None;
    }
    let refusal = seen.refused.iter().rev().find(|it| (it.subscription, it.publisher) == key)?;
    (refusal.reason != RefusalReason::NoAnswer).then_some(Answer::Refused)
}

fn declarations(number: usize, seed: u64) {
    let (mut chance, mut tally) = (Generator::new(seed), Tally::default());
    while tally.declared < number {
        declare(&mut chance, &mut tally);
    }
    println!("{tally:?}: 0 rejected by a peer, 0 hidden");
    assert!(tally.granted > number / 50 && tally.refused > number / 50, "{tally:?}");
}

#[test]
fn any_declaration_is_read_and_hides_no_other() {
    declarations(2_000, 1);
}

#[test]
#[ignore = "minutes: cargo xtask long runs it"]
fn a_hundred_thousand_declarations_are_read_and_hide_no_other() {
    declarations(100_000, 2);
}

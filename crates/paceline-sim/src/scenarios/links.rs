//! The effects of links and nodes on streams, and the reports to their users.

use super::{KNOWN_AFTER, UP_AFTER, in_order, pair};
use crate::ask::{Ask as _, all, data, payload, payloads, pictures};
use crate::handle::LinkPlan;
use crate::net::Net;
use paceline_proto::control::RefusalReason;
use paceline_proto::reason::DropReason;
use paceline_sched::{Capacity, Duration};

fn thin() -> LinkPlan {
    LinkPlan { capacity: Capacity::from_bits_per_s(2_000_000).ok() }
}

/// In a chain of four nodes, every node knows all nodes, publishers and subscriptions one second after a
/// change. Samples cross three hops in order.
///
/// # Panics
/// Panics if this does not hold.
pub fn chain_knows_everything(net: &mut dyn Net) {
    let names = ["a", "b", "c", "d"];
    let nodes = names.map(|name| net.add_node(name));
    nodes.windows(2).for_each(|pair| {
        if let [a, b] = *pair {
            net.connect(a, b, LinkPlan::default());
        }
    });
    net.run_for(UP_AFTER);
    nodes.iter().for_each(|&node| assert_eq!(net.known(node), names));
    let [first, .., last] = nodes;
    let sensor = net.publish(first, data("sensor"));
    let end = net.subscribe(last, all("sensor"));
    net.run_for(KNOWN_AFTER);
    nodes.iter().for_each(|&node| assert_eq!(net.known_ends(node), (1, 1)));
    assert!(net.matching(sensor));
    net.every(sensor, Duration::from_millis(10), 100, payloads(200));
    net.run_for(Duration::from_secs(2));
    let delivered = net.delivered(end);
    assert!(in_order(&delivered) && delivered.len() == 100, "{}", delivered.len());
}

/// A neighbour that falls silent is detected within two seconds. When it returns its streams resume
/// automatically.
///
/// # Panics
/// Panics if this does not hold.
pub fn a_dead_neighbour_is_noticed_and_streams_recover(net: &mut dyn Net) {
    let (here, there) = pair(net, LinkPlan::default());
    let sensor = net.publish(here, data("sensor"));
    let end = net.subscribe(there, all("sensor"));
    net.run_for(KNOWN_AFTER);
    net.every(sensor, Duration::from_millis(20), 1_500, payloads(200));
    net.run_for(Duration::from_secs(2));
    for silence in [3, 12] {
        net.cut(here, there);
        net.run_for(Duration::from_secs(2));
        assert_eq!(net.known(here), ["here"]);
        assert_eq!(net.known(there), ["there"]);
        assert!(!net.matching(sensor) && net.heard(end).is_empty());
        net.run_for(Duration::from_secs(silence - 2));
        let before = net.delivered(end).len();
        net.restore(here, there);
        net.run_for(Duration::from_secs(2));
        assert_eq!(net.known(here), ["here", "there"]);
        assert!(net.matching(sensor), "after {silence} s");
        let after = net.delivered(end);
        assert!(after.len() >= before + 40, "{} of 100 after {silence} s", after.len() - before);
        assert!(in_order(&after));
    }
}

/// A contract that exceeds a link's capacity is refused with the link and the numbers, before the first byte.
///
/// The existing contract stays in force. Once it ends, the other one is admitted.
///
/// # Panics
/// Panics if this does not hold.
pub fn refusal_names_the_numbers(net: &mut dyn Net) {
    let (here, there) = pair(net, thin());
    let [one, two] = ["one", "two"].map(|tag| net.publish(here, pictures(tag, 10, 15_000)));
    let first = net.subscribe(there, all("one").within_ms(300));
    net.run_for(KNOWN_AFTER);
    let second = net.subscribe(there, all("two").within_ms(300));
    net.run_for(KNOWN_AFTER);
    assert!(net.refusals(first).is_empty());
    let refusals = net.refusals(second);
    let Some((publisher, refusal)) = refusals.last() else { panic!("it was not refused") };
    assert_eq!((*publisher, refusal.reason), (net.id(two), RefusalReason::Capacity));
    assert!(!refusal.link.is_empty());
    let (needed, left) = (refusal.needed_bytes_per_s, refusal.available_bytes_per_s);
    assert!((150_000..200_000).contains(&needed) && left < 100_000, "{needed} of {left}");
    assert_eq!(net.streams(here, there, two), 0);
    for publisher in [one, two] {
        net.every(publisher, Duration::from_millis(100), 20, payloads(15_000));
    }
    net.run_for(Duration::from_secs(3));
    assert!(net.delivered(second).is_empty());
    assert_eq!(net.delivered(first).len(), 20);
    net.unsubscribe(first);
    net.run_for(Duration::from_secs(4));
    assert_eq!(net.streams(here, there, two), 1);
    assert_eq!(net.heard(second), [net.id(two)]);
}

/// A publisher is notified when the first matching subscription on any node appears and when the last one
/// ends.
///
/// # Panics
/// Panics if this does not hold.
pub fn matching_is_notified(net: &mut dyn Net) {
    let (here, there) = pair(net, LinkPlan::default());
    let sensor = net.publish(here, data("sensor/a"));
    net.run_for(KNOWN_AFTER);
    assert!(!net.matching(sensor));
    let other = net.subscribe(there, all("sensor/b"));
    net.run_for(KNOWN_AFTER);
    assert!(!net.matching(sensor));
    let [far, near] = [there, here].map(|node| net.subscribe(node, all("sensor/*")));
    net.run_for(KNOWN_AFTER);
    assert!(net.matching(sensor));
    net.unsubscribe(far);
    net.run_for(KNOWN_AFTER);
    assert!(net.matching(sensor));
    net.unsubscribe(near);
    net.run_for(KNOWN_AFTER);
    assert!(!net.matching(sensor));
    net.unsubscribe(other);
}

/// A link with too little capacity drops samples by kind: it keeps the newest of pictures, and the oldest of
/// data. Every sample is delivered or counted by reason.
///
/// # Panics
/// Panics if this does not hold.
pub fn best_effort_sheds_pictures_not_data(net: &mut dyn Net) {
    let (here, there) = pair(net, thin());
    let camera = net.publish(here, pictures("camera", 50, 20_000));
    let log = net.publish(here, data("log"));
    let [seen, read] = ["camera", "log"].map(|tag| net.subscribe(there, all(tag)));
    net.run_for(KNOWN_AFTER);
    net.every(camera, Duration::from_millis(20), 150, payloads(20_000));
    for number in 0..1_200 {
        net.put(log, payload(number, 1_000));
    }
    net.run_for(Duration::from_secs(10));
    let (pictures, lines) = (net.stream(here, there, camera), net.stream(here, there, log));
    let (seen, read) = (net.delivered(seen), net.delivered(read));
    assert!(in_order(&seen) && in_order(&read));
    assert_eq!(pictures.drops.total(), pictures.drops.of(DropReason::Superseded));
    assert_eq!(seen.len() as u64 + pictures.drops.total(), 150);
    assert_eq!(seen.last().map(|sample| sample.seq), Some(149), "the newest arrives");
    assert_eq!(lines.drops.total(), lines.drops.of(DropReason::QueueFull));
    assert_eq!(read.len() as u64 + lines.drops.total(), 1_200);
    assert!(lines.drops.total() > 0 && read.first().is_some_and(|sample| sample.seq == 0));
}

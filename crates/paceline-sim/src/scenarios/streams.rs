//! Requests of subscriptions, and the resulting streams.

use super::{KNOWN_AFTER, in_order, pair, seqs};
use crate::ask::{Ask as _, Declare as _, all, data, payload, payloads, pictures};
use crate::handle::LinkPlan;
use crate::net::Net;
use paceline_sched::Duration;

/// Subscribers to one publisher at 30 Hz ask for at most 10 Hz, at most 20 Hz, and one sample in three. Each
/// receives its own rate, evenly spaced, and the publisher is unaware of it.
///
/// # Panics
/// Panics if this does not hold.
pub fn temporal_scaling(net: &mut dyn Net) {
    let (here, there) = pair(net, LinkPlan::default());
    let camera = net.publish(here, pictures("camera", 30, 900));
    let full = net.subscribe(there, all("camera"));
    let ten = net.subscribe(there, all("camera").max_hertz(10));
    let twenty = net.subscribe(there, all("camera").max_hertz(20));
    let third = net.subscribe(here, all("camera").one_in(3));
    net.run_for(KNOWN_AFTER);
    net.every(camera, Duration::from_secs(1).mul_div(1, 30), 90, payloads(900));
    net.run_for(Duration::from_secs(4));
    assert_eq!(seqs(&net.delivered(full)), (0..90).collect::<Vec<_>>());
    one_in(3, 90, seqs(&net.delivered(ten)));
    one_in(3, 90, seqs(&net.delivered(third)));
    let twenty = seqs(&net.delivered(twenty));
    assert!((60..=61).contains(&twenty.len()), "{}", twenty.len());
    let spread = twenty.windows(2).all(|pair| matches!(pair, [a, b] if b - a <= 2));
    assert!(spread, "{twenty:?}");
}

/// Checks that one in `n` of the first `all` samples arrived, and the first one, which may lie between two instants of the
/// others. Returns them.
fn one_in(n: u64, all: u64, seqs: Vec<u64>) -> Vec<u64> {
    let even = seqs.windows(2).skip(1).all(|pair| matches!(pair, [a, b] if b - a == n));
    let begin = matches!(seqs[..], [0, second, ..] if second <= n);
    let end = seqs.last().is_some_and(|last| last + n >= all);
    assert!(even && begin && end, "one in {n}: {seqs:?}");
    seqs
}

/// Subscriptions by full tag and by pattern receive exactly the matching samples.
///
/// # Panics
/// Panics if this does not hold.
pub fn patterns_match(net: &mut dyn Net) {
    let (here, there) = pair(net, LinkPlan::default());
    let tags = ["robot/a/camera", "robot/b/camera", "robot/a/arm/joint", "ship/camera"];
    let wanted = [
        ("robot/a/camera", 1),
        ("robot/*/camera", 2),
        ("robot/**", 3),
        ("**/camera", 3),
        ("**", 4),
        ("*/camera", 1),
        ("boat/**", 0),
    ];
    let publishers: Vec<_> = tags.iter().map(|tag| net.publish(here, data(tag))).collect();
    let ask = |net: &mut dyn Net, &(pattern, count)| (net.subscribe(there, all(pattern)), count);
    let subscribed: Vec<_> = wanted.iter().map(|wanted| ask(net, wanted)).collect();
    net.run_for(KNOWN_AFTER);
    for number in 0..5 {
        for &publisher in &publishers {
            net.put(publisher, payload(number, 100));
        }
        net.run_for(Duration::from_millis(20));
    }
    net.run_for(Duration::from_millis(500));
    for ((subscription, count), (pattern, _)) in subscribed.into_iter().zip(wanted) {
        assert_eq!(net.heard(subscription).len(), count, "{pattern}");
        assert_eq!(net.delivered(subscription).len(), count * 5, "{pattern}");
    }
}

/// The location of the scaling does not affect the delivered samples, but it affects the link: only a proxy
/// at the publisher saves bytes there.
///
/// # Panics
/// Panics if this does not hold.
pub fn proxy_places_give_the_same_samples(net: &mut dyn Net) {
    let (here, there) = pair(net, LinkPlan::default());
    let tags = ["near", "far"];
    let [near, far] = tags.map(|tag| net.publish(here, data(tag).hertz(30)));
    let at_publisher = net.subscribe(there, all("near").max_hertz(10));
    let at_subscriber = net.subscribe(there, all("far").max_hertz(10).scaled_here());
    net.run_for(KNOWN_AFTER);
    for publisher in [near, far] {
        net.every(publisher, Duration::from_secs(1).mul_div(1, 30), 90, payloads(1_000));
    }
    net.run_for(Duration::from_secs(4));
    let scaled = seqs(&net.delivered(at_publisher));
    let scaled = one_in(3, 90, scaled);
    // Both publish at about the same time, which may be in the middle between two instants of their grids.
    let others = one_in(3, 90, seqs(&net.delivered(at_subscriber)));
    assert!(scaled.len().abs_diff(others.len()) <= 1, "{scaled:?} {others:?}");
    assert_eq!(net.stream(here, there, near).bytes, 1_000 * scaled.len() as u64);
    assert_eq!(net.stream(here, there, far).bytes, 90_000);
}

/// A stream is thinned once at a node between publisher and subscribers, and shared behind it. The link before that node
/// carries all samples, and other places on the same tag do not disturb it.
///
/// # Panics
/// Panics if this does not hold.
pub fn a_named_proxy_scales_once_for_all_behind_it(net: &mut dyn Net) {
    let (source, mast) = (net.add_node("source"), net.add_node("mast"));
    let (one, other) = (net.add_node("leaf 1"), net.add_node("leaf 2"));
    net.connect(source, mast, LinkPlan::default());
    [one, other].iter().for_each(|&leaf| net.connect(mast, leaf, LinkPlan::default()));
    net.run_for(super::UP_AFTER);
    let sensor = net.publish(source, data("sensor").hertz(30));
    let third = || all("sensor").one_in(3);
    let thinned = [one, one, other].map(|leaf| net.subscribe(leaf, third().scaled_at("mast")));
    let near = net.subscribe(other, third());
    let promised = all("sensor").one_in(6).scaled_at("mast").within_ms(400);
    let promised = net.subscribe(other, promised);
    let nowhere = net.subscribe(other, third().scaled_at("nowhere"));
    net.run_for(KNOWN_AFTER);
    net.every(sensor, Duration::from_secs(1).mul_div(1, 30), 60, payloads(1_000));
    net.run_for(Duration::from_secs(3));
    let every_third = one_in(3, 60, seqs(&net.delivered(near)));
    for subscription in thinned {
        assert_eq!(seqs(&net.delivered(subscription)), every_third);
    }
    assert_eq!(seqs(&net.delivered(promised)), (0..10).map(|k| k * 6).collect::<Vec<_>>());
    assert!(net.delivered(nowhere).is_empty() && net.refusals(nowhere).len() == 1);
    assert_eq!(net.stream(mast, one, sensor).bytes, 1_000 * every_third.len() as u64);
}

/// Subscriptions with equal requests behind a hop share one stream, which also carries requests for a part of its
/// samples: one camera costs the link as much for all of them as for all samples alone.
///
/// # Panics
/// Panics if this does not hold.
pub fn one_stream_serves_all_behind_a_hop(net: &mut dyn Net) {
    let (source, middle) = (net.add_node("source"), net.add_node("middle"));
    let leaves = [net.add_node("leaf 1"), net.add_node("leaf 2")];
    net.connect(source, middle, LinkPlan::default());
    leaves.iter().for_each(|&leaf| net.connect(middle, leaf, LinkPlan::default()));
    net.run_for(super::UP_AFTER);
    let sensor = net.publish(source, data("sensor").hertz(50));
    let nodes = [middle, leaves[0], leaves[0], leaves[1]];
    let same = nodes.map(|node| net.subscribe(node, all("sensor")));
    net.run_for(KNOWN_AFTER);
    assert_eq!(net.streams(source, middle, sensor), 1);
    assert_eq!(net.streams(middle, leaves[0], sensor), 1);
    // Parts of the samples are carried by the stream of all.
    let slow = net.subscribe(leaves[1], all("sensor").one_in(5));
    let slower = net.subscribe(leaves[0], all("sensor").one_in(10));
    net.run_for(KNOWN_AFTER);
    assert_eq!(net.streams(source, middle, sensor), 1);
    assert_eq!(net.streams(middle, leaves[0], sensor), 1);
    net.every(sensor, Duration::from_millis(20), 50, payloads(500));
    net.run_for(Duration::from_secs(2));
    for subscription in same {
        let delivered = net.delivered(subscription);
        assert!(in_order(&delivered) && delivered.len() == 50, "{}", delivered.len());
    }
    one_in(5, 50, seqs(&net.delivered(slow)));
    one_in(10, 50, seqs(&net.delivered(slower)));
    assert_eq!(net.stream(source, middle, sensor).bytes, 50 * 500);
}

/// A stream stops once its last subscription ends; other streams continue undisturbed.
///
/// # Panics
/// Panics if this does not hold.
pub fn unsubscribing_stops_the_stream(net: &mut dyn Net) {
    let (here, there) = pair(net, LinkPlan::default());
    let sensor = net.publish(here, data("sensor"));
    let (leaving, staying) =
        (net.subscribe(there, all("sensor").one_in(2)), net.subscribe(there, all("**")));
    net.run_for(KNOWN_AFTER);
    net.every(sensor, Duration::from_millis(20), 200, payloads(100));
    net.run_for(Duration::from_secs(2));
    net.unsubscribe(leaving);
    net.run_for(KNOWN_AFTER);
    let (got, sent) = (net.delivered(leaving).len(), net.stream(here, there, sensor).sent);
    assert_eq!(net.streams(here, there, sensor), 1);
    net.run_for(Duration::from_secs(3));
    assert!((50..=150).contains(&got), "{got}");
    assert_eq!(net.delivered(leaving).len(), got);
    assert_eq!(seqs(&net.delivered(staying)), (0..200).collect::<Vec<_>>());
    net.unsubscribe(staying);
    net.run_for(KNOWN_AFTER);
    assert_eq!(net.streams(here, there, sensor), 0);
    net.put(sensor, payload(0, 100));
    net.run_for(KNOWN_AFTER);
    assert!(net.stream(here, there, sensor).sent >= sent);
    assert_eq!(net.delivered(staying).len(), 200);
}

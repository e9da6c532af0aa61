//! Tests of whole nodes in virtual time.

mod processor;

use super::*;
use crate::Sample;
use crate::deliver::{Fresh, SafeAction};
use crate::testkit::{TestLink, TestNetwork, publisher, subscription};
use core::num::NonZeroU32;
use paceline_proto::control::ControlOutput;
use paceline_proto::link::{Link, StreamSpec};
use paceline_proto::receive::Receiver;
use paceline_proto::{Encoding, Form, Kind, Rate, Size};
use paceline_sched::discipline::StreamIndex;
use paceline_sched::{Capacity, Duration, Late};

const SECOND: Duration = Duration::from_secs(1);

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn radio() -> TestLink {
    let capacity = Capacity::from_bits_per_s(1_000_000).ok();
    TestLink { capacity, delay: millis(3), loss_ppm: 0 }
}

/// Returns two connected nodes.
fn pair(link: TestLink) -> (TestNetwork, NodeId, NodeId) {
    let mut network = TestNetwork::new(1);
    let (a, b) = (network.add_node("a"), network.add_node("b"));
    network.connect(a, b, link);
    (network, a, b)
}

/// Publishes samples of 100 bytes, one per period.
fn publish(network: &mut TestNetwork, id: PublisherId, (samples, period): (u64, Duration)) {
    for _ in 0..samples {
        network.put(id, NewSample::data(vec![7; 100]));
        network.run_for(period);
    }
}

#[test]
fn a_contract_over_two_hops_is_granted_and_kept() {
    let (mut network, a, b) = pair(radio());
    let c = network.add_node("c");
    network.connect(b, c, radio());
    let spec = PublisherSpec {
        period: Some(millis(20)),
        bytes_max: Some(200),
        ..publisher("robot/steer")
    };
    let steer = network.publish(a, spec);
    let within = Some(millis(40));
    let sub = network.subscribe(c, SubscriptionSpec { within, ..subscription("robot/*") });
    network.run_for(secs(2));
    let granted = |event: &ControlOutput| matches!(event, ControlOutput::Granted { .. });
    assert!(network.take_events(c).iter().any(granted));
    publish(&mut network, steer, (100, millis(20)));
    network.run_for(SECOND);
    let samples = network.take(sub);
    assert!(samples.iter().map(|sample| sample.seq).eq(0..100));
    assert!(samples.iter().all(|sample| !sample.late && sample.age >= millis(6).into()));
    assert_eq!(network.node(c).account(sub).unwrap().offered, 100);
}

#[test]
fn each_sample_is_delivered_or_counted_next_to_losses_and_cuts() {
    let (mut network, a, b) = pair(TestLink { loss_ppm: 100_000, ..radio() });
    let id = network.publish(a, publisher("a/log"));
    let sub = network.subscribe(b, subscription("a/*"));
    let heard = |network: &mut TestNetwork| {
        let events = network.take_events(a);
        events.iter().any(|event| matches!(event, ControlOutput::Matching { .. }))
    };
    assert!(network.run_until(secs(10), heard));
    network.run_for(SECOND);
    publish(&mut network, id, (500, millis(5)));
    network.cut(a, b);
    publish(&mut network, id, (500, millis(5)));
    network.run_for(secs(3));
    network.restore(a, b);
    network.run_for(secs(10));
    publish(&mut network, id, (500, millis(5)));
    network.run_for(secs(3));
    let (read, node) = (network.take(sub).len() as u64, network.node(b));
    let (account, drops) =
        (node.account(sub).unwrap(), node.delivery(sub).unwrap().counts().drops());
    assert_eq!(account.offered, read + drops.total());
    assert_eq!(account.published, 1_500, "the first and the last one arrive");
    assert!((700..1_100).contains(&read), "{read}");
}

#[test]
fn the_status_shows_the_rate_and_the_health_of_a_subscription() {
    let (mut network, a, b) = pair(radio());
    let id = network.publish(a, publisher("a/pose"));
    let sub = network.subscribe(b, subscription("a/*"));
    network.run_for(SECOND);
    let row = |network: &mut TestNetwork| {
        let now = network.now();
        let node = network.node_mut(b);
        node.read_meters(now);
        node.status(now).subscriptions.remove(0)
    };
    row(&mut network);
    publish(&mut network, id, (50, millis(20)));
    let lively = row(&mut network);
    assert_eq!(lively.id, sub);
    assert!((45_000..=50_000).contains(&lively.rate_millihertz), "{}", lively.rate_millihertz);
    assert!(lively.age_max >= millis(3).into(), "{:?}", lively.age_max);
    assert!(lively.health.delivered >= 45, "{:?}", lively.health);
    network.run_for(SECOND);
    row(&mut network);
    network.run_for(SECOND);
    let quiet = row(&mut network);
    assert_eq!((quiet.rate_millihertz, quiet.delivered), (0, 50));
}

#[test]
fn equal_seeds_give_equal_runs() {
    let run = |seed| {
        let mut network = TestNetwork::new(seed);
        let (a, b) = (network.add_node("a"), network.add_node("b"));
        network.connect(a, b, TestLink { loss_ppm: 200_000, ..radio() });
        let id = network.publish(a, publisher("a/log"));
        let sub = network.subscribe(b, subscription("a/*"));
        network.run_for(secs(5));
        publish(&mut network, id, (200, millis(3)));
        let samples = network.take(sub).into_iter();
        samples.map(|sample| (sample.seq, sample.age)).collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_sample_that_is_read_late_is_late() {
    let (mut network, a, b) = pair(radio());
    let id = network.publish(a, publisher("a/pose"));
    network.run_for(SECOND);
    let within = Some(millis(20));
    let sub = network.subscribe(b, SubscriptionSpec { within, ..subscription("a/*") });
    network.run_for(SECOND);
    network.set_reading(sub, false);
    network.put(id, NewSample::data("x"));
    network.run_for(millis(50));
    network.set_reading(sub, true);
    let samples = network.take(sub);
    assert!(matches!(&samples[..], [sample] if sample.late));
    let counts = network.node(b).delivery(sub).unwrap().counts();
    assert_eq!((counts.late, counts.overdue), (0, 1));
}

#[test]
fn an_application_that_does_not_read_loses_the_oldest_samples() {
    let (mut network, a, b) = pair(TestLink::default());
    let id = network.publish(a, publisher("a/log"));
    let sub = network.subscribe(b, subscription("a/*"));
    network.run_for(SECOND);
    network.set_reading(sub, false);
    publish(&mut network, id, (1_100, millis(1)));
    network.run_for(SECOND);
    network.set_reading(sub, true);
    assert!(network.take(sub).iter().map(|sample| sample.seq).eq(76..1_100));
    let drops = network.node(b).delivery(sub).unwrap().counts().drops();
    assert_eq!((drops.of(DropReason::SubscriberFull), drops.total()), (76, 76));
}

#[test]
fn a_later_subscription_to_the_same_samples_gets_them_too() {
    let (mut network, a, b) = pair(TestLink::default());
    let id = network.publish(a, publisher("a/log"));
    let first = network.subscribe(b, subscription("a/*"));
    network.run_for(SECOND);
    publish(&mut network, id, (5, millis(10)));
    let second = network.subscribe(b, subscription("a/log"));
    network.run_for(SECOND);
    publish(&mut network, id, (5, millis(10)));
    let now = network.now();
    network.node_mut(b).unsubscribe(now, first);
    network.run_for(SECOND);
    publish(&mut network, id, (5, millis(10)));
    network.run_for(SECOND);
    let seqs = |samples: Vec<Sample>| samples.iter().map(|sample| sample.seq).collect::<Vec<_>>();
    assert_eq!(seqs(network.take(first)), (0..10).collect::<Vec<_>>());
    assert_eq!(seqs(network.take(second)), (5..15).collect::<Vec<_>>());
    assert!(network.node_mut(b).remove(now, second).is_some());
    assert!(network.node(b).delivery(second).is_none());
}

/// The first sample is sent with the announcement of its publisher, so it arrives before its outputs exist.
#[test]
fn samples_that_are_faster_than_control_wait_for_their_outputs() {
    let (mut network, a, b) = pair(TestLink { delay: millis(3), ..TestLink::default() });
    let sub = network.subscribe(b, subscription("a/*"));
    network.run_for(SECOND);
    let id = network.publish(a, publisher("a/pose"));
    network.run_for(Duration::ZERO);
    network.put(id, NewSample::data("x"));
    network.run_for(millis(5));
    assert_eq!(network.take(sub).len(), 1);
    assert_eq!((network.node(b).waiting(id), network.node(b).unrouted().total()), (0, 0));
}

/// The path changes from one with a long delay to another one: its last sample arrives after newer ones, and is counted.
#[test]
fn a_sample_of_a_former_path_arrives_late_and_counts_once() {
    let mut network = TestNetwork::new(1);
    let [a, b, c, d, e] = ["a", "b", "c", "d", "e"].map(|name| network.add_node(name));
    let long = TestLink { delay: millis(1_900), ..TestLink::default() };
    network.connect(a, b, TestLink::default());
    network.connect(b, d, long);
    for (one, other) in [(a, c), (c, e), (e, d)] {
        network.connect(one, other, TestLink::default());
    }
    let id = network.publish(a, publisher("a/pose"));
    let sub = network.subscribe(d, subscription("a/*"));
    network.run_for(secs(30));
    network.put(id, NewSample::data("0"));
    network.run_for(secs(3));
    let samples = network.take(sub);
    assert!(matches!(&samples[..], [sample] if sample.age >= millis(1_900).into()), "{samples:?}");
    // The second sample is under way when the path is cut before it, and others take the new one.
    network.put(id, NewSample::data("1"));
    network.run_for(millis(1));
    network.cut(a, b);
    publish(&mut network, id, (300, millis(10)));
    network.run_for(secs(3));
    let seqs: Vec<_> = network.take(sub).iter().map(|sample| sample.seq).collect();
    assert!(seqs.is_sorted() && !seqs.contains(&1), "{seqs:?}");
    let counts = network.node(d).delivery(sub).unwrap().counts();
    assert_eq!(counts.drops().of(DropReason::Superseded), 1, "{counts:?}");
    assert_eq!(network.node(d).unrouted().of(DropReason::NoRoute), 0);
}

/// While the subscription changes, two streams carry samples: the first one of the new form ends the old output.
#[test]
fn a_changed_subscription_gets_each_sample_once() {
    let (mut network, a, b) = pair(radio());
    let spec = PublisherSpec { period: Some(millis(10)), ..publisher("a/pose") };
    let id = network.publish(a, spec);
    let sub = network.subscribe(b, subscription("a/*"));
    network.run_for(SECOND);
    publish(&mut network, id, (100, millis(10)));
    let now = network.now();
    let form = Form { rate: Rate::every(NonZeroU32::new(4).unwrap()), ..Form::FULL };
    let spec = SubscriptionSpec { form, ..subscription("a/*") };
    network.node_mut(b).control_mut().change_subscription(now, sub, &spec);
    publish(&mut network, id, (100, millis(10)));
    network.run_for(SECOND);
    let events = network.take_events(b);
    let changed = |event: &ControlOutput| matches!(event, ControlOutput::InForce { .. });
    assert!(events.iter().any(changed), "{events:?}");
    let seqs: Vec<_> = network.take(sub).iter().map(|sample| sample.seq).collect();
    assert!(seqs.windows(2).all(|pair| pair[0] < pair[1]), "{seqs:?}");
    let first = seqs.windows(2).position(|pair| pair[1] > pair[0] + 1).unwrap();
    assert!((99..110).contains(&first), "all before the change: {seqs:?}");
    let thinned = |pair: &[u64]| (3..=5).contains(&(pair[1] - pair[0]));
    assert!(seqs[first + 1..].windows(2).all(thinned), "{seqs:?}");
    let counts = network.node(b).delivery(sub).unwrap().counts();
    assert_eq!(counts.drops().total(), 0, "{counts:?}");
}

/// The publisher changes the treatment of late samples while the port to the subscription exists.
#[test]
fn a_new_treatment_of_late_samples_counts_at_the_subscriber() {
    let (mut network, a, b) = pair(TestLink { delay: millis(9), ..radio() });
    let spec = PublisherSpec { late: Late::Send, ..publisher("a/pose") };
    let id = network.publish(a, spec.clone());
    let within = Some(millis(5));
    let sub = network.subscribe(b, SubscriptionSpec { within, ..subscription("a/*") });
    network.run_for(SECOND);
    network.put(id, NewSample::data("x"));
    network.run_for(SECOND);
    assert!(matches!(&network.take(sub)[..], [sample] if sample.late));

    let now = network.now();
    let spec = PublisherSpec { late: Late::Drop, ..spec };
    network.node_mut(a).update_publisher(now, id, spec);
    network.run_for(SECOND);
    network.put(id, NewSample::data("y"));
    network.run_for(SECOND);
    assert!(network.take(sub).is_empty());
    let drops = network.node(b).delivery(sub).unwrap().counts().drops();
    assert_eq!(drops.of(DropReason::DeadlineMissed), 1, "{drops:?}");
}

#[test]
fn commands_that_stop_fall_silent_and_the_safe_action_is_read() {
    let (mut network, a, b) = pair(radio());
    let id = network.publish(a, publisher("a/speed"));
    let now = network.now();
    let timing = DeliveryTiming::Fresh(Fresh::new(millis(100), SafeAction::Zero));
    let spec = SubscriptionSpec { proves: true, ..subscription("a/*") };
    let sub = network.node_mut(b).subscribe_timed(now, spec, (16, timing));
    network.run_for(SECOND);
    network.put(id, NewSample::data("1"));
    network.run_for(millis(20));
    let waits = network.node(b).delivery(sub).unwrap().poll_timeout();
    assert!(waits.is_some_and(|at| at > network.now()), "{waits:?}");
    network.run_for(SECOND);
    let samples = network.take(sub);
    assert_eq!(samples.len(), 2, "the command, and the safe action");
    assert_eq!(network.node(b).delivery(sub).unwrap().fresh().unwrap().decisions().silences, 1);
}

/// One subscription has a contract, so its pictures are scaled first.
#[test]
fn scaled_samples_are_jobs_of_the_driver() {
    let mut node = Node::new(NodeId(1), "a");
    node.keep_accounts();
    let now = Instant::from_millis(1_000);
    let camera = PublisherSpec {
        kind: Kind::Picture,
        encoding: Encoding::Jpeg,
        size: Some(Size { width: 64, height: 48 }),
        ..publisher("a/camera")
    };
    let camera = node.publish(now, camera);
    let small = |width| Form { size: Some(Size { width, height: 12 }), ..Form::FULL };
    let subs = [16, 32].map(|width| {
        let within = (width == 32).then_some(millis(50));
        let spec = SubscriptionSpec { form: small(width), within, ..subscription("a/*") };
        node.subscribe(now, spec, 4)
    });
    while node.poll_output(now).is_some() {}
    let picture = || NewSample { kind: Kind::Picture, ..NewSample::data(vec![7; 3_072]) };
    node.handle_put(now, camera, picture());
    let job = node.poll_scale().unwrap();
    assert_eq!(job.scaler.form, small(32));
    let other = node.poll_scale().unwrap();
    assert_eq!((other.scaler.form, node.is_scaling(other.scaler)), (small(16), true));
    assert!(node.poll_scale().is_none());
    // A second picture waits for the result of the first one, and a third one displaces it where nothing is promised.
    node.handle_put(now, camera, picture());
    node.handle_put(now, camera, picture());
    assert!(node.poll_scale().is_none());
    let later = now + millis(2);
    let scaled = RawSample { payload: vec![1; 10].into(), ..job.sample };
    node.handle_scaled(later, job.scaler, Ok(scaled));
    node.handle_scaled(later, other.scaler, Err(DropReason::CannotScale));
    let read = |node: &mut Node, sub| {
        std::iter::from_fn(|| node.read(later, sub))
            .map(|taken| taken.sample.seq)
            .collect::<Vec<_>>()
    };
    assert_eq!((read(&mut node, subs[1]), read(&mut node, subs[0])), (vec![0], vec![]));
    let drops = node.delivery(subs[0]).unwrap().counts().drops();
    assert_eq!((drops.of(DropReason::CannotScale), drops.of(DropReason::ScalerBusy)), (1, 1));
    assert_eq!(node.poll_scale().map(|job| job.sample.seq), Some(1));
    assert_eq!(node.poll_scale().map(|job| job.sample.seq), Some(2));
}

/// The neighbour speaks the protocol, but is not on the path of the stream.
#[test]
fn samples_in_the_name_of_another_publisher_reach_nobody() {
    let (mut network, a, b) = pair(TestLink::default());
    let id = network.publish(a, publisher("a/pose"));
    let sub = network.subscribe(b, subscription("a/*"));
    network.run_for(SECOND);
    let intruder = NodeId(9);
    let mut link = Link::new(LinkSpec::default());
    let mut receiver = Receiver::default();
    let mut frame = FrameBuf::default();
    let mut now = network.now();
    link.add_hop(now, b, 7);
    let index = network.node_mut(b).add_link("intruder", LinkSpec::default());
    for step in 0..200_u64 {
        network.run_for(millis(1));
        now = network.now();
        if step == 100 {
            let spec = StreamSpec::best_effort(id, b, Form::FULL, Kind::Data);
            assert!(link.open_stream(StreamIndex(0), spec));
            let forged = RawSample { seq: 5, published_at: now, ..RawSample::default() };
            link.handle_sample(now, StreamIndex(0), forged);
        }
        link.handle_timeout(now);
        while link.poll_event().is_some() {}
        while link.poll_frame(now, &mut frame).is_some() {
            network.node_mut(b).handle_frame(now, index, intruder, frame.to_bytes());
        }
        while let Some(output) = network.node_mut(b).poll_output(now) {
            let NodeOutput::Frame { link: 1, frame, .. } = output else { continue };
            let epoch = link.epoch(b);
            let heard = receiver.handle_frame(now, epoch, frame, |_| {}).unwrap();
            link.handle_heard(now, b, &heard);
        }
    }
    assert!(network.take(sub).is_empty());
    let source = SourceKey { publisher: id, form: Form::FULL };
    let node = network.node(b);
    let accounts = node.accounts().unwrap();
    assert_eq!(accounts.arrived(intruder, source).whole, 1, "it has arrived");
    assert_eq!((accounts.unrouted(id), node.unrouted().of(DropReason::NoRoute)), (1, 1));
    // The genuine publisher is not affected.
    network.put(id, NewSample::data("x"));
    network.run_for(SECOND);
    assert!(matches!(&network.take(sub)[..], [sample] if sample.seq == 0));
}

#[test]
fn a_node_states_why_it_wakes_up() {
    let now = Instant::from_millis(1_000);
    let mut node = Node::new(NodeId(1), "a");
    assert_eq!(node.poll_timeout().reason, WakeReason::Input);
    while node.poll_output(now).is_some() {}
    assert_eq!(node.poll_timeout(), Wakeup { at: now + millis(250), reason: WakeReason::Use });
    node.set_reports(false);
    while node.poll_output(now).is_some() {}
    assert_eq!(node.poll_timeout(), Wakeup { at: Instant::FAR, reason: WakeReason::Idle });
    let link = node.add_link("cable", LinkSpec::default());
    assert!(node.handle_neighbour(now, link, NodeId(2)));
    assert!(!node.handle_neighbour(now, link, NodeId(2)), "it is known");
    assert_eq!(node.poll_timeout(), Wakeup { at: Instant::ZERO, reason: WakeReason::Input });
    assert!(frames_of(&mut node, now).len() == 1, "a greeting");
    let wake = node.poll_timeout();
    assert_eq!(wake.reason, WakeReason::Link(link));
    assert!(wake.at > now && wake.at < Instant::FAR);
    assert!(node.poll_output(now).is_none(), "nothing is due");
    node.handle_frame(now, link, NodeId(2), Bytes::from_static(b"no frame"));
    assert_eq!((node.malformed(), node.poll_timeout().reason), (1, WakeReason::Input));
}

/// A neighbour that sends garbage is muted for some seconds, and the others notice nothing.
#[test]
fn a_neighbour_that_sends_invalid_frames_is_not_read_for_a_while() {
    let (mut network, a, b) = pair(radio());
    let id = network.publish(a, publisher("a/pose"));
    let sub = network.subscribe(b, subscription("a/*"));
    network.run_for(SECOND);
    let (hostile, mut now) = (NodeId(9), network.now());
    let node = network.node_mut(b);
    let link = node.add_link("hostile", LinkSpec::default());
    let flood = |node: &mut Node, now, frames| {
        (0..frames).for_each(|_| _ = node.handle_frame(now, link, hostile, vec![255; 9].into()));
        node.malformed()
    };
    let read = flood(node, now, 100_000);
    assert!((30_000..50_000).contains(&read), "{read}");
    let outputs: Vec<_> = std::iter::from_fn(|| node.poll_output(now)).collect();
    let muted = outputs
        .iter()
        .filter(|it| matches!(it, NodeOutput::Muted { from, .. } if *from == hostile));
    assert_eq!(muted.count(), 1, "it is reported once");
    now += secs(9);
    assert_eq!(flood(node, now, 1), read + 1, "it is read again");

    network.put(id, NewSample::data("x"));
    network.run_for(SECOND);
    assert_eq!(network.take(sub).len(), 1);
}

/// Returns the frames that a node sends now.
fn frames_of(node: &mut Node, now: Instant) -> Vec<Bytes> {
    let outputs = std::iter::from_fn(|| node.poll_output(now));
    let frames = outputs.filter_map(|output| match output {
        NodeOutput::Frame { frame, .. } => Some(frame),
        NodeOutput::Control(_)
        | NodeOutput::Silence(..)
        | NodeOutput::StreamClosed(_)
        | NodeOutput::Muted { .. }
        | NodeOutput::NoStream { .. } => None,
    });
    frames.collect()
}

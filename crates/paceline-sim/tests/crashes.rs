//! Nodes that crash and restart, in virtual time.

use paceline_proto::Carrier;
use paceline_proto::control::PublisherSpec;
use paceline_proto::link::LinkSpec;
use paceline_sched::{Capacity, Duration};
use paceline_sim::ask::{Ask as _, Declare as _, all, data, payloads};
use paceline_sim::{LinkPlan, Net as _, NodeIx, WireSpec, World};

const SECOND: Duration = Duration::from_secs(1);
const TWO: Duration = Duration::from_secs(2);

/// Creates a chain `a`, `b`, `c` with all links up, at `bits` bit/s each; 0 means unlimited.
fn chain(seed: u64, bits: u64) -> (World, [NodeIx; 3]) {
    let mut world = World::new(seed);
    let nodes = ["a", "b", "c"].map(|name| world.add_node(name));
    let plan = LinkPlan { capacity: Capacity::from_bits_per_s(bits).ok() };
    world.connect(nodes[0], nodes[1], plan);
    world.connect(nodes[1], nodes[2], plan);
    world.run_for(Duration::from_secs(2));
    (world, nodes)
}

#[test]
fn streams_resume_within_two_seconds_of_a_return() {
    for bits in [0, 5_000_000] {
        for (crashed, away) in [(0, 100), (0, 5_000), (1, 100), (1, 1_000), (1, 40_000), (2, 3_000)]
        {
            let (mut world, nodes) = chain(1, bits);
            let sensor = world.publish(nodes[0], data("sensor").hertz(50));
            let end = world.subscribe(nodes[2], all("sensor"));
            world.run_for(SECOND);
            world.every(sensor, Duration::from_millis(20), 10_000, payloads(200));
            world.run_for(Duration::from_secs(3));
            let (node, before) = (nodes[crashed], world.delivered(end).len());
            let id = (world.node_id(node), world.id(sensor));
            assert!(before >= 149, "{before}");
            world.crash(node);
            assert!(world.is_down(node));
            world.run_for(Duration::from_millis(away));
            let during = world.delivered(end).len();
            assert!(during <= before + 1, "{crashed}: {during} from {before}");
            world.restart(node);
            assert!(world.node_id(node) != id.0, "it is another incarnation");
            assert_eq!(world.id(sensor) != id.1, crashed == 0);
            world.run_for(Duration::from_secs(2));
            let again = world.delivered(end).len();
            world.run_for(SECOND);
            let got = world.delivered(end).len() - again;
            assert!((49..=51).contains(&got), "{bits}, node {crashed}, {away} ms away: {got}");
            assert_eq!(world.heard(end), [world.id(sensor)]);
            assert_eq!(world.known(nodes[0]), ["a", "b", "c"]);
            assert!(world.matching(sensor) && world.streams(nodes[0], nodes[1], sensor) == 1);
        }
    }
}

#[test]
fn a_subscription_keeps_its_samples_and_handle() {
    let (mut world, [a, _, c]) = chain(2, 0);
    let (sensor, other) = (world.publish(a, data("sensor")), world.publish(a, data("other")));
    let (end, removed) = (world.subscribe(c, all("sensor")), world.subscribe(c, all("sensor")));
    world.run_for(SECOND);
    world.every(sensor, Duration::from_millis(10), 100, payloads(50));
    world.run_for(TWO);
    world.unsubscribe(removed);
    world.unpublish(other);
    world.crash(c);
    world.crash(a);
    world.crash(a); // a second crash changes nothing
    assert_eq!((world.delivered(end).len(), world.delivered(removed).len()), (100, 100));
    assert!(world.heard(end).is_empty() && !world.matching(sensor));
    // A publisher or subscription added while its node is down starts with the node. Samples published there
    // are lost.
    let late = world.publish(a, data("late"));
    let all_of_it = world.subscribe(c, all("**"));
    world.every(sensor, Duration::from_millis(10), 100, payloads(50));
    world.run_for(TWO);
    assert_eq!(world.delivered(end).len(), 100);
    world.restart(a);
    world.restart(c);
    world.run_for(TWO);
    assert_eq!(
        world.known_ends(a),
        (2, 2),
        "neither the publisher nor the subscription that ended"
    );
    world.every(sensor, Duration::from_millis(10), 100, payloads(50));
    world.every(late, Duration::from_millis(10), 100, payloads(50));
    world.run_for(TWO);
    let seqs: Vec<u64> = world.delivered(end).iter().map(|sample| sample.seq).collect();
    let expected: Vec<u64> = (0..100).chain(0..100).collect();
    assert_eq!(seqs, expected, "a new publisher begins at 0");
    assert_eq!(world.delivered(removed).len(), 100);
    assert_eq!(world.delivered(all_of_it).len(), 200);
}

#[test]
fn contracts_are_kept_again_after_a_crash_on_the_path() {
    let (mut world, [a, b, c]) = chain(3, 5_000_000);
    let spec = PublisherSpec { bytes_max: Some(200), ..data("steering") };
    let steering = world.publish(a, spec.hertz(100));
    let end = world.subscribe(c, all("steering").within_ms(20));
    world.run_for(SECOND);
    world.every(steering, Duration::from_millis(10), 2_000, payloads(200));
    world.run_for(Duration::from_secs(2));
    world.crash(b);
    world.run_for(Duration::from_millis(300));
    world.restart(b);
    world.run_for(Duration::from_secs(2));
    let before = world.delivered(end).len();
    world.run_for(Duration::from_secs(5));
    let since = &world.delivered(end)[before..];
    assert!(since.len() >= 499 && since.iter().all(|sample| !sample.late), "{}", since.len());
}

#[test]
fn frames_for_a_previous_incarnation_reach_nobody() {
    let (mut world, [a, b, _]) = chain(4, 0);
    let sensor = world.publish(a, data("sensor"));
    let end = world.subscribe(b, all("sensor"));
    world.run_for(SECOND);
    world.every(sensor, Duration::from_millis(1), 3_000, payloads(100));
    world.run_for(SECOND);
    let lost = world.wire(a, b).lost;
    world.crash(b);
    world.restart(b);
    world.run_for(SECOND);
    assert!(world.wire(a, b).lost > lost, "the neighbour has not detected it yet");
    assert_eq!(world.malformed(b), 0);
    world.run_for(Duration::from_secs(2));
    assert!(world.delivered(end).len() > 2_000);
}

#[test]
fn a_subscription_without_a_queue_still_counts() {
    let (mut world, [a, _, c]) = chain(5, 0);
    let sensor = world.publish(a, data("sensor"));
    let kept = world.subscribe(c, all("sensor").within_ms(1_000));
    world.keep_deliveries(false);
    let counted = world.subscribe(c, all("sensor").within_ms(1_000));
    world.run_for(SECOND);
    world.every(sensor, Duration::from_millis(10), 100, payloads(50));
    world.run_for(TWO);
    assert_eq!((world.delivered(kept).len(), world.delivered(counted).len()), (100, 0));
    assert_eq!(world.counted(kept), world.counted(counted));
    let oldest = world.delivered(kept).iter().map(|sample| sample.age).max();
    let sums = world.counted(counted);
    assert_eq!((sums.samples, sums.bytes, sums.late), (100, 5_000, 0));
    assert_eq!(Some(sums.ages.max()), oldest);
}

/// A neighbour that is gone does not acknowledge the frames in flight to it. The others on the same link get their samples in
/// time.
#[test]
fn a_crash_delays_no_contract_of_another_neighbour_on_the_same_link() {
    let capacity = Capacity::from_bits_per_s(2_000_000).ok();
    let radio = || LinkSpec { capacity, ..LinkSpec::default() };
    for (phase, carrier) in
        (0..20).flat_map(|n| [Carrier::Ordered, Carrier::Datagrams].map(|it| (n, it)))
    {
        let mut world = World::new(phase);
        let [robot, gone, operator] =
            ["robot", "gone", "operator"].map(|name| world.add_node(name));
        let spec = || LinkSpec { carrier, ..radio() };
        let out = world.add_link(robot, "radio", spec());
        for node in [gone, operator] {
            let back = world.add_link(node, "radio", spec());
            world.join(out, back, WireSpec::limited(capacity), WireSpec::limited(capacity));
        }
        world.run_for(TWO);
        let camera = world
            .publish(robot, PublisherSpec { bytes_max: Some(1_000), ..data("camera").hertz(100) });
        let pose =
            world.publish(robot, PublisherSpec { bytes_max: Some(200), ..data("pose").hertz(50) });
        world.subscribe(gone, all("camera").within_ms(100));
        let wanted = world.subscribe(operator, all("pose").within_ms(50));
        world.run_for(TWO);
        assert_eq!(world.grants(wanted).len(), 1);
        world.every(camera, Duration::from_millis(10), 400, payloads(1_000));
        world.every(pose, Duration::from_millis(20), 200, payloads(200));
        world.run_for(Duration::from_millis(1_000 + phase));
        world.crash(gone);
        world.run_for(Duration::from_secs(4));
        let counted = world.counted(wanted);
        assert_eq!((counted.samples, counted.late), (200, 0), "{phase} ms, {carrier:?}");
    }
}

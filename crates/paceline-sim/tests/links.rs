//! Links in virtual time: load, stalls, loss and limits.

use paceline_proto::Carrier;
use paceline_proto::control::PublisherSpec;
use paceline_proto::link::LinkSpec;
use paceline_sched::{Capacity, Duration, Instant};
use paceline_sim::ask::{Ask as _, Declare as _, all, data, payloads, pictures};
use paceline_sim::impair::Impairment;
use paceline_sim::{LinkPlan, NodeIx, Pub, Sub, WireSpec, World};

fn capacity(bits: u64) -> Option<Capacity> {
    Capacity::from_bits_per_s(bits).ok()
}

/// Creates a node that sends over one link to each of `ends`.
fn star(seed: u64, ends: usize, capacity: Option<Capacity>) -> (World, NodeIx, Vec<NodeIx>) {
    let mut world = World::new(seed);
    let hub = world.add_node("hub");
    let spec = LinkSpec { capacity, ..LinkSpec::default() };
    let out = world.add_link(hub, "out", spec);
    let nodes: Vec<NodeIx> = (0..ends).map(|k| world.add_node(&format!("end {k}"))).collect();
    for &node in &nodes {
        let back = world.add_link(node, "back", LinkSpec::default());
        world.join(out, back, WireSpec::limited(capacity), WireSpec::default());
    }
    (world, hub, nodes)
}

/// Adds a publisher of data on the hub for each end, and a subscription at the end.
fn feed(world: &mut World, hub: NodeIx, ends: &[NodeIx]) -> (Vec<Pub>, Vec<Sub>) {
    let tags: Vec<String> = (0..ends.len()).map(|k| format!("feed/{k}")).collect();
    let publishers = tags.iter().map(|tag| world.publish(hub, data(tag).hertz(100))).collect();
    let each = ends.iter().zip(&tags);
    let subscriptions = each.map(|(&end, tag)| world.subscribe(end, all(tag))).collect();
    world.run_for(Duration::from_secs(2));
    (publishers, subscriptions)
}

#[test]
fn control_crosses_a_satellite_link_under_load() {
    let rate = capacity(10_000_000);
    let delay = Duration::from_millis(300);
    for datagrams in [false, true] {
        let wire = Impairment { rate, delay, ..Impairment::NONE };
        let (wire, carrier) = match datagrams {
            false => (WireSpec::reliable(wire), Carrier::Ordered),
            true => (WireSpec::datagrams(wire), Carrier::Datagrams),
        };
        let mut world = World::new(3);
        let (here, there) = (world.add_node("here"), world.add_node("there"));
        let spec = LinkSpec { capacity: rate, carrier, ..LinkSpec::default() };
        let (out, back) =
            (world.add_link(here, "out", spec.clone()), world.add_link(there, "back", spec));
        world.join(out, back, wire, wire);
        let feed = world.publish(here, data("feed").hertz(100));
        let got = world.subscribe(there, all("feed"));
        world.every(feed, Duration::from_millis(10), 3_000, payloads(1_000));
        world.run_for(Duration::from_secs(15));
        // Added only now, with dozens of frames in flight.
        let late = world.publish(here, data("late").hertz(10));
        let got_late = world.subscribe(there, all("late"));
        world.run_for(Duration::from_secs(5));
        world.every(late, Duration::from_millis(100), 50, payloads(100));
        world.run_for(Duration::from_secs(15));
        let (first, second) = (world.delivered(got).len(), world.delivered(got_late).len());
        println!("datagrams: {datagrams}: {first} of 3000, {second} of 50");
        assert!(first > 2_000, "{first}");
        assert_eq!(second, 50, "datagrams: {datagrams}");
    }
}

#[test]
fn a_stalled_node_costs_others_nothing() {
    for limit in [None, capacity(20_000_000)] {
        let (mut world, hub, ends) = star(1, 3, limit);
        let (publishers, subscriptions) = feed(&mut world, hub, &ends);
        for &publisher in &publishers {
            world.every(publisher, Duration::from_millis(10), 1_000, payloads(1_000));
        }
        world.run_for(Duration::from_secs(2));
        world.stall(ends[0]);
        world.run_for(Duration::from_secs(9));
        for &subscription in &subscriptions[1..] {
            let delivered = world.delivered(subscription);
            let worst = delivered.iter().map(|sample| sample.age).max().unwrap();
            println!("{limit:?}: {} delivered, at worst after {worst}", delivered.len());
            assert_eq!(delivered.len(), 1_000);
            // With a capacity, the stalled hop occupies the window until it is detected as stalled.
            let bound = if limit.is_none() { 2 } else { 200 };
            assert!(worst <= Duration::from_millis(bound), "{limit:?}: {worst}");
        }
        let before = world.delivered(subscriptions[0]).len();
        assert!(before < 250, "{before}");
        world.resume(ends[0]);
        world.run_for(Duration::from_secs(2));
        world.every(publishers[0], Duration::from_millis(10), 100, payloads(1_000));
        world.run_for(Duration::from_secs(2));
        assert!(world.delivered(subscriptions[0]).len() >= before + 100, "it continues");
    }
}

#[test]
fn a_link_without_capacity_keeps_a_bounded_window() {
    let (mut world, hub, ends) = star(2, 1, None);
    let (publishers, _) = feed(&mut world, hub, &ends);
    world.every(publishers[0], Duration::from_millis(1), 5_000, payloads(200_000));
    world.run_for(Duration::from_secs(2));
    world.stall(ends[0]);
    world.run_for(Duration::from_millis(1_500));
    // 12 frames of data, 3 of control, and a probe every 100 ms.
    let in_flight = world.wire(hub, ends[0]).in_flight_max;
    assert!(in_flight <= 12 + 3 + 16, "{in_flight}");
    world.resume(ends[0]);
    world.run_for(Duration::from_secs(1));
}

#[test]
fn a_backlogged_link_is_busy_and_never_exceeds_its_capacity() {
    let limit = capacity(2_000_000).unwrap();
    let (mut world, hub, ends) = star(3, 1, Some(limit));
    world.keep_log(hub, ends[0]);
    let (publishers, _) = feed(&mut world, hub, &ends);
    world.every(publishers[0], Duration::from_millis(4), 5_000, payloads(1_500));
    let (start, before) = (world.now(), world.wire(hub, ends[0]).bytes);
    world.run_for(Duration::from_secs(10));
    let used = world.wire(hub, ends[0]).bytes - before;
    println!("used {} %", used * 100 / 2_500_000);
    assert!(used >= 2_375_000, "{used}");
    assert!(world.wire(hub, ends[0]).queued_max <= Duration::from_millis(1));
    let log: Vec<(Instant, u64)> =
        world.log(hub, ends[0]).iter().copied().filter(|&(at, _)| at >= start).collect();
    // In any interval: capacity × time, the frame that begins it, and 1 ms of catch-up.
    for (place, &(from, _)) in log.iter().enumerate().step_by(7) {
        let mut sum = 0;
        for &(at, bytes) in log.iter().skip(place).take(400) {
            sum += bytes;
            let most = limit.bytes_in(at.since(from)) + 1_280 + 250 + 80;
            assert!(sum <= most, "{sum} bytes from {from} to {at}");
        }
    }
}

#[test]
fn a_link_is_fully_used_while_its_slower_return_path_is_full() {
    // Frames take 162 ms, so every acknowledgement waits for the frame in transmission and is sent with the
    // next one.
    let (mut world, limits) = (World::new(7), [capacity(256_000), capacity(64_000)]);
    let (a, b) = (world.add_node("a"), world.add_node("b"));
    let links = [(a, "there", limits[0]), (b, "back", limits[1])].map(|(node, name, capacity)| {
        world.add_link(node, name, LinkSpec { capacity, ..LinkSpec::default() })
    });
    world.join(links[0], links[1], WireSpec::limited(limits[0]), WireSpec::limited(limits[1]));
    for (from, to, tag) in [(a, b, "there"), (b, a, "back")] {
        let publisher = world.publish(from, data(tag).hertz(50));
        world.subscribe(to, all(tag));
        world.every(publisher, Duration::from_millis(20), 3_500, payloads(800));
    }
    world.run_for(Duration::from_secs(8));
    let before = world.wire(a, b).bytes;
    world.run_for(Duration::from_secs(60));
    let used = world.wire(a, b).bytes - before;
    println!("used {used} of 1920000 bytes");
    // The link counts 20 bytes more per frame than the wire.
    assert!(used >= 1_860_000, "{used}");
    assert!(world.wire(a, b).queued_max <= Duration::from_millis(1));
}

#[test]
fn a_flood_of_control_takes_no_more_than_its_share() {
    let (mut world, hub, ends) = star(4, 1, capacity(2_000_000));
    let steering = PublisherSpec { bytes_max: Some(64), ..data("steering") }.hertz(100);
    let steering = world.publish(hub, steering);
    let commands = world.subscribe(ends[0], all("steering").within_ms(20));
    world.run_for(Duration::from_secs(2));
    let before = world.wire(hub, ends[0]).bytes;
    world.every(steering, Duration::from_millis(10), 500, payloads(64));
    for number in 0..2_000 {
        world.publish(hub, data(&format!("a/tag/that/is/long/enough/to/cost/something/{number}")));
    }
    world.run_for(Duration::from_secs(5));
    let delivered = world.delivered(commands);
    let worst = delivered.iter().map(|sample| sample.age).max().unwrap();
    let used = world.wire(hub, ends[0]).bytes - before;
    println!("flood: steering at worst {worst}, {used} bytes");
    assert_eq!(delivered.len(), 500);
    // The frame in transmission, one control frame, and its own frame.
    assert!(worst <= Duration::from_micros(2 * 5_120 + 1_500), "{worst}");
    // 5 % or one frame per 20 ms, and 500 commands.
    assert!(used <= 1_280 * 255 + 500 * 250, "{used}");
}

#[test]
fn lost_frames_cost_only_their_own_samples() {
    for per_mille in [10, 100, 300] {
        let mut world = World::new(u64::from(per_mille));
        let (here, there) = (world.add_node("here"), world.add_node("there"));
        world.connect(here, there, LinkPlan { capacity: capacity(10_000_000) });
        let sensor = world.publish(here, data("sensor").hertz(100));
        let camera = world.publish(here, pictures("camera", 10, 20_000));
        let read = world.subscribe(there, all("sensor"));
        let seen = world.subscribe(there, all("camera"));
        world.run_for(Duration::from_secs(2));
        world.set_loss(here, there, per_mille);
        world.every(sensor, Duration::from_millis(10), 3_000, payloads(100));
        world.every(camera, Duration::from_millis(100), 300, payloads(20_000));
        world.run_for(Duration::from_secs(31));
        let (read, seen) = (world.delivered(read).len(), world.delivered(seen).len());
        println!("{per_mille} in 1000 lost: {read} of 3000 commands, {seen} of 300 pictures");
        let kept = 1_000 - per_mille as usize;
        // Samples sent before the other end knows the stream are lost too.
        assert!(read >= 3_000 * kept / 1_000 * 85 / 100, "{read}");
        // A picture has 17 frames, so hardly any is complete at 30 % loss.
        assert!(read < 3_000 && seen >= if per_mille > 100 { 1 } else { 20 }, "{seen}");
        world.set_loss(here, there, 0);
        world.run_for(Duration::from_secs(6));
        assert_eq!(world.control(here).nodes().count(), 2);
        world.every(sensor, Duration::from_millis(10), 100, payloads(100));
        world.run_for(Duration::from_secs(2));
        assert!(world.delivered(Sub(0)).len() >= read + 100, "no credit is lost permanently");
    }
}

#[test]
fn a_long_path_is_fully_used() {
    for delay in [1, 5, 20, 100] {
        let mut world = World::new(5);
        let (here, there) = (world.add_node("here"), world.add_node("there"));
        let limit = capacity(2_000_000);
        let spec = LinkSpec { capacity: limit, ..LinkSpec::default() };
        let (a, b) = (world.add_link(here, "a", spec.clone()), world.add_link(there, "b", spec));
        let delay = Duration::from_millis(delay);
        let wire = WireSpec::datagrams(Impairment { rate: limit, delay, ..Impairment::NONE });
        world.join(a, b, wire, wire);
        let sensor = world.publish(here, data("sensor"));
        world.subscribe(there, all("sensor"));
        world.run_for(Duration::from_secs(3));
        world.every(sensor, Duration::from_millis(4), 5_000, payloads(1_500));
        world.run_for(Duration::from_secs(1));
        let before = world.wire(here, there).bytes;
        world.run_for(Duration::from_secs(10));
        let used = (world.wire(here, there).bytes - before) * 100 / 2_500_000;
        println!("{delay} in each direction: {used} %");
        assert!(used >= 95, "{delay}: {used} %");
    }
}

#[test]
fn a_pause_of_half_a_minute_is_cheap() {
    let (mut world, hub, ends) = star(6, 1, capacity(20_000_000));
    let specs =
        |k: u64| PublisherSpec { bytes_max: Some(200), ..data(&format!("s/{k}")) }.hertz(500);
    let publishers: Vec<Pub> = (0..8).map(|k| world.publish(hub, specs(k))).collect();
    let commands = world.subscribe(ends[0], all("s/*").within_ms(10));
    world.run_for(Duration::from_secs(2));
    for &publisher in &publishers {
        world.every(publisher, Duration::from_millis(2), 20_000, payloads(200));
    }
    world.run_for(Duration::from_secs(1));
    world.stall(hub);
    world.run_for(Duration::from_secs(30));
    let turns = world.turns();
    world.resume(hub);
    world.run_for(Duration::from_millis(1));
    println!("{} turns after the pause", world.turns() - turns);
    assert!(world.turns() - turns < 100);
    world.run_for(Duration::from_secs(4));
    let before = world.delivered(commands).len();
    world.run_for(Duration::from_secs(1));
    let (got, late) = (world.delivered(commands).len() - before, 0);
    let late = late + world.delivered(commands)[before..].iter().filter(|s| s.late).count();
    assert!(got >= 3_900 && late == 0, "{got} and {late} late");
}

#[test]
fn many_nodes_share_a_link_fairly() {
    let (mut world, hub, ends) = star(7, 5, capacity(4_000_000));
    let (publishers, subscriptions) = feed(&mut world, hub, &ends);
    for &publisher in &publishers {
        world.every(publisher, Duration::from_millis(4), 2_500, payloads(1_000));
    }
    world.run_for(Duration::from_secs(10));
    let shares: Vec<usize> =
        subscriptions.iter().map(|&subscription| world.delivered(subscription).len()).collect();
    println!("{shares:?}");
    let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
    assert!(most - least <= most / 20, "{shares:?}");
    assert!(shares.iter().sum::<usize>() >= 3_800, "{shares:?}");
}

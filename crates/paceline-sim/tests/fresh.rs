//! Best effort on links with three times their capacity offered: delivered samples stay fresh.

use paceline_proto::Carrier;
use paceline_proto::control::{BEST_EFFORT_WAIT_MAX, PublisherSpec};
use paceline_proto::link::LinkSpec;
use paceline_proto::reason::{DropReason, Drops};
use paceline_proto::sample::Kind;
use paceline_sched::{Capacity, Duration, Late};
use paceline_sim::ask::{Declare as _, all, data, payloads, undecodable, video, video_payloads};
use paceline_sim::impair::Impairment;
use paceline_sim::{LinkPlan, NodeIx, Payload, Pub, Sub, WireSpec, World};

/// The duration of the overload, in seconds.
const MINUTE: u64 = 60;
const GROUP: &str = "IPBBPBBPBBPBB";

fn capacity(bits: u64) -> Option<Capacity> {
    Capacity::from_bits_per_s(bits).ok()
}

/// Declares live data that is worthless when late.
fn live(tag: &str, kind: Kind, hertz: u64) -> PublisherSpec {
    PublisherSpec { kind, late: Late::Drop, ..data(tag) }.hertz(hertz)
}

/// A robot and a console with a relay between them. The relay has a fast link to the robot and a slow one to
/// the console.
struct Path {
    world: World,
    robot: NodeIx,
    relay: NodeIx,
    console: NodeIx,
}

impl Path {
    fn new(thin: Option<Capacity>) -> Self {
        let mut world = World::new(1);
        let [robot, relay, console] =
            ["robot", "relay", "console"].map(|name| world.add_node(name));
        world.connect(robot, relay, LinkPlan { capacity: capacity(100_000_000) });
        world.connect(relay, console, LinkPlan { capacity: thin });
        Self { world, robot, relay, console }
    }

    /// Publishes for a minute, and runs until all queues are empty.
    fn overload(&mut self, spec: PublisherSpec, payload: Payload) -> (Pub, Sub) {
        let (period, tag) =
            (spec.period.expect("publishers here have a period"), spec.tag.to_string());
        let publisher = self.world.publish(self.robot, spec);
        let subscription = self.world.subscribe(self.console, all(&tag));
        self.world.run_for(Duration::from_secs(2));
        let samples = Duration::from_secs(MINUTE).as_nanos() / period.as_nanos();
        self.world.every(publisher, period, samples, payload);
        self.world.run_for(Duration::from_secs(MINUTE * 4));
        (publisher, subscription)
    }

    /// Checks that every published sample is delivered or has one drop reason at one of the two links.
    /// Returns the drops of the second link.
    fn drops(&self, publisher: Pub, subscription: Sub, published: u64) -> Drops {
        let first = self.world.stream(self.robot, self.relay, publisher);
        let second = self.world.stream(self.relay, self.console, publisher);
        assert_eq!(first.offered, published);
        assert_eq!(first.offered, first.sent + first.drops.total());
        assert_eq!(second.offered, first.sent);
        assert_eq!(second.offered, second.sent + second.drops.total());
        assert_eq!(self.world.delivered(subscription).len() as u64, second.sent);
        second.drops
    }

    fn oldest(&self, subscription: Sub) -> Duration {
        let ages = self.world.delivered(subscription).iter().map(|sample| sample.age);
        ages.max().expect("some samples are delivered")
    }
}

#[test]
fn samples_over_an_overloaded_link_stay_fresh() {
    let wait = BEST_EFFORT_WAIT_MAX.as_micros() / 1_000;
    // 375,000 bytes per second for a link of 125,000. A picture of 18,750 bytes takes 170 ms with its
    // headers.
    let cases = [
        (Kind::Data, 250, 1_500, wait + 50, DropReason::Expired),
        (Kind::Audio, 250, 1_500, wait + 50, DropReason::Expired),
        (Kind::Data, 10, 37_500, wait + 400, DropReason::Expired),
        (Kind::State, 250, 1_500, 50, DropReason::Superseded),
        (Kind::Picture, 20, 18_750, 400, DropReason::Superseded),
    ];
    for (kind, hertz, bytes, bound, reason) in cases {
        let mut path = Path::new(capacity(1_000_000));
        let (publisher, subscription) = path.overload(live("sensor", kind, hertz), payloads(bytes));
        let drops = path.drops(publisher, subscription, hertz * MINUTE);
        let (got, oldest) = (path.world.delivered(subscription).len(), path.oldest(subscription));
        println!("{kind} of {bytes} bytes: {got} delivered, the oldest after {oldest}; {drops:?}");
        assert!(oldest <= Duration::from_millis(bound), "{kind}: {oldest}");
        // The link is as busy as before: nearly a third arrives.
        assert!(got as u64 >= hertz * MINUTE * 27 / 100, "{kind}: {got}");
        assert_eq!(drops.of(reason), drops.total(), "{kind}: {drops:?}");
    }
}

#[test]
fn excess_video_stays_fresh_and_decodable() {
    for hertz in [5, 30] {
        let mut path = Path::new(capacity(1_000_000));
        // 375,000 bytes per second.
        let mean = 375_000 / usize::try_from(hertz).unwrap();
        let payload = video_payloads(GROUP, [mean * 3, mean, mean * 3 / 4]);
        let spec = video("film", hertz, mean as u64 * 3);
        let (publisher, subscription) = path.overload(spec, payload);
        let drops = path.drops(publisher, subscription, hertz * MINUTE);
        let (got, oldest) = (path.world.delivered(subscription).len(), path.oldest(subscription));
        println!("{hertz} Hz: {got} delivered, the oldest after {oldest}; {drops:?}");
        // An I occupies the link for nine periods, ten with its headers, and is picked while a frame of 10 ms leaves.
        let longest = Duration::from_secs(1).mul_div(11, hertz);
        assert!(oldest <= BEST_EFFORT_WAIT_MAX.saturating_add(longest), "{hertz}: {oldest}");
        assert_eq!(undecodable(GROUP, path.world.delivered(subscription)), None);
        assert!(got as u64 >= hertz * MINUTE / 8, "{hertz}: {got}");
        let aged = drops.of(DropReason::Expired) + drops.of(DropReason::Superseded);
        assert!(aged > 0, "{drops:?}");
    }
}

#[test]
fn files_and_late_samples_wait_without_limit() {
    let late = PublisherSpec { late: Late::Send, ..live("file", Kind::Data, 10) };
    let waits = PublisherSpec { waits: true, ..live("file", Kind::Data, 10) };
    for spec in [late, waits] {
        let mut path = Path::new(capacity(1_000_000));
        let (publisher, subscription) = path.overload(spec, payloads(37_500));
        let drops = path.drops(publisher, subscription, 10 * MINUTE);
        let oldest = path.oldest(subscription);
        // 22 MB over a link of 125,000 bytes per second fit into both queues.
        assert_eq!((path.world.delivered(subscription).len(), drops.total()), (600, 0));
        assert!(oldest > Duration::from_secs(60), "{oldest}");
    }
}

#[test]
fn a_long_path_expires_nothing() {
    let mut world = World::new(2);
    let nodes = ["a", "b", "c", "d", "e", "f"].map(|name| world.add_node(name));
    let delay = Duration::from_millis(450);
    let wire = WireSpec::reliable(Impairment { delay, ..Impairment::NONE });
    for pair in nodes.windows(2) {
        let spec = LinkSpec { capacity: capacity(10_000_000), ..LinkSpec::default() };
        let [out, back] = [pair[0], pair[1]].map(|node| world.add_link(node, "hop", spec.clone()));
        world.join(out, back, wire, wire);
    }
    let sensor = world.publish(nodes[0], live("sensor", Kind::Data, 100));
    let got = world.subscribe(nodes[5], all("sensor"));
    world.run_for(Duration::from_secs(20));
    world.every(sensor, Duration::from_millis(10), 1_000, payloads(200));
    world.run_for(Duration::from_secs(30));
    let ages = world.delivered(got).iter().map(|sample| sample.age);
    assert_eq!(world.delivered(got).len(), 1_000);
    assert!(ages.min().unwrap() > BEST_EFFORT_WAIT_MAX, "each is older than it may wait at a link");
}

#[test]
fn streams_with_rare_slots_all_continue() {
    // A round of 200 streams takes about 8 s on this link.
    let mut path = Path::new(capacity(64_000));
    let streams: Vec<(Pub, Sub)> = (0..200)
        .map(|k| {
            let tag = format!("sensor/{k}");
            let publisher = path.world.publish(path.robot, live(&tag, Kind::Data, 2));
            (publisher, path.world.subscribe(path.console, all(&tag)))
        })
        .collect();
    path.world.run_for(Duration::from_secs(20));
    for (publisher, _) in &streams {
        path.world.every(*publisher, Duration::from_millis(500), 2 * MINUTE, payloads(200));
    }
    path.world.run_for(Duration::from_secs(MINUTE * 2));
    let got = streams.iter().map(|(_, it)| path.world.delivered(*it).len());
    let (least, most) = (got.clone().min().unwrap(), got.max().unwrap());
    println!("{least} to {most} samples of each");
    assert!(least >= 4 && most <= least + 2, "{least} to {most}");
    for (publisher, subscription) in streams {
        path.drops(publisher, subscription, 2 * MINUTE);
        let oldest = path.oldest(subscription);
        assert!(
            oldest <= BEST_EFFORT_WAIT_MAX.saturating_add(Duration::from_millis(500)),
            "{oldest}"
        );
    }
}

#[test]
fn repairs_continue_while_samples_expire() {
    let mut world = World::new(3);
    let (here, there) = (world.add_node("here"), world.add_node("there"));
    let rate = capacity(1_000_000);
    let wire = WireSpec::datagrams(Impairment {
        rate,
        delay: Duration::from_millis(20),
        ..Impairment::NONE
    });
    let spec = LinkSpec { capacity: rate, carrier: Carrier::Datagrams, ..LinkSpec::default() };
    let [out, back] = [here, there].map(|node| world.add_link(node, "radio", spec.clone()));
    world.join(out, back, wire, wire);
    let sensor = world.publish(here, live("sensor", Kind::Data, 250));
    let got = world.subscribe(there, all("sensor"));
    world.run_for(Duration::from_secs(3));
    world.set_loss(here, there, 20);
    world.every(sensor, Duration::from_millis(4), 250 * MINUTE, payloads(1_500));
    world.run_for(Duration::from_secs(MINUTE + 20));
    let sent = world.stream(here, there, sensor);
    let delivered = world.delivered(got);
    println!(
        "{} sent, {} delivered, {:?} and {:?}",
        sent.sent,
        delivered.len(),
        sent.drops,
        world.drops(got)
    );
    assert!(delivered.windows(2).all(|pair| pair[0].seq < pair[1].seq), "in order");
    assert!(sent.drops.of(DropReason::Expired) > 8_000, "{:?}", sent.drops);
    let lost = world.drops(got).total();
    assert_eq!(delivered.len() as u64 + lost, sent.sent);
    // At least two of a hundred samples lose a frame.
    assert!(world.wire(here, there).lost > 80, "{:?}", world.wire(here, there));
    assert!(lost * 200 <= sent.sent, "{lost} of {}", sent.sent);
}

//! Impaired wires below whole nodes: losses, delays, and invariants.

use paceline_proto::link::LinkSpec;
use paceline_sched::{Capacity, Duration, Instant};
use paceline_sim::ask::{Declare as _, all, data, payloads};
use paceline_sim::impair::{Impairment, Loss};
use paceline_sim::{Delivered, NodeIx, Pub, Sub, WireSpec, World};

const SAMPLES: u64 = 2_000;

struct Pair {
    world: World,
    here: NodeIx,
    there: NodeIx,
    sensor: Pub,
    reader: Sub,
}

impl Pair {
    /// Connects two nodes by a wire, with a publisher on one and a subscription on the other.
    fn new(wire: WireSpec) -> Self {
        let mut world = World::new(11);
        let (here, there) = (world.add_node("here"), world.add_node("there"));
        let spec = LinkSpec { capacity: wire.impairment.rate, ..LinkSpec::default() };
        let (a, b) = (world.add_link(here, "a", spec.clone()), world.add_link(there, "b", spec));
        world.join(a, b, wire, wire);
        let sensor = world.publish(here, data("sensor").hertz(200));
        let reader = world.subscribe(there, all("sensor"));
        world.run_for(Duration::from_secs(5));
        Self { world, here, there, sensor, reader }
    }

    /// Publishes for ten seconds and waits for late samples. Returns the delivered samples.
    fn run(&mut self) -> Vec<Delivered> {
        let before = self.world.delivered(self.reader).len();
        self.world.every(self.sensor, Duration::from_millis(5), SAMPLES, payloads(500));
        self.world.run_for(Duration::from_secs(40));
        self.world.delivered(self.reader).iter().skip(before).copied().collect()
    }
}

fn numbers(delivered: &[Delivered]) -> Vec<u64> {
    delivered.iter().map(|sample| sample.seq).collect()
}

/// Returns the times at which the samples are published, the first one at `start`.
fn published(start: Instant) -> impl Iterator<Item = Instant> {
    (0..).map(move |number: u64| start + Duration::from_millis(5 * number))
}

/// Returns the delay of the fastest sample. The first was published at `start`.
fn path_delay(delivered: &[Delivered], start: Instant) -> Duration {
    let delays = delivered.iter().zip(published(start)).map(|(sample, at)| sample.at.since(at));
    delays.min().unwrap_or_default()
}

fn far() -> Impairment {
    let rate = Capacity::from_bits_per_s(20_000_000).ok();
    Impairment { rate, delay: Duration::from_millis(20), ..Impairment::NONE }
}

#[test]
fn impairment_changes_a_running_wire_in_both_directions() {
    let mut pair = Pair::new(WireSpec::limited(far().rate));
    let start = pair.world.now();
    let before = pair.run();
    assert_eq!(before.len() as u64, SAMPLES);
    assert!(path_delay(&before, start) < Duration::from_millis(2));
    pair.world.impair(pair.here, pair.there, far());
    assert_eq!(pair.world.impairment(pair.there, pair.here), far());
    let start = pair.world.now();
    let after = pair.run();
    assert_eq!(after.len() as u64, SAMPLES);
    let delay = path_delay(&after, start);
    assert!(delay >= Duration::from_millis(20) && delay < Duration::from_millis(22), "{delay}");
}

#[test]
fn datagrams_are_lost_and_reliable_wires_delay_instead() {
    let loss = Loss::Random { ppm: 10_000 };
    let lossy = Impairment { loss, ..far() };
    let mut datagrams = Pair::new(WireSpec::datagrams(lossy));
    let got = datagrams.run();
    let lost = datagrams.world.wire(datagrams.here, datagrams.there).lost;
    println!("{} of {SAMPLES}, {lost} frames lost", got.len());
    assert!(lost > 0 && (got.len() as u64) < SAMPLES);
    assert!(numbers(&got).is_sorted_by(|a, b| a < b));

    let mut reliable = Pair::new(WireSpec::reliable(lossy));
    let start = reliable.world.now();
    let got = reliable.run();
    let wire = reliable.world.wire(reliable.here, reliable.there);
    let delays = got.iter().zip(published(start)).map(|(sample, at)| sample.at.since(at));
    let worst = delays.max().unwrap();
    println!("{} of {SAMPLES}, the last after {worst}: {wire:?}", got.len());
    assert_eq!(got.len() as u64, SAMPLES);
    assert!(numbers(&got).is_sorted_by(|a, b| a < b));
    assert!(wire.lost == 0 && wire.retransmitted > 0);
    assert!(worst >= Duration::from_millis(260), "there, back, 200 ms and there: {worst}");
}

#[test]
fn everything_continues_after_a_blackout() {
    for wire in [WireSpec::datagrams(far()), WireSpec::reliable(far())] {
        let mut pair = Pair::new(wire);
        let dark = Impairment { blackout: true, ..far() };
        pair.world.impair(pair.here, pair.there, dark);
        let during = pair.run();
        assert!(during.is_empty(), "{wire:?}: {}", during.len());
        pair.world.impair(pair.here, pair.there, far());
        pair.world.run_for(Duration::from_secs(10));
        let after = pair.run();
        assert_eq!(after.len() as u64, SAMPLES, "{wire:?}");
    }
}

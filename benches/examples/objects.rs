//! Prints the nanoseconds per evaluated pair and per operation of an exchange list, for 10,000 objects and 100
//! observers.
//!
//! `cargo run --release --manifest-path benches/Cargo.toml --example objects [-- OBJECTS OBSERVERS RANGE]`
//!
//! With `-- exchanges OBJECTS COUNT` it only changes, sends and delivers COUNT objects of OBJECTS for one observer, to
//! count the instructions: `valgrind --tool=callgrind benches/target/release/examples/objects exchanges 10000 1000`.
//! With `-- participants` it only measures an iteration of a world
//! in which nothing is due.

use paceline_benches::world::CarWorld;
use paceline_objects::exchange::PeerTimetable;
use paceline_objects::packet::UpdateClass;
use paceline_objects::participant::{Destination, ReceivedPacket, WorldTime};
use paceline_objects::semantic::{
    DeclaredFunction, DeclaredRule, DistanceLadder, DistanceStep, ExchangeTerms, Periodic,
    SemanticFunction,
};
use paceline_objects::{Interest, Participant, ParticipantSettings, PeerId};
use paceline_sched::{Duration, Instant};

fn main() {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if(|argument| argument == "exchanges").is_some() {
        let mut number = || arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1_000);
        return count(number(), number());
    }
    if arguments.next_if(|argument| argument == "participants").is_some() {
        return [10, 100, 1_000].into_iter().for_each(participants);
    }
    let mut argument =
        |default: u32| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (objects, observers, range) = (argument(10_000), argument(100), argument(350));
    println!("{objects} objects, {observers} observers, range {range} m of 2,000 m");
    evaluate("distance ladder", objects, observers, range, &mut ladder(range));
    for rule in RULES {
        let rule: DeclaredRule = rule.parse().expect("a rule");
        let base = ExchangeTerms::every(Duration::from_millis(500));
        let mut function = DeclaredFunction::new(&rule, base).expect("a rule");
        evaluate(&rule.to_string().replace('\n', " "), objects, observers, range, &mut function);
    }
    exchanges(objects, observers, range);
    for peers in [100, 1_000, 10_000, 100_000] {
        timetable(peers);
    }
}

const RULES: [&str; 3] = [
    "whom: distance < 300.0",
    "every: distance < 100.0 ? 0.05 : 0.5",
    "whom: distance < 300.0\nevery: distance < 100.0 ? 0.05 : 0.5\nweight: 1.0 / (1.0 + distance)",
];

/// Changes, sends and delivers `count` of the objects of one observer, one after the other.
fn count(objects: u32, count: u32) {
    let mut world = CarWorld::new(objects, 1, f64::INFINITY);
    let mut function = Periodic(ExchangeTerms::every(Duration::from_millis(1)));
    world.sweep(&mut function, &());
    world.exchange(u64::MAX);
    for car in 0..count {
        world.now += Duration::from_micros(10);
        world.change(car.wrapping_mul(7_919) % objects);
        world.exchange(u64::MAX);
    }
}

/// Returns a packet of the participant of a node.
fn received(bytes: &[u8], node: u64) -> ReceivedPacket<'_> {
    let (class, age) = (UpdateClass::BestEffort, Duration::from_nanos(0));
    ReceivedPacket { bytes, class, age, node, channel: Some(PeerId::of_node(node, 1)) }
}

/// Prints the time of an iteration of a world with this number of observers, of which one sends a view, or none.
#[expect(clippy::disallowed_methods, reason = "it measures")]
fn participants(count: u64) {
    const ITERATIONS: u32 = 1_000;
    let mut time = WorldTime { now: Instant::from_millis(1), stamp: 1, error: u8::MAX };
    let join = |node| {
        let (id, settings) = (PeerId::of_node(node, 1), ParticipantSettings::default());
        Participant::new(id, "car", settings, Instant::from_millis(1)).expect("valid")
    };
    let mut owner = join(0);
    let mut views = Vec::new();
    for id in 1..=count {
        let mut observer = join(id);
        observer.observe(Some(Interest::every(std::time::Duration::from_secs(1)))).expect("valid");
        observer.look([0.0; 3], [0.0; 3], None);
        observer.poll(time);
        while let Some(packet) = observer.outgoing() {
            owner.receive(&received(&packet.payload, id), time).expect("a packet");
            if packet.to == Destination::ObserverView {
                views.push((id, packet.payload));
            }
        }
    }
    let mut measure = |with_view: bool| {
        let begin = std::time::Instant::now();
        for number in 0..ITERATIONS {
            time.now += Duration::from_micros(1);
            if with_view && let Some((node, view)) = views.get(number as usize % views.len()) {
                let _read = owner.receive(&received(view, *node), time);
            }
            owner.poll(time);
            while owner.outgoing().is_some() {}
        }
        begin.elapsed().as_secs_f64() / f64::from(ITERATIONS) * 1e6
    };
    measure(false);
    let (idle, view) = (measure(false), measure(true));
    println!("{count} participants: {idle:.2} us per iteration, {view:.2} us with a view");
}

fn ladder(range: u32) -> DistanceLadder {
    let range = f64::from(range);
    let step = |share: f64, millis: u64| DistanceStep {
        within: range * share,
        terms: ExchangeTerms::every(Duration::from_millis(millis)).weight(1.0 / share),
    };
    DistanceLadder::new(vec![step(0.1, 50), step(0.3, 200), step(1.0, 1_000)]).expect("a ladder")
}

#[expect(clippy::disallowed_methods, reason = "it measures")]
fn evaluate(
    name: &str,
    objects: u32,
    observers: u32,
    range: u32,
    function: &mut dyn SemanticFunction,
) {
    let mut world = CarWorld::new(objects, observers, f64::from(range));
    world.sweep(function, &());
    let mut best = f64::INFINITY;
    let mut pairs = 0;
    for _ in 0..10 {
        let start = std::time::Instant::now();
        pairs = world.sweep(function, &());
        best = best.min(start.elapsed().as_nanos() as f64 / pairs as f64);
    }
    println!("{best:8.0} ns per evaluated pair, {pairs} pairs in 100 ms: {name}");
}

#[expect(clippy::disallowed_methods, reason = "it measures")]
fn exchanges(objects: u32, observers: u32, range: u32) {
    let mut world = CarWorld::new(objects, observers, f64::from(range));
    let mut function = ladder(range);
    let (mut changing, mut sending) = (0.0, 0.0);
    let (mut changes, mut updates) = (0.0, 0.0);
    for round in 0..20 {
        world.sweep(&mut function, &());
        let start = std::time::Instant::now();
        for car in 0..objects {
            world.change(car);
        }
        let middle = std::time::Instant::now();
        let sent = world.exchange(u64::MAX);
        if round > 4 {
            changing += middle.duration_since(start).as_nanos() as f64;
            sending += middle.elapsed().as_nanos() as f64;
            changes += f64::from(objects) * world.list.pairs() as f64 / f64::from(objects);
            updates += sent as f64;
        }
    }
    println!("{:8.0} ns per changed pair", changing / changes);
    println!("{:8.0} ns per update in a message, delivered, {updates} updates", sending / updates);
}

#[expect(clippy::disallowed_methods, reason = "it measures")]
fn timetable(peers: u64) {
    let mut list = PeerTimetable::default();
    let mut at = 1_u64;
    let mut next = || {
        at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        Instant::from_nanos(at >> 20)
    };
    for peer in 0..peers {
        list.set(PeerId(u128::from(peer)), Some(next()));
    }
    let start = std::time::Instant::now();
    for _ in 0..1_000_000 {
        if let Some((_, peer)) = list.first() {
            list.set(peer, Some(next()));
        }
    }
    println!(
        "{:8.0} ns per exchange of a list of {peers} peers",
        start.elapsed().as_nanos() as f64 / 1e6
    );
}

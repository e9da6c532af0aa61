//! Shared objects over links that lose datagrams, and with too many objects.

use crate::radio::Radio;
use crate::support::{SOON, free_endpoint, isolated, wait_until};
use crate::trust::{Authority, free_quic};
use paceline::world::{
    ErrorControl, FieldValue, InteractorModules, Interest, ObjectContract, ParticipantSettings,
    Schema, ServiceEvent, SharedObject, SharedWorld,
};
use paceline::{Capacity, LinkConfig, Node};
use std::time::{Duration, Instant};

/// With acknowledged updates the owner would repeat lost groups, so the observer chooses others here.
#[test]
fn promised_fragments_arrive_although_datagrams_are_lost() {
    let authority = Authority::new("objects");
    let endpoint = free_quic();
    let radio = Radio::new(&endpoint);
    let link = |name: &str| {
        authority.member(name, LinkConfig::new("radio").capacity_bits_per_s(10_000_000))
    };
    let nodes = [
        authority.node("owner", link("owner").listen(&endpoint)),
        authority.node("observer", link("observer").connect(&radio.endpoint())),
    ];
    let [owner, observer] = nodes.each_ref().map(|node| node.world("town").join().unwrap());
    let schema = Schema::parse("map/1 a{a:text} b{b:text} c{c:text} d{d:text}").unwrap();
    let fields = ["a", "b", "c", "d"];
    let text = |version: u32| FieldValue::from(format!("{version:0>800}").as_str());
    let all = |version| fields.map(|field| (field, text(version)));
    let object = owner.create("map/1", &schema, &all(0)).unwrap();
    let mut version = 0;
    // At a fidelity of 0.5 or 0.3 an update carries two groups, the others follow a gap later. No update of these has a
    // fragment that may be lost: ⌊(f' − f) p⌋ is ⌊(1 − 1) 4⌋, ⌊(0.5 − 0.5) 2⌋ and ⌊(0.5 − 0.3) 2⌋.
    for (fidelity_permille, fragments) in [(1_000, 4), (500, 2), (300, 2)] {
        let each = ObjectContract {
            fidelity_permille,
            refresh: Duration::from_secs(3_600).into(),
            ..ObjectContract::per_second(20, 3_300, Duration::from_secs(5))
        };
        let error_control = ErrorControl::Refreshed;
        let modules = InteractorModules { error_control, ..InteractorModules::default() };
        let interest = Interest::every(Duration::from_millis(50)).with_contract(each, 1);
        observer.observe(Some(interest.with_modules(modules))).unwrap();
        let granted = |event| matches!(event, ServiceEvent::Granted(_));
        wait_until("the contract is granted", || observer.try_service().is_some_and(granted));
        let known = |field| observer.object("map/1").and_then(|it| it.value(field).cloned());
        wait_until("the object arrives", || known("a").is_some());
        let promised = || owner.report().exchanges.promised;
        let before = promised();
        wait_until("it is promised", || {
            version += 1;
            object.set(&all(version)).unwrap();
            std::thread::sleep(Duration::from_millis(60));
            promised() > before
        });
        let arrive = |version| fields.iter().all(|field| known(field) == Some(text(version)));
        wait_until("all groups arrive", || arrive(version));
        let received = || observer.object("map/1").unwrap().updates;
        let (before, first) = (promised(), received());
        radio.lose(10);
        for _ in 0..14 {
            version += 1;
            object.set(&all(version)).unwrap();
            wait_until("all groups arrive", || arrive(version));
        }
        radio.lose(0);
        let (updates, arrived) = (promised() - before, received() - first);
        println!("fidelity {fidelity_permille}: {updates} updates, {arrived} fragments arrived");
        assert_eq!(arrived, updates * fragments, "fragments of {updates} updates");
    }
}

/// Returns the greatest number of megabytes that this process has occupied.
fn memory_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1_024
}

/// The objects of one participant and one of another, at an observer.
struct Crowd {
    observer: SharedWorld,
    many: SharedWorld,
    few: SharedWorld,
    cars: Vec<SharedObject>,
    car: SharedObject,
    created: Duration,
    began: Instant,
    /// They end after the worlds.
    _nodes: [Node; 3],
}

impl Crowd {
    /// Creates `count` objects of one participant, of which the observer permits `limit` replicas.
    fn new(count: usize, limit: usize, bits_per_s: u64) -> Self {
        let ends = [free_endpoint(), free_endpoint()];
        let link = |number: usize| LinkConfig::new(["many", "few"][number]);
        let capacity = Capacity::from_bits_per_s(bits_per_s).unwrap();
        let nodes = [
            isolated("observer", [0, 1].map(|number| link(number).listen(&ends[number]))),
            isolated("many", [link(0).connect(&ends[0]).capacity(capacity)]),
            isolated("few", [link(1).connect(&ends[1]).capacity(capacity)]),
        ];
        let settings = |objects_max, replicas_max| ParticipantSettings {
            objects_max,
            replicas_max,
            state_bytes_max: 8 << 30,
            ..ParticipantSettings::default()
        };
        let join = |number: usize, settings| {
            let world = nodes[number].world("town").settings(settings);
            world.join().unwrap()
        };
        let observer = join(0, settings(1, limit));
        let many = join(1, settings(count, 1));
        let few = join(2, settings(20, 1));
        let schema = Schema::parse("car/1 motion{position:vector}").unwrap();
        let begin = Instant::now();
        let create =
            |number| many.create(&format!("many/{number}"), &schema, &[position(1)]).unwrap();
        let cars = (0..count).map(create).collect();
        let created = begin.elapsed();
        let car = few.create("few/1", &schema, &[position(0)]).unwrap();
        let error = many.create("many/beyond", &schema, &[position(1)]).unwrap_err().to_string();
        assert!(error.contains(&format!("at most {count} objects")), "{error}");
        let began = Instant::now();
        observer.observe(Some(Interest::every(Duration::from_millis(100)))).unwrap();
        wait_until("the other object arrives", || observer.object("few/1").is_some());
        Self { observer, many, few, cars, car, created, began, _nodes: nodes }
    }

    /// Changes the object of the other participant, and returns how long the change took to arrive.
    fn change_other(&self, x: u32) -> Duration {
        let changed = Instant::now();
        self.car.set(&[position(x)]).unwrap();
        let (_, wanted) = position(x);
        wait_until("the change of the other object arrives", || {
            self.observer.object("few/1").is_some_and(|it| it.value("position") == Some(&wanted))
        });
        changed.elapsed()
    }

    fn print(&self, known: Duration, slowest: Duration) {
        let report = self.observer.report();
        println!(
            "{} objects created in {:?}, {} replicas after {known:?}, slowest change of the other object {slowest:?}, \
             {:?}, {} packets dropped, {} MB",
            self.cars.len(),
            self.created,
            report.replicas,
            report.applied,
            report.packets_dropped,
            memory_mb()
        );
    }
}

fn position(x: u32) -> (&'static str, FieldValue) {
    ("position", [f64::from(x), 0.0, 0.0].into())
}

/// Returns the number of objects in `PACELINE_OBJECTS`, or another one.
fn count(otherwise: usize) -> usize {
    let count = std::env::var("PACELINE_OBJECTS").ok().and_then(|text| text.parse().ok());
    count.unwrap_or(otherwise)
}

/// `PACELINE_OBJECTS=1000000` runs the full size.
#[test]
fn the_objects_of_one_participant_leave_room_for_those_of_others() {
    let count = count(3_000);
    let limit = (count / 50).max(20);
    let crowd = Crowd::new(count, limit, 10_000_000);
    wait_until("more objects arrive than there is room for", || {
        crowd.observer.report().applied.too_many > 0
    });
    let known = crowd.began.elapsed();
    let mut slowest = Duration::ZERO;
    for x in 1..=20 {
        for car in crowd.cars.iter().step_by(count / 60) {
            car.set(&[position(x)]).unwrap();
        }
        slowest = slowest.max(crowd.change_other(x));
    }
    crowd.print(known, slowest);
    let replicas = crowd.observer.report().replicas;
    assert!(replicas <= limit + 1, "{replicas} replicas");
}

/// Introduces all objects of one participant, while another changes its own.
fn introduce_all(count: usize) {
    let crowd = Crowd::new(count, count, 100_000_000);
    let (mut slowest, mut before) = (Duration::ZERO, 0);
    let mut progress = Instant::now();
    for x in 1.. {
        let replicas = crowd.observer.report().replicas;
        if replicas > count {
            break;
        }
        if replicas > before {
            (before, progress) = (replicas, Instant::now());
        }
        assert!(progress.elapsed() < SOON, "{replicas} of {count} objects, and no more");
        slowest = slowest.max(crowd.change_other(x));
    }
    crowd.print(crowd.began.elapsed(), slowest);
    assert_eq!(crowd.observer.report().applied.too_many, 0);
    assert_eq!([crowd.many.report().owned, crowd.few.report().owned], [count, 1]);
}

#[test]
fn all_objects_of_one_participant_are_introduced() {
    introduce_all(count(3_000));
}

#[test]
#[ignore = "it takes a minute and 2 GB"]
fn a_minute_of_introductions_of_a_million_objects() {
    introduce_all(count(1_000_000));
}

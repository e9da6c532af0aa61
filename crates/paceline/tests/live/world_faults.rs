//! Shared objects over links that lose datagrams, and with too many objects.

use crate::radio::Radio;
use crate::support::{free_endpoint, isolated, wait_until};
use crate::trust::{Authority, free_quic};
use paceline::world::{
    ErrorControl, FieldValue, InteractorModules, Interest, ObjectContract, ParticipantSettings,
    Schema, ServiceEvent,
};
use paceline::{Capacity, LinkConfig};
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
    for fidelity_permille in [1_000, 500] {
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
        // Each update has four fragments. At half of the fidelity it has two, and the others follow a gap later.
        let promised = || owner.report().exchanges.promised;
        let before = promised();
        wait_until("it is promised", || {
            version += 1;
            object.set(&all(version)).unwrap();
            std::thread::sleep(Duration::from_millis(60));
            promised() > before
        });
        radio.lose(10);
        for _ in 0..20 {
            version += 1;
            object.set(&all(version)).unwrap();
            wait_until("all groups arrive", || {
                fields.iter().all(|field| known(field) == Some(text(version)))
            });
        }
        radio.lose(0);
    }
}

/// Returns the greatest number of megabytes that this process has occupied.
fn memory_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1_024
}

/// `PACELINE_OBJECTS=1000000` runs the full size.
#[test]
fn the_objects_of_one_participant_leave_room_for_those_of_others() {
    let count = std::env::var("PACELINE_OBJECTS").ok().and_then(|text| text.parse().ok());
    let count: usize = count.unwrap_or(3_000);
    let limit = (count / 50).max(20);
    let ends = [free_endpoint(), free_endpoint()];
    let link = |number: usize| LinkConfig::new(["many", "few"][number]);
    let capacity = Capacity::from_bits_per_s(10_000_000).unwrap();
    let nodes = [
        isolated("observer", [0, 1].map(|number| link(number).listen(&ends[number]))),
        isolated("many", [link(0).connect(&ends[0]).capacity(capacity)]),
        isolated("few", [link(1).connect(&ends[1]).capacity(capacity)]),
    ];
    let settings = |objects_max, replicas_max| ParticipantSettings {
        objects_max,
        replicas_max,
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
    let position = |x: u32| [("position", FieldValue::from([f64::from(x), 0.0, 0.0]))];
    let begin = Instant::now();
    let cars: Vec<_> = (0..count)
        .map(|number| many.create(&format!("many/{number}"), &schema, &position(1)).unwrap())
        .collect();
    let created = begin.elapsed();
    let car = few.create("few/1", &schema, &position(0)).unwrap();
    observer.observe(Some(Interest::every(Duration::from_millis(100)))).unwrap();
    wait_until("the other object arrives", || observer.object("few/1").is_some());
    let error = many.create("many/beyond", &schema, &position(1)).unwrap_err().to_string();
    assert!(error.contains(&format!("at most {count} objects")), "{error}");
    wait_until("more objects arrive than there is room for", || {
        observer.report().applied.too_many > 0
    });
    let filled = begin.elapsed();
    let mut slowest = Duration::ZERO;
    for x in 1..=20 {
        for number in (0..count).step_by(count / 60) {
            cars[number].set(&position(x)).unwrap();
        }
        let changed = Instant::now();
        car.set(&position(x)).unwrap();
        let wanted = position(x).map(|(_, value)| value);
        wait_until("the change of the other object arrives", || {
            observer.object("few/1").is_some_and(|it| it.value("position") == wanted.first())
        });
        slowest = slowest.max(changed.elapsed());
    }
    let report = observer.report();
    println!(
        "{count} objects created in {created:?}, replicas full after {filled:?}, slowest change of the other \
         object {slowest:?}, {} replicas, {:?}, {} packets dropped, {} MB",
        report.replicas,
        report.applied,
        report.packets_dropped,
        memory_mb()
    );
    assert!(report.replicas <= limit + 1, "{} replicas", report.replicas);
}

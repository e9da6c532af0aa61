//! Shared objects over real links.

use crate::support::{SOON, free_endpoint, isolated, wait_until};
use paceline::world::{
    DecisionWorkers, ExchangeTerms, FieldValue, Interest, InterestContract, ObjectContract,
    PairView, ReplicaEvent, RunOrder, Schema, ServiceEvent, SharedWorld, SuppressReason,
    WorldEvent,
};
use paceline::{Capacity, LinkConfig, Node, SubscriberEvent};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn car() -> Schema {
    Schema::parse("car/1 motion{position:vector velocity:vector} look{paint:text}").unwrap()
}

fn at(x: f64) -> FieldValue {
    [x, 0.0, 0.0].into()
}

/// Returns two nodes that a link joins, with the capacity from the first to the second.
fn pair(bits_per_s: u64) -> [Node; 2] {
    let end = free_endpoint();
    let capacity = Capacity::from_bits_per_s(bits_per_s).unwrap();
    let owner = isolated("owner", [LinkConfig::new("radio").listen(&end).capacity(capacity)]);
    let observer = isolated("observer", [LinkConfig::new("radio").connect(&end)]);
    [owner, observer]
}

fn join(node: &Node, name: &str) -> SharedWorld {
    node.world("town").name(name).join().unwrap()
}

fn paint(world: &SharedWorld, path: &str) -> Option<FieldValue> {
    world.object(path)?.value("paint").cloned()
}

#[test]
fn objects_are_created_changed_handed_over_and_deleted() {
    let nodes = pair(1_000_000);
    let [owner, observer] = [join(&nodes[0], "owner"), join(&nodes[1], "observer")];
    let object =
        owner.create("car/1", &car(), &[("paint", "red".into()), ("position", at(1.0))]).unwrap();
    observer.observe(Some(Interest::every(ms(20)))).unwrap();
    wait_until("the object arrives", || paint(&observer, "car/1") == Some("red".into()));
    object.set(&[("paint", "blue".into())]).unwrap();
    wait_until("the change arrives", || paint(&observer, "car/1") == Some("blue".into()));
    let view = observer.object("car/1").unwrap();
    assert_eq!(
        (view.owner.as_str(), view.owned, view.value("position")),
        ("owner", false, Some(&at(1.0)))
    );

    let taken = observer.create("car/1", &car(), &[]).unwrap_err().to_string();
    assert!(taken.starts_with("object \"car/1\" belongs to owner"), "{taken}");

    owner.observe(Some(Interest::every(ms(20)))).unwrap();
    object.hand_over(observer.id()).unwrap();
    assert!(object.set(&[("paint", "grey".into())]).is_err());
    let adopted = loop {
        let event = observer.event_timeout(SOON).expect("it is handed over");
        if let WorldEvent::Adopted(index, path) = event {
            assert_eq!(path, "car/1");
            break observer.owned(index).unwrap();
        }
    };
    adopted.set(&[("paint", "green".into())]).unwrap();
    wait_until("the new owner's change arrives", || paint(&owner, "car/1") == Some("green".into()));
    adopted.delete().unwrap();
    wait_until("the object ends", || owner.object("car/1").is_none());
}

#[test]
fn the_objects_of_a_participant_that_leaves_end() {
    let nodes = pair(1_000_000);
    let [owner, observer] = [join(&nodes[0], "owner"), join(&nodes[1], "observer")];
    owner.create("car/1", &car(), &[]).unwrap();
    observer.observe(Some(Interest::every(ms(20)))).unwrap();
    wait_until("the object arrives", || observer.object("car/1").is_some());
    drop(owner);
    wait_until("the object ends", || observer.object("car/1").is_none());
    let lost = WorldEvent::Replica(ReplicaEvent::Lost("car/1".into()));
    assert!(std::iter::from_fn(|| observer.try_event()).any(|event| event == lost));
}

#[test]
fn a_contract_is_reserved_and_kept_next_to_many_objects() {
    let nodes = pair(256_000);
    let [owner, observer] = [join(&nodes[0], "owner"), join(&nodes[1], "observer")];
    let near = owner.create("car/near", &car(), &[("position", at(1.0))]).unwrap();
    let far: Vec<_> = (0..300_i32)
        .map(|number| {
            let place = at(100.0 + f64::from(number));
            owner.create(&format!("car/{number}"), &car(), &[("position", place)]).unwrap()
        })
        .collect();
    let contract = ObjectContract::per_second(10, 60, ms(150));
    let steps = [(20.0, ms(100)), (1_000.0, ms(100))];
    observer.look([0.0; 3], [0.0; 3], None);
    observer.observe(Some(Interest::by_distance(&steps).with_contract(contract, 1))).unwrap();
    let granted = |event| matches!(event, ServiceEvent::Granted(_));
    wait_until("the contract is granted", || observer.try_service().is_some_and(granted));
    wait_until("the object arrives", || observer.object("car/near").is_some());
    std::thread::sleep(ms(1_000));
    let (mut oldest, mut longest) = (Duration::ZERO, Duration::ZERO);
    let mut seen = 0;
    let start = Instant::now();
    for step in 0..150_i32 {
        let x = f64::from(step);
        let began = Instant::now();
        near.set(&[("position", at(1.0 + x / 1_000.0))]).unwrap();
        for (number, object) in far.iter().enumerate().skip(step as usize % 3).step_by(3) {
            object.set(&[("position", at(100.0 + number as f64 + x / 10.0))]).unwrap();
        }
        std::thread::sleep(ms(20));
        let view = observer.object("car/near").unwrap();
        // The first change has the whole delay to arrive.
        if start.elapsed() > ms(200) {
            oldest = oldest.max(view.age);
        }
        longest = longest.max(began.elapsed());
        seen = view.updates;
    }
    let report = owner.report();
    println!(
        "{seen} updates, oldest {oldest:?} after {:?}, longest step {longest:?}; {:?}",
        start.elapsed(),
        report.exchanges
    );
    assert!(seen >= 25, "{seen} updates in 3 s of at most 10 per second");
    // The gap, the delay, and a step of this loop, which a busy machine makes longer.
    let most = ms(100 + 150 + 20) + longest;
    assert!(oldest <= most, "the promised object was {oldest:?} old, more than {most:?}");
    assert!(
        report.exchanges.suppressed(SuppressReason::Budget) > 0,
        "300 objects × 10 per second exceed the link"
    );
}

/// Observes with a contract, and waits for the answer from the owner.
fn answer(observer: &SharedWorld, contract: InterestContract) -> ServiceEvent {
    let interest = Interest { contract: Some(contract), ..Interest::every(ms(100)) };
    observer.observe(Some(interest)).unwrap();
    let mut answer = None;
    wait_until("the contract is answered", || {
        let events = std::iter::from_fn(|| observer.try_service());
        answer = events.filter(|event| !matches!(event, ServiceEvent::Withdrawn(_))).last();
        answer.is_some()
    });
    answer.unwrap()
}

#[test]
fn the_offer_of_a_refused_contract_is_granted() {
    let nodes = pair(64_000);
    let [owner, observer] = [join(&nodes[0], "owner"), join(&nodes[1], "observer")];
    owner.create("car/1", &car(), &[("paint", "red".into())]).unwrap();
    let each = ObjectContract::per_second(50, 400, ms(1_000));
    // 20 objects of 400 bytes are too many even once per second; five are not.
    for (objects, together) in [(20, true), (5, false)] {
        let refused = InterestContract { each, objects };
        let ServiceEvent::Refused(_, offer) = answer(&observer, refused) else {
            panic!("{objects} objects are granted");
        };
        println!("{offer:?}");
        assert_eq!(offer.together, together);
        let smaller = offer.apply(&refused).expect("an offer");
        let granted = answer(&observer, smaller);
        assert!(matches!(granted, ServiceEvent::Granted(_)), "{smaller:?}: {granted:?}");
    }
    wait_until("the object arrives", || paint(&observer, "car/1") == Some("red".into()));
    let short = InterestContract { each: ObjectContract::per_second(50, 400, ms(1)), objects: 1 };
    let ServiceEvent::EndsTooSlow(_, _, delay) = answer(&observer, short) else {
        panic!("1 ms is enough for both ends");
    };
    assert!(delay > ms(1));
}

#[test]
fn only_the_reservation_of_the_observer_and_its_own_packets_count() {
    let [wide, thin] = [free_endpoint(), free_endpoint()];
    let capacity = |bits_per_s| Capacity::from_bits_per_s(bits_per_s).unwrap();
    let links = [
        LinkConfig::new("wide").listen(&wide).capacity(capacity(100_000_000)),
        LinkConfig::new("thin").listen(&thin).capacity(capacity(64_000)),
    ];
    let nodes = [
        isolated("owner", links),
        isolated("observer", [LinkConfig::new("thin").connect(&thin)]),
        isolated("other", [LinkConfig::new("wide").connect(&wide)]),
    ];
    let [owner, observer] = [join(&nodes[0], "owner"), join(&nodes[1], "observer")];
    owner.create("car/1", &car(), &[("paint", "red".into())]).unwrap();
    let each = ObjectContract::per_second(50, 400, ms(100));
    let contract = InterestContract { each, objects: 20 };
    let refused = answer(&observer, contract);
    assert!(matches!(refused, ServiceEvent::Refused(..)), "{refused:?}");
    // Another node reserves the same tag on its own path.
    let number = contract.fingerprint();
    let tag = format!("town/@promised/{}/{number:016x}/{}", observer.id(), owner.id());
    let other = nodes[2].subscriber(&tag).within(ms(500)).declare().unwrap();
    let granted = || matches!(other.try_event(), Some(SubscriberEvent::Granted(_)));
    wait_until("its path is granted", granted);
    // It repeats the views of the observer.
    let views = format!("town/@view/{}", observer.id());
    let mut heard = nodes[2].subscriber(&views).declare().unwrap();
    let view = heard.recv_timeout(SOON).unwrap();
    let mut forged = nodes[2].publisher(&views).declare().unwrap();
    wait_until("the owner counts them", || {
        forged.put(view.payload.clone()).unwrap();
        std::thread::sleep(ms(10));
        owner.report().packets_forged > 0
    });
    wait_until("the object arrives", || paint(&observer, "car/1") == Some("red".into()));
    assert_eq!(owner.report().exchanges.promised, 0);
}

#[test]
fn a_function_of_the_application_decides_and_a_wrong_one_is_disabled() {
    let nodes = pair(1_000_000);
    let [owner, observer] = [join(&nodes[0], "owner"), join(&nodes[1], "observer")];
    owner.create("car/red", &car(), &[("paint", "red".into())]).unwrap();
    owner.create("car/blue", &car(), &[("paint", "blue".into())]).unwrap();
    let red = |pair: &PairView<'_>| {
        (pair.field("paint") == Some(&"red".into())).then(|| ExchangeTerms::every(ms(20).into()))
    };
    owner.decide(red).unwrap();
    observer.observe(Some(Interest::every(ms(20)))).unwrap();
    wait_until("the red object arrives", || observer.object("car/red").is_some());
    std::thread::sleep(ms(300));
    assert!(observer.object("car/blue").is_none());

    type Function = fn(&PairView<'_>) -> Option<ExchangeTerms>;
    // Without the panic hook, whose backtrace takes longer than the budget.
    let panics: Function = |_| std::panic::resume_unwind(Box::new("no such thing"));
    let loops: Function = |_| loop {
        std::thread::sleep(ms(50));
    };
    for (text, function) in [("failed: no such thing", panics), ("took longer than", loops)] {
        observer.observe(None).unwrap();
        wait_until("the object ends", || observer.object("car/red").is_none());
        owner.decide(function).unwrap();
        observer.observe(Some(Interest::every(ms(20)))).unwrap();
        wait_until("by the fallback rule", || observer.object("car/blue").is_some());
        let disabled = |event| matches!(event, WorldEvent::Disabled(_, error) if error.to_string().contains(text));
        wait_until("the function is disabled", || owner.try_event().is_some_and(disabled));
    }
}

#[test]
fn several_workers_run_one_function_at_once() {
    let nodes = pair(1_000_000);
    let owner = join(&nodes[0], "owner");
    owner.create("car/1", &car(), &[]).unwrap();
    let [running, most] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
    let (counted, greatest) = (Arc::clone(&running), Arc::clone(&most));
    let slow = move |_: &PairView<'_>| {
        greatest.fetch_max(counted.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(ms(20));
        counted.fetch_sub(1, Ordering::SeqCst);
        Some(ExchangeTerms::every(ms(20).into()))
    };
    let workers = DecisionWorkers { count: 3, order: RunOrder::RateMonotonic };
    let none = DecisionWorkers { count: 0, ..workers };
    let error = owner.decide_on(none, slow.clone()).unwrap_err().to_string();
    assert!(error.starts_with("workers 0: must be from 1 to 64"), "{error}");
    owner.decide_on(workers, slow).unwrap();
    // Their batches begin at most 14 ms apart, so one worker would be late.
    let observers: Vec<_> = (0..8).map(|number| join(&nodes[1], &format!("{number}"))).collect();
    for observer in &observers {
        observer.observe(Some(Interest::every(ms(20)))).unwrap();
    }
    wait_until("two run at once", || most.load(Ordering::SeqCst) >= 2);
    assert!(most.load(Ordering::SeqCst) <= 3);
    let shown = || {
        let others = observers[0].report().participants;
        others.iter().find(|other| other.id == owner.id()).and_then(|other| other.workers)
    };
    wait_until("observers see the workers", || shown() == Some(workers));
    owner.decide_by_observers();
    wait_until("and their end", || shown().is_none());
}

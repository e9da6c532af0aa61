//! The objects and participants of a world.

use crate::host::{Host, LIMIT};
use paceline::world::{Interest, ObjectContract, Schema};
use std::time::{Duration, Instant};

#[test]
fn ls_shows_objects_participants_and_the_parts_of_delays() {
    let host = Host::new();
    let _node = host.start_node();
    let nobody = host.run(&["ls", "--objects", "town"]);
    nobody.said(0, "");
    assert!(nobody.text().starts_with("nobody is in world town: "), "{}", nobody.text());
    host.run(&["ls", "--objects", "a/*"]).said(1, "must have 1 to 100 bytes");

    let open =
        |name| paceline::Node::builder().runtime_dir(host.path("")).name(name).open().unwrap();
    let (one, two) = (open("one"), open("two"));
    let (owner, observer) = (one.world("town").join().unwrap(), two.world("town").join().unwrap());
    let schema = Schema::parse("car/3 motion{position:vector} look{paint:text}").unwrap();
    let fields = [("paint", "red".into()), ("position", [1.0, 0.5, 0.0].into())];
    let _car = owner.create("car/7", &schema, &fields).unwrap();
    let interest = Interest::every(Duration::from_millis(50));
    let contract = ObjectContract::per_second(10, 60, Duration::from_millis(150));
    observer.observe(Some(interest.with_contract(contract, 5))).unwrap();
    let until = Instant::now() + LIMIT;
    while observer.object("car/7").is_none() {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(10));
    }

    let text = host.run(&["ls", "--objects", "town"]).text();
    for part in ["OBJECTS", "car/7", "car/3", "paint=\"red\"", "every 50 ms", "150 ms", "DELAYS"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let guide = include_str!("../../../../docs/guides/objects.md");
    let line = "paceline ls --objects town --json";
    assert!(guide.lines().any(|documented| documented == line), "the guide lacks {line}");
    let ls = host.run(&["ls", "--objects", "town", "--json"]).text();
    let document: serde_json::Value = serde_json::from_str(&ls).unwrap();
    let car = &document["objects"][0];
    assert_eq!((&car["owner"], &car["schema"]), (&"one".into(), &"car/3".into()), "{ls}");
    assert_eq!(car["fields"], serde_json::json!({"paint": "red", "position": [1.0, 0.5, 0.0]}));
    let others = document["participants"].as_array().unwrap();
    let two = others.iter().find(|other| other["name"] == "two").unwrap();
    assert_eq!((&two["contract"]["objects"], &two["objects"]), (&5.into(), &0.into()), "{ls}");
    let budget = &document["budgets"][0];
    assert_eq!((&budget["owner"], &budget["observer"]), (&"one".into(), &"two".into()), "{ls}");
    let us = |name: &str| budget[name].as_u64().unwrap();
    let parts = ["deciding_us", "fragmenting_us", "sending_us", "observer_us"].map(us);
    assert!(parts.iter().all(|part| *part > 0), "{budget}");
    // Each is rounded down.
    let sum = us("sending_us") + us("observer_us") + us("spread_us") + us("network_us");
    assert!((149_997..=150_000).contains(&sum), "{budget}");
}

//! Shares of a hostile node in everything that a participant keeps for others.

use crate::net::{Net, about, car, end, fast, introduction, intruder, ms, view};
use paceline_objects::packet::{Fate, Hand, Ownership, Packet, UpdateRecord};
use paceline_objects::participant::ParticipantSettings;
use paceline_objects::semantic::{DeclaredRule, ExchangeTerms};
use paceline_objects::{FieldKind, Interest, InterestRule, Schema};

fn small() -> ParticipantSettings {
    ParticipantSettings {
        peers_max: 40,
        state_bytes_max: 1 << 20,
        ..ParticipantSettings::default()
    }
}

/// Returns a schema of nearly 8 KiB.
fn wide(number: u32) -> Schema {
    let fields = (0..255).map(|field| format!("field_of_a_name_{number}_{field}"));
    let schema = fields
        .fold(Schema::new("wide", number), |schema, field| schema.field(&field, FieldKind::Text));
    schema.finish().expect("valid")
}

#[test]
fn participants_of_one_node_leave_places_for_others() {
    let mut net = Net::new(&[small()]);
    for number in 0..100 {
        net.hostile(&Packet::PeerDescription(about(intruder(number), 1, Vec::new())));
    }
    net.run(ms(500));
    assert_eq!(net.peers[0].peers().count(), 35);
    assert_eq!(net.peers[0].counts().too_many, 65);
    for _ in 0..4 {
        net.join(small());
    }
    net.run(ms(500));
    assert_eq!(net.peers[0].peers().count(), 39);
    // Its places are free again when it is silent.
    net.run(ms(5_000));
    assert_eq!(net.peers[0].peers().count(), 4);
}

#[test]
fn schemas_use_their_share_and_are_freed_with_their_participant() {
    let mut net = Net::new(&[small(); 2]);
    net.observe_all();
    for number in 0..8 {
        let schemas = (0..64).map(wide).collect();
        net.hostile(&Packet::PeerDescription(about(intruder(number), 1, schemas)));
        net.run(ms(20));
    }
    let used = net.peers[1].replicas().bytes();
    assert!((700_000..950_000).contains(&used), "{used} bytes");
    assert!(net.peers[1].replicas().counts().over_share > 0);
    net.create(0, "car/1", "red");
    net.run_with(ms(1_000), ms(500), |net| {
        (0..8).for_each(|number| net.hostile_view(intruder(number), Vec::new()));
    });
    net.check("car/1", 0, "red");
    // They are silent: their schemas stay for ten minutes, in case they return.
    net.run(ms(10_000));
    assert!(net.peers[1].replicas().bytes() > 400_000);
    net.run(ms(600_000));
    let used = net.peers[1].replicas().bytes();
    assert!(used < 10_000, "{used} bytes");
    net.check("car/1", 0, "red");
}

#[test]
fn objects_use_their_share_and_are_freed_with_their_owner() {
    let mut net = Net::new(&[small(); 2]);
    net.observe_all();
    for number in 0..4 {
        net.hostile(&Packet::PeerDescription(about(intruder(number), 1, vec![car(), wide(1)])));
    }
    let large = |object: u32| {
        let update = introduction(object, &format!("many/{object}"), Ownership::default());
        // Groups that its schema does not have.
        let groups = (0..32).map(|group| (group, vec![7; 800].into())).collect();
        UpdateRecord { groups, ..update }
    };
    let mut step = 0;
    net.run_with(ms(2_000), ms(10), |net| {
        for number in 0..4 {
            step += 1;
            net.hostile_fragment(intruder(number), vec![large(step), large(step + 1_000_000)]);
        }
    });
    assert!(net.peers[1].replicas().counts().over_share > 0);
    let used = net.peers[1].replicas().bytes();
    assert!((600_000..=1_000_000).contains(&used), "{used} bytes");
    let many = net.peers[1].replicas().len();
    assert!(many < 40, "{many} replicas of 26 kB");
    for number in 0..100 {
        net.create(0, &format!("car/{number}"), "red");
    }
    net.run_with(ms(2_000), ms(500), |net| {
        (0..4).for_each(|number| net.hostile_view(intruder(number), Vec::new()));
    });
    for number in 0..100 {
        net.check(&format!("car/{number}"), 0, "red");
    }
    for number in 0..4 {
        let mut farewell = view(intruder(number), u32::MAX / 4, Vec::new());
        farewell.leaving = true;
        net.hostile(&Packet::ObserverView(farewell));
    }
    net.run(ms(500));
    let used = net.peers[1].replicas().bytes();
    assert!(used < 200_000, "{used} bytes of 100 objects");
}

#[test]
fn ends_of_objects_use_their_share() {
    let mut net = Net::new(&[small(); 2]);
    net.observe_all();
    net.create(0, "car/1", "red");
    net.hostile(&Packet::PeerDescription(about(intruder(1), 1, vec![car()])));
    for step in 0..400_u32 {
        let fates = [Fate::Deleted, Fate::Withdrawn];
        let updates = (0..100).flat_map(|number| {
            let object = step * 100 + number;
            let path = format!("many/{object}");
            let fate = fates[number as usize % 2];
            [introduction(object, &path, Ownership::default()), end(object, fate)]
        });
        net.hostile_fragment(intruder(1), updates.collect());
        net.hostile_view(intruder(1), Vec::new());
        net.run(ms(20));
    }
    let used = net.peers[1].replicas().bytes();
    assert!((600_000..=940_000).contains(&used), "{used} bytes");
    net.check("car/1", 0, "red");
}

#[test]
fn hand_overs_leave_places_for_own_objects_and_schemas() {
    let settings = ParticipantSettings { objects_max: 200, ..ParticipantSettings::default() };
    let mut net = Net::new(&[settings]);
    let schemas: Vec<_> = (0..64)
        .map(|number| Schema::new(&format!("s{number}"), 1).field("x", FieldKind::Int).finish())
        .map(|schema| schema.expect("valid"))
        .collect();
    net.hostile(&Packet::PeerDescription(about(intruder(1), 1, schemas.clone())));
    for number in 0..1_000_usize {
        let schema = schemas[number % 64].fingerprint();
        let (from, path, groups) = (intruder(1), format!("gift/{number}"), Vec::new());
        net.hostile(&Packet::Hand(Hand { from, path, schema, epoch: 1, groups }));
    }
    net.run(ms(500));
    assert_eq!(net.peers[0].owned().len(), 175);
    assert!(net.peers[0].counts().hands_refused > 0);
    for number in 0..20_u32 {
        let schema = Schema::new(&format!("own{number}"), 1).field("x", FieldKind::Int).finish();
        let now = net.now;
        let created =
            net.peers[0].create(&format!("own/{number}"), &schema.expect("valid"), &[], now);
        created.expect("there is room");
    }
    // Their end frees their places.
    for number in 0..1_000 {
        if let Some(object) = net.owned(0, &format!("gift/{number}")) {
            net.delete(0, object);
        }
    }
    let hand = |number: usize| {
        let (from, path) = (intruder(1), format!("late/{number}"));
        let (schema, groups) = (schemas[0].fingerprint(), Vec::new());
        Packet::Hand(Hand { from, path, schema, epoch: 1, groups })
    };
    net.hostile(&hand(1));
    net.run(ms(100));
    assert!(net.owned(0, "late/1").is_some());
}

#[test]
fn observers_of_one_node_leave_pairs_and_rules_for_others() {
    let mut net = Net::new(&[ParticipantSettings { state_bytes_max: 1 << 20, ..small() }; 2]);
    for number in 0..10 {
        net.create(0, &format!("car/{number}"), "red");
    }
    let text = format!("distance < 1.0{}", " || age > 9.0".repeat(30));
    let rule = DeclaredRule {
        whom: Some(text.clone()),
        every: Some("1.0".into()),
        ..DeclaredRule::default()
    };
    let rule = InterestRule::Declared { rule, base: ExchangeTerms::every(ms(50)) };
    let mut description = about(intruder(0), 1, Vec::new());
    description.interest = Some(Interest { rule, ..fast() });
    for number in 0..10 {
        description.peer = intruder(number);
        net.hostile(&Packet::PeerDescription(description.clone()));
    }
    net.run(ms(500));
    let used = net.peers[0].replicas().bytes();
    assert!((300_000..=600_000).contains(&used), "{used} bytes");
    net.observe_all();
    net.run(ms(2_000));
    net.check("car/7", 0, "red");
}

#[test]
fn an_observer_that_forgets_all_the_time_is_served_twice_per_second() {
    let mut net = Net::new(&[ParticipantSettings::default(); 2]);
    for number in 0..100 {
        net.create(0, &format!("car/{number}"), "red");
    }
    net.observe_all();
    net.run(ms(1_000));
    let mut description = about(intruder(1), 1, Vec::new());
    description.interest = Some(fast());
    net.hostile(&Packet::PeerDescription(description));
    let before = net.updates_heard;
    let mut number = 0;
    let owner = net.id(0);
    net.run_with(ms(5_000), ms(10), |net| {
        number += 1;
        let mut view = view(intruder(1), number, Vec::new());
        view.acks.push(paceline_objects::packet::FragmentAck {
            owner,
            class: paceline_objects::packet::UpdateClass::BestEffort,
            generation: number,
            run: 0,
            ranges: Vec::new(),
        });
        net.hostile(&Packet::ObserverView(view));
    });
    let fragments = net.updates_heard - before;
    // Six fragments have all objects. Each introduction has time to arrive.
    assert!((20..200).contains(&fragments), "{fragments} fragments for 100 objects in 5 s");
    net.check("car/7", 0, "red");
}

#[test]
fn many_nodes_that_leave_do_not_push_out_the_memory_of_others() {
    let mut net = Net::new(&[small(); 2]);
    net.observe_all();
    let object = net.create(0, "car/1", "red");
    net.run(ms(1_000));
    net.cut(0, true);
    net.run(ms(4_000));
    // The silent one is remembered although a thousand others are gone since.
    for number in 0..1_000 {
        net.hostile(&Packet::PeerDescription(about(intruder(number), 1, Vec::new())));
        net.run(ms(10));
        let mut farewell = view(intruder(number), 1, Vec::new());
        farewell.leaving = true;
        net.hostile(&Packet::ObserverView(farewell));
    }
    net.cut_quietly(0, false);
    net.run(ms(2_500));
    net.paint(0, object, "blue");
    net.run(ms(500));
    net.check("car/1", 0, "blue");
    assert_eq!(net.peers[1].name_of(net.id(0)), Some("honest-0"), "without a new description");
}

/// Fills the memory for objects of others with replicas of the hostile node.
fn fill(net: &mut Net, first: u32) {
    net.hostile(&Packet::PeerDescription(about(intruder(1), 1, vec![car()])));
    for step in 0..40 {
        let updates = (0..50).map(|number| {
            let object = first + step * 50 + number;
            introduction(object, &format!("many/{object}"), Ownership::default())
        });
        net.hostile_fragment(intruder(1), updates.collect());
    }
    net.run(ms(100));
}

#[test]
fn what_was_refused_for_lack_of_memory_arrives_when_there_is_some() {
    let settings = ParticipantSettings { state_bytes_max: 65_536, ..small() };
    let mut net = Net::new(&[small(), settings]);
    net.peers[1].observe(Some(fast())).expect("valid");
    net.run(ms(100));
    fill(&mut net, 0);
    for number in 0..40 {
        net.create(0, &format!("car/{number}"), "red");
    }
    net.run(ms(2_000));
    let known = (0..40).filter(|number| net.known(1, &format!("car/{number}")).is_some()).count();
    assert!(known < 40 && net.peers[1].replicas().counts().over_share > 0, "{known} are known");
    // The intruder is silent from now on.
    net.run(ms(12_000));
    for number in 0..40 {
        net.check(&format!("car/{number}"), 0, "red");
    }
}

#[test]
fn known_objects_change_and_known_schemas_stay_while_memory_is_full() {
    let settings = ParticipantSettings { state_bytes_max: 1 << 17, ..small() };
    let mut net = Net::new(&[small(), settings]);
    net.peers[1].observe(Some(fast())).expect("valid");
    let cars: Vec<_> = (0..60).map(|number| net.create(0, &format!("car/{number}"), "")).collect();
    net.run(ms(1_000));
    fill(&mut net, 0);
    // Its part is more than the equal one now, and others have used the rest.
    let schema = Schema::parse("van/1 look{paint:text}").expect("valid");
    let now = net.now;
    net.peers[0].create("van/1", &schema, &[("paint", "red".into())], now).expect("new");
    for car in cars {
        net.paint(0, car, "a longer paint");
    }
    net.run_with(ms(2_000), ms(500), |net| net.hostile_view(intruder(1), Vec::new()));
    for number in 0..60 {
        net.check(&format!("car/{number}"), 0, "a longer paint");
    }
}

#[test]
fn a_new_interest_replaces_the_memory_of_the_last_one() {
    let settings = ParticipantSettings { state_bytes_max: 65_536, ..small() };
    let mut net = Net::new(&[settings, small()]);
    net.create(0, "car/1", "red");
    let rule = |text: &str| {
        let whom = Some(format!("distance < 1.0{}", text.repeat(30)));
        let rule = DeclaredRule { whom, every: Some("1.0".into()), ..DeclaredRule::default() };
        Interest {
            rule: InterestRule::Declared { rule, base: ExchangeTerms::every(ms(50)) },
            ..fast()
        }
    };
    net.peers[1].observe(Some(rule(" || age > 9.0"))).expect("valid");
    net.run(ms(500));
    let before = net.peers[0].replicas().bytes();
    net.peers[1].observe(Some(rule(" || age > 8.0"))).expect("valid");
    net.run(ms(2_000));
    assert_eq!(net.peers[0].replicas().bytes(), before);
    assert!(before > 32_768, "{before} bytes: two rules have no room");
    net.check("car/1", 0, "red");
}

#[test]
fn a_refused_hand_over_leaves_no_schema_behind() {
    let mut net = Net::new(&[ParticipantSettings::default()]);
    let other = Schema::parse("car/1 look{paint:int}").expect("valid");
    net.hostile(&Packet::PeerDescription(about(intruder(1), 1, vec![other.clone()])));
    let (from, path, schema) = (intruder(1), "gift/1".to_owned(), other.fingerprint());
    let groups = vec![(7, vec![1, 2, 3].into())];
    net.hostile(&Packet::Hand(Hand { from, path, schema, epoch: 1, groups }));
    net.run(ms(500));
    assert_eq!(net.owned(0, "gift/1"), None);
    net.create(0, "car/1", "red");
}

#[test]
fn schemas_without_objects_are_not_in_use() {
    let mut net = Net::new(&[ParticipantSettings::default()]);
    for number in 0..200_u32 {
        let text = format!("car/1 look{{paint:text shine_{number}:int}}");
        let schema = Schema::parse(&text).expect("valid");
        let now = net.now;
        let object = net.peers[0].create("car/1", &schema, &[], now).expect("no other is in use");
        net.delete(0, object);
    }
}

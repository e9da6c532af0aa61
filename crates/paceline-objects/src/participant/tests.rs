//! Participants in virtual time, over a network that delays, loses and reorders packets.

mod net;

use super::{ParticipantSettings, WorldEvent};
use crate::contract::ObjectContract;
use crate::ids::PeerId;
use crate::interest::{Interest, InterestRule};
use crate::replicas::ReplicaEvent;
use crate::schema::{FieldKind, FieldValue, GroupMask, Schema};
use crate::semantic::{DeclaredRule, ExchangeTerms};
use net::{Link, Net};
use paceline_sched::Duration;
use proptest::prelude::*;

fn car() -> Schema {
    Schema::parse("car/1 motion{position:vector velocity:vector} look{paint:text}").expect("valid")
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(x: f64) -> FieldValue {
    [x, 0.0, 0.0].into()
}

fn fast() -> Interest {
    Interest::every(ms(50))
}

#[test]
fn a_late_observer_receives_the_state_and_then_changes() {
    let mut net = Net::new(Link::default(), &["owner", "early", "late"]);
    let object = net.create(0, "car/1", &car(), &[("position", at(1.0)), ("paint", "red".into())]);
    net.observe(1, Some(fast()));
    net.run(ms(1_000));
    assert_eq!(net.value(1, "car/1", "paint"), Some("red".into()));
    assert_eq!(net.value(2, "car/1", "paint"), None, "it observes nothing");
    net.set(0, object, &[("paint", "blue".into())]);
    net.run(ms(300));
    net.observe(2, Some(fast()));
    net.run(ms(1_000));
    for peer in [1, 2] {
        assert_eq!(net.value(peer, "car/1", "paint"), Some("blue".into()));
        assert_eq!(net.value(peer, "car/1", "position"), Some(at(1.0)));
    }
    net.delete(0, object);
    net.run(ms(500));
    for peer in [1, 2] {
        assert_eq!(net.value(peer, "car/1", "paint"), None);
        assert!(
            net.events(peer).contains(&WorldEvent::Replica(ReplicaEvent::Deleted("car/1".into())))
        );
    }
}

#[test]
fn only_the_changed_group_travels() {
    let mut net = Net::new(Link::default(), &["owner", "observer"]);
    let object = net.create(0, "car/1", &car(), &[("paint", "x".repeat(500).as_str().into())]);
    net.observe(1, Some(fast()));
    net.run(ms(1_000));
    let before = net.update_bytes;
    net.set(0, object, &[("position", at(2.0))]);
    net.run(ms(200));
    let sent = net.update_bytes - before;
    assert!((30..100).contains(&sent), "{sent} bytes");
    let changed = WorldEvent::Replica(ReplicaEvent::Changed("car/1".into(), GroupMask::of(0)));
    assert!(net.events(1).contains(&changed));
}

#[test]
fn objects_come_into_range_and_leave_it() {
    let mut net = Net::new(Link::default(), &["owner", "observer"]);
    let object = net.create(0, "car/1", &car(), &[("position", at(1_000.0))]);
    net.observe(1, Some(Interest::by_distance(&[(100.0, ms(50)), (300.0, ms(200))])));
    net.look(1, [0.0; 3]);
    net.run(ms(1_000));
    assert_eq!(net.value(1, "car/1", "position"), None);
    net.set(0, object, &[("position", at(50.0))]);
    net.run(ms(500));
    assert_eq!(net.value(1, "car/1", "position"), Some(at(50.0)));
    net.set(0, object, &[("position", at(2_000.0))]);
    net.run(ms(500));
    assert_eq!(net.value(1, "car/1", "position"), None);
    assert!(net.events(1).contains(&WorldEvent::Replica(ReplicaEvent::Withdrawn("car/1".into()))));
    net.look(1, [1_990.0, 0.0, 0.0]);
    net.run(ms(800));
    assert_eq!(net.value(1, "car/1", "position"), Some(at(2_000.0)), "it came back");
}

#[test]
fn a_declared_rule_decides_at_the_owner() {
    let mut net = Net::new(Link::default(), &["owner", "observer"]);
    net.create(0, "car/1", &car(), &[("paint", "red".into())]);
    let blue = net.create(0, "car/2", &car(), &[("paint", "blue".into())]);
    let rule =
        DeclaredRule { whom: Some("object.paint == 'red'".into()), ..DeclaredRule::default() };
    let rule = InterestRule::Declared { rule, base: ExchangeTerms::every(ms(50)) };
    net.observe(1, Some(Interest { rule, ..fast() }));
    net.run(ms(1_000));
    assert_eq!(net.value(1, "car/1", "paint"), Some("red".into()));
    assert_eq!(net.value(1, "car/2", "paint"), None);
    net.set(0, blue, &[("paint", "red".into())]);
    net.run(ms(500));
    assert_eq!(net.value(1, "car/2", "paint"), Some("red".into()));
}

#[test]
fn a_rule_that_fails_is_disabled_with_its_reason() {
    let mut net = Net::new(Link::default(), &["owner", "observer"]);
    net.create(0, "car/1", &car(), &[("paint", "red".into())]);
    let rule = DeclaredRule {
        every: Some("1.0 / distance - 1.0 / distance".into()),
        ..DeclaredRule::default()
    };
    let rule = InterestRule::Declared { rule, base: ExchangeTerms::every(ms(50)) };
    net.observe(1, Some(Interest { rule, ..fast() }));
    net.run(ms(3_000));
    assert_eq!(net.value(1, "car/1", "paint"), Some("red".into()), "by the fallback rule");
    assert!(net.events(0).iter().any(|event| matches!(event, WorldEvent::Disabled(PeerId(2), _))));
}

#[test]
fn an_object_is_handed_over_and_keeps_its_state() {
    let mut net = Net::new(Link::lossy(), &["first", "second", "observer"]);
    for peer in 0..3 {
        net.observe(peer, Some(fast()));
    }
    let object = net.create(0, "car/1", &car(), &[("paint", "red".into()), ("position", at(3.0))]);
    net.run(ms(2_000));
    net.hand_over(0, object, 1);
    net.run(ms(2_000));
    let adopted = net.owned(1, "car/1").expect("the second owns it");
    assert_eq!(net.owned(0, "car/1"), None);
    assert!(net.events(0).iter().any(|event| matches!(event, WorldEvent::Yielded(..))));
    net.set(1, adopted, &[("paint", "blue".into())]);
    net.run(ms(2_000));
    for peer in [0, 2] {
        assert_eq!(net.value(peer, "car/1", "paint"), Some("blue".into()), "participant {peer}");
        assert_eq!(net.value(peer, "car/1", "position"), Some(at(3.0)));
    }
    let lost = |event: &WorldEvent| {
        matches!(event, WorldEvent::Replica(ReplicaEvent::Lost(_) | ReplicaEvent::Deleted(_)))
    };
    assert!(!net.events(2).iter().any(lost), "the observer has it all the time");
}

#[test]
fn a_hand_over_to_nobody_ends_with_the_old_owner() {
    let mut net = Net::new(Link::default(), &["first", "second"]);
    let object = net.create(0, "car/1", &car(), &[]);
    net.run(ms(500));
    net.cut(0, 1, true);
    net.hand_over(0, object, 1);
    net.run(ms(6_000));
    assert_eq!(net.owned(0, "car/1"), Some(object));
    assert!(net.events(0).contains(&WorldEvent::Kept(object, PeerId(2))));
    net.set(0, object, &[("paint", "green".into())]);
}

#[test]
fn an_object_is_handed_over_once_at_a_time_and_kept_if_its_new_owner_leaves() {
    let mut net = Net::new(Link::default(), &["first", "second", "third"]);
    let object = net.create(0, "car/1", &car(), &[]);
    net.run(ms(500));
    net.hand_over(0, object, 1);
    assert!(net.try_hand_over(0, object, 2).is_err());
    net.leave(1);
    net.run(ms(50));
    assert!(net.events(0).contains(&WorldEvent::Kept(object, PeerId(2))));
    net.hand_over(0, object, 2);
    net.run(ms(1_000));
    assert!(net.owned(2, "car/1").is_some());
}

#[test]
fn two_owners_after_a_partition_become_one_within_a_second() {
    for observers in [vec![2], vec![0], vec![0, 1, 2]] {
        let mut net = Net::new(Link::default(), &["first", "second", "observer"]);
        net.cut(0, 1, true);
        net.create(0, "car/1", &car(), &[("paint", "red".into())]);
        net.create(1, "car/1", &car(), &[("paint", "blue".into())]);
        net.run(ms(4_000));
        for peer in &observers {
            net.observe(*peer, Some(fast()));
        }
        net.cut(0, 1, false);
        net.run(ms(1_000));
        assert!(net.owned(0, "car/1").is_some(), "the lower number wins, observers {observers:?}");
        assert_eq!(net.owned(1, "car/1"), None, "observers {observers:?}");
        net.run(ms(1_000));
        for peer in observers.into_iter().filter(|peer| *peer > 0) {
            assert_eq!(net.value(peer, "car/1", "paint"), Some("red".into()));
        }
    }
}

#[test]
fn an_owner_that_vanishes_takes_its_objects_along_and_brings_them_back() {
    let mut net = Net::new(Link::default(), &["owner", "observer"]);
    net.create(0, "car/1", &car(), &[("paint", "red".into())]);
    net.observe(1, Some(fast()));
    net.run(ms(1_000));
    // Only one direction fails, so that the owner does not notice.
    net.cut_one_way(0, 1, true);
    net.run(ms(4_000));
    assert_eq!(net.value(1, "car/1", "paint"), None);
    assert!(net.events(1).contains(&WorldEvent::Replica(ReplicaEvent::Lost("car/1".into()))));
    net.cut_one_way(0, 1, false);
    net.run(ms(2_500));
    assert_eq!(net.value(1, "car/1", "paint"), Some("red".into()));
}

#[test]
fn an_object_deleted_while_its_observer_is_silent_ends_there() {
    let mut net = Net::new(Link::default(), &["owner", "observer"]);
    let object = net.create(0, "car/1", &car(), &[("paint", "red".into())]);
    net.observe(1, Some(fast()));
    net.run(ms(1_000));
    // Only the owner forgets the other one, and has no object when it meets it again.
    net.cut_one_way(1, 0, true);
    net.run(ms(4_000));
    net.delete(0, object);
    assert_eq!(net.value(1, "car/1", "paint"), Some("red".into()));
    net.cut_one_way(1, 0, false);
    net.run(ms(2_500));
    assert_eq!(net.value(1, "car/1", "paint"), None);
}

#[test]
fn a_farewell_is_noticed_at_once() {
    let mut net = Net::new(Link::default(), &["owner", "observer"]);
    net.create(0, "car/1", &car(), &[("paint", "red".into())]);
    net.observe(1, Some(fast()));
    net.run(ms(1_000));
    net.leave(0);
    net.run(ms(100));
    assert_eq!(net.value(1, "car/1", "paint"), None);
    assert!(net.events(1).contains(&WorldEvent::Left(PeerId(1), "owner".into())));
}

#[test]
fn a_contract_keeps_its_gap_and_its_refresh() {
    let mut net = Net::new(Link::default(), &["owner", "observer"]);
    let object = net.create(0, "car/1", &car(), &[("position", at(0.0))]);
    let contract =
        ObjectContract { refresh: ms(200), ..ObjectContract::per_second(20, 200, ms(40)) };
    net.observe(1, Some(Interest::every(ms(1_000)).with_contract(contract, 1)));
    net.run(ms(1_000));
    net.grant(0, 1);
    net.run(ms(1_000));
    net.promised.clear();
    for step in 0..1_000_i32 {
        net.set(0, object, &[("position", at(f64::from(step)))]);
        net.run(ms(2));
    }
    let gaps: Vec<_> = net.promised.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    assert!(gaps.len() >= 38, "{} updates in 2 s of at most 20 per second", gaps.len());
    assert!(gaps.iter().all(|gap| *gap >= ms(50)));
    net.run(ms(500));
    net.promised.clear();
    net.run(ms(2_000));
    assert!((9..=11).contains(&net.promised.len()), "{} refreshes in 2 s", net.promised.len());
}

#[test]
fn another_schema_of_a_name_and_version_is_refused() {
    let mut net = Net::new(Link::default(), &["owner"]);
    net.create(0, "car/1", &car(), &[]);
    let other = Schema::parse("car/1 motion{position:vector}").expect("valid");
    let error = net.try_create(0, "car/2", &other).expect_err("it differs");
    assert_eq!(error.to_string(), "a different schema \"car/1\" is in use; raise its version");
}

#[test]
fn the_schemas_of_a_participant_are_limited() {
    let mut net = Net::new(Link::default(), &["owner"]);
    for number in 0..64 {
        let schema = Schema::new(&format!("s{number}"), 1).field("x", FieldKind::Int).finish();
        net.try_create(0, &format!("car/{number}"), &schema.expect("valid"))
            .expect("within the limit");
    }
    let error = net.try_create(0, "car/64", &car()).expect_err("too many").to_string();
    assert!(error.starts_with("schema \"car/1\": a participant can use 64 schemas"), "{error}");
}

#[test]
fn different_versions_of_a_schema_do_not_disturb_each_other() {
    let mut net = Net::new(Link::default(), &["old", "new", "observer"]);
    net.create(0, "car/1", &car(), &[("paint", "red".into())]);
    let new =
        Schema::parse("car/2 motion{position:vector velocity:vector} look{paint:text shine:float}")
            .expect("valid");
    net.create(1, "car/2", &new, &[("paint", "blue".into()), ("shine", 0.5.into())]);
    net.observe(2, Some(fast()));
    net.run(ms(1_000));
    assert_eq!(net.value(2, "car/1", "paint"), Some("red".into()));
    assert_eq!(net.value(2, "car/2", "shine"), Some(0.5.into()));
}

#[test]
fn limits_hold_for_each_owner() {
    let settings = ParticipantSettings { replicas_max: 3, ..ParticipantSettings::default() };
    let mut net = Net::with(Link::default(), &["many", "few", "observer"], settings);
    for number in 0..10 {
        net.create(0, &format!("many/{number}"), &car(), &[]);
    }
    net.create(1, "few/1", &car(), &[("paint", "red".into())]);
    net.observe(2, Some(fast()));
    net.run(ms(1_000));
    assert_eq!(net.replicas(2), 4);
    assert_eq!(net.value(2, "few/1", "paint"), Some("red".into()));
    assert!(net.refused_replicas(2) > 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever happens, everybody knows everything in its interest once it is quiet.
    #[test]
    fn replicas_become_equal_to_their_objects(
        seed: u64,
        loss in 0..30_u64,
        steps in prop::collection::vec((0..9_u8, 0..3_usize, 0..8_usize, 0..400_u64), 1..120),
    ) {
        let mut net = Net::new(Link { loss, seed, ..Link::lossy() }, &["a", "b", "c"]);
        for peer in 0..3 {
            net.observe(peer, Some(fast()));
        }
        for (step, peer, number, wait) in steps {
            let path = format!("car/{number}");
            let owned = net.owned(peer, &path);
            match (step, owned) {
                (0 | 1, None) => {
                    let _refused = net.try_create(peer, &path, &car());
                }
                (0..=3, Some(object)) => {
                    let paint = format!("{wait}");
                    let _handed = net.try_set(peer, object, &[("paint", paint.as_str().into())]);
                }
                (4, Some(object)) => {
                    let _refused = net.try_hand_over(peer, object, (peer + 1) % 3);
                }
                (5, Some(object)) => net.delete(peer, object),
                (6, _) => {
                    net.observe(peer, None);
                    net.observe(peer, Some(fast()));
                }
                (7, _) => net.cut(peer, (peer + 1) % 3, number % 2 == 0),
                (8, Some(object)) => {
                    // A value that grows, up to one that does not fit into a fragment.
                    let paint = "x".repeat(number * 150);
                    let _refused = net.try_set(peer, object, &[("paint", paint.as_str().into())]);
                }
                _ => {}
            }
            net.run(ms(wait));
        }
        net.settle();
        net.run(ms(15_000));
        net.check_equal();
    }

    /// Any bytes give a packet or an error, and its own encoding returns.
    #[test]
    fn any_bytes_are_a_packet_or_an_error(mut bytes: Vec<u8>, kind in 1..5_u8) {
        bytes.splice(0..0, [2, kind]);
        if let Ok(packet) = crate::packet::Packet::decode(&bytes) {
            prop_assert_eq!(crate::packet::Packet::decode(&packet.encode()), Ok(packet));
        }
    }
}

#[test]
fn messages_that_are_due_together_leave_in_parts() {
    let mut net = Net::new(Link::default(), &["owner", "observer"]);
    for number in 0..5_000 {
        net.create(0, &format!("car/{number}"), &car(), &[("position", at(f64::from(number)))]);
    }
    net.observe(1, Some(fast()));
    net.run(ms(4_000));
    assert_eq!(net.replicas(1), 5_000);
    // A message of introductions, which have paths, is two fragments.
    assert_eq!(net.fragments_at_once, 2 * 64);
}

//! Objects that others claim, delete or hand over without owning them.

use crate::net::{Net, about, car, end, introduction, intruder, keeps, ms};
use paceline_objects::packet::{Claim, Fate, Hand, Ownership, Packet};
use paceline_objects::participant::{ParticipantSettings, WorldEvent};
use paceline_sched::Duration;

/// Epochs that an intruder would choose.
const EPOCHS: [u32; 5] = [0, 1, (1 << 31) - 1, 1 << 31, u32::MAX];

/// Lets participants of the hostile node claim and introduce a path, and delete it, for some time.
fn attack(net: &mut Net, path: &str, time: Duration) {
    let mut step = 0_u32;
    for number in 0..EPOCHS.len() as u64 {
        net.hostile(&Packet::PeerDescription(about(intruder(number), 1, vec![car()])));
    }
    net.run_with(time, ms(100), |net| {
        step += 1;
        for (number, epoch) in EPOCHS.into_iter().enumerate() {
            let peer = intruder(number as u64);
            let ownership = Ownership { epoch, yields: step.is_multiple_of(2) };
            let path = path.to_owned();
            net.hostile_fragment(peer, vec![introduction(step, &path, ownership)]);
            net.hostile_view(peer, vec![Claim { path, owner: peer, ownership }]);
            if step.is_multiple_of(3) {
                net.hostile_fragment(peer, vec![end(step, Fate::Deleted)]);
            }
            if step.is_multiple_of(5) {
                net.hostile_fragment(peer, vec![end(step, Fate::Moved(intruder(99)))]);
            }
        }
    });
}

#[test]
fn objects_that_do_not_yield_stay_with_their_owner() {
    let mut net = Net::new(&[keeps(); 3]);
    net.observe_all();
    let object = net.create(0, "car/1", "red");
    net.run(ms(1_000));
    attack(&mut net, "car/1", ms(10_000));
    assert_eq!(net.owned(0, "car/1"), Some(object));
    for peer in 1..3 {
        assert!(!net.saw_end(peer, "car/1"), "{:?}", net.events[peer]);
    }
    net.paint(0, object, "blue");
    net.run(ms(500));
    net.check("car/1", 0, "blue");
    // Its owner can still hand it over, and delete it.
    net.hand_over(0, object, 1);
    attack(&mut net, "car/1", ms(2_000));
    net.check("car/1", 1, "blue");
    let object = net.owned(1, "car/1").expect("handed over");
    net.delete(1, object);
    net.run(ms(200));
    assert_eq!(net.owned(1, "car/1"), None);
}

#[test]
fn an_owner_that_was_silent_finds_its_objects_again() {
    let mut net = Net::new(&[keeps(); 3]);
    net.observe_all();
    let object = net.create(0, "car/1", "red");
    net.run(ms(1_000));
    net.cut(0, true);
    attack(&mut net, "car/1", ms(5_000));
    assert_ne!(net.known(1, "car/1").map(|(owner, _)| owner), Some(net.id(0)));
    net.cut(0, false);
    attack(&mut net, "car/1", ms(5_000));
    assert_eq!(net.owned(0, "car/1"), Some(object));
    net.check("car/1", 0, "red");
}

#[test]
fn who_joins_later_prefers_an_owner_that_does_not_yield() {
    let mut net = Net::new(&[keeps(); 2]);
    net.observe_all();
    net.create(0, "car/1", "red");
    net.hostile(&Packet::PeerDescription(about(intruder(1), 1, vec![car()])));
    let ownership = Ownership { epoch: 77, yields: true };
    let late = net.join(ParticipantSettings::default());
    // The forged introduction is the first one that it receives.
    net.cut(0, true);
    net.observe_all();
    net.run_with(ms(500), ms(100), |net| {
        net.hostile_view(intruder(1), Vec::new());
        net.hostile_fragment(intruder(1), vec![introduction(0, "car/1", ownership)]);
    });
    assert_eq!(net.known(late, "car/1").map(|(owner, _)| owner), Some(intruder(1)));
    net.cut(0, false);
    net.run_with(ms(2_000), ms(100), |net| net.hostile_view(intruder(1), Vec::new()));
    net.check("car/1", 0, "red");
}

#[test]
fn claims_of_third_participants_take_nothing() {
    let mut net = Net::new(&[ParticipantSettings::default(); 3]);
    net.observe_all();
    let object = net.create(0, "car/1", "red");
    net.run(ms(1_000));
    let (honest, nobody) = (net.id(1), intruder(55));
    net.run_with(ms(5_000), ms(50), |net| {
        for (owner, epoch) in [(honest, 9), (nobody, u32::MAX / 2), (honest, u32::MAX / 2)] {
            let ownership = Ownership { epoch, yields: true };
            net.hostile_view(intruder(1), vec![Claim { path: "car/1".into(), owner, ownership }]);
        }
    });
    assert_eq!(net.owned(0, "car/1"), Some(object));
    net.check("car/1", 0, "red");
}

#[test]
fn only_its_owner_hands_an_object_over() {
    for settings in [keeps(), ParticipantSettings::default()] {
        let mut net = Net::new(&[settings; 3]);
        // The last one has no replicas.
        for peer in 0..2 {
            net.peers[peer].observe(Some(crate::net::fast())).expect("valid");
        }
        let object = net.create(0, "car/1", "red");
        net.run(ms(1_000));
        net.hostile(&Packet::PeerDescription(about(intruder(1), 1, vec![car()])));
        net.run_with(ms(5_000), ms(100), |net| {
            for epoch in EPOCHS {
                net.hostile(&Packet::Hand(Hand {
                    from: intruder(1),
                    path: "car/1".into(),
                    schema: car().fingerprint(),
                    epoch,
                    groups: Vec::new(),
                }));
            }
            net.hostile_view(intruder(1), Vec::new());
        });
        let adopted = |event: &WorldEvent| matches!(event, WorldEvent::Adopted(..));
        assert!(!net.events[1].iter().any(adopted), "it knows the owner");
        if !settings.yields {
            assert_eq!(net.owned(0, "car/1"), Some(object));
            assert_eq!(net.known(1, "car/1").map(|(owner, _)| owner), Some(net.id(0)));
            // The one without replicas gives its object back.
            net.run_with(ms(3_000), ms(100), |net| net.hostile_view(intruder(1), Vec::new()));
            net.observe_all();
            net.run(ms(3_000));
            net.check("car/1", 0, "red");
        }
    }
}

#[test]
fn many_objects_are_handed_over_at_once_next_to_an_intruder() {
    for settings in [keeps(), ParticipantSettings::default()] {
        let mut net = Net::new(&[settings; 3]);
        net.observe_all();
        let paths: Vec<_> = (0..1_000).map(|number| format!("car/{number}")).collect();
        let objects: Vec<_> = paths.iter().map(|path| net.create(0, path, "red")).collect();
        net.run(ms(5_000));
        for object in objects {
            net.hand_over(0, object, 1);
        }
        if settings.yields {
            net.run(ms(6_000));
        } else {
            attack(&mut net, "car/500", ms(6_000));
        }
        net.run(ms(3_000));
        for path in &paths {
            net.check(path, 1, "red");
        }
    }
}

#[test]
fn forged_epochs_lock_no_path() {
    for epoch in EPOCHS {
        let mut net = Net::new(&[ParticipantSettings::default(); 3]);
        net.observe_all();
        net.hostile(&Packet::PeerDescription(about(intruder(1), 1, vec![car()])));
        let ownership = Ownership { epoch, yields: true };
        net.run_with(ms(500), ms(100), |net| {
            net.hostile_view(intruder(1), Vec::new());
            net.hostile_fragment(intruder(1), vec![introduction(0, "car/1", ownership)]);
        });
        assert!(net.try_create(0, "car/1", "red").is_err(), "it belongs to the intruder");
        // The intruder is silent from now on.
        net.run(ms(4_000));
        for round in 0..3 {
            let object = net.create(0, "car/1", "red");
            net.run(ms(1_000));
            net.check("car/1", 0, "red");
            net.hand_over(0, object, 1);
            net.run(ms(1_000));
            net.check("car/1", 1, "red");
            let object = net.owned(1, "car/1").expect("handed over");
            net.hand_over(1, object, 0);
            net.run(ms(1_000));
            let object = net.owned(0, "car/1").expect("handed back");
            net.paint(0, object, "blue");
            net.run(ms(500));
            net.check("car/1", 0, "blue");
            net.delete(0, object);
            net.run(ms(500));
            assert_eq!(net.known(2, "car/1"), None, "round {round}");
        }
    }
}

#[test]
fn two_owners_after_a_partition_become_one_next_to_an_intruder() {
    let mut net = Net::new(&[ParticipantSettings::default(); 3]);
    net.cut(1, true);
    net.create(0, "car/1", "red");
    net.create(1, "car/1", "blue");
    // Only the third one sees both.
    net.peers[2].observe(Some(crate::net::fast())).expect("valid");
    net.run(ms(4_000));
    net.cut(1, false);
    net.run(ms(1_500));
    assert!(net.owned(0, "car/1").is_some());
    assert_eq!(net.owned(1, "car/1"), None);
}

#[test]
fn a_new_owner_is_known_at_once_next_to_an_intruder_that_waits() {
    let mut net = Net::new(&[keeps(); 3]);
    net.observe_all();
    let object = net.create(0, "car/1", "red");
    net.run(ms(1_000));
    net.hostile(&Packet::PeerDescription(about(intruder(1), 1, vec![car()])));
    net.hostile_view(intruder(1), Vec::new());
    let ownership = Ownership { epoch: 1_000, yields: false };
    net.hostile_fragment(intruder(1), vec![introduction(0, "car/1", ownership)]);
    net.run(ms(500));
    // The introduction reaches the old owner after the answer to the hand-over.
    net.lost = Some((1, 0));
    net.hand_over(0, object, 1);
    net.run_with(ms(500), ms(100), |net| net.hostile_view(intruder(1), Vec::new()));
    net.lost = None;
    net.run_with(ms(2_500), ms(100), |net| net.hostile_view(intruder(1), Vec::new()));
    net.check("car/1", 1, "red");
}

#[test]
fn a_hand_over_does_not_end_the_epochs_of_a_path() {
    let mut net = Net::new(&[ParticipantSettings::default()]);
    net.hostile(&Packet::PeerDescription(about(intruder(1), 1, vec![car()])));
    let hand = |path: &str, epoch| {
        let (from, schema, groups) = (intruder(1), car().fingerprint(), Vec::new());
        Packet::Hand(Hand { from, path: path.to_owned(), schema, epoch, groups })
    };
    net.hostile(&hand("far/1", (1 << 31) - 1));
    net.hostile(&hand("far/2", u32::MAX / 4));
    net.hostile(&hand("near/1", 7));
    net.run(ms(500));
    assert_eq!(net.owned(0, "far/1").or(net.owned(0, "far/2")), None);
    assert!(net.owned(0, "near/1").is_some());
}

#[test]
fn an_owner_without_replicas_hands_many_objects_over_at_once() {
    let mut net = Net::new(&[ParticipantSettings::default(); 2]);
    let paths: Vec<_> = (0..1_000).map(|number| format!("car/{number}")).collect();
    let objects: Vec<_> = paths.iter().map(|path| net.create(0, path, "red")).collect();
    net.run(ms(1_000));
    for object in objects {
        net.hand_over(0, object, 1);
    }
    net.run(ms(6_000));
    assert_eq!(net.peers[0].owned().len(), 0);
    assert_eq!(net.peers[1].owned().len(), 1_000);
}

#[test]
fn an_intruder_does_not_use_the_claims_of_others() {
    let mut net = Net::new(&[ParticipantSettings::default(); 2]);
    let paths: Vec<_> = (0..1_000).map(|number| format!("own/{number}")).collect();
    paths.iter().for_each(|path| {
        net.create(1, path, "red");
    });
    let object = net.create(0, "car/1", "red");
    net.run(ms(1_000));
    // Each claim for another participant causes one of that participant.
    let owner = net.id(1);
    let mut step = 0;
    let mut claim = |net: &mut Net| {
        step += 50;
        let claims = (step..step + 50).map(|number| Claim {
            path: paths[number % 1_000].clone(),
            owner,
            ownership: Ownership::default(),
        });
        net.hostile_view(intruder(1), claims.collect());
    };
    net.run_with(ms(500), ms(5), &mut claim);
    net.hand_over(0, object, 1);
    net.run_with(ms(200), ms(5), &mut claim);
    assert_eq!(net.owned(0, "car/1"), None, "the answer is one of the claims");
    assert!(net.owned(1, "car/1").is_some());
}

#[test]
fn a_chain_of_hand_overs_between_mixed_settings_loses_nothing() {
    let yields = ParticipantSettings::default();
    for last in [yields, keeps()] {
        for (observes, wait) in [(true, 100), (true, 300), (false, 100), (false, 800)] {
            let mut net = Net::new(&[keeps(), keeps(), last]);
            net.observe_all();
            if !observes {
                net.peers[2].observe(None).expect("valid");
            }
            let object = net.create(0, "car/1", "red");
            net.run(ms(1_000));
            net.hand_over(0, object, 1);
            net.run(ms(wait));
            let object = net.owned(1, "car/1").expect("handed over");
            net.hand_over(1, object, 2);
            net.run(ms(wait));
            let object = net.owned(2, "car/1").expect("handed over");
            net.run(ms(3_000));
            assert_eq!(net.owned(2, "car/1"), Some(object), "observes {observes}, wait {wait}");
            net.hand_over(2, object, 0);
            net.run(ms(3_000));
            net.observe_all();
            net.run(ms(1_000));
            net.check("car/1", 0, "red");
        }
    }
}

#[test]
fn an_object_that_is_handed_over_at_once_is_not_lost() {
    for other in [keeps(), ParticipantSettings::default()] {
        let mut net = Net::new(&[keeps(), other, keeps()]);
        net.observe_all();
        net.run(ms(500));
        // The schema is known.
        net.create(0, "car/0", "blue");
        net.run(ms(1_000));
        let object = net.create(0, "car/1", "red");
        net.hand_over(0, object, 1);
        net.run(ms(4_000));
        net.check("car/1", 1, "red");
    }
}

#[test]
fn a_forged_hand_over_changes_no_claim_of_the_owner() {
    let mut net = Net::new(&[keeps()]);
    net.create(0, "car/1", "red");
    net.hostile(&Packet::PeerDescription(about(intruder(1), 1, vec![car()])));
    let (from, path, schema) = (intruder(1), "car/1".to_owned(), car().fingerprint());
    net.hostile(&Packet::Hand(Hand { from, path, schema, epoch: u32::MAX, groups: Vec::new() }));
    net.run(ms(500));
    let views = net.heard.iter().filter_map(|bytes| match Packet::decode(bytes) {
        Ok(Packet::ObserverView(view)) => Some(view.claims),
        _ => None,
    });
    let claims: Vec<_> = views.flatten().collect();
    assert!(!claims.is_empty());
    let own = Ownership { epoch: 0, yields: false };
    assert!(claims.iter().all(|claim| claim.ownership == own), "{claims:?}");
}

#[test]
fn refused_hand_overs_do_not_delay_those_to_others() {
    let small = ParticipantSettings { objects_max: 1, ..ParticipantSettings::default() };
    let mut net = Net::new(&[ParticipantSettings::default(), small, keeps()]);
    let refused: Vec<_> = (0..2_000).map(|n| net.create(0, &format!("a/{n}"), "red")).collect();
    let others: Vec<_> = (0..10).map(|n| net.create(0, &format!("b/{n}"), "red")).collect();
    net.run(ms(500));
    refused.into_iter().for_each(|object| net.hand_over(0, object, 1));
    net.run(ms(500));
    others.into_iter().for_each(|object| net.hand_over(0, object, 2));
    net.run(ms(500));
    assert_eq!(net.peers[2].owned().len(), 10);
    net.run(ms(7_000));
    assert!(net.peers[0].owned().len() >= 1_999);
    let kept = |event: &&WorldEvent| matches!(event, WorldEvent::Kept(..));
    assert!(net.events[0].iter().filter(kept).count() >= 1_999);
}

#[test]
fn many_paths_of_two_owners_have_one_owner_at_last() {
    let mut net = Net::new(&[ParticipantSettings::default(); 3]);
    net.cut(1, true);
    let paths: Vec<_> = (0..300).map(|number| format!("car/{number}")).collect();
    for path in &paths {
        net.create(0, path, "red");
        net.create(1, path, "blue");
    }
    // Only the third one sees both.
    net.peers[2].observe(Some(crate::net::fast())).expect("valid");
    net.run(ms(4_000));
    net.cut(1, false);
    net.run(ms(15_000));
    assert_eq!((net.peers[0].owned().len(), net.peers[1].owned().len()), (300, 0));
}

#[test]
fn a_hand_over_to_nobody_reserves_no_path() {
    let mut net = Net::new(&[keeps(); 2]);
    net.observe_all();
    net.hostile(&Packet::PeerDescription(about(intruder(1), 1, vec![car()])));
    let ownership = Ownership { epoch: 0, yields: false };
    net.hostile_fragment(intruder(1), vec![introduction(0, "car/1", ownership)]);
    net.run(ms(100));
    net.hostile_fragment(intruder(1), vec![end(0, Fate::Moved(intruder(2)))]);
    net.run(ms(8_000));
    let object = net.create(0, "car/1", "red");
    net.run(ms(1_000));
    net.check("car/1", 0, "red");
    net.hostile(&Packet::PeerDescription(about(intruder(2), 1, vec![car()])));
    net.hostile_fragment(intruder(2), vec![introduction(0, "car/1", ownership)]);
    net.run(ms(1_000));
    net.check("car/1", 0, "red");
    assert_eq!(net.owned(0, "car/1"), Some(object));
}

#[test]
fn an_object_that_was_kept_although_it_was_adopted_has_one_owner() {
    let mut net = Net::new(&[keeps(), ParticipantSettings::default(), keeps()]);
    net.observe_all();
    let object = net.create(0, "car/1", "red");
    net.run(ms(1_000));
    // The answer does not arrive.
    net.lost = Some((1, 0));
    net.hand_over(0, object, 1);
    net.run(ms(11));
    assert!(net.owned(1, "car/1").is_some());
    net.cut(1, true);
    net.lost = None;
    net.run(ms(6_000));
    assert_eq!(net.owned(0, "car/1"), Some(object));
    net.cut(1, false);
    net.run(ms(4_000));
    net.check("car/1", 0, "red");
}

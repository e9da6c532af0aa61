//! Rules of the exchange list, one by one, and the values that it refuses.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod evaluation;

use paceline_objects::contract::{PromisedService, UpdateSizes};
use paceline_objects::exchange::{
    ExchangeClass, ExchangeError, ExchangeList, ExchangeSettings, ObjectFacts, Observer,
    SuppressReason, UpdateConstraints, UpdateKind,
};
use paceline_objects::semantic::{ExchangeTerms, PairView, SemanticError, TermsError};
use paceline_objects::{
    ErrorControl, GroupMask, InteractorModules, Motion, ObjectContract, ObjectContractError,
    ObjectIndex, PeerId, UpdatePolicing,
};
use paceline_sched::{Duration, Instant};

const CAR: ObjectIndex = ObjectIndex(1);
const BUS: ObjectIndex = ObjectIndex(2);
const ANN: PeerId = PeerId(1);
const BOB: PeerId = PeerId(2);
const START: Instant = Instant::from_millis(1_000);
const ALL: GroupMask = GroupMask(u32::MAX);

fn facts(x: f64, bytes: &[u32], now: Instant) -> ObjectFacts<'_> {
    let motion = Some(Motion::standing([x, 0.0, 0.0], now));
    ObjectFacts { motion, motion_groups: GroupMask::of(0), group_bytes: bytes }
}

fn every(millis: u64) -> ExchangeTerms {
    ExchangeTerms::every(Duration::from_millis(millis)).fidelity(1_000)
}

fn at(millis: u64) -> Instant {
    START + Duration::from_millis(millis)
}

/// A list with two cars and two observers, of whom Ann has interest in the car.
fn list() -> ExchangeList {
    let mut list = ExchangeList::new(ExchangeSettings::default());
    list.create(CAR, &facts(10.0, &[20, 20], START), START).unwrap();
    list.create(BUS, &facts(20.0, &[20, 20], START), START).unwrap();
    list.join(ANN, Observer::at([0.0; 3], 100.0, START), START).unwrap();
    list.join(BOB, Observer::at([0.0; 3], 100.0, START), START).unwrap();
    list.set_terms(ANN, CAR, Some(every(50)), START).unwrap();
    list
}

fn kinds(
    list: &mut ExchangeList,
    now: Instant,
    budget: u64,
) -> Vec<(PeerId, u32, UpdateKind, u32)> {
    let mut kinds = Vec::new();
    while let Some(message) = list.poll(now, &budget, 1_000) {
        let updates = message.updates.iter();
        kinds.extend(
            updates.map(|update| (message.peer, update.object.0, update.kind, update.groups.0)),
        );
        list.delivered(message.peer, message.number, now);
    }
    kinds
}

#[test]
fn interest_may_be_one_sided_and_without_it_there_is_no_slot() {
    let mut list = list();
    assert_eq!(kinds(&mut list, START, 1_000), [(ANN, 1, UpdateKind::Introduce, 3)]);
    list.change(CAR, &facts(11.0, &[20, 20], at(1)), GroupMask::of(0), at(1)).unwrap();
    list.change(BUS, &facts(11.0, &[20, 20], at(1)), GroupMask::of(0), at(1)).unwrap();
    assert_eq!(kinds(&mut list, at(49), 1_000), []);
    assert_eq!(kinds(&mut list, at(50), 1_000), [(ANN, 1, UpdateKind::Change, 3)]);
    // Bob misses both changes, Ann that of the bus.
    assert_eq!(list.counters().suppressed(SuppressReason::Interest), 3);
}

#[test]
fn an_unchanged_object_is_refreshed_by_a_header() {
    let mut list = list();
    kinds(&mut list, START, 1_000);
    assert_eq!(kinds(&mut list, at(999), 1_000), []);
    assert_eq!(kinds(&mut list, at(1_000), 1_000), [(ANN, 1, UpdateKind::Refresh, 0)]);
    assert_eq!(list.counters().refreshed, 1);
}

#[test]
fn new_terms_hold_at_the_next_exchange() {
    let mut list = list();
    kinds(&mut list, START, 1_000);
    list.change(CAR, &facts(11.0, &[20, 20], at(1)), ALL, at(1)).unwrap();
    list.set_terms(ANN, CAR, Some(every(200)), at(2)).unwrap();
    assert_eq!(kinds(&mut list, at(199), 1_000), []);
    list.set_terms(ANN, CAR, Some(every(100).fidelity(500)), at(199)).unwrap();
    assert_eq!(kinds(&mut list, at(199), 1_000), [(ANN, 1, UpdateKind::Change, 1)]);
    assert_eq!(kinds(&mut list, at(299), 1_000), [(ANN, 1, UpdateKind::Change, 2)]);
}

#[test]
fn every_suppressed_update_has_a_reason() {
    let mut list = list();
    kinds(&mut list, START, 1_000);
    for millis in 1..4 {
        list.change(CAR, &facts(11.0, &[20, 20], START), GroupMask::of(0), at(millis)).unwrap();
    }
    assert_eq!(list.counters().suppressed(SuppressReason::Gap), 2);
    assert_eq!(kinds(&mut list, at(50), 0), []);
    assert!(list.is_hungry());
    list.change(CAR, &facts(11.0, &[20, 20], START), GroupMask::of(0), at(51)).unwrap();
    assert_eq!(list.counters().suppressed(SuppressReason::Budget), 1);
    list.set_terms(ANN, CAR, Some(every(50).fidelity(1)), at(51)).unwrap();
    list.change(CAR, &facts(11.0, &[20, 20], START), ALL, at(52)).unwrap();
    assert_eq!(list.counters().suppressed(SuppressReason::Budget), 2);
    assert_eq!(kinds(&mut list, at(52), 1_000).len(), 1);
    list.change(CAR, &facts(11.0, &[20, 20], START), ALL, at(53)).unwrap();
    assert_eq!(list.counters().suppressed(SuppressReason::Fidelity), 1);
    list.set_terms(ANN, CAR, None, at(54)).unwrap();
    let counters = list.counters();
    assert_eq!(counters.offered, counters.carried + counters.suppressed_total());
}

#[test]
fn a_position_within_the_tolerance_waits_for_the_refresh() {
    let mut list = list();
    kinds(&mut list, START, 1_000);
    list.set_terms(ANN, CAR, Some(every(50).tolerance(2.0)), at(1)).unwrap();
    list.change(CAR, &facts(11.0, &[20, 20], START), GroupMask::of(0), at(2)).unwrap();
    list.change(CAR, &facts(12.0, &[20, 20], START), GroupMask::of(0), at(3)).unwrap();
    assert_eq!(list.counters().suppressed(SuppressReason::Tolerance), 1);
    assert_eq!(kinds(&mut list.clone(), at(999), 1_000), []);
    assert_eq!(kinds(&mut list.clone(), at(1_000), 1_000), [(ANN, 1, UpdateKind::Change, 3)]);
    let mut farther = list.clone();
    farther.change(CAR, &facts(12.1, &[20, 20], START), GroupMask::of(0), at(4)).unwrap();
    assert_eq!(kinds(&mut farther, at(50), 1_000), [(ANN, 1, UpdateKind::Change, 3)]);
    list.change(CAR, &facts(12.0, &[20, 20], START), GroupMask::of(1), at(4)).unwrap();
    assert_eq!(kinds(&mut list, at(50), 1_000), [(ANN, 1, UpdateKind::Change, 3)]);
}

#[test]
fn hungry_observers_get_the_same_number_of_bytes() {
    let mut list = ExchangeList::new(ExchangeSettings::default());
    for object in 0..200 {
        list.create(ObjectIndex(object), &facts(0.0, &[20], START), START).unwrap();
    }
    for peer in 0..5 {
        list.join(PeerId(peer), Observer::EVERYWHERE, START).unwrap();
        for object in 0..200 {
            list.set_terms(PeerId(peer), ObjectIndex(object), Some(every(1)), START).unwrap();
        }
    }
    // 1,100 bytes per step are a full message and a small one.
    for step in 0..50 {
        let mut left = 1_100;
        while let Some(message) = list.poll(at(step), &left, 1_000) {
            left = left.saturating_sub(message.bytes);
        }
    }
    let bytes = (0..5).map(|peer| list.counters_of(PeerId(peer)).unwrap().bytes);
    let (least, most) = (bytes.clone().min().unwrap(), bytes.max().unwrap());
    assert!(most - least <= 1_100, "from {least} to {most} bytes");
}

#[test]
fn those_of_the_greatest_weight_and_error_leave_first() {
    let mut list = list();
    list.set_terms(ANN, BUS, Some(every(50)), START).unwrap();
    kinds(&mut list, START, 1_000);
    list.change(CAR, &facts(12.0, &[20, 20], START), GroupMask::of(0), at(1)).unwrap();
    list.change(BUS, &facts(21.0, &[20, 20], START), GroupMask::of(0), at(1)).unwrap();
    let first = |list: &mut ExchangeList| {
        list.poll(at(50), &130, 1_000).map(|message| message.updates[0].object)
    };
    assert_eq!(first(&mut list.clone()), Some(CAR));
    list.set_terms(ANN, BUS, Some(every(50).weight(3.0)), at(2)).unwrap();
    assert_eq!(first(&mut list), Some(BUS));
}

fn promised(contract: ObjectContract, count: usize) -> PromisedService {
    let sizes = UpdateSizes { groups: 2, largest_group: 20, fragment_bytes: 1_000 };
    PromisedService::new(contract, count, &sizes, &ExchangeSettings::default().headers())
}

/// Introduces both objects, as best effort.
fn introduce(list: &mut ExchangeList) {
    while let Some(message) = list.poll(START, &1_000, 1_000) {
        assert_eq!(message.class, ExchangeClass::BestEffort);
        list.delivered(message.peer, message.number, START);
    }
}

/// Changes both objects.
fn change(list: &mut ExchangeList, millis: u64) {
    for object in [CAR, BUS] {
        list.change(object, &facts(11.0, &[20, 20], at(millis)), ALL, at(millis)).unwrap();
    }
}

#[test]
fn promised_objects_leave_without_a_budget_and_others_keep_their_terms() {
    let mut list = list();
    list.set_terms(ANN, BUS, Some(every(50).weight(2.0)), START).unwrap();
    let contract = ObjectContract::per_second(10, 40, Duration::from_millis(30));
    list.promise(ANN, Some(promised(contract, 1)), START).unwrap();
    // The reservation has no room for the introduction.
    assert_eq!(list.poll(START, &0, 1_000), None);
    introduce(&mut list);
    change(&mut list, 1);
    let message = list.poll(at(100), &0, 1_000).unwrap();
    assert_eq!((message.class, message.updates[0].object), (ExchangeClass::Promised, BUS));
    assert_eq!(list.poll(at(100), &0, 1_000), None);
    list.delivered(ANN, message.number, at(100));
    // A little more weight does not take the place; much more does, after the gap of the place.
    list.set_terms(ANN, CAR, Some(every(50).weight(2.4)), at(110)).unwrap();
    assert_eq!(list.poll(at(190), &0, 1_000), None);
    list.set_terms(ANN, CAR, Some(every(50).weight(2.6)), at(190)).unwrap();
    assert_eq!(list.poll(at(199), &0, 1_000), None);
    assert_eq!(list.poll(at(200), &0, 1_000).unwrap().updates[0].object, CAR);
    // An object that grows beyond the contract loses its place.
    list.change(CAR, &facts(10.0, &[20, 21], START), ALL, at(201)).unwrap();
    list.change(BUS, &facts(10.0, &[20, 20], START), ALL, at(201)).unwrap();
    assert_eq!(list.poll(at(299), &0, 1_000), None);
    assert_eq!(list.poll(at(300), &0, 1_000).unwrap().updates[0].object, BUS);
}

/// Returns the updates of the next messages of both objects, which arrive or are lost.
fn exchanged(
    list: &mut ExchangeList,
    millis: u64,
    arrives: bool,
) -> Vec<(ObjectIndex, UpdateKind)> {
    let mut updates = Vec::new();
    while let Some(message) = list.poll(at(millis), &1_000, 1_000) {
        updates.extend(message.updates.iter().map(|update| (update.object, update.kind)));
        if arrives {
            list.delivered(message.peer, message.number, at(millis));
        } else {
            list.lost(message.peer, message.number, at(millis));
        }
    }
    updates
}

#[test]
fn without_acknowledgements_a_refresh_repairs_a_loss() {
    for (error_control, due) in [(ErrorControl::Acknowledged, 100), (ErrorControl::Refreshed, 300)]
    {
        let mut list = list();
        let terms = ExchangeTerms { refresh: Duration::from_millis(250), ..every(50) };
        list.set_terms(ANN, BUS, None, START).unwrap();
        list.set_terms(ANN, CAR, Some(terms), START).unwrap();
        list.choose(ANN, InteractorModules { error_control, ..Default::default() }, START).unwrap();
        introduce(&mut list);
        list.change(CAR, &facts(11.0, &[20, 20], at(50)), GroupMask::of(1), at(50)).unwrap();
        assert_eq!(exchanged(&mut list, 50, false), [(CAR, UpdateKind::Change)]);
        let mut again = None;
        for millis in (60..400).step_by(10) {
            let updates = exchanged(&mut list, millis, true);
            if again.is_none() && updates == [(CAR, UpdateKind::Change)] {
                again = Some(millis);
            }
        }
        assert_eq!(again, Some(due), "{error_control:?}");
    }
}

#[test]
fn policing_drops_early_changes_until_the_refresh() {
    let mut list = list();
    let terms = ExchangeTerms { refresh: Duration::from_millis(250), ..every(50) };
    list.set_terms(ANN, BUS, None, START).unwrap();
    list.set_terms(ANN, CAR, Some(terms), START).unwrap();
    let policing = UpdatePolicing::Drop;
    list.choose(ANN, InteractorModules { policing, ..Default::default() }, START).unwrap();
    introduce(&mut list);
    let set = |list: &mut ExchangeList, millis| {
        let change = facts(11.0, &[20, 20], at(millis));
        list.change(CAR, &change, GroupMask::of(1), at(millis)).unwrap();
    };
    set(&mut list, 60);
    assert_eq!(exchanged(&mut list, 60, true), [(CAR, UpdateKind::Change)]);
    set(&mut list, 70);
    for millis in (70..310).step_by(10) {
        assert_eq!(exchanged(&mut list, millis, true), [], "dropped at 70 ms");
    }
    assert_eq!(exchanged(&mut list, 310, true), [(CAR, UpdateKind::Change)], "the refresh");
    assert_eq!(list.counters().suppressed(SuppressReason::Gap), 1);
}

#[test]
fn a_dropped_change_is_carried_by_the_next_one_of_another_group() {
    let mut list = list();
    list.set_terms(ANN, BUS, None, START).unwrap();
    list.set_terms(ANN, CAR, Some(every(50).fidelity(0)), START).unwrap();
    let policing = UpdatePolicing::Drop;
    list.choose(ANN, InteractorModules { policing, ..Default::default() }, START).unwrap();
    introduce(&mut list);
    let mut change = |millis, group| {
        let facts = facts(11.0, &[20, 20], at(millis));
        list.change(CAR, &facts, GroupMask::of(group), at(millis)).unwrap();
        let message = list.poll(at(millis), &1_000, 1_000)?;
        list.delivered(message.peer, message.number, at(millis));
        Some(message.updates[0].groups)
    };
    assert_eq!(change(60, 0), Some(GroupMask::of(0)));
    assert_eq!(change(70, 1), None, "dropped");
    let both = GroupMask::of(0).with(GroupMask::of(1));
    assert_eq!(change(110, 0), Some(both));
    assert_eq!(change(160, 0), Some(GroupMask::of(0)));
}

#[test]
fn a_change_has_constraints_of_its_own() {
    let mut list = list();
    list.set_terms(ANN, BUS, None, START).unwrap();
    introduce(&mut list);
    let change = |list: &mut ExchangeList, millis, constraints| {
        let facts = facts(11.0, &[20, 20], at(millis));
        list.change_with(CAR, &facts, (GroupMask::of(1), constraints), at(millis))
    };
    let half = UpdateConstraints { fidelity_permille: Some(500), within: None };
    change(&mut list, 50, half).unwrap();
    let message = list.poll(at(50), &1_000, 1_000).unwrap();
    assert_eq!(message.updates[0].groups, GroupMask::of(1), "the terms require both groups");
    list.delivered(ANN, message.number, at(50));
    let soon = UpdateConstraints {
        within: Some(Duration::from_millis(20)),
        ..UpdateConstraints::default()
    };
    change(&mut list, 60, soon).unwrap();
    assert_eq!(exchanged(&mut list, 100, true), [], "40 ms are too late");
    assert_eq!(list.counters().suppressed(SuppressReason::Expired), 1);
    change(&mut list, 110, soon).unwrap();
    assert_eq!(exchanged(&mut list, 110, true), [(CAR, UpdateKind::Change)]);
    let wrong = UpdateConstraints { fidelity_permille: Some(0), within: None };
    let error = change(&mut list, 120, wrong).unwrap_err().to_string();
    assert_eq!(error, "fidelity of 0/1000: must be from 1 to 1000, such as 500");
}

#[test]
fn constraints_hold_for_their_change_alone() {
    let mut list = list();
    list.set_terms(ANN, BUS, None, START).unwrap();
    introduce(&mut list);
    let change = |list: &mut ExchangeList, millis, group, constraints| {
        let facts = facts(11.0, &[20, 20], at(millis));
        list.change_with(CAR, &facts, (GroupMask::of(group), constraints), at(millis)).unwrap();
    };
    let groups = |list: &mut ExchangeList, millis| {
        let message = list.poll(at(millis), &1_000, 1_000).unwrap();
        list.delivered(ANN, message.number, at(millis));
        message.updates[0].groups
    };
    let none = UpdateConstraints::default();
    let soon = UpdateConstraints { within: Some(Duration::from_millis(20)), ..none };
    let half = UpdateConstraints { fidelity_permille: Some(500), ..none };
    let both = GroupMask::of(0).with(GroupMask::of(1));
    change(&mut list, 50, 0, none);
    assert_eq!(groups(&mut list, 50), both);
    change(&mut list, 60, 0, none);
    change(&mut list, 70, 1, soon);
    assert_eq!(groups(&mut list, 100), both, "only the second change had to leave in 20 ms");
    assert_eq!(list.counters().suppressed(SuppressReason::Expired), 0);
    change(&mut list, 150, 0, none);
    change(&mut list, 150, 1, half);
    assert_eq!(groups(&mut list, 150), both, "the first change requires all of the state");
    change(&mut list, 200, 0, half);
    change(&mut list, 200, 1, half);
    assert_eq!(groups(&mut list, 200).len(), 1, "half of the state");
}

#[test]
fn a_deleted_object_is_announced_until_the_observer_knows() {
    let mut list = list();
    list.delete(CAR, START).unwrap();
    assert_eq!((list.pairs(), kinds(&mut list, at(60), 1_000).len()), (0, 0));
    list.set_terms(ANN, BUS, Some(every(50)), START).unwrap();
    kinds(&mut list, at(60), 1_000);
    list.change(BUS, &facts(10.0, &[20, 20], START), ALL, at(61)).unwrap();
    list.delete(BUS, at(62)).unwrap();
    assert_eq!(list.create(BUS, &facts(0.0, &[1], START), START), Err(ExchangeError::Exists(BUS)));
    let message = list.poll(at(110), &1_000, 1_000).unwrap();
    assert_eq!(
        (message.updates[0].kind, message.updates[0].groups),
        (UpdateKind::Delete, GroupMask(0))
    );
    list.lost(ANN, message.number, at(111));
    let again = list.poll(at(160), &1_000, 1_000).unwrap();
    assert_eq!(again.updates[0].kind, UpdateKind::Delete);
    list.delivered(ANN, again.number, at(161));
    assert_eq!((list.pairs(), list.waiting()), (0, 0));
}

#[test]
fn an_observer_may_leave_during_an_exchange() {
    let mut list = list();
    let message = list.poll(START, &1_000, 1_000).unwrap();
    list.leave(ANN);
    list.delivered(ANN, message.number, at(1));
    list.lost(ANN, message.number, at(1));
    list.change(CAR, &facts(10.0, &[20, 20], START), ALL, at(2)).unwrap();
    assert_eq!((list.pairs(), list.poll(at(999), &1_000, 1_000)), (0, None));
    assert_eq!(list.observe(ANN, Observer::EVERYWHERE), Err(ExchangeError::NoPeer(ANN)));
}

#[test]
fn the_same_contract_again_changes_no_place() {
    let mut list = list();
    list.set_terms(ANN, CAR, Some(every(50).weight(1.0)), START).unwrap();
    let contract = ObjectContract::per_second(10, 40, Duration::from_millis(30));
    list.promise(ANN, Some(promised(contract, 1)), START).unwrap();
    // Heavier, but not by a quarter, so the car keeps its place.
    list.set_terms(ANN, BUS, Some(every(50).weight(1.2)), START).unwrap();
    introduce(&mut list);
    change(&mut list, 1);
    let leaving = |list: &mut ExchangeList, now| {
        let mut promised = Vec::new();
        while let Some(message) = list.poll(now, &0, 1_000) {
            assert_eq!(message.class, ExchangeClass::Promised);
            promised.extend(message.updates.iter().map(|update| update.object));
            list.delivered(message.peer, message.number, now);
        }
        promised
    };
    assert_eq!(leaving(&mut list, at(100)), [CAR]);
    for (millis, count) in [(150, 1), (160, 1), (170, 2)] {
        change(&mut list, millis);
        list.promise(ANN, Some(promised(contract, count)), at(millis)).unwrap();
    }
    // With a second place the bus has it, and the car keeps the first one and its gap.
    assert_eq!(leaving(&mut list, at(192)), [BUS]);
    assert_eq!(leaving(&mut list, at(200)), [CAR]);
}

#[test]
fn wrong_values_are_named_and_change_nothing() {
    let settings = ExchangeSettings { objects_max: 3, peers_max: 2, ..ExchangeSettings::default() };
    let mut list = ExchangeList::new(settings);
    let mut create =
        |object, facts: &ObjectFacts<'_>| list.create(ObjectIndex(object), facts, START);
    assert_eq!(
        create(0, &facts(f64::NAN, &[1], START)),
        Err(ExchangeError::Motion(ObjectIndex(0)))
    );
    let groups = |groups| Err(ExchangeError::Groups { object: ObjectIndex(0), groups });
    assert_eq!(create(0, &facts(0.0, &[], START)), groups(0));
    assert_eq!(create(0, &facts(0.0, &[1; 33], START)), groups(33));
    let size = |bytes| Err(ExchangeError::Size { object: ObjectIndex(0), bytes });
    assert_eq!(create(0, &facts(0.0, &[0], START)), size(0));
    assert_eq!(create(0, &facts(0.0, &[u32::MAX; 2], START)), size(2 * u64::from(u32::MAX)));
    for object in 0..3 {
        create(object, &facts(0.0, &[1], START)).unwrap();
    }
    assert_eq!(create(3, &facts(0.0, &[1], START)), Err(ExchangeError::Objects { limit: 3 }));
    let change = list.change(CAR, &facts(0.0, &[1, 1], START), ALL, START);
    assert_eq!(change, Err(ExchangeError::Groups { object: CAR, groups: 2 }));
    let missing = ObjectIndex(7);
    let change = list.change(missing, &facts(0.0, &[1], START), ALL, START);
    assert_eq!(change, Err(ExchangeError::NoObject(missing)));
    assert_eq!(list.delete(missing, START), Err(ExchangeError::NoObject(missing)));

    let nowhere = Observer::at([f64::INFINITY, 0.0, 0.0], 1.0, START);
    assert_eq!(list.join(ANN, nowhere, START), Err(ExchangeError::Observer(ANN)));
    let range = Observer { range: f64::NAN, ..Observer::EVERYWHERE };
    assert_eq!(list.join(ANN, range, START), Err(ExchangeError::Observer(ANN)));
    list.join(ANN, Observer::EVERYWHERE, START).unwrap();
    assert_eq!(list.join(ANN, Observer::EVERYWHERE, START), Err(ExchangeError::Joined(ANN)));
    list.join(BOB, Observer::EVERYWHERE, START).unwrap();
    let third = list.join(PeerId(3), Observer::EVERYWHERE, START);
    assert_eq!(third, Err(ExchangeError::Peers { limit: 2 }));
    let contract = ObjectContract::per_second(0, 1, Duration::from_millis(5));
    let promise = list.promise(ANN, Some(promised(contract, 1)), START);
    assert_eq!(promise, Err(ExchangeError::Contract(ObjectContractError::MaxUpdates(0))));
    let terms = list.set_terms(ANN, CAR, Some(every(50).fidelity(1_001)), START);
    assert_eq!(terms, Err(ExchangeError::Terms(TermsError::Fidelity(1_001))));
}

#[test]
fn too_many_objects_of_interest_are_counted() {
    let settings = ExchangeSettings { objects_per_peer_max: 1, ..ExchangeSettings::default() };
    let mut list = ExchangeList::new(settings);
    for object in [CAR, BUS] {
        list.create(object, &facts(0.0, &[1], START), START).unwrap();
    }
    list.join(ANN, Observer::EVERYWHERE, START).unwrap();
    let batch = list.next_batch(START).unwrap();
    list.accept(&batch.decided(vec![Some(every(50)); 2]), START);
    assert_eq!((list.pairs(), list.counters().suppressed(SuppressReason::Limit)), (1, 1));
    let error = list.set_terms(ANN, BUS, Some(every(50)), START);
    assert_eq!(error, Err(ExchangeError::Pairs { peer: ANN, pairs: 1 }));
}

#[test]
fn observers_of_one_node_leave_pairs_for_others() {
    let settings = ExchangeSettings { pairs_max: 8, ..ExchangeSettings::default() };
    let mut list = ExchangeList::new(settings);
    for object in 0..4 {
        list.create(ObjectIndex(object), &facts(0.0, &[1], START), START).unwrap();
    }
    let mut pairs = |node, observer| {
        let peer = PeerId::of_node(node, observer);
        list.join(peer, Observer::EVERYWHERE, START).unwrap();
        let set = |object| list.set_terms(peer, ObjectIndex(object), Some(every(50)), START);
        (0..4).map(set).filter(Result::is_ok).count()
    };
    assert_eq!([pairs(1, 1), pairs(1, 2), pairs(2, 1)], [4, 3, 1]);
    list.leave(PeerId::of_node(1, 1));
    let peer = PeerId::of_node(2, 1);
    assert_eq!(list.set_terms(peer, ObjectIndex(3), Some(every(50)), START), Ok(()));
}

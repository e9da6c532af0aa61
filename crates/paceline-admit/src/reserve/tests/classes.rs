//! Classes of a link: each is charged for its own reservations, also after they move.

use super::world::{forward, millis, wanted};
use super::*;
use crate::link::LinkParameters;
use crate::verdict::Resource;
use paceline_sched::Capacity;
use proptest::prelude::*;
use std::collections::BTreeMap;

const WHOLE: LinkId = LinkId(0);
const CLASSES: [LinkId; 3] = [LinkId(1), LinkId(2), LinkId(3)];

fn class(mbit: u64) -> LinkParameters {
    let capacity = Capacity::from_bits_per_s(mbit * 1_000_000).unwrap();
    LinkParameters::new(capacity, AdmissionTest::Edf, 0)
}

fn nothing() -> LinkParameters {
    LinkParameters { rule: AdmissionTest::Unguaranteed, ..class(30) }
}

fn node(mbit: [u64; 3]) -> Reservations {
    let mut node = Reservations::new(NodeIndex(0), 1, Timing::default(), 1);
    node.add_link(WHOLE, Admission::new(nothing()));
    for (id, mbit) in CLASSES.into_iter().zip(mbit) {
        node.add_link(id, Admission::new(class(mbit)));
    }
    node.set_neighbour(Instant::ZERO, NodeIndex(1), WHOLE, 1);
    node
}

/// Requests `mbit` in a class; the label is the number of the request.
fn ask(number: u8, mbit: u64, link: Option<LinkId>) -> Request {
    let forward_wanted = Some(wanted(u128::from(number + 1) << 64, mbit));
    Request { forward: forward_wanted, label: vec![number], link, ..forward(&[0, 1], mbit) }
}

fn accept(node: &mut Reservations, key: Key) {
    let name = Name { key, stamp: node.entries[&key].newest().unwrap().stamp() };
    let share = Share { rate: 0, burst: 0, bound: Duration::ZERO };
    let hop = HopShare { node: NodeIndex(1), forward: Some(share), backward: None };
    let accept = Accept { name, slack: Duration::ZERO, backward: None, hops: vec![hop] };
    node.handle_message(Instant::ZERO, NodeIndex(1), ReserveMessage::Accept(accept));
}

#[test]
fn the_whole_link_promises_nothing_if_it_has_classes() {
    let mut node = node([8, 8, 8]);
    let denied = node.request(Instant::ZERO, &ask(0, 1, None));
    let Err(RequestError::Denied(Reason::Refused { refusal, .. })) = denied else {
        panic!("{denied:?}")
    };
    assert_eq!((refusal.resource, refusal.available), (Resource::Guarantee, 0));
    assert_eq!(refusal.offer, Default::default());
    node.request(Instant::ZERO, &ask(0, 1, Some(CLASSES[0]))).unwrap();
}

#[test]
fn reservations_of_lower_rank_end_first_when_the_capacity_falls() {
    for (rank, stays) in [([0, 1, 2], 0), ([2, 1, 0], 2), ([1, 0, 2], 1)] {
        let mut node = node([16, 8, 8]);
        let keys = [0, 1, 2].map(|number| {
            let key = node.request(Instant::ZERO, &ask(number, 5, Some(CLASSES[0]))).unwrap();
            accept(&mut node, key);
            key
        });
        let rank = |label: &[u8]| Some(rank[usize::from(label[0])]);
        node.change_link(Instant::ZERO, CLASSES[0], class(8), rank);
        let installed = keys.map(|key| node.installed(key).is_some());
        assert_eq!(installed, [0, 1, 2].map(|it| it == stays));
    }
}

#[test]
fn a_reservation_that_does_not_fit_its_new_class_ends_with_the_limit() {
    let mut node = node([8, 8, 8]);
    let [a, b] = [0, 1].map(|number| {
        let link = Some(CLASSES[usize::from(number)]);
        let key = node.request(Instant::ZERO, &ask(number, 5, link)).unwrap();
        accept(&mut node, key);
        key
    });
    while node.poll_output().is_some() {}
    node.change_classes(Instant::ZERO, &[], |_, _| Some(CLASSES[0]), |_| Some(()));
    assert!(node.installed(a).is_some() && node.installed(b).is_none());
    let ended = std::iter::from_fn(|| node.poll_output())
        .filter_map(|output| {
            let ReserveOutput::Ended { key, reason, .. } = output else { return None };
            Some((key, reason))
        })
        .collect::<Vec<_>>();
    let [(key, Some(Reason::Refused { refusal, forward: true }))] = ended[..] else {
        panic!("{ended:?}")
    };
    assert_eq!((key, refusal.resource), (b, Resource::Rate));
    assert_eq!((refusal.needed, refusal.available), (10_000_000, 8_000_000));
}

proptest! {
    /// The naive model: each class holds the sum of its reservations, in order of their keys, and ends those
    /// beyond its rate.
    #[test]
    fn each_class_holds_the_sum_of_its_reservations(
        rates in any::<[u8; 3]>(),
        asks in prop::collection::vec((0..3_usize, 1..9_u64, any::<bool>()), 1..20),
        moves in prop::collection::vec(prop::collection::vec(0..3_usize, 20), 0..5),
        after in any::<[u8; 3]>(),
    ) {
        let mbit = |rates: [u8; 3]| rates.map(|rate| 1 + u64::from(rate % 30));
        let mut node = node(mbit(rates));
        let (mut limits, mut model) = (mbit(rates), BTreeMap::<Key, (u8, usize, u64)>::new());
        let sum = |model: &BTreeMap<Key, (u8, usize, u64)>, class: usize| -> u64 {
            model.values().filter(|it| it.1 == class).map(|it| it.2).sum()
        };
        for (number, (class, mbit, installs)) in (0_u8..).zip(asks) {
            let asked = node.request(Instant::ZERO, &ask(number, mbit, Some(CLASSES[class])));
            prop_assert_eq!(asked.is_ok(), sum(&model, class) + mbit <= limits[class]);
            let Ok(key) = asked else { continue };
            model.insert(key, (number, class, mbit));
            if installs {
                accept(&mut node, key);
            } else {
                node.close(Instant::ZERO, key);
                model.remove(&key);
            }
        }
        for (round, places) in moves.iter().enumerate() {
            let place = |label: &[u8], _| Some(CLASSES[places[usize::from(label[0])]]);
            let mut specs = Vec::new();
            if round == 1 {
                limits = mbit(after);
                specs.extend(CLASSES.into_iter().zip(limits).map(|(id, mbit)| (id, class(mbit))));
            }
            node.change_classes(Instant::ZERO, &specs, place, |_| Some(()));
            let (moved, stays): (Vec<_>, Vec<_>) =
                model.into_iter().partition(|(_, it)| places[usize::from(it.0)] != it.1);
            model = BTreeMap::new();
            for (key, (number, _, mbit)) in by_trunk(stays).into_iter().chain(moved) {
                let class = places[usize::from(number)];
                if sum(&model, class) + mbit <= limits[class] {
                    model.insert(key, (number, class, mbit));
                }
            }
            for (at, id) in CLASSES.into_iter().enumerate() {
                let held = node.link(id).unwrap().ledger().held.rate;
                prop_assert_eq!(held, sum(&model, at) * 1_000_000);
            }
            prop_assert_eq!(node.len(), model.len());
        }
        for key in model.into_keys() {
            node.close(Instant::ZERO, key);
        }
        for id in CLASSES {
            prop_assert!(node.link(id).unwrap().is_empty());
        }
        node.tick(Instant::ZERO + millis(1));
    }
}

/// A changed link tests its reservations in order of trunks, here of their numbers.
fn by_trunk<T>(mut list: Vec<(Key, (u8, usize, T))>) -> Vec<(Key, (u8, usize, T))> {
    list.sort_by_key(|(_, it)| it.0);
    list
}

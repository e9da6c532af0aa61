//! Single steps of a ledger and of a link.

use crate::ids::NodeId;
use crate::medium::{
    Allotment, Allotments, DETECTION, Holder, Holding, Ledger, LinkKey, MEDIUM_LINKS_MAX,
    allottable, least_rate,
};
use paceline_sched::Instant;
use std::collections::BTreeMap;

const CAPACITY: u64 = 3_200_000;
const LEAST: u64 = 100_000;
const ALL: u64 = 3_000_000;
const STEP: u64 = CAPACITY / 256;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn key(node: u64) -> LinkKey {
    (NodeId(node), 0)
}

/// Links that follow their manager at once.
struct Links {
    ledger: Ledger,
    holders: BTreeMap<LinkKey, Holder>,
}

impl Links {
    fn new(nodes: u64) -> Self {
        let holder = |node| (key(node), Holder::new(key(node), (LEAST, CAPACITY)));
        Self {
            ledger: Ledger::new(Instant::ZERO, NodeId(1), 0),
            holders: (1..=nodes).map(holder).collect(),
        }
    }

    fn holdings(&self) -> BTreeMap<LinkKey, Holding> {
        self.holders.iter().map(|(key, holder)| (*key, holder.holding())).collect()
    }

    fn follow(&mut self, now: Instant) {
        for _ in 0..6 {
            self.ledger.follow(now, CAPACITY, &self.holdings());
            let allotments = self.ledger.allotments();
            self.holders.values_mut().for_each(|it| it.follow(NodeId(1), Some(&allotments)));
        }
    }

    fn need(&mut self, node: u64, need: u64, wants: u64) {
        self.holders.get_mut(&key(node)).unwrap().set_need(need, wants);
    }

    fn rates(&self) -> Vec<u64> {
        self.holders.values().map(|it| it.holding().holds).collect()
    }
}

#[test]
fn idle_links_share_the_medium_evenly_and_keep_a_part_for_joining_links() {
    assert_eq!((least_rate(CAPACITY), allottable(CAPACITY)), (LEAST, ALL));
    let mut links = Links::new(3);
    links.follow(at(999));
    assert_eq!(links.rates(), [LEAST; 3], "other links may be unknown");
    assert_eq!(links.ledger.wake_at(at(999)), at(1_000));
    links.follow(at(1_001));
    let even = links.rates();
    assert!(even.iter().all(|it| (ALL / 3 - STEP..=ALL / 3).contains(it)), "{even:?}");
    links.follow(at(1_002));
    assert_eq!(links.rates(), even, "nothing else follows");
}

#[test]
fn a_waiting_request_gets_the_rate_that_others_do_not_need() {
    let mut links = Links::new(3);
    links.follow(at(1_001));
    links.need(2, 500_000, 0);
    links.need(3, 0, 2_400_000);
    links.follow(at(1_002));
    let rates = links.rates();
    assert!(rates[2] >= 2_400_000 && rates[1] >= 500_000, "{rates:?}");
    assert!(rates.iter().sum::<u64>() <= ALL);
    // More than the others leave is not given, and nothing is taken for it.
    links.need(3, 0, 2_400_001);
    links.follow(at(1_003));
    let rates = links.rates();
    assert!(rates[2] < 2_400_000 && rates[0] > LEAST, "{rates:?}");
    links.need(3, 0, 0);
    links.need(2, 0, 0);
    links.follow(at(1_004));
    assert!(links.rates().iter().all(|it| *it >= ALL / 3 - STEP), "{:?}", links.rates());
}

#[test]
fn a_smaller_capacity_takes_contracts_of_the_highest_identities_first() {
    let mut links = Links::new(3);
    links.follow(at(1_001));
    (1..=3).for_each(|node| links.need(node, 900_000, 0));
    links.follow(at(1_002));
    for _ in 0..4 {
        links.ledger.follow(at(1_003), CAPACITY / 2, &links.holdings());
        let allotments = links.ledger.allotments();
        links.holders.values_mut().for_each(|it| it.follow(NodeId(1), Some(&allotments)));
    }
    // 1.5 Mbit/s remain: 900, 550 and the least rate.
    assert_eq!(links.rates(), [900_000, 550_000, 50_000]);
}

#[test]
fn a_new_manager_raises_nothing_before_it_has_heard_every_link() {
    let mut links = Links::new(2);
    let mut silent = Holder::new(key(3), (LEAST, CAPACITY));
    silent.follow(
        NodeId(0),
        Some(&Allotments {
            term: 1,
            links: [(key(3), Allotment { number: 1, bits: 2_000_000, forced: false })].into(),
        }),
    );
    links.holders.insert(key(3), silent.clone());
    for millis in [1_001, 3_999] {
        let holdings = links.holdings();
        links.ledger.follow(at(millis), CAPACITY, &holdings);
        assert!(links.ledger.allotments().links.is_empty(), "{millis}");
    }
    assert_eq!(links.ledger.wake_at(at(3_999)), at(1_001) + DETECTION);
    // It stays silent: its announced rate counts.
    for _ in 0..4 {
        let holdings = links.holdings();
        links.ledger.follow(at(1_001) + DETECTION, CAPACITY, &holdings);
        let allotments = links.ledger.allotments();
        assert!(!allotments.links.contains_key(&key(3)), "it would not listen");
        for node in [1, 2] {
            links.holders.get_mut(&key(node)).unwrap().follow(NodeId(1), Some(&allotments));
        }
    }
    let rates = links.rates();
    assert!(rates[0] > LEAST && rates.iter().sum::<u64>() <= ALL, "{rates:?}");
}

#[test]
fn the_rate_of_a_lost_link_is_given_after_the_detection_time() {
    let mut links = Links::new(2);
    links.follow(at(1_001));
    links.holders.remove(&key(2));
    links.follow(at(2_000));
    assert!(links.rates()[0] <= ALL / 2);
    let again = links.ledger.wake_at(at(2_000));
    assert_eq!(again, at(2_000) + DETECTION);
    links.follow(again);
    assert!(links.rates()[0] > ALL - STEP * 2, "{:?}", links.rates());
    assert_eq!(links.ledger.wake_at(again), Instant::FAR);
}

#[test]
fn links_beyond_the_limit_keep_the_least_rate_and_others_get_less_for_it() {
    let mut links = Links::new(MEDIUM_LINKS_MAX as u64 + 5);
    links.follow(at(1_001));
    let rates = links.rates();
    assert_eq!(rates.iter().skip(MEDIUM_LINKS_MAX).sum::<u64>(), 5 * LEAST, "the last ones");
    assert!(rates.iter().sum::<u64>() <= CAPACITY, "{rates:?}");
    links.need(35, 0, 2 * LEAST);
    links.follow(at(1_002));
    assert_eq!(links.rates(), rates, "nothing is given to it");
    // When links leave, others take their places.
    (2..8).for_each(|node| drop(links.holders.remove(&key(node))));
    links.follow(at(2_000));
    links.follow(at(2_000) + DETECTION);
    let rates = links.rates();
    assert!(rates.last() == Some(&(2 * LEAST)) && rates.iter().sum::<u64>() <= ALL, "{rates:?}");
}

#[test]
fn a_link_with_a_large_rate_keeps_its_place_when_others_join() {
    let mut links = Links::new(25);
    links.follow(at(1_001));
    links.need(25, 0, 500_000);
    links.follow(at(1_002));
    links.need(25, 500_000, 0);
    let rate = |links: &Links, node| links.holders[&key(node)].holding().holds;
    assert!(rate(&links, 25) >= 500_000, "{:?}", links.rates());
    // Six others join, among them a new manager, which knows all of them at once.
    let others = (1..6).map(|link| (NodeId(5), link)).chain([key(0)]);
    links.holders.extend(others.map(|key| (key, Holder::new(key, (LEAST, CAPACITY)))));
    assert_eq!(links.holders.len(), MEDIUM_LINKS_MAX + 1);
    let follow = |links: &mut Links, now| {
        for _ in 0..8 {
            links.ledger.follow(now, CAPACITY, &links.holdings());
            let allotments = links.ledger.allotments();
            links.holders.values_mut().for_each(|it| it.follow(NodeId(0), Some(&allotments)));
        }
    };
    links.ledger = Ledger::new(at(2_000), NodeId(0), 0);
    follow(&mut links, at(3_001));
    let before = rate(&links, 1);
    assert!(rate(&links, 25) >= 500_000 && before < LEAST, "{:?}", links.rates());
    assert!(links.rates().iter().sum::<u64>() <= CAPACITY, "{:?}", links.rates());
    // Its contracts end: it gives its rate to others.
    links.need(25, 0, 0);
    follow(&mut links, at(3_002));
    assert!(rate(&links, 25) < 2 * LEAST && rate(&links, 1) > before, "{:?}", links.rates());
}

#[test]
fn a_link_that_lost_its_neighbours_follows_no_record_of_the_last_term() {
    let mut links = Links::new(3);
    links.follow(at(1_001));
    let (before, old) = (links.rates(), links.ledger.allotments());
    let mut lost = links.holders.remove(&key(3)).unwrap();
    lost.lose_neighbours(LEAST);
    assert_eq!(lost.holding().holds, LEAST);
    // Another allotment was under way when it was lost, and its rate is given to others.
    let later = Allotment { number: lost.holding().seen + 1, bits: ALL / 3, forced: false };
    let late = Allotments { links: [(key(3), later)].into(), ..old };
    links.follow(at(2_000));
    links.follow(at(2_000) + DETECTION);
    lost.follow(NodeId(1), Some(&late));
    assert_eq!(lost.holding().holds, LEAST, "an old record");
    links.holders.insert(key(3), lost);
    assert!(links.rates().iter().sum::<u64>() <= CAPACITY, "{:?}", links.rates());
    links.follow(at(6_000));
    assert_eq!(links.rates(), before);
    // It was lost and returned, and nobody has noticed: it waits for another term, and gets it.
    links.holders.get_mut(&key(3)).unwrap().lose_neighbours(LEAST);
    let term = links.ledger.allotments().term;
    links.follow(at(7_000));
    assert_eq!((links.ledger.allotments().term, links.rates()), (term + 1, before));
}

#[test]
fn wrong_terms_do_no_harm() {
    let mut links = Links::new(2);
    let wrong = Allotments { term: u64::MAX, links: BTreeMap::new() };
    let mut link = Holder::new(key(3), (LEAST, CAPACITY));
    link.follow(NodeId(1), Some(&wrong));
    link.lose_neighbours(LEAST);
    links.holders.insert(key(3), link);
    links.follow(at(1_001));
    links.follow(at(1_001) + DETECTION);
    let rates = links.rates();
    assert!(rates[2] == LEAST && rates[0] > LEAST && rates.iter().sum::<u64>() <= ALL, "{rates:?}");
}

#[test]
fn a_lower_capacity_of_a_link_lowers_its_rate() {
    let mut link = Holder::new(key(5), (LEAST, CAPACITY));
    link.set_most(LEAST / 2);
    assert_eq!(link.holding().holds, LEAST / 2);
    link.set_most(CAPACITY);
    assert_eq!(link.holding().holds, LEAST / 2, "until the manager gives more");
}

#[test]
fn a_link_never_takes_an_allotment_twice_nor_an_old_one() {
    let given = |term, number, bits| Allotments {
        term,
        links: [(key(5), Allotment { number, bits, forced: false })].into(),
    };
    let mut link = Holder::new(key(5), (LEAST, CAPACITY));
    link.follow(NodeId(1), Some(&given(4, 9, 800_000)));
    assert_eq!((link.holding().holds, link.holding().seen), (800_000, 9));
    // Another manager takes a part of it, and the first one returns with an old record.
    link.follow(NodeId(2), Some(&given(1, 1, 300_000)));
    assert_eq!(link.holding().holds, 300_000);
    link.follow(NodeId(1), Some(&given(4, 9, 800_000)));
    assert_eq!(link.holding().holds, 300_000);
    link.follow(NodeId(1), Some(&given(3, 10, 800_000)));
    assert_eq!(link.holding().holds, 300_000);
    link.follow(NodeId(1), Some(&given(5, 10, 400_000)));
    assert_eq!((link.holding().holds, link.holding().term), (400_000, 5));
    // A manager that gives more than the link can use changes nothing.
    let mut other = link.clone();
    other.follow(NodeId(1), Some(&given(5, 11, u64::MAX)));
    assert_eq!(other.holding().holds, CAPACITY);
    // Contracts keep what they need, unless it is forced.
    link.set_need(350_000, 0);
    link.follow(NodeId(1), Some(&given(5, 11, 100_000)));
    assert_eq!(link.holding().holds, 350_000);
    let mut forced = given(5, 12, 100_000);
    forced.links.values_mut().for_each(|it| it.forced = true);
    link.follow(NodeId(1), Some(&forced));
    assert_eq!(link.holding().holds, 100_000);
}

//! Elastic contracts: reduced when a link is full or a more important contract needs room, and restored.

use super::net::{Net, Notification, camera, id, link, promised};
use core::num::NonZeroU32;
use paceline_proto::capacity::{AdmittedCapacity, CapacityEstimate, CapacityState};
use paceline_proto::control::{Cause, Elastic, HopInfo, SubscriptionSpec};
use paceline_proto::link::RepairShare;
use paceline_proto::{Carrier, Form, PublisherId, Rate, SubscriptionId};
use paceline_sched::{Capacity, Duration, Instant, Policy};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestRunner;
use std::collections::BTreeMap;

/// The rate of a camera at 25 Hz on the wire, and a little more, in bytes per second.
const CAMERA: u64 = 330_000;

fn rate(hertz: u32) -> NonZeroU32 {
    NonZeroU32::new(hertz * 1_000).unwrap()
}

/// Returns a contract of 25 Hz that accepts 5.
fn elastic(tag: &str, importance: u8) -> SubscriptionSpec {
    let form = Form { rate: Rate::max(rate(25)), ..Form::FULL };
    let elastic = Elastic { min_millihertz: Some(rate(5)), ..Elastic::none(form) };
    let elastic = Some(Box::new(elastic));
    SubscriptionSpec { form, importance, elastic, ..promised(tag) }
}

/// Two nodes, a robot with a camera and an operator, joined by a link.
struct Pair {
    net: Net,
    admitted: AdmittedCapacity,
}

impl Pair {
    fn new(bytes_per_s: u64) -> Self {
        let mut net = Net::new(2);
        net.join_over(0, 1, link("radio", Some(bytes_per_s)), link("radio", Some(bytes_per_s)));
        net.settle();
        Self { net, admitted: AdmittedCapacity::new(None) }
    }

    fn set(&mut self, bytes_per_s: u64) {
        let capacity = Capacity::from_bytes_per_s(bytes_per_s).ok();
        for (from, to) in [(0, 1), (1, 0)] {
            let hop = HopInfo::new("radio".to_owned(), capacity);
            self.net.nodes[from].handle_hop_up(self.net.now, id(to), hop);
            self.net.drain(from);
        }
    }

    fn run(&mut self, seconds: u64) {
        self.net.run(Duration::from_secs(seconds));
    }

    /// Returns the granted rate in hertz; 0 if nothing is granted.
    fn granted(&self, (subscription, publisher): (SubscriptionId, PublisherId)) -> f64 {
        let granted = self.net.seen[1].granted.contains_key(&(subscription, publisher));
        let spec = self.net.nodes[1].subscription(subscription);
        spec.filter(|_| granted).and_then(|spec| spec.form.rate.max_hz()).unwrap_or(0.0)
    }
}

#[test]
#[expect(clippy::float_cmp, reason = "the steps are exact")]
fn a_contract_follows_the_capacity_down_and_up_and_is_never_refused() {
    let mut pair = Pair::new(CAMERA + CAMERA / 10);
    let of = pair.net.publish(0, camera("camera"));
    let camera = (pair.net.subscribe(1, elastic("camera", 50)), of);
    pair.run(1);
    assert_eq!(pair.granted(camera), 25.0);
    pair.set(CAMERA / 2);
    pair.run(2);
    assert_eq!(pair.granted(camera), 12.5);
    pair.set(CAMERA / 4);
    pair.run(2);
    assert_eq!(pair.granted(camera), 5.0);
    assert_eq!(pair.net.seen[1].refused, [], "no request was refused");
    pair.set(2 * CAMERA);
    pair.run(2);
    assert_eq!(pair.granted(camera), 5.0, "not before 5 s have passed");
    pair.run(11);
    assert_eq!(pair.granted(camera), 25.0);
    let changes = pair.net.seen[1].changed.len();
    pair.run(60);
    assert_eq!(pair.net.seen[1].changed.len(), changes, "it stays");
    let refused = |it: &Notification| matches!(it, Notification::Refused(_));
    assert!(
        !pair.net.seen[0].notified.iter().any(refused),
        "nor is any refusal reported to the publisher"
    );
    // Below the least step it is refused, with the reason.
    pair.set(CAMERA / 20);
    pair.run(10);
    assert_eq!(pair.granted(camera), 0.0);
    assert_eq!(pair.net.seen[1].refused.len(), 1);
    pair.set(2 * CAMERA);
    pair.run(20);
    assert_eq!(pair.granted(camera), 25.0, "and granted again");
}

#[test]
fn a_contract_stays_down_to_the_least_capacity_of_its_link() {
    let mut pair = Pair::new(3 * CAMERA);
    assert_eq!(pair.net.nodes[0].least_capacity("radio"), Some(0), "no contract");
    let of = pair.net.publish(0, camera("camera"));
    let key = (pair.net.subscribe(1, promised("camera")), of);
    pair.run(1);
    let least = pair.net.nodes[0].least_capacity("radio").unwrap();
    assert!(least > 8 * CAMERA / 2 && least < 8 * 3 * CAMERA, "{least}");
    for (bits, stays) in [(least, true), (least - least / 50, false)] {
        pair.set(bits.div_ceil(8));
        pair.run(3);
        assert_eq!(pair.net.seen[1].granted.contains_key(&key), stays, "{bits}");
    }
    assert_eq!(pair.net.nodes[0].least_capacity("radio"), Some(0), "it has ended");
    assert_eq!(pair.net.nodes[0].least_capacity("none"), None);
}

#[test]
#[expect(clippy::float_cmp, reason = "the steps are exact")]
fn less_important_contracts_make_room_and_get_it_back() {
    let mut pair = Pair::new(2 * CAMERA);
    let cameras = [("left", 20), ("right", 30)].map(|(tag, importance)| {
        let of = pair.net.publish(0, camera(tag));
        (pair.net.subscribe(1, elastic(tag, importance)), of)
    });
    pair.run(1);
    assert_eq!(cameras.map(|it| pair.granted(it)), [25.0, 25.0]);
    let arm = pair.net.publish(0, camera("arm"));
    let important = pair.net.subscribe(1, SubscriptionSpec { importance: 80, ..promised("arm") });
    pair.run(5);
    let granted = pair.net.seen[1].granted.contains_key(&(important, arm));
    assert!(granted, "{:?}", pair.net.seen[1].refused);
    let [left, right] = cameras.map(|it| pair.granted(it));
    assert!(left == 5.0 && right >= left, "the least important one gives first: {left} {right}");
    assert!(right > 0.0);
    pair.net.unsubscribe(important);
    pair.run(20);
    assert_eq!(cameras.map(|it| pair.granted(it)), [25.0, 25.0]);
}

#[test]
fn an_important_contract_that_loses_its_step_does_not_wait_for_others() {
    let mut pair = Pair::new(3 * CAMERA);
    let [front, back] = [("front", 80), ("back", 20)].map(|(tag, importance)| {
        let of = pair.net.publish(0, camera(tag));
        (pair.net.subscribe(1, elastic(tag, importance)), of)
    });
    pair.run(5);
    assert!(pair.granted(front) > 24.0 && pair.granted(back) > 24.0);
    pair.set(CAMERA * 4 / 5);
    pair.net.run(Duration::from_millis(600));
    assert!(pair.granted(front) > 12.0, "{}", pair.granted(front));
    // A less important contract does not reduce it, not even for its least step.
    pair.run(20);
    assert!(pair.granted(front) > 12.0, "{}", pair.granted(front));
}

#[test]
fn nothing_is_reduced_for_an_equally_important_contract() {
    let mut pair = Pair::new(CAMERA + CAMERA / 10);
    let of = pair.net.publish(0, camera("left"));
    let left = (pair.net.subscribe(1, elastic("left", 50)), of);
    pair.run(1);
    pair.net.publish(0, camera("right"));
    pair.net.subscribe(1, promised("right"));
    pair.run(20);
    assert!(pair.granted(left) > 24.0);
    assert_eq!(pair.net.seen[1].refused.len(), 1);
}

#[test]
fn the_most_important_contracts_stay_when_the_capacity_falls() {
    let mut pair = Pair::new(3 * CAMERA + CAMERA / 2);
    let all = [("one", 10), ("two", 90), ("three", 40)].map(|(tag, importance)| {
        let of = pair.net.publish(0, camera(tag));
        (pair.net.subscribe(1, SubscriptionSpec { importance, ..promised(tag) }), of)
    });
    pair.run(1);
    let granted = |pair: &Pair| all.map(|key| pair.net.seen[1].granted.contains_key(&key));
    assert_eq!(granted(&pair), [true; 3]);
    pair.set(2 * CAMERA + CAMERA / 2);
    pair.run(1);
    assert_eq!(granted(&pair), [false, true, true]);
    pair.set(CAMERA + CAMERA / 2);
    pair.run(1);
    assert_eq!(granted(&pair), [false, true, false]);
}

impl Pair {
    /// Measures the capacity each 50 ms, as `at` returns it for a number of measurements.
    fn drive(&mut self, measurements: u64, at: impl Fn(u64) -> u64) {
        for number in 0..measurements {
            let low = at(number) * 8;
            let state = CapacityState::Falling;
            let found = CapacityEstimate { estimate: low, low, high: low, pace: low, state };
            if let Some(capacity) = self.admitted.follow(self.net.now, &found) {
                self.set(capacity.bits_per_s() / 8);
            } else if let Some(fall) = self.admitted.poll_fall() {
                self.net.nodes[0].handle_fall(self.net.now, "radio", &fall);
                self.net.drain(0);
            }
            self.net.run(Duration::from_millis(50));
        }
    }

    /// Returns the reductions, and how many of them were announced at least 500 ms before: a warning named that step or a lower
    /// one.
    fn announced(&self) -> (usize, usize) {
        let steps = elastic("camera", 50).elastic.unwrap().steps();
        let reduced = self.net.seen[1].adapted.iter().filter(|it| it.2.cause != Cause::Room);
        let reduced: Vec<(Instant, usize)> = reduced.map(|(at, _, to)| (*at, to.step)).collect();
        let warned = |(at, step): &&(Instant, usize)| {
            self.net.seen[1].warned.iter().any(|(warned, _, warning)| {
                let early = at.since(*warned) >= Duration::from_millis(500);
                let named = |form: Form| steps.iter().position(|it| *it == form);
                let low = warning.form.is_none_or(|form| named(form) >= Some(*step));
                early && low && *at <= *warned + warning.after + Duration::from_secs(3)
            })
        };
        (reduced.len(), reduced.iter().filter(warned).count())
    }
}

#[test]
fn both_ends_are_warned_before_a_falling_link_takes_a_step() {
    for seconds in [2, 5, 20, 60] {
        let mut pair = Pair::new(2 * CAMERA);
        pair.net.nodes[0].set_measured("radio", true);
        pair.net.publish(0, camera("camera"));
        pair.net.subscribe(1, elastic("camera", 50));
        pair.run(1);
        let changes = seconds * 20;
        // From twice what the camera needs to two fifths of it.
        pair.drive(changes, |change| 2 * CAMERA - CAMERA * 8 * change / 5 / changes);
        let (reduced, announced) = pair.announced();
        println!("{seconds} s: {announced} of {reduced} reductions announced");
        assert!(reduced >= 2 && announced == reduced, "{seconds} s: {announced} of {reduced}");
        assert_eq!(pair.net.seen[0].warned.len(), pair.net.seen[1].warned.len());
        let (_, _, warning) = &pair.net.seen[1].warned[0];
        assert!(warning.form.is_some_and(|form| form.rate.max_hz() < Some(25.0)), "{warning}");
        assert_eq!((warning.node_name.as_str(), warning.link.as_str()), ("node0", "radio"));
        let count = pair.net.seen[1].warned.len();
        pair.run(30);
        assert_eq!(pair.net.seen[1].warned.len(), count, "a steady link warns nobody");
    }
}

#[test]
fn more_repairs_reduce_an_elastic_contract_and_fewer_restore_it() {
    let mut pair = Pair::new(CAMERA + CAMERA * 5 / 100);
    pair.net.nodes[0].set_link("radio", Policy::default(), Carrier::Datagrams);
    pair.net.nodes[0].set_repairs("radio", RepairShare::LEAST);
    let of = pair.net.publish(0, camera("camera"));
    let camera = (pair.net.subscribe(1, elastic("camera", 50)), of);
    pair.run(1);
    assert!(pair.granted(camera) > 24.0, "{}", pair.granted(camera));
    pair.net.nodes[0].set_repairs("radio", RepairShare::MOST);
    pair.net.drain(0);
    pair.run(2);
    assert!((12.0..24.0).contains(&pair.granted(camera)), "{}", pair.granted(camera));
    pair.net.nodes[0].set_repairs("radio", RepairShare::LEAST);
    pair.net.drain(0);
    pair.run(12);
    assert!(pair.granted(camera) > 24.0, "{}", pair.granted(camera));
}

#[test]
fn steps_and_noise_warn_nobody() {
    let mut pair = Pair::new(2 * CAMERA);
    pair.net.nodes[0].set_measured("radio", true);
    pair.net.publish(0, camera("camera"));
    pair.net.subscribe(1, elastic("camera", 50));
    pair.run(1);
    pair.drive(200, |number| 2 * CAMERA - CAMERA * (number * 7 % 5) / 25);
    pair.drive(200, |number| if number % 100 < 50 { 2 * CAMERA } else { CAMERA / 3 });
    assert_eq!(pair.net.seen[1].warned, []);
    assert!(!pair.net.seen[1].adapted.is_empty());
}

/// An event of a random history.
#[derive(Clone, Debug)]
enum Event {
    /// The capacity changes to this many hundredths of a camera.
    Capacity(u64),
    /// A subscription with this importance begins, elastic or not.
    Begin(u8, bool),
    /// A subscription ends.
    End(Index),
    /// Time passes, in milliseconds.
    Wait(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => (5..400_u64).prop_map(Event::Capacity),
        2 => (0..=100_u8, any::<bool>()).prop_map(|(importance, elastic)| Event::Begin(importance, elastic)),
        1 => any::<Index>().prop_map(Event::End),
        3 => (1..9_000_u64).prop_map(Event::Wait),
    ]
}

/// Checks a history: grants fit the link, each elastic contract stays within its range, restorations are at least 5 s apart and
/// find all room, and contracts that have ended leave nothing behind.
fn check(events: Vec<Event>) {
    let mut pair = Pair::new(4 * CAMERA);
    let tags = ["one", "two", "three", "four", "five", "six"];
    let publishers = tags.map(|tag| pair.net.publish(0, camera(tag)));
    let mut live: Vec<(SubscriptionId, usize)> = Vec::new();
    let mut capacity = 4 * CAMERA;
    for event in events {
        match event {
            Event::Capacity(hundredths) => {
                capacity = CAMERA * hundredths / 100;
                pair.set(capacity);
            }
            Event::Begin(importance, is_elastic) => {
                let free = (0..tags.len()).find(|tag| live.iter().all(|(_, used)| used != tag));
                let Some(tag) = free else { continue };
                let spec = match is_elastic {
                    true => elastic(tags[tag], importance),
                    false => SubscriptionSpec { importance, ..promised(tags[tag]) },
                };
                live.push((pair.net.subscribe(1, spec), tag));
            }
            Event::End(at) if !live.is_empty() => {
                let (subscription, _) = live.remove(at.index(live.len()));
                pair.net.unsubscribe(subscription);
            }
            Event::End(_) => {}
            Event::Wait(millis) => pair.net.run(Duration::from_millis(millis)),
        }
        let grants = pair.net.nodes[0].grants();
        let held: u64 = grants.flat_map(|grant| grant.hops).map(|hop| hop.bytes_per_s).sum();
        assert!(held <= capacity, "{held} of {capacity}");
    }
    let mut restored: BTreeMap<SubscriptionId, Instant> = BTreeMap::new();
    for (at, subscription, adaptation) in &pair.net.seen[1].adapted {
        assert!(adaptation.step < adaptation.steps);
        if adaptation.cause == Cause::Room {
            let before = restored.insert(*subscription, *at);
            let apart = before.is_none_or(|before| *at >= before + Duration::from_secs(5));
            assert!(apart, "{subscription} is restored twice within 5 s");
        }
    }
    // With room for all, each contract has the most that it requests, after the longest pause.
    pair.set(7 * CAMERA);
    pair.run(130);
    for &(subscription, tag) in &live {
        let key = (subscription, publishers[tag]);
        assert!(pair.net.seen[1].granted.contains_key(&key), "{key:?} is not granted");
        let spec = pair.net.nodes[1].subscription(subscription).unwrap();
        let most = spec.elastic.as_ref().map_or(spec.form, |elastic| elastic.most);
        assert_eq!(spec.form, most, "{:?}", pair.net.seen[1].adapted.last());
    }
    for (subscription, _) in live {
        pair.net.unsubscribe(subscription);
    }
    pair.run(30);
    for node in &pair.net.nodes {
        assert_eq!(node.grants().count(), 0);
        assert_eq!(node.buffer_use("radio").map(|it| it.held), Some(0));
        assert!(node.poll_timeout() > pair.net.now + Duration::from_secs(1), "a timer remains");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn random_histories_end_with_nothing_reserved(events in vec(event(), 1..24)) {
        check(events);
    }
}

/// Runs a million histories; `cargo xtask long` runs it.
#[test]
#[ignore = "takes an hour: cargo xtask long runs it"]
fn a_million_histories_end_with_nothing_reserved() {
    let mut runner =
        TestRunner::new(ProptestConfig { cases: 1_000_000, ..ProptestConfig::default() });
    let result = runner.run(&vec(event(), 1..24), |events| {
        check(events);
        Ok(())
    });
    result.unwrap();
}

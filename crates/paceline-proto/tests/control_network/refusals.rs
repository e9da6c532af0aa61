//! Slow links: selection of the refused subscription, and the end of a refusal.

use super::net::{Net, Seen, all, camera, link, one_in, promised};
use paceline_proto::control::{BestEffort, PublisherSpec, RefusalReason, SubscriptionSpec};
use paceline_proto::link::Unguaranteed;
use paceline_proto::plan::{OutputPlan, SourceKey, Target};
use paceline_proto::{Carrier, Form, PublisherId, Size, SubscriptionId};
use paceline_sched::discipline::RuleSet;
use paceline_sched::{Duration, LossTolerance, Policy};
use std::collections::BTreeMap;

impl Net {
    /// Asserts that the sum of the installed contracts on each link, computed by brute force, stays within 95
    /// % of its capacity.
    pub(crate) fn assert_within_capacity(&self) {
        for (node, seen) in self.seen.iter().enumerate() {
            let own = self.nodes[node].nodes().find(|view| super::net::index(view.id) == node);
            let hops = own.unwrap().neighbours;
            let mut loads: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
            for (source, (spec, outputs)) in &seen.installed {
                for output in outputs {
                    if seen.is_followed(source.publisher, output) {
                        continue;
                    }
                    let (Target::Hop(hop), Some(contract)) = (output.target, output.contract)
                    else {
                        continue;
                    };
                    let info = &hops[&hop];
                    let Some(capacity) = info.capacity else { continue };
                    let pixels = output.form.size.map_or(640 * 480, Size::pixels) as f64;
                    let bytes = spec.bytes_max.unwrap() as f64 * pixels / (640.0 * 480.0);
                    let wire = bytes + 110.0 * (bytes / 1_090.0).ceil();
                    let period = contract.period.as_nanos() as f64 * 20.0 / 19.0 / 1e9;
                    let kept = 1.0 - f64::from(contract.loss.x()) / f64::from(contract.loss.y());
                    let limit = capacity.bytes_per_s() as f64 * 0.95;
                    let entry = loads.entry(&info.link_name).or_insert((0.0, limit));
                    entry.0 += wire / period * kept;
                    entry.1 = entry.1.min(limit);
                }
            }
            for (link, (load, limit)) in loads {
                assert!(load <= limit + 1.0, "link {link} of {node}: {load} above {limit}");
            }
        }
    }
}

impl Seen {
    /// Returns true if an output ends with the first sample of another one, which has a contract on the same link.
    fn is_followed(&self, publisher: PublisherId, output: &OutputPlan) -> bool {
        let next = output.until.and_then(|form| self.installed.get(&SourceKey { publisher, form }));
        let mut followers = next.into_iter().flat_map(|(_, outputs)| outputs);
        followers.any(|other| {
            other.until.is_none() && other.target == output.target && other.contract.is_some()
        })
    }
}

/// Returns A – B – C, where the link from B to C carries `bytes_per_s`.
fn thin(bytes_per_s: u64) -> Net {
    let mut net = Net::chain(2);
    net.nodes.push(paceline_proto::control::Control::new(super::net::id(2), "node2"));
    net.seen.push(Seen::default());
    net.join_over(1, 2, link("radio", Some(bytes_per_s)), link("eth", None));
    net.settle();
    net
}

fn two(net: &mut Net) -> ([PublisherId; 2], [SubscriptionId; 2]) {
    let publishers = [net.publish(0, camera("left")), net.publish(0, camera("right"))];
    let first = net.subscribe(2, promised("right"));
    net.settle();
    let second = net.subscribe(2, promised("left"));
    net.settle();
    (publishers, [first, second])
}

#[test]
fn a_delay_bound_below_the_transmission_time_is_refused() {
    let mut net = thin(400_000);
    let left = net.publish(0, camera("left"));
    // The hop without a capacity takes 5 ms of the bound, and the other hop the rest less 1.5 ms. There
    // 12,000 bytes behind a frame of 1,300 take 35 ms of the reservable capacity.
    let asks = |within| {
        let within = Some(Duration::from_millis(within));
        SubscriptionSpec { within, ..promised("left") }
    };
    let [tight, roomy] = [35, 60].map(|within| net.subscribe(2, asks(within)));
    net.settle();
    assert!(net.heard(tight).is_empty());
    assert_eq!(net.heard(roomy), [left]);
    let [refusal] = &net.seen[2].refused[..] else { panic!("{:?}", net.seen[2].refused) };
    assert_eq!((refusal.subscription, refusal.available_bytes_per_s), (tight, 380_000));
    assert!(refusal.needed_bytes_per_s > 400_000, "{}", refusal.needed_bytes_per_s);
    let offered = refusal.offer.within.unwrap();
    assert!((40_000..=43_000).contains(&offered.as_micros()), "{offered}");
    let kept = net.subscribe(2, SubscriptionSpec { within: Some(offered), ..promised("left") });
    net.settle();
    assert_eq!(net.heard(kept), [left], "the offer is granted");
    net.assert_converged();
}

#[test]
fn a_second_stream_that_does_not_fit_is_refused_with_a_reason() {
    let mut net = thin(400_000);
    let ([left, right], [first, second]) = two(&mut net);
    assert_eq!(net.heard(first), [right]);
    assert!(net.heard(second).is_empty());
    let [refusal] = &net.seen[2].refused[..] else { panic!("{:?}", net.seen[2].refused) };
    assert_eq!((refusal.subscription, refusal.publisher), (second, left));
    assert_eq!(refusal.reason, RefusalReason::Capacity);
    assert_eq!((refusal.needed_bytes_per_s, refusal.available_bytes_per_s), (300_000, 80_000));
    let text = refusal.to_string();
    let beginning = "link 'radio' of 'node1' can't carry it: it needs 2.40 Mbit/s and 640 kbit/s are left; try --size 400x300 --max-hz 12.5, ";
    assert!(text.starts_with(beginning), "{text}");
    // 80,000 of 300,000 bytes per second are left: a rate alone would keep 6.6 of 25 Hz, and a size 240 of 640 columns.
    assert_eq!((refusal.offer.together, refusal.offer.max_millihertz), (true, Some(12_500)));
    assert_eq!(refusal.offer.within, None, "no delay bound frees capacity");
    assert_eq!(refusal.offer.loss, LossTolerance::new(4, 5).ok(), "{text}");
    assert_eq!(refusal.offer.size, Some(Size { width: 400, height: 300 }), "{text}");
    assert_eq!(refusal.offer.bitrate, None, "JPEG of this size at 25 Hz needs 2.06 Mbit/s");
    // No node on the path carries it.
    assert!(net.outputs(0, left, Form::FULL).is_empty());
    assert_ne!(net.seen[0].matching.get(&left), Some(&true));
    net.assert_converged();
    net.assert_delivered();
    net.assert_within_capacity();
}

#[test]
fn a_granted_stream_keeps_its_reservation_against_later_smaller_ids() {
    let mut net = thin(400_000);
    net.publish(0, camera("left"));
    net.publish(0, camera("right"));
    // The subscription that is admitted first has the larger id.
    let gone = net.subscribe(2, all("nothing"));
    let early = net.subscribe(2, promised("left"));
    net.settle();
    let now = net.now;
    net.nodes[2].update_subscription(now, gone, promised("right"));
    net.drain(2);
    net.settle();
    assert_eq!(net.heard(early).len(), 1);
    assert!(net.heard(gone).is_empty());
    // A request that exceeds the capacity does not displace others either.
    net.nodes[2].update_subscription(now, early, promised("*"));
    net.drain(2);
    net.run(Duration::from_secs(10));
    assert_eq!(net.heard(early).len() + net.heard(gone).len(), 1);
    net.assert_within_capacity();
}

#[test]
fn a_refusal_ends_when_there_is_room() {
    let mut net = thin(400_000);
    let ([left, _], [first, second]) = two(&mut net);
    net.run(Duration::from_secs(3));
    net.unsubscribe(first);
    net.run(Duration::from_millis(500));
    assert_eq!(net.heard(second), [left], "soon, as the refusal is not fresh");
    net.assert_delivered();
}

#[test]
fn a_fresh_refusal_is_kept_for_a_minimum_time() {
    let mut net = thin(400_000);
    let ([left, _], [first, second]) = two(&mut net);
    net.unsubscribe(first);
    net.settle();
    assert!(net.heard(second).is_empty());
    net.run(Duration::from_millis(2_500));
    assert_eq!(net.heard(second), [left]);
}

#[test]
fn requesting_less_ends_a_refusal_at_once() {
    for less in [
        SubscriptionSpec { form: one_in(5), ..promised("left") },
        SubscriptionSpec { loss: LossTolerance::new(4, 5).ok(), ..promised("left") },
        SubscriptionSpec {
            form: Form { size: Some(Size { width: 160, height: 120 }), ..Form::FULL },
            ..promised("left")
        },
        all("left"),
    ] {
        let mut net = thin(400_000);
        let ([left, _], [_, second]) = two(&mut net);
        let now = net.now;
        net.nodes[2].update_subscription(now, second, less);
        net.drain(2);
        net.settle();
        assert_eq!(net.heard(second), [left]);
        net.assert_delivered();
        net.assert_within_capacity();
    }
}

#[test]
fn a_faster_link_ends_a_refusal_and_a_slower_link_begins_it() {
    let mut net = thin(400_000);
    let (_, [first, second]) = two(&mut net);
    net.join_over(1, 2, link("radio", Some(700_000)), link("eth", None));
    net.settle();
    assert_eq!(net.heard(first).len() + net.heard(second).len(), 2);
    net.join_over(1, 2, link("radio", Some(300_000)), link("eth", None));
    net.settle();
    assert_eq!(net.heard(first).len() + net.heard(second).len(), 0);
    net.part(1, 2);
    net.settle();
    let refusals: usize = net.nodes[1].nodes().map(|view| view.refusals.len()).sum();
    assert_eq!(refusals, 0, "no path, no refusal");
}

#[test]
fn streams_without_a_contract_or_a_known_load_are_not_refused() {
    let mut net = thin(1_000);
    net.publish(0, camera("left"));
    net.publish(0, PublisherSpec { bytes_max: None, ..camera("right") });
    let best_effort = net.subscribe(2, all("left"));
    let unknown = net.subscribe(2, promised("right"));
    net.settle();
    assert_eq!(net.heard(best_effort).len() + net.heard(unknown).len(), 2);
}

#[test]
fn subscriptions_that_share_a_stream_reserve_it_once() {
    let mut net = thin(400_000);
    net.publish(0, camera("left"));
    for _ in 0..5 {
        net.subscribe(2, promised("left"));
    }
    net.settle();
    assert!(net.seen[2].refused.is_empty());
    net.assert_within_capacity();
}

#[test]
fn hops_over_one_link_share_its_capacity() {
    let mut net = Net::new(3);
    for far in [1, 2] {
        net.join_over(0, far, link("radio", Some(400_000)), link("eth", None));
    }
    net.publish(0, camera("left"));
    let users = [net.subscribe(1, promised("left")), net.subscribe(2, promised("left"))];
    net.settle();
    assert_eq!(users.iter().filter(|user| !net.heard(**user).is_empty()).count(), 1);
    net.assert_within_capacity();
}

#[test]
fn a_picture_is_never_enlarged() {
    let mut net = Net::chain(3);
    let publisher = net.publish(0, camera("left"));
    let asked = Size { width: 1_280, height: 100 };
    let form = Form { size: Some(asked), ..Form::FULL };
    let user = net.subscribe(2, SubscriptionSpec { form, ..all("left") });
    net.settle();
    assert!(net.heard(user).is_empty());
    let source = Size { width: 640, height: 480 };
    assert_eq!(net.seen[2].refused[0].reason, RefusalReason::SizeAboveSource { asked, source });
    let now = net.now;
    let larger =
        PublisherSpec { size: Some(Size { width: 1_920, height: 1_080 }), ..camera("left") };
    net.nodes[0].update_publisher(now, publisher, larger);
    net.drain(0);
    net.settle();
    assert_eq!(net.heard(user), [publisher]);
    net.assert_delivered();
}

/// Three cameras that the link carries easily on average, but whose pictures may all be due at once.
#[test]
fn infeasible_coinciding_deadlines_are_refused_with_an_offer() {
    let mut net = thin(400_000);
    let slow =
        |tag: &str| PublisherSpec { period: Some(Duration::from_millis(200)), ..camera(tag) };
    let publishers = ["a", "b", "c"].map(|tag| net.publish(0, slow(tag)));
    // The first hop takes a tenth of the bound. The second has 79.5 ms: 30,210 bytes of the reservable
    // capacity. Each picture takes 12,000 bytes.
    let asks = |tag: &str, within| SubscriptionSpec {
        within: Some(Duration::from_millis(within)),
        ..promised(tag)
    };
    let mut users = Vec::new();
    for tag in ["a", "b", "c"] {
        users.push(net.subscribe(2, asks(tag, 90)));
        net.settle();
    }
    let heard: Vec<usize> = users.iter().map(|user| net.heard(*user).len()).collect();
    assert_eq!(heard, [1, 1, 0]);
    let [refusal] = &net.seen[2].refused[..] else { panic!("{:?}", net.seen[2].refused) };
    let RefusalReason::Deadlines { within, due, carried } = refusal.reason else {
        panic!("{refusal}");
    };
    assert_eq!(within, Duration::from_micros(79_500));
    assert_eq!((due, carried), (3 * 12_000 + 1_300, 30_210));
    println!("{refusal}");
    let offered = refusal.offer.within.unwrap();
    let third = net.subscribe(2, SubscriptionSpec { within: Some(offered), ..asks("c", 90) });
    net.settle();
    assert_eq!(net.heard(third), [publishers[2]], "the offer is granted: {offered}");
    let still: Vec<usize> = users.iter().map(|user| net.heard(*user).len()).collect();
    assert_eq!(still[..2], [1, 1], "and the others lose nothing");
    // In order of arrival any of them may wait for all the others.
    net.assert_converged();
}

#[test]
fn a_best_effort_subscriber_gets_the_reason_once() {
    let mut net = thin(400_000);
    let unknown = PublisherSpec { bytes_max: None, ..camera("camera") };
    let cam = net.publish(0, unknown.clone());
    let log = net.publish(0, PublisherSpec { period: None, bytes_max: None, ..camera("log") });
    let all = net.subscribe(2, promised("**"));
    let near = net.subscribe(1, promised("camera"));
    let best_effort = net.subscribe(2, super::net::all("**"));
    net.settle();
    let notified = |net: &Net, node: usize| net.seen[node].best_effort.clone();
    let (size, rate) = (BestEffort::SizeUnknown, BestEffort::RateUnknown);
    assert_eq!(notified(&net, 2), [(all, cam, size), (all, log, rate)]);
    assert_eq!(notified(&net, 1), [(near, cam, BestEffort::NoCapacity)]);
    assert!(rate.is_no() && !size.is_no() && !BestEffort::NoCapacity.is_no());
    assert_eq!(net.heard(best_effort).len(), 2, "which requested nothing and is not notified");
    // The camera's first sample has arrived. One sample of the log does not reveal its rate.
    net.update(cam, PublisherSpec { bytes_max: Some(10_900), ..unknown });
    net.update(log, PublisherSpec { period: None, bytes_max: Some(90), ..camera("log") });
    net.settle();
    assert_eq!(
        (net.seen[2].granted.len(), notified(&net, 2).len()),
        (1, 2),
        "{:?}",
        notified(&net, 2)
    );
    net.unsubscribe(all);
    net.settle();
    let again = net.subscribe(2, promised("log"));
    net.settle();
    assert_eq!(notified(&net, 2).last(), Some(&(again, log, rate)));
}

#[test]
fn admission_uses_the_test_of_the_discipline() {
    let original = Policy::Dwcs { ordering: RuleSet::Original, adjustment: RuleSet::Original };
    for (policy, fit) in [
        (Policy::Vds, 2),
        (Policy::Edf, 2),
        (Policy::Rpq, 2),
        (Policy::Rcsp, 1),
        (Policy::StopAndGo, 0),
        (Policy::Fifo, 1),
        (Policy::Wf2qPlus, 2),
        (Policy::Drr, 0),
        (original, 0),
    ] {
        let mut net = thin(400_000);
        net.nodes[1].set_link("radio", policy, Carrier::Ordered);
        for (tag, within) in [("a", 50), ("b", 95), ("c", 95)] {
            let period = Some(Duration::from_millis(200));
            net.publish(0, PublisherSpec { period, ..camera(tag) });
            let within = Some(Duration::from_millis(within));
            net.subscribe(2, SubscriptionSpec { within, ..promised(tag) });
            net.settle();
        }
        let refused = net.seen[2].refused.len();
        assert_eq!(3 - refused, fit, "{policy}: {:?}", net.seen[2].refused);
        if policy == Policy::Fifo {
            assert!(matches!(net.seen[2].refused[0].reason, RefusalReason::Delay { .. }));
        }
        // These guarantee no deadline, so they take no contracts.
        let none = RefusalReason::NoGuarantee { why: Unguaranteed::Discipline };
        let all = net.seen[2].refused.iter().all(|refused| refused.reason == none);
        assert_eq!(all, policy == Policy::Drr || policy == original, "{policy}");
    }
}

#[test]
fn a_priority_level_replaces_the_order_of_delay_bounds() {
    // A picture takes 37 ms. Behind another one, it takes 74 ms.
    for (level, fit) in [(None, 2), (Some(0), 1)] {
        let mut net = thin(325_000);
        net.nodes[1].set_link("radio", Policy::StaticPriority, Carrier::Ordered);
        for (tag, within, level) in [("soon", 70, None), ("later", 180, level)] {
            let period = Some(Duration::from_millis(400));
            let publisher = net.publish(0, PublisherSpec { period, ..camera(tag) });
            let within = Some(Duration::from_millis(within));
            net.subscribe(2, SubscriptionSpec { within, level, ..promised(tag) });
            net.settle();
            if let [plan] = net.outputs(1, publisher, Form::FULL) {
                assert_eq!(plan.level, level);
            }
        }
        let refused = &net.seen[2].refused;
        assert_eq!(2 - refused.len(), fit, "{level:?}: {refused:?}");
        if level.is_some() {
            assert!(matches!(refused[0].reason, RefusalReason::Delay { .. }), "{refused:?}");
        }
    }
}

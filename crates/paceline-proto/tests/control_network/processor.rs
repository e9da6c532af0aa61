//! Nodes that know the processor cost of samples.

use super::net::{Net, camera, link, promised};
use paceline_proto::control::{CpuBudget, CpuCost, PublisherSpec, RefusalReason, SubscriptionSpec};
use paceline_proto::form::ScaledForm;
use paceline_proto::{Form, Rate, Size};
use paceline_sched::Duration;

/// Returns A – B – C, where B needs 10 ms per sample and may use 300 ms per second. The link behind B is
/// fast.
fn costly() -> Net {
    let mut net = Net::chain(2);
    net.nodes.push(paceline_proto::control::Control::new(super::net::id(2), "node2"));
    net.seen.push(super::net::Seen::default());
    net.join_over(1, 2, link("radio", Some(100_000_000)), link("eth", None));
    let cost = CpuCost { sample_nanos: 10_000_000, byte_picos: 0 };
    net.nodes[1].set_processor(CpuBudget { cost, nanos_per_s: 300_000_000 });
    net.settle();
    net
}

#[test]
fn a_stream_above_the_processor_budget_is_refused_and_its_offer_is_granted() {
    let mut net = costly();
    let (left, right) = (net.publish(0, camera("left")), net.publish(0, camera("right")));
    let first = net.subscribe(2, promised("left"));
    net.settle();
    assert_eq!(net.heard(first), [left]);
    let second = net.subscribe(2, promised("right"));
    net.settle();
    assert!(net.heard(second).is_empty());
    let [refusal] = &net.seen[2].refused[..] else { panic!("{:?}", net.seen[2].refused) };
    // 25 samples per second each.
    let reason = RefusalReason::Processor { needed: 500_000_000, available: 300_000_000 };
    assert_eq!((refusal.reason, refusal.node_name.as_str()), (reason, "node1"));
    let text = refusal.to_string();
    let beginning = "the processor of 'node1' can't carry it: with existing contracts it would take 500 \
                ms of each second, of at most 300 ms; try --max-hz ";
    assert!(text.starts_with(beginning), "{text}");
    assert_eq!(refusal.offer.bytes, None, "smaller samples cost as much here");
    let millihertz = refusal.offer.max_millihertz.unwrap();
    assert!((4_900..=5_000).contains(&millihertz), "{text}");
    let rate = u32::try_from(millihertz).ok().and_then(core::num::NonZeroU32::new).map(Rate::max);
    let form = Form { rate: rate.unwrap(), ..Form::FULL };
    let kept = net.subscribe(2, SubscriptionSpec { form, ..promised("right") });
    net.settle();
    assert_eq!(net.heard(kept), [right], "the offer is granted");
    net.assert_converged();
    net.assert_delivered();
}

#[test]
fn ended_streams_and_best_effort_are_not_charged() {
    let mut net = costly();
    let (left, right) = (net.publish(0, camera("left")), net.publish(0, camera("right")));
    let first = net.subscribe(2, promised("left"));
    let free = net.subscribe(2, super::net::all("right"));
    net.settle();
    assert_eq!((net.heard(first), net.heard(free)), (&[left][..], &[right][..]));
    let second = net.subscribe(2, promised("right"));
    net.settle();
    assert!(net.heard(second).is_empty());
    net.unsubscribe(first);
    net.run(Duration::from_secs(5));
    assert_eq!(net.heard(second), [right]);
    net.assert_converged();
}

#[test]
fn scaling_is_charged_to_the_processor_of_the_publisher() {
    let mut net = Net::chain(2);
    let cost = CpuCost { sample_nanos: 1_000, byte_picos: 0 };
    net.nodes[0].set_processor(CpuBudget { cost, nanos_per_s: 300_000_000 });
    net.join_over(0, 1, link("radio", Some(100_000_000)), link("radio", Some(100_000_000)));
    net.settle();
    let form = Form { size: Some(Size { width: 320, height: 240 }), ..Form::FULL };
    let work = Duration::from_millis(20);
    let measured = ScaledForm { form, bytes_max: 5_000, takes: work, work };
    let left = net.publish(0, PublisherSpec { scaled: vec![measured], ..camera("left") });
    let small = SubscriptionSpec { form, ..promised("left") };
    let user = net.subscribe(1, small.clone());
    net.settle();
    assert!(net.heard(user).is_empty());
    let [refusal] = &net.seen[1].refused[..] else { panic!("{:?}", net.seen[1].refused) };
    // 25 samples per second.
    let reason = RefusalReason::Processor { needed: 500_025_000, available: 300_000_000 };
    assert_eq!((refusal.reason, refusal.node_name.as_str()), (reason, "node0"));
    let millihertz = refusal.offer.max_millihertz.unwrap();
    assert!((14_800..=15_000).contains(&millihertz), "{refusal}");
    let rate = u32::try_from(millihertz).ok().and_then(core::num::NonZeroU32::new).map(Rate::max);
    let offered = Form { rate: rate.unwrap(), ..form };
    let kept = net.subscribe(1, SubscriptionSpec { form: offered, ..small });
    net.settle();
    assert_eq!(net.heard(kept), [left], "the offer is granted");
    net.assert_converged();
}

#[test]
fn best_effort_gets_the_rest_of_the_processor_and_only_granted_outputs_are_not_charged() {
    let mut net = costly();
    let rest = |net: &Net| net.nodes[1].best_effort_time().unwrap().share().nanos_per_s;
    assert_eq!(rest(&net), 300_000_000);
    assert!(net.nodes[0].best_effort_time().is_none(), "its cost is not known");
    let (left, right) = (net.publish(0, camera("left")), net.publish(0, camera("right")));
    let free = net.subscribe(2, super::net::all("right"));
    let first = net.subscribe(2, promised("left"));
    net.settle();
    // 25 samples per second of 10 ms.
    assert_eq!(rest(&net), 50_000_000);
    for (node, name) in ["publisher", "forwarder", "subscriber"].into_iter().enumerate() {
        let is_granted = |publisher| {
            net.outputs(node, publisher, Form::FULL).iter().map(|it| it.is_granted).collect()
        };
        let (granted, best_effort): (Vec<_>, Vec<_>) = (is_granted(left), is_granted(right));
        assert_eq!((granted, best_effort), (vec![true], vec![false]), "{name}");
    }
    net.unsubscribe(first);
    net.run(Duration::from_secs(5));
    assert_eq!(rest(&net), 300_000_000);
    assert_eq!(net.heard(free), [right]);
}

#[test]
fn a_bound_on_a_path_without_a_capacity_is_best_effort_and_charged() {
    let mut net = Net::chain(2);
    net.join_over(0, 1, link("host", None), link("host", None));
    let cost = CpuCost { sample_nanos: 1_000, byte_picos: 0 };
    net.nodes[0].set_processor(CpuBudget { cost, nanos_per_s: 300_000_000 });
    let left = net.publish(0, camera("left"));
    let far = net.subscribe(1, promised("left"));
    net.settle();
    assert_eq!(net.heard(far), [left]);
    let granted = |net: &Net, node: usize| {
        let outputs = net.outputs(node, left, Form::FULL).iter();
        outputs.map(|it| (it.target, it.is_granted)).collect::<Vec<_>>()
    };
    assert!(granted(&net, 0).iter().all(|(_, granted)| !granted), "{:?}", granted(&net, 0));
    // On the publisher's own node, no link has to grant anything.
    net.subscribe(0, promised("left"));
    net.settle();
    let here = (paceline_proto::plan::Target::Local, true);
    assert!(granted(&net, 0).contains(&here), "{:?}", granted(&net, 0));
}

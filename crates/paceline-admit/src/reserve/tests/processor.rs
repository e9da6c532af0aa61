//! One processor budget for all links of a node.

use super::world::{forward, wanted};
use super::*;
use crate::cpu::{CpuBudget, CpuCost};
use proptest::prelude::*;

const BUDGET: u64 = 500_000_000;
const COST: CpuCost = CpuCost { sample_nanos: 30_000, byte_picos: 700 };

/// A node between two neighbours, each on its own link.
fn node() -> Reservations {
    let mut node = Reservations::new(NodeIndex(0), 1, Timing::default(), 7);
    let capacity = Capacity::from_bits_per_s(1_000_000_000).unwrap();
    let cpu = Some(CpuBudget { cost: COST, nanos_per_s: BUDGET });
    for to in [1, 2] {
        let spec = LinkParameters { cpu, ..LinkParameters::new(capacity, AdmissionTest::Edf, 0) };
        node.add_link(LinkId(to), Admission::new(spec));
        node.set_neighbour(Instant::ZERO, NodeIndex(to.into()), LinkId(to), 1);
    }
    node
}

/// The cost of `mbit` Mbit/s in samples of 1,000 bytes, computed directly.
fn naive(mbit: u64) -> u64 {
    let samples = mbit * 125;
    samples * (COST.sample_nanos + COST.byte_picos * 1_000 / 1_000)
}

#[test]
fn capacity_reserved_on_one_link_is_unavailable_to_the_other() {
    let mut node = node();
    let ask = |to: u64, mbit| Request {
        forward: Some(wanted(to.into(), mbit)),
        ..forward(&[0, to], mbit)
    };
    let first = node.request(Instant::ZERO, &ask(1, 100)).unwrap();
    assert_eq!(node.processor_held(), naive(100));
    let Err(RequestError::Denied(Reason::Refused { refusal, .. })) =
        node.request(Instant::ZERO, &ask(2, 40))
    else {
        panic!("{} of {BUDGET} and {} more", naive(100), naive(40));
    };
    assert_eq!((refusal.resource, refusal.needed), (Resource::Cpu, naive(140)));
    assert_eq!(refusal.available, BUDGET);
    let offered = refusal.offer.rate.unwrap();
    assert!((29_000_000..=30_300_000).contains(&offered), "{offered}");
    node.close(Instant::ZERO, first);
    node.request(Instant::ZERO, &ask(2, 40)).unwrap();
    assert_eq!(node.processor_held(), naive(40));
}

#[test]
fn the_links_and_subscribers_of_a_node_share_its_buffer() {
    let mut node = Reservations::new(NodeIndex(0), 1, Timing::default(), 7);
    let capacity = Capacity::from_bits_per_s(1_000_000_000).unwrap();
    let add = |node: &mut Reservations, link, rule, most| {
        let spec = LinkParameters::new(capacity, rule, 0);
        node.add_link(LinkId(link), Admission::new(LinkParameters { host_buffer: most, ..spec }));
    };
    let most = Some(10_000_000);
    for to in [1, 2, 3] {
        // The third link has no capacity to promise, so its queue is not counted.
        add(&mut node, to, AdmissionTest::Edf, most.filter(|_| to < 3));
        node.set_neighbour(Instant::ZERO, NodeIndex(to.into()), LinkId(to), 1);
    }
    add(&mut node, 9, AdmissionTest::Delivery, most);
    node.set_delivery(LinkId(9));
    let ask = |to: u64| Request { forward: Some(wanted(to.into(), 40)), ..forward(&[0, to], 40) };
    let first = node.request(Instant::ZERO, &ask(1)).unwrap();
    let one = node.host_buffer_held();
    assert!(one > 0 && one < 10_000_000, "{one}");
    node.request(Instant::ZERO, &ask(3)).unwrap();
    assert_eq!(node.host_buffer_held(), one);
    // A path that ends here reserves space for its subscribers.
    let mut origin = Reservations::new(NodeIndex(1), 1, Timing::default(), 8);
    add(&mut origin, 1, AdmissionTest::Edf, None);
    origin.set_neighbour(Instant::ZERO, NodeIndex(0), LinkId(1), 1);
    origin.request(Instant::ZERO, &Request { ..forward(&[1, 0], 40) }).unwrap();
    let Some(ReserveOutput::Send { message, .. }) = origin.poll_output() else {
        panic!("no request")
    };
    while node.poll_output().is_some() {}
    node.handle_message(Instant::ZERO, NodeIndex(1), message);
    let both = node.host_buffer_held();
    assert!(both > one, "{both}");
    let Some(ReserveOutput::Asked { name, .. }) = node.poll_output() else { panic!("not asked") };
    let mut more = 0;
    let refusal = loop {
        let asks = Request { forward: Some(wanted(100 + more, 40)), ..forward(&[0, 2], 40) };
        match node.request(Instant::ZERO, &asks) {
            Ok(_) => more += 1,
            Err(RequestError::Denied(Reason::Refused { refusal, .. })) => break refusal,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!((refusal.resource, refusal.available), (Resource::HostBuffer, 10_000_000));
    assert!(refusal.needed > 10_000_000 && node.host_buffer_held() <= 10_000_000);
    let full = node.host_buffer_held();
    node.answer(Instant::ZERO, name, Decision::Decline);
    assert_eq!(node.host_buffer_held(), full - (both - one));
    node.close(Instant::ZERO, first);
    assert_eq!(node.host_buffer_held(), full - both);
}

#[test]
fn other_work_of_a_stream_is_charged_until_it_ends() {
    let mut node = node();
    let ask = |to: u64, mbit, work| Request {
        forward: Some(wanted(to.into(), mbit)),
        work,
        ..forward(&[0, to], mbit)
    };
    let first = node.request(Instant::ZERO, &ask(1, 1, 400_000_000)).unwrap();
    assert_eq!(node.processor_held(), naive(1) + 400_000_000);
    let Err(RequestError::Denied(Reason::Refused { refusal, .. })) =
        node.request(Instant::ZERO, &ask(2, 1, 100_000_000))
    else {
        panic!("more than the budget");
    };
    assert_eq!((refusal.resource, refusal.needed), (Resource::Cpu, naive(2) + 500_000_000));
    node.request(Instant::ZERO, &ask(2, 1, 0)).unwrap();
    node.close(Instant::ZERO, first);
    assert_eq!(node.processor_held(), naive(1));
}

#[test]
fn a_node_between_the_ends_scales_and_is_charged_for_it_until_the_end() {
    let mut node = node();
    let mut origin = Reservations::new(NodeIndex(1), 1, Timing::default(), 8);
    let capacity = Capacity::from_bits_per_s(1_000_000_000).unwrap();
    let spec = LinkParameters::new(capacity, AdmissionTest::Edf, 0);
    origin.add_link(LinkId(0), Admission::new(spec));
    origin.set_neighbour(Instant::ZERO, NodeIndex(0), LinkId(0), 1);
    let ask = |origin: &mut Reservations, node: &mut Reservations, trunk: u128, work| {
        let scaled = Scaled { at: 1, wanted: wanted(trunk << 64, 2) };
        let whole = Request { scaled: Some(scaled), ..forward(&[1, 0, 2], 60) };
        origin.request(Instant::ZERO, &whole).unwrap();
        let Some(ReserveOutput::Send { message, .. }) = origin.poll_output() else { panic!() };
        let here = Here { work, ..Here::default() };
        node.handle_message_on(Instant::ZERO, NodeIndex(1), message, here);
        let Some(ReserveOutput::Send { to, message }) = node.poll_output() else { panic!() };
        (to, message)
    };
    let (to, onward) = ask(&mut origin, &mut node, 9, 300_000_000);
    let ReserveMessage::Admit(admit) = onward else { panic!("{onward:?}") };
    assert_eq!((to, admit.spent), (NodeIndex(2), millis(300)));
    assert_eq!(node.processor_held(), naive(2) + 300_000_000, "the scaled stream and its scaling");
    assert_eq!(origin.link(LinkId(0)).unwrap().ledger().held.rate, 60_000_000);
    // Behind the proxy its samples are as bunched as before, and later by the link.
    assert!(admit.scaled.unwrap().wanted.bunched >= admit.forward.unwrap().bunched);
    let (to, denied) = ask(&mut origin, &mut node, 8, 300_000_000);
    let ReserveMessage::Deny(Deny { reason: Reason::Refused { refusal, .. }, .. }) = denied else {
        panic!("{denied:?}")
    };
    assert_eq!((to, refusal.resource), (NodeIndex(1), Resource::Cpu));
    node.handle_message(Instant::ZERO, NodeIndex(1), ReserveMessage::Close(admit.name));
    assert_eq!(node.processor_held(), 0);
}

#[test]
fn a_place_of_scaling_at_an_end_is_refused() {
    let mut node = node();
    let at = |at| Some(Scaled { at, wanted: wanted(9 << 64, 2) });
    for wrong in [0, 2, 9] {
        let request = Request { scaled: at(wrong), ..forward(&[0, 1, 2], 2) };
        let refused = node.request(Instant::ZERO, &request);
        assert_eq!(refused, Err(RequestError::Scaled { at: wrong }));
    }
    let same =
        Request { scaled: at(1), forward: Some(wanted(9 << 64, 2)), ..forward(&[0, 1, 2], 2) };
    assert_eq!(node.request(Instant::ZERO, &same), Err(RequestError::OneTrunk));
}

proptest! {
    #[test]
    fn granted_requests_fit_together_and_fitting_requests_are_granted(
        asks in prop::collection::vec((1..=2_u64, 1..60_u64, 0..4_usize), 1..40),
    ) {
        let mut node = node();
        let mut held: Vec<(Key, u64)> = Vec::new();
        for (number, (to, mbit, closes)) in (1_u128..).zip(asks) {
            if let Some((key, _)) = held.get(closes).copied() {
                node.close(Instant::ZERO, key);
                held.remove(closes);
            }
            let sum: u64 = held.iter().map(|(_, mbit)| naive(*mbit)).sum();
            let wanted = wanted(number << 64, mbit);
            let request = Request { forward: Some(wanted), ..forward(&[0, to], mbit) };
            let asked = node.request(Instant::ZERO, &request);
            prop_assert_eq!(asked.is_ok(), sum + naive(mbit) <= BUDGET);
            held.extend(asked.ok().map(|key| (key, mbit)));
            let sum: u64 = held.iter().map(|(_, mbit)| naive(*mbit)).sum();
            prop_assert_eq!(node.processor_held(), sum);
        }
        for (key, _) in held {
            node.close(Instant::ZERO, key);
        }
        prop_assert_eq!(node.processor_held(), 0);
    }
}

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

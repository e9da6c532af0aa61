use super::*;
use crate::form::{Rate, Size};
use crate::ids::NodeId;
use core::num::NonZeroU32;
use paceline_admit::cpu::{CpuBudget, CpuCost};

fn plan(target: Target, rate: Rate, size: Option<Size>) -> OutputPlan {
    let form = Form { rate, size, ..Form::FULL };
    OutputPlan { scale: form, ..OutputPlan::new(target, form) }
}

fn every(n: u32) -> Rate {
    NonZeroU32::new(n).map_or(Rate::ALL, Rate::every)
}

fn hop(id: u64) -> Target {
    Target::Hop(NodeId(id))
}

/// Installs, and says which ports were opened and closed.
fn install(ingress: &mut Ingress<u32>, plans: &[OutputPlan], port: u32) -> (u32, Vec<u32>) {
    let (mut opened, mut closed) = (0, Vec::new());
    let open = |_: &OutputPlan| {
        opened += 1;
        Some(port + opened - 1)
    };
    ingress.install(plans, open, |_, port| closed.push(port));
    (opened, closed)
}

/// What each port gets of `count` samples from `stamper`.
fn offer(ingress: &mut Ingress<u32>, stamper: &mut Stamper, count: u64) -> Vec<(u32, u64)> {
    let mut got = Vec::new();
    for k in 0..count {
        let captured = Timestamp { nanos: k * 10_000_000, error: 0 };
        let (kind, encoding) = (Kind::Data, Encoding::Bytes);
        let sample = stamper.stamp(Instant::ZERO, captured, kind, encoding, Bytes::new());
        ingress.offer(Instant::ZERO, sample, |output, offered| {
            got.push((output.port, offered.unwrap().seq));
            true
        });
    }
    got
}

#[test]
fn each_output_gets_its_requested_samples() {
    let mut ingress = Ingress::new(None);
    let plans = [plan(hop(1), Rate::ALL, None), plan(Target::Local, every(3), None)];
    assert_eq!(install(&mut ingress, &plans, 0), (2, Vec::new()));
    let got = offer(&mut ingress, &mut Stamper::default(), 4);
    assert_eq!(got, [(0, 0), (1, 0), (0, 1), (0, 2), (0, 3), (1, 3)]);
}

#[test]
fn skipped_outputs_may_get_the_same_samples_later() {
    let mut ingress = Ingress::new(None);
    let plans = [plan(hop(1), every(2), None), plan(Target::Local, every(3), None)];
    install(&mut ingress, &plans, 0);
    let mut stamper = Stamper::default();
    let samples: Vec<RawSample> = (0..6)
        .map(|k| {
            let captured = Timestamp { nanos: k * 10_000_000, error: 0 };
            let (kind, encoding) = (Kind::Data, Encoding::Bytes);
            stamper.stamp(Instant::ZERO, captured, kind, encoding, Bytes::new())
        })
        .collect();
    let mut got = Vec::new();
    for is_local in [true, false] {
        for sample in &samples {
            let targets = |target| (target == Target::Local) == is_local;
            ingress.offer_to(targets, (Instant::ZERO, sample.clone()), |output, offered| {
                got.push((output.port, offered.unwrap().seq));
                true
            });
        }
    }
    assert_eq!(got, [(1, 0), (1, 3), (0, 0), (0, 2), (0, 4)], "each keeps its own phase");
}

#[test]
fn remaining_outputs_keep_their_port_and_phase() {
    let mut ingress = Ingress::new(None);
    let mut stamper = Stamper::default();
    let [stays, goes] = [plan(hop(1), every(3), None), plan(hop(2), Rate::ALL, None)];
    install(&mut ingress, &[stays.clone(), goes], 0);
    offer(&mut ingress, &mut stamper, 2);
    let comes = plan(Target::Local, every(2), None);
    assert_eq!(install(&mut ingress, &[comes, stays.clone()], 7), (1, vec![1]));
    let got = offer(&mut ingress, &mut stamper, 5);
    assert_eq!(got, [(7, 2), (0, 3), (7, 4), (7, 6), (0, 6)]);
    // The same form at another size to scale to is another output.
    let quarter = OutputPlan {
        scale: Form { size: Some(Size { width: 4, height: 3 }), ..stays.form },
        ..stays
    };
    assert_eq!(install(&mut ingress, &[quarter], 9), (1, vec![7, 0]));
    assert_eq!(install(&mut ingress, &[], 0), (0, vec![9]));
    assert!(ingress.outputs().is_empty());
    assert!(offer(&mut ingress, &mut stamper, 1).is_empty());
}

#[test]
fn an_output_without_a_port_is_rejected() {
    let mut ingress: Ingress<u32> = Ingress::new(None);
    ingress.install(&[plan(hop(1), Rate::ALL, None)], |_| None, |_, _| panic!("never opened"));
    assert!(ingress.outputs().is_empty());
}

/// What each port gets of `kinds`, in order, or why not; `full` is a port that drops all it gets.
fn offer_video(
    ingress: &mut Ingress<u32>,
    stamper: &mut Stamper,
    kinds: &str,
    full: u32,
) -> Vec<(u32, Option<u64>)> {
    let mut got = Vec::new();
    for kind in kinds.chars() {
        let kind = match kind {
            'I' => Kind::VideoI,
            'P' => Kind::VideoP,
            _ => Kind::VideoB,
        };
        let encoding = Encoding::Bytes;
        let sample =
            stamper.stamp(Instant::ZERO, Timestamp::default(), kind, encoding, Bytes::new());
        ingress.offer(Instant::ZERO, sample, |output, offered| {
            got.push((output.port, offered.ok().map(|sample| sample.seq)));
            output.port != full
        });
    }
    got
}

#[test]
fn each_video_output_begins_with_an_i_picture() {
    let mut ingress = Ingress::new(None);
    let video = |target| OutputPlan { kind: Kind::VideoI, ..plan(target, Rate::ALL, None) };
    let mut stamper = Stamper::default();
    install(&mut ingress, &[video(hop(1))], 0);
    let got = offer_video(&mut ingress, &mut stamper, "PIB", 9);
    assert_eq!(got, [(0, None), (0, Some(1)), (0, Some(2))]);
    install(&mut ingress, &[video(hop(1)), video(Target::Local)], 5);
    let got = offer_video(&mut ingress, &mut stamper, "PI", 9);
    assert_eq!(got, [(5, None), (0, Some(3)), (0, Some(4)), (5, Some(4))]);
    // One loses a P, and then both lose something that nobody knows, and a B.
    let got = offer_video(&mut ingress, &mut stamper, "PB", 5);
    assert_eq!(got, [(0, Some(5)), (5, Some(5)), (5, None), (0, Some(6))]);
    ingress.handle_lost(Some(Kind::VideoB));
    assert_eq!(offer_video(&mut ingress, &mut stamper, "P", 9), [(5, None), (0, Some(7))]);
    ingress.handle_lost(None);
    assert_eq!(offer_video(&mut ingress, &mut stamper, "P", 9), [(0, None), (5, None)]);
}

#[test]
fn the_port_limits_the_video_rate() {
    let mut ingress = Ingress::new(None);
    let slow = OutputPlan { kind: Kind::VideoI, ..plan(hop(1), every(3), None) };
    assert_eq!(slow.at_port().rate, every(3));
    assert_eq!(plan(hop(1), every(3), None).at_port(), Form::FULL);
    install(&mut ingress, std::slice::from_ref(&slow), 0);
    assert!(ingress.outputs().first().is_some_and(|output| output.is_for(&slow)));
    let got = offer_video(&mut ingress, &mut Stamper::default(), "IPP", 9);
    assert_eq!(got, [(0, Some(0)), (0, Some(1)), (0, Some(2))]);
}

#[test]
fn a_replaced_output_ends_even_if_its_own_samples_run_ahead() {
    let next = Form { rate: every(2), ..Form::FULL };
    let old = OutputPlan { until: Some(next), aligned: true, ..plan(hop(1), every(2), None) };
    let mut ingress = Ingress::new(None);
    install(&mut ingress, &[old, plan(hop(2), Rate::ALL, None)], 0);
    let mut stamper = Stamper::default();
    let to_first = |got: Vec<(u32, u64)>| -> Vec<u64> {
        got.into_iter().filter(|(port, _)| *port == 0).map(|(_, seq)| seq).collect()
    };
    assert_eq!(to_first(offer(&mut ingress, &mut stamper, 5)), [0, 2, 4]);
    // Sample 2 arrives in the new form after sample 4 in the old one, so the new output begins with sample 5.
    let key = OutputKey { target: hop(1), form: next };
    assert_eq!(ingress.replace(next, 2), [(key, 5)]);
    assert!(!ingress.is_replaced());
    assert!(to_first(offer(&mut ingress, &mut stamper, 5)).is_empty());
}

#[test]
fn an_output_that_is_replaced_again_does_not_begin_again() {
    let (one, two) = (Form { rate: every(2), ..Form::FULL }, Form::FULL);
    let until = |until| OutputPlan { until, aligned: true, ..plan(hop(1), every(3), None) };
    let mut ingress = Ingress::new(None);
    install(&mut ingress, &[until(Some(one))], 0);
    let mut stamper = Stamper::default();
    offer(&mut ingress, &mut stamper, 1);
    install(&mut ingress, &[until(Some(two))], 0);
    // Either form may come first.
    assert!(ingress.replace(one, 3).is_empty());
    install(&mut ingress, &[until(Some(one))], 0);
    assert!(offer(&mut ingress, &mut stamper, 4).is_empty());
    // It is installed for itself again.
    install(&mut ingress, &[until(None)], 0);
    assert_eq!(offer(&mut ingress, &mut stamper, 4), [(0, 6)]);
}

/// Offers samples of 100 bytes at an instant. Returns the number of those that each port takes, and the reasons of the others.
fn offer_at(
    ingress: &mut Ingress<u32>,
    now: Instant,
    count: u64,
) -> (Vec<u64>, Vec<(u32, DropReason)>) {
    let (mut taken, mut dropped) = (vec![0; 2], Vec::new());
    for seq in 0..count {
        let payload = Bytes::from_static(&[7; 100]);
        let sample = RawSample { seq, published_at: now, payload, ..RawSample::default() };
        ingress.offer(now, sample, |output, offered| match offered {
            Ok(_) => {
                taken[output.port as usize] += 1;
                true
            }
            Err(reason) => {
                dropped.push((output.port, reason));
                false
            }
        });
    }
    (taken, dropped)
}

#[test]
fn best_effort_beyond_its_processor_time_is_dropped_and_contracts_are_not_charged() {
    // 100 us and 1 us per byte: 0.2 ms per sample. Of half a processor, that is 2,500 samples per second.
    let cost = CpuCost { sample_nanos: 100_000, byte_picos: 1_000_000 };
    let budget = CpuBudget { cost, nanos_per_s: 500_000_000 };
    let regulator = Arc::new(BestEffortRegulator::new(budget));
    let mut ingress = Ingress::new(None);
    let free = plan(hop(1), Rate::ALL, None);
    let granted = OutputPlan { is_granted: true, ..plan(hop(2), Rate::ALL, None) };
    install(&mut ingress, &[free.clone(), granted.clone()], 0);
    let now = Instant::from_millis(100);
    // Without a regulator, nothing is dropped.
    assert_eq!(offer_at(&mut ingress, now, 50), (vec![50, 50], Vec::new()));
    assert_eq!(ingress.processor_wait(now), Duration::ZERO);
    ingress.set_processor(Some(&regulator));
    let (taken, dropped) = offer_at(&mut ingress, now, 50);
    // Five samples fill the burst of 1 ms, and one more may begin.
    assert_eq!(taken, [6, 50]);
    assert_eq!(dropped, vec![(0, DropReason::ProcessorBusy); 44]);
    let wait = ingress.processor_wait(now);
    assert_eq!(wait, Duration::from_micros(400));
    assert_eq!(offer_at(&mut ingress, now + wait, 1), (vec![1, 1], Vec::new()));
    // The same output under a contract, and then without one again.
    let both = OutputPlan { is_granted: true, ..free.clone() };
    install(&mut ingress, &[both, granted.clone()], 0);
    assert_eq!(offer_at(&mut ingress, now, 50), (vec![50, 50], Vec::new()));
    assert_eq!(ingress.processor_wait(now), Duration::ZERO);
    install(&mut ingress, &[free, granted], 0);
    assert_eq!(offer_at(&mut ingress, now, 50).0, [0, 50]);
}

#[test]
fn samples_that_are_left_out_are_not_charged() {
    let cost = CpuCost { sample_nanos: 500_000, byte_picos: 0 };
    let budget = CpuBudget { cost, nanos_per_s: 1 };
    let regulator = Arc::new(BestEffortRegulator::new(budget));
    let mut ingress = Ingress::new(None);
    ingress.set_processor(Some(&regulator));
    install(&mut ingress, &[plan(hop(1), every(10), None)], 0);
    let (taken, dropped) = offer_at(&mut ingress, Instant::from_millis(1), 30);
    assert_eq!(
        (taken, dropped),
        (vec![3, 0], Vec::new()),
        "two fill the burst, and one more passes"
    );
}

//! The traces of radios: steps, ramps, sawtooths, random walks, handovers, outages, flapping.

use super::bottleneck::{Dice, Trace, float, seconds, whole};

const MBIT: f64 = 1e6;

/// A named trace and its length in seconds.
pub(super) struct Named {
    pub(super) name: &'static str,
    pub(super) trace: Trace,
    pub(super) length: f64,
}

/// Returns a trace of `capacity(seconds)` in Mbit/s, in steps of 50 ms.
fn sampled(length: f64, mut capacity: impl FnMut(f64) -> f64) -> Trace {
    let steps = whole(length * 20.0);
    let at = |step: u64| float(step) / 20.0;
    Trace((0..steps).map(|step| (seconds(at(step)), whole(capacity(at(step)) * MBIT))).collect())
}

pub(super) fn step() -> Trace {
    Trace::of(&[(0.0, 20.0 * MBIT), (20.0, 2.0 * MBIT), (40.0, 20.0 * MBIT)])
}

fn ramp() -> Trace {
    sampled(60.0, |at| if at < 30.0 { 20.0 - at * 0.6 } else { 2.0 + (at - 30.0) * 0.6 })
}

fn sawtooth() -> Trace {
    sampled(60.0, |at| 20.0 - at % 10.0 * 1.8)
}

/// A random walk of the logarithm, between 1 and 40 Mbit/s: about 5 % in 50 ms.
fn walk(seed: u64) -> Trace {
    let (mut dice, mut level) = (Dice::new(seed), 15.0_f64);
    sampled(60.0, |_| {
        let change = (float(dice.below(2_001)) - 1_000.0) / 1_000.0;
        level = (level * (change * 0.09).exp()).clamp(1.0, 40.0);
        level
    })
}

/// A handover each 15 s: nothing for 150 ms, then another capacity.
fn handovers() -> Trace {
    let mut parts = Vec::new();
    for (cell, rate) in [20.0, 8.0, 14.0, 5.0].into_iter().enumerate() {
        let begin = 15.0 * float(u64::try_from(cell).unwrap());
        parts.push((begin, 0.0));
        parts.push((begin + 0.15, rate * MBIT));
    }
    parts[0].1 = 20.0 * MBIT;
    Trace::of(&parts)
}

fn outage() -> Trace {
    Trace::of(&[(0.0, 10.0 * MBIT), (20.0, 0.0), (23.0, 10.0 * MBIT)])
}

fn flapping() -> Trace {
    let rate = |at: f64| if whole(at * 10.0 + 0.001).is_multiple_of(2) { 20.0 } else { 2.0 };
    sampled(30.0, rate)
}

/// Returns every trace with full load.
pub(super) fn all() -> Vec<Named> {
    let named = |name, trace, length| Named { name, trace, length };
    vec![
        named("step 20-2-20", step(), 60.0),
        named("ramp 20-2-20 in 60 s", ramp(), 60.0),
        named("sawtooth 10 s", sawtooth(), 60.0),
        named("random walk", walk(7), 60.0),
        named("random walk, other seed", walk(8), 60.0),
        named("handover each 15 s", handovers(), 60.0),
        named("outage 3 s", outage(), 40.0),
        named("flapping each 100 ms", flapping(), 30.0),
        named("steady 20", Trace::of(&[(0.0, 20.0 * MBIT)]), 30.0),
    ]
}

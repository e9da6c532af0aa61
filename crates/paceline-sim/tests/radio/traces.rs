//! The capacity of a radio over time, one value per 50 ms.

use paceline_sim::Random;

/// Returns the values of `seconds`, in kbit/s by the time in milliseconds.
fn sampled(seconds: u64, kbit: impl FnMut(u64) -> u64) -> Vec<u64> {
    (0..seconds * 20).map(|step| step * 50).map(kbit).collect()
}

/// 20 Mbit/s for 8 s, and a fall to 2 Mbit/s within a time in milliseconds, again and again.
pub(super) fn falls(within: u64, seconds: u64) -> Vec<u64> {
    sampled(seconds, |at| {
        let since = (at % (8_000 + within)).saturating_sub(8_000);
        20_000 - 18_000 * since / within
    })
}

pub(super) fn steady(kbit: u64, seconds: u64) -> Vec<u64> {
    sampled(seconds, |_| kbit)
}

pub(super) fn step(seconds: u64) -> Vec<u64> {
    sampled(seconds, |at| if (at / 15_000) % 2 == 0 { 20_000 } else { 2_000 })
}

pub(super) fn ramp(seconds: u64) -> Vec<u64> {
    let all = seconds * 1_000;
    sampled(seconds, |at| 2_000 + 36_000 * (2 * at).abs_diff(all) / (2 * all))
}

pub(super) fn sawtooth(seconds: u64) -> Vec<u64> {
    sampled(seconds, |at| 20_000 - at % 10_000 * 18 / 10)
}

/// A random walk of the logarithm between 1 and 40 Mbit/s, of up to 9 % per step.
pub(super) fn walk(seed: u64, seconds: u64) -> Vec<u64> {
    let (mut chance, mut kbit) = (Random::new(seed), 15_000);
    sampled(seconds, |_| {
        kbit = (kbit * (910 + chance.below(181)) / 1_000).clamp(1_000, 40_000);
        kbit
    })
}

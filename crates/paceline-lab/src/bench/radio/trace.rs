//! The capacity of a radio over time.

use std::time::Duration;

/// A shape of the capacity, over a run of any length.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Trace {
    Steady,
    Step,
    Ramp,
    Sawtooth,
    Walk,
    Handovers,
    Outage,
}

impl Trace {
    pub(super) const ALL: [Self; 7] = [
        Self::Steady,
        Self::Step,
        Self::Ramp,
        Self::Sawtooth,
        Self::Walk,
        Self::Handovers,
        Self::Outage,
    ];

    /// Returns the trace of a word on the command line.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let words = Self::ALL.map(Self::word);
        let found = Self::ALL.into_iter().find(|trace| trace.word() == text);
        found.ok_or_else(|| format!("no trace '{text}'; use one of {}", words.join(", ")))
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Steady => "steady",
            Self::Step => "step",
            Self::Ramp => "ramp",
            Self::Sawtooth => "sawtooth",
            Self::Walk => "walk",
            Self::Handovers => "handovers",
            Self::Outage => "outage",
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Steady => "steady 20 Mbit/s",
            Self::Step => "step 20, 2, 20",
            Self::Ramp => "ramp 20 to 2 to 20",
            Self::Sawtooth => "sawtooth 20 to 2, each 10 s",
            Self::Walk => "random walk, 1 to 40",
            Self::Handovers => "handover to 20, 8, 14, 5",
            Self::Outage => "10, outage of 3 s",
        }
    }

    /// Returns the capacities in bits per second, one per 50 ms of a run of this length; 0 in an outage.
    pub(super) fn sampled(self, length: Duration) -> Vec<u64> {
        let steps = u64::try_from(length.as_millis() / 50).unwrap_or(u64::MAX);
        let mut walk = Walk { dice: 7, kbit: 15_000 };
        let kbit = |index: u64| match self {
            Self::Steady => 20_000,
            Self::Step => match part(index, steps, 3) {
                1 => 2_000,
                _ => 20_000,
            },
            Self::Ramp => 2_000 + 36_000 * (2 * index).abs_diff(steps) / (2 * steps),
            Self::Sawtooth => 20_000 - index % 200 * 90,
            Self::Walk => walk.step(),
            Self::Handovers => {
                let cell = part(index, steps, 4);
                let before = index.checked_sub(3).map_or(0, |before| part(before, steps, 4));
                let rates = [20_000, 8_000, 14_000, 5_000];
                rates.get(cell).copied().filter(|_| cell == before).unwrap_or(0)
            }
            Self::Outage => {
                let dark = index.checked_sub(steps / 2).is_some_and(|since| since < 60);
                if dark { 0 } else { 10_000 }
            }
        };
        (0..steps).map(kbit).map(|kbit| kbit * 1_000).collect()
    }
}

/// Returns the number of the part of `parts` in which a step is.
fn part(index: u64, steps: u64, parts: usize) -> usize {
    let at = index * parts as u64 / steps.max(1);
    usize::try_from(at).unwrap_or(parts).min(parts - 1)
}

/// A random walk of up to 9 % per step.
struct Walk {
    dice: u64,
    kbit: u64,
}

impl Walk {
    fn step(&mut self) -> u64 {
        let Self { dice, kbit } = self;
        *dice =
            dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let thousandths = 910 + (*dice >> 33) % 181;
        *kbit = (*kbit * thousandths / 1_000).clamp(1_000, 40_000);
        *kbit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_have_their_range_and_length() {
        for trace in Trace::ALL {
            let rates = trace.sampled(Duration::from_secs(60));
            assert_eq!(rates.len(), 1_200, "{}", trace.name());
            let dark = rates.iter().filter(|rate| **rate == 0).count();
            let expected = match trace {
                Trace::Handovers => 9,
                Trace::Outage => 60,
                Trace::Steady | Trace::Step | Trace::Ramp | Trace::Sawtooth | Trace::Walk => 0,
            };
            assert_eq!(dark, expected, "{}", trace.name());
            let lit = rates.iter().filter(|rate| **rate > 0);
            assert!(
                { lit }.all(|rate| (1_000_000..=40_000_000).contains(rate)),
                "{}",
                trace.name()
            );
        }
        let step = Trace::Step.sampled(Duration::from_secs(30));
        assert_eq!([step[0], step[300], step[500]], [20_000_000, 2_000_000, 20_000_000]);
    }
}

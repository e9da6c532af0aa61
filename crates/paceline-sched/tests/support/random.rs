//! Random numbers that are the same everywhere.

/// SplitMix64 (Steele, Lea & Flood, OOPSLA 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number from `low` to `high`, both included.
    pub(crate) fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// Returns true once in `of` times.
    pub(crate) fn once_in(&mut self, of: u64) -> bool {
        self.next().is_multiple_of(of)
    }

    pub(crate) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::try_from(self.within(0, choices.len() as u64 - 1)).unwrap()]
    }
}

/// Runs `scenario` for seeds from 0 on: `default` of them, or as many as the environment variable
/// `PACELINE_SCENARIOS` specifies.
#[expect(clippy::disallowed_methods, reason = "the caller of the test sets the duration")]
pub(crate) fn run(name: &str, default: u64, scenario: impl Fn(u64) -> Result<(), String>) {
    let asked = std::env::var("PACELINE_SCENARIOS").ok();
    let count = asked.and_then(|count| count.parse().ok()).unwrap_or(default);
    for seed in 0..count {
        if let Err(what) = scenario(seed) {
            panic!("{name}, seed {seed}: {what}");
        }
    }
}

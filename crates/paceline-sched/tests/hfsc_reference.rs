//! HFSC against a naive scheduler written straight from its rules (Stoica, Zhang & Ng, SIGCOMM 1997).
//!
//! `HFSC_SCENARIOS` sets how many random lives are led (1,000 if not set), `HFSC_SEED` the first seed.

use script::scenario;

#[path = "support/hfsc_script.rs"]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod script;
#[path = "support/hfsc_twin.rs"]
#[expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test may panic")]
mod twin;

#[expect(clippy::disallowed_methods, reason = "a longer run is asked for from outside")]
fn number(name: &str, default: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}: a number")))
}

#[test]
fn hfsc_does_what_its_rules_say() {
    let first = number("HFSC_SEED", 1);
    for seed in first..first.saturating_add(number("HFSC_SCENARIOS", 1_000)) {
        if let Err(difference) = scenario(seed) {
            panic!("{difference}; repeat it with HFSC_SEED={seed} HFSC_SCENARIOS=1");
        }
    }
}

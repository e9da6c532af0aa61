//! Compares every discipline with a naive twin, which is written directly from the rules.
//!
//! A seed determines a short random history of a link. Streams join, leave and change their contracts. There
//! are samples, segments, suspensions, skipped and removed samples, stalls, and clock steps backward. The
//! discipline and its twin (`twin.rs`) process the same history. After every event their observable state
//! must be equal. Fair queueing (`fair.rs`) and trees of classes (`hfsc.rs`) have histories of their own.
//!
//! [`DRIVERS`] lists the drivers. `tests/twins.rs` runs a fixed number of seeds of each, and `cargo xtask
//! long` as many as fit into its time limit. A failing seed is recorded in `seeds/`, and the ordinary tests
//! run it from then on.

mod body;
mod coverage;
mod event;
mod fair;
mod hfsc;
mod line;
mod pair;
mod random;
mod rules;
mod twin;
mod window;

pub use body::body;
pub use coverage::{Coverage, Situation};

use event::{Event, Life};
use paceline_sched::discipline::{Policy, RuleSet};
use std::fmt;

/// A property that is tested by random scenarios.
#[derive(Clone, Copy, Debug)]
pub struct Driver {
    /// The name of the driver, mostly that of a policy.
    pub name: &'static str,
    /// Runs the scenario of a seed. Returns a description of the difference if it failed.
    pub run: fn(u64) -> Result<(), String>,
    /// The policy, if [`scenario_seen`] can report the coverage of its scenarios.
    pub watched: Option<Policy>,
}

/// A driver that compares a discipline with its twin.
macro_rules! twin {
    ($name:literal, $policy:expr) => {
        Driver {
            name: $name,
            run: |seed| scenario($policy, seed).map_err(|error| error.to_string()),
            watched: Some($policy),
        }
    };
}

const fn dwcs(ordering: RuleSet, adjustment: RuleSet) -> Policy {
    Policy::Dwcs { ordering, adjustment }
}

/// Every driver. A new one needs a line here and one in `tests/twins.rs`.
pub const DRIVERS: &[Driver] = &[
    twin!("fifo", Policy::Fifo),
    twin!("static-priority", Policy::StaticPriority),
    twin!("edf", Policy::Edf),
    twin!("delay-edd", Policy::DelayEdd),
    twin!("dwcs", Policy::DWCS),
    twin!("dwcs-original", dwcs(RuleSet::Original, RuleSet::Original)),
    twin!("dwcs-original-order", dwcs(RuleSet::Original, RuleSet::Later)),
    twin!("dwcs-original-adjustment", dwcs(RuleSet::Later, RuleSet::Original)),
    twin!("vds", Policy::Vds),
    twin!("rcsp", Policy::Rcsp),
    twin!("stop-and-go", Policy::StopAndGo),
    twin!("rpq", Policy::Rpq),
    Driver { name: "drr", run: fair::drr, watched: None },
    Driver { name: "wf2q+", run: fair::wf2q, watched: None },
    Driver { name: "hfsc", run: hfsc::scenario, watched: None },
];

/// A discipline behaved differently from its twin.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// The policy of the discipline.
    pub policy: Policy,
    /// The seed of the scenario.
    pub seed: u64,
    /// The index of the first event of the whole scenario after which they differed.
    pub step: usize,
    what: String,
    shortest: Life,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Life { eligibility, start, events, .. } = &self.shortest;
        writeln!(f, "{}, seed {}, event {}: {}", self.policy, self.seed, self.step, self.what)?;
        let start = start.as_nanos();
        writeln!(f, "at least these events ({eligibility:?}, from {start} ns on):")?;
        events.iter().try_for_each(|event| writeln!(f, "  {event:?}"))
    }
}

impl std::error::Error for Mismatch {}

/// Runs the scenario of `seed` under `policy`, which must be one of those in [`DRIVERS`].
///
/// # Errors
/// Returns the first difference from the twin, with a minimal list of events that still shows a difference.
///
/// # Panics
/// Panics if the policy has no twin here.
pub fn scenario(policy: Policy, seed: u64) -> Result<(), Mismatch> {
    scenario_seen(policy, seed, &mut Coverage::default())
}

/// Like [`scenario`], and adds the situations of the scenario to `coverage`.
///
/// # Errors
/// As [`scenario`].
///
/// # Panics
/// As [`scenario`].
pub fn scenario_seen(policy: Policy, seed: u64, coverage: &mut Coverage) -> Result<(), Mismatch> {
    let life = event::life(seed);
    let run = |life: &Life| pair::run(policy, life, &mut Coverage::default());
    match pair::run(policy, &life, coverage) {
        Ok(()) => Ok(()),
        Err((step, what)) => {
            let shortest = shrink(life, |life| run(life).is_err());
            let what = run(&shortest).err().map_or(what, |(_, what)| what);
            Err(Mismatch { policy, seed, step, what, shortest })
        }
    }
}

/// Removes events, the last first, as long as the history still `fails` without them.
fn shrink(mut life: Life, fails: impl Fn(&Life) -> bool) -> Life {
    loop {
        let before = life.events.len();
        for at in (0..before).rev() {
            let event: Event = life.events.remove(at);
            if !fails(&life) {
                life.events.insert(at, event);
            }
        }
        if life.events.len() == before {
            return life;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_history_is_shrunk_to_its_relevant_events() {
        let life = event::life(7);
        let sends = |life: &Life| {
            life.events.iter().filter(|event| matches!(event, Event::Send { .. })).count()
        };
        assert!(sends(&life) > 2);
        let shortest = shrink(life, |life| sends(life) >= 2);
        assert_eq!((sends(&shortest), shortest.events.len()), (2, 2));
    }

    #[test]
    fn each_seed_always_gives_the_same_distinct_history() {
        let text = |seed| format!("{:?}", event::life(seed));
        assert_eq!(text(11), text(11));
        assert_ne!(text(11), text(12));
    }
}

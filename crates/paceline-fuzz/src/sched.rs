//! Every discipline against a naive twin, written straight from the rules.
//!
//! A seed stands for a short life of a link: streams that join, leave and change their contracts,
//! samples, segments, suspensions, skipped and removed samples, stalls, a clock that is set back. The
//! discipline and its twin (`twin.rs`) live through it side by side, and after every event everything
//! that can be seen of them must be equal. Fair queueing (`fair.rs`) and trees of classes (`hfsc.rs`) have
//! lives of their own.
//!
//! [`DRIVERS`] lists what is run: by `tests/twins.rs` a fixed number of seeds each, by
//! `cargo xtask long` as many as fit into the time. A seed that fails is kept in `seeds/` and run by
//! the ordinary tests for ever after.

mod body;
mod coverage;
mod event;
mod fair;
mod hfsc;
mod pair;
mod random;
mod rules;
mod twin;

pub use body::body;
pub use coverage::{Coverage, Situation};

use event::{Event, Life};
use paceline_sched::discipline::{Policy, RuleSet};
use std::fmt;

/// Something that is proved by random scenarios.
#[derive(Clone, Copy, Debug)]
pub struct Driver {
    /// Its name: a policy's, mostly.
    pub name: &'static str,
    /// Runs the scenario of a seed; what differed, for a reader, if it failed.
    pub run: fn(u64) -> Result<(), String>,
    /// Its policy, if [`scenario_seen`] knows what its scenarios come across.
    pub watched: Option<Policy>,
}

/// A driver of a discipline against its twin.
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

/// Every driver. A new one is a line here and one in `tests/twins.rs`.
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
    Driver { name: "drr", run: fair::drr, watched: None },
    Driver { name: "wf2q+", run: fair::wf2q, watched: None },
    Driver { name: "hfsc", run: hfsc::scenario, watched: None },
];

/// A discipline did something else than its twin.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// Which discipline.
    pub policy: Policy,
    /// The seed of the scenario.
    pub seed: u64,
    /// After how many events of the whole scenario it showed.
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

/// Runs the scenario of `seed` under `policy`, which is one that [`DRIVERS`] names.
///
/// # Errors
/// What differed from the twin first, with as few events as still show a difference.
///
/// # Panics
/// If the policy has no twin here.
pub fn scenario(policy: Policy, seed: u64) -> Result<(), Mismatch> {
    scenario_seen(policy, seed, &mut Coverage::default())
}

/// As [`scenario`], and adds to `coverage` what it came across.
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

/// Leaves out events, the last first, as long as the life still `fails` without them.
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
    fn a_life_is_shrunk_to_the_events_that_make_it_fail() {
        let life = event::life(7);
        let sends = |life: &Life| {
            life.events.iter().filter(|event| matches!(event, Event::Send { .. })).count()
        };
        assert!(sends(&life) > 2);
        let shortest = shrink(life, |life| sends(life) >= 2);
        assert_eq!((sends(&shortest), shortest.events.len()), (2, 2));
    }

    #[test]
    fn a_seed_is_the_same_life_every_time_and_the_next_one_another() {
        let text = |seed| format!("{:?}", event::life(seed));
        assert_eq!(text(11), text(11));
        assert_ne!(text(11), text(12));
    }
}

//! Streams under a discipline: their memory, and decisions for an external instruction counter.

use super::send;
use crate::bench::machine::resident_bytes;
use crate::bench::protocol::{Decisions, Message};
use anyhow::{Result, anyhow};
use paceline_sched::Policy;
use paceline_sched::discipline::Eligibility;
use paceline_sched::load::Workload;

fn policy(name: &str) -> Result<Policy> {
    name.parse().map_err(|error| anyhow!("policy '{name}': {error}"))
}

/// Reports the memory of each stream.
pub(super) fn streams(name: &str, streams: u32) -> Result<()> {
    let policy = policy(name)?;
    let before = resident_bytes()?;
    let load = Workload::new(policy, Eligibility::default(), streams);
    let bytes_each = (resident_bytes()? - before) / f64::from(streams);
    send(&Message::Streams { bytes_each });
    drop(load);
    Ok(())
}

/// Makes the given number of decisions and prints nothing.
pub(super) fn decide(decisions: &Decisions) -> Result<()> {
    let eligibility = match decisions.once_per_period {
        true => Eligibility::OncePerPeriod,
        false => Eligibility::WorkConserving,
    };
    let mut load = Workload::new(policy(&decisions.policy)?, eligibility, decisions.streams);
    for _ in 0..decisions.decisions {
        load.decide();
    }
    Ok(())
}

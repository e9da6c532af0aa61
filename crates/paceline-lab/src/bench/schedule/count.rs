//! Instructions per decision, counted by callgrind. The count does not depend on the machine's
//! load.

use crate::bench::protocol::{Decisions, Role};
use anyhow::{Context as _, Result, bail};
use paceline_sched::discipline::{Eligibility, Policy};
use std::process::{Command, Stdio};

/// The decisions of the two runs. The difference of their counts excludes the start of the process.
const FEW: u32 = 1_000;
const MORE: u32 = 9_000;

/// Returns the number of instructions per decision.
pub(super) fn instructions(policy: Policy, eligibility: Eligibility, streams: u32) -> Result<f64> {
    let run = |decisions: u32| {
        collected(&Role::Decide(Decisions {
            policy: policy.name().to_owned(),
            once_per_period: eligibility == Eligibility::OncePerPeriod,
            streams,
            decisions: streams.max(10_000) + decisions,
        }))
    };
    let (few, more) = (run(FEW)?, run(MORE)?);
    Ok((more - few) / f64::from(MORE - FEW))
}

/// Returns the number of instructions that this executable needs for a role.
fn collected(role: &Role) -> Result<f64> {
    let executable = std::env::current_exe().context("path of this executable")?;
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(executable);
    command.args(["bench", "role"]).arg(serde_json::to_string(role)?);
    command.stdin(Stdio::null()).env("PACELINE_LOG", "off");
    let output = command.output().context("cannot start valgrind, which --instructions needs")?;
    let text = String::from_utf8_lossy(&output.stderr);
    let Some(count) = parse(&text) else {
        bail!("valgrind ended ({}) without a count: {}", output.status, text.trim());
    };
    Ok(count)
}

/// Parses a line such as `==7== Collected : 123`.
fn parse(text: &str) -> Option<f64> {
    let (_, count) = text.lines().find_map(|line| line.split_once("Collected : "))?;
    count.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_parsed_from_valgrind_output() {
        let output = "==7== Callgrind\n==7== Events    : Ir\n==7== Collected : 4711\n==7== \n";
        assert!(parse(output).is_some_and(|count| (count - 4_711.0).abs() < 0.5));
        assert_eq!(parse("==7== Events : Ir"), None);
    }
}

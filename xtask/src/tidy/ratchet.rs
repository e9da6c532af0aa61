//! Limits of measured values, and the ratchet: the present values of the groups that still exceed
//! a limit.
//!
//! `ratchet.txt` has one line for each such group. Its value replaces the limit until the group
//! meets the limit; then the line is deleted. `cargo xtask tidy --lower` does both, and never makes
//! a limit less strict.

use super::Findings;
use anyhow::{Context as _, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const FILE: &str = "xtask/src/tidy/ratchet.txt";
const HEAD: &str = "\
# The groups that exceed a limit of `cargo xtask tidy`: check, group, value that is accepted for now.
# Do not raise a value. `cargo xtask tidy --lower` lowers the values and deletes the lines that are
# no longer needed.
";

/// The limit of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

impl Limit {
    /// Returns the same kind of limit with another value.
    fn with(self, value: f64) -> Self {
        match self {
            Self::AtMost(_) => Self::AtMost(value),
            Self::AtLeast(_) => Self::AtLeast(value),
        }
    }

    /// Returns the value for the ratchet: the next integer that permits `value`.
    fn rounded(self, value: f64) -> f64 {
        match self {
            Self::AtMost(_) => value.ceil(),
            Self::AtLeast(_) => value.floor(),
        }
    }

    fn permits(self, value: f64) -> bool {
        match self {
            Self::AtMost(most) => value <= most,
            Self::AtLeast(least) => value >= least,
        }
    }

    fn words(self) -> String {
        match self {
            Self::AtMost(most) => format!("at most {most}"),
            Self::AtLeast(least) => format!("at least {least}"),
        }
    }
}

/// A value of a group and its limit.
#[derive(Debug)]
pub(super) struct Measure {
    pub(super) check: &'static str,
    pub(super) group: String,
    pub(super) value: f64,
    pub(super) limit: Limit,
    /// The value's unit, for messages.
    pub(super) unit: &'static str,
    /// The places that count, for the error message.
    pub(super) places: Vec<String>,
}

impl Measure {
    /// Compares with the limit, or with the ratchet's value if the group has one. Returns the new
    /// value of the ratchet if the group needs one.
    fn check(&self, accepted: Option<f64>, show: bool, findings: &mut Findings) -> Option<f64> {
        let Self { check, group, value, limit, unit, places } = self;
        if limit.permits(*value) {
            if let Some(accepted) = accepted {
                findings.lower(format!("{check} {group}: {value}, no longer needs its {accepted}"));
            }
            return None;
        }
        let current = accepted.map_or(*limit, |accepted| limit.with(accepted));
        if current.permits(*value) {
            let rounded = limit.rounded(*value);
            if accepted.is_some_and(|accepted| (accepted - rounded).abs() > MARGIN) {
                findings.lower(format!("{check} {group}: {value}, now {}", current.words()));
            }
            findings.accepted.push(format!("{check} {group} {value}"));
            if show {
                places.iter().for_each(|place| println!("  {check} {group}: {place}"));
            }
            return Some(rounded);
        }
        let found = list(places);
        let words = current.words();
        findings.error(format!("{group}: {check}: {value} {unit}, {words}{found}"));
        accepted
    }
}

/// The smallest improvement that is worth a note.
const MARGIN: f64 = 0.5;
/// The maximum number of places in an error message.
const PLACES_MAX: usize = 40;

fn list(places: &[String]) -> String {
    let mut text = String::new();
    for place in places.iter().take(PLACES_MAX) {
        text += "\n    ";
        text += place;
    }
    if places.len() > PLACES_MAX {
        text +=
            &format!("\n    and {} more: cargo xtask tidy --figures", places.len() - PLACES_MAX);
    }
    text
}

/// The accepted values, by check and group.
pub(super) type Accepted = BTreeMap<(String, String), f64>;

/// Checks the measures, with the values of `ratchet.txt`. Returns the values that the file should
/// have. Prints the places of accepted values if `show` is true.
pub(super) fn check(
    root: &Path,
    measures: &[Measure],
    show: bool,
    findings: &mut Findings,
) -> Accepted {
    let text = fs::read_to_string(root.join(FILE)).unwrap_or_default();
    let accepted = match parse(&text) {
        Ok(accepted) => accepted,
        Err(line) => {
            findings.error(format!("{FILE}: '{line}' must be: check group value"));
            Accepted::new()
        }
    };
    compare(&accepted, measures, show, findings)
}

fn compare(
    accepted: &Accepted,
    measures: &[Measure],
    show: bool,
    findings: &mut Findings,
) -> Accepted {
    let mut new = Accepted::new();
    for measure in measures {
        let key = (measure.check.to_owned(), measure.group.clone());
        if let Some(value) = measure.check(accepted.get(&key).copied(), show, findings) {
            new.insert(key, value);
        }
    }
    let known = |check: &str, group: &str| {
        measures.iter().any(|measure| measure.check == check && measure.group == group)
    };
    for (check, group) in accepted.keys().filter(|(check, group)| !known(check, group)) {
        findings.lower(format!("{check} {group}: no such group"));
    }
    new
}

/// Replaces `ratchet.txt`. The values must be those that [`check`] returned.
pub(super) fn write(root: &Path, accepted: &Accepted) -> Result<()> {
    let lines = accepted.iter().map(|((check, group), value)| format!("{check} {group} {value}\n"));
    let text = format!("{HEAD}{}", lines.collect::<String>());
    fs::write(root.join(FILE), text).with_context(|| format!("cannot write {FILE}"))
}

/// Returns the values, or the first line that cannot be read.
fn parse(text: &str) -> Result<Accepted, &str> {
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines.map(|line| parse_line(line).ok_or(line)).collect()
}

fn parse_line(line: &str) -> Option<((String, String), f64)> {
    let mut words = line.split_whitespace();
    let key = (words.next()?.to_owned(), words.next()?.to_owned());
    let value = words.next()?.parse().ok()?;
    words.next().is_none().then_some((key, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measure(value: f64, limit: Limit) -> Measure {
        let places = vec!["a.rs:3".to_owned()];
        Measure { check: "what", group: "cli".to_owned(), value, limit, unit: "in all", places }
    }

    /// Returns the errors, the possible reductions, and the new values.
    fn run(text: &str, measure: Measure) -> (usize, usize, Vec<f64>) {
        let mut findings = Findings::default();
        let accepted = parse(text).expect("a valid ratchet");
        let new = compare(&accepted, &[measure], false, &mut findings);
        (findings.errors.len(), findings.lower.len(), new.into_values().collect())
    }

    #[test]
    fn a_value_above_its_limit_is_an_error_unless_the_ratchet_accepts_it() {
        let most = Limit::AtMost(10.0);
        assert_eq!(run("", measure(10.0, most)), (0, 0, vec![]));
        assert_eq!(run("", measure(10.1, most)), (1, 0, vec![]));
        assert_eq!(run("what cli 12", measure(11.3, most)), (0, 0, vec![12.0]));
        assert_eq!(run("what cli 12", measure(12.1, most)), (1, 0, vec![12.0]));
        assert_eq!(run("told cli 12\n", measure(12.0, most)), (1, 1, vec![]));
    }

    #[test]
    fn the_ratchet_goes_only_towards_the_limit() {
        let most = Limit::AtMost(10.0);
        assert_eq!(run("# why\n\nwhat cli 40\n", measure(11.5, most)), (0, 1, vec![12.0]));
        assert_eq!(run("what cli 40", measure(9.0, most)), (0, 1, vec![]));
        let least = Limit::AtLeast(8.0);
        assert_eq!(run("what cli 2", measure(1.5, least)), (1, 0, vec![2.0]));
        assert_eq!(run("what cli 2", measure(3.9, least)), (0, 1, vec![3.0]));
        assert_eq!(run("", measure(8.0, least)), (0, 0, vec![]));
    }

    #[test]
    fn an_invalid_line_is_reported() {
        assert_eq!(parse("# a\nwhat cli\n"), Err("what cli"));
        assert_eq!(parse("what cli ten"), Err("what cli ten"));
        assert_eq!(parse("what cli 10 11"), Err("what cli 10 11"));
    }
}

//! Checks that the nodes' counters add up, based on `paceline ls --json`.

use super::super::terminal::Terminal;
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// The largest number of samples that may wait for a stream, in its ring and in its link.
const WAITING_MAX: u64 = 512 + 256;

/// Counts the open and closed streams whose offered samples differ from the sum of sent, dropped
/// and waiting ones. Covers all nodes reachable from the host.
pub(super) fn unequal(host: &Path) -> Result<u64> {
    let mut ls = Terminal::start(&["ls", "--json"], host, None)?;
    let lines = ls.rest(Duration::from_secs(20))?;
    let text: String = lines.into_iter().map(|line| line.text).collect();
    let document: Value = serde_json::from_str(&text).context("paceline ls --json")?;
    let mut unequal = 0;
    for node in array(&document, "nodes") {
        for link in array(node, "links") {
            let open = array(link, "streams").map(left);
            unequal +=
                open.filter(|left| left.is_none_or(|left| left > WAITING_MAX)).count() as u64;
            let closed =
                link.get("closed").context("a link of `paceline ls --json` has no closed")?;
            unequal += u64::from(left(closed) != Some(0));
        }
    }
    Ok(unequal)
}

pub(in crate::bench) fn array<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// Returns the samples that are offered and neither sent nor dropped; `None` if that number is
/// negative.
fn left(counters: &Value) -> Option<u64> {
    let number = |key: &str| counters.get(key).and_then(Value::as_u64).unwrap_or_default();
    let dropped = counters.get("dropped").and_then(Value::as_object).into_iter().flatten();
    let dropped: u64 = dropped.filter_map(|(_, samples)| samples.as_u64()).sum();
    number("offered").checked_sub(number("sent") + dropped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_neither_sent_nor_dropped_are_missing() {
        let of = |text: &str| left(&serde_json::from_str(text).unwrap());
        assert_eq!(of(r#"{"offered":9,"sent":5,"dropped":{"queue_full":3}}"#), Some(1));
        assert_eq!(of(r#"{"offered":9,"sent":5,"dropped":{"queue_full":3,"no_route":2}}"#), None);
    }
}

//! A limit for the lines that other nodes cause, so that none of them can fill the log.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The time over which lines are counted.
const WINDOW: Duration = Duration::from_secs(10);
/// The most lines in this time: of one node, and of all.
const LINES_EACH: u32 = 8;
const LINES_ALL: u32 = 32;

/// Passes the first lines of each node `K` at once. Counts the others, and reports their number once per 10 s.
#[derive(Debug)]
pub(crate) struct LineLimit<K> {
    since: Option<Instant>,
    passed: BTreeMap<K, u32>,
    left_out: u64,
    last: String,
}

impl<K> Default for LineLimit<K> {
    fn default() -> Self {
        Self { since: None, passed: BTreeMap::new(), left_out: 0, last: String::new() }
    }
}

impl<K: Ord> LineLimit<K> {
    /// Returns the line if it must be printed now. Call [`LineLimit::due`] before.
    pub(crate) fn pass(&mut self, node: K, line: String, now: Instant) -> Option<String> {
        self.since.get_or_insert(now);
        let all: u32 = self.passed.values().sum();
        // Only nodes with a printed line have an entry, so that invented nodes use no memory.
        let own = self.passed.get(&node).copied().unwrap_or_default();
        if own >= LINES_EACH || all >= LINES_ALL {
            self.left_out += 1;
            self.last = line;
            return None;
        }
        *self.passed.entry(node).or_default() += 1;
        Some(line)
    }

    /// Returns the report about the lines that were left out, once their time is over.
    pub(crate) fn due(&mut self, now: Instant) -> Option<String> {
        self.since.filter(|since| now >= *since + WINDOW)?;
        self.rest()
    }

    /// Returns the report about the lines that were left out so far.
    pub(crate) fn rest(&mut self) -> Option<String> {
        let Self { left_out, last, .. } = std::mem::take(self);
        match left_out {
            0 => None,
            1 => Some(last),
            many => {
                Some(format!("{last} ({} similar lines were suppressed)", many.saturating_sub(1)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_repeats_itself_causes_few_lines() {
        let (mut limit, start) = (LineLimit::default(), Instant::now());
        let mut lines = Vec::new();
        for ms in 0..10_000 {
            let now = start + Duration::from_millis(ms);
            lines.extend(limit.due(now));
            lines.extend(limit.pass("loud", format!("refused: loud: {ms}"), now));
        }
        lines.extend(limit.pass("calm", "refused: calm".to_owned(), start));
        assert_eq!(lines.len(), 9, "{lines:?}");
        assert_eq!(lines[8], "refused: calm");
        let report = limit.due(start + WINDOW).unwrap();
        assert_eq!(report, "refused: loud: 9999 (9991 similar lines were suppressed)");
        assert_eq!(limit.due(start + WINDOW * 2), None);
        assert!(limit.pass("loud", "again".to_owned(), start + WINDOW * 2).is_some());
    }

    #[test]
    fn invented_nodes_cause_few_lines_together() {
        let (mut limit, start) = (LineLimit::default(), Instant::now());
        let passed = (0..5_000).filter_map(|node| limit.pass(node, node.to_string(), start));
        assert_eq!(passed.count(), 32);
        assert_eq!(limit.passed.len(), 32);
        assert_eq!(limit.rest().unwrap(), "4999 (4967 similar lines were suppressed)");
        assert_eq!(limit.rest(), None);
    }
}

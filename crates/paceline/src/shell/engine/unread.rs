//! Log lines and status of entries in the records of other nodes that this node cannot read.

use super::Engine;
use crate::status::UnreadStatus;
use paceline_proto::control::{ControlOutput, UnreadEntry};
use paceline_sched::{Duration, Instant};

/// The shortest time between two log lines. Entries that arrive meanwhile share the next one.
const EVERY: Duration = Duration::from_secs(10);
/// The most entries that a log line names, and that a status lists.
const NAMED_MAX: usize = 16;
const LISTED_MAX: usize = 64;

/// The entries that were not logged yet.
#[derive(Debug, Default)]
pub(super) struct UnreadNotices {
    named: Vec<String>,
    more: usize,
    /// The earliest time of the next line.
    next: Instant,
}

impl UnreadNotices {
    pub(super) fn note(&mut self, node: &str, entries: &[UnreadEntry], more: usize) {
        let room = NAMED_MAX.saturating_sub(self.named.len());
        let named = entries.iter().take(room);
        self.named.extend(
            named.map(|UnreadEntry { entry, error }| format!("{entry} of node {node}: {error}")),
        );
        self.more += more + entries.len().saturating_sub(room);
    }

    /// Returns the line to log now, if any.
    fn line(&mut self, now: Instant) -> Option<String> {
        if self.named.is_empty() || now < self.next {
            return None;
        }
        self.next = now + EVERY;
        let mut line = std::mem::take(&mut self.named).join("; ");
        match std::mem::take(&mut self.more) {
            0 => {}
            more => line.push_str(&format!("; and {more} more")),
        }
        Some(line)
    }
}

impl Engine {
    pub(super) fn note_unread(&mut self, output: ControlOutput) {
        let ControlOutput::Unread { node, entries, more } = output else { return };
        let name = self.control.name(node).unwrap_or_default();
        self.unread.note(&format!("'{name}' ({node})"), &entries, more);
    }

    /// Logs each entry that this node cannot read once.
    pub(super) fn log_unread(&mut self, now: Instant) {
        if let Some(entries) = self.unread.line(now) {
            tracing::warn!(
                "cannot read what other nodes announce, and ignores it: {entries}; run the same version of Paceline \
                 on all nodes"
            );
        }
    }

    pub(super) fn unread_rows(&self) -> Vec<UnreadStatus> {
        let row = |(node, UnreadEntry { entry, error })| UnreadStatus {
            node,
            entry,
            reason: error.to_string(),
        };
        self.control.unread().take(LISTED_MAX).map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_proto::wire::WireError;

    #[test]
    fn each_entry_is_named_once_and_lines_are_limited() {
        let entry = |number: usize| UnreadEntry {
            entry: format!("publisher {number}"),
            error: WireError::Invalid("burst"),
        };
        let (mut notices, at) = (UnreadNotices::default(), Instant::from_millis);
        assert_eq!(notices.line(at(1_000)), None);
        notices.note("robot", &[entry(1)], 0);
        let first = notices.line(at(1_000)).unwrap();
        assert_eq!(first, "publisher 1 of node robot: invalid burst");
        (0..100).for_each(|number| notices.note("robot", &[entry(number)], 1));
        assert_eq!(notices.line(at(10_999)), None);
        let next = notices.line(at(11_000)).unwrap();
        assert!(next.contains("publisher 15 ") && next.ends_with("; and 184 more"), "{next}");
        assert_eq!(notices.line(at(30_000)), None);
    }
}

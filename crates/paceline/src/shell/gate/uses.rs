//! The uses and refusals of rights that the audit log records: each at once, and repetitions once per minute with their
//! number. A dashboard asks every second, and an attacker as often as it can; neither may push older entries out of the log.

use crate::access::{Audit, Entry};
use paceline_proto::NodeId;
use paceline_proto::rights::Right;
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;

/// The time within which repetitions are counted.
const REPEATS_WITHIN: Duration = Duration::from_secs(60);
/// The most kinds of uses that are counted, of one node and of all. Further ones share the limit of entries about strangers.
const KINDS_EACH: usize = 64;
const KINDS_MAX: usize = 4_096;

/// What the entries of one kind have in common.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Use {
    pub(super) event: &'static str,
    /// The node that asks.
    pub(super) node: NodeId,
    /// The right, and the tag or pattern; empty for whole nodes.
    pub(super) right: Right,
    pub(super) tag: String,
    /// The node that is asked, or the one that relays; its field in the log.
    pub(super) other: Option<(&'static str, NodeId)>,
    /// Why it was refused; empty if it was not.
    pub(super) why: String,
}

impl Use {
    fn entry(&self) -> Entry {
        let entry = Entry::new(self.event).node("node", self.node);
        let entry = entry.text("right", self.right.name()).text("tag", &self.tag);
        let entry = match self.other {
            Some((field, other)) => entry.node(field, other),
            None => entry,
        };
        if self.why.is_empty() { entry } else { entry.text("why", &self.why) }
    }
}

/// The uses of the last minute.
#[derive(Debug, Default)]
pub(super) struct Uses {
    /// The time of the last entry of each kind, and the repetitions since.
    recorded: BTreeMap<Use, (Instant, u64)>,
}

impl Uses {
    /// Records a use, or counts it.
    pub(super) fn note(&mut self, now: Instant, audit: &Audit, of: Use) {
        if audit.file().is_none() {
            return;
        }
        if let Some((_, repeated)) = self.recorded.get_mut(&of) {
            *repeated += 1;
            return;
        }
        let own = self.recorded.keys().filter(|it| it.node == of.node).count();
        if own < KINDS_EACH && self.recorded.len() < KINDS_MAX {
            audit.note(of.entry());
            self.recorded.insert(of, (now, 0));
        } else {
            audit.note_stranger(of.entry());
        }
    }

    /// Records the repetitions of the last minute.
    pub(super) fn renew(&mut self, now: Instant, audit: &Audit) {
        self.recorded.retain(|of, (at, repeated)| {
            if now.since(*at) < REPEATS_WITHIN {
                return true;
            }
            let times = std::mem::take(repeated);
            if times > 0 {
                audit.note(of.entry().number("times", times));
                *at = now;
            }
            times > 0
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_uses_are_recorded_once_per_minute_with_their_number() {
        let file = std::env::temp_dir().join(format!("paceline-uses-{}", std::process::id()));
        let _ = std::fs::remove_file(&file);
        let audit = Audit::open(&file).unwrap();
        let mut uses = Uses::default();
        let of = |tag: String| Use {
            event: "denied",
            node: NodeId(4),
            right: Right::Pull,
            tag,
            other: Some(("at", NodeId(5))),
            why: "no".to_owned(),
        };
        for second in 0..150 {
            let now = Instant::from_millis(second * 1_000);
            uses.renew(now, &audit);
            (0..10).for_each(|_| uses.note(now, &audit, of("p".to_owned())));
        }
        for tag in 0..5_000 {
            uses.note(Instant::from_millis(150_000), &audit, of(format!("q/{tag}")));
        }
        audit.note(Entry::new("end"));
        let read = || std::fs::read_to_string(&file).unwrap_or_default();
        let begun = std::time::Instant::now();
        while !read().contains("\"end\"") {
            assert!(begun.elapsed().as_secs() < 10, "{}", read());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let text = read();
        let of_p: Vec<&str> = text.lines().filter(|line| line.contains("\"tag\":\"p\"")).collect();
        assert_eq!(of_p.len(), 3, "{of_p:?}");
        assert!(of_p[1].contains("\"times\":599") && of_p[2].contains("\"times\":600"), "{of_p:?}");
        assert!(text.lines().count() < KINDS_MAX + 1_000, "{}", text.lines().count());
        std::fs::remove_file(&file).unwrap();
    }
}

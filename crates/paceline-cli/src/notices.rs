//! Notices about publishers, printed in groups: one line for all publishers with the same answer.

use paceline::contract::BestEffort;
use paceline::status::{HopView, PublisherId, SourceView};
use paceline::{Capacity, Node};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The time during which notices are collected.
const COLLECT: Duration = Duration::from_millis(100);
/// The time during which a notice is not repeated.
const QUIET: Duration = Duration::from_secs(10);
/// The most publishers that a notice names.
const NAMED: usize = 3;
/// The most publishers whose notices are remembered.
const REMEMBERED: usize = 1_024;

/// The kind of a notice.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Notice {
    Granted,
    Refused,
    /// A contract in force has no spare.
    NoSpare,
    BestEffort,
    Ended,
    /// The publisher does not keep its declared rate, or keeps it again.
    Rate,
    /// Its text is a running count, so that each one differs from the one before.
    Excess,
}

impl Notice {
    const fn name(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Refused => "refused",
            Self::NoSpare => "continues",
            Self::BestEffort => "best effort",
            Self::Ended => "ended",
            Self::Rate => "rate",
            Self::Excess => "more than granted",
        }
    }

    /// Returns true if the text is a running count.
    const fn counts(self) -> bool {
        matches!(self, Self::Excess)
    }
}

/// The last printed notice of a kind about a publisher.
struct Printed {
    at: Instant,
    text: String,
    /// The number of times since then, and the newest text.
    again: Option<(u32, String)>,
}

/// Collects notices and returns the lines to print.
#[derive(Default)]
pub(crate) struct Notices {
    since: Option<Instant>,
    waiting: Vec<(Notice, String, Vec<String>)>,
    printed: BTreeMap<(Notice, String), Printed>,
}

impl Notices {
    /// Adds a notice about `publisher`, such as `a/b of pub-b`.
    pub(crate) fn add(&mut self, notice: Notice, publisher: String, text: String, now: Instant) {
        if self.printed.len() > REMEMBERED {
            self.printed.retain(|_, printed| printed.again.is_some());
        }
        let key = (notice, publisher);
        if let Some(printed) = self.printed.get_mut(&key)
            && (notice.counts() || printed.text == text)
            && now < printed.at + QUIET
        {
            let count = printed.again.as_ref().map_or(0, |(count, _)| *count);
            printed.again = Some((count.saturating_add(1), text));
            return;
        }
        let publisher = key.1.clone();
        self.printed.insert(key, Printed { at: now, text: text.clone(), again: None });
        self.group(notice, publisher, text);
        self.since.get_or_insert(now);
    }

    fn group(&mut self, notice: Notice, publisher: String, text: String) {
        let same =
            |(of, its, _): &&mut (Notice, String, Vec<String>)| *of == notice && *its == text;
        match self.waiting.iter_mut().find(same) {
            Some((_, _, publishers)) => publishers.push(publisher),
            None => self.waiting.push((notice, text, vec![publisher])),
        }
    }

    /// Returns the lines whose time has come.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<String> {
        let quiet = |printed: &Printed| now >= printed.at + QUIET;
        let over = self.printed.iter().any(|(_, it)| it.again.is_some() && quiet(it));
        if over || self.since.is_some_and(|since| now >= since + COLLECT) {
            return self.lines(now, quiet);
        }
        Vec::new()
    }

    /// Returns all lines that have not been printed.
    pub(crate) fn rest(&mut self, now: Instant) -> Vec<String> {
        self.lines(now, |_| true)
    }

    fn lines(&mut self, now: Instant, ready: impl Fn(&Printed) -> bool) -> Vec<String> {
        let mut repeated = Vec::new();
        for ((notice, publisher), printed) in &mut self.printed {
            if ready(printed)
                && let Some((count, text)) = printed.again.take()
            {
                (printed.at, printed.text) = (now, text.clone());
                let times = if count == 1 { "time" } else { "times" };
                repeated.push((
                    *notice,
                    publisher.clone(),
                    format!("{text} ({count} more {times})"),
                ));
            }
        }
        for (notice, publisher, text) in repeated {
            self.group(notice, publisher, text);
        }
        self.since = None;
        let waiting = core::mem::take(&mut self.waiting);
        waiting.iter().map(|(notice, text, names)| line(*notice, text, names)).collect()
    }
}

fn line(notice: Notice, text: &str, publishers: &[String]) -> String {
    let name = notice.name();
    match publishers {
        [one] => format!("{name}: {one}: {text}"),
        many => {
            let named = many.get(..NAMED).unwrap_or(many).join(", ");
            let more = match many.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("{name}: {} publishers ({named}{more}): {text}", many.len())
        }
    }
}

/// Returns the name of a publisher for messages: its tag and the name of its node. `node` knows the name of the latter
/// without the publisher, which may have ended.
pub(crate) fn publisher(node: &Node, sources: &[SourceView], id: PublisherId) -> String {
    if let Some(it) = sources.iter().find(|source| source.publisher == id) {
        return format!("{} of {}", it.tag, it.node);
    }
    let found = node.nodes().into_iter().find(|(of, _)| *of == id.node);
    found.map_or_else(|| format!("publisher {id}"), |(_, name)| format!("a publisher of {name}"))
}

/// Returns true if the path leads only through processes of this host.
pub(crate) fn is_local(hops: &[HopView]) -> bool {
    hops.iter().all(|hop| stays_on_host(&hop.link, hop.capacity))
}

/// Returns true if a hop over this link leads to another process of this host, without a limit.
pub(crate) fn stays_on_host(link: &str, capacity: Option<Capacity>) -> bool {
    link == Node::HOST_LINK && capacity.is_none()
}

/// Returns the reason why a stream is best effort; `local` is true if its path does not leave this host.
pub(crate) fn reason(why: BestEffort, local: bool) -> String {
    match why == BestEffort::NoCapacity && local {
        true => "local, nothing limits it".to_owned(),
        false => why.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn publishers_with_the_same_answer_share_a_line() {
        let (mut notices, start) = (Notices::default(), Instant::now());
        for number in 1..=5 {
            let tag = format!("drone/{number} of fleet");
            notices.add(Notice::Granted, tag, "within 98ms".into(), start);
        }
        notices.add(Notice::BestEffort, "a of b".into(), "local".into(), start);
        assert!(notices.due(start).is_empty(), "more may come");
        let lines = notices.due(start + COLLECT);
        let all = "granted: 5 publishers (drone/1 of fleet, drone/2 of fleet, drone/3 of fleet and 2 more): within 98ms";
        assert_eq!(lines, [all, "best effort: a of b: local"]);
        assert!(notices.rest(start + COLLECT).is_empty());
    }

    #[test]
    fn repeated_notices_are_counted() {
        let (mut notices, start) = (Notices::default(), Instant::now());
        let add = |notices: &mut Notices, kind, text: &str, ms| {
            let now = start + Duration::from_millis(ms);
            notices.add(kind, "a of b".into(), text.into(), now);
            notices.due(now + COLLECT)
        };
        assert_eq!(
            add(&mut notices, Notice::Excess, "1 early", 0),
            ["more than granted: a of b: 1 early"]
        );
        assert!(add(&mut notices, Notice::Excess, "2 early", 1_000).is_empty());
        assert!(add(&mut notices, Notice::Excess, "9 early", 2_000).is_empty());
        assert_eq!(
            notices.due(start + QUIET),
            ["more than granted: a of b: 9 early (2 more times)"]
        );
        // A new answer is printed at once.
        assert_eq!(add(&mut notices, Notice::Granted, "within 1ms", 20_000).len(), 1);
        assert_eq!(add(&mut notices, Notice::Granted, "within 2ms", 21_000).len(), 1);
        assert!(add(&mut notices, Notice::Granted, "within 2ms", 22_000).is_empty());
        assert_eq!(
            notices.rest(start + Duration::from_secs(23)),
            ["granted: a of b: within 2ms (1 more time)"]
        );
    }
}

//! The time of each stream's last violation, so that a contract that is met again is not shown as
//! violated.

use paceline_proto::link::Link;
use paceline_sched::Instant;
use paceline_sched::discipline::StreamIndex;
use std::collections::BTreeMap;

/// The streams with violations.
#[derive(Debug, Default)]
pub(super) struct Broken(BTreeMap<StreamIndex, Seen>);

/// The number of violations of a stream at the last look, and the time of the last one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Seen {
    windows: u64,
    last: Instant,
}

impl Broken {
    /// Records new violations since the last look.
    pub(super) fn look(&mut self, now: Instant, link: &Link) {
        self.note(now, link.streams().map(|(index, _, counters, _)| (index, counters.violations)));
    }

    fn note(&mut self, now: Instant, streams: impl Iterator<Item = (StreamIndex, u64)>) {
        let before = std::mem::take(&mut self.0);
        for (index, windows) in streams.filter(|(_, windows)| *windows > 0) {
            // A smaller number means that another stream now has the index.
            let same = before.get(&index).filter(|seen| seen.windows == windows);
            let last = same.map_or(now, |seen| seen.last);
            self.0.insert(index, Seen { windows, last });
        }
    }

    /// Returns the time of a stream's last violation, with the resolution of the interval between
    /// looks.
    pub(super) fn last(&self, index: StreamIndex) -> Option<Instant> {
        self.0.get(&index).map(|seen| seen.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_violated_window_keeps_its_time_until_the_next_violation() {
        let (at, index) = (Instant::from_nanos, StreamIndex(7));
        let mut broken = Broken::default();
        let mut note = |now, windows: Option<u64>| {
            broken.note(at(now), windows.map(|windows| (index, windows)).into_iter());
            broken.last(index)
        };
        assert_eq!(note(1, Some(0)), None, "none was broken");
        assert_eq!(note(2, Some(3)), Some(at(2)));
        assert_eq!(note(3, Some(3)), Some(at(2)), "it is kept again");
        assert_eq!(note(4, Some(4)), Some(at(4)));
        assert_eq!(note(5, Some(1)), Some(at(5)), "another stream has the index");
        assert_eq!(note(6, None), None, "the stream is closed");
    }
}

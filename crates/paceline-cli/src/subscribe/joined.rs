//! The pictures that a video leaves out for a late subscriber.

use paceline::Sample;
use paceline::status::PublisherId;
use std::collections::BTreeMap;
use std::time::Instant;

/// The most publishers that are observed.
const PUBLISHERS_MAX: usize = 1_024;

/// A subscriber that joins a video late first receives the newest key picture and those that later pictures need. The other
/// pictures were published before it joined, so their absence is no loss.
#[derive(Debug, Default)]
pub(super) struct Joined {
    publishers: BTreeMap<PublisherId, Option<Joining>>,
    left_out: u64,
}

/// A video before its first picture that was published after the join.
#[derive(Debug)]
struct Joining {
    since: Instant,
    last: u64,
}

impl Joined {
    /// Takes a sample that was delivered at `now`.
    pub(super) fn add(&mut self, sample: &Sample, now: Instant) {
        let (publisher, seq) = (sample.publisher, sample.seq);
        let Some(state) = self.publishers.get_mut(&publisher) else {
            if self.publishers.len() < PUBLISHERS_MAX {
                let joining = Joining { since: now, last: seq };
                self.publishers.insert(publisher, sample.kind.is_video().then_some(joining));
            }
            return;
        };
        let Some(joining) = state else { return };
        self.left_out += seq.saturating_sub(joining.last).saturating_sub(1);
        let published_after = now.checked_sub(sample.age).is_some_and(|at| at > joining.since);
        if published_after {
            *state = None;
        } else {
            joining.last = seq;
        }
    }

    /// Returns the number of pictures that were left out.
    pub(super) const fn left_out(&self) -> u64 {
        self.left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::test_delivery;
    use paceline::{Encoding, Kind};
    use std::time::Duration;

    /// Takes samples with a number, the time of delivery and the age, in milliseconds.
    fn left_out(kind: Kind, samples: &[(u64, u64, u64)]) -> u64 {
        let (mut joined, begun) = (Joined::default(), Instant::now() + Duration::from_secs(60));
        for (seq, at, age) in samples {
            let mut sample = test_delivery(Encoding::new("video/h264"), vec![0]);
            (sample.seq, sample.kind, sample.age) = (*seq, kind, Duration::from_millis(*age));
            joined.add(&sample, begun + Duration::from_millis(*at));
        }
        joined.left_out()
    }

    #[test]
    fn pictures_published_before_the_join_are_left_out_and_later_ones_are_lost() {
        let join = [(10, 0, 1_000), (13, 1, 900), (16, 2, 800), (40, 40, 5)];
        assert_eq!(left_out(Kind::VideoP, &join), 2 + 2 + 23);
        let later = [&join[..], &[(41, 70, 5), (50, 400, 5)]].concat();
        assert_eq!(left_out(Kind::VideoP, &later), 27, "a later gap is a loss");
        assert_eq!(left_out(Kind::Picture, &join), 0, "other pictures are not joined");
    }
}

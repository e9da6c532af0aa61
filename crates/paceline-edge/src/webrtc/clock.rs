//! The RTP times of one viewer: increasing, because viewers do not reorder pictures.

use crate::timing::CatchUp;

/// The distance of pictures whose times are not increasing, in parts of a second.
const STEPS_PER_S: i64 = 5_000;

/// The time of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewerTime {
    /// Its RTP time.
    At(i64),
    /// It is shown before a picture that precedes it (a B picture), and is left out.
    Reordered,
}

/// The times of one track of a viewer.
///
/// ```
/// use paceline_edge::{CatchUp, ViewerClock, ViewerTime};
///
/// let mut clock = ViewerClock::new(90_000);
/// let mut take = |time, spare| clock.take(time, (false, spare), None);
/// // I0 P3 B1 B2 P6 at 30 Hz.
/// assert_eq!(take(0, false), ViewerTime::At(0));
/// assert_eq!(take(9_000, false), ViewerTime::At(9_000));
/// assert_eq!(take(3_000, true), ViewerTime::Reordered);
/// assert_eq!(take(18_000, false), ViewerTime::At(18_000));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ViewerClock {
    step: i64,
    catch_up: CatchUp,
    /// The latest time of the track since a key picture, and the latest one that was returned.
    newest: Option<i64>,
    last: Option<i64>,
}

impl ViewerClock {
    /// Returns the clock of a track with a clock rate in Hz.
    #[must_use]
    pub fn new(rate: u32) -> Self {
        let step = (i64::from(rate) / STEPS_PER_S).max(1);
        Self { step, catch_up: CatchUp::default(), newest: None, last: None }
    }

    /// Returns the time of a unit with the presentation time `time` in units of the clock rate. `key` states that it needs no
    /// earlier one, and `spare` that no other needs it. With `start`, the unit is the first of those that the viewer gets for a
    /// second time, or when it joins.
    pub fn take(&mut self, time: i64, (key, spare): (bool, bool), start: Option<CatchUp>) -> ViewerTime {
        if let Some(catch_up) = start {
            (self.catch_up, self.newest) = (catch_up, None);
        }
        let newest = self.newest.filter(|_| !key);
        if spare && newest.is_some_and(|newest| time < newest) {
            return ViewerTime::Reordered;
        }
        self.newest = Some(newest.map_or(time, |newest| newest.max(time)));
        let time = self.catch_up.time(time);
        let time = self.last.map_or(time, |last| time.max(last.saturating_add(self.step)));
        self.last = Some(time);
        ViewerTime::At(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pictures_that_are_sent_again_follow_the_newest_one_and_the_present_is_reached() {
        let mut clock = ViewerClock::new(90_000);
        let mut sent = Vec::new();
        for number in 0..30 {
            sent.push(clock.take(number * 3_000, (number == 0, false), None));
        }
        let group = CatchUp::new(0, 29 * 3_000, 30, 90_000);
        for number in 0..30 {
            let start = (number == 0).then_some(group);
            sent.push(clock.take(number * 3_000, (number == 0, false), start));
        }
        let times: Vec<i64> = sent
            .iter()
            .map(|time| match time {
                ViewerTime::At(time) => *time,
                ViewerTime::Reordered => panic!("{sent:?}"),
            })
            .collect();
        assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
        assert!(times[59] - 29 * 3_000 <= 30 * 18, "{times:?}");
        assert_eq!(clock.take(30 * 3_000, (false, false), None), ViewerTime::At(90_000));
    }

    proptest! {
        #[test]
        fn times_are_always_increasing(
            units in proptest::collection::vec((any::<i64>(), any::<bool>(), any::<bool>(), any::<bool>()), 0..200),
        ) {
            let mut clock = ViewerClock::new(48_000);
            let mut last = None;
            for (time, key, spare, start) in units {
                let start = start.then(|| CatchUp::new(time.saturating_sub(90_000), time, 10, 48_000));
                if let ViewerTime::At(time) = clock.take(time / 2, (key, spare), start) {
                    prop_assert!(last.is_none_or(|last| last < time));
                    last = Some(time);
                }
            }
        }
    }
}

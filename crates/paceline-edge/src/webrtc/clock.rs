//! The RTP times of one viewer: increasing, because viewers do not reorder pictures.

use crate::timing::CatchUp;

/// The distance of pictures whose times are not increasing, in parts of a second.
const STEPS_PER_S: i64 = 5_000;

/// The times of one track of a viewer.
///
/// ```
/// use paceline_edge::ViewerClock;
///
/// let mut clock = ViewerClock::new(90_000);
/// assert_eq!(clock.take(9_000, None), 9_000);
/// // A picture that is sent again.
/// assert_eq!(clock.take(9_000, None), 9_018);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ViewerClock {
    step: i64,
    catch_up: CatchUp,
    /// The latest time that was returned.
    last: Option<i64>,
}

impl ViewerClock {
    /// Returns the clock of a track with a clock rate in Hz.
    #[must_use]
    pub fn new(rate: u32) -> Self {
        let step = (i64::from(rate) / STEPS_PER_S).max(1);
        Self { step, catch_up: CatchUp::default(), last: None }
    }

    /// Returns the time of a unit with the presentation time `time` in units of the clock rate: at least 0.2 ms after the one before. With
    /// `start`, the unit is the first of those that the viewer gets for a second time, or when it joins.
    pub fn take(&mut self, time: i64, start: Option<CatchUp>) -> i64 {
        self.catch_up = start.unwrap_or(self.catch_up);
        let time = self.catch_up.time(time);
        let time = self.last.map_or(time, |last| time.max(last.saturating_add(self.step)));
        self.last = Some(time);
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pictures_that_are_sent_again_follow_the_newest_one_and_the_present_is_reached() {
        let mut clock = ViewerClock::new(90_000);
        let mut times = Vec::new();
        for number in 0..30 {
            times.push(clock.take(number * 3_000, None));
        }
        let group = CatchUp::new(0, 29 * 3_000, 30, 90_000);
        for number in 0..30 {
            times.push(clock.take(number * 3_000, (number == 0).then_some(group)));
        }
        assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
        assert!(times[59] - 29 * 3_000 <= 30 * 18, "{times:?}");
        assert_eq!(clock.take(30 * 3_000, None), 90_000);
    }

    proptest! {
        #[test]
        fn times_are_always_increasing(
            units in proptest::collection::vec((any::<i64>(), any::<bool>()), 0..200),
        ) {
            let mut clock = ViewerClock::new(48_000);
            let mut last = None;
            for (time, start) in units {
                let start = start.then(|| CatchUp::new(time.saturating_sub(90_000), time, 10, 48_000));
                let time = clock.take(time / 2, start);
                prop_assert!(last.is_none_or(|last| last < time));
                last = Some(time);
            }
        }
    }
}

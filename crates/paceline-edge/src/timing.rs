//! The RTP times of samples: presentation times of pictures, and an even flow of sound.

use paceline_media::codec::Codec;
use std::collections::VecDeque;

/// Most pictures whose order is known.
const PLACES_MAX: usize = 64;
/// The most places between two pictures for which a time is calculated.
const GAP_MAX: i64 = 32;
/// The difference of a block's capture time and the end of the block before it above which the flow begins anew.
const SOUND_JUMP_NS: i64 = 500_000_000;
/// The difference of an expected and a capture time above which the times of pictures begin anew.
const JUMP_NS: i64 = 2_000_000_000;
const SECOND: i64 = 1_000_000_000;
/// The part of a new difference in the mean difference of the capture times of sound.
const SKEW_PART: i64 = 16;

/// Returns a time in units of a clock rate.
#[must_use]
pub fn ticks(nanos: i64, rate: u32) -> i64 {
    let ticks = i128::from(nanos) * i128::from(rate) / i128::from(SECOND);
    i64::try_from(ticks).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}

/// Converts capture times of pictures to presentation times.
///
/// Samples arrive in decoding order. Cameras state the presentation time of each picture; files and encoders are published one
/// picture after the other, so that a B picture has a later capture time than the picture that is shown after it. Both are
/// distinguished by the first picture that is shown before an earlier one. In the second case, a picture is moved by the number of
/// places between its places in both orders, times the distance of pictures; times are smoothed then.
///
/// ```
/// use paceline_edge::PictureClock;
/// use paceline_media::codec::Codec;
///
/// const FRAME: i64 = 40_000_000;
/// let mut clock = PictureClock::new(Some(FRAME), Codec::H264);
/// // I0 P3 B1 B2 P6: the places in presentation order are half of the picture order count.
/// let shown = [(0, 0), (1, 6), (2, 2), (3, 4), (4, 12)].map(|(number, order)| {
///     clock.take(number * FRAME, Some(order), number == 0) / FRAME
/// });
/// assert_eq!(shown, [0, 3, 1, 2, 6]);
/// ```
#[derive(Clone, Debug)]
pub struct PictureClock {
    period: Option<i64>,
    /// Capture times are presentation times.
    presented: bool,
    /// The orders since the last picture at which they begin anew.
    places: VecDeque<i64>,
    /// The step of the order between neighbouring pictures.
    step: i64,
    /// The capture time of the picture with the highest order, and whether the orders began with it.
    top: (i64, bool),
    /// The capture time of the picture before.
    last: Option<i64>,
    /// The stream has pictures that are moved. Their times are smoothed, so that those of a busy encoder stay in order.
    moves: bool,
    /// The highest order, and the time of its picture.
    reference: (i64, i64),
    /// The latest time that was returned.
    latest: i64,
}

impl PictureClock {
    /// Returns the clock of a stream. `period` is the declared distance of its pictures in nanoseconds.
    #[must_use]
    pub fn new(period: Option<i64>, codec: Codec) -> Self {
        // Frames of H.264 have two orders, one for each field. Some encoders use one, which is learned.
        let step = match codec {
            Codec::H264 => 2,
            Codec::H265 | Codec::Av1 => 1,
        };
        let period = period.filter(|period| *period > 0);
        let places = VecDeque::with_capacity(PLACES_MAX);
        Self {
            period,
            presented: false,
            places,
            step,
            top: (0, true),
            last: None,
            moves: false,
            reference: (0, 0),
            latest: i64::MIN,
        }
    }

    /// Returns the presentation time of the next picture in decoding order, captured at `captured` nanoseconds.
    ///
    /// `order` is its place in presentation order (the picture order count), if the stream states it. `key` is true for pictures at
    /// which decoding can start.
    pub fn take(&mut self, captured: i64, order: Option<i64>, key: bool) -> i64 {
        let before = self.last.replace(captured);
        let Some(order) = order else { return captured };
        let highest = self.places.iter().max().copied();
        if self.places.is_empty() || key && order == 0 {
            self.places.clear();
            self.places.push_back(order);
            self.top = (captured, true);
            let time = self.begin(captured);
            self.reference = (order, time);
            return time;
        }
        let highest = highest.unwrap_or(order);
        self.learn(order, highest, captured, before);
        let (lower, higher) = self.around(order);
        if order > highest {
            self.top = (captured, false);
        }
        if self.places.len() == PLACES_MAX {
            self.places.pop_front();
        }
        self.places.push_back(order);
        let Some(period) = self.period.filter(|_| !self.presented) else { return captured };
        let missing = lower.map_or(0, |lower| order.saturating_sub(lower) / self.step - 1);
        if !(0..=GAP_MAX).contains(&missing) {
            return captured;
        }
        self.moves |= missing > 0 || higher > 0;
        let moved = captured.saturating_add((missing - higher).saturating_mul(period));
        let (known, at) = self.reference;
        let distance = order.saturating_sub(known) / self.step;
        let expected = at.saturating_add(distance.saturating_mul(period));
        let time = match distance {
            _ if !self.moves => moved,
            1.. => near(expected, moved, period / 4),
            _ => near(expected, moved, period / SKEW_PART),
        };
        if distance > 0 {
            self.reference = (order, time);
        }
        self.latest = self.latest.max(time);
        time
    }

    /// Returns the time of a picture at which the order begins anew.
    fn begin(&mut self, captured: i64) -> i64 {
        let period = self.period.filter(|_| self.moves && !self.presented);
        let time = match period {
            Some(period) => near(self.latest.saturating_add(period), captured, period / 4),
            None => captured,
        };
        self.latest = time;
        time
    }

    /// Learns the step of the order, the distance of pictures, and the meaning of capture times.
    fn learn(&mut self, order: i64, highest: i64, captured: i64, before: Option<i64>) {
        if order.rem_euclid(2) == 1 {
            self.step = 1;
        }
        let (then, first) = self.top;
        if order < highest {
            self.presented = captured < then;
        }
        if order <= highest || first {
            self.period = self.period.or(before.map(|before| captured.saturating_sub(before)));
            self.period = self.period.filter(|period| *period > 0);
            return;
        }
        let places = (order.saturating_sub(highest) / self.step).max(1);
        let found = captured.saturating_sub(then) / places;
        // A pause is no distance of pictures.
        let period = self.period.unwrap_or(found);
        if places <= GAP_MAX && found > period / 2 && found / 2 < period {
            self.period = Some(period.saturating_add((found - period) / SKEW_PART));
        }
    }

    /// Returns the highest known order below `order`, and the number of known ones above it.
    fn around(&self, order: i64) -> (Option<i64>, i64) {
        let lower = self.places.iter().filter(|place| **place < order).max().copied();
        let higher = self.places.iter().filter(|place| **place > order).count();
        (lower, i64::try_from(higher).unwrap_or(i64::MAX))
    }
}

/// Converts capture times of blocks of sound to RTP times that follow each other without gaps.
///
/// A block begins where the one before it ended, unless blocks are missing. The mean difference to the capture times is known, so
/// that sender reports place sound next to pictures.
///
/// ```
/// use paceline_edge::SoundClock;
///
/// let mut clock = SoundClock::new(8_000);
/// assert_eq!(clock.take(1_000_000_000, 160, false), 8_000);
/// // 3 ms late.
/// assert_eq!(clock.take(1_023_000_000, 160, false), 8_160);
/// ```
#[derive(Clone, Debug)]
pub struct SoundClock {
    rate: u32,
    /// The end of the block before.
    next: Option<i64>,
    /// The mean difference of capture times and RTP times.
    skew: i64,
    /// The blocks since the flow began, at most [`SKEW_PART`].
    blocks: i64,
}

impl SoundClock {
    /// Returns the clock of sound with this clock rate in Hz.
    #[must_use]
    pub fn new(rate: u32) -> Self {
        Self { rate: rate.max(1), next: None, skew: 0, blocks: 0 }
    }

    /// Returns the RTP time of the next block, of `duration` units. `gap` states that blocks before it are missing.
    pub fn take(&mut self, captured: i64, duration: u32, gap: bool) -> i64 {
        let now = ticks(captured, self.rate);
        let jump = ticks(SOUND_JUMP_NS, self.rate);
        let time = match self.next {
            // With the same difference as before the gap.
            Some(next) if gap => now.saturating_sub(self.skew).max(next),
            Some(next) if now.abs_diff(next) <= jump.unsigned_abs() => next,
            Some(_) | None => {
                (self.skew, self.blocks) = (0, 0);
                now
            }
        };
        self.blocks = (self.blocks + 1).min(SKEW_PART);
        let change = now.saturating_sub(time).saturating_sub(self.skew) / self.blocks;
        self.skew = self.skew.saturating_add(change);
        self.next = Some(time.saturating_add(i64::from(duration)));
        time
    }

    /// Returns the difference of capture times and RTP times, in units of the clock rate.
    #[must_use]
    pub const fn skew(&self) -> i64 {
        self.skew
    }
}

/// Returns a time at most `most` from an expected one towards a time; the time itself if it is far away.
fn near(expected: i64, time: i64, most: i64) -> i64 {
    let step = time.saturating_sub(expected);
    if step.unsigned_abs() > JUMP_NS.unsigned_abs() {
        time
    } else {
        expected.saturating_add(step.clamp(-most, most))
    }
}

/// Compresses the times of pictures that a player receives when it joins: they precede the newest picture by milliseconds, so
/// that the player catches up at once instead of being late by their age.
///
/// Times behind the newest picture are unchanged, and the order of times is kept.
///
/// ```
/// use paceline_edge::CatchUp;
///
/// // 100 pictures since 4 s, at 90 kHz.
/// let catch_up = CatchUp::new(0, 360_000, 100, 90_000);
/// assert_eq!((catch_up.time(0), catch_up.time(360_000)), (351_000, 360_000));
/// assert_eq!(catch_up.time(363_600), 363_600);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CatchUp {
    newest: i64,
    /// The duration of the pictures, and their duration for the player.
    span: i64,
    to: i64,
}

impl CatchUp {
    /// Returns the times of `count` pictures from `oldest` to `newest`, 1 ms apart, in units of a clock rate.
    #[must_use]
    pub fn new(oldest: i64, newest: i64, count: usize, rate: u32) -> Self {
        let span = newest.saturating_sub(oldest);
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let to = count.saturating_mul(i64::from(rate)) / 1_000;
        if span <= 0 || to >= span { Self::default() } else { Self { newest, span, to } }
    }

    /// Returns the time of a picture for the player.
    #[must_use]
    pub fn time(&self, time: i64) -> i64 {
        if self.span == 0 || time >= self.newest {
            return time;
        }
        let before = i128::from(self.newest) - i128::from(time);
        let before = before * i128::from(self.to) / i128::from(self.span);
        self.newest.saturating_sub(i64::try_from(before).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FRAME: i64 = 40_000_000;

    /// The orders of groups of pictures in decoding order: I0 P4 B2 B1 B3, and so on.
    fn pyramid() -> Vec<i64> {
        let groups = (0..6).flat_map(|group| [4, 2, 1, 3].map(|place| place + 4 * group));
        std::iter::once(0).chain(groups).collect()
    }

    fn shown(places: &[(i64, i64)], captured: impl Fn(i64, i64) -> i64) -> Vec<i64> {
        let mut clock = PictureClock::new(Some(FRAME), Codec::H264);
        let take = |&(number, place): &(i64, i64)| {
            clock.take(captured(number, place) * FRAME, Some(place * 2), place == 0) / FRAME
        };
        places.iter().map(take).collect()
    }

    #[test]
    fn pictures_are_shown_in_order_whatever_their_capture_times_mean() {
        let places: Vec<(i64, i64)> = (0..).zip(pyramid()).collect();
        let wanted: Vec<i64> = pyramid();
        assert_eq!(shown(&places, |number, _| number), wanted, "in decoding order");
        // Those of a camera, whose first picture that is shown early follows the first group's last one.
        let found = shown(&places, |_, place| place + 9);
        let wanted: Vec<i64> = wanted.iter().map(|place| place + 9).collect();
        assert_eq!(found[2..], wanted[2..], "in presentation order");
    }

    #[test]
    fn a_stream_without_its_b_pictures_keeps_its_pace() {
        let places: Vec<(i64, i64)> =
            (0..).zip(pyramid()).filter(|(_, place)| place % 4 == 0).collect();
        let found = shown(&places, |number, _| number);
        assert_eq!(found, places.iter().map(|(_, place)| *place).collect::<Vec<_>>());
    }

    #[test]
    fn streams_without_an_order_and_in_order_keep_their_capture_times() {
        let mut clock = PictureClock::new(None, Codec::H264);
        assert_eq!(clock.take(7, None, true), 7);
        for number in 0..100 {
            assert_eq!(clock.take(number * FRAME, Some(number * 2), number == 0), number * FRAME);
        }
        // An encoder whose order has a step of one.
        let mut clock = PictureClock::new(None, Codec::H264);
        for number in 0..100 {
            assert_eq!(clock.take(number * FRAME, Some(number), number == 0), number * FRAME);
        }
    }

    #[test]
    fn sound_flows_evenly_and_jumps_over_gaps() {
        let mut clock = SoundClock::new(48_000);
        let block = 20_000_000;
        for number in 0..100_i64 {
            let jitter = number * 1_234_567 % 9_000_000;
            assert_eq!(clock.take(number * block + jitter, 960, false), number * 960);
        }
        let skew = clock.skew() * 1_000 / 48;
        assert!((2_000..7_000).contains(&skew), "{skew} µs");
        let after = clock.take(110 * block, 960, true);
        assert!((after - 110 * 960 + clock.skew()).abs() < 480, "{after}");
        // The clock was set.
        assert_eq!(clock.take(1_000 * block, 960, false), 960_000);
    }

    proptest! {
        #[test]
        fn times_are_increasing_in_presentation_order(
            cuts in proptest::collection::vec(any::<bool>(), 25), jitter in proptest::collection::vec(0_i64..400_000_000, 25),
        ) {
            let places = (0_i64..).zip(pyramid());
            // B pictures that no other needs may be left out.
            let kept = places.zip(cuts).filter(|((_, place), cut)| !cut || place % 2 == 0);
            let mut clock = PictureClock::new(Some(FRAME), Codec::H264);
            // An encoder that is stopped publishes later, and in order.
            let mut free = 0;
            let mut found: Vec<(i64, i64)> = kept.zip(jitter).map(|(((number, place), _), jitter)| {
                free = (number * FRAME + if jitter % 5 == 0 { jitter } else { 0 }).max(free + 1);
                (place, clock.take(free, Some(place * 2), place == 0))
            }).collect();
            found.sort_unstable();
            for pair in found.windows(2) {
                prop_assert!(pair[0].1 < pair[1].1, "{found:?}");
            }
        }

        #[test]
        fn any_times_and_orders_are_taken(
            pictures in proptest::collection::vec((any::<i64>(), any::<Option<i64>>(), any::<bool>()), 0..200),
            period in any::<Option<i64>>(), blocks in proptest::collection::vec((any::<i64>(), any::<u32>(), any::<bool>()), 0..50),
        ) {
            let mut clock = PictureClock::new(period, Codec::H264);
            for (captured, order, key) in pictures {
                clock.take(captured, order, key);
            }
            prop_assert!(clock.places.len() <= PLACES_MAX);
            let mut sound = SoundClock::new(48_000);
            for (captured, duration, gap) in blocks {
                sound.take(captured, duration, gap);
            }
        }

        #[test]
        fn catching_up_keeps_the_order(
            oldest in 0_i64..1_000_000, span in 0_i64..10_000_000, count in 1_usize..700,
            mut times in proptest::collection::vec(0_i64..20_000_000, 2..50),
        ) {
            let catch_up = CatchUp::new(oldest, oldest + span, count, 90_000);
            times.sort_unstable();
            for pair in times.windows(2) {
                prop_assert!(catch_up.time(pair[0]) <= catch_up.time(pair[1]));
                prop_assert!(catch_up.time(pair[0]) >= pair[0].min(oldest + span));
            }
        }
    }
}

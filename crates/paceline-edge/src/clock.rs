//! Capture times of a camera's pictures and sound, from its sender reports and from arrivals.

use std::collections::VecDeque;

/// Number of sender reports per track that count.
const REPORTS_MAX: usize = 4;
/// The error of one sender report. ffmpeg's have whole milliseconds, and RTP times that lie up to 23 ms behind.
const REPORT_NS: u64 = 25_000_000;
/// The difference of two sender reports above which the camera's clock was set.
const STEP_NS: u64 = 1_000_000_000;
/// The time over which the fastest packet is known, in two halves.
const HALF_NS: u64 = 15_000_000_000;
/// The drift of the camera's clock during that time, at 200 ppm.
const DRIFT_NS: u64 = 6_000_000;
/// The delay behind the fastest packet above which the RTP time jumped.
const LATE_MAX_NS: u64 = 10_000_000_000;
/// The step of the RTP time between neighbouring units, back or ahead of their arrivals, above which it jumped.
const JUMP_NS: i64 = 1_000_000_000;
/// The length of a second in nanoseconds.
const SECOND: i64 = 1_000_000_000;

/// The capture time of a picture or block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured {
    /// The time from capture to arrival, in nanoseconds: how much later than the fastest packet it arrived.
    pub before_ns: u64,
    /// The error bound of the capture time in nanoseconds, in addition to the error of this host's clock.
    pub bound_ns: u64,
}

/// Converts the RTP times of a camera's tracks to this host's clock.
///
/// The clock of a camera may be wrong by years, so only its pace counts: the packet that arrived fastest within the last 15 to 30 s is
/// taken as captured when it arrived. The delay of the camera's coder is therefore not part of the bound. Sender reports
/// (RFC 3550, 6.4.1) place all tracks on one clock of the camera, so that sound and pictures stay together.
///
/// The bound is the sum of the longest time that the fastest packet may have taken (`path_ns`), a drift of 200 ppm and, once
/// reports have arrived, of 25 ms for a report and the range of the last four. It assumes that the path takes no longer than
/// `path_ns` in its fastest moment. An RTP time that steps back by more than 1 s, or ahead of the arrivals by more than 1 s, begins
/// anew: the unit is taken as captured when it arrived.
///
/// ```
/// use paceline_edge::CaptureClock;
///
/// let mut clock = CaptureClock::new(&[90_000], 2_000_000);
/// assert_eq!(clock.capture(0, 0, 5_000_000_000).before_ns, 0);
/// // 40 ms later in the camera, 43 ms later here: 3 ms of delay.
/// assert_eq!(clock.capture(0, 3_600, 5_043_000_000).before_ns, 3_000_000);
/// ```
#[derive(Clone, Debug)]
pub struct CaptureClock {
    path_ns: u64,
    tracks: Vec<Track>,
}

#[derive(Clone, Debug)]
struct Track {
    rate: u32,
    fastest: Fastest,
    /// The RTP time of the last unit, and its arrival.
    last: Option<(i64, u64)>,
    /// The camera's clock less the RTP time, by report.
    reports: VecDeque<i64>,
}

/// The smallest difference of arrival and RTP time.
#[derive(Clone, Debug, Default)]
struct Fastest {
    before: Option<i64>,
    current: Option<i64>,
    since: u64,
}

impl CaptureClock {
    /// Returns the clock of a camera with tracks of these RTP clock rates in Hz.
    #[must_use]
    pub fn new(rates: &[u32], path_ns: u64) -> Self {
        let track = |rate: &u32| Track {
            rate: (*rate).max(1),
            fastest: Fastest::default(),
            last: None,
            reports: VecDeque::with_capacity(REPORTS_MAX),
        };
        Self { path_ns, tracks: rates.iter().map(track).collect() }
    }

    /// Notes a sender report of a track: the camera's clock as an NTP timestamp, and the RTP time without wrapping.
    pub fn report(&mut self, track: usize, ntp: u64, time: i64) {
        let Some(track) = self.tracks.get_mut(track) else { return };
        // Cameras without a clock send 0.
        if ntp >> 32 == 0 {
            return;
        }
        let offset = ntp_ns(ntp).saturating_sub(track.media_ns(time));
        if track.reports.back().is_some_and(|last| last.abs_diff(offset) > STEP_NS) {
            track.reports.clear();
        }
        if track.reports.len() == REPORTS_MAX {
            track.reports.pop_front();
        }
        track.reports.push_back(offset);
    }

    /// Returns the capture time of a unit with an RTP time that arrived at `now`, in nanoseconds of any steady clock.
    pub fn capture(&mut self, track: usize, time: i64, now: u64) -> Captured {
        let path_ns = self.path_ns;
        let none = Captured { before_ns: 0, bound_ns: path_ns.saturating_add(DRIFT_NS) };
        let Some(own) = self.tracks.get_mut(track) else { return none };
        let late = i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(own.media_ns(time));
        let before = own.last.replace((time, now));
        if before.is_some_and(|(before, _)| before == time) {
            // The RTP time of this camera is no clock.
            own.fastest = Fastest::default();
        }
        if before.is_some_and(|before| own.jumps(before, (time, now))) {
            self.restart(track, late, now);
            return none;
        }
        own.fastest.add(late, now);
        let (base, spread) = self.base(track);
        let before_ns = late.saturating_sub(base).max(0).unsigned_abs();
        if before_ns > LATE_MAX_NS {
            self.restart(track, late, now);
            return none;
        }
        let reports = spread.map_or(0, |spread| spread.saturating_add(REPORT_NS));
        Captured { before_ns, bound_ns: none.bound_ns.saturating_add(reports) }
    }

    fn restart(&mut self, track: usize, late: i64, now: u64) {
        if let Some(own) = self.tracks.get_mut(track) {
            (own.fastest, own.reports) = (Fastest::default(), VecDeque::new());
            own.fastest.add(late, now);
        }
    }

    /// Returns the difference of this host's clock and the RTP time of a track, and the range of its sender reports.
    fn base(&self, track: usize) -> (i64, Option<u64>) {
        let Some(own) = self.tracks.get(track) else { return (0, None) };
        let alone = (own.fastest.get(), None);
        let Some((offset, spread)) = own.offset() else { return alone };
        let camera = self.tracks.iter().filter_map(|track| {
            track.fastest.before.or(track.fastest.current)?;
            Some(track.fastest.get().saturating_sub(track.offset()?.0))
        });
        camera.min().map_or(alone, |camera| (camera.saturating_add(offset), Some(spread)))
    }
}

impl Track {
    fn media_ns(&self, time: i64) -> i64 {
        let nanos = i128::from(time) * i128::from(SECOND) / i128::from(self.rate);
        i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
    }

    /// Returns whether the RTP time of a unit jumps, by the time and arrival of the unit before it.
    ///
    /// A step back is one whatever the arrivals are. Units that arrive late after each other are delayed, and their time goes on.
    fn jumps(&self, before: (i64, u64), (time, now): (i64, u64)) -> bool {
        let step = self.media_ns(time).saturating_sub(self.media_ns(before.0));
        let waited = i64::try_from(now.saturating_sub(before.1)).unwrap_or(i64::MAX);
        step < -JUMP_NS || step.saturating_sub(waited) > JUMP_NS
    }

    /// Returns the mean of the reports, and their range.
    fn offset(&self) -> Option<(i64, u64)> {
        let (first, last) = (*self.reports.iter().min()?, *self.reports.iter().max()?);
        let more: i64 = self.reports.iter().map(|offset| offset - first).sum();
        let mean = first + more / i64::try_from(self.reports.len()).unwrap_or(1);
        Some((mean, first.abs_diff(last)))
    }
}

impl Fastest {
    fn add(&mut self, late: i64, now: u64) {
        if self.current.is_none() && self.before.is_none() {
            self.since = now;
        }
        if now.saturating_sub(self.since) >= HALF_NS {
            (self.before, self.current, self.since) = (self.current.take(), None, now);
        }
        self.current = Some(self.current.map_or(late, |fastest| fastest.min(late)));
    }

    fn get(&self) -> i64 {
        let both = [self.before, self.current];
        both.into_iter().flatten().min().unwrap_or_default()
    }
}

/// Returns the nanoseconds of an NTP timestamp.
fn ntp_ns(ntp: u64) -> i64 {
    let nanos = (u128::from(ntp) * 1_000_000_000) >> 32;
    i64::try_from(nanos).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An NTP timestamp in whole milliseconds, as ffmpeg writes it.
    fn ntp(nanos: u64) -> u64 {
        let millis = nanos / 1_000_000;
        ((millis / 1_000) << 32) | (((millis % 1_000) << 32) / 1_000)
    }

    #[test]
    fn jumps_begin_anew() {
        let mut clock = CaptureClock::new(&[90_000], 0);
        clock.report(0, ntp(77 * 1_000_000_000), 0);
        assert_eq!(
            clock.capture(0, 0, 1_000_000_000),
            Captured { before_ns: 0, bound_ns: DRIFT_NS + REPORT_NS }
        );
        // An hour back in RTP time.
        let back = clock.capture(0, -90_000 * 3_600, 2_000_000_000);
        assert_eq!(back, Captured { before_ns: 0, bound_ns: DRIFT_NS });
        // A report without a clock does not count.
        clock.report(0, 0, 0);
        let after = clock.capture(0, -90_000 * 3_600 + 90_000, 3_000_000_100);
        assert_eq!(after, Captured { before_ns: 100, bound_ns: DRIFT_NS });
        assert_eq!(clock.capture(9, 0, 0).before_ns, 0);
    }

    #[test]
    fn a_clock_that_is_set_drops_older_reports() {
        let mut clock = CaptureClock::new(&[1_000], 0);
        clock.report(0, ntp(10 * 1_000_000_000), 0);
        clock.report(0, ntp(14 * 1_000_000_000), 1_000);
        assert_eq!(clock.tracks[0].reports.len(), 1);
        clock.report(0, ntp(15 * 1_000_000_000 + 7_000_000), 2_000);
        assert_eq!(clock.tracks[0].offset().unwrap().1.div_ceil(1_000_000), 7);
    }

    #[test]
    fn captures_after_a_jump_of_the_rtp_time_are_not_in_the_past() {
        const FRAME: u64 = 40_000_000;
        for jump in [-8_000_i64, -1_500, 1_500, 8_000] {
            let mut clock = CaptureClock::new(&[1_000], 0);
            clock.report(0, ntp(90 * 1_000_000_000), 0);
            let mut time = 0;
            for index in 0..500_u64 {
                time += 40 + if index == 100 { jump } else { 0 };
                let captured = clock.capture(0, time, (index + 1_000) * FRAME);
                assert_eq!(captured.before_ns, 0, "{jump} ms, unit {index}");
            }
        }
    }

    #[test]
    fn units_that_arrive_late_keep_their_capture_times() {
        let mut clock = CaptureClock::new(&[1_000], 0);
        for index in 0..200_u64 {
            let sent = (index + 1_000) * 40_000_000;
            // The path stops for 3 s.
            let arrived = if index < 100 { sent } else { sent.max(1_175 * 40_000_000) };
            let captured = clock.capture(0, i64::try_from(index * 40).unwrap(), arrived);
            assert_eq!(arrived - captured.before_ns, sent, "unit {index}");
        }
    }

    proptest! {
        #[test]
        fn capture_times_stay_within_their_bound(
            delays in proptest::collection::vec((2_000_000_u64..60_000_000, 0_u64..23_000_000), 50..300),
            ppm in -200_i64..200, start in any::<u32>(), year in 0_u64..3_000_000_000,
        ) {
            // Pictures of 90 kHz and sound of 8 kHz, sent alternately every 100 ms by a camera of any clock and drift.
            let rates = [90_000_u32, 8_000];
            let mut clock = CaptureClock::new(&rates, 60_000_000);
            let camera = |nanos: u64| nanos + year * 1_000_000_000;
            for (index, (delay, report)) in (0_u64..).zip(&delays) {
                let track = usize::from(index % 2 == 1);
                let media = 100_000_000 * index;
                let time = |nanos: u64| i64::from(start) + (nanos * u64::from(rates[track]) / 1_000_000_000) as i64;
                // Its clock is faster than this one by the drift.
                let real = media.saturating_add_signed(media as i64 / 1_000_000 * ppm);
                if index % 40 < 2 {
                    clock.report(track, ntp(camera(media + 1_000_000_000 + report)), time(media + 1_000_000_000));
                }
                let arrived = real + delay;
                let captured = clock.capture(track, time(media), arrived);
                let found = arrived.saturating_sub(captured.before_ns);
                prop_assert!(found <= arrived);
                prop_assert!(
                    found.abs_diff(real) <= captured.bound_ns,
                    "{index}: {found} for {real}, {captured:?}"
                );
            }
        }

        #[test]
        fn sender_reports_keep_the_distance_of_sound_and_pictures(
            errors in proptest::collection::vec((0_u64..23_000_000, 0_u64..23_000_000), 20..100),
            (fast, slow) in (0_u64..50_000_000, 100_000_000_u64..900_000_000),
            first in 0_usize..2, start in any::<u32>(), year in 0_u64..3_000_000_000,
        ) {
            let rates = [90_000_u32, 8_000];
            let delays = if first == 0 { [fast, slow] } else { [slow, fast] };
            let mut clock = CaptureClock::new(&rates, 60_000_000);
            for (index, errors) in (0_u64..).zip(&errors) {
                // Both of the same moment of the camera.
                let media = 1_000_000_000 * (index + 1);
                let found = [(0, errors.0), (1, errors.1)].map(|(track, error)| {
                    let time = i64::from(start) + i64::try_from(media * u64::from(rates[track]) / 1_000_000_000).unwrap();
                    clock.report(track, ntp(media + year * 1_000_000_000 + error), time);
                    (track, time)
                });
                let found = found.map(|(track, time)| {
                    let arrived = media + delays[track];
                    arrived - clock.capture(track, time, arrived).before_ns
                });
                // The first unit of all has nothing to be compared with.
                let distance = found[0].abs_diff(found[1]);
                prop_assert!(index == 0 || distance <= 25_000_000, "{index}: {found:?}");
            }
        }
    }
}

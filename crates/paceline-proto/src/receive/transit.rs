//! The transit time of frames, and the proof of its longest value.

use crate::wire::codec::{Reader, WireError};
use crate::wire::frame::{Echo, FrameHeader};
use crate::wire::segment::{Place, Segment};
use paceline_sched::{Duration, Instant};

/// The transit time of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transit {
    /// The part in addition to `half`: the time for its own bytes, as the sender states it, and the queueing.
    added: Duration,
    /// Half the minimum round trip, or less if the frame needed less.
    half: Duration,
    /// The longest possible transit time, if the frame proves it.
    longest: Option<Duration>,
}

impl Transit {
    /// The rounding of an age and its doubt.
    const ROUNDED: Duration = Duration::from_micros(2);

    /// Returns the transit time of a frame with `header` that is read `now`. `half` is half the minimum round trip, and
    /// `longest` the proof of [`Attention::longest_transit`].
    pub(super) fn of(
        now: Instant,
        header: &FrameHeader,
        path: &mut PathDelay,
        half: Duration,
        longest: Option<Duration>,
    ) -> Self {
        let serial = header.transit.unwrap_or_default();
        match header.stamp.map(|stamp| path.note(now, stamp, serial, half)) {
            // The measured time contains the rest.
            Some(Delay::Whole(transit)) => {
                let half = half.min(transit);
                Self { added: transit.saturating_sub(half), half, longest }
            }
            Some(Delay::AboveLeast(queued)) => Self { added: serial.max(queued), half, longest },
            None => Self { added: serial, half, longest },
        }
    }

    /// Returns the part of the transit time that [`Self::read`] does not add to the ages.
    pub(super) const fn half(self) -> Duration {
        self.half
    }

    /// Reads the next segment, adds a part of the transit time to the age of its sample, and the rest of the longest possible
    /// one to the doubt.
    pub(super) fn read(self, reader: &mut Reader) -> Result<Segment, WireError> {
        let mut segment = Segment::read(reader)?;
        if let Segment::Data { place: Place::First(head), .. } = &mut segment {
            head.age = head.age.saturating_add(self.added);
            head.doubt = head.doubt.zip(self.longest).map(|(doubt, longest)| {
                let doubt = doubt.saturating_add(longest).saturating_add(Self::ROUNDED);
                doubt.saturating_sub(self.added).saturating_sub(self.half)
            });
        }
        Ok(segment)
    }
}

/// A measured delay of a frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Delay {
    /// The transit time, because both ends read one clock.
    Whole(Duration),
    /// The excess over the least transit time of the last 10 to 20 s.
    AboveLeast(Duration),
}

/// The delay of frames on their path, by the stamps of the other end: from their assembly until this end reads them.
///
/// This includes the time in sockets while this process is stopped or not scheduled, which no round trip shows. If both ends
/// read one clock, its difference to a stamp is the transit time. Otherwise the smallest difference lately is that of a frame
/// that did not wait, and a larger one is queueing. The error is then that of half the round trip, the waiting time of the
/// frame that waited least, and the drift of the two clocks in up to 20 s.
#[derive(Debug, Default)]
pub(super) struct PathDelay {
    /// The least difference of the clocks in two windows, in microseconds modulo 2^32, with the starts of the windows.
    least: Option<[(Instant, u32); 2]>,
    clocks: Clocks,
}

/// The clocks of the two ends.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Clocks {
    /// No frame has shown whether they are one.
    #[default]
    Unknown,
    /// A stamp was older than zero, and younger than a round trip. Clocks of different hosts, which begin when the host
    /// starts, do not agree so well.
    Same,
    /// A stamp was in the future, or no frame took less than a round trip for a long time.
    Apart,
}

impl PathDelay {
    /// The length of a window. Clocks of good hosts drift by less than 1 ms in two of them.
    const WINDOW: Duration = Duration::from_secs(10);
    /// The error of a round trip, which two threads measure.
    const SLACK: Duration = Duration::from_micros(200);
    /// Frames of one host may wait for so long in each window and still read one clock.
    const BUSY_MAX: Duration = Duration::from_millis(200);

    /// Records a frame with this stamp. `serial` is the time for its own bytes, and `half` half the minimum round trip, zero
    /// if it is unknown.
    fn note(&mut self, now: Instant, stamp: u32, serial: Duration, half: Duration) -> Delay {
        let difference = Echo::stamp_of(now).wrapping_sub(stamp);
        let [old, new] = self.least.unwrap_or([(now, difference); 2]);
        // After a pause of this process, the window before it remains for one more.
        let windows = if now.since(new.0) > Self::WINDOW {
            [new, (now, difference)]
        } else {
            [old, (new.0, earlier(new.1, difference))]
        };
        self.least = Some(windows);
        let least = earlier(windows[0].1, windows[1].1);
        let (above, whole) = (difference.wrapping_sub(least), signed(difference));
        let round = half.saturating_add(half).saturating_add(serial).saturating_add(Self::SLACK);
        let is_long = |time: u32, limit| Duration::from_micros(time.into()) > limit;
        let busy = round.saturating_add(Self::BUSY_MAX);
        if whole < 0 || is_long(least, busy) && !half.is_zero() {
            self.clocks = Clocks::Apart;
        } else if self.clocks == Clocks::Unknown && !half.is_zero() && !is_long(difference, round) {
            self.clocks = Clocks::Same;
        }
        match self.clocks {
            Clocks::Same => Delay::Whole(Duration::from_micros(difference.into())),
            Clocks::Unknown | Clocks::Apart => {
                Delay::AboveLeast(Duration::from_micros(above.into()))
            }
        }
    }
}

/// Returns a difference of less than 36 minutes with its sign, in microseconds.
const fn signed(difference: u32) -> i32 {
    i32::from_ne_bytes(difference.to_ne_bytes())
}

/// Returns the smaller one of two differences, modulo 2^32.
const fn earlier(a: u32, b: u32) -> u32 {
    if signed(a.wrapping_sub(b)) < 0 { a } else { b }
}

/// The time for which a receiver has processed frames without a long pause.
///
/// Stamps repeat after 71 minutes. A process that was stopped for so long reads old frames from its sockets, whose echoes
/// would then look new. So an echo proves nothing if its stamp is older than the end of the last pause.
#[derive(Debug, Default)]
pub(super) struct Attention {
    since: Instant,
    last: Option<Instant>,
}

impl Attention {
    /// A longer time without a frame is a pause. Idle hops send frames more often than that, also on slow links
    /// ([`crate::ProbeInterval::LONGEST`]).
    const PAUSE_MIN: Duration = Duration::from_secs(30 * 60);

    /// Records a frame that arrives `now`. Returns its longest possible transit time, if its echo proves one.
    pub(super) fn longest_transit(&mut self, now: Instant, echo: Option<Echo>) -> Option<Duration> {
        if self.last.is_none_or(|last| now.since(last) > Self::PAUSE_MIN) {
            self.since = now;
        }
        self.last = Some(now);
        let echo = echo?;
        (echo.age(now) <= now.since(self.since)).then(|| echo.longest_transit(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_from_before_a_pause_proves_nothing() {
        let mut attention = Attention::default();
        let mut now = Instant::from_millis(1_000_000);
        let echo =
            |sent: Instant| Some(Echo { stamp: Echo::stamp_of(sent), since: Duration::ZERO });
        // The first frames answer no stamp of this receiver.
        assert_eq!(attention.longest_transit(now, echo(now - Duration::from_millis(1))), None);
        let sent = now;
        now += Duration::from_millis(30);
        let proved = Duration::from_micros(30_002);
        assert_eq!(attention.longest_transit(now, echo(sent)), Some(proved));
        // As long as the stamps need to repeat, and 10 ms more: the old frame looks 40 ms old.
        now = sent + Duration::from_micros(1 << 32) + Duration::from_millis(40);
        assert_eq!(attention.longest_transit(now, echo(sent)), None);
        assert_eq!(
            attention.longest_transit(now, echo(sent)),
            None,
            "neither do the frames behind it"
        );
        let sent = now;
        now += Duration::from_millis(5);
        assert!(attention.longest_transit(now, echo(sent)).is_some());
    }

    const fn us(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    /// Returns the stamp of a clock that is `ahead` microseconds of this one.
    const fn stamp(sent: Instant, ahead: u32) -> u32 {
        Echo::stamp_of(sent).wrapping_add(ahead)
    }

    #[test]
    fn frames_that_wait_in_the_socket_of_a_stopped_process_are_old() {
        let start = Instant::from_millis(4_000_000);
        // One clock, clocks of two hosts, and one whose stamps wrap meanwhile.
        for ahead in [0, 77_000_000, 0x8000_0000, 0_u32.wrapping_sub(90_000_000)] {
            let mut path = PathDelay::default();
            let mut note = |sent: Instant, took: u64| {
                let delay = path.note(sent + us(took), stamp(sent, ahead), us(40), us(150));
                match delay {
                    Delay::Whole(transit) => transit,
                    Delay::AboveLeast(queued) => queued.saturating_add(us(150)),
                }
            };
            for at in 0..30 {
                assert_eq!(note(start + us(at * 100_000), 150), us(150), "{ahead}");
            }
            // Stopped for 300 ms, and for a minute, which is longer than both windows.
            for (at, stop) in [(3, 300_000), (4, 60_000_000)] {
                let sent = start + us(at * 1_000_000);
                assert_eq!(note(sent, stop), us(stop), "{ahead}");
                assert_eq!(note(sent + us(stop - 1_000), 1_000), us(1_000), "{ahead}");
            }
        }
    }

    #[test]
    fn the_first_frames_of_one_host_need_no_long_first_round_trip() {
        let (mut path, now) = (PathDelay::default(), Instant::from_millis(9_000));
        let header = FrameHeader { stamp: Some(stamp(now, 0)), ..FrameHeader::default() };
        let transit = Transit::of(now + us(300), &header, &mut path, us(8_960), None);
        assert_eq!((transit.added, transit.half), (us(0), us(300)));
        let header = FrameHeader { stamp: Some(stamp(now, 0)), ..FrameHeader::default() };
        let transit = Transit::of(now + us(90_000), &header, &mut path, us(8_960), None);
        assert_eq!((transit.added, transit.half), (us(81_040), us(8_960)));
    }

    #[test]
    fn queueing_contains_the_time_of_the_bytes_of_a_frame() {
        let (mut path, now) = (PathDelay::default(), Instant::from_millis(9_000));
        let mut added = |sent: Instant, took, serial| {
            let header = FrameHeader {
                stamp: Some(stamp(sent, 0x4000_0000)),
                transit: Some(us(serial)),
                ..FrameHeader::default()
            };
            Transit::of(sent + us(took), &header, &mut path, us(1_000), None).added
        };
        assert_eq!(added(now, 1_100, 100), us(100));
        // A long frame on a thin link, and one over a path that is faster than the stated capacity.
        assert_eq!(added(now + us(20_000), 13_000, 12_000), us(12_000));
        assert_eq!(added(now + us(40_000), 1_100, 12_000), us(12_000));
        assert_eq!(added(now + us(60_000), 31_100, 100), us(30_000));
    }
}

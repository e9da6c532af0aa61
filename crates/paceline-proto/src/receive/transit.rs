//! The transit time of frames, and the proof of its longest value.

use crate::wire::codec::{Reader, WireError};
use crate::wire::frame::{Echo, FrameHeader};
use crate::wire::segment::{Place, Segment};
use paceline_sched::{Duration, Instant};

/// The transit time of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transit {
    /// The part for its own bytes, as the sender states it.
    serial: Duration,
    /// Half the minimum round trip, which estimates the rest.
    half: Duration,
    /// The longest possible transit time, if the frame proves it.
    longest: Option<Duration>,
}

impl Transit {
    /// The rounding of an age and its doubt.
    const ROUNDED: Duration = Duration::from_micros(2);

    /// Returns the transit time of a frame with `header`. `half` is half the minimum round trip, and `longest` the proof
    /// of [`Attention::longest_transit`].
    pub(super) fn of(header: &FrameHeader, half: Duration, longest: Option<Duration>) -> Self {
        Self { serial: header.transit.unwrap_or_default(), half, longest }
    }

    /// Reads the next segment, adds the serial part to the age of its sample, and the rest to the doubt.
    pub(super) fn read(self, reader: &mut Reader) -> Result<Segment, WireError> {
        let mut segment = Segment::read(reader)?;
        if let Segment::Data { place: Place::First(head), .. } = &mut segment {
            head.age = head.age.saturating_add(self.serial);
            head.doubt = head.doubt.zip(self.longest).map(|(doubt, longest)| {
                let doubt = doubt.saturating_add(longest).saturating_add(Self::ROUNDED);
                doubt.saturating_sub(self.serial).saturating_sub(self.half)
            });
        }
        Ok(segment)
    }
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
}

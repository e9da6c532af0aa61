//! Stop-and-Go queueing (Golestani, SIGCOMM 1990), with frames of several sizes.
//!
//! Time is divided into frames. A sample that is released during a frame is served during the next one, so it leaves
//! within two frames. Frames of 2^n ns begin at multiples of 2^n ns, and each divides the next larger one in half. A
//! stream uses the largest frame that fits into its deadline twice. Samples of shorter frames precede those of longer
//! ones.
//!
//! In the paper, a link idles while samples wait for their frames. Here these samples are sent when no other sample
//! waits whose frame has begun, and before best effort, so that a delay is between 0 and 2 frames instead of 1 and 2.
//! The regulator of the next hop ([`Eligibility::OncePerPeriod`](super::Eligibility::OncePerPeriod)) spaces them again.

use super::rules::{Arrival, Rules as CoreRules, owed, spare};
use super::stream::{Clauses, Place, Stream};
use super::{StopAndGo, Terms};
use crate::time::{Duration, Instant};

impl StopAndGo {
    /// Returns the frame size of a stream with this relative deadline: frames of size `n` last 2^n ns. `None` if not
    /// even two frames of 1 ns fit.
    #[must_use]
    pub const fn frame(deadline: Duration) -> Option<u32> {
        (63 - (deadline.as_nanos() | 1).leading_zeros()).checked_sub(1)
    }
}

/// Orders heads whose frame has begun by frame size, the shortest first, and then by frame.
#[derive(Clone, Debug)]
pub(super) struct Rules;

/// The frame size of a stream, and the release of its head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Framed {
    size: u32,
    /// False while the head waits for its frame.
    begun: bool,
    released: Instant,
}

impl Framed {
    /// Returns the beginning of the frame in which the head is served.
    const fn begins_at(&self) -> Instant {
        let frame = self.released.as_nanos() >> self.size;
        Instant::from_nanos(frame.saturating_add(1).saturating_mul(1 << self.size))
    }
}

impl Stream<Framed> {
    /// Returns the beginning of the frame for which the head waits, after its release.
    fn waits_for(&self) -> Option<Instant> {
        (self.place == Place::Ranked && self.contracted() && !self.own.begun)
            .then(|| self.own.begins_at())
    }
}

impl CoreRules for Rules {
    type Own = Framed;

    fn open(&mut self, terms: &Terms) -> Framed {
        let deadline = terms.contract().map_or(Duration::ZERO, |contract| contract.deadline);
        let size = StopAndGo::frame(deadline).unwrap_or(0);
        Framed { size, begun: false, released: Instant::ZERO }
    }

    #[inline]
    fn announced(&mut self, stream: &mut Stream<Framed>, Arrival { released, .. }: Arrival) {
        (stream.own.released, stream.own.begun) = (released, false);
    }

    fn postpone(&mut self, own: &mut Framed, over: Duration) {
        own.released += over;
    }

    #[inline]
    fn expires_at(&self, stream: &Stream<Framed>, _: &Clauses) -> Instant {
        let missed = stream.missed_at();
        stream.waits_for().map_or(missed, |begins| missed.min(begins))
    }

    fn handle_late_begin(&mut self, stream: &mut Stream<Framed>) -> bool {
        let begins = stream.waits_for().is_some_and(|begins| begins <= stream.missed_at());
        stream.own.begun |= begins;
        begins
    }

    #[inline]
    fn rank(&mut self, stream: &mut Stream<Framed>) -> Option<u128> {
        let begins = u128::from(stream.own.begins_at().as_nanos());
        let Framed { size, begun, .. } = stream.own;
        let order = if begun { owed(u128::from(size) << 64 | begins) } else { spare(begins) };
        stream.contracted().then_some(order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::Policy;
    use crate::discipline::tests::served;
    use std::vec::Vec;

    fn order(now: Instant, streams: &[(Duration, Instant)]) -> Vec<u32> {
        served(Policy::StopAndGo, now, streams)
    }

    #[test]
    fn the_largest_frame_fits_twice_into_the_deadline() {
        let frames =
            [1, 2, 3, 4, 7, 8, 1_023, 1_024].map(Duration::from_nanos).map(StopAndGo::frame);
        assert_eq!(frames, [None, Some(0), Some(0), Some(1), Some(1), Some(2), Some(8), Some(9)]);
        let framed =
            |released| Framed { size: 3, begun: false, released: Instant::from_nanos(released) };
        assert_eq!([0, 7, 8, 9].map(|at| framed(at).begins_at().as_nanos()), [8, 8, 16, 16]);
        assert_eq!(framed(u64::MAX).begins_at(), Instant::FAR);
    }

    #[test]
    fn begun_frames_precede_others_and_short_frames_precede_long_ones() {
        let (ns, at) = (Duration::from_nanos, Instant::from_nanos);
        // Frames of 64 ns, 8 ns and 8 ns.
        let streams = [(ns(128), at(10)), (ns(16), at(13)), (ns(16), at(5))];
        // Only the last one may be sent, in the frame from 8 on. The next begins at 16, and the long one at 64.
        assert_eq!(order(at(15), &streams), [2, 1, 0]);
        assert_eq!(order(at(16), &streams), [2, 1, 0]);
        let streams = [(ns(128), at(10)), (ns(16), at(61)), (ns(16), at(64))];
        assert_eq!(order(at(63), &streams), [0, 1, 2]);
        assert_eq!(order(at(64), &streams), [1, 0, 2]);
        assert_eq!(order(at(72), &streams), [1, 2, 0]);
    }
}

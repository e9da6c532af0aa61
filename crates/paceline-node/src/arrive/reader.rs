//! The frames of one neighbour: reassembly, and the limits of its traffic.

use bytes::Bytes;
use paceline_proto::guard::{Flood, Guard, Hearing};
use paceline_proto::receive::{Heard, Received, Receiver};
use paceline_proto::wire::WireError;
use paceline_sched::{Duration, Instant};

/// The state of the hop to a neighbour, as its link knows it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct HopTiming {
    /// The epoch of the hop.
    pub epoch: u32,
    /// Half the minimum round trip; zero if it is unknown.
    pub half_round_trip: Duration,
}

/// The result of a frame.
#[derive(Debug, Default)]
pub struct FrameResult {
    /// The content of its header for the link.
    pub heard: Option<Heard>,
    /// The error in a malformed frame. Its contents before the error count.
    pub error: Option<WireError>,
    /// The kinds of traffic for which the frame has muted the neighbour.
    pub muted: Vec<Flood>,
}

/// Reads the frames of one neighbour.
///
/// - A neighbour that has sent too many malformed frames is muted: its next frames are dropped unread.
/// - Control messages beyond the limit of [`Guard`] are dropped. Segments of unknown streams are charged like samples without a
///   subscription.
#[derive(Debug, Default)]
pub struct FrameReader {
    receiver: Receiver,
    /// The neighbour was muted for malformed frames and may still be.
    is_unread: bool,
}

/// Charges a guard for a piece of a frame. Returns true if it is accepted.
fn hears(
    (guard, muted): (&mut Guard, &mut Vec<Flood>),
    flood: Flood,
    (now, bytes): (Instant, usize),
) -> bool {
    let hearing = guard.take(flood, now, bytes);
    if hearing == Hearing::Muted {
        muted.push(flood);
    }
    hearing == Hearing::Heard
}

impl FrameReader {
    /// Returns a reader with a receiver that charges the memory of its unfinished samples.
    #[must_use]
    pub const fn new(receiver: Receiver) -> Self {
        Self { receiver, is_unread: false }
    }

    /// Reads a frame. Adds its samples, loss reports and accepted control messages to `items`.
    pub fn handle_frame(
        &mut self,
        now: Instant,
        hop: HopTiming,
        frame: Bytes,
        guard: &mut Guard,
        items: &mut Vec<Received>,
    ) -> FrameResult {
        let (mut result, bytes) = (FrameResult::default(), frame.len());
        if self.is_unread {
            self.is_unread = guard.is_muted(Flood::Malformed, now);
            if self.is_unread {
                hears((guard, &mut result.muted), Flood::Malformed, (now, bytes));
                return result;
            }
        }
        self.receiver.set_half_round_trip(hop.half_round_trip);
        let unknown = self.receiver.unknown_stream();
        let mut messages = Vec::new();
        let read = self.receiver.handle_frame(now, hop.epoch, frame, |item| match item {
            Received::Control(message) => messages.push(message),
            item @ (Received::Sample { .. } | Received::Lost { .. }) => items.push(item),
        });
        match read {
            Ok(heard) => result.heard = Some(heard),
            Err((heard, error)) => {
                (result.heard, result.error) = (heard, Some(error));
                let at = (&mut *guard, &mut result.muted);
                self.is_unread = !hears(at, Flood::Malformed, (now, bytes));
            }
        }
        if self.receiver.unknown_stream() > unknown {
            hears((guard, &mut result.muted), Flood::Unasked, (now, bytes));
        }
        let mut is_heard = |message: &Bytes| {
            hears((guard, &mut result.muted), Flood::Control, (now, message.len()))
        };
        items.extend(messages.into_iter().filter(&mut is_heard).map(Received::Control));
        result
    }

    /// Returns the receiver: its timeouts and unfinished samples.
    #[must_use]
    pub const fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// Returns the receiver, to handle its timeouts or to discard unfinished samples.
    pub const fn receiver_mut(&mut self) -> &mut Receiver {
        &mut self.receiver
    }
}

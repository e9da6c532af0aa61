//! The permitted content of a frame, and the earliest time to send one.

use super::Setup;
use paceline_proto::wire::segment::Segment;
use paceline_sched::{Duration, Instant};

/// Bytes that the layers below add to each frame.
const OVERHEAD: u64 = 100;

/// Returns the bytes on the wire: with that overhead, and 80 bytes for each packet of 1,400 beyond the first.
pub(super) const fn on_wire(len: u64) -> u64 {
    len + OVERHEAD + 80 * (len / 1_400)
}
/// The most transmission time by which a link may catch up after a late wake-up.
const CATCH_UP: Duration = Duration::from_millis(1);

/// Checks that frames keep within the capacity, and control within its share of it.
#[derive(Debug)]
pub(super) struct Gate {
    setup: Setup,
    /// Transmission time of all frames so far.
    busy: Duration,
    /// The greatest value of a frame's send time minus `busy` so far, in nanoseconds.
    latest: u64,
    control_free: Instant,
}

impl Gate {
    pub(super) const fn new(setup: Setup) -> Self {
        Self { setup, busy: Duration::ZERO, latest: 0, control_free: Instant::ZERO }
    }

    /// Checks a frame of `len` bytes that leaves at `now`, `control` of them control.
    ///
    /// The time between any two frames is at least the transmission time of the first and of all in between,
    /// minus the permitted catch-up time.
    pub(super) fn pass(&mut self, now: Instant, len: usize, control: usize) {
        let len = len as u64;
        assert!(len <= self.setup.frame_bytes(), "{len} bytes in a frame");
        let alone =
            now.as_nanos().checked_sub(self.busy.as_nanos()).expect("sent before time zero");
        assert!(alone + CATCH_UP.as_nanos() >= self.latest, "{now}: above the capacity");
        self.latest = self.latest.max(alone);
        self.busy = self.busy.saturating_add(self.setup.wire_time(on_wire(len)));
        if control > 0 && self.setup.capacity.is_some() {
            assert!(now >= self.control_free, "{now}: control above its share");
            // A twentieth of the capacity, or one frame per 20 ms if that is more.
            let bytes = on_wire(control as u64);
            let share = self.setup.wire_time(bytes).mul_div(20, 1);
            let frames = Duration::from_millis(20).mul_div(bytes, self.setup.frame_bytes());
            self.control_free = now + share.min(frames);
        }
    }
}

/// Returns true for a segment with control data.
pub(super) const fn is_control(segment: &Segment) -> bool {
    matches!(segment, Segment::Control { .. } | Segment::Part { .. })
}

/// Checks the order of segments: closes and aborts come first, and all control is contiguous. Only samples
/// with a contract may precede control.
pub(super) fn is_in_order(segments: &[Segment], promised: impl Fn(u32) -> bool) -> bool {
    let is_notice = |it: &Segment| matches!(it, Segment::Close { .. } | Segment::Abort { .. });
    let notices = segments.iter().take_while(|it| is_notice(it)).count();
    let rest = segments.get(notices..).unwrap_or_default();
    if rest.iter().any(is_notice) {
        return false;
    }
    let first = rest.iter().position(is_control).unwrap_or_default();
    let control = rest.iter().filter(|it| is_control(it)).count();
    rest.iter().skip(first).take(control).all(is_control)
        && rest.iter().take(first).all(|segment| match segment {
            Segment::Open { stream, .. } | Segment::Data { stream, .. } => promised(*stream),
            Segment::Close { .. }
            | Segment::Abort { .. }
            | Segment::Control { .. }
            | Segment::Part { .. }
            | Segment::Padding { .. } => false,
        })
}

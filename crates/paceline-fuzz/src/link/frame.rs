//! What may be in a frame, and when one may leave.

use super::Setup;
use paceline_proto::wire::segment::Segment;
use paceline_sched::{Duration, Instant};

/// What the layers below add to each frame.
const OVERHEAD: u64 = 100;

/// With that, and 80 bytes for each packet of 1,400 beyond the first.
pub(super) const fn on_wire(len: u64) -> u64 {
    len + OVERHEAD + 80 * (len / 1_400)
}
/// How far a link may catch up after a late wake-up.
const CATCH_UP: Duration = Duration::from_millis(1);

/// Holds frames to the capacity, and control to its share of it.
#[derive(Debug)]
pub(super) struct Gate {
    setup: Setup,
    /// Time on the wire of all frames so far.
    busy: Duration,
    /// The latest that a frame could have left, were there none before it: its instant less `busy`.
    latest: u64,
    control_free: Instant,
}

impl Gate {
    pub(super) const fn new(setup: Setup) -> Self {
        Self { setup, busy: Duration::ZERO, latest: 0, control_free: Instant::ZERO }
    }

    /// A frame of `len` bytes leaves at `now`, `control` of them control.
    ///
    /// Between any two frames lies at least the time on the wire of the first and of all between
    /// them, but for what may be caught up.
    pub(super) fn pass(&mut self, now: Instant, len: usize, control: usize) {
        let len = len as u64;
        assert!(len <= self.setup.frame_bytes(), "{len} bytes in a frame");
        let alone = now.as_nanos().checked_sub(self.busy.as_nanos()).expect("sent before time was");
        assert!(alone + CATCH_UP.as_nanos() >= self.latest, "{now}: above the capacity");
        self.latest = self.latest.max(alone);
        self.busy = self.busy.saturating_add(self.setup.wire_time(on_wire(len)));
        if control > 0 && self.setup.capacity.is_some() {
            assert!(now >= self.control_free, "{now}: control above its share");
            // A twentieth of the capacity, and at least a frame in 20 ms.
            let bytes = on_wire(control as u64);
            let share = self.setup.wire_time(bytes).mul_div(20, 1);
            let frames = Duration::from_millis(20).mul_div(bytes, self.setup.frame_bytes());
            self.control_free = now + share.min(frames);
        }
    }
}

/// A piece of control.
pub(super) const fn is_control(segment: &Segment) -> bool {
    matches!(segment, Segment::Control { .. } | Segment::Part { .. })
}

/// Closes and aborts come first in a frame; all its control is together, behind samples with a contract alone.
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
            | Segment::Part { .. } => false,
        })
}

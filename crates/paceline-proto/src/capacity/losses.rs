//! Losses at a bottleneck whose queue is too short for a growth of the delay.

use super::samples::part;

/// Loss above this part of the frames, in percent, may be caused by too high a rate. Google Congestion Control lowers its rate
/// above 10 % (Carlucci et al., 2016), but radios lose more than that in a burst.
const MUCH: u64 = 15;
/// The minimum number of lost frames in a window.
const LOST_MIN: u64 = 5;
/// The number of windows in a row with much loss: a burst of losses ends before.
const WINDOWS: u32 = 2;
/// Only loss at nearly the full rate is evidence: at least this part of the estimate, in percent.
const NEARLY: u64 = 70;

/// The losses of the present window, and of those before it.
#[derive(Debug, Default)]
pub(super) struct LossWindow {
    lost: u64,
    lost_bytes: u64,
    arrived: u64,
    arrived_bytes: u64,
    in_a_row: u32,
}

impl LossWindow {
    /// Counts a frame that was lost.
    pub(super) const fn note_lost(&mut self, bytes: u64) {
        self.lost += 1;
        self.lost_bytes = self.lost_bytes.saturating_add(bytes);
    }

    /// Counts a frame that has arrived.
    pub(super) const fn note_arrived(&mut self, bytes: u64) {
        self.arrived += 1;
        self.arrived_bytes = self.arrived_bytes.saturating_add(bytes);
    }

    /// Ends a window of `nanos` nanoseconds. Returns the rate of delivery in bits per second if much was lost at nearly the
    /// full rate of `estimate`, for several windows.
    pub(super) fn end(&mut self, nanos: u64, estimate: u64) -> Option<u64> {
        let Self { lost, lost_bytes, arrived, arrived_bytes, in_a_row } = core::mem::take(self);
        let sent = super::rate(lost_bytes.saturating_add(arrived_bytes), nanos);
        let much = lost >= LOST_MIN && lost * 100 >= (lost + arrived) * MUCH;
        if much && sent >= part(estimate, NEARLY) {
            self.in_a_row = in_a_row.saturating_add(1);
        }
        let delivered = super::rate(arrived_bytes, nanos);
        (self.in_a_row >= WINDOWS && delivered < estimate).then_some(delivered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: u64 = 100_000_000;

    /// Returns the result of a window with 80 frames of 1,250 bytes each: 8 Mbit/s.
    fn after(window: &mut LossWindow, lost: u64, estimate: u64) -> Option<u64> {
        (0..lost).for_each(|_| window.note_lost(1_250));
        (lost..80).for_each(|_| window.note_arrived(1_250));
        window.end(WINDOW, estimate)
    }

    #[test]
    fn repeated_loss_at_the_full_rate_is_evidence() {
        let mut window = LossWindow::default();
        let losses = [40, 40, 4, 40, 40].map(|lost| after(&mut window, lost, 8_000_000));
        assert_eq!(losses, [None, Some(4_000_000), None, None, Some(4_000_000)]);
    }

    #[test]
    fn random_loss_and_loss_at_a_low_rate_are_not() {
        let mut window = LossWindow::default();
        for _ in 0..10 {
            assert_eq!(after(&mut window, 11, 8_000_000), None, "less than 15 %");
            assert_eq!(after(&mut window, 40, 20_000_000), None, "40 % of the estimate");
        }
    }
}

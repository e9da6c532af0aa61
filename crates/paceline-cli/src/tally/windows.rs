//! Counts the violations of a loss tolerance at the subscriber: at most x of each y samples may be
//! late or lost.

/// Counts consecutive windows, and those with too many misses.
#[derive(Clone, Debug)]
pub(crate) struct Windows {
    x: u32,
    y: u32,
    step: u64,
    last: Option<u64>,
    place: u32,
    misses: u32,
    /// The number of samples that did not arrive.
    pub(crate) lost: u64,
    /// The number of windows with more than x misses.
    pub(crate) beyond: u64,
}

impl Windows {
    /// Creates a counter for windows of `y` samples, each one in `step` of the publisher's. Without
    /// a tolerance no window counts as violated.
    pub(crate) fn new(loss: Option<(u32, u32)>, step: u64) -> Self {
        let (x, y) = loss.unwrap_or((u32::MAX, u32::MAX));
        Self { x, y, step: step.max(1), last: None, place: 0, misses: 0, lost: 0, beyond: 0 }
    }

    /// Counts a sample, and the missing ones since the previous sample.
    pub(crate) fn add(&mut self, seq: u64, late: bool) {
        if let Some(last) = self.last.replace(seq) {
            let steps = (seq.saturating_sub(last) + self.step / 2) / self.step;
            for _ in 1..steps.min(100_000) {
                self.lost += 1;
                self.count(true);
            }
        }
        self.count(late);
    }

    fn count(&mut self, missed: bool) {
        self.misses += u32::from(missed);
        self.place += 1;
        if self.place == self.y {
            self.beyond += u64::from(self.misses > self.x);
            (self.place, self.misses) = (0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_late_in_ten_is_allowed_and_two_are_not() {
        let mut windows = Windows::new(Some((1, 10)), 6);
        for k in 0..30u64 {
            windows.add(k * 6, k == 3 || k == 12 || k == 19);
        }
        assert_eq!((windows.lost, windows.beyond), (0, 1));
    }

    #[test]
    fn missing_samples_count_as_misses() {
        let mut windows = Windows::new(Some((1, 5)), 3);
        windows.add(0, false);
        windows.add(4, false); // with a step of 3, one sample later than expected
        windows.add(12, false); // two samples missing
        assert_eq!((windows.lost, windows.beyond), (2, 1));
    }

    #[test]
    fn without_a_tolerance_only_losses_count() {
        let mut windows = Windows::new(None, 1);
        windows.add(0, true);
        windows.add(9, true);
        assert_eq!((windows.lost, windows.beyond), (8, 0));
    }
}

//! The demand of a stream with a loss tolerance on a link with virtual deadline scheduling.
//!
//! Of y samples, m = y − x are owed. Virtual deadlines never decrease: after a missed sample, the
//! next one has the same or a later deadline. Consider the interval since the link was last idle or
//! busy with a packet due later; one such packet may block. Every sample that is sent with a
//! virtual deadline up to t arrived in this interval, and the windows alone bound the number of
//! these samples. The worst case is the m last samples of a window that has already missed x, one
//! per period, followed by whole windows. In these, the j-th service is due no sooner than
//! `(j − 1) + (y − j + 1)/(m − j + 1)` periods after the window starts. This is at most `x (m − r)(r − 1)/(m r)` periods before j y/m,
//! for the r next to √m. The sum is `m (x + 1)/y + x (m − r)(r − 1)/(y r)` services at once, and
//! m/y of the rate after that.
//!
//! If this demand always fits, no owed sample is missed and no window is violated. The virtual
//! deadlines of a contract may be computed with a period up to 1/20 shorter than the source's. This
//! adds m x/(20 y).
//!
//! The caller must ensure a delay of at most y/m periods. Otherwise a sample may queue behind
//! samples of its own stream that its window no longer owes. These may wait arbitrarily long.
//!
//! # Samples of several packets
//!
//! A sample whose virtual deadline is later than its deadline d could be overtaken between two packets, and miss d. Its
//! first packets would be sent in the time of the owed samples. VDS therefore begins such a sample at least L before d
//! (seven eighths of the relative deadline), or while nothing is owed, and ranks it by d if it has begun early
//! (`paceline-sched/src/discipline/vds.rs`). So the sample that begins just before the interval above may be due in
//! it, before its window owes it. Only one can: when the discipline picks it, nothing else is due as early. The first
//! service of its stream is then due L after the interval begins, and the others as in the worst case above, which
//! began earlier. So the demand of one stream counts from L instead of its deadline, in the place of the packet that
//! blocks. No sample that has begun early is missed, since its own deadline is an instant of the test, too.
//!
//! If the longest sample takes more than two thirds of its deadline, no sample of the stream begins early, and all are
//! charged. That covers those that are sent in vain.

use crate::demand::StreamDemand;
use crate::traffic::narrow;

/// `burst` bytes at once and `rate` bits per second after that, both rounded up.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Owed {
    pub(crate) burst: u64,
    pub(crate) rate: u64,
}

impl Owed {
    /// Returns the owed part of a demand, or `None` if every sample is owed.
    pub(crate) fn of(demand: &StreamDemand) -> Option<Self> {
        let (x, y) = (u128::from(demand.loss().x()), u128::from(demand.loss().y()));
        if x == 0 {
            return None;
        }
        let (m, dual) = (y.saturating_sub(x), demand.traffic().dual());
        let sample = u128::from(dual.peak_burst);
        let services = |r: u128| {
            let within = 20 * x * m.saturating_sub(r) * (r - 1);
            ((r * m * (21 * x + 20) + within) * sample).div_ceil(20 * y * r)
        };
        let root = m.isqrt().max(1);
        // Of the bytes that arrive early in addition to the samples, the owed share counts.
        let early = (m * u128::from(dual.burst - dual.peak_burst)).div_ceil(y);
        let burst = narrow(services(root).max(services(root + 1)).saturating_add(early));
        let rate = narrow((m * u128::from(dual.rate)).div_ceil(y));
        Some(Self { burst, rate })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::Traffic;
    use paceline_sched::{Duration, LossTolerance};

    /// Returns the virtual deadlines of services in periods. The samples of the stream are sent on
    /// arrival, starting with the m last samples of a window.
    fn deadlines(x: u32, y: u32, count: usize) -> Vec<f64> {
        let (mut left, mut owes, mut begins, mut due) = (y - x, y - x, 0.0, Vec::new());
        while due.len() < count {
            if owes > 0 {
                due.push(begins + f64::from(left) / f64::from(owes));
                owes -= 1;
            }
            left -= 1;
            begins += 1.0;
            if left == 0 {
                (left, owes) = (y, y - x);
            }
        }
        due
    }

    #[test]
    fn every_due_service_is_charged() {
        for (x, y) in (2..40_u32).flat_map(|y| (1..y).map(move |x| (x, y))) {
            let traffic = Traffic::leaky(1_000_000, 8_000_000, 1_000).unwrap();
            let demand = StreamDemand::new(traffic, Duration::from_millis(1)).unwrap();
            let owed = Owed::of(&demand.with_loss(LossTolerance::new(x, y).unwrap())).unwrap();
            let mut closest = f64::MAX;
            for (sent, due) in deadlines(x, y, 200).into_iter().enumerate() {
                // The first sample is due after one period, which is its deadline.
                let charged =
                    f64::from(y - x) / f64::from(y) * (due - 1.0) + owed.burst as f64 / 1_000_000.0;
                closest = closest.min(charged - (sent + 1) as f64);
            }
            let period = f64::from((y - x) * x) / f64::from(20 * y);
            assert!((-1e-6..0.2).contains(&(closest - period)), "{x}/{y}: {closest} {period}");
        }
    }
}

//! What a stream that tolerates loss takes of a link that schedules it by virtual deadlines.
//!
//! Of y samples m = y − x are owed. Virtual deadlines never go back: a sample that is missed leaves the next one with
//! the same or a later one. So whatever is sent with a virtual deadline up to t, since the link was last idle or
//! busy with something due later (one packet of which blocks), came since then, and its number is bounded by the
//! windows alone: at worst the m last samples of a window that has missed x already, one a period, and then whole windows. In
//! these the j-th service is due no sooner than (j − 1) + (y − j + 1)/(m − j + 1) periods after the window
//! begins, which is at most x (m − r)(r − 1)/(m r) periods before j y/m, for the r next to √m. Together
//!
//! > m (x + 1)/y + x (m − r)(r − 1)/(y r) services at once, and m/y of the rate after that.
//!
//! Where so much always fits, no sample that must not be missed is, and no window is violated. The virtual deadlines
//! of a contract may be computed with a period up to a twentieth shorter than the source's, which is m x/(20 y) more.
//!
//! One thing is asked of the caller: a delay of at most y/m periods. A sample that comes behind more of its stream may
//! find its way blocked by what its window no longer owes, which waits for as long as it likes.

use crate::demand::Demand;
use crate::traffic::narrow;

/// `burst` bytes at once and `rate` bits per second after that, both rounded up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Owed {
    pub(crate) burst: u64,
    pub(crate) rate: u64,
}

impl Owed {
    /// `None` where all that is sent is owed.
    pub(crate) fn of(demand: &Demand) -> Option<Self> {
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
        // What comes early beside the samples themselves comes of those that are owed, too.
        let early = (m * u128::from(dual.burst - dual.peak_burst)).div_ceil(y);
        let burst = narrow(services(root).max(services(root + 1)).saturating_add(early));
        Some(Self { burst, rate: narrow((m * u128::from(dual.rate)).div_ceil(y)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::Traffic;
    use paceline_sched::{Duration, LossTolerance};

    /// The virtual deadlines of services in periods, of a stream whose samples are sent as they come, from the m last
    /// samples of a window on.
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
    fn no_services_are_due_that_are_not_charged() {
        for (x, y) in (2..40_u32).flat_map(|y| (1..y).map(move |x| (x, y))) {
            let traffic = Traffic::leaky(1_000_000, 8_000_000, 1_000).unwrap();
            let demand = Demand::new(traffic, Duration::from_millis(1)).unwrap();
            let owed = Owed::of(&demand.with_loss(LossTolerance::new(x, y).unwrap())).unwrap();
            let mut closest = f64::MAX;
            for (sent, due) in deadlines(x, y, 200).into_iter().enumerate() {
                // The first is due after a period, as its delay.
                let charged =
                    f64::from(y - x) / f64::from(y) * (due - 1.0) + owed.burst as f64 / 1_000_000.0;
                closest = closest.min(charged - (sent + 1) as f64);
            }
            let period = f64::from((y - x) * x) / f64::from(20 * y);
            assert!((-1e-6..0.2).contains(&(closest - period)), "{x}/{y}: {closest} {period}");
        }
    }
}

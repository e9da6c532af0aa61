//! The search for contracts that would be admitted instead of a refused one.

use super::{Admission, Holder, Trunk};
use crate::demand::StreamDemand;
use crate::due::Trials;
use crate::verdict::LinkOffer;
use core::cell::RefCell;
use paceline_sched::{Duration, LossTolerance};

/// The resolution of the search for rate and size.
const PARTS: u64 = 1_024;
/// The window length of an offered loss tolerance if the demand has none.
const WINDOW: u32 = 100;

impl Admission {
    /// Returns the best contract in each dimension that would be admitted now. Bisection takes
    /// about forty tests, which share their results. If the tests of a dimension need too many evaluations, its
    /// offer may be lower than the best one.
    #[must_use]
    pub fn offer(&self, trunk: Trunk, holder: Holder, demand: &StreamDemand) -> LinkOffer {
        let source = demand.source();
        let trials = RefCell::new(Trials::new());
        let fits = |demand: &StreamDemand| {
            self.test(trunk, holder, demand, &mut trials.borrow_mut()).is_ok()
        };
        let rate = most(PARTS, |part| fits(&demand.with_source(source.slower(part, PARTS))));
        trials.borrow_mut().renew();
        let burst = most(PARTS, |part| fits(&demand.with_source(source.smaller(part, PARTS))));
        trials.borrow_mut().renew();
        let deadline = longer(demand, fits);
        trials.borrow_mut().renew();
        LinkOffer {
            rate: rate.map(|part| source.slower(part, PARTS).rate()),
            burst: burst.map(|part| source.smaller(part, PARTS).burst()),
            deadline,
            loss: self.looser(demand, fits),
        }
    }

    fn looser(
        &self,
        demand: &StreamDemand,
        fits: impl Fn(&StreamDemand) -> bool,
    ) -> Option<LossTolerance> {
        if !self.spec.rule.counts_loss() {
            return None;
        }
        let (x, y) = match (demand.loss().x(), demand.loss().y()) {
            (_, 0 | 1) => (0, WINDOW),
            kept => kept,
        };
        let loss = |more: u32| LossTolerance::new(x + more, y).ok();
        let keeps = |more| loss(more).is_some_and(|loss| fits(&demand.with_loss(loss)));
        // At least one sample per window must be owed, or the contract would be empty.
        let (mut low, mut high) = (0, (y - x).saturating_sub(1));
        if high == 0 || !keeps(high) {
            return None;
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if keeps(middle) { high = middle } else { low = middle }
        }
        loss(high)
    }
}

/// Returns the largest part from 1 to `parts` − 1 that fits, or `None` if 1 does not. `fits` must
/// be monotonic.
fn most(parts: u64, fits: impl Fn(u64) -> bool) -> Option<u64> {
    if parts < 2 || !fits(1) {
        return None;
    }
    let (mut low, mut high) = (1, parts);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle }
    }
    Some(low)
}

/// Returns the shortest longer deadline that fits, to within 1/1024.
fn longer(demand: &StreamDemand, fits: impl Fn(&StreamDemand) -> bool) -> Option<Duration> {
    let with = |nanos: u64| demand.with_deadline(Duration::from_nanos(nanos)).ok();
    let keeps = |nanos: u64| with(nanos).is_some_and(|demand| fits(&demand));
    let most = StreamDemand::DEADLINE_MAX.as_nanos();
    let (mut low, mut high) = (demand.deadline().as_nanos(), demand.deadline().as_nanos());
    loop {
        high = high.saturating_mul(2).min(most);
        if keeps(high) {
            break;
        }
        if high == most {
            return None;
        }
        low = high;
    }
    while high - low > high / PARTS + 1 {
        let middle = low + (high - low) / 2;
        if keeps(middle) { high = middle } else { low = middle }
    }
    Some(Duration::from_nanos(high))
}

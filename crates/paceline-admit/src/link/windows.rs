//! Services owed to windows if all streams have equal parameters and coinciding periods.
//!
//! For such a set, DWCS with the later rules and VDS keep every window if the services owed fit
//! into the periods (West & Poellabauer, RTSS 2000: unit slots, and one request period that is a
//! whole number of them). This does not apply if periods start at different times or differ. Then
//! every sample is counted.

use crate::demand::StreamDemand;
use crate::ledger::less;
use crate::traffic::{NANOBITS, Traffic, nanobits, narrow};
use paceline_sched::LossTolerance;
use std::collections::BTreeMap;

/// One service per period, in fixed point.
const ONE: u128 = 1 << 40;

/// The services owed to all streams, and their parameters.
#[derive(Clone, Debug, Default)]
pub(super) struct Windows {
    owed: u128,
    /// (M, p, b, r) and packet length of the streams, with their numbers.
    kinds: BTreeMap<[u64; 5], u32>,
    deadlines: BTreeMap<u64, u32>,
}

/// The services per period that the windows need, in thousandths.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Owed {
    pub(super) needed: u64,
    pub(super) available: u64,
}

impl Windows {
    pub(super) fn add(&mut self, demand: &StreamDemand) {
        self.owed += share(demand.loss());
        *self.kinds.entry(kind(demand.traffic())).or_default() += 1;
        *self.deadlines.entry(demand.deadline().as_nanos()).or_default() += 1;
    }

    pub(super) fn take(&mut self, demand: &StreamDemand) {
        self.owed -= share(demand.loss());
        less(&mut self.kinds, &kind(demand.traffic()));
        less(&mut self.deadlines, &demand.deadline().as_nanos());
    }

    pub(super) fn is_zero(&self) -> bool {
        self.owed == 0 && self.kinds.is_empty() && self.deadlines.is_empty()
    }

    /// Tests whether the windows fit without `minus` and with `plus`. Returns `None` if the streams
    /// differ or a deadline is shorter than the period.
    pub(super) fn fit(
        &self,
        line: u64,
        other: u64,
        latency: u64,
        minus: Option<&StreamDemand>,
        plus: &StreamDemand,
    ) -> Option<Result<(), Owed>> {
        let mut after = self.clone_without(minus);
        after.add(plus);
        let traffic = plus.traffic();
        let dual = traffic.dual();
        if after.kinds.len() != 1 || dual.burst != dual.peak_burst {
            return None;
        }
        // A service is a whole sample. The host's latency and one packet of other traffic reduce
        // the period.
        let bytes = nanobits(traffic.burst());
        // The rate was rounded up, so this is at most the period.
        let period = bytes.div_ceil(u128::from(traffic.rate()));
        let strictest = after.deadlines.first_key_value().map_or(0, |(deadline, _)| *deadline);
        if u128::from(strictest) < period {
            return None;
        }
        let left = period.saturating_sub(u128::from(latency)) * u128::from(line);
        let slots = left.saturating_sub(nanobits(other)) / bytes.max(NANOBITS);
        if after.owed <= slots * ONE {
            return Some(Ok(()));
        }
        let needed = narrow((after.owed * 1_000).div_ceil(ONE));
        Some(Err(Owed { needed, available: narrow(slots * 1_000) }))
    }

    /// Returns a copy with at most two kinds and deadlines. With more, the streams do not fit
    /// anyway.
    fn clone_without(&self, minus: Option<&StreamDemand>) -> Self {
        const KINDS: usize = 2;
        let kinds = self.kinds.iter().take(KINDS).map(|(kind, count)| (*kind, *count)).collect();
        let deadlines =
            self.deadlines.iter().take(KINDS).map(|(at, count)| (*at, *count)).collect();
        let mut few = Self { owed: self.owed, kinds, deadlines };
        if let Some(minus) = minus {
            few.take(minus);
            if self.kinds.len() > KINDS {
                // The kinds that were not copied may differ from the rest, so add a different one.
                few.kinds.insert([0; 5], 1);
            }
        }
        few
    }
}

/// Returns (y − x)/y in fixed point, rounded up.
fn share(loss: LossTolerance) -> u128 {
    match loss.y() {
        0 => ONE,
        y => (u128::from(y - loss.x()) * ONE).div_ceil(u128::from(y)),
    }
}

fn kind(traffic: &Traffic) -> [u64; 5] {
    let dual = traffic.dual();
    [dual.peak_burst, dual.peak_rate, dual.burst, dual.rate, traffic.packet()]
}

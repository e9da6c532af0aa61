//! Deterministic bounds: how long traffic waits behind a server, how much of it waits, what leaves.
//!
//! Bytes, nanoseconds and whole bits per second, with 128 bits in between. What is rounded is rounded to
//! the safe side: delays, backlogs and bursts up, rates of service down.
//!
//! Papers: Cruz 1991; Le Boudec & Thiran, "Network Calculus", chapter 1 (latency-rate servers, pay bursts
//! only once); seed 003 §4.1.2.

use crate::traffic::{NANOBITS, Traffic, nanobits, narrow};
use paceline_sched::police::Dual;
use paceline_sched::{Capacity, Duration};

pub mod edf;
pub mod jobs;
pub mod rfc2212;
#[cfg(test)]
mod tests;

/// A server that gives at least R (t − T) from when it is asked: a link, what is left of one, or several
/// in a row.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LatencyRate {
    /// R in bits per second.
    pub rate: u64,
    /// T.
    pub latency: Duration,
}

impl LatencyRate {
    /// A link that sends whatever waits, after `latency` of the host's own.
    #[must_use]
    pub const fn link(capacity: Capacity, latency: Duration) -> Self {
        Self { rate: capacity.bits_per_s(), latency }
    }

    /// This server and then `next`: a burst is paid for once, at the slower of the two.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        let latency = self.latency.saturating_add(next.latency);
        Self { rate: self.rate.min(next.rate), latency }
    }

    /// h(α, β): the longest that a bit of `traffic` stays; `None` if more comes than is served.
    #[must_use]
    pub fn delay(&self, traffic: &Traffic) -> Option<Duration> {
        let (rate, dual) = (u128::from(self.rate), traffic.dual());
        if traffic.rate() > self.rate || self.rate == 0 {
            return None;
        }
        let burst = nanobits(dual.peak_burst);
        let (bend, apart) = traffic.bend();
        let waits = if dual.peak_rate > self.rate && apart > 0 {
            // The queue grows until the pieces of the curve cross.
            let above = u128::from(dual.peak_rate - self.rate);
            (burst * apart + bend * above).div_ceil(apart * rate)
        } else {
            burst.div_ceil(rate)
        };
        Some(self.latency.saturating_add(Duration::from_nanos(narrow(waits))))
    }

    /// v(α, β): the most bytes of `traffic` that wait at once, rounded up; `None` if they have no bound.
    #[must_use]
    pub fn backlog(&self, traffic: &Traffic) -> Option<u64> {
        if traffic.rate() > self.rate {
            return None;
        }
        let waiting = self
            .grows_until_the_bend(traffic)
            .unwrap_or_else(|| traffic.nanobits_in(u128::from(self.latency.as_nanos())));
        Some(narrow(waiting.div_ceil(NANOBITS)))
    }

    /// The backlog in nanobits where the pieces of the curve cross, if it still grows until then.
    fn grows_until_the_bend(&self, traffic: &Traffic) -> Option<u128> {
        let (dual, nanos) = (traffic.dual(), u128::from(self.latency.as_nanos()));
        let (bend, apart) = traffic.bend();
        if dual.peak_rate <= self.rate || apart == 0 || bend <= nanos.saturating_mul(apart) {
            return None;
        }
        let above = u128::from(dual.peak_rate - self.rate);
        let risen = (above * bend).div_ceil(apart);
        Some(nanobits(dual.peak_burst) + risen + u128::from(self.rate) * nanos)
    }

    /// α ⊘ β: what leaves, and the next server has to expect; `None` if the backlog has no bound.
    #[must_use]
    pub fn output(&self, traffic: &Traffic) -> Option<Traffic> {
        if traffic.rate() > self.rate {
            return None;
        }
        let widened = traffic.delayed(self.latency);
        let Some(waiting) = self.grows_until_the_bend(traffic) else { return Some(widened) };
        let Dual { burst, rate, .. } = widened.dual();
        let peak_burst = narrow(waiting.div_ceil(NANOBITS)).min(burst);
        let peak_rate = self.rate.max(rate);
        Some(widened.with_dual(Dual { peak_burst, peak_rate, burst, rate }))
    }
}

/// A sum of bursts and rates: what several streams send together.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Sum {
    /// Σσ in bytes.
    pub burst: u64,
    /// Σρ in bits per second.
    pub rate: u64,
}

impl Sum {
    /// Of these streams.
    #[must_use]
    pub fn of(streams: &[Traffic]) -> Self {
        streams.iter().fold(Self::default(), |sum, stream| Self {
            burst: sum.burst.saturating_add(stream.burst()),
            rate: sum.rate.saturating_add(stream.rate()),
        })
    }
}

/// The bound for everybody on a link in order of arrival: Σσ/C, after one `blocking` packet that is not
/// theirs. `None` if they send more than the link carries.
#[must_use]
pub fn fifo(link: LatencyRate, all: Sum, blocking: u64) -> Option<Duration> {
    static_priority(link, Sum::default(), all, blocking)
}

/// What `others` leave of a link to one stream if nothing is known of the order: a server of its own.
/// `None` if they leave nothing.
#[must_use]
pub fn left_by(link: LatencyRate, others: Sum) -> Option<LatencyRate> {
    let rate = link.rate.checked_sub(others.rate).filter(|rate| *rate > 0)?;
    let waits =
        nanobits(others.burst) + u128::from(link.rate) * u128::from(link.latency.as_nanos());
    let latency = Duration::from_nanos(narrow(waits.div_ceil(u128::from(rate))));
    Some(LatencyRate { rate, latency })
}

/// The bound of a level of static priority that nothing preempts: behind all of the levels before it and
/// one `lower` packet of those after it, in order of arrival within it.
#[must_use]
pub fn static_priority(link: LatencyRate, before: Sum, level: Sum, lower: u64) -> Option<Duration> {
    let rate = link.rate.checked_sub(before.rate).filter(|rate| *rate > 0)?;
    if level.rate > rate {
        return None;
    }
    let waits = nanobits(before.burst) + nanobits(lower) + nanobits(level.burst);
    // The host's own latency delays all alike, and lets those before bunch up.
    let more = u128::from(before.rate) * u128::from(link.latency.as_nanos());
    let waits = narrow((waits + more).div_ceil(u128::from(rate)));
    Some(link.latency.saturating_add(Duration::from_nanos(waits)))
}

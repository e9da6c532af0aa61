//! Deterministic bounds on the delay, the backlog and the output of a server.
//!
//! Units are bytes, nanoseconds and whole bits per second; intermediate results have 128 bits.
//! Results are rounded to the safe side: delays, backlogs and bursts up, service rates down.
//!
//! Papers: Cruz 1991; Le Boudec & Thiran, "Network Calculus", chapter 1 (latency-rate servers, pay
//! bursts only once); Christie 1995, §4.1.2.

use crate::traffic::{NANOBITS, Traffic, nanobits, narrow};
use paceline_sched::police::Dual;
use paceline_sched::{Capacity, Duration};

pub mod edf;
pub mod jobs;
#[cfg(test)]
mod tests;

/// A latency-rate server, with the service curve R (t − T). It models a link, the capacity that
/// other streams leave on a link, or several servers in sequence.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LatencyRate {
    /// R in bits per second.
    pub rate: u64,
    /// T.
    pub latency: Duration,
}

impl LatencyRate {
    /// Returns the server of a work-conserving link. `latency` is the delay that the host adds.
    #[must_use]
    pub const fn link(capacity: Capacity, latency: Duration) -> Self {
        Self { rate: capacity.bits_per_s(), latency }
    }

    /// Returns this server followed by `next`. The concatenation pays a burst only once, at the
    /// slower rate.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        let latency = self.latency.saturating_add(next.latency);
        Self { rate: self.rate.min(next.rate), latency }
    }

    /// Returns the delay bound h(α, β) for `traffic`, or `None` if its rate exceeds the service
    /// rate.
    #[must_use]
    pub fn delay(&self, traffic: &Traffic) -> Option<Duration> {
        let (rate, dual) = (u128::from(self.rate), traffic.dual());
        if traffic.rate() > self.rate || self.rate == 0 {
            return None;
        }
        let burst = nanobits(dual.peak_burst);
        let (bend, apart) = traffic.bend();
        let waits = if dual.peak_rate > self.rate && apart > 0 {
            // The backlog grows until the two pieces of the curve cross.
            let above = u128::from(dual.peak_rate - self.rate);
            (burst * apart + bend * above).div_ceil(apart * rate)
        } else {
            burst.div_ceil(rate)
        };
        Some(self.latency.saturating_add(Duration::from_nanos(narrow(waits))))
    }

    /// Returns the backlog bound v(α, β) for `traffic` in bytes, rounded up, or `None` if the
    /// backlog is unbounded.
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

    /// Returns the backlog in nanobits at the crossing of the curve's pieces, if it still grows
    /// until then.
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

    /// Returns α ⊘ β, the arrival curve at the next server, or `None` if the backlog is unbounded.
    #[must_use]
    pub fn output(&self, traffic: &Traffic) -> Option<Traffic> {
        if traffic.rate() > self.rate {
            return None;
        }
        // The steps of the output are not those of the input, later by the latency.
        let widened = traffic.delayed(self.latency).with_staircase(None);
        let Some(waiting) = self.grows_until_the_bend(traffic) else { return Some(widened) };
        let Dual { burst, rate, .. } = widened.dual();
        let peak_burst = narrow(waiting.div_ceil(NANOBITS)).min(burst);
        let peak_rate = self.rate.max(rate);
        Some(widened.with_dual(Dual { peak_burst, peak_rate, burst, rate }))
    }
}

/// The sum of the bursts and rates of several streams.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Sum {
    /// Σσ in bytes.
    pub burst: u64,
    /// Σρ in bits per second.
    pub rate: u64,
}

impl Sum {
    /// Returns the sum for `streams`.
    #[must_use]
    pub fn of(streams: &[Traffic]) -> Self {
        streams.iter().fold(Self::default(), |sum, stream| Self {
            burst: sum.burst.saturating_add(stream.burst()),
            rate: sum.rate.saturating_add(stream.rate()),
        })
    }
}

/// Returns the FIFO delay bound Σσ/C of all streams on a link, after one `blocking` packet of other
/// traffic. Returns `None` if their rate exceeds the capacity.
#[must_use]
pub fn fifo(link: LatencyRate, all: Sum, blocking: u64) -> Option<Duration> {
    static_priority(link, Sum::default(), all, blocking)
}

/// Returns the server that `others` leave to one stream if the service order is unknown, or `None`
/// if they leave no capacity.
#[must_use]
pub fn left_by(link: LatencyRate, others: Sum) -> Option<LatencyRate> {
    let rate = link.rate.checked_sub(others.rate).filter(|rate| *rate > 0)?;
    let waits =
        nanobits(others.burst) + u128::from(link.rate) * u128::from(link.latency.as_nanos());
    let latency = Duration::from_nanos(narrow(waits.div_ceil(u128::from(rate))));
    Some(LatencyRate { rate, latency })
}

/// Returns the delay bound of one level under non-preemptive static priority, with FIFO order
/// within the level. A packet waits for all higher levels and for one `lower` packet. Returns
/// `None` if the level's rate exceeds the remaining capacity.
#[must_use]
pub fn static_priority(link: LatencyRate, before: Sum, level: Sum, lower: u64) -> Option<Duration> {
    let rate = link.rate.checked_sub(before.rate).filter(|rate| *rate > 0)?;
    if level.rate > rate {
        return None;
    }
    let waits = nanobits(before.burst) + nanobits(lower) + nanobits(level.burst);
    // During the host's latency, traffic of the higher levels accumulates.
    let more = u128::from(before.rate) * u128::from(link.latency.as_nanos());
    let waits = narrow((waits + more).div_ceil(u128::from(rate)));
    Some(link.latency.saturating_add(Duration::from_nanos(waits)))
}

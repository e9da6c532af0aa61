//! RFC 2212, guaranteed service: the error terms of a path, and the delay, buffer and rate that
//! follow from them.

use super::LatencyRate;
use crate::traffic::{NANOBITS, Traffic, nanobits, narrow};
use paceline_sched::police::Dual;
use paceline_sched::{Capacity, Duration};

/// The error terms of one hop, or their sums over a path. A stream served at the rate R leaves at
/// most C/R + D later than from a wire of that rate.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ErrorTerms {
    /// C in bytes: the term that shrinks as the reserved rate grows.
    pub bytes: u64,
    /// D: the term that does not depend on the rate.
    pub time: Duration,
}

impl ErrorTerms {
    /// Returns the terms of a hop with weighted fair queueing: C is the stream's packet, D the
    /// transmission time of the longest packet on the link.
    #[must_use]
    pub const fn fair(packet: u64, longest: u64, capacity: Capacity) -> Self {
        Self { bytes: packet, time: capacity.time_for(longest) }
    }

    /// Returns the terms of a server with a known latency, which is D.
    #[must_use]
    pub const fn latency(server: LatencyRate) -> Self {
        Self { bytes: 0, time: server.latency }
    }

    /// Returns the sum with the terms of the next hop.
    #[must_use]
    pub const fn then(self, next: Self) -> Self {
        let bytes = self.bytes.saturating_add(next.bytes);
        Self { bytes, time: self.time.saturating_add(next.time) }
    }

    /// Returns the end-to-end delay bound at the reserved rate `rate`, or `None` if the rate is
    /// below the stream's rate.
    #[must_use]
    pub fn delay(self, traffic: &Traffic, rate: u64) -> Option<Duration> {
        let Dual { peak_burst, peak_rate, .. } = traffic.dual();
        if rate < traffic.rate() || rate == 0 {
            return None;
        }
        let fixed = nanobits(peak_burst) + nanobits(self.bytes);
        let (bend, apart) = traffic.bend();
        let reserved = u128::from(rate);
        let nanos = if peak_rate > rate && apart > 0 {
            let above = u128::from(peak_rate - rate);
            (bend * above).saturating_add(fixed.saturating_mul(apart)).div_ceil(apart * reserved)
        } else {
            fixed.div_ceil(reserved)
        };
        Some(self.time.saturating_add(Duration::from_nanos(narrow(nanos))))
    }

    /// Returns the buffer in bytes that a hop needs if these are the sums since the stream was last
    /// reshaped. Returns `None` if the rate is below the stream's rate.
    #[must_use]
    pub fn buffer(self, traffic: &Traffic, rate: u64) -> Option<u64> {
        let Dual { peak_burst, peak_rate, rate: sustained, .. } = traffic.dual();
        if rate < sustained || rate == 0 {
            return None;
        }
        let (bend, apart) = traffic.bend();
        // C/R + D in nanoseconds, as a fraction over R.
        let reserved = u128::from(rate);
        let errors = nanobits(self.bytes) + u128::from(self.time.as_nanos()) * reserved;
        // (b − M)/(p − r) < C/R + D, without a division.
        let soon = bend.saturating_mul(reserved) < errors.saturating_mul(apart);
        let served = match (soon, peak_rate > rate) {
            (true, _) => u128::from(sustained),
            (false, true) => reserved,
            (false, false) => u128::from(peak_rate),
        };
        let above = u128::from(peak_rate).saturating_sub(served);
        let risen = if apart == 0 { 0 } else { (bend * above).div_ceil(apart) };
        let grown = errors.saturating_mul(served).div_ceil(reserved);
        Some(narrow((nanobits(peak_burst) + risen).saturating_add(grown).div_ceil(NANOBITS)))
    }

    /// Returns the least rate, up to `most`, at which the path's delay bound is at most `within`.
    /// Searches by bisection. Returns `None` if no rate suffices.
    #[must_use]
    pub fn rate_for(self, traffic: &Traffic, within: Duration, most: u64) -> Option<u64> {
        let keeps = |rate| self.delay(traffic, rate).is_some_and(|delay| delay <= within);
        if !keeps(most) {
            return None;
        }
        let (mut low, mut high) = (traffic.rate().max(1), most);
        while low < high {
            let middle = low + (high - low) / 2;
            if keeps(middle) { high = middle } else { low = middle + 1 }
        }
        Some(high)
    }

    /// Returns the remaining slack of the receiver if a hop reserves `out` instead of `asked`, or
    /// `None` if the slack is too small. These are the sums from the source up to and including the
    /// hop.
    #[must_use]
    pub fn take_slack(
        self,
        traffic: &Traffic,
        asked: u64,
        out: u64,
        slack: Duration,
    ) -> Option<Duration> {
        let cost = |rate: u64| {
            let bytes = nanobits(traffic.burst()) + nanobits(self.bytes);
            (rate > 0).then(|| bytes.div_ceil(u128::from(rate)))
        };
        let more = cost(out)?.saturating_sub(cost(asked)?);
        let left = u128::from(slack.as_nanos()).checked_sub(more)?;
        Some(Duration::from_nanos(narrow(left)))
    }
}

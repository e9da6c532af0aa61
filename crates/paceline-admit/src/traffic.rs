//! Traffic specifications: arrival curves of two linear pieces, from which all bounds are computed.

use crate::error::DemandError;
use crate::staircase::Staircase;
use core::fmt;
use paceline_sched::Duration;
use paceline_sched::curve::RATE_MAX;
use paceline_sched::police::{Constraint, ConstraintError, Dual, PolicedUnit};

/// Nanobits per byte: the product of bits per second and nanoseconds is a whole number of nanobits.
pub(crate) const NANOBITS: u128 = 8_000_000_000;
pub(crate) const NANOS_PER_S: u128 = 1_000_000_000;

/// Converts bytes to nanobits.
pub(crate) const fn nanobits(bytes: u64) -> u128 {
    bytes as u128 * NANOBITS
}

/// Converts to `u64`, saturating at [`u64::MAX`].
pub(crate) fn narrow(wide: u128) -> u64 {
    u64::try_from(wide).unwrap_or(u64::MAX)
}

/// The arrival curve min(M + p t, b + r t) in any closed interval of length t, with a maximum
/// packet length. This is RFC 2212's TSpec, enforced by a dual token bucket at the source.
///
/// Traffic of a contract ([`Traffic::periodic`]) also has at most one sample per period: the exact staircase below
/// the curve, which links enforce by the contract's period. Tests by deadlines use the lower of both.
///
/// Rates are whole bits per second, rounded up when computed: a stream is charged at most 1 bit/s
/// too much.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Traffic {
    dual: Dual,
    packet: u64,
    packets_per_s: u64,
    /// The sustained piece bounds several samples together, not each by its period.
    varies: bool,
    /// The samples of a contract.
    staircase: Option<Staircase>,
}

impl Traffic {
    /// The largest burst: 1 TB. With larger ones, sums over many streams could overflow 128 bits.
    pub const BURST_MAX: u64 = 1 << 40;
    /// The maximum packet rate per second.
    pub const PACKETS_MAX: u64 = 1 << 40;

    /// Creates traffic with the dual bucket `dual` in bytes and bits per second. Packets have at
    /// most `packet` bytes, at a sustained rate of at most `packets_per_s`.
    ///
    /// # Errors
    /// [`DemandError`] if a parameter is 0 or out of range, the peak rate is below the rate, a
    /// packet is larger than the burst at the peak rate, or the packet rate is too low for the bit
    /// rate.
    pub fn new(dual: Dual, packet: u64, packets_per_s: u64) -> Result<Self, DemandError> {
        Constraint::dual(PolicedUnit::Bytes, dual).map_err(DemandError::Constraint)?;
        for (what, value) in [("peak rate", dual.peak_rate), ("rate", dual.rate)] {
            if value > RATE_MAX {
                return Err(DemandError::TooMuch { what, value, max: RATE_MAX, unit: "bit/s" });
            }
        }
        let (what, max, unit) = ("burst", Self::BURST_MAX, "bytes");
        if dual.burst > max {
            return Err(DemandError::TooMuch { what, value: dual.burst, max, unit });
        }
        let (what, max, unit) = ("number of packets", Self::PACKETS_MAX, "packets/s");
        if packets_per_s > max {
            return Err(DemandError::TooMuch { what, value: packets_per_s, max, unit });
        }
        if packet == 0 || packet > dual.peak_burst {
            return Err(DemandError::Packet { packet, burst: dual.peak_burst });
        }
        // Packets of one byte less may need one more than the quotient, so it is rounded down.
        let least = dual.rate / packet.saturating_mul(8);
        if packets_per_s < least {
            return Err(DemandError::TooFewPackets { packets_per_s, least });
        }
        Ok(Self { dual, packet, packets_per_s, varies: false, staircase: None })
    }

    /// Marks traffic of samples that vary in size: the peak piece is one of the longest samples in each period, and
    /// the sustained piece bounds what they have together.
    #[must_use]
    pub const fn varying(mut self, varies: bool) -> Self {
        self.varies = varies;
        self
    }

    /// Returns true if the samples vary in size ([`Self::varying`]).
    #[must_use]
    pub const fn varies(&self) -> bool {
        self.varies
    }

    /// Creates traffic of a leaky bucket σ + ρ t, in packets of at most `packet` bytes that are on
    /// average no shorter.
    ///
    /// # Errors
    /// As [`Traffic::new`].
    pub fn leaky(burst: u64, rate: u64, packet: u64) -> Result<Self, DemandError> {
        let dual = Dual { peak_burst: burst, peak_rate: rate, burst, rate };
        let packets = rate.div_ceil(packet.max(1).saturating_mul(8));
        Self::new(dual, packet, packets)
    }

    /// Creates the traffic of a contract ([`paceline_sched::Contract`]): one sample of at most
    /// `bytes` per `period`, at most `jitter` early, in packets of at most `packet` bytes.
    ///
    /// The result is the least curve of two pieces above the exact staircase
    /// ⌊(t + jitter)/period⌋ + 1.
    ///
    /// # Errors
    /// As [`Traffic::new`], and [`DemandError::ZeroPeriod`].
    pub fn periodic(
        bytes: u64,
        period: Duration,
        jitter: Duration,
        packet: u64,
    ) -> Result<Self, DemandError> {
        Self::spaced(bytes, (period, jitter), period.saturating_sub(jitter), packet)
    }

    /// Creates traffic as [`Self::periodic`] does, but with samples at least `gap` apart, however
    /// early `(period, jitter)` allows them.
    ///
    /// # Errors
    /// As [`Self::periodic`].
    pub fn spaced(
        bytes: u64,
        (period, jitter): (Duration, Duration),
        gap: Duration,
        packet: u64,
    ) -> Result<Self, DemandError> {
        let (every, early) = (u128::from(period.as_nanos()), u128::from(jitter.as_nanos()));
        if every == 0 {
            return Err(DemandError::ZeroPeriod);
        }
        if bytes == 0 {
            return Err(DemandError::Constraint(ConstraintError::ZeroBurst {
                what: "sample",
                unit: PolicedUnit::Bytes,
            }));
        }
        let rate = narrow(nanobits(bytes).div_ceil(every));
        let more = narrow((u128::from(bytes) * early).div_ceil(every));
        let burst = bytes.saturating_add(more);
        let dual = match u128::from(gap.as_nanos()) {
            // The second sample may follow the first after `gap`.
            gap if gap > 0 && early > 0 => {
                let peak_rate = narrow(nanobits(bytes).div_ceil(gap)).min(RATE_MAX.max(rate));
                if nanobits(bytes).div_ceil(gap) > u128::from(peak_rate) {
                    Dual { peak_burst: burst, peak_rate: rate, burst, rate }
                } else {
                    Dual { peak_burst: bytes, peak_rate, burst, rate }
                }
            }
            _ => Dual { peak_burst: burst, peak_rate: rate, burst, rate },
        };
        let packet = packet.min(bytes);
        let pieces = u128::from(bytes.div_ceil(packet.max(1)));
        let packets = narrow((pieces * NANOS_PER_S).div_ceil(every));
        let staircase = Staircase { bytes, period, early: jitter, clock: period };
        Ok(Self { staircase: Some(staircase), ..Self::new(dual, packet, packets)? })
    }

    /// Sets the period with which the disciplines of links re-space samples and compute virtual deadlines, if it is
    /// shorter than the source's. It has no effect if the traffic is not that of a contract.
    #[must_use]
    pub fn with_clock(mut self, period: Duration) -> Self {
        if let Some(staircase) = &mut self.staircase {
            staircase.clock = period.min(staircase.period);
        }
        self
    }

    /// Returns the traffic with the curve alone, for samples that are delayed by different times before the first link.
    #[must_use]
    pub const fn without_samples(mut self) -> Self {
        self.staircase = None;
        self
    }

    /// Returns the traffic with another curve below that of the samples, of `packets_per_s` packets per second.
    ///
    /// # Errors
    /// As [`Traffic::new`].
    pub fn with_long_term(&self, dual: Dual, packets_per_s: u64) -> Result<Self, DemandError> {
        let traffic = Self::new(dual, self.packet, packets_per_s)?;
        Ok(Self { staircase: self.staircase, ..traffic })
    }

    /// Limits the traffic to these samples. The caller must ensure valid values.
    pub(crate) const fn with_staircase(mut self, staircase: Option<Staircase>) -> Self {
        self.staircase = staircase;
        self
    }

    /// Returns the length of the longest sample in bytes: that of a contract, or all that may arrive at once.
    pub(crate) fn sample(&self) -> u64 {
        self.staircase.map_or(self.dual.peak_burst, |samples| samples.bytes)
    }

    /// Returns the samples of a contract.
    pub(crate) const fn staircase(&self) -> Option<Staircase> {
        self.staircase
    }

    /// Returns the traffic of the longest sample in each period, if the samples vary in size.
    pub(crate) fn peak(&self) -> Self {
        let Dual { peak_burst, peak_rate, .. } = self.dual;
        if !self.varies {
            return *self;
        }
        let dual = Dual { peak_burst, peak_rate, burst: peak_burst, rate: peak_rate };
        let packets = peak_rate.div_ceil(self.packet.max(1).saturating_mul(8));
        let packets_per_s = self.packets_per_s.max(packets);
        Self { dual, packets_per_s, varies: false, ..*self }
    }

    /// Returns p, M, r and b in bytes and bits per second, which a policer enforces.
    #[must_use]
    pub const fn dual(&self) -> Dual {
        self.dual
    }

    /// Returns the maximum packet length in bytes.
    #[must_use]
    pub const fn packet(&self) -> u64 {
        self.packet
    }

    /// Returns b, the burst at the sustained rate, in bytes.
    #[must_use]
    pub const fn burst(&self) -> u64 {
        self.dual.burst
    }

    /// Returns r, the sustained rate in bits per second.
    #[must_use]
    pub const fn rate(&self) -> u64 {
        self.dual.rate
    }

    /// Returns the sustained packet rate per second.
    #[must_use]
    pub const fn packets_per_s(&self) -> u64 {
        self.packets_per_s
    }

    /// Returns A*(t) in bytes, rounded down, because only whole bytes arrive.
    #[must_use]
    pub fn bound(&self, time: Duration) -> u64 {
        narrow(self.nanobits_in(u128::from(time.as_nanos())) / NANOBITS)
    }

    /// Returns the exact A*(t) in nanobits.
    pub(crate) fn nanobits_in(&self, nanos: u128) -> u128 {
        let peak = nanobits(self.dual.peak_burst)
            .saturating_add(u128::from(self.dual.peak_rate).saturating_mul(nanos));
        let sustained = nanobits(self.dual.burst)
            .saturating_add(u128::from(self.dual.rate).saturating_mul(nanos));
        peak.min(sustained)
    }

    /// Returns (b − M, p − r) in nanobits and bits per second. Their quotient is the time at which
    /// the pieces cross.
    pub(crate) fn bend(&self) -> (u128, u128) {
        let Dual { peak_burst, peak_rate, burst, rate } = self.dual;
        (nanobits(burst - peak_burst), u128::from(peak_rate - rate))
    }

    /// Returns the output traffic of a server with a delay of at most `delay`: A*(t + delay).
    #[must_use]
    pub fn delayed(&self, delay: Duration) -> Self {
        let Dual { peak_burst, peak_rate, burst, rate } = self.dual;
        let nanos = u128::from(delay.as_nanos());
        let grown = |from: u64, rate: u64| {
            narrow((nanobits(from) + u128::from(rate) * nanos).div_ceil(NANOBITS))
        };
        let burst = grown(burst, rate).min(Self::BURST_MAX);
        let peaked = grown(peak_burst, peak_rate);
        let dual = if peaked >= burst {
            Dual { peak_burst: burst, peak_rate: rate, burst, rate }
        } else {
            Dual { peak_burst: peaked, peak_rate, burst, rate }
        };
        Self { dual, staircase: self.staircase.map(|it| it.delayed(delay)), ..*self }
    }

    /// Replaces the dual bucket. The caller must ensure valid values.
    pub(crate) const fn with_dual(mut self, dual: Dual) -> Self {
        self.dual = dual;
        self
    }

    /// Returns the least traffic that is above both.
    #[must_use]
    pub fn join(&self, other: &Self) -> Self {
        let (a, b) = (self.dual, other.dual);
        let dual = Dual {
            peak_burst: a.peak_burst.max(b.peak_burst),
            peak_rate: a.peak_rate.max(b.peak_rate),
            burst: a.burst.max(b.burst),
            rate: a.rate.max(b.rate),
        };
        Self {
            dual,
            packet: self.packet.max(other.packet),
            packets_per_s: self.packets_per_s.max(other.packets_per_s),
            varies: self.varies || other.varies,
            staircase: self.staircase.zip(other.staircase).map(|(one, other)| one.join(&other)),
        }
    }

    /// Returns the traffic of two streams together, up to the limits of each parameter.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        let (a, b) = (self.dual, other.dual);
        let burst = |one: u64, other: u64| one.saturating_add(other).min(Self::BURST_MAX);
        let rate = |one: u64, other: u64| one.saturating_add(other).min(RATE_MAX);
        let dual = Dual {
            peak_burst: burst(a.peak_burst, b.peak_burst),
            peak_rate: rate(a.peak_rate, b.peak_rate),
            burst: burst(a.burst, b.burst),
            rate: rate(a.rate, b.rate),
        };
        let packets = self.packets_per_s.saturating_add(other.packets_per_s);
        let both = self.staircase.zip(other.staircase);
        Self {
            dual,
            packet: self.packet.max(other.packet),
            packets_per_s: packets.min(Self::PACKETS_MAX),
            varies: self.varies || other.varies,
            staircase: both.map(|(one, other)| one.plus(&other, Self::BURST_MAX)),
        }
    }

    /// Returns the traffic with its rates scaled by `part`/`whole`, at least 1 bit/s. Bursts do not
    /// change.
    pub(crate) fn slower(&self, part: u64, whole: u64) -> Self {
        let scale = |rate: u64| scaled(rate, part, whole);
        let Dual { peak_burst, peak_rate, burst, rate } = self.dual;
        let dual = Dual { peak_burst, peak_rate: scale(peak_rate), burst, rate: scale(rate) };
        let staircase = self.staircase.map(|it| it.slower(part, whole));
        Self { dual, packets_per_s: scale(self.packets_per_s), staircase, ..*self }
    }

    /// Returns the traffic with rates, bursts and packets scaled by `part`/`whole`.
    pub(crate) fn smaller(&self, part: u64, whole: u64) -> Self {
        let scale = |value: u64| scaled(value, part, whole);
        let Dual { peak_burst, peak_rate, burst, rate } = self.dual;
        let dual = Dual {
            peak_burst: scale(peak_burst),
            peak_rate: scale(peak_rate),
            burst: scale(burst),
            rate: scale(rate),
        };
        // A sample of one packet remains one packet, so the packet rate does not decrease.
        let staircase = self.staircase.map(|it| Staircase { bytes: scale(it.bytes), ..it });
        Self { dual, packet: self.packet.min(dual.peak_burst), staircase, ..*self }
    }
}

/// Returns `value` scaled by `part`/`whole`, rounded up and at least 1.
fn scaled(value: u64, part: u64, whole: u64) -> u64 {
    let product = u128::from(value) * u128::from(part);
    narrow(product.div_ceil(u128::from(whole.max(1)))).max(1)
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Dual { peak_burst, peak_rate, burst, rate } = self.dual;
        write!(
            f,
            "{peak_burst} bytes at {peak_rate} bit/s, {burst} bytes at {rate} bit/s, packets of {} \
             bytes",
            self.packet
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_periodic_stream_is_below_its_curve_and_touches_it() {
        for (bytes, period, jitter) in [
            (1_000, 7_000_003, 0),
            (1_000, 7_000_003, 3_500_000),
            (9, 1_000, 999),
            (9, 1_000, 7_777),
        ] {
            let (every, early) = (Duration::from_nanos(period), Duration::from_nanos(jitter));
            let traffic = Traffic::periodic(bytes, every, early, 500).unwrap();
            let mut touched = 0;
            for step in 0..40u64 {
                // At the instant of the next possible arrival, and one nanosecond before it.
                for t in [
                    (step * period).saturating_sub(jitter),
                    step * period + period - jitter % period - 1,
                ] {
                    let came = ((t + jitter) / period + 1) * bytes;
                    let bound = traffic.bound(Duration::from_nanos(t));
                    assert!(bound >= came, "{bytes} {period} {jitter} at {t}: {bound} < {came}");
                    touched += u64::from(bound - came <= 1);
                }
            }
            assert!(touched > 20, "{bytes} {period} {jitter}: {touched}");
        }
    }

    #[test]
    fn a_delay_shifts_the_arrival_curve_by_its_length() {
        let dual =
            Dual { peak_burst: 1_500, peak_rate: 100_000_000, burst: 22_500, rate: 10_000_000 };
        let traffic = Traffic::new(dual, 1_500, 1_000).unwrap();
        for delay in [0, 1, 1_000_000, 1_866_666, 1_866_667, 5_000_000].map(Duration::from_nanos) {
            let later = traffic.delayed(delay);
            for t in [0, 1, 400_000, 1_866_666, 1_866_668, 9_000_000].map(Duration::from_nanos) {
                let (widened, shifted) = (later.bound(t), traffic.bound(t.saturating_add(delay)));
                assert!(widened >= shifted && widened <= shifted + 1_600, "{delay} {t}");
            }
        }
    }

    #[test]
    fn invalid_traffic_is_refused_by_name() {
        let text = |traffic: Result<Traffic, DemandError>| traffic.unwrap_err().to_string();
        assert!(text(Traffic::leaky(0, 1, 1)).contains("burst"));
        assert!(text(Traffic::leaky(1, 0, 1)).contains("rate"));
        assert!(text(Traffic::leaky(10, 8, 11)).contains("packet of 11 bytes"));
        assert!(text(Traffic::leaky(1 << 41, 8, 1)).contains("burst of 2199023255552 bytes"));
        assert!(text(Traffic::leaky(10, RATE_MAX + 1, 1)).contains("bit/s"));
        let none = Duration::ZERO;
        assert!(text(Traffic::periodic(1, none, none, 1)).contains("period is 0"));
        assert!(text(Traffic::periodic(0, Duration::from_secs(1), none, 1)).contains("sample"));
        let dual = Dual { peak_burst: 100, peak_rate: 8_000, burst: 100, rate: 8_000 };
        assert!(text(Traffic::new(dual, 100, 9)).contains("at least 10"));
        let peak = Dual { peak_rate: 7_999, ..dual };
        assert!(Traffic::new(peak, 100, 10).is_err());
    }
}

//! Service curves of two linear pieces: the service in bytes that a class must have received by a given
//! time after it became backlogged.
//!
//! Paper: Stoica, Zhang & Ng, "A Hierarchical Fair Service Curve Algorithm for Link-Sharing, Real-Time
//! and Priority Services", SIGCOMM 1997, section II. A curve with the steeper piece first (*concave*)
//! gives a class with a low rate a short delay. A curve with the flatter piece first (*convex*) delays
//! its service at first.
//!
//! All arithmetic is exact. Rates are whole bits per second and times are whole nanoseconds, so their
//! product is a whole number of nanobits (10⁻⁹ bit), stored in 128 bits. Only results are rounded: bytes
//! down, times up.

use crate::time::Duration;
use core::fmt;
use core::num::NonZeroU64;

mod admission;
mod runtime;
#[cfg(test)]
mod tests;

pub use admission::{FitError, fits};
pub(crate) use runtime::RuntimeCurve;

/// The number of nanobits in a byte. In nanobits, a product of bits per second and nanoseconds is exact.
pub(crate) const NANOBITS_PER_BYTE: u128 = 8_000_000_000;

/// The highest rate of a curve in bits per second: 10 Tbit/s.
pub const RATE_MAX: u64 = 10_000_000_000_000;

/// A service curve of two pieces: `m1` bits per second for the first `d`, `m2` from then on.
///
/// `S(t) = m1·t` for `t ≤ d`, and `m1·d + m2·(t − d)` after it. `m1` is from 0 to [`RATE_MAX`], `m2`
/// from 1 bit/s to [`RATE_MAX`]. A curve of one piece always has `d` = 0 and `m1` = `m2`, whichever
/// constructor made it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Curve {
    m1: u64,
    d: Duration,
    m2: NonZeroU64,
}

impl Curve {
    /// Returns a curve of `m1` bits per second for the first `d`, and `m2` bits per second from then on.
    ///
    /// # Errors
    /// [`CurveError::Nothing`] if no piece serves anything, [`CurveError::Ends`] if only `m2` is 0, and
    /// [`CurveError::RateAboveMax`] if a rate is above [`RATE_MAX`].
    pub const fn two_piece(m1: u64, d: Duration, m2: u64) -> Result<Self, CurveError> {
        let Some(rate) = NonZeroU64::new(m2) else {
            if m1 == 0 || d.is_zero() {
                return Err(CurveError::Nothing);
            }
            return Err(CurveError::Ends { m1, d });
        };
        if m2 > RATE_MAX {
            return Err(CurveError::RateAboveMax { rate: "m2", bits_per_s: m2 });
        }
        if d.is_zero() || m1 == m2 {
            return Ok(Self { m1: m2, d: Duration::ZERO, m2: rate });
        }
        if m1 > RATE_MAX {
            return Err(CurveError::RateAboveMax { rate: "m1", bits_per_s: m1 });
        }
        Ok(Self { m1, d, m2: rate })
    }

    /// Returns a curve of `bits_per_s` bits per second from the start.
    ///
    /// # Errors
    /// The same as [`Curve::two_piece`].
    pub const fn linear(bits_per_s: u64) -> Result<Self, CurveError> {
        Self::two_piece(bits_per_s, Duration::ZERO, bits_per_s)
    }

    /// Returns the curve that serves a burst of `umax` bytes within `dmax`, and `bits_per_s` in the long
    /// run, as in tc-hfsc(8).
    ///
    /// If the burst needs more than the rate, the first piece is steeper than the second. If it needs
    /// less, nothing is served before `dmax − umax ÷ rate`. Rounding never serves the burst later than
    /// `dmax` or a byte short.
    ///
    /// # Errors
    /// The same as [`Curve::two_piece`], and [`CurveError::NoTime`] if `dmax` is 0 and `umax` is not.
    pub const fn burst(umax: u64, dmax: Duration, bits_per_s: u64) -> Result<Self, CurveError> {
        let burst = umax as u128 * NANOBITS_PER_BYTE;
        if dmax.is_zero() {
            if umax == 0 {
                return Self::linear(bits_per_s);
            }
            return Err(CurveError::NoTime { umax });
        }
        if bits_per_s == 0 && umax == 0 {
            return Err(CurveError::Nothing);
        }
        if burst > bits_per_s as u128 * dmax.as_nanos() as u128 {
            let m1 = saturate(burst.div_ceil(dmax.as_nanos() as u128));
            return Self::two_piece(m1, dmax, bits_per_s);
        }
        // `busy` is at most `dmax`, by the comparison above. The rate is not 0 here: 0 ≥ burst > 0 is
        // impossible, and an empty burst without a rate was rejected.
        let busy = Duration::from_nanos(saturate(burst.div_ceil(bits_per_s as u128)));
        Self::two_piece(0, dmax.saturating_sub(busy), bits_per_s)
    }

    /// Returns the rate of the first piece in bits per second.
    #[must_use]
    pub const fn m1(&self) -> u64 {
        self.m1
    }

    /// Returns the duration of the first piece; zero for a curve of one piece.
    #[must_use]
    pub const fn d(&self) -> Duration {
        self.d
    }

    /// Returns the rate of the second piece, the long-term rate, in bits per second.
    #[must_use]
    pub const fn m2(&self) -> u64 {
        self.m2.get()
    }

    /// Returns true if the first piece is steeper than the second.
    #[must_use]
    pub const fn is_concave(&self) -> bool {
        self.m1 > self.m2.get()
    }

    /// Returns S(`time`) in whole bytes, rounded down, at most [`u64::MAX`].
    #[must_use]
    pub const fn bytes_at(&self, time: Duration) -> u64 {
        saturate(self.nanobits_at(time.as_nanos() as u128) / NANOBITS_PER_BYTE)
    }

    /// Returns S⁻¹(`bytes`): the shortest time after which `bytes` bytes are served, rounded up, at most
    /// [`Duration::MAX`].
    #[must_use]
    pub const fn time_for(&self, bytes: u64) -> Duration {
        let wanted = bytes as u128 * NANOBITS_PER_BYTE;
        let first = self.m1 as u128 * self.d.as_nanos() as u128;
        let nanos = if wanted > first || self.m1 == self.m2() {
            let rest = (wanted - first).div_ceil(self.m2() as u128);
            rest.saturating_add(self.d.as_nanos() as u128)
        } else if wanted == 0 {
            0
        } else {
            wanted.div_ceil(self.m1 as u128)
        };
        Duration::from_nanos(saturate(nanos))
    }

    /// Returns S(`nanos`) in nanobits, exact unless it saturates.
    const fn nanobits_at(&self, nanos: u128) -> u128 {
        let d = self.d.as_nanos() as u128;
        if nanos <= d {
            return (self.m1 as u128).saturating_mul(nanos);
        }
        let rest = (self.m2() as u128).saturating_mul(nanos - d);
        (self.m1 as u128 * d).saturating_add(rest)
    }

    /// Returns the distance in nanobits between the origin and the second piece's line extended back to
    /// time 0.
    ///
    /// The line passes above the origin for a concave curve, and below it for a convex one.
    const fn lift(&self) -> u128 {
        self.m1.abs_diff(self.m2()) as u128 * self.d.as_nanos() as u128
    }
}

impl fmt::Display for Curve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.d.is_zero() {
            return write!(f, "{} bit/s", self.m2);
        }
        write!(f, "{} bit/s for {}, then {} bit/s", self.m1, self.d, self.m2)
    }
}

/// The reasons for rejecting a curve.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum CurveError {
    /// The curve never serves a byte.
    Nothing,
    /// The second piece is flat, so service would end for good.
    Ends {
        /// The rate of the first piece, in bits per second.
        m1: u64,
        /// The duration of the first piece.
        d: Duration,
    },
    /// A rate is above [`RATE_MAX`].
    RateAboveMax {
        /// The name of the rate: `m1` or `m2`.
        rate: &'static str,
        /// The rejected rate in bits per second.
        bits_per_s: u64,
    },
    /// The burst has no time in which to be served.
    NoTime {
        /// The burst in bytes.
        umax: u64,
    },
}

impl fmt::Display for CurveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => write!(
                f,
                "service curve of 0 bit/s: it serves nothing; m2 must be from 1 to {RATE_MAX} bit/s"
            ),
            Self::Ends { m1, d } => write!(
                f,
                "service curve of {m1} bit/s for {d}, then 0 bit/s: service would end for good; m2 must \
                 be from 1 to {RATE_MAX} bit/s"
            ),
            Self::RateAboveMax { rate, bits_per_s } => write!(
                f,
                "service curve with {rate} = {bits_per_s} bit/s: at most {RATE_MAX} bit/s; rates are \
                 in bits, not bytes, and a burst needs time enough"
            ),
            Self::NoTime { umax } => write!(
                f,
                "service curve with a burst of {umax} bytes within 0 ns: dmax must be at least 1 ns, or \
                 umax 0 for a curve of one piece"
            ),
        }
    }
}

impl core::error::Error for CurveError {}

/// Converts the number, saturating at [`u64::MAX`].
pub(crate) const fn saturate(wide: u128) -> u64 {
    if wide > u64::MAX as u128 {
        return u64::MAX;
    }
    #[expect(clippy::cast_possible_truncation, reason = "compared with u64::MAX above")]
    {
        wide as u64
    }
}

//! The capacity of a link.

use crate::time::Duration;
use crate::units::{self, UnitError};
use core::fmt;
use core::str::FromStr;

/// The capacity of a link in bytes per second on the wire, headers included; never zero.
///
/// A capacity is configured or measured, never assumed.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Capacity(u64);

/// The error for a capacity of less than one byte per second.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ZeroCapacity;

impl fmt::Display for ZeroCapacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "capacity is 0 bit/s: must be at least 8 bit/s; omit it for a link without a limit",
        )
    }
}

impl core::error::Error for ZeroCapacity {}

/// The reasons for rejecting a text as a capacity.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum CapacitySyntax {
    /// The text is not a number with a unit of rate.
    Form(UnitError),
    /// The capacity is less than one byte per second.
    Zero(ZeroCapacity),
}

impl fmt::Display for CapacitySyntax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form(error) => error.fmt(f),
            Self::Zero(zero) => zero.fmt(f),
        }
    }
}

impl core::error::Error for CapacitySyntax {}

impl FromStr for Capacity {
    type Err = CapacitySyntax;

    /// Parses a number with a unit of rate: `2mbit`, `1.5 Mbit/s`, `250kB/s`.
    fn from_str(text: &str) -> Result<Self, CapacitySyntax> {
        let bits = units::rate(text).map_err(CapacitySyntax::Form)?;
        Self::from_bits_per_s(bits).map_err(CapacitySyntax::Zero)
    }
}

impl Capacity {
    /// Returns a capacity of `bytes` bytes per second.
    ///
    /// # Errors
    /// [`ZeroCapacity`] if `bytes` is 0.
    pub const fn from_bytes_per_s(bytes: u64) -> Result<Self, ZeroCapacity> {
        if bytes == 0 { Err(ZeroCapacity) } else { Ok(Self(bytes)) }
    }

    /// Returns a capacity of `bits` bits per second, rounded down to whole bytes.
    ///
    /// # Errors
    /// [`ZeroCapacity`] if that is less than one byte per second.
    pub const fn from_bits_per_s(bits: u64) -> Result<Self, ZeroCapacity> {
        Self::from_bytes_per_s(bits / 8)
    }

    /// Returns the capacity in bytes per second.
    #[must_use]
    pub const fn bytes_per_s(self) -> u64 {
        self.0
    }

    /// Returns the capacity in bits per second.
    #[must_use]
    pub const fn bits_per_s(self) -> u64 {
        self.0.saturating_mul(8)
    }

    /// Returns the transmission time of `bytes` bytes, rounded up.
    #[must_use]
    pub const fn time_for(self, bytes: u64) -> Duration {
        // The product usually fits in 64 bits, and a 64-bit division is several times faster.
        if let Some(product) = bytes.checked_mul(1_000_000_000) {
            return Duration::from_nanos(product.div_ceil(self.0));
        }
        let nanos = (bytes as u128 * 1_000_000_000).div_ceil(self.0 as u128);
        if nanos > u64::MAX as u128 {
            return Duration::MAX;
        }
        #[expect(clippy::cast_possible_truncation, reason = "compared with u64::MAX above")]
        Duration::from_nanos(nanos as u64)
    }

    /// Returns the number of whole bytes that the link transmits in `time`, rounded down.
    #[must_use]
    pub const fn bytes_in(self, time: Duration) -> u64 {
        if let Some(product) = self.0.checked_mul(time.as_nanos()) {
            return product / 1_000_000_000;
        }
        let bytes = self.0 as u128 * time.as_nanos() as u128 / 1_000_000_000;
        if bytes > u64::MAX as u128 {
            return u64::MAX;
        }
        #[expect(clippy::cast_possible_truncation, reason = "compared with u64::MAX above")]
        {
            bytes as u64
        }
    }
}

impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.bits_per_s();
        let (unit, name) = match bits {
            0..=999 => return write!(f, "{bits} bit/s"),
            1_000..=999_999 => (1_000, "kbit/s"),
            1_000_000..=999_999_999 => (1_000_000, "Mbit/s"),
            _ => (1_000_000_000, "Gbit/s"),
        };
        match bits % unit * 100 / unit {
            0 => write!(f, "{} {name}", bits / unit),
            cents => write!(f, "{}.{cents:02} {name}", bits / unit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn time_rounds_up_and_bytes_round_down() {
        let thin = Capacity::from_bits_per_s(2_000_000).unwrap();
        assert_eq!(thin.time_for(1_250), Duration::from_millis(5));
        assert_eq!(thin.time_for(1), Duration::from_nanos(4_000));
        assert_eq!(thin.bytes_in(Duration::from_millis(2)), 500);
        let odd = Capacity::from_bytes_per_s(3).unwrap();
        assert_eq!(odd.time_for(1), Duration::from_nanos(333_333_334));
        assert_eq!(odd.bytes_in(Duration::from_nanos(333_333_333)), 0);
        assert_eq!(odd.time_for(u64::MAX), Duration::MAX);
        assert_eq!(odd.bytes_in(Duration::MAX), 55_340_232_221);
    }

    #[test]
    fn a_capacity_of_zero_is_refused() {
        assert_eq!(Capacity::from_bytes_per_s(0), Err(ZeroCapacity));
        assert_eq!(Capacity::from_bits_per_s(7), Err(ZeroCapacity));
        assert!(ZeroCapacity.to_string().contains("at least 8 bit/s"));
        assert_eq!(Capacity::from_bits_per_s(2_000_000).unwrap().to_string(), "2 Mbit/s");
        assert_eq!(Capacity::from_bits_per_s(1_544_000).unwrap().to_string(), "1.54 Mbit/s");
    }

    fn bits(text: &str) -> u64 {
        text.parse::<Capacity>().unwrap().bits_per_s()
    }

    #[test]
    fn capacities_have_units() {
        assert_eq!(bits("2mbit"), 2_000_000);
        assert_eq!(bits("2 Mbit/s"), 2_000_000);
        assert_eq!(bits("1.544Mbit"), 1_544_000);
        assert_eq!(bits("64kbit"), 64_000);
        assert_eq!(bits("8bit"), 8);
        assert_eq!(bits("1gbit"), 1_000_000_000);
        assert_eq!(bits("250kB/s"), 2_000_000);
        assert_eq!(bits("1.5MB/s"), 12_000_000);
        for wrong in ["2", "mbit", "-2mbit", "2kb", "2kbps", "1e6bit", "2..0mbit", ".mbit", ""] {
            let error = wrong.parse::<Capacity>().unwrap_err().to_string();
            assert!(error.contains("(allowed: bit, kbit, mbit, gbit, B/s,"), "{wrong}: {error}");
        }
        assert!("99999999999gbit".parse::<Capacity>().is_err());
        let zero = "0mbit".parse::<Capacity>().unwrap_err().to_string();
        assert!(zero.starts_with("capacity is 0 bit/s: must be"), "{zero}");
    }
}

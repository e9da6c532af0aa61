//! NTPv4 (RFC 5905).
//!
//! * [`packet`]: the 48 bytes of a packet, and its formats of time.
//! * [`keys`]: symmetric keys, and the files that contain them.
//! * [`seal`]: the authentication code at the end of a packet.
//! * [`filter`]: the clock filter of one server.
//! * [`select`]: intersection, clustering and combination of several servers.
//! * [`source`]: the client's state of one server: polls, bursts, back-off and the checks of its answers.
//!
//! Offsets are those of UTC from the host's raw clock, in nanoseconds, instead of those from a clock that is being
//! adjusted. A change of the adjustment therefore never changes a stored measurement.

pub mod filter;
pub mod keys;
pub mod packet;
pub mod seal;
pub mod select;
pub mod source;

/// The growth of an error by the age of a measurement, in picoseconds per second: 15 ppm (PHI of RFC 5905).
pub const PHI: u64 = 15_000_000;

/// The largest frequency error of a host's clock, in picoseconds per second: 500 ppm (RFC 5905, figure 27).
pub const FREQUENCY_MAX: u64 = 500_000_000;

/// The largest root distance of a usable server, in nanoseconds (MAXDIST).
pub const DISTANCE_MAX: u64 = 1_000_000_000;

/// The stratum of a server that is not synchronised (MAXSTRAT).
pub const STRATUM_MAX: u8 = 16;

/// Returns the growth of an error over `nanos`, rounded up, for a frequency error of `rate` picoseconds per second.
#[must_use]
pub fn growth(nanos: u64, rate: u64) -> u64 {
    let product = u128::from(nanos) * u128::from(rate);
    u64::try_from(product.div_ceil(1_000_000_000_000)).unwrap_or(u64::MAX)
}

/// Returns the change over `nanos` at `rate` picoseconds per second, rounded toward negative infinity. It saturates.
#[must_use]
pub fn drift(nanos: i64, rate: i64) -> i64 {
    let product = i128::from(nanos) * i128::from(rate);
    let change = product.div_euclid(1_000_000_000_000);
    i64::try_from(change).unwrap_or(if change < 0 { i64::MIN } else { i64::MAX })
}

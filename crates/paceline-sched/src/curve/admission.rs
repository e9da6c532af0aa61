//! The admission test for the service curves of a link's leaves.

use super::{Curve, NANOBITS_PER_BYTE, saturate};
use crate::capacity::Capacity;
use crate::time::Duration;
use alloc::vec::Vec;
use core::fmt;

/// The reasons why a set of curves does not fit into a capacity.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum FitError {
    /// Some time after all curves begin, they promise more than the link can have carried.
    Burst {
        /// The first corner of a curve at which this is so.
        at: Duration,
        /// The service promised by then, in bytes, rounded up.
        promised: u64,
        /// The bytes that the link carries by then, rounded down.
        carried: u64,
    },
    /// In the long run the curves promise more than the link carries.
    Rate {
        /// The sum of the long-term rates, in bits per second.
        promised: u64,
        /// The capacity in bits per second.
        carried: u64,
    },
}

impl fmt::Display for FitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Burst { at, promised, carried } => write!(
                f,
                "service curves promise {promised} bytes within {at}, the link carries {carried}: at \
                 most {carried} bytes fit; lower an m1, or lengthen a burst's dmax"
            ),
            Self::Rate { promised, carried } => write!(
                f,
                "service curves promise {promised} bit/s in the long run, the link carries {carried}: \
                 their m2 may add up to at most {carried} bit/s"
            ),
        }
    }
}

impl core::error::Error for FitError {}

/// Tests whether `curves` fit into `capacity`, exactly, for the worst case that all of them begin at
/// once.
///
/// The sum of the curves is piecewise linear. It stays below the capacity everywhere if it does so at
/// every corner and rises no faster than the capacity after the last corner. If the test passes, every
/// leaf gets its curve, at most one longest packet late (theorem 2 of the paper). Costs one sort of the
/// curves.
///
/// # Errors
/// [`FitError`] with the first instant at which the curves exceed the capacity, or with the rates.
pub fn fits(curves: &[Curve], capacity: Capacity) -> Result<(), FitError> {
    let mut corners: Vec<&Curve> = curves.iter().filter(|curve| !curve.d.is_zero()).collect();
    corners.sort_unstable_by_key(|curve| curve.d);
    let line = u128::from(capacity.bytes_per_s()) * 8;
    // Between corners the sum is `level` + `slope` × time.
    let mut slope: u128 = curves.iter().map(|curve| u128::from(curve.m1)).sum();
    let mut level: i128 = 0;
    for curve in corners {
        let nanos = u128::from(curve.d.as_nanos());
        let rise = i128::try_from(slope.saturating_mul(nanos)).unwrap_or(i128::MAX);
        let promised = rise.saturating_add(level).unsigned_abs();
        let carried = line.saturating_mul(nanos);
        if promised > carried {
            return Err(FitError::Burst {
                at: curve.d,
                promised: saturate(promised.div_ceil(NANOBITS_PER_BYTE)),
                carried: saturate(carried / NANOBITS_PER_BYTE),
            });
        }
        slope = slope - u128::from(curve.m1) + u128::from(curve.m2());
        let lift = i128::try_from(curve.lift()).unwrap_or(i128::MAX);
        level = if curve.is_concave() {
            level.saturating_add(lift)
        } else {
            level.saturating_sub(lift)
        };
    }
    if slope > line {
        return Err(FitError::Rate { promised: saturate(slope), carried: saturate(line) });
    }
    Ok(())
}

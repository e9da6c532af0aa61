//! The processor time that forwarding costs a host. Costs are measured on the host and passed in.
//!
//! A sample costs a + b · bytes. The line is an upper bound of all measurements under any
//! background load, so no stream is charged less than its measured cost.
//!
//! Papers: Christie 1995, §4.1.2 (limits that each router measured on itself, over packet size and
//! background load); West & Schwan, "Interactors", §4.2.3 (the cost of small packets depends on
//! their number).

mod best_effort;

pub use best_effort::{BestEffortRegulator, ProcessorShare};

use core::fmt;

/// One measurement.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CpuPoint {
    /// The length of the samples in bytes.
    pub bytes: u64,
    /// The background load of the processors during the measurement, in thousandths.
    pub load_permille: u32,
    /// The processor time of one sample, in nanoseconds.
    pub nanos: u64,
}

/// Measurements over sample length and background load.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CpuTable {
    /// Sorted by length, then by load.
    points: Vec<CpuPoint>,
}

/// Why a list of measurements was rejected.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum CpuTableError {
    /// The list is empty.
    Empty,
    /// The list has more than [`CpuTable::POINTS_MAX`] entries.
    TooMany(usize),
    /// A length, a time or a load is out of range.
    Absurd(CpuPoint),
    /// Two measurements have the same length and load.
    Twice(CpuPoint),
}

impl fmt::Display for CpuTableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("calibration without measurements; add at least one"),
            Self::TooMany(points) => {
                let most = CpuTable::POINTS_MAX;
                write!(f, "calibration of {points} measurements: at most {most}")
            }
            Self::Absurd(point) => write!(
                f,
                "calibration of {} bytes in {} ns at a load of {}/1000: must be 1 to {} bytes, 1 to {} ns \
                 and at most 1000/1000",
                point.bytes,
                point.nanos,
                point.load_permille,
                CpuTable::BYTES_MAX,
                CpuTable::NANOS_MAX
            ),
            Self::Twice(point) => write!(
                f,
                "calibration of {} bytes at a load of {}/1000 is listed twice; keep one",
                point.bytes, point.load_permille
            ),
        }
    }
}

impl core::error::Error for CpuTableError {}

impl CpuTable {
    /// The maximum number of measurements.
    pub const POINTS_MAX: usize = 64;
    /// The maximum sample length in bytes.
    pub const BYTES_MAX: u64 = 1 << 30;
    /// The maximum processor time of one sample in nanoseconds: one second.
    pub const NANOS_MAX: u64 = 1_000_000_000;

    /// Creates a table of `points`, in any order.
    ///
    /// # Errors
    /// [`CpuTableError`] if there are none or too many, if one is out of range, or if two have the
    /// same length and load.
    pub fn new(mut points: Vec<CpuPoint>) -> Result<Self, CpuTableError> {
        if points.is_empty() {
            return Err(CpuTableError::Empty);
        }
        if points.len() > Self::POINTS_MAX {
            return Err(CpuTableError::TooMany(points.len()));
        }
        let right = |point: &CpuPoint| {
            (1..=Self::BYTES_MAX).contains(&point.bytes)
                && (1..=Self::NANOS_MAX).contains(&point.nanos)
                && point.load_permille <= 1_000
        };
        if let Some(point) = points.iter().find(|point| !right(point)) {
            return Err(CpuTableError::Absurd(*point));
        }
        let key = |point: &CpuPoint| (point.bytes, point.load_permille);
        points.sort_unstable_by_key(key);
        let twice = points.windows(2).find_map(|pair| match pair {
            [a, b] if key(a) == key(b) => Some(*b),
            _ => None,
        });
        twice.map_or(Ok(Self { points }), |point| Err(CpuTableError::Twice(point)))
    }

    /// Returns the measurements, sorted by length, then by load.
    #[must_use]
    pub fn points(&self) -> &[CpuPoint] {
        &self.points
    }

    /// Returns the line that no measurement exceeds and that overcharges least. The measure is the
    /// sum of the overcharges, each relative to its measurement.
    ///
    /// The optimal line touches two measurements, or touches one and has slope 0.
    #[must_use]
    pub fn fit(&self) -> CpuCost {
        let mut best = (u128::MAX, CpuCost { sample_nanos: 0, byte_picos: 0 });
        let mut consider = |byte_picos: u64| {
            let line = self.above(byte_picos);
            let excess = self.points.iter().map(|point| {
                u128::from(line.of_sample(point.bytes)) * PARTS / u128::from(point.nanos)
            });
            let excess = excess.sum();
            if (excess, byte_picos) < (best.0, best.1.byte_picos) {
                best = (excess, line);
            }
        };
        consider(0);
        for (at, one) in self.points.iter().enumerate() {
            for other in self.points.iter().skip(at + 1).filter(|it| it.bytes > one.bytes) {
                let rise = u128::from(other.nanos.saturating_sub(one.nanos)) * PICOS;
                let slope = rise / u128::from(other.bytes - one.bytes);
                // The result is at most one second, for a difference of one byte.
                let slope = u64::try_from(slope).unwrap_or(u64::MAX);
                consider(slope);
                consider(slope + 1);
            }
        }
        best.1
    }

    /// Returns the lowest line of this slope that no measurement exceeds.
    fn above(&self, byte_picos: u64) -> CpuCost {
        let flat = CpuCost { sample_nanos: 0, byte_picos };
        let least = |point: &CpuPoint| point.nanos.saturating_sub(flat.of_sample(point.bytes));
        CpuCost { sample_nanos: self.points.iter().map(least).max().unwrap_or(0), ..flat }
    }
}

/// The resolution of the comparison of overcharges.
const PARTS: u128 = 1_000_000;
const PICOS: u128 = 1_000;

/// The cost of samples: a constant part and a part per byte.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CpuCost {
    /// Nanoseconds of one processor per sample.
    pub sample_nanos: u64,
    /// Picoseconds of one processor per byte.
    pub byte_picos: u64,
}

impl CpuCost {
    /// Returns the cost of one sample of `bytes`, in nanoseconds, rounded up.
    #[must_use]
    pub fn of_sample(&self, bytes: u64) -> u64 {
        narrow(self.picos(bytes).div_ceil(PICOS))
    }

    /// Returns the cost of a stream with samples of `bytes` and this rate, in nanoseconds per
    /// second, rounded up.
    #[must_use]
    pub fn of_stream(&self, bytes: u64, bits_per_s: u64) -> u64 {
        let bits = u128::from(bytes.max(1)) * 8;
        let all = self.picos(bytes).saturating_mul(u128::from(bits_per_s));
        narrow(all.div_ceil(bits * PICOS))
    }

    fn picos(&self, bytes: u64) -> u128 {
        u128::from(self.sample_nanos) * PICOS + u128::from(self.byte_picos) * u128::from(bytes)
    }
}

fn narrow(wide: u128) -> u64 {
    u64::try_from(wide).unwrap_or(u64::MAX)
}

/// The share of the host's processors that contracts may use, over all links of a node. Best effort has the [rest](BestEffortRegulator).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CpuBudget {
    /// The cost of samples on this host.
    pub cost: CpuCost,
    /// The limit in nanoseconds of one processor per second.
    pub nanos_per_s: u64,
}

#[cfg(test)]
mod tests;

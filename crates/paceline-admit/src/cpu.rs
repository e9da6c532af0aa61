//! What samples cost the host that hands them on: nanoseconds of one processor, measured there and passed in.
//!
//! A sample costs a + b · bytes. The line is above everything that was measured, whatever the load beside it,
//! so what is charged is never less than what was seen.
//!
//! Papers: seed 003 §4.1.2 (limits that each router measured on itself, over packet size and background load),
//! seed 001 §4.2.3 (small packets cost what their number costs).

use core::fmt;

/// One measurement.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CpuPoint {
    /// The length of the samples in bytes.
    pub bytes: u64,
    /// How busy the processors were with something else meanwhile, in thousandths.
    pub load_permille: u32,
    /// What one of them took, in nanoseconds of one processor.
    pub nanos: u64,
}

/// Measurements over the length of samples and background load.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CpuTable {
    /// In ascending order of length, then of load.
    points: Vec<CpuPoint>,
}

/// Why measurements are no table.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum CpuTableError {
    /// There are none.
    Empty,
    /// There are more than [`CpuTable::POINTS_MAX`].
    TooMany(usize),
    /// No sample has that length, takes that time, or is measured beside that load.
    Absurd(CpuPoint),
    /// Two for the same length and load.
    Twice(CpuPoint),
}

impl fmt::Display for CpuTableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("calibration without measurements: give at least one"),
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
                "calibration of {} bytes at a load of {}/1000 stands there twice: keep one",
                point.bytes, point.load_permille
            ),
        }
    }
}

impl core::error::Error for CpuTableError {}

impl CpuTable {
    /// The most measurements.
    pub const POINTS_MAX: usize = 64;
    /// The longest sample that is measured.
    pub const BYTES_MAX: u64 = 1 << 30;
    /// The most that one may take: a second.
    pub const NANOS_MAX: u64 = 1_000_000_000;

    /// A table of `points`, in any order.
    ///
    /// # Errors
    /// [`CpuTableError`] if there are none or too many, if one is out of range, or two are for the same.
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

    /// What was measured, in ascending order of length, then of load.
    #[must_use]
    pub fn points(&self) -> &[CpuPoint] {
        &self.points
    }

    /// Of the lines below which no measurement lies, the one that charges least too much, all measurements
    /// together, each relative to itself.
    ///
    /// The best such line touches two of them, or one and has no slope.
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
                // At most a second over a byte.
                let slope = u64::try_from(slope).unwrap_or(u64::MAX);
                consider(slope);
                consider(slope + 1);
            }
        }
        best.1
    }

    /// The lowest line of this slope with no measurement above it.
    fn above(&self, byte_picos: u64) -> CpuCost {
        let flat = CpuCost { sample_nanos: 0, byte_picos };
        let least = |point: &CpuPoint| point.nanos.saturating_sub(flat.of_sample(point.bytes));
        CpuCost { sample_nanos: self.points.iter().map(least).max().unwrap_or(0), ..flat }
    }
}

/// How finely excesses are compared.
const PARTS: u128 = 1_000_000;
const PICOS: u128 = 1_000;

/// What samples cost: so much each, and so much for each of their bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CpuCost {
    /// Nanoseconds of one processor for each sample.
    pub sample_nanos: u64,
    /// Picoseconds of one processor for each byte.
    pub byte_picos: u64,
}

impl CpuCost {
    /// What one sample of `bytes` costs, in nanoseconds, rounded up.
    #[must_use]
    pub fn of_sample(&self, bytes: u64) -> u64 {
        narrow(self.picos(bytes).div_ceil(PICOS))
    }

    /// What samples of `bytes` cost that together are `bits_per_s`, in nanoseconds per second, rounded up.
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

/// What of the host's processors promises may use, on all links of a node together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CpuBudget {
    /// What samples cost here.
    pub cost: CpuCost,
    /// Nanoseconds of one processor per second.
    pub nanos_per_s: u64,
}

#[cfg(test)]
mod tests;

//! What packets cost the host: nanoseconds of one processor for each, measured on this host and passed in.

use core::fmt;

/// One measurement.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CpuPoint {
    /// The length of the packets in bytes.
    pub packet: u64,
    /// How busy the link was with other packets meanwhile, in thousandths.
    pub load_permille: u32,
    /// What one of them took, in nanoseconds of one processor.
    pub nanos: u64,
}

/// Measurements over packet length and background load.
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
    /// A packet of 0 bytes, or one that took no time.
    Zero(CpuPoint),
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
            Self::Zero(point) => write!(
                f,
                "calibration of {} bytes in {} ns: both must be at least 1",
                point.packet, point.nanos
            ),
            Self::Twice(point) => write!(
                f,
                "calibration of {} bytes at a load of {}/1000 stands there twice: keep one",
                point.packet, point.load_permille
            ),
        }
    }
}

impl core::error::Error for CpuTableError {}

impl CpuTable {
    /// The most measurements.
    pub const POINTS_MAX: usize = 1_024;

    /// A table of `points`, in any order.
    ///
    /// # Errors
    /// [`CpuTableError`] if there are none or too many, if one is 0, or two are for the same.
    pub fn new(mut points: Vec<CpuPoint>) -> Result<Self, CpuTableError> {
        if points.is_empty() {
            return Err(CpuTableError::Empty);
        }
        if points.len() > Self::POINTS_MAX {
            return Err(CpuTableError::TooMany(points.len()));
        }
        if let Some(point) = points.iter().find(|point| point.packet == 0 || point.nanos == 0) {
            return Err(CpuTableError::Zero(*point));
        }
        let key = |point: &CpuPoint| (point.packet, point.load_permille);
        points.sort_unstable_by_key(key);
        let twice = points.windows(2).find_map(|pair| match pair {
            [a, b] if key(a) == key(b) => Some(*b),
            _ => None,
        });
        twice.map_or(Ok(Self { points }), |point| Err(CpuTableError::Twice(point)))
    }

    /// What a packet of `packet` bytes costs at `load_permille`: the dearest of what was measured up to
    /// the next length and load, so that a gap in the table never makes a packet cheaper. Beyond the
    /// longest measured one the cost grows as the bytes do.
    #[must_use]
    pub fn cost(&self, packet: u64, load_permille: u32) -> u64 {
        let above = |limit: u64, of: fn(&CpuPoint) -> u64| {
            let at_least = self.points.iter().map(of).filter(|value| *value >= limit).min();
            at_least.or_else(|| self.points.iter().map(of).max()).unwrap_or(limit)
        };
        let length = above(packet, |point| point.packet);
        let load = above(u64::from(load_permille), |point| u64::from(point.load_permille));
        let counted = self
            .points
            .iter()
            .filter(|point| point.packet <= length && u64::from(point.load_permille) <= load);
        let dearest = counted.map(|point| point.nanos).max().unwrap_or(0);
        if packet <= length {
            return dearest;
        }
        let grown = (u128::from(dearest) * u128::from(packet)).div_ceil(u128::from(length.max(1)));
        u64::try_from(grown).unwrap_or(u64::MAX)
    }
}

/// What of the host's processors a link may use.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CpuBudget {
    /// What packets cost here.
    pub table: CpuTable,
    /// The background load to expect, in thousandths.
    pub load_permille: u32,
    /// Nanoseconds of one processor per second.
    pub nanos_per_s: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(packet: u64, load_permille: u32, nanos: u64) -> CpuPoint {
        CpuPoint { packet, load_permille, nanos }
    }

    #[test]
    fn between_measurements_the_dearer_one_counts() {
        let table = CpuTable::new(vec![
            point(1_500, 0, 900),
            point(64, 0, 700),
            point(64, 900, 1_100),
            point(1_500, 900, 1_600),
        ])
        .unwrap();
        assert_eq!((table.cost(64, 0), table.cost(1, 0)), (700, 700));
        assert_eq!((table.cost(65, 0), table.cost(1_500, 0)), (900, 900));
        assert_eq!((table.cost(64, 1), table.cost(64, 950)), (1_100, 1_100));
        assert_eq!((table.cost(3_000, 0), table.cost(3_001, 900)), (1_800, 3_202));
        let dip = CpuTable::new(vec![point(64, 0, 700), point(128, 0, 600)]).unwrap();
        assert_eq!(dip.cost(100, 0), 700, "a longer packet is never cheaper than a shorter one");
    }

    #[test]
    fn what_is_no_table_is_refused_by_name() {
        let text = |points| CpuTable::new(points).unwrap_err().to_string();
        assert!(text(Vec::new()).contains("at least one"));
        assert!(text(vec![point(0, 0, 1)]).contains("0 bytes in 1 ns"));
        assert!(text(vec![point(64, 5, 1), point(64, 5, 2)]).contains("stands there twice"));
        assert!(text(vec![point(1, 1, 1); 1_025]).contains("1025 measurements: at most 1024"));
    }
}

//! The share of a publisher's samples that a stream carries.

use core::fmt;
use core::num::NonZeroU32;
use paceline_sched::Duration;

/// The share of a publisher's samples that a subscription requests (temporal scaling, seed 000 §2.1).
///
/// All limits hold together: one sample in n remains, of those at most a number per second, evenly spread, and of those as
/// many as fit a bit rate.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Rate {
    /// One sample in this many; 1 for every sample.
    pub every: NonZeroU32,
    /// At most this many samples per second, in millihertz; `None` for no limit.
    pub max_millihertz: Option<NonZeroU32>,
    /// At most this many bits of payload per second, by leaving out whole samples; `None` for no limit. Set by
    /// [`PublisherSpec::form_of`](crate::control::PublisherSpec::form_of) for samples that are not coded again.
    pub bits_per_s: Option<NonZeroU32>,
}

impl Rate {
    /// Every sample.
    pub const ALL: Self = Self::every(NonZeroU32::MIN);

    /// Returns the rate of one sample in `n`.
    #[must_use]
    pub const fn every(n: NonZeroU32) -> Self {
        Self { every: n, max_millihertz: None, bits_per_s: None }
    }

    /// Returns a rate of at most `millihertz`.
    #[must_use]
    pub const fn max(millihertz: NonZeroU32) -> Self {
        Self::ALL.at_most(millihertz)
    }

    /// Returns this rate with the limit `millihertz` in place of its own one.
    #[must_use]
    pub const fn at_most(self, millihertz: NonZeroU32) -> Self {
        Self { max_millihertz: Some(millihertz), ..self }
    }

    /// Returns n if the rate is one sample in n without another limit: the positions of its samples are then known.
    #[must_use]
    pub const fn one_in(self) -> Option<NonZeroU32> {
        match self {
            Self { every, max_millihertz: None, bits_per_s: None } => Some(every),
            Self { .. } => None,
        }
    }

    /// Returns the highest number of samples per second; `None` for no limit.
    #[must_use]
    pub fn max_hz(self) -> Option<f64> {
        self.max_millihertz.map(|millihertz| f64::from(millihertz.get()) / 1_000.0)
    }

    /// Returns the shortest time between two samples that the limit of the rate allows; `None` for no limit.
    #[must_use]
    pub fn interval(self) -> Option<Duration> {
        let nanos = |millihertz: NonZeroU32| 1_000_000_000_000 / u64::from(millihertz.get());
        self.max_millihertz.map(|millihertz| Duration::from_nanos(nanos(millihertz)))
    }

    /// Returns the time between two samples at this rate, for a source with the period `source`.
    ///
    /// Returns `None` if the rate depends on the source's period and that period is unknown.
    #[must_use]
    pub fn period(self, source: Option<Duration>) -> Option<Duration> {
        let counted = source.map(|period| period.mul_div(u64::from(self.every.get()), 1));
        self.interval().max(counted)
    }
}

impl Default for Rate {
    fn default() -> Self {
        Self::ALL
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = self.every > NonZeroU32::MIN;
        match (counted, self.max_millihertz) {
            (true, _) => write!(f, "1 in {}", self.every)?,
            (false, None) => f.write_str("all")?,
            (false, Some(_)) => {}
        }
        if let Some(millihertz) = self.max_millihertz {
            let (hertz, milli) = (millihertz.get() / 1_000, millihertz.get() % 1_000);
            f.write_str(if counted { ", at most " } else { "" })?;
            match milli {
                0 => write!(f, "{hertz} Hz")?,
                _ => write!(f, "{hertz}.{milli:03} Hz")?,
            }
        }
        self.bits_per_s.map_or(Ok(()), |bits| write!(f, " at {bits} bit/s"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_limits_hold_and_are_named() {
        let number = |n| NonZeroU32::new(n).unwrap();
        let both = |n, millihertz| Rate::every(number(n)).at_most(number(millihertz));
        let source = Some(Duration::from_millis(100));
        let period = |rate: Rate| rate.period(source).unwrap().as_nanos() / 1_000_000;
        assert_eq!([both(2, 3_000), both(5, 3_000), Rate::ALL].map(period), [333, 500, 100]);
        assert_eq!(Rate::every(number(2)).period(None), None);
        assert_eq!(both(2, 4_000).period(None), Some(Duration::from_millis(250)));
        assert_eq!(both(2, 3_500).to_string(), "1 in 2, at most 3.500 Hz");
        let bits = Rate { bits_per_s: Some(number(64_000)), ..Rate::ALL };
        let all = [Rate::ALL, Rate::every(number(3)), Rate::max(number(2_000)), bits];
        assert_eq!(
            all.map(|rate| rate.to_string()),
            ["all", "1 in 3", "2 Hz", "all at 64000 bit/s"]
        );
        assert_eq!(all.map(Rate::one_in), [Some(number(1)), Some(number(3)), None, None]);
    }
}

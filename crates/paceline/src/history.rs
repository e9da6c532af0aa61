//! The limits of a pull buffer.

use paceline_proto::pull::limits::{AGE_MAX, SAMPLES_MAX};
use paceline_proto::pull::{Limits, LimitsError};
use std::time::Duration;

/// The default limit of samples.
const SAMPLES: usize = 1_000;
/// The default limit of payload bytes.
const BYTES: u64 = 256 << 20;

/// The limits of a pull buffer: number of samples, payload bytes and age.
///
/// When a limit is reached, the oldest samples are dropped. Defaults to 1,000 samples, 256 MiB and one
/// day. If bytes or age are set, the default number of samples is 1,000,000.
///
/// ```
/// use paceline::pull::{History, LimitsError};
/// use std::time::Duration;
///
/// let history = History::new().samples(100).age(Duration::from_secs(60));
/// assert_eq!(history.limits()?.samples(), 100);
/// # Ok::<(), LimitsError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct History {
    samples: Option<usize>,
    bytes: Option<u64>,
    age: Option<Duration>,
}

impl History {
    /// Creates the default limits.
    #[must_use]
    pub const fn new() -> Self {
        Self { samples: None, bytes: None, age: None }
    }

    /// Limits the number of samples, from 1 to 1,000,000.
    #[must_use]
    pub const fn samples(mut self, samples: usize) -> Self {
        self.samples = Some(samples);
        self
    }

    /// Limits the payload bytes, from 1 to 4 GiB.
    #[must_use]
    pub const fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = Some(bytes);
        self
    }

    /// Limits the age, above 0 and at most one day.
    #[must_use]
    pub const fn age(mut self, age: Duration) -> Self {
        self.age = Some(age);
        self
    }

    /// Returns the limits, with defaults for those that are not set.
    ///
    /// # Errors
    /// Returns a [`LimitsError`] with the first limit that is out of range. Declaring a publisher,
    /// subscription or buffer with this history returns the same error.
    pub fn limits(self) -> Result<Limits, LimitsError> {
        let limited = self.bytes.is_some() || self.age.is_some();
        let samples = self.samples.unwrap_or(if limited { SAMPLES_MAX } else { SAMPLES });
        let age = self.age.map_or(AGE_MAX, Into::into);
        Limits::new(samples, self.bytes.unwrap_or(BYTES), age)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unset_buffer_bounds_default_to_the_maximum() {
        let limits = History::new().limits().unwrap();
        assert_eq!((limits.samples(), limits.bytes()), (SAMPLES, BYTES));
        let minute = History::new().age(Duration::from_secs(60)).limits().unwrap();
        assert_eq!((minute.samples(), minute.bytes()), (SAMPLES_MAX, BYTES));
        let large = History::new().bytes(1 << 30).limits().unwrap();
        assert_eq!((large.samples(), large.bytes(), large.age()), (SAMPLES_MAX, 1 << 30, AGE_MAX));
    }

    #[test]
    fn zero_and_excessive_buffer_bounds_are_refused() {
        assert_eq!(History::new().samples(0).limits(), Err(LimitsError::Samples(0)));
        let terabyte = 1_000_000_000_000;
        assert_eq!(History::new().bytes(terabyte).limits(), Err(LimitsError::Bytes(terabyte)));
        assert!(History::new().age(Duration::ZERO).limits().is_err());
    }
}

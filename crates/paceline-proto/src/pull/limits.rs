//! The limits of a pull buffer.

use paceline_sched::Duration;

/// The largest sample limit of a buffer.
pub const SAMPLES_MAX: usize = 1_000_000;
/// The largest byte limit of a buffer: 4 GiB of payload.
pub const BYTES_MAX: u64 = 4 << 30;
/// The largest age limit of a buffer: one day.
pub const AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The capacity of a pull buffer. Reaching any limit evicts samples.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Limits {
    samples: usize,
    bytes: u64,
    age: Duration,
}

/// The error for invalid limits of a pull buffer.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitsError {
    /// The number of samples is 0 or above [`SAMPLES_MAX`].
    #[error(
        "pull buffer of {0} samples: must be from 1 to {SAMPLES_MAX}; to keep more, use a buffer \
         per tag"
    )]
    Samples(usize),
    /// The number of bytes is 0 or above [`BYTES_MAX`].
    #[error(
        "pull buffer of {0} bytes: must be from 1 to {BYTES_MAX} (4 GiB); to keep more, buffer \
         scaled samples or spread buffers over several nodes"
    )]
    Bytes(u64),
    /// The age is 0 or above [`AGE_MAX`].
    #[error(
        "pull buffer of age {0}: must be more than 0 and at most {day} (a day); to keep samples for \
         longer, record them",
        day = AGE_MAX
    )]
    Age(Duration),
}

impl Limits {
    /// Creates limits of a number of samples, of payload bytes, and of the age of each sample.
    ///
    /// # Errors
    /// Returns [`LimitsError`] if a limit is 0 or above [`SAMPLES_MAX`], [`BYTES_MAX`] or [`AGE_MAX`].
    pub fn new(samples: usize, bytes: u64, age: Duration) -> Result<Self, LimitsError> {
        if samples == 0 || samples > SAMPLES_MAX {
            return Err(LimitsError::Samples(samples));
        }
        if bytes == 0 || bytes > BYTES_MAX {
            return Err(LimitsError::Bytes(bytes));
        }
        if age.is_zero() || age > AGE_MAX {
            return Err(LimitsError::Age(age));
        }
        Ok(Self { samples, bytes, age })
    }

    /// Returns the largest number of samples.
    #[must_use]
    pub const fn samples(&self) -> usize {
        self.samples
    }

    /// Returns the largest number of payload bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the largest age of a sample.
    #[must_use]
    pub const fn age(&self) -> Duration {
        self.age
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_and_excessive_bounds_are_refused_with_the_range() {
        let second = Duration::from_secs(1);
        for (error, words) in [
            (Limits::new(0, 1, second), ["0 samples", "from 1 to 1000000"]),
            (Limits::new(1_000_001, 1, second), ["1000001 samples", "a buffer per tag"]),
            (Limits::new(1, 0, second), ["0 bytes", "from 1 to 4294967296"]),
            (Limits::new(1, 1_000_000_000_000, second), ["1000000000000 bytes", "4 GiB"]),
            (Limits::new(1, 1, Duration::ZERO), ["age 0 ns", "more than 0"]),
            (Limits::new(1, 1, Duration::from_secs(86_401)), ["age 86401 s", "86400 s"]),
        ] {
            let text = error.unwrap_err().to_string();
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
        }
        let most = Limits::new(SAMPLES_MAX, BYTES_MAX, AGE_MAX).unwrap();
        assert_eq!((most.samples(), most.bytes(), most.age()), (SAMPLES_MAX, BYTES_MAX, AGE_MAX));
    }
}

//! Rate limits for log lines that a peer or a program can cause, so that a hostile neighbour cannot
//! fill the disk.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The shortest time between two lines of a cause.
const EVERY: Duration = Duration::from_secs(10);

/// The rate limit of one cause.
#[derive(Debug, Default)]
pub struct LogLimit(Mutex<Logged>);

#[derive(Debug)]
struct Logged {
    last: Option<Instant>,
    suppressed: u64,
}

impl Default for Logged {
    fn default() -> Self {
        Self::NEVER
    }
}

impl Logged {
    const NEVER: Self = Self { last: None, suppressed: 0 };
}

/// The number of lines that were left out since the last line of a cause. Print it at the end of
/// the next line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Suppressed(u64);

impl LogLimit {
    /// Creates a limit that passes the first line.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(Logged::NEVER))
    }

    /// Returns `None` if this line must be left out.
    pub fn pass(&self) -> Option<Suppressed> {
        self.pass_at(Instant::now())
    }

    fn pass_at(&self, now: Instant) -> Option<Suppressed> {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.last.is_some_and(|last| now.saturating_duration_since(last) < EVERY) {
            logged.suppressed += 1;
            return None;
        }
        logged.last = Some(now);
        Some(Suppressed(std::mem::take(&mut logged.suppressed)))
    }
}

impl fmt::Display for Suppressed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            1 => f.write_str(" (1 similar line was suppressed)"),
            many => write!(f, " ({many} similar lines were suppressed)"),
        }
    }
}

/// Logs a warning with a rate limit: the first line at once, then at most one per 10 s with the
/// number of lines left out. Each call site in the source has a limit of its own.
#[doc(hidden)]
#[macro_export]
macro_rules! warn_limited {
    ($($message:tt)+) => {
        $crate::log_limited!(warn, $($message)+)
    };
}

/// Logs at the given level with the rate limit of [`warn_limited`].
#[doc(hidden)]
#[macro_export]
macro_rules! log_limited {
    ($level:ident, $($message:tt)+) => {{
        static LIMIT: $crate::LogLimit = $crate::LogLimit::new();
        if let Some(suppressed) = LIMIT.pass() {
            tracing::$level!("{}{suppressed}", format_args!($($message)+));
        }
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_passes_then_one_every_ten_seconds_with_the_suppressed_count() {
        let (limit, begun) = (LogLimit::new(), Instant::now());
        let passed = |ms| limit.pass_at(begun + Duration::from_millis(ms));
        assert_eq!(passed(0), Some(Suppressed(0)));
        assert!((1..1_000).all(|ms| passed(ms).is_none()));
        assert_eq!(passed(9_999), None);
        let next = passed(10_000).unwrap();
        assert_eq!(next.to_string(), " (1000 similar lines were suppressed)");
        assert_eq!(passed(30_000).unwrap().to_string(), "");
        assert_eq!(passed(30_001), None);
        assert_eq!(passed(40_001).unwrap().to_string(), " (1 similar line was suppressed)");
    }
}

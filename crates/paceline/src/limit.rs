//! Log lines that a peer or a program can cause, limited per cause: a hostile neighbour must not fill a disk.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// After the first line of a cause, at most one in this time.
const EVERY: Duration = Duration::from_secs(10);

/// The limit of one cause.
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

/// The lines of a cause that were left out since its last line; to be put at the end of the next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Suppressed(u64);

impl LogLimit {
    /// A cause without a line so far.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(Logged::NEVER))
    }

    /// Returns `None` if a line of this cause is to be left out now.
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
            1 => f.write_str(" (1 more line like this was left out)"),
            many => write!(f, " ({many} more lines like this were left out)"),
        }
    }
}

/// Logs a warning, limited: the first at once, then at most one in 10 s with the number of those left out. Each place
/// in the source is a cause of its own.
#[doc(hidden)]
#[macro_export]
macro_rules! warn_limited {
    ($($message:tt)+) => {
        $crate::log_limited!(warn, $($message)+)
    };
}

/// As [`warn_limited`], at another level.
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
    fn the_first_line_passes_and_then_one_in_ten_seconds_with_the_number_left_out() {
        let (limit, begun) = (LogLimit::new(), Instant::now());
        let passed = |ms| limit.pass_at(begun + Duration::from_millis(ms));
        assert_eq!(passed(0), Some(Suppressed(0)));
        assert!((1..1_000).all(|ms| passed(ms).is_none()));
        assert_eq!(passed(9_999), None);
        let next = passed(10_000).unwrap();
        assert_eq!(next.to_string(), " (1000 more lines like this were left out)");
        assert_eq!(passed(30_000).unwrap().to_string(), "");
        assert_eq!(passed(30_001), None);
        assert_eq!(passed(40_001).unwrap().to_string(), " (1 more line like this was left out)");
    }
}

//! The comparison of a publisher's rate with its declaration.

use std::fmt;
use std::time::Duration;

/// The shortest time over which a rate is measured, in nanoseconds.
const WINDOW_NANOS: u64 = 3_000_000_000;
/// The least number of declared periods over which it is measured.
const WINDOW_PERIODS: u64 = 10;
/// The silence that counts as a pause, in nanoseconds and in declared periods.
const PAUSE: (u64, u64) = (1_500_000_000, 5);
/// The number of windows in a row whose rate must differ.
const DOUBTS: u8 = 2;

/// Compares the rate of a publisher with its declaration, from the numbers and times of its samples.
///
/// A rate that differs by more than a tenth over two windows in a row is reported; a rate within a twentieth ends that. A
/// window is 3 s or ten periods. A pause is no rate.
///
/// ```
/// use paceline::status::RateCheck;
/// use std::time::Duration;
///
/// let mut check = RateCheck::new(Duration::from_millis(40));
/// let sent = |second: u64| check.note(second * 21, second * 1_000_000_000);
/// let news: Vec<_> = (0..10).filter_map(sent).collect();
/// assert_eq!(news[0].to_string(), "declared 25 Hz, sends 21 Hz");
/// assert_eq!(news.len(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct RateCheck {
    period_nanos: u64,
    /// The number and the time of the first sample of the window, and of the latest one.
    window: Option<[(u64, u64); 2]>,
    differs: bool,
    doubts: u8,
}

/// A change of the comparison; written as text for users.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RateNews {
    /// True if the declared rate is kept again.
    pub kept: bool,
    /// The declared rate in millihertz.
    pub declared_millihertz: u64,
    /// The measured rate in millihertz.
    pub sent_millihertz: u64,
}

impl RateCheck {
    /// Starts the comparison with a declared period.
    #[must_use]
    pub fn new(period: Duration) -> Self {
        let period_nanos = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX).max(1);
        Self { period_nanos, window: None, differs: false, doubts: 0 }
    }

    /// Takes the number of samples so far, or the sequence number of a sample, and its time in nanoseconds of any clock.
    /// Returns a change of the comparison.
    pub fn note(&mut self, number: u64, nanos: u64) -> Option<RateNews> {
        let now = (number, nanos);
        let [first, last] = *self.window.get_or_insert([now, now]);
        let silence = PAUSE.0.max(self.period_nanos.saturating_mul(PAUSE.1));
        let paused = number <= last.0.saturating_add(1) && nanos.saturating_sub(last.1) > silence;
        if number < last.0 || nanos < last.1 || paused {
            self.window = Some([now, now]);
            return None;
        }
        if number > last.0 {
            self.window = Some([first, now]);
        }
        let over = nanos - first.1;
        if over < WINDOW_NANOS.max(self.period_nanos.saturating_mul(WINDOW_PERIODS)) {
            return None;
        }
        self.window = Some([now, now]);
        self.compare(number - first.0, over)
    }

    fn compare(&mut self, samples: u64, over: u64) -> Option<RateNews> {
        let due = u128::from(samples) * u128::from(self.period_nanos);
        let over = u128::from(over);
        // A window begins and ends between samples.
        let error = due.abs_diff(over).saturating_sub(self.period_nanos.into());
        let before = self.differs;
        if error * 10 > over {
            self.doubts = self.doubts.saturating_add(1);
            self.differs |= self.doubts >= DOUBTS;
        } else {
            self.doubts = 0;
            self.differs &= error * 20 > over;
        }
        (before != self.differs).then(|| RateNews {
            kept: before,
            declared_millihertz: millihertz(1, self.period_nanos.into()),
            sent_millihertz: millihertz(samples, over),
        })
    }
}

fn millihertz(samples: u64, nanos: u128) -> u64 {
    let scaled = u128::from(samples) * 1_000_000_000_000 + nanos / 2;
    u64::try_from(scaled / nanos.max(1)).unwrap_or(u64::MAX)
}

impl fmt::Display for RateNews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (declared, sent) = (Hertz(self.declared_millihertz), Hertz(self.sent_millihertz));
        if self.kept {
            return write!(f, "keeps its declared {declared} Hz again: sends {sent} Hz");
        }
        write!(f, "declared {declared} Hz, sends {sent} Hz")
    }
}

/// A rate in millihertz, written in hertz with at most one decimal place from 1 Hz on.
struct Hertz(u64);

impl fmt::Display for Hertz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = self.0.saturating_add(50) / 100;
        match (self.0, tenths % 10) {
            (..1_000, _) => write!(f, "0.{:03}", self.0),
            (_, 0) => write!(f, "{}", tenths / 10),
            (_, rest) => write!(f, "{}.{rest}", tenths / 10),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn nanos(hz: f64) -> Duration {
        Duration::from_secs_f64(1.0 / hz)
    }

    /// Passes samples at these rates, each for `seconds`, with a reading after every sample.
    fn news(declared: f64, parts: &[(f64, u64)]) -> Vec<String> {
        let mut check = RateCheck::new(nanos(declared));
        let (mut number, mut at, mut reports) = (0, 0, Vec::new());
        for &(hz, seconds) in parts {
            let end = at + seconds * SECOND;
            if hz == 0.0 {
                at = end;
                continue;
            }
            while at < end {
                reports.extend(check.note(number, at).map(|news| news.to_string()));
                number += 1;
                at += u64::try_from(nanos(hz).as_nanos()).unwrap();
            }
        }
        reports
    }

    #[test]
    fn a_rate_that_differs_is_reported_once_and_its_return_too() {
        assert_eq!(
            news(25.0, &[(25.0, 20), (21.0, 30), (25.0, 20)]),
            ["declared 25 Hz, sends 21 Hz", "keeps its declared 25 Hz again: sends 25 Hz"]
        );
        assert_eq!(news(25.0, &[(30.0, 30)]), ["declared 25 Hz, sends 30 Hz"]);
        assert_eq!(news(0.1, &[(0.05, 600)]), ["declared 0.100 Hz, sends 0.050 Hz"]);
    }

    #[test]
    fn small_differences_pauses_and_restarts_are_no_news() {
        assert!(news(25.0, &[(24.0, 60), (26.5, 60), (24.0, 60)]).is_empty());
        assert!(news(25.0, &[(25.0, 10), (0.0, 7), (25.0, 10), (0.0, 100), (25.0, 10)]).is_empty());
        let mut check = RateCheck::new(Duration::from_millis(40));
        // A publisher that starts again begins with number 0.
        for second in (0..4).chain(0..4).chain(0..4) {
            assert_eq!(check.note(second * 25, second * SECOND), None);
        }
    }

    #[test]
    fn once_reported_a_rate_at_the_limit_does_not_alternate() {
        let parts: Vec<_> = (0..20).map(|n| (if n % 2 == 0 { 22.0 } else { 23.0 }, 4)).collect();
        assert!(news(25.0, &parts).len() <= 1, "{:?}", news(25.0, &parts));
    }

    #[test]
    fn thinned_samples_show_the_same_rate() {
        let rates = [1, 2, 3, 5, 9, 10, 11, 24, 25, 26, 30, 50, 100, 199_u64];
        for (declared, sent) in rates.into_iter().flat_map(|rate| rates.map(|sent| (rate, sent))) {
            for every in [1, 2, 3, 7, 25, 59] {
                let mut check = RateCheck::new(Duration::from_nanos(SECOND / declared));
                let mut found = None;
                for number in (0..sent * 400).step_by(every) {
                    found = check.note(number, number * SECOND / sent).or(found);
                }
                let which = (declared, sent, every);
                let error = sent.abs_diff(declared) * 100;
                if error <= 6 * declared {
                    assert!(found.is_none(), "{which:?}: {found:?}");
                } else if error > 26 * declared {
                    let found = found.unwrap();
                    assert!(!found.kept, "{which:?}: {found:?}");
                    let wrong = found.sent_millihertz.abs_diff(sent * 1_000);
                    assert!(wrong <= sent * 400 + 500, "{which:?}: {found:?}");
                }
            }
        }
    }
}

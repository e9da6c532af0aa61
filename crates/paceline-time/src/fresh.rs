//! Fresh actuation: a command is released only while it is provably young, and silence starts a safe action.
//!
//! The caller gives the largest possible age of each command. It follows from clocks with an error bound
//! ([`age_by_clocks`]), or from the times that the hops of the path have measured; the smaller one counts.

use crate::TimeBounds;
use paceline_sched::{Duration, Instant};

/// The result of [`Freshness::release`] for one command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CommandVerdict {
    /// The command is younger than the limit until this instant, and may act until then.
    Fresh {
        /// The instant at which the command reaches the limit, by the clock of this host.
        until: Instant,
        /// True for the first command, and for the first one after a safe action.
        resumed: bool,
    },
    /// The command may be older than the limit.
    Stale,
}

/// Returns the largest possible age of something captured at `captured`, if it is `now`.
#[must_use]
pub const fn age_by_clocks(captured: TimeBounds, now: TimeBounds) -> Duration {
    Duration::from_nanos(now.latest.saturating_sub(captured.earliest))
}

/// Returns the instant at which a command reaches the age limit, if its age is at most `oldest` now.
///
/// `None` if the age is unknown or has reached the limit.
#[must_use]
pub fn fresh_until(now: Instant, limit: Duration, oldest: Option<Duration>) -> Option<Instant> {
    let left = limit.saturating_sub(oldest?);
    (!left.is_zero()).then(|| now + left)
}

/// The freshness of one command stream.
///
/// A stream is *silent* from the instant at which its newest released command reaches the limit until the next
/// release. Each silence is reported once.
///
/// ```
/// use paceline_sched::{Duration, Instant};
/// use paceline_time::fresh::{Freshness, CommandVerdict, fresh_until};
///
/// let limit = Duration::from_millis(100);
/// let mut commands = Freshness::default();
/// let now = Instant::from_millis(1_000);
/// let until = fresh_until(now, limit, Some(Duration::from_millis(30)));
/// assert_eq!(
///     commands.release(now, until),
///     CommandVerdict::Fresh { until: Instant::from_millis(1_070), resumed: true }
/// );
/// assert!(!commands.poll_silence(Instant::from_millis(1_069)));
/// assert!(commands.poll_silence(Instant::from_millis(1_070)), "the safe action starts");
/// assert!(!commands.poll_silence(Instant::from_millis(1_080)), "once");
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Freshness {
    /// The end of the newest released command; `None` before the first one and during silence.
    until: Option<Instant>,
}

impl Freshness {
    /// Decides on a command that may act before `until`; see [`fresh_until`]. Call this as the last step before the
    /// command acts.
    pub fn release(&mut self, now: Instant, until: Option<Instant>) -> CommandVerdict {
        let Some(until) = until.filter(|until| now < *until) else { return CommandVerdict::Stale };
        let resumed = self.until.is_none_or(|last| last <= now);
        // An older command that follows does not shorten the time of a newer one.
        self.until = self.until.max(Some(until));
        CommandVerdict::Fresh { until, resumed }
    }

    /// Returns true once when the stream has fallen silent: start the safe action.
    pub fn poll_silence(&mut self, now: Instant) -> bool {
        let silent = self.until.is_some_and(|until| until <= now);
        if silent {
            self.until = None;
        }
        silent
    }

    /// Returns the instant at which the stream falls silent without another command; `None` while it is silent.
    #[must_use]
    pub const fn next_silence(&self) -> Option<Instant> {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn the_age_by_clocks_includes_both_errors() {
        let age = age_by_clocks(TimeBounds::new(1_000, 100), TimeBounds::new(1_500, 50));
        assert_eq!(age, Duration::from_nanos(650));
        let future = age_by_clocks(TimeBounds::new(9_000, 10), TimeBounds::new(1_500, 50));
        assert_eq!(future, Duration::ZERO);
        let unknown = age_by_clocks(TimeBounds::new(1_000, u64::MAX), TimeBounds::new(1_500, 0));
        assert_eq!(unknown, Duration::from_nanos(1_500));
    }

    #[test]
    fn an_unknown_age_is_never_fresh() {
        let now = at(50);
        assert_eq!(fresh_until(now, LIMIT, None), None);
        assert_eq!(fresh_until(now, LIMIT, Some(LIMIT)), None, "the limit itself is too old");
        assert_eq!(Freshness::default().release(now, None), CommandVerdict::Stale);
    }

    #[test]
    fn a_command_that_waited_too_long_is_stale() {
        let mut commands = Freshness::default();
        let until = fresh_until(at(0), LIMIT, Some(Duration::ZERO));
        assert_eq!(commands.release(at(100), until), CommandVerdict::Stale);
        assert!(!commands.poll_silence(at(200)), "nothing was released, so nothing has to stop");
    }

    proptest! {
        /// A true age above the limit is never released, and each silence starts exactly when the newest released
        /// command reaches the limit.
        #[test]
        fn no_released_command_is_older_than_the_limit(
            steps in prop::collection::vec((0u64..80, 0u64..200, 0u64..50, 0u64..30), 1..200),
        ) {
            let mut commands = Freshness::default();
            let (mut now, mut newest, mut silences, mut expected) = (at(1_000), None::<Instant>, 0, 0);
            for (gap, age, error, wait) in steps {
                now += Duration::from_millis(gap);
                if newest.is_some_and(|end| end <= now) {
                    newest = None;
                    expected += 1;
                }
                silences += u32::from(commands.poll_silence(now));
                let oldest = Duration::from_millis(age + error);
                let until = fresh_until(now, LIMIT, Some(oldest));
                let acts = now + Duration::from_millis(wait);
                let true_age = age + wait;
                match commands.release(acts, until) {
                    CommandVerdict::Fresh { until, .. } => {
                        prop_assert!(true_age < 100);
                        newest = newest.max(Some(until));
                    }
                    CommandVerdict::Stale => prop_assert!(true_age + error >= 100),
                }
            }
            prop_assert_eq!(silences, expected);
            prop_assert_eq!(commands.next_silence(), newest);
        }
    }
}

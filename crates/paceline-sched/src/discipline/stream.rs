//! What every discipline keeps of a stream: its head, its contract's clock, its aligned windows.

use super::queues::Place;
use super::{Head, WindowState};
use crate::contract::{Contract, LossTolerance};
use crate::time::{Duration, Instant};

/// A stream that joined: best effort or background without a promise.
#[derive(Clone, Debug)]
pub(super) struct Stream<K, W> {
    pub(super) promise: Option<Promise<W>>,
    /// It is served after all others.
    pub(super) background: bool,
    pub(super) head: Option<Queued<K>>,
    /// Its heads are not picked; they are still missed.
    pub(super) suspended: bool,
}

impl<K, W> Stream<K, W> {
    /// The last instant at which the present head can begin and still end in time.
    pub(super) fn latest_start(&self) -> Option<Instant> {
        let service = self.head.as_ref()?.sample.service;
        Some(self.promise.as_ref()?.latest_start(service))
    }
}

/// A head and its place in the queues.
#[derive(Clone, Debug)]
pub(super) struct Queued<K> {
    pub(super) sample: Head,
    /// How many heads were announced on this link before it.
    pub(super) serial: u64,
    pub(super) place: Place<K>,
}

/// A contract in force: when the next sample may come, what the present one is due, how the window
/// stands. `W` is what the discipline keeps beside it.
#[derive(Clone, Debug)]
pub(super) struct Promise<W> {
    pub(super) contract: Contract,
    pub(super) window: W,
    pub(super) account: Account,
    /// When the period of the present head, or of the last one, came.
    pub(super) release: Instant,
    /// By when it must end.
    pub(super) deadline: Instant,
    /// It has been judged as missed and is only sent late.
    pub(super) charged: bool,
    next_release: Instant,
}

impl<W> Promise<W> {
    pub(super) fn new(contract: Contract, window: W) -> Self {
        Self {
            contract,
            window,
            account: Account::default(),
            release: Instant::ZERO,
            deadline: Instant::ZERO,
            charged: false,
            next_release: Instant::ZERO,
        }
    }

    /// Gives the sample that `arrived` its period.
    ///
    /// Periods follow each other while samples wait, and begin anew with a sample that comes after
    /// its turn: an idle stream saves up no priority. A sample within the jitter before its turn is
    /// released at once but does not bring the next turn forward.
    pub(super) fn begin(&mut self, arrived: Instant) {
        if arrived + self.contract.jitter >= self.next_release {
            self.release = arrived;
            self.next_release = self.next_release.max(arrived) + self.contract.period;
        } else {
            self.release = self.next_release - self.contract.jitter;
            self.next_release += self.contract.period;
        }
        debug_assert!(self.release >= arrived, "released before it arrived");
        self.deadline = self.release + self.contract.deadline;
        self.charged = false;
    }

    /// The last instant at which `service` can begin and still end in time. A deadline at
    /// [`Instant::FAR`] is never missed, or a late head there could not be moved past any instant.
    pub(super) fn latest_start(&self, service: Duration) -> Instant {
        match self.deadline {
            Instant::FAR => Instant::FAR,
            deadline => deadline - service,
        }
    }

    /// Moves a missed deadline on by whole periods until `service` fits again after `now`, and says by
    /// how many: a division, so that a link that was down for a day costs no more than one that
    /// blinked.
    ///
    /// The samples behind it keep their own periods. In the papers the late one takes theirs too; then
    /// a stream that was late once would count as ahead of its period, and so be late again, until it
    /// paused.
    pub(super) fn postpone(&mut self, now: Instant, service: Duration) -> u64 {
        let finish = u128::from(now.as_nanos()) + u128::from(service.as_nanos());
        let late = finish.saturating_sub(u128::from(self.deadline.as_nanos()));
        // A period of zero can only be written by hand; it then counts in nanoseconds.
        let period = self.contract.period.max(Duration::from_nanos(1));
        let periods = late.div_ceil(u128::from(period.as_nanos())).max(1);
        let periods = u64::try_from(periods).unwrap_or(u64::MAX);
        let shift = period.mul_div(periods, 1);
        self.deadline += shift;
        periods
    }
}

/// The judge of the promise: aligned windows of `y` samples, each judged once, at most `x` missed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Account {
    judged: u32,
    missed: u32,
}

impl Account {
    /// One more sample ended in time.
    pub(super) fn record_met(&mut self, loss: LossTolerance) {
        self.judged = self.judged.saturating_add(1);
        self.turn_over(loss);
    }

    /// One more sample missed; true if with it the misses of the window first exceed `x`.
    pub(super) fn record_missed(&mut self, loss: LossTolerance) -> bool {
        self.judged = self.judged.saturating_add(1);
        self.missed = self.missed.saturating_add(1);
        let violated = loss.y() > 0 && self.missed.checked_sub(loss.x()) == Some(1);
        self.turn_over(loss);
        violated
    }

    fn turn_over(&mut self, loss: LossTolerance) {
        if self.judged >= loss.y() {
            *self = Self::default();
        }
    }

    /// k': samples of the window still to be judged, from 1 to y; 0 for 0/0.
    pub(super) fn left(self, loss: LossTolerance) -> u32 {
        loss.y().saturating_sub(self.judged)
    }

    /// m': services the window still owes; more than are left once it is violated.
    pub(super) fn owed(self, loss: LossTolerance) -> u32 {
        let met = self.judged.saturating_sub(self.missed);
        loss.y().saturating_sub(loss.x()).saturating_sub(met)
    }

    /// The window as misses still tolerated of samples left.
    pub(super) fn state(self, loss: LossTolerance) -> WindowState {
        let left = self.left(loss);
        WindowState { x: left.saturating_sub(self.owed(loss)), y: left, tagged: false }
    }
}

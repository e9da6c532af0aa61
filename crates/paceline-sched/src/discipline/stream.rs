//! The per-stream state that all disciplines share: its head, its contract's clock, its aligned windows.

use super::{Earlier, Left, ServiceClass, Terms, WindowState};
use crate::contract::{Contract, Late, LossTolerance};
use crate::time::{Duration, Instant};

/// The queue in which a head waits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Place {
    /// There is no head.
    Nowhere,
    /// In the discipline's order.
    Ranked,
    /// In round robin: its period begins later than one relative deadline from now.
    Early,
    /// Before everything unranked: its period begins within one relative deadline from now.
    Ahead,
    /// In round robin permanently.
    Round,
    /// In round robin permanently although its stream ranks: the head exceeds the stream's permitted
    /// traffic.
    Demoted,
    /// In the round robin of background streams.
    Background,
}

/// The properties of a contract that affect heads, in one byte.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Promise {
    /// Missed heads are sent late.
    Send,
    /// Missed heads are dropped.
    Drop,
    /// As [`Self::Send`], with [`Clauses`].
    SendBy,
    /// As [`Self::Drop`], with [`Clauses`].
    DropBy,
}

impl Promise {
    const fn new(contract: &Contract) -> Self {
        match (contract.late, Clauses::of(contract).is_some()) {
            (Late::Send, false) => Self::Send,
            (Late::Drop, false) => Self::Drop,
            (Late::Send, true) => Self::SendBy,
            (Late::Drop, true) => Self::DropBy,
        }
    }
}

/// The class of a stream, in one byte.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// The stream has a contract.
    Contracted(Promise),
    /// The stream has no contract, but a priority or a share.
    Ranked,
    /// The stream has no contract, priority or share.
    BestEffort,
    Background,
}

impl Kind {
    const fn new(terms: &Terms) -> Self {
        match terms.class {
            ServiceClass::Contracted(contract) => Self::Contracted(Promise::new(&contract)),
            ServiceClass::Background => Self::Background,
            ServiceClass::BestEffort if terms.ranks() => Self::Ranked,
            ServiceClass::BestEffort => Self::BestEffort,
        }
    }
}

/// The rare terms of a contract: jitter, or a relative deadline other than T.
///
/// They are stored apart from the streams, so that a stream fits into one cache line. They are read only
/// if a stream has any.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clauses {
    due: Duration,
    jitter: Duration,
}

impl Clauses {
    /// The entry of a stream without clauses; it is never read.
    pub(super) const NONE: Self = Self { due: Duration::ZERO, jitter: Duration::ZERO };

    const fn of(&Contract { period, deadline, jitter, .. }: &Contract) -> Option<Self> {
        let none = jitter.is_zero() && deadline.as_nanos() == period.as_nanos();
        if none { None } else { Some(Self { due: deadline, jitter }) }
    }

    /// Returns the clauses of a stream with these terms, if it has any.
    pub(super) fn new(terms: &Terms) -> Option<Self> {
        terms.contract().as_ref().and_then(Self::of)
    }
}

/// A stream that joined. `O` is the discipline's own state of it.
///
/// There may be a million streams, and a decision stalls on every cache miss. The fields that most
/// decisions need therefore fit into 64 bytes, one cache line, if `O` has at most 8.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Stream<O> {
    /// T and the loss tolerance of the contract.
    period: Duration,
    loss: LossTolerance,
    /// The instant by which the present head must end; always [`Instant::FAR`] without a contract.
    pub(super) deadline: Instant,
    next_release: Instant,
    /// The remaining transmission time of the head.
    pub(super) service: Duration,
    /// The size of the head's next segment in bytes.
    pub(super) segment: u32,
    pub(super) own: O,
    pub(super) account: Account,
    pub(super) place: Place,
    kind: Kind,
    /// Heads of a suspended stream are not picked, but they can still miss.
    pub(super) suspended: bool,
    /// The head was already counted as missed and is only sent late.
    pub(super) charged: bool,
}

const _: () = assert!(size_of::<Option<Stream<u64>>>() == 64, "a stream lies on one cache line");

impl<O> Stream<O> {
    pub(super) fn new(terms: &Terms, own: O) -> Self {
        let promised = terms.contract();
        let loss = promised.map_or(LossTolerance::EDF, |contract| contract.loss);
        Self {
            period: promised.map_or(Duration::ZERO, |contract| contract.period),
            loss,
            deadline: Instant::FAR,
            next_release: Instant::ZERO,
            service: Duration::ZERO,
            segment: 0,
            own,
            account: Account::open(loss),
            place: Place::Nowhere,
            kind: Kind::new(terms),
            suspended: false,
            charged: false,
        }
    }

    /// Returns true if the stream takes part in the discipline's order: it has a contract, a priority or
    /// a share.
    pub(super) const fn ranks(&self) -> bool {
        matches!(self.kind, Kind::Contracted(_) | Kind::Ranked)
    }

    /// Returns true if the stream has a contract; otherwise it is best effort or background.
    #[inline]
    pub(super) const fn contracted(&self) -> bool {
        matches!(self.kind, Kind::Contracted(_))
    }

    #[inline]
    pub(super) const fn background(&self) -> bool {
        matches!(self.kind, Kind::Background)
    }

    /// Returns true if missed heads are dropped.
    pub(super) const fn drops(&self) -> bool {
        matches!(self.kind, Kind::Contracted(Promise::Drop | Promise::DropBy))
    }

    #[inline]
    pub(super) fn has_head(&self) -> bool {
        self.place != Place::Nowhere
    }

    /// Gives a demoted sample that `arrived` a deadline, but no period.
    pub(super) fn begin_demoted(&mut self, arrived: Instant, clauses: &Clauses) {
        if self.contracted() {
            self.deadline = arrived + self.due(clauses);
        }
        self.charged = false;
    }

    /// Returns true if the head is ranked by a contract, was not missed, and is on time when it ends at
    /// `finish`.
    #[inline]
    pub(super) fn is_met(&self, finish: Instant) -> bool {
        let plain = self.place == Place::Ranked && self.contracted();
        plain && finish <= self.deadline && !self.charged && !self.suspended
    }

    /// Returns true if the stream is background or suspended, so that its heads are not simply ranked.
    #[inline]
    pub(super) const fn is_apart(&self) -> bool {
        self.background() | self.suspended
    }

    /// Returns the loss tolerance of the contract.
    pub(super) const fn loss(&self) -> LossTolerance {
        self.loss
    }

    /// Returns the samples of the window before the head. A head that is counted already will be counted again when it is
    /// announced anew.
    pub(super) fn earlier(&self) -> Earlier {
        let Earlier { samples, missed } = self.account.counted(self.loss);
        if !(self.has_head() && self.charged) {
            return Earlier { samples, missed };
        }
        let window = u64::from(self.loss.y());
        let samples = samples.checked_sub(1).unwrap_or(window.saturating_sub(1));
        Earlier { samples, missed: missed.saturating_sub(1) }
    }

    /// Returns true if the contract has [`Clauses`].
    pub(super) const fn has_clauses(&self) -> bool {
        matches!(self.kind, Kind::Contracted(Promise::SendBy | Promise::DropBy))
    }

    /// Returns the jitter of the contract.
    #[inline]
    const fn jitter(&self, clauses: &Clauses) -> Duration {
        if self.has_clauses() { clauses.jitter } else { Duration::ZERO }
    }

    /// Returns the time from release to deadline.
    #[inline]
    pub(super) const fn due(&self, clauses: &Clauses) -> Duration {
        if self.has_clauses() { clauses.due } else { self.period }
    }

    /// Returns T of the contract.
    pub(super) const fn period(&self) -> Duration {
        self.period
    }

    /// Sets the remaining service of the head.
    #[inline]
    pub(super) fn set_left(&mut self, left: Left) {
        (self.service, self.segment) = (left.service, left.segment);
    }

    /// Gives the sample that `arrived` its period. Returns true if it arrived before that period.
    ///
    /// Periods follow each other while samples wait. A sample that arrives after its scheduled release
    /// starts a new sequence of periods, so an idle stream accumulates no priority. A sample within the
    /// jitter before its scheduled release is released at once, but does not bring the next release
    /// forward.
    #[inline]
    pub(super) fn begin(&mut self, arrived: Instant, clauses: &Clauses) -> bool {
        let turn = self.next_release - self.jitter(clauses);
        self.next_release = self.next_release.max(arrived) + self.period;
        self.deadline = turn.max(arrived) + self.due(clauses);
        self.charged = false;
        arrived < turn
    }

    /// Returns true if the present head has a period of its contract.
    pub(super) fn has_period(&self) -> bool {
        self.contracted() && matches!(self.place, Place::Ranked | Place::Early | Place::Ahead)
    }

    /// Postpones the period and the deadline of the present head, and of all samples behind it, by
    /// `over`.
    pub(super) fn put_off(&mut self, over: Duration) {
        self.next_release += over;
        self.deadline += over;
    }

    /// Returns the beginning of the period of the present head, if the head is early.
    ///
    /// Returns [`Instant::FAR`] if no further period ends before that.
    #[inline]
    pub(super) fn release(&self, clauses: &Clauses) -> Instant {
        if self.next_release == Instant::FAR {
            return Instant::FAR;
        }
        self.next_release - self.period - self.jitter(clauses)
    }

    /// Returns the instant from which the present head, which is early, precedes best effort.
    ///
    /// Earlier hops may have delayed the preceding samples, or their publisher may have stalled. Such a
    /// stream is ahead of its clock by a bounded time. A stream that sends more than its contract soon
    /// exceeds that bound and is then served in round robin.
    #[inline]
    fn goes_ahead(&self, clauses: &Clauses) -> Instant {
        let release = self.release(clauses);
        if release == Instant::FAR { release } else { release - self.due(clauses) }
    }

    /// Returns the queue of an early head at `now`.
    #[inline]
    pub(super) fn place_at(&self, now: Instant, clauses: &Clauses) -> Place {
        match now {
            now if now >= self.release(clauses) => Place::Ranked,
            now if now >= self.goes_ahead(clauses) => Place::Ahead,
            _ => Place::Early,
        }
    }

    /// Returns true if the passage of time alone will rank the head.
    #[inline]
    pub(super) fn waits(&self) -> bool {
        matches!(self.place, Place::Early | Place::Ahead) && !self.suspended
    }

    /// Returns the instant at which time alone moves the head to its next queue.
    #[inline]
    pub(super) fn moves_at(&self, clauses: &Clauses) -> Instant {
        if self.place == Place::Early { self.goes_ahead(clauses) } else { self.release(clauses) }
    }

    /// Returns the instant at which time alone next changes the present head: its period begins, or it
    /// expires at `expires`.
    #[inline]
    pub(super) fn changes_at(&self, expires: Instant, clauses: &Clauses) -> Instant {
        if self.waits() { expires.min(self.moves_at(clauses)) } else { expires }
    }

    /// Returns the instant from which the present head can no longer end in time; [`Instant::FAR`] for
    /// never.
    ///
    /// A deadline of [`Instant::FAR`] is never missed; a late head with it could not be postponed any
    /// further.
    #[inline]
    pub(super) fn missed_at(&self) -> Instant {
        self.too_late_for(self.service)
    }

    /// Returns the first instant from which the deadline of the present head is less than `time` away.
    #[inline]
    pub(super) fn too_late_for(&self, time: Duration) -> Instant {
        if self.deadline == Instant::FAR {
            return Instant::FAR;
        }
        self.deadline + Duration::from_nanos(1) - time
    }

    /// Returns the earliest instant at which the period of the sample behind the present head may begin.
    #[inline]
    pub(super) fn follower_at(&self, clauses: &Clauses) -> Instant {
        self.next_release - self.jitter(clauses)
    }

    /// Advances a missed deadline by whole periods until `service` fits again after `now`, and returns
    /// their number.
    ///
    /// This is one division, so a link that was down for a day costs no more than one that was down for
    /// a moment.
    ///
    /// The samples behind it keep their own periods. In the papers the late sample consumes theirs too.
    /// A stream that was late once would then count as ahead of its period, and would stay late until it
    /// paused.
    pub(super) fn postpone(&mut self, now: Instant) -> u64 {
        let finish = u128::from(now.as_nanos()) + u128::from(self.service.as_nanos());
        let late = finish.saturating_sub(u128::from(self.deadline.as_nanos()));
        // A period of zero is possible only in a hand-written contract; it counts as one nanosecond.
        let period = self.period.max(Duration::from_nanos(1));
        let periods = late.div_ceil(u128::from(period.as_nanos())).max(1);
        let periods = u64::try_from(periods).unwrap_or(u64::MAX);
        self.deadline += period.mul_div(periods, 1);
        periods
    }
}

/// The window account: aligned windows of `y` samples, each counted once, of which at most `x` may miss.
///
/// It counts down, because ranks are computed from the remaining numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    /// k': the samples of the window not yet counted, from 1 to y; 0 for 0/0.
    pub(super) left: u32,
    /// m': the services that the window still owes; larger than `left` once the window is violated.
    pub(super) owes: u32,
}

impl Account {
    const fn open(loss: LossTolerance) -> Self {
        Self { left: loss.y(), owes: loss.y().saturating_sub(loss.x()) }
    }

    /// Returns true if services are owed, and the next sample may still be missed.
    #[inline]
    pub(super) const fn can_miss(self) -> bool {
        0 < self.owes && self.owes < self.left
    }

    /// Counts one more sample that ended in time.
    #[inline]
    pub(super) fn record_met(&mut self, loss: LossTolerance) {
        // A branch is faster than updating both unconditionally, because the rank depends on this
        // result.
        if self.left <= 1 {
            *self = Self::open(loss);
        } else {
            self.left -= 1;
            self.owes = self.owes.saturating_sub(1);
        }
    }

    /// Counts one more missed sample. Returns true if the misses of the window first exceed `x` with it.
    #[inline]
    pub(super) fn record_missed(&mut self, loss: LossTolerance) -> bool {
        self.left = self.left.saturating_sub(1);
        // Exactly one more is owed than can still be served, so the excess is new with this miss.
        let violated = self.owes.checked_sub(self.left) == Some(1);
        if self.left == 0 {
            *self = Self::open(loss);
        }
        violated
    }

    /// Returns the counted samples of the window.
    fn counted(self, loss: LossTolerance) -> Earlier {
        let samples = loss.y().saturating_sub(self.left);
        let met = loss.y().saturating_sub(loss.x()).saturating_sub(self.owes);
        Earlier { samples: samples.into(), missed: samples.saturating_sub(met) }
    }

    /// Returns the window as tolerated misses and remaining samples.
    pub(super) const fn state(self) -> WindowState {
        WindowState { x: self.left.saturating_sub(self.owes), y: self.left, tagged: false }
    }
}

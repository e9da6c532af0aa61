//! What every discipline keeps of a stream: its head, its contract's clock, its aligned windows.

use super::{Class, Left, Terms, WindowState};
use crate::contract::{Contract, Late, LossTolerance};
use crate::time::{Duration, Instant};

/// Where a head waits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Place {
    /// There is no head.
    Nowhere,
    /// In the discipline's order.
    Ranked,
    /// In round robin: its period comes later than its deadline from now.
    Early,
    /// Before all that does not rank: its period comes within its deadline from now.
    Ahead,
    /// In round robin, for good.
    Round,
    /// In round robin, for good, although its stream ranks: it is more than that may send.
    Demoted,
    /// In the round robin of background streams.
    Background,
}

/// What a contract says of a stream's heads, in one byte.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Promise {
    /// They are sent late.
    Send,
    /// They are given up when they are missed.
    Drop,
    /// As [`Self::Send`], and there are [`Clauses`].
    SendBy,
    /// As [`Self::Drop`], and there are.
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

/// What a stream may ask for, in one byte.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// It has a contract.
    Contracted(Promise),
    /// It has none, but asked for a priority or a share.
    Ranked,
    /// It has none of them.
    BestEffort,
    Background,
}

impl Kind {
    const fn new(terms: &Terms) -> Self {
        match terms.class {
            Class::Contracted(contract) => Self::Contracted(Promise::new(&contract)),
            Class::Background => Self::Background,
            Class::BestEffort if terms.ranks() => Self::Ranked,
            Class::BestEffort => Self::BestEffort,
        }
    }
}

/// What a contract says that most do not: jitter, or another time from release to deadline than T. They lie
/// beside the streams, which so fit one cache line each, and are read only if there are any.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clauses {
    due: Duration,
    jitter: Duration,
}

impl Clauses {
    /// Of a stream that has none. They are not read.
    pub(super) const NONE: Self = Self { due: Duration::ZERO, jitter: Duration::ZERO };

    const fn of(&Contract { period, deadline, jitter, .. }: &Contract) -> Option<Self> {
        let none = jitter.is_zero() && deadline.as_nanos() == period.as_nanos();
        if none { None } else { Some(Self { due: deadline, jitter }) }
    }

    /// Those of a stream of such terms.
    pub(super) fn new(terms: &Terms) -> Option<Self> {
        terms.contract().as_ref().and_then(Self::of)
    }
}

/// A stream that joined. `O` is what the discipline keeps beside it.
///
/// There may be a million of them, and a decision waits for what no cache holds of one: so what most decisions
/// need is together, in 64 bytes if `O` has at most 8, on one cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Stream<O> {
    /// Of the contract: T, the loss tolerance.
    period: Duration,
    loss: LossTolerance,
    /// By when the present head must end; [`Instant::FAR`] for ever without a contract.
    pub(super) deadline: Instant,
    next_release: Instant,
    /// Time the link still needs for the head.
    pub(super) service: Duration,
    /// Bytes of the head's next segment.
    pub(super) segment: u32,
    pub(super) own: O,
    pub(super) account: Account,
    pub(super) place: Place,
    kind: Kind,
    /// Its heads are not picked; they are still missed.
    pub(super) suspended: bool,
    /// The head has been judged as missed and is only sent late.
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

    /// It takes part in the discipline's order: it has a contract, or asked for a priority or a share.
    pub(super) const fn ranks(&self) -> bool {
        matches!(self.kind, Kind::Contracted(_) | Kind::Ranked)
    }

    /// It has a contract; without one it is best effort or background.
    #[inline]
    pub(super) const fn contracted(&self) -> bool {
        matches!(self.kind, Kind::Contracted(_))
    }

    #[inline]
    pub(super) const fn background(&self) -> bool {
        matches!(self.kind, Kind::Background)
    }

    /// Its heads are given up when they are missed.
    pub(super) const fn drops(&self) -> bool {
        matches!(self.kind, Kind::Contracted(Promise::Drop | Promise::DropBy))
    }

    #[inline]
    pub(super) fn has_head(&self) -> bool {
        self.place != Place::Nowhere
    }

    /// Gives a sample that `arrived` a deadline, and no period.
    pub(super) fn begin_demoted(&mut self, arrived: Instant, clauses: &Clauses) {
        if self.contracted() {
            self.deadline = arrived + self.due(clauses);
        }
        self.charged = false;
    }

    /// Its head is in the discipline's order by a contract, was not missed, and ends in time if it does at `finish`.
    #[inline]
    pub(super) fn is_met(&self, finish: Instant) -> bool {
        let plain = self.place == Place::Ranked && self.contracted();
        plain && finish <= self.deadline && !self.charged && !self.suspended
    }

    /// It is in the background or suspended: its heads are not simply ranked.
    #[inline]
    pub(super) const fn is_apart(&self) -> bool {
        self.background() | self.suspended
    }

    /// The loss tolerance of the contract.
    pub(super) const fn loss(&self) -> LossTolerance {
        self.loss
    }

    /// Its contract has [`Clauses`].
    pub(super) const fn has_clauses(&self) -> bool {
        matches!(self.kind, Kind::Contracted(Promise::SendBy | Promise::DropBy))
    }

    /// The jitter of the contract.
    #[inline]
    const fn jitter(&self, clauses: &Clauses) -> Duration {
        if self.has_clauses() { clauses.jitter } else { Duration::ZERO }
    }

    /// Time from release to deadline.
    #[inline]
    pub(super) const fn due(&self, clauses: &Clauses) -> Duration {
        if self.has_clauses() { clauses.due } else { self.period }
    }

    /// T of the contract.
    pub(super) const fn period(&self) -> Duration {
        self.period
    }

    /// What is to be sent of the head from now on.
    #[inline]
    pub(super) fn set_left(&mut self, left: Left) {
        (self.service, self.segment) = (left.service, left.segment);
    }

    /// Gives the sample that `arrived` its period; true if it came before it.
    ///
    /// Periods follow each other while samples wait, and begin anew with a sample that comes after
    /// its turn: an idle stream saves up no priority. A sample within the jitter before its turn is
    /// released at once but does not bring the next turn forward.
    #[inline]
    pub(super) fn begin(&mut self, arrived: Instant, clauses: &Clauses) -> bool {
        let turn = self.next_release - self.jitter(clauses);
        self.next_release = self.next_release.max(arrived) + self.period;
        self.deadline = turn.max(arrived) + self.due(clauses);
        self.charged = false;
        arrived < turn
    }

    /// The present head has a period of its contract's.
    pub(super) fn has_period(&self) -> bool {
        self.contracted() && matches!(self.place, Place::Ranked | Place::Early | Place::Ahead)
    }

    /// The present head is worth `over` more than one period: its own ends so much later, as do all behind it.
    pub(super) fn put_off(&mut self, over: Duration) {
        self.next_release += over;
        self.deadline += over;
    }

    /// When the period of the present head comes, if it is early; [`Instant::FAR`] if no further one
    /// ends before that.
    #[inline]
    pub(super) fn release(&self, clauses: &Clauses) -> Instant {
        if self.next_release == Instant::FAR {
            return Instant::FAR;
        }
        self.next_release - self.period - self.jitter(clauses)
    }

    /// When the present head, which is early, goes before best effort. What lay before this link may have
    /// taken longer for the samples before it, or their publisher may have been held up; a stream that sends
    /// more than its contract is soon ahead of it by more, and then takes turns.
    #[inline]
    fn goes_ahead(&self, clauses: &Clauses) -> Instant {
        let release = self.release(clauses);
        if release == Instant::FAR { release } else { release - self.due(clauses) }
    }

    /// Where an early head belongs at `now`.
    #[inline]
    pub(super) fn place_at(&self, now: Instant, clauses: &Clauses) -> Place {
        match now {
            now if now >= self.release(clauses) => Place::Ranked,
            now if now >= self.goes_ahead(clauses) => Place::Ahead,
            _ => Place::Early,
        }
    }

    /// Time alone will give the head its rank.
    #[inline]
    pub(super) fn waits(&self) -> bool {
        matches!(self.place, Place::Early | Place::Ahead) && !self.suspended
    }

    /// When time alone moves the head on, which waits for that.
    #[inline]
    pub(super) fn moves_at(&self, clauses: &Clauses) -> Instant {
        if self.place == Place::Early { self.goes_ahead(clauses) } else { self.release(clauses) }
    }

    /// When time alone next changes something of the present head: its period comes, or it is missed.
    #[inline]
    pub(super) fn changes_at(&self, clauses: &Clauses) -> Instant {
        let missed = self.missed_at();
        if self.waits() { missed.min(self.moves_at(clauses)) } else { missed }
    }

    /// The instant from which on the present head can no longer end in time; [`Instant::FAR`] for
    /// never. A deadline that far is never missed, or a late head there could not be moved past any
    /// instant.
    #[inline]
    pub(super) fn missed_at(&self) -> Instant {
        if self.deadline == Instant::FAR {
            return Instant::FAR;
        }
        self.deadline + Duration::from_nanos(1) - self.service
    }

    /// Moves a missed deadline on by whole periods until `service` fits again after `now`, and says by
    /// how many: a division, so that a link that was down for a day costs no more than one that
    /// blinked.
    ///
    /// The samples behind it keep their own periods. In the papers the late one takes theirs too; then
    /// a stream that was late once would count as ahead of its period, and so be late again, until it
    /// paused.
    pub(super) fn postpone(&mut self, now: Instant) -> u64 {
        let finish = u128::from(now.as_nanos()) + u128::from(self.service.as_nanos());
        let late = finish.saturating_sub(u128::from(self.deadline.as_nanos()));
        // A period of zero can only be written by hand; it then counts in nanoseconds.
        let period = self.period.max(Duration::from_nanos(1));
        let periods = late.div_ceil(u128::from(period.as_nanos())).max(1);
        let periods = u64::try_from(periods).unwrap_or(u64::MAX);
        self.deadline += period.mul_div(periods, 1);
        periods
    }
}

/// The judge of the promise: aligned windows of `y` samples, each judged once, at most `x` missed. Counted
/// down, since what is left is what ranks are made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    /// k': samples of the window still to be judged, from 1 to y; 0 for 0/0.
    pub(super) left: u32,
    /// m': services the window still owes; more than are left once it is violated.
    pub(super) owes: u32,
}

impl Account {
    const fn open(loss: LossTolerance) -> Self {
        Self { left: loss.y(), owes: loss.y().saturating_sub(loss.x()) }
    }

    /// One more sample ended in time.
    #[inline]
    pub(super) fn record_met(&mut self, loss: LossTolerance) {
        // One after the other: ranks wait for what counting both at once takes longer to tell.
        if self.left <= 1 {
            *self = Self::open(loss);
        } else {
            self.left -= 1;
            self.owes = self.owes.saturating_sub(1);
        }
    }

    /// One more sample missed; true if with it the misses of the window first exceed `x`.
    #[inline]
    pub(super) fn record_missed(&mut self, loss: LossTolerance) -> bool {
        self.left = self.left.saturating_sub(1);
        // One more is owed than can be had: it was not so before, or more would be missing by now.
        let violated = self.owes.checked_sub(self.left) == Some(1);
        if self.left == 0 {
            *self = Self::open(loss);
        }
        violated
    }

    /// The window as misses still tolerated of samples left.
    pub(super) const fn state(self) -> WindowState {
        WindowState { x: self.left.saturating_sub(self.owes), y: self.left, tagged: false }
    }
}

//! The state of one object at one observer.

use super::counters::SuppressReason;
use super::groups::GroupOrder;
use super::objects::ObjectState;
use super::settings::ExchangeSettings;
use super::update::{UpdateConstraints, UpdateKind, UpdatePlan};
use crate::contract::ObjectContract;
use crate::motion::{Motion, distance, seconds};
use crate::schema::GroupMask;
use crate::semantic::ExchangeTerms;
use paceline_sched::{Duration, Instant};

/// Where a pair is queued.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Queued {
    /// Nowhere yet.
    Nowhere,
    /// Its time has not come.
    Upcoming(Instant),
    /// It has a promised place, and this time.
    Reserved(Instant),
    /// It waits for room, with this rank.
    Ready(u64),
}

/// Why a pair ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Ending {
    Withdrawn,
    Deleted,
}

/// An update in a message that is neither delivered nor lost.
#[derive(Clone, Copy, Debug)]
struct Flight {
    number: u64,
    groups: GroupMask,
    motion: Option<Motion>,
    introduces: bool,
    ends: bool,
}

/// The service in force: that of the contract or of the terms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) gap: Duration,
    pub(super) refresh: Duration,
    pub(super) fidelity_permille: u16,
}

/// The state of one object at one observer.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) terms: ExchangeTerms,
    pub(super) queued: Queued,
    pub(super) last: Option<Instant>,
    pub(super) ending: Option<Ending>,
    /// When its time came, if it waits for room.
    pub(super) ripe: Instant,
    dirty: GroupMask,
    /// Groups that the next change or refresh also carries: their changes were dropped, or lost without a repetition.
    stale: GroupMask,
    /// The fidelity of the waiting changes, if all of them have one of their own: the greatest.
    least: Option<u16>,
    /// Until when groups of waiting changes that have a time of their own must leave; a group is in one of them at most.
    expiries: Vec<(Instant, GroupMask)>,
    /// Whether an update waits that is counted as offered or lost.
    waits: bool,
    /// Whether the fidelity left a part of it out.
    cut: bool,
    /// Whether only the position changed, and the replica's extrapolation is within the tolerance.
    pub(super) held: bool,
    introduced: bool,
    /// Whether any update left.
    sent: bool,
    since: Instant,
    order: GroupOrder,
    flights: Vec<Flight>,
    confirmed: Option<Motion>,
}

impl Pair {
    pub(super) fn new(terms: ExchangeTerms, object: &ObjectState, now: Instant) -> Self {
        Self {
            terms,
            queued: Queued::Nowhere,
            last: None,
            ending: None,
            ripe: now,
            dirty: object.groups(),
            stale: GroupMask::default(),
            least: None,
            expiries: Vec::new(),
            waits: true,
            cut: false,
            held: false,
            introduced: false,
            sent: false,
            since: now,
            order: GroupOrder::new(object.group_bytes.len()),
            flights: Vec::new(),
            confirmed: None,
        }
    }

    pub(super) fn waits(&self) -> bool {
        self.waits
    }

    pub(super) fn pace(&self, contract: Option<&ObjectContract>) -> Pace {
        contract.map_or(
            Pace {
                gap: self.terms.gap,
                refresh: self.terms.refresh,
                fidelity_permille: self.least.unwrap_or(self.terms.fidelity_permille),
            },
            |contract| Pace {
                gap: contract.gap(),
                refresh: contract.refresh,
                // More than the contract's is not reserved.
                fidelity_permille: contract
                    .fidelity_permille
                    .min(self.least.unwrap_or(contract.fidelity_permille)),
            },
        )
    }

    /// Returns when its time comes: the gap after the last exchange if there is something to carry, and else the time
    /// of a refresh.
    pub(super) fn due(&self, pace: Pace) -> Instant {
        let Some(last) = self.last else { return self.since };
        last + if self.wants() { pace.gap } else { pace.refresh.max(pace.gap) }
    }

    /// Returns whether a change comes sooner than `gap` after the last exchange.
    pub(super) fn comes_early(&self, gap: Duration, now: Instant) -> bool {
        self.last.is_some_and(|last| now < last + gap)
    }

    /// Returns `due`, and now instead of a time that passed before the pair was queued for it: a time that lies in the
    /// past only now, after a loss or a change of terms.
    pub(super) fn not_before(&self, due: Instant, now: Instant) -> Instant {
        match self.queued {
            Queued::Upcoming(at) | Queued::Reserved(at) if at <= now => due.max(at),
            Queued::Upcoming(_) | Queued::Reserved(_) | Queued::Ready(_) | Queued::Nowhere => {
                due.max(now)
            }
        }
    }

    /// Returns whether there is something to carry that is not under way.
    fn wants(&self) -> bool {
        if self.ending.is_some() {
            return !self.flights.iter().any(|flight| flight.ends);
        }
        (!self.dirty.is_empty() && !self.held)
            || !(self.introduced || self.flights.iter().any(|flight| flight.introduces))
    }

    /// Determines whether the tolerance holds the waiting update back.
    pub(super) fn hold(&mut self, object: Option<&ObjectState>, now: Instant) {
        let held = self.terms.tolerance > 0.0
            && self.ending.is_none()
            && !self.dirty.is_empty()
            && object.is_some_and(|object| {
                self.dirty.without(object.motion_groups).is_empty()
                    && self.error(object, now).is_some_and(|error| error <= self.terms.tolerance)
            });
        if self.held && !held {
            self.since = now;
        }
        self.held = held;
    }

    /// Drops a change, which the next change or refresh carries.
    pub(super) fn drop_change(&mut self, groups: GroupMask) {
        self.stale = self.stale.with(groups);
    }

    /// Drops the waiting changes that could not leave in the time of their constraints. Returns whether nothing waits
    /// therefore.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        if !self.introduced || self.ending.is_some() {
            return false;
        }
        let late = self.expiries.iter().filter(|(until, _)| now > *until);
        let late = late.fold(GroupMask::default(), |late, (_, groups)| late.with(*groups));
        if late.is_empty() {
            return false;
        }
        let dropped = GroupMask(self.dirty.0 & late.0);
        self.drop_change(dropped);
        self.dirty = self.dirty.without(late);
        self.release(late);
        let expired = self.dirty.is_empty();
        if expired {
            (self.least, self.waits, self.cut) = (None, false, false);
        }
        expired
    }

    /// Ends the times of changes of these groups.
    fn release(&mut self, groups: GroupMask) {
        for (_, bound) in &mut self.expiries {
            *bound = bound.without(groups);
        }
        self.expiries.retain(|(_, bound)| !bound.is_empty());
    }

    /// Notes a change. Returns why the update that waited, if any, is not carried.
    pub(super) fn offer(
        &mut self,
        groups: GroupMask,
        constraints: UpdateConstraints,
        now: Instant,
    ) -> Option<SuppressReason> {
        // Constraints hold for their change alone: with changes of other groups that wait, the stricter fidelity.
        let alone = self.dirty.without(groups).is_empty();
        let stricter =
            || self.least.zip(constraints.fidelity_permille).map(|(one, other)| one.max(other));
        self.least = if alone { constraints.fidelity_permille } else { stricter() };
        self.release(groups);
        self.expiries.extend(constraints.within.map(|within| (now + within, groups)));
        let replaced = self.waits.then(|| self.reason(now));
        if !self.wants() && !self.held {
            self.since = now;
        }
        self.dirty = self.dirty.with(groups);
        self.waits = true;
        replaced
    }

    /// Ends the pair. Returns why the update that waited, if any, is not carried.
    pub(super) fn end(&mut self, ending: Ending, now: Instant) -> Option<SuppressReason> {
        let replaced = self.waits.then(|| match ending {
            Ending::Withdrawn => SuppressReason::Interest,
            Ending::Deleted => self.reason(now),
        });
        self.dirty = GroupMask::default();
        self.cut = false;
        self.waits = ending == Ending::Deleted;
        if self.ending.is_none() {
            self.since = now;
        } else {
            // The updates on their way end the interest; now the object is deleted.
            self.flights.retain(|flight| !flight.ends);
        }
        self.ending = Some(ending);
        replaced
    }

    /// Begins interest again after its end.
    pub(super) fn resume(&mut self, object: &ObjectState, now: Instant) {
        *self = Self {
            queued: self.queued,
            last: self.last,
            sent: self.sent,
            ..Self::new(self.terms, object, now)
        };
    }

    /// Returns whether the observer is known to have a replica.
    pub(super) const fn is_introduced(&self) -> bool {
        self.introduced && self.ending.is_none()
    }

    /// Returns whether the observer cannot have a replica.
    pub(super) const fn is_unknown(&self) -> bool {
        !self.sent
    }

    /// Returns why an update that waits is not carried if another replaces it.
    fn reason(&self, now: Instant) -> SuppressReason {
        match self.queued {
            Queued::Ready(_) => SuppressReason::Budget,
            Queued::Upcoming(due) | Queued::Reserved(due) if due <= now => SuppressReason::Budget,
            _ if self.held => SuppressReason::Tolerance,
            _ if self.cut => SuppressReason::Fidelity,
            Queued::Upcoming(_) | Queued::Reserved(_) | Queued::Nowhere => SuppressReason::Gap,
        }
    }

    /// Returns the distance between the object and where its replica extrapolates it to be. None if one of them has no
    /// position.
    pub(super) fn error(&self, object: &ObjectState, now: Instant) -> Option<f64> {
        let replica = self.flights.iter().rev().find_map(|flight| flight.motion);
        let replica = replica.or(self.confirmed)?;
        Some(distance(object.motion?.position_at(now), replica.position_at(now)))
    }

    /// Returns the rank among objects that wait for room: the weight times the error, with the wait
    /// counted as an error.
    pub(super) fn rank(
        &self,
        object: Option<&ObjectState>,
        settings: &ExchangeSettings,
        now: Instant,
    ) -> u64 {
        let waited = seconds(now.since(self.since)) * settings.waiting_error;
        let error = object.and_then(|object| self.error(object, now));
        let motion_groups = object.map_or_else(GroupMask::default, |object| object.motion_groups);
        let late = self.last.map_or(now, |last| last + self.terms.refresh);
        let overdue = seconds(now.since(late)) * settings.waiting_error;
        let counted = match error {
            Some(error) if self.ending.is_none() => {
                let other_groups = !self.dirty.without(motion_groups).is_empty();
                error + if other_groups { waited } else { overdue }
            }
            Some(_) | None if self.introduced => waited,
            Some(_) | None => waited + settings.absence_error,
        };
        let rank = counted * self.terms.weight;
        if rank.is_finite() { rank.max(0.0).to_bits() } else { f64::MAX.to_bits() }
    }

    /// Returns the update that would leave now.
    pub(super) fn plan(
        &self,
        object: Option<&ObjectState>,
        pace: Pace,
        settings: &ExchangeSettings,
    ) -> UpdatePlan {
        let repeated = self.unconfirmed().with(self.stale);
        let kind = match self.ending {
            Some(Ending::Deleted) => UpdateKind::Delete,
            Some(Ending::Withdrawn) => UpdateKind::Withdraw,
            None if !self.introduced => UpdateKind::Introduce,
            None if self.dirty.is_empty() && repeated.is_empty() => UpdateKind::Refresh,
            None => UpdateKind::Change,
        };
        let groups = match (kind, object) {
            (UpdateKind::Introduce | UpdateKind::Change, Some(object)) => {
                // Groups that were sent and not confirmed for the time of a refresh are sent again.
                let waiting =
                    if self.dirty.is_empty() { repeated } else { self.dirty.with(self.stale) };
                self.order.choose(object, waiting, pace.fidelity_permille)
            }
            _ => GroupMask::default(),
        };
        let state = object.map_or(0, |object| object.bytes_of(groups));
        let headers = settings.update_header_bytes
            + settings.group_header_bytes * usize::try_from(groups.len()).unwrap_or(32);
        let bytes = state + u64::try_from(headers).unwrap_or(u64::MAX);
        UpdatePlan { kind, groups, bytes }
    }

    fn unconfirmed(&self) -> GroupMask {
        self.flights.iter().fold(GroupMask::default(), |groups, flight| groups.with(flight.groups))
    }

    /// Notes that an update left in message `number`. Returns whether the update that waited is carried by now.
    pub(super) fn depart(
        &mut self,
        plan: &UpdatePlan,
        object: Option<&ObjectState>,
        number: u64,
        now: Instant,
    ) -> bool {
        let motion = object
            .filter(|object| plan.groups.without(object.motion_groups) != plan.groups)
            .and_then(|object| object.motion);
        self.flights.push(Flight {
            number,
            groups: plan.groups,
            motion,
            introduces: plan.kind == UpdateKind::Introduce,
            ends: plan.kind.ends(),
        });
        self.dirty = self.dirty.without(plan.groups);
        self.stale = self.stale.without(plan.groups);
        self.release(plan.groups);
        if self.dirty.is_empty() {
            self.least = None;
        }
        self.order.carried(plan.groups);
        self.last = Some(now);
        self.sent = true;
        self.since = now;
        self.cut = !self.dirty.is_empty();
        let carried = self.waits && !self.cut;
        self.waits &= self.cut;
        carried
    }

    /// Notes that message `number` arrived with these groups; missing ones wait again if `repeats`.
    pub(super) fn arrived(&mut self, number: u64, groups: GroupMask, repeats: bool) -> Settled {
        let Some(flight) = self.take(number) else { return Settled::default() };
        let arrived = GroupMask(flight.groups.0 & groups.0);
        for older in self.flights.iter_mut().filter(|older| older.number < number) {
            older.groups = older.groups.without(arrived);
            if !arrived.is_empty() && flight.motion.is_some() {
                older.motion = None;
            }
        }
        self.introduced |= flight.introduces;
        // Flights of which nothing is missing any more need no report.
        let superseded = |older: &Flight| {
            older.number < number && older.groups.is_empty() && !older.ends && self.introduced
        };
        self.flights.retain(|older| !superseded(older));
        let complete = arrived == flight.groups;
        if let Some(motion) = flight.motion.filter(|_| complete) {
            self.confirmed = Some(motion);
        }
        if flight.ends && self.ending.is_some() {
            return Settled { freed: true, lost: false };
        }
        let missing = flight.groups.without(arrived);
        Settled { freed: false, lost: self.wait_again(missing, number, repeats) }
    }

    /// Notes that message `number` was lost; its groups wait again if `repeats`. The end of a replica always does.
    pub(super) fn missed(&mut self, number: u64, repeats: bool) -> Settled {
        let Some(flight) = self.take(number) else { return Settled::default() };
        if flight.ends {
            let lost = self.ending == Some(Ending::Deleted) && !self.waits;
            self.waits |= lost;
            return Settled { freed: false, lost };
        }
        Settled { freed: false, lost: self.wait_again(flight.groups, number, repeats) }
    }

    fn take(&mut self, number: u64) -> Option<Flight> {
        let place = self.flights.iter().position(|flight| flight.number == number)?;
        Some(self.flights.remove(place))
    }

    /// Notes that groups did not arrive; those in newer messages need not be sent again. Returns whether an update
    /// waits that did not before. Without `repeats`, they wait for the next change or refresh.
    fn wait_again(&mut self, groups: GroupMask, number: u64, repeats: bool) -> bool {
        if self.ending.is_some() {
            return false;
        }
        let newer = self.flights.iter().filter(|flight| flight.number > number);
        let missing = newer.fold(groups, |groups, flight| groups.without(flight.groups));
        if !repeats {
            self.drop_change(missing);
            return false;
        }
        self.dirty = self.dirty.with(missing);
        let lost = !missing.is_empty() && !self.waits;
        self.waits |= lost;
        lost
    }
}

/// The outcome for a pair when a message arrived or was lost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Settled {
    /// The observer knows of the end, so the pair is not needed any more.
    pub(super) freed: bool,
    /// An update waits again.
    pub(super) lost: bool,
}

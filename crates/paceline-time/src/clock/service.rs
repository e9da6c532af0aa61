//! A clock that follows NTP servers: answers in, pages out.

use super::page::{ClockPage, ClockReading, ClockStatus};
use super::servo::{Servo, ServoPoint};
use crate::ntp::filter::Measurement;
use crate::ntp::keys::NtpKey;
use crate::ntp::packet::Leap;
use crate::ntp::seal::NtpDatagram;
use crate::ntp::select::{Candidate, agreeing, cluster, combine, majority, steering};
use crate::ntp::source::{NtpSource, PollRange, Rejected, SAMPLES_MIN, ServerState};
use crate::ntp::{FREQUENCY_MAX, PHI, drift, growth};
use core::fmt;

/// The clock steps forward only if it is provably behind by more than this, in nanoseconds (STEPT).
const STEP_MIN: i64 = 128_000_000;
/// A jump of a host clock by more than this counts as a disruption, in nanoseconds.
const JUMP_MIN: u64 = 50_000_000;
/// The stratum of the system clock as a reference: that of a server after it is 10.
const SYSTEM_STRATUM: u8 = 9;
/// The nanoseconds of a day.
const DAY: u64 = 86_400_000_000_000;
const SECOND: u64 = 1_000_000_000;

/// The clocks of the host, read at one instant, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct HostClocks {
    /// The raw clock: monotonic, and adjusted by nobody (`CLOCK_MONOTONIC_RAW`).
    pub raw: u64,
    /// A monotonic clock that also runs while the host is suspended (`CLOCK_BOOTTIME`).
    pub boot: u64,
    /// The system clock, since 1970 (`CLOCK_REALTIME`).
    pub wall: u64,
}

/// The cause of a disruption.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Disruption {
    /// The host was suspended.
    Suspend,
    /// The system clock stepped: by hand, or because a virtual machine was restored.
    Step,
    /// The servers agree on a time outside of the clock's bounds: the raw clock stood still, or a majority lied.
    Contradiction,
    /// A leap second passed.
    LeapSecond,
}

impl Disruption {
    /// Returns the name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Suspend => "suspend",
            Self::Step => "step",
            Self::Contradiction => "contradiction",
            Self::LeapSecond => "leap_second",
        }
    }
}

/// The part of a server in the selection.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum SourcePart {
    /// It has not answered often enough yet, or no longer answers.
    #[default]
    Unreachable,
    /// It says that it is not synchronised.
    Unsynchronised,
    /// It refuses this client.
    Denied,
    /// Its answers have no authentication code by the key, or it does not accept the key.
    Unauthenticated,
    /// The majority contradicts it, or there is no majority.
    Falseticker,
    /// Nothing contradicts it for certain, but others agree better.
    Outlier,
    /// Its offset is part of the clock's.
    Combined,
    /// The best of the combined servers: this node's own stratum follows from it.
    Selected,
}

impl SourcePart {
    /// All, in the order of their codes.
    pub const ALL: [Self; 8] = [
        Self::Unreachable,
        Self::Unsynchronised,
        Self::Denied,
        Self::Unauthenticated,
        Self::Falseticker,
        Self::Outlier,
        Self::Combined,
        Self::Selected,
    ];

    /// Returns the name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Unsynchronised => "unsynchronised",
            Self::Denied => "denied",
            Self::Unauthenticated => "unauthenticated",
            Self::Falseticker => "falseticker",
            Self::Outlier => "outlier",
            Self::Combined => "combined",
            Self::Selected => "selected",
        }
    }
}

impl fmt::Display for SourcePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The facts about this node as a server that its answers carry.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ServerFacts {
    /// The stratum of this server, 1 to 15.
    pub stratum: u8,
    /// The clock or server that it follows.
    pub reference_id: [u8; 4],
    /// Its round-trip delay to the reference clock, in nanoseconds.
    pub root_delay: u64,
    /// The time of its last update, in nanoseconds since 1970.
    pub reference: u64,
    /// The leap second that it announces.
    pub leap: Leap,
}

/// The settings of a clock.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ClockSettings {
    /// The largest error of the host's system clock in nanoseconds, if it is a reference itself because another program
    /// adjusts it.
    pub system_error: Option<u64>,
}

/// A clock that follows NTP servers. Instants are those of the raw clock in nanoseconds.
///
/// The owner calls [`Self::request`] when [`Self::next_wakeup`] has come, sends its result, passes answers to
/// [`Self::receive`], and publishes [`Self::page`] after each call.
#[derive(Clone, Debug)]
pub struct ClockService {
    settings: ClockSettings,
    sources: Vec<NtpSource>,
    /// The part of each source, and at the end that of the system clock, if it is a reference.
    selections: Vec<SourcePart>,
    system: Option<Measurement>,
    /// The number of readings of the system clock since the last disruption.
    system_fresh: u8,
    page: ClockPage,
    servo: Servo,
    hosts: Option<HostClocks>,
    facts: ServerFacts,
    jitter: u64,
    updated: u64,
    updates: u64,
    disruptions: u64,
    disruption: Option<Disruption>,
}

impl ClockService {
    /// Creates a clock that follows servers with these poll ranges, from the instant `raw` on.
    #[must_use]
    pub fn new(settings: ClockSettings, servers: &[PollRange], raw: u64) -> Self {
        let sources: Vec<_> = servers.iter().map(|range| NtpSource::new(*range, raw)).collect();
        let count = sources.len() + usize::from(settings.system_error.is_some());
        Self {
            settings,
            sources,
            selections: vec![SourcePart::Unreachable; count],
            system: None,
            system_fresh: 0,
            page: ClockPage::unknown(),
            servo: Servo::default(),
            hosts: None,
            facts: ServerFacts::default(),
            jitter: 0,
            updated: raw,
            updates: 0,
            disruptions: 0,
            disruption: None,
        }
    }

    /// Adds a server after the others, from the instant `raw` on.
    pub fn add_server(&mut self, range: PollRange, raw: u64) {
        self.selections.insert(self.sources.len(), SourcePart::Unreachable);
        self.sources.push(NtpSource::new(range, raw));
    }

    /// Removes server number `source` with its measurements at the instant `raw`; the numbers of those after it decrease by
    /// one.
    pub fn remove_server(&mut self, source: usize, raw: u64) {
        if source < self.sources.len() {
            self.sources.remove(source);
            self.selections.remove(source);
            self.select(raw);
        }
    }

    /// Uses only answers of server number `source` with an authentication code by `key`.
    pub fn set_key(&mut self, source: usize, key: NtpKey) {
        self.sources.get_mut(source).into_iter().for_each(|source| source.set_key(key.clone()));
    }

    /// Returns the instant of the next request; `None` if there are no servers to ask.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<u64> {
        self.sources.iter().filter_map(NtpSource::next_request).min()
    }

    /// Returns a request that is due at `raw`, and the number of its server. `nonce` must be random. Call it again until
    /// it returns `None`.
    pub fn request(&mut self, raw: u64, nonce: u64) -> Option<(usize, NtpDatagram)> {
        let sources = self.sources.iter_mut().enumerate();
        let due = sources.map(|(at, source)| (at, source.request(raw, nonce)));
        let (at, packet) = due.filter_map(|(at, packet)| Some((at, packet?))).next()?;
        if !self.sources.get(at).is_some_and(NtpSource::is_fit) {
            self.select(raw);
        }
        Some((at, self.sources.get(at)?.datagram(&packet)))
    }

    /// Notes that the request to server number `source` left at `raw` or later.
    pub fn sent(&mut self, source: usize, raw: u64) {
        self.sources.get_mut(source).into_iter().for_each(|source| source.sent(raw));
    }

    /// Takes an answer of server number `source` that arrived at `raw` or earlier; `wall` is the system clock, which
    /// only determines the era.
    ///
    /// # Errors
    /// Returns the cause for which the answer is not used.
    pub fn receive(
        &mut self,
        source: usize,
        bytes: &[u8],
        raw: u64,
        wall: u64,
    ) -> Result<(), Rejected> {
        let Some(from) = self.sources.get_mut(source) else { return Err(Rejected::Unrequested) };
        // A host that starts in 1970 has no time yet.
        let phi = self.page.phi;
        let newest = from.filter().best(raw, phi).map(|best| best.raw);
        from.receive(bytes, raw, wall.max(FIRST_YEAR)).inspect_err(|_| {
            let _ = self.select(raw);
        })?;
        // A measurement that is not the best of the last 8 changes nothing but the bound (RFC 5905, section 10).
        let from = self.sources.get(source);
        let best = from.and_then(|from| from.filter().best(raw, phi)).map(|best| best.raw);
        self.update(raw, best > newest);
        Ok(())
    }

    /// Compares the clocks of the host with each other. Call it at least once per second, and after each wake-up from a
    /// long sleep: it detects suspends and steps.
    pub fn observe(&mut self, now: HostClocks) {
        if let Some(before) = self.hosts.replace(now) {
            let passed = now.raw.saturating_sub(before.raw);
            let slack = JUMP_MIN + growth(passed, 2 * FREQUENCY_MAX);
            let jumped = |clock: u64, earlier: u64| {
                let moved = i128::from(clock) - i128::from(earlier);
                (moved - i128::from(passed)).unsigned_abs() > u128::from(slack)
            };
            if jumped(now.boot, before.boot) {
                self.disrupt(now.raw, Disruption::Suspend);
            } else if jumped(now.wall, before.wall) {
                self.disrupt(now.raw, Disruption::Step);
            }
        }
        // One second after the leap second every server has applied it.
        let passed = self.page.leap_at.filter(|leap| self.page.time(now.raw) >= leap + 2 * SECOND);
        if passed.is_some() {
            self.page.leap_at = None;
            self.disrupt(now.raw, Disruption::LeapSecond);
        }
        if let Some(error) = self.settings.system_error {
            let offset = i128::from(now.wall) - i128::from(now.raw);
            self.system_fresh = self.system_fresh.saturating_add(1);
            self.system = i64::try_from(offset).ok().map(|offset| Measurement {
                raw: now.raw,
                offset,
                delay: 0,
                error,
            });
            self.update(now.raw, true);
        }
    }

    /// Forgets all measurements, because something happened that they do not contain. Times continue; their error is
    /// unknown until 4 new answers.
    pub fn disrupt(&mut self, raw: u64, cause: Disruption) {
        self.disruptions += 1;
        self.disruption = Some(cause);
        self.sources.iter_mut().for_each(|source| source.forget(raw));
        (self.system, self.system_fresh) = (None, 0);
        self.servo.forget();
        self.page.phi = 2 * FREQUENCY_MAX + PHI;
        if self.page.status != ClockStatus::Unsynchronised {
            self.page.status = ClockStatus::Disrupted;
        }
    }

    /// Returns the usable servers at the instant `raw`, and the number of servers that count for a majority.
    fn candidates(&self, raw: u64) -> (Vec<Candidate>, usize) {
        let (rate, phi) = (self.page.rate, self.page.phi);
        let at_now = |source, best: Measurement, jitter, stratum| {
            let distance = best.error_at(raw, phi).saturating_add(1);
            let offset = self.offset_at(&best, raw);
            Candidate { source, offset, distance, jitter, stratum }
        };
        let fit = self.sources.iter().enumerate().filter(|(_, source)| source.is_fit());
        let mut all: Vec<_> = fit
            .filter_map(|(at, source)| {
                let best = source.filter().best(raw, phi)?;
                let jitter = source.filter().jitter(&best, rate);
                Some(at_now(at, best, jitter, source.state()?.stratum))
            })
            .collect();
        let mut voters = self.sources.iter().filter(|source| source.has_vote()).count();
        voters += usize::from(self.settings.system_error.is_some());
        let system = self.system.filter(|_| self.system_fresh >= SAMPLES_MIN);
        all.extend(system.map(|it| at_now(self.sources.len(), it, 0, SYSTEM_STRATUM)));
        // At least one: no server at all is no majority.
        (all, voters.max(1))
    }

    /// Selects the servers at the instant `raw`. Returns those that steer the clock and the interval of the majority.
    fn select(&mut self, raw: u64) -> Option<(Vec<Candidate>, (i64, i64))> {
        let (candidates, voters) = self.candidates(raw);
        let bound = majority(&candidates, voters);
        let steering = bound.map(|bound| steering(&agreeing(&candidates), bound));
        let survivors = cluster(steering.unwrap_or_default());
        let is_false = |one: &Candidate| bound.is_none_or(|bound| one.contradicts(bound));
        let part = |at: usize, source: Option<&NtpSource>| {
            let is_in = |list: &[Candidate]| list.iter().any(|one| one.source == at);
            match source {
                Some(source) if source.is_denied() => SourcePart::Denied,
                Some(source) if source.is_abstaining() => SourcePart::Unsynchronised,
                _ if survivors.first().is_some_and(|one| one.source == at) => SourcePart::Selected,
                _ if is_in(&survivors) => SourcePart::Combined,
                _ if candidates.iter().any(|one| one.source == at && is_false(one)) => {
                    SourcePart::Falseticker
                }
                _ if is_in(&candidates) => SourcePart::Outlier,
                Some(source) if source.is_unauthenticated() => SourcePart::Unauthenticated,
                _ => SourcePart::Unreachable,
            }
        };
        let count = self.selections.len();
        self.selections = (0..count).map(|at| part(at, self.sources.get(at))).collect();
        let found = bound.filter(|_| !survivors.is_empty());
        if found.is_none() && self.page.status == ClockStatus::Synchronised {
            self.page.status = ClockStatus::Holdover;
        }
        Some((survivors, found?))
    }

    /// Follows the servers, after one of them answered. Only a new offset `is_new` for the regression.
    fn update(&mut self, raw: u64, is_new: bool) {
        let Some((survivors, (low, high))) = self.select(raw) else { return };
        let (Some(first), Some(combined)) = (survivors.first(), combine(&survivors)) else {
            return;
        };
        let is_followed =
            matches!(self.page.status, ClockStatus::Synchronised | ClockStatus::Holdover);
        if is_followed {
            let (lowest, highest) = self.page.offsets(raw);
            if high < lowest || low > highest {
                self.disrupt(raw, Disruption::Contradiction);
                return;
            }
        }
        if self.updates > 0 && raw <= self.updated {
            return;
        }
        if is_followed && !is_new {
            self.page.status = ClockStatus::Synchronised;
            (self.page.mark, self.page.low, self.page.high) = (raw, low, high);
            return;
        }
        let offset = combined.offset.clamp(low, high);
        let estimate = self.servo.update(ServoPoint { raw, offset, low, high });
        self.jitter = combined.jitter;
        let is_first = self.page.status == ClockStatus::Unsynchronised;
        let target = raw.saturating_add_signed(estimate.offset);
        let is_behind =
            raw.saturating_add_signed(low.saturating_sub(STEP_MIN)) > self.page.time(raw);
        if is_first || is_behind {
            self.page.rate = estimate.rate;
            self.page.step(raw, target);
        } else {
            let off = i128::from(target) - i128::from(self.page.time(raw));
            let off = i64::try_from(off).unwrap_or(i64::MIN);
            self.page.steer(raw, off, estimate.rate, FREQUENCY_MAX);
        }
        self.page.status = ClockStatus::Synchronised;
        (self.page.mark, self.page.low, self.page.high) = (raw, low, high);
        self.page.phi = estimate.phi;
        (self.updated, self.updates) = (raw, self.updates + 1);
        let first = *first;
        self.note_server(raw, &first, &survivors);
        self.adapt(raw);
    }

    /// Derives the facts for clients of this node from the selected server.
    fn note_server(&mut self, raw: u64, first: &Candidate, survivors: &[Candidate]) {
        let state = |one: &Candidate| self.sources.get(one.source).and_then(NtpSource::state);
        let selected = state(first).copied().unwrap_or(ServerState {
            stratum: SYSTEM_STRATUM,
            reference_id: *b"HOST",
            ..ServerState::default()
        });
        let delay = self.sources.get(first.source).and_then(|it| it.filter().best(raw, PHI));
        let announces = |leap| {
            let count = survivors.iter().filter_map(state).filter(|it| it.leap == leap).count();
            count * 2 > survivors.len()
        };
        let leap = [Leap::Insert, Leap::Delete].into_iter().find(|leap| announces(*leap));
        let now = self.page.time(raw);
        // From the last second of the day on; a day that ends now has passed.
        if leap.is_some() && self.page.leap_at.is_none() {
            self.page.leap_at = Some((now / DAY + 1) * DAY - SECOND);
        } else if leap.is_none() && self.page.leap_at.is_some_and(|leap| now < leap) {
            self.page.leap_at = None;
        }
        self.facts = ServerFacts {
            stratum: selected.stratum.saturating_add(1),
            reference_id: if selected.stratum == 1 { *b"NTP1" } else { selected.reference_id },
            root_delay: selected.root_delay.saturating_add(delay.map_or(0, |best| best.delay)),
            reference: now,
            leap: leap.unwrap_or_default(),
        };
    }

    /// Adapts the poll intervals.
    fn adapt(&mut self, raw: u64) {
        let ours = self.page.time(raw);
        let (rate, phi) = (self.page.rate, self.page.phi);
        for source in &mut self.sources {
            let Some(best) = source.filter().best(raw, phi).filter(|_| source.is_fit()) else {
                continue;
            };
            let age = i64::try_from(raw.saturating_sub(best.raw)).unwrap_or(i64::MAX);
            let theirs = raw.saturating_add_signed(best.offset.saturating_add(drift(age, rate)));
            let jitter = source.filter().jitter(&best, rate);
            source.adapt(ours.abs_diff(theirs), jitter);
        }
    }

    /// Returns the map from the raw clock to UTC.
    #[must_use]
    pub const fn page(&self) -> &ClockPage {
        &self.page
    }

    /// Returns the reading at the instant `raw`; `wall` is the system clock.
    #[must_use]
    pub fn read(&self, raw: u64, wall: u64) -> ClockReading {
        self.page.read(raw, || wall)
    }

    /// Returns the facts for answers to clients of this node.
    #[must_use]
    pub const fn facts(&self) -> &ServerFacts {
        &self.facts
    }

    /// Returns the states of the servers, in the order of [`Self::new`], and their parts in the selection.
    pub fn sources(&self) -> impl Iterator<Item = (&NtpSource, SourcePart)> {
        self.sources.iter().zip(self.selections.iter().copied())
    }

    /// Returns the part of the system clock in the selection, if it is a reference.
    #[must_use]
    pub fn system_selection(&self) -> Option<SourcePart> {
        self.selections.get(self.sources.len()).copied()
    }

    /// Returns the estimated frequency of UTC compared with the raw clock, minus 1, in picoseconds per second.
    #[must_use]
    pub const fn rate(&self) -> i64 {
        self.page.rate
    }

    /// Returns the largest error of that frequency, in picoseconds per second.
    #[must_use]
    pub const fn phi(&self) -> u64 {
        self.page.phi
    }

    /// Returns the offset of UTC from the raw clock at the instant `raw` by a measurement, in nanoseconds.
    #[must_use]
    pub fn offset_at(&self, measurement: &Measurement, raw: u64) -> i64 {
        let age = i64::try_from(raw.saturating_sub(measurement.raw)).unwrap_or(i64::MAX);
        measurement.offset.saturating_add(drift(age, self.page.rate))
    }

    /// Returns the jitter of the combined servers in nanoseconds.
    #[must_use]
    pub const fn jitter(&self) -> u64 {
        self.jitter
    }

    /// Returns the number of corrections.
    #[must_use]
    pub const fn updates(&self) -> u64 {
        self.updates
    }

    /// Returns the number of disruptions and the cause of the last.
    #[must_use]
    pub const fn disruptions(&self) -> (u64, Option<Disruption>) {
        (self.disruptions, self.disruption)
    }
}

/// 2026-01-01, in nanoseconds since 1970: no earlier system clock is believed.
const FIRST_YEAR: u64 = 1_767_225_600_000_000_000;

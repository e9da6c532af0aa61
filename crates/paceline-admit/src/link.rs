//! The admission test of each discipline, and the reservations of a link.
//!
//! | rule | test | guarantee |
//! |---|---|---|
//! | Σσ, Σρ | σ + Σσ < burst, ρ + Σρ < rate, strictly (Christie 1995, §4.1.2), and FIFO | deadline |
//! | FIFO | (Σσ + one packet)/C ≤ every deadline | deadline |
//! | static priority | (Σσ to the level + one lower packet)/(C − Σρ above) ≤ the level's deadlines | deadline |
//! | EDF | C t ≥ Σ A(t − d) + one packet due later, at every corner: exact for these curves | deadline |
//! | VDS | as EDF, with A at most the services owed, and one sample that has begun (`owed.rs`) | windows, if deadlines ≤ y/(y − x) periods |
//! | DWCS, EDF and Delay-EDD that space samples | as EDF with every sample counted, since then none is missed | windows |
//! | VDS, DWCS, equal coinciding windows | the services owed fit into a period | windows |
//! | RCSP | Σ A(2^n) of the levels to n + one later packet ≤ C 2^n; a deadline is on the last level with 2^n ≤ d | deadline |
//! | Stop-and-Go | the same for frames of 2^n ns, with 2 · 2^n ≤ d | deadline |
//! | RPQ | as DWCS, with deadlines of whole rotations, and one rotation shorter | deadline |
//! | WF²Q+ | Σ R ≤ C, with R = max(ρ, σ/(d − two packets/C)) as the share of a stream | deadline |
//! | HFSC | Σ S(t) ≤ C t at every corner; S serves the burst within the deadline | deadline |
//! | none | every demand is refused | none |
//! | delivery | buffers alone | – |
//!
//! A class of a link with a real-time service curve is a link of its own, of the curve's long-term
//! rate ([`LinkParameters::latency`] contains what the curve and the whole link add).
//!
//! A guarantee remains valid under later admissions, because no stream is admitted that would
//! violate it. Under HFSC one packet in millions was observed late (docs/concepts/admission.md).

use crate::corners::Corners;
use crate::demand::StreamDemand;
use crate::due::Trials;
use crate::ledger::Ledger;
use crate::levels::Levels;
use crate::regulated::{Placed, Regulated};
use crate::verdict::{AdmissionResult, LinkRefusal};
use paceline_sched::Duration;
use std::collections::BTreeMap;
use windows::Windows;

mod check;
mod family;
mod holds;
mod offer;
mod parameters;
#[cfg(test)]
mod tests;
mod windows;

pub use family::TrunkRate;
pub use parameters::{AdmissionTest, LinkParameters, QueueSpace};

use family::difference;
use holds::Held;

/// The caller's name for a stream on a link: the samples of one publisher in one form. All
/// reservations of a trunk share one charge.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Trunk(pub u128);

/// The name of one reservation on a trunk.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Holder {
    /// The origin of the reservation.
    pub origin: u128,
    /// The origin's number of the reservation.
    pub number: u64,
}

/// The reservations of one link and its admission test.
#[derive(Clone, Debug)]
pub struct Admission {
    spec: LinkParameters,
    trunks: BTreeMap<Trunk, Held>,
    ledger: Ledger,
    corners: Corners,
    levels: Levels,
    regulated: Regulated,
    windows: Windows,
    /// The processor time reserved by other links of the node, in nanoseconds per second.
    cpu_elsewhere: u64,
    /// The queue space reserved by other links with the same buffer, in bytes.
    buffer_elsewhere: u64,
    /// The queue space reserved by other links of the node, in bytes.
    host_buffer_elsewhere: u64,
}

/// The time in which a sample passes to the subscribers of its last node.
const DELIVERED_WITHIN: Duration = Duration::from_millis(1);

impl Admission {
    /// The maximum number of streams on a link.
    pub const TRUNKS_MAX: usize = 1 << 16;
    /// The maximum number of reservations on one stream.
    pub const HOLDERS_MAX: usize = 1 << 12;

    /// Creates a link without reservations.
    #[must_use]
    pub fn new(spec: LinkParameters) -> Self {
        let one = matches!(spec.rule, AdmissionTest::Fifo | AdmissionTest::SigmaRho { .. });
        Self {
            spec,
            trunks: BTreeMap::new(),
            ledger: Ledger::default(),
            corners: Corners::default(),
            levels: Levels::new(one),
            regulated: Regulated::default(),
            windows: Windows::default(),
            cpu_elsewhere: 0,
            buffer_elsewhere: 0,
            host_buffer_elsewhere: 0,
        }
    }

    /// Sets the processor time reserved by other links of the node, in nanoseconds per second.
    pub const fn set_cpu_elsewhere(&mut self, nanos_per_s: u64) {
        self.cpu_elsewhere = nanos_per_s;
    }

    /// Sets the queue space reserved by other links with the same buffer, in bytes.
    pub const fn set_buffer_elsewhere(&mut self, bytes: u64) {
        self.buffer_elsewhere = bytes;
    }

    /// Sets the queue space reserved by other links of the node, in bytes.
    pub const fn set_host_buffer_elsewhere(&mut self, bytes: u64) {
        self.host_buffer_elsewhere = bytes;
    }

    /// Returns the parameters of the link.
    #[must_use]
    pub const fn spec(&self) -> &LinkParameters {
        &self.spec
    }

    /// Returns the sums of the reservations.
    #[must_use]
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Tests whether `demand` of `holder` on `trunk` would be admitted now. Reserves nothing.
    #[must_use]
    pub fn ask(&self, trunk: Trunk, holder: Holder, demand: &StreamDemand) -> AdmissionResult {
        match self.test(trunk, holder, demand, &mut Trials::new()) {
            Ok(grant) => AdmissionResult::Granted(grant),
            Err(lack) => AdmissionResult::Refused(LinkRefusal {
                resource: lack.resource,
                needed: lack.needed,
                available: lack.available,
                offer: self.offer(trunk, holder, demand),
            }),
        }
    }

    /// Returns true if `demand` of `holder` on `trunk` would be admitted now. This is
    /// [`Admission::ask`] without the search for an offer.
    #[must_use]
    pub fn fits(&self, trunk: Trunk, holder: Holder, demand: &StreamDemand) -> bool {
        self.test(trunk, holder, demand, &mut Trials::new()).is_ok()
    }

    /// Reserves `demand` tentatively if it can be admitted in addition to all other reservations.
    /// An installed demand of the holder remains until [`Admission::commit`]; the stream is charged
    /// for both. An earlier tentative demand of the holder is replaced.
    pub fn hold(&mut self, trunk: Trunk, holder: Holder, demand: &StreamDemand) -> AdmissionResult {
        let verdict = self.separate(trunk, holder);
        let verdict = verdict.unwrap_or_else(|| self.ask(trunk, holder, demand));
        if matches!(verdict, AdmissionResult::Granted(_)) {
            self.change(trunk, |held| held.hold(holder, *demand));
        }
        verdict
    }

    /// Charges the streams that other holders are about to replace by `trunk` separately from it, because it will be sent
    /// together with them. Returns the refusal if that does not fit.
    fn separate(&mut self, trunk: Trunk, holder: Holder) -> Option<AdmissionResult> {
        let of = |(it, held): (Trunk, &Held)| {
            held.replaced_by_others(holder).into_iter().map(move |(other, old)| (it, other, old))
        };
        let replaced: Vec<_> = self.relatives(trunk).flat_map(of).collect();
        for (trunk, other, old) in replaced {
            let before = self.trunks.get(&old).and_then(|held| held.installed_by(other));
            let verdict = before.map(|before| self.ask(old, other, &before));
            if let Some(refused @ AdmissionResult::Refused(_)) = verdict {
                return Some(refused);
            }
            self.stay(old, other);
            self.change(trunk, |held| held.set_instead(other, None));
        }
        None
    }

    /// Reserves `demand` as [`Admission::hold`] does, for a stream that replaces `old` and is never
    /// sent together with it. The demand that the holder alone has installed on `old` is charged
    /// jointly with the new one, not in addition. After a commit, [`Admission::release`] the old
    /// one; after a cancellation, call [`Admission::stay`].
    pub fn hold_instead(
        &mut self,
        trunk: Trunk,
        holder: Holder,
        demand: &StreamDemand,
        old: Trunk,
    ) -> AdmissionResult {
        let before = self.trunks.get(&old).and_then(|held| held.alone(holder));
        // Streams with coinciding windows must keep equal parameters.
        let before = before.filter(|_| trunk != old && !self.spec.rule.coincides());
        // Other holders send the new stream meanwhile, together with the old one.
        let before = before.filter(|_| !self.is_shared(trunk, holder, old));
        if let Some(before) = before {
            self.change(old, |held| held.set_leaving(holder, true));
            let verdict = self.hold(trunk, holder, &demand.join(&before));
            if matches!(verdict, AdmissionResult::Granted(_)) {
                self.change(trunk, |held| held.set_instead(holder, Some(old)));
                return verdict;
            }
            self.stay(old, holder);
        }
        self.hold(trunk, holder, demand)
    }

    /// Returns true if other holders have reservations of the stream, or of streams that may be sent together with it or
    /// with `old`.
    fn is_shared(&self, trunk: Trunk, holder: Holder, old: Trunk) -> bool {
        self.trunks.get(&trunk).is_some_and(|held| held.has_others(holder))
            || self.has_relatives(trunk, old)
            || self.has_relatives(old, trunk)
    }

    /// Returns the link without the demand that `holder` alone has installed on `old`, and that
    /// demand. [`Admission::hold_instead`] would test the joint demand for `trunk` on this link.
    /// Returns `None` if it would charge both separately.
    #[must_use]
    pub fn without(
        &self,
        trunk: Trunk,
        holder: Holder,
        old: Trunk,
    ) -> Option<(Self, StreamDemand)> {
        let before = self.trunks.get(&old).and_then(|held| held.alone(holder))?;
        if trunk == old || self.spec.rule.coincides() || self.is_shared(trunk, holder, old) {
            return None;
        }
        let mut left = self.clone();
        left.release(old, holder);
        Some((left, before))
    }

    /// Cancels a replacement started by [`Admission::hold_instead`]: `trunk` is charged separately
    /// again.
    pub fn stay(&mut self, trunk: Trunk, holder: Holder) {
        if self.trunks.contains_key(&trunk) {
            self.change(trunk, |held| held.set_leaving(holder, false));
        }
    }

    /// Installs a tentative reservation, relaxed to `relaxed` if given. Returns false if the holder
    /// has no tentative one.
    ///
    /// `relaxed` must not exceed the reservation in any respect; excess values are ignored.
    pub fn commit(&mut self, trunk: Trunk, holder: Holder, relaxed: Option<&StreamDemand>) -> bool {
        let mut known = false;
        // Streams with coinciding windows keep equal parameters.
        let relaxed = relaxed.filter(|_| !self.spec.rule.coincides());
        let relaxed = relaxed.filter(|relaxed| self.has_buffer(trunk, holder, relaxed));
        self.change(trunk, |held| known = held.commit(holder, relaxed));
        known
    }

    /// Returns true if the buffer suffices for a tentative reservation that is relaxed: with a longer deadline, more
    /// bytes may wait.
    fn has_buffer(&self, trunk: Trunk, holder: Holder, relaxed: &StreamDemand) -> bool {
        let (own, host) = (self.spec.buffer.map(|it| it.bytes), self.spec.host_buffer);
        if own.is_none() && host.is_none() {
            return true;
        }
        let mut tentative =
            self.trunks.get(&trunk).into_iter().flat_map(|held| held.demands(false));
        let before = tentative.find(|(other, _)| *other == holder);
        let bytes = |demand: &StreamDemand| self.spec.amounts(demand).buffer;
        let before = before.map_or(0, |(_, demand)| bytes(&demand));
        let held = self.ledger.held.buffer.saturating_sub(before).saturating_add(bytes(relaxed));
        own.is_none_or(|most| held.saturating_add(self.buffer_elsewhere) <= most)
            && host.is_none_or(|most| held.saturating_add(self.host_buffer_elsewhere) <= most)
    }

    /// Cancels a tentative reservation. An installed one of the holder remains.
    pub fn cancel(&mut self, trunk: Trunk, holder: Holder) {
        self.change(trunk, |held| held.cancel(holder));
    }

    /// Releases all reservations of the holder on `trunk`.
    pub fn release(&mut self, trunk: Trunk, holder: Holder) {
        self.change(trunk, |held| held.release(holder));
    }

    /// Sets the measured rate of a stream, in bits per second.
    pub fn set_used(&mut self, trunk: Trunk, bits_per_s: u64) {
        let Some(held) = self.trunks.get_mut(&trunk) else { return };
        self.ledger.used = self.ledger.used - held.used + bits_per_s;
        held.used = bits_per_s;
    }

    /// Returns the reservations on a link with the new parameters `spec`, and the reservations that
    /// no longer fit, with the refusals. They are tested in order of `rank`, trunk and holder, installed
    /// before tentative ones.
    #[must_use]
    pub fn rebuilt<R: Ord>(
        &self,
        spec: LinkParameters,
        rank: impl Fn(Holder) -> R,
    ) -> (Self, Vec<(Trunk, Holder, LinkRefusal)>) {
        let mut after = Self::new(spec);
        after.cpu_elsewhere = self.cpu_elsewhere;
        after.buffer_elsewhere = self.buffer_elsewhere;
        after.host_buffer_elsewhere = self.host_buffer_elsewhere;
        let mut lost = Vec::new();
        for lasting in [true, false] {
            let demands = self.trunks.iter().flat_map(|(trunk, held)| {
                held.demands(lasting).map(|(holder, demand)| (*trunk, holder, demand))
            });
            let mut demands: Vec<(Trunk, Holder, StreamDemand)> = demands.collect();
            demands.sort_by_cached_key(|(_, holder, _)| rank(*holder));
            for (trunk, holder, demand) in demands {
                match after.hold(trunk, holder, &demand) {
                    AdmissionResult::Granted(_) if lasting => _ = after.commit(trunk, holder, None),
                    AdmissionResult::Granted(_) => {}
                    AdmissionResult::Refused(refusal) => lost.push((trunk, holder, refusal)),
                }
            }
            if lasting {
                self.trunks.iter().for_each(|(trunk, held)| after.set_used(*trunk, held.used));
            }
        }
        (after, lost)
    }

    /// Returns the demand for which a stream is charged; `None` without reservations.
    #[must_use]
    pub fn charged(&self, trunk: Trunk) -> Option<&StreamDemand> {
        self.trunks.get(&trunk)?.charge.as_ref()
    }

    /// Returns the installed demand of a stream, which its policer enforces; `None` if none is
    /// installed and the stream is best effort.
    #[must_use]
    pub fn installed(&self, trunk: Trunk) -> Option<&StreamDemand> {
        self.trunks.get(&trunk)?.firm.as_ref()
    }

    /// Returns the installed demand of one holder.
    #[must_use]
    pub fn held_by(&self, trunk: Trunk, holder: Holder) -> Option<StreamDemand> {
        self.trunks.get(&trunk)?.installed_by(holder)
    }

    /// Returns a demand as the discipline of the link sees it.
    #[must_use]
    pub fn seen(&self, demand: &StreamDemand) -> StreamDemand {
        if self.spec.rule == AdmissionTest::Hfsc {
            // A service curve begins again whenever the stream has nothing to send. So a burst of several samples
            // would be served again and again.
            return demand.with_source(demand.source().peak());
        }
        if self.spec.rule == AdmissionTest::Delivery {
            return demand.with_deadline(DELIVERED_WITHIN).unwrap_or(*demand);
        }
        if self.spec.timed {
            return *demand;
        }
        demand.with_deadline(StreamDemand::DEADLINE_MAX).unwrap_or(*demand)
    }

    /// Returns the delay variation at the next hop of a stream with the demand `demand`.
    #[must_use]
    pub fn bunches(&self, demand: &StreamDemand) -> Duration {
        // A discipline that re-spaces samples removes the variation of earlier hops and adds its own.
        let before = if self.spec.rule.regulates() { Duration::ZERO } else { demand.bunched() };
        before.saturating_add(demand.deadline())
    }

    /// Returns the part of the delay variation `bunched` that counts at this link. It is zero if
    /// the discipline re-spaces samples.
    #[must_use]
    pub fn arriving(&self, bunched: Duration) -> Duration {
        if self.spec.rule.regulates() { Duration::ZERO } else { bunched }
    }

    /// Returns the streams with the demands for which they are charged, in order.
    pub fn trunks(&self) -> impl Iterator<Item = (Trunk, &StreamDemand)> {
        self.trunks.iter().filter_map(|(trunk, held)| Some((*trunk, held.charge.as_ref()?)))
    }

    /// Returns true if nothing is reserved and all sums are zero.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.trunks.is_empty()
            && self.ledger.is_zero()
            && self.corners.is_zero()
            && self.levels.is_zero()
            && self.regulated.is_zero()
            && self.windows.is_zero()
    }

    /// Changes the reservations of a stream and updates the sums.
    fn change(&mut self, trunk: Trunk, change: impl FnOnce(&mut Held)) {
        let before =
            [self.charges(trunk, |held| held.firm), self.charges(trunk, |held| held.charge)];
        let held = self.trunks.entry(trunk).or_default();
        change(held);
        if held.is_empty() {
            self.ledger.used -= held.used;
            self.trunks.remove(&trunk);
        }
        let after =
            [self.charges(trunk, |held| held.firm), self.charges(trunk, |held| held.charge)];
        let ([firm, charges], [firm_after, charges_after]) = (before, after);
        let (gone, come) = difference(firm, firm_after);
        for firm in gone {
            self.ledger.installed.take(self.spec.amounts(&firm));
        }
        for firm in come {
            self.ledger.installed.add(self.spec.amounts(&firm));
        }
        let (gone, come) = difference(charges, charges_after);
        gone.iter().for_each(|charge| self.take(charge));
        come.iter().for_each(|charge| self.add(charge));
    }

    /// Returns the stream on its level, if the discipline has levels with delay bounds and one is short enough.
    fn placed<'a>(&self, demand: &'a StreamDemand) -> Option<Placed<'a>> {
        let level = self.spec.rule.level(demand.deadline())?;
        Some(Placed { demand, level })
    }

    fn add(&mut self, demand: &StreamDemand) {
        self.ledger.held.add(self.spec.amounts(demand));
        match self.spec.rule {
            AdmissionTest::Fifo
            | AdmissionTest::SigmaRho { .. }
            | AdmissionTest::Unguaranteed
            | AdmissionTest::Delivery
            | AdmissionTest::StaticPriority => self.levels.add(demand),
            AdmissionTest::Shares => {}
            AdmissionTest::Rcsp | AdmissionTest::StopAndGo => {
                if let Some(stream) = self.placed(demand) {
                    self.regulated.add(stream);
                }
            }
            AdmissionTest::Edf
            | AdmissionTest::Hfsc
            | AdmissionTest::Rpq
            | AdmissionTest::Vds { .. }
            | AdmissionTest::Dwcs { .. } => {
                if let Some(piece) = self.spec.piece(demand) {
                    self.corners.add(&piece);
                }
                self.windows.add(demand);
            }
        }
    }

    fn take(&mut self, demand: &StreamDemand) {
        self.ledger.held.take(self.spec.amounts(demand));
        match self.spec.rule {
            AdmissionTest::Fifo
            | AdmissionTest::SigmaRho { .. }
            | AdmissionTest::Unguaranteed
            | AdmissionTest::Delivery
            | AdmissionTest::StaticPriority => self.levels.take(demand),
            AdmissionTest::Shares => {}
            AdmissionTest::Rcsp | AdmissionTest::StopAndGo => {
                if let Some(stream) = self.placed(demand) {
                    self.regulated.take(stream);
                }
            }
            AdmissionTest::Edf
            | AdmissionTest::Hfsc
            | AdmissionTest::Rpq
            | AdmissionTest::Vds { .. }
            | AdmissionTest::Dwcs { .. } => {
                if let Some(piece) = self.spec.piece(demand) {
                    self.corners.take(&piece);
                }
                self.windows.take(demand);
            }
        }
    }
}

//! The admission test of each discipline, and what a link holds.
//!
//! | rule | test | promise |
//! |---|---|---|
//! | Σσ, Σρ | σ + Σσ < burst and ρ + Σρ < rate, strictly (seed 003 §4.1.2), and that of FIFO | the deadline |
//! | FIFO | (Σσ + one packet)/C ≤ every deadline | the deadline |
//! | static priority | (Σσ of it and before + one packet below)/(C − Σρ before) ≤ every deadline of the level | the deadline |
//! | EDF | C t ≥ Σ A(t − d) + one packet due later, at every corner: exact for these curves | the deadline |
//! | VDS | the same, A being at most what windows owe (`owed.rs`) | every window, if no stream's deadline is longer than y/(y − x) of its periods |
//! | DWCS | the same with every sample counted, for then none is missed | the window in it |
//! | VDS, DWCS, where all windows are alike and coincide | the services they owe fit into a period | the window in it |
//! | HFSC | Σ S(t) ≤ C t at every corner, S the curve that serves the burst within the deadline | the deadline |
//!
//! A promise holds for any later set, because no later stream is admitted that would break it. Of HFSC one
//! packet in millions was seen to be late (docs/admission.md).

use crate::corners::{Corners, Piece};
use crate::cpu::CpuBudget;
use crate::demand::Demand;
use crate::ledger::{Amounts, Ledger};
use crate::levels::Levels;
use crate::owed::Owed;
use crate::verdict::{Refusal, Verdict};
use paceline_sched::{Capacity, Duration, Policy};
use std::collections::BTreeMap;
use windows::Windows;

mod check;
mod holds;
mod offer;
#[cfg(test)]
mod tests;
mod windows;

use holds::Held;

/// Which test a link makes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Rule {
    /// Sums of bursts and rates below limits of their own, in order of arrival.
    SigmaRho {
        /// In bytes.
        burst: u64,
        /// In bits per second.
        rate: u64,
    },
    /// Order of arrival.
    Fifo,
    /// Static priority.
    StaticPriority,
    /// Earliest deadline first.
    Edf,
    /// Virtual deadlines. A stream is charged what its windows can ever owe at once.
    Vds {
        /// The caller vouches that the periods of all streams begin together: then those that are all alike are
        /// charged what they owe in a period.
        coincide: bool,
    },
    /// DWCS, the later rules. Loss tolerances count where windows coincide only.
    Dwcs {
        /// As of [`Rule::Vds`].
        coincide: bool,
    },
    /// Hierarchical fair service curves, each stream a class.
    Hfsc,
}

impl Rule {
    /// The test that belongs to a discipline; `None` for those that never look at contracts (DRR, WF²Q+)
    /// and for DWCS's original rules, which keep no windows.
    #[must_use]
    pub fn of(policy: Policy) -> Option<Self> {
        match policy {
            Policy::Fifo => Some(Self::Fifo),
            Policy::StaticPriority => Some(Self::StaticPriority),
            Policy::Edf | Policy::DelayEdd => Some(Self::Edf),
            Policy::Vds => Some(Self::Vds { coincide: false }),
            Policy::Dwcs { .. } if policy == Policy::DWCS => Some(Self::Dwcs { coincide: false }),
            Policy::Hfsc => Some(Self::Hfsc),
            Policy::Dwcs { .. } | Policy::Drr | Policy::Wf2qPlus => None,
        }
    }

    /// Samples that may miss are counted less than others.
    const fn counts_loss(self) -> bool {
        matches!(self, Self::Vds { .. } | Self::Dwcs { coincide: true })
    }

    const fn coincides(self) -> bool {
        matches!(self, Self::Vds { coincide: true } | Self::Dwcs { coincide: true })
    }

    /// A contract's clock gives every sample its period anew at each hop, so what bunched up on the way
    /// is spread again, which costs no delay in the worst case; the next hop sees the contract.
    const fn regulates(self) -> bool {
        matches!(self, Self::Vds { .. } | Self::Dwcs { .. })
    }
}

/// A link, as far as promises go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkSpec {
    /// What it carries.
    pub capacity: Capacity,
    /// Which test it makes.
    pub rule: Rule,
    /// The longest packet of traffic without a promise, in bytes; 0 if there is none. With HFSC the longest
    /// of all: service curves are made with it.
    pub other: u64,
    /// What the host adds to every packet at worst: waking up, and what its driver holds.
    pub latency: Duration,
    /// Room in queues for all streams in bytes; `None` if it does not limit.
    pub buffer: Option<u64>,
    /// What of the processors all links of the node may use; `None` if it does not limit.
    pub cpu: Option<CpuBudget>,
    /// Its discipline looks at deadlines. Of others the rate alone is tested, and none is promised.
    pub timed: bool,
}

impl LinkSpec {
    /// A link that nothing limits but its capacity, beside other traffic in packets of `other` bytes.
    #[must_use]
    pub const fn new(capacity: Capacity, rule: Rule, other: u64) -> Self {
        let latency = Duration::ZERO;
        Self { capacity, rule, other, latency, buffer: None, cpu: None, timed: true }
    }
}

/// A stream on a link, by a name of the caller's: a publisher's samples in one form. Whoever shares it
/// shares its reservation.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Trunk(pub u128);

/// Who holds a part of a trunk: one reservation.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Holder {
    /// Who made it.
    pub origin: u128,
    /// Its number there.
    pub number: u64,
}

/// What one link has promised, and whether it can promise more.
#[derive(Clone, Debug)]
pub struct Admission {
    spec: LinkSpec,
    trunks: BTreeMap<Trunk, Held>,
    ledger: Ledger,
    corners: Corners,
    levels: Levels,
    windows: Windows,
    /// What other links of the node hold of its processors, in nanoseconds per second.
    cpu_elsewhere: u64,
}

impl Admission {
    /// The most streams of a link.
    pub const TRUNKS_MAX: usize = 1 << 16;
    /// The most holders of one stream.
    pub const HOLDERS_MAX: usize = 1 << 12;

    /// A link that holds nothing.
    #[must_use]
    pub fn new(spec: LinkSpec) -> Self {
        let one = matches!(spec.rule, Rule::Fifo | Rule::SigmaRho { .. });
        Self {
            spec,
            trunks: BTreeMap::new(),
            ledger: Ledger::default(),
            corners: Corners::default(),
            levels: Levels::new(one),
            windows: Windows::default(),
            cpu_elsewhere: 0,
        }
    }

    /// Other links of the node hold so much of its processors, in nanoseconds per second.
    pub const fn set_cpu_elsewhere(&mut self, nanos_per_s: u64) {
        self.cpu_elsewhere = nanos_per_s;
    }

    /// What the link is.
    #[must_use]
    pub const fn spec(&self) -> &LinkSpec {
        &self.spec
    }

    /// The sums of what it holds.
    #[must_use]
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Whether `demand` of `holder` on `trunk` would be promised now. Holds nothing.
    #[must_use]
    pub fn ask(&self, trunk: Trunk, holder: Holder, demand: &Demand) -> Verdict {
        match self.test(trunk, holder, demand) {
            Ok(grant) => Verdict::Granted(grant),
            Err(lack) => Verdict::Refused(Refusal {
                resource: lack.resource,
                needed: lack.needed,
                available: lack.available,
                offer: self.offer(trunk, holder, demand),
            }),
        }
    }

    /// True if `demand` of `holder` on `trunk` would be promised now: [`Admission::ask`] without an offer.
    #[must_use]
    pub fn fits(&self, trunk: Trunk, holder: Holder, demand: &Demand) -> bool {
        self.test(trunk, holder, demand).is_ok()
    }

    /// Reserves `demand` tentatively, if it can be promised beside all that is held, tentative or not.
    /// What the holder has installed stays until [`Admission::commit`]: the stream is charged what keeps
    /// both promises. An earlier tentative demand of the holder is replaced.
    pub fn hold(&mut self, trunk: Trunk, holder: Holder, demand: &Demand) -> Verdict {
        let verdict = self.ask(trunk, holder, demand);
        if matches!(verdict, Verdict::Granted(_)) {
            self.change(trunk, |held| held.hold(holder, *demand));
        }
        verdict
    }

    /// [`Admission::hold`] for a stream that takes the place of `old` where both are never sent at once: what
    /// the holder alone has installed there is charged together with it, not beside it, until it is
    /// committed (then [`Admission::release`] the old one) or cancelled (then say [`Admission::stay`]).
    pub fn hold_instead(
        &mut self,
        trunk: Trunk,
        holder: Holder,
        demand: &Demand,
        old: Trunk,
    ) -> Verdict {
        let before = self.trunks.get(&old).and_then(|held| held.alone(holder));
        // Streams whose windows are counted have to stay alike.
        let before = before.filter(|_| trunk != old && !self.spec.rule.coincides());
        if let Some(before) = before {
            self.change(old, |held| held.set_leaving(holder, true));
            let verdict = self.hold(trunk, holder, &demand.join(&before));
            if matches!(verdict, Verdict::Granted(_)) {
                return verdict;
            }
            self.stay(old, holder);
        }
        self.hold(trunk, holder, demand)
    }

    /// The link without what `holder` alone has installed on `old`, and that demand: what [`Admission::hold_instead`]
    /// would test another stream `trunk` of the holder on, joined with it. `None` where that would be beside it.
    #[must_use]
    pub fn without(&self, trunk: Trunk, holder: Holder, old: Trunk) -> Option<(Self, Demand)> {
        let before = self.trunks.get(&old).and_then(|held| held.alone(holder))?;
        if trunk == old || self.spec.rule.coincides() {
            return None;
        }
        let mut left = self.clone();
        left.release(old, holder);
        Some((left, before))
    }

    /// What was to take the place of `trunk` does not: it is charged by itself again.
    pub fn stay(&mut self, trunk: Trunk, holder: Holder) {
        if self.trunks.contains_key(&trunk) {
            self.change(trunk, |held| held.set_leaving(holder, false));
        }
    }

    /// Makes a tentative reservation a lasting one, and relaxes it to `relaxed` if that asks for less.
    /// False if the holder has no tentative one.
    ///
    /// `relaxed` must not ask for more in anything than what was held: what of it does is ignored.
    pub fn commit(&mut self, trunk: Trunk, holder: Holder, relaxed: Option<&Demand>) -> bool {
        let mut known = false;
        // Streams whose windows are counted stay alike.
        let relaxed = relaxed.filter(|_| !self.spec.rule.coincides());
        self.change(trunk, |held| known = held.commit(holder, relaxed));
        known
    }

    /// Gives a tentative reservation back; what the holder has installed stays.
    pub fn cancel(&mut self, trunk: Trunk, holder: Holder) {
        self.change(trunk, |held| held.cancel(holder));
    }

    /// Gives everything of the holder back.
    pub fn release(&mut self, trunk: Trunk, holder: Holder) {
        self.change(trunk, |held| held.release(holder));
    }

    /// What the stream was last measured to send, in bits per second.
    pub fn set_used(&mut self, trunk: Trunk, bits_per_s: u64) {
        let Some(held) = self.trunks.get_mut(&trunk) else { return };
        self.ledger.used = self.ledger.used - held.used + bits_per_s;
        held.used = bits_per_s;
    }

    /// The same reservations on a link that has become `spec`, and those that it cannot keep, with why: in
    /// the order of trunks and holders, what is installed before what is tentative.
    #[must_use]
    pub fn rebuilt(&self, spec: LinkSpec) -> (Self, Vec<(Trunk, Holder, Refusal)>) {
        let mut after = Self::new(spec);
        after.cpu_elsewhere = self.cpu_elsewhere;
        let mut lost = Vec::new();
        for lasting in [true, false] {
            for (trunk, held) in &self.trunks {
                for (holder, demand) in held.demands(lasting) {
                    match after.hold(*trunk, holder, &demand) {
                        Verdict::Granted(_) if lasting => _ = after.commit(*trunk, holder, None),
                        Verdict::Granted(_) => {}
                        Verdict::Refused(refusal) => lost.push((*trunk, holder, refusal)),
                    }
                }
                if lasting {
                    after.set_used(*trunk, held.used);
                }
            }
        }
        (after, lost)
    }

    /// What a stream is charged for, with all its holders; `None` if nobody holds it.
    #[must_use]
    pub fn charged(&self, trunk: Trunk) -> Option<&Demand> {
        self.trunks.get(&trunk)?.charge.as_ref()
    }

    /// What a stream is held to: what its holders have installed. Before the first of them has, it is
    /// carried as best effort.
    #[must_use]
    pub fn installed(&self, trunk: Trunk) -> Option<&Demand> {
        self.trunks.get(&trunk)?.firm.as_ref()
    }

    /// What one holder of a stream has installed.
    #[must_use]
    pub fn held_by(&self, trunk: Trunk, holder: Holder) -> Option<Demand> {
        self.trunks.get(&trunk)?.installed_by(holder)
    }

    /// A demand as the link's discipline looks at it.
    #[must_use]
    pub fn seen(&self, demand: &Demand) -> Demand {
        if self.spec.timed {
            return *demand;
        }
        demand.with_deadline(Demand::DEADLINE_MAX).unwrap_or(*demand)
    }

    /// By how much a stream that is granted `demand` may have bunched up where it leaves: the next hop has
    /// to expect it.
    #[must_use]
    pub fn bunches(&self, demand: &Demand) -> Duration {
        if self.spec.rule.regulates() {
            return Duration::ZERO;
        }
        demand.bunched().saturating_add(demand.deadline())
    }

    /// What arrives at this link of a stream that may have bunched up by `bunched`, as far as it counts
    /// here: a contract's clock gives every sample its period anew.
    #[must_use]
    pub fn arriving(&self, bunched: Duration) -> Duration {
        if self.spec.rule.regulates() { Duration::ZERO } else { bunched }
    }

    /// The streams with what they are charged for, in order.
    pub fn trunks(&self) -> impl Iterator<Item = (Trunk, &Demand)> {
        self.trunks.iter().filter_map(|(trunk, held)| Some((*trunk, held.charge.as_ref()?)))
    }

    /// True if nothing is held, in no sum.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.trunks.is_empty()
            && self.ledger.is_zero()
            && self.corners.is_zero()
            && self.levels.is_zero()
            && self.windows.is_zero()
    }

    /// Changes what a stream holds, and the sums with it.
    fn change(&mut self, trunk: Trunk, change: impl FnOnce(&mut Held)) {
        let held = self.trunks.entry(trunk).or_default();
        let (charge, firm) = (held.charge, held.firm);
        change(held);
        let (after, firm_after) = (held.charge, held.firm);
        if held.is_empty() {
            self.ledger.used -= held.used;
            self.trunks.remove(&trunk);
        }
        if let Some(firm) = firm {
            self.ledger.installed.take(self.amounts(&firm));
        }
        if let Some(firm) = firm_after {
            self.ledger.installed.add(self.amounts(&firm));
        }
        if charge == after {
            return;
        }
        if let Some(charge) = charge {
            self.take(&charge);
        }
        if let Some(after) = after {
            self.add(&after);
        }
    }

    fn add(&mut self, demand: &Demand) {
        self.ledger.held.add(self.amounts(demand));
        match self.spec.rule {
            Rule::Fifo | Rule::SigmaRho { .. } | Rule::StaticPriority => self.levels.add(demand),
            Rule::Edf | Rule::Hfsc | Rule::Vds { .. } | Rule::Dwcs { .. } => {
                if let Some(piece) = self.piece(demand) {
                    self.corners.add(&piece);
                }
                self.windows.add(demand);
            }
        }
    }

    fn take(&mut self, demand: &Demand) {
        self.ledger.held.take(self.amounts(demand));
        match self.spec.rule {
            Rule::Fifo | Rule::SigmaRho { .. } | Rule::StaticPriority => self.levels.take(demand),
            Rule::Edf | Rule::Hfsc | Rule::Vds { .. } | Rule::Dwcs { .. } => {
                if let Some(piece) = self.piece(demand) {
                    self.corners.take(&piece);
                }
                self.windows.take(demand);
            }
        }
    }

    fn amounts(&self, demand: &Demand) -> Amounts {
        let cpu = self.spec.cpu.map_or(0, |cpu| {
            // What a source sends at once is one sample: its packets share what it costs.
            let dual = demand.source().dual();
            cpu.cost.of_stream(dual.peak_burst, dual.rate).min(CPU_MAX)
        });
        let amounts = Amounts::of(demand, cpu);
        let rate = self.owed(demand).map_or(amounts.rate, |owed| owed.rate);
        Amounts { rate, ..amounts }
    }

    /// What the windows of a stream that tolerates loss take, where that is what is counted: also where rates are
    /// all that is.
    fn owed(&self, demand: &Demand) -> Option<Owed> {
        let counts = matches!(self.spec.rule, Rule::Vds { .. }) || !self.spec.timed;
        if counts { Owed::of(demand) } else { None }
    }

    /// The stream in the sum of curves; `None` if its deadline is shorter than what the host takes.
    fn piece(&self, demand: &Demand) -> Option<Piece> {
        let left = demand.deadline().as_nanos().checked_sub(self.spec.latency.as_nanos())?;
        match self.spec.rule {
            Rule::Hfsc => self.curve(demand).map(|curve| Piece::service(&curve)),
            Rule::Edf
            | Rule::Vds { .. }
            | Rule::Dwcs { .. }
            | Rule::Fifo
            | Rule::StaticPriority
            | Rule::SigmaRho { .. } => {
                (left > 0).then(|| Piece::due(demand, left, self.owed(demand)))
            }
        }
    }
}

/// A cost that no host has: a sum of [`Admission::TRUNKS_MAX`] of it is a number still.
const CPU_MAX: u64 = 1 << 46;

//! Who holds a stream: it is reserved once, for what keeps all of their promises.

use super::{Admission, Holder};
use crate::demand::Demand;
use crate::traffic::Traffic;
use paceline_sched::police::Dual;
use std::collections::BTreeMap;

/// What one holder has.
#[derive(Clone, Copy, Debug, Default)]
struct Hold {
    installed: Option<Demand>,
    tentative: Option<Demand>,
    /// What is installed is charged on another stream, which is about to take its place.
    leaving: bool,
}

/// One stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    holds: BTreeMap<Holder, Hold>,
    /// What keeps all that is held; what keeps all that is installed.
    pub(super) charge: Option<Demand>,
    pub(super) firm: Option<Demand>,
    pub(super) used: u64,
}

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        self.holds.is_empty()
    }

    /// What is installed, or what is tentative.
    pub(super) fn demands(&self, installed: bool) -> impl Iterator<Item = (Holder, Demand)> {
        self.holds.iter().filter_map(move |(holder, hold)| {
            let demand = if installed { hold.installed } else { hold.tentative };
            Some((*holder, demand?))
        })
    }

    pub(super) fn installed_by(&self, holder: Holder) -> Option<Demand> {
        self.holds.get(&holder)?.installed
    }

    /// What `holder` has installed, if nobody else holds anything.
    pub(super) fn alone(&self, holder: Holder) -> Option<Demand> {
        let mut holds = self.holds.iter();
        let (only, hold) = holds.next()?;
        (*only == holder && holds.next().is_none() && hold.tentative.is_none())
            .then_some(hold.installed)?
    }

    pub(super) fn set_leaving(&mut self, holder: Holder, leaving: bool) {
        if let Some(hold) = self.holds.get_mut(&holder) {
            hold.leaving = leaving;
            self.recount();
        }
    }

    pub(super) fn has_room_for(&self, holder: Holder) -> bool {
        self.holds.len() < Admission::HOLDERS_MAX || self.holds.contains_key(&holder)
    }

    /// What would be charged if `holder` had `demand` tentatively.
    pub(super) fn charge_with(&self, holder: Holder, demand: &Demand) -> Demand {
        let held = self
            .holds
            .iter()
            .flat_map(|(at, hold)| [hold.installed, hold.tentative.filter(|_| *at != holder)]);
        let joined = held.flatten().fold(*demand, |all, one| all.join(&one));
        self.stay(joined)
    }

    pub(super) fn hold(&mut self, holder: Holder, demand: Demand) {
        // Whoever comes to it was tested beside all of it.
        for hold in self.holds.values_mut() {
            hold.leaving = false;
        }
        self.holds.entry(holder).or_default().tentative = Some(demand);
        self.recount();
    }

    pub(super) fn commit(&mut self, holder: Holder, relaxed: Option<&Demand>) -> bool {
        let Some(hold) = self.holds.get_mut(&holder) else { return false };
        let Some(tentative) = hold.tentative.take() else { return false };
        hold.installed = Some(relaxed.map_or(tentative, |relaxed| relax(&tentative, relaxed)));
        self.recount();
        true
    }

    pub(super) fn cancel(&mut self, holder: Holder) {
        let Some(hold) = self.holds.get_mut(&holder) else { return };
        hold.tentative = None;
        if hold.installed.is_none() {
            self.holds.remove(&holder);
        }
        self.recount();
    }

    pub(super) fn release(&mut self, holder: Holder) {
        self.holds.remove(&holder);
        self.recount();
    }

    fn recount(&mut self) {
        let join = |all: Option<Demand>, one: Demand| Some(all.map_or(one, |all| all.join(&one)));
        let firm = self.holds.values().filter_map(|hold| hold.installed);
        self.firm = firm.fold(None, join);
        let staying = self.holds.values().filter(|hold| !hold.leaving);
        let charged = staying.flat_map(|hold| [hold.installed, hold.tentative]).flatten();
        let charge = charged.fold(None, join);
        self.charge = charge.map(|charge| self.stay(charge));
    }

    /// A stream never falls to a level behind the one that it was tested in: what waits for it there was
    /// not counted against its own deadline.
    fn stay(&self, demand: Demand) -> Demand {
        let level = self.charge.map_or(u32::MAX, |charge| charge.level());
        if level < demand.level() { demand.with_level(level) } else { demand }
    }
}

/// What `relaxed` gives back of `held`: never more traffic, never a shorter deadline.
fn relax(held: &Demand, relaxed: &Demand) -> Demand {
    let (a, b) = (held.source().dual(), relaxed.source().dual());
    let dual = Dual {
        peak_burst: a.peak_burst.min(b.peak_burst),
        peak_rate: a.peak_rate.min(b.peak_rate),
        burst: a.burst.min(b.burst),
        rate: a.rate.min(b.rate),
    };
    let packet = held.source().packet().min(relaxed.source().packet());
    let packets = held.source().packets_per_s().min(relaxed.source().packets_per_s());
    // What is no traffic gives nothing back.
    let traffic = Traffic::new(dual, packet, packets).unwrap_or(*held.source());
    let deadline = held.deadline().max(relaxed.deadline());
    let bunched = held.bunched().min(relaxed.bunched());
    let less = held.with_source(traffic).with_bunched(bunched);
    less.with_deadline(deadline).unwrap_or(less)
}

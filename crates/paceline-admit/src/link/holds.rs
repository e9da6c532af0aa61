//! The reservations of one stream. The stream is charged once, for a demand that satisfies all of
//! them.

use super::{Admission, Holder, Trunk};
use crate::demand::StreamDemand;
use crate::traffic::Traffic;
use paceline_sched::police::Dual;
use std::collections::BTreeMap;

/// The demands of one holder.
#[derive(Clone, Copy, Debug, Default)]
struct Hold {
    installed: Option<StreamDemand>,
    tentative: Option<StreamDemand>,
    /// The installed demand is charged on another stream, which is about to replace it.
    leaving: bool,
    /// The stream that the tentative demand replaces, and with which it is charged jointly.
    instead: Option<Trunk>,
}

/// The reservations of one stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    holds: BTreeMap<Holder, Hold>,
    /// The joint demand of all reservations, and that of the installed ones.
    pub(super) charge: Option<StreamDemand>,
    pub(super) firm: Option<StreamDemand>,
    pub(super) used: u64,
}

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        self.holds.is_empty()
    }

    /// Returns the installed or the tentative demands.
    pub(super) fn demands(&self, installed: bool) -> impl Iterator<Item = (Holder, StreamDemand)> {
        self.holds.iter().filter_map(move |(holder, hold)| {
            let demand = if installed { hold.installed } else { hold.tentative };
            Some((*holder, demand?))
        })
    }

    pub(super) fn installed_by(&self, holder: Holder) -> Option<StreamDemand> {
        self.holds.get(&holder)?.installed
    }

    /// Returns the installed demand of `holder` if there are no other reservations.
    pub(super) fn alone(&self, holder: Holder) -> Option<StreamDemand> {
        let mut holds = self.holds.iter();
        let (only, hold) = holds.next()?;
        (*only == holder && holds.next().is_none() && hold.tentative.is_none())
            .then_some(hold.installed)?
    }

    pub(super) fn has_others(&self, holder: Holder) -> bool {
        self.holds.keys().any(|other| *other != holder)
    }

    /// Returns the streams that other holders are about to replace by this one.
    pub(super) fn replaced_by_others(&self, holder: Holder) -> Vec<(Holder, Trunk)> {
        let others = self.holds.iter().filter(|(other, _)| **other != holder);
        others.filter_map(|(other, hold)| Some((*other, hold.instead?))).collect()
    }

    pub(super) fn set_instead(&mut self, holder: Holder, instead: Option<Trunk>) {
        if let Some(hold) = self.holds.get_mut(&holder) {
            hold.instead = instead;
        }
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

    /// Returns the charge if `holder` had `demand` as its tentative demand.
    pub(super) fn charge_with(&self, holder: Holder, demand: &StreamDemand) -> StreamDemand {
        let held = self
            .holds
            .iter()
            .flat_map(|(at, hold)| [hold.installed, hold.tentative.filter(|_| *at != holder)]);
        let joined = held.flatten().fold(*demand, |all, one| all.join(&one));
        self.stay(joined)
    }

    pub(super) fn hold(&mut self, holder: Holder, demand: StreamDemand) {
        // The new reservation was tested in addition to all demands of this stream.
        for hold in self.holds.values_mut() {
            hold.leaving = false;
        }
        let hold = self.holds.entry(holder).or_default();
        (hold.tentative, hold.instead) = (Some(demand), None);
        self.recount();
    }

    pub(super) fn commit(&mut self, holder: Holder, relaxed: Option<&StreamDemand>) -> bool {
        let Some(hold) = self.holds.get_mut(&holder) else { return false };
        let Some(tentative) = hold.tentative.take() else { return false };
        hold.instead = None;
        hold.installed = Some(relaxed.map_or(tentative, |relaxed| relax(&tentative, relaxed)));
        self.recount();
        true
    }

    pub(super) fn cancel(&mut self, holder: Holder) {
        let Some(hold) = self.holds.get_mut(&holder) else { return };
        (hold.tentative, hold.instead) = (None, None);
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
        let join = |all: Option<StreamDemand>, one: StreamDemand| {
            Some(all.map_or(one, |all| all.join(&one)))
        };
        let firm = self.holds.values().filter_map(|hold| hold.installed);
        self.firm = firm.fold(None, join);
        let staying = self.holds.values().filter(|hold| !hold.leaving);
        let charged = staying.flat_map(|hold| [hold.installed, hold.tentative]).flatten();
        let charge = charged.fold(None, join);
        self.charge = charge.map(|charge| self.stay(charge));
    }

    /// Keeps the priority level at least as high as before. Lower levels were admitted without
    /// counting against this stream's deadline there.
    fn stay(&self, demand: StreamDemand) -> StreamDemand {
        let level = self.charge.map_or(u32::MAX, |charge| charge.level());
        if level < demand.level() { demand.with_level(level) } else { demand }
    }
}

/// Returns `held` relaxed to `relaxed`. The result never has more traffic or a shorter deadline
/// than `held`.
fn relax(held: &StreamDemand, relaxed: &StreamDemand) -> StreamDemand {
    let (a, b) = (held.source().dual(), relaxed.source().dual());
    let dual = Dual {
        peak_burst: a.peak_burst.min(b.peak_burst),
        peak_rate: a.peak_rate.min(b.peak_rate),
        burst: a.burst.min(b.burst),
        rate: a.rate.min(b.rate),
    };
    let packet = held.source().packet().min(relaxed.source().packet());
    let packets = held.source().packets_per_s().min(relaxed.source().packets_per_s());
    // If the reduced values are no valid traffic, keep the original.
    let traffic = Traffic::new(dual, packet, packets).unwrap_or(*held.source());
    let staircase = match (held.source().staircase(), relaxed.source().staircase()) {
        (Some(held), Some(relaxed)) => Some(held.relaxed(&relaxed)),
        // The relaxed demand may have more samples.
        (_, relaxed) => relaxed,
    };
    let traffic = traffic.with_staircase(staircase);
    let deadline = held.deadline().max(relaxed.deadline());
    let bunched = held.bunched().min(relaxed.bunched());
    let less = held.with_source(traffic).with_bunched(bunched);
    less.with_deadline(deadline).unwrap_or(less)
}

//! Requests beyond the rate of a link on a shared medium, and the rate that other links leave.

use super::super::least::least;
use super::super::links::Links;
use super::members::Members;
use crate::control::Control;
use crate::control::contracts::admission::Admission;
use crate::medium::allottable;
use paceline_admit::reserve::RefusedDemand;
use paceline_sched::Duration;

/// The time for which a link wants the rate of a request that was refused; the request is repeated within it.
const WANTED: Duration = Duration::from_secs(2);
/// The margin above the least rate that fits, as one part in this number: the request may find the earlier hops otherwise.
const MARGIN: u64 = 32;

/// A link on a medium, as a request finds it.
pub(in crate::control::contracts) struct Prospective {
    /// The present rate.
    pub(in crate::control::contracts) now: u64,
    /// The highest rate that it could get.
    pub(in crate::control::contracts) most: u64,
    /// The capacity of the link itself.
    pub(in crate::control::contracts) nominal: u64,
    /// The rate that all other links need, and the sum that all may have.
    pub(in crate::control::contracts) others: u64,
    pub(in crate::control::contracts) all: u64,
}

impl Control {
    /// Returns the rates of a link on a medium; `None` for another link.
    pub(in crate::control::contracts) fn prospective(&self, link: &str) -> Option<Prospective> {
        let own = self.contracts.media.links.get(link).filter(|own| own.present)?;
        let members = Members::of(&self.membership.registry, &own.medium.name);
        let now = own.holder.holding().holds;
        let nominal = self.contracts.admission.links.nominal(link)?.bits_per_s();
        let (left, others) = members.left_for((self.me, own.index))?;
        let all = allottable(members.capacity()?);
        let most = left.min(nominal).max(now);
        Some(Prospective { now, most, nominal, others, all })
    }

    /// Wants the rates at which the links of this node would carry the demands that they have refused, for a while.
    pub(in crate::control::contracts) fn want_refused(&mut self) {
        let refused = self.contracts.admission.reservations.take_refused();
        for demand in refused {
            let Some((link, bits)) = self.wanted(&demand) else { continue };
            let until = self.now + WANTED;
            if let Some(own) = self.contracts.media.links.get_mut(&link) {
                let before = own.wants.map_or(0, |(bits, _)| bits);
                own.wants = Some((bits.max(before), until));
                self.dirty = true;
            }
        }
    }

    /// Returns the link that has refused a demand, and the least rate at which it would carry it; `None` if the other links of the
    /// medium do not leave that, or there is no medium.
    fn wanted(&self, refused: &RefusedDemand) -> Option<(String, u64)> {
        let RefusedDemand { link, trunk, holder, demand } = *refused;
        let Admission { links, reservations, .. } = &self.contracts.admission;
        let mut own = self.contracts.media.links.keys();
        let name = own.find(|name| links.id(name) == Some(link))?;
        let of = self.prospective(name)?;
        let held = reservations.link(link)?;
        let fits = |bits| {
            let at = links.admission_at(name, held, bits);
            at.is_some_and(|at| at.fits(trunk, holder, &demand))
        };
        fits(of.most).then(|| {
            let bits = least(of.now, of.most, fits);
            (name.clone(), (bits + bits / MARGIN).min(of.most))
        })
    }
}

impl Links {
    /// Returns a link with its reservations as it would be at a rate of `bits` per second.
    pub(in crate::control::contracts) fn admission_at(
        &self,
        link: &str,
        held: &paceline_admit::Admission,
        bits: u64,
    ) -> Option<paceline_admit::Admission> {
        let spec = self.parameters_at(link, bits)?;
        Some(held.rebuilt(spec, |holder| holder).0)
    }
}

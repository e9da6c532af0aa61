//! The least capacity at which a link still carries its contracts.

use super::links::Links;
use crate::control::Control;
use paceline_admit::Reservations;
use paceline_admit::ledger::Amounts;
use std::collections::BTreeMap;

/// The least capacities that were found, with the reservations that need them.
#[derive(Debug, Default)]
pub(in crate::control) struct Known(BTreeMap<String, (Amounts, u64)>);

impl Control {
    /// Returns the least capacity in bits per second, to one part in 128, at which a link carries all its contracts; 0 without any.
    /// `None` for an unknown link, one without a capacity, and one with classes.
    ///
    /// It is the margin of a link whose capacity changes: below this, the least important contracts are reduced or end. It is searched
    /// again only after the reservations have changed.
    pub fn least_capacity(&mut self, link: &str) -> Option<u64> {
        let admission = &self.contracts.admission;
        if !admission.links.is_whole(link) {
            self.contracts.least.0.remove(link);
            return None;
        }
        let reserved = admission.links.reserved(&admission.reservations, link);
        let known = self.contracts.least.0.get(link);
        if let Some((_, bits)) = known.filter(|(before, _)| *before == reserved) {
            return Some(*bits);
        }
        let bits = admission.links.least(&admission.reservations, link);
        self.contracts.least.0.insert(link.to_owned(), (reserved, bits));
        Some(bits)
    }
}

impl Links {
    /// Returns the least rate in bits per second at which a link carries its reservations; 0 without any.
    pub(super) fn least(&self, reservations: &Reservations, link: &str) -> u64 {
        let Amounts { rate, streams, .. } = self.reserved(reservations, link);
        let Some(now) = self.capacity(link).filter(|_| streams > 0) else { return 0 };
        let held = self.id(link).and_then(|id| reservations.link(id));
        let fits = |bits| {
            let spec = self.parameters_at(link, bits);
            held.zip(spec).is_some_and(|(held, spec)| held.rebuilt(spec, |it| it).1.is_empty())
        };
        least(rate.min(now.bits_per_s()), now.bits_per_s(), fits)
    }
}

/// Returns the least rate above `low` and up to `high` bits per second, which fits, at which `fits` is true, to one part in 128.
pub(super) fn least(low: u64, high: u64, fits: impl Fn(u64) -> bool) -> u64 {
    const PARTS: u64 = 128;
    let (mut low, mut high) = (low, high);
    while high.saturating_sub(low) > high / PARTS + 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) { high = middle } else { low = middle }
    }
    high
}

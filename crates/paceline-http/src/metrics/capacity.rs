//! The capacities of links.

use super::{Families, Labels};
use paceline::status::{LinkStatus, MediumStatus};

/// Writes the capacity of a link: as configured, as measured, and on its medium.
pub(super) fn write(to: &mut Families, at: &Labels, link: &LinkStatus) {
    if let Some(bits) = link.capacity_bits_per_s {
        let help = "Capacity of the link.";
        to.gauge("paceline_link_capacity_bits_per_second", help, at, bits);
    }
    if let Some(found) = &link.measured {
        let help = "Conservative end of the measured capacity.";
        to.gauge("paceline_link_capacity_low_bits_per_second", help, at, found.low_bits_per_s);
        let help = "Part of the measured capacity that contracts may use.";
        let bits = found.contracts_bits_per_s;
        to.gauge("paceline_link_capacity_contracts_bits_per_second", help, at, bits);
    }
    if let Some(bits) = link.least_capacity_bits_per_s {
        let help = "Smallest capacity at which all contracts of the link stay.";
        to.gauge("paceline_link_least_capacity_bits_per_second", help, at, bits);
    }
    link.medium.iter().for_each(|medium| write_medium(to, at, medium));
}

fn write_medium(to: &mut Families, at: &Labels, medium: &MediumStatus) {
    let mut at = at.clone();
    at.push(("medium", medium.name.clone()));
    let help = "Rate of the link on its medium.";
    let (bits, reserved) = (medium.allotted_bits_per_s, medium.reserved_bits_per_s);
    to.gauge("paceline_link_medium_allotted_bits_per_second", help, &at, bits);
    let help = "Sum of the rates that the contracts of all links of the medium need.";
    to.gauge("paceline_link_medium_reserved_bits_per_second", help, &at, reserved);
    let help = "Sum of the rates that all links of the medium may have.";
    let bits = medium.allottable_bits_per_s;
    to.gauge("paceline_link_medium_allottable_bits_per_second", help, &at, bits);
}

//! The links of this node, as admission sees them.

use super::spec::HopInfo;
use crate::budget::{CONTROL_SHARE, in_the_way, repairs_of};
use crate::carrier::Carrier;
use crate::ids::NodeId;
use paceline_admit::cpu::CpuBudget;
use paceline_admit::reserve::{LinkId, NodeIndex, Reservations};
use paceline_admit::{Admission, AdmissionTest, LinkParameters};
use paceline_sched::curve::RATE_MAX;
use paceline_sched::{Capacity, Instant, Policy};
use std::collections::BTreeMap;

/// The assumed capacity of a link without one; every admission test on it succeeds.
const ENDLESS: Capacity = match Capacity::from_bits_per_s(RATE_MAX) {
    Ok(capacity) => capacity,
    Err(_) => panic!("it is not 0"),
};
/// The epoch of all neighbours. It is unused, because a neighbour that restarts is down in between.
const EPOCH: u64 = 0;

/// The links of this node, by name. Hops with the same link name share its capacity.
#[derive(Debug, Default)]
pub(super) struct Links {
    known: BTreeMap<String, (LinkId, LinkParameters)>,
    /// The configured discipline and carrier of each link.
    told: BTreeMap<String, (Policy, Carrier)>,
    /// The processor time for promises on this host; `None` if the cost of samples was never measured.
    pub(super) processor: Option<CpuBudget>,
}

/// Returns the part of a link's capacity for streams. 5 % is reserved for control, and repairs have their own
/// share.
fn for_streams(capacity: Capacity, repairs: u64) -> Capacity {
    let bits = capacity.bits_per_s();
    Capacity::from_bits_per_s(bits.saturating_sub(bits.div_ceil(CONTROL_SHARE) + repairs))
        .unwrap_or(capacity)
}

/// Returns the admission parameters of a link; without a capacity it has no limit.
fn tested(capacity: Option<Capacity>, (policy, carrier): (Policy, Carrier)) -> LinkParameters {
    let Some(capacity) = capacity else {
        let endless = LinkParameters::new(ENDLESS, AdmissionTest::Vds { coincide: false }, 0);
        return LinkParameters { timed: false, ..endless };
    };
    let rule = AdmissionTest::of(policy);
    let repairs = match carrier {
        Carrier::Ordered | Carrier::Local => 0,
        Carrier::Datagrams => repairs_of(capacity).0,
    };
    let other = in_the_way(policy, capacity, carrier);
    let spec = LinkParameters::new(
        for_streams(capacity, repairs),
        rule.unwrap_or(AdmissionTest::Edf),
        other,
    );
    LinkParameters { timed: rule.is_some(), ..spec }
}

impl Links {
    /// Sets the discipline and carrier of a link, effective from the next [`Self::follow`].
    pub(super) fn tell(&mut self, link: &str, policy: Policy, carrier: Carrier) {
        self.told.insert(link.to_owned(), (policy, carrier));
    }

    /// Updates the links and neighbours of `reservations`. A link whose capacity changed keeps the promises
    /// that still fit.
    pub(super) fn follow(
        &mut self,
        now: Instant,
        reservations: &mut Reservations,
        hops: &BTreeMap<NodeId, HopInfo>,
    ) {
        let mut carried: BTreeMap<&str, Option<Capacity>> = BTreeMap::new();
        for hop in hops.values() {
            let least = carried.entry(&hop.link_name).or_insert(hop.capacity);
            *least = least.iter().copied().chain(hop.capacity).min();
        }
        for (name, capacity) in carried {
            let told = self.told.get(name).copied().unwrap_or_default();
            let spec = LinkParameters { cpu: self.processor, ..tested(capacity, told) };
            let number = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
            let (id, before) =
                self.known.entry(name.to_owned()).or_insert_with(|| (LinkId(number), spec.clone()));
            reservations.add_link(*id, Admission::new(spec.clone()));
            if *before != spec {
                before.clone_from(&spec);
                reservations.change_link(now, *id, spec);
            }
        }
        for (&node, hop) in hops {
            if let Some((id, _)) = self.known.get(&hop.link_name) {
                reservations.set_neighbour(now, NodeIndex(node.0), *id, EPOCH);
            }
        }
    }

    /// Returns the promises of a link.
    pub(super) fn held<'a>(
        &self,
        reservations: &'a Reservations,
        link: &str,
    ) -> Option<&'a Admission> {
        reservations.link(self.known.get(link)?.0)
    }
}

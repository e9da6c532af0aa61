//! The guarantee of a class for contracts: the link that its real-time curve is worth.

use super::ClassTree;
use crate::budget::{RepairShare, for_streams, in_the_way};
use crate::carrier::Carrier;
use core::fmt;
use paceline_admit::AdmissionTest;
use paceline_sched::curve::{Curve, fits};
use paceline_sched::{Capacity, Duration, Policy};

/// The link that a class is for its contracts, whatever other classes and the best effort of the class do.
///
/// HFSC serves a class by its curve S = (m1, d, m2) counted from the start of a busy period of the class.
/// Other traffic of the class may have used the first piece by the time that a sample arrives. So a sample can
/// rely only on the slope m2, after the latency below (docs/internals/admission-tests.md).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Guarantee {
    /// The discipline of the class.
    pub(crate) policy: Policy,
    /// The rate m2.
    pub(crate) rate: Capacity,
    /// The time by which a convex curve is behind a line of slope m2, and the time for which other traffic of
    /// the link may be on the wire.
    pub(crate) latency: Duration,
    /// The longest packet of the class that may have been sent ahead of its curve, in bytes on the wire.
    pub(crate) other: u64,
}

/// Why a class, or a link without classes, guarantees nothing to contracts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Unguaranteed {
    /// It has no real-time curve.
    NoCurve,
    /// It has a policer, which counts samples as they arrive, bunched by earlier hops and with the excess of
    /// other streams. So it may drop or delay samples that keep their contract.
    Policed,
    /// The guarantees of all classes exceed the part of the link that is left after control and repairs.
    BeyondLink,
    /// Its discipline guarantees no deadline.
    Discipline,
}

/// Returns true if a link with this discipline guarantees nothing to contracts and refuses them.
///
/// The two mixtures of DWCS rules, which no configuration offers, are for experiments: there the rate alone is tested.
pub(crate) fn refuses_contracts(policy: Policy) -> bool {
    AdmissionTest::of(policy).is_none() && Policy::OFFERED.contains(&policy)
}

impl Unguaranteed {
    /// Returns the code on the wire.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::NoCurve => 0,
            Self::Policed => 1,
            Self::BeyondLink => 2,
            Self::Discipline => 3,
        }
    }

    /// Returns the reason with a code on the wire.
    pub(crate) const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::NoCurve),
            1 => Some(Self::Policed),
            2 => Some(Self::BeyondLink),
            3 => Some(Self::Discipline),
            _ => None,
        }
    }
}

impl fmt::Display for Unguaranteed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoCurve => {
                "has no real_time and guarantees nothing: give it real_time, or put contracts into a class \
                 with best_effort = false and real_time"
            }
            Self::Policed => {
                "has police, which may drop or delay samples of a contract: set best_effort = true there, and \
                 put contracts into a class with real_time and without police"
            }
            Self::BeyondLink => {
                "can't keep its real_time: over QUIC, the guarantees of all classes must fit 85 % of the \
                 capacity, because retransmission takes 10 % and control 5 %; lower them"
            }
            Self::Discipline => {
                "has a policy that guarantees no deadline (drr, dwcs-original) and takes no contracts: use \
                 another policy there, such as vds"
            }
        })
    }
}

impl ClassTree {
    /// Returns the guarantee of a class for contracts on a link with this discipline, capacity and carrier.
    ///
    /// # Errors
    /// Returns the reason if the class guarantees nothing.
    pub(crate) fn guarantee(
        &self,
        place: usize,
        (policy, capacity, carrier): (Policy, Capacity, Carrier),
    ) -> Result<Guarantee, Unguaranteed> {
        let class = self.classes.get(place).ok_or(Unguaranteed::NoCurve)?;
        let real_time = |place: usize| self.curves.get(place).and_then(|curves| curves.real_time);
        let curve = real_time(place).ok_or(Unguaranteed::NoCurve)?;
        if class.police.is_some() {
            return Err(Unguaranteed::Policed);
        }
        let all: Vec<Curve> = (0..self.classes.len()).filter_map(real_time).collect();
        let streams = for_streams(capacity, carrier, RepairShare::MOST);
        fits(&all, streams).map_err(|_| Unguaranteed::BeyondLink)?;
        let rate = Capacity::from_bits_per_s(curve.m2()).map_err(|_| Unguaranteed::NoCurve)?;
        let on_link = streams.time_for(in_the_way(Policy::Hfsc, capacity, carrier));
        let latency = behind_line(&curve).saturating_add(on_link);
        let policy = class.policy.unwrap_or(policy);
        if refuses_contracts(policy) {
            return Err(Unguaranteed::Discipline);
        }
        Ok(Guarantee { policy, rate, latency, other: carrier.frame_on_wire(capacity) })
    }
}

impl Guarantee {
    /// Returns the longest time for which other traffic can delay a sample of the class, however early its
    /// deadline is.
    pub(crate) fn blocked(&self) -> Duration {
        self.rate.time_for(self.other).saturating_add(self.latency)
    }
}

/// Returns the longest time by which a curve is behind a line of its second slope: that of a convex curve at
/// the end of its first piece.
fn behind_line(curve: &Curve) -> Duration {
    let nanos = u128::from(curve.d().as_nanos());
    let flatter = u128::from(curve.m2().saturating_sub(curve.m1()));
    let behind = (nanos * flatter).div_ceil(u128::from(curve.m2().max(1)));
    Duration::from_nanos(u64::try_from(behind).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_convex_curve_is_behind_its_line() {
        let behind = |m1, millis, m2| {
            behind_line(&Curve::two_piece(m1, Duration::from_millis(millis), m2).unwrap())
        };
        assert_eq!(behind(3_000, 7, 1_000), Duration::ZERO);
        assert_eq!(behind(0, 7, 1_000), Duration::from_millis(7));
        assert_eq!(behind(250, 8, 1_000), Duration::from_millis(6));
    }
}

//! Streams of one source at different rates: those whose samples are all among another stream's are not sent
//! themselves, and the link is charged once for all of them.
//!
//! The charge of a stream that carries others is a demand that satisfies it and the others together. The streams that
//! remain when one of them ends are sent by themselves again, so the charge also covers these: their sum, computed in the
//! same way. If a second stream could carry them too, they are left to that one, so they are part of its charge already. A
//! charge therefore never grows when a reservation ends.

use super::holds::Held;
use super::{Admission, Trunk};
use crate::demand::StreamDemand;
use paceline_sched::LossTolerance;
use std::collections::BTreeMap;

/// The lowest bits of a trunk's number are the rate, and those above them the family.
const RATE_BITS: u32 = 65;
/// The bit of a rate that says that the stream is shared. Below it are the two numbers of the rate.
const SHARED: u128 = 1 << 64;

/// The rate of a stream, in relation to other streams of the same samples.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TrunkRate {
    /// No other stream carries it, and it carries none.
    Apart,
    /// One in this many samples, counted from the same one, and of those as many as a limit allows.
    Shared {
        /// The number of samples, at least 1.
        every: u32,
        /// The name of the limit; 0 for no limit.
        limit: u32,
    },
}

impl TrunkRate {
    /// All samples.
    pub const ALL: Self = Self::every(1);

    /// Returns the rate of one in `every` samples.
    #[must_use]
    pub const fn every(every: u32) -> Self {
        Self::Shared { every, limit: 0 }
    }
}

impl Trunk {
    /// Returns the name of a stream of the samples `family` at a rate. The upper 65 bits of `family` do not count.
    #[must_use]
    pub const fn of_family(family: u128, rate: TrunkRate) -> Self {
        let rate = match rate {
            TrunkRate::Apart => 0,
            TrunkRate::Shared { every, limit } => SHARED | (every as u128) << 32 | limit as u128,
        };
        Self(family << RATE_BITS | rate)
    }

    /// Returns the name with `more` added to the family.
    pub(crate) const fn mixed(self, more: u64) -> Self {
        Self(self.0.wrapping_add((more as u128) << RATE_BITS))
    }

    const fn rate(self) -> TrunkRate {
        let [a, b, c, d, e, f, g, h, ..] = self.0.to_le_bytes();
        match self.0 & SHARED {
            0 => TrunkRate::Apart,
            _ => TrunkRate::Shared {
                every: u32::from_le_bytes([e, f, g, h]),
                limit: u32::from_le_bytes([a, b, c, d]),
            },
        }
    }

    /// Returns true if all samples of the stream `other` are also samples of this stream.
    #[must_use]
    pub const fn carries(self, other: Self) -> bool {
        if self.0 == other.0 || self.0 >> RATE_BITS != other.0 >> RATE_BITS {
            return false;
        }
        match (self.rate(), other.rate()) {
            (
                TrunkRate::Shared { every: one, limit: 0 },
                TrunkRate::Shared { every: other, .. },
            ) => one > 0 && other.is_multiple_of(one),
            (
                TrunkRate::Apart | TrunkRate::Shared { .. },
                TrunkRate::Apart | TrunkRate::Shared { .. },
            ) => false,
        }
    }
}

/// A stream and its demand.
type Member = (Trunk, StreamDemand);

/// Returns the charges of the streams that are sent, given the demands of a family in order of trunks.
fn sent(members: &[Member]) -> Vec<StreamDemand> {
    // The charge of each stream if it were sent, with all that it could carry: also streams that another one carries
    // now, because they may be left to it.
    let mut charges: Vec<Member> = Vec::with_capacity(members.len());
    for (trunk, own) in members.iter().rev() {
        let carried = roots(charges.iter().rev().filter(|(other, _)| trunk.carries(*other)));
        let together = carried.into_iter().map(|(_, it)| it).reduce(|all, one| all.plus(&one));
        // The streams' loss windows do not coincide, so the joint stream tolerates no loss.
        let charge = together.map_or(*own, |more| own.join(&more).with_loss(LossTolerance::NONE));
        charges.push((*trunk, charge));
    }
    roots(charges.iter().rev()).into_iter().map(|(_, charge)| charge).collect()
}

/// Returns the streams of a family, in order of trunks, that no other one carries. Faster streams come first.
fn roots<'a>(members: impl Iterator<Item = &'a Member>) -> Vec<Member> {
    let mut roots: Vec<Member> = Vec::new();
    for (trunk, demand) in members {
        if !roots.iter().any(|(root, _)| root.carries(*trunk)) {
            roots.push((*trunk, *demand));
        }
    }
    roots
}

/// Removes the demands that both lists have in common.
pub(super) fn difference(
    before: Vec<StreamDemand>,
    mut after: Vec<StreamDemand>,
) -> (Vec<StreamDemand>, Vec<StreamDemand>) {
    let stays = |gone: &StreamDemand| {
        let same = after.iter().position(|it| it == gone);
        same.map(|place| after.swap_remove(place)).is_some()
    };
    let (_, gone): (Vec<_>, Vec<_>) = before.into_iter().partition(stays);
    (gone, after)
}

impl Admission {
    /// Returns the streams of the family of `trunk` on this link, in order; `trunk` alone if streams are never shared.
    pub(super) fn relatives(&self, trunk: Trunk) -> impl Iterator<Item = (Trunk, &Held)> {
        // Streams with coinciding windows must keep equal parameters.
        let apart = trunk.rate() == TrunkRate::Apart || self.spec.rule.coincides();
        let first = trunk.0 >> RATE_BITS << RATE_BITS;
        let last = first | ((1 << RATE_BITS) - 1);
        let range = if apart { trunk..=trunk } else { Trunk(first)..=Trunk(last) };
        self.trunks.range(range).map(|(trunk, held)| (*trunk, held))
    }

    /// Returns the charges of the streams of a family that are sent, for the demands that `of` returns.
    pub(super) fn charges(
        &self,
        trunk: Trunk,
        of: impl Fn(&Held) -> Option<StreamDemand>,
    ) -> Vec<StreamDemand> {
        let members = self.relatives(trunk).filter_map(|(trunk, held)| Some((trunk, of(held)?)));
        sent(&members.collect::<Vec<_>>())
    }

    /// Returns the charges of the streams of a family that are sent if that of `trunk` is `charge`.
    pub(super) fn charges_with(&self, trunk: Trunk, charge: StreamDemand) -> Vec<StreamDemand> {
        let others = self.relatives(trunk).filter(|(it, _)| *it != trunk);
        let mut all: BTreeMap<Trunk, StreamDemand> =
            others.filter_map(|(it, held)| Some((it, held.charge?))).collect();
        all.insert(trunk, charge);
        sent(&all.into_iter().collect::<Vec<_>>())
    }

    /// Returns true if other streams of the family of `trunk` have reservations, besides `except`.
    pub(super) fn has_relatives(&self, trunk: Trunk, except: Trunk) -> bool {
        self.relatives(trunk).any(|(it, _)| it != trunk && it != except)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Holder, LinkParameters};
    use super::*;
    use crate::bounds::{LatencyRate, Sum, static_priority};
    use crate::link::AdmissionTest;
    use crate::traffic::Traffic;
    use crate::verdict::AdmissionResult;
    use paceline_sched::{Capacity, Duration};
    use proptest::prelude::*;

    const FAMILY: u128 = 77;

    fn rate() -> impl Strategy<Value = TrunkRate> {
        prop_oneof![
            Just(TrunkRate::ALL),
            (2..13_u32).prop_map(TrunkRate::every),
            (1..5_u32, 1..4_u32).prop_map(|(every, limit)| TrunkRate::Shared { every, limit }),
        ]
    }

    /// Returns the demand of one stream of a source with a sample every 10 ms.
    fn demand(rate: TrunkRate, deadline: u64) -> StreamDemand {
        let n = match rate {
            TrunkRate::Apart => 1,
            TrunkRate::Shared { every, limit: 0 } => u64::from(every),
            TrunkRate::Shared { every, limit } => u64::from(every.max(limit + 1)),
        };
        let period = Duration::from_millis(10 * n);
        let traffic = Traffic::periodic(1_000, period, Duration::from_millis(1), 1_000).unwrap();
        StreamDemand::new(traffic, Duration::from_millis(deadline)).unwrap()
    }

    fn family() -> impl Strategy<Value = Vec<Member>> {
        let one = (rate(), 5..60_u64);
        proptest::collection::vec(one, 1..7).prop_map(|all| {
            let named = all
                .into_iter()
                .map(|(rate, deadline)| (Trunk::of_family(FAMILY, rate), demand(rate, deadline)));
            named.collect::<BTreeMap<_, _>>().into_iter().collect()
        })
    }

    /// Returns the charge that covers the stream `trunk` of a family.
    fn covering(members: &[Member], trunk: Trunk) -> StreamDemand {
        let carrier = |trunk| {
            let mut all = members.iter().map(|(it, _)| *it);
            all.find(|it| *it == trunk || it.carries(trunk)).unwrap()
        };
        let root = carrier(trunk);
        let its = members.iter().filter(|(it, _)| *it == root || root.carries(*it));
        let [charge] = sent(&its.copied().collect::<Vec<_>>())[..] else { panic!("two charges") };
        charge
    }

    /// Returns the delay bound of the level of `own` on a link of `capacity` with these charges, under static priority.
    fn bound(charges: &[StreamDemand], own: &StreamDemand, capacity: Capacity) -> Duration {
        let sum = |of: fn(&u32, &u32) -> bool| {
            let its = charges.iter().filter(|it| of(&it.level(), &own.level()));
            Sum::of(&its.map(|it| *it.traffic()).collect::<Vec<_>>())
        };
        let lower = charges.iter().filter(|it| it.level() > own.level());
        let packet = lower.map(|it| it.traffic().packet()).max().unwrap_or(0);
        let link = LatencyRate::link(capacity, Duration::ZERO);
        static_priority(link, sum(u32::lt), sum(u32::eq), packet).unwrap()
    }

    #[test]
    fn a_stream_that_reshapes_its_family_is_not_granted_the_bound_of_another_level() {
        let capacity = Capacity::from_bits_per_s(3_000_000).unwrap();
        let mut link =
            Admission::new(LinkParameters::new(capacity, AdmissionTest::StaticPriority, 0));
        let loss = LossTolerance::new(1, 4).unwrap();
        // The slowest stream is sent with the first one, and then with the last one.
        let [third, sixth, half] = [
            (TrunkRate::every(3), 10, loss),
            (TrunkRate::every(6), 50, LossTolerance::NONE),
            (TrunkRate::every(2), 30, LossTolerance::NONE),
        ]
        .map(|(rate, deadline, loss)| {
            (Trunk::of_family(FAMILY, rate), demand(rate, deadline).with_loss(loss))
        });
        let holder = Holder { origin: 1, number: 1 };
        for (trunk, demand) in [third, sixth] {
            assert!(matches!(link.hold(trunk, holder, &demand), AdmissionResult::Granted(_)));
            link.commit(trunk, holder, None);
        }
        let members = [half, third, sixth];
        let least = bound(&sent(&members), &covering(&members, half.0), capacity);
        assert!(bound(&sent(&members), &covering(&members, third.0), capacity) < least);
        let AdmissionResult::Granted(grant) = link.hold(half.0, holder, &half.1) else {
            panic!("refused");
        };
        assert!(grant.now >= least, "{} is less than {least}", grant.now);
        assert!(grant.now <= grant.bound);
    }

    /// Returns the bytes that must have been sent within `time`.
    fn due(charges: &[StreamDemand], time: Duration) -> u64 {
        let of = |one: &StreamDemand| match time >= one.deadline() {
            true => one.traffic().bound(time.saturating_sub(one.deadline())),
            false => 0,
        };
        charges.iter().map(of).sum()
    }

    #[test]
    fn nested_rates_are_charged_as_the_fastest_one() {
        let named = |rate| (Trunk::of_family(FAMILY, rate), demand(rate, 20));
        let [all, third, sixth] =
            [TrunkRate::ALL, TrunkRate::every(3), TrunkRate::every(6)].map(named);
        let traffic =
            |members: &[_]| sent(members).iter().map(|it| *it.traffic()).collect::<Vec<_>>();
        assert_eq!(traffic(&[all, third, sixth]), [*all.1.traffic()]);
        assert_eq!(traffic(&[third, sixth]), [*third.1.traffic()]);
        let other = (Trunk::of_family(FAMILY + 1, TrunkRate::ALL), all.1);
        assert!(!other.0.carries(third.0) && !third.0.carries(all.0) && !all.0.carries(all.0));
        assert!(all.0.mixed(9).carries(third.0.mixed(9)) && !all.0.mixed(9).carries(third.0));
    }

    proptest! {
        #[test]
        fn static_priority_grants_each_stream_the_bound_of_its_level(
            members in family(),
            losses in proptest::collection::vec(any::<bool>(), 7),
            order in any::<prop::sample::Index>(),
        ) {
            let capacity = Capacity::from_bits_per_s(4_000_000).unwrap();
            let rule = AdmissionTest::StaticPriority;
            let mut link = Admission::new(LinkParameters::new(capacity, rule, 0));
            let holder = Holder { origin: 1, number: 1 };
            let (mut left, mut held) = (members, BTreeMap::new());
            let loss = LossTolerance::new(1, 4).unwrap();
            for ((_, demand), _) in left.iter_mut().zip(losses).filter(|(_, lossy)| *lossy) {
                *demand = demand.with_loss(loss);
            }
            while !left.is_empty() {
                let (trunk, demand) = left.remove(order.index(left.len()));
                let AdmissionResult::Granted(grant) = link.hold(trunk, holder, &demand) else {
                    continue;
                };
                link.commit(trunk, holder, None);
                held.insert(trunk, demand);
                let held: Vec<Member> = held.iter().map(|(trunk, it)| (*trunk, *it)).collect();
                let (all, own) = (sent(&held), covering(&held, trunk));
                prop_assert!(grant.now <= grant.bound && grant.bound == demand.deadline());
                prop_assert!(grant.now >= bound(&all, &own, capacity), "{:?} in {:?}", trunk, held);
                for charge in &all {
                    prop_assert!(bound(&all, charge, capacity) <= charge.deadline());
                }
            }
        }

        #[test]
        fn charges_cover_each_stream_and_never_grow_when_one_ends(members in family()) {
            let all = sent(&members);
            let times = (1..200).map(Duration::from_millis);
            for gone in 0..members.len() {
                let mut rest = members.clone();
                let (_, alone) = rest.remove(gone);
                let left = sent(&rest);
                for time in times.clone() {
                    prop_assert!(due(&left, time) <= due(&all, time), "{:?} less {}", members, gone);
                    prop_assert!(due(&[alone], time) <= due(&all, time));
                }
            }
        }

        #[test]
        fn a_link_is_empty_after_all_members_left_in_any_order(
            members in family(),
            order in any::<prop::sample::Index>(),
        ) {
            let capacity = Capacity::from_bits_per_s(3_000_000).unwrap();
            let mut link = Admission::new(LinkParameters::new(capacity, AdmissionTest::Edf, 0));
            let holder = Holder { origin: 1, number: 1 };
            let mut held = Vec::new();
            for (trunk, demand) in &members {
                if matches!(link.hold(*trunk, holder, demand), AdmissionResult::Granted(_)) {
                    link.commit(*trunk, holder, None);
                    held.push((*trunk, *demand));
                }
                let rate: u64 = sent(&held).iter().map(|it| it.traffic().rate()).sum();
                prop_assert_eq!(link.ledger().held.rate, rate);
                prop_assert_eq!(link.ledger().installed, link.ledger().held);
            }
            while !held.is_empty() {
                let (trunk, _) = held.remove(order.index(held.len()));
                link.release(trunk, holder);
                let rate: u64 = sent(&held).iter().map(|it| it.traffic().rate()).sum();
                prop_assert_eq!(link.ledger().held.rate, rate);
            }
            prop_assert!(link.is_empty());
        }
    }
}

//! Divides a delay bound among the hops of a path.

use super::ids::HOPS_MAX;
use paceline_sched::Duration;

/// The smallest part of a delay bound for a hop without a capacity, unless an even share is smaller. Thread
/// scheduling may delay samples by this much.
const QUICK: Duration = Duration::from_millis(5);
/// The fraction of a long delay bound for a hop without a capacity: one in `QUICK_PART`.
const QUICK_PART: u64 = 10;

/// The hops of a path, the set of those with a capacity, and the node that scales the samples.
///
/// Samples queue at hops with a capacity, so these get most of the delay bound. Other hops, for example
/// between processes of one host, only forward.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Split {
    hops: u32,
    /// A bit set of the hops with a capacity; the lowest bit is the first hop.
    slow: u32,
    /// The index of the node that scales, from 0 for the publisher's to `hops` for the subscription's. The hops from this
    /// index on carry scaled samples.
    proxy: u32,
}

/// The position of the proxy in a code; the bits below are those of the hops.
const PROXY_SHIFT: u32 = 24;

impl Split {
    /// Creates a split from a flag per hop, true if the hop has a capacity, starting at the publisher's node.
    pub(crate) fn new(capacities: impl Iterator<Item = bool>) -> Self {
        let fold = |split: Self, slow: bool| {
            let bit = u32::from(slow).checked_shl(split.hops).unwrap_or_default();
            Self { hops: split.hops + 1, slow: split.slow | bit, ..split }
        };
        capacities.take(HOPS_MAX).fold(Self { hops: 0, slow: 0, proxy: 0 }, fold)
    }

    /// Returns the code sent with the path.
    pub(crate) const fn code(self) -> u32 {
        self.slow | self.proxy << PROXY_SHIFT
    }

    /// Returns the split with the node at index `proxy` of the path as the one that scales; the last one for a larger
    /// index.
    pub(crate) fn with_proxy(self, proxy: usize) -> Self {
        Self { proxy: u32::try_from(proxy).unwrap_or(u32::MAX).min(self.hops), ..self }
    }

    /// Returns the index of the node that scales on the path.
    pub(crate) const fn proxy(self) -> usize {
        self.proxy as usize
    }

    /// Returns true if hop `hop`, from 0, carries scaled samples.
    pub(crate) const fn is_scaled(self, hop: usize) -> bool {
        hop >= self.proxy()
    }

    /// Returns true if a node between the ends scales.
    pub(crate) const fn scales_between(self) -> bool {
        self.proxy > 0 && self.proxy < self.hops
    }

    /// Returns true if hop `hop`, from 0, carries samples that a later node between the ends scales.
    pub(crate) const fn is_before_proxy(self, hop: usize) -> bool {
        self.scales_between() && !self.is_scaled(hop)
    }

    /// Creates a split from a code and the number of nodes of the path. Bits of hops beyond the path are
    /// ignored, and a proxy beyond it is the last node.
    pub(crate) fn from_code(nodes: usize, code: u32) -> Self {
        let bit =
            |hop: usize| hop < HOPS_MAX && u32::try_from(hop).is_ok_and(|hop| code >> hop & 1 == 1);
        let proxy = usize::try_from(code >> PROXY_SHIFT).unwrap_or_default();
        Self::new((1..nodes).map(|node| bit(node - 1))).with_proxy(proxy)
    }

    pub(crate) const fn hops(self) -> usize {
        self.hops as usize
    }

    /// Returns true if some hop has a capacity.
    pub(crate) const fn is_limited(self) -> bool {
        self.slow != 0
    }

    /// Returns the part of `within` for hop `hop`, from 0.
    pub(crate) fn part(self, within: Duration, hop: usize) -> Duration {
        let slow = u32::try_from(hop).is_ok_and(|hop| hop < 32 && self.slow >> hop & 1 == 1);
        if slow { self.slow_part(within) } else { self.quick_part(within) }
    }

    /// Returns the total part of `within` for the hops before hop `hop`.
    pub(crate) fn before(self, within: Duration, hop: usize) -> Duration {
        let add = |sum: Duration, hop| sum.saturating_add(self.part(within, hop));
        (0..hop.min(self.hops())).fold(Duration::ZERO, add)
    }

    /// Returns the shortest delay bound, in whole milliseconds, that gives a hop with a capacity at least
    /// `part`.
    pub(crate) fn bound(self, part: Duration) -> Duration {
        // Such a hop gets at least an even share.
        let even = part.mul_div(u64::from(self.hops.max(1)), 1);
        let (mut short, mut enough) = (0, even.as_nanos().div_ceil(1_000_000));
        while short + 1 < enough {
            let middle = short + (enough - short) / 2;
            if self.slow_part(Duration::from_millis(middle)) >= part {
                enough = middle;
            } else {
                short = middle;
            }
        }
        Duration::from_millis(enough)
    }

    fn quick_part(self, within: Duration) -> Duration {
        let even = within.mul_div(1, u64::from(self.hops.max(1)));
        if self.slow == 0 { even } else { even.min(QUICK.max(within.mul_div(1, QUICK_PART))) }
    }

    fn slow_part(self, within: Duration) -> Duration {
        let slow = u64::from(self.slow.count_ones());
        if slow == 0 {
            return self.quick_part(within);
        }
        let quick = self.quick_part(within).mul_div(u64::from(self.hops) - slow, 1);
        within.saturating_sub(quick).mul_div(1, slow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn parts(slow: &[bool], within: u64) -> Vec<u64> {
        let split = Split::new(slow.iter().copied());
        (0..slow.len()).map(|hop| split.part(millis(within), hop).as_nanos() / 1_000).collect()
    }

    #[test]
    fn unqueued_streams_leave_their_time_to_queued_streams() {
        assert_eq!(parts(&[true], 100), [100_000]);
        assert_eq!(parts(&[false, false], 100), [50_000; 2]);
        assert_eq!(parts(&[true, true, true], 90), [30_000; 3]);
        assert_eq!(parts(&[false, true, false], 100), [10_000, 80_000, 10_000]);
        assert_eq!(parts(&[false, true, false], 20), [5_000, 10_000, 5_000]);
        assert_eq!(parts(&[false, true, false], 9), [3_000; 3], "never more than an even part");
        assert_eq!(parts(&[true, false, true], 1_000), [450_000, 100_000, 450_000]);
    }

    #[test]
    fn unused_hops_of_a_code_are_empty() {
        assert_eq!(Split::from_code(4, 0b010), Split::new([false, true, false].into_iter()));
        let last = Split::new([true].into_iter()).with_proxy(1);
        assert_eq!(Split::from_code(2, u32::MAX), last, "a proxy beyond the path is the last node");
        assert_eq!(Split::from_code(0, 7), Split::from_code(1, 7));
        assert_eq!(Split::from_code(1_000, u32::MAX).hops(), HOPS_MAX);
    }

    proptest! {
        #[test]
        fn the_parts_never_exceed_the_shortest_bound(
            slow in proptest::collection::vec(any::<bool>(), 1..=HOPS_MAX),
            within in 0..u64::from(u32::MAX),
            part in 1..10_000_000_000_u64,
            proxy in 0..=HOPS_MAX,
        ) {
            let split = Split::new(slow.iter().copied()).with_proxy(proxy);
            prop_assert_eq!(Split::from_code(slow.len() + 1, split.code()), split);
            let within = Duration::from_nanos(within);
            prop_assert!(split.before(within, slow.len()) <= within);
            let even = within.mul_div(1, slow.len() as u64);
            for (hop, slow) in slow.iter().enumerate() {
                prop_assert!(!slow || split.part(within, hop) >= even);
            }
            let part = Duration::from_nanos(part);
            let bound = split.bound(part);
            prop_assert!(split.slow_part(bound) >= part);
            let shorter = bound.saturating_sub(millis(1));
            prop_assert!(shorter.is_zero() || split.slow_part(shorter) < part);
        }
    }
}

//! The fragments that an observer has received from an owner.

use crate::packet::ObserverView;

/// The numbers of received fragments of one owner and class, as ranges.
#[derive(Clone, Debug, Default)]
pub(crate) struct Receipts {
    /// Ranges with both ends, newest first, disjoint and not adjacent.
    ranges: Vec<(u32, u32)>,
    fresh: bool,
}

impl Receipts {
    /// Adds a number, and returns whether it is new. A number before all remembered ranges counts as received.
    pub(crate) fn add(&mut self, number: u32) -> bool {
        self.fresh = true;
        let position = self.ranges.partition_point(|(first, _)| *first > number);
        if self.ranges.get(position).is_some_and(|(_, last)| *last >= number)
            || (position == self.ranges.len() && self.ranges.len() == ObserverView::RANGES_MAX)
        {
            return false;
        }
        self.ranges.insert(position, (number, number));
        self.join(position);
        if let Some(newer) = position.checked_sub(1) {
            self.join(newer);
        }
        self.ranges.truncate(ObserverView::RANGES_MAX);
        true
    }

    /// Merges a range with the next older one if they touch.
    fn join(&mut self, position: usize) {
        let (Some((first, _)), Some((older, last))) =
            (self.ranges.get(position).copied(), self.ranges.get(position + 1).copied())
        else {
            return;
        };
        if last.checked_add(1) == Some(first) {
            self.ranges.remove(position + 1);
            if let Some(range) = self.ranges.get_mut(position) {
                range.0 = older;
            }
        }
    }

    /// Returns whether a number was added since the last report.
    pub(crate) const fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// Returns the ranges if a number was added since the last call.
    pub(crate) fn report(&mut self) -> Option<Vec<(u32, u32)>> {
        std::mem::take(&mut self.fresh).then(|| self.ranges.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn ranges_are_the_set(numbers in prop::collection::vec(0..60_u32, 0..80)) {
            let mut receipts = Receipts::default();
            let mut set = BTreeSet::new();
            for number in numbers {
                prop_assert_eq!(receipts.add(number), set.insert(number));
            }
            let ranges = receipts.report().unwrap_or_default();
            let listed: Vec<u32> = ranges.iter().rev().flat_map(|(first, last)| *first..=*last).collect();
            prop_assert_eq!(listed, set.into_iter().collect::<Vec<_>>());
            prop_assert!(ranges.windows(2).all(|pair| pair[1].1 + 1 < pair[0].0));
            prop_assert_eq!(receipts.report(), None);
        }
    }

    #[test]
    fn the_oldest_ranges_are_forgotten() {
        let mut receipts = Receipts::default();
        assert!((0..100).all(|number| receipts.add(2 * number)));
        assert_eq!(receipts.report().map(|ranges| ranges.len()), Some(ObserverView::RANGES_MAX));
        assert!(!receipts.add(3), "a number before all ranges counts as received");
        assert!(receipts.add(u32::MAX));
    }
}

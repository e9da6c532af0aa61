//! The predicted delay of a stream over a proxy.

use crate::list::at;
use crate::model::{Form, Model};
use crate::problem::{DelayModel, PlanTag};
use crate::routes::{SEGMENT_BYTES, UNREACHED};

impl Model<'_> {
    /// Returns the delay in nanoseconds from a publisher to a subscriber over the proxy at `node`.
    pub(crate) fn delay(&self, tag: usize, from: usize, to: usize, node: usize) -> u64 {
        let Some((tag, forms)) = self.tag(tag) else { return u64::MAX };
        let target = tag.subscribers.get(to).map_or(usize::MAX, |subscriber| subscriber.node);
        let (first, second) = (forms.get(0), forms.of_subscriber(to));
        let before = self.part(tag, first, from, node);
        before.saturating_add(self.part(tag, second, node, target))
    }

    /// Returns the longest delay to a subscriber from any publisher over the proxy at `node`.
    pub(crate) fn longest(&self, tag: usize, to: usize, node: usize) -> u64 {
        let publishers = self.problem.tags.get(tag).map_or(&[][..], |tag| &tag.publishers);
        publishers.iter().map(|&from| self.delay(tag, from, to, node)).max().unwrap_or(0)
    }

    /// Returns true if the proxy at `node` meets the delay bound of a subscriber.
    pub(crate) fn in_time(&self, tag: usize, to: usize, node: usize) -> bool {
        let subscriber = self.problem.tags.get(tag).and_then(|tag| tag.subscribers.get(to));
        match subscriber.and_then(|subscriber| subscriber.within) {
            Some(within) => self.longest(tag, to, node) <= within.as_nanos(),
            None => subscriber.is_some_and(|to| at(self.routes.back(to.node), node) != UNREACHED),
        }
    }

    fn part(&self, tag: &PlanTag, form: Form, from: usize, to: usize) -> u64 {
        let period = tag.period.as_nanos().saturating_mul(u64::from(form.every));
        if self.problem.delays == DelayModel::Periods {
            // A path from a publisher is in its tree, one to a subscriber in the subscriber's list.
            let is_publisher = tag.publishers.contains(&from);
            let hops = match is_publisher && from != to {
                true => self.routes.tree(from).hops(to),
                false => at(self.routes.back(to), from),
            };
            return period.saturating_mul(u64::from(hops));
        }
        let tree = self.routes.tree(from);
        let hops = u64::from(tree.hops(to));
        if hops == u64::from(UNREACHED) {
            return u64::MAX;
        }
        let (delay, transmission) = tree.times(to);
        if self.problem.delays == DelayModel::Links || hops == 0 {
            return delay;
        }
        // One sample at the reserved rate takes a period, so a segment takes its share of it.
        let share = u128::from(period) * u128::from(SEGMENT_BYTES.min(form.bytes));
        let share = share.div_ceil(u128::from(form.bytes.max(1)));
        let share = u64::try_from(share).unwrap_or(u64::MAX);
        let segments = hops.saturating_mul(share).saturating_add(transmission);
        delay.saturating_add(period).saturating_add(segments)
    }
}

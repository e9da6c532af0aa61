//! Delivery order: samples of one publisher reach a subscription in publish order, and gaps in their sequence numbers are
//! counted.
//!
//! While a subscription changes, two ports deliver samples of the same publisher: one in the old form, one in the new form.
//! A delayed sample of the old form must not follow a newer one.
//!
//! An order outlives its ports: an outage closes them, and the next sample after it shows the number of samples published
//! meanwhile.

use super::window::{Turn, Window};
use paceline_proto::PublisherId;
use paceline_sched::time::jitter_step;
use paceline_sched::{Duration as Age, Instant};
use std::collections::BTreeMap;

/// The number of publishers above which a subscription forgets those without a port.
const PRUNE_AT: usize = 1_024;

/// The newest sample of one publisher, shared by its ports.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// The ports that deliver its samples.
    ports: u32,
    arrived: Window,
    /// Samples that the publisher has sent since the first one here, as far as their numbers show.
    published: u64,
    /// The arrival of the first picture of a video, until one arrives that was published later.
    joining: Option<Instant>,
    /// The age of the last sample at its arrival, in nanoseconds.
    transit: Option<u64>,
    /// Sixteen times the jitter of RFC 3550, in nanoseconds.
    jitter: u64,
}

impl Order {
    /// Notes the arrival of the sample `seq`.
    pub(super) fn take(&mut self, seq: u64) -> Turn {
        self.arrived.take(seq)
    }

    /// Counts a sample that is the newest, and returns the number of samples lost before it.
    ///
    /// A subscriber that joins a video late first receives the newest key picture and those that later pictures need. The
    /// pictures between them were published before it joined, so their absence is no loss.
    pub(super) fn count(&mut self, gap: u64, arrived: Instant, age: Age, is_video: bool) -> u64 {
        let is_first = self.published == 0;
        let joining = if is_first { is_video.then_some(arrived) } else { self.joining };
        let is_before = joining.is_some_and(|since| arrived.since(since) <= age);
        self.joining = joining.filter(|_| is_before);
        let lost = if joining.is_some() { 0 } else { gap };
        self.published = self.published.saturating_add(lost).saturating_add(1);
        lost
    }

    /// Adds the age of a sample at its arrival to the jitter of RFC 3550, section 6.4.1.
    pub(super) const fn note_age(&mut self, age: u64) {
        if let Some(last) = self.transit.replace(age) {
            self.jitter = jitter_step(self.jitter, age.abs_diff(last));
        }
    }
}

/// The orders of one subscription, by publisher.
#[derive(Debug, Default)]
pub(super) struct Orders {
    /// Most subscriptions have one publisher, for which a map would be large.
    first: Option<(PublisherId, Order)>,
    others: BTreeMap<PublisherId, Order>,
}

impl Orders {
    /// Adds a port of the publisher. Its order takes the place of one that no port uses.
    pub(super) fn open(&mut self, publisher: PublisherId) {
        if let Some((id, order)) = &mut self.first
            && *id != publisher
            && order.ports == 0
        {
            let its = self.others.remove(&publisher).unwrap_or_default();
            let unused = std::mem::replace(id, publisher);
            self.others.insert(unused, std::mem::replace(order, its));
        }
        self.of(publisher).ports += 1;
    }

    /// Removes a port of the publisher.
    pub(super) fn close(&mut self, publisher: PublisherId) {
        let first = self.first.as_mut().filter(|(id, _)| *id == publisher).map(|(_, order)| order);
        if let Some(order) = first.or_else(|| self.others.get_mut(&publisher)) {
            order.ports = order.ports.saturating_sub(1);
        }
    }

    /// Returns the order of a publisher's samples.
    pub(super) fn of(&mut self, publisher: PublisherId) -> &mut Order {
        let is_first = |(id, _): &(PublisherId, Order)| *id == publisher;
        let others = &mut self.others;
        let len = others.len();
        if self.first.as_ref().is_none_or(is_first) {
            return &mut self.first.get_or_insert_with(|| (publisher, Order::default())).1;
        }
        if len >= PRUNE_AT && len.is_power_of_two() && !others.contains_key(&publisher) {
            others.retain(|_, order| order.ports > 0);
        }
        others.entry(publisher).or_default()
    }

    /// Returns the samples that each publisher has sent since its first one here, as far as their numbers show.
    pub(super) fn published(&self) -> BTreeMap<PublisherId, u64> {
        let first = self.first.iter().map(|(id, order)| (*id, order.published));
        first.chain(self.others.iter().map(|(id, order)| (*id, order.published))).collect()
    }

    /// Returns the largest jitter of a publisher's samples at arrival, in nanoseconds.
    pub(super) fn jitter(&self) -> u64 {
        let first = self.first.as_ref().map(|(_, order)| order);
        let jitters = first.into_iter().chain(self.others.values()).map(|order| order.jitter >> 4);
        jitters.max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_proto::NodeId;

    #[test]
    fn the_jitter_is_that_of_rfc_3550() {
        let mut order = Order::default();
        // The same delay has no jitter; delays that alternate by 16 ms approach 16 ms.
        (0..10).for_each(|_| order.note_age(5_000_000));
        assert_eq!(order.jitter, 0);
        (0..200).for_each(|n| order.note_age(5_000_000 + n % 2 * 16_000_000));
        let jitter = order.jitter >> 4;
        assert!((15_900_000..=16_000_000).contains(&jitter), "{jitter}");
        // A jump of an age is no jitter.
        let before = order.jitter;
        order.note_age(u64::MAX - 1);
        assert_eq!(order.jitter, before);
    }

    #[test]
    fn pictures_published_before_the_join_are_left_out_and_later_ones_are_lost() {
        let (mut order, mut lost) = (Order::default(), Vec::new());
        // The number, the arrival and the age of each sample in milliseconds.
        let samples =
            [(10, 0, 1_000), (13, 1, 900), (16, 2, 800), (40, 40, 5), (41, 70, 5), (50, 400, 5)];
        for (seq, at, age) in samples {
            let Turn::Next { gap } = order.take(seq) else { continue };
            let arrived = Instant::from_millis(60_000 + at);
            lost.push(order.count(gap, arrived, Age::from_millis(age), true));
        }
        assert_eq!((lost, order.published), (vec![0, 0, 0, 0, 0, 8], 14));
        let mut order = Order::default();
        let count = |order: &mut Order, gap| order.count(gap, Instant::ZERO, Age::ZERO, false);
        assert_eq!((count(&mut order, 0), count(&mut order, 23)), (0, 23), "data joins no film");
    }

    const PUBLISHER: PublisherId = PublisherId { node: NodeId(1), index: 0 };

    #[test]
    fn a_sample_older_than_the_newest_is_skipped() {
        let mut orders = Orders::default();
        let mut take = |seq| orders.of(PUBLISHER).take(seq);
        let next = |gap| Turn::Next { gap };
        assert_eq!(take(3), next(0), "the samples before the first were for others");
        assert_eq!(take(5), next(1));
        assert_eq!(take(4), Turn::Superseded, "it would follow number 5");
        assert_eq!((take(4), take(5)), (Turn::Repeated, Turn::Repeated));
        assert_eq!((take(6), take(7), take(20)), (next(0), next(0), next(12)));
        let other = PublisherId { index: 1, ..PUBLISHER };
        assert_eq!(orders.of(other).take(0), next(0), "each publisher has an order of its own");
    }

    #[test]
    fn the_order_of_a_closed_publisher_is_forgotten() {
        let mut orders = Orders::default();
        for index in 0..10_000 {
            let publisher = PublisherId { index, ..PUBLISHER };
            orders.open(publisher);
            if index > 0 {
                orders.close(publisher);
            }
        }
        assert!(orders.others.len() <= 2 * PRUNE_AT);
        assert_eq!(orders.first.as_ref().map(|(_, order)| order.ports), Some(1));
    }
}

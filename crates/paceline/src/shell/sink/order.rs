//! Delivery order: samples of one publisher reach a subscription in publish order, and gaps in their
//! sequence numbers are counted.
//!
//! While a subscription changes, two ports deliver samples of the same publisher: one in the old
//! form, one in the new form. A delayed sample of the old form must not follow a newer one.
//!
//! An order outlives its ports: an outage closes them, and the next sample after it shows the number
//! of samples published meanwhile.

use crate::shell::lock;
use paceline_proto::PublisherId;
use paceline_sched::time::jitter_step;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of publishers above which a subscription forgets those without a port.
const PRUNE_AT: usize = 1_024;
/// The value of [`Order::next`] before the first sample.
const NONE: u64 = u64::MAX;

/// The newest sample of one publisher that a subscription received, shared by the delivering ports.
#[derive(Debug)]
pub(crate) struct Order {
    /// The highest sequence number plus one, or [`NONE`].
    next: AtomicU64,
    turn: Mutex<()>,
    /// The age of the last sample at its arrival in nanoseconds, or [`NONE`], and sixteen times the jitter of RFC 3550.
    transit: AtomicU64,
    jitter: AtomicU64,
}

impl Default for Order {
    fn default() -> Self {
        Self {
            next: AtomicU64::new(NONE),
            turn: Mutex::new(()),
            transit: AtomicU64::new(NONE),
            jitter: AtomicU64::new(0),
        }
    }
}

/// The right to deliver one sample, exclusive among the ports.
pub(crate) struct Turn<'a> {
    /// The number of samples since the newest one that have not arrived.
    pub(super) gap: u64,
    _turn: Option<MutexGuard<'a, ()>>,
}

impl Order {
    /// Returns the right to deliver sample `seq`, or `None` if a newer one was delivered. A single
    /// port takes no lock.
    pub(crate) fn take(self: &Arc<Self>, seq: u64) -> Option<Turn<'_>> {
        // One reference is that of the subscription.
        let alone = Arc::strong_count(self) <= 2;
        let turn = (!alone).then(|| self.turn.lock().unwrap_or_else(PoisonError::into_inner));
        let next = self.next.load(Ordering::Relaxed);
        let gap = if next == NONE { 0 } else { seq.checked_sub(next)? };
        self.next.store(seq.saturating_add(1), Ordering::Relaxed);
        Some(Turn { gap, _turn: turn })
    }

    /// Adds the age of a sample at its arrival to the jitter of RFC 3550, section 6.4.1. The caller has the turn.
    pub(super) fn arrived(&self, age: u64) {
        let last = self.transit.swap(age, Ordering::Relaxed);
        if last != NONE {
            let scaled = self.jitter.load(Ordering::Relaxed);
            self.jitter.store(jitter_step(scaled, age.abs_diff(last)), Ordering::Relaxed);
        }
    }
}

/// The orders of one subscription, by publisher.
#[derive(Debug, Default)]
pub(super) struct Orders(Mutex<ByPublisher>);

/// Most subscriptions have one publisher, for which a map would be large.
#[derive(Debug, Default)]
struct ByPublisher {
    first: Option<(PublisherId, Arc<Order>)>,
    others: BTreeMap<PublisherId, Arc<Order>>,
}

impl ByPublisher {
    fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    fn get(&self, publisher: PublisherId) -> Option<&Arc<Order>> {
        let first = self.first.as_ref().filter(|(id, _)| *id == publisher);
        first.map(|(_, order)| order).or_else(|| self.others.get(&publisher))
    }

    fn add(&mut self, publisher: PublisherId, order: Arc<Order>) {
        match &mut self.first {
            first @ None => *first = Some((publisher, order)),
            Some(_) => _ = self.others.insert(publisher, order),
        }
    }

    /// Forgets the orders that no port uses.
    fn prune(&mut self) {
        let is_used = |order: &Arc<Order>| Arc::strong_count(order) > 1;
        self.first = self.first.take().filter(|(_, order)| is_used(order));
        self.others.retain(|_, order| is_used(order));
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Order>> {
        self.first.iter().map(|(_, order)| order).chain(self.others.values())
    }
}

impl Orders {
    /// Returns the order of a publisher's samples, shared by its current ports.
    pub(super) fn of(&self, publisher: PublisherId) -> Arc<Order> {
        let mut orders = lock(&self.0);
        if let Some(order) = orders.get(publisher) {
            return order.clone();
        }
        if orders.len() >= PRUNE_AT && orders.len().is_power_of_two() {
            orders.prune();
        }
        let order = Arc::<Order>::default();
        orders.add(publisher, order.clone());
        order
    }

    /// Returns the largest jitter of a publisher's samples at arrival, in nanoseconds.
    pub(super) fn jitter(&self) -> u64 {
        let orders = lock(&self.0);
        let jitters = orders.all().map(|order| order.jitter.load(Ordering::Relaxed) >> 4);
        jitters.max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_proto::NodeId;

    #[test]
    fn the_jitter_is_that_of_rfc_3550() {
        let order = Order::default();
        // The same delay has no jitter; delays that alternate by 16 ms approach 16 ms.
        (0..10).for_each(|_| order.arrived(5_000_000));
        assert_eq!(order.jitter.load(Ordering::Relaxed), 0);
        (0..200).for_each(|n| order.arrived(5_000_000 + n % 2 * 16_000_000));
        let jitter = order.jitter.load(Ordering::Relaxed) >> 4;
        assert!((15_900_000..=16_000_000).contains(&jitter), "{jitter}");
        // A jump of an age is no jitter.
        let before = order.jitter.load(Ordering::Relaxed);
        order.arrived(u64::MAX - 1);
        assert_eq!(order.jitter.load(Ordering::Relaxed), before);
    }

    const PUBLISHER: PublisherId = PublisherId { node: NodeId(1), index: 0 };

    #[test]
    fn a_sample_older_than_the_newest_is_skipped() {
        let orders = Orders::default();
        let (before, after) = (orders.of(PUBLISHER), orders.of(PUBLISHER));
        let gap = |order: &Arc<Order>, seq| order.take(seq).map(|turn| turn.gap);
        assert_eq!(gap(&before, 3), Some(0), "the samples before the first were for others");
        assert_eq!(gap(&after, 5), Some(1));
        assert_eq!(gap(&before, 4), None, "it would follow number 5");
        assert_eq!((gap(&before, 6), gap(&after, 7)), (Some(0), Some(0)));
        drop(before);
        assert_eq!((gap(&after, 7), gap(&after, 8)), (None, Some(0)));
        drop(after);
        assert_eq!(gap(&orders.of(PUBLISHER), 20), Some(11), "the outage closed both ports");
        let other = orders.of(PublisherId { index: 1, ..PUBLISHER });
        assert!(other.take(0).is_some(), "each publisher has an order of its own");
    }

    #[test]
    fn the_order_of_a_closed_publisher_is_forgotten() {
        let orders = Orders::default();
        for index in 0..10_000 {
            drop(orders.of(PublisherId { index, ..PUBLISHER }));
        }
        assert!(orders.0.lock().unwrap().len() <= PRUNE_AT);
    }

    #[test]
    fn two_ports_at_once_never_deliver_out_of_order() {
        let orders = Orders::default();
        let delivered = Mutex::new(Vec::new());
        let ports = [orders.of(PUBLISHER), orders.of(PUBLISHER)];
        std::thread::scope(|scope| {
            for (port, first) in ports.iter().zip(0..) {
                let delivered = &delivered;
                scope.spawn(move || {
                    for seq in (first..20_000).step_by(2) {
                        if let Some(_turn) = port.take(seq) {
                            delivered.lock().unwrap().push(seq);
                        }
                    }
                });
            }
        });
        assert!(delivered.lock().unwrap().is_sorted());
    }
}

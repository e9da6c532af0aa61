//! Delivery order: samples of one publisher reach a subscription in publish order.
//!
//! While a subscription changes, two ports deliver samples of the same publisher: one in the old
//! form, one in the new form. A delayed sample of the old form must not follow a newer one.

use paceline_proto::PublisherId;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The number of publishers above which a subscription removes unused orders.
const PRUNE_AT: usize = 16;

/// The newest sample of one publisher that a subscription received, shared by the delivering ports.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// The highest sequence number plus one.
    next: AtomicU64,
    turn: Mutex<()>,
}

/// The right to deliver one sample, exclusive among the ports.
pub(crate) struct Turn<'a> {
    _turn: Option<MutexGuard<'a, ()>>,
}

impl Order {
    /// Returns the right to deliver sample `seq`, or `None` if a newer one was delivered. A single
    /// port takes no lock.
    pub(crate) fn take(self: &Arc<Self>, seq: u64) -> Option<Turn<'_>> {
        let alone = Arc::strong_count(self) == 1;
        let turn = (!alone).then(|| self.turn.lock().unwrap_or_else(PoisonError::into_inner));
        let next = self.next.load(Ordering::Relaxed);
        if seq < next {
            return None;
        }
        self.next.store(seq.saturating_add(1), Ordering::Relaxed);
        Some(Turn { _turn: turn })
    }
}

/// The orders of one subscription, by publisher.
#[derive(Debug, Default)]
pub(super) struct Orders(Mutex<BTreeMap<PublisherId, Weak<Order>>>);

impl Orders {
    /// Returns the order of a publisher's samples, shared by its current ports.
    pub(super) fn of(&self, publisher: PublisherId) -> Arc<Order> {
        let mut orders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(order) = orders.get(&publisher).and_then(Weak::upgrade) {
            return order;
        }
        if orders.len() >= PRUNE_AT && orders.len().is_power_of_two() {
            orders.retain(|_, order| order.strong_count() > 0);
        }
        let order = Arc::new(Order::default());
        orders.insert(publisher, Arc::downgrade(&order));
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_proto::NodeId;

    const PUBLISHER: PublisherId = PublisherId { node: NodeId(1), index: 0 };

    #[test]
    fn a_sample_older_than_the_newest_is_skipped() {
        let orders = Orders::default();
        let (before, after) = (orders.of(PUBLISHER), orders.of(PUBLISHER));
        assert!(before.take(3).is_some());
        assert!(after.take(5).is_some());
        assert!(before.take(4).is_none(), "it would follow number 5");
        assert!(before.take(6).is_some() && after.take(7).is_some());
        drop(before);
        assert!(after.take(7).is_none() && after.take(8).is_some());
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

//! The subscriptions of a node.

use super::account::SubscriptionAccount;
use crate::deliver::{Acceptance, Delivery, DeliveryFate, DeliveryMeter, Moments, Needed, Origin};
use paceline_proto::reason::DropReason;
use paceline_proto::sample::RawSample;
use paceline_proto::{PublisherId, SubscriptionId};
use paceline_sched::Instant;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The end of a subscription in a node.
#[derive(Debug)]
pub(super) struct SubscriptionEnd {
    pub(super) delivery: Delivery,
    pub(super) account: Option<Box<SubscriptionAccount>>,
    /// The rate, ages and health, from the readings so far.
    pub(super) meter: DeliveryMeter,
    /// The publishers that it receives.
    pub(super) publishers: Vec<PublisherId>,
    /// [`Subscriptions::poll_readable`] is about to return it.
    readable: bool,
}

impl SubscriptionEnd {
    /// Counts samples that were lost or dropped before they arrived here.
    pub(super) fn count(&mut self, publisher: PublisherId, reason: DropReason, samples: u64) {
        if let Some(account) = &mut self.account {
            account.note_dropped(publisher, samples);
        }
        self.delivery.handle_lost(reason, samples);
    }

    pub(super) fn note_published(&mut self, publisher: PublisherId, seq: u64) {
        if let Some(account) = &mut self.account {
            account.note_published(publisher, seq);
        }
    }

    /// Delivers a sample. If the application can read it, adds the subscription `id` to the `readable` ones.
    pub(super) fn deliver(
        &mut self,
        now: Instant,
        (from, needed): (&Origin<'_>, Needed),
        sample: &RawSample,
        (id, readable): (SubscriptionId, &mut VecDeque<SubscriptionId>),
    ) -> Acceptance {
        let fate = self.delivery.handle(Moments::at(now), from, needed, sample.clone(), |_| {});
        if matches!(fate, DeliveryFate::Queued) && !self.readable {
            self.readable = true;
            readable.push_back(id);
        }
        let acceptance = fate.acceptance();
        if let Some(account) = &mut self.account {
            match acceptance {
                Acceptance::Accepted => account.offered += 1,
                Acceptance::Dropped => account.note_dropped(from.publisher, 1),
                Acceptance::Repeated => {}
            }
        }
        acceptance
    }
}

/// The subscriptions of a node, and those with samples to read.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    ends: BTreeMap<SubscriptionId, SubscriptionEnd>,
    /// The subscriptions with delivery by time.
    pub(super) timed: BTreeSet<SubscriptionId>,
    readable: VecDeque<SubscriptionId>,
}

impl Subscriptions {
    pub(super) fn add(&mut self, id: SubscriptionId, delivery: Delivery, accounts: bool) {
        let account = accounts.then(Box::default);
        self.ends.insert(
            id,
            SubscriptionEnd {
                delivery,
                account,
                meter: DeliveryMeter::default(),
                publishers: Vec::new(),
                readable: false,
            },
        );
    }

    pub(super) fn remove(&mut self, id: SubscriptionId) -> Option<SubscriptionEnd> {
        self.timed.remove(&id);
        self.ends.remove(&id)
    }

    pub(super) fn get(&self, id: SubscriptionId) -> Option<&SubscriptionEnd> {
        self.ends.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: SubscriptionId) -> Option<&mut SubscriptionEnd> {
        self.ends.get_mut(&id)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = SubscriptionId> + '_ {
        self.ends.keys().copied()
    }

    /// Returns a subscription, and the queue of those with samples to read for [`SubscriptionEnd::deliver`].
    pub(super) fn end_mut(
        &mut self,
        id: SubscriptionId,
    ) -> Option<(&mut SubscriptionEnd, &mut VecDeque<SubscriptionId>)> {
        Some((self.ends.get_mut(&id)?, &mut self.readable))
    }

    /// Announces a subscription whose delivery by time has released samples or actions.
    pub(super) fn announce(&mut self, id: SubscriptionId) {
        if let Some(end) = self.ends.get_mut(&id)
            && !end.readable
            && end.delivery.has_unread()
        {
            end.readable = true;
            self.readable.push_back(id);
        }
    }

    /// Returns a subscription that has got samples since it was returned last.
    pub(super) fn poll_readable(&mut self) -> Option<SubscriptionId> {
        while let Some(id) = self.readable.pop_front() {
            if let Some(end) = self.ends.get_mut(&id) {
                end.readable = false;
                return Some(id);
            }
        }
        None
    }

    /// Returns the subscriptions with a release or silence that is due.
    pub(super) fn due(&self, now: Instant) -> Vec<SubscriptionId> {
        self.timeouts().filter(|(at, _)| *at <= now).map(|(_, id)| id).collect()
    }

    /// Returns the time of the next release or silence of each subscription with delivery by time.
    pub(super) fn timeouts(&self) -> impl Iterator<Item = (Instant, SubscriptionId)> + '_ {
        self.timed.iter().filter_map(|id| Some((self.ends.get(id)?.delivery.poll_timeout()?, *id)))
    }
}

//! Counters by stream and publisher, for tests that account for every sample.

use super::lookup::Lookup;
use paceline_proto::plan::SourceKey;
use paceline_proto::reason::{DropReason, Drops};
use paceline_proto::{NodeId, PublisherId};
use std::collections::BTreeMap;

/// The arrivals of one stream from one neighbour.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ArrivalAccount {
    /// Samples that arrived whole.
    pub whole: u64,
    /// Samples that were lost on the hop or before it.
    pub lost: Drops,
}

/// The counters of a node by stream and by publisher. Only [`Node::keep_accounts`](super::Node::keep_accounts) collects
/// them, because they grow with every stream that ever arrived.
#[derive(Debug, Default)]
pub struct NodeAccounts {
    arrived: Lookup<(NodeId, SourceKey), ArrivalAccount>,
    unrouted: BTreeMap<PublisherId, u64>,
}

impl NodeAccounts {
    pub(super) fn note_sample(&mut self, from: NodeId, source: SourceKey) {
        self.arrived.entry((from, source)).or_default().whole += 1;
    }

    pub(super) fn note_lost(
        &mut self,
        from: NodeId,
        source: SourceKey,
        (reason, samples): (DropReason, u64),
    ) {
        self.arrived.entry((from, source)).or_default().lost.add(reason, samples);
    }

    pub(super) fn note_unrouted(&mut self, publisher: PublisherId, samples: u64) {
        *self.unrouted.entry(publisher).or_default() += samples;
    }

    /// Returns the arrivals of a stream from a neighbour, which are 0 before its first sample.
    #[must_use]
    pub fn arrived(&self, from: NodeId, source: SourceKey) -> ArrivalAccount {
        self.arrived.get(&(from, source)).copied().unwrap_or_default()
    }

    /// Returns the samples of a publisher that found no output on the node.
    #[must_use]
    pub fn unrouted(&self, publisher: PublisherId) -> u64 {
        self.unrouted.get(&publisher).copied().unwrap_or_default()
    }
}

/// The samples that reached one subscription, by publisher.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SubscriptionAccount {
    /// Samples that arrived at the subscription or were lost before it.
    pub offered: u64,
    /// Samples published from the first that arrived of each publisher to its newest.
    pub published: u64,
    /// Dropped samples by publisher.
    pub dropped: BTreeMap<PublisherId, u64>,
    /// The sequence number after the newest sample, by publisher.
    next: BTreeMap<PublisherId, u64>,
}

impl SubscriptionAccount {
    /// Counts samples that do not reach the queue.
    pub(super) fn note_dropped(&mut self, publisher: PublisherId, samples: u64) {
        self.offered += samples;
        *self.dropped.entry(publisher).or_default() += samples;
    }

    /// Counts the samples that were published up to `seq`, which has arrived.
    pub(super) fn note_published(&mut self, publisher: PublisherId, seq: u64) {
        let next = self.next.entry(publisher).or_insert(seq);
        if let Some(missing) = seq.checked_sub(*next) {
            *next = seq + 1;
            self.published += missing + 1;
        }
    }
}

//! The part of the registry that a leaf sees.
//!
//! A leaf sees the publishers to which it may subscribe or that it may pull, the subscriptions that it may
//! serve or change, and the refusals and marks that concern it. A leaf without any right sees only this node. A hidden
//! change is replaced by one without effect, so that versions stay equal on all nodes.

use super::Access;
use crate::control::data::ids::PairKey;
use crate::control::data::refusal::ANY;
use crate::control::data::spec::{PublisherSpec, SubscriptionSpec};
use crate::control::membership::registry::{Change, Record, Registry};
use crate::ids::NodeId;
use crate::rights::{Right, Rights};

/// The view of one leaf.
pub(in crate::control) struct View<'r> {
    registry: &'r Registry,
    leaf: NodeId,
    rights: Rights,
}

impl Access {
    /// Returns the view of a neighbour; `None` if it sees everything.
    pub(in crate::control) fn view<'r>(
        &self,
        registry: &'r Registry,
        hop: NodeId,
    ) -> Option<View<'r>> {
        let rights = self.rights(registry, hop)?;
        (!rights.grants_node(Right::Relay)).then_some(View { registry, leaf: hop, rights })
    }
}

impl View<'_> {
    /// Returns true for the leaf and the processes of its host.
    fn is_own(&self, node: NodeId) -> bool {
        node == self.leaf || self.registry.is_own(self.leaf, node)
    }

    /// Returns true if the leaf sees the record of `node`, or a part of it.
    pub(in crate::control) fn shows(&self, node: NodeId) -> bool {
        self.is_own(node) || node == self.registry.me() || !self.rights.is_empty()
    }

    fn shows_publisher(&self, spec: &PublisherSpec) -> bool {
        if spec.tag.is_private() {
            let own = |node: NodeId| spec.tag.as_str().starts_with(&format!("@pull/{node}/"));
            let record = self.registry.record(self.leaf).into_iter();
            let mut others = record.flat_map(|record| record.neighbours.keys());
            return own(self.leaf) || others.any(|&node| self.is_own(node) && own(node));
        }
        [Right::Subscribe, Right::Pull].iter().any(|&right| self.rights.grants(right, &spec.tag))
    }

    fn shows_subscription(&self, spec: &SubscriptionSpec) -> bool {
        if spec.pattern.is_private() {
            // The leaf may hold the samples that another node pulls.
            return !self.rights.is_empty();
        }
        let serves = if spec.holds { &[Right::Pull][..] } else { &[] };
        let any = [Right::Publish, Right::Set];
        any.iter().chain(serves).any(|&right| self.rights.grants_part_of(right, &spec.pattern))
    }

    fn shows_refusal(&self, (subscription, publisher): PairKey) -> bool {
        let tag = || {
            let spec = self.registry.record(publisher.node)?.publishers.get(&publisher)?;
            Some(self.shows_publisher(spec))
        };
        self.is_own(publisher.node)
            || self.is_own(subscription.node)
                && (publisher.index == ANY || tag().unwrap_or_default())
    }

    /// Returns the visible part of a record of `node`.
    pub(in crate::control) fn record(&self, node: NodeId, record: &Record) -> Record {
        let mut seen = record.clone();
        if !self.is_own(node) {
            seen.publishers.retain(|_, spec| self.shows_publisher(spec));
            seen.subscriptions.retain(|_, spec| self.shows_subscription(spec));
            seen.neighbours.retain(|&hop, _| self.shows(hop));
            seen.refusals.retain(|&key, _| self.shows_refusal(key));
            seen.marks.retain(|&key, _| self.shows_refusal(key));
            seen.places.retain(|&key, _| self.shows_refusal(key));
        }
        seen
    }

    /// Returns the change as the leaf sees it. The rights to an entry that this node cannot read are unknown, so it is hidden.
    pub(in crate::control) fn change(&self, node: NodeId, change: Change) -> Change {
        let shown = self.is_own(node)
            || match &change {
                Change::Publish(_, spec) => self.shows_publisher(spec),
                Change::Subscribe(_, spec) => self.shows_subscription(spec),
                Change::HopUp(hop, _) => self.shows(*hop),
                Change::Refuse(refusal) => {
                    self.shows_refusal((refusal.subscription, refusal.publisher))
                }
                Change::Mark(pair, ..) | Change::Place(pair, _) => self.shows_refusal(*pair),
                Change::Unread(..) => false,
                // A leaf may have a link on the medium.
                Change::Medium(..) | Change::Remove(_) => true,
            };
        if shown { change } else { Change::Remove(change.key()) }
    }
}

//! [`Control`]: the publishers and subscriptions of all nodes, and the streams of this node.
//!
//! Each node has one `Control`, owned by one thread. Inputs (`handle_*`, `publish`, `subscribe`, …) carry the
//! current time `now`. Call [`Control::poll_output`] after them until it returns `None`, and
//! [`Control::handle_timeout`] at the instant that [`Control::poll_timeout`] returns. Streams are computed
//! when outputs are polled, so a batch of inputs costs one computation. The crate documentation has the loop of two nodes; on
//! one node without neighbours it is:
//!
//! ```
//! use paceline_proto::control::{Control, ControlOutput, PublisherSpec, SubscriptionSpec};
//! use paceline_proto::{NodeId, Pattern, Tag};
//! use paceline_sched::{Duration, Instant};
//!
//! let now = Instant::from_millis(1);
//! let mut control = Control::new(NodeId(1), "robot");
//! let publisher = control.publish(now, PublisherSpec::new(Tag::new("robot/pose").unwrap()));
//! let mut spec = SubscriptionSpec::all_of(Pattern::new("robot/*").unwrap());
//! spec.within = Some(Duration::from_millis(20));
//! let subscription = control.subscribe(now, spec);
//! while let Some(output) = control.poll_output() {
//!     if let ControlOutput::Subscribed { subscription: id, publishers } = output {
//!         assert_eq!((id, publishers), (subscription, vec![publisher]));
//!     }
//! }
//! assert!(control.poll_timeout() > now);
//! ```
//!
//! The registry is a link-state database. Each node originates one record of itself. Each change raises the
//! record's version by one and is flooded as a delta. A node that detects a version gap requests the whole
//! record. New neighbours compare versions (digests).
//!
//! Invariant: nodes with equal registries compute equal paths without any negotiation, so each node installs its part
//! of every stream by itself. A contract is in force only while the path has granted it.

mod contracts;
mod data;
mod membership;
mod paths;
mod recompute;
mod rights;
mod routing;

pub use crate::topic::Topic;
pub use contracts::change::ChangeAnswer;
pub use contracts::excess::StreamExcess;
pub use contracts::links::{BUFFER_DEFAULT, BufferUse, ClassUse, HOST_BUFFER_DEFAULT};
pub use contracts::outcome::ChangeOutcome;
pub use contracts::survey::Estimate;
pub use data::best_effort::BestEffort;
pub use data::elastic::{Adaptation, Cause, Elastic, IMPORTANCE_DEFAULT, IMPORTANCE_MAX};
pub use data::grant::{Grant, GrantedHop, ProcessorUse};
pub use data::ids::{HOPS_MAX, NAME_BYTES_MAX};
pub use data::opposite::OppositeStream;
pub use data::output::{ControlOutput, UnreadEntry};
pub use data::refusal::{Offer, Refusal, RefusalReason};
pub use data::scaled::FormBudget;
pub use data::spec::{
    BEST_EFFORT_WAIT_MAX, HOST_LINK, HopInfo, IDLE_MIN, PublisherSpec, SubscriptionSpec,
};
pub use data::trial::TrafficTrial;
pub use data::warning::Warning;
pub use membership::access::TOKENS_MAX;
#[doc(hidden)]
pub use membership::message::rewrite_message;
pub use membership::message::{ANSWER_BYTES_MAX, QUESTION_BYTES_MAX, TOKEN_BYTES_MAX};
pub use membership::nodes::NodeView;
pub use membership::registry::{
    NEIGHBOURS_MAX, NODES_MAX, PUBLISHERS_MAX, REFUSALS_MAX, SUBSCRIPTIONS_MAX,
};
pub use membership::ways::{WayChange, Ways};
pub use paths::StreamPath;

use crate::budget::RepairShare;
use crate::carrier::Carrier;
use crate::classes::ClassTree;
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use crate::wire::WireError;
use bytes::Bytes;
use contracts::Contracts;
use contracts::admission::Admission;
use contracts::booking::Label;
use contracts::streams::Streams;
use membership::Membership;
use membership::graph::Tree;
use membership::registry::{Change, EntryKey};
pub use paceline_admit::cpu::{
    BestEffortRegulator, CpuBudget, CpuCost, CpuPoint, CpuTable, CpuTableError, ProcessorShare,
};
use paceline_admit::reserve::NodeIndex;
use paceline_sched::{Instant, Policy};
use routing::Routing;
use std::collections::VecDeque;
use std::sync::Arc;

/// The largest number of recomputation rounds per poll; the next poll continues with the rest.
const ROUNDS_MAX: u32 = 8;

/// The control part of one node.
#[derive(Debug)]
pub struct Control {
    me: NodeId,
    /// The latest time passed to any input. Time never runs backward.
    now: Instant,
    membership: Membership,
    routing: Routing,
    contracts: Contracts,
    streams: Streams,
    next_publisher: u32,
    next_subscription: u32,
    rejected: u64,
    /// The number of refused records and of outbid versions.
    contradictions: u64,
    /// True if the streams may differ from those that the registry implies.
    dirty: bool,
    /// True if the registry changed after the last computation of the streams.
    news: bool,
    outputs: VecDeque<ControlOutput>,
    /// Messages are queued separately, so that local changes of a batch are output first.
    sends: VecDeque<(NodeId, Bytes)>,
}

/// Returns the longest prefix of `name` that fits into [`NAME_BYTES_MAX`].
fn cut(name: &str) -> String {
    let mut end = name.len().min(NAME_BYTES_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.get(..end).unwrap_or_default().to_owned()
}

impl Control {
    /// Creates the control part of node `me`, without neighbours. A `name` over [`NAME_BYTES_MAX`] is
    /// truncated.
    #[must_use]
    pub fn new(me: NodeId, name: &str) -> Self {
        Self {
            me,
            now: Instant::ZERO,
            membership: Membership::new(me, cut(name)),
            routing: Routing::default(),
            contracts: Contracts::new(me),
            streams: Streams::default(),
            next_publisher: 0,
            next_subscription: 0,
            rejected: 0,
            contradictions: 0,
            dirty: false,
            news: false,
            outputs: VecDeque::new(),
            sends: VecDeque::new(),
        }
    }

    /// Returns this node's id.
    #[must_use]
    pub const fn me(&self) -> NodeId {
        self.me
    }

    /// Returns the number of messages and requests that were malformed or exceeded a bound.
    #[must_use]
    pub const fn rejected(&self) -> u64 {
        self.rejected
    }

    /// Returns the number of records from neighbours without a path to their node, and of versions of this
    /// node's own record that it has not announced. Each was refused, or this node announced its record anew.
    ///
    /// A few arise while the topology changes; many are forged.
    #[must_use]
    pub const fn contradictions(&self) -> u64 {
        self.contradictions
    }

    /// Sets a link's scheduling discipline and carrier, which admission tests depend on. Defaults to VDS and
    /// an ordered carrier.
    pub fn set_link(&mut self, link: &str, policy: Policy, carrier: Carrier) {
        self.contracts.admission.links.set_discipline(&cut(link), policy, carrier);
        self.follow_links();
    }

    /// Sets whether the capacity of a link is measured: then a train of probes may precede any sample on it, for up to 20 ms.
    pub fn set_measured(&mut self, link: &str, measured: bool) {
        self.contracts.admission.links.set_measured(&cut(link), measured);
        self.follow_links();
    }

    /// Sets the share of a link that admission reserves for repairs on a carrier that may lose frames. Contracts that no longer fit
    /// end or are reduced, the least important first.
    pub fn set_repairs(&mut self, link: &str, share: RepairShare) {
        self.contracts.admission.links.set_repairs(&cut(link), share);
        self.follow_links();
    }

    /// Sets the classes of a link; `None` removes them. A contract is tested against the guarantee of its
    /// class. Contracts that no longer fit end with the reason.
    pub fn set_classes(&mut self, link: &str, classes: Option<Arc<ClassTree>>) {
        self.contracts.admission.links.set_classes(&cut(link), classes);
        self.follow_links();
    }

    /// Sets the queue space of a link for contracts, in bytes on the wire. Defaults to [`BUFFER_DEFAULT`].
    /// Contracts that no longer fit end with the reason.
    pub fn set_buffer(&mut self, link: &str, bytes: u64) {
        self.contracts.admission.links.set_buffer(&cut(link), bytes);
        self.follow_links();
    }

    /// Returns the buffer of a link for contracts; `None` for an unknown link or one without a capacity.
    #[must_use]
    pub fn buffer_use(&self, link: &str) -> Option<BufferUse> {
        self.contracts.admission.links.buffer(&self.contracts.admission.reservations, &cut(link))
    }

    /// Sets the queue space of this node for contracts, on all its links and for its subscribers together, in bytes on
    /// the wire. Defaults to [`HOST_BUFFER_DEFAULT`]. Contracts that no longer fit end with the reason.
    pub fn set_host_buffer(&mut self, bytes: u64) {
        self.contracts.admission.links.host_buffer = Some(bytes);
        self.follow_links();
    }

    /// Sets the largest memory of the records of all other nodes, in bytes. Defaults to 32 MiB, which neighbours
    /// share. Call this before the first message.
    pub const fn set_records_max(&mut self, bytes: usize) {
        self.membership.registry.set_bytes_max(bytes);
    }

    /// Returns the memory of the records of all other nodes, in bytes.
    #[must_use]
    pub const fn records_bytes(&self) -> usize {
        self.membership.registry.bytes()
    }

    /// Returns the buffer of this node, and the part that is reserved for contracts.
    #[must_use]
    pub fn host_buffer_use(&self) -> BufferUse {
        let most = self.contracts.admission.links.host_buffer();
        BufferUse { held: self.contracts.admission.reservations.host_buffer_held(), most }
    }

    /// Returns the guaranteed and the reserved rate of each class of a link; empty for a link without classes.
    #[must_use]
    pub fn class_uses(&self, link: &str) -> Vec<ClassUse> {
        self.contracts
            .admission
            .links
            .class_uses(&self.contracts.admission.reservations, &cut(link))
    }

    /// Sets the processor cost of samples on this host and the processor time for the samples of all links together. From then
    /// on, each contract is charged, and best effort gets the [rest](Self::best_effort_time). By default the processor is not
    /// charged. Call it before this node has streams: those that it has already are not charged.
    pub fn set_processor(&mut self, budget: CpuBudget) {
        self.contracts.admission.links.set_processor(budget);
        self.follow_links();
    }

    /// Returns the regulator of the processor time that contracts leave to best effort. Its rate follows the reservations of
    /// this node. `None` if the cost of samples was never measured.
    #[must_use]
    pub const fn best_effort_time(&self) -> Option<&Arc<BestEffortRegulator>> {
        self.contracts.admission.links.best_effort.as_ref()
    }

    /// Adds a neighbour, or updates its hop.
    pub fn handle_hop_up(&mut self, now: Instant, node: NodeId, hop: HopInfo) {
        self.advance(now);
        self.membership.access.handle_hop_up(node);
        let leaf = self.membership.access.is_leaf(&self.membership.registry, node);
        let hop = HopInfo { link_name: cut(&hop.link_name), leaf, ..hop };
        let before = self.membership.hops.get(&node);
        let fresh = before.is_none();
        if node == self.me || fresh && self.membership.hops.len() >= NEIGHBOURS_MAX {
            self.rejected += 1;
            return;
        }
        if before != Some(&hop) {
            self.membership.hops.insert(node, hop.clone());
            // A new neighbour requests the whole record after the digest.
            self.announce(Change::HopUp(node, hop), fresh.then_some(node));
            self.follow_links();
        }
        self.greet(node);
    }

    /// Removes an unreachable neighbour and drops the messages queued for it.
    pub fn handle_hop_down(&mut self, now: Instant, node: NodeId) {
        self.advance(now);
        if self.membership.hops.remove(&node).is_some() {
            self.sends.retain(|(hop, _)| *hop != node);
            self.membership.flood.handle_hop_down(node);
            self.membership.access.handle_hop_down(node);
            self.announce(Change::Remove(EntryKey::Neighbour(node)), None);
            self.contracts.admission.reservations.lose_neighbour(self.now, NodeIndex(node.0));
            self.follow_links();
        }
    }

    /// Handles a message of a neighbour. Messages of other nodes are ignored, except a digest and the
    /// messages right after it. These are buffered until [`Self::handle_hop_up`], because a hop may come up
    /// first at the other end.
    ///
    /// # Errors
    /// Returns [`WireError`] if the message is malformed or exceeds a bound. The message then changes nothing
    /// except the count of [`Self::rejected`].
    pub fn handle_message(
        &mut self,
        now: Instant,
        from: NodeId,
        message: Bytes,
    ) -> Result<(), WireError> {
        self.advance(now);
        if !self.membership.hops.contains_key(&from) {
            self.membership.flood.keep_early(from, message);
            return Ok(());
        }
        let result = self.receive(from, message);
        self.rejected += u64::from(result.is_err());
        result
    }

    /// Call this when the instant returned by [`Self::poll_timeout`] has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        self.send_due_digests();
        if self.membership.registry.forget_at() <= self.now {
            let tree = Tree::new(&self.membership.registry, self.me);
            self.membership.registry.mark(self.now, |node| tree.reaches(node));
            self.membership.registry.forget(self.now);
            self.membership.reach.topology_changed();
        }
        if self.contracts.admission.reservations_at() <= self.now {
            self.contracts.admission.reservations.tick(self.now);
            self.follow_reservations();
        }
        self.end_surveys();
        self.restore_steps();
        let due = self
            .contracts
            .admission
            .wake_at()
            .min(self.contracts.lingering.wake_at())
            .min(self.contracts.elastic.relief_at())
            .min(self.contracts.media.wake_at())
            .min(self.membership.access.wake_at());
        self.dirty |= due <= self.now;
    }

    /// Adds a publisher on this node and returns its id. Beyond [`PUBLISHERS_MAX`] publishers, or if the declarations of
    /// this node no longer fit into a message, there is no such publisher and it is counted in [`Self::rejected`].
    pub fn publish(&mut self, now: Instant, spec: PublisherSpec) -> PublisherId {
        self.advance(now);
        let index = self.next_publisher;
        self.next_publisher += 1;
        self.announce(Change::Publish(index, Arc::new(spec)), None);
        PublisherId { node: self.me, index }
    }

    /// Changes the declaration of a publisher of this node. Does nothing if the publisher is unknown.
    pub fn update_publisher(&mut self, now: Instant, id: PublisherId, spec: PublisherSpec) {
        self.advance(now);
        let record = self.membership.registry.record(self.me);
        let before = record.and_then(|record| record.publishers.get(&id));
        if before.is_some_and(|before| **before != spec) {
            self.announce(Change::Publish(id.index, Arc::new(spec)), None);
        }
    }

    /// Returns the declaration of a publisher of any known node.
    #[must_use]
    pub fn publisher(&self, id: PublisherId) -> Option<&PublisherSpec> {
        self.membership.registry.record(id.node)?.publishers.get(&id).map(AsRef::as_ref)
    }

    /// Removes a publisher of this node.
    pub fn unpublish(&mut self, now: Instant, id: PublisherId) {
        self.advance(now);
        let record = self.membership.registry.record(self.me);
        if record.is_some_and(|record| record.publishers.contains_key(&id)) {
            self.announce(Change::Remove(EntryKey::Publisher(id.index)), None);
        }
    }

    /// Adds a subscription on this node and returns its id. Beyond [`SUBSCRIPTIONS_MAX`] subscriptions, or if the
    /// declarations of this node no longer fit into a message, there is no such subscription and it is counted in
    /// [`Self::rejected`].
    pub fn subscribe(&mut self, now: Instant, spec: SubscriptionSpec) -> SubscriptionId {
        self.advance(now);
        let index = self.next_subscription;
        self.next_subscription += 1;
        self.announce(Change::Subscribe(index, spec), None);
        SubscriptionId { node: self.me, index }
    }

    /// Returns true if a publisher of this node matches a subscription of this node.
    #[must_use]
    pub fn hears_here(&self, id: SubscriptionId) -> bool {
        let Some(mine) = self.membership.registry.record(self.me) else { return false };
        let asked = mine.subscriptions.get(&id);
        asked.is_some_and(|it| mine.publishers.values().any(|of| it.pattern.matches(&of.tag)))
    }

    /// Returns true if a subscription of this node matches a publisher of this node.
    #[must_use]
    pub fn is_wanted_here(&self, id: PublisherId) -> bool {
        let Some(mine) = self.membership.registry.record(self.me) else { return false };
        let spec = mine.publishers.get(&id);
        spec.is_some_and(|of| mine.subscriptions.values().any(|it| it.pattern.matches(&of.tag)))
    }

    /// Returns true until each known subscription that matches this publisher of this node is either carried
    /// or refused. Returns false after [`Self::poll_output`] has returned `None`, unless a contract request
    /// on a path is still unanswered.
    #[must_use]
    pub fn is_opening(&self, id: PublisherId) -> bool {
        self.dirty || self.streams.awaited.contains(&id)
    }

    /// Changes a subscription of this node like [`Self::change_subscription`], but without an answer. Does
    /// nothing if the subscription is unknown.
    pub fn update_subscription(
        &mut self,
        now: Instant,
        id: SubscriptionId,
        spec: SubscriptionSpec,
    ) {
        self.advance(now);
        if id.node == self.me {
            self.change(id, spec);
        }
    }

    /// Removes a subscription of this node.
    pub fn unsubscribe(&mut self, now: Instant, id: SubscriptionId) {
        self.advance(now);
        let record = self.membership.registry.record(self.me);
        if record.is_some_and(|record| record.subscriptions.contains_key(&id)) {
            self.forget_changes(id);
            self.announce(Change::Remove(EntryKey::Subscription(id.index)), None);
        }
    }

    /// Returns the next output. Call this until it returns `None` after each batch of inputs.
    pub fn poll_output(&mut self) -> Option<ControlOutput> {
        // One round of decisions may require another, but never many.
        for _ in 0..ROUNDS_MAX {
            if self.dirty {
                self.recompute();
            }
        }
        self.outputs.pop_front().or_else(|| {
            self.sends.pop_front().map(|(hop, message)| ControlOutput::Send { hop, message })
        })
    }

    /// Returns the instant at which to call [`Self::handle_timeout`]; [`Instant::FAR`] if never.
    #[must_use]
    pub fn poll_timeout(&self) -> Instant {
        let own = self.membership.flood.digest_at().min(self.membership.registry.forget_at());
        let promises =
            self.contracts.admission.wake_at().min(self.contracts.admission.reservations_at());
        let others = self.contracts.surveys.wake_at().min(self.contracts.lingering.wake_at());
        let elastic = self.contracts.elastic.wake_at().min(self.contracts.media.wake_at());
        own.min(promises).min(others).min(elastic).min(self.membership.access.wake_at())
    }

    /// Applies a change of links or neighbours to the reservations.
    fn follow_links(&mut self) {
        let Admission { links, reservations, .. } = &mut self.contracts.admission;
        let publisher = |label: &[u8]| Some(Label::read(label).ok()?.pair.1);
        let view = (self.me, &self.membership.registry);
        links.follow(self.now, reservations, view, &self.membership.hops, publisher);
        self.dirty = true;
        self.follow_reservations();
    }

    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }
}

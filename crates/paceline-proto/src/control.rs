//! `Control`: who publishes and who wants what on all nodes, and the streams of this one.
//!
//! One value per node, owned by one thread. It is told what happens (`handle_*`, `publish`,
//! `subscribe`, …), always with `now`, and answers by [`Control::poll_output`] until that gives
//! `None`, and by [`Control::poll_timeout`]. Streams are computed when outputs are polled, so inputs
//! that come together cost one computation.
//!
//! The registry is a link-state database: each node originates one record of itself; each change
//! raises its version by one and is flooded as a delta; who finds a gap asks for the whole record;
//! who meets compares versions (digests). From equal registries all nodes compute equal
//! paths, so nothing is negotiated: each node installs its part of every stream by itself.

mod admission;
mod ask;
mod booking;
mod change;
mod codec;
mod contract;
mod excess;
mod flood;
mod grant;
mod graph;
mod linger;
mod links;
mod message;
mod offer;
mod outcome;
mod output;
mod path;
mod recompute;
mod refusal;
mod registry;
mod reserve;
mod routes;
mod spec;
mod split;
mod survey;
mod tolerance;
mod unpromised;
mod untold;
mod ways;

pub use ask::Topic;
pub use change::ChangeAnswer;
pub(crate) use contract::{counted, uncounted};
pub use excess::StreamExcess;
pub use grant::{Grant, GrantedHop, ProcessorUse};
pub use graph::HOPS_MAX;
#[doc(hidden)]
pub use message::rewrite_message;
pub use message::{ANSWER_BYTES_MAX, QUESTION_BYTES_MAX};
pub use outcome::ChangeOutcome;
pub use output::Output;
pub use refusal::{Offer, Refusal, RefusalReason};
pub use registry::{
    NAME_BYTES_MAX, NEIGHBOURS_MAX, NODES_MAX, PUBLISHERS_MAX, REFUSALS_MAX, SUBSCRIPTIONS_MAX,
};
pub use spec::{
    BEST_EFFORT_WAIT_MAX, Demand, HopInfo, OutputPlan, PublisherSpec, SourceKey, SubscriptionSpec,
    Target,
};
pub use unpromised::Unpromised;
pub use ways::{WayChange, Ways};

use crate::ids::{NodeId, PublisherId, SubscriptionId};
use crate::link::{Carrier, StreamNames};
use crate::tag::Tag;
use crate::wire::WireError;
use admission::Admission;
use bytes::Bytes;
use graph::Tree;
pub use paceline_admit::cpu::{CpuBudget, CpuCost, CpuPoint, CpuTable, CpuTableError};
use paceline_admit::reserve::Node;
use paceline_sched::{Instant, Policy};
use registry::{Change, PairKey, Registry};
use routes::Installed;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// How many rounds of decisions one change may take at once; what is left is for the next input.
const ROUNDS_MAX: u32 = 8;

/// What the registry knows of a node.
#[derive(Clone, Copy, Debug)]
pub struct NodeView<'a> {
    /// The node.
    pub id: NodeId,
    /// Its name, a label only: two nodes may have the same.
    pub name: &'a str,
    /// How often its record has changed.
    pub version: u64,
    /// Its publishers.
    pub publishers: &'a BTreeMap<PublisherId, Arc<PublisherSpec>>,
    /// Its subscriptions.
    pub subscriptions: &'a BTreeMap<SubscriptionId, SubscriptionSpec>,
    /// Its neighbours, and its way to each.
    pub neighbours: &'a BTreeMap<NodeId, HopInfo>,
    /// What it refuses.
    pub refusals: &'a BTreeMap<(SubscriptionId, PublisherId), Refusal>,
}

/// The control part of one node.
#[derive(Debug)]
pub struct Control {
    me: NodeId,
    /// The latest instant that an input came with: time never runs backward.
    now: Instant,
    registry: Registry,
    hops: BTreeMap<NodeId, HopInfo>,
    flood: flood::State,
    admission: Admission,
    questions: ask::State,
    surveys: survey::State,
    lingering: linger::Lingering,
    changes: change::State,
    next_publisher: u32,
    next_subscription: u32,
    rejected: u64,
    /// True if the streams may no longer follow from the registry.
    dirty: bool,
    /// The registry has changed since the streams were computed.
    news: bool,
    installed: BTreeMap<SourceKey, Installed>,
    matching: BTreeSet<PublisherId>,
    /// The publishers of this node that subscriptions wait for whose paths have not answered yet.
    awaited: BTreeSet<PublisherId>,
    heard: BTreeMap<SubscriptionId, Vec<PublisherId>>,
    /// The refusals of local subscriptions and publishers that were told.
    refused: BTreeMap<PairKey, Refusal>,
    /// The grants of local subscriptions and publishers that were told.
    granted: BTreeMap<PairKey, Grant>,
    /// What local subscriptions were told that they hear without a promise.
    unpromised: BTreeMap<PairKey, Unpromised>,
    outputs: VecDeque<Output>,
    /// Messages wait apart, so that what a change installs here comes first.
    sends: VecDeque<(NodeId, Bytes)>,
}

/// The longest start of `name` that fits into [`NAME_BYTES_MAX`].
fn cut(name: &str) -> String {
    let mut end = name.len().min(NAME_BYTES_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.get(..end).unwrap_or_default().to_owned()
}

impl Control {
    /// The control part of node `me`, which no other node is joined to yet. A `name` over
    /// [`NAME_BYTES_MAX`] is cut.
    #[must_use]
    pub fn new(me: NodeId, name: &str) -> Self {
        Self {
            me,
            now: Instant::ZERO,
            registry: Registry::new(me, cut(name)),
            hops: BTreeMap::new(),
            flood: flood::State::default(),
            admission: Admission::new(me),
            questions: ask::State::default(),
            surveys: survey::State::default(),
            lingering: linger::Lingering::default(),
            changes: change::State::default(),
            next_publisher: 0,
            next_subscription: 0,
            rejected: 0,
            dirty: false,
            news: false,
            installed: BTreeMap::new(),
            matching: BTreeSet::new(),
            awaited: BTreeSet::new(),
            heard: BTreeMap::new(),
            refused: BTreeMap::new(),
            granted: BTreeMap::new(),
            unpromised: BTreeMap::new(),
            outputs: VecDeque::new(),
            sends: VecDeque::new(),
        }
    }

    /// This node.
    #[must_use]
    pub const fn me(&self) -> NodeId {
        self.me
    }

    /// How many messages and requests were not understood or went over a bound.
    #[must_use]
    pub const fn rejected(&self) -> u64 {
        self.rejected
    }

    /// Which discipline schedules a link of this node, and what carries its frames: what may be promised on it
    /// is tested accordingly. VDS, and in order, if it was not said.
    pub fn set_link(&mut self, link: &str, policy: Policy, carrier: Carrier) {
        self.admission.links.tell(&cut(link), policy, carrier);
        self.follow_links();
    }

    /// What samples cost this host, and what of its processors promises may use on all links together: from
    /// now on each is charged. Nothing is, if it was not said.
    pub fn set_processor(&mut self, budget: CpuBudget) {
        self.admission.links.processor = Some(budget);
        self.follow_links();
    }

    /// The nodes that can be reached, this one included, in the order of their ids.
    pub fn nodes(&self) -> impl Iterator<Item = NodeView<'_>> + '_ {
        let tree = Tree::new(&self.registry, self.me);
        self.registry.all().filter(move |&(node, _)| tree.reaches(node)).map(|(id, record)| {
            NodeView {
                id,
                name: &record.name,
                version: record.version,
                publishers: &record.publishers,
                subscriptions: &record.subscriptions,
                neighbours: &record.neighbours,
                refusals: &record.refusals,
            }
        })
    }

    /// What people call a node, if it is known.
    #[must_use]
    pub fn name(&self, node: NodeId) -> Option<&str> {
        self.registry.record(node).map(|record| record.name.as_str())
    }

    /// What the class of a stream is chosen by: its publisher and the hop that it goes to.
    #[must_use]
    pub fn stream_names(&self, publisher: NodeId, hop: NodeId, tag: &Tag) -> StreamNames {
        let name = |node| self.name(node).unwrap_or_default().to_owned();
        StreamNames { peer: name(hop), node: name(publisher), tag: Some(tag.clone()) }
    }

    /// A neighbour can be reached, or the way to it has changed.
    pub fn handle_hop_up(&mut self, now: Instant, node: NodeId, hop: HopInfo) {
        self.advance(now);
        let hop = HopInfo { link_name: cut(&hop.link_name), ..hop };
        let before = self.hops.get(&node);
        let fresh = before.is_none();
        if node == self.me || fresh && self.hops.len() >= NEIGHBOURS_MAX {
            self.rejected += 1;
            return;
        }
        if before != Some(&hop) {
            self.hops.insert(node, hop.clone());
            // A new neighbour gets the whole record when its digest shows what it lacks.
            self.announce(Change::HopUp(node, hop), fresh.then_some(node));
            self.follow_links();
        }
        self.greet(node);
    }

    /// A neighbour can't be reached any more. What was not sent to it yet is dropped.
    pub fn handle_hop_down(&mut self, now: Instant, node: NodeId) {
        self.advance(now);
        if self.hops.remove(&node).is_some() {
            self.sends.retain(|(hop, _)| *hop != node);
            self.flood.handle_hop_down(node);
            self.announce(Change::HopDown(node), None);
            self.admission.reservations.lose_neighbour(self.now, Node(node.0));
            self.follow_links();
        }
    }

    /// A message of a neighbour. One of anybody else is ignored, but for a greeting and what follows it at once,
    /// which are kept until [`Self::handle_hop_up`]: a hop may be up at its other end first.
    ///
    /// # Errors
    /// [`WireError`] if it is malformed or goes over a bound: nothing has changed then, and it was
    /// counted in [`Self::rejected`].
    pub fn handle_message(
        &mut self,
        now: Instant,
        from: NodeId,
        message: Bytes,
    ) -> Result<(), WireError> {
        self.advance(now);
        if !self.hops.contains_key(&from) {
            self.flood.keep_early(from, message);
            return Ok(());
        }
        let result = self.receive(from, message);
        self.rejected += u64::from(result.is_err());
        result
    }

    /// It is [`Self::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        self.send_due_digests();
        if self.registry.forget_at() <= self.now {
            let tree = Tree::new(&self.registry, self.me);
            self.registry.mark(self.now, &tree);
            self.registry.forget(self.now);
        }
        if self.admission.reservations_at() <= self.now {
            self.admission.reservations.tick(self.now);
            self.follow_reservations();
        }
        self.end_surveys();
        let due = self.admission.wake_at().min(self.lingering.wake_at());
        self.dirty |= due <= self.now;
    }

    /// A publisher on this node. The answer names it; over [`PUBLISHERS_MAX`] it is known to nobody
    /// and counted in [`Self::rejected`].
    pub fn publish(&mut self, now: Instant, spec: PublisherSpec) -> PublisherId {
        self.advance(now);
        let index = self.next_publisher;
        self.next_publisher += 1;
        self.announce(Change::Publish(index, Arc::new(spec)), None);
        PublisherId { node: self.me, index }
    }

    /// A publisher of this node declares something else. An unknown one is left alone.
    pub fn update_publisher(&mut self, now: Instant, id: PublisherId, spec: PublisherSpec) {
        self.advance(now);
        let record = self.registry.record(self.me);
        let before = record.and_then(|record| record.publishers.get(&id));
        if before.is_some_and(|before| **before != spec) {
            self.announce(Change::Publish(id.index, Arc::new(spec)), None);
        }
    }

    /// A publisher of this node is gone.
    pub fn unpublish(&mut self, now: Instant, id: PublisherId) {
        self.advance(now);
        let record = self.registry.record(self.me);
        if record.is_some_and(|record| record.publishers.contains_key(&id)) {
            self.announce(Change::Unpublish(id.index), None);
        }
    }

    /// A subscription on this node. The answer names it; over [`SUBSCRIPTIONS_MAX`] it is known to
    /// nobody and counted in [`Self::rejected`].
    pub fn subscribe(&mut self, now: Instant, spec: SubscriptionSpec) -> SubscriptionId {
        self.advance(now);
        let index = self.next_subscription;
        self.next_subscription += 1;
        self.announce(Change::Subscribe(index, spec), None);
        SubscriptionId { node: self.me, index }
    }

    /// True if a publisher of this node matches a subscription of this node.
    #[must_use]
    pub fn hears_here(&self, id: SubscriptionId) -> bool {
        let Some(mine) = self.registry.record(self.me) else { return false };
        let asked = mine.subscriptions.get(&id);
        asked.is_some_and(|it| mine.publishers.values().any(|of| it.pattern.matches(&of.tag)))
    }

    /// True if a subscription of this node matches a publisher of this node.
    #[must_use]
    pub fn is_wanted_here(&self, id: PublisherId) -> bool {
        let Some(mine) = self.registry.record(self.me) else { return false };
        let spec = mine.publishers.get(&id);
        spec.is_some_and(|of| mine.subscriptions.values().any(|it| it.pattern.matches(&of.tag)))
    }

    /// True until each subscription that is known here and matches this publisher of this node is either carried or
    /// refused. False once [`Self::poll_output`] has returned `None`, unless a path that was asked for a contract has
    /// not answered yet.
    #[must_use]
    pub fn is_opening(&self, id: PublisherId) -> bool {
        self.dirty || self.awaited.contains(&id)
    }

    /// A subscription of this node asks for something else: [`Self::change_subscription`] without an answer. An unknown one
    /// is left alone.
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

    /// A subscription of this node is gone.
    pub fn unsubscribe(&mut self, now: Instant, id: SubscriptionId) {
        self.advance(now);
        let record = self.registry.record(self.me);
        if record.is_some_and(|record| record.subscriptions.contains_key(&id)) {
            self.forget_changes(id);
            self.announce(Change::Unsubscribe(id.index), None);
        }
    }

    /// The next thing to do. To be called until `None` after each batch of inputs.
    pub fn poll_output(&mut self) -> Option<Output> {
        // What follows from one round of decisions may ask for another one, never for many.
        for _ in 0..ROUNDS_MAX {
            if self.dirty {
                self.recompute();
            }
        }
        self.outputs
            .pop_front()
            .or_else(|| self.sends.pop_front().map(|(hop, message)| Output::Send { hop, message }))
    }

    /// When [`Self::handle_timeout`] is to be called; [`Instant::FAR`] for never.
    #[must_use]
    pub fn poll_timeout(&self) -> Instant {
        let own = self.flood.digest_at().min(self.registry.forget_at());
        let promises = self.admission.wake_at().min(self.admission.reservations_at());
        own.min(promises).min(self.surveys.wake_at()).min(self.lingering.wake_at())
    }

    /// Links or neighbours have changed: what they have promised follows.
    fn follow_links(&mut self) {
        let Admission { links, reservations, .. } = &mut self.admission;
        links.follow(self.now, reservations, &self.hops);
        self.dirty = true;
        self.follow_reservations();
    }

    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }
}

//! A whole node as one value, without threads.
//!
//! [`Node`] connects control, the installer, links, arriving streams, deliveries and publishers, and calls them in the thread
//! of its owner. A live node has the same parts on threads of their own, with rings between them.

mod account;
mod capacity;
mod execute;
mod inline;
mod link;
mod lookup;
mod neighbour;
mod outlets;
mod output;
mod port;
mod queue;
mod report;
mod scaler;
mod source;
mod subscription;
#[cfg(test)]
mod tests;
mod turn;

pub use account::{ArrivalAccount, NodeAccounts, SubscriptionAccount};
pub use inline::{InlineScaler, InlineScalers};
pub use link::NodeLink;
pub use output::{ClosedStream, NodeOutput, WakeReason, Wakeup};
pub use queue::{STREAM_QUEUE_MAX, StreamQueue};
pub use scaler::ScaleJob;
pub use source::NewSample;

use crate::arrive::{ArrivedItem, ArrivingStreams, HopTiming, Outputs as _};
use crate::deliver::{Delivery, DeliveryTiming, TakenSample};
use crate::install::{Installer, ScalerId};
use bytes::Bytes;
use lookup::Lookup;
use neighbour::{Neighbour, Neighbours};
use outlets::{Ends, Outlets};
use paceline_proto::control::{Control, PublisherSpec, SubscriptionSpec, Ways};
use paceline_proto::guard::{Flood, Hearing};
use paceline_proto::link::LinkSpec;
use paceline_proto::memory::{Charge, MemoryKind};
use paceline_proto::plan::SourceKey;
use paceline_proto::reason::{DropReason, Drops};
use paceline_proto::receive::Received;
use paceline_proto::wire::frame::FrameBuf;
use paceline_proto::{NodeId, PublisherId, RawSample, SubscriptionId};
use paceline_sched::Instant;
use port::NodePort;
use scaler::SharedScalers;
use source::{Source, UseReports};
use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use subscription::Subscriptions;

/// A node without threads, sockets and clocks: time is an argument, and frames are bytes.
///
/// The owner passes inputs (`handle_…`), takes frames and notifications ([`Self::poll_output`]) and samples
/// ([`Self::poll_readable`], [`Self::read`]) until none is left, and does it again at [`Self::poll_timeout`] or with the next
/// input. `now` never decreases. All of it is deterministic: equal inputs give equal outputs.
///
/// It has no opening, linger, latch or pull buffers: samples that are published before a subscription is known count as
/// [`DropReason::NoRoute`].
///
/// # Examples
/// Two nodes in virtual time. One subscribes, and a sample of the other arrives:
///
/// ```
/// use paceline_node::{NewSample, Node, NodeOutput};
/// use paceline_proto::control::{PublisherSpec, SubscriptionSpec};
/// use paceline_proto::link::LinkSpec;
/// use paceline_proto::{NodeId, Pattern, SubscriptionId, Tag};
/// use paceline_sched::{Duration, Instant};
///
/// /// Passes frames without delay until `end`. Returns the payloads that the subscriptions of node 1 have received.
/// fn run(nodes: &mut [Node; 2], now: &mut Instant, end: Instant) -> Vec<Vec<u8>> {
///     let mut received = Vec::new();
///     while *now <= end {
///         let mut frames = Vec::new();
///         for (index, node) in nodes.iter_mut().enumerate() {
///             while let Some(output) = node.poll_output(*now) {
///                 if let NodeOutput::Frame { link, frame, .. } = output {
///                     frames.push((1 - index, link, frame, node.id()));
///                 }
///             }
///             while let Some(subscription) = node.poll_readable() {
///                 let samples = std::iter::from_fn(|| node.read(*now, subscription));
///                 received.extend(samples.map(|taken| taken.sample.payload.to_vec()));
///             }
///         }
///         for (to, link, frame, from) in frames {
///             nodes[to].handle_frame(*now, link, from, frame);
///         }
///         *now = (*now).max(nodes.iter().map(|node| node.poll_timeout().at).min().unwrap());
///     }
///     received
/// }
///
/// let mut now = Instant::from_millis(1_000);
/// let mut nodes = [Node::new(NodeId(1), "robot"), Node::new(NodeId(2), "operator")];
/// for (node, neighbour) in nodes.iter_mut().zip([NodeId(2), NodeId(1)]) {
///     let link = node.add_link("cable", LinkSpec::default());
///     node.handle_neighbour(now, link, neighbour);
/// }
/// let pose = nodes[0].publish(now, PublisherSpec::new(Tag::new("robot/pose").unwrap()));
/// let spec = SubscriptionSpec::all_of(Pattern::new("robot/*").unwrap());
/// nodes[1].subscribe(now, spec, 16);
/// let started = now + Duration::from_secs(1);
/// run(&mut nodes, &mut now, started);
///
/// nodes[0].handle_put(now, pose, NewSample::data("x=1"));
/// let end = now + Duration::from_millis(10);
/// assert_eq!(run(&mut nodes, &mut now, end), [b"x=1"]);
/// ```
#[derive(Debug)]
pub struct Node {
    control: Control,
    links: Vec<NodeLink>,
    /// By link.
    neighbours: Vec<Neighbours>,
    /// The link in use for each neighbour.
    ways: Ways,
    /// The publishers of the node, until their last output is closed.
    sources: Lookup<PublisherId, Source>,
    /// The outputs of all sources.
    installer: Installer,
    /// The streams that arrive here.
    arrivals: ArrivingStreams<NodePort>,
    subscriptions: Subscriptions,
    scalers: SharedScalers,
    inline: Option<InlineScalers>,
    used: UseReports,
    outputs: VecDeque<NodeOutput>,
    /// Samples that found no output here.
    unrouted: Drops,
    malformed: u64,
    accounts: Option<Box<NodeAccounts>>,
    /// There was input since the last iteration.
    touched: bool,
    /// The rounds of the current iteration.
    rounds: Option<u32>,
    /// The iteration has ended since the last call.
    has_ended: bool,
    /// The next iteration without input.
    wake: Wakeup,
    frame: FrameBuf,
    /// A reusable buffer for the items of a frame.
    batch: Vec<Received>,
}

impl Node {
    /// Returns a node without links. No other node of the network has the same id.
    #[must_use]
    pub fn new(id: NodeId, name: &str) -> Self {
        Self {
            control: Control::new(id, name),
            links: Vec::new(),
            neighbours: Vec::new(),
            ways: Ways::default(),
            sources: Lookup::default(),
            installer: Installer::default(),
            arrivals: ArrivingStreams::default(),
            subscriptions: Subscriptions::default(),
            scalers: SharedScalers::default(),
            inline: None,
            used: UseReports::default(),
            outputs: VecDeque::new(),
            unrouted: Drops::default(),
            malformed: 0,
            accounts: None,
            touched: true,
            rounds: None,
            has_ended: false,
            wake: Wakeup::IDLE,
            frame: FrameBuf::default(),
            batch: Vec::new(),
        }
    }

    /// Adds a link and returns its index.
    pub fn add_link(&mut self, name: &str, spec: LinkSpec) -> usize {
        self.control.set_link(name, spec.policy, spec.carrier);
        self.control.set_classes(name, spec.classes.clone());
        self.links.push(NodeLink::new(name.to_owned(), spec));
        self.neighbours.push(Neighbours::default());
        self.touched = true;
        self.links.len() - 1
    }

    /// Begins a link without neighbours anew: it greets the next one at once, however often it has greeted before, and measures
    /// its capacity from the beginning.
    pub fn renew_link(&mut self, link: usize) {
        if let Some(end) = self.links.get_mut(link) {
            end.renew();
            self.touched = true;
        }
    }

    /// Forgets a neighbour at once, as if its hop had been silent for too long.
    pub fn remove_neighbour(&mut self, now: Instant, link: usize, node: NodeId) {
        let Some(end) = self.links.get_mut(link) else { return };
        end.link.remove_hop(node);
        end.touched = true;
        self.touched = true;
        if let Some(neighbours) = self.neighbours.get_mut(link) {
            neighbours.part(|known| end.link.epoch(known) == 0);
        }
        self.handle_link_events(now, link);
    }

    /// Collects [`Self::accounts`] and the accounts of subscriptions that are added from now on. For tests, because they
    /// grow without a limit.
    pub fn keep_accounts(&mut self) {
        self.accounts.get_or_insert_default();
    }

    /// Sets the function that makes scalers within the call. Other outputs that scale produce [`ScaleJob`]s.
    pub const fn set_inline_scalers(&mut self, make: InlineScalers) {
        self.inline = Some(make);
    }

    /// Sets whether the node notes every 250 ms which of its publishers are in use, and whether frames need stamps. Defaults to
    /// true. Without it, contracts with an idle time end, and subscriptions with an age limit get no commands; a network that
    /// has neither saves the wake-ups.
    pub fn set_reports(&mut self, reports: bool) {
        self.used.set(reports);
        self.touched = true;
    }

    /// Returns the id.
    #[must_use]
    pub const fn id(&self) -> NodeId {
        self.control.me()
    }

    /// Returns control: the network as this node knows it, contracts and refusals.
    #[must_use]
    pub const fn control(&self) -> &Control {
        &self.control
    }

    /// Returns control, for questions, rights and limits. The next [`Self::poll_output`] executes its outputs.
    pub const fn control_mut(&mut self) -> &mut Control {
        self.touched = true;
        &mut self.control
    }

    /// Returns the links in the order of their indexes.
    #[must_use]
    pub fn links(&self) -> &[NodeLink] {
        &self.links
    }

    /// Returns the number of a publisher's samples, and of those reported as lost, that wait for the outputs of their stream.
    #[must_use]
    pub fn waiting(&self, publisher: PublisherId) -> u64 {
        self.arrivals.waiting(publisher)
    }

    /// Returns the number of malformed frames that neighbours have sent.
    #[must_use]
    pub const fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Returns the samples that found no output on this node.
    #[must_use]
    pub const fn unrouted(&self) -> Drops {
        self.unrouted
    }

    /// Returns the accounts; `None` without [`Self::keep_accounts`].
    #[must_use]
    pub fn accounts(&self) -> Option<&NodeAccounts> {
        self.accounts.as_deref()
    }

    /// Returns the account of a subscription; `None` without [`Self::keep_accounts`].
    #[must_use]
    pub fn account(&self, subscription: SubscriptionId) -> Option<&SubscriptionAccount> {
        self.subscriptions.get(subscription)?.account.as_deref()
    }

    /// Adds a publisher.
    pub fn publish(&mut self, now: Instant, spec: impl Into<Arc<PublisherSpec>>) -> PublisherId {
        let spec: Arc<PublisherSpec> = spec.into();
        let id = self.control.publish(now, PublisherSpec::clone(&spec));
        self.sources.insert(id, Source::new(spec));
        self.touched = true;
        id
    }

    /// Returns the declaration of a publisher of this node; `None` after it was withdrawn.
    #[must_use]
    pub fn publisher(&self, id: PublisherId) -> Option<&Arc<PublisherSpec>> {
        let source = self.sources.get(&id)?;
        source.stamper.is_some().then_some(&source.publisher)
    }

    /// Changes the declaration of a publisher of this node, whose tag and kind stay the same.
    pub fn update_publisher(&mut self, now: Instant, id: PublisherId, spec: PublisherSpec) {
        if let Some(source) = self.sources.get_mut(&id) {
            source.publisher = Arc::new(spec.clone());
        }
        self.control.update_publisher(now, id, spec);
        self.touched = true;
    }

    /// Withdraws a publisher. Samples that wait are still sent.
    pub fn unpublish(&mut self, now: Instant, id: PublisherId) {
        if let Some(source) = self.sources.get_mut(&id) {
            source.stamper = None;
        }
        self.control.unpublish(now, id);
        self.touched = true;
    }

    /// Adds a subscription with a queue of at most so many samples and 128 MiB.
    pub fn subscribe(
        &mut self,
        now: Instant,
        spec: SubscriptionSpec,
        samples: usize,
    ) -> SubscriptionId {
        let delivery = Delivery::queued(&spec, samples);
        let id = self.control.subscribe(now, spec);
        self.subscriptions.add(id, delivery, self.accounts.is_some());
        self.touched = true;
        id
    }

    /// Like [`Self::subscribe`], with delivery by time. Without a clock of known error, times are those of the publisher.
    pub fn subscribe_timed(
        &mut self,
        now: Instant,
        spec: SubscriptionSpec,
        (samples, timing): (usize, DeliveryTiming),
    ) -> SubscriptionId {
        let id = self.subscribe(now, spec, samples);
        if let Some(end) = self.subscriptions.get_mut(id) {
            end.delivery.set_timing(timing);
            self.subscriptions.timed.insert(id);
        }
        id
    }

    /// Ends a subscription. Its samples stay readable until [`Self::remove`].
    pub fn unsubscribe(&mut self, now: Instant, id: SubscriptionId) {
        self.control.unsubscribe(now, id);
        self.touched = true;
    }

    /// Ends a subscription and returns its end: the samples that wait, and the counters. Returns `None` if there is no such
    /// subscription.
    pub fn remove(&mut self, now: Instant, id: SubscriptionId) -> Option<Delivery> {
        let end = self.subscriptions.remove(id)?;
        self.unsubscribe(now, id);
        Some(end.delivery)
    }

    /// Returns the subscriptions that were not [removed](Self::remove).
    pub fn subscriptions(&self) -> impl Iterator<Item = SubscriptionId> + '_ {
        self.subscriptions.ids()
    }

    /// Returns the end of a subscription: its counters and its queue.
    #[must_use]
    pub fn delivery(&self, id: SubscriptionId) -> Option<&Delivery> {
        Some(&self.subscriptions.get(id)?.delivery)
    }

    /// Adds a neighbour that a link has found. Returns false if it is known already, or if the link has 1,280 neighbours.
    pub fn handle_neighbour(&mut self, now: Instant, link: usize, node: NodeId) -> bool {
        let Some(end) = self.links.get_mut(link) else { return false };
        let neighbours = self.neighbours.get_mut(link);
        if !neighbours.is_some_and(|neighbours| neighbours.join(node)) {
            return false;
        }
        // The epoch grows with the clock, so it exceeds any earlier one on this hop.
        let tenths = now.as_nanos() / 100_000_000 + 1;
        end.link.add_hop(now, node, u32::try_from(tenths).unwrap_or(u32::MAX));
        end.touched = true;
        self.touched = true;
        true
    }

    /// Handles a frame of a neighbour. Returns true if the neighbour was unknown: it is [added](Self::handle_neighbour), and
    /// the frame is ignored.
    pub fn handle_frame(&mut self, now: Instant, link: usize, from: NodeId, frame: Bytes) -> bool {
        self.touched = true;
        let Some(end) = self.links.get_mut(link) else { return false };
        let neighbour = self.neighbours.get_mut(link).and_then(|all| all.get_mut(from));
        let Some(Neighbour { reader, guard }) = neighbour else {
            return self.handle_neighbour(now, link, from);
        };
        let mut batch = mem::take(&mut self.batch);
        let half_round_trip = end.link.half_round_trip(from).unwrap_or_default();
        let hop = HopTiming { epoch: end.link.epoch(from), half_round_trip };
        let read = reader.handle_frame(now, hop, frame, guard, &mut batch);
        self.malformed += u64::from(read.error.is_some());
        let muted = read.muted.into_iter().map(|flood| NodeOutput::Muted { link, from, flood });
        self.outputs.extend(muted);
        // The messages before the header: those of a hop that the header adds wait in control as early ones. The shell, where both
        // pass through queues, handles the hop first.
        self.hand_over_all(now, (link, from), batch);
        if let (Some(heard), Some(end)) = (read.heard, self.links.get_mut(link)) {
            end.touched = true;
            end.link.handle_heard(now, from, &heard);
        }
        false
    }

    fn neighbour_mut(&mut self, link: usize, node: NodeId) -> Option<&mut Neighbour> {
        self.neighbours.get_mut(link)?.get_mut(node)
    }

    /// Handles the items of a neighbour, and keeps their empty buffer.
    fn hand_over_all(&mut self, now: Instant, from: (usize, NodeId), mut items: Vec<Received>) {
        for item in items.drain(..) {
            self.hand_over(now, from, item);
        }
        self.batch = items;
    }

    fn hand_over(&mut self, now: Instant, (link, from): (usize, NodeId), item: Received) {
        let (source, item) = match item {
            // Control itself counts malformed messages.
            Received::Control(message) => {
                let _ = self.control.handle_message(now, from, message);
                return;
            }
            Received::Sample { publisher, form, sample } => {
                (SourceKey { publisher, form }, ArrivedItem::Sample(sample))
            }
            Received::Lost { publisher, form, lost } => {
                (SourceKey { publisher, form }, ArrivedItem::Lost(lost))
            }
        };
        if let Some(accounts) = &mut self.accounts {
            match &item {
                ArrivedItem::Sample(_) => accounts.note_sample(from, source),
                ArrivedItem::Lost(lost) => {
                    accounts.note_lost(from, source, (lost.reason, lost.samples));
                }
            }
        }
        let bytes = if let ArrivedItem::Sample(sample) = &item { sample.payload.len() } else { 0 };
        let Self { neighbours, arrivals, links, subscriptions, unrouted, scalers, .. } = self;
        let waits = || {
            let neighbour = neighbours.get_mut(link).and_then(|all| all.get_mut(from))?;
            let hearing = neighbour.guard.take(Flood::Unasked, now, bytes);
            (hearing == Hearing::Heard).then(|| Charge::uncounted(MemoryKind::Samples))
        };
        let accounts = self.accounts.as_deref_mut();
        let ends = Ends { now, links, subscriptions, unrouted, accounts };
        let mut outlets = Outlets { ends, scalers };
        arrivals.handle_item(now, (from, source), item, waits, &mut outlets);
    }

    /// Returns the arriving streams, and all possible targets of their outputs.
    fn arrivals(&mut self, now: Instant) -> (&mut ArrivingStreams<NodePort>, Outlets<'_>) {
        let Self { links, subscriptions, unrouted, scalers, arrivals, .. } = self;
        let accounts = self.accounts.as_deref_mut();
        let ends = Ends { now, links, subscriptions, unrouted, accounts };
        (arrivals, Outlets { ends, scalers })
    }

    /// Publishes a sample of a publisher of this node. Returns its sequence number; `None` if there is no such publisher.
    pub fn handle_put(
        &mut self,
        now: Instant,
        publisher: PublisherId,
        sample: NewSample,
    ) -> Option<u64> {
        let source = self.sources.get_mut(&publisher)?;
        let encoding = source.encoding();
        let NewSample { captured, kind, payload, age, doubt } = sample;
        let mut sample = source.stamper.as_mut()?.stamp(now, captured, kind, encoding, payload);
        sample.published_at = Instant::from_nanos(now.as_nanos().saturating_sub(age.as_nanos()));
        sample.doubt = doubt;
        let seq = sample.seq;
        self.touched = true;
        self.used.note(publisher);
        let Self { links, subscriptions, unrouted, scalers, .. } = self;
        let accounts = self.accounts.as_deref_mut();
        let ends = Ends { now, links, subscriptions, unrouted, accounts };
        let mut outlets = Outlets { ends, scalers };
        if source.ingress.outputs().is_empty() {
            outlets.count_unrouted(publisher, DropReason::NoRoute, 1);
        } else {
            outlets.offer(now, &mut source.ingress, sample);
        }
        Some(seq)
    }

    /// Returns the next sample to scale, of outputs with a contract first. The caller limits the number of jobs at a time, and
    /// passes each result to [`Self::handle_scaled`].
    pub fn poll_scale(&mut self) -> Option<ScaleJob> {
        self.scalers.next()
    }

    /// Returns true if the result of a [`ScaleJob`] is still wanted.
    #[must_use]
    pub fn is_scaling(&self, scaler: ScalerId) -> bool {
        self.scalers.is_busy(scaler)
    }

    /// Delivers the result of a [`ScaleJob`]: the scaled sample, or the reason for its drop.
    pub fn handle_scaled(
        &mut self,
        now: Instant,
        scaler: ScalerId,
        result: Result<RawSample, DropReason>,
    ) {
        self.touched = true;
        self.arrivals(now).1.finish(scaler, result);
    }

    /// Does the work that is due at `now`, and returns the next output. Call it until it returns `None`.
    pub fn poll_output(&mut self, now: Instant) -> Option<NodeOutput> {
        loop {
            if let Some(output) = self.outputs.pop_front() {
                return Some(output);
            }
            match self.rounds {
                Some(_) => self.run_round(now),
                None if mem::take(&mut self.has_ended) || self.poll_timeout().at > now => {
                    return None;
                }
                None => self.begin_turn(now),
            }
        }
    }

    /// Returns the time at which [`Self::poll_output`] has work without further input, and the reason. It may be `now` again
    /// after [`Self::poll_output`] has returned `None`.
    #[must_use]
    pub const fn poll_timeout(&self) -> Wakeup {
        if self.touched { Wakeup::INPUT } else { self.wake }
    }

    /// Returns a subscription that has received samples since it was returned last. [`Self::read`] returns them.
    pub fn poll_readable(&mut self) -> Option<SubscriptionId> {
        self.subscriptions.poll_readable()
    }

    /// Returns the next sample of a subscription that can be decoded and may act, or a safe action that is due. A sample is
    /// late if its age at this call exceeds the delay bound.
    pub fn read(&mut self, now: Instant, subscription: SubscriptionId) -> Option<TakenSample> {
        self.subscriptions.get_mut(subscription)?.delivery.read(now)
    }
}

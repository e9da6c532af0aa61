//! The receiving side of a node.
//!
//! Frames arrive on the transport's threads. Their samples are delivered to outputs, control
//! messages to the engine, and acknowledgements to the egress threads.

mod change;
mod hop;
mod inputs;
mod meet;
mod memory;
mod proven;
mod sources;

use super::clock;
use super::command::Commands;
use super::depth::HostDepth;
use super::drops::AtomicDrops;
use super::epochs::Epochs;
use super::guards::Guards;
use super::lock;
use super::mailbox::Mailbox;
use super::realtime::Role;
use super::transport::Inbound;
use super::vitals::Vitals;
use super::wake::{Waker, exact_timers};
use crate::status::MutedStatus;
use bytes::Bytes;
pub(crate) use change::RxChange;
use crossbeam_queue::ArrayQueue;
pub(crate) use hop::HopShared;
pub(crate) use inputs::NeighbourInput;
use inputs::NeighbourInputs;
use memory::Holders;
use paceline_node::arrive::{ArrivedItem, FrameReader, HopTiming};
use paceline_proto::NodeId;
use paceline_proto::guard::{Flood, Guard};
use paceline_proto::memory::{Charge, Memory, MemoryKind, MemoryShare};
use paceline_proto::plan::SourceKey;
use paceline_proto::receive::{Heard, Received};
use paceline_sched::{Duration, Instant};
use proven::Proven;
use sources::Sources;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The longest sleep of the repair thread, so that it notices the end of its link.
const REPAIRER_SLEEPS_MAX: Duration = Duration::from_millis(250);

/// The limit of neighbours on a link: all connections, and some for nodes that are being removed.
pub(crate) const HOPS_MAX: usize = 1_280;

struct Neighbour {
    node: NodeId,
    /// The index of its link.
    link: usize,
    shared: Arc<HopShared>,
    /// The memory that it uses.
    share: MemoryShare,
    state: Mutex<Arriving>,
    /// The traffic limits. They survive reconnections of the hop.
    guard: Arc<Mutex<Guard>>,
}

impl Neighbour {
    /// Charges the neighbour; returns false if it is muted.
    fn hears(&self, flood: Flood, now: Instant, bytes: usize) -> bool {
        Guards::hears(&self.guard, (self.link, self.node), flood, now, bytes)
    }

    /// Returns the memory of a sample that waits for its subscription, unless the neighbour sends too many.
    fn waits(&self, now: Instant, bytes: usize) -> Option<Charge> {
        self.hears(Flood::Unasked, now, bytes)
            .then(|| self.share.charge(MemoryKind::Samples, bytes))
    }
}

/// The receive state of one neighbour.
#[derive(Default)]
struct Arriving {
    reader: FrameReader,
    /// Received items to deliver. Those of a neighbour that has left wait for a thread that may block.
    batch: Vec<Received>,
    /// The epochs of the last header that was passed to the egress thread.
    passed: (u32, u32),
}

/// The limit of former neighbours whose streams are kept.
const PARTED_MAX: usize = 64;

/// The outputs of arriving streams, shared by all links of a node.
///
/// A single lock, taken once per frame and rarely contended. It makes the receiving threads a
/// single producer, as the rings behind it require.
#[derive(Default)]
pub(crate) struct RxSources {
    /// The memory for the input of all neighbours.
    pub(crate) memory: Memory,
    holders: Holders,
    pub(crate) changes: Mailbox<RxChange>,
    /// A thread will apply the posted changes.
    settles: AtomicBool,
    /// The messages and changes of neighbours for the engine.
    pub(crate) inputs: NeighbourInputs,
    sources: Mutex<Sources>,
    /// Samples that arrived without an output.
    pub(crate) drops: AtomicDrops,
    /// The contracted samples that wait on this node.
    pub(crate) depth: Arc<HostDepth>,
    /// The network has a subscription with an age limit, so frames carry stamps.
    pub(crate) proves: AtomicBool,
    proven: Proven,
}

impl RxSources {
    pub(crate) fn new(memory: Memory) -> Self {
        Self { memory, ..Self::default() }
    }

    /// Applies posted changes, because the next frame may take long to arrive. Returns false if a
    /// frame is being delivered.
    ///
    /// Never blocks: a subscriber's callback may wait for the engine. Early samples are therefore
    /// delivered on a separate thread.
    pub(crate) fn try_settle(self: &Arc<Self>, now: Instant) -> bool {
        match self.sources.try_lock() {
            Ok(sources) if !sources.is_settled() => {
                drop(sources);
                self.settles.swap(true, Ordering::AcqRel) || self.settle_aside()
            }
            Ok(mut sources) => {
                sources.settle(now, &self.changes, &self.drops);
                true
            }
            Err(_) => false,
        }
    }

    /// Applies posted changes on another thread. Returns false if there is none.
    fn settle_aside(self: &Arc<Self>) -> bool {
        let it = self.clone();
        let settle = move || {
            let mut sources = lock(&it.sources);
            // Changes that are posted from here on start another thread, or are found by this one.
            it.settles.store(false, Ordering::Release);
            sources.settle(clock::now(), &it.changes, &it.drops);
        };
        let named = std::thread::Builder::new().name("paceline-early".to_owned());
        let starts = named.spawn(settle).is_ok();
        if !starts {
            self.settles.store(false, Ordering::Release);
        }
        starts
    }

    /// Counts early samples and loss reports that have waited too long, because the next frame may
    /// never arrive. Never blocks: a frame that is being delivered does the same.
    pub(crate) fn expire(&self, now: Instant) {
        if let Ok(mut sources) = self.sources.try_lock() {
            sources.expire(now, &self.drops);
        }
    }

    /// Delivers received samples. `waits` decides, by the payload bytes, whether an unrequested
    /// sample may be buffered, and charges its memory.
    fn hand_over(
        &self,
        now: Instant,
        from: NodeId,
        received: impl Iterator<Item = Received>,
        waits: impl Fn(usize) -> Option<Charge>,
    ) {
        let mut guard = lock(&self.sources);
        guard.settle(now, &self.changes, &self.drops);
        for item in received {
            let (key, bytes, item) = match item {
                Received::Sample { publisher, form, sample } => {
                    let bytes = sample.payload.len();
                    (SourceKey { publisher, form }, bytes, ArrivedItem::Sample(sample))
                }
                Received::Lost { publisher, form, lost } => {
                    (SourceKey { publisher, form }, 0, ArrivedItem::Lost(lost))
                }
                Received::Control(_) => continue,
            };
            guard.take(now, (from, key), item, || waits(bytes), &self.drops);
        }
    }
}

/// The receiving side of one link.
pub(crate) struct LinkRx {
    link: usize,
    /// True if each neighbour on the link proves its id by a certificate.
    proves: bool,
    neighbours: RwLock<BTreeMap<NodeId, Arc<Neighbour>>>,
    /// Former neighbours. If one returns, its streams continue.
    parted: Mutex<VecDeque<(NodeId, Arc<Neighbour>)>>,
    sources: Arc<RxSources>,
    /// Header contents for the egress thread.
    pub(crate) heard: ArrayQueue<(NodeId, Heard)>,
    /// New neighbours, for the egress thread.
    pub(crate) joined: ArrayQueue<NodeId>,
    epochs: Epochs,
    vitals: Arc<Vitals>,
    waker: Arc<Waker>,
    commands: Commands,
    guards: Guards,
    /// Frames that could not be decoded.
    pub(crate) malformed: AtomicU64,
    /// Nodes that were refused as neighbours.
    refused: AtomicU64,
    /// The waker of the repair thread.
    repairer: Waker,
    /// True if there is one.
    repairs: AtomicBool,
    /// True if items of neighbours that have left wait.
    reports: AtomicBool,
}

impl LinkRx {
    /// Returns the contracted samples that wait on the node.
    pub(crate) fn depth(&self) -> Arc<HostDepth> {
        self.sources.depth.clone()
    }

    pub(crate) fn new(
        (link, proves): (usize, bool),
        sources: Arc<RxSources>,
        waker: Arc<Waker>,
        commands: Commands,
        vitals: Arc<Vitals>,
    ) -> Self {
        Self {
            link,
            proves,
            neighbours: RwLock::default(),
            parted: Mutex::default(),
            sources,
            heard: ArrayQueue::new(1_024),
            joined: ArrayQueue::new(2 * HOPS_MAX),
            epochs: Epochs::new(clock::now()),
            vitals,
            waker,
            commands,
            guards: Guards::default(),
            malformed: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            repairer: Waker::default(),
            repairs: AtomicBool::new(false),
            reports: AtomicBool::new(false),
        }
    }

    /// Returns true if frames carry stamps.
    pub(crate) fn proves_ages(&self) -> bool {
        self.sources.proves.load(Ordering::Relaxed)
    }

    /// Returns the index of the link in its node.
    pub(crate) const fn link(&self) -> usize {
        self.link
    }

    /// Starts the repair thread, which delivers samples that have waited long enough for a lost
    /// one. It ends with the link.
    pub(crate) fn start_repairs(self: &Arc<Self>, link: &str) -> std::io::Result<()> {
        let weak = Arc::downgrade(self);
        self.repairs.store(true, Ordering::Relaxed);
        let name = format!("paceline-{link}-repair");
        let (vitals, pulse) = (self.vitals.clone(), self.vitals.pulse(&name));
        let named = std::thread::Builder::new().name(name.clone());
        named.spawn(move || {
            exact_timers();
            vitals.enter(Role::Link);
            if let Some(it) = weak.upgrade() {
                it.repairer.adopt();
            }
            let turn = || {
                let Some(it) = weak.upgrade() else { return false };
                let now = clock::now();
                pulse.begin(now);
                let until = it.hand_over_held(now).min(now + REPAIRER_SLEEPS_MAX);
                pulse.rest(until);
                it.repairer.sleep(now, until, || {
                    it.next_held() < until || it.reports.load(Ordering::Acquire)
                });
                true
            };
            vitals.guard(&name, || while turn() {});
        })?;
        Ok(())
    }

    /// Returns the time of the next delivery of waiting samples.
    fn next_held(&self) -> Instant {
        let all = self.neighbours.read().unwrap_or_else(PoisonError::into_inner);
        let next =
            all.values().map(|neighbour| lock(&neighbour.state).reader.receiver().poll_timeout());
        next.min().unwrap_or(Instant::FAR)
    }

    fn hand_over_held(&self, now: Instant) -> Instant {
        self.reports.store(false, Ordering::Release);
        let mut all: Vec<_> = {
            let all = self.neighbours.read().unwrap_or_else(PoisonError::into_inner);
            all.iter().map(|(node, neighbour)| (*node, neighbour.clone())).collect()
        };
        all.extend(lock(&self.parted).iter().cloned());
        for (node, neighbour) in all {
            let mut guard = lock(&neighbour.state);
            let Arriving { reader, batch, .. } = &mut *guard;
            let receiver = reader.receiver_mut();
            if batch.is_empty() && receiver.poll_timeout() > now {
                continue;
            }
            receiver.handle_timeout(now, |item| batch.push(item));
            let waits = |bytes| neighbour.waits(now, bytes);
            self.sources.hand_over(now, node, batch.drain(..), waits);
        }
        self.next_held()
    }

    /// Returns the shared state of a hop, if that node is a neighbour.
    pub(crate) fn hop(&self, node: NodeId) -> Option<Arc<HopShared>> {
        self.neighbour(node).map(|neighbour| neighbour.shared.clone())
    }

    /// Removes a hop, and frees its unfinished samples. Its streams are kept for a while, so that lost samples are counted
    /// if it returns.
    pub(crate) fn remove_hop(self: &Arc<Self>, node: NodeId) {
        let mut neighbours = self.neighbours.write().unwrap_or_else(PoisonError::into_inner);
        let Some(neighbour) = neighbours.remove(&node) else { return };
        let last = neighbour.shared.epoch.load(Ordering::Acquire);
        self.epochs.handle_removed(clock::now(), last);
        let mut state = lock(&neighbour.state);
        let Arriving { reader, batch, .. } = &mut *state;
        if reader.receiver().is_unused() {
            return;
        }
        reader.receiver_mut().part(|item| batch.push(item));
        let reports = !batch.is_empty();
        drop(state);
        let mut parted = lock(&self.parted);
        parted.push_back((node, neighbour));
        if parted.len() > PARTED_MAX {
            parted.pop_front();
        }
        drop(parted);
        if reports {
            self.report_left();
        }
    }

    /// Delivers the last items of neighbours that have left, on a thread that may block.
    fn report_left(self: &Arc<Self>) {
        if self.reports.swap(true, Ordering::AcqRel) {
            return;
        }
        if self.repairs.load(Ordering::Relaxed) {
            self.repairer.wake();
            return;
        }
        let it = self.clone();
        let named = std::thread::Builder::new().name("paceline-left".to_owned());
        if let Err(error) = named.spawn(move || it.hand_over_held(clock::now())) {
            crate::warn_limited!("cannot start a thread to count lost samples: {error}");
        }
    }

    /// Returns the neighbours that are or were muted.
    pub(crate) fn muted(&self) -> Vec<MutedStatus> {
        self.guards.muted(clock::now())
    }

    fn neighbour(&self, node: NodeId) -> Option<Arc<Neighbour>> {
        self.neighbours.read().unwrap_or_else(PoisonError::into_inner).get(&node).cloned()
    }

    /// Queues a control message for the engine. Without memory for it, it is dropped like one without a place in the queue.
    fn queue_message(&self, neighbour: &Neighbour, message: &[u8]) {
        let from = neighbour.node;
        let bytes = message.len() + size_of::<(NodeId, NeighbourInput)>();
        if !neighbour.share.fits(bytes) {
            crate::warn_limited!(
                "a control message of neighbour {from} was dropped: too many wait for the engine"
            );
            return;
        }
        let charge = neighbour.share.charge(MemoryKind::Pinned, bytes);
        // A copy: a slice would keep its whole frame, which nobody has counted.
        let message = Bytes::copy_from_slice(message);
        self.give_engine(from, NeighbourInput::Message(message, charge));
    }

    /// Passes an input of a neighbour to the engine, behind the earlier ones of this neighbour.
    pub(crate) fn give_engine(&self, from: NodeId, input: NeighbourInput) {
        if self.sources.inputs.push(from, input) {
            self.commands.wake();
        }
    }

    fn reject(&self, from: NodeId, what: &paceline_proto::wire::WireError) {
        self.malformed.fetch_add(1, Ordering::Relaxed);
        crate::warn_limited!("invalid frame from {from}: {what}");
    }
}

impl Inbound for LinkRx {
    fn enter(&self) {
        self.vitals.enter(Role::Link);
    }

    fn frames(&self, from: NodeId, frames: &mut dyn Iterator<Item = Bytes>) {
        if self.is_claimed(from) {
            return;
        }
        let mut urgent = false;
        // The transport's threads end silently on a panic.
        self.vitals.guard("receiving", || {
            frames.for_each(|frame| urgent |= self.handle_frame(from, frame));
        });
        if urgent {
            self.waker.wake();
        }
    }

    fn found(&self, node: NodeId) {
        if self.is_claimed(node) {
            return;
        }
        if self.neighbour(node).is_none() {
            self.join(node);
            self.waker.wake();
        }
    }
}

impl LinkRx {
    /// Returns true if a node that has proven its id on another link is only claimed on this one.
    fn is_claimed(&self, node: NodeId) -> bool {
        if self.proves {
            return false;
        }
        let claimed = self.sources.proven.contains(node);
        if claimed {
            crate::warn_limited!(
                "link {}: a peer claims to be node {node}, which proves its identity on another \
                 link; its frames are dropped",
                self.link
            );
        }
        claimed
    }

    /// Handles a frame. Returns true if the egress thread should be woken for it.
    fn handle_frame(&self, from: NodeId, frame: Bytes) -> bool {
        let Some(neighbour) = self.neighbour(from).or_else(|| self.join(from)) else {
            return false;
        };
        let now = clock::now();
        let urgent = self.read_frame(now, &neighbour, frame);
        // Its state is unlocked: the samples of another neighbour may have to make room.
        self.sources.make_room(now, &neighbour);
        urgent
    }

    fn read_frame(&self, now: Instant, neighbour: &Neighbour, frame: Bytes) -> bool {
        let from = neighbour.node;
        let mut state = lock(&neighbour.state);
        let Arriving { reader, batch, passed } = &mut *state;
        let half_round_trip = neighbour.shared.half_round_trip.load(Ordering::Relaxed);
        let hop = HopTiming {
            epoch: neighbour.shared.epoch.load(Ordering::Acquire),
            half_round_trip: Duration::from_nanos(half_round_trip),
        };
        let read = reader.handle_frame(now, hop, frame, &mut lock(&neighbour.guard), batch);
        for flood in &read.muted {
            Guards::warn((neighbour.link, from), *flood);
        }
        if let Some(error) = &read.error {
            self.reject(from, error);
        }
        for item in batch.iter() {
            if let Received::Control(message) = item {
                self.queue_message(neighbour, message);
            }
        }
        if batch.iter().any(|item| !matches!(item, Received::Control(_))) {
            let waits = |bytes| neighbour.waits(now, bytes);
            self.sources.hand_over(now, from, batch.drain(..), waits);
        }
        batch.clear();
        self.repairer.wake_by(reader.receiver().poll_timeout());
        // Wake the egress thread only for urgent content. Later headers repeat the rest.
        let Some(heard) = read.heard else { return false };
        let epochs = (heard.epoch, heard.known);
        let urgent = heard.ack_now || heard.ack.is_some() || epochs != *passed;
        // If the queue is full the content is lost, and the peer repeats its request.
        if urgent && self.heard.push((from, heard)).is_ok() {
            *passed = epochs;
        }
        urgent
    }
}

//! The receiving side of a node: frames come in on the transport's threads and leave as samples for
//! outputs, control messages for the engine, and acknowledgements for the egress threads.

mod early;
mod meet;

use super::clock;
use super::engine::{Command, Commands};
use super::guards::Guards;
use super::lock;
use super::mailbox::Mailbox;
use super::port::Port;
use super::sink::AtomicDrops;
use super::source::Installation;
use super::strangers::{Stranger, Strangers};
use super::transport::Inbound;
use super::vitals::Vitals;
use super::wake::{Waker, exact_timers};
use crate::status::MutedStatus;
use bytes::Bytes;
use crossbeam_queue::ArrayQueue;
use early::{Early, EarlySamples, Item};
use paceline_proto::NodeId;
use paceline_proto::control::SourceKey;
use paceline_proto::guard::{Flood, Guard};
use paceline_proto::ingress::Ingress;
use paceline_proto::receive::{Heard, Received, Receiver};
use paceline_sched::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// How long the thread that waits for what was lost sleeps at most: it ends with its link.
const MENDER_SLEEPS_MAX: Duration = Duration::from_millis(250);

/// Neighbours that a link takes at most.
pub(crate) const HOPS_MAX: usize = 1_024;

/// What the egress thread and the receiving side of one hop tell each other.
#[derive(Debug, Default)]
pub(crate) struct HopShared {
    /// Our epoch on the hop; 0 while there is none.
    pub(crate) epoch: AtomicU32,
    /// Half the least round trip, in nanoseconds.
    pub(crate) half_round_trip: AtomicU64,
}

struct Neighbour {
    shared: Arc<HopShared>,
    state: Mutex<Arriving>,
    /// What it may send; the hop may go and come, its budgets stay.
    guard: Arc<Mutex<Guard>>,
}

/// What arrives from one neighbour.
#[derive(Default)]
struct Arriving {
    receiver: Receiver,
    batch: Vec<Received>,
    /// The epochs of the last header that the egress thread was told of.
    told: (u32, u32),
    /// It was muted for frames that are not understood, and may still be.
    unread: bool,
}

/// A change to what arriving streams are handed to.
pub(crate) struct RxChange {
    pub(crate) source: SourceKey,
    /// `None` if nobody wants the stream any more.
    pub(crate) installation: Option<Installation>,
}

/// An arriving stream.
struct Source {
    ingress: Ingress<Port>,
    /// The neighbour that its samples come from.
    via: Option<NodeId>,
}

impl Source {
    /// Samples come from `from` now. What was on its way by another neighbour may be missing between.
    fn come_by(&mut self, from: NodeId) {
        if self.via.replace(from).is_some_and(|before| before != from) {
            self.ingress.handle_lost(None);
        }
    }
}

#[derive(Default)]
struct Sources {
    seen: u64,
    sources: BTreeMap<SourceKey, Source>,
    early: EarlySamples,
}

impl Sources {
    /// Applies what the engine has posted; samples that came before it follow.
    fn settle(&mut self, now: Instant, changes: &Mailbox<RxChange>, drops: &AtomicDrops) {
        let Self { seen, sources, early } = self;
        changes.collect(seen, |change| match change.installation {
            Some(installation) => {
                let period = installation.period;
                let source = sources.entry(change.source);
                let new = || Source { ingress: Ingress::new(period), via: None };
                let ingress = &mut source.or_insert_with(new).ingress;
                installation.apply(ingress);
                early.take(change.source).for_each(|item| item.offer(ingress, now));
            }
            None => {
                sources.remove(&change.source);
            }
        });
        early.expire(now, drops);
    }
}

/// Neighbours that are gone and whose streams are kept.
const PARTED_MAX: usize = 64;

/// What arriving streams are handed to; one for all links of a node.
///
/// One lock, taken once a frame and hardly ever contended: it makes the node's receiving threads the
/// single producer that the rings behind it ask for.
#[derive(Default)]
pub(crate) struct RxSources {
    pub(crate) changes: Mailbox<RxChange>,
    sources: Mutex<Sources>,
    /// Samples that arrived and found nobody to go to.
    pub(crate) drops: AtomicDrops,
}

impl RxSources {
    /// Applies what was posted, since there may be no frame for long; false if a frame is being handed
    /// over just now. It never waits: a subscriber's callback may be waiting for the engine.
    ///
    /// Samples that came early are handed over by a thread of their own: they may end in a callback.
    pub(crate) fn try_settle(self: &Arc<Self>, now: Instant) -> bool {
        match self.sources.try_lock() {
            Ok(sources) if !sources.early.is_empty() => {
                drop(sources);
                let it = self.clone();
                let named = std::thread::Builder::new().name("paceline-early".to_owned());
                let settle = move || lock(&it.sources).settle(clock::now(), &it.changes, &it.drops);
                named.spawn(settle).is_ok()
            }
            Ok(mut sources) => {
                sources.settle(now, &self.changes, &self.drops);
                true
            }
            Err(_) => false,
        }
    }

    /// `waits` is asked of each sample that nobody asked for, with its bytes: false if it may not wait for that.
    fn hand_over(
        &self,
        now: Instant,
        from: NodeId,
        received: impl Iterator<Item = Received>,
        waits: impl Fn(usize) -> bool,
    ) {
        let mut guard = lock(&self.sources);
        guard.settle(now, &self.changes, &self.drops);
        let guard = &mut *guard;
        for item in received {
            let (key, bytes, item) = match item {
                Received::Sample { publisher, form, sample } => {
                    let bytes = sample.payload.len();
                    (SourceKey { publisher, form }, bytes, Item::Sample(sample))
                }
                Received::Lost { publisher, form, samples, reason, kind } => {
                    (SourceKey { publisher, form }, 0, Item::Lost(samples, reason, kind))
                }
                Received::Control(_) => continue,
            };
            match guard.sources.get_mut(&key) {
                Some(source) => {
                    if matches!(item, Item::Sample(_)) {
                        source.come_by(from);
                    }
                    item.offer(&mut source.ingress, now);
                }
                None if waits(bytes) => {
                    guard.early.push(Early { at: now, from, key, item }, &self.drops);
                }
                None => item.count(&self.drops),
            }
        }
    }
}

/// The receiving side of one link.
pub(crate) struct LinkRx {
    link: usize,
    neighbours: RwLock<BTreeMap<NodeId, Arc<Neighbour>>>,
    /// Neighbours that are gone, in case they return: their streams go on where they ended.
    parted: Mutex<VecDeque<(NodeId, Arc<Neighbour>)>>,
    sources: Arc<RxSources>,
    /// For the egress thread: what each frame's header said.
    pub(crate) heard: ArrayQueue<(NodeId, Heard)>,
    /// For the egress thread: who has become a neighbour.
    pub(crate) joined: ArrayQueue<NodeId>,
    /// Who is no neighbour yet.
    pub(crate) strangers: Strangers,
    vitals: Arc<Vitals>,
    waker: Arc<Waker>,
    commands: Commands,
    guards: Guards,
    /// Frames that were not understood.
    pub(crate) malformed: AtomicU64,
    /// Nodes that were not taken as neighbours.
    refused: AtomicU64,
    /// Wakes whoever hands over what has waited for what was lost.
    mender: Waker,
}

impl LinkRx {
    pub(crate) fn new(
        link: usize,
        sources: Arc<RxSources>,
        waker: Arc<Waker>,
        commands: Commands,
        vitals: Arc<Vitals>,
    ) -> Self {
        Self {
            link,
            neighbours: RwLock::default(),
            parted: Mutex::default(),
            sources,
            heard: ArrayQueue::new(1_024),
            joined: ArrayQueue::new(2 * HOPS_MAX),
            strangers: Strangers::new(clock::now()),
            vitals,
            waker,
            commands,
            guards: Guards::default(),
            malformed: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            mender: Waker::default(),
        }
    }

    /// The link's place among its node's.
    pub(crate) const fn link(&self) -> usize {
        self.link
    }

    /// Starts the thread that hands over what has waited long enough for what was lost before it. It ends
    /// with the link.
    pub(crate) fn start_mending(self: &Arc<Self>, link: &str) -> std::io::Result<()> {
        let weak = Arc::downgrade(self);
        let name = format!("paceline-{link}-mend");
        let (vitals, pulse) = (self.vitals.clone(), self.vitals.pulse(&name));
        let named = std::thread::Builder::new().name(name.clone());
        named.spawn(move || {
            exact_timers();
            if let Some(it) = weak.upgrade() {
                it.mender.adopt();
            }
            let turn = || {
                let Some(it) = weak.upgrade() else { return false };
                let now = clock::now();
                pulse.begin(now);
                let until = it.hand_over_held(now).min(now + MENDER_SLEEPS_MAX);
                pulse.rest(until);
                it.mender.sleep(now, until, || it.next_held() < until);
                true
            };
            vitals.guard(&name, || while turn() {});
        })?;
        Ok(())
    }

    /// When something that waits is to be handed over.
    fn next_held(&self) -> Instant {
        let all = self.neighbours.read().unwrap_or_else(PoisonError::into_inner);
        let next = all.values().map(|neighbour| lock(&neighbour.state).receiver.poll_timeout());
        next.min().unwrap_or(Instant::FAR)
    }

    fn hand_over_held(&self, now: Instant) -> Instant {
        let all: Vec<_> = {
            let all = self.neighbours.read().unwrap_or_else(PoisonError::into_inner);
            all.iter().map(|(node, neighbour)| (*node, neighbour.clone())).collect()
        };
        for (node, neighbour) in all {
            let mut guard = lock(&neighbour.state);
            let Arriving { receiver, batch, .. } = &mut *guard;
            if receiver.poll_timeout() > now {
                continue;
            }
            receiver.handle_timeout(now, |item| batch.push(item));
            let waits = |bytes| self.hears(&neighbour, node, Flood::Unasked, now, bytes);
            self.sources.hand_over(now, node, batch.drain(..), waits);
        }
        self.next_held()
    }

    /// What is shared about a hop, if that node is a neighbour.
    pub(crate) fn hop(&self, node: NodeId) -> Option<Arc<HopShared>> {
        self.neighbour(node).map(|neighbour| neighbour.shared.clone())
    }

    /// A hop is gone. Its streams are kept for a while, so that the samples lost with it are counted when it returns.
    pub(crate) fn remove_hop(&self, node: NodeId) {
        let mut neighbours = self.neighbours.write().unwrap_or_else(PoisonError::into_inner);
        let Some(neighbour) = neighbours.remove(&node) else { return };
        let last = neighbour.shared.epoch.load(Ordering::Acquire);
        self.strangers.handle_removed(clock::now(), last);
        if lock(&neighbour.state).receiver.is_unused() {
            return;
        }
        let mut parted = lock(&self.parted);
        parted.push_back((node, neighbour));
        if parted.len() > PARTED_MAX {
            parted.pop_front();
        }
    }

    /// The neighbours that were muted, now or before.
    pub(crate) fn muted(&self) -> Vec<MutedStatus> {
        self.guards.muted(clock::now())
    }

    fn neighbour(&self, node: NodeId) -> Option<Arc<Neighbour>> {
        self.neighbours.read().unwrap_or_else(PoisonError::into_inner).get(&node).cloned()
    }

    /// Charges a neighbour: false if it is muted.
    fn hears(
        &self,
        neighbour: &Neighbour,
        from: NodeId,
        flood: Flood,
        now: Instant,
        bytes: usize,
    ) -> bool {
        Guards::hears(&neighbour.guard, (self.link, from), flood, now, bytes)
    }

    fn reject(&self, from: NodeId, what: &paceline_proto::wire::WireError) {
        self.malformed.fetch_add(1, Ordering::Relaxed);
        crate::warn_limited!("frame from {from} not understood: {what}");
    }
}

impl Inbound for LinkRx {
    fn frame(&self, from: NodeId, frame: Bytes) {
        // On one of Zenoh's threads, whose end nobody would notice.
        self.vitals.guard("receiving", || self.handle_frame(from, frame));
    }

    fn found(&self, node: NodeId) {
        if self.neighbour(node).is_none() {
            self.greet(Stranger { node, epoch: 0 });
        }
    }
}

impl LinkRx {
    fn handle_frame(&self, from: NodeId, frame: Bytes) {
        let Some(neighbour) = self.neighbour(from).or_else(|| self.meet(from, &frame)) else {
            return;
        };
        let now = clock::now();
        let mut guard = lock(&neighbour.state);
        let Arriving { receiver, batch, told, unread } = &mut *guard;
        let (bytes, hears) =
            (frame.len(), |flood, bytes| self.hears(&neighbour, from, flood, now, bytes));
        if *unread {
            *unread = lock(&neighbour.guard).is_muted(Flood::Malformed, now);
            if *unread {
                hears(Flood::Malformed, bytes);
                return;
            }
        }
        let half = neighbour.shared.half_round_trip.load(Ordering::Relaxed);
        receiver.set_half_round_trip(Duration::from_nanos(half));
        let epoch = neighbour.shared.epoch.load(Ordering::Acquire);
        let unknown = receiver.unknown_stream();
        let heard = match receiver.handle_frame(now, epoch, frame, |item| batch.push(item)) {
            Ok(heard) => Some(heard),
            Err((heard, error)) => {
                self.reject(from, &error);
                *unread = !hears(Flood::Malformed, bytes);
                heard
            }
        };
        if receiver.unknown_stream() > unknown {
            hears(Flood::Unasked, bytes);
        }
        for item in batch.iter() {
            if let Received::Control(message) = item
                && hears(Flood::Control, message.len())
            {
                self.commands.offer(Command::Message { from, message: message.clone() });
            }
        }
        if batch.iter().any(|item| !matches!(item, Received::Control(_))) {
            let waits = |bytes| hears(Flood::Unasked, bytes);
            self.sources.hand_over(now, from, batch.drain(..), waits);
        }
        batch.clear();
        if receiver.poll_timeout() < Instant::FAR {
            self.mender.wake();
        }
        // The egress thread is woken for what it must act on; the rest is in the next of these.
        let Some(heard) = heard else { return };
        let epochs = (heard.epoch, heard.known);
        if heard.ack_now || heard.ack.is_some() || epochs != *told {
            // Lost when full: the other end asks again.
            if self.heard.push((from, heard)).is_ok() {
                *told = epochs;
            }
            self.waker.wake();
        }
    }
}

//! The streams that arrive at a node: who may send them, samples before their outputs exist, and the change from one form of
//! a stream to another.
//!
//! [`ArrivingStreams`] owns the streams and decides. The driver's ports, behind [`Outputs`], deliver and count.

mod early;
mod item;
mod reader;
mod stream;

#[cfg(test)]
mod tests;

pub use item::{ArrivedItem, Outputs};
pub use reader::{FrameReader, FrameResult, HopTiming};

use early::{EarlyItem, EarlyItems};
use paceline_proto::entry::{EntryLimit, EntryPolice};
use paceline_proto::ingress::{Ingress, OutputKey};
use paceline_proto::memory::Charge;
use paceline_proto::plan::SourceKey;
use paceline_proto::{Form, NodeId, PublisherId, RawSample};
use paceline_sched::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use stream::ArrivingStream;

/// The change of a stream that arrives, apart from its outputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrangement {
    /// The stream.
    pub key: SourceKey,
    /// The time of the change. It may be applied later, with the next samples.
    pub at: Instant,
    /// The declared period of the publisher.
    pub period: Option<Duration>,
    /// The neighbours from which its samples may arrive.
    pub from: Vec<NodeId>,
    /// The limits of its samples, by the rules of this node.
    pub entry: Vec<EntryLimit>,
    /// One of its outputs ends with the first sample of another form.
    pub is_replaced: bool,
}

/// The streams that arrive at a node, with their outputs. `P` is the port of an output.
///
/// - A sample is accepted only from the neighbours on the present paths of its stream, and for two seconds from those on
///   former paths. Others count as `no_route`. The last 16 neighbours on former paths may report losses at any time: after a
///   cut they do so only when their link returns.
/// - Samples and loss reports that arrive before the outputs of their stream wait for a second: the control messages that
///   install the outputs may be slower than the samples. At most 512 of them wait, and 64 MiB; if there is no room, the
///   neighbour with the most loses its oldest.
/// - If one form of a stream replaces another, the first sample of the new form ends the outputs of the old one, so that
///   each subscription gets each sample once.
///
/// # Examples
/// ```
/// use paceline_node::arrive::{Arrangement, ArrivedItem, ArrivingStreams, Outputs};
/// use paceline_proto::ingress::{Ingress, Output};
/// use paceline_proto::memory::{Charge, MemoryKind};
/// use paceline_proto::plan::{OutputPlan, SourceKey, Target};
/// use paceline_proto::{DropReason, Form, NodeId, PublisherId, RawSample};
/// use paceline_sched::Instant;
///
/// /// Collects the sequence numbers that leave, whatever the output.
/// #[derive(Default)]
/// struct Numbers(Vec<u64>);
///
/// impl Outputs<()> for Numbers {
///     fn offer(&mut self, now: Instant, ingress: &mut Ingress<()>, sample: RawSample) {
///         ingress.offer(now, sample, |_, sample| sample.map(|it| self.0.push(it.seq)).is_ok());
///     }
///     fn count(&mut self, _: &mut Output<()>, _: DropReason, _: u64) {}
///     fn count_unrouted(&mut self, _: PublisherId, _: DropReason, _: u64) {}
/// }
///
/// let (now, neighbour) = (Instant::from_millis(1_000), NodeId(2));
/// let key = SourceKey { publisher: PublisherId { node: neighbour, index: 0 }, form: Form::FULL };
/// let (mut arrivals, mut left) = (ArrivingStreams::default(), Numbers::default());
/// // The first sample is faster than the message that installs its output.
/// let sample = ArrivedItem::Sample(RawSample { published_at: now, ..RawSample::default() });
/// arrivals.handle_item(now, (neighbour, key), sample, || Some(Charge::uncounted(MemoryKind::Samples)), &mut left);
/// assert!(left.0.is_empty());
///
/// let from = vec![neighbour];
/// let change = Arrangement { key, at: now, period: None, from, entry: Vec::new(), is_replaced: false };
/// let outputs = [OutputPlan::new(Target::Local, Form::FULL)];
/// arrivals.arrange(now, change).install(&outputs, |_| Some(()), |_, ()| ());
/// arrivals.settle(now, &mut left);
/// assert_eq!(left.0, [0]);
/// ```
#[derive(Debug)]
pub struct ArrivingStreams<P> {
    streams: BTreeMap<SourceKey, ArrivingStream<P>>,
    /// The publishers of which a stream ends with the first sample of another one.
    replaced: BTreeSet<PublisherId>,
    early: EarlyItems,
    /// The streams that were changed since the last [`Self::settle`].
    arranged: Vec<SourceKey>,
    police: EntryPolice,
}

impl<P> Default for ArrivingStreams<P> {
    fn default() -> Self {
        Self {
            streams: BTreeMap::new(),
            replaced: BTreeSet::new(),
            early: EarlyItems::default(),
            arranged: Vec::new(),
            police: EntryPolice::default(),
        }
    }
}

impl<P> ArrivingStreams<P> {
    /// Changes a stream, or adds it. Returns its outputs, which the caller changes. Call [`Self::settle`] after all changes of
    /// this instant.
    pub fn arrange(&mut self, now: Instant, change: Arrangement) -> &mut Ingress<P> {
        let Arrangement { key, at, period, from, entry, is_replaced } = change;
        if is_replaced {
            self.replaced.insert(key.publisher);
        }
        let stream = self.streams.entry(key);
        let stream = stream.or_insert_with(|| ArrivingStream::new(at, period));
        stream.set_paths(now, from);
        stream.entry.set(entry);
        self.arranged.push(key);
        &mut stream.ingress
    }

    /// Returns the outputs of a stream.
    pub fn ingress_mut(&mut self, key: SourceKey) -> Option<&mut Ingress<P>> {
        self.streams.get_mut(&key).map(|stream| &mut stream.ingress)
    }

    /// Removes a stream without outputs.
    pub fn remove(&mut self, key: SourceKey) {
        self.streams.remove(&key);
        let publisher = key.publisher;
        if self.replaced.contains(&publisher) && !self.of(publisher).any(|it| it.is_replaced()) {
            self.replaced.remove(&publisher);
        }
    }

    /// Returns the outputs of a publisher's streams.
    fn of(&self, publisher: PublisherId) -> impl Iterator<Item = &Ingress<P>> {
        let its = self.streams.range(SourceKey { publisher, form: Form::FULL }..);
        let its = its.take_while(move |(key, _)| key.publisher == publisher);
        its.map(|(_, stream)| &stream.ingress)
    }

    /// Delivers the items that waited for the changes of this instant: only all changes together state which outputs a sample
    /// replaces. Senders and limits are those after all of them. Drops items that have waited too long.
    pub fn settle(&mut self, now: Instant, driver: &mut impl Outputs<P>) {
        let mut ready = Vec::new();
        for key in std::mem::take(&mut self.arranged) {
            let Some(stream) = self.streams.get_mut(&key) else { continue };
            let items = self.early.take(key, |from, item| stream.accepts(now, from, item), driver);
            let items = items.into_iter().map(|item| stream.policed(&mut self.police, now, item));
            ready.extend(items.map(|item| (key, item)));
        }
        ready.into_iter().for_each(|(key, item)| self.offer(now, key, item, driver));
        self.handle_timeout(now, driver);
    }

    /// Handles an item that has arrived from a neighbour. `waits` decides whether a sample without a stream may wait for it,
    /// and charges its memory.
    pub fn handle_item(
        &mut self,
        now: Instant,
        (from, key): (NodeId, SourceKey),
        item: ArrivedItem,
        waits: impl FnOnce() -> Option<Charge>,
        driver: &mut impl Outputs<P>,
    ) {
        match self.streams.get_mut(&key) {
            Some(stream) if !stream.accepts(now, from, &item) => {
                drop(waits());
                item.count(key, driver);
            }
            Some(stream) => {
                if matches!(item, ArrivedItem::Sample(_)) {
                    stream.come_by(from);
                }
                let item = stream.policed(&mut self.police, now, item);
                if self.replaced.is_empty() {
                    item.offer(&mut stream.ingress, now, &[], driver);
                } else {
                    self.offer(now, key, item, driver);
                }
            }
            None => match waits() {
                Some(charge) => {
                    let item = item.unshared();
                    self.early.push(EarlyItem { at: now, from, key, item, charge }, driver);
                }
                None => item.count(key, driver),
            },
        }
    }

    /// Drops items of a neighbour that wait, oldest first, until at least `bytes` are free or none is left. Returns the bytes
    /// that it has freed.
    pub fn give_back(&mut self, from: NodeId, bytes: usize, driver: &mut impl Outputs<P>) -> usize {
        self.early.give_back(from, bytes, driver)
    }

    /// Returns true if no item waits for its stream.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.early.is_empty()
    }

    /// Returns the number of a publisher's samples, and of those reported as lost, that wait for their stream.
    #[must_use]
    pub fn waiting(&self, publisher: PublisherId) -> u64 {
        self.early.waiting(publisher)
    }

    /// Returns the time at which [`Self::handle_timeout`] has to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Instant {
        self.early.expires_at()
    }

    /// Counts items that have waited too long for their stream.
    pub fn handle_timeout(&mut self, now: Instant, driver: &mut impl Outputs<P>) {
        self.early.expire(now, driver);
    }

    /// Delivers an item to the outputs of its stream. A sample first ends the outputs that it replaces.
    fn offer(
        &mut self,
        now: Instant,
        key: SourceKey,
        item: ArrivedItem,
        driver: &mut impl Outputs<P>,
    ) {
        let unreplaced = match &item {
            ArrivedItem::Sample(sample) => {
                self.replace(key, sample);
                Vec::new()
            }
            ArrivedItem::Lost(..) => self.unreplaced(key),
        };
        match self.streams.get_mut(&key) {
            Some(stream) => item.offer(&mut stream.ingress, now, &unreplaced, driver),
            None => item.count(key, driver),
        }
    }

    /// Returns the outputs of a stream that have not replaced outputs of another form yet.
    fn unreplaced(&self, key: SourceKey) -> Vec<OutputKey> {
        let SourceKey { publisher, form } = key;
        if !self.replaced.contains(&publisher) {
            return Vec::new();
        }
        self.of(publisher).flat_map(|ingress| ingress.waiting_for(form)).collect()
    }

    /// Ends the outputs that a sample of the stream `key` replaces. One that was published before the stream was installed
    /// does not replace them: it may be one of an earlier request.
    fn replace(&mut self, key: SourceKey, sample: &RawSample) {
        let (SourceKey { publisher, form }, seq) = (key, sample.seq);
        if !self.replaced.contains(&publisher) {
            return;
        }
        let began = self.streams.get(&key).map(|stream| stream.began);
        if began.is_none_or(|began| sample.published_at < began) {
            return;
        }
        let first = SourceKey { publisher, form: Form::FULL };
        let its = self.streams.range_mut(first..);
        let (mut waits, mut taken) = (false, Vec::new());
        for (_, stream) in its.take_while(|(key, _)| key.publisher == publisher) {
            taken.extend(stream.ingress.replace(form, seq));
            waits |= stream.ingress.is_replaced();
        }
        if let Some(stream) = self.streams.get_mut(&key) {
            stream.ingress.begin(&taken);
        }
        if !waits {
            self.replaced.remove(&publisher);
        }
    }
}

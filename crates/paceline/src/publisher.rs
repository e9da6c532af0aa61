//! Publishers: samples in, one call each.

use crate::arrival::Arrival;
use crate::buffer::{Buffer, History};
use crate::error::{Contradiction, PublishError};
use crate::node::Node;
use crate::shell::clock;
use crate::shell::engine::Command;
use crate::shell::opening::{Opening, Outlet};
use crate::shell::source::PublisherShared;
use bytes::Bytes;
use event_listener::{EventListener, Listener};
use paceline_media::Format;
use paceline_media::audio::AudioFormat;
use paceline_media::h264::{self, ParameterSets};
use paceline_proto::control::PublisherSpec;
use paceline_proto::ingress::Stamper;
use paceline_proto::wire::SAMPLE_BYTES_MAX;
use paceline_proto::{
    ATTACHMENT_BYTES_MAX, Encoding, Kind, PublisherId, Sample, Size, Tag, Timestamp,
};
use paceline_sched::{ContractError, Late, LossTolerance};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The highest rate that can be declared or asked for, in hertz.
pub(crate) const HERTZ_MAX: f64 = 1_000_000.0;

/// Declares a [`Publisher`].
#[must_use = "nothing is published before declare()"]
pub struct PublisherBuilder<'a> {
    node: &'a Node,
    spec: PublisherSpec,
    kind: Option<Kind>,
    history: Option<History>,
    /// The option that states the rate.
    rate_by: Option<&'static str>,
}

impl<'a> PublisherBuilder<'a> {
    pub(crate) const fn new(node: &'a Node, tag: Tag) -> Self {
        let spec = PublisherSpec {
            tag,
            kind: Kind::Data,
            encoding: Encoding::Bytes,
            period: None,
            late: Late::Drop,
            loss: None,
            size: None,
            bytes_max: None,
            waits: false,
        };
        Self { node, spec, kind: None, history: None, rate_by: None }
    }

    /// Declares that a sample comes every `period`: the base of its deadlines.
    ///
    /// # Errors
    /// [`PublishError::Contract`] if it is zero, and [`PublishError::Contradiction`] with [`Self::hz`].
    pub fn period(mut self, period: Duration) -> Result<Self, PublishError> {
        Contradiction::refuse(&mut self.rate_by, "period")?;
        self.every(period)
    }

    fn every(mut self, period: Duration) -> Result<Self, PublishError> {
        if period.is_zero() {
            return Err(ContractError::ZeroPeriod.into());
        }
        self.spec.period = Some(period.into());
        Ok(self)
    }

    /// Declares `hertz` samples per second.
    ///
    /// # Errors
    /// [`PublishError::Rate`] if it is not above 0 and at most 1,000,000, and [`PublishError::Contradiction`] with
    /// [`Self::period`].
    pub fn hz(mut self, hertz: f64) -> Result<Self, PublishError> {
        Contradiction::refuse(&mut self.rate_by, "hz")?;
        if !(hertz > 0.0 && hertz <= HERTZ_MAX) {
            return Err(PublishError::Rate(hertz));
        }
        self.every(Duration::from_secs_f64(1.0 / hertz))
    }

    /// What the samples are. If not said, it goes by the encoding: [`Kind::Picture`] for pictures,
    /// [`Kind::VideoI`] for video/h264, whose samples each get the kind of their own,
    /// [`Kind::Audio`] for sound, and [`Kind::Data`] for all else.
    pub const fn kind(mut self, kind: Kind) -> Self {
        self.kind = Some(kind);
        self
    }

    /// Their media type; application/octet-stream if not said.
    pub fn encoding(mut self, encoding: Encoding) -> Self {
        self.spec.encoding = encoding;
        self
    }

    /// What becomes of late ones; [`Late::Drop`] if not said.
    pub const fn late(mut self, late: Late) -> Self {
        self.spec.late = late;
        self
    }

    /// Of each window of `y` samples at most `x` may miss, for subscribers that state a delay bound and
    /// no loss tolerance of their own; none may if not said.
    ///
    /// # Errors
    /// [`PublishError::Contract`].
    pub fn loss(mut self, x: u32, y: u32) -> Result<Self, PublishError> {
        self.spec.loss = Some(LossTolerance::new(x, y)?);
        Ok(self)
    }

    /// The size of its pictures; read from the first one if not said.
    pub const fn picture_size(mut self, size: Size) -> Self {
        self.spec.size = Some(size);
        self
    }

    /// The size of its largest sample in bytes; the largest seen so far if not said.
    pub const fn bytes_max(mut self, bytes: u64) -> Self {
        self.spec.bytes_max = Some(bytes);
        self
    }

    /// What this node publishes on the tag is held here, for any node to pull, as long as the publisher
    /// lasts.
    pub const fn history(mut self, history: History) -> Self {
        self.history = Some(history);
        self
    }

    /// Announces the publisher; every node knows it within a second.
    ///
    /// # Errors
    /// [`PublishError::Encoding`] if the media type is not plain text, [`PublishError::Closed`] if the node was closed.
    pub fn declare(mut self) -> Result<Publisher, PublishError> {
        check_encoding(&self.spec.encoding)?;
        // First, so that no sample goes before it.
        let held = self.history.map(|history| Buffer::local(self.node, &self.spec.tag, history));
        let held = held.transpose()?.map(Box::new);
        let encoding = self.spec.encoding.as_str();
        let format: Option<Format> = encoding.parse().ok();
        self.spec.kind = self.kind.unwrap_or(match format {
            Some(Format::H264) => Kind::VideoI,
            Some(Format::Jpeg | Format::Png | Format::I420(_) | Format::Rgb8(_)) => Kind::Picture,
            None if encoding.parse::<AudioFormat>().is_ok() => Kind::Audio,
            None => Kind::Data,
        });
        let node = self.node.clone();
        let room = node.waiting().clone();
        let shared = Arc::new(PublisherShared::opening(self.spec.period, room));
        let (reply, answer) = std::sync::mpsc::channel();
        node.commands().send(Command::Publish(self.spec.clone(), shared.clone(), reply));
        let id = answer.recv().map_err(|_| PublishError::Closed)?;
        let bytes_declared = self.spec.bytes_max.is_some();
        let stamper = Stamper::default();
        let spec = self.spec;
        Ok(Publisher {
            id,
            spec,
            format,
            bytes_declared,
            parameters: ParameterSets::default(),
            shared,
            node,
            outlet: None,
            stamper,
            utc: clock::Utc::default(),
            held,
        })
    }
}

/// The outputs of a publisher as the engine wants them now; none while its first samples wait for them.
fn open<'o>(outlet: &'o mut Option<Outlet>, shared: &PublisherShared) -> Option<&'o mut Outlet> {
    if outlet.is_none() {
        *outlet = shared.opening.as_ref().and_then(Opening::opened);
    }
    let outlet = outlet.as_mut()?;
    outlet.install(&shared.installs);
    Some(outlet)
}

/// What became of one published sample on this node.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Put {
    /// Its sequence number.
    pub seq: u64,
    /// Outputs that took it: streams, and the subscribers here that share a form.
    pub taken: u32,
    /// Those that had no room for it; counted there by reason.
    pub dropped: u32,
    /// The publisher was just declared, and the sample waits until the subscriptions that exist are served. Streams
    /// that take it then are not counted in `taken`.
    pub waits: bool,
}

/// What goes with one sample beside its payload; what is not said is as declared.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// Its media type; what was declared if not said. Whether and how samples are scaled goes by what was
    /// declared.
    pub encoding: Option<Encoding>,
    /// When it was captured; now if not said. Rates are kept by it, deadlines are not.
    pub captured: Option<Timestamp>,
    /// Bytes that every subscriber gets as they are, at most [`ATTACHMENT_BYTES_MAX`].
    pub attachment: Option<Arc<[u8]>>,
}

/// Publishes samples on one tag. Dropping it tells everybody that it is gone, once what it published
/// has been sent. It keeps its node open.
pub struct Publisher {
    id: PublisherId,
    spec: PublisherSpec,
    format: Option<Format>,
    bytes_declared: bool,
    /// What a video's pictures are decoded with.
    parameters: ParameterSets,
    shared: Arc<PublisherShared>,
    node: Node,
    /// Its outputs; none while its first samples wait for them.
    outlet: Option<Outlet>,
    stamper: Stamper,
    utc: clock::Utc,
    held: Option<Box<Buffer>>,
}

impl Publisher {
    /// Who it is.
    #[must_use]
    pub const fn id(&self) -> PublisherId {
        self.id
    }

    /// Its tag.
    #[must_use]
    pub const fn tag(&self) -> &Tag {
        &self.spec.tag
    }

    /// The buffer of [`PublisherBuilder::history`].
    #[must_use]
    pub fn buffer(&self) -> Option<&Buffer> {
        self.held.as_deref()
    }

    /// Publishes a sample captured now. Never waits: a stream without room drops it, counted.
    ///
    /// The first samples of a new publisher are buffered until each subscription that this node knows of is served:
    /// until the node's next decision, milliseconds after [`PublisherBuilder::declare`], or until a path that is asked
    /// for a contract has answered, for 1 s at most. Subscribers of this node receive them at once. At most 256 samples
    /// are buffered, and 64 MiB on all publishers of a node; beyond that they are dropped as `queue_full`, and what a
    /// path has not answered for in time as `no_route`, among the drops of the node.
    ///
    /// A sample of video/h264 is one access unit, in decode order: one coded picture in Annex B. A
    /// picture that stands alone gets the parameter sets put before it if it lacks them, so that
    /// whoever comes late can begin there.
    ///
    /// # Errors
    /// [`PublishError::TooLarge`], [`PublishError::NoAccessUnit`], [`PublishError::Closed`].
    pub fn put(&mut self, payload: impl Into<Bytes>) -> Result<Put, PublishError> {
        self.put_with(payload, Beside::default())
    }

    /// As [`Self::put`], with an encoding, a capture time or an attachment of its own.
    ///
    /// # Errors
    /// As [`Self::put`], [`PublishError::AttachmentTooLong`] and [`PublishError::Encoding`].
    pub fn put_with(
        &mut self,
        payload: impl Into<Bytes>,
        beside: Beside,
    ) -> Result<Put, PublishError> {
        let Beside { encoding, captured, attachment } = beside;
        let mut payload = payload.into();
        let attached = attachment.as_ref().map_or(0, |bytes| bytes.len());
        if attached > ATTACHMENT_BYTES_MAX {
            return Err(PublishError::AttachmentTooLong { bytes: attached });
        }
        if let Some(encoding) = &encoding {
            check_encoding(encoding)?;
        }
        if self.shared.closed.load(Ordering::Relaxed) {
            return Err(PublishError::Closed);
        }
        if payload.len() > SAMPLE_BYTES_MAX {
            return Err(PublishError::TooLarge { bytes: payload.len(), max: SAMPLE_BYTES_MAX });
        }
        let kind = match self.format {
            Some(Format::H264) if self.spec.kind.is_video() => self.take_video(&mut payload)?,
            _ => self.spec.kind,
        };
        self.observe(&payload, attached);
        let now = clock::now();
        let encoding = encoding.unwrap_or_else(|| self.spec.encoding.clone());
        let captured = captured.unwrap_or_else(|| self.utc.at(now));
        let mut sample = self.stamper.stamp(now, captured, kind, encoding, payload);
        sample.attachment = attachment;
        let put = self.offer(now, sample);
        self.shared.published.fetch_add(1, Ordering::Relaxed);
        Ok(put)
    }

    fn offer(&mut self, now: paceline_sched::Instant, sample: Sample) -> Put {
        let shared = &self.shared;
        match (open(&mut self.outlet, shared), &shared.opening) {
            (Some(outlet), _) => outlet.offer(now, sample, |_| true),
            (None, Some(opening)) => opening.put(&shared.installs, now, sample),
            (None, None) => Put::default(),
        }
    }

    /// The kind of a video sample; one that stands alone is made to carry all that it needs.
    fn take_video(&mut self, payload: &mut Bytes) -> Result<Kind, PublishError> {
        let class = h264::classify(payload).map_err(|error| PublishError::NoAccessUnit {
            bytes: payload.len(),
            what: error.to_string(),
        })?;
        if let Cow::Owned(complete) = self.parameters.complete(payload) {
            *payload = complete.into();
        }
        Ok(match class {
            h264::Class::I => Kind::VideoI,
            h264::Class::P => Kind::VideoP,
            h264::Class::B => Kind::VideoB,
        })
    }

    /// As [`Self::put`], but waits first until every stream has room. From the first call on none of its samples
    /// [expires](paceline_proto::DropReason::Expired): a publisher that waits wants all of them delivered.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub fn put_blocking(&mut self, payload: impl Into<Bytes>) -> Result<Put, PublishError> {
        while let Some(room) = self.wait_for_room() {
            // A stream that goes away gives no room: look again from time to time.
            room.wait_timeout(Duration::from_millis(100));
        }
        self.put(payload)
    }

    /// What tells of room in a stream that has none now; none if every stream has room, or the node was
    /// closed. A stream that goes away does not tell: look again after a while. As with [`Self::put_blocking`] no
    /// sample expires from the first call on.
    pub fn room(&mut self) -> Option<Arrival> {
        self.wait_for_room().map(Arrival::new)
    }

    /// As [`Self::put_blocking`], for asynchronous code on any runtime.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub async fn put_async(&mut self, payload: impl Into<Bytes>) -> Result<Put, PublishError> {
        while let Some(room) = self.wait_for_room() {
            room.await;
        }
        self.put(payload)
    }

    pub(crate) const fn node(&self) -> &Node {
        &self.node
    }

    pub(crate) const fn shared(&self) -> &Arc<PublisherShared> {
        &self.shared
    }

    /// True if anybody, anywhere, wants this tag now.
    #[must_use]
    pub fn matching(&self) -> bool {
        self.shared.matching.load(Ordering::Acquire)
    }

    /// What tells that it may have changed whether anybody wants the tag. To be had before looking with
    /// [`Self::matching`].
    pub fn match_change(&self) -> Arrival {
        Arrival::new(self.shared.change.listen())
    }

    /// Waits until anybody wants the tag; false when `timeout` is over first.
    #[must_use]
    pub fn wait_matching(&self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        loop {
            let change = self.shared.change.listen();
            if self.matching() {
                return true;
            }
            if self.shared.closed.load(Ordering::Acquire) || change.wait_deadline(until).is_none() {
                return self.matching();
            }
        }
    }

    /// Ends it as dropping it does, and waits at most `timeout` until all that it published has left
    /// this node; false if something has not. Samples that were dropped count as gone.
    #[must_use]
    pub fn close(self, timeout: Duration) -> bool {
        let (told, answer) = std::sync::mpsc::channel();
        let command = Command::Unpublish(self.id, Some((timeout.into(), told)));
        self.node.commands().send(command) && answer.recv().unwrap_or(false)
    }

    /// A stream without room, to be waited for.
    fn wait_for_room(&mut self) -> Option<EventListener> {
        if self.spec.max_wait().is_some() {
            self.spec.waits = true;
            // Else it is told the next time.
            self.spec.waits = self.announce();
        }
        let shared = &self.shared;
        let room = match (open(&mut self.outlet, shared), &shared.opening) {
            (Some(outlet), _) => outlet.full(),
            (None, Some(opening)) => opening.full(&shared.change),
            (None, None) => None,
        };
        // Looked at after listening: the end is told once.
        room.filter(|_| !self.shared.closed.load(Ordering::Acquire))
    }

    /// Keeps what is announced of the samples true: their picture size and largest length are what
    /// refusals are computed from.
    fn observe(&mut self, payload: &Bytes, attached: usize) {
        let bytes = (payload.len() + attached) as u64;
        let larger = !self.bytes_declared && self.spec.bytes_max.is_none_or(|max| bytes > max);
        let size = match self.format {
            Some(format) if self.spec.size.is_none() || larger => {
                let size = format.picture_size(payload).ok();
                size.map(|size| Size { width: size.width, height: size.height })
            }
            _ => None,
        };
        let new_size = size.is_some() && size != self.spec.size;
        if !larger && !new_size {
            return;
        }
        if larger {
            // With a margin, so that a slowly growing picture is not announced each time.
            self.spec.bytes_max = Some(bytes + bytes / 4);
        }
        if new_size {
            self.spec.size = size;
        }
        self.announce();
    }

    /// Sends every node the current declaration; false if the engine had no room for the command.
    fn announce(&self) -> bool {
        self.node.commands().offer(Command::UpdatePublisher(self.id, self.spec.clone()))
    }
}

/// Refuses a media type that is not plain text: it would reach the terminals and logs of other nodes.
fn check_encoding(encoding: &Encoding) -> Result<(), PublishError> {
    if encoding.is_plain() {
        return Ok(());
    }
    Err(PublishError::Encoding(encoding.to_string()))
}

impl Drop for Publisher {
    fn drop(&mut self) {
        // Whoever watches it ends.
        self.shared.closed.store(true, Ordering::Release);
        self.shared.change.notify(usize::MAX);
        self.node.commands().send(Command::Unpublish(self.id, None));
    }
}

/// A publisher may be moved to another thread, never shared between two.
const _: fn() = || {
    const fn is_send<T: Send>() {}
    is_send::<Publisher>();
    is_send::<Sample>();
};

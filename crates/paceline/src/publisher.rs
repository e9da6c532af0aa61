//! Publishers: declaration, and sending of samples.

mod draft;
mod traffic;
mod video;

use crate::arrival::Arrival;
use crate::buffer::Buffer;
use crate::error::{Contradiction, PublishError, set};
use crate::history::History;
use crate::node::Node;
use crate::put::{PutOptions, PutReport};
use crate::shell::clock;
use crate::shell::command::Command;
use crate::shell::opening::{Opening, Outlet};
use crate::shell::source::PublisherShared;
use crate::time::Clock;
use bytes::Bytes;
use draft::{Draft, check_encoding, public_tag};
use event_listener::{EventListener, Listener};
use paceline_media::{Format, jpeg, png, ros};
use paceline_proto::control::PublisherSpec;
use paceline_proto::ingress::Stamper;
use paceline_proto::wire::SAMPLE_BYTES_MAX;
use paceline_proto::{
    ATTACHMENT_BYTES_MAX, Encoding, Envelope, EnvelopeMeter, Kind, PublisherId, RawSample, Size,
    Tag, Unscalable,
};
use paceline_sched::{Late, LossTolerance};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use traffic::{Declared, peak_bytes_per_s};
use video::VideoUnits;

/// Configures and declares a [`Publisher`]. Created by [`Node::publisher`].
///
/// The setters take plain values; [`Self::declare`] reports the first wrong one.
#[must_use = "nothing is published before declare()"]
pub struct PublisherBuilder<'a> {
    node: &'a Node,
    /// The settings, or the first wrong value.
    draft: Result<Draft, PublishError>,
}

impl Node {
    /// Returns a builder for a publisher on `tag`, such as `robot/camera`.
    ///
    /// A tag has at most 255 bytes, no wildcards, and does not begin with `@`.
    /// [`PublisherBuilder::declare`] reports an invalid one.
    pub fn publisher(&self, tag: &str) -> PublisherBuilder<'_> {
        PublisherBuilder::new(self, tag)
    }
}

impl<'a> PublisherBuilder<'a> {
    pub(crate) fn new(node: &'a Node, tag: &str) -> Self {
        Self { node, draft: public_tag(tag).map(Draft::new) }
    }

    fn set(mut self, setting: impl FnOnce(&mut Draft) -> Result<(), PublishError>) -> Self {
        set(&mut self.draft, setting);
        self
    }

    /// Applies a setting that cannot be wrong.
    fn with(mut self, setting: impl FnOnce(&mut Draft)) -> Self {
        if let Ok(draft) = &mut self.draft {
            setting(draft);
        }
        self
    }

    /// Declares one sample per `period`, above 0. Deadlines derive from this period. By default the
    /// publisher declares no period.
    ///
    /// [`Self::hz`] sets the same property: use one of the two.
    pub fn period(self, period: Duration) -> Self {
        self.set(|draft| draft.period("period", period))
    }

    /// Declares a rate of `hertz` samples per second, above 0 and at most 1,000,000. By default the
    /// publisher declares no rate.
    ///
    /// [`Self::period`] sets the same property: use one of the two.
    pub fn hz(self, hertz: f64) -> Self {
        self.set(|draft| draft.hertz(hertz))
    }

    /// Sets the kind of the samples. By default it follows from the encoding: [`Kind::Picture`] for
    /// pictures, [`Kind::Audio`] for sound, [`Kind::VideoI`] for coded video and [`Kind::Data`]
    /// otherwise.
    ///
    /// Each sample of video/h264, video/h265 and video/av1 then receives its own kind: I, P or B.
    pub fn kind(self, kind: Kind) -> Self {
        self.with(|draft| draft.kind = Some(kind))
    }

    /// Sets the media type of the samples: plain text such as image/jpeg. Defaults to
    /// application/octet-stream.
    pub fn encoding(self, encoding: Encoding) -> Self {
        self.set(|draft| draft.encoding(encoding))
    }

    /// Sets the treatment of samples that miss their deadline. Defaults to [`Late::Drop`].
    pub fn late(self, late: Late) -> Self {
        self.with(|draft| draft.spec.late = late)
    }

    /// Sets the loss tolerance for subscribers with a delay bound and without a tolerance of their own:
    /// at most `x` samples of each window of `y` may miss their deadline. By default none may.
    ///
    /// `x` is from 0 to `y`, and `y` from 1 to [`LossTolerance::Y_MAX`].
    pub fn loss(self, x: u32, y: u32) -> Self {
        self.set(|draft| {
            draft.spec.loss = Some(LossTolerance::new(x, y)?);
            Ok(())
        })
    }

    /// Requests a contract with this delay bound, above 0, for each subscriber that requests neither a delay bound nor a
    /// loss tolerance, with the loss tolerance of [`Self::loss`]. By default those subscribers receive best effort.
    ///
    /// The subscriber needs to do nothing, and learns the result as for a request of its own. If the contract is
    /// refused, it receives best effort.
    pub fn within(self, bound: Duration) -> Self {
        self.set(|draft| draft.within(bound))
    }

    /// Sets the picture size in pixels, each side at least 1. By default it is read from the first picture.
    pub fn picture_size(self, size: Size) -> Self {
        self.set(|draft| draft.picture_size(size))
    }

    /// Sets the size of the largest sample in bytes. By default it follows the largest sample
    /// published so far.
    pub fn bytes_max(self, bytes: u64) -> Self {
        self.with(|draft| draft.spec.bytes_max = Some(bytes))
    }

    /// Declares the traffic over longer times: in any time t at most `burst` bytes and `bits_per_s` · t bits, besides
    /// the largest sample and the rate (the TSpec of RFC 2212). Contracts then reserve this instead of the largest
    /// sample in each period, as video of a variable bit rate needs.
    ///
    /// `burst` is at least the largest sample, which it replaces if [`Self::bytes_max`] is not set. Samples beyond the
    /// declaration are counted, and may be late. By default the node learns the traffic from the samples of the
    /// last minute, if it is clearly below the largest sample in each period.
    ///
    /// ```no_run
    /// # let node = paceline::Node::open()?;
    /// let film = node.publisher("film").hz(30.0).bytes_max(60_000).traffic(2_000_000, 120_000);
    /// # Ok::<(), paceline::OpenError>(())
    /// ```
    pub fn traffic(self, bits_per_s: u64, burst: u64) -> Self {
        self.set(|draft| {
            Contradiction::refuse(&mut draft.traffic_by, "traffic")?;
            draft.traffic = Some(Declared { bits_per_s, burst });
            Ok(())
        })
    }

    /// Declares traffic in the form of the Tenet protocols (Ferrari & Verma 1990): samples of at most `smax` bytes, at
    /// least `xmin` apart, and on average at least `xave` apart in any interval of length `interval`.
    ///
    /// This sets the period to `xmin` and the largest sample to `smax`. Use it instead of [`Self::traffic`].
    pub fn tenet(self, xmin: Duration, xave: Duration, interval: Duration, smax: u64) -> Self {
        self.set(|draft| {
            Contradiction::refuse(&mut draft.traffic_by, "tenet")?;
            let envelope = Envelope::tenet(xmin.into(), xave.into(), interval.into(), smax);
            draft.spec.envelope =
                Some(envelope.ok_or(PublishError::Tenet { xmin, xave, interval, smax })?);
            draft.spec.bytes_max = Some(smax);
            draft.period("tenet", xmin)
        })
    }

    /// Stores the samples that this node publishes on the tag, for any node to pull, until the
    /// publisher is dropped. By default it stores none.
    pub fn history(self, history: History) -> Self {
        self.set(|draft| {
            history.limits()?;
            draft.history = Some(history);
            Ok(())
        })
    }

    /// Delivers the newest sample to each subscriber that joins later, as the first one. By default subscribers receive
    /// only samples that are published after they joined.
    ///
    /// The kind then defaults to [`Kind::State`], and the [history](Self::history) to one sample. The subscriber's node
    /// pulls the sample as best effort, so it needs the right to pull the tag. Its age is real, so it may be older than
    /// the delay bound of the subscription; it does not count as late. Publishers of one tag on one node share their
    /// histories: several latched ones need a history with room for a sample of each.
    pub fn latch(self) -> Self {
        self.set(|draft| {
            draft.spec.latch = true;
            Ok(())
        })
    }

    /// Returns the declaration, for a node that the program steps itself ([`paceline_node::Node::publish`]), which has no buffers.
    ///
    /// # Errors
    /// The first wrong value, as [`Self::declare`] reports it.
    pub fn spec(self) -> Result<PublisherSpec, PublishError> {
        let mut draft = self.draft?;
        draft.finish()?;
        Ok(draft.spec)
    }

    /// Announces the publisher. Every node knows it within one second.
    ///
    /// # Errors
    /// Reports the first wrong value of the builder, with the allowed range:
    /// - [`PublishError::Tag`] or [`PublishError::Private`] for the tag,
    /// - [`PublishError::Rate`], [`PublishError::Size`], [`PublishError::Contract`], [`PublishError::Encoding`] or
    ///   [`PublishError::Limits`] for a setting, and
    /// - [`PublishError::Contradiction`] for two settings of the same property.
    ///
    /// [`PublishError::TooMany`] if the node has too many publishers and subscriptions, and [`PublishError::Closed`] if it
    /// is closed.
    pub fn declare(self) -> Result<Publisher, PublishError> {
        let mut draft = self.draft?;
        draft.finish()?;
        let Draft { spec, mut history, .. } = draft;
        if spec.latch {
            history = history.or_else(|| Some(History::new().samples(1)));
        }
        // The buffer must exist before the first sample.
        let held = history.map(|history| Buffer::local(self.node, &spec.tag, history));
        let held = held.transpose()?.map(Box::new);
        let format: Option<Format> = spec.encoding.as_str().parse().ok();
        let codec = format.and_then(|format| format.codec()).filter(|_| spec.kind.is_video());
        let video = codec.map(VideoUnits::new);
        let node = self.node.clone();
        let room = node.waiting().clone();
        let shared = Arc::new(PublisherShared::opening(spec.period, room));
        let (reply, answer) = std::sync::mpsc::channel();
        node.commands().send(Command::Publish(spec.clone(), shared.clone(), reply));
        let id = answer.recv().map_err(|_| PublishError::Closed)?.ok_or(PublishError::TooMany)?;
        let bytes_declared = spec.bytes_max.is_some();
        let meter = spec.envelope.is_none().then(Box::default);
        let stamper = Stamper::new(spec.period);
        let clock = node.clock();
        Ok(Publisher {
            id,
            spec,
            format,
            bytes_declared,
            meter,
            video: video.map(Box::new),
            shared,
            node,
            outlet: None,
            stamper,
            unrouted: 0,
            utc: clock::Utc::default(),
            clock,
            held,
        })
    }
}

/// Returns the publisher's current outputs; `None` while its first samples are buffered.
fn open<'o>(outlet: &'o mut Option<Outlet>, shared: &PublisherShared) -> Option<&'o mut Outlet> {
    if outlet.is_none() {
        *outlet = shared.opening.as_ref().and_then(Opening::opened);
    }
    let outlet = outlet.as_mut()?;
    outlet.install(&shared.installs);
    Some(outlet)
}

/// Publishes samples on one tag.
///
/// Dropping a publisher sends the samples already published and then announces its end to every
/// node. A publisher keeps its node open. It can move to another thread but not be shared between
/// threads.
///
/// ```no_run
/// use paceline::{Encoding, Node, PutOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Node::open()?;
/// let mut camera =
///     node.publisher("robot/camera").encoding(Encoding::Jpeg).hz(30.0).loss(1, 10).declare()?;
/// # let jpeg: Vec<u8> = Vec::new();
/// let put = camera.put(jpeg)?;
/// println!("sample {}: {} outputs, {} full", put.seq, put.taken, put.dropped);
/// let exposure = PutOptions { attachment: Some(b"exposure 8 ms"[..].into()), ..PutOptions::default() };
/// # let jpeg: Vec<u8> = Vec::new();
/// camera.put_with(jpeg, exposure)?;
/// # Ok(())
/// # }
/// ```
pub struct Publisher {
    id: PublisherId,
    spec: PublisherSpec,
    format: Option<Format>,
    bytes_declared: bool,
    /// Learns the traffic unless it is declared.
    meter: Option<Box<EnvelopeMeter>>,
    /// The parameter sets and units so far, if the samples are video.
    video: Option<Box<VideoUnits>>,
    shared: Arc<PublisherShared>,
    node: Node,
    /// Its outputs; `None` while its first samples are buffered.
    outlet: Option<Outlet>,
    stamper: Stamper,
    unrouted: u64,
    utc: clock::Utc,
    clock: Clock,
    held: Option<Box<Buffer>>,
}

impl Publisher {
    /// The largest payload of a sample, in bytes: 64 MiB.
    pub const SAMPLE_BYTES_MAX: usize = SAMPLE_BYTES_MAX;
    /// The largest attachment of a sample, in bytes.
    pub const ATTACHMENT_BYTES_MAX: usize = ATTACHMENT_BYTES_MAX;

    /// Returns the identifier of this publisher.
    #[must_use]
    pub const fn id(&self) -> PublisherId {
        self.id
    }

    /// Returns the tag.
    #[must_use]
    pub const fn tag(&self) -> &Tag {
        &self.spec.tag
    }

    /// Returns the number of samples published while no subscription was connected: none existed, or
    /// no path led to it.
    #[must_use]
    pub const fn unrouted(&self) -> u64 {
        self.unrouted
    }

    /// Returns the pull buffer that [`PublisherBuilder::history`] requested.
    #[must_use]
    pub fn buffer(&self) -> Option<&Buffer> {
        self.held.as_deref()
    }

    /// Publishes a sample captured now. Never blocks: a full stream drops the sample and counts it.
    ///
    /// # The first samples
    /// A new publisher buffers its first samples until the subscriptions known to this node are
    /// connected. That takes until the node's next decision, milliseconds after
    /// [`PublisherBuilder::declare`]. If the node requests a contract from a path, it takes until the
    /// path answers, for at most 1 s. Subscribers on this node receive these samples at once.
    ///
    /// The buffer takes at most 256 samples per publisher, and 64 MiB for all publishers of a node.
    /// Samples beyond that are counted as `queue_full` in the drops of the node. Samples for a path
    /// that has not answered in time are counted as `no_route`.
    ///
    /// # Video
    /// A sample of video/h264 or video/h265 is one access unit in decode order: one coded picture in
    /// Annex B format. A sample of video/av1 is a temporal unit of low-overhead OBUs. The publisher
    /// prepends missing parameter sets to a picture that can be decoded alone, so that late joiners can
    /// start there.
    ///
    /// # Errors
    /// [`PublishError::TooLarge`] if the payload exceeds
    /// [`Self::SAMPLE_BYTES_MAX`], [`PublishError::NoAccessUnit`] if a video
    /// sample is not an access unit, and [`PublishError::Closed`] if the node is closed.
    pub fn put(&mut self, payload: impl Into<Bytes>) -> Result<PutReport, PublishError> {
        self.put_with(payload, PutOptions::default())
    }

    /// Publishes a sample with its own encoding, capture time or attachment. See [`Self::put`].
    ///
    /// # Errors
    /// The errors of [`Self::put`], [`PublishError::AttachmentTooLong`] and
    /// [`PublishError::Encoding`].
    pub fn put_with(
        &mut self,
        payload: impl Into<Bytes>,
        options: PutOptions,
    ) -> Result<PutReport, PublishError> {
        let PutOptions { encoding, captured, attachment } = options;
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
        let now = clock::now();
        let kind = match &mut self.video {
            Some(video) => video.take(now, &mut payload)?,
            None => self.spec.kind,
        };
        self.observe(now, kind, &payload, attached);
        let encoding = encoding.unwrap_or_else(|| self.spec.encoding.clone());
        let captured =
            captured.or_else(|| self.clock.timestamp()).unwrap_or_else(|| self.utc.at(now));
        let mut sample = self.stamper.stamp(now, captured, kind, encoding, payload);
        sample.attachment = attachment;
        let put = self.offer(now, sample);
        let found = put.waits || put.taken > 0 || put.dropped > 0;
        self.unrouted += u64::from(!found);
        self.shared.published.fetch_add(1, Ordering::Relaxed);
        Ok(put)
    }

    fn offer(&mut self, now: paceline_sched::Instant, sample: RawSample) -> PutReport {
        let shared = &self.shared;
        match (open(&mut self.outlet, shared), &shared.opening) {
            (Some(outlet), _) => outlet.offer(now, sample, |_| true),
            (None, Some(opening)) => opening.put(&shared.installs, now, sample),
            (None, None) => PutReport::default(),
        }
    }

    /// Blocks until every stream has room, then publishes a sample as [`Self::put`] does.
    ///
    /// From the first call on, no sample of this publisher
    /// [expires](paceline_proto::DropReason::Expired): a publisher that waits for room wants every
    /// sample delivered.
    ///
    /// # Errors
    /// The errors of [`Self::put`].
    pub fn put_blocking(&mut self, payload: impl Into<Bytes>) -> Result<PutReport, PublishError> {
        while let Some(room) = self.wait_for_room() {
            // A closed stream does not notify, so check again periodically.
            room.wait_timeout(Duration::from_millis(100));
        }
        self.put(payload)
    }

    /// Returns a notification for when a full stream has room again; `None` if no stream is full or
    /// the node is closed.
    ///
    /// Closing a stream does not notify, so check again after a while. As with
    /// [`Self::put_blocking`], no sample expires from the first call on.
    pub fn room(&mut self) -> Option<Arrival> {
        self.wait_for_room().map(Arrival::new)
    }

    /// Waits until every stream has room, then publishes a sample. The asynchronous form of
    /// [`Self::put_blocking`]; works on any runtime.
    ///
    /// # Errors
    /// The errors of [`Self::put`].
    pub async fn put_async(
        &mut self,
        payload: impl Into<Bytes>,
    ) -> Result<PutReport, PublishError> {
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

    /// Returns true if any node has a subscription that matches this tag.
    #[must_use]
    pub fn matching(&self) -> bool {
        self.shared.matching.load(Ordering::Acquire)
    }

    /// Returns a notification for the next change of [`Self::matching`]. Create it before the call
    /// of [`Self::matching`], so that no change is missed.
    pub fn match_change(&self) -> Arrival {
        Arrival::new(self.shared.change.listen())
    }

    /// Blocks until a subscription matches the tag; returns false after `timeout`.
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

    /// Drops the publisher, and blocks for at most `timeout` until its samples have left this node.
    ///
    /// Returns true if they all have. Dropped samples count as sent.
    #[must_use]
    pub fn close(self, timeout: Duration) -> bool {
        let (told, answer) = std::sync::mpsc::channel();
        let command = Command::Unpublish(self.id, Some((timeout.into(), told)));
        self.node.commands().send(command) && answer.recv().unwrap_or(false)
    }

    /// Returns a listener for room if a stream is full.
    fn wait_for_room(&mut self) -> Option<EventListener> {
        if self.spec.max_wait().is_some() {
            self.spec.waits = true;
            // If the engine had no room for the command, the next call announces it.
            self.spec.waits = self.announce();
        }
        let shared = &self.shared;
        let room = match (open(&mut self.outlet, shared), &shared.opening) {
            (Some(outlet), _) => outlet.full(),
            (None, Some(opening)) => opening.full(&shared.change),
            (None, None) => None,
        };
        // Check after creating the listener: the end of the node is notified only once.
        room.filter(|_| !self.shared.closed.load(Ordering::Acquire))
    }

    /// Updates the announced picture size and maximum sample size: nodes compute refusals from
    /// them.
    fn observe(
        &mut self,
        now: paceline_sched::Instant,
        kind: Kind,
        payload: &Bytes,
        attached: usize,
    ) {
        let bytes = (payload.len() + attached) as u64;
        let larger = !self.bytes_declared && self.spec.bytes_max.is_none_or(|max| bytes > max);
        let peak = peak_bytes_per_s(&self.spec);
        let learned = self.meter.as_mut().zip(peak);
        let learned = learned.and_then(|(meter, peak)| meter.note(now, bytes, peak));
        let size = match self.format {
            Some(format) if self.spec.size.is_none() || larger => {
                let size = format.picture_size(payload).ok();
                let size = size.map(|size| Size { width: size.width, height: size.height });
                size.filter(|size| size.pixels() > 0)
            }
            _ => None,
        };
        let new_size = size.is_some() && size != self.spec.size;
        let unscalable = self.format.and_then(|format| unscalable(format, kind, payload));
        let new_reason = unscalable.is_some_and(|why| why != self.spec.unscalable);
        let key_interval = self.video.as_ref().and_then(|video| video.key_interval());
        let new_interval = key_interval != self.spec.key_interval;
        // Only nodes that cannot decode the video need it.
        let structure = self.spec.unscalable.and_then(|_| self.video.as_ref()?.structure());
        let new_structure = structure != self.spec.structure;
        let new_video = new_interval || new_structure;
        if !larger && !new_size && !new_reason && !new_video && learned.is_none() {
            return;
        }
        self.spec.structure = structure;
        if let Some(envelope) = learned {
            self.spec.envelope = envelope;
        }
        self.spec.key_interval = key_interval;
        if let Some(why) = unscalable {
            self.spec.unscalable = why;
        }
        if larger {
            // Add a margin, so that slowly growing pictures do not cause an announcement each.
            self.spec.bytes_max = Some(bytes + bytes / 4);
        }
        if new_size {
            self.spec.size = size;
        }
        self.announce();
    }

    /// Sends every node the current declaration; returns false if the engine's command queue is
    /// full.
    fn announce(&self) -> bool {
        self.node.commands().offer(Command::UpdatePublisher(self.id, self.spec.clone()))
    }
}

/// Returns the reason why the pictures of this format cannot be scaled, `Some(None)` if they can, and `None` if this
/// payload does not show it.
fn unscalable(format: Format, kind: Kind, payload: &[u8]) -> Option<Option<Unscalable>> {
    let pixels =
        |scalable: Option<bool>| scalable.map(|scalable| (!scalable).then_some(Unscalable::Pixels));
    match format {
        Format::H264 => video::unscalable(kind, payload),
        Format::Ros(message) => pixels(ros::is_scalable(message, payload)),
        Format::Jpeg => pixels(jpeg::is_decodable(payload)),
        Format::Png => pixels(png::is_decodable(payload)),
        Format::H265 | Format::Av1 | Format::I420(..) | Format::Rgb8(_) => None,
    }
}

/// Returns true if the encoding is that of blocks of sound, or of packets of Opus.
impl Drop for Publisher {
    fn drop(&mut self) {
        // End the feedback watches.
        self.shared.closed.store(true, Ordering::Release);
        self.shared.change.notify(usize::MAX);
        self.node.commands().send(Command::Unpublish(self.id, None));
    }
}

/// `Publisher` is `Send` but not `Sync`.
const _: fn() = || {
    const fn is_send<T: Send>() {}
    is_send::<Publisher>();
    is_send::<RawSample>();
};

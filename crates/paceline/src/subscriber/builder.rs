//! The request of a subscriber, and its declaration.

use super::draft::{Draft, public_pattern};
use super::{Subscriber, Subscription};
use crate::Sample;
use crate::contract::{Offer, Quote};
use crate::error::{SubscribeError, set};
use crate::history::History;
use crate::node::Node;
use crate::shell::command::{Command, TriedQuote};
use crate::shell::held::HeldBuffer;
use crate::shell::sink::Sink;
use paceline_proto::control::{Elastic, SubscriptionSpec, TrafficTrial};
use paceline_proto::{Form, Proxy, Rate, Retransmit, SubscriptionId};
use paceline_sched::LossTolerance;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// Configures and declares a [`Subscriber`]. Created by [`Node::subscriber`].
///
/// By default a subscription requests every sample as published, as best effort. The setters take
/// plain values; [`Self::declare`] reports the first wrong one.
///
/// ```
/// use std::time::Duration;
///
/// # let node = paceline::Node::builder().isolated().open()?;
/// let mut camera = node.publisher("robot/camera").hz(30.0).declare()?;
/// let mut pictures = node
///     .subscriber("robot/*")
///     .max_hz(10.0)
///     .within(Duration::from_millis(200))
///     .loss(1, 10) // in each 10 consecutive samples at most 1 may be late
///     .declare()?;
/// camera.put("a picture")?;
/// assert_eq!(pictures.recv_timeout(Duration::from_secs(5))?.payload, "a picture");
///
/// let error = node.subscriber("robot/*").max_hz(-1.0).declare().err().unwrap();
/// assert!(error.to_string().contains("-1"), "{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A request with a delay bound is a contract: each path grants or refuses it, and
/// [`SubscriberEvent`](crate::SubscriberEvent) reports the answer.
#[must_use = "nothing is subscribed to before declare() or callback()"]
pub struct SubscriberBuilder<'a> {
    node: &'a Node,
    /// The settings, or the first wrong value.
    draft: Result<Draft, SubscribeError>,
}

impl Node {
    /// Returns a builder for a subscriber to `pattern`: a tag in which `*` matches one chunk and
    /// `**` any number of chunks, such as `robot/**`.
    ///
    /// [`SubscriberBuilder::declare`] reports an invalid pattern, and one that begins with `@`.
    pub fn subscriber(&self, pattern: &str) -> SubscriberBuilder<'_> {
        SubscriberBuilder::new(self, pattern)
    }
}

impl<'a> SubscriberBuilder<'a> {
    pub(crate) fn new(node: &'a Node, pattern: &str) -> Self {
        let spec = public_pattern(pattern).map(SubscriptionSpec::all_of);
        Self { node, draft: spec.map(Draft::new) }
    }

    /// A builder that starts with an existing request, for a change of it.
    pub(crate) fn of(node: &'a Node, mut spec: SubscriptionSpec) -> Self {
        spec.or_stop = false;
        Self { node, draft: Ok(Draft::new(spec)) }
    }

    pub(super) fn set(
        mut self,
        setting: impl FnOnce(&mut Draft) -> Result<(), SubscribeError>,
    ) -> Self {
        set(&mut self.draft, setting);
        self
    }

    /// Applies a setting that cannot be wrong.
    fn with(mut self, setting: impl FnOnce(&mut SubscriptionSpec)) -> Self {
        if let Ok(draft) = &mut self.draft {
            setting(&mut draft.spec);
        }
        self
    }

    /// Stops the stream if a path refuses a change ([`Node::change`](crate::Node::change)).
    ///
    /// By default a refused change leaves the old request in force. Has no effect on a new
    /// subscription.
    pub fn or_stop(self) -> Self {
        self.with(|spec| spec.or_stop = true)
    }

    /// Accepts only paths on which every link is encrypted (`quic/`, `tls/`) or stays on one host.
    ///
    /// A path with another link is refused ([`RefusalReason::Unencrypted`](crate::contract::RefusalReason)). Relays
    /// on the path can still read the samples.
    pub fn require_encrypted(self) -> Self {
        self.with(|spec| spec.encrypted = true)
    }

    /// Resets the request to every sample as published, as best effort: clears rate, size, audio,
    /// bit rate, quality, their reductions, delay bound, loss tolerance, idle time, opposite stream and spare.
    pub fn as_published(self) -> Self {
        self.set(|draft| {
            draft.elastic = Elastic::none(Form::FULL);
            let spec = &mut draft.spec;
            spec.form = Form::FULL;
            (spec.within, spec.loss) = (None, None);
            (spec.idle, spec.with, spec.spare) = (None, None, false);
            Ok(())
        })
    }

    /// Requests one sample in `n`, from 1 to 4,294,967,295. Defaults to every sample.
    ///
    /// With [`Self::max_hz`] both limits hold. In a [change](crate::Node::change) the first of the two calls replaces the rate.
    pub fn every(self, n: u32) -> Self {
        self.set(|draft| draft.every(n))
    }

    /// Requests at most `hertz` samples per second, evenly spaced, from 0.001 to 1,000,000. Defaults
    /// to every sample.
    ///
    /// With [`Self::every`] both limits hold: the samples that remain after one in n are limited. Streams of equal rates
    /// select samples of the same capture times, also those of different publishers whose periods are both declared or
    /// both not.
    pub fn max_hz(self, hertz: f64) -> Self {
        self.set(|draft| draft.max_hz(hertz))
    }

    /// Requests one sample in n and at most a number per second, as [`Self::every`] and [`Self::max_hz`] do. The bit rate is
    /// set by [`Self::bitrate`] alone.
    pub fn rate(self, rate: Rate) -> Self {
        self.set(|draft| {
            draft.rate(rate);
            Ok(())
        })
    }

    /// Requests pictures of `width` by `height` pixels, each from 1 to 16,384. Defaults to the
    /// published size.
    pub fn size(self, width: u32, height: u32) -> Self {
        self.set(|draft| draft.size(width, height))
    }

    /// Accepts a reduction of the rate down to `hertz`, below [`Self::max_hz`]: the contract is elastic.
    ///
    /// An elastic contract begins with the most that the path grants. When the capacity falls, or a contract with a higher
    /// [importance](Self::importance) needs the room, it is reduced step by step, and it is restored when there is room
    /// again, after 5 s at the earliest. Each step is granted along the whole path and announced by
    /// [`SubscriberEvent::Adapted`](crate::SubscriberEvent::Adapted); the publisher receives
    /// [`PublisherEvent::Granted`](crate::PublisherEvent::Granted). It is refused only if the path cannot carry the least step.
    ///
    /// The steps of a range are two thirds, a half, a third, a quarter, … of its highest value: 30, 20, 15, 10, 7.5 and 5 Hz.
    /// If rates, sizes and bit rates may be reduced, their steps alternate. Publishers that match one pattern share a step.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let node = paceline::Node::builder().isolated().open()?;
    /// let camera = node
    ///     .subscriber("robot/camera")
    ///     .max_hz(30.0)
    ///     .min_hz(5.0)
    ///     .size(640, 480)
    ///     .or_size(320, 240)
    ///     .within(Duration::from_millis(200))
    ///     .importance(20)
    ///     .declare()?;
    /// let error = node.subscriber("robot/camera").min_hz(5.0).within(Duration::from_millis(200)).declare().err();
    /// assert!(error.unwrap().to_string().contains("max_hz"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn min_hz(self, hertz: f64) -> Self {
        self.set(|draft| draft.min_hz(hertz))
    }

    /// Accepts smaller pictures of `width` by `height` pixels: the contract is elastic ([`Self::min_hz`]). Call it once for
    /// each smaller size, at most 8 times, from the largest to the smallest, after [`Self::size`].
    pub fn or_size(self, width: u32, height: u32) -> Self {
        self.set(|draft| draft.or_size(width, height))
    }

    /// Accepts a reduction of the bit rate down to `bits_per_s`, below [`Self::bitrate`]: the contract is elastic
    /// ([`Self::min_hz`]).
    pub fn min_bitrate(self, bits_per_s: u32) -> Self {
        self.set(|draft| draft.min_bitrate(bits_per_s))
    }

    /// Sets the importance of the contract, from 0 to 100; higher is more important. Defaults to 50.
    ///
    /// When the capacity of a link falls, more important contracts keep their place, and elastic contracts make room for
    /// more important ones. Importance does not change the order of samples on a link: deadlines do.
    pub fn importance(self, importance: u8) -> Self {
        self.set(|draft| draft.importance(importance))
    }

    /// Requests sound with `rate` samples per second and channel, from 1,000 to 384,000, in
    /// `channels` channels, from 1 to 8. Other samples are delivered unchanged. Defaults to sound as
    /// published.
    pub fn audio(self, rate: u32, channels: u8) -> Self {
        self.set(|draft| draft.audio(rate, channels))
    }

    /// Limits JPEG pictures, H.264 video and sound to a bit rate, in bits of payload per second. The quality is
    /// reduced as needed. By default only contracts of pictures have a limit, which follows from the size; other samples
    /// are delivered unchanged.
    ///
    /// Of other data, and of pictures that are neither coded nor scaled, whole samples are left out, evenly: in any time t at
    /// most the bit rate × t passes, and two samples more. A sample that is larger than a second of the bit rate passes too, but
    /// rarely. Coded sound is delivered unchanged.
    ///
    /// Pictures and video accept rates from 1,000. Below the lowest quality, pictures are left out.
    ///
    /// Sound is coded as Opus, at 6,000 to 510,000 bit/s, by default at the next sample rate of Opus and at most 2
    /// channels. Each sample is one packet, with the encoding `audio/opus;rate=48000;channels=1`, which
    /// `paceline_media::audio::OpusDecoder` decodes. With [`Self::audio`], the rate must be 8,000, 12,000, 16,000,
    /// 24,000 or 48,000, in 1 or 2 channels.
    pub fn bitrate(self, bits_per_s: u32) -> Self {
        self.set(|draft| draft.bitrate(bits_per_s))
    }

    /// Limits the quality of JPEG pictures, from 1 to 100. Defaults to 80 for scaled pictures; other samples are
    /// delivered unchanged.
    pub fn quality(self, quality: u8) -> Self {
        self.set(|draft| draft.quality(quality))
    }

    /// Sets the retransmission of samples that QUIC links lose. Defaults to
    /// [`Retransmit::Selective`].
    ///
    /// If several subscriptions share a stream, the strictest setting applies.
    pub fn retransmit(self, retransmit: Retransmit) -> Self {
        self.with(|spec| spec.retransmit = retransmit)
    }

    /// Sets the priority level of the contract on links with the policy `static-priority`; the lowest is served first.
    /// By default a shorter part of the delay bound has a higher priority. On other links it has no effect.
    pub fn priority(self, level: u32) -> Self {
        self.with(|spec| spec.level = Some(level))
    }

    /// Ties the contract to that of the opposite stream `tag`: both are granted, or neither.
    ///
    /// The opposite stream is published on this host, and a program on the publisher's host subscribes to it with a
    /// contract. If either half is refused or lost, both are released and neither is carried, with
    /// [`RefusalReason::Opposite`](crate::contract::RefusalReason::Opposite) as the reason of the other half.
    pub fn with_tag(self, tag: &str) -> Self {
        self.set(|draft| draft.with_tag(tag))
    }

    /// Reserves a second path for the contract, without the links of the first one and, if possible, without its relays:
    /// both paths are granted, or neither.
    ///
    /// Samples travel on the first path. When a link or relay of it fails, they are sent on the second one at once,
    /// without another request. The subscription receives [`SubscriberEvent::Granted`](crate::SubscriberEvent::Granted)
    /// with the new path, and a new spare is requested. If there is none,
    /// [`SubscriberEvent::NoSpare`](crate::SubscriberEvent::NoSpare) names the reason and the contract stays in force.
    /// Best-effort traffic may use the second path until then.
    pub fn spare(self) -> Self {
        self.with(|spec| spec.spare = true)
    }

    /// Releases the reservation of the contract when the publisher has sent nothing for `time`, at least 1 s and two
    /// of its periods. By default an unused reservation stays.
    ///
    /// The subscription then receives [`SubscriberEvent::Withdrawn`](crate::SubscriberEvent::Withdrawn), and
    /// [`BestEffort::Idle`](crate::contract::BestEffort::Idle) as the reason. The next sample requests the contract
    /// again; until the answer, samples arrive as best effort. The path may then refuse the request.
    pub fn idle(self, time: Duration) -> Self {
        self.set(|draft| draft.idle(time))
    }

    /// Requests a delay bound, above 0: the longest time from publish to delivery. By default no
    /// bound applies.
    pub fn within(self, bound: Duration) -> Self {
        self.set(|draft| draft.within(bound))
    }

    /// Requests a loss tolerance: at most `x` samples of each window of `y` may miss their
    /// deadline. Defaults to the publisher's.
    ///
    /// `x` is from 0 to `y`, and `y` from 1 to [`LossTolerance::Y_MAX`].
    pub fn loss(self, x: u32, y: u32) -> Self {
        self.set(|draft| {
            draft.spec.loss = Some(LossTolerance::new(x, y)?);
            Ok(())
        })
    }

    /// Replaces one value of the request by the first one that a refusal offers: the rate, else the size, the bit rate,
    /// the delay bound, or the loss tolerance. Rate and size are both replaced if they are one alternative. An empty
    /// offer changes nothing.
    ///
    /// Each offered value suffices by itself: for another choice, use the setter of its property.
    ///
    /// ```no_run
    /// # use paceline::{Node, SubscriberEvent};
    /// # use std::time::Duration;
    /// # let node = Node::open()?;
    /// let camera = node.subscriber("robot/camera").within(Duration::from_millis(200)).declare()?;
    /// while let Some(event) = camera.try_event() {
    ///     if let SubscriberEvent::Refused(_, refusal) = event {
    ///         camera.change(|request| request.offered(&refusal.offer))?;
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn offered(self, offer: &Offer) -> Self {
        self.set(|draft| draft.offered(offer))
    }

    /// Sets the node that scales the samples. Defaults to the publisher's node.
    ///
    /// With [`Proxy::Node`], the full stream flows to that node and the scaled one from there on. The request is refused
    /// while no reachable node has the name, or no path leads through it.
    ///
    /// ```no_run
    /// use paceline::contract::Proxy;
    /// # let node = paceline::Node::open()?;
    /// let camera = node.subscriber("robot/camera").every(3).proxy(Proxy::Node("mast".into()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn proxy(self, proxy: Proxy) -> Self {
        self.set(|draft| draft.proxy(proxy))
    }

    /// Sets the length of the queue in samples, from 1 to 65,536. Defaults to 64. A full queue
    /// drops its oldest sample.
    pub fn queue(self, samples: usize) -> Self {
        self.set(|draft| draft.queue(samples))
    }

    /// Stores the received samples on this node, for any node to pull, until the subscription ends.
    /// By default it stores none.
    pub fn history(self, history: History) -> Self {
        self.set(|draft| {
            history.limits()?;
            draft.spec.holds = true;
            draft.history = Some(history);
            Ok(())
        })
    }

    /// Marks the subscription as the input of a pull buffer.
    pub(crate) fn holding(self) -> Self {
        self.with(|spec| spec.holds = true)
    }

    /// Restricts the subscription to publishers of this node, for the buffer of a publisher.
    pub(crate) fn local(self) -> Self {
        self.with(|spec| spec.local = true)
    }

    /// Returns the current request: rate and size, delay bound, and loss tolerance.
    ///
    /// # Errors
    /// The first wrong value, as [`Self::declare`] reports it.
    pub fn request(
        &self,
    ) -> Result<(Form, Option<Duration>, Option<LossTolerance>), SubscribeError> {
        let SubscriptionSpec { form, within, loss, .. } = &self.checked()?.spec;
        Ok((*form, within.map(Into::into), *loss))
    }

    /// Checks the request as [`Self::declare`] does, without subscribing to anything.
    ///
    /// # Errors
    /// The first wrong value, as [`Self::declare`] reports it.
    pub fn check(&self) -> Result<(), SubscribeError> {
        self.checked().map(drop)
    }

    /// Returns the request, for a node that the program steps itself ([`paceline_node::Node::subscribe`]). What this node does
    /// when it delivers (queue, buffer, order, age limits) is not part of it.
    ///
    /// # Errors
    /// The first wrong value, as [`Self::declare`] reports it.
    pub fn spec(&self) -> Result<SubscriptionSpec, SubscribeError> {
        Ok(self.checked()?.request())
    }

    fn checked(&self) -> Result<&Draft, SubscribeError> {
        let draft = self.draft.as_ref().map_err(Clone::clone)?;
        draft.check()?;
        Ok(draft)
    }

    fn into_draft(self) -> Result<(&'a Node, Draft), SubscribeError> {
        let draft = self.draft?;
        draft.check()?;
        Ok((self.node, draft))
    }

    /// Returns the node and the valid request.
    pub(crate) fn into_parts(self) -> Result<(&'a Node, SubscriptionSpec), SubscribeError> {
        let (node, draft) = self.into_draft()?;
        Ok((node, draft.request()))
    }

    /// Asks the paths of all matching publishers whether they would grant this request now. Returns
    /// one answer per publisher, sorted by tag. The answers to an elastic request are those for the first step that all paths
    /// would grant.
    ///
    /// Reserves nothing and subscribes to nothing. Blocks for at most 500 ms, the time that nodes
    /// have to answer, for each step.
    ///
    /// # Errors
    /// The errors of [`Self::declare`].
    pub fn quotes(&self) -> Result<Vec<Quote>, SubscribeError> {
        let quotes = self.quotes_of(Vec::new())?;
        Ok(quotes.into_iter().map(|(quote, _)| quote).collect())
    }

    /// As [`Self::quotes`], with the trials that each path would grant instead, one bit each.
    pub(crate) fn quotes_of(
        &self,
        trials: Vec<TrafficTrial>,
    ) -> Result<Vec<TriedQuote>, SubscribeError> {
        self.ask(|spec, reply| Command::Ask(spec, trials.clone(), reply))
    }

    /// As [`Self::quotes`], for a change of a subscription to this request.
    pub(crate) fn change_quotes(
        &self,
        changed: SubscriptionId,
    ) -> Result<Vec<Quote>, SubscribeError> {
        let quotes = self.ask(|spec, reply| Command::AskChange(changed, spec, reply))?;
        Ok(quotes.into_iter().map(|(quote, _)| quote).collect())
    }

    /// Sends the command for a valid request, and returns the answers. An elastic request is repeated at lower steps until it
    /// is granted, as a subscription would repeat it.
    fn ask(
        &self,
        command: impl Fn(SubscriptionSpec, Sender<TriedQuote>) -> Command,
    ) -> Result<Vec<TriedQuote>, SubscribeError> {
        let mut spec = self.checked()?.request();
        loop {
            let mut quotes = self.ask_once(&command, &spec)?;
            let reduced =
                quotes.iter().filter_map(|(quote, _)| spec.reduced(quote.refusal.as_ref()?));
            let step = |spec: &SubscriptionSpec| spec.steps().map(|(_, step)| step);
            let lowest = reduced.max_by_key(step);
            let Some(lowest) = lowest else {
                quotes.iter_mut().for_each(|(quote, _)| quote.step = step(&spec));
                quotes.sort_by(|(a, _), (b, _)| (&a.tag, a.publisher).cmp(&(&b.tag, b.publisher)));
                return Ok(quotes);
            };
            spec = lowest;
        }
    }

    fn ask_once(
        &self,
        command: impl Fn(SubscriptionSpec, Sender<TriedQuote>) -> Command,
        spec: &SubscriptionSpec,
    ) -> Result<Vec<TriedQuote>, SubscribeError> {
        let (reply, answers) = channel();
        if !self.node.commands().send(command(spec.clone(), reply)) {
            return Err(SubscribeError::Closed);
        }
        Ok(answers.iter().collect())
    }

    /// Announces the subscription and returns its subscriber.
    ///
    /// # Errors
    /// Reports the first wrong value of the builder, with the allowed range:
    /// - [`SubscribeError::Pattern`] or [`SubscribeError::Private`] for the pattern,
    /// - [`SubscribeError::Rate`], [`SubscribeError::EveryZero`], [`SubscribeError::Size`],
    ///   [`SubscribeError::Audio`], [`SubscribeError::ProxyName`], [`SubscribeError::ZeroWithin`], [`SubscribeError::Idle`], [`SubscribeError::IdleWithoutContract`],
    ///   [`SubscribeError::TiedWithoutContract`], [`SubscribeError::Elastic`], [`SubscribeError::ElasticWithoutContract`],
    ///   [`SubscribeError::Importance`], [`SubscribeError::Contract`],
    ///   [`SubscribeError::Queue`] or [`SubscribeError::Limits`] for a setting, and
    /// - [`SubscribeError::Contradiction`] for two settings that exclude each other, such as a
    ///   picture size and sound of one tag.
    ///
    /// [`SubscribeError::Closed`] if the node is closed.
    pub fn declare(self) -> Result<Subscriber, SubscribeError> {
        let (node, mut draft) = self.into_draft()?;
        let timing = draft.take_method(node.is_realtime())?;
        let (spec, Draft { queue, history, .. }) = (draft.request(), draft);
        let held = history.map(HeldBuffer::open).transpose()?;
        let sink = Sink::with_queue(&spec, queue).holding(held).timed(timing, node.clock());
        let sink = sink.counted(spec.wants_contract().then(|| node.depth()));
        Ok(Subscriber { subscription: Subscription::declare(node, spec, sink)? })
    }

    /// Announces the subscription and calls `deliver` with each sample.
    ///
    /// The call happens on the receiving thread, so `deliver` must not block.
    ///
    /// # Errors
    /// The errors of [`Self::declare`].
    pub fn callback(
        self,
        deliver: impl FnMut(Sample) + Send + 'static,
    ) -> Result<Subscription, SubscribeError> {
        let (node, mut draft) = self.into_draft()?;
        let timing = draft.take_method(node.is_realtime())?;
        let (spec, Draft { history, .. }) = (draft.request(), draft);
        let held = history.map(HeldBuffer::open).transpose()?;
        let sink =
            Sink::with_callback(&spec, Box::new(deliver)).holding(held).timed(timing, node.clock());
        Subscription::declare(node, spec, sink)
    }
}

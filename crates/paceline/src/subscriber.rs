//! Subscribers: requests for a rate, size, delay bound and loss tolerance, and delivery of samples.

use crate::arrival::Arrival;
use crate::buffer::History;
use crate::error::{Contradiction, RecvError, SubscribeError};
use crate::node::Node;
use crate::prospect::Prospect;
use crate::publisher::HERTZ_MAX;
use crate::shell::engine::Command;
use crate::shell::sink::Sink;
use bytes::Bytes;
use event_listener::{EventListener, Listener};
use paceline_media::audio::{CHANNELS_MAX, RATE_MAX, RATE_MIN};
use paceline_proto::control::{Grant, Refusal, SubscriptionSpec, Unpromised};
use paceline_proto::form::Audio;
use paceline_proto::{
    Drops, Encoding, Excess, Form, Kind, NodeId, Pattern, Proxy, PublisherId, Rate, Retransmit,
    Size, SubscriptionId, Tag, Timestamp,
};
use paceline_sched::LossTolerance;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The default length of a subscriber's queue, in samples.
const QUEUE_SAMPLES: usize = 64;
const QUEUE_SAMPLES_MAX: usize = 65_536;
/// The longest side of a requested picture, in pixels.
pub(crate) const SIDE_MAX: u32 = paceline_media::SIDE_MAX;
/// Valid sampling rates of a request, in Hz.
pub(crate) const AUDIO_RATES: RangeInclusive<u32> = RATE_MIN..=RATE_MAX;
pub(crate) const AUDIO_CHANNELS: RangeInclusive<u8> = 1..=CHANNELS_MAX;

/// Configures and declares a [`Subscriber`]. Created by [`Node::subscriber`].
///
/// By default a subscription requests every sample as published, as best effort.
#[must_use = "nothing is subscribed to before declare() or callback()"]
pub struct SubscriberBuilder<'a> {
    node: &'a Node,
    spec: SubscriptionSpec,
    queue: usize,
    history: Option<History>,
    /// The option that set the rate.
    rate_by: Option<&'static str>,
}

impl<'a> SubscriberBuilder<'a> {
    pub(crate) const fn new(node: &'a Node, pattern: Pattern) -> Self {
        let spec = SubscriptionSpec::all_of(pattern);
        Self { node, spec, queue: QUEUE_SAMPLES, history: None, rate_by: None }
    }

    /// A builder that starts with an existing request, for a change of it.
    pub(crate) const fn of(node: &'a Node, mut spec: SubscriptionSpec) -> Self {
        spec.or_stop = false;
        Self { node, spec, queue: QUEUE_SAMPLES, history: None, rate_by: None }
    }

    /// Stops the stream if a path refuses a change ([`Node::change`](crate::Node::change)).
    ///
    /// By default a refused change leaves the old request in force. Has no effect on a new
    /// subscription.
    pub const fn or_stop(mut self) -> Self {
        self.spec.or_stop = true;
        self
    }

    /// Resets the request to every sample as published, as best effort: clears rate, size, audio,
    /// delay bound and loss tolerance.
    pub const fn as_published(mut self) -> Self {
        self.spec.form = Form::FULL;
        (self.spec.within, self.spec.loss) = (None, None);
        self
    }

    /// Requests one sample in `n`.
    ///
    /// # Errors
    /// [`SubscribeError::EveryZero`] if `n` is 0, and [`SubscribeError::Contradiction`] after
    /// [`Self::max_hz`].
    pub fn every(mut self, n: u32) -> Result<Self, SubscribeError> {
        Contradiction::refuse(&mut self.rate_by, "every")?;
        self.spec.form.rate = Rate::Every(NonZeroU32::new(n).ok_or(SubscribeError::EveryZero)?);
        Ok(self)
    }

    /// Requests at most `hertz` samples per second, evenly spaced.
    ///
    /// # Errors
    /// [`SubscribeError::Rate`] unless `hertz` is from 0.001 to 1,000,000, and
    /// [`SubscribeError::Contradiction`] after [`Self::every`].
    pub fn max_hz(mut self, hertz: f64) -> Result<Self, SubscribeError> {
        Contradiction::refuse(&mut self.rate_by, "max_hz")?;
        let refuse = SubscribeError::Rate(hertz);
        if !(hertz > 0.0 && hertz <= HERTZ_MAX) {
            return Err(refuse);
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked above"
        )]
        let millihertz = (hertz * 1_000.0).round() as u32;
        self.spec.form.rate = Rate::Max(NonZeroU32::new(millihertz).ok_or(refuse)?);
        Ok(self)
    }

    /// Requests pictures of `width` by `height` pixels.
    ///
    /// # Errors
    /// [`SubscribeError::Size`] unless both sides are from 1 to 16384 pixels.
    pub fn size(mut self, width: u32, height: u32) -> Result<Self, SubscribeError> {
        if width == 0 || height == 0 || width > SIDE_MAX || height > SIDE_MAX {
            return Err(SubscribeError::Size { width, height });
        }
        self.spec.form.size = Some(Size { width, height });
        Ok(self)
    }

    /// Requests sound with `rate` samples per second and channel, in `channels` channels. Other
    /// samples are delivered unchanged.
    ///
    /// # Errors
    /// [`SubscribeError::Audio`] unless `rate` is from 1,000 to 384,000 and `channels` from 1 to 8.
    pub fn audio(mut self, rate: u32, channels: u8) -> Result<Self, SubscribeError> {
        if !AUDIO_RATES.contains(&rate) || !AUDIO_CHANNELS.contains(&channels) {
            return Err(SubscribeError::Audio { rate, channels });
        }
        self.spec.form.audio = Some(Audio { rate, channels });
        Ok(self)
    }

    /// Sets the retransmission of samples that UDP links lose. Defaults to
    /// [`Retransmit::Selective`].
    ///
    /// If several subscriptions share a stream, the strictest setting applies.
    pub const fn retransmit(mut self, retransmit: Retransmit) -> Self {
        self.spec.retransmit = retransmit;
        self
    }

    /// Requests a delay bound: the longest time from publish to delivery.
    ///
    /// # Errors
    /// [`SubscribeError::ZeroWithin`] if `bound` is zero.
    pub fn within(mut self, bound: Duration) -> Result<Self, SubscribeError> {
        if bound.is_zero() {
            return Err(SubscribeError::ZeroWithin);
        }
        self.spec.within = Some(bound.into());
        Ok(self)
    }

    /// Requests a loss tolerance: at most `x` samples of each window of `y` may miss their
    /// deadline.
    ///
    /// # Errors
    /// [`SubscribeError::Contract`] if the two numbers are not a valid loss tolerance.
    pub fn loss(mut self, x: u32, y: u32) -> Result<Self, SubscribeError> {
        self.spec.loss = Some(LossTolerance::new(x, y)?);
        Ok(self)
    }

    /// Sets the node that scales the samples. Defaults to the publisher's node.
    pub const fn proxy(mut self, proxy: Proxy) -> Self {
        self.spec.proxy = proxy;
        self
    }

    /// Sets the length of the queue in samples, from 1 to 65,536. Defaults to 64. A full queue
    /// drops its oldest sample.
    ///
    /// # Errors
    /// [`SubscribeError::Queue`] if `samples` is out of range.
    pub fn queue(mut self, samples: usize) -> Result<Self, SubscribeError> {
        if samples == 0 || samples > QUEUE_SAMPLES_MAX {
            return Err(SubscribeError::Queue(samples));
        }
        self.queue = samples;
        Ok(self)
    }

    /// Stores the received samples on this node, for any node to pull, until the subscription ends.
    pub const fn history(mut self, history: History) -> Self {
        self.spec.holds = true;
        self.history = Some(history);
        self
    }

    /// Marks the subscription as the input of a pull buffer.
    pub(crate) const fn holding(mut self) -> Self {
        self.spec.holds = true;
        self
    }

    /// Restricts the subscription to publishers of this node, for the buffer of a publisher.
    pub(crate) const fn local(mut self) -> Self {
        self.spec.local = true;
        self
    }

    /// Returns the current request: rate and size, delay bound, and loss tolerance.
    #[must_use]
    pub fn request(&self) -> (Form, Option<Duration>, Option<LossTolerance>) {
        (self.spec.form, self.spec.within.map(Into::into), self.spec.loss)
    }

    pub(crate) fn into_parts(self) -> (&'a Node, SubscriptionSpec) {
        (self.node, self.spec)
    }

    /// Asks the paths of all matching publishers whether they would grant this request now. Returns
    /// one answer per publisher, sorted by tag.
    ///
    /// Reserves nothing and subscribes to nothing. Blocks for at most 500 ms, the time that nodes
    /// have to answer.
    ///
    /// # Errors
    /// The errors of [`Self::declare`].
    pub fn ask(&self) -> Result<Vec<Prospect>, SubscribeError> {
        self.check()?;
        let (reply, answers) = std::sync::mpsc::channel();
        if !self.node.commands().send(Command::Ask(self.spec.clone(), reply)) {
            return Err(SubscribeError::Closed);
        }
        let mut prospects: Vec<Prospect> = answers.iter().collect();
        prospects.sort_by(|a, b| (&a.tag, a.publisher).cmp(&(&b.tag, b.publisher)));
        Ok(prospects)
    }

    /// Refuses options that exclude each other.
    fn check(&self) -> Result<(), Contradiction> {
        let Form { size, audio, .. } = self.spec.form;
        // A pattern with wildcards may match both pictures and sound.
        match self.spec.pattern.is_tag() && size.is_some() && audio.is_some() {
            true => Err(Contradiction { one: "size", other: "audio" }),
            false => Ok(()),
        }
    }

    /// Announces the subscription and returns its subscriber.
    ///
    /// # Errors
    /// [`SubscribeError::Closed`] if the node is closed, and [`SubscribeError::Contradiction`] if
    /// both a picture size and sound are requested of one tag.
    pub fn declare(self) -> Result<Subscriber, SubscribeError> {
        self.check()?;
        let held = self.history.map(History::hold);
        let sink = Sink::with_queue(&self.spec, self.queue).holding(held);
        Ok(Subscriber { subscription: Subscription::declare(self.node, self.spec, sink)? })
    }

    /// Announces the subscription and calls `deliver` with each sample.
    ///
    /// The call happens on the receiving thread, so `deliver` must not block.
    ///
    /// # Errors
    /// The errors of [`Self::declare`].
    pub fn callback(
        self,
        deliver: impl FnMut(Delivery) + Send + 'static,
    ) -> Result<Subscription, SubscribeError> {
        self.check()?;
        let held = self.history.map(History::hold);
        let sink = Sink::with_callback(&self.spec, Box::new(deliver)).holding(held);
        Subscription::declare(self.node, self.spec, sink)
    }
}

/// A delivered sample.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The tag of its publisher.
    pub tag: Tag,
    /// The publisher.
    pub publisher: PublisherId,
    /// The publisher's sequence number.
    pub seq: u64,
    /// The capture time by the publisher's clock.
    pub captured: Timestamp,
    /// The age at delivery: the time since publish.
    pub age: Duration,
    /// True if the age exceeds the delay bound.
    pub late: bool,
    /// The kind of the sample.
    pub kind: Kind,
    /// The media type.
    pub encoding: Encoding,
    /// The message.
    pub payload: Bytes,
    /// The publisher's attachment, unchanged.
    pub attachment: Option<Arc<[u8]>>,
}

/// An event of a subscription.
#[derive(Clone, Debug, PartialEq)]
pub enum SubscriberEvent {
    /// The set of publishers that the subscription receives has changed; lists all of them.
    Publishers(Vec<PublisherId>),
    /// A path refused the request for a publisher's stream.
    Refused(PublisherId, Refusal),
    /// The path of a publisher's stream has granted the request, or has changed its grant. The
    /// grant lists the delay bound, the nodes and links, and the share of each.
    Granted(Grant),
    /// A grant or refusal of a publisher's stream is no longer valid, and no contract is in force.
    /// The path is lost, or the subscription no longer requests a contract.
    Over(PublisherId),
    /// A publisher's stream is delivered as best effort although a contract was requested. Lasts
    /// until the path grants or refuses the contract, or the publisher ends.
    Unpromised(PublisherId, Unpromised),
    /// A publisher sent more than the grant: samples arrived too early or were too long. They were
    /// queued behind all contracted traffic.
    ///
    /// Reported at most once per second for each node of the path.
    Excess {
        /// The publisher of the samples.
        publisher: PublisherId,
        /// The node whose link counted them. Each node of the path counts for itself.
        node: NodeId,
        /// The display name of that node.
        node_name: String,
        /// The total since that node opened the stream.
        excess: Excess,
    },
    /// The request has changed, by this program or by another node
    /// ([`Node::change`](crate::Node::change)). The old grant stays in force until the paths have
    /// answered.
    Changed {
        /// The number of the request, repeated in its answers ([`Grant::revision`],
        /// [`Refusal::revision`]).
        revision: u64,
        /// The requested rate and size.
        form: Form,
        /// The requested delay bound.
        within: Option<Duration>,
        /// The requested loss tolerance.
        loss: Option<LossTolerance>,
    },
    /// A path refused the last change. The previous request is active again; its grant stayed in
    /// force throughout.
    ChangeRefused {
        /// The reason, for each publisher.
        refusals: Vec<Refusal>,
        /// The rate and size of the previous request.
        form: Form,
        /// The delay bound of the previous request.
        within: Option<Duration>,
        /// The loss tolerance of the previous request.
        loss: Option<LossTolerance>,
    },
}

/// A subscription that delivers samples to a callback. Created by [`SubscriberBuilder::callback`].
///
/// Dropping it ends the subscription. Until then it keeps its node open.
pub struct Subscription {
    id: SubscriptionId,
    sink: Arc<Sink>,
    node: Node,
}

impl Subscription {
    pub(crate) fn declare(
        node: &Node,
        spec: SubscriptionSpec,
        sink: Sink,
    ) -> Result<Self, SubscribeError> {
        let sink = Arc::new(sink);
        let (reply, answer) = std::sync::mpsc::channel();
        node.commands().send(Command::Subscribe(spec, sink.clone(), reply));
        let id = answer.recv().map_err(|_| SubscribeError::Closed)?;
        Ok(Self { id, sink, node: node.clone() })
    }

    /// Returns the identifier of this subscription.
    #[must_use]
    pub const fn id(&self) -> SubscriptionId {
        self.id
    }

    pub(crate) const fn node(&self) -> &Node {
        &self.node
    }

    /// Returns the samples dropped at this subscription, by reason.
    #[must_use]
    pub fn drops(&self) -> Drops {
        self.sink.counts.drops.load()
    }

    /// Returns the next event, or `None` if there is none. Does not block.
    #[must_use]
    pub fn try_event(&self) -> Option<SubscriberEvent> {
        self.sink.pop_event()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.sink.close();
        self.node.commands().send(Command::Unsubscribe(self.id));
    }
}

/// The result of one look at the queue.
enum Next {
    Sample(Delivery),
    Wait(EventListener),
}

/// Receives the samples of a subscription through a bounded queue. Created by
/// [`SubscriberBuilder::declare`].
///
/// Dropping it ends the subscription. Until then it keeps its node open.
pub struct Subscriber {
    subscription: Subscription,
}

impl Subscriber {
    /// Returns the identifier of this subscription.
    #[must_use]
    pub const fn id(&self) -> SubscriptionId {
        self.subscription.id()
    }

    pub(crate) const fn subscription(&self) -> &Subscription {
        &self.subscription
    }

    /// Blocks until the next sample arrives and returns it.
    ///
    /// # Errors
    /// [`RecvError::Closed`] if the node is closed and the queue is empty.
    pub fn recv(&mut self) -> Result<Delivery, RecvError> {
        self.wait(None)
    }

    /// Blocks for at most `timeout` until the next sample arrives and returns it.
    ///
    /// # Errors
    /// [`RecvError::Timeout`] if none arrives in time, and [`RecvError::Closed`] if the node is
    /// closed and the queue is empty.
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Delivery, RecvError> {
        self.wait(Some(Instant::now() + timeout))
    }

    fn wait(&self, until: Option<Instant>) -> Result<Delivery, RecvError> {
        loop {
            match (self.next()?, until) {
                (Next::Sample(delivery), _) => return Ok(delivery),
                (Next::Wait(arrival), None) => arrival.wait(),
                (Next::Wait(arrival), Some(until)) => {
                    if arrival.wait_deadline(until).is_none() {
                        return self.subscription.sink.pop().ok_or(RecvError::Timeout);
                    }
                }
            }
        }
    }

    /// Returns the next sample, or a listener for its arrival.
    fn next(&self) -> Result<Next, RecvError> {
        let sink = &self.subscription.sink;
        if let Some(delivery) = sink.pop() {
            return Ok(Next::Sample(delivery));
        }
        let arrival = sink.arrival.listen();
        // A sample may have arrived before the listener existed.
        match sink.pop() {
            Some(delivery) => Ok(Next::Sample(delivery)),
            None if sink.is_closed() => Err(RecvError::Closed),
            None => Ok(Next::Wait(arrival)),
        }
    }

    /// Returns the next queued sample, or `None` if the queue is empty. Does not block.
    #[must_use]
    pub fn try_recv(&mut self) -> Option<Delivery> {
        self.subscription.sink.pop()
    }

    /// Waits for the next sample and returns it. Works on any asynchronous runtime.
    ///
    /// # Errors
    /// [`RecvError::Closed`] if the node is closed and the queue is empty.
    pub async fn recv_async(&mut self) -> Result<Delivery, RecvError> {
        loop {
            match self.next()? {
                Next::Sample(delivery) => return Ok(delivery),
                Next::Wait(arrival) => arrival.await,
            }
        }
    }

    /// Returns a notification for the next sample or event, or the end of the subscription.
    ///
    /// Create it before the calls of [`Self::try_recv`], [`Self::try_event`] and
    /// [`Self::is_closed`], so that nothing is missed in between.
    pub fn arrival(&self) -> Arrival {
        Arrival::new(self.subscription.sink.arrival.listen())
    }

    /// Returns true if the node is closed. Samples queued before can still be received.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.subscription.sink.is_closed()
    }

    /// Returns the samples dropped at this subscription, by reason.
    #[must_use]
    pub fn drops(&self) -> Drops {
        self.subscription.drops()
    }

    /// Returns the next event, or `None` if there is none. Does not block.
    #[must_use]
    pub fn try_event(&self) -> Option<SubscriberEvent> {
        self.subscription.try_event()
    }
}

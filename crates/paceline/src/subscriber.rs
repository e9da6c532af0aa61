//! Subscribers: each states its own rate, size, delay bound and loss tolerance.

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

/// Samples that a queue holds if its size is not said.
const QUEUE_SAMPLES: usize = 64;
const QUEUE_SAMPLES_MAX: usize = 65_536;
/// The longest side of a picture that can be asked for.
pub(crate) const SIDE_MAX: u32 = paceline_media::SIDE_MAX;
/// Sound that can be asked for.
pub(crate) const AUDIO_RATES: RangeInclusive<u32> = RATE_MIN..=RATE_MAX;
pub(crate) const AUDIO_CHANNELS: RangeInclusive<u8> = 1..=CHANNELS_MAX;

/// Declares a [`Subscriber`].
#[must_use = "nothing is subscribed to before declare() or callback()"]
pub struct SubscriberBuilder<'a> {
    node: &'a Node,
    spec: SubscriptionSpec,
    queue: usize,
    history: Option<History>,
    /// The option that states the rate.
    rate_by: Option<&'static str>,
}

impl<'a> SubscriberBuilder<'a> {
    pub(crate) const fn new(node: &'a Node, pattern: Pattern) -> Self {
        let spec = SubscriptionSpec::all_of(pattern);
        Self { node, spec, queue: QUEUE_SAMPLES, history: None, rate_by: None }
    }

    /// What is asked for already, to be asked for otherwise.
    pub(crate) const fn of(node: &'a Node, mut spec: SubscriptionSpec) -> Self {
        spec.or_stop = false;
        Self { node, spec, queue: QUEUE_SAMPLES, history: None, rate_by: None }
    }

    /// For a change ([`Node::change`](crate::Node::change)): if a path refuses it, the stream ends. By default a refused
    /// change leaves everything as it was. Means nothing to a new subscription.
    pub const fn or_stop(mut self) -> Self {
        self.spec.or_stop = true;
        self
    }

    /// Everything as it is published, as best effort: what was asked for before is taken back.
    pub const fn as_published(mut self) -> Self {
        self.spec.form = Form::FULL;
        (self.spec.within, self.spec.loss) = (None, None);
        self
    }

    /// One sample in `n`.
    ///
    /// # Errors
    /// [`SubscribeError::EveryZero`], and [`SubscribeError::Contradiction`] with [`Self::max_hz`].
    pub fn every(mut self, n: u32) -> Result<Self, SubscribeError> {
        Contradiction::refuse(&mut self.rate_by, "every")?;
        self.spec.form.rate = Rate::Every(NonZeroU32::new(n).ok_or(SubscribeError::EveryZero)?);
        Ok(self)
    }

    /// At most `hertz` samples per second, evenly spread.
    ///
    /// # Errors
    /// [`SubscribeError::Rate`] below 0.001 Hz and above 1,000,000 Hz, and [`SubscribeError::Contradiction`] with
    /// [`Self::every`].
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

    /// Pictures of this size.
    ///
    /// # Errors
    /// [`SubscribeError::Size`].
    pub fn size(mut self, width: u32, height: u32) -> Result<Self, SubscribeError> {
        if width == 0 || height == 0 || width > SIDE_MAX || height > SIDE_MAX {
            return Err(SubscribeError::Size { width, height });
        }
        self.spec.form.size = Some(Size { width, height });
        Ok(self)
    }

    /// Sound with `rate` samples per second of each of `channels` channels. What is no sound comes as
    /// it is.
    ///
    /// # Errors
    /// [`SubscribeError::Audio`] unless the rate is from 1,000 to 384,000 and there are 1 to 8
    /// channels.
    pub fn audio(mut self, rate: u32, channels: u8) -> Result<Self, SubscribeError> {
        if !AUDIO_RATES.contains(&rate) || !AUDIO_CHANNELS.contains(&channels) {
            return Err(SubscribeError::Audio { rate, channels });
        }
        self.spec.form.audio = Some(Audio { rate, channels });
        Ok(self)
    }

    /// What is done about samples that are lost on links over UDP; [`Retransmit::Selective`] if not said.
    /// Of several subscriptions of one stream the strictest wins.
    pub const fn retransmit(mut self, retransmit: Retransmit) -> Self {
        self.spec.retransmit = retransmit;
        self
    }

    /// The delay bound, publish to delivery.
    ///
    /// # Errors
    /// [`SubscribeError::ZeroWithin`].
    pub fn within(mut self, bound: Duration) -> Result<Self, SubscribeError> {
        if bound.is_zero() {
            return Err(SubscribeError::ZeroWithin);
        }
        self.spec.within = Some(bound.into());
        Ok(self)
    }

    /// Of each window of `y` samples at most `x` may miss.
    ///
    /// # Errors
    /// [`SubscribeError::Contract`].
    pub fn loss(mut self, x: u32, y: u32) -> Result<Self, SubscribeError> {
        self.spec.loss = Some(LossTolerance::new(x, y)?);
        Ok(self)
    }

    /// Where the scaling is done; at the publisher if not said.
    pub const fn proxy(mut self, proxy: Proxy) -> Self {
        self.spec.proxy = proxy;
        self
    }

    /// How many samples wait for a slow reader before the oldest is dropped; 64 if not said.
    ///
    /// # Errors
    /// [`SubscribeError::Queue`].
    pub fn queue(mut self, samples: usize) -> Result<Self, SubscribeError> {
        if samples == 0 || samples > QUEUE_SAMPLES_MAX {
            return Err(SubscribeError::Queue(samples));
        }
        self.queue = samples;
        Ok(self)
    }

    /// What it gets is also held here, for any node to pull, as long as it lasts.
    pub const fn history(mut self, history: History) -> Self {
        self.spec.holds = true;
        self.history = Some(history);
        self
    }

    /// For a buffer: what it gets is held.
    pub(crate) const fn holding(mut self) -> Self {
        self.spec.holds = true;
        self
    }

    /// For a buffer beside a publisher: only what its own node publishes.
    pub(crate) const fn local(mut self) -> Self {
        self.spec.local = true;
        self
    }

    /// The request so far: the rate and size, the delay bound and the loss tolerance.
    #[must_use]
    pub fn request(&self) -> (Form, Option<Duration>, Option<LossTolerance>) {
        (self.spec.form, self.spec.within.map(Into::into), self.spec.loss)
    }

    pub(crate) fn into_parts(self) -> (&'a Node, SubscriptionSpec) {
        (self.node, self.spec)
    }

    /// Asks the paths of all publishers that match whether they would promise this now, by their tags. Nothing
    /// is reserved, and nothing subscribed to; nodes have half a second to answer.
    ///
    /// # Errors
    /// As [`Self::declare`].
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

    /// What excludes each other in what is asked for.
    fn check(&self) -> Result<(), Contradiction> {
        let Form { size, audio, .. } = self.spec.form;
        // A pattern may match pictures and sound.
        match self.spec.pattern.is_tag() && size.is_some() && audio.is_some() {
            true => Err(Contradiction { one: "size", other: "audio" }),
            false => Ok(()),
        }
    }

    /// Announces the subscription.
    ///
    /// # Errors
    /// [`SubscribeError::Closed`] if the node was closed, and [`SubscribeError::Contradiction`] if both a picture size
    /// and sound are asked of one tag.
    pub fn declare(self) -> Result<Subscriber, SubscribeError> {
        self.check()?;
        let held = self.history.map(History::hold);
        let sink = Sink::with_queue(&self.spec, self.queue).holding(held);
        Ok(Subscriber { subscription: Subscription::declare(self.node, self.spec, sink)? })
    }

    /// Announces the subscription; `deliver` is called with each sample on the receiving thread and
    /// must not block.
    ///
    /// # Errors
    /// As [`Self::declare`].
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

/// A sample as the subscriber gets it.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Its tag.
    pub tag: Tag,
    /// Who published it.
    pub publisher: PublisherId,
    /// The publisher's sequence number.
    pub seq: u64,
    /// When it was captured, by the publisher's clock.
    pub captured: Timestamp,
    /// How old it was when it was delivered.
    pub age: Duration,
    /// True if that is more than the delay bound.
    pub late: bool,
    /// What it is.
    pub kind: Kind,
    /// Its media type.
    pub encoding: Encoding,
    /// The message.
    pub payload: Bytes,
    /// What the publisher put beside it, as it came.
    pub attachment: Option<Arc<[u8]>>,
}

/// What a subscriber is told beside samples.
#[derive(Clone, Debug, PartialEq)]
pub enum SubscriberEvent {
    /// The publishers that it hears now.
    Publishers(Vec<PublisherId>),
    /// A publisher's stream was refused, and why.
    Refused(PublisherId, Refusal),
    /// The path of a publisher's samples holds what was asked for, or holds it otherwise than before: its
    /// delay bound, its nodes and links, and what each of them holds.
    Granted(Grant),
    /// What was granted or refused of a publisher's stream is so no longer, and nothing is promised of it now: the
    /// path is gone, or it is not asked for any more.
    Over(PublisherId),
    /// A publisher is heard without the promise that was asked for, as best effort, and why: until it is granted,
    /// refused, or not heard any more.
    Unpromised(PublisherId, Unpromised),
    /// More samples of a publisher were more than was granted since this was last told, once a second at most for each
    /// node of the path: they came sooner, or were longer, and waited behind all that was promised.
    Excess {
        /// Whose samples.
        publisher: PublisherId,
        /// Whose link counted them; each node of the path counts for itself.
        node: NodeId,
        /// What people call it, a label only.
        node_name: String,
        /// All that it counted since it opened the stream.
        excess: Excess,
    },
    /// It asks for something else from now on, because its program or somebody at another node wanted that
    /// ([`Node::change`](crate::Node::change)). What was granted before stays in force until the paths have answered.
    Changed {
        /// The number of the request: its answers carry it ([`Grant::revision`], [`Refusal::revision`]).
        revision: u64,
        /// The rate and size.
        form: Form,
        /// The delay bound.
        within: Option<Duration>,
        /// The loss tolerance.
        loss: Option<LossTolerance>,
    },
    /// A path refused the last change. It asks again for what it asked before, which stayed in force all the time.
    ChangeRefused {
        /// Why, for each publisher.
        refusals: Vec<Refusal>,
        /// The rate and size that it asks for again.
        form: Form,
        /// The delay bound.
        within: Option<Duration>,
        /// The loss tolerance.
        loss: Option<LossTolerance>,
    },
}

/// A subscription without a queue: samples go to the callback it was made with. Dropping it ends it;
/// until then it keeps its node open.
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

    /// Who it is.
    #[must_use]
    pub const fn id(&self) -> SubscriptionId {
        self.id
    }

    pub(crate) const fn node(&self) -> &Node {
        &self.node
    }

    /// Samples dropped here, by reason.
    #[must_use]
    pub fn drops(&self) -> Drops {
        self.sink.counts.drops.load()
    }

    /// The next event, if there is one.
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

/// What a subscriber finds when it looks.
enum Next {
    Sample(Delivery),
    Wait(EventListener),
}

/// Receives samples through a bounded queue. Dropping it ends the subscription; until then it keeps its
/// node open.
pub struct Subscriber {
    subscription: Subscription,
}

impl Subscriber {
    /// Who it is.
    #[must_use]
    pub const fn id(&self) -> SubscriptionId {
        self.subscription.id()
    }

    pub(crate) const fn subscription(&self) -> &Subscription {
        &self.subscription
    }

    /// Waits for the next sample.
    ///
    /// # Errors
    /// [`RecvError::Closed`].
    pub fn recv(&mut self) -> Result<Delivery, RecvError> {
        self.wait(None)
    }

    /// Waits at most `timeout` for the next sample.
    ///
    /// # Errors
    /// [`RecvError::Timeout`], [`RecvError::Closed`].
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

    /// The next sample, or what to wait for.
    fn next(&self) -> Result<Next, RecvError> {
        let sink = &self.subscription.sink;
        if let Some(delivery) = sink.pop() {
            return Ok(Next::Sample(delivery));
        }
        let arrival = sink.arrival.listen();
        // One may have come before we listened.
        match sink.pop() {
            Some(delivery) => Ok(Next::Sample(delivery)),
            None if sink.is_closed() => Err(RecvError::Closed),
            None => Ok(Next::Wait(arrival)),
        }
    }

    /// The next sample if one waits.
    #[must_use]
    pub fn try_recv(&mut self) -> Option<Delivery> {
        self.subscription.sink.pop()
    }

    /// The next sample, for asynchronous code on any runtime.
    ///
    /// # Errors
    /// [`RecvError::Closed`].
    pub async fn recv_async(&mut self) -> Result<Delivery, RecvError> {
        loop {
            match self.next()? {
                Next::Sample(delivery) => return Ok(delivery),
                Next::Wait(arrival) => arrival.await,
            }
        }
    }

    /// What tells of the next sample or event, and of the end. To be had before looking with
    /// [`Self::try_recv`], [`Self::try_event`] and [`Self::is_closed`]: what comes in between is told.
    pub fn arrival(&self) -> Arrival {
        Arrival::new(self.subscription.sink.arrival.listen())
    }

    /// True once the node was closed; what came before can still be read.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.subscription.sink.is_closed()
    }

    /// Samples dropped here, by reason.
    #[must_use]
    pub fn drops(&self) -> Drops {
        self.subscription.drops()
    }

    /// The next event, if there is one.
    #[must_use]
    pub fn try_event(&self) -> Option<SubscriberEvent> {
        self.subscription.try_event()
    }
}

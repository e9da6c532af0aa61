//! Subscribers: each states its own rate, size, delay bound and loss tolerance.

use crate::error::{RecvError, SubscribeError};
use bytes::Bytes;
use paceline_proto::control::Refusal;
use paceline_proto::{Drops, Encoding, Kind, Proxy, PublisherId, SubscriptionId, Tag, Timestamp};
use std::time::Duration;

/// Declares a [`Subscriber`].
pub struct SubscriberBuilder<'a> { _p: core::marker::PhantomData<&'a ()> }

impl SubscriberBuilder<'_> {
    /// One sample in `n`.
    ///
    /// # Errors
    /// [`SubscribeError::EveryZero`].
    pub fn every(self, n: u32) -> Result<Self, SubscribeError> { todo!() }
    /// At most `hertz` samples per second, evenly spread.
    ///
    /// # Errors
    /// [`SubscribeError::Rate`].
    pub fn max_hz(self, hertz: f64) -> Result<Self, SubscribeError> { todo!() }
    /// Pictures of this size.
    ///
    /// # Errors
    /// [`SubscribeError::Size`].
    pub fn size(self, width: u32, height: u32) -> Result<Self, SubscribeError> { todo!() }
    /// The delay bound, publish to delivery.
    pub fn within(self, bound: Duration) -> Self { todo!() }
    /// Of each window of `y` samples at most `x` may miss.
    ///
    /// # Errors
    /// [`SubscribeError::Contract`].
    pub fn loss(self, x: u32, y: u32) -> Result<Self, SubscribeError> { todo!() }
    /// Where the scaling is done; at the publisher if not said.
    pub fn proxy(self, proxy: Proxy) -> Self { todo!() }
    /// How many samples wait for a slow reader before the oldest is dropped; 64 if not said.
    pub fn queue(self, samples: usize) -> Self { todo!() }
    /// Announces the subscription.
    ///
    /// # Errors
    /// [`SubscribeError`] for what is wrong with it.
    pub fn declare(self) -> Result<Subscriber, SubscribeError> { todo!() }
    /// Announces the subscription; `deliver` is called with each sample on the receiving thread and
    /// must not block.
    ///
    /// # Errors
    /// [`SubscribeError`] for what is wrong with it.
    pub fn callback(self, deliver: impl FnMut(Delivery) + Send + 'static) -> Result<Subscription, SubscribeError> { todo!() }
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
}

/// What a subscriber is told beside samples.
#[derive(Clone, Debug, PartialEq)]
pub enum SubscriberEvent {
    /// The publishers that it hears now.
    Publishers(Vec<PublisherId>),
    /// A publisher's stream was refused, and why.
    Refused(PublisherId, Refusal),
}

/// A subscription without a queue: samples go to the callback it was made with. Dropping it ends it.
pub struct Subscription { _p: () }

impl Subscription {
    /// Who it is.
    pub fn id(&self) -> SubscriptionId { todo!() }
    /// Samples dropped here, by reason.
    pub fn drops(&self) -> Drops { todo!() }
    /// The next event, if there is one.
    pub fn try_event(&self) -> Option<SubscriberEvent> { todo!() }
}

/// Receives samples through a bounded queue. Dropping it ends the subscription.
pub struct Subscriber { _p: () }

impl Subscriber {
    /// Who it is.
    pub fn id(&self) -> SubscriptionId { todo!() }
    /// Waits for the next sample.
    ///
    /// # Errors
    /// [`RecvError::Closed`].
    pub fn recv(&mut self) -> Result<Delivery, RecvError> { todo!() }
    /// Waits at most `timeout` for the next sample.
    ///
    /// # Errors
    /// [`RecvError::Timeout`], [`RecvError::Closed`].
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Delivery, RecvError> { todo!() }
    /// The next sample if one waits.
    pub fn try_recv(&mut self) -> Option<Delivery> { todo!() }
    /// The next sample, for asynchronous code on any runtime.
    ///
    /// # Errors
    /// [`RecvError::Closed`].
    pub async fn recv_async(&mut self) -> Result<Delivery, RecvError> { todo!() }
    /// Samples dropped here, by reason.
    pub fn drops(&self) -> Drops { todo!() }
    /// The next event, if there is one.
    pub fn try_event(&self) -> Option<SubscriberEvent> { todo!() }
}

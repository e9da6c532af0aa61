//! Pull buffers: bounded histories of samples that any node can pull.

use crate::error::{PublishError, SubscribeError};
use crate::history::History;
use crate::node::Node;
use crate::shell::held::HeldBuffer;
use crate::shell::sink::Sink;
use crate::subscriber::{SubscriberBuilder, Subscription};
use paceline_proto::{SubscriptionId, Tag};
use std::sync::Arc;
use std::time::Duration;

/// Configures and declares a [`Buffer`]. Created by [`Node::buffer`].
///
/// The setters take plain values; [`Self::declare`] reports a wrong one.
#[must_use = "nothing is buffered before declare()"]
pub struct BufferBuilder<'a> {
    subscriber: SubscriberBuilder<'a>,
    history: History,
}

impl Node {
    /// Returns a builder for a pull buffer, which stores samples that match `pattern` for any node
    /// to pull.
    ///
    /// [`BufferBuilder::declare`] reports an invalid pattern, and one that begins with `@`.
    pub fn buffer(&self, pattern: &str) -> BufferBuilder<'_> {
        BufferBuilder::new(self.subscriber(pattern))
    }
}

impl<'a> BufferBuilder<'a> {
    pub(crate) const fn new(subscriber: SubscriberBuilder<'a>) -> Self {
        Self { subscriber, history: History::new() }
    }

    /// Sets all limits.
    pub const fn history(mut self, history: History) -> Self {
        self.history = history;
        self
    }

    /// Limits the number of samples, from 1 to 1,000,000. Defaults to 1,000.
    pub const fn samples(mut self, samples: usize) -> Self {
        self.history = self.history.samples(samples);
        self
    }

    /// Limits the payload bytes, from 1 to 4 GiB. Defaults to 256 MiB.
    pub const fn bytes(mut self, bytes: u64) -> Self {
        self.history = self.history.bytes(bytes);
        self
    }

    /// Limits the age, above 0 and at most one day. Defaults to one day.
    pub const fn age(mut self, age: Duration) -> Self {
        self.history = self.history.age(age);
        self
    }

    /// Stores one sample in `n`, from 1 to 4,294,967,295. Defaults to every sample.
    ///
    /// [`Self::max_hz`] sets the same property: use one of the two.
    pub fn every(self, n: u32) -> Self {
        Self { subscriber: self.subscriber.every(n), ..self }
    }

    /// Stores at most `hertz` samples per second, evenly spaced, from 0.001 to 1,000,000. Defaults
    /// to every sample.
    ///
    /// [`Self::every`] sets the same property: use one of the two.
    pub fn max_hz(self, hertz: f64) -> Self {
        Self { subscriber: self.subscriber.max_hz(hertz), ..self }
    }

    /// Stores pictures scaled to `width` by `height` pixels, each from 1 to 16,384. Defaults to the
    /// published size.
    pub fn size(self, width: u32, height: u32) -> Self {
        Self { subscriber: self.subscriber.size(width, height), ..self }
    }

    /// Announces the buffer, which stores arriving samples from now on.
    ///
    /// # Errors
    /// Reports a wrong value of the builder, with the allowed range: the errors of
    /// [`SubscriberBuilder::declare`], and [`SubscribeError::Limits`] for a limit that is out of
    /// range. [`SubscribeError::Closed`] if the node is closed.
    pub fn declare(self) -> Result<Buffer, SubscribeError> {
        let (node, spec) = self.subscriber.holding().into_parts()?;
        let held = HeldBuffer::open(self.history)?;
        let sink = Sink::with_callback(&spec, Box::new(drop)).holding(Some(held.clone()));
        Ok(Buffer { subscription: Subscription::declare(node, spec, sink)?, held })
    }
}

/// Stores the samples of a tag or pattern, for any node to pull.
///
/// Dropping it deletes the samples. Until then it keeps its node open.
pub struct Buffer {
    subscription: Subscription,
    held: Arc<HeldBuffer>,
}

impl Buffer {
    /// Declares a buffer of the samples that `node` publishes on `tag`.
    pub(crate) fn local(node: &Node, tag: &Tag, history: History) -> Result<Self, PublishError> {
        history.limits()?;
        let builder = BufferBuilder::new(SubscriberBuilder::new(node, tag.as_str()).local());
        builder.history(history).declare().map_err(|_| PublishError::Closed)
    }

    /// Returns the identifier of the subscription that fills the buffer.
    #[must_use]
    pub const fn id(&self) -> SubscriptionId {
        self.subscription.id()
    }

    /// Returns the number of stored samples.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.held.len().0
    }

    /// Returns the number of stored payload bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.held.len().1
    }

    /// Returns true if the buffer stores no samples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the subscription that fills the buffer, with its events and drops.
    #[must_use]
    pub const fn subscription(&self) -> &Subscription {
        &self.subscription
    }
}

//! Pull buffers: bounded histories of samples that any node can pull.

use crate::error::{PublishError, SubscribeError};
use crate::node::Node;
use crate::shell::pull::HeldBuffer;
use crate::shell::sink::Sink;
use crate::subscriber::{SubscriberBuilder, Subscription};
use paceline_proto::pull::limits::{AGE_MAX, SAMPLES_MAX};
use paceline_proto::pull::{Limits, LimitsError};
use paceline_proto::{Pattern, SubscriptionId, Tag};
use std::sync::Arc;
use std::time::Duration;

/// The default limit of samples.
const SAMPLES: usize = 1_000;
/// The default limit of payload bytes.
const BYTES: u64 = 256 << 20;

/// The limits of a pull buffer: number of samples, payload bytes and age.
///
/// When a limit is reached, the oldest samples are dropped. Defaults to 1,000 samples, 256 MiB and one
/// day. If bytes or age are set, the default number of samples is 1,000,000.
///
/// ```
/// use std::time::Duration;
///
/// let history = paceline::History::new().samples(100)?.age(Duration::from_secs(60))?;
/// assert_eq!(history.limits().samples(), 100);
/// # Ok::<(), paceline::LimitsError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct History {
    samples: Option<usize>,
    bytes: Option<u64>,
    age: Option<Duration>,
}

impl History {
    /// Creates the default limits.
    #[must_use]
    pub const fn new() -> Self {
        Self { samples: None, bytes: None, age: None }
    }

    /// Limits the number of samples, from 1 to 1,000,000.
    ///
    /// # Errors
    /// [`LimitsError::Samples`] if `samples` is out of range.
    pub fn samples(self, samples: usize) -> Result<Self, LimitsError> {
        Self { samples: Some(samples), ..self }.checked()
    }

    /// Limits the payload bytes, from 1 to 4 GiB.
    ///
    /// # Errors
    /// [`LimitsError::Bytes`] if `bytes` is out of range.
    pub fn bytes(self, bytes: u64) -> Result<Self, LimitsError> {
        Self { bytes: Some(bytes), ..self }.checked()
    }

    /// Limits the age, above 0 and at most one day.
    ///
    /// # Errors
    /// [`LimitsError::Age`] if `age` is out of range.
    pub fn age(self, age: Duration) -> Result<Self, LimitsError> {
        Self { age: Some(age), ..self }.checked()
    }

    fn checked(self) -> Result<Self, LimitsError> {
        self.resolved().map(|_| self)
    }

    fn resolved(self) -> Result<Limits, LimitsError> {
        let said = self.bytes.is_some() || self.age.is_some();
        let samples = self.samples.unwrap_or(if said { SAMPLES_MAX } else { SAMPLES });
        let age = self.age.map_or(AGE_MAX, Into::into);
        Limits::new(samples, self.bytes.unwrap_or(BYTES), age)
    }

    /// Returns the limits, with defaults for those that are not set.
    #[must_use]
    pub fn limits(self) -> Limits {
        match self.resolved() {
            Ok(limits) => limits,
            Err(error) => unreachable!("checked when it was set: {error}"),
        }
    }

    pub(crate) fn hold(self) -> Arc<HeldBuffer> {
        Arc::new(HeldBuffer::new(self.limits()))
    }
}

/// Configures and declares a [`Buffer`]. Created by [`Node::buffer`].
#[must_use = "nothing is held before declare()"]
pub struct BufferBuilder<'a> {
    subscriber: SubscriberBuilder<'a>,
    history: History,
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

    /// Limits the number of samples, from 1 to 1,000,000.
    ///
    /// # Errors
    /// [`SubscribeError::Limits`] if `samples` is out of range.
    pub fn samples(self, samples: usize) -> Result<Self, SubscribeError> {
        Ok(Self { history: self.history.samples(samples)?, ..self })
    }

    /// Limits the payload bytes, from 1 to 4 GiB.
    ///
    /// # Errors
    /// [`SubscribeError::Limits`] if `bytes` is out of range.
    pub fn bytes(self, bytes: u64) -> Result<Self, SubscribeError> {
        Ok(Self { history: self.history.bytes(bytes)?, ..self })
    }

    /// Limits the age, above 0 and at most one day.
    ///
    /// # Errors
    /// [`SubscribeError::Limits`] if `age` is out of range.
    pub fn age(self, age: Duration) -> Result<Self, SubscribeError> {
        Ok(Self { history: self.history.age(age)?, ..self })
    }

    /// Stores one sample in `n`.
    ///
    /// # Errors
    /// [`SubscribeError::EveryZero`] if `n` is 0, and [`SubscribeError::Contradiction`] after
    /// [`Self::max_hz`].
    pub fn every(self, n: u32) -> Result<Self, SubscribeError> {
        Ok(Self { subscriber: self.subscriber.every(n)?, ..self })
    }

    /// Stores at most `hertz` samples per second, evenly spaced.
    ///
    /// # Errors
    /// [`SubscribeError::Rate`] unless `hertz` is from 0.001 to 1,000,000, and
    /// [`SubscribeError::Contradiction`] after [`Self::every`].
    pub fn max_hz(self, hertz: f64) -> Result<Self, SubscribeError> {
        Ok(Self { subscriber: self.subscriber.max_hz(hertz)?, ..self })
    }

    /// Stores pictures scaled to this size.
    ///
    /// # Errors
    /// [`SubscribeError::Size`] unless both sides are from 1 to 16384 pixels.
    pub fn size(self, width: u32, height: u32) -> Result<Self, SubscribeError> {
        Ok(Self { subscriber: self.subscriber.size(width, height)?, ..self })
    }

    /// Announces the buffer, which stores arriving samples from now on.
    ///
    /// # Errors
    /// [`SubscribeError::Closed`] if the node is closed.
    pub fn declare(self) -> Result<Buffer, SubscribeError> {
        let held = self.history.hold();
        let (node, spec) = self.subscriber.holding().into_parts();
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
        let only = Pattern::new(tag.as_str())?;
        let builder = BufferBuilder::new(SubscriberBuilder::new(node, only).local());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unset_buffer_bounds_default_to_the_maximum() {
        let limits = History::new().limits();
        assert_eq!((limits.samples(), limits.bytes()), (SAMPLES, BYTES));
        let minute = History::new().age(Duration::from_secs(60)).unwrap().limits();
        assert_eq!((minute.samples(), minute.bytes()), (SAMPLES_MAX, BYTES));
        let large = History::new().bytes(1 << 30).unwrap().limits();
        assert_eq!((large.samples(), large.bytes(), large.age()), (SAMPLES_MAX, 1 << 30, AGE_MAX));
    }

    #[test]
    fn zero_and_excessive_buffer_bounds_are_refused() {
        assert_eq!(History::new().samples(0), Err(LimitsError::Samples(0)));
        let terabyte = 1_000_000_000_000;
        assert_eq!(History::new().bytes(terabyte), Err(LimitsError::Bytes(terabyte)));
        assert!(History::new().age(Duration::ZERO).is_err());
    }
}

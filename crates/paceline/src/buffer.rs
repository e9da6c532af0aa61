//! Pull buffers: what is published is held here, for any node to pull.

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

/// Samples that a buffer holds if nothing is said of it.
const SAMPLES: usize = 1_000;
/// Bytes of payload that a buffer holds if it is not said.
const BYTES: u64 = 256 << 20;

/// How much a pull buffer holds: samples, bytes of payload, and for how long; the first bound that is
/// reached counts, and what is oldest goes first.
///
/// What is not said: 1,000 samples, or any number if bytes or age are said; 256 MiB; a day.
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
    /// What is held if nothing is said.
    #[must_use]
    pub const fn new() -> Self {
        Self { samples: None, bytes: None, age: None }
    }

    /// At most so many samples, from 1 to 1,000,000.
    ///
    /// # Errors
    /// [`LimitsError::Samples`].
    pub fn samples(self, samples: usize) -> Result<Self, LimitsError> {
        Self { samples: Some(samples), ..self }.checked()
    }

    /// At most so many bytes of payload, from 1 to 4 GiB.
    ///
    /// # Errors
    /// [`LimitsError::Bytes`].
    pub fn bytes(self, bytes: u64) -> Result<Self, LimitsError> {
        Self { bytes: Some(bytes), ..self }.checked()
    }

    /// None older than `age`, which is above 0 and at most a day.
    ///
    /// # Errors
    /// [`LimitsError::Age`].
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

    /// The bounds that follow.
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

/// Declares a [`Buffer`].
#[must_use = "nothing is held before declare()"]
pub struct BufferBuilder<'a> {
    subscriber: SubscriberBuilder<'a>,
    history: History,
}

impl<'a> BufferBuilder<'a> {
    pub(crate) const fn new(subscriber: SubscriberBuilder<'a>) -> Self {
        Self { subscriber, history: History::new() }
    }

    /// How much it holds.
    pub const fn history(mut self, history: History) -> Self {
        self.history = history;
        self
    }

    /// At most so many samples, from 1 to 1,000,000.
    ///
    /// # Errors
    /// [`SubscribeError::Limits`].
    pub fn samples(self, samples: usize) -> Result<Self, SubscribeError> {
        Ok(Self { history: self.history.samples(samples)?, ..self })
    }

    /// At most so many bytes of payload, from 1 to 4 GiB.
    ///
    /// # Errors
    /// [`SubscribeError::Limits`].
    pub fn bytes(self, bytes: u64) -> Result<Self, SubscribeError> {
        Ok(Self { history: self.history.bytes(bytes)?, ..self })
    }

    /// None older than `age`, which is above 0 and at most a day.
    ///
    /// # Errors
    /// [`SubscribeError::Limits`].
    pub fn age(self, age: Duration) -> Result<Self, SubscribeError> {
        Ok(Self { history: self.history.age(age)?, ..self })
    }

    /// One sample in `n` is held.
    ///
    /// # Errors
    /// [`SubscribeError::EveryZero`].
    pub fn every(self, n: u32) -> Result<Self, SubscribeError> {
        Ok(Self { subscriber: self.subscriber.every(n)?, ..self })
    }

    /// At most `hertz` samples per second are held, evenly spread.
    ///
    /// # Errors
    /// [`SubscribeError::Rate`] below 0.001 Hz and above 1,000,000 Hz.
    pub fn max_hz(self, hertz: f64) -> Result<Self, SubscribeError> {
        Ok(Self { subscriber: self.subscriber.max_hz(hertz)?, ..self })
    }

    /// Pictures are held at this size.
    ///
    /// # Errors
    /// [`SubscribeError::Size`].
    pub fn size(self, width: u32, height: u32) -> Result<Self, SubscribeError> {
        Ok(Self { subscriber: self.subscriber.size(width, height)?, ..self })
    }

    /// Announces the buffer; from then on it holds what comes.
    ///
    /// # Errors
    /// [`SubscribeError::Closed`] if the node was closed.
    pub fn declare(self) -> Result<Buffer, SubscribeError> {
        let held = self.history.hold();
        let (node, spec) = self.subscriber.holding().into_parts();
        let sink = Sink::with_callback(&spec, Box::new(drop)).holding(Some(held.clone()));
        Ok(Buffer { subscription: Subscription::declare(node, spec, sink)?, held })
    }
}

/// Holds what comes on a tag or pattern, for any node to pull. Dropping it lets everything go; until
/// then it keeps its node open.
pub struct Buffer {
    subscription: Subscription,
    held: Arc<HeldBuffer>,
}

impl Buffer {
    /// Of what `node` publishes on `tag`.
    pub(crate) fn local(node: &Node, tag: &Tag, history: History) -> Result<Self, PublishError> {
        let only = Pattern::new(tag.as_str())?;
        let builder = BufferBuilder::new(SubscriberBuilder::new(node, only).local());
        builder.history(history).declare().map_err(|_| PublishError::Closed)
    }

    /// The subscription that feeds it.
    #[must_use]
    pub const fn id(&self) -> SubscriptionId {
        self.subscription.id()
    }

    /// How many samples it holds.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.held.len().0
    }

    /// How many bytes of payload it holds.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.held.len().1
    }

    /// True if it holds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What feeds it, with its events and what was dropped on the way.
    #[must_use]
    pub const fn subscription(&self) -> &Subscription {
        &self.subscription
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_does_not_bound_what_is() {
        let limits = History::new().limits();
        assert_eq!((limits.samples(), limits.bytes()), (SAMPLES, BYTES));
        let minute = History::new().age(Duration::from_secs(60)).unwrap().limits();
        assert_eq!((minute.samples(), minute.bytes()), (SAMPLES_MAX, BYTES));
        let large = History::new().bytes(1 << 30).unwrap().limits();
        assert_eq!((large.samples(), large.bytes(), large.age()), (SAMPLES_MAX, 1 << 30, AGE_MAX));
    }

    #[test]
    fn bounds_of_nothing_and_of_too_much_are_refused() {
        assert_eq!(History::new().samples(0), Err(LimitsError::Samples(0)));
        let terabyte = 1_000_000_000_000;
        assert_eq!(History::new().bytes(terabyte), Err(LimitsError::Bytes(terabyte)));
        assert!(History::new().age(Duration::ZERO).is_err());
    }
}

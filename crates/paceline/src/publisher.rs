//! Publishers: samples in, one call each.

use crate::error::PublishError;
use bytes::Bytes;
use paceline_proto::{Encoding, Kind, PublisherId, Size, Tag};
use paceline_sched::Late;
use std::time::Duration;

/// Declares a [`Publisher`].
pub struct PublisherBuilder<'a> { _p: core::marker::PhantomData<&'a ()> }

impl PublisherBuilder<'_> {
    /// Declares that a sample comes every `period`: the base of its deadlines.
    ///
    /// # Errors
    /// [`PublishError::Contract`] if it is zero.
    pub fn period(self, period: Duration) -> Result<Self, PublishError> { todo!() }
    /// Declares `hertz` samples per second.
    ///
    /// # Errors
    /// [`PublishError::Rate`] if it is not above 0.
    pub fn hz(self, hertz: f64) -> Result<Self, PublishError> { todo!() }
    /// What the samples are; [`Kind::Data`] if not said, [`Kind::Picture`] for a picture encoding.
    pub fn kind(self, kind: Kind) -> Self { todo!() }
    /// Their media type; application/octet-stream if not said.
    pub fn encoding(self, encoding: Encoding) -> Self { todo!() }
    /// What becomes of late ones; [`Late::Drop`] if not said.
    pub fn late(self, late: Late) -> Self { todo!() }
    /// The size of its pictures; read from the first one if not said.
    pub fn picture_size(self, size: Size) -> Self { todo!() }
    /// The size of its largest sample; the largest seen so far if not said.
    pub fn bytes_max(self, bytes: u64) -> Self { todo!() }
    /// Announces the publisher; every node knows it within a second.
    ///
    /// # Errors
    /// [`PublishError::Closed`] if the node was closed.
    pub fn declare(self) -> Result<Publisher, PublishError> { todo!() }
}

/// What became of one published sample on this node.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Put {
    /// Its sequence number.
    pub seq: u64,
    /// Streams and local subscriptions that took it.
    pub taken: u32,
    /// Those that had no room for it; counted there by reason.
    pub dropped: u32,
}

/// Publishes samples on one tag. Dropping it tells everybody that it is gone.
pub struct Publisher { _p: () }

impl Publisher {
    /// Who it is.
    pub fn id(&self) -> PublisherId { todo!() }
    /// Its tag.
    pub fn tag(&self) -> &Tag { todo!() }
    /// Publishes a sample captured now. Never waits: a stream without room drops it, counted.
    ///
    /// # Errors
    /// [`PublishError::TooLarge`], [`PublishError::Closed`].
    pub fn put(&mut self, payload: impl Into<Bytes>) -> Result<Put, PublishError> { todo!() }
    /// As [`Self::put`], but waits first until every stream has room.
    ///
    /// # Errors
    /// [`PublishError::TooLarge`], [`PublishError::Closed`].
    pub fn put_blocking(&mut self, payload: impl Into<Bytes>) -> Result<Put, PublishError> { todo!() }
    /// As [`Self::put_blocking`], for asynchronous code on any runtime.
    ///
    /// # Errors
    /// [`PublishError::TooLarge`], [`PublishError::Closed`].
    pub async fn put_async(&mut self, payload: impl Into<Bytes>) -> Result<Put, PublishError> { todo!() }
    /// True if anybody, anywhere, wants this tag now.
    pub fn matching(&self) -> bool { todo!() }
    /// Waits until anybody wants the tag; false when `timeout` is over first.
    pub fn wait_matching(&self, timeout: Duration) -> bool { todo!() }
}

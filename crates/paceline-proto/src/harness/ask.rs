//! Short ways to say what publishers declare and subscriptions ask for.

use crate::control::{PublisherSpec, SubscriptionSpec};
use crate::form::{Form, Proxy, Rate, Size};
use crate::sample::{Encoding, Kind};
use crate::tag::{Pattern, Tag};
use bytes::Bytes;
use core::num::NonZeroU32;
use paceline_sched::{Duration, Late, LossTolerance};

/// A publisher of data on `tag` with nothing declared.
///
/// # Panics
/// If `tag` is none.
#[must_use]
pub fn data(tag: &str) -> PublisherSpec {
    let Ok(tag) = Tag::new(tag) else { panic!("no tag: {tag}") };
    PublisherSpec {
        tag,
        kind: Kind::Data,
        encoding: Encoding::Bytes,
        period: None,
        late: Late::Send,
        loss: None,
        size: None,
        bytes_max: None,
    }
}

/// A publisher of pictures of up to `bytes` on `tag`, `hertz` a second.
///
/// # Panics
/// If `tag` is none.
#[must_use]
pub fn pictures(tag: &str, hertz: u64, bytes: u64) -> PublisherSpec {
    PublisherSpec {
        kind: Kind::Picture,
        encoding: Encoding::Jpeg,
        late: Late::Drop,
        bytes_max: Some(bytes),
        ..data(tag)
    }
    .hertz(hertz)
}

/// A subscription to `pattern` that asks for everything and nothing more.
///
/// # Panics
/// If `pattern` is none.
#[must_use]
pub fn all(pattern: &str) -> SubscriptionSpec {
    let Ok(pattern) = Pattern::new(pattern) else { panic!("no pattern: {pattern}") };
    let (form, proxy) = (Form::FULL, Proxy::Publisher);
    SubscriptionSpec { pattern, form, within: None, loss: None, proxy, holds: false, local: false }
}

/// A payload of `len` bytes that begins with `number`.
#[must_use]
pub fn payload(number: u64, len: usize) -> Bytes {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.resize(len, 0);
    bytes.into()
}

/// Payloads of `len` bytes, to be published by themselves.
#[must_use]
pub fn payloads(len: usize) -> super::Payload {
    Box::new(move |number| payload(number, len))
}

impl PublisherSpec {
    /// Declares `hertz` samples a second.
    #[must_use]
    pub fn hertz(mut self, hertz: u64) -> Self {
        self.period = Some(Duration::from_secs(1).mul_div(1, hertz));
        self
    }
}

impl SubscriptionSpec {
    /// At most `hertz` samples a second.
    #[must_use]
    pub fn max_hertz(mut self, hertz: u32) -> Self {
        self.form.rate = NonZeroU32::new(hertz.saturating_mul(1_000)).map_or(Rate::All, Rate::Max);
        self
    }

    /// One sample in `n`.
    #[must_use]
    pub fn one_in(mut self, n: u32) -> Self {
        self.form.rate = NonZeroU32::new(n).map_or(Rate::All, Rate::Every);
        self
    }

    /// Pictures of this size.
    #[must_use]
    pub const fn sized(mut self, width: u32, height: u32) -> Self {
        self.form.size = Some(Size { width, height });
        self
    }

    /// A delay bound, in milliseconds.
    #[must_use]
    pub const fn within_ms(mut self, millis: u64) -> Self {
        self.within = Some(Duration::from_millis(millis));
        self
    }

    /// A loss tolerance.
    #[must_use]
    pub const fn losing(mut self, loss: LossTolerance) -> Self {
        self.loss = Some(loss);
        self
    }

    /// Scaled at the subscriber.
    #[must_use]
    pub const fn scaled_here(mut self) -> Self {
        self.proxy = Proxy::Subscriber;
        self
    }
}

//! Shorthand for the declarations of publishers and the requests of subscriptions.

use bytes::Bytes;
use core::num::NonZeroU32;
use paceline_proto::control::{PublisherSpec, SubscriptionSpec};
use paceline_proto::form::{Proxy, Rate, Size};
use paceline_proto::retransmit::Retransmit;
use paceline_proto::sample::{Encoding, Kind};
use paceline_proto::tag::{Pattern, Tag};
use paceline_sched::{Duration, Late, LossTolerance};
use std::collections::BTreeSet;

/// Returns a publisher of data on `tag` that declares nothing else.
///
/// # Panics
/// Panics if `tag` is not a valid tag.
#[must_use]
pub fn data(tag: &str) -> PublisherSpec {
    let Ok(tag) = Tag::new(tag) else { panic!("no tag: {tag}") };
    PublisherSpec { late: Late::Send, ..PublisherSpec::new(tag) }
}

/// Returns a publisher of pictures of up to `bytes` bytes on `tag`, at `hertz` pictures per second.
///
/// # Panics
/// Panics if `tag` is not a valid tag.
#[must_use]
pub fn pictures(tag: &str, hertz: u64, bytes: u64) -> PublisherSpec {
    PublisherSpec {
        kind: Kind::Picture,
        encoding: Encoding::Jpeg,
        late: Late::Drop,
        bytes_max: Some(bytes),
        waits: false,
        latch: false,
        ..data(tag)
    }
    .hertz(hertz)
}

/// Returns a publisher of video on `tag`, at `hertz` pictures per second of up to `bytes` bytes.
///
/// Its payloads must be those of [`video_payloads`], which contain their kind.
///
/// # Panics
/// Panics if `tag` is not a valid tag.
#[must_use]
pub fn video(tag: &str, hertz: u64, bytes: u64) -> PublisherSpec {
    let (kind, encoding) = (Kind::VideoI, Encoding::new("video/h264"));
    PublisherSpec { kind, encoding, ..pictures(tag, hertz, bytes) }
}

/// Returns the kind of the n-th sample of a video that repeats `group`.
///
/// A group lists its pictures in decoding order, such as `IPBB`.
///
/// # Panics
/// Panics if the group is empty or contains anything but I, P and B.
#[must_use]
pub fn video_kind(group: &str, number: u64) -> Kind {
    let place = usize::try_from(number).unwrap_or(usize::MAX) % group.len().max(1);
    match group.as_bytes().get(place) {
        Some(b'I') => Kind::VideoI,
        Some(b'P') => Kind::VideoP,
        Some(b'B') => Kind::VideoB,
        _ => panic!("{group} is no group of pictures: write I, P and B"),
    }
}

/// Returns a payload of `len` bytes, at least 9, that begins with `number` and its kind.
#[must_use]
pub fn video_payload(number: u64, kind: Kind, len: usize) -> Bytes {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.push(kind.code());
    bytes.resize(len.max(bytes.len()), 0);
    bytes.into()
}

/// Returns video payloads for automatic publishing: `group` repeated, with the given bytes for each `[I, P,
/// B]`.
#[must_use]
pub fn video_payloads(group: &str, bytes: [usize; 3]) -> crate::handle::Payload {
    let (group, [i, p, b]) = (group.to_owned(), bytes);
    Box::new(move |number| {
        let kind = video_kind(&group, number);
        let len = if kind == Kind::VideoI {
            i
        } else if kind == Kind::VideoP {
            p
        } else {
            b
        };
        video_payload(number, kind, len)
    })
}

/// Returns the kind recorded in a payload of video.
///
/// # Panics
/// Panics if the payload contains none: it was not made by [`video_payload`].
#[must_use]
pub fn kind_of(payload: &[u8]) -> Kind {
    let Some(kind) = payload.get(8).and_then(|code| Kind::from_code(*code)) else {
        panic!("a video payload encodes its kind: build it with video_payload");
    };
    kind
}

/// Returns the first sample of `delivered` that could not be decoded with the samples before it.
///
/// The samples must be of one publisher that repeats `group`. A P or B needs every earlier I and P of its
/// group. A picture that was transcoded to a picture of its own on the path counts as an I.
#[must_use]
pub fn undecodable(group: &str, delivered: &[crate::sink::Delivered]) -> Option<u64> {
    let mut had = BTreeSet::new();
    for sample in delivered {
        had.insert(sample.seq);
        if !matches!(sample.kind, Kind::VideoP | Kind::VideoB) {
            continue;
        }
        let needed = (0..sample.seq).rev().map(|seq| (seq, video_kind(group, seq)));
        let mut needed = needed.filter(|(_, kind)| *kind != Kind::VideoB);
        // Searches back to the I at the start of the group, or to the first sample.
        let whole = loop {
            match needed.next() {
                Some((seq, kind)) if !had.contains(&seq) || kind == Kind::VideoI => {
                    break had.contains(&seq);
                }
                Some(_) => {}
                None => break false,
            }
        };
        if !whole {
            return Some(sample.seq);
        }
    }
    None
}

/// Returns a subscription to `pattern` that asks for all samples and states no other requirement.
///
/// # Panics
/// Panics if `pattern` is not a valid pattern.
#[must_use]
pub fn all(pattern: &str) -> SubscriptionSpec {
    let Ok(pattern) = Pattern::new(pattern) else { panic!("no pattern: {pattern}") };
    SubscriptionSpec::all_of(pattern)
}

/// Returns a payload of `len` bytes that begins with `number`.
#[must_use]
pub fn payload(number: u64, len: usize) -> Bytes {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.resize(len, 0);
    bytes.into()
}

/// Returns payloads of `len` bytes for automatic publishing.
#[must_use]
pub fn payloads(len: usize) -> crate::handle::Payload {
    Box::new(move |number| payload(number, len))
}

/// Returns identical payloads of `len` bytes, for samples whose content is never checked.
#[must_use]
pub fn blanks(len: usize) -> crate::handle::Payload {
    let blank = payload(0, len);
    Box::new(move |_| blank.clone())
}

/// Shorthand for further declarations of a publisher.
pub trait Declare: Sized {
    /// Declares `hertz` samples per second.
    #[must_use]
    fn hertz(self, hertz: u64) -> Self;
}

impl Declare for PublisherSpec {
    fn hertz(mut self, hertz: u64) -> Self {
        self.period = Some(Duration::from_secs(1).mul_div(1, hertz));
        self
    }
}

/// Shorthand for the requests of a subscription.
pub trait Ask: Sized {
    /// Asks for at most `hertz` samples per second.
    #[must_use]
    fn max_hertz(self, hertz: u32) -> Self;
    /// Asks for one sample in `n`.
    #[must_use]
    fn one_in(self, n: u32) -> Self;
    /// Asks for pictures of this size, in pixels.
    #[must_use]
    fn sized(self, width: u32, height: u32) -> Self;
    /// Sets a delay bound, in milliseconds.
    #[must_use]
    fn within_ms(self, millis: u64) -> Self;
    /// Requests a spare.
    #[must_use]
    fn spared(self) -> Self;
    /// Sets a loss tolerance.
    #[must_use]
    fn losing(self, loss: LossTolerance) -> Self;
    /// Selects the retransmission mode.
    #[must_use]
    fn retransmit(self, retransmit: Retransmit) -> Self;
    /// Places the scaling at the subscriber.
    #[must_use]
    fn scaled_here(self) -> Self;
    /// Scales at the node of this name.
    fn scaled_at(self, node: &str) -> Self;
    /// Scales where the publisher's node chooses.
    fn scaled_anywhere(self) -> Self;
}

impl Ask for SubscriptionSpec {
    fn max_hertz(mut self, hertz: u32) -> Self {
        self.form.rate = NonZeroU32::new(hertz.saturating_mul(1_000)).map_or(Rate::ALL, Rate::max);
        self
    }

    fn one_in(mut self, n: u32) -> Self {
        self.form.rate = NonZeroU32::new(n).map_or(Rate::ALL, Rate::every);
        self
    }

    fn sized(mut self, width: u32, height: u32) -> Self {
        self.form.size = Some(Size { width, height });
        self
    }

    fn within_ms(mut self, millis: u64) -> Self {
        self.within = Some(Duration::from_millis(millis));
        self
    }

    fn spared(mut self) -> Self {
        self.spare = true;
        self
    }

    fn losing(mut self, loss: LossTolerance) -> Self {
        self.loss = Some(loss);
        self
    }

    fn retransmit(mut self, retransmit: Retransmit) -> Self {
        self.retransmit = retransmit;
        self
    }

    fn scaled_here(mut self) -> Self {
        self.proxy = Proxy::Subscriber;
        self
    }

    fn scaled_at(mut self, node: &str) -> Self {
        self.proxy = Proxy::Node(node.into());
        self
    }

    fn scaled_anywhere(mut self) -> Self {
        self.proxy = Proxy::Auto;
        self
    }
}

//! Variants of a refused request: the contracts that may be offered instead.
//!
//! The nodes of a path name the values that their own links would grant. The node that asked them combines these to
//! variants of the request, adds variants with a lower rate and a smaller size, and asks all nodes again which of them
//! they would grant. So every offer was tested on the whole path, as it is when a subscription takes it.

use crate::control::contracts::admission::{bitrate_obstacle, form_obstacle};
use crate::control::data::codec::{put_loss, put_size, read_loss, read_size};
use crate::control::data::refusal::Offer;
use crate::control::data::spec::{PublisherSpec, SubscriptionSpec};
use crate::control::data::split::Split;
use crate::control::data::trial::TrafficTrial;
use crate::form::{Form, Size};
use crate::wire::{Reader, WireError, Writer};
use core::num::NonZeroU32;
use paceline_sched::{Duration, LossTolerance};
use std::borrow::Cow;

/// The parts of the rate and the sixteenths of the sides that are offered together: one in n samples, at each of the
/// sizes. Both parts of the first ones are about equal. The smallest sizes suit short delay bounds on slow links, where a
/// larger picture is late at any rate.
const TOGETHER: [(u64, &[u64]); 9] = [
    (2, &[12, 10, 8, 6, 4, 2]),
    (3, &[10, 8, 6, 5, 4, 2]),
    (4, &[8, 6, 5, 4, 3, 2]),
    (5, &[6, 5, 4, 3, 2]),
    (6, &[5, 4, 3, 1]),
    (8, &[4, 3, 2, 1]),
    (10, &[3, 2, 1]),
    (15, &[2, 1]),
    (30, &[1]),
];
/// The sixteenths of the sides that are offered.
pub(in crate::control) const SIXTEENTHS: u64 = 16;
/// The percentages of a value that each link would grant which are tried, from the best one: another link may grant
/// less, and a lower rate may fit worse.
const PERCENT: [u64; 6] = [100, 97, 90, 80, 65, 50];
/// The same of a delay bound.
const LONGER: [u64; 4] = [100, 110, 135, 200];

/// The value of a request that a variant changes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::control) enum Variant {
    /// At most this rate, in millihertz.
    Rate(NonZeroU32),
    /// Pictures of at most this size.
    Size(Size),
    /// Both.
    Both(NonZeroU32, Size),
    /// At most this bit rate.
    Bitrate(NonZeroU32),
    /// Samples of at most this number of bytes from the publisher.
    Bytes(u64),
    /// This delay bound.
    Within(Duration),
    /// This loss tolerance.
    Loss(LossTolerance),
}

impl Variant {
    /// Returns the request with the changed value.
    pub(in crate::control) fn request(&self, request: &SubscriptionSpec) -> SubscriptionSpec {
        let (form, request) = (request.form, request.clone());
        let with = |form: Form| SubscriptionSpec { form, ..request.clone() };
        match *self {
            Self::Rate(rate) => with(Form { rate: form.rate.at_most(rate), ..form }),
            Self::Size(size) => with(Form { size: Some(size), ..form }),
            Self::Both(rate, size) => {
                with(Form { rate: form.rate.at_most(rate), size: Some(size), ..form })
            }
            Self::Bitrate(bits) => with(Form { bitrate: Some(bits), ..form }),
            Self::Bytes(_) => request,
            Self::Within(within) => SubscriptionSpec { within: Some(within), ..request },
            Self::Loss(loss) => SubscriptionSpec { loss: Some(loss), ..request },
        }
    }

    /// Returns the declaration with the changed value.
    fn publisher(self, spec: &PublisherSpec) -> Option<PublisherSpec> {
        let (Self::Bytes(bytes), Some(whole)) = (self, spec.bytes_max) else { return None };
        let envelope = spec.envelope.map(|it| it.smaller(bytes, whole));
        Some(PublisherSpec { bytes_max: Some(bytes), envelope, ..spec.clone() })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut number = |kind: u8, number: u64| {
            out.put_u8(kind);
            out.put_varint(number);
        };
        match *self {
            Self::Rate(rate) => number(1, rate.get().into()),
            Self::Size(size) => {
                out.put_u8(2);
                put_size(out, size);
            }
            Self::Both(rate, size) => {
                number(3, rate.get().into());
                put_size(out, size);
            }
            Self::Bitrate(bits) => number(4, bits.get().into()),
            Self::Bytes(bytes) => number(5, bytes),
            Self::Within(within) => number(6, within.as_nanos()),
            Self::Loss(loss) => {
                out.put_u8(7);
                put_loss(out, loss);
            }
        }
    }

    fn read(kind: u8, reader: &mut Reader) -> Result<Self, WireError> {
        let nonzero = |reader: &mut Reader, what| {
            NonZeroU32::new(reader.varint32(what)?).ok_or(WireError::Invalid(what))
        };
        Ok(match kind {
            1 => Self::Rate(nonzero(reader, "offered rate")?),
            2 => Self::Size(read_size(reader)?),
            3 => Self::Both(nonzero(reader, "offered rate")?, read_size(reader)?),
            4 => Self::Bitrate(nonzero(reader, "offered bit rate")?),
            5 => Self::Bytes(reader.varint("offered bytes")?),
            6 => Self::Within(Duration::from_nanos(reader.varint("offered delay bound")?)),
            7 => Self::Loss(read_loss(reader)?),
            _ => return Err(WireError::Invalid("trial")),
        })
    }
}

/// A request or traffic that a survey tests instead of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::control) enum Trial {
    /// Other traffic of the publisher.
    Traffic(TrafficTrial),
    /// A variant of the request.
    Variant(Variant),
}

impl Trial {
    /// Returns the declaration and the request with the values of this trial.
    pub(in crate::control) fn apply<'s>(
        &self,
        spec: &'s PublisherSpec,
        request: &SubscriptionSpec,
    ) -> (Cow<'s, PublisherSpec>, SubscriptionSpec) {
        match self {
            Self::Traffic(traffic) => {
                let (spec, request) = traffic.apply(spec, request);
                (Cow::Owned(spec), request)
            }
            Self::Variant(variant) => {
                let other = variant.publisher(spec).map(Cow::Owned);
                (other.unwrap_or(Cow::Borrowed(spec)), variant.request(request))
            }
        }
    }

    pub(in crate::control) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Traffic(traffic) => {
                out.put_u8(0);
                traffic.write(out);
            }
            Self::Variant(variant) => variant.write(out),
        }
    }

    pub(in crate::control) fn read(reader: &mut Reader) -> Result<Self, WireError> {
        match reader.u8("trial")? {
            0 => TrafficTrial::read(reader).map(Self::Traffic),
            kind => Variant::read(kind, reader).map(Self::Variant),
        }
    }
}

/// The variants of one refused request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::control) struct Variants {
    list: Vec<Variant>,
    /// The requested rate in millihertz, and width.
    full: Option<(u64, u32)>,
}

impl Variants {
    /// Returns the variants of a request, at most [`TrafficTrial::TRIALS_MAX`], with values that each link by itself
    /// would grant (`hint`).
    pub(in crate::control) fn of(
        spec: &PublisherSpec,
        request: &SubscriptionSpec,
        (split, hint): (Split, &Offer),
    ) -> Self {
        let form = spec.form_of(request.form);
        let hertz = full_rate(spec, form);
        let parts = |value: u64| PERCENT.map(|part| value.saturating_mul(part) / 100);
        let nonzero = |number: u64| u32::try_from(number).ok().and_then(NonZeroU32::new);
        let mut list = Vec::new();
        let rates = hint.max_millihertz.into_iter().flat_map(parts);
        list.extend(rates.filter_map(shown_rate).map(Variant::Rate));
        let sizes = (1..SIXTEENTHS).rev().filter_map(|of| sixteenths(spec, form, of));
        let most = |size: &Size| hint.size.is_some_and(|hint| size.pixels() <= hint.pixels());
        list.extend(sizes.filter(most).take(PERCENT.len()).map(Variant::Size));
        let bits = hint.bitrate.into_iter().flat_map(|bits| parts(u64::from(bits.get()) / 1_000));
        list.extend(bits.filter_map(|kbit| nonzero(kbit * 1_000)).map(Variant::Bitrate));
        let bytes = hint.bytes.filter(|_| !form.converts()).into_iter().flat_map(parts);
        list.extend(bytes.take(3).filter(|bytes| *bytes > 0).map(Variant::Bytes));
        let longer = |bound: Duration| {
            LONGER.map(|part| bound.mul_div(part, 100).as_nanos().div_ceil(1_000_000))
        };
        let bounds = hint.within.into_iter().flat_map(longer).map(Duration::from_millis);
        list.extend(bounds.map(Variant::Within));
        list.extend(hint.loss.map(Variant::Loss));
        if let Some(hertz) = hertz {
            let both = TOGETHER.iter().flat_map(|(n, sizes)| sizes.iter().map(move |of| (n, *of)));
            list.extend(both.filter_map(|(n, of)| {
                Some(Variant::Both(shown_rate(hertz / n)?, sixteenths(spec, form, of)?))
            }));
        }
        list.dedup();
        list.retain(|variant| {
            let request = variant.request(request);
            form_obstacle(spec, spec.form_of(request.form)).is_none()
                && bitrate_obstacle(spec, &request, split).is_none()
        });
        list.truncate(TrafficTrial::TRIALS_MAX);
        let full = hertz.zip(form.size.or(spec.size).map(|size| size.width));
        Self { list, full }
    }

    pub(in crate::control) fn trials(&self) -> Vec<Trial> {
        self.list.iter().copied().map(Trial::Variant).collect()
    }

    /// Returns the best offers among the variants that the path would grant, one bit each.
    ///
    /// A rate and a size together are preferred to either alone if they keep more of the part that is reduced most.
    pub(in crate::control) fn offer(&self, fits: u64) -> Offer {
        let (mut offer, mut both) = (Offer::default(), None);
        for (at, variant) in self.list.iter().enumerate() {
            let bit = u32::try_from(at).ok().and_then(|at| fits.checked_shr(at)).unwrap_or(0);
            match *variant {
                _ if bit & 1 == 0 => {}
                // The first one of each kind is the best one.
                Variant::Rate(rate) => {
                    let rate = Some(rate.get().into());
                    offer.max_millihertz = offer.max_millihertz.or(rate);
                }
                Variant::Size(size) => offer.size = offer.size.or(Some(size)),
                Variant::Bitrate(bits) => offer.bitrate = offer.bitrate.or(Some(bits)),
                Variant::Bytes(bytes) => offer.bytes = offer.bytes.or(Some(bytes)),
                Variant::Within(within) => offer.within = offer.within.or(Some(within)),
                Variant::Loss(loss) => offer.loss = offer.loss.or(Some(loss)),
                Variant::Both(rate, size) => {
                    both = both.max(Some((
                        self.kept(Some(rate.get().into()), Some(size)),
                        rate,
                        size,
                    )));
                }
            }
        }
        let rate = offer.max_millihertz.map(|rate| self.kept(Some(rate), None));
        let size = offer.size.map(|size| self.kept(None, Some(size)));
        let single = rate.max(size).map(|(part, _)| part);
        if let Some(((part, _), rate, size)) = both
            && single.is_none_or(|single| part > single)
        {
            (offer.max_millihertz, offer.size) = (Some(rate.get().into()), Some(size));
            offer.together = true;
        }
        offer
    }

    /// Returns the thousandths that a variant keeps of the rate or the width, whichever is less, and the pixels per
    /// 1,000 seconds.
    fn kept(&self, rate: Option<u64>, size: Option<Size>) -> (u64, u64) {
        let Some((hertz, width)) = self.full else { return (1_000, 0) };
        let rate = rate.unwrap_or(hertz);
        let of_rate = rate.saturating_mul(1_000) / hertz.max(1);
        let of_width =
            size.map_or(1_000, |size| u64::from(size.width) * 1_000 / u64::from(width.max(1)));
        (of_rate.min(of_width), rate.saturating_mul(size.map_or(0, Size::pixels)))
    }
}

/// Returns the rate of a form in millihertz; `None` if it is unknown. Sound with gaps is none, so it has no other rate.
pub(in crate::control) fn full_rate(spec: &PublisherSpec, form: Form) -> Option<u64> {
    let period = form.rate.period(spec.period).filter(|_| !spec.has_sound())?;
    Some(1_000_000_000_000 / period.as_nanos().max(1))
}

/// Returns the highest rate of at most `millihertz` that is shown exactly: in tenths of a hertz from 1 Hz.
pub(in crate::control) fn shown_rate(millihertz: u64) -> Option<NonZeroU32> {
    let shown = if millihertz < 1_000 { millihertz } else { millihertz / 100 * 100 };
    u32::try_from(shown).ok().and_then(NonZeroU32::new)
}

/// Returns a part of the requested size, in sixteenths of its sides; `None` if the size cannot be reduced.
pub(in crate::control) fn sixteenths(spec: &PublisherSpec, form: Form, of: u64) -> Option<Size> {
    let whole = form.size.or(spec.size)?;
    if form.bitrate.is_some() || !spec.has_scalable_pictures() {
        return None;
    }
    // Coded video has even sides.
    let part = |side: u32| u32::try_from(u64::from(side) * of / SIXTEENTHS).unwrap_or(side) & !1;
    let size = Size { width: part(whole.width), height: part(whole.height) };
    (size.pixels() > 0).then_some(size)
}

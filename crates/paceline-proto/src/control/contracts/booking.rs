//! The reservation requests of pairs, and the reservations installed on this node.

use super::contract::{demand_of, saved, shares};
use super::pair::Pair;
use super::request::{Ask, whole_micros};
use super::shares::stays_apart;
use crate::control::data::codec::{put_pair, put_subscription, read_pair, read_subscription};
use crate::control::data::ids::PairKey;
use crate::control::data::spec::{PublisherSpec, SubscriptionSpec};
use crate::control::data::split::Split;
use crate::form::{Form, Rate};
use crate::ids::{NodeId, PublisherId};
use crate::wire::{Reader, WireError, Writer};
use bytes::Bytes;
use core::cmp::Reverse;
use core::num::NonZeroU32;
use paceline_admit::reserve::{HeldReservation, LinkId, Name, NodeIndex, Request, Scaled, Wanted};
use paceline_admit::{Trunk, TrunkRate};
use paceline_sched::Duration;

/// A reservation installed on this node. Its stream follows the reserved path and request, whatever the
/// registry contains meanwhile.
#[derive(Clone, Debug)]
pub(crate) struct Booking {
    pub(crate) name: Name,
    pub(crate) pair: PairKey,
    pub(crate) request: SubscriptionSpec,
    /// The nodes from the publisher's to the subscription's.
    pub(crate) path: Vec<NodeId>,
    /// The division of the delay bound among the hops.
    pub(crate) split: Split,
    /// The reservation on each link, up to a proxy between the ends.
    pub(in crate::control) wanted: Wanted,
    /// The reservation on the links behind such a proxy.
    pub(in crate::control) scaled: Option<Scaled>,
    /// The part of the delay of each hop.
    pub(in crate::control) bounds: Vec<Duration>,
}

impl Booking {
    /// Returns `None` if the reservation is none of this protocol's; no stream is carried for it.
    pub(in crate::control) fn of(held: &HeldReservation<'_>) -> Option<Self> {
        let Label { pair, request, split } = Label::read(held.label).ok()?;
        let split = Split::from_code(held.path.len(), split);
        let path: Vec<NodeId> = held.path.iter().map(|node| NodeId(node.0)).collect();
        let (subscription, publisher) = pair;
        let ends = path.first() == Some(&publisher.node) && path.last() == Some(&subscription.node);
        let wanted = *held.forward.filter(|_| ends)?;
        let bounds = held.weights.iter().map(|micros| Duration::from_micros((*micros).into()));
        let (bounds, scaled) = (bounds.collect(), held.scaled.copied());
        Some(Self { name: held.name, pair, request, path, split, wanted, scaled, bounds })
    }

    /// Returns the reservation on the link of hop `hop`, from 0.
    pub(in crate::control) const fn on(&self, hop: usize) -> &Wanted {
        on(&self.wanted, self.scaled.as_ref(), hop)
    }

    /// Returns the reservation on the link from a node of the path.
    pub(in crate::control) fn at(&self, node: NodeId) -> &Wanted {
        self.on(self.path.iter().position(|it| *it == node).unwrap_or_default())
    }
}

/// The reservation of a pair that a request changes. It is no obstacle to the request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::control) enum Replaced {
    /// None: the request is the first one for its path.
    Nothing,
    /// The only one of the pair, if there is any.
    Only,
    /// The one with this number, of the first path or of the spare.
    Number(u64),
}

impl Replaced {
    /// Returns true if a request replaces the reservation `number` of its pair.
    pub(in crate::control) const fn is(self, number: u64) -> bool {
        match self {
            Self::Nothing => false,
            Self::Only => true,
            Self::Number(replaced) => replaced == number,
        }
    }

    pub(in crate::control) fn write(self, out: &mut Vec<u8>) {
        let (kind, number) = match self {
            Self::Nothing => (0, None),
            Self::Only => (1, None),
            Self::Number(number) => (2, Some(number)),
        };
        out.put_varint(kind);
        number.into_iter().for_each(|number| out.put_varint(number));
    }

    pub(in crate::control) fn read(reader: &mut Reader) -> Result<Self, WireError> {
        match reader.varint("replaced reservation")? {
            0 => Ok(Self::Nothing),
            1 => Ok(Self::Only),
            2 => Ok(Self::Number(reader.varint("replaced reservation")?)),
            _ => Err(WireError::Invalid("replaced reservation")),
        }
    }
}

/// The reservations that a path needs.
pub(in crate::control) struct Demanded {
    /// The reservation on each link, up to a proxy between the ends.
    pub(in crate::control) wanted: Wanted,
    /// The reservation on the links behind such a proxy.
    pub(in crate::control) scaled: Option<Scaled>,
    /// Each hop's part of the delay.
    pub(in crate::control) bounds: Vec<Duration>,
}

impl Demanded {
    /// Returns the reservation on the link of hop `hop`, from 0.
    pub(in crate::control) const fn on(&self, hop: usize) -> &Wanted {
        on(&self.wanted, self.scaled.as_ref(), hop)
    }
}

const fn on<'w>(wanted: &'w Wanted, scaled: Option<&'w Scaled>, hop: usize) -> &'w Wanted {
    match scaled {
        Some(scaled) if hop >= scaled.at => &scaled.wanted,
        Some(_) | None => wanted,
    }
}

/// The purpose of a reservation, as an opaque label for [`paceline_admit`].
pub(in crate::control) struct Label {
    /// The subscription and publisher.
    pub(in crate::control) pair: PairKey,
    /// The subscription's request.
    pub(in crate::control) request: SubscriptionSpec,
    /// The division of the delay bound among the hops: [`Split::code`].
    pub(in crate::control) split: u32,
}

impl Label {
    /// Returns the order in which reservations keep their place on a link: the most important ones first.
    pub(in crate::control) fn rank(label: &[u8]) -> Option<Reverse<u8>> {
        Some(Reverse(Self::read(label).ok()?.request.importance))
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_pair(&mut out, self.pair.0, self.pair.1);
        put_subscription(&mut out, &self.request);
        out.put_varint(self.split.into());
        out
    }

    pub(in crate::control) fn read(label: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(Bytes::copy_from_slice(label));
        let (pair, request) = (read_pair(&mut reader)?, read_subscription(&mut reader)?);
        let split = reader.varint32("split")?;
        reader.finish()?;
        Ok(Self { pair, request, split })
    }
}

/// Returns the identifier of one publisher's samples in one form, equal on all nodes: its rate, and FNV-1a in 128 bits
/// for all else. If the stream stays apart from other forms, the hash also covers the rate.
pub(in crate::control) fn trunk(publisher: PublisherId, stays_apart: bool, form: Form) -> Trunk {
    let Rate { every, max_millihertz, bits_per_s } = form.rate;
    let number = |limit: Option<NonZeroU32>| limit.map_or(0, NonZeroU32::get);
    let (every, limit) = (every.get(), number(max_millihertz));
    // The samples that a bit rate limit selects depend on all before, so no other stream carries them.
    let (rate, counts) = match stays_apart || bits_per_s.is_some() {
        true => (TrunkRate::Apart, [every, limit, number(bits_per_s)]),
        false => (TrunkRate::Shared { every, limit }, [0; 3]),
    };
    let (width, height) = form.size.map_or((0, 0), |size| (size.width, size.height));
    let (audio, channels) = form.audio.map_or((0, 0), |audio| (audio.rate, audio.channels));
    let coding =
        [form.bitrate.map_or(0, NonZeroU32::get), form.quality.map_or(0, |it| it.get().into())];
    let [every, limit, bits] = counts;
    let words = [publisher.index, every, limit, bits, width, height, audio, channels.into()];
    let words = words.into_iter().chain(coding.into_iter().filter(|word| *word > 0));
    let via = form.via.into_iter().flat_map(|node| node.0.to_le_bytes());
    let words = words.flat_map(u32::to_le_bytes).chain(via);
    let hashed = publisher
        .node
        .0
        .to_le_bytes()
        .into_iter()
        .chain(words)
        .fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, byte| {
            (hash ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b)
        });
    Trunk::of_family(hashed, rate)
}

/// Returns a pair's reservation request to its path, on `link` of this node; `None` if there is nothing to promise.
pub(in crate::control) fn request(
    pair: &Pair<'_>,
    path: &[NodeId],
    split: Split,
    link: Option<LinkId>,
) -> Option<Request> {
    let behind = pair.spec.form_behind(pair.request, path, split);
    let demanded = wanted(pair.publisher, pair.spec, pair.request, (split, behind))?;
    let Demanded { wanted, scaled, bounds } = demanded;
    let scales_here = split.proxy() == 0;
    let work = if scales_here { pair.spec.scaling_work(pair.asked) } else { 0 };
    let micros = |bound: &Duration| u32::try_from(bound.as_nanos() / 1_000).unwrap_or(u32::MAX);
    let label = Label { pair: pair.key(), request: pair.request.clone(), split: split.code() };
    Some(Request {
        path: path.iter().map(|node| NodeIndex(node.0)).collect(),
        weights: bounds.iter().map(micros).collect(),
        label: label.encode(),
        forward: Some(wanted),
        backward: None,
        scaled,
        link,
        work,
        idle: pair.idle_time(),
    })
}

/// Returns the reservations on the links of a path for one publisher's samples, which have the form `behind` behind the
/// proxy.
///
/// Returns `None` if there is nothing to promise.
pub(in crate::control) fn wanted(
    publisher: PublisherId,
    spec: &PublisherSpec,
    request: &SubscriptionSpec,
    (split, behind): (Split, Form),
) -> Option<Demanded> {
    let first = Ask::new(request, spec, 0, split)?;
    let form = |hop| if split.is_scaled(hop) { behind } else { Form::FULL };
    let bounds: Vec<Duration> = shares(spec, form, &first).into_iter().map(whole_micros).collect();
    let all = bounds.iter().fold(Duration::ZERO, |sum, bound| sum.saturating_add(*bound));
    let on = |hop: usize| {
        let (ask, form) = (Ask { hop, ..first }, form(hop));
        Some(Wanted {
            trunk: trunk(publisher, stays_apart(spec, request), form),
            traffic: *demand_of(spec, form, &ask)??.traffic(),
            bunched: Duration::ZERO,
            within: all,
            loss: saved(spec, form, &ask),
            level: request.level,
        })
    };
    let wanted = on(0)?;
    let scaled = if split.scales_between() {
        let behind = on(split.proxy())?;
        // A sample may be scaled at once or as late as its part of the delay allows.
        let wanted = Wanted { bunched: first.scaling, ..behind };
        Some(Scaled { at: split.proxy(), wanted })
    } else {
        None
    };
    Some(Demanded { wanted, scaled, bounds })
}

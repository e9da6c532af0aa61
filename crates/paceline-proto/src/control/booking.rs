//! What a pair asks a path for, and what of it is installed on this node.

use super::codec::{put_pair, put_subscription, read_pair, read_subscription};
use super::contract::{Ask, asked, shares, whole_micros};
use super::registry::PairKey;
use super::routes::Pair;
use super::spec::{PublisherSpec, SubscriptionSpec};
use super::split::Split;
use super::tolerance::counted_loss;
use crate::form::{Form, Rate};
use crate::ids::{NodeId, PublisherId};
use crate::wire::{Reader, WireError, Writer};
use bytes::Bytes;
use paceline_admit::Trunk;
use paceline_admit::reserve::{Held, Name, Node, Request, Wanted};
use paceline_sched::Duration;

/// A reservation that is installed on this node: what goes along its path is what was asked for there,
/// whatever the registry says meanwhile.
#[derive(Clone, Debug)]
pub(crate) struct Booking {
    pub(crate) name: Name,
    pub(crate) pair: PairKey,
    pub(crate) request: SubscriptionSpec,
    /// From the publisher's node to the subscription's.
    pub(crate) path: Vec<NodeId>,
    /// How it shares a delay bound.
    pub(crate) split: Split,
    /// What each link of it holds.
    pub(super) wanted: Wanted,
    /// What each hop may take of the delay.
    pub(super) bounds: Vec<Duration>,
}

impl Booking {
    /// `None` of what is no reservation of ours: nothing is carried for it.
    pub(super) fn of(held: &Held<'_>) -> Option<Self> {
        let Label { pair, request, split } = Label::read(held.label).ok()?;
        let split = Split::from_code(held.path.len(), split);
        let path: Vec<NodeId> = held.path.iter().map(|node| NodeId(node.0)).collect();
        let (subscription, publisher) = pair;
        let ends = path.first() == Some(&publisher.node) && path.last() == Some(&subscription.node);
        let wanted = *held.forward.filter(|_| ends)?;
        let bounds = held.weights.iter().map(|micros| Duration::from_micros((*micros).into()));
        let bounds = bounds.collect();
        Some(Self { name: held.name, pair, request, path, split, wanted, bounds })
    }
}

/// What a reservation is for, in our words.
pub(super) struct Label {
    /// Whose it is.
    pub(super) pair: PairKey,
    /// What was asked for.
    pub(super) request: SubscriptionSpec,
    /// How the path shares a delay bound: [`Split::code`].
    split: u32,
}

impl Label {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_pair(&mut out, self.pair.0, self.pair.1);
        put_subscription(&mut out, &self.request);
        out.put_varint(self.split.into());
        out
    }

    pub(super) fn read(label: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(Bytes::copy_from_slice(label));
        let (pair, request) = (read_pair(&mut reader)?, read_subscription(&mut reader)?);
        let split = reader.varint32("split")?;
        reader.finish()?;
        Ok(Self { pair, request, split })
    }
}

/// One name for a publisher's samples in one form, the same on all nodes: FNV-1a in 128 bits.
pub(super) fn trunk(publisher: PublisherId, form: Form) -> Trunk {
    let (kind, rate) = match form.rate {
        Rate::All => (0, 0),
        Rate::Every(n) => (1, n.get()),
        Rate::Max(millihertz) => (2, millihertz.get()),
    };
    let (width, height) = form.size.map_or((0, 0), |size| (size.width, size.height));
    let (audio, channels) = form.audio.map_or((0, 0), |audio| (audio.rate, audio.channels));
    let words = [publisher.index, kind, rate, width, height, audio, channels.into()];
    let words = words.iter().flat_map(|word| word.to_le_bytes());
    let hashed = publisher
        .node
        .0
        .to_le_bytes()
        .into_iter()
        .chain(words)
        .fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, byte| {
            (hash ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b)
        });
    // The highest names are a link's own.
    Trunk(hashed >> 1)
}

/// What a pair asks of its path, from the publisher's node on; `None` if that is nothing that is promised.
pub(super) fn request(pair: &Pair<'_>, path: &[NodeId], split: Split) -> Option<Request> {
    let (wanted, bounds) = wanted(pair.publisher, pair.spec, pair.request, split)?;
    let micros = |bound: &Duration| u32::try_from(bound.as_nanos() / 1_000).unwrap_or(u32::MAX);
    let label = Label { pair: pair.key(), request: pair.request.clone(), split: split.code() };
    Some(Request {
        path: path.iter().map(|node| Node(node.0)).collect(),
        weights: bounds.iter().map(micros).collect(),
        label: label.encode(),
        forward: Some(wanted),
        backward: None,
        idle: None,
    })
}

/// What `request` asks each link of a path to hold of a publisher's samples, and what each hop of it may take
/// of the delay; `None` if that is nothing that is promised.
pub(super) fn wanted(
    publisher: PublisherId,
    spec: &PublisherSpec,
    request: &SubscriptionSpec,
    split: Split,
) -> Option<(Wanted, Vec<Duration>)> {
    let ask = Ask::new(request, spec, 0, split)?;
    let form = spec.travelling(request);
    let demand = asked(spec, form, &ask)??;
    let bounds: Vec<Duration> = shares(spec, form, &ask).into_iter().map(whole_micros).collect();
    let all = bounds.iter().fold(Duration::ZERO, |sum, bound| sum.saturating_add(*bound));
    let wanted = Wanted {
        trunk: trunk(publisher, form),
        traffic: *demand.traffic(),
        bunched: Duration::ZERO,
        within: all,
        loss: counted_loss(spec, form, &ask),
        level: None,
    };
    Some((wanted, bounds))
}

/// Whether a pair has anything promised at all.
pub(super) fn is_promised(spec: &PublisherSpec, form: Form, ask: &Ask) -> bool {
    matches!(asked(spec, form, ask), Some(Some(_)))
}

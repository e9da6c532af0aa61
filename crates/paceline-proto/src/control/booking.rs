//! What a pair asks a path for, and what of it is installed on this node.

use super::codec::{put_pair, put_subscription, read_pair, read_subscription};
use super::contract::{Ask, asked};
use super::registry::PairKey;
use super::routes::Pair;
use super::spec::{PublisherSpec, SubscriptionSpec};
use crate::form::{Form, Rate};
use crate::ids::{NodeId, PublisherId};
use crate::wire::{Reader, WireError};
use bytes::Bytes;
use paceline_admit::Trunk;
use paceline_admit::reserve::{Held, Name, Node, Request, Wanted};
use paceline_sched::{Duration, LossTolerance};

/// A reservation that is installed on this node: what goes along its path is what was asked for there,
/// whatever the registry says meanwhile.
#[derive(Clone, Debug)]
pub(crate) struct Booking {
    pub(crate) name: Name,
    pub(crate) pair: PairKey,
    pub(crate) request: SubscriptionSpec,
    /// From the publisher's node to the subscription's.
    pub(crate) path: Vec<NodeId>,
    /// What each link of it holds.
    pub(super) wanted: Wanted,
}

impl Booking {
    /// `None` of what is no reservation of ours: nothing is carried for it.
    pub(super) fn of(held: &Held<'_>) -> Option<Self> {
        let (pair, request) = read_label(held.label).ok()?;
        let path: Vec<NodeId> = held.path.iter().map(|node| NodeId(node.0)).collect();
        let (subscription, publisher) = pair;
        let ends = path.first() == Some(&publisher.node) && path.last() == Some(&subscription.node);
        let wanted = *held.forward.filter(|_| ends)?;
        Some(Self { name: held.name, pair, request, path, wanted })
    }
}

fn label(key: PairKey, request: &SubscriptionSpec) -> Vec<u8> {
    let mut out = Vec::new();
    put_pair(&mut out, key.0, key.1);
    put_subscription(&mut out, request);
    out
}

/// Whose reservation it is, and what was asked for.
pub(super) fn read_label(label: &[u8]) -> Result<(PairKey, SubscriptionSpec), WireError> {
    let mut reader = Reader::new(Bytes::copy_from_slice(label));
    let (pair, request) = (read_pair(&mut reader)?, read_subscription(&mut reader)?);
    reader.finish()?;
    Ok((pair, request))
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
pub(super) fn request(pair: &Pair<'_>, path: &[NodeId]) -> Option<Request> {
    let hops = path.len().checked_sub(1)?;
    Some(Request {
        path: path.iter().map(|node| Node(node.0)).collect(),
        label: label(pair.key(), pair.request),
        forward: Some(wanted(pair.publisher, pair.spec, pair.request, hops)?),
        backward: None,
        idle: None,
    })
}

/// What `request` asks each link of a path of so many hops to hold of a publisher's samples; `None` if that is
/// nothing that is promised.
pub(super) fn wanted(
    publisher: PublisherId,
    spec: &PublisherSpec,
    request: &SubscriptionSpec,
    hops: usize,
) -> Option<Wanted> {
    let ask = Ask::new(request, spec, 1, hops)?;
    let form = spec.travelling(request);
    let demand = asked(spec, form, &ask)??;
    Some(Wanted {
        trunk: trunk(publisher, form),
        traffic: *demand.traffic(),
        bunched: Duration::ZERO,
        // Each hop takes an equal part of it, which is the deadline of its contract.
        within: demand.deadline().mul_div(hops as u64, 1),
        // Charged already: of y samples y − x count.
        loss: LossTolerance::NONE,
        sample: demand.sample(),
        level: None,
    })
}

/// Whether a pair has anything promised at all.
pub(super) fn is_promised(spec: &PublisherSpec, form: Form, ask: &Ask) -> bool {
    matches!(asked(spec, form, ask), Some(Some(_)))
}

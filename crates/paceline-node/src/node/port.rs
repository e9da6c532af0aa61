//! The ports of a source's outputs: streams of links, subscriptions of this node, and scalers.

use super::inline::InlineScaler;
use crate::deliver::Needed;
use crate::install::{ScalerId, StreamPlace};
use paceline_proto::video::DecodeGate;
use paceline_proto::{PublisherId, SubscriptionId, Tag};
use paceline_sched::Late;

/// The port of an output.
#[derive(Debug)]
pub(super) enum NodePort {
    /// To a stream or to subscriptions.
    Destination(Destination),
    /// To a shared scaler, which stores the destination.
    Scale(ScalerId),
    /// Through a scaler of its own.
    Inline(Box<dyn InlineScaler>, Destination),
}

/// The final target of an output.
#[derive(Debug)]
pub(super) enum Destination {
    /// A stream of a link.
    Stream(StreamPlace),
    /// Subscriptions of this node.
    Local(LocalPort),
}

impl Destination {
    /// Returns the stream, unless it is local.
    pub(super) const fn stream(&self) -> Option<StreamPlace> {
        match self {
            Self::Stream(place) => Some(*place),
            Self::Local(_) => None,
        }
    }
}

/// Subscriptions of this node that receive the samples of one publisher in one form.
#[derive(Debug)]
pub(super) struct LocalPort {
    pub(super) publisher: PublisherId,
    pub(super) late: Late,
    pub(super) tag: Tag,
    pub(super) subscriptions: Vec<Joined>,
}

/// A subscription with its own gate, since it joins at its own time and may lose samples that others receive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Joined {
    pub(super) subscription: SubscriptionId,
    pub(super) gate: DecodeGate,
    /// The delivered video pictures.
    pub(super) needed: Needed,
}

impl LocalPort {
    pub(super) fn new(
        publisher: PublisherId,
        tag: Tag,
        late: Late,
        first: &[SubscriptionId],
    ) -> Self {
        let mut port = Self { publisher, late, tag, subscriptions: Vec::new() };
        port.join(first);
        port
    }

    pub(super) fn join(&mut self, new: &[SubscriptionId]) {
        let joined = new.iter().map(|&subscription| {
            let (gate, needed) = (DecodeGate::new(), Needed::default());
            Joined { subscription, gate, needed }
        });
        self.subscriptions.extend(joined);
    }

    pub(super) fn leave(&mut self, gone: &[SubscriptionId]) {
        self.subscriptions.retain(|known| !gone.contains(&known.subscription));
    }
}

//! The commands of an [`Installer`](super::Installer).

use super::installation::Installation;
use super::scaler::{ScalerId, ScalerTerms};
use crate::arrive::Arrangement;
use paceline_proto::control::PublisherSpec;
use paceline_proto::link::StreamSpec;
use paceline_proto::plan::{OutputPlan, SourceKey};
use paceline_proto::{Form, SubscriptionId};
use paceline_sched::Late;
use paceline_sched::discipline::StreamIndex;
use std::sync::Arc;

/// The place of a stream.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct StreamPlace {
    /// The index of its link, as in [`Ways`](paceline_proto::control::Ways).
    pub link: usize,
    /// Its index on the link.
    pub index: StreamIndex,
}

/// Identifies an output to subscriptions of this node.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct LocalPlace {
    /// The source.
    pub source: SourceKey,
    /// The form of the samples.
    pub form: Form,
    /// The scaling before the output.
    pub scale: Form,
}

impl LocalPlace {
    pub(super) const fn new(source: SourceKey, plan: &OutputPlan) -> Self {
        Self { source, form: plan.form, scale: plan.at_port() }
    }
}

/// The end of a port.
#[derive(Clone, Debug, PartialEq)]
pub enum PortEnd {
    /// A new stream of a link.
    Stream(StreamPlace, StreamSpec),
    /// Subscriptions of this node, the first of which are given.
    Local(LocalPlace, Vec<SubscriptionId>),
}

/// The port of a new output.
#[derive(Clone, Debug, PartialEq)]
pub struct NewPort {
    /// The final target of its samples.
    pub end: PortEnd,
    /// The scaler before it, and its number among the outputs of that scaler, below [`SCALER_OUTPUTS_MAX`](super::SCALER_OUTPUTS_MAX).
    pub scaler: Option<(ScalerId, u32)>,
    /// It may begin with pictures that are older than its stream. They are of no use to a delay bound, and would use up a
    /// contract.
    pub takes_old: bool,
}

/// A change of the ports of a node, to be executed in order.
#[derive(Clone, Debug, PartialEq)]
pub enum PortCommand {
    /// A scaler is new.
    OpenScaler {
        /// The scaler.
        scaler: ScalerId,
        /// The declaration of its publisher.
        publisher: Arc<PublisherSpec>,
        /// The scaling that it applies.
        scale: Form,
    },
    /// The terms of a scaler have changed.
    SetTerms(ScalerId, ScalerTerms),
    /// No output uses a scaler any more. It still delivers what it has begun.
    CloseScaler(ScalerId),
    /// A stream has another contract or other subscriptions.
    UpdateStream(StreamPlace, StreamSpec),
    /// The subscriptions of an output have changed.
    UpdateLocal {
        /// The output.
        place: LocalPlace,
        /// Those that it no longer has.
        leave: Vec<SubscriptionId>,
        /// Those that are new.
        join: Vec<SubscriptionId>,
        /// The new treatment of late samples, if it has changed.
        late: Option<Late>,
    },
    /// A source has other outputs, or may arrive from other neighbours. Without outputs it is removed.
    Install {
        /// The declaration of its publisher.
        publisher: Arc<PublisherSpec>,
        /// The change of a stream that arrives. A publisher of this node needs its key only.
        arrangement: Arrangement,
        /// The outputs.
        installation: Installation<NewPort>,
    },
    /// All changed sources of a publisher are installed: samples that waited for them can be delivered.
    Settle,
    /// Close a stream at once, and drop what waits in it.
    CloseStream(StreamPlace),
    /// Let a stream send what waits in it, and close it then: another one takes the next samples. Report its end to
    /// [`Installer::handle_closed`](super::Installer::handle_closed).
    DrainStream(StreamPlace),
    /// As [`Self::DrainStream`], but under the contract of the stream, because another stream satisfies that contract from now on.
    HandOverStream(StreamPlace),
    /// An output to subscriptions of this node is removed. These are its last subscriptions.
    CloseLocal(LocalPlace, Vec<SubscriptionId>),
    /// All streams of a link are in use, so an output lacks its stream.
    NoStream {
        /// The index of the link.
        link: usize,
    },
}

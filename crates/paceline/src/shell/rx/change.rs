//! A change of the streams that arrive, from the engine.

use super::super::installation::Installation;
use paceline_proto::NodeId;
use paceline_proto::entry::EntryLimit;
use paceline_proto::plan::SourceKey;
use paceline_sched::Instant;

/// A change of an arriving stream's outputs.
pub(crate) struct RxChange {
    pub(crate) source: SourceKey,
    /// The neighbours from which its samples may arrive.
    pub(crate) from: Vec<NodeId>,
    /// The time of the change. It may be applied later, with the next samples.
    pub(crate) at: Instant,
    /// The limits of its samples, by the rules of this node.
    pub(crate) entry: Vec<EntryLimit>,
    /// `None` if the stream has no outputs any more.
    pub(crate) installation: Option<Installation>,
}

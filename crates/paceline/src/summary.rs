//! The error and the result of a pull.

use crate::error::Contradiction;
use paceline_proto::pull::SelectionError;
use paceline_proto::{NodeId, PublisherId, Tag, TagError};
use std::fmt;

/// The error of a pull.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PullError {
    /// The tag is not valid.
    #[error(transparent)]
    Tag(#[from] TagError),
    /// The tag begins with `@`, which is reserved for the system.
    #[error(
        "tag '{0}' begins with '@', which is reserved for system tags; use another first character"
    )]
    Private(String),
    /// Two options exclude each other.
    #[error(transparent)]
    Contradiction(#[from] Contradiction),
    /// The selection is not valid.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// One sample in zero was requested.
    #[error("every 0: must be from 1 to 4294967295; 3 selects one sample in three")]
    EveryZero,
    /// The rate is not from 0.001 to 1,000,000 Hz.
    #[error("rate {0} Hz: must be from 0.001 to 1,000,000 Hz, such as 10")]
    Rate(String),
    /// A side of the requested picture is 0 or above 16384 pixels.
    #[error("size {width}x{height}: each side must be from 1 to 16384 pixels")]
    Size {
        /// The requested width.
        width: u32,
        /// The requested height.
        height: u32,
    },
    /// The sampling rate or the number of channels is out of range.
    #[error("audio {rate} Hz x {channels}: must be 1000 to 384000 Hz and 1 to 8 channels")]
    Audio {
        /// The requested samples per second and channel.
        rate: u32,
        /// The requested number of channels.
        channels: u8,
    },
    /// The timeout is zero.
    #[error("timeout 0: must be above 0; it limits the whole pull")]
    ZeroTimeout,
    /// No reachable node has a buffer with this tag.
    #[error(
        "no node buffers '{0}': publish it with a history (pub --history 100), or buffer it on any \
         node (node --buffer '{0}=100', [[buffer]] in its configuration)"
    )]
    NoBuffer(Tag),
    /// There is no node of this name or identifier.
    #[error("no node '{asked}'; known nodes: {}", .there.join(", "))]
    NoNode {
        /// The requested name or identifier.
        asked: String,
        /// The names of the existing nodes.
        there: Vec<String>,
    },
    /// Two nodes have this name.
    #[error("two nodes are named '{asked}'; use an id instead: {} or {}", .ids[0], .ids[1])]
    TwoNodes {
        /// The requested name.
        asked: String,
        /// The identifiers of two nodes with this name.
        ids: [NodeId; 2],
    },
    /// The requested node has no buffer with this tag.
    #[error("node '{node}' does not buffer '{tag}'; these nodes do: {}", .holders.join(", "))]
    NotHeldBy {
        /// The name of the node.
        node: String,
        /// The tag.
        tag: Tag,
        /// The names of the nodes that have one.
        holders: Vec<String>,
    },
    /// No buffer contains a selected sample: they expired, or have not been published yet.
    #[error("{0}")]
    Nothing(String),
    /// The nodes with buffers did not answer in time.
    #[error("no answer from {}: it may be busy or far away; try a longer timeout", .0.join(", "))]
    NoAnswer(Vec<String>),
    /// The nodes with buffers refused.
    #[error("{0}")]
    Refused(String),
    /// The operating system cannot start a thread.
    #[error("cannot start a thread: {0}")]
    Thread(String),
    /// The node has as many publishers and subscriptions as others can read.
    #[error("{}", crate::limits::TOO_MANY)]
    TooMany,
    /// The node is closed.
    #[error("the node is closed")]
    Closed,
}

impl PullError {
    /// Returns true if the request itself is not valid, independent of the available buffers.
    #[must_use]
    pub const fn is_usage(&self) -> bool {
        match self {
            Self::Tag(_)
            | Self::Private(_)
            | Self::Contradiction(_)
            | Self::Selection(_)
            | Self::EveryZero
            | Self::Rate(_)
            | Self::Size { .. }
            | Self::Audio { .. }
            | Self::ZeroTimeout => true,
            Self::NoBuffer(_)
            | Self::NoNode { .. }
            | Self::TwoNodes { .. }
            | Self::NotHeldBy { .. }
            | Self::Nothing(_)
            | Self::NoAnswer(_)
            | Self::Refused(_)
            | Self::Thread(_)
            | Self::TooMany
            | Self::Closed => false,
        }
    }
}

/// The result of a pull.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PullSummary {
    /// Samples found in the buffers.
    pub found: u64,
    /// Samples delivered.
    pub delivered: u64,
    /// Payload bytes delivered.
    pub bytes: u64,
    /// Samples that were found but not delivered, in the order of publishers and sequence numbers.
    pub missing: Vec<Missing>,
    /// The nodes that provided the samples.
    pub nodes: Vec<PullNode>,
    /// Names of nodes with buffers that did not answer. Samples that only they store were not
    /// found.
    pub silent: Vec<String>,
    /// True if the selection exceeds the limit of one pull, 65,536 samples. The rest was not
    /// fetched.
    pub more: bool,
}

/// A node that provided pulled samples.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PullNode {
    /// The node.
    pub id: NodeId,
    /// Its display name.
    pub name: String,
    /// Samples delivered from it.
    pub delivered: u64,
}

/// A sample that was found but not delivered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Missing {
    /// Its publisher.
    pub publisher: PublisherId,
    /// Its sequence number.
    pub seq: u64,
    /// The reason.
    pub reason: MissingReason,
}

/// The reason why a found sample was not delivered.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum MissingReason {
    /// The buffer dropped it before it was fetched.
    Expired,
    /// The named node is unreachable, and no other node stores the sample.
    HolderGone(String),
    /// The node that stores it refused, for the given reason.
    Refused(String),
    /// It cannot be scaled, for the given reason: it is damaged, or smaller than the requested
    /// size.
    CannotScale(String),
    /// A picture that its decoding needs was not delivered.
    Undecodable,
    /// It was sent and did not arrive.
    NotArrived {
        /// The number of requests for it.
        asked: u32,
    },
    /// The timeout of the pull has passed.
    TimeIsOver,
}

impl fmt::Display for MissingReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired => f.write_str("it expired before it was fetched"),
            Self::HolderGone(node) => write!(f, "node '{node}', which buffered it, has left"),
            Self::Refused(why) => write!(f, "refused: {why}"),
            Self::CannotScale(why) => write!(f, "it cannot be scaled: {why}"),
            Self::Undecodable => {
                f.write_str("it cannot be decoded: a picture that it depends on did not arrive")
            }
            Self::NotArrived { asked } => {
                write!(f, "it did not arrive after {asked} requests: it was lost on the path")
            }
            Self::TimeIsOver => f.write_str("the pull timed out"),
        }
    }
}

//! What can go wrong, one type per operation.

use paceline_proto::control::NAME_BYTES_MAX;
use paceline_proto::link::ClassError;
use paceline_proto::pull::LimitsError;
use paceline_proto::text::escape;
use paceline_proto::{ATTACHMENT_BYTES_MAX, NodeId, SubscriptionId, TagError};
use paceline_sched::ContractError;

/// Two options that state the same thing in two ways, or exclude each other.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{one} and {other} are both given: give one of them")]
pub struct Contradiction {
    /// The option that was given first.
    pub one: &'static str,
    /// The other.
    pub other: &'static str,
}

impl Contradiction {
    /// Notes that the option `name` is given; refuses it where another one of its kind was `given` before.
    pub(crate) fn refuse(given: &mut Option<&'static str>, name: &'static str) -> Result<(), Self> {
        match given.replace(name) {
            Some(one) if one != name => Err(Self { one, other: name }),
            _ => Ok(()),
        }
    }
}

/// Why a node could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The folder for this host's socket cannot be used.
    #[error("runtime folder {path}: {source}; set PACELINE_RUNTIME_DIR to a folder you own")]
    RuntimeDir {
        /// The folder.
        path: std::path::PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Others could join this host's nodes, or replace its socket, through this folder.
    #[error(
        "runtime folder {path}: {what}, or set PACELINE_RUNTIME_DIR to a folder that only you can write"
    )]
    UnsafeRuntimeDir {
        /// The folder.
        path: std::path::PathBuf,
        /// What is wrong with it, and a fix.
        what: String,
    },
    /// The name of the node is empty, too long or no plain text.
    #[error(
        "node name '{}': must be text of 1 to {NAME_BYTES_MAX} bytes without control characters, such as robot",
        escape(.0)
    )]
    Name(String),
    /// The process may open too few files: sockets count as files.
    #[error(
        "this process may open {limit} files, this node needs at least {needed}; raise the limit with ulimit -n 1024, \
         or LimitNOFILE=1024 in the service's unit"
    )]
    Descriptors {
        /// The limit, `RLIMIT_NOFILE`.
        limit: u64,
        /// The files that are open, and those that the node opens.
        needed: u64,
    },
    /// A link's configuration is wrong.
    #[error("link '{}': {}", escape(link), escape(what))]
    Link {
        /// The link's name.
        link: String,
        /// What is wrong, and the mend.
        what: String,
    },
    /// Zenoh could not open the link: the port is in use, the address is not ours.
    #[error("link '{}': cannot open {}: {}", escape(link), escape(endpoints), escape(what))]
    Transport {
        /// The link's name.
        link: String,
        /// What it was to listen on and connect to.
        endpoints: String,
        /// What the transport said.
        what: String,
    },
    /// More links than a node takes.
    #[error("{0} links: a node takes at most {max} beside the host's own", max = crate::LINKS_MAX)]
    TooManyLinks(usize),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

/// Why a link did not get another capacity.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CapacityError {
    /// The node has no such link.
    #[error("link '{0}': this node has no link of that name")]
    UnknownLink(String),
    /// The link was opened without one.
    #[error("link '{0}' was opened without a capacity: open the node again to give it one")]
    NoCapacity(String),
    /// The guarantees of the link's classes do not fit it.
    #[error("link '{0}': {1}")]
    Classes(String, ClassError),
    /// The node was closed.
    #[error("the node is closed")]
    Closed,
}

/// Why a link did not get other classes.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ClassesError {
    /// The node has no such link.
    #[error("link '{0}': this node has no link of that name")]
    UnknownLink(String),
    /// A class contradicts itself or another.
    #[error("link '{0}': {1}")]
    Class(String, ClassError),
    /// The node was closed.
    #[error("the node is closed")]
    Closed,
}

/// Why a publisher could not be declared or a sample not be published.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The tag is not one.
    #[error(transparent)]
    Tag(#[from] TagError),
    /// The tag is one of the system's own.
    #[error("tag '{0}' begins with '@', as those of the system do: begin with another character")]
    Private(String),
    /// Two options exclude each other.
    #[error(transparent)]
    Contradiction(#[from] Contradiction),
    /// The limits of its buffer are none.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// The contract contradicts itself.
    #[error(transparent)]
    Contract(#[from] ContractError),
    /// A rate that is not above 0 and at most 1,000,000 Hz.
    #[error("rate {0} Hz: it must be above 0 and at most 1000000")]
    Rate(f64),
    /// The media type is not plain text.
    #[error(
        "encoding '{}' has a control character or a mark of writing direction: give a media type such as image/jpeg",
        escape(.0)
    )]
    Encoding(String),
    /// The sample is larger than a node accepts.
    #[error("sample of {bytes} bytes: at most {max}; send it in pieces")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The bound.
        max: usize,
    },
    /// What goes with the sample is longer than a frame of any link has room for.
    #[error(
        "attachment of {bytes} bytes: at most {ATTACHMENT_BYTES_MAX}; put the rest into the payload"
    )]
    AttachmentTooLong {
        /// Its length.
        bytes: usize,
    },
    /// A video sample that is no picture.
    #[error(
        "sample of {bytes} bytes is no video/h264 access unit: {what}; publish one coded picture as \
         one sample, in decode order, each of its units behind 00 00 01 (Annex B)"
    )]
    NoAccessUnit {
        /// Its size.
        bytes: usize,
        /// What is wrong with it.
        what: String,
    },
    /// The node was closed.
    #[error("the node is closed")]
    Closed,
}

/// Why a subscription could not be declared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubscribeError {
    /// The pattern is not one.
    #[error(transparent)]
    Pattern(#[from] TagError),
    /// The pattern is one of the system's own.
    #[error(
        "pattern '{0}' begins with '@', as tags of the system do: begin with another character"
    )]
    Private(String),
    /// Two options exclude each other.
    #[error(transparent)]
    Contradiction(#[from] Contradiction),
    /// The limits of its buffer are none.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// The contract contradicts itself.
    #[error(transparent)]
    Contract(#[from] ContractError),
    /// A rate that is not above 0 and at most 1,000,000 Hz.
    #[error("rate {0} Hz: it must be above 0 and at most 1000000")]
    Rate(f64),
    /// "One in zero" samples.
    #[error("every 0: take 1 in n samples with n from 1 to 4294967295")]
    EveryZero,
    /// A picture size with a zero side, or one above 16384.
    #[error("size {width}x{height}: each side must be from 1 to 16384 pixels")]
    Size {
        /// The width asked for.
        width: u32,
        /// The height asked for.
        height: u32,
    },
    /// A sampling rate or a number of channels that no sound has.
    #[error(
        "audio {rate} Hz x {channels}: ask for 1000 to 384000 samples per second of 1 to 8 channels"
    )]
    Audio {
        /// Samples of each channel per second.
        rate: u32,
        /// Channels.
        channels: u8,
    },
    /// A delay bound of zero.
    #[error("within 0: give the longest time from publish to delivery, above 0")]
    ZeroWithin,
    /// A queue that cannot hold a sample.
    #[error("queue of {0} samples: it must hold from 1 to 65536")]
    Queue(usize),
    /// The node was closed.
    #[error("the node is closed")]
    Closed,
}

/// Why no sample came.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RecvError {
    /// The time given to wait is over.
    #[error("no sample within the time given")]
    Timeout,
    /// The node was closed.
    #[error("the node is closed")]
    Closed,
}

/// Why a subscription did not change.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// No node that is known has it any more.
    #[error("no subscription {0}: it has ended, or its node cannot be reached")]
    Unknown(SubscriptionId),
    /// What was asked for cannot be.
    #[error(transparent)]
    Wish(#[from] SubscribeError),
    /// Its node did not answer; it may have changed all the same.
    #[error("node {0} did not answer within 2 s; it may be gone, or older than this one")]
    NoAnswer(NodeId),
    /// This node was closed.
    #[error("the node is closed")]
    Closed,
}

//! Errors, one type per operation.

use paceline_proto::control::{IMPORTANCE_DEFAULT, IMPORTANCE_MAX, NAME_BYTES_MAX};
use paceline_proto::link::ClassError;
use paceline_proto::pull::LimitsError;
use paceline_proto::text::escape;
use paceline_proto::{ATTACHMENT_BYTES_MAX, NodeId, Size, SubscriptionId, TagError};
use paceline_sched::{Capacity, ContractError};
use paceline_time::order::BufferLimitError;
use std::time::Duration;

/// The error of two options that exclude each other.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{one} and {other} are both set; set only one of them")]
pub struct Contradiction {
    /// The option that was set first.
    pub one: &'static str,
    /// The option that was set second.
    pub other: &'static str,
}

impl Contradiction {
    /// Records that option `name` is set; refuses it if another option of its group was `given`.
    pub(crate) fn refuse(given: &mut Option<&'static str>, name: &'static str) -> Result<(), Self> {
        match given.replace(name) {
            Some(one) if one != name => Err(Self { one, other: name }),
            _ => Ok(()),
        }
    }
}

/// Applies one setting of a builder. Keeps the first error: once a value was wrong, later settings
/// have no effect, and the builder reports that value when it is declared.
pub(crate) fn set<T, E>(draft: &mut Result<T, E>, setting: impl FnOnce(&mut T) -> Result<(), E>) {
    if let Ok(settings) = draft
        && let Err(error) = setting(settings)
    {
        *draft = Err(error);
    }
}

/// The error of opening a node.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The folder of the host socket cannot be used.
    #[error("runtime folder {path}: {source}; set PACELINE_RUNTIME_DIR to a folder you own")]
    RuntimeDir {
        /// The folder.
        path: std::path::PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// Other users could join this host's nodes, or replace its socket, through this folder.
    #[error(
        "runtime folder {path}: {what}, or set PACELINE_RUNTIME_DIR to a folder that only you can write"
    )]
    UnsafeRuntimeDir {
        /// The folder.
        path: std::path::PathBuf,
        /// The cause and a remedy.
        what: String,
    },
    /// The name of the node is empty, too long or not plain text.
    #[error(
        "node name '{}': must be 1 to {NAME_BYTES_MAX} bytes of text without control characters, such as robot",
        escape(.0)
    )]
    Name(String),
    /// The name of the node differs from the name in its certificate.
    #[error(
        "node name '{}': the certificate of its links is for '{}'; leave the name out, or issue a certificate \
         for it",
        escape(name),
        escape(certified)
    )]
    CertifiedName {
        /// The configured name.
        name: String,
        /// The name in the certificate.
        certified: String,
    },
    /// The policy file, the token file or the audit log cannot be used.
    #[error("{}", escape(.0))]
    Access(String),
    /// The settings of the clock are wrong, or its address cannot be opened.
    #[error("{}", escape(.0))]
    Clock(String),
    /// The limit of open files is too low. Sockets count as files.
    #[error(
        "this process may open {limit} files, but this node needs at least {needed}; raise the \
         limit with ulimit -n 1024, or LimitNOFILE=1024 in the service unit"
    )]
    Descriptors {
        /// The limit, `RLIMIT_NOFILE`.
        limit: u64,
        /// The files already open plus the files that the node opens.
        needed: u64,
    },
    /// The configuration of a link is wrong.
    #[error("link '{}': {}", escape(link), escape(what))]
    Link {
        /// The name of the link.
        link: String,
        /// The cause and a remedy.
        what: String,
    },
    /// The link cannot be opened, for example because the port is in use or the address is not
    /// local.
    #[error("link '{}': cannot open {}: {}", escape(link), escape(endpoints), escape(what))]
    Transport {
        /// The name of the link.
        link: String,
        /// The endpoint that cannot be opened, or all of the link.
        endpoints: String,
        /// The error of the transport.
        what: String,
    },
    /// The number of links exceeds [`Node::LINKS_MAX`](crate::Node::LINKS_MAX).
    #[error("{0} links: must be at most {max} in addition to the host's own; remove some", max = crate::limits::LINKS_MAX)]
    TooManyLinks(usize),
    /// The operating system cannot start a thread.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

/// The error of changing the capacity of a link.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CapacityError {
    /// The node has no link of this name.
    #[error("link '{0}': this node has no link of that name")]
    UnknownLink(String),
    /// The link was opened without a capacity.
    #[error("link '{0}' was opened without a capacity; reopen the node with one")]
    NoCapacity(String),
    /// The capacity of the link is measured.
    #[error("link '{0}' measures its capacity; reopen the node with a fixed one, such as 2mbit")]
    Measured(String),
    /// The capacity is too low for the medium of the link.
    #[error(
        "link '{}': its medium '{}' needs a capacity of at least 64 kbit/s, not {capacity}; give that, or give the medium a \
         capacity of its own",
        escape(link),
        escape(medium)
    )]
    Medium {
        /// The name of the link.
        link: String,
        /// The name of the medium.
        medium: String,
        /// The capacity that is too low.
        capacity: Capacity,
    },
    /// The guarantees of the link's classes exceed the capacity.
    #[error("link '{0}': {1}")]
    Classes(String, ClassError),
    /// The node is closed.
    #[error("the node is closed")]
    Closed,
}

/// The error of changing the classes of a link.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ClassesError {
    /// The node has no link of this name.
    #[error("link '{0}': this node has no link of that name")]
    UnknownLink(String),
    /// The link has a medium, whose links have no classes.
    #[error(
        "link '{}' shares the medium '{}', so it can have no classes; remove the classes, or reopen the node without the medium",
        escape(link),
        escape(medium)
    )]
    Medium {
        /// The name of the link.
        link: String,
        /// The name of the medium.
        medium: String,
    },
    /// A class contradicts itself or another class.
    #[error("link '{0}': {1}")]
    Class(String, ClassError),
    /// The node is closed.
    #[error("the node is closed")]
    Closed,
}

/// The error of declaring a publisher or publishing a sample.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
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
    /// The limits of the pull buffer are not valid.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// The contract contradicts itself.
    #[error(transparent)]
    Contract(#[from] ContractError),
    /// The declared burst is shorter than the largest sample.
    #[error(
        "burst of {burst} bytes: must be at least the largest sample, {bytes_max} bytes; raise the burst or lower bytes_max"
    )]
    Burst {
        /// The burst in bytes.
        burst: u64,
        /// The largest sample in bytes.
        bytes_max: u64,
    },
    /// The declared mean rate is 0 or above the peak rate.
    #[error(
        "mean rate of {mean} bit/s: must be from 1 bit/s to the peak rate of {peak} bit/s, which is the largest sample in each period"
    )]
    MeanRate {
        /// The mean rate in bits per second.
        mean: u64,
        /// The peak rate in bits per second.
        peak: u64,
    },
    /// Tenet traffic that contradicts itself.
    #[error(
        "xmin {xmin:?}, xave {xave:?}, interval {interval:?}, smax {smax}: must be 0 < xmin <= xave <= interval, and smax at least 1 byte"
    )]
    Tenet {
        /// The least time between two samples.
        xmin: Duration,
        /// The mean time between two samples.
        xave: Duration,
        /// The interval of the mean.
        interval: Duration,
        /// The largest sample in bytes.
        smax: u64,
    },
    /// The rate is not above 0 and at most 1,000,000 Hz.
    #[error("rate {0} Hz: must be above 0 and at most 1,000,000 Hz, such as 30")]
    Rate(f64),
    /// A side of the picture is 0.
    #[error(
        "picture size {0}: each side must be from 1 to {max} pixels; leave the size out to read it from the first picture",
        max = u32::MAX
    )]
    Size(Size),
    /// The delay bound is zero.
    #[error("within 0: must be above 0; it is the longest time from publish to delivery")]
    ZeroWithin,
    /// The media type is not plain text.
    #[error(
        "encoding '{}' contains a control or text-direction character; use a media type such as image/jpeg",
        escape(.0)
    )]
    Encoding(String),
    /// The sample exceeds [`Publisher::SAMPLE_BYTES_MAX`](crate::Publisher::SAMPLE_BYTES_MAX).
    #[error("sample of {bytes} bytes: must be at most {max}; split it into several samples")]
    TooLarge {
        /// The payload size in bytes.
        bytes: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// The attachment exceeds
    /// [`Publisher::ATTACHMENT_BYTES_MAX`](crate::Publisher::ATTACHMENT_BYTES_MAX), the room in a
    /// frame of any link.
    #[error(
        "attachment of {bytes} bytes: must be at most {ATTACHMENT_BYTES_MAX}; move data into the payload"
    )]
    AttachmentTooLong {
        /// The attachment size in bytes.
        bytes: usize,
    },
    /// The video sample is not one coded picture.
    #[error(
        "sample of {bytes} bytes is not an access unit of its video: {what}; publish one coded \
         picture per sample, in decode order, with a start code 00 00 01 before each unit (Annex B)"
    )]
    NoAccessUnit {
        /// The payload size in bytes.
        bytes: usize,
        /// The cause.
        what: String,
    },
    /// The node has as many publishers and subscriptions as others can read.
    #[error("{}", crate::limits::TOO_MANY)]
    TooMany,
    /// The node is closed.
    #[error("the node is closed")]
    Closed,
}

/// The error of declaring a subscription.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubscribeError {
    /// The pattern is not valid.
    #[error(transparent)]
    Pattern(#[from] TagError),
    /// The pattern begins with `@`, which is reserved for the system.
    #[error(
        "pattern '{0}' begins with '@', which is reserved for system tags; use another first character"
    )]
    Private(String),
    /// Two options exclude each other.
    #[error(transparent)]
    Contradiction(#[from] Contradiction),
    /// The limits of the pull buffer are not valid.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// The contract contradicts itself.
    #[error(transparent)]
    Contract(#[from] ContractError),
    /// The rate is not from 0.001 to 1,000,000 Hz.
    #[error("rate {0} Hz: must be from 0.001 to 1,000,000 Hz, such as 10")]
    Rate(f64),
    /// One sample in zero was requested.
    #[error("every 0: must be from 1 to 4294967295; 3 selects one sample in three")]
    EveryZero,
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
    /// The bit rate is too low.
    #[error("bit rate of {0} bit/s: must be from 1000, such as 500000")]
    Bitrate(u32),
    /// The sound format or the bit rate of coded sound is not one of Opus.
    #[error("sound with a bit rate is coded as Opus: {0}")]
    Opus(String),
    /// The quality is out of range.
    #[error("quality: must be from 1 to 100, such as 60")]
    Quality,
    /// The delay bound is zero.
    #[error("within 0: must be above 0; it is the longest time from publish to delivery")]
    ZeroWithin,
    /// The idle time is shorter than one second.
    #[error(
        "idle time of {0:?}: must be at least 1 s, such as 30 s; without one, an unused reservation stays"
    )]
    Idle(Duration),
    /// The subscription names an opposite stream, but requests no contract.
    #[error(
        "with '{0}' but without a contract: nothing is tied; add a delay bound (within) or a loss tolerance (loss)"
    )]
    TiedWithoutContract(String),
    /// The importance of a contract is above 100.
    #[error(
        "importance {0}: must be from 0 to {IMPORTANCE_MAX}; {IMPORTANCE_DEFAULT} is the default, and higher is more important"
    )]
    Importance(u8),
    /// The least that an elastic contract accepts is not below the most that it requests, or the most is missing.
    #[error(
        "{least}: must be below {most}, the most that is requested; give both, such as {example}"
    )]
    Elastic {
        /// The least, as it was given.
        least: String,
        /// The setting of the most.
        most: &'static str,
        /// Two values that go together.
        example: &'static str,
    },
    /// The subscription accepts reductions, but requests no contract.
    #[error(
        "an elastic request without a contract: best effort is never reduced in steps; add a delay bound (within) or a loss tolerance (loss)"
    )]
    ElasticWithoutContract,
    /// The subscription requests a spare, but no contract.
    #[error(
        "spare without a contract: nothing is reserved; add a delay bound (within) or a loss tolerance (loss)"
    )]
    SpareWithoutContract,
    /// The subscription requests a spare and a proxy between the ends of the path.
    #[error(
        "spare with a proxy on the path: both paths would lead through it; use the proxy publisher or subscriber"
    )]
    SpareWithProxy,
    /// The name of the node that scales is empty, too long or not plain text.
    #[error(
        "proxy node '{}': must be the name of a node, 1 to {NAME_BYTES_MAX} bytes of text without control characters",
        escape(.0)
    )]
    ProxyName(String),
    /// The subscription has an idle time, but requests no contract.
    #[error(
        "idle without a contract: nothing is reserved; add a delay bound (within) or a loss tolerance (loss)"
    )]
    IdleWithoutContract,
    /// The age limit of commands is not from 1 µs to 1 h.
    #[error(
        "fresh within {0:?}: must be from 1 µs to 1 h, such as 100 ms; it is the largest age of a command"
    )]
    FreshWithin(Duration),
    /// A limit of the time buffer is out of range.
    #[error(transparent)]
    TimeBuffer(#[from] BufferLimitError),
    /// The range of added delays is empty, or exceeds 60 s.
    #[error(
        "spacing from {min:?} to {max:?}: must be a range within 0 and 60 s, such as 0 to 200 ms"
    )]
    Spacing {
        /// The smallest added delay.
        min: Duration,
        /// The largest added delay.
        max: Duration,
    },
    /// The largest jitter, or the delay bound with one, is 0 or above 60 s.
    #[error(
        "maximum jitter or delay bound of {0:?}: must be above 0 and at most 60 s, such as 2 ms"
    )]
    MaxJitter(Duration),
    /// The wake-ups of this host exceed the largest jitter.
    #[error(
        "maximum jitter of {jitter:?}: half of the wake-ups of this host are later; {achievable:?} is achievable at \
         present; accept that, or start the node with realtime"
    )]
    MaxJitterRefused {
        /// The requested jitter.
        jitter: Duration,
        /// The lateness of 90 % of the measured wake-ups.
        achievable: Duration,
    },
    /// A largest jitter was requested without a delay bound.
    #[error(
        "max_jitter without a delay bound: samples are delivered when it ends; add within, such as 50 ms"
    )]
    MaxJitterWithoutBound,
    /// The name of a synchronised group is empty or longer than 64 bytes, or its delay is 0 or above 60 s.
    #[error(
        "sync group '{group}' with a delay of {delay:?}: the name must have from 1 to 64 bytes, and the delay must be \
         above 0 and at most 60 s, such as 200 ms"
    )]
    SyncGroup {
        /// The name.
        group: String,
        /// The time from capture to release.
        delay: Duration,
    },
    /// The members of a synchronised group in this process have another delay.
    #[error(
        "sync group '{group}' with a delay of {delay:?}: its other members have {present:?}; use that, or another name"
    )]
    SyncDelay {
        /// The name.
        group: String,
        /// The requested time from capture to release.
        delay: Duration,
        /// The time of the other members.
        present: Duration,
    },
    /// The delay of a synchronised group is shorter than the delay bound.
    #[error(
        "sync group with a delay of {delay:?} and a delay bound of {within:?}: samples may arrive after their release; \
         make the delay at least as long"
    )]
    SyncBound {
        /// The time from capture to release.
        delay: Duration,
        /// The delay bound.
        within: Duration,
    },
    /// The queue length is not from 1 to 65536 samples.
    #[error("queue of {0} samples: must be from 1 to 65,536, such as 64")]
    Queue(usize),
    /// The node has as many publishers and subscriptions as others can read.
    #[error("{}", crate::limits::TOO_MANY)]
    TooMany,
    /// The node is closed.
    #[error("the node is closed")]
    Closed,
}

/// The error of waiting for a sample.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RecvError {
    /// No sample arrived before the timeout.
    #[error("no sample arrived before the timeout")]
    Timeout,
    /// The node is closed.
    #[error("the node is closed")]
    Closed,
}

/// The error of changing a subscription.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// No reachable node has this subscription.
    #[error("no subscription {0}: it has ended, or its node is unreachable")]
    Unknown(SubscriptionId),
    /// The new request is not valid.
    #[error(transparent)]
    Wish(#[from] SubscribeError),
    /// The subscription's node did not answer within 2 s. It may still have applied the change.
    #[error("node {0} did not answer within 2 s; it may have stopped, or run an older version")]
    NoAnswer(NodeId),
    /// This node is closed.
    #[error("the node is closed")]
    Closed,
}

//! The settings and reports of delivery by time.

use paceline_proto::{PublisherId, Tag};
use paceline_time::order::{BufferLimitError, BufferLimits, LateArrival};
use std::time::Duration;

/// A command stream has fallen silent: its last command has reached the age limit.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Silence {
    /// The tag of the commands.
    pub tag: Tag,
    /// The publisher of the last command.
    pub publisher: PublisherId,
    /// The sequence number of the last command.
    pub seq: u64,
}

/// A command stream has resumed: a command was released after a silence, so the safe action has ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Resumption {
    /// The tag of the commands.
    pub tag: Tag,
    /// The publisher of the command.
    pub publisher: PublisherId,
    /// The sequence number of the command.
    pub seq: u64,
    /// The time since the safe action started.
    pub silent: Duration,
}

/// The decisions of a subscription with an age limit.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Decisions {
    /// Commands that were provably young enough.
    pub released: u64,
    /// Commands that were not, and were dropped.
    pub stale: u64,
    /// Times that a stream fell silent and its safe action started.
    pub silences: u64,
}

/// The measurements of a subscription with `SubscriberBuilder::spacing` or
/// `SubscriberBuilder::max_jitter`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SpacingReport {
    /// Samples that have left.
    pub released: u64,
    /// Samples that arrived after their release time, and left at once.
    pub late: u64,
    /// Samples that left before their release time, because too many waited.
    pub early: u64,
    /// Jumps of capture times, after which the spacing started again.
    pub jumps: u64,
    /// The jitter of arrivals by RFC 3550, of the publisher with the largest.
    pub jitter_in: Duration,
    /// The jitter of releases by RFC 3550, of the publisher with the largest.
    pub jitter_out: Duration,
    /// The delay that is added to the fastest sample; with a largest jitter, the delay bound.
    pub added: Duration,
    /// The time by which the thread woke up too late in 99 % of the last 512 releases.
    pub wakeup: Duration,
    /// With a largest jitter: samples that left too late by more than it, or whose age was not known so exactly.
    pub beyond: u64,
    /// With a largest jitter: the largest error of a measured age since the start; `None` before one is known.
    pub doubt: Option<Duration>,
}

/// The measurements of a subscription with `SubscriberBuilder::sync_group`.
///
/// Two members of a group release samples of the same capture time within the sum of their [`bound`](Self::bound)s, as
/// far as each bound applies; add both publishers' errors if the samples are of different publishers' nodes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SyncReport {
    /// The name of the group.
    pub group: String,
    /// The time from capture to release.
    pub delay: Duration,
    /// Samples that have left.
    pub released: u64,
    /// Samples that arrived after their release time, and left at once.
    pub late: u64,
    /// Samples that left before their release time, because too many waited.
    pub early: u64,
    /// Samples whose release time was determined by clocks with known errors. The others are synchronised only with
    /// the streams of the same publishing node in this process.
    pub by_clocks: u64,
    /// The error bound of this node's clock at present; `None` if it is unknown.
    pub clock_error: Option<Duration>,
    /// The largest error bound of the capture times of samples released by clocks; `None` without one.
    pub publisher_error: Option<Duration>,
    /// The time by which the thread woke up too late in 99 % of the last 512 releases.
    pub wakeup: Duration,
    /// The clock error plus the wake-up that 99 % of the last 512 releases do not exceed. Late and early samples are not
    /// included. `None` if the error is unknown, and before the first sample released by clocks.
    pub bound: Option<Duration>,
}

/// The samples among which [`TimeBuffering`] keeps the order.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OrderedBy {
    /// All samples of the subscription.
    Time,
    /// The samples of each publisher, by its own clock.
    Publisher,
}

/// A time buffer: samples leave in the order of their times.
///
/// Samples wait until the entries, the bytes or the age of an entry reach a limit. Then at least the release factor
/// of the content leaves, earliest first. A sample that has waited for the hold time leaves with all before it.
///
/// ```
/// use paceline_node::deliver::{LateArrival, TimeBuffering};
/// use std::time::Duration;
///
/// let order = TimeBuffering::by_time(Duration::from_millis(50)).factor(0.5).late(LateArrival::Drop);
/// assert!(order.check().is_ok());
/// assert!(order.entries(0).check().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeBuffering {
    pub(super) by: OrderedBy,
    pub(super) limits: BufferLimits,
    pub(super) late: LateArrival,
}

impl TimeBuffering {
    /// Orders all samples of the subscription, and delays each by at most `hold`, from 1 µs to 60 s.
    #[must_use]
    pub fn by_time(hold: Duration) -> Self {
        let limits = BufferLimits::holding(hold.into());
        Self { by: OrderedBy::Time, limits, late: LateArrival::default() }
    }

    /// Orders the samples of each publisher, and delays each by at most `hold`, from 1 µs to 60 s.
    #[must_use]
    pub fn by_publisher(hold: Duration) -> Self {
        Self { by: OrderedBy::Publisher, ..Self::by_time(hold) }
    }

    /// Sets the samples among which the order is kept.
    #[must_use]
    pub const fn by(mut self, by: OrderedBy) -> Self {
        self.by = by;
        self
    }

    /// Sets the number of samples at which the buffer releases, from 1 to 65,536. Defaults to 4,096.
    #[must_use]
    pub const fn entries(mut self, samples: usize) -> Self {
        self.limits.entries = samples;
        self
    }

    /// Sets the number of bytes at which the buffer releases, from 1 to 128 MiB. Defaults to 64 MiB.
    #[must_use]
    pub const fn bytes(mut self, bytes: usize) -> Self {
        self.limits.bytes = bytes;
        self
    }

    /// Sets the part of the content that leaves when samples or bytes reach their limit, from 0.5 to 1.0. Defaults
    /// to 1.0. It is rounded to thousandths.
    #[must_use]
    pub fn factor(mut self, factor: f64) -> Self {
        let known = factor.is_finite() && (0.0..=60.0).contains(&factor);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked above"
        )]
        let permille = if known { (factor * 1_000.0).round() as u16 } else { u16::MAX };
        self.limits.factor_permille = permille;
        self
    }

    /// Sets the treatment of samples that arrive after a later one has left. Defaults to [`LateArrival::Flag`].
    #[must_use]
    pub const fn late(mut self, late: LateArrival) -> Self {
        self.late = late;
        self
    }

    /// Checks the limits.
    ///
    /// # Errors
    /// The first limit that is out of range.
    pub fn check(&self) -> Result<(), BufferLimitError> {
        self.limits.check()
    }
}

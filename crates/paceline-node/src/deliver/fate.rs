//! A sample on its way through a delivery: its origin, its instants, and its fate.

use super::report::Resumption;
use crate::Sample;
use paceline_proto::{DropReason, PublisherId, Tag};
use paceline_sched::{Duration, Instant, Late};
use paceline_time::TimeBounds;

/// The origin of a sample.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The tag of the publisher.
    pub tag: &'a Tag,
    /// The publisher.
    pub publisher: PublisherId,
    /// The treatment of samples that arrive late.
    pub late: Late,
}

/// The instants of a sample's delivery.
#[derive(Clone, Copy, Debug)]
pub struct Moments {
    /// Its arrival.
    pub arrived: Instant,
    /// An interval of UTC that contains the arrival, if the error of the node's clock is known.
    pub utc: Option<TimeBounds>,
    /// The present time, at which an application without a queue takes it: not before its arrival.
    pub now: Instant,
    /// Returns the part of a time span for which this process certainly did not run. Called for late samples only.
    pub stalled: fn(Instant, Instant) -> Duration,
}

impl Moments {
    /// Returns the instants of a sample that the application may take at its arrival, without a clock.
    #[must_use]
    pub const fn at(arrived: Instant) -> Self {
        Self { arrived, utc: None, now: arrived, stalled: |_, _| Duration::ZERO }
    }
}

/// A sample that the application takes now.
#[derive(Clone, Debug)]
pub struct TakenSample {
    /// The sample. Its [`actuation`](Sample::actuation) is `None` for a command: `until` says how long it may act.
    pub sample: Sample,
    /// The instant at which a command reaches its age limit; `None` without one.
    pub until: Option<Instant>,
    /// The command ended a silence.
    pub resumption: Option<Resumption>,
}

impl TakenSample {
    pub(super) const fn plain(sample: Sample) -> Self {
        Self { sample, until: None, resumption: None }
    }
}

/// What became of a sample.
#[expect(clippy::large_enum_variant, reason = "a box would be an allocation per sample")]
#[derive(Debug)]
pub enum DeliveryFate {
    /// The application can read it.
    Queued,
    /// It waits for its release.
    Staged,
    /// The application takes it at once, because the delivery has no queue.
    Taken(TakenSample),
    /// It is dropped and counted.
    Dropped(DropReason),
    /// It was delivered before, or a latched one is not newer than a delivered one. It counts nowhere.
    Repeated,
}

/// Whether a port has delivered a sample.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Acceptance {
    /// The application has it, or gets it unless something happens to it here.
    Accepted,
    /// It is dropped.
    Dropped,
    /// It was delivered before, so nothing is missing.
    Repeated,
}

impl DeliveryFate {
    /// Returns whether the port has delivered the sample.
    #[must_use]
    pub const fn acceptance(&self) -> Acceptance {
        match self {
            Self::Queued | Self::Staged | Self::Taken(_) => Acceptance::Accepted,
            Self::Dropped(_) => Acceptance::Dropped,
            Self::Repeated => Acceptance::Repeated,
        }
    }
}

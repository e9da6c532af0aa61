//! Reasons for undelivered samples, and counters whose sums agree.

use core::fmt;

/// The reason for which a sample left the system undelivered. Each lost sample has exactly one reason.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum DropReason {
    /// The sample could no longer arrive within its deadline.
    DeadlineMissed,
    /// The stream's queue was full: samples arrive faster than the link sends them, or than a new publisher
    /// buffers. Or the [memory](crate::memory) of a node was needed for another neighbour than the one that sent it.
    QueueFull,
    /// A newer picture or state replaced the sample before its first byte was sent.
    Superseded,
    /// The link, or the node behind it, failed or was closed.
    LinkDown,
    /// A part of the sample was lost on the link.
    LinkLoss,
    /// No subscription behind this node wants the stream any more, or none does yet.
    NoRoute,
    /// The subscriber did not read fast enough and its queue was full.
    SubscriberFull,
    /// Scaling failed: the picture is corrupt, or smaller than the requested size.
    CannotScale,
    /// The scaler was still busy with an earlier picture.
    ScalerBusy,
    /// The sample had already been delivered.
    Duplicate,
    /// The sample is larger than a node accepts, or than the rest of its [memory](crate::memory) for neighbours.
    TooLarge,
    /// The sample depends on a picture that was not delivered.
    Undecodable,
    /// The sample exceeded the limit of its class.
    Policed,
    /// A node had already exported the sample to plain programs; importing it here would create a loop.
    Loop,
    /// A plain program used a key that makes no tag, or its import rule has no capacity left for the sample.
    NotImported,
    /// The sample's tag makes no key for plain programs, or a plain program did not accept the sample in
    /// time.
    NotExported,
    /// The best-effort sample exceeded its longest queueing time at a link, and newer samples were queued
    /// behind it.
    Expired,
    /// Earlier samples had used up the bit rate of their form.
    OverBudget,
    /// The subscription has an age limit, and the sample was not provably younger.
    Stale,
    /// A later sample had already left the subscription's time buffer.
    OutOfOrder,
    /// The publisher exceeded the rate or the bandwidth of its rule where its samples enter.
    OverRights,
    /// The best-effort sample exceeded the processor time that contracts leave on a node with a
    /// [calibration](crate::control::Control::set_processor).
    ProcessorBusy,
}

impl DropReason {
    /// Every reason, in the order of the counters.
    pub const ALL: [Self; 22] = [
        Self::DeadlineMissed,
        Self::QueueFull,
        Self::Superseded,
        Self::LinkDown,
        Self::LinkLoss,
        Self::NoRoute,
        Self::SubscriberFull,
        Self::CannotScale,
        Self::ScalerBusy,
        Self::Duplicate,
        Self::TooLarge,
        Self::Undecodable,
        Self::Policed,
        Self::Loop,
        Self::NotImported,
        Self::NotExported,
        Self::Expired,
        Self::OverBudget,
        Self::Stale,
        Self::OutOfOrder,
        Self::OverRights,
        Self::ProcessorBusy,
    ];

    /// Returns the reason's index in [`Self::ALL`], which is also its byte on the wire.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Returns the reason with this index in [`Self::ALL`].
    #[must_use]
    pub fn from_index(index: usize) -> Option<Self> {
        Self::ALL.get(index).copied()
    }

    /// Returns the name used in JSON and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DeadlineMissed => "deadline_missed",
            Self::QueueFull => "queue_full",
            Self::Superseded => "superseded",
            Self::LinkDown => "link_down",
            Self::LinkLoss => "link_loss",
            Self::NoRoute => "no_route",
            Self::SubscriberFull => "subscriber_full",
            Self::CannotScale => "cannot_scale",
            Self::ScalerBusy => "scaler_busy",
            Self::Duplicate => "duplicate",
            Self::TooLarge => "too_large",
            Self::Undecodable => "undecodable",
            Self::Policed => "policed",
            Self::Loop => "loop",
            Self::NotImported => "not_imported",
            Self::NotExported => "not_exported",
            Self::Expired => "expired",
            Self::OverBudget => "over_budget",
            Self::Stale => "stale",
            Self::OutOfOrder => "out_of_order",
            Self::OverRights => "over_rights",
            Self::ProcessorBusy => "processor_busy",
        }
    }
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Dropped samples by reason.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Drops([u64; DropReason::ALL.len()]);

impl Drops {
    /// Returns `true` if nothing was dropped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds `samples` to the count of `reason`.
    pub fn add(&mut self, reason: DropReason, samples: u64) {
        if let Some(count) = self.0.get_mut(reason.index()) {
            *count = count.saturating_add(samples);
        }
    }

    /// Returns the number of samples dropped for `reason`.
    #[must_use]
    pub fn of(&self, reason: DropReason) -> u64 {
        self.0.get(reason.index()).copied().unwrap_or_default()
    }

    /// Returns the number of samples dropped for any reason.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |total, count| total.saturating_add(*count))
    }

    /// Returns the reasons with nonzero counts.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL.iter().map(|&reason| (reason, self.of(reason))).filter(|(_, n)| *n > 0)
    }

    /// Adds `other` to these counts.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.saturating_add(theirs);
        }
    }
}

/// The sample counters of one stream on one link.
///
/// `offered = sent + drops.total() + waiting`, where `waiting` is the number of samples still queued.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct StreamCounters {
    /// Samples offered to the link.
    pub offered: u64,
    /// Samples whose last segment was sent.
    pub sent: u64,
    /// Payload bytes sent, including those of aborted samples.
    pub bytes: u64,
    /// Samples sent after their deadline.
    pub late: u64,
    /// Windows in which more samples missed their deadline than the loss tolerance allows.
    pub violations: u64,
    /// Samples dropped, by reason.
    pub drops: Drops,
    /// Samples dropped after their first segment was sent; `drops` includes them. The next hop counts each of
    /// them as lost, so `sent + aborted` is the number of samples that it delivers or counts as lost.
    pub aborted: u64,
    /// Samples beyond the contract; they were sent or dropped like all others.
    pub excess: Excess,
}

/// Samples of a contracted stream beyond the traffic that the previous hop or the publisher may send.
///
/// The link sends them with best effort until their contract's time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Excess {
    /// Samples that arrived too early: ahead of their period by more than the jitter that the earlier hops
    /// and this hop may cause.
    pub early: u64,
    /// Samples longer than the publisher declared.
    pub long: u64,
}

impl Excess {
    /// Returns the number of all excess samples.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.early.saturating_add(self.long)
    }

    /// Returns the sum of both counts.
    #[must_use]
    pub const fn sum(self, others: Self) -> Self {
        Self {
            early: self.early.saturating_add(others.early),
            long: self.long.saturating_add(others.long),
        }
    }

    /// Adds `others` to these counts.
    pub const fn add(&mut self, others: Self) {
        *self = self.sum(others);
    }
}

/// Sums of the ages of a stream's samples at one link.
///
/// The sums only grow: the difference of two readings gives the mean over the time between them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct StreamAges {
    /// Samples that entered the link's queue.
    pub entered: u64,
    /// Sum of the ages on entry, in nanoseconds.
    pub entered_ns: u64,
    /// Sum of the ages of sent samples at the departure of their last byte, in nanoseconds.
    pub left_ns: u64,
}

impl StreamAges {
    /// Records a sample that entered with this age.
    pub(crate) const fn enter(&mut self, age_ns: u64) {
        self.entered += 1;
        self.entered_ns = self.entered_ns.saturating_add(age_ns);
    }

    /// Records a sample that was sent with this age.
    pub(crate) const fn leave(&mut self, age_ns: u64) {
        self.left_ns = self.left_ns.saturating_add(age_ns);
    }
}

impl StreamCounters {
    /// Adds another stream's counters to these.
    pub fn merge(&mut self, other: &Self) {
        let Self { offered, sent, bytes, late, violations, drops, aborted, excess } = other;
        for (mine, theirs) in [
            (&mut self.offered, offered),
            (&mut self.sent, sent),
            (&mut self.bytes, bytes),
            (&mut self.late, late),
            (&mut self.violations, violations),
            (&mut self.aborted, aborted),
        ] {
            *mine = mine.saturating_add(*theirs);
        }
        self.drops.merge(drops);
        self.excess.add(*excess);
    }
}

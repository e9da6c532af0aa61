//! Why a sample was not delivered, and the counters that make the sums agree.

use core::fmt;

/// Why a sample left the system without being delivered: each lost sample has exactly one reason.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum DropReason {
    /// It could no longer arrive within its deadline.
    DeadlineMissed,
    /// The stream's queue was full: samples come faster than the link takes them, or than a new publisher buffers.
    QueueFull,
    /// A newer picture or state took its place before its first byte was sent.
    Superseded,
    /// The link, or the node behind it, went away.
    LinkDown,
    /// A piece of it was lost on the link.
    LinkLoss,
    /// No subscription behind this node wants the stream any more, or none does yet.
    NoRoute,
    /// The subscriber did not read fast enough and its queue was full.
    SubscriberFull,
    /// It could not be scaled: a corrupt picture, or one smaller than the size asked for.
    CannotScale,
    /// The scaler was still busy with an earlier picture.
    ScalerBusy,
    /// It had been delivered before.
    Duplicate,
    /// It is larger than a node accepts.
    TooLarge,
    /// It needs a picture that was not delivered.
    Undecodable,
    /// It came beyond what its class is held to.
    Policed,
    /// A node had already taken it out of the network to plain programs: here it would enter it again.
    Loop,
    /// A plain program put it on a key that makes no tag, or that its import rule has no room for.
    NotImported,
    /// Its tag makes no key for plain programs, or one of them did not take it in time.
    NotExported,
    /// It waited at a link for longer than best effort may, and newer samples were behind it.
    Expired,
}

impl DropReason {
    /// Every reason, in the order of the counters.
    pub const ALL: [Self; 17] = [
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
    ];

    /// Its place in [`Self::ALL`], which is also its byte on the wire.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The reason at a place of [`Self::ALL`].
    #[must_use]
    pub fn from_index(index: usize) -> Option<Self> {
        Self::ALL.get(index).copied()
    }

    /// Its name in JSON and metrics.
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
    /// Counts `samples` more dropped for `reason`.
    pub fn add(&mut self, reason: DropReason, samples: u64) {
        if let Some(count) = self.0.get_mut(reason.index()) {
            *count = count.saturating_add(samples);
        }
    }

    /// How many were dropped for `reason`.
    #[must_use]
    pub fn of(&self, reason: DropReason) -> u64 {
        self.0.get(reason.index()).copied().unwrap_or_default()
    }

    /// How many were dropped in all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |total, count| total.saturating_add(*count))
    }

    /// The reasons that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL.iter().map(|&reason| (reason, self.of(reason))).filter(|(_, n)| *n > 0)
    }

    /// Adds another count to this one.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.saturating_add(theirs);
        }
    }
}

/// What became of the samples of one stream on one link.
///
/// `offered = sent + drops.total() + waiting`, where waiting is what its queue still holds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct StreamCounters {
    /// Samples handed to the link.
    pub offered: u64,
    /// Samples whose last segment was sent.
    pub sent: u64,
    /// Payload bytes sent, whole samples and aborted ones alike.
    pub bytes: u64,
    /// Samples sent after their deadline.
    pub late: u64,
    /// Windows in which more samples missed than the loss tolerance allows.
    pub violations: u64,
    /// Samples dropped, by reason.
    pub drops: Drops,
    /// Samples dropped after their first segment was sent; `drops` includes them. The next hop counts each of them as
    /// lost, so `sent + aborted` is the number of samples that it delivers or counts as lost.
    pub aborted: u64,
    /// Samples that were more than the contract allows; they were sent or dropped as all others.
    pub excess: Excess,
}

/// Samples of a contracted stream that were more than what the hop before may send, or the publisher: they take their
/// turns with best effort until their contract's time comes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Excess {
    /// They came too soon: ahead of their period by more than the hops before may hold up what comes earlier, and
    /// by more than this hop may.
    pub early: u64,
    /// They were longer than the publisher declared.
    pub long: u64,
}

impl Excess {
    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.early.saturating_add(self.long)
    }

    /// These and `others`.
    #[must_use]
    pub const fn sum(self, others: Self) -> Self {
        Self {
            early: self.early.saturating_add(others.early),
            long: self.long.saturating_add(others.long),
        }
    }

    /// Adds others to these.
    pub const fn add(&mut self, others: Self) {
        *self = self.sum(others);
    }
}

/// How old a stream's samples were at one link, in sums that only grow: the difference of two readings
/// gives the mean of the time between.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct StreamAges {
    /// Samples that the link took.
    pub entered: u64,
    /// The sum of their ages then, in nanoseconds.
    pub entered_ns: u64,
    /// The sum of the ages of the samples that were sent, when their last byte left, in nanoseconds.
    pub left_ns: u64,
}

impl StreamAges {
    /// A sample of this age was taken.
    pub(crate) const fn enter(&mut self, age_ns: u64) {
        self.entered += 1;
        self.entered_ns = self.entered_ns.saturating_add(age_ns);
    }

    /// A sample of this age was sent.
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

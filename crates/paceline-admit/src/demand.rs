//! What a stream asks of one link.

use crate::error::DemandError;
use crate::traffic::Traffic;
use paceline_sched::{Contract, Duration, LossTolerance};

/// What a stream sends, and what it wants in return.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Demand {
    source: Traffic,
    bunched: Duration,
    /// What arrives: A*(t + bunched) of the source.
    traffic: Traffic,
    deadline: Duration,
    loss: LossTolerance,
    level: Option<u32>,
}

impl Demand {
    /// The longest deadline: a day. Above it sums of many streams could leave 128 bits.
    pub const DEADLINE_MAX: Duration = Duration::from_secs(86_400);

    /// `traffic`, each packet of it sent within `deadline` of its arrival.
    ///
    /// # Errors
    /// [`DemandError`] if the deadline is 0 or above [`Self::DEADLINE_MAX`].
    pub fn new(traffic: Traffic, deadline: Duration) -> Result<Self, DemandError> {
        if deadline.is_zero() {
            return Err(DemandError::ZeroDeadline);
        }
        if deadline > Self::DEADLINE_MAX {
            return Err(DemandError::DeadlineTooLong { deadline, max: Self::DEADLINE_MAX });
        }
        let (source, bunched) = (traffic, Duration::ZERO);
        let loss = LossTolerance::NONE;
        Ok(Self { source, bunched, traffic, deadline, loss, level: None })
    }

    /// What a contract lets a stream of samples of at most `bytes` ask, cut into packets of `packet`.
    ///
    /// # Errors
    /// As [`Traffic::periodic`] and [`Demand::new`].
    pub fn of_contract(contract: &Contract, bytes: u64, packet: u64) -> Result<Self, DemandError> {
        let traffic = Traffic::periodic(bytes, contract.period, contract.jitter, packet)?;
        Ok(Self::new(traffic, contract.deadline)?.with_loss(contract.loss))
    }

    /// The same with a loss tolerance, of samples that are given up when they are late: only such as miss make
    /// room for others. [`crate::Rule::Vds`] counts it, and links whose windows coincide.
    #[must_use]
    pub const fn with_loss(mut self, loss: LossTolerance) -> Self {
        self.loss = loss;
        self
    }

    /// The same with a level of static priority, the lowest first; without one the deadline in
    /// microseconds is it, as in [`paceline_sched::Policy::StaticPriority`].
    #[must_use]
    pub const fn with_level(mut self, level: u32) -> Self {
        self.level = Some(level);
        self
    }

    /// The same with another source.
    #[must_use]
    pub fn with_source(mut self, source: Traffic) -> Self {
        (self.source, self.traffic) = (source, source.delayed(self.bunched));
        self
    }

    /// The same with what the source sends arriving up to `bunched` later on the way, and so bunched up by
    /// as much.
    #[must_use]
    pub fn with_bunched(mut self, bunched: Duration) -> Self {
        (self.bunched, self.traffic) = (bunched, self.source.delayed(bunched));
        self
    }

    /// The same with another deadline.
    ///
    /// # Errors
    /// As [`Demand::new`].
    pub fn with_deadline(self, deadline: Duration) -> Result<Self, DemandError> {
        let checked = Self::new(self.source, deadline)?;
        Ok(Self { deadline: checked.deadline, ..self })
    }

    /// What its source sends.
    #[must_use]
    pub const fn source(&self) -> &Traffic {
        &self.source
    }

    /// How much of a delay there may have been on the way, so that what was sent apart comes together.
    #[must_use]
    pub const fn bunched(&self) -> Duration {
        self.bunched
    }

    /// What arrives.
    #[must_use]
    pub const fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// From arrival at the link to the end of service there.
    #[must_use]
    pub const fn deadline(&self) -> Duration {
        self.deadline
    }

    /// How many samples of a window may miss.
    #[must_use]
    pub const fn loss(&self) -> LossTolerance {
        self.loss
    }

    /// The level asked for; `None` if the deadline decides.
    #[must_use]
    pub const fn asked_level(&self) -> Option<u32> {
        self.level
    }

    /// The level of static priority that counts.
    #[must_use]
    pub fn level(&self) -> u32 {
        let by_deadline = || u32::try_from(self.deadline.as_micros()).unwrap_or(u32::MAX);
        self.level.unwrap_or_else(by_deadline)
    }

    /// What keeps both promises for one stream: of two levels of static priority the one before. Of two loss
    /// tolerances neither counts: a longer window may owe more at once although it owes less, and whoever leaves must
    /// not leave the stream asking for more.
    #[must_use]
    pub fn join(&self, other: &Self) -> Self {
        let level = Some(self.level().min(other.level()));
        Self {
            source: self.source.join(&other.source),
            deadline: self.deadline.min(other.deadline),
            loss: if self.loss == other.loss { self.loss } else { LossTolerance::NONE },
            level,
            ..*self
        }
        .with_bunched(self.bunched.max(other.bunched))
    }
}

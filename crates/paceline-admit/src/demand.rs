//! The demand of a stream on one link.

use crate::error::DemandError;
use crate::staircase::Staircase;
use crate::traffic::Traffic;
use paceline_sched::{Contract, Duration, LossTolerance};

/// A demand: traffic, deadline, loss tolerance and priority level of a stream on one link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StreamDemand {
    source: Traffic,
    bunched: Duration,
    /// The longest time from the source to this link, for the buffer.
    before: Duration,
    /// Earlier hops may have bunched the samples.
    /// The arriving traffic: A*(t + bunched) of the source.
    traffic: Traffic,
    deadline: Duration,
    loss: LossTolerance,
    /// A stream that it covers has a loss tolerance, whether or not `loss` has.
    tolerates: bool,
    level: Option<u32>,
    /// Processor time besides forwarding, in nanoseconds per second.
    work: u64,
}

/// The longest sample that a link always sends in one packet, in bytes.
const UNDIVIDED_MAX: u64 = 255;

impl StreamDemand {
    /// The longest deadline: one day. With longer ones, sums over many streams could overflow 128
    /// bits.
    pub const DEADLINE_MAX: Duration = Duration::from_secs(86_400);

    /// Creates a demand that each packet of `traffic` is sent within `deadline` of its arrival.
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
        let (source, bunched, before) = (traffic, Duration::ZERO, Duration::ZERO);
        let loss = LossTolerance::NONE;
        let (level, work) = (None, 0);
        Ok(Self { source, bunched, before, traffic, deadline, loss, tolerates: false, level, work })
    }

    /// Creates the demand of a contract, for samples of at most `bytes` in packets of at most
    /// `packet` bytes.
    ///
    /// # Errors
    /// As [`Traffic::periodic`] and [`StreamDemand::new`].
    pub fn of_contract(contract: &Contract, bytes: u64, packet: u64) -> Result<Self, DemandError> {
        let traffic = Traffic::periodic(bytes, contract.period, contract.jitter, packet)?;
        Ok(Self::new(traffic, contract.deadline)?.with_loss(contract.loss))
    }

    /// Sets the loss tolerance. Late samples must be dropped: only dropped samples free capacity
    /// for others. It counts for [`crate::AdmissionTest::Vds`], and on links whose windows coincide.
    #[must_use]
    pub const fn with_loss(mut self, loss: LossTolerance) -> Self {
        self.loss = loss;
        self.tolerates |= loss.x() > 0;
        self
    }

    /// Sets the static priority level; lower levels are served first. The default is the deadline
    /// in microseconds, as in [`paceline_sched::Policy::StaticPriority`].
    #[must_use]
    pub const fn with_level(mut self, level: u32) -> Self {
        self.level = Some(level);
        self
    }

    /// Sets the processor time that the stream needs besides forwarding, in nanoseconds per second, such as that of
    /// scaling.
    #[must_use]
    pub const fn with_work(mut self, nanos_per_s: u64) -> Self {
        self.work = nanos_per_s;
        self
    }

    /// Returns the processor time that the stream needs besides forwarding, in nanoseconds per second.
    #[must_use]
    pub const fn work(&self) -> u64 {
        self.work
    }

    /// Replaces the source traffic.
    #[must_use]
    pub fn with_source(mut self, source: Traffic) -> Self {
        (self.source, self.traffic) = (source, source.delayed(self.bunched));
        self
    }

    /// Sets the delay variation before this link. Traffic may arrive up to `bunched` later than it
    /// was sent, so bursts grow accordingly.
    #[must_use]
    pub fn with_bunched(mut self, bunched: Duration) -> Self {
        (self.bunched, self.traffic) = (bunched, self.source.delayed(bunched));
        self
    }

    /// Sets the delay that the earlier hops of a path have reserved, of the path's delay bound `within`. It
    /// counts for the buffer alone: with a discipline that re-spaces samples, those that arrive bunched
    /// wait here for their periods.
    ///
    /// A seventh is added, since each hop may keep a tenth of its part for delays outside of its scheduler. A
    /// sample that may be missed can wait for the whole bound.
    #[must_use]
    pub fn after_hops(mut self, spent: Duration, within: Duration) -> Self {
        let lossless = self.loss.x() == 0;
        let spent = if lossless { spent } else { within.saturating_sub(self.deadline) };
        self.before = spent.mul_div(8, 7);
        self
    }

    /// Returns the most bytes of the stream that can be queued at the link, if every packet leaves by its
    /// deadline: the traffic of the source in the longest time from there to the end of transmission.
    #[must_use]
    pub fn queued(&self) -> u64 {
        self.source.bound(self.stay()).max(self.source.packet())
    }

    /// Returns the longest time from the source to the end of transmission.
    fn stay(&self) -> Duration {
        self.before.max(self.bunched).saturating_add(self.deadline)
    }

    /// Replaces the deadline.
    ///
    /// # Errors
    /// As [`StreamDemand::new`].
    pub fn with_deadline(self, deadline: Duration) -> Result<Self, DemandError> {
        let checked = Self::new(self.source, deadline)?;
        Ok(Self { deadline: checked.deadline, ..self })
    }

    /// Returns the traffic at the source.
    #[must_use]
    pub const fn source(&self) -> &Traffic {
        &self.source
    }

    /// Returns the delay variation between the source and this link.
    #[must_use]
    pub const fn bunched(&self) -> Duration {
        self.bunched
    }

    /// Returns the greatest delay variation that the earlier hops of its path can cause with their parts of the delay bound
    /// ([`Self::after_hops`]).
    #[must_use]
    pub fn bunched_most(&self) -> Duration {
        self.before.mul_div(7, 8).max(self.bunched)
    }

    /// Returns the traffic that arrives at this link.
    #[must_use]
    pub const fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Returns the samples that the link serves, if the source's traffic is that of a contract and `re_spaced`: the
    /// discipline spaces samples by the contract's period, however early they arrive. Others enforce the curve alone.
    pub(crate) fn staircase(&self, re_spaced: bool) -> Option<Staircase> {
        self.traffic.staircase().filter(|_| re_spaced).map(Staircase::spaced_again)
    }

    /// Returns the deadline, from arrival at the link to the end of transmission.
    #[must_use]
    pub const fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Returns the least time until its deadline of a sample that begins early, and the length of the longest one in bytes
    /// ([`crate::owed`]). Returns `None` if no sample does: none may be missed, or samples are not divided.
    pub(crate) fn begun(&self) -> Option<(Duration, u64)> {
        let longest = self.source.sample();
        let divided = self.tolerates && longest > UNDIVIDED_MAX;
        divided.then(|| (self.deadline.mul_div(7, 8), longest))
    }

    /// Returns the loss tolerance.
    #[must_use]
    pub const fn loss(&self) -> LossTolerance {
        self.loss
    }

    /// Returns the requested level; `None` if it follows from the deadline.
    #[must_use]
    pub const fn asked_level(&self) -> Option<u32> {
        self.level
    }

    /// Returns the effective static priority level.
    #[must_use]
    pub fn level(&self) -> u32 {
        let by_deadline = || u32::try_from(self.deadline.as_micros()).unwrap_or(u32::MAX);
        self.level.unwrap_or_else(by_deadline)
    }

    /// Returns the demand that satisfies both contracts for one stream. It has the higher priority
    /// of the two levels. If the loss tolerances differ, it has none: a longer window may owe more
    /// at once although it owes less overall. It has the longer stay, and so the larger buffer. Otherwise
    /// the demand could grow when one of the two is released.
    #[must_use]
    pub fn join(&self, other: &Self) -> Self {
        let level = Some(self.level().min(other.level()));
        let deadline = self.deadline.min(other.deadline);
        Self {
            source: self.source.join(&other.source),
            deadline,
            loss: if self.loss == other.loss { self.loss } else { LossTolerance::NONE },
            level,
            tolerates: self.tolerates || other.tolerates,
            work: self.work.max(other.work),
            before: self.stay().max(other.stay()).saturating_sub(deadline),
            ..*self
        }
        .with_bunched(self.bunched.max(other.bunched))
    }
}

impl StreamDemand {
    /// Returns a demand that covers both streams together.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        let work = self.work.saturating_add(other.work);
        Self { work, ..self.join(other) }.with_source(self.source.plus(&other.source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn demand() -> impl Strategy<Value = StreamDemand> {
        let times = (1..500_u64, 1..900_u64, 0..300_u64, 0..200_u64);
        (times, 64..20_000_u64).prop_map(|((period, deadline, before, bunched), bytes)| {
            let ms = Duration::from_millis;
            let traffic = Traffic::periodic(bytes, ms(period), ms(period / 10), 64).unwrap();
            let demand = StreamDemand::new(traffic, ms(deadline)).unwrap();
            demand.after_hops(ms(before), ms(deadline + before)).with_bunched(ms(bunched))
        })
    }

    proptest! {
        #[test]
        fn a_joint_demand_needs_the_buffer_of_each(one in demand(), other in demand()) {
            let joint = one.join(&other);
            prop_assert!(joint.queued() >= one.queued().max(other.queued()));
            prop_assert!(joint.deadline() <= one.deadline().min(other.deadline()));
            prop_assert_eq!(joint.join(&one).queued(), joint.queued());
        }
    }
}

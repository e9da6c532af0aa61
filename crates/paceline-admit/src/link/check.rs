//! The admission test of one demand against all reservations of a link.

use super::family::difference;
use super::{Admission, AdmissionTest, Holder, Trunk};
use crate::bounds::LatencyRate;
use crate::demand::StreamDemand;
use crate::due::Trials;
use crate::levels::TooLong;
use crate::verdict::{LinkGrant, Resource};
use paceline_sched::{Curve, Duration};

/// A resource that does not suffice.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Lack {
    pub(super) resource: Resource,
    pub(super) needed: u64,
    pub(super) available: u64,
}

const fn lack(resource: Resource, needed: u64, available: u64) -> Lack {
    Lack { resource, needed, available }
}

impl Admission {
    /// Tests `demand` without searching for an offer. `trials` belongs to this link as it is.
    pub(super) fn test(
        &self,
        trunk: Trunk,
        holder: Holder,
        demand: &StreamDemand,
        trials: &mut Trials,
    ) -> Result<LinkGrant, Lack> {
        if self.spec.rule == AdmissionTest::Unguaranteed {
            return Err(lack(Resource::Guarantee, demand.traffic().rate(), 0));
        }
        let held = self.trunks.get(&trunk);
        if held.is_some_and(|held| !held.has_room_for(holder)) {
            let most = Self::HOLDERS_MAX as u64;
            return Err(lack(Resource::Places, most + 1, most));
        }
        if held.is_none() && self.trunks.len() >= Self::TRUNKS_MAX {
            let most = Self::TRUNKS_MAX as u64;
            return Err(lack(Resource::Places, most + 1, most));
        }
        let after = held.map_or(*demand, |held| held.charge_with(holder, demand));
        let before = self.charges(trunk, |held| held.charge);
        let (mut gone, mut come) = difference(before, self.charges_with(trunk, after));
        let Some(last) = come.pop() else { return Ok(self.grant(demand, None)) };
        let now = if come.is_empty() && gone.len() < 2 {
            self.test_charge(gone.pop().as_ref(), &last, demand, trials)?
        } else {
            // The family of the stream is shared otherwise than before.
            let mut left = self.clone();
            gone.iter().for_each(|charge| left.take(charge));
            for charge in &come {
                trials.forget();
                let tested = left.test_charge(None, charge, demand, trials);
                tested.inspect_err(|_| trials.forget())?;
                left.add(charge);
            }
            trials.forget();
            let tested = left.test_charge(None, &last, demand, trials);
            trials.forget();
            tested?;
            // Any of the changed charges may cover `demand`, so only its deadline is its bound.
            return Ok(self.grant(demand, None));
        };
        Ok(self.grant(demand, Some(now)))
    }

    /// Tests a charge in place of another one. Returns the delay bound of `demand`.
    fn test_charge(
        &self,
        before: Option<&StreamDemand>,
        after: &StreamDemand,
        demand: &StreamDemand,
        trials: &mut Trials,
    ) -> Result<Duration, Lack> {
        self.test_sums(before, after)?;
        Ok(match self.spec.rule {
            AdmissionTest::Delivery => demand.deadline(),
            AdmissionTest::Shares => {
                self.test_packet(after)?;
                demand.deadline()
            }
            AdmissionTest::Fifo | AdmissionTest::StaticPriority | AdmissionTest::Unguaranteed => {
                self.test_levels(before, after)?
            }
            AdmissionTest::SigmaRho { burst, rate } => {
                self.test_limits(before, after, burst, rate)?;
                self.test_levels(before, after)?
            }
            AdmissionTest::Rcsp | AdmissionTest::StopAndGo => {
                self.test_regulated(before, after)?;
                demand.deadline()
            }
            AdmissionTest::Edf
            | AdmissionTest::Hfsc
            | AdmissionTest::Rpq
            | AdmissionTest::Vds { .. }
            | AdmissionTest::Dwcs { .. } => {
                self.test_corners(before, after, demand, trials)?;
                demand.deadline()
            }
        })
    }

    fn grant(&self, demand: &StreamDemand, now: Option<Duration>) -> LinkGrant {
        let bound = demand.deadline();
        let output = demand.source().delayed(self.bunches(demand));
        LinkGrant { bound, now: now.unwrap_or(bound).min(bound), output }
    }

    /// Tests rate, buffer and processor time.
    fn test_sums(&self, before: Option<&StreamDemand>, after: &StreamDemand) -> Result<(), Lack> {
        let mut held = self.ledger.held;
        if let Some(before) = before {
            held.take(self.spec.amounts(before));
        }
        held.add(self.spec.amounts(after));
        let line = self.spec.capacity.bits_per_s();
        if held.rate > line && self.spec.rule.is_limited_by_rate() {
            return Err(lack(Resource::Rate, held.rate, line));
        }
        if let Some(buffer) = self.spec.buffer {
            let used = held.buffer.saturating_add(self.buffer_elsewhere);
            if used > buffer.bytes {
                return Err(lack(Resource::Buffer, used, buffer.bytes));
            }
        }
        if let Some(most) = self.spec.host_buffer {
            let used = held.buffer.saturating_add(self.host_buffer_elsewhere);
            if used > most {
                return Err(lack(Resource::HostBuffer, used, most));
            }
        }
        if let Some(cpu) = self.spec.cpu {
            let used = held.cpu.saturating_add(self.cpu_elsewhere);
            if used > cpu.nanos_per_s {
                return Err(lack(Resource::Cpu, used, cpu.nanos_per_s));
            }
        }
        Ok(())
    }

    /// Tests the sums of burst and rate, which must be strictly below the limits.
    fn test_limits(
        &self,
        before: Option<&StreamDemand>,
        after: &StreamDemand,
        burst: u64,
        rate: u64,
    ) -> Result<(), Lack> {
        let gone = before.map_or((0, 0), |it| (it.traffic().burst(), it.traffic().rate()));
        let bursts = self.ledger.held.burst - gone.0 + after.traffic().burst();
        if bursts >= burst {
            return Err(lack(Resource::Burst, bursts, burst.saturating_sub(1)));
        }
        let rates = self.ledger.held.rate - gone.1 + after.traffic().rate();
        if rates >= rate {
            return Err(lack(Resource::Rate, rates, rate.saturating_sub(1)));
        }
        Ok(())
    }

    fn test_levels(
        &self,
        before: Option<&StreamDemand>,
        after: &StreamDemand,
    ) -> Result<Duration, Lack> {
        let link = LatencyRate::link(self.spec.capacity, self.spec.latency);
        self.levels.check(link, self.spec.other, before, after).map_err(|long| match long {
            TooLong::Delay { bound, deadline } => lack(Resource::Delay, bound, deadline),
            TooLong::Rate => {
                lack(Resource::Rate, self.ledger.held.rate, self.spec.capacity.bits_per_s())
            }
        })
    }

    fn test_regulated(
        &self,
        before: Option<&StreamDemand>,
        after: &StreamDemand,
    ) -> Result<(), Lack> {
        let Some(plus) = self.placed(after) else {
            let least = self.least_delay(after);
            return Err(lack(Resource::Delay, least, after.deadline().as_nanos()));
        };
        let minus = before.and_then(|before| self.placed(before));
        let link = (self.spec.capacity.bits_per_s(), self.spec.other, self.spec.latency);
        self.regulated.check(link, minus, plus).map_err(|excess| {
            let within = Duration::from_nanos(excess.at);
            lack(Resource::Due { within }, excess.needed, excess.available)
        })
    }

    fn test_corners(
        &self,
        before: Option<&StreamDemand>,
        after: &StreamDemand,
        demand: &StreamDemand,
        trials: &mut Trials,
    ) -> Result<(), Lack> {
        let (line, other) = (self.spec.capacity.bits_per_s(), self.spec.other);
        if self.spec.rule.coincides() {
            let latency = self.spec.latency.as_nanos();
            // A later commit or release must leave the streams equal.
            let steady = demand.traffic() == after.traffic()
                && before.is_none_or(|before| before.traffic() == after.traffic());
            let fit = steady.then(|| self.windows.fit(line, other, latency, before, after));
            match fit.flatten() {
                Some(Ok(())) => return Ok(()),
                Some(Err(owed)) => {
                    return Err(lack(Resource::Windows, owed.needed, owed.available));
                }
                None => {}
            }
            let gone = before.map_or(0, |before| self.spec.amounts(before).rate);
            let rates = self.ledger.held.rate - gone + self.spec.amounts(after).rate;
            if rates > line {
                return Err(lack(Resource::Rate, rates, line));
            }
        }
        if self.spec.rule == AdmissionTest::Hfsc {
            self.test_packet(after)?;
        }
        let Some(piece) = self.spec.piece(after) else {
            let least = self.least_delay(after);
            return Err(lack(Resource::Delay, least, after.deadline().as_nanos()));
        };
        let minus = before.and_then(|before| self.spec.piece(before));
        // A service curve already includes the blocking packet.
        let other = if self.spec.rule == AdmissionTest::Hfsc { 0 } else { other };
        self.corners.check(line, other, minus.as_ref(), &piece, trials).map_err(|excess| {
            let within = Duration::from_nanos(excess.at);
            lack(Resource::Due { within }, excess.needed, excess.available)
        })
    }

    /// Tests that no packet is longer than `other`, which bounds all packets here.
    fn test_packet(&self, after: &StreamDemand) -> Result<(), Lack> {
        let (packet, most) = (after.traffic().packet(), self.spec.other);
        if packet > most { Err(lack(Resource::Packet, packet, most)) } else { Ok(()) }
    }

    /// Returns the delay of the burst on the idle link, in nanoseconds.
    fn least_delay(&self, demand: &StreamDemand) -> u64 {
        let alone = self.spec.capacity.time_for(demand.traffic().dual().peak_burst);
        alone.saturating_add(self.spec.latency).saturating_add(self.blocked()).as_nanos()
    }

    /// Returns the time for which a packet of other traffic blocks the link.
    fn blocked(&self) -> Duration {
        self.spec.capacity.time_for(self.spec.other)
    }

    /// Returns the service curve that meets the deadline of `demand` on this link: it serves the
    /// burst within the deadline, less the host's latency and one blocking packet. A link with
    /// classes assigns this curve to the stream. Returns `None` if there is none.
    #[must_use]
    pub fn curve(&self, demand: &StreamDemand) -> Option<Curve> {
        self.spec.curve(demand)
    }
}

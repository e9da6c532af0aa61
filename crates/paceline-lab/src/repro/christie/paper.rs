//! The figures that the paper's text states, and its policer with a timer.

use paceline_admit::cpu::{CpuCost, CpuPoint, CpuTable, CpuTableError};
use paceline_sched::police::Conformance;
use paceline_sched::{Duration, Instant};

/// The packet length for which the paper computes all credits (§4.1.1.1), in bytes.
pub(super) const PACKET: u64 = 4_500;
/// The rate of FDDI, in bits per second.
pub(super) const RING: u64 = 100_000_000;
/// The router's buffers for packets of high priority (§4.1.1.1).
pub(super) const BUFFERS: u64 = 32;
/// The limit of the sum of reserved rates (§4.1.1.2), in bits per second.
pub(super) const RATE_LIMIT: u64 = 30_000_000;
/// The timer's resolution (§4.1.1.1).
const TICK: Duration = Duration::from_millis(1);

/// The longest frame of the video (§4.3.2), in bytes.
pub(super) const FRAME: u64 = 21_680;
/// The frame rate, per second.
pub(super) const FRAMES_PER_S: u64 = 30;
/// The burst reserved for the video, in bytes.
pub(super) const VIDEO_BURST: u64 = 27_000;
/// The reserved rate of the video in the four loads, in bits per second.
pub(super) const VIDEO_RATE: u64 = 9_000_000;
/// The reservation of the file transfer, in bytes and bits per second.
pub(super) const FILE_BURST: u64 = 9_000;
pub(super) const FILE_RATE: u64 = 18_000_000;

/// Returns the time between two credits of one packet for a requested rate in bits per second:
/// whole milliseconds, rounded down. Returns `None` for less than one, which the paper refuses.
pub(super) fn update_period(rate: u64) -> Option<Duration> {
    let exact = (PACKET * 8 * 1_000_000_000).checked_div(rate)?;
    let ticks = exact / TICK.as_nanos();
    (ticks > 0).then(|| TICK.mul_div(ticks, 1))
}

/// Returns the rate that a timer with the update period of `rate` permits, in bits per second.
pub(super) fn allocated_rate(rate: u64) -> Option<u64> {
    Some(PACKET * 8 * 1_000_000_000 / update_period(rate)?.as_nanos())
}

/// The paper's leaky bucket: a counter of packets of any length, incremented by a timer.
#[derive(Clone, Debug)]
pub(super) struct TimerBucket {
    period: Duration,
    burst: u64,
    credits: u64,
    /// The number of timer interrupts so far.
    updates: u64,
}

impl TimerBucket {
    /// Creates a full bucket for a requested burst in bytes and rate in bits per second; `None` if
    /// the timer is too coarse.
    pub(super) fn new(burst: u64, rate: u64) -> Option<Self> {
        let burst = burst / PACKET;
        Some(Self { period: update_period(rate)?, burst, credits: burst, updates: 0 })
    }

    /// Charges one packet at `now` if there is credit.
    pub(super) fn police(&mut self, now: Instant) -> Conformance {
        let updates = now.as_nanos() / self.period.as_nanos();
        self.credits = self.burst.min(self.credits + (updates - self.updates));
        self.updates = updates;
        if self.credits == 0 {
            return Conformance::At(Instant::ZERO + self.period.mul_div(updates + 1, 1));
        }
        self.credits -= 1;
        Conformance::Conforms
    }
}

/// The router's processor time of a packet, as lines over its length.
#[derive(Clone, Copy, Debug)]
pub(super) struct RouterCosts {
    /// The interrupt and the copy into memory. No priority avoids them.
    pub(super) receive: CpuCost,
    /// All work on a packet, from the interrupt to the other ring.
    pub(super) whole: CpuCost,
}

impl RouterCosts {
    /// Derives the costs from four stated throughputs without loss, which are therefore inputs and no results.
    ///
    /// Whole: 50.8 Mbit/s are 1,411 packets of 4,500 bytes per second (§3.3.2.2), and the peak rate
    /// is 1,450 packets of 48 bytes per second (§5.1). Receive: next to 5,800 packets per second of
    /// 128 bytes, or 1,411 of 4,500, the router forwards 28 or 40 Mbit/s (§3.3.2.2); the rest of its
    /// time is divided by their number.
    pub(super) fn of_text() -> Result<Self, CpuTableError> {
        let per_s = |packets: u64| NANOS / packets;
        let whole = vec![point(48, per_s(1_450)), point(PACKET, per_s(1_411))];
        let whole = CpuTable::new(whole)?.fit();
        let left = |high_rate: u64, packets: u64| {
            NANOS.saturating_sub(whole.of_stream(PACKET, high_rate)) / packets
        };
        let receive =
            vec![point(128, left(28_000_000, 5_800)), point(PACKET, left(40_000_000, 1_411))];
        Ok(Self { receive: CpuTable::new(receive)?.fit(), whole })
    }

    /// Derives the costs without the throughput next to packets of 4,500 bytes: the time for receiving grows half as
    /// fast with the length as the time of all work, because it has one of the two copies (§3.3.2.1).
    pub(super) fn of_three_inputs() -> Result<Self, CpuTableError> {
        let all = Self::of_text()?;
        let copy = all.whole.of_sample(PACKET).saturating_sub(all.whole.of_sample(128)) / 2;
        let short = all.receive.of_sample(128);
        let receive = vec![point(128, short), point(PACKET, short + copy)];
        Ok(Self { receive: CpuTable::new(receive)?.fit(), ..all })
    }

    /// Returns the processor time for receiving a packet of `bytes`.
    pub(super) fn receive(&self, bytes: u64) -> Duration {
        Duration::from_nanos(self.receive.of_sample(bytes))
    }

    /// Returns the processor time for forwarding a received packet of `bytes`.
    pub(super) fn forward(&self, bytes: u64) -> Duration {
        Duration::from_nanos(self.whole.of_sample(bytes)).saturating_sub(self.receive(bytes))
    }
}

const NANOS: u64 = 1_000_000_000;

const fn point(bytes: u64, nanos: u64) -> CpuPoint {
    CpuPoint { bytes, load_permille: 0, nanos }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn update_periods_and_allocated_rates_are_those_of_the_text() {
        // Requested and allocated Mbit/s, and the period in ms: §4.1.1.1, §4.3.2.1 and table 1.
        for (asked, allocated, period) in
            [(10, 12, 3), (6, 6, 6), (9, 9, 4), (12, 12, 3), (18, 18, 2)]
        {
            let asked = asked * 1_000_000;
            assert_eq!(update_period(asked), Some(Duration::from_millis(period)));
            assert_eq!(allocated_rate(asked), Some(allocated * 1_000_000));
        }
        assert_eq!(allocated_rate(7_200_000), Some(7_200_000));
        // Less than a tick is refused, and so is a rate of 0.
        assert_eq!(update_period(36_000_000), Some(TICK));
        assert_eq!(update_period(36_000_001), None);
        assert_eq!(update_period(0), None);
    }

    #[test]
    fn the_timer_bucket_passes_its_burst_and_then_one_packet_per_update() {
        let mut bucket = TimerBucket::new(22_500, 10_000_000).unwrap();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        for _ in 0..5 {
            assert_eq!(bucket.police(at(0)), Conformance::Conforms);
        }
        assert_eq!(bucket.police(at(0)), Conformance::At(at(3)));
        assert_eq!(bucket.police(at(3)), Conformance::Conforms);
        assert_eq!(bucket.police(at(5)), Conformance::At(at(6)));
        // The counter stops at the burst.
        for _ in 0..5 {
            assert_eq!(bucket.police(at(600)), Conformance::Conforms);
        }
        assert_eq!(bucket.police(at(600)), Conformance::At(at(603)));
    }

    #[test]
    fn costs_reproduce_the_throughputs_from_which_they_were_derived() {
        let costs = RouterCosts::of_text().unwrap();
        // "approximately 700 µs" (§3.3.2.1).
        assert_eq!(costs.whole.of_sample(PACKET) / 1_000, 708);
        assert_eq!(costs.whole.of_sample(48) / 1_000, 689);
        assert_eq!(costs.receive.of_sample(128) / 1_000, 77);
        assert_eq!(costs.receive.of_sample(PACKET) / 1_000, 150);
        // §4.3.2.1 computes 0.9 ms per packet next to 47 Mbit/s of 4,377 bytes.
        let busy = costs.receive.of_stream(4_377, 47_000_000);
        let each = costs.whole.of_sample(PACKET) * NANOS / (NANOS - busy);
        assert!((850_000..950_000).contains(&each), "{each} ns");
    }
}

//! Sums per level, for links that space the samples of each stream before they compete: rate-controlled static priority
//! and Stop-and-Go.
//!
//! Level n guarantees that its samples leave within 2^n ns of the instant from which they compete, if
//!
//! Σ A(2^n) + one packet of a later level or of other traffic ≤ C (2^n ns − latency of the host),
//!
//! for the streams of this level and those before it, with A the most bytes of an interval without its end. Then the link
//! has nothing left to send for these levels 2^n ns after it began with them. Levels without streams need no test: A(2 t) ≤
//! 2 A(t), so a sum that fits at one level fits at the later ones too. A stream that moves to a later level therefore never
//! breaks a guarantee.
//!
//! Papers: Zhang & Ferrari, "Rate-Controlled Static-Priority Queueing", INFOCOM 1993; Golestani, "A Stop-and-Go Queueing
//! Framework for Congestion Management", SIGCOMM 1990.

use crate::demand::StreamDemand;
use crate::due::Excess;
use crate::ledger::less;
use crate::traffic::{NANOBITS, nanobits, narrow};
use paceline_sched::Duration;
use std::collections::BTreeMap;

/// The number of levels: the longest deadline is shorter than 2^47 ns.
const LEVELS: u32 = 47;

/// The streams of a link by level.
#[derive(Clone, Debug)]
pub(crate) struct Regulated {
    /// The nanobits of the streams up to each level within the time of that level.
    sums: [u128; LEVELS as usize],
    /// The number of streams with a level and a longest packet, by both.
    packets: BTreeMap<(u32, u64), u32>,
}

impl Default for Regulated {
    fn default() -> Self {
        Self { sums: [0; LEVELS as usize], packets: BTreeMap::new() }
    }
}

/// A stream and its level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed<'a> {
    pub(crate) demand: &'a StreamDemand,
    pub(crate) level: u32,
}

impl Placed<'_> {
    /// Returns the most nanobits that compete within the time of `level`, if the stream is on it or before it.
    fn within(&self, level: u32) -> u128 {
        if self.level > level {
            return 0;
        }
        // Closed intervals of whole nanoseconds, so the last instant does not count.
        let last = (1_u64 << level) - 1;
        let curve = self.demand.traffic().nanobits_in(last.into());
        let samples = self.demand.staircase(true).map(|steps| steps.bytes_in(last));
        samples.map_or(curve, |bytes| curve.min(bytes.saturating_mul(NANOBITS)))
    }

    const fn key(&self) -> (u32, u64) {
        (self.level, self.demand.traffic().packet())
    }
}

impl Regulated {
    pub(crate) fn add(&mut self, stream: Placed<'_>) {
        for (level, sum) in (0..LEVELS).zip(&mut self.sums) {
            *sum += stream.within(level);
        }
        *self.packets.entry(stream.key()).or_default() += 1;
    }

    pub(crate) fn take(&mut self, stream: Placed<'_>) {
        for (level, sum) in (0..LEVELS).zip(&mut self.sums) {
            *sum -= stream.within(level);
        }
        less(&mut self.packets, &stream.key());
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.packets.is_empty() && self.sums.iter().all(|sum| *sum == 0)
    }

    /// Checks every level with a stream, without `minus` and with `plus`, on a link of `rate` bits per second with other
    /// packets of `other` bytes. The host adds `latency` to each packet.
    pub(crate) fn check(
        &self,
        (rate, other, latency): (u64, u64, Duration),
        minus: Option<Placed<'_>>,
        plus: Placed<'_>,
    ) -> Result<(), Excess> {
        let mut longest = other;
        for (level, sum) in (0..LEVELS).zip(self.sums).rev() {
            let Some(packet) = self.packet(level, minus, plus) else { continue };
            let gone = minus.map_or(0, |minus| minus.within(level));
            let needed = sum - gone + plus.within(level) + nanobits(longest);
            let time = (1_u64 << level).saturating_sub(latency.as_nanos());
            let available = u128::from(rate) * u128::from(time);
            if needed > available {
                let (needed, available) = (needed.div_ceil(NANOBITS), available / NANOBITS);
                let (needed, available) = (narrow(needed), narrow(available));
                return Err(Excess { at: 1 << level, needed, available });
            }
            longest = longest.max(packet);
        }
        Ok(())
    }

    /// Returns the longest packet of a level without `minus` and with `plus`, or `None` without streams.
    fn packet(&self, level: u32, minus: Option<Placed<'_>>, plus: Placed<'_>) -> Option<u64> {
        let gone = minus.map(|minus| minus.key());
        let level_packets = self.packets.range((level, 0)..=(level, u64::MAX));
        let mut stays = level_packets
            .rev()
            .filter(|(key, count)| **count > u32::from(gone == Some(**key)))
            .map(|((_, packet), _)| *packet);
        let added = (plus.level == level).then(|| plus.demand.traffic().packet());
        stays.next().max(added)
    }
}

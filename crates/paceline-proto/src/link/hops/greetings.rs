//! The share of a link for hops that are not up: neighbours that have been found, but have not proven that they receive.
//!
//! Anybody who reaches a listener can be found as often as the transport accepts connections. So all greetings together
//! have a fixed share: 1 % of the capacity, or 1 Mbit/s without one. It is a part of that of control, which admission
//! reserves. A greeting that is due leaves in this order:
//!
//! 1. to a neighbour that was up before,
//! 2. to one from which a frame has arrived: its handshake needs only this answer,
//! 3. to the others.
//!
//! Among them, those that were greeted least precede. Of these the one that was found last and the one that was found first
//! take turns: a newcomer does not wait for many that never answer, nor do many newer ones keep it waiting.

use super::attendance::Greeted;
use super::hop::Hop;
use crate::ids::NodeId;
use crate::link::pacing::Wire;
use crate::probes::ProbeInterval;
use paceline_sched::{Duration, Instant};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The share of the capacity for greetings, as the fraction 1/`GREETING_SHARE`.
const GREETING_SHARE: u64 = 100;
/// The time that each byte of a greeting costs on a link without a capacity: 1 Mbit/s. Hundreds of processes of a host may
/// return at once.
const BYTE: Duration = Duration::from_micros(8);
/// A greeting costs at most this part of the interval of probes, so that a handshake on a very slow link does not take
/// minutes.
const INTERVAL_PART: u64 = 4;
/// The number of greetings that may leave at once.
const BURST: u64 = 8;
/// The size of a greeting on the wire that the burst assumes, in bytes.
const GREETING_BYTES: u64 = 130;
/// The most removed neighbours of which the greetings are remembered.
const REMEMBERED_MAX: usize = 2_048;

/// The charge for greetings.
#[derive(Debug, Default)]
pub(in crate::link) struct Greetings {
    paid_at: Instant,
    /// The number of greetings so far.
    sent: u64,
    /// Removed neighbours that never answered.
    remembered: BTreeMap<NodeId, Greeted>,
}

impl Greetings {
    /// Returns the time that a greeting of `bytes` uses of the share.
    fn cost(wire: &Wire, bytes: u64) -> Duration {
        match wire.capacity {
            Some(capacity) => {
                let most = ProbeInterval::of(Some(capacity), 1).time().mul_div(1, INTERVAL_PART);
                capacity.time_for(bytes * GREETING_SHARE).min(most)
            }
            None => BYTE.mul_div(bytes, 1),
        }
    }

    /// Returns the time of the next greeting, if one is due.
    pub(super) fn ready_at(&self, wire: &Wire) -> Instant {
        self.paid_at - Self::cost(wire, GREETING_BYTES).mul_div(BURST - 1, 1)
    }

    /// Charges a greeting.
    pub(in crate::link) fn handle_sent(&mut self, now: Instant, wire: &Wire, bytes: u64) {
        self.paid_at = self.paid_at.max(now) + Self::cost(wire, bytes);
        self.sent += 1;
    }

    /// Remembers the greetings to a neighbour that is removed, unless it has answered one.
    pub(super) fn remember(&mut self, node: NodeId, hop: &Hop) {
        if hop.was_up() {
            return;
        }
        if self.remembered.len() >= REMEMBERED_MAX {
            self.remembered.clear();
        }
        self.remembered.insert(node, hop.greeted());
    }

    /// Returns the greetings to a neighbour that has been found again.
    pub(super) fn recall(&mut self, node: NodeId) -> Option<Greeted> {
        self.remembered.remove(&node)
    }

    /// Returns the order of a hop that is not up; the lowest is greeted first.
    pub(super) fn order(&self, hop: &Hop) -> impl Ord + use<> {
        let class = if hop.was_up() { 0 } else { 2 - u8::from(hop.is_heard()) };
        let newest_first = self.sent.is_multiple_of(2);
        let (newest, oldest) = (Reverse(hop.found()), hop.found());
        let found = (newest_first.then_some(newest), (!newest_first).then_some(oldest));
        (class, hop.greeted().0, found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carrier::Carrier;
    use paceline_sched::Capacity;

    /// Returns the bytes of greetings that leave in a minute.
    fn per_minute(bits: Option<u64>) -> u64 {
        let capacity = bits.and_then(|bits| Capacity::from_bits_per_s(bits).ok());
        let wire = Wire::new(capacity, Carrier::Ordered);
        let (mut greetings, mut sent) = (Greetings::default(), 0);
        let (start, mut now) = (Instant::from_millis(600_000), Instant::from_millis(600_000));
        while now.since(start) < Duration::from_secs(60) {
            greetings.handle_sent(now, &wire, GREETING_BYTES);
            sent += GREETING_BYTES;
            now = now.max(greetings.ready_at(&wire));
        }
        sent
    }

    #[test]
    fn greetings_use_one_percent_of_the_capacity() {
        let burst = BURST * GREETING_BYTES;
        assert!((150_000..=150_000 + burst).contains(&per_minute(Some(2_000_000))));
        assert!((7_500_000..=7_500_000 + burst).contains(&per_minute(None)));
        assert!(per_minute(Some(2_400)) <= burst + 5 * GREETING_BYTES, "each 12.5 s");
    }
}

//! The use of a link: the rates at which its counters grow.

use super::link::LinkStatus;
use paceline_proto::NodeId;
use std::collections::BTreeMap;
use std::time::Duration;

/// The shortest time over which a rate is computed.
const WINDOW: Duration = Duration::from_millis(900);

/// The counters of a link at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkReading {
    /// The time of reading by the node's clock.
    pub at: Duration,
    /// Bytes sent on the wire.
    pub wire_bytes: u64,
    /// Frames sent.
    pub frames: u64,
    /// Frames lost.
    pub frames_dropped: u64,
    /// Bytes sent to each neighbour.
    pub neighbours: BTreeMap<NodeId, u64>,
}

/// The use of a link between two readings that are about a second apart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkUse {
    last: LinkReading,
    bits_per_s: Option<u64>,
    neighbours: BTreeMap<NodeId, u64>,
    loss: Option<f64>,
}

impl LinkUse {
    /// Takes a reading. It is ignored within 900 ms of the last one.
    pub fn handle_reading(&mut self, reading: LinkReading) {
        let before = &self.last;
        let over = reading.at.saturating_sub(before.at);
        let is_first = before.at.is_zero();
        // The link has no counters yet.
        if reading.at.is_zero() || over < WINDOW && !is_first {
            return;
        }
        if !is_first {
            self.bits_per_s = bits_per_s(before.wire_bytes, reading.wire_bytes, over);
            let uses = reading.neighbours.iter().filter_map(|(node, bytes)| {
                Some((*node, bits_per_s(*before.neighbours.get(node)?, *bytes, over)?))
            });
            self.neighbours = uses.collect();
            self.loss = loss(before, &reading);
        }
        self.last = reading;
    }

    /// Adds the use to the status of the link.
    pub fn fill(&self, status: &mut LinkStatus) {
        status.use_bits_per_s = self.bits_per_s;
        status.loss = self.loss;
        for neighbour in &mut status.neighbours {
            neighbour.use_bits_per_s = self.neighbours.get(&neighbour.id).copied();
        }
    }
}

/// Returns the rate at which a number of bytes grew; `None` if it did not.
fn bits_per_s(before: u64, after: u64, over: Duration) -> Option<u64> {
    let bits = u128::from(after.checked_sub(before)?) * 8;
    u64::try_from(bits * 1_000_000_000 / over.as_nanos().max(1)).ok()
}

/// Returns the part of the frames lost between two readings; `None` if none was sent.
fn loss(before: &LinkReading, after: &LinkReading) -> Option<f64> {
    let sent = after.frames.checked_sub(before.frames).filter(|sent| *sent > 0)?;
    let lost = after.frames_dropped.saturating_sub(before.frames_dropped).min(sent);
    #[expect(clippy::cast_precision_loss, reason = "counts of about one second")]
    let part = lost as f64 / sent as f64;
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::super::NeighbourStatus;
    use super::*;

    fn reading(at_ms: u64, bytes: u64, first: u64, frames: (u64, u64)) -> LinkReading {
        LinkReading {
            at: Duration::from_millis(at_ms),
            wire_bytes: bytes,
            frames: frames.0,
            frames_dropped: frames.1,
            neighbours: [(NodeId(1), first), (NodeId(2), bytes - first)].into(),
        }
    }

    fn filled(of: &LinkUse) -> LinkStatus {
        let neighbour = |id| NeighbourStatus {
            id: NodeId(id),
            wire_bytes: 0,
            use_bits_per_s: None,
            down_after: Duration::ZERO,
            memory_bytes: 0,
        };
        let neighbours = vec![neighbour(1), neighbour(2), neighbour(3)];
        let mut status = LinkStatus { neighbours, ..LinkStatus::default() };
        of.fill(&mut status);
        status
    }

    #[test]
    fn the_use_is_known_from_the_second_reading_on_and_is_the_sum_over_the_neighbours() {
        let mut of = LinkUse::default();
        of.handle_reading(reading(5_000, 1_000, 0, (10, 0)));
        assert_eq!(filled(&of).use_bits_per_s, None);
        of.handle_reading(reading(5_500, 100_000, 0, (20, 9)));
        assert_eq!(filled(&of).use_bits_per_s, None, "too early");
        of.handle_reading(reading(6_000, 251_000, 200_000, (110, 5)));
        let status = filled(&of);
        assert_eq!((status.use_bits_per_s, status.loss), (Some(2_000_000), Some(0.05)));
        let uses: Vec<_> = status.neighbours.iter().map(|it| it.use_bits_per_s).collect();
        assert_eq!(uses, [Some(1_600_000), Some(400_000), None]);
    }

    #[test]
    fn an_idle_link_has_no_use_and_an_unknown_loss() {
        let mut of = LinkUse::default();
        of.handle_reading(reading(1_000, 1_000, 0, (10, 3)));
        of.handle_reading(reading(3_750, 1_000, 0, (10, 3)));
        assert_eq!((filled(&of).use_bits_per_s, filled(&of).loss), (Some(0), None));
        of.handle_reading(reading(6_500, 688_500, 0, (12, 9)));
        let status = filled(&of);
        assert_eq!((status.use_bits_per_s, status.loss), (Some(2_000_000), Some(1.0)));
    }

    #[test]
    fn counters_that_start_again_have_no_rate() {
        let mut of = LinkUse::default();
        of.handle_reading(reading(1_000, 9_000, 0, (10, 0)));
        of.handle_reading(reading(2_000, 10, 0, (1, 0)));
        assert_eq!((filled(&of).use_bits_per_s, filled(&of).loss), (None, None));
    }
}

//! The share of answers: frames without samples, which acknowledge those of a neighbour or request an acknowledgement.
//!
//! They are short and precede samples, so that the other end learns soon what arrived. But the other end decides how many it
//! requests. So beyond a tenth of the capacity for all hops together they yield to samples with a contract, and take turns
//! with other frames.

use super::Link;
use super::pacing::Wire;
use paceline_sched::{Duration, Instant};

/// The share of answers that precede samples, as the fraction 1/`SHARE` of the capacity.
const SHARE: u64 = 10;

/// The answers that preceded samples.
#[derive(Debug, Default)]
pub(super) struct AnswerShare {
    /// The instant at which they are paid for.
    paid_at: Instant,
    /// The last frame was an answer.
    is_last: bool,
}

impl AnswerShare {
    /// Returns true if the next answer may precede samples with a contract. At once, they use the time of a frame of the link.
    fn has_room(&self, now: Instant, wire: &Wire) -> bool {
        let burst = wire.frame_time().mul_div(SHARE, 1);
        self.paid_at.since(now) < burst
    }

    /// Charges an answer that occupies the wire for `time`.
    pub(super) fn charge(&mut self, now: Instant, time: Duration) {
        self.paid_at = self.paid_at.max(now) + time.mul_div(SHARE, 1);
        self.is_last = true;
    }

    /// Notes a frame that is no answer.
    pub(super) const fn note_other(&mut self) {
        self.is_last = false;
    }
}

impl Link {
    /// Returns true if a frame without samples may leave now; `waits` is true if another frame waits.
    pub(super) fn may_answer(&mut self, now: Instant, waits: bool) -> bool {
        !self.pacer.wire.is_paced()
            || self.answers.has_room(now, &self.pacer.wire)
            || !waits
            || !self.answers.is_last && self.promised_due(now).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carrier::Carrier;
    use paceline_sched::Capacity;

    #[test]
    fn answers_use_a_tenth_of_the_capacity_ahead_of_samples() {
        let wire = Wire::new(Capacity::from_bits_per_s(2_000_000).ok(), Carrier::Ordered);
        let (mut share, time) = (AnswerShare::default(), wire.time_of(90));
        let (mut sent, mut now) = (0, Instant::from_millis(1_000));
        for _ in 0..100_000 {
            now += Duration::from_micros(100);
            if share.has_room(now, &wire) {
                share.charge(now, time);
                sent += 1;
            }
        }
        // 90 bytes each in ten seconds, and the first ones.
        let tenth = 2_000_000 / 8 / 90;
        assert!((tenth..tenth + 30).contains(&sent), "{sent}, {tenth}");
    }
}

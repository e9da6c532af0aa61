//! Requests for key pictures (PLI, FIR): they are answered from the cached pictures, at a bounded rate.

use std::time::{Duration, Instant};

/// The shortest time between two answers. Requests are repeated until a key picture arrives, which takes a round trip.
const FIRST: Duration = Duration::from_millis(300);
/// The longest one, for a peer that requests without end.
const LAST: Duration = Duration::from_secs(5);
/// The time without a request after which the shortest time applies again.
const CALM: Duration = Duration::from_secs(10);

/// The answers to one peer's requests for key pictures.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyRepair {
    answered: Option<Instant>,
    pause: Duration,
    /// The number of requests.
    pub requests: u64,
    /// The number of answers.
    pub answers: u64,
}

impl KeyRepair {
    /// Notes a request. Returns true if it is answered now: repetitions are answered after 0.3 s, then after twice as long each
    /// time, up to 5 s.
    pub fn request(&mut self, now: Instant) -> bool {
        self.requests += 1;
        let since = self.answered.map(|at| now.saturating_duration_since(at));
        if since.is_some_and(|since| since < self.pause) {
            return false;
        }
        let calm = since.is_none_or(|since| since >= CALM);
        self.pause = if calm { FIRST } else { (self.pause * 2).min(LAST) };
        self.answered = Some(now);
        self.answers += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_requests_has_few_answers_and_a_calm_peer_a_quick_one() {
        let mut repair = KeyRepair::default();
        let begin = super::super::tests::begin();
        let at = |ms: u64| begin + Duration::from_millis(ms);
        let answered: Vec<u64> =
            (0..20_000).step_by(10).filter(|ms| repair.request(at(*ms))).collect();
        assert_eq!(answered, [0, 300, 900, 2_100, 4_500, 9_300, 14_300, 19_300]);
        assert_eq!((repair.requests, repair.answers), (2_000, 8));
        assert!(
            repair.request(at(40_000)) && !repair.request(at(40_200)) && repair.request(at(40_300))
        );
    }
}

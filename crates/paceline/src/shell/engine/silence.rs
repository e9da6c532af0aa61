//! A single warning for links without an answer: a wrong address looks like a slow neighbour.

use super::Engine;
use paceline_sched::{Duration, Instant};

/// The time that a neighbour has to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// The start of the wait for neighbours, and whether the warning was logged.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    began: Option<Instant>,
    told: bool,
}

impl Silence {
    /// Returns true once, after [`PATIENCE`].
    fn is_due(&mut self, now: Instant) -> bool {
        let began = *self.began.get_or_insert(now);
        let due = !self.told && now >= began + PATIENCE;
        self.told |= due;
        due
    }
}

impl Engine {
    /// Logs the links that connect and have no neighbour yet, except the host link.
    pub(super) fn tell_silence(&mut self, now: Instant) {
        if !self.silence.is_due(now) {
            return;
        }
        let own = self.host.as_ref().map(|(_, link)| *link);
        for (index, link) in self.links.iter().enumerate() {
            let connects = !link.config.connect.is_empty() && own != Some(index);
            if connects && self.ways.behind(index).is_empty() {
                let (name, endpoints) = (&link.config.name, link.config.connect.join(", "));
                tracing::warn!("link '{name}': no node answers at {endpoints}; still trying");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_reported_once_after_a_delay() {
        let at = |millis| Instant::from_millis(millis);
        let mut silence = Silence::default();
        let due = [500, 750, 3_499, 3_500, 3_750, 99_000].map(|millis| silence.is_due(at(millis)));
        assert_eq!(due, [false, false, false, true, false, false]);
    }
}

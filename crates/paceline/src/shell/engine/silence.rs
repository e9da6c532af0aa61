//! Links on which nobody answers are named once: a wrong address looks like a neighbour that is late.

use super::Engine;
use paceline_sched::{Duration, Instant};

/// How long a neighbour may take before its silence is worth a line.
const PATIENCE: Duration = Duration::from_secs(3);

/// Since when neighbours are awaited, and whether their silence was told.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    began: Option<Instant>,
    told: bool,
}

impl Silence {
    /// True once, when neighbours have had the time to answer.
    fn is_due(&mut self, now: Instant) -> bool {
        let began = *self.began.get_or_insert(now);
        let due = !self.told && now >= began + PATIENCE;
        self.told |= due;
        due
    }
}

impl Engine {
    /// Names the links that connect and have no neighbour yet; the host's own is not among them.
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
    fn silence_is_told_once_and_not_too_soon() {
        let at = |millis| Instant::from_millis(millis);
        let mut silence = Silence::default();
        let due = [500, 750, 3_499, 3_500, 3_750, 99_000].map(|millis| silence.is_due(at(millis)));
        assert_eq!(due, [false, false, false, true, false, false]);
    }
}

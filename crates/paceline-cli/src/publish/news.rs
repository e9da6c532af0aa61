//! The parts of an input that are left out.

use paceline_edge::{Losses, TrackKind, UnitFault};
use paceline_media::Damage;
use paceline_media::stream::Skipped;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The parts of an input that are left out, as its reading thread reports them.
pub(super) struct News {
    name: String,
    known: Mutex<Known>,
}

/// The reports so far.
#[derive(Default)]
struct Known {
    skipped: Skipped,
    /// The damage between two samples. A stream may begin and end within a sample.
    between: Damage,
    /// The pictures that a camera's packets did not complete.
    losses: Losses,
    /// Samples of a camera that arrived while the oldest one had waited for too long.
    stopped: u64,
    /// Samples of a camera that arrived while too many bytes waited.
    full: u64,
}

impl News {
    pub(super) fn new(name: String) -> Self {
        Self { name, known: Mutex::default() }
    }

    /// Returns the news of a camera's sound.
    pub(super) fn of_sound(name: String) -> Self {
        let known = Known { losses: Losses::of(TrackKind::Sound), ..Known::default() };
        Self { name, known: Mutex::new(known) }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports the parts that are left out so far.
    pub(super) fn set(&self, skipped: &Skipped) {
        let mut known = self.lock();
        if known.skipped != *skipped {
            known.skipped.clone_from(skipped);
        }
    }

    /// Reports the damage between two samples.
    pub(super) fn damaged(&self, damage: &Damage) {
        self.lock().between.clone_from(damage);
    }

    /// Reports a picture that the packets of a camera did not complete.
    pub(super) fn fault(&self, fault: UnitFault) {
        self.lock().losses.add(fault);
    }

    /// Reports a sample of a camera that arrived while the publisher took none.
    pub(super) fn stopped(&self) {
        self.lock().stopped += 1;
    }

    /// Reports a sample of a camera that arrived while too many bytes waited.
    pub(super) fn full(&self) {
        self.lock().full += 1;
    }

    /// Returns the damage between two samples, as an error.
    pub(super) fn failure(&self) -> Option<anyhow::Error> {
        let known = self.lock();
        let damage = Some(&known.between).filter(|damage| !damage.is_empty())?;
        Some(anyhow::Error::msg(damage.clone()).context(self.name.clone()))
    }

    /// Returns the number of pictures and damaged places so far.
    pub(super) fn count(&self) -> u64 {
        let known = self.lock();
        let Skipped { damage, early } = &known.skipped;
        early + damage.places + known.losses.total() + known.stopped + known.full
    }

    /// Describes the parts.
    pub(super) fn describe(&self) -> String {
        let known = self.lock();
        let Skipped { damage, early } = &known.skipped;
        let early = match early {
            0 => None,
            1 => Some("its first picture needs earlier ones and is left out".to_owned()),
            many => Some(format!("its first {many} pictures need earlier ones and are left out")),
        };
        let damage = (!damage.is_empty()).then(|| damage.to_string());
        let losses = (known.losses.total() > 0).then(|| known.losses.to_string());
        let stopped = (known.stopped > 0)
            .then(|| format!("{} that arrived while none were taken", known.stopped));
        let full =
            (known.full > 0).then(|| format!("{} that arrived while 32 MiB waited", known.full));
        let parts = early.into_iter().chain(damage).chain(losses).chain(stopped).chain(full);
        let parts: Vec<String> = parts.collect();
        format!("{}: {}", self.name, parts.join("; "))
    }
}

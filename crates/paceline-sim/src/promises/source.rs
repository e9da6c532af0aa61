//! The timing and sizes of a source's samples, as bad as its declaration permits.

use super::film::{Clip, Film, LONGEST};
use crate::ask::payload;
use crate::driver::Times;
use crate::handle::Payload;
use crate::random::Random;
use paceline_proto::Envelope;
use paceline_proto::control::PublisherSpec;
use paceline_sched::{Duration, Instant};

/// A sample may be early by one part in this many of its contract's period, which is 19/20 of the source's
/// period.
const JITTER_PART: u64 = 10;
/// Samples between two pauses of a source that pauses.
const BETWEEN_PAUSES: u64 = 40;

/// The timing pattern of a source.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Style {
    /// Exact timing.
    Exact,
    /// The first sample is as late as permitted, all others as early as permitted.
    EarlyAfterFirst,
    /// Late and early alternately, so that every other interval is as short as permitted.
    Alternating,
    /// Random within the permitted range.
    Random,
    /// As early as permitted for some time, then late for some time.
    Waves,
}

/// A source of samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    /// The declared period and the declared maximum size.
    pub(super) period: Duration,
    pub(super) bytes_max: u64,
    style: Style,
    /// Some samples are shorter than the maximum.
    varies: bool,
    /// The traffic over longer times of samples that vary in size.
    envelope: Option<Envelope>,
    /// The film whose sizes its samples have.
    pub(super) clip: Option<Clip>,
    /// The length of its pauses; zero for none.
    pub(super) pause: Duration,
    /// The instant at which the first sample is due.
    pub(super) start: Instant,
    seed: u64,
}

impl Source {
    pub(super) fn new(chance: &mut Random, period: Duration, bytes_max: u64) -> Self {
        let styles =
            [Style::EarlyAfterFirst, Style::Alternating, Style::Random, Style::Waves, Style::Exact];
        let pauses = chance.chance(250);
        Self {
            period,
            bytes_max,
            style: chance.one_of(&styles).unwrap_or(Style::Exact),
            varies: chance.chance(300),
            envelope: None,
            clip: None,
            pause: if pauses { period.mul_div(1 + chance.below(70), 7) } else { Duration::ZERO },
            start: Instant::ZERO,
            seed: chance.next(),
        }
    }

    /// Declares an envelope with longer samples than before, for `part` of 1,000 sources.
    pub(super) fn vary(&mut self, spec: &mut PublisherSpec, part: u32) {
        // A generator of its own: the rest of the network is the same without envelopes.
        let mut chance = self.chance(u64::MAX);
        if !chance.chance(part) {
            return;
        }
        let every = self.period.as_nanos().max(1);
        let mean = u128::from(self.bytes_max) * 1_000_000_000 / u128::from(every);
        self.bytes_max = (self.bytes_max * (2 + chance.below(7))).min(LONGEST);
        let burst = self.bytes_max * (1 + chance.below(3)) + chance.below(self.bytes_max);
        let bytes_per_s = u64::try_from(mean).unwrap_or(u64::MAX);
        self.envelope = Some(Envelope::declared(burst, bytes_per_s));
        (spec.bytes_max, spec.envelope) = (Some(self.bytes_max), self.envelope);
    }

    /// Declares the envelope of a film with about the same mean size as before, for `part` of 1,000 sources.
    pub(super) fn play(&mut self, spec: &mut PublisherSpec, part: u32, films: &[Film]) {
        // A generator of its own: the rest of the network is the same without films.
        let mut chance = self.chance(u64::MAX - 1);
        if self.envelope.is_some() || !chance.chance(part) {
            return;
        }
        let film = chance.place(films.len());
        let Some(sizes) = films.get(film) else { return };
        self.clip = Clip::new(film, sizes, chance.next(), self.bytes_max);
        let Some(clip) = self.clip else { return };
        let (bytes_max, envelope) = clip.envelope(sizes, (self.period, self.jitter()));
        (self.bytes_max, self.envelope) = (bytes_max, Some(envelope));
        (spec.bytes_max, spec.envelope) = (Some(bytes_max), self.envelope);
    }

    /// Returns how late a sample may be after its point of the grid.
    fn jitter(&self) -> Duration {
        self.period.mul_div(19, 20).mul_div(1, JITTER_PART)
    }

    /// Returns the random generator of one sample.
    const fn chance(&self, number: u64) -> Random {
        Random::new(self.seed ^ number.wrapping_mul(0xd134_2543_de82_ef95))
    }

    /// Returns the instant of sample `number`: at most the jitter after a grid with one point per period.
    pub(super) fn at(&self, number: u64) -> Instant {
        let jitter = self.jitter();
        let late = match self.style {
            Style::Exact => false,
            Style::EarlyAfterFirst => number.is_multiple_of(BETWEEN_PAUSES),
            Style::Alternating => number.is_multiple_of(2),
            Style::Random => {
                let part = self.chance(number).below(1_001);
                return self.due(number) + jitter.mul_div(part, 1_000);
            }
            Style::Waves => (number / 7).is_multiple_of(2),
        };
        self.due(number) + if late { jitter } else { Duration::ZERO }
    }

    fn due(&self, number: u64) -> Instant {
        let pauses = self.pause.mul_div(number / BETWEEN_PAUSES, 1);
        self.start + self.period.mul_div(number, 1).saturating_add(pauses)
    }

    pub(super) fn times(self) -> Times {
        Box::new(move |number| self.at(number))
    }

    /// Returns the payloads, those of a film with the sizes of its pictures.
    pub(super) fn payloads(self, films: &[Film]) -> Payload {
        let film = self.clip.and_then(|clip| Some((clip, films.get(clip.film)?.clone())));
        if let Some((clip, sizes)) = film {
            return Box::new(move |number| {
                payload(number, usize::try_from(clip.size(&sizes, number)).unwrap_or_default())
            });
        }
        if let Some(envelope) = self.envelope {
            return self.bursts(envelope);
        }
        Box::new(move |number| {
            let mut len = self.bytes_max;
            if self.varies {
                len -= self.chance(!number).below(len);
            }
            payload(number, usize::try_from(len).unwrap_or_default())
        })
    }

    /// Returns payloads that use the whole envelope: as long as it allows for some time, and short for some time.
    fn bursts(self, envelope: Envelope) -> Payload {
        let full = u128::from(envelope.burst()) * 1_000_000_000;
        let (mut allowed, mut before) = (full, Instant::ZERO);
        Box::new(move |number| {
            let now = self.at(number);
            let more =
                u128::from(now.since(before).as_nanos()) * u128::from(envelope.bytes_per_s());
            (allowed, before) = ((allowed + more).min(full), now);
            let most = u64::try_from(allowed / 1_000_000_000).unwrap_or(u64::MAX);
            let saves = self.varies && self.chance(number / 31).chance(400);
            let len = if saves { self.bytes_max.min(20) } else { self.bytes_max }.min(most);
            allowed -= u128::from(len) * 1_000_000_000;
            payload(number, usize::try_from(len).unwrap_or_default())
        })
    }
}

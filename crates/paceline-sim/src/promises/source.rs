//! When a source's samples come, and how long they are: as badly as what it declared allows.

use crate::ask::payload;
use crate::driver::Times;
use crate::net::Payload;
use crate::random::Random;
use paceline_sched::{Duration, Instant};

/// A source may be early by one part in so many of its contract's period, which is 19/20 of its own.
const JITTER_PART: u64 = 10;
/// So many samples come before a source that pauses does.
const BETWEEN_PAUSES: u64 = 40;

/// How a source uses what it may.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Style {
    /// Its clock is exact.
    Exact,
    /// The first sample is as late as may be, all others as early as may be.
    EarlyAfterFirst,
    /// Late and early in turn: every other two are as near as may be.
    Alternating,
    /// Anything between.
    Random,
    /// Early by all it may for a while, then late for a while.
    Waves,
}

/// A source of samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    /// What it declares.
    pub(super) period: Duration,
    pub(super) bytes_max: u64,
    style: Style,
    /// Some samples are shorter than the longest.
    varies: bool,
    /// Now and then nothing comes for so long.
    pause: Duration,
    /// When the first sample is due.
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
            pause: if pauses { period.mul_div(1 + chance.below(70), 7) } else { Duration::ZERO },
            start: Instant::ZERO,
            seed: chance.next(),
        }
    }

    /// Chance that belongs to one sample.
    const fn chance(&self, number: u64) -> Random {
        Random::new(self.seed ^ number.wrapping_mul(0xd134_2543_de82_ef95))
    }

    /// When sample `number` comes: no more than its jitter after a grid whose points are a period apart.
    pub(super) fn at(&self, number: u64) -> Instant {
        let jitter = self.period.mul_div(19, 20).mul_div(1, JITTER_PART);
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

    pub(super) fn payloads(self) -> Payload {
        Box::new(move |number| {
            let mut len = self.bytes_max;
            if self.varies {
                len -= self.chance(!number).below(len);
            }
            payload(number, usize::try_from(len).unwrap_or_default())
        })
    }
}

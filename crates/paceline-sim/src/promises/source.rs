//! The timing and sizes of a source's samples, as bad as its declaration permits.

use crate::ask::payload;
use crate::driver::Times;
use crate::handle::Payload;
use crate::random::Random;
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
    /// The length of its pauses; zero for none.
    pause: Duration,
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
            pause: if pauses { period.mul_div(1 + chance.below(70), 7) } else { Duration::ZERO },
            start: Instant::ZERO,
            seed: chance.next(),
        }
    }

    /// Returns the random generator of one sample.
    const fn chance(&self, number: u64) -> Random {
        Random::new(self.seed ^ number.wrapping_mul(0xd134_2543_de82_ef95))
    }

    /// Returns the instant of sample `number`: at most the jitter after a grid with one point per period.
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

//! Random histories of a link, one per seed.

use super::random::SplitMix;
use paceline_sched::contract::{Contract, Late, LossTolerance};
use paceline_sched::discipline::{Earlier, Eligibility, ServiceClass, Terms};
use paceline_sched::time::{Duration, Instant};

/// One event on the link.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// The stream joins, for the first time or again. If it has a head and `keeps` is set, the head is
    /// announced again.
    Join { stream: u32, terms: Terms, keeps: bool },
    /// The stream leaves.
    Leave { stream: u32 },
    /// A sample that arrived `age` ago joins the stream's queue.
    Arrive { stream: u32, service: u64, age: u64 },
    /// Like `Arrive`, with a sample longer than the contract permits. The stream needs `over` to earn the
    /// excess.
    ArriveLong { stream: u32, service: u64, over: u64 },
    /// One sample arrives for every stream.
    ArriveAll { service: u64 },
    /// The head is withdrawn.
    Remove { stream: u32 },
    /// A sample behind the head is dropped.
    Skip { stream: u32 },
    /// The first `samples` of the current window passed before the stream joined.
    Earlier { stream: u32, earlier: Earlier },
    /// The stream's destination cannot accept more.
    Suspend { stream: u32 },
    /// The stream's destination can accept samples again.
    Resume { stream: u32 },
    /// The picked stream sends. The end of a sample is `slip` later than planned.
    Send { segments: u32, longest: u64, slip: u64 },
    /// Time passes.
    Idle { nanos: u64 },
    /// The clock is set back.
    Back { nanos: u64 },
}

/// A history of a link.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub(crate) eligibility: Eligibility,
    pub(crate) streams: u32,
    pub(crate) start: Instant,
    pub(crate) events: Vec<Event>,
}

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * SECOND;
const YEAR: u64 = 365 * DAY;
const UNITS: [u64; 7] = [1, 1_000, 1_000_000, SECOND, 3_600 * SECOND, DAY, YEAR];
/// Values at the limits of 64 bits.
const EDGES: [u64; 9] = [0, 1, 2, 1 << 32, 1 << 62, 1 << 63, (1 << 63) + 1, u64::MAX - 1, u64::MAX];
/// The most deadlines of one head that the naive twin steps through at once.
const PASSED_MAX: u128 = 1 << 13;

/// The range of times in a history.
#[derive(Clone, Copy)]
enum Scale {
    /// A few nanoseconds, or a few of a larger unit, so that deadlines coincide.
    Unit(u64),
    /// A mix of nanoseconds and years.
    Mixed,
    /// Any value of 64 bits.
    Edges,
}

struct Chance {
    random: SplitMix,
    scale: Scale,
    streams: u32,
}

/// Returns the history of `seed`.
pub(crate) fn life(seed: u64) -> Life {
    let mut random = SplitMix::new(seed);
    let unit = random.one_of(&UNITS);
    let (scale, start) = match random.below(32) {
        0..=23 => (Scale::Unit(1), 0),
        24 | 25 => (Scale::Unit(unit), random.below(3) * unit),
        26 | 27 => {
            (Scale::Unit(unit.min(SECOND)), u64::MAX - random.below(3_000) * unit.min(SECOND))
        }
        28 | 29 => (Scale::Mixed, random.below(YEAR)),
        _ => (Scale::Edges, random.one_of(&[0, 0, 1 << 40, 1 << 63])),
    };
    let eligibility = match random.below(3) {
        0 => Eligibility::WorkConserving,
        _ => Eligibility::OncePerPeriod,
    };
    let streams = if random.once_in(12) { 12 } else { 2 + random.small(5) };
    let mut chance = Chance { random, scale, streams };
    let joined = 1 + chance.random.small(streams);
    let mut events: Vec<Event> = (0..joined).map(|stream| chance.contracted(stream)).collect();
    let more = if chance.random.once_in(16) { 120 } else { 12 + chance.random.small(20) };
    events.extend((0..more).map(|_| chance.event()));
    let start = Instant::from_nanos(start);
    Life { eligibility, streams, start, events }
}

impl Chance {
    /// Returns a length of less than `bound` units.
    fn length(&mut self, bound: u64) -> u64 {
        let count = self.random.below(bound);
        match self.scale {
            Scale::Unit(unit) => count.saturating_mul(unit),
            Scale::Mixed => count.saturating_mul(self.random.one_of(&UNITS)),
            Scale::Edges if self.random.once_in(3) => self.random.one_of(&EDGES),
            Scale::Edges => count,
        }
    }

    /// Returns an upper bound of every interval of the history, service included.
    const fn horizon(&self) -> u128 {
        match self.scale {
            Scale::Unit(unit) => unit as u128 * 2_100,
            Scale::Mixed => YEAR as u128 * 60,
            Scale::Edges => 1 << 65,
        }
    }

    fn loss(&mut self) -> LossTolerance {
        let most = LossTolerance::Y_MAX;
        let (x, y) = match self.random.below(16) {
            0 | 1 => return LossTolerance::EDF,
            2 => {
                let y = self.random.one_of(&[most, most - 1, most / 2, 40_000, 1 << 15]);
                (self.random.one_of(&[0, 1, 2, y / 2, y - 1, y]), y)
            }
            _ => {
                let y = 1 + self.random.small(5);
                (self.random.small(y + 1), y)
            }
        };
        LossTolerance::new(x, y).unwrap()
    }

    fn contract(&mut self) -> Contract {
        let period = match self.random.below(3) {
            0 => self.length(2).max(1).saturating_mul(8),
            1 => self.length(40),
            _ => match self.scale {
                Scale::Unit(unit) => unit.saturating_mul(16),
                Scale::Mixed | Scale::Edges => self.length(16),
            },
        };
        let period = if self.random.once_in(64) { 0 } else { period.max(1) };
        let deadline = if self.random.below(3) > 0 { period } else { self.length(60) };
        let jitter = if self.random.below(3) > 0 { 0 } else { self.length(12) };
        // The twin steps through deadlines one by one.
        let patient = u128::from(period.max(1)) * PASSED_MAX >= self.horizon();
        let late = if patient && self.random.once_in(2) { Late::Send } else { Late::Drop };
        Contract {
            period: Duration::from_nanos(period),
            deadline: Duration::from_nanos(deadline),
            loss: self.loss(),
            late,
            jitter: Duration::from_nanos(jitter),
        }
    }

    fn terms(&mut self, class: ServiceClass) -> Terms {
        let mut terms = Terms::new(class).with_early_begin(self.random.once_in(2));
        if self.random.once_in(4) {
            terms = terms.with_priority(self.random.one_of(&[0, 1, 2, u32::MAX]));
        }
        if self.random.once_in(8) {
            terms = terms.with_rate(self.random.one_of(&[0, 1, 1_000, u64::MAX]));
        }
        terms
    }

    fn contracted(&mut self, stream: u32) -> Event {
        let class = ServiceClass::Contracted(self.contract());
        Event::Join { stream, terms: self.terms(class), keeps: false }
    }

    fn event(&mut self) -> Event {
        let stream = self.random.small(self.streams);
        match self.random.below(64) {
            0..=2 => {
                let class = match self.random.below(6) {
                    0 => ServiceClass::BestEffort,
                    1 => ServiceClass::Background,
                    _ => ServiceClass::Contracted(self.contract()),
                };
                let keeps = self.random.once_in(2);
                Event::Join { stream, terms: self.terms(class), keeps }
            }
            3 => Event::Leave { stream },
            4 | 5 => {
                let (service, over) = (self.length(13).max(1), self.length(40).max(1));
                Event::ArriveLong { stream, service, over }
            }
            6..=18 => {
                let age = if self.random.once_in(8) { self.length(10) } else { 0 };
                Event::Arrive { stream, service: self.length(13).max(1), age }
            }
            19..=24 => Event::ArriveAll { service: self.length(6).max(1) },
            25 => Event::Remove { stream },
            26 => Event::Skip { stream },
            27 => {
                let samples = self.random.below(64);
                let missed = u32::try_from(samples % 7).unwrap_or_default();
                Event::Earlier { stream, earlier: Earlier { samples, missed } }
            }
            28 | 29 => Event::Suspend { stream },
            30..=32 => Event::Resume { stream },
            33..=52 => {
                let slip = if self.random.once_in(8) { self.length(30) } else { 0 };
                let longest = self.length(8).max(1);
                Event::Send { segments: 1 + self.random.small(3), longest, slip }
            }
            53..=60 => Event::Idle { nanos: self.length(20) },
            61 | 62 => Event::Idle { nanos: self.stall() },
            _ => Event::Back { nanos: self.length(40) },
        }
    }

    /// Returns the length of a stall. With mixed units an ordinary length is long enough.
    fn stall(&mut self) -> u64 {
        match self.scale {
            Scale::Unit(unit) => (100 + self.random.below(1_900)).saturating_mul(unit),
            Scale::Mixed | Scale::Edges => self.length(20),
        }
    }
}

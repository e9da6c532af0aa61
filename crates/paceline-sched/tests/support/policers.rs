//! Policers that store the full history and decide from the definition of their constraint, and random
//! scenarios in which the real ones must decide the same.

use paceline_sched::police::{Combined, Conformance, Constraint, Dual, Moving, PolicedUnit, Rule};
use paceline_sched::time::{Duration, Instant};

/// Steele, Lea & Flood's SplitMix64: the same numbers for the same seed, everywhere.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 to `most`.
    pub(crate) fn up_to(&mut self, most: u64) -> u64 {
        self.next().checked_rem(most.saturating_add(1)).unwrap_or(0).min(most)
    }

    /// Returns a number from 0 to `most`, small ones as likely as large ones.
    pub(crate) fn any_size(&mut self, most: u64) -> u64 {
        let bits = self.up_to(u64::from(64 - most.leading_zeros()));
        let limit = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
        self.up_to(limit).min(most)
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.up_to(n - 1) == 0
    }
}

/// One accepted or forced packet.
#[derive(Clone, Copy, Debug)]
struct Packet {
    at: u64,
    len: u64,
}

/// All policers of a stream with every packet that was charged.
pub(crate) struct Naive {
    constraints: Vec<Constraint>,
    history: Vec<Packet>,
}

impl Naive {
    pub(crate) fn new(constraints: &[Constraint]) -> Self {
        Self { constraints: constraints.to_vec(), history: Vec::new() }
    }

    /// Returns the effective instant: never before the last charge.
    fn clamped(&self, now: Instant) -> u64 {
        self.history.last().map_or(0, |last| last.at).max(now.as_nanos())
    }

    pub(crate) fn conforms(&self, now: Instant, len: u64) -> bool {
        let at = self.clamped(now);
        self.constraints.iter().all(|constraint| self.keeps(*constraint, at, len))
    }

    pub(crate) fn charge(&mut self, now: Instant, len: u64) {
        self.history.push(Packet { at: self.clamped(now), len });
    }

    fn keeps(&self, constraint: Constraint, at: u64, len: u64) -> bool {
        let unit = constraint.unit();
        match constraint.rule() {
            Rule::Leaky { burst, rate } => self.within(unit, burst, rate, at, len),
            Rule::Jumping { burst, window } => {
                let same = |p: &&Packet| p.at / window.as_nanos() == at / window.as_nanos();
                let used = self.history.iter().filter(same).map(|p| u128::from(unit.cost(p.len)));
                used.sum::<u128>() + u128::from(unit.cost(len)) <= u128::from(burst)
            }
            Rule::Moving(Moving { spacing, average, interval, largest }) => {
                let since = |nanos: u64| {
                    self.history.iter().filter(move |p| at - p.at < nanos).count() as u128
                };
                unit.cost(len) <= largest
                    && since(spacing.as_nanos()) == 0
                    && since(interval.as_nanos())
                        < u128::from(interval.as_nanos() / average.as_nanos())
            }
            Rule::Dual(Dual { peak_burst, peak_rate, burst, rate }) => {
                self.within(unit, peak_burst, peak_rate, at, len)
                    && self.within(unit, burst, rate, at, len)
            }
        }
    }

    /// Checks σ + ρ t over every interval that ends now and begins at a packet.
    fn within(&self, unit: PolicedUnit, burst: u64, rate: u64, at: u64, len: u64) -> bool {
        let scale: u128 = if unit == PolicedUnit::Bytes { 8_000_000_000 } else { 1_000_000_000 };
        let mut sum = u128::from(unit.cost(len));
        let fits = |sum: u128, nanos: u64| {
            sum * scale <= u128::from(burst) * scale + u128::from(rate) * u128::from(nanos)
        };
        fits(sum, 0)
            && self.history.iter().rev().all(|packet| {
                sum += u128::from(unit.cost(packet.len));
                fits(sum, at - packet.at)
            })
    }

    /// Panics unless every closed interval that begins and ends at a packet keeps every bound.
    pub(crate) fn check_bounds(&self) {
        for constraint in &self.constraints {
            for (index, first) in self.history.iter().enumerate() {
                let mut sum = 0u128;
                for last in &self.history[index..] {
                    sum += u128::from(constraint.unit().cost(last.len));
                    let bound = constraint.bound(Duration::from_nanos(last.at - first.at));
                    assert!(
                        sum <= u128::from(bound) || bound == u64::MAX,
                        "{constraint}: {sum} in [{}, {}], at most {bound}",
                        first.at,
                        last.at
                    );
                }
            }
        }
    }
}

fn positive(random: &mut Random, most: u64) -> u64 {
    random.any_size(most).max(1)
}

fn rate(random: &mut Random) -> u64 {
    match random.up_to(5) {
        0 => 1,
        1 => 800_000_000_000,
        2 => positive(random, Constraint::RATE_MAX),
        _ => positive(random, 1 << 34),
    }
}

fn burst(random: &mut Random) -> u64 {
    if random.one_in(12) { u64::MAX } else { positive(random, 1 << 20) }
}

fn length(random: &mut Random) -> Duration {
    let most = if random.one_in(12) { u64::MAX } else { 1 << 34 };
    Duration::from_nanos(positive(random, most))
}

/// Returns a constraint with parameters of any size.
pub(crate) fn constraint(random: &mut Random) -> Constraint {
    let unit = if random.one_in(3) { PolicedUnit::Packets } else { PolicedUnit::Bytes };
    let small = |random: &mut Random, most: u64| match unit {
        PolicedUnit::Packets => 1 + random.up_to(8).min(most - 1),
        PolicedUnit::Bytes => positive(random, most),
    };
    let made = match random.up_to(3) {
        0 => {
            let burst = if random.one_in(2) { small(random, 1 << 16) } else { burst(random) };
            Constraint::leaky(unit, burst, rate(random))
        }
        1 => {
            let burst = if random.one_in(2) { small(random, 1 << 16) } else { burst(random) };
            Constraint::jumping(unit, burst, length(random))
        }
        2 => {
            let average = Duration::from_nanos(positive(random, 1 << 34));
            let spacing = Duration::from_nanos(random.any_size(average.as_nanos()));
            let packets = 1 + random.up_to(12);
            let interval = average.as_nanos().saturating_mul(packets);
            let interval = interval.saturating_add(random.up_to(average.as_nanos() - 1));
            let largest = if unit == PolicedUnit::Packets { 1 } else { burst(random) };
            let interval = Duration::from_nanos(interval);
            Constraint::moving(unit, Moving { spacing, average, interval, largest })
        }
        _ => {
            let (a, b, c, d) = (burst(random), burst(random), rate(random), rate(random));
            let (peak_burst, burst) = (a.min(b), a.max(b));
            let dual = Dual { peak_burst, burst, peak_rate: c.max(d), rate: c.min(d) };
            Constraint::dual(unit, dual)
        }
    };
    made.unwrap()
}

/// Runs one random scenario of a stream's policers.
///
/// At every step they decide as the naive ones do, and a returned instant is the first that conforms.
/// The accepted packets keep every bound. Panics with a description of the difference; the caller
/// reports the seed.
pub(crate) fn scenario(seed: u64) {
    let mut random = Random::new(seed);
    let constraints: Vec<Constraint> =
        (0..=random.up_to(2)).map(|_| constraint(&mut random)).collect();
    let (mut real, mut naive) = (Combined::new(&constraints).unwrap(), Naive::new(&constraints));
    assert_eq!(real.to_string().parse::<Combined>().unwrap().to_string(), real.to_string());
    assert!(real.to_string().parse::<Combined>().unwrap().constraints().eq(constraints.clone()));
    let forced = random.one_in(4);
    let largest = constraints.iter().map(|c| c.largest()).min().unwrap_or(u64::MAX);
    let start = if random.one_in(8) { u64::MAX } else { 1 << 40 };
    let mut now = Instant::from_nanos(random.any_size(start));
    for _ in 0..random.up_to(60) {
        let len = match random.up_to(7) {
            0 => 0,
            1 => largest.saturating_add(random.up_to(1)),
            2 => random.any_size(u64::MAX),
            _ => random.any_size(largest.min(1 << 16)),
        };
        let conformance = real.check(now, len);
        assert_eq!(
            conformance == Conformance::Conforms,
            naive.conforms(now, len),
            "{real} at {now:?}"
        );
        match conformance {
            Conformance::Conforms => {}
            Conformance::At(at) => {
                assert!(at > now && at < Instant::FAR, "{real}: {at:?} at {now:?}");
                let before = at - Duration::from_nanos(1);
                assert!(naive.conforms(at, len) && !naive.conforms(before, len), "{real}: {at:?}");
            }
            Conformance::Never => {
                let last = Instant::from_nanos(u64::MAX - 1);
                assert!(!naive.conforms(last, len), "{real}: never {len} at {now:?}");
            }
        }
        if forced && random.one_in(5) {
            real.charge(now, len);
            naive.charge(now, len);
        } else {
            assert_eq!(real.police(now, len), conformance);
            if conformance == Conformance::Conforms {
                naive.charge(now, len);
            }
        }
        now = step(&mut random, now, conformance);
    }
    if !forced {
        naive.check_bounds();
    }
}

/// Returns the instant of the next packet: at once, soon, as returned, a nanosecond too early, years
/// later, or by a clock that runs backward.
fn step(random: &mut Random, now: Instant, conformance: Conformance) -> Instant {
    match (random.up_to(9), conformance) {
        (0..=2, _) => now,
        (3 | 4, Conformance::At(at)) => at,
        (5, Conformance::At(at)) => at - Duration::from_nanos(1),
        (6, _) => now - Duration::from_nanos(random.any_size(1 << 36)),
        (7, _) if random.one_in(8) => now + Duration::from_nanos(random.any_size(u64::MAX)),
        _ => now + Duration::from_nanos(random.any_size(1 << 34)),
    }
}

//! Figures 11 to 14: policers under a sender that always has packets of 4,500 bytes.

use super::millis;
use super::paper::{PACKET, RING, TimerBucket, allocated_rate, update_period};
use super::testbed::Gate;
use crate::bench::report::{Bound, Section, Unit};
use crate::bench::stats::{count, float};
use anyhow::{Context as _, Result};
use paceline_sched::police::{Combined, Conformance, Constraint, PolicedUnit};
use paceline_sched::{Capacity, Duration, Instant};

/// The request of all four figures.
const RATE: u64 = 10_000_000;
const BURST: u64 = 22_500;
const SECOND: Duration = Duration::from_secs(1);
/// The time over which a rate is measured, after one second in which the burst is used up.
const MEASURED: Duration = Duration::from_secs(10);

pub(super) fn sections(_time: Duration) -> Result<Vec<Section>> {
    Ok(vec![leaky()?, jumping()?, both()?, one_second()?])
}

/// The policers of the figures.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// The paper's leaky bucket.
    Timer,
    /// The product's leaky bucket for a rate in bits per second.
    Leaky(u64),
    Jumping,
    /// The leaky bucket for a rate, and the jumping window.
    Both(u64),
}

/// Returns the window of the paper's jumping window: the burst at the rate.
fn window() -> Duration {
    SECOND.mul_div(BURST * 8, RATE)
}

impl Kind {
    fn gate(self) -> Result<Gate> {
        let bytes = PolicedUnit::Bytes;
        let leaky = |rate| Constraint::leaky(bytes, BURST, rate);
        let jumping = Constraint::jumping(bytes, BURST, window())?;
        let constraints = match self {
            Self::Timer => {
                let bucket = TimerBucket::new(BURST, RATE).context("no update period")?;
                return Ok(Gate::Timer(bucket));
            }
            Self::Leaky(rate) => vec![leaky(rate)?],
            Self::Jumping => vec![jumping],
            Self::Both(rate) => vec![leaky(rate)?, jumping],
        };
        Ok(Gate::Exact(Combined::new(&constraints)?))
    }

    /// Returns the instants at which packets leave a sender that is silent until `start`.
    fn departures(self, start: Instant, time: Duration) -> Result<Vec<Instant>> {
        let mut gate = self.gate()?;
        let wire = Capacity::from_bits_per_s(RING)?.time_for(PACKET);
        let (mut now, mut departures) = (start, Vec::new());
        while now < start + time {
            match gate.police(now, PACKET) {
                Conformance::Conforms => {
                    departures.push(now);
                    now += wire;
                }
                Conformance::At(at) => now = at,
                Conformance::Never => break,
            }
        }
        Ok(departures)
    }

    /// Returns the long-term rate in Mbit/s.
    fn rate(self) -> Result<f64> {
        let whole = self.departures(Instant::ZERO, SECOND.saturating_add(MEASURED))?;
        let late = whole.iter().filter(|at| **at >= Instant::ZERO + SECOND).count();
        Ok(mbits(late, MEASURED))
    }

    /// Returns the largest number of packets that leave within less than `time`, if the sender begins
    /// shortly before the end of a window.
    fn most_within(self, time: Duration) -> Result<usize> {
        let start = Instant::ZERO + window().saturating_sub(Duration::from_millis(2));
        let departures = self.departures(start, SECOND)?;
        let within = |first: Instant| {
            departures.iter().filter(|at| **at >= first && **at < first + time).count()
        };
        Ok(departures.iter().map(|first| within(*first)).max().unwrap_or(0))
    }
}

fn mbits(packets: usize, time: Duration) -> f64 {
    let bytes = PACKET * u64::try_from(packets).unwrap_or(u64::MAX);
    float(bytes) * 8_000.0 / float(time.as_nanos())
}

fn leaky() -> Result<Section> {
    let title = "Figure 11: leaky bucket, request 10 Mbit/s and 22,500 bytes";
    let mut section = Section::new(title).against_paper().repeatable();
    let period = update_period(RATE).context("no update period")?;
    section.show("update period of the paper's 1 ms timer", Unit::Millis, millis(period), 3.0);
    let rate = float(allocated_rate(RATE).context("no update period")?) / 1e6;
    section.show("rate of that period, Mbit/s", Unit::Ratio, rate, 12.0);
    let timer = Kind::Timer.rate()?;
    section.must("passed by the timer, Mbit/s", Unit::Ratio, timer, 12.0, Bound::Near(12.0, 0.01));
    let exact = Kind::Leaky(RATE).rate()?;
    let name = "passed by Paceline's leaky bucket, Mbit/s";
    section.must(name, Unit::Ratio, exact, f64::NAN, Bound::Near(10.0, 0.01));
    let burst = count(Kind::Leaky(RATE).most_within(Duration::from_millis(2))?);
    section.must("burst, packets", Unit::Count, burst, 5.0, Bound::Near(5.0, 0.0));
    section.note(
        "Paceline computes credit from the clock when a packet is offered, without a timer. The period is not rounded \
         to milliseconds, so nothing passes above the requested rate.",
    );
    Ok(section)
}

fn jumping() -> Result<Section> {
    let mut section = Section::new("Figure 12: jumping window, 10 Mbit/s and 22,500 bytes")
        .against_paper()
        .repeatable();
    section.show("window", Unit::Millis, millis(window()), 18.0);
    let rate = Kind::Jumping.rate()?;
    section.must("passed, Mbit/s", Unit::Ratio, rate, 10.0, Bound::Near(10.0, 0.02));
    let burst = count(Kind::Jumping.most_within(Duration::from_millis(4))?);
    let name = "largest burst over the end of a window, packets";
    section.must(name, Unit::Count, burst, 10.0, Bound::Near(10.0, 0.0));
    Ok(section)
}

fn both() -> Result<Section> {
    let title = "Figure 13: leaky bucket of 12 Mbit/s and jumping window of 10 Mbit/s";
    let mut section = Section::new(title).against_paper().repeatable();
    let both = Kind::Both(12_000_000);
    let rate = both.rate()?;
    section.must("passed, Mbit/s", Unit::Ratio, rate, f64::NAN, Bound::AtMost(10.02));
    let two = window().mul_div(2, 1);
    let worst = mbits(both.most_within(two)?, two);
    section.show("most within two windows, Mbit/s", Unit::Ratio, worst, 12.0);
    let burst = count(both.most_within(Duration::from_millis(4))?);
    section.show("largest burst over the end of a window, packets", Unit::Count, burst, f64::NAN);
    section.note(
        "The text states that less than 10 Mbit/s pass. Its worst case, 12 Mbit/s over two windows, is the leaky \
         bucket's rate without its burst. With the burst, 67,500 bytes pass within the time of two windows.",
    );
    Ok(section)
}

fn one_second() -> Result<Section> {
    let mut section = Section::new("Figure 14: the first second, from a full bucket")
        .against_paper()
        .repeatable();
    for (name, kind) in [
        ("paper's leaky bucket", Kind::Timer),
        ("Paceline's leaky bucket of 10 Mbit/s", Kind::Leaky(RATE)),
        ("Paceline's leaky bucket of 12 Mbit/s and jumping window", Kind::Both(12_000_000)),
        ("Paceline's leaky bucket of 10 Mbit/s and jumping window", Kind::Both(RATE)),
    ] {
        let packets = kind.departures(Instant::ZERO, SECOND)?.len();
        section.show(&format!("{name}, packets"), Unit::Count, count(packets), f64::NAN);
    }
    section.note("10 Mbit/s are 278 packets per second, in addition to a burst of 5.");
    Ok(section)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timer_passes_a_fifth_more_than_requested_and_the_clock_does_not() {
        assert!((Kind::Timer.rate().unwrap() - 12.0).abs() < 0.01);
        assert!((Kind::Leaky(RATE).rate().unwrap() - 10.0).abs() < 0.01);
    }

    #[test]
    fn the_window_is_18_ms_and_two_of_them_permit_twice_the_burst() {
        assert_eq!(window(), Duration::from_millis(18));
        let short = Duration::from_millis(4);
        assert_eq!(Kind::Jumping.most_within(short).unwrap(), 10);
        assert!(Kind::Both(RATE).most_within(short).unwrap() < 10);
    }

    #[test]
    fn no_policer_exceeds_its_constraint() {
        for kind in [Kind::Leaky(RATE), Kind::Jumping, Kind::Both(RATE)] {
            let Gate::Exact(policers) = kind.gate().unwrap() else { panic!("{kind:?}") };
            for millis in [1, 17, 18, 36, 100] {
                let time = Duration::from_millis(millis);
                let bytes = PACKET * kind.most_within(time).unwrap() as u64;
                let bounds = policers.constraints().map(|constraint| constraint.bound(time));
                assert!(bytes <= bounds.min().unwrap(), "{kind:?}, {time}");
            }
        }
    }
}

//! The options that describe an impaired network.

use super::pump::DIRECTIONS;
use paceline_sched::units::{self, scaled};
use paceline_sched::{Capacity, Duration};
use paceline_sim::impair::{Impairment, Loss, PPM_MAX};
use paceline_tool::args;
use std::fmt;

/// The longest duration of any option.
const SPAN_MAX: Duration = Duration::from_secs(60);
/// The longest mean burst in packets.
const BURST_MAX: f64 = 1_000.0;

/// Impairments of packets.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Packet impairments")]
pub(crate) struct PathArgs {
    /// Delay of every packet: 40ms, 250us, 1s
    #[arg(long, value_name = "TIME", value_parser = span, default_value = "0ms")]
    delay: Duration,
    /// Largest additional delay, uniformly distributed; order is kept
    #[arg(long, value_name = "TIME", value_parser = span, default_value = "0ms")]
    jitter: Duration,
    /// Fraction of packets that are lost: 1%, 0.05%
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0%")]
    loss: u32,
    /// Lose packets in bursts of this mean length (Gilbert-Elliott); --loss stays the overall
    /// fraction
    #[arg(long, value_name = "PACKETS", value_parser = burst, requires = "loss")]
    burst: Option<f64>,
    /// Fraction of packets that are delayed further, so that others overtake them
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0%")]
    reorder: u32,
    /// Additional delay of reordered packets
    #[arg(long, value_name = "TIME", value_parser = span, default_value = "10ms")]
    reorder_by: Duration,
    /// Fraction of packets that arrive twice
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0%")]
    duplicate: u32,
    /// Seed that selects the lost, reordered and duplicated packets and the jitter
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
}

/// An impaired network between two programs.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct NetworkArgs {
    #[command(flatten)]
    pub(crate) path: PathArgs,
    /// Capacity of the network: 2mbit, 1.5Mbit/s, 250kB/s; 10s+2mbit from 10 s after the start on; can be repeated. Default:
    /// unlimited
    #[arg(long, value_name = "[AT+]RATE", value_parser = rate_at)]
    rate: Vec<RateAt>,
    /// Size of the queue in front of the network; packets beyond it are dropped
    #[arg(long, value_name = "SIZE", value_parser = queue, default_value = "65536B")]
    queue: u64,
    /// Interval without any delivery: 5s+2s starts after 5 s and lasts 2 s; can be repeated
    #[arg(long, value_name = "AT+TIME", value_parser = blackout)]
    blackout: Vec<Blackout>,
    /// Impair only packets from this side; those from the other side arrive immediately
    #[arg(long, value_name = "SIDE", value_enum)]
    only: Option<Side>,
}

/// One of the two ends.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Side {
    /// The first namespace.
    Near,
    /// The second namespace.
    Far,
}

/// An interval in which no packet arrives.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Blackout {
    from: Duration,
    to: Duration,
}

/// A capacity from a time after the start on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct RateAt {
    from: Duration,
    rate: Capacity,
}

impl PathArgs {
    /// Returns true if packets are not impaired.
    pub(crate) fn is_clean(&self) -> bool {
        let late = !self.delay.is_zero() || !self.jitter.is_zero();
        !late && self.loss == 0 && self.reorder == 0 && self.duplicate == 0
    }

    /// Returns the impairment without a rate.
    pub(crate) fn impairment(&self) -> Impairment {
        Impairment {
            delay: self.delay,
            jitter: self.jitter,
            loss: loss(self.loss, self.burst),
            reorder_ppm: self.reorder,
            reorder_by: self.reorder_by,
            duplicate_ppm: self.duplicate,
            ..Impairment::NONE
        }
    }
}

impl fmt::Display for PathArgs {
    /// Formats the equivalent flags, each with a space before it; empty if packets are not
    /// impaired.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_clean() {
            return Ok(());
        }
        let times = [("delay", self.delay), ("jitter", self.jitter)];
        for (name, time) in times.into_iter().filter(|(_, time)| !time.is_zero()) {
            write!(f, " --{name} {}us", time.as_micros())?;
        }
        let shares =
            [("loss", self.loss), ("reorder", self.reorder), ("duplicate", self.duplicate)];
        for (name, ppm) in shares.into_iter().filter(|(_, ppm)| *ppm > 0) {
            write!(f, " --{name} {}%", f64::from(ppm) / 10_000.0)?;
        }
        if let Some(burst) = self.burst {
            write!(f, " --burst {burst}")?;
        }
        if self.reorder > 0 {
            write!(f, " --reorder-by {}us", self.reorder_by.as_micros())?;
        }
        write!(f, " --seed {}", self.seed)
    }
}

impl NetworkArgs {
    /// Returns the impairments of both directions at this time after the start.
    pub(crate) fn at(&self, elapsed: Duration) -> [Impairment; DIRECTIONS] {
        let dark = |time: &Blackout| time.from <= elapsed && elapsed < time.to;
        let begun = self.rate.iter().filter(|rate| rate.from <= elapsed);
        let bad = Impairment {
            // The last one of several with the same beginning.
            rate: begun.max_by_key(|rate| rate.from).map(|rate| rate.rate),
            queue_bytes: self.queue,
            blackout: self.blackout.iter().any(dark),
            ..self.path.impairment()
        };
        match self.only {
            None => [bad, bad],
            Some(Side::Near) => [bad, Impairment::NONE],
            Some(Side::Far) => [Impairment::NONE, bad],
        }
    }

    /// Returns the next start or end of a blackout, or change of the rate, after `elapsed`.
    pub(crate) fn next_change(&self, elapsed: Duration) -> Option<Duration> {
        let changes = self.blackout.iter().flat_map(|time| [time.from, time.to]);
        let changes = changes.chain(self.rate.iter().map(|rate| rate.from));
        changes.filter(|change| *change > elapsed).min()
    }
}

/// Returns the loss model: independent losses, or bursts with a mean length.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped before")]
fn loss(ppm: u32, burst: Option<f64>) -> Loss {
    let Some(burst) = burst.filter(|_| ppm > 0 && ppm < PPM_MAX) else {
        return if ppm == 0 { Loss::None } else { Loss::Random { ppm } };
    };
    let whole = f64::from(PPM_MAX);
    let share = f64::from(ppm) / whole;
    let out = 1.0 / burst;
    let into = share / (1.0 - share) * out;
    let chance = |of: f64| (of * whole).round().clamp(0.0, whole) as u32;
    Loss::GilbertElliott {
        good_to_bad_ppm: chance(into),
        bad_to_good_ppm: chance(out),
        loss_good_ppm: 0,
        loss_bad_ppm: PPM_MAX,
    }
}

/// Parses a capacity `2mbit`, or `10s+2mbit` for one from 10 s on.
fn rate_at(text: &str) -> Result<RateAt, String> {
    let (from, rate) = match text.split_once('+') {
        Some((from, rate)) => (span(from)?, rate),
        None => (Duration::ZERO, text),
    };
    Ok(RateAt { from, rate: args::capacity(rate)? })
}

/// Parses `40ms`, `0.5ms`, `250us`, `2s`.
fn span(text: &str) -> Result<Duration, String> {
    units::duration_in(text, &(Duration::ZERO..=SPAN_MAX)).map_err(|error| error.to_string())
}

/// Parses `1%`, `0.05%` to parts per million.
fn share(text: &str) -> Result<u32, String> {
    let ppm = text.strip_suffix('%').and_then(|number| scaled(number.trim(), 10_000));
    match ppm.map(|(ppm, _)| u32::try_from(ppm)) {
        Some(Ok(ppm @ 0..=PPM_MAX)) => Ok(ppm),
        _ => Err("must be from 0% to 100% in steps of 0.0001%, for example 1%".to_owned()),
    }
}

fn queue(text: &str) -> Result<u64, String> {
    args::bytes_in(text, &(1_500..=1_000_000_000), "64kB is usual")
}

fn burst(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(packets) if (1.0..=BURST_MAX).contains(&packets) => Ok(packets),
        _ => Err(format!("must be from 1 to {BURST_MAX} packets; 4 is usual for radio")),
    }
}

fn blackout(text: &str) -> Result<Blackout, String> {
    let (at, time) =
        text.split_once('+').ok_or("must be a start and a length, for example 5s+2s")?;
    let (from, time) = (span(at)?, span(time)?);
    Ok(Blackout { from, to: Duration::from_nanos(from.as_nanos() + time.as_nanos()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_shares_have_units() {
        assert_eq!(span("40ms"), Ok(Duration::from_millis(40)));
        assert_eq!(span("0.25ms"), Ok(Duration::from_micros(250)));
        assert_eq!(span("60s"), Ok(Duration::from_secs(60)));
        for wrong in ["", "40", "ms", "-1ms", "61s", "1h", "1e3ms"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            (share("1%"), share("0.05%"), share("100%")),
            (Ok(10_000), Ok(500), Ok(PPM_MAX))
        );
        for wrong in ["", "1", "%", "-1%", "100.1%", "1 in 10"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
        assert!(burst("0.9").is_err() && burst("nan").is_err() && burst("1001").is_err());
        assert!(blackout("5s").is_err() && blackout("5s+x").is_err());
    }

    #[test]
    fn bursts_keep_the_share() {
        assert_eq!(loss(0, Some(4.0)), Loss::None);
        assert_eq!(loss(500, None), Loss::Random { ppm: 500 });
        // One packet in 26 is lost, in bursts of four; the bad state starts after 100 good packets
        // on average.
        let expected = Loss::GilbertElliott {
            good_to_bad_ppm: 10_000,
            bad_to_good_ppm: 250_000,
            loss_good_ppm: 0,
            loss_bad_ppm: PPM_MAX,
        };
        assert_eq!(loss(38_462, Some(4.0)), expected);
    }

    #[test]
    fn blackouts_begin_and_end() {
        let dark = Blackout { from: Duration::from_secs(5), to: Duration::from_secs(7) };
        assert_eq!(blackout("5s+2s"), Ok(dark));
        let path = PathArgs {
            delay: Duration::from_millis(1),
            jitter: Duration::ZERO,
            loss: 0,
            burst: None,
            reorder: 0,
            reorder_by: Duration::ZERO,
            duplicate: 0,
            seed: 1,
        };
        let (blackout, only) = (vec![dark], Some(Side::Far));
        let rate = ["5mbit", "2s+1mbit", "3s+2mbit"].map(|text| rate_at(text).unwrap()).into();
        let args = NetworkArgs { path, rate, queue: 65_536, blackout, only };
        let at =
            |millis| args.at(Duration::from_millis(millis)).map(|direction| direction.blackout);
        assert_eq!((at(4_999), at(5_000), at(7_000)), ([false; 2], [false, true], [false; 2]));
        let next = |secs| args.next_change(Duration::from_secs(secs));
        assert_eq!((next(3), next(5), next(7)), (Some(dark.from), Some(dark.to), None));
        assert_eq!(
            (next(0), next(2)),
            (Some(Duration::from_secs(2)), Some(Duration::from_secs(3)))
        );
        let rates = [0, 1, 2, 3, 9].map(|secs| args.at(Duration::from_secs(secs))[1].rate);
        let mbit = rates.map(|rate| rate.unwrap().bits_per_s() / 1_000_000);
        assert_eq!(mbit, [5, 5, 1, 2, 2]);
        assert!(rate_at("5s").is_err() && rate_at("5s+").is_err() && rate_at("x+1mbit").is_err());
        assert_eq!(args.path.to_string(), " --delay 1000us --seed 1");
        assert_eq!(
            args.at(Duration::ZERO).map(|direction| direction.delay),
            [Duration::ZERO, args.path.delay]
        );
    }
}

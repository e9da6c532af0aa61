//! Measurements over a window of samples, printed in the format of `ros2 topic`.

use super::Measure;
use paceline_tool::stats::round3;
use serde::Serialize;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Measures one tag.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    measure: Measure,
    window: usize,
    /// The arrival time of the last sample.
    last: Option<Instant>,
    /// Interval or age in nanoseconds, or size in bytes.
    values: VecDeque<u64>,
    /// Arrival times of the samples in `values`, for bytes per second.
    times: VecDeque<Instant>,
}

/// The results of a window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum Figures {
    /// Result of `hz`.
    Rate { rate_hz: f64, min_us: f64, max_us: f64, std_dev_us: f64, window: usize },
    /// Result of `bw`.
    Bandwidth { bytes_per_s: f64, mean_bytes: f64, min_bytes: u64, max_bytes: u64, window: usize },
    /// Result of `delay`.
    Delay { mean_us: f64, min_us: f64, max_us: f64, std_dev_us: f64, window: usize },
}

#[expect(clippy::cast_precision_loss, reason = "displayed only")]
fn float(value: u64) -> f64 {
    value as f64
}

impl Meter {
    /// Creates a meter without samples and with a window of `window` samples.
    pub(super) fn new(measure: Measure, window: usize) -> Self {
        Self { measure, window, last: None, values: VecDeque::new(), times: VecDeque::new() }
    }

    /// Discards all samples.
    pub(super) fn begin_anew(&mut self) {
        *self = Self::new(self.measure, self.window);
    }

    /// Adds a sample of `bytes` that arrived at `at` with this age.
    pub(super) fn add(&mut self, at: Instant, bytes: usize, age: Duration) {
        let value = match (self.measure, self.last) {
            (Measure::Rate, Some(last)) => Some(nanos(at.saturating_duration_since(last))),
            (Measure::Rate, None) => None,
            (Measure::Bandwidth, _) => Some(u64::try_from(bytes).unwrap_or(u64::MAX)),
            (Measure::Delay, _) => Some(nanos(age)),
        };
        self.last = Some(at);
        let Some(value) = value else { return };
        self.values.push_back(value);
        if self.measure == Measure::Bandwidth {
            self.times.push_back(at);
        }
        if self.values.len() > self.window {
            self.values.pop_front();
            self.times.pop_front();
        }
    }

    /// Returns the results at `now`, `None` if there are too few samples.
    pub(super) fn figures(&self, now: Instant) -> Option<Figures> {
        let (min, max) = (*self.values.iter().min()?, *self.values.iter().max()?);
        let window = self.values.len();
        let samples = float(u64::try_from(window).ok()?);
        let mean = self.values.iter().map(|&value| float(value)).sum::<f64>() / samples;
        let squares = self.values.iter().map(|&value| (float(value) - mean).powi(2));
        let std_dev_us = round3((squares.sum::<f64>() / samples).sqrt() / 1_000.0);
        let (min_us, max_us) = (round3(float(min) / 1_000.0), round3(float(max) / 1_000.0));
        Some(match self.measure {
            Measure::Rate => {
                let rate_hz = if mean > 0.0 { round3(1e9 / mean) } else { 0.0 };
                Figures::Rate { rate_hz, min_us, max_us, std_dev_us, window }
            }
            Measure::Delay => Figures::Delay {
                mean_us: round3(mean / 1_000.0),
                min_us,
                max_us,
                std_dev_us,
                window,
            },
            Measure::Bandwidth => {
                let since = now.saturating_duration_since(*self.times.front()?).as_secs_f64();
                if window < 2 || since <= 0.0 {
                    return None;
                }
                Figures::Bandwidth {
                    bytes_per_s: round3(mean * samples / since),
                    mean_bytes: round3(mean),
                    min_bytes: min,
                    max_bytes: max,
                    window,
                }
            }
        })
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Formats a figure with `usual` decimals, as `ros2 topic` does. A smaller figure gets as many decimals as
/// show two significant digits: a delay of 41 µs is not printed as 0.000.
fn digits(value: f64, usual: usize) -> String {
    let mut digits = usual;
    let mut least = 10f64.powi(-i32::try_from(usual).unwrap_or_default());
    while digits < 8 && value > 0.0 && value < least {
        (digits, least) = (digits + 1, least / 10.0);
    }
    let digits = if digits > usual { digits + 1 } else { usual };
    format!("{value:.digits$}")
}

impl Figures {
    /// Returns the lines that `ros2 topic` prints, without the last line break.
    pub(super) fn lines(&self) -> String {
        let seconds = |us: f64| us / 1e6;
        let spread = |min, max, std_dev, window| {
            let (min, max) = (digits(seconds(min), 3), digits(seconds(max), 3));
            let std_dev = digits(seconds(std_dev), 5);
            format!("\tmin: {min}s max: {max}s std dev: {std_dev}s window: {window}")
        };
        match *self {
            Self::Rate { rate_hz, min_us, max_us, std_dev_us, window } => {
                format!(
                    "average rate: {}\n{}",
                    digits(rate_hz, 3),
                    spread(min_us, max_us, std_dev_us, window)
                )
            }
            Self::Delay { mean_us, min_us, max_us, std_dev_us, window } => {
                let delay = digits(seconds(mean_us), 3);
                format!("average delay: {delay}\n{}", spread(min_us, max_us, std_dev_us, window))
            }
            Self::Bandwidth { bytes_per_s, mean_bytes, min_bytes, max_bytes, window } => {
                // The unit of the rate applies to all figures, as in `ros2 topic`.
                let sized = |bytes: f64| match bytes_per_s {
                    few if few < 1e3 => format!("{bytes:.0} B"),
                    some if some < 1e6 => format!("{:.2} KB", bytes / 1e3),
                    _ => format!("{:.2} MB", bytes / 1e6),
                };
                format!(
                    "{}/s from {window} messages\n\tMessage size mean: {} min: {} max: {}",
                    sized(bytes_per_s),
                    sized(mean_bytes),
                    sized(float(min_bytes)),
                    sized(float(max_bytes)),
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_below_a_millisecond_are_not_zero() {
        let shown = [0.0, 1.5, 0.001, 0.00053, 0.000041, 0.000_000_3].map(|value| digits(value, 3));
        assert_eq!(shown, ["0.000", "1.500", "0.001", "0.00053", "0.000041", "0.00000030"]);
        assert_eq!((digits(0.0, 5), digits(0.000_003, 5)), ("0.00000".into(), "0.0000030".into()));
    }

    /// Formats the results of samples given as (milliseconds, bytes, age in microseconds).
    fn lines(measure: Measure, window: usize, samples: &[(u64, usize, u64)], now: u64) -> String {
        let start = Instant::now();
        let mut meter = Meter::new(measure, window);
        for &(ms, bytes, age) in samples {
            meter.add(start + Duration::from_millis(ms), bytes, Duration::from_micros(age));
        }
        let figures = meter.figures(start + Duration::from_millis(now));
        figures.map_or_else(|| "-".to_owned(), |figures| figures.lines())
    }

    #[test]
    fn rates_are_of_the_times_between_samples() {
        assert_eq!(lines(Measure::Rate, 10, &[(0, 1, 0)], 1_000), "-", "no interval yet");
        assert_eq!(
            lines(Measure::Rate, 10, &[(0, 1, 0), (100, 1, 0), (300, 1, 0)], 9_000),
            "average rate: 6.667\n\tmin: 0.100s max: 0.200s std dev: 0.05000s window: 2"
        );
        let window = &[(0, 1, 0), (5_000, 1, 0), (5_100, 1, 0), (5_200, 1, 0)];
        assert_eq!(
            lines(Measure::Rate, 2, window, 9_000),
            "average rate: 10.000\n\tmin: 0.100s max: 0.100s std dev: 0.00000s window: 2"
        );
    }

    #[test]
    fn bandwidth_has_one_unit_for_all() {
        assert_eq!(lines(Measure::Bandwidth, 10, &[(0, 100, 0)], 1_000), "-");
        assert_eq!(
            lines(Measure::Bandwidth, 10, &[(0, 100, 0), (500, 300, 0)], 1_000),
            "400 B/s from 2 messages\n\tMessage size mean: 200 B min: 100 B max: 300 B"
        );
        assert_eq!(
            lines(Measure::Bandwidth, 10, &[(0, 1_000, 0), (500, 3_000, 0)], 1_000),
            "4.00 KB/s from 2 messages\n\tMessage size mean: 2.00 KB min: 1.00 KB max: 3.00 KB"
        );
        let large = &[(0, 9, 0), (100, 1_000_000, 0), (500, 3_000_000, 0)];
        assert_eq!(
            lines(Measure::Bandwidth, 2, large, 1_100),
            "4.00 MB/s from 2 messages\n\tMessage size mean: 2.00 MB min: 1.00 MB max: 3.00 MB"
        );
    }

    #[test]
    fn delays_are_ages() {
        assert_eq!(
            lines(Measure::Delay, 10, &[(0, 1, 1_000), (10, 1, 3_000)], 20),
            "average delay: 0.002\n\tmin: 0.001s max: 0.003s std dev: 0.00100s window: 2"
        );
    }

    #[test]
    fn a_meter_can_be_restarted() {
        let start = Instant::now();
        let mut meter = Meter::new(Measure::Delay, 3);
        meter.add(start, 1, Duration::ZERO);
        assert!(meter.figures(start).is_some());
        meter.begin_anew();
        assert_eq!(meter.figures(start), None);
    }
}

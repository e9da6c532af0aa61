//! The reference model of an `Ingress`: every output remembers the start of its series.

use paceline_proto::plan::Target;
use paceline_proto::{Form, Rate, Size};

#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub(super) target: Target,
    pub(super) form: Form,
    pub(super) rate: Rate,
    pub(super) size: Option<Size>,
}

impl PartialEq for Key {
    /// Compares everything but the remaining rate reduction, which is no part of an output's identity.
    fn eq(&self, other: &Self) -> bool {
        (self.target, self.form, self.size) == (other.target, other.form, other.size)
    }
}

#[derive(Debug, Default)]
pub(super) struct Installed {
    pub(super) opened: Vec<Key>,
    pub(super) closed: Vec<u32>,
}

struct Output {
    key: Key,
    port: u32,
    picker: Picker,
}

pub(super) struct Model {
    outputs: Vec<Output>,
    period: Option<u64>,
}

impl Model {
    pub(super) const fn new(period: Option<u64>) -> Self {
        Self { outputs: Vec::new(), period }
    }

    /// Replaces the outputs. `fails(n)` returns true if opening the n-th requested port, counted from 1,
    /// fails.
    pub(super) fn install(
        &mut self,
        keys: &[Key],
        ports: u32,
        fails: impl Fn(u8) -> bool,
    ) -> Installed {
        let mut installed = Installed::default();
        let mut asked = 0;
        let mut now = Vec::new();
        for key in keys {
            if let Some(place) = self.outputs.iter().position(|output| output.key == *key) {
                now.push(self.outputs.remove(place));
                continue;
            }
            asked += 1;
            if fails(asked) {
                continue;
            }
            installed.opened.push(*key);
            let port = ports + u32::try_from(installed.opened.len()).unwrap();
            now.push(Output { key: *key, port, picker: Picker::new(key.rate, self.period) });
        }
        installed.closed = self.outputs.iter().map(|output| output.port).collect();
        self.outputs = now;
        installed
    }

    pub(super) fn offer(&mut self, seq: u64, captured: u64) -> Vec<u32> {
        let takers = self.outputs.iter_mut();
        takers.filter_map(|o| o.picker.takes(seq, captured).then_some(o.port)).collect()
    }

    pub(super) fn ports(&self) -> Vec<u32> {
        self.outputs.iter().map(|output| output.port).collect()
    }
}

/// A series of ideal points, one step apart from `start`. Each point takes the first sample that is at most
/// one slack before it.
struct Series {
    start: i128,
    /// Points that already have a sample.
    taken: i128,
}

struct Picker {
    rate: Rate,
    period: Option<u64>,
    series: Option<Series>,
    /// The previous sample: its sequence number, its capture time, and that time with clock steps removed.
    last: Option<(u64, u64, u64)>,
    /// The smoothed time between two samples.
    interval: u64,
}

impl Picker {
    const fn new(rate: Rate, period: Option<u64>) -> Self {
        Self { rate, period, series: None, last: None, interval: 0 }
    }

    fn takes(&mut self, seq: u64, captured: u64) -> bool {
        match self.rate {
            Rate::All => true,
            Rate::Every(n) => self.point(i128::from(seq), i128::from(n.get()), 0),
            Rate::Max(millihertz) => {
                let step = 1_000_000_000_000 / i128::from(millihertz.get());
                let (at, interval) = match self.period {
                    Some(period) => (i128::from(seq) * i128::from(period), period),
                    None => self.estimate(seq, captured),
                };
                self.point(at, step, i128::from(interval / 16 * 7))
            }
        }
    }

    fn point(&mut self, at: i128, step: i128, slack: i128) -> bool {
        let Some(series) = &mut self.series else {
            self.series = Some(Series { start: at, taken: 1 });
            return true;
        };
        let next = series.start + series.taken * step;
        if at < next - slack {
            return false;
        }
        series.taken += 1;
        // The sample is a whole step too late: skip the points in between.
        if at >= next + step + slack {
            *series = Series { start: at, taken: 1 };
        }
        true
    }

    /// Returns the corrected time of a sample and the estimated interval.
    ///
    /// Each new gap has a weight of one eighth. The first gap counts in full, and so does a gap below a
    /// sixteenth of the estimate. A gap of 16 times the estimate or more is a pause and is ignored. If the
    /// clock steps back, the estimated interval replaces the gap.
    fn estimate(&mut self, seq: u64, captured: u64) -> (i128, u64) {
        let mut at = captured;
        if let Some((before, then, time)) = self.last.filter(|(before, ..)| *before < seq) {
            let samples = seq - before;
            if captured < then {
                at = time.saturating_add(self.interval.saturating_mul(samples));
            } else {
                at = time.saturating_add(captured - then);
                let gap = (captured - then) / samples;
                let (sixteen, old) = (u128::from(gap) * 16, u128::from(self.interval));
                if old == 0 || sixteen < old {
                    self.interval = gap;
                } else if u128::from(gap) < old * 16 {
                    self.interval = self.interval / 8 * 7 + gap / 8;
                }
            }
        }
        self.last = Some((seq, captured, at));
        (i128::from(at), self.interval)
    }
}

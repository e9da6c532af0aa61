//! The reference model of an `Ingress`: every output remembers the start of its series.

use paceline_proto::plan::Target;
use paceline_proto::{Form, Rate, Size};

#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub(super) target: Target,
    pub(super) form: Form,
    pub(super) rate: Rate,
    pub(super) size: Option<Size>,
    /// It takes samples at fixed points.
    pub(super) aligned: bool,
    /// The form of its newest successor.
    pub(super) until: Option<Form>,
}

impl PartialEq for Key {
    /// Compares the identity of outputs: the target, the form and the size to scale to.
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
    /// The forms of its successors.
    successors: Vec<Form>,
    /// The samples that it takes, unless it thins them out: from the first number to before the second.
    range: (u64, Option<u64>),
}

impl Output {
    /// Returns true if the output ends with the next new sample of `form`.
    fn waits_for(&self, form: Form) -> bool {
        self.successors.contains(&form) && self.range.1.is_none()
    }
}

pub(super) struct Model {
    outputs: Vec<Output>,
    period: Option<u64>,
    /// The number of the sample after the last one.
    next: Option<u64>,
}

impl Model {
    pub(super) const fn new(period: Option<u64>) -> Self {
        Self { outputs: Vec::new(), period, next: None }
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
                let mut kept = self.outputs.remove(place);
                match key.until {
                    Some(form) => kept.successors.push(form),
                    None => (kept.successors, kept.range.1) = (Vec::new(), None),
                }
                kept.picker.aligned |= key.aligned;
                now.push(kept);
                continue;
            }
            asked += 1;
            if fails(asked) {
                continue;
            }
            installed.opened.push(*key);
            let port = ports + u32::try_from(installed.opened.len()).unwrap();
            let picker = Picker { aligned: key.aligned, ..Picker::new(key.rate, self.period) };
            let successors = key.until.into_iter().collect();
            now.push(Output { key: *key, port, picker, successors, range: (0, None) });
        }
        installed.closed = self.outputs.iter().map(|output| output.port).collect();
        self.outputs = now;
        installed
    }

    pub(super) fn offer(&mut self, seq: u64, captured: u64) -> Vec<u32> {
        self.next = Some(seq + 1);
        let in_range = |o: &&mut Output| o.range.0 <= seq && o.range.1.is_none_or(|end| seq < end);
        let takers = self.outputs.iter_mut().filter(in_range);
        takers.filter_map(|o| o.picker.takes(seq, captured).then_some(o.port)).collect()
    }

    /// Ends the outputs that wait for `form`, of which the sample `seq` arrived. If they have seen it already, returns them
    /// and the first sample that is left to their successor.
    pub(super) fn replace(&mut self, form: Form, seq: u64) -> (Vec<(Target, Form)>, Option<u64>) {
        let seen = self.next.filter(|next| seq < *next);
        let mut left = Vec::new();
        for output in self.outputs.iter_mut().filter(|output| output.waits_for(form)) {
            output.range.1 = Some(seen.unwrap_or(seq));
            if seen.is_some() {
                left.push((output.key.target, output.key.form));
            }
        }
        (left, seen)
    }

    /// Lets the outputs of `keys` begin with the sample `first`.
    pub(super) fn begin(&mut self, keys: &[(Target, Form)], first: u64) {
        for output in &mut self.outputs {
            if keys.contains(&(output.key.target, output.key.form)) {
                output.range.0 = first;
            }
        }
    }

    /// Returns the outputs that wait for `form`.
    pub(super) fn waiting_for(&self, form: Form) -> Vec<(Target, Form)> {
        let its = self.outputs.iter().filter(|output| output.waits_for(form));
        its.map(|output| (output.key.target, output.key.form)).collect()
    }

    pub(super) fn is_replaced(&self) -> bool {
        self.outputs.iter().any(|o| o.successors.iter().any(|form| o.waits_for(*form)))
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
    aligned: bool,
    series: Option<Series>,
    /// The previous sample: its sequence number, its capture time, and that time with clock steps removed.
    last: Option<(u64, u64, u64)>,
    /// The smoothed time between two samples.
    interval: u64,
}

impl Picker {
    const fn new(rate: Rate, period: Option<u64>) -> Self {
        Self { rate, period, aligned: false, series: None, last: None, interval: 0 }
    }

    fn takes(&mut self, seq: u64, captured: u64) -> bool {
        match self.rate {
            Rate::All => true,
            Rate::Every(n) if self.aligned => seq.is_multiple_of(n.get().into()),
            Rate::Every(n) => self.point(i128::from(seq), i128::from(n.get()), 0),
            Rate::Max(millihertz) => {
                let step = 1_000_000_000_000 / i128::from(millihertz.get());
                if let Some(period) = self.period.filter(|_| self.aligned) {
                    // The first sample that is at most one slack before a multiple of the step.
                    let (period, slack) = (i128::from(period), i128::from(period / 16 * 7));
                    let latest = (i128::from(seq) * period + slack) / step * step;
                    return latest > (i128::from(seq) - 1) * period + slack;
                }
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

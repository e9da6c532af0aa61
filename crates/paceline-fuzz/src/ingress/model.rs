//! The reference model of an `Ingress`: every output remembers the instants that have a sample.

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
    /// The sequence number of the sample after the last one.
    next: Option<u64>,
    /// The last sample: its number on the publisher's grid, and its capture time.
    newest: Option<(u64, u64)>,
}

impl Model {
    pub(super) const fn new(period: Option<u64>) -> Self {
        Self { outputs: Vec::new(), period, next: None, newest: None }
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
            let picker = Picker::new(key.rate, self.period, self.newest);
            let picker = Picker { aligned: key.aligned, ..picker };
            let successors = key.until.into_iter().collect();
            now.push(Output { key: *key, port, picker, successors, range: (0, None) });
        }
        installed.closed = self.outputs.iter().map(|output| output.port).collect();
        self.outputs = now;
        installed
    }

    pub(super) fn offer(&mut self, seq: u64, captured: u64, shift: i32) -> Vec<u32> {
        self.next = Some(seq + 1);
        let number = self.period.map_or(seq, |period| {
            let nearest = (captured + period / 2) / period;
            nearest.saturating_add_signed(shift.into())
        });
        self.newest = Some((number, captured));
        let in_range = |o: &&mut Output| o.range.0 <= seq && o.range.1.is_none_or(|end| seq < end);
        let takers = self.outputs.iter_mut().filter(in_range);
        takers.filter_map(|o| o.picker.takes(seq, number, captured).then_some(o.port)).collect()
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

struct Picker {
    rate: Rate,
    period: Option<u64>,
    aligned: bool,
    /// The number of the previous sample.
    last: Option<u64>,
    /// No sample was offered yet.
    unused: bool,
    /// The first instant of the limit without a sample.
    free: Option<i128>,
    /// The last sample that was taken for a limit without a declared period, or the first one.
    since: Option<u64>,
    /// The numbers and capture times of the samples that were taken under a contract, with a limit and a declared period.
    spaced: Vec<(u64, i128)>,
    /// The last sample that counted under a contract with a limit and a declared period, and its number.
    counted: Option<(u64, u64)>,
}

impl Picker {
    /// Returns a picker that has seen the sample `after`.
    fn new(rate: Rate, period: Option<u64>, after: Option<(u64, u64)>) -> Self {
        let last = after.map(|(number, _)| number);
        let mut picker = Self {
            rate,
            period,
            aligned: false,
            last,
            unused: true,
            free: None,
            spaced: Vec::new(),
            counted: None,
            since: None,
        };
        picker.free = picker.step().zip(after).map(|(step, (_, at))| i128::from(at) / step + 1);
        picker
    }

    /// Returns the time between two instants of the limit.
    fn step(&self) -> Option<i128> {
        let millihertz = self.rate.max_millihertz?;
        Some(1_000_000_000_000 / i128::from(millihertz.get()))
    }

    fn takes(&mut self, seq: u64, number: u64, captured: u64) -> bool {
        let n = i128::from(self.rate.every.get());
        let (step, period) = (self.step(), self.period.map(i128::from));
        if n == 1 && step.is_none_or(|step| period.is_some_and(|period| period >= step)) {
            return true;
        }
        let counted = if self.aligned { seq } else { number };
        let held =
            std::mem::take(&mut self.unused) && self.last.is_some_and(|last| counted <= last);
        if held {
            (self.last, self.free) = (None, None);
        }
        let last = self.last.replace(counted);
        if last.is_none() && !self.aligned {
            return step.is_none()
                || period.is_some()
                || self.limit(i128::from(captured) / step.unwrap_or(1), seq);
        }
        if last == Some(counted) {
            return false;
        }
        let last = last.filter(|last| !self.aligned && *last < counted);
        let (last, counted) =
            (last.map_or(i128::from(counted) - 1, i128::from), i128::from(counted));
        // Multiples of n since the sample before, which may be missing.
        let before = last.div_euclid(n) * n;
        if before >= counted.div_euclid(n) * n {
            return false;
        }
        let here = i128::from(number);
        match (step, period) {
            (None, _) => true,
            (Some(step), Some(period)) => {
                let slack = period / 16 * 7;
                let at = |number: i128| (number * period + slack).div_euclid(step);
                let known = self.counted.replace((seq, number));
                let known =
                    known.filter(|it| i128::from(it.0) + n == i128::from(seq) && it.1 < number);
                let missing = (here - n).max(0);
                let due = match self.aligned {
                    true => last < 0 || at(known.map_or(missing, |it| it.1.into())) < at(here),
                    false => last < 0 || at(before) < at(here.div_euclid(n) * n),
                };
                if !self.aligned {
                    return due;
                }
                due && self.is_apart((seq, captured), step, (n, period))
            }
            (Some(step), None) => self.limit(i128::from(captured) / step, seq),
        }
    }

    /// Returns true if no contract is broken by this sample: all that were taken since the clock was set back fit a staircase.
    fn is_apart(
        &mut self,
        (seq, captured): (u64, u64),
        step: i128,
        (n, period): (i128, i128),
    ) -> bool {
        let (each, at) = (n * period, i128::from(captured));
        let (every, early) = (step / 20 * 19, each + step / 20 * 19 / 10);
        let gap = step / each * each - period * 7 / 16;
        if self.spaced.last().is_some_and(|(_, last)| *last > at) {
            self.spaced.clear();
        }
        let Some((last_seq, last)) = self.spaced.last().copied() else {
            self.spaced.push((seq, at));
            return true;
        };
        // The ideal instant of this sample: that of each earlier one, and a period for each since.
        let later = self.spaced.iter().rev().zip(1..);
        let ideal = later.map(|((_, at), more)| at + more * every).max().unwrap_or(at);
        let stands = i128::from(seq.saturating_sub(last_seq)) * 1_000_000 >= 2 * every;
        let taken = at - last >= gap && at + early >= ideal || stands;
        if taken {
            self.spaced.push((seq, at));
        }
        taken
    }

    /// Returns true if the instant `here`, or the one before, has no sample yet.
    fn limit(&mut self, here: i128, seq: u64) -> bool {
        let free = self.free.filter(|free| here + 2 >= *free);
        let taken = free.is_none_or(|free| free <= here);
        if taken {
            let next = free.map_or(here + 1, |free| free + 1);
            self.free = Some(if here > next + 1 { here + 1 } else { here.max(next) });
        }
        // One sample arrives per millisecond.
        let waited = i128::from(seq.saturating_sub(*self.since.get_or_insert(seq))) * 1_000_000;
        let taken = taken || self.step().is_some_and(|step| waited >= 2 * step);
        if taken {
            self.since = Some(seq);
        }
        taken
    }
}

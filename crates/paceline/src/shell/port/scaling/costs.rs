//! The measured cost of scaling on this node, and the time that scaling takes as a result.

use paceline_proto::form::ScaledForm;
use paceline_proto::{Form, PublisherId, Rate};
use paceline_sched::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// Half of the time that a maximum covers.
const HALF: Duration = Duration::from_secs(30);

/// The maximum of the last 30 to 60 s.
#[derive(Clone, Copy, Debug, Default)]
struct Peak {
    /// The maxima of the current half and of the one before.
    most: [u64; 2],
}

impl Peak {
    fn note(&mut self, value: u64) {
        self.most[0] = self.most[0].max(value);
    }

    fn turn(&mut self) {
        self.most = [0, self.most[0]];
    }

    fn get(self) -> u64 {
        self.most[0].max(self.most[1])
    }
}

/// The measured samples of one form.
#[derive(Clone, Debug, Default)]
struct Cost {
    /// The number of scalers of this form.
    scalers: u32,
    /// Processor time per sample, in nanoseconds.
    time: Peak,
    /// Bytes per result.
    bytes: Peak,
    turned: Instant,
    /// A stream with a contract carries it.
    promised: bool,
    announced: Option<ScaledForm>,
}

/// The costs of all scalers of a node.
#[derive(Debug, Default)]
pub(crate) struct Costs {
    forms: BTreeMap<(PublisherId, Form), Cost>,
    /// The publishers of which no form could be scaled.
    failed: BTreeSet<PublisherId>,
}

impl Costs {
    /// Records a scaled sample: the processor time and the bytes of the result. `promised` is true if a stream with a
    /// contract carries it.
    pub(super) fn note(
        &mut self,
        now: Instant,
        (publisher, form, promised): (PublisherId, Form, bool),
        time: Duration,
        bytes: usize,
    ) {
        let cost = self.forms.entry((publisher, whole(form))).or_default();
        if now.since(cost.turned) >= HALF {
            cost.time.turn();
            cost.bytes.turn();
            cost.turned = now;
        }
        cost.time.note(time.as_nanos());
        cost.bytes.note(bytes as u64);
        cost.promised = promised;
    }

    /// Records that a publisher's pictures cannot be scaled, unless another form of them was scaled lately. Returns true if that
    /// is new.
    pub(super) fn note_failed(&mut self, publisher: PublisherId) -> bool {
        let works = self.keys(publisher).any(|(_, cost)| cost.bytes.get() > 0);
        !works && self.failed.insert(publisher)
    }

    /// Returns true if a publisher's pictures could not be scaled. They are not tried again.
    pub(crate) fn has_failed(&self, publisher: PublisherId) -> bool {
        self.failed.contains(&publisher)
    }

    /// Forgets a publisher that is closed.
    pub(crate) fn forget(&mut self, publisher: PublisherId) {
        self.failed.remove(&publisher);
    }

    fn keys(&self, publisher: PublisherId) -> impl Iterator<Item = (&(PublisherId, Form), &Cost)> {
        let range = self.forms.range((publisher, Form::FULL)..);
        range.take_while(move |(key, _)| key.0 == publisher)
    }

    /// Adds a scaler of a form.
    pub(super) fn open(&mut self, publisher: PublisherId, form: Form) {
        self.forms.entry((publisher, whole(form))).or_default().scalers += 1;
    }

    /// Removes a scaler, and with the last one the costs of its form.
    pub(super) fn close(&mut self, publisher: PublisherId, form: Form) {
        let key = (publisher, whole(form));
        let Some(cost) = self.forms.get_mut(&key) else { return };
        cost.scalers = cost.scalers.saturating_sub(1);
        if cost.scalers == 0 {
            self.forms.remove(&key);
        }
    }

    /// Returns what to announce of a publisher's forms, if `workers` threads scale. Small changes are not announced.
    pub(crate) fn of(&mut self, publisher: PublisherId, workers: usize) -> Vec<ScaledForm> {
        let keys: Vec<_> = self.keys(publisher).map(|(key, _)| *key).collect();
        let mut found = Vec::new();
        for key in keys {
            let takes = self.response(key, workers);
            let Some(cost) = self.forms.get_mut(&key) else { continue };
            if cost.bytes.get() == 0 {
                continue;
            }
            let (bytes, work) = (cost.bytes.get(), step(margin(cost.time.get())));
            let now = ScaledForm { form: key.1, bytes_max: margin(bytes), takes, work };
            let announced = cost.announced.filter(|before| holds(before, bytes, &now));
            let announced = announced.unwrap_or(now);
            cost.announced = Some(announced);
            found.push(announced);
        }
        found.truncate(ScaledForm::FORMS_MAX);
        found
    }

    /// Returns the time from the arrival of a sample of form `key` at the pool until it is scaled, in steps.
    ///
    /// The pool serves the forms in turn, those with a contract first. So a sample waits at most for one sample of
    /// each other form with a contract, spread over the workers, and for one best-effort sample that is being scaled:
    /// R = C + B + ΣC/m, the response time of Juvva (1999, table 4) with one job of each other task.
    fn response(&self, key: (PublisherId, Form), workers: usize) -> Duration {
        let own = self.forms.get(&key).map_or(0, |cost| cost.time.get());
        let others = || self.forms.iter().filter(|(other, _)| **other != key).map(|(_, it)| it);
        let promised: u64 = others().filter(|it| it.promised).map(|it| it.time.get()).sum();
        let best_effort = others().filter(|it| !it.promised).map(|it| it.time.get()).max();
        let workers = u64::try_from(workers.max(1)).unwrap_or(u64::MAX);
        let nanos = own + promised.div_ceil(workers) + best_effort.unwrap_or(0);
        step(margin(nanos))
    }
}

/// Returns the form with every sample: leaving out samples costs nothing.
const fn whole(form: Form) -> Form {
    Form { rate: Rate::ALL, ..form }
}

/// Adds a quarter.
const fn margin(value: u64) -> u64 {
    value.saturating_add(value / 4)
}

/// Rounds nanoseconds up to 1, 2 or 5 times a power of ten, from 1 ms.
fn step(nanos: u64) -> Duration {
    let mut unit = 1_000_000_u64;
    while unit < u64::MAX / 20 {
        for times in [1, 2, 5] {
            if nanos <= unit * times {
                return Duration::from_nanos(unit * times);
            }
        }
        unit *= 10;
    }
    Duration::from_nanos(nanos)
}

/// Returns true if an announcement still holds: it is not exceeded, and not twice as much as needed.
fn holds(before: &ScaledForm, bytes: u64, now: &ScaledForm) -> bool {
    let near = |announced: u64, now: u64| announced >= now && announced / 2 <= margin(now);
    near(before.bytes_max, bytes)
        && near(before.takes.as_nanos(), now.takes.as_nanos())
        && near(before.work.as_nanos(), now.work.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_proto::{NodeId, Size};

    const PUBLISHER: PublisherId = PublisherId { node: NodeId(1), index: 1 };

    fn wide(width: u32) -> Form {
        Form { size: Some(Size { width, height: 9 }), ..Form::FULL }
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn note(costs: &mut Costs, millis: u64, (width, promised): (u32, bool), takes: u64) {
        let time = Duration::from_millis(takes);
        costs.note(at(millis), (PUBLISHER, wide(width), promised), time, 1_000);
    }

    #[test]
    fn a_sample_waits_for_one_of_each_other_promised_form() {
        let mut costs = Costs::default();
        for (width, takes) in [(10, 4), (20, 6), (30, 10), (40, 3)] {
            note(&mut costs, 1, (width, width <= 20), takes);
        }
        let takes = |costs: &Costs, width, workers| {
            costs.response((PUBLISHER, wide(width)), workers).as_nanos() / 1_000_000
        };
        // 4 + 6 + 10 ms and a quarter more, rounded up; with two workers 4 + 3 + 10.
        assert_eq!((takes(&costs, 10, 1), takes(&costs, 10, 2)), (50, 50));
        costs.close(PUBLISHER, wide(30));
        // 4 + 6 + 3, and 4 + 3 + 3.
        assert_eq!((takes(&costs, 10, 1), takes(&costs, 10, 2)), (20, 20));
        costs.close(PUBLISHER, wide(40));
        assert_eq!((takes(&costs, 10, 1), takes(&costs, 10, 2)), (20, 10));
    }

    #[test]
    fn the_costs_of_a_form_last_as_long_as_one_of_its_scalers() {
        let mut costs = Costs::default();
        costs.open(PUBLISHER, wide(10));
        costs.open(
            PUBLISHER,
            Form { rate: Rate { every: 2.try_into().unwrap(), ..Rate::ALL }, ..wide(10) },
        );
        note(&mut costs, 1, (10, true), 4);
        costs.close(PUBLISHER, wide(10));
        assert_eq!(costs.of(PUBLISHER, 1).len(), 1, "the second scaler goes on");
        costs.close(PUBLISHER, wide(10));
        assert_eq!(costs.of(PUBLISHER, 1), []);
    }

    #[test]
    fn announcements_change_only_with_large_changes() {
        let mut costs = Costs::default();
        note(&mut costs, 1, (10, true), 4);
        let first = costs.of(PUBLISHER, 1);
        assert_eq!((first[0].bytes_max, first[0].takes.as_nanos()), (1_250, 5_000_000));
        costs.note(at(2), (PUBLISHER, wide(10), true), Duration::from_millis(3), 1_200);
        assert_eq!(costs.of(PUBLISHER, 1), first);
        costs.note(at(3), (PUBLISHER, wide(10), true), Duration::from_millis(3), 1_300);
        assert_eq!(costs.of(PUBLISHER, 1)[0].bytes_max, 1_625);
        let rate = Rate::every(core::num::NonZeroU32::MIN);
        costs.note(
            at(4),
            (PUBLISHER, Form { rate, ..wide(10) }, true),
            Duration::from_millis(9),
            1,
        );
        assert_eq!(costs.of(PUBLISHER, 1)[0].takes, Duration::from_millis(20));
        // After a quiet minute.
        note(&mut costs, 40_000, (10, true), 1);
        note(&mut costs, 80_000, (10, true), 1);
        assert_eq!(costs.of(PUBLISHER, 1)[0].takes, Duration::from_millis(2));
        let other = PublisherId { node: NodeId(1), index: 2 };
        assert_eq!(costs.of(other, 1), []);
    }

    /// Samples of several forms in a pool, simulated: no sample takes longer than its response time.
    #[test]
    fn no_simulated_sample_takes_longer() {
        for seed in 0..200_u64 {
            let mut random = seed * 7_919 + 13;
            let mut next = |most: u64| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
                (random >> 33) % most + 1
            };
            let workers = usize::try_from(next(3)).unwrap();
            // Cost and period in ms, and true for a contract.
            let forms: Vec<(u64, u64, bool)> =
                (0..next(6)).map(|_| (next(9), 60 + next(60), next(2) == 1)).collect();
            let mut costs = Costs::default();
            for (width, (cost, _, promised)) in (1..).zip(&forms) {
                note(&mut costs, 1, (width, *promised), *cost);
            }
            for (form, worst) in simulate(&forms, workers) {
                let width = u32::try_from(form + 1).unwrap();
                let bound = costs.response((PUBLISHER, wide(width)), workers);
                assert!(Duration::from_millis(worst) <= bound, "{seed}: {worst} ms of {bound}");
            }
        }
    }

    /// Returns the longest time of a sample of each form with a contract, in ms.
    fn simulate(forms: &[(u64, u64, bool)], workers: usize) -> BTreeMap<usize, u64> {
        let (mut queue, mut busy) = (Vec::<(usize, u64)>::new(), Vec::<(u64, usize, u64)>::new());
        let mut worst = BTreeMap::new();
        for now in 0..2_000_u64 {
            for (end, form, came) in busy.extract_if(.., |(end, ..)| *end <= now) {
                if forms[form].2 {
                    let most = worst.entry(form).or_insert(0);
                    *most = (*most).max(end - came);
                }
            }
            let due =
                |(_, (_, period, _)): &(usize, &(u64, u64, bool))| now.is_multiple_of(*period);
            queue.extend(forms.iter().enumerate().filter(due).map(|(form, _)| (form, now)));
            while busy.len() < workers && !queue.is_empty() {
                let at = queue.iter().position(|(form, _)| forms[*form].2).unwrap_or(0);
                let (form, came) = queue.remove(at);
                busy.push((now + forms[form].0, form, came));
            }
        }
        worst
    }
}

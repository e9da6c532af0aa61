//! Compares histories of an `Ingress` with a reference model.

mod model;

use crate::input::Input;
use bytes::Bytes;
use core::num::NonZeroU32;
use model::{Key, Model};
use paceline_proto::ingress::Ingress;
use paceline_proto::plan::{OutputPlan, Target};
use paceline_proto::{Encoding, Form, Kind, NodeId, Rate, RawSample, Size, Timestamp};
use paceline_sched::{Duration, Instant};

const STEPS_MAX: usize = 2_000;

/// Runs `data` as a sequence of steps: samples with gaps and jitter, and outputs that open, close and replace others.
pub fn ingress(data: &[u8]) {
    let mut input = Input::new(data);
    let millis = input.one_of(&[0, 0, 1, 10, 33, 40]);
    let period = (millis > 0).then(|| Duration::from_millis(millis));
    let mut both = Both {
        real: Ingress::new(period),
        model: Model::new(period.map(Duration::as_nanos)),
        ports: 0,
        seq: 0,
        captured: 1_700_000_000_000_000_000,
        step: millis.max(20) * 1_000_000,
    };
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        match input.below(8) {
            0 => both.install(&mut input),
            1 => both.gap(&mut input),
            2 => (0..input.byte()).for_each(|_| both.offer(0, 0)),
            3 => both.replace(&mut input),
            _ => both.offer(i64::from(input.byte()) - 128, i32::from(input.byte() % 3) - 1),
        }
    }
    both.drain();
}

struct Both {
    real: Ingress<u32>,
    model: Model,
    ports: u32,
    seq: u64,
    captured: u64,
    /// The time between two samples, in nanoseconds.
    step: u64,
}

impl Both {
    fn gap(&mut self, input: &mut Input<'_>) {
        let lost = u64::from(input.byte());
        self.seq += lost;
        self.captured += lost * self.step;
        if input.below(8) == 0 {
            self.step = u64::from(input.byte()) * 500_000;
        }
        if input.below(16) == 0 {
            self.captured -= u64::from(input.u16()) * 1_000_000; // the clock was stepped back
        }
    }

    /// Offers one sample, `jitter` 128ths of half a step late or early, with this place on the grid.
    fn offer(&mut self, jitter: i64, shift: i32) {
        self.captured += self.step;
        let jitter = jitter * i64::try_from(self.step / 256).unwrap();
        let nanos = self.captured.saturating_add_signed(jitter);
        let payload = Bytes::copy_from_slice(&self.seq.to_le_bytes());
        let sample = RawSample {
            seq: self.seq,
            captured: Timestamp { nanos, error: 3 },
            shift,
            published_at: Instant::from_millis(self.seq),
            doubt: Duration::ZERO,
            kind: Kind::Data,
            encoding: Encoding::Bytes,
            payload: payload.clone(),
            attachment: None,
        };
        let mut got = Vec::new();
        self.real.offer(Instant::from_millis(self.seq), sample, |output, sample| {
            let sample = sample.expect("no data sample depends on another");
            assert_eq!((sample.seq, &sample.payload), (self.seq, &payload));
            assert_eq!((sample.captured.nanos, sample.captured.error), (nanos, 3));
            got.push(output.port);
            true
        });
        assert_eq!(got, self.model.offer(self.seq, nanos, shift), "sample {}", self.seq);
        self.seq += 1;
    }

    /// Lets a sample of another form arrive, which may already be known.
    fn replace(&mut self, input: &mut Input<'_>) {
        let form = successor(input);
        let seq = (self.seq + 4).saturating_sub(u64::from(input.below(8)));
        let waiting: Vec<_> =
            self.real.waiting_for(form).map(|key| (key.target, key.form)).collect();
        assert_eq!(waiting, self.model.waiting_for(form));
        let real = self.real.replace(form, seq);
        let (left, first) = self.model.replace(form, seq);
        let plain: Vec<_> =
            real.iter().map(|(key, first)| ((key.target, key.form), *first)).collect();
        let expected: Vec<_> = left.iter().filter_map(|key| Some((*key, first?))).collect();
        assert_eq!(plain, expected, "sample {seq} of {form:?}");
        assert_eq!(self.real.is_replaced(), self.model.is_replaced());
        if input.flag() {
            // As in the successor, whose outputs have the same names.
            let later = u64::from(input.below(8));
            let real: Vec<_> = real.into_iter().map(|(key, first)| (key, first + later)).collect();
            self.real.begin(&real);
            self.model.begin(&left, first.unwrap_or_default() + later);
        }
    }

    fn install(&mut self, input: &mut Input<'_>) {
        let count = input.below(6);
        let mut plans: Vec<OutputPlan> = Vec::new();
        for plan in (0..count).map(|_| plan(input)) {
            if !plans.iter().any(|other| key(other) == key(&plan)) {
                plans.push(plan); // a source has each output only once
            }
        }
        // An output without a port does not exist.
        let failing = input.byte();
        let (mut opened, mut closed) = (Vec::new(), Vec::new());
        let ports = self.ports;
        let mut asked = 0u8;
        let mut port = |key| {
            asked += 1;
            if failing > 240 && asked & 1 == failing & 1 {
                return None;
            }
            opened.push(key);
            Some(ports + u32::try_from(opened.len()).unwrap())
        };
        self.real.install(&plans, |plan| port(key(plan)), |_, port| closed.push(port));
        self.ports += u32::try_from(opened.len()).unwrap();
        let keys: Vec<Key> = plans.iter().map(key).collect();
        let fails = |asked: u8| failing > 240 && asked & 1 == failing & 1;
        let mut expected = self.model.install(&keys, ports, fails);
        expected.closed.sort_unstable();
        closed.sort_unstable();
        assert_eq!((opened, closed), (expected.opened, expected.closed));
        self.compare();
    }

    fn compare(&self) {
        let real: Vec<u32> = self.real.outputs().iter().map(|output| output.port).collect();
        assert_eq!(real, self.model.ports());
    }

    fn drain(&mut self) {
        self.compare();
        let count = self.real.drain().count();
        assert_eq!((count, self.real.outputs().len()), (self.model.ports().len(), 0));
    }
}

fn plan(input: &mut Input<'_>) -> OutputPlan {
    let n = NonZeroU32::new(u32::from(input.byte()) + 1).unwrap();
    let millihertz = n.saturating_mul(NonZeroU32::new(250).unwrap());
    let both = Rate::every(n).at_most(millihertz);
    let rate = input.one_of(&[Rate::ALL, Rate::every(n), Rate::max(millihertz), both]);
    let size = input.one_of(&[None, None, Some(Size { width: 4, height: 3 })]);
    let form = Form { rate, size, ..Form::FULL };
    let target = input.one_of(&[Target::Local, Target::Hop(NodeId(1)), Target::Hop(NodeId(2))]);
    OutputPlan {
        scale: if input.below(4) == 0 { Form::FULL } else { form },
        aligned: input.flag(),
        until: if input.flag() { Some(successor(input)) } else { None },
        ..OutputPlan::new(target, form)
    }
}

/// Returns one of two forms of successors.
fn successor(input: &mut Input<'_>) -> Form {
    let third = Form { rate: Rate::every(NonZeroU32::new(3).unwrap()), ..Form::FULL };
    input.one_of(&[Form::FULL, third])
}

/// The identity of an output: its target, its form and the size to scale to.
fn key(plan: &OutputPlan) -> Key {
    let OutputPlan { target, form, scale, aligned, until, .. } = *plan;
    Key { target, form, rate: scale.rate, size: scale.size, aligned, until }
}

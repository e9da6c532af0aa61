//! The scaling threads of a node, and models of the encoders that run on them.

use crate::ask::payload;
use crate::random::Random;
use bytes::Bytes;
use paceline_node::install::ScalerId;
use paceline_node::{Node, ScaleJob};
use paceline_proto::form::{Form, Rate};
use paceline_proto::ids::PublisherId;
use paceline_proto::reason::DropReason;
use paceline_proto::sample::RawSample;
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;

/// A model of an encoder: its longest time for a sample, and its largest result.
#[derive(Clone, Copy, Debug)]
struct Coding {
    most: Duration,
    bytes: u64,
}

impl Coding {
    /// Returns the time for a sample: the longest for half of them.
    fn time(self, seq: u64) -> Duration {
        let mut chance = Random::new(!seq);
        if chance.chance(500) { self.most } else { self.most.mul_div(chance.below(1_001), 1_000) }
    }

    /// Returns the result of a sample: as large as permitted for half of them.
    fn result(self, seq: u64) -> Bytes {
        let mut chance = Random::new(seq);
        let less = if chance.chance(500) { 0 } else { chance.below(self.bytes) };
        payload(seq, usize::try_from(self.bytes - less).unwrap_or_default())
    }
}

/// The scaling threads of a node.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    /// The number of threads; `None` for one per scaler.
    pub(super) workers: Option<usize>,
    /// The time of a sample without a model of its encoder.
    pub(super) service: Duration,
    /// The longest coding times.
    codings: BTreeMap<(PublisherId, Form), Duration>,
    /// The samples that are scaled, with their ends and results.
    busy: BTreeMap<ScalerId, (Instant, Result<RawSample, DropReason>)>,
}

impl Pool {
    pub(super) const fn new() -> Self {
        Self {
            workers: None,
            service: Duration::from_millis(2),
            codings: BTreeMap::new(),
            busy: BTreeMap::new(),
        }
    }

    /// Returns the pool of the node's next incarnation.
    pub(super) fn anew(&self) -> Self {
        Self { busy: BTreeMap::new(), ..self.clone() }
    }

    /// Sets the longest coding time of a publisher's samples in a form.
    pub(super) fn set_coding_time(&mut self, publisher: PublisherId, form: Form, most: Duration) {
        self.codings.insert((publisher, whole(form)), most);
    }

    /// Returns the model of the encoder of a sample, if its coding time is set.
    fn coding(&self, job: &ScaleJob) -> Option<Coding> {
        let most = *self.codings.get(&(job.scaler.source.publisher, whole(job.form)))?;
        Some(Coding { most, bytes: job.publisher.budget(job.form)?.bytes_max })
    }

    /// Delivers the results that are due, and begins further samples. Returns true if there were any.
    pub(super) fn run(&mut self, now: Instant, node: &mut Node) -> bool {
        // A closed scaler needs no result.
        self.busy.retain(|id, _| node.is_scaling(*id));
        let done = self.busy.iter().filter(|(_, (until, _))| *until <= now);
        let done: Vec<_> = done.map(|(id, _)| *id).collect();
        let mut moved = !done.is_empty();
        for id in done {
            if let Some((_, result)) = self.busy.remove(&id) {
                node.handle_scaled(now, id, result);
            }
        }
        while self.workers.is_none_or(|workers| self.busy.len() < workers)
            && let Some(job) = node.poll_scale()
        {
            let coding = self.coding(&job);
            let time = coding.map_or(self.service, |coding| coding.time(job.sample.seq));
            self.busy.insert(job.scaler, (now + time, scale(coding, &job)));
            moved = true;
        }
        moved
    }

    /// Returns the instant of the next result.
    pub(super) fn next_at(&self) -> Instant {
        self.busy.values().map(|(until, _)| *until).fold(Instant::FAR, Instant::min)
    }
}

/// Scales a picture: with the model of its encoder, or with the toy algorithm, by which a picture of w×h is the
/// first w·h bytes of a larger one.
fn scale(coding: Option<Coding>, job: &ScaleJob) -> Result<RawSample, DropReason> {
    let ScaleJob { scaler, sample, .. } = job;
    let pixels = scaler.form.size.map_or(0, |size| size.pixels());
    let bytes = usize::try_from(pixels).unwrap_or(usize::MAX);
    let payload = match coding {
        Some(coding) => coding.result(sample.seq),
        None if sample.payload.len() < bytes => return Err(DropReason::CannotScale),
        None => sample.payload.slice(..bytes),
    };
    Ok(RawSample { payload, ..sample.clone() })
}

/// Returns the form with every sample: leaving out samples costs nothing.
const fn whole(form: Form) -> Form {
    Form { rate: Rate::ALL, ..form }
}

//! The scaling threads of a node, and the scalers that share them.
//!
//! As in the shell, one sample of a scaler is processed at a time, and a scaler with more samples returns to the end
//! of the queue. Scalers whose streams have contracts are served first.

use crate::ask::payload;
use crate::destination::Destination;
use crate::random::Random;
use bytes::Bytes;
use paceline_node::install::{ScalerId, StreamPlace};
use paceline_proto::control::PublisherSpec;
use paceline_proto::form::{Form, Rate};
use paceline_proto::ids::PublisherId;
use paceline_proto::ingress::OutputKey;
use paceline_proto::plan::{OutputPlan, SourceKey};
use paceline_proto::sample::RawSample;
use paceline_sched::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The most samples that wait for a scaler with a contract.
const WAITING_MAX: usize = 64;

/// Scales the pictures of one source to one form. Without a contract, only the newest picture waits.
#[derive(Debug, Default)]
pub(super) struct Scaler {
    pub(super) destinations: BTreeMap<OutputKey, Destination>,
    /// Closed outputs, which still take the results of earlier samples, by the number of their last one.
    closed: Vec<(u64, OutputKey, Destination)>,
    /// One of its outputs has a contract.
    pub(super) promised: bool,
    pub(super) coding: Option<Coding>,
    pub(super) busy: Option<(Instant, Job)>,
    waiting: VecDeque<Job>,
    /// The pool has it in a queue.
    queued: bool,
    /// It gets no further outputs.
    pub(super) is_closed: bool,
}

impl Scaler {
    /// Adds a sample for an output. Returns the older one that it displaces.
    pub(super) fn submit(&mut self, key: OutputKey, sample: RawSample) -> Option<Job> {
        if let Some(last) = self.waiting.back_mut().filter(|job| job.sample.seq == sample.seq) {
            last.keys.insert(key);
            return None;
        }
        self.waiting.push_back(Job { sample, keys: BTreeSet::from([key]) });
        let most = if self.promised { WAITING_MAX } else { 1 };
        if self.waiting.len() > most { self.waiting.pop_front() } else { None }
    }

    /// Removes and returns the next sample to scale.
    pub(super) fn take(&mut self) -> Option<Job> {
        self.queued = false;
        self.waiting.pop_front()
    }

    /// Closes an output. Its stream still takes the results of the samples that wait or are scaled.
    pub(super) fn close(&mut self, key: OutputKey) {
        let Some(destination) = self.destinations.remove(&key) else { return };
        if destination.stream().is_none() {
            return;
        }
        let jobs = self.busy.iter().map(|(_, job)| job).chain(&self.waiting);
        if let Some(last) =
            jobs.filter(|job| job.keys.contains(&key)).map(|job| job.sample.seq).max()
        {
            self.closed.push((last, key, destination));
        }
    }

    /// Returns the destination of an output's sample.
    pub(super) fn destination(&mut self, key: OutputKey, seq: u64) -> Option<&mut Destination> {
        let before = self.closed.iter_mut().find(|(last, its, _)| *its == key && seq <= *last);
        match before {
            Some((.., destination)) => Some(destination),
            None => self.destinations.get_mut(&key),
        }
    }

    /// Forgets the closed outputs whose last sample has been scaled.
    pub(super) fn forget_closed(&mut self, done: u64) {
        self.closed.retain(|(last, ..)| *last > done);
    }

    /// Forgets the output of a stream that closes.
    pub(super) fn forget_stream(&mut self, place: StreamPlace) {
        self.closed.retain(|(.., destination)| destination.stream() != Some(place));
        self.destinations.retain(|_, destination| destination.stream() != Some(place));
    }

    /// Returns true if a closed output still takes samples for a stream.
    pub(super) fn feeds(&self, place: StreamPlace) -> bool {
        self.closed.iter().any(|(.., destination)| destination.stream() == Some(place))
    }

    /// Returns true if it is closed, and none of its former outputs takes samples.
    pub(super) fn is_over(&self) -> bool {
        self.is_closed && self.destinations.is_empty() && self.closed.is_empty()
    }
}

/// A picture and the outputs that requested it.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) sample: RawSample,
    pub(super) keys: BTreeSet<OutputKey>,
}

/// A model of an encoder: its longest time for a sample, and its largest result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coding {
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
    pub(super) fn result(self, seq: u64) -> Bytes {
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
    promised: VecDeque<ScalerId>,
    others: VecDeque<ScalerId>,
}

impl Pool {
    pub(super) const fn new() -> Self {
        Self {
            workers: None,
            service: Duration::from_millis(2),
            codings: BTreeMap::new(),
            promised: VecDeque::new(),
            others: VecDeque::new(),
        }
    }

    /// Returns the pool of the node's next incarnation.
    pub(super) fn anew(&self) -> Self {
        Self { promised: VecDeque::new(), others: VecDeque::new(), ..self.clone() }
    }

    /// Sets the longest coding time of a publisher's samples in a form.
    pub(super) fn set_coding_time(&mut self, publisher: PublisherId, form: Form, most: Duration) {
        self.codings.insert((publisher, whole(form)), most);
    }

    /// Returns the model of the encoder of an output, if its coding time is set.
    pub(super) fn coding(
        &self,
        source: SourceKey,
        publisher: &PublisherSpec,
        plan: &OutputPlan,
    ) -> Option<Coding> {
        let most = *self.codings.get(&(source.publisher, whole(plan.form)))?;
        Some(Coding { most, bytes: publisher.budget(plan.form)?.bytes_max })
    }

    /// Returns the time that a scaler takes for a sample.
    pub(super) fn time(&self, scaler: &Scaler, seq: u64) -> Duration {
        scaler.coding.map_or(self.service, |coding| coding.time(seq))
    }

    /// Queues a scaler with a waiting sample, unless it is queued or busy.
    pub(super) fn queue(&mut self, key: ScalerId, scaler: &mut Scaler) {
        if scaler.queued || scaler.busy.is_some() || scaler.waiting.is_empty() {
            return;
        }
        scaler.queued = true;
        let queue = if scaler.promised { &mut self.promised } else { &mut self.others };
        queue.push_back(key);
    }

    /// Removes and returns the next scaler to serve.
    pub(super) fn next(&mut self) -> Option<ScalerId> {
        self.promised.pop_front().or_else(|| self.others.pop_front())
    }
}

/// Returns the form with every sample: leaving out samples costs nothing.
const fn whole(form: Form) -> Form {
    Form { rate: Rate::ALL, ..form }
}

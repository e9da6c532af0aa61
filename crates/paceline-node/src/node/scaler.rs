//! The scalers of a node. The driver scales; the node decides on the order of the work and delivers the results.
//!
//! One sample of a scaler is processed at a time, and a scaler with more samples returns to the end of the queue. Scalers
//! whose streams have contracts are served first.

use super::port::Destination;
use crate::install::{ScalerId, StreamPlace};
use paceline_proto::control::PublisherSpec;
use paceline_proto::ingress::OutputKey;
use paceline_proto::plan::OutputPlan;
use paceline_proto::{Form, RawSample};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// The most samples that wait for a scaler with a contract. Without a contract, only the newest one waits.
const WAITING_MAX: usize = 64;

/// A sample to scale. [`Node::handle_scaled`](super::Node::handle_scaled) takes the result.
#[derive(Clone, Debug)]
pub struct ScaleJob {
    /// The scaler, which states the scaling in `form`.
    pub scaler: ScalerId,
    /// The sample.
    pub sample: RawSample,
    /// The declaration of its publisher.
    pub publisher: Arc<PublisherSpec>,
    /// The form of the samples behind the scaler, by the publisher's own form.
    pub form: Form,
}

/// A sample and the outputs that requested it.
#[derive(Debug)]
pub(super) struct Job {
    sample: RawSample,
    pub(super) keys: BTreeSet<OutputKey>,
}

impl Job {
    pub(super) const fn seq(&self) -> u64 {
        self.sample.seq
    }
}

/// Scales the samples of one source to one form.
#[derive(Debug)]
pub(super) struct SharedScaler {
    publisher: Arc<PublisherSpec>,
    /// The form of its last output.
    form: Form,
    pub(super) destinations: BTreeMap<OutputKey, Destination>,
    /// Closed outputs, which still take the results of earlier samples, by the number of their last one.
    closed: Vec<(u64, OutputKey, Destination)>,
    /// One of its outputs has a contract.
    pub(super) promised: bool,
    busy: Option<Job>,
    waiting: VecDeque<Job>,
    /// It is in a queue of [`SharedScalers`].
    queued: bool,
    /// It gets no further outputs.
    pub(super) is_closed: bool,
}

impl SharedScaler {
    fn new(publisher: Arc<PublisherSpec>) -> Self {
        Self {
            publisher,
            form: Form::FULL,
            destinations: BTreeMap::new(),
            closed: Vec::new(),
            promised: false,
            busy: None,
            waiting: VecDeque::new(),
            queued: false,
            is_closed: false,
        }
    }

    /// Adds an output.
    pub(super) fn join(&mut self, plan: &OutputPlan, destination: Destination) {
        self.form = plan.form;
        self.destinations.insert(OutputKey::of(plan), destination);
    }

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

    /// Closes an output. Its stream still takes the results of the samples that wait or are scaled.
    pub(super) fn close(&mut self, key: OutputKey) {
        let Some(destination) = self.destinations.remove(&key) else { return };
        if destination.stream().is_none() {
            return;
        }
        let jobs = self.busy.iter().chain(&self.waiting);
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

    /// Removes and returns the sample that is scaled.
    pub(super) const fn take_busy(&mut self) -> Option<Job> {
        self.busy.take()
    }

    /// Forgets the closed outputs whose last sample has been scaled.
    pub(super) fn forget_closed(&mut self, done: u64) {
        self.closed.retain(|(last, ..)| *last > done);
    }

    /// Forgets the output of a stream that closes.
    fn forget_stream(&mut self, place: StreamPlace) {
        self.closed.retain(|(.., destination)| destination.stream() != Some(place));
        self.destinations.retain(|_, destination| destination.stream() != Some(place));
    }

    /// Returns true if a closed output still takes samples for a stream.
    fn feeds(&self, place: StreamPlace) -> bool {
        self.closed.iter().any(|(.., destination)| destination.stream() == Some(place))
    }

    /// Returns true if it is closed, and none of its former outputs takes samples.
    fn is_over(&self) -> bool {
        self.is_closed && self.destinations.is_empty() && self.closed.is_empty()
    }
}

/// The shared scalers of a node, and the order in which they are served.
#[derive(Debug, Default)]
pub(super) struct SharedScalers {
    scalers: BTreeMap<ScalerId, SharedScaler>,
    promised: VecDeque<ScalerId>,
    others: VecDeque<ScalerId>,
}

impl SharedScalers {
    pub(super) fn open(&mut self, id: ScalerId, publisher: Arc<PublisherSpec>) {
        self.scalers.insert(id, SharedScaler::new(publisher));
    }

    pub(super) fn get_mut(&mut self, id: ScalerId) -> Option<&mut SharedScaler> {
        self.scalers.get_mut(&id)
    }

    /// Closes a scaler, which ends with the last sample that it has begun.
    pub(super) fn close(&mut self, id: ScalerId) {
        if let Some(scaler) = self.scalers.get_mut(&id) {
            scaler.is_closed = true;
            self.remove_over(id);
        }
    }

    /// Removes a scaler that is over.
    pub(super) fn remove_over(&mut self, id: ScalerId) {
        if self.scalers.get(&id).is_some_and(SharedScaler::is_over) {
            self.scalers.remove(&id);
        }
    }

    /// Returns true if the result of a sample is awaited.
    pub(super) fn is_busy(&self, id: ScalerId) -> bool {
        self.scalers.get(&id).is_some_and(|scaler| scaler.busy.is_some())
    }

    /// Queues a scaler with a waiting sample, unless it is queued or busy.
    pub(super) fn queue(&mut self, id: ScalerId) {
        let Some(scaler) = self.scalers.get_mut(&id) else { return };
        if scaler.queued || scaler.busy.is_some() || scaler.waiting.is_empty() {
            return;
        }
        scaler.queued = true;
        let queue = if scaler.promised { &mut self.promised } else { &mut self.others };
        queue.push_back(id);
    }

    /// Begins the next sample.
    pub(super) fn next(&mut self) -> Option<ScaleJob> {
        while let Some(id) = self.promised.pop_front().or_else(|| self.others.pop_front()) {
            let Some(scaler) = self.scalers.get_mut(&id) else { continue };
            scaler.queued = false;
            let Some(job) = scaler.waiting.pop_front() else { continue };
            let (sample, publisher) = (job.sample.clone(), Arc::clone(&scaler.publisher));
            let form = scaler.form;
            scaler.busy = Some(job);
            return Some(ScaleJob { scaler: id, sample, publisher, form });
        }
        None
    }

    /// Forgets the outputs of a stream that closes.
    pub(super) fn forget_stream(&mut self, place: StreamPlace) {
        self.scalers.values_mut().for_each(|scaler| scaler.forget_stream(place));
    }

    /// Returns true if a closed output of a scaler still takes samples for a stream.
    pub(super) fn feeds(&self, place: StreamPlace) -> bool {
        self.scalers.values().any(|scaler| scaler.feeds(place))
    }
}

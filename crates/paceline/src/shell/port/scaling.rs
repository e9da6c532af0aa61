//! Scaling of samples, once per source and form, on a thread pool.
//!
//! One worker at a time serves a source and form, so that its streams have a single producer. Its
//! queue is bounded, and displaced samples are counted. A newer picture displaces older ones of best effort, sound
//! drops its oldest block, and video drops everything up to the next picture that can be decoded
//! alone.

#[cfg(feature = "h264")]
mod bucket;
#[cfg(feature = "h264")]
mod coder;
#[cfg(not(feature = "h264"))]
#[path = "scaling/no_coder.rs"]
mod coder;
mod costs;
mod pictures;
mod places;
mod pool;
mod sound;
mod thin;
mod video;
mod waiting;

pub(in crate::shell) use coder::Coder;
pub(crate) use costs::Costs;
pub(in crate::shell) use pictures::scale as scale_picture;
pub(in crate::shell) use places::Takers;
pub(crate) use pool::ScalePool;
pub(in crate::shell) use sound::Sound;

use super::super::{clock, lock};
use super::Port;
use event_listener::{Event, EventListener};
use paceline_media::Format;
use paceline_node::install::ScalerTerms;
use paceline_proto::control::{FormBudget, PublisherSpec};
use paceline_proto::video::{Group, GroupBudget, Next};
use paceline_proto::{DropReason, Form, PublisherId, RawSample};
use paceline_sched::Duration;
use pictures::Pictures;
use places::Places;
use rustix::time::{ClockId, clock_gettime};
use std::sync::{Arc, Mutex, MutexGuard};
use video::Video;
use waiting::{Job, Rule, Waiting, Work};

/// The samples in sequence that cannot be scaled after which a form is withdrawn.
const FAILED_MAX: u64 = 8;

/// The worker of a task.
enum Worker {
    Pictures(Box<Pictures>),
    Sound(Box<Sound>),
    Video(Box<Video>),
}

struct Working {
    worker: Worker,
    places: Places,
}

/// The scaling of one source's samples to one form.
pub(crate) struct ScaleTask {
    pool: Arc<ScalePool>,
    publisher: PublisherId,
    form: Form,
    terms: Mutex<ScalerTerms>,
    waiting: Mutex<Waiting>,
    working: Mutex<Working>,
    /// Notified when the queue has room again.
    room: Event,
    /// It reduces the rate of video only, by leaving out pictures.
    thins: bool,
}

/// An output's connection to a [`ScaleTask`].
pub(crate) struct ScalePort {
    task: Arc<ScaleTask>,
    slot: u32,
    /// The output of scaled samples, until the worker takes it.
    port: Option<Box<Port>>,
    /// It has reached the newest picture.
    joined: bool,
    /// The output may receive pictures from before it opened.
    takes_old: bool,
}

impl ScalePort {
    /// Connects `port`, which receives the scaled samples from the first submitted one on, and before
    /// that the picture that starts the current group of pictures if it `takes_old`.
    pub(crate) fn new(task: Arc<ScaleTask>, slot: u32, port: Port, takes_old: bool) -> Self {
        Self { task, slot, port: Some(Box::new(port)), joined: false, takes_old }
    }

    /// Lets the scaler start in the middle of a group of pictures.
    pub(super) fn join(&mut self, group: &Group, sample: &RawSample) -> Next {
        let joins = !self.task.thins || self.takes_old;
        if !joins || self.joined {
            return Next::Wait(0);
        }
        let mut waiting = lock(&self.task.waiting);
        connect(&mut self.port, &mut waiting, (self.slot, sample.seq));
        let next = waiting.join(group, sample, self.slot, self.takes_old);
        self.joined = next == Next::Follow;
        self.task.wake(waiting);
        next
    }

    /// Queues a sample for scaling. Never blocks; returns false if the sample was dropped and
    /// counted.
    pub(crate) fn submit(&mut self, sample: RawSample) -> bool {
        let mut waiting = lock(&self.task.waiting);
        connect(&mut self.port, &mut waiting, (self.slot, sample.seq));
        let taken = waiting.push(sample, self.slot, false);
        self.task.wake(waiting);
        taken
    }

    /// Counts samples that were lost before the scaler.
    pub(crate) fn count(&mut self, reason: DropReason, samples: u64) {
        match &mut self.port {
            Some(port) => port.count(reason, samples),
            None => lock(&self.task.waiting).count_lost(self.slot, reason, samples),
        }
    }

    /// Returns a listener for room if the queue is full.
    pub(crate) fn full(&self) -> Option<EventListener> {
        lock(&self.task.waiting).is_full().then(|| self.task.room.listen())
    }
}

/// Passes a new output to the worker, from the sample `seq` on.
fn connect(port: &mut Option<Box<Port>>, waiting: &mut Waiting, (slot, seq): (u32, u64)) {
    let Some(mut port) = port.take() else { return };
    // The worker may already have this picture for another output. This one starts with the next.
    if waiting.has_begun(seq) {
        port.count(DropReason::ScalerBusy, 1);
    }
    waiting.open(slot, *port, seq);
}

impl Drop for ScalePort {
    fn drop(&mut self) {
        if self.port.is_none() {
            let mut waiting = lock(&self.task.waiting);
            waiting.add(Work::Close(self.slot));
            self.task.wake(waiting);
        }
    }
}

impl ScaleTask {
    /// Creates the task that converts a publisher's samples to `form`.
    pub(crate) fn new(
        (id, publisher): (PublisherId, &PublisherSpec),
        form: Form,
        (pool, groups): (Arc<ScalePool>, GroupBudget),
    ) -> Arc<Self> {
        let (kind, period) = (publisher.kind, publisher.period);
        let (worker, rule) = if kind.is_video() {
            let codec = Format::codec_of(publisher.encoding.as_str());
            let decodes = codec.is_none_or(|codec| codec.has_transcoder());
            (Worker::Video(Box::new(Video::new(form, period, decodes))), Rule::WholeVideo)
        } else if form.audio.is_some() || form.bitrate.is_some() && publisher.is_pcm() {
            (Worker::Sound(Box::new(Sound::new(&form))), Rule::NewestMany)
        } else {
            (Worker::Pictures(Box::new(Pictures::new(form))), Rule::NewestOne)
        };
        let working = Working { worker, places: Places::new(groups) };
        pool.costs().open(id, form);
        Arc::new(Self {
            pool,
            publisher: id,
            form,
            terms: Mutex::new(ScalerTerms::default()),
            waiting: Mutex::new(Waiting::new(rule)),
            working: Mutex::new(working),
            room: Event::new(),
            thins: kind.is_video() && form.size.is_none() && form.bitrate.is_none(),
        })
    }

    /// Sets the terms of its streams.
    pub(crate) fn set_terms(&self, terms: ScalerTerms) {
        *lock(&self.terms) = terms;
        lock(&self.waiting).set_promised(terms.promised);
    }

    /// Returns true if one of its streams has a contract.
    fn is_promised(&self) -> bool {
        lock(&self.terms).promised
    }

    /// Measures one piece of work, which returns the bytes of a converted sample.
    fn measure(&self, work: impl FnOnce() -> Option<usize>) {
        let begun = processor_time();
        let bytes = work();
        let took = processor_time().saturating_sub(begun);
        if let Some(bytes) = bytes.filter(|_| self.form.converts()) {
            let key = (self.publisher, self.form, self.is_promised());
            self.pool.costs().note(clock::now(), key, took, bytes);
        }
    }

    /// Calls `done` once all submitted samples have been scaled and delivered, including pictures
    /// that the worker delays until the next sample.
    pub(crate) fn finish(self: &Arc<Self>, done: impl FnOnce() + Send + 'static) {
        let mut waiting = lock(&self.waiting);
        waiting.add(Work::Finish(Box::new(done)));
        self.wake(waiting);
    }

    fn wake(self: &Arc<Self>, mut waiting: MutexGuard<'_, Waiting>) {
        if waiting.begin() {
            drop(waiting);
            self.pool.queue(self.clone());
        }
    }

    /// Processes queued work up to and including one sample.
    fn run(self: &Arc<Self>) {
        let mut working = lock(&self.working);
        loop {
            let (work, lost) = lock(&self.waiting).next();
            for ((slot, reason), samples) in lost {
                working.places.count(1 << slot, reason, samples);
            }
            let Some(work) = work else { return };
            let budget = lock(&self.terms).budget;
            let sample = matches!(work, Work::Sample(_));
            self.measure(|| working.carry_out(work, budget));
            if working.places.failed() >= FAILED_MAX
                && self.form.converts()
                && self.pool.costs().note_failed(self.publisher)
            {
                // Once, and not subject to the limit of other messages: nothing is tried again that could name the problem.
                let problem = working.places.problem();
                tracing::warn!(
                    "publisher {}: {FAILED_MAX} samples in sequence could not be scaled, so other sizes are refused from now \
                     on: {problem}",
                    self.publisher
                );
            }
            if sample {
                break;
            }
        }
        drop(working);
        self.go_on();
    }

    /// Returns to the end of the pool's queue if there is more work, so that tasks share the
    /// threads.
    fn go_on(self: &Arc<Self>) {
        self.notify_room();
        if lock(&self.waiting).goes_on() {
            self.pool.queue(self.clone());
        }
    }

    /// Notifies publishers that wait for room.
    fn notify_room(&self) {
        self.room.notify(usize::MAX);
    }
}

impl Drop for ScaleTask {
    fn drop(&mut self) {
        self.pool.costs().close(self.publisher, self.form);
    }
}

/// Returns the processor time of the thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    Duration::from_nanos(part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec))
}

impl Working {
    /// Returns the bytes of the result if a sample was converted.
    fn carry_out(&mut self, work: Work, budget: Option<FormBudget>) -> Option<usize> {
        let Self { worker, places } = self;
        match work {
            Work::Sample(job) => return worker.serve(job, budget, places),
            Work::Open(slot, port) => places.open(slot, port),
            Work::Close(slot) => {
                if places.is_last(slot) {
                    worker.finish(places);
                    worker.reset();
                    places.reset();
                }
                places.close(slot);
            }
            Work::Finish(done) => {
                worker.finish(places);
                done();
            }
        }
        None
    }
}

impl Worker {
    /// Returns the bytes of the result if the sample was converted.
    fn serve(
        &mut self,
        job: Job,
        budget: Option<FormBudget>,
        places: &mut Places,
    ) -> Option<usize> {
        match self {
            Self::Pictures(pictures) => pictures.serve(&job, budget, places),
            Self::Sound(sound) => sound.serve(&job, budget, places),
            Self::Video(video) => video.serve(job.sample, job.past, budget, places),
        }
    }

    /// Delivers the pictures that the worker delays until the next sample.
    fn finish(&mut self, places: &mut Places) {
        match self {
            Self::Pictures(_) | Self::Sound(_) => {}
            Self::Video(video) => video.finish(places),
        }
    }

    /// Resets the worker after its last output: the next output starts from scratch.
    fn reset(&mut self) {
        match self {
            Self::Pictures(_) => {}
            Self::Sound(sound) => sound.reset(),
            Self::Video(video) => video.reset(),
        }
    }
}

#[cfg(test)]
#[cfg(feature = "h264")]
mod tests;

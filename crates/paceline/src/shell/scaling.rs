//! Spatial scaling: once per source and size, on threads of its own.
//!
//! One worker at a time serves a (source, size), so its streams have one producer. While it is busy
//! the newest picture waits and the one before gives way, counted: a picture that waits for its
//! scaler is soon worth nothing.

use super::clock;
use super::port::Port;
use paceline_media::{Format, Scaler};
use paceline_proto::{DropReason, Encoding, Sample, Size};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Outputs that one task serves; more of a size make another task.
pub(crate) const SLOTS_MAX: u32 = 64;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Job {
    sample: Sample,
    slots: u64,
}

#[derive(Default)]
struct Pending {
    job: Option<Job>,
    /// The task is with the pool: queued or being served.
    queued: bool,
    lost: Vec<(u32, DropReason, u64)>,
    changes: Vec<(u32, Option<Port>)>,
}

struct Working {
    scaler: Scaler,
    ports: Vec<Option<Port>>,
}

/// The scaling of one source's pictures to one size.
pub(crate) struct ScaleTask {
    to: Size,
    pool: Arc<ScalePool>,
    pending: Mutex<Pending>,
    working: Mutex<Working>,
}

/// One output's place at a [`ScaleTask`].
pub(crate) struct ScalePort {
    task: Arc<ScaleTask>,
    slot: u32,
}

impl ScalePort {
    /// A place for `port`, which gets the scaled pictures.
    pub(crate) fn new(task: Arc<ScaleTask>, slot: u32, port: Port) -> Self {
        lock(&task.pending).changes.push((slot, Some(port)));
        Self { task, slot }
    }

    /// Hands a picture to the scaler; never waits.
    pub(crate) fn submit(&self, sample: Sample) -> bool {
        let bit = 1u64.checked_shl(self.slot).unwrap_or_default();
        let mut pending = lock(&self.task.pending);
        match &mut pending.job {
            Some(job) if job.sample.seq == sample.seq => job.slots |= bit,
            job => {
                let older = job.replace(Job { sample, slots: bit });
                if let Some(older) = older {
                    let slots = (0..SLOTS_MAX).filter(|slot| older.slots >> slot & 1 == 1);
                    pending.lost.extend(slots.map(|slot| (slot, DropReason::ScalerBusy, 1)));
                }
            }
        }
        if !pending.queued {
            pending.queued = true;
            drop(pending);
            self.task.pool.queue(self.task.clone());
        }
        true
    }

    /// Counts samples that were lost on their way to the scaler.
    pub(crate) fn count(&self, reason: DropReason, samples: u64) {
        lock(&self.task.pending).lost.push((self.slot, reason, samples));
    }
}

impl Drop for ScalePort {
    fn drop(&mut self) {
        lock(&self.task.pending).changes.push((self.slot, None));
    }
}

impl ScaleTask {
    pub(crate) fn new(to: Size, pool: Arc<ScalePool>) -> Arc<Self> {
        let working = Working { scaler: Scaler::new(), ports: Vec::new() };
        let (pending, working) = (Mutex::default(), Mutex::new(working));
        Arc::new(Self { to, pool, pending, working })
    }

    fn run(self: &Arc<Self>) {
        let mut working = lock(&self.working);
        let (job, lost, changes) = {
            let mut pending = lock(&self.pending);
            let lost = std::mem::take(&mut pending.lost);
            (pending.job.take(), lost, std::mem::take(&mut pending.changes))
        };
        for (slot, port) in changes {
            let place = slot as usize;
            if working.ports.len() <= place {
                working.ports.resize_with(place + 1, || None);
            }
            if let Some(place) = working.ports.get_mut(place) {
                *place = port;
            }
        }
        for (slot, reason, samples) in lost {
            if let Some(Some(port)) = working.ports.get(slot as usize) {
                port.count(reason, samples);
            }
        }
        if let Some(job) = job {
            working.serve(&job, self.to);
        }
        let mut pending = lock(&self.pending);
        pending.queued = pending.job.is_some();
        if pending.queued {
            drop(pending);
            self.pool.queue(self.clone());
        }
    }
}

impl Working {
    fn serve(&mut self, job: &Job, to: Size) {
        let scaled = scale(&mut self.scaler, &job.sample, to);
        if let Err(error) = &scaled {
            tracing::debug!("picture {}: {error}", job.sample.seq);
        }
        for (slot, port) in self.ports.iter_mut().enumerate() {
            let Some(port) = port else { continue };
            if slot >= 64 || job.slots >> slot & 1 == 0 {
                continue;
            }
            match &scaled {
                Ok(sample) => {
                    port.push(clock::now(), sample.clone());
                }
                Err(_) => port.count(DropReason::CannotScale, 1),
            }
        }
    }
}

/// The sample with its picture at another size, in the same format.
fn scale(scaler: &mut Scaler, sample: &Sample, to: Size) -> Result<Sample, String> {
    let to = paceline_media::Size::new(to.width, to.height).map_err(|error| error.to_string())?;
    let format: Format = sample
        .encoding
        .as_str()
        .parse()
        .map_err(|error| format!("{}: {error}", sample.encoding))?;
    let payload = scaler.scale(&format, &sample.payload, to).map_err(|error| error.to_string())?;
    let encoding = Encoding::new(&format.with_size(to).to_string());
    Ok(Sample { encoding, payload: payload.into(), ..sample.clone() })
}

#[derive(Default)]
struct Queue {
    tasks: VecDeque<Arc<ScaleTask>>,
    workers: usize,
    idle: usize,
    closed: bool,
}

/// The threads that scale. They start with the first picture.
#[derive(Default)]
pub(crate) struct ScalePool {
    queue: Mutex<Queue>,
    arrival: Condvar,
}

impl ScalePool {
    fn queue(self: &Arc<Self>, task: Arc<ScaleTask>) {
        let mut queue = lock(&self.queue);
        queue.tasks.push_back(task);
        let workers_max =
            std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2));
        if queue.idle == 0 && queue.workers < workers_max {
            let pool = self.clone();
            let named = std::thread::Builder::new().name("paceline-scale".to_owned());
            match named.spawn(move || pool.work()) {
                Ok(_) => queue.workers += 1,
                Err(error) => tracing::error!("cannot start a scaling thread: {error}"),
            }
        }
        drop(queue);
        self.arrival.notify_one();
    }

    fn work(&self) {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(task) = queue.tasks.pop_front() {
                drop(queue);
                task.run();
                queue = lock(&self.queue);
            } else if queue.closed {
                return;
            } else {
                queue.idle += 1;
                queue = self.arrival.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.idle -= 1;
            }
        }
    }

    /// Lets the threads end.
    pub(crate) fn close(&self) {
        let mut queue = lock(&self.queue);
        queue.closed = true;
        queue.tasks.clear();
        drop(queue);
        self.arrival.notify_all();
    }
}

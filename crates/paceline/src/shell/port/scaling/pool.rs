//! The threads that scale samples.

use super::{Costs, ScaleTask};
use crate::shell::lock;
use crate::shell::realtime::Role;
use crate::shell::vitals::Vitals;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Default)]
struct Queue {
    /// Tasks whose streams have contracts: they are served first.
    promised: VecDeque<Arc<ScaleTask>>,
    tasks: VecDeque<Arc<ScaleTask>>,
    workers: usize,
    idle: usize,
    closed: bool,
}

/// The pool of scaling threads. They start with the first sample.
pub(crate) struct ScalePool {
    vitals: Arc<Vitals>,
    queue: Mutex<Queue>,
    arrival: Condvar,
    costs: Mutex<Costs>,
}

impl ScalePool {
    pub(crate) fn new(vitals: Arc<Vitals>) -> Self {
        Self { vitals, queue: Mutex::default(), arrival: Condvar::new(), costs: Mutex::default() }
    }

    /// Returns the measured costs of its tasks.
    pub(crate) fn costs(&self) -> MutexGuard<'_, Costs> {
        lock(&self.costs)
    }

    /// Returns the maximum number of threads.
    pub(crate) fn workers() -> usize {
        std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2))
    }

    pub(super) fn queue(self: &Arc<Self>, task: Arc<ScaleTask>) {
        let mut queue = lock(&self.queue);
        if queue.closed {
            drop(queue);
            task.notify_room();
            return;
        }
        match task.is_promised() {
            true => queue.promised.push_back(task),
            false => queue.tasks.push_back(task),
        }
        if queue.idle == 0 && queue.workers < Self::workers() {
            let pool = self.clone();
            let named = std::thread::Builder::new().name("paceline-scale".to_owned());
            let work = move || {
                pool.vitals.enter(Role::Scaling);
                pool.work();
            };
            match named.spawn(work) {
                Ok(_) => queue.workers += 1,
                Err(error) => crate::log_limited!(error, "cannot start a scaling thread: {error}"),
            }
        }
        drop(queue);
        self.arrival.notify_one();
    }

    fn work(self: &Arc<Self>) {
        let mut queue = lock(&self.queue);
        loop {
            let next = queue.promised.pop_front();
            if let Some(task) = next.or_else(|| queue.tasks.pop_front()) {
                drop(queue);
                let run = std::panic::AssertUnwindSafe(|| task.run());
                if std::panic::catch_unwind(run).is_err() {
                    crate::log_limited!(error, "a scaler or a subscriber's callback panicked");
                    task.go_on();
                }
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

    /// Ends the threads.
    pub(crate) fn close(&self) {
        let mut queue = lock(&self.queue);
        queue.closed = true;
        let mut waiting = std::mem::take(&mut queue.tasks);
        waiting.append(&mut queue.promised);
        drop(queue);
        self.arrival.notify_all();
        // The queued work is discarded, so publishers must stop waiting for room.
        waiting.iter().for_each(|task| task.notify_room());
    }
}

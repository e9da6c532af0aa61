//! The paper's time-differential service: five threads that sleep in turns and check a buffer.

use crate::bench::tds::{Released, since};
use rustix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The number of threads.
const THREADS: u32 = 5;

#[derive(Default)]
struct Buffer {
    waiting: VecDeque<Released>,
    released: Vec<Released>,
}

/// The threads, which take turns: one of them wakes once per slice.
pub(super) struct Threads {
    slice: Duration,
    buffer: Arc<Mutex<Buffer>>,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<u64>>,
}

/// The releases of the threads, and their processor time.
pub(super) struct Outcome {
    pub(super) slice: Duration,
    pub(super) released: Vec<Released>,
    pub(super) cpu_nanos: u64,
}

impl Threads {
    /// Starts the threads for samples `period` apart. The first is held for `hold`.
    pub(super) fn start(began: Instant, slice: Duration, period: Duration, hold: Duration) -> Self {
        let (buffer, is_over) = (Arc::<Mutex<Buffer>>::default(), Arc::<AtomicBool>::default());
        let thread = |number: u32| {
            let (buffer, is_over) = (buffer.clone(), is_over.clone());
            std::thread::spawn(move || {
                std::thread::sleep(slice * number);
                while !is_over.load(Ordering::Relaxed) {
                    release(&buffer, since(began), (period, hold));
                    std::thread::sleep(slice * THREADS);
                }
                let spent = clock_gettime(ClockId::ThreadCPUTime);
                let nanos = spent.tv_sec * 1_000_000_000 + spent.tv_nsec;
                u64::try_from(nanos).unwrap_or_default()
            })
        };
        let threads = (0..THREADS).map(thread).collect();
        Self { slice, buffer, is_over, threads }
    }

    /// Adds a sample that has arrived.
    pub(super) fn add(&self, sample: Released) {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner).waiting.push_back(sample);
    }

    pub(super) fn end(self) -> Outcome {
        self.is_over.store(true, Ordering::Relaxed);
        let spent = self.threads.into_iter().filter_map(|thread| thread.join().ok());
        let cpu_nanos = spent.sum();
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        let released = std::mem::take(&mut buffer.released);
        Outcome { slice: self.slice, released, cpu_nanos }
    }
}

/// Releases the samples whose distance to the last release is at least that of their time stamps.
fn release(buffer: &Mutex<Buffer>, now: u64, (period, hold): (Duration, Duration)) {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let mut buffer = buffer.lock().unwrap_or_else(PoisonError::into_inner);
    while let Some(next) = buffer.waiting.front().copied() {
        let due = match buffer.released.last() {
            Some(last) => last.at + next.number.saturating_sub(last.number) * nanos(period),
            None => next.at + nanos(hold),
        };
        if now < due {
            return;
        }
        buffer.waiting.pop_front();
        buffer.released.push(Released { at: now, ..next });
    }
}

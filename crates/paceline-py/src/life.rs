//! What may go away beneath a node: its threads, in a child that was forked; and the interpreter, at its end.

use crate::errors;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Forks that lie between the process that loaded this module and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);
/// Some node was opened in this process, or before a fork that led to it.
static OPENED: AtomicBool = AtomicBool::new(false);
/// The interpreter is about to end.
static ENDING: AtomicBool = AtomicBool::new(false);
/// Threads that wait without the interpreter's lock.
static WAITING: AtomicUsize = AtomicUsize::new(0);
/// How long the interpreter's end waits for them.
const END_WITHIN: Duration = Duration::from_secs(2);

/// Called in every child that is forked: what was opened before is of no use there.
#[pyfunction]
pub(crate) fn after_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Called when the interpreter is about to end, and nodes were closed: waits until no thread waits any more, so that
/// none comes back to an interpreter that is gone.
#[pyfunction]
pub(crate) fn end(py: Python<'_>) {
    ENDING.store(true, Ordering::Release);
    py.detach(|| {
        let until = Instant::now() + END_WITHIN;
        while WAITING.load(Ordering::Acquire) > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}

/// True once the interpreter is about to end.
pub(crate) fn is_ending() -> bool {
    ENDING.load(Ordering::Acquire)
}

/// Counts a thread that waits, as long as it lives.
pub(crate) struct Waiting;

impl Waiting {
    pub(crate) fn new() -> Self {
        WAITING.fetch_add(1, Ordering::AcqRel);
        Self
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Refuses to open a node where none can work: the threads that all nodes of a process share did not come along.
pub(crate) fn check_open() -> PyResult<u32> {
    let forks = FORKS.load(Ordering::Relaxed);
    if forks > 0 && OPENED.load(Ordering::Relaxed) {
        return Err(errors::forked());
    }
    OPENED.store(true, Ordering::Relaxed);
    Ok(forks)
}

/// A part of a node: dropping it may wait, so the interpreter's lock is let go first; and in a forked child, where
/// nobody would answer, it is left as it is.
pub(crate) struct Held<T: Send> {
    part: Option<T>,
    forks: u32,
}

impl<T: Send> Held<T> {
    /// Of a node that was opened, or just now.
    pub(crate) fn new(part: T) -> Self {
        Self { part: Some(part), forks: FORKS.load(Ordering::Relaxed) }
    }

    /// The part, unless this is a forked child.
    pub(crate) fn get(&self) -> PyResult<&T> {
        match &self.part {
            Some(part) if self.forks == FORKS.load(Ordering::Relaxed) => Ok(part),
            _ => Err(errors::forked()),
        }
    }
}

impl<T: Send> Drop for Held<T> {
    fn drop(&mut self) {
        let Some(part) = self.part.take() else { return };
        if self.forks != FORKS.load(Ordering::Relaxed) {
            std::mem::forget(part);
            return;
        }
        Python::try_attach(|py| py.detach(|| drop(part)));
    }
}

//! Process lifetime: a fork leaves the node's threads in the parent, and the interpreter may exit
//! while threads wait.

use crate::errors;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The number of forks between the process that loaded this module and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);
/// True if a node was opened in this process or in one of its ancestors.
static OPENED: AtomicBool = AtomicBool::new(false);
/// True once the interpreter is about to exit.
static ENDING: AtomicBool = AtomicBool::new(false);
/// The number of threads that wait without the interpreter's lock.
static WAITING: AtomicUsize = AtomicUsize::new(0);
/// The longest time that the interpreter's exit waits for them.
const END_WITHIN: Duration = Duration::from_secs(2);

/// Marks all earlier nodes as unusable. Python calls this in every forked child.
#[pyfunction]
pub(crate) fn after_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Waits until no thread is blocked in this module. Called at interpreter exit after all nodes are
/// closed, so that no thread returns to a finalized interpreter.
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

/// Returns true once the interpreter is about to exit.
pub(crate) fn is_ending() -> bool {
    ENDING.load(Ordering::Acquire)
}

/// A guard that counts one waiting thread.
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

/// Returns an error in a forked child, where the threads that all nodes of a process share do not
/// exist.
pub(crate) fn check_open() -> PyResult<u32> {
    let forks = FORKS.load(Ordering::Relaxed);
    if forks > 0 && OPENED.load(Ordering::Relaxed) {
        return Err(errors::forked());
    }
    OPENED.store(true, Ordering::Relaxed);
    Ok(forks)
}

/// A handle to a part of a node. Dropping the part may block, so its drop releases the
/// interpreter's lock first. In a forked child nothing would answer, so the part is leaked there.
pub(crate) struct Held<T: Send> {
    part: Option<T>,
    forks: u32,
}

impl<T: Send> Held<T> {
    pub(crate) fn new(part: T) -> Self {
        Self { part: Some(part), forks: FORKS.load(Ordering::Relaxed) }
    }

    /// Returns the part, or an error in a forked child.
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

//! Asks the nodes on a thread of its own: whoever looks can end at once, however long an answer takes.

use crate::ls::{Document, Reader, settle};
use crate::stop::Stop;
use paceline::Node;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What the nodes said, and when.
pub(super) struct Reading {
    pub(super) at: Instant,
    pub(super) document: Document,
    /// How many nodes there are beside this one.
    pub(super) known: usize,
}

/// The thread that asks.
pub(super) struct Asker {
    readings: Receiver<Reading>,
    thread: JoinHandle<()>,
}

impl Asker {
    /// Asks once in `interval` until it is told to end.
    pub(super) fn start(
        node: Node,
        mut reader: Reader,
        timeout: Duration,
        interval: Duration,
        stop: Stop,
    ) -> std::io::Result<Self> {
        // Who does not look misses readings, and no more than two wait.
        let (to, readings) = sync_channel(2);
        let ask = move || {
            settle(&node, timeout, &stop);
            let mut due = Instant::now();
            while !stop.requested() {
                let document = reader.read(&node);
                let known = node.nodes().len().saturating_sub(1);
                let reading = Reading { at: Instant::now(), document, known };
                if let Err(TrySendError::Disconnected(_)) = to.try_send(reading) {
                    return;
                }
                // Answers that took longer are not made up for.
                due = (due + interval).max(Instant::now());
                if stop.wait_until(due) {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("paceline-top".to_owned()).spawn(ask)?;
        Ok(Self { readings, thread })
    }

    /// The next reading, if it comes in time.
    pub(super) fn wait(&self, timeout: Duration) -> Option<Reading> {
        match self.readings.recv_timeout(timeout) {
            Ok(reading) => Some(reading),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                // Nobody will ever send: callers would run in circles.
                std::thread::sleep(timeout);
                None
            }
        }
    }

    /// True if nobody asks any more.
    pub(super) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for its end, after the stop was requested.
    pub(super) fn end(self) {
        drop(self.readings);
        // If it panicked it has said so.
        let _ = self.thread.join();
    }
}

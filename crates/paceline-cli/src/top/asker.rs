//! Asks the nodes on a thread of its own: whoever looks can end at once, however long an answer takes.

use crate::ls::{Document, Reader, settle};
use crate::stop::Stop;
use paceline::Node;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What the nodes said, and when they were asked.
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
            while !stop.requested() {
                // Nodes answer at once: what they say is of now, however long one that has died is waited
                // for. So two readings are never closer than `interval`, and rates are right.
                let at = Instant::now();
                let document = reader.read(&node);
                let known = node.nodes().len().saturating_sub(1);
                let reading = Reading { at, document, known };
                if let Err(TrySendError::Disconnected(_)) = to.try_send(reading) {
                    return;
                }
                if stop.wait_until(at + interval) {
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

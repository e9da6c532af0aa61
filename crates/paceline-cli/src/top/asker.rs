//! Queries the nodes on a separate thread, so that the user interface can end while an answer is pending.

use crate::status::settle_and;
use paceline::Node;
use paceline_http::status::StatusDocument;
use paceline_tool::stop::Stop;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The nodes' answers, with the time of the query.
pub(super) struct Reading {
    pub(super) at: Instant,
    pub(super) document: StatusDocument,
    /// Number of known nodes other than this one.
    pub(super) known: usize,
}

/// The querying thread.
pub(super) struct Asker {
    readings: Receiver<Reading>,
    thread: JoinHandle<()>,
}

impl Asker {
    /// Queries the nodes every `interval` until `stop` is requested: `all`, or only the ones that are reachable without a
    /// link of limited capacity.
    pub(super) fn start(
        node: Node,
        all: bool,
        timeout: Duration,
        interval: Duration,
        stop: Stop,
    ) -> std::io::Result<Self> {
        // At most two readings are queued; a slow user interface misses readings.
        let (to, readings) = sync_channel(2);
        let ask = move || {
            // The screen has no place for a note.
            settle_and(&node, timeout, &stop, || {});
            while !stop.requested() {
                // The time is taken before the wait for dead nodes: live nodes answer immediately, so their
                // counts are from now. Successive readings are never closer than `interval`.
                let at = Instant::now();
                let document = match all {
                    true => StatusDocument::read(&node, timeout),
                    false => StatusDocument::read_near(&node, timeout),
                };
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

    /// Returns the next reading, if it arrives within `timeout`.
    pub(super) fn wait(&self, timeout: Duration) -> Option<Reading> {
        match self.readings.recv_timeout(timeout) {
            Ok(reading) => Some(reading),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                // The thread has ended; sleeping prevents a busy loop in callers.
                std::thread::sleep(timeout);
                None
            }
        }
    }

    /// Returns true if the thread has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for the end of the thread; request the stop before.
    pub(super) fn end(self) {
        drop(self.readings);
        // A panic has already printed its message.
        let _ = self.thread.join();
    }
}

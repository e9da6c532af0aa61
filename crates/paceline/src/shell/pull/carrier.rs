//! A publisher of stored samples: they keep their sequence number, times and age, and are never
//! dropped for lack of room.

use super::super::clock;
use super::super::command::{Command, Commands};
use super::super::port::Port;
use super::super::source::PublisherShared;
use event_listener::Listener;
use paceline_proto::control::PublisherSpec;
use paceline_proto::ingress::{Ingress, Output};
use paceline_proto::{PublisherId, RawSample};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The interval of checks for closed streams, which do not notify.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Publishes on one private tag. Dropping it ends the publisher.
///
/// It has no handle of its node, so a pull does not keep the node open.
pub(crate) struct Carrier {
    id: PublisherId,
    shared: Arc<PublisherShared>,
    ingress: Ingress<Port>,
    commands: Commands,
    /// The number of applied installations.
    seen: u64,
    /// The sequence number of the last sample.
    last: Option<u64>,
}

impl Carrier {
    /// Declares the publisher; returns `None` if the node is closed or full.
    pub(crate) fn open(commands: &Commands, spec: PublisherSpec) -> Option<Self> {
        let shared = Arc::new(PublisherShared::default());
        let (reply, answer) = std::sync::mpsc::channel();
        commands.send(Command::Publish(spec, shared.clone(), reply));
        let id = answer.recv().ok()??;
        let (ingress, commands) = (Ingress::new(None), commands.clone());
        Some(Self { id, shared, ingress, commands, seen: 0, last: None })
    }

    /// Returns true while the puller is subscribed.
    pub(crate) fn is_wanted(&self) -> bool {
        self.shared.matching.load(Ordering::Acquire) && !self.is_closed()
    }

    fn is_closed(&self) -> bool {
        self.shared.closed.load(Ordering::Acquire)
    }

    /// Waits until the puller is subscribed; returns false after `timeout`.
    pub(crate) fn wait_wanted(&self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        loop {
            let change = self.shared.change.listen();
            if self.is_wanted() {
                return true;
            }
            if self.is_closed() || change.wait_deadline(until).is_none() {
                return self.is_wanted();
            }
        }
    }

    /// Returns true if the sample `seq` can follow: streams require increasing sequence numbers.
    pub(crate) fn takes(&self, seq: u64) -> bool {
        self.last.is_none_or(|last| seq > last)
    }

    /// Publishes a sample unchanged once there is room; returns false if the puller is no longer
    /// subscribed.
    pub(crate) fn put(&mut self, sample: RawSample) -> bool {
        loop {
            self.install();
            if !self.is_wanted() {
                return false;
            }
            if !self.wait_for_room() && !self.wait_for_processor() {
                break;
            }
        }
        self.last = Some(sample.seq);
        let now = clock::now();
        self.ingress.offer(now, sample, |output, sample| output.port.take(now, sample));
        self.shared.published.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn install(&mut self) {
        let ingress = &mut self.ingress;
        let installs = &self.shared.installs;
        installs.collect(&mut self.seen, |it| it.apply(ingress, |_, port| drop(port)));
    }

    /// Waits a while for processor time that contracts leave; returns false if there is some.
    fn wait_for_processor(&self) -> bool {
        let wait = self.ingress.processor_wait(clock::now());
        std::thread::sleep(Duration::from(wait).min(LOOK_EVERY));
        !wait.is_zero()
    }

    /// Waits a while for a full output; returns false if none is full.
    fn wait_for_room(&self) -> bool {
        let outputs = self.ingress.outputs();
        let full = |output: &Output<Port>| Some((output.key, output.port.full()?));
        let Some((key, room)) = outputs.iter().find_map(full) else { return false };
        // The output may have been drained before the listener existed.
        let still = outputs.iter().any(|output| output.key == key && output.port.full().is_some());
        if still {
            room.wait_timeout(LOOK_EVERY);
        }
        true
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.commands.send(Command::Unpublish(self.id, None));
    }
}

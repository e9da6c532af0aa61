//! Automatic publishing.

use crate::driver::{Driver, Pace, Times};
use crate::handle::{Payload, Pub};
use crate::queue::Event;
use crate::world::World;
use bytes::Bytes;
use paceline_sched::{Duration, Instant};

impl World {
    /// Publishes `count` samples from now on, one per `period`. Samples due while the publisher's node is
    /// down are skipped.
    pub fn every(&mut self, publisher: Pub, period: Duration, count: u64, payload: Payload) {
        self.every_jittered(publisher, (period, Duration::ZERO), count, payload);
    }

    /// Like [`Self::every`], with each sample delayed by up to a jitter: `(period, jitter)`.
    pub fn every_jittered(
        &mut self,
        publisher: Pub,
        (period, jitter): (Duration, Duration),
        count: u64,
        payload: Payload,
    ) {
        self.start(publisher, (Duration::ZERO, period, jitter), count, payload);
    }

    /// Like [`Self::every`], with the first sample after a delay: `(after, period)`.
    pub fn every_after(
        &mut self,
        publisher: Pub,
        (after, period): (Duration, Duration),
        count: u64,
        payload: Payload,
    ) {
        self.start(publisher, (after, period, Duration::ZERO), count, payload);
    }

    fn start(
        &mut self,
        publisher: Pub,
        (after, period, jitter): (Duration, Duration, Duration),
        count: u64,
        payload: Payload,
    ) {
        let due = self.now + after;
        self.begin(publisher, (Pace::Every { period, jitter, due }, due), count, payload);
    }

    /// Publishes `count` samples at the instants that `times` returns.
    pub fn at_times(&mut self, publisher: Pub, mut times: Times, count: u64, payload: Payload) {
        let first = times(0).max(self.now);
        self.begin(publisher, (Pace::At(times), first), count, payload);
    }

    fn begin(&mut self, publisher: Pub, (pace, at): (Pace, Instant), count: u64, payload: Payload) {
        let driver = Driver { publisher, pace, at, number: 0, count, payload };
        // Queued events refer to drivers by index, so the slot of a finished driver is reused, not removed.
        let place = self.idle_drivers.pop().unwrap_or(self.drivers.len());
        match self.drivers.get_mut(place) {
            Some(old) => *old = driver,
            None => self.drivers.push(driver),
        }
        self.queue.wake(Event::Driver(place), at);
    }

    /// Publishes the samples of a driver that are due.
    pub(super) fn drive(&mut self, place: usize) {
        let now = self.now;
        while let Some(driver) = self.drivers.get_mut(place) {
            if driver.count == 0 {
                self.idle_drivers.push(place);
                return;
            }
            if driver.at > now {
                let at = driver.at;
                self.queue.wake(Event::Driver(place), at);
                return;
            }
            let (publisher, payload): (Pub, Bytes) =
                (driver.publisher, (driver.payload)(driver.number));
            driver.number += 1;
            driver.count -= 1;
            driver.at = match &mut driver.pace {
                Pace::Every { period, jitter, due } => {
                    *due += *period;
                    *due + Duration::from_nanos(self.chance.below(jitter.as_nanos()))
                }
                Pace::At(times) => times(driver.number).max(now),
            };
            self.put(publisher, payload);
        }
    }
}

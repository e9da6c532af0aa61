//! What publishes by itself.

use crate::net::{Payload, Pub};
use crate::queue::Event;
use crate::world::World;
use bytes::Bytes;
use paceline_sched::{Duration, Instant};

/// When a publisher publishes its n-th sample: never before the one before it.
pub type Times = Box<dyn FnMut(u64) -> Instant + Send>;

/// When samples come.
enum Pace {
    /// One each period, each up to a jitter later than it is due.
    Every { period: Duration, jitter: Duration, due: Instant },
    /// Whenever this says.
    At(Times),
}

/// Publishes a number of samples.
pub(super) struct Driver {
    pub(super) publisher: Pub,
    pace: Pace,
    /// When the next one comes.
    at: Instant,
    number: u64,
    /// How many are left.
    pub(super) count: u64,
    payload: Payload,
}

impl World {
    /// From now on publishes `count` samples, one each `period`. What is due while the publisher's node
    /// is down is published nowhere.
    pub fn every(&mut self, publisher: Pub, period: Duration, count: u64, payload: Payload) {
        self.every_jittered(publisher, (period, Duration::ZERO), count, payload);
    }

    /// As [`Self::every`], each up to a jitter later than its time: `(period, jitter)`.
    pub fn every_jittered(
        &mut self,
        publisher: Pub,
        (period, jitter): (Duration, Duration),
        count: u64,
        payload: Payload,
    ) {
        self.start(publisher, (Duration::ZERO, period, jitter), count, payload);
    }

    /// As [`Self::every`], the first one some time from now: `(after, period)`.
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

    /// Publishes `count` samples at the instants that `times` says.
    pub fn at_times(&mut self, publisher: Pub, mut times: Times, count: u64, payload: Payload) {
        let first = times(0).max(self.now);
        self.begin(publisher, (Pace::At(times), first), count, payload);
    }

    fn begin(&mut self, publisher: Pub, (pace, at): (Pace, Instant), count: u64, payload: Payload) {
        let driver = Driver { publisher, pace, at, number: 0, count, payload };
        // The places of others are named in the queue: one that is done leaves its own to the next.
        let place = self.idle_drivers.pop().unwrap_or(self.drivers.len());
        match self.drivers.get_mut(place) {
            Some(old) => *old = driver,
            None => self.drivers.push(driver),
        }
        self.queue.wake(Event::Driver(place), at);
    }

    /// A driver publishes what is due.
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

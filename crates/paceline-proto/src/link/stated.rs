//! A stated capacity, and the evidence that the link has less.
//!
//! A link that is paced at its capacity has no queue below it, so a queue that stands there contradicts the stated capacity.
//! So does a limit of the bytes in flight, if it makes the link slower than its pace. Then the link is measured, up to that capacity, until the measurement agrees with it again. If the path became longer
//! instead, they agree soon.

use super::Link;
use super::hops::{Hop, Hops, queues};
use super::measure::Measure;
use super::pacing::Wire;
use crate::capacity::{CapacityEstimate, CapacityState, LinkCapacity};
use paceline_sched::{Capacity, Duration, Instant};

/// The time between two looks at the queue.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A shorter queue is the jitter of radios and of busy hosts.
const QUEUE: Duration = Duration::from_millis(40);
/// Fewer looks find a burst of other programs, or the pause of a host.
const FOUND: u32 = 5;
/// A link that sends less than this part of its capacity, in percent, is limited by something else.
const SLOW: u64 = 70;
/// The measurement must agree with the stated capacity for this time.
const AGREES_FOR: Duration = Duration::from_secs(10);
/// They agree if the conservative end of the measurement is at least this part of the stated capacity, in percent.
const AGREES: u64 = 85;

/// The state of the link at the last look.
#[derive(Clone, Copy, Debug, Default)]
struct Look {
    at: Instant,
    /// The departure of the newest frame that had arrived.
    passed: Instant,
    /// The bytes that the link had sent.
    sent: u64,
}

/// A capacity that a user states for a link.
#[derive(Debug)]
pub(super) struct Stated {
    capacity: Capacity,
    looked: Look,
    /// The looks that found a queue; half of them are forgotten with each one that did not.
    found: u32,
    agrees_since: Option<Instant>,
}

impl Stated {
    /// Returns a capacity that a measurement can contradict, if `setting` is one.
    pub(super) fn new(setting: LinkCapacity) -> Option<Self> {
        let LinkCapacity::Fixed(capacity) = setting else { return None };
        LinkCapacity::MEASURED.contains(&capacity.bits_per_s()).then_some(Self {
            capacity,
            looked: Look::default(),
            found: 0,
            agrees_since: None,
        })
    }

    /// Looks for a queue below the link; returns true if most of the last looks found one. `sent` is the number of bytes that the
    /// link has sent; `waits` is true if more could be sent.
    fn is_contradicted(
        &mut self,
        now: Instant,
        (hops, wire): (&Hops, &Wire),
        (sent, waits): (u64, bool),
    ) -> bool {
        let up = || hops.iter().map(|(_, it)| &it.hop).filter(|hop| hop.is_up());
        let passed = up().map(|hop| hop.passed()).max().unwrap_or_default();
        // Without a new acknowledgement, the last queue is old, and a neighbour may be suspended.
        let arrives = passed > self.looked.passed;
        let since = now.since(self.looked.at);
        let full = self.capacity.bytes_in(since) / 100 * SLOW;
        // On a short path, the limit of the bytes in flight keeps the queue short, and the link slower than its pace.
        let limited = waits && sent - self.looked.sent < full;
        let queued = |hop: &Hop| hop.queued_below() > QUEUE || limited && queues(hop, wire);
        self.looked = Look { at: now, passed, sent };
        self.found = if arrives && up().any(queued) { self.found + 1 } else { self.found / 2 };
        self.found >= FOUND
    }

    /// Returns true if the measurement has agreed with the stated capacity for long enough.
    fn is_confirmed(&mut self, now: Instant, found: &CapacityEstimate) -> bool {
        self.looked.at = now;
        let agrees = found.state == CapacityState::Stable && self.agrees_with(found.low);
        self.agrees_since = agrees.then(|| self.agrees_since.unwrap_or(now));
        self.agrees_since.is_some_and(|since| now.since(since) >= AGREES_FOR)
    }

    const fn agrees_with(&self, bits_per_s: u64) -> bool {
        bits_per_s >= self.capacity.bits_per_s() / 100 * AGREES
    }
}

impl Link {
    /// Measures the capacity of this link, which must have one to begin with. Within a range, its rate follows the measurement,
    /// and [`Self::set_capacity`] has no lasting effect. A fixed capacity is measured while a queue below the link contradicts
    /// it.
    pub fn measure(&mut self, setting: LinkCapacity) {
        self.stated = Stated::new(setting);
        self.measure = setting.is_measured().then(|| Box::new(Measure::new(setting)));
    }

    /// Returns the stated capacity that a measurement has contradicted; `None` if there is no contradiction.
    #[must_use]
    pub fn contradicted(&self) -> Option<Capacity> {
        let found = self.estimate()?;
        let stated = self.stated.as_ref()?;
        let most = match found.state {
            CapacityState::Stable | CapacityState::Falling => found.low,
            // The first measurements differ: none of them may be as stated.
            CapacityState::Measuring => found.high,
            CapacityState::Unknown | CapacityState::Outage => return None,
        };
        (!stated.agrees_with(most)).then_some(stated.capacity)
    }

    /// Begins to measure a link whose stated capacity is contradicted, and ends it when both agree.
    pub(super) fn check_stated(&mut self, now: Instant) {
        let Self { stated: Some(stated), measure, hops, wire_bytes, pacer, streams, .. } = self
        else {
            return;
        };
        if now.since(stated.looked.at) < LOOK_EVERY {
            return;
        }
        let waits = streams.iter().any(|(_, stream)| stream.head().is_some());
        let capacity = stated.capacity;
        match measure {
            None if stated.is_contradicted(now, (hops, &pacer.wire), (*wire_bytes, waits)) => {
                let range = LinkCapacity::Measured { min: None, max: Some(capacity) };
                self.set_measure(now, Some(Box::new(Measure::new(range))));
            }
            Some(measure) if stated.is_confirmed(now, &measure.estimate(hops)) => {
                self.end_doubt(now, capacity);
            }
            Some(_) | None => {}
        }
    }

    /// Uses `capacity` as stated, without a measurement.
    pub(super) fn end_doubt(&mut self, now: Instant, capacity: Capacity) {
        self.stated = Stated::new(LinkCapacity::Fixed(capacity));
        self.set_measure(now, None);
        self.set_rate(now, capacity);
    }

    /// Begins or ends a measurement. Its trains change the terms of streams.
    fn set_measure(&mut self, now: Instant, measure: Option<Box<Measure>>) {
        let before = self.contracted();
        self.measure = measure;
        self.join_changed(now, before);
    }
}

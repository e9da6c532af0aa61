//! A stated capacity, and the evidence that the link has less.
//!
//! A link that is paced at its capacity has no queue below it, so a queue that stands there contradicts the stated capacity.
//! On a short path, the limit of the bytes in flight keeps that queue short, and the link slower than its pace. With either,
//! the link is in doubt: it is measured with the data that leaves anyway. Its rate, its trains and admission change only once
//! that measurement contradicts the stated capacity, and as long as it does. If the path became longer, the doubt ends.
//!
//! Several neighbours may have different paths behind one link, so a link with more than one is not in doubt. Nor is one with
//! classes, whose shares are parts of the stated capacity.

use super::Link;
use super::hops::Hops;
use super::measure::Measure;
use crate::capacity::{CapacityEstimate, CapacityState, LinkCapacity};
use paceline_sched::{Capacity, Duration, Instant};

/// The time between two looks at the queue.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A shorter queue is the jitter of radios and of busy hosts.
const QUEUE: Duration = Duration::from_millis(40);
/// The same for a link that the bytes in flight limit.
const QUEUE_LIMITED: Duration = Duration::from_millis(2);
/// Fewer looks find a burst of other programs, or the pause of a host.
const FOUND: u32 = 5;
/// A link that sends less than this part of its capacity, in percent, is limited by something else.
const SLOW: u64 = 70;
/// A doubt without a contradiction ends after this time.
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
    /// Since the last look, data had to wait for the bytes in flight and not for the pace.
    limited: bool,
    /// The looks that found a queue; half of them are forgotten with each one that did not.
    found: u32,
    /// The measurement contradicts it.
    contradicted: bool,
    agrees_since: Option<Instant>,
}

impl Stated {
    /// Returns the capacity that a measurement may contradict, if `setting` is one.
    fn new(setting: LinkCapacity) -> Option<Self> {
        let LinkCapacity::Fixed(capacity) = setting else { return None };
        Some(Self {
            capacity,
            looked: Look::default(),
            limited: false,
            found: 0,
            contradicted: false,
            agrees_since: None,
        })
    }

    /// Looks for a queue below the link; returns true if most of the last looks found one. `sent` is the number of bytes that the
    /// link has sent.
    fn is_in_doubt(&mut self, now: Instant, hops: &Hops, sent: u64) -> bool {
        let mut up = hops.iter().map(|(_, it)| &it.hop).filter(|hop| hop.is_up());
        let only = up.next().filter(|_| up.next().is_none());
        let passed = only.map_or(Instant::ZERO, |hop| hop.passed());
        // Without a new acknowledgement, the last queue is old, and the neighbour may be suspended.
        let arrives = passed > self.looked.passed;
        let full = self.capacity.bytes_in(now.since(self.looked.at)) / 100 * SLOW;
        let slow = std::mem::take(&mut self.limited) && sent - self.looked.sent < full;
        let most = if slow { QUEUE_LIMITED } else { QUEUE };
        self.looked = Look { at: now, passed, sent };
        let queued = arrives && only.is_some_and(|hop| hop.queued_below() > most);
        self.found = if queued { self.found + 1 } else { self.found / 2 };
        self.found >= FOUND && LinkCapacity::MEASURED.contains(&self.capacity.bits_per_s())
    }

    /// Follows the measurement. Returns true if the doubt is over.
    fn is_over(&mut self, now: Instant, hops: &Hops, found: &CapacityEstimate) -> bool {
        self.looked.at = now;
        let agrees = |bits: u64| bits >= self.capacity.bits_per_s() / 100 * AGREES;
        self.contradicted = match found.state {
            CapacityState::Stable | CapacityState::Falling => !agrees(found.low),
            // The first measurements differ: none of them may be as stated.
            CapacityState::Measuring => self.contradicted || !agrees(found.high),
            CapacityState::Unknown | CapacityState::Outage => self.contradicted,
        };
        self.agrees_since = (!self.contradicted).then(|| self.agrees_since.unwrap_or(now));
        let several = hops.iter().filter(|(_, it)| it.hop.is_up()).count() > 1;
        several || self.agrees_since.is_some_and(|since| now.since(since) >= AGREES_FOR)
    }
}

impl Link {
    /// Measures the capacity of this link, which must have one to begin with. Within a range, its rate follows the measurement,
    /// and [`Self::set_capacity`] has no lasting effect. A fixed capacity is measured, up to that capacity, while a queue below
    /// the link contradicts it.
    pub fn measure(&mut self, setting: LinkCapacity) {
        self.stated = Stated::new(setting);
        self.measure = setting.is_measured().then(|| Box::new(Measure::new(setting)));
    }

    /// Returns the stated capacity, if a measurement may contradict it, and true if it does.
    #[must_use]
    pub fn stated(&self) -> Option<(Capacity, bool)> {
        self.stated.as_ref().map(|stated| (stated.capacity, stated.contradicted))
    }

    /// Returns true if the capacity is measured at present.
    #[must_use]
    pub const fn is_measured(&self) -> bool {
        self.measure.is_some()
    }

    /// Returns true if the rate and the trains of the link follow its measurement.
    pub(super) fn follows(&self) -> bool {
        self.measure.is_some() && self.stated.as_ref().is_none_or(|stated| stated.contradicted)
    }

    /// Notes that data waits for the bytes in flight.
    pub(super) const fn note_limited(&mut self) {
        if let Some(stated) = &mut self.stated {
            stated.limited = true;
        }
    }

    /// Begins to measure a link in doubt, and ends it when the doubt is over.
    pub(super) fn check_stated(&mut self, now: Instant) {
        let Self { stated: Some(stated), measure, hops, wire_bytes, class_streams, .. } = self
        else {
            return;
        };
        if now.since(stated.looked.at) < LOOK_EVERY {
            return;
        }
        let (capacity, shares) = (stated.capacity, class_streams.is_some());
        match measure {
            None if shares => stated.looked.at = now,
            None if stated.is_in_doubt(now, hops, *wire_bytes) => {
                let range = LinkCapacity::Measured { min: None, max: Some(capacity) };
                self.set_measure(now, Some(Box::new(Measure::new(range))));
            }
            Some(measure) if shares || stated.is_over(now, hops, &measure.estimate(hops)) => {
                self.state(now, capacity);
            }
            Some(_) | None => {}
        }
    }

    /// Uses `capacity` as stated, without a measurement.
    pub(super) fn state(&mut self, now: Instant, capacity: Capacity) {
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

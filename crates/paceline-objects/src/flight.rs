//! The fragments on their way to one observer.

use crate::ids::ObjectIndex;
use crate::schema::GroupMask;
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;

/// A fragment on its way.
#[derive(Clone, Debug)]
struct Sent {
    /// The number of its exchange; `None` for a fragment without updates.
    exchange: Option<u64>,
    content: Content,
    bytes: usize,
    at: Instant,
}

/// The groups of objects that a fragment carries.
pub(crate) type Content = Vec<(ObjectIndex, GroupMask)>;

/// The end of an exchange.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Arrival {
    /// Its number.
    pub(crate) exchange: u64,
    /// The content of the fragments that were received; `None` if all were.
    pub(crate) part: Option<Content>,
}

/// The exchanges with fragments on their way to one observer, of both classes: the losable fragments of a promised
/// message are best effort.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenExchanges {
    open: BTreeMap<u64, Open>,
    ended: Vec<Arrival>,
}

/// An exchange with fragments on their way.
#[derive(Clone, Debug, Default)]
struct Open {
    left: usize,
    lost: bool,
    received: Content,
}

impl OpenExchanges {
    fn send(&mut self, exchange: u64) {
        self.open.entry(exchange).or_default().left += 1;
    }

    /// Takes the exchanges that have ended.
    pub(crate) fn ended(&mut self) -> Vec<Arrival> {
        std::mem::take(&mut self.ended)
    }

    /// Settles a fragment; its exchange ends with its last one.
    fn settle(&mut self, sent: Sent, lost: bool) {
        let Some(exchange) = sent.exchange else { return };
        let Some(open) = self.open.get_mut(&exchange) else { return };
        open.left -= 1;
        open.lost |= lost;
        if !lost {
            open.received.extend(sent.content);
        }
        if open.left == 0
            && let Some(open) = self.open.remove(&exchange)
        {
            let part = open.lost.then_some(open.received);
            self.ended.push(Arrival { exchange, part });
        }
    }
}

/// The fragments of one class on their way to one observer, and how many bytes should be.
///
/// The window keeps the queues of the path short, so that an update is made from the newest state: it follows the
/// rate of acknowledged bytes times the least round trip and one report interval.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    next: u32,
    sent: BTreeMap<u32, Sent>,
    bytes: usize,
    /// How often fragments have expired since the last acknowledgement.
    expired: u32,
    round_trip: Option<Duration>,
    rate: DeliveryRate,
}

impl Flight {
    /// A fragment counts as lost if as many later ones were received.
    const REORDER: usize = 3;
    /// A fragment counts as lost after this time, or four round trips if they are longer.
    pub(crate) const TIMEOUT: Duration = Duration::from_secs(1);
    /// How often the time doubles.
    const DOUBLED_MAX: u32 = 6;
    /// The least window, in bytes.
    const WINDOW_MIN: usize = 3_000;

    pub(crate) const fn new(now: Instant) -> Self {
        Self {
            next: 0,
            sent: BTreeMap::new(),
            bytes: 0,
            expired: 0,
            round_trip: None,
            rate: DeliveryRate::new(now),
        }
    }

    /// Returns the number of the next fragment, of this exchange.
    pub(crate) fn send(
        &mut self,
        exchange: u64,
        content: Content,
        bytes: usize,
        open: &mut OpenExchanges,
        now: Instant,
    ) -> u32 {
        open.send(exchange);
        self.number(Sent { exchange: Some(exchange), content, bytes, at: now })
    }

    /// Returns the number of the next fragment, which has no updates.
    pub(crate) fn send_empty(&mut self, bytes: usize, now: Instant) -> u32 {
        self.number(Sent { exchange: None, content: Content::new(), bytes, at: now })
    }

    fn number(&mut self, sent: Sent) -> u32 {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.bytes += sent.bytes;
        self.sent.insert(number, sent);
        number
    }

    /// Returns whether a fragment has been acknowledged.
    pub(crate) const fn is_acknowledged(&self) -> bool {
        self.round_trip.is_some()
    }

    /// Takes the ranges of an observer's report, and returns what they end.
    pub(crate) fn acknowledge(
        &mut self,
        ranges: &[(u32, u32)],
        now: Instant,
        open: &mut OpenExchanges,
    ) {
        let mut received = 0;
        let mut newest = None;
        for (first, last) in ranges {
            let numbers: Vec<u32> =
                self.sent.range(*first..=*last).map(|(number, _)| *number).collect();
            for number in numbers {
                let Some(sent) = self.sent.remove(&number) else { continue };
                self.bytes -= sent.bytes;
                received += sent.bytes;
                newest = newest.max(Some(sent.at));
                open.settle(sent, false);
            }
        }
        if let Some(at) = newest {
            self.expired = 0;
            let round_trip = now.since(at);
            self.round_trip =
                Some(self.round_trip.map_or(round_trip, |least| least.min(round_trip)));
            self.rate.add(received, now);
        }
        let highest = ranges.first().map_or(0, |(_, last)| *last);
        let overtaken: Vec<u32> = self
            .sent
            .range(..highest)
            .map(|(number, _)| *number)
            .filter(|number| highest.wrapping_sub(*number) as usize >= Self::REORDER)
            .collect();
        for number in overtaken {
            self.lose(number, open);
        }
    }

    /// Counts fragments that are overdue as lost, and returns when the next one is overdue.
    pub(crate) fn expire(&mut self, now: Instant, open: &mut OpenExchanges) -> Option<Instant> {
        let limit = self.timeout();
        let before = self.sent.len();
        let mut next = None;
        while let Some((number, sent)) = self.sent.first_key_value() {
            if now.since(sent.at) < limit {
                next = Some(sent.at + limit);
                break;
            }
            let number = *number;
            self.lose(number, open);
        }
        if self.sent.len() < before {
            self.expired = (self.expired + 1).min(Self::DOUBLED_MAX);
        }
        next
    }

    /// Returns the time after which a fragment is lost. It doubles with each loss until something is acknowledged, so
    /// that a round trip of any length is measured at last.
    fn timeout(&self) -> Duration {
        let least = self.round_trip.unwrap_or(Duration::from_nanos(0)).mul_div(4, 1);
        Self::TIMEOUT.max(least).mul_div(1 << self.expired, 1)
    }

    fn lose(&mut self, number: u32, open: &mut OpenExchanges) {
        let Some(sent) = self.sent.remove(&number) else { return };
        self.bytes -= sent.bytes;
        open.settle(sent, true);
    }

    /// Returns how many bytes may be sent now.
    pub(crate) fn room(&self) -> usize {
        let round_trip = self
            .round_trip
            .unwrap_or(Duration::from_millis(100))
            .saturating_add(DeliveryRate::INTERVAL);
        self.rate.bytes_in(round_trip).max(Self::WINDOW_MIN).saturating_sub(self.bytes)
    }
}

/// The rate of acknowledged bytes: the greatest of the last intervals, with room to grow.
#[derive(Clone, Debug)]
struct DeliveryRate {
    /// Bytes of the running interval and of those before it, newest first.
    intervals: [usize; 8],
    since: Instant,
}

impl DeliveryRate {
    /// The interval of reports.
    const INTERVAL: Duration = Duration::from_millis(100);

    const fn new(now: Instant) -> Self {
        Self { intervals: [0; 8], since: now }
    }

    fn add(&mut self, bytes: usize, now: Instant) {
        while now.since(self.since) >= Self::INTERVAL {
            self.intervals.rotate_right(1);
            if let Some(first) = self.intervals.first_mut() {
                *first = 0;
            }
            self.since += Self::INTERVAL;
            if now.since(self.since) > Duration::from_secs(1) {
                self.intervals = [0; 8];
                self.since = now;
            }
        }
        if let Some(first) = self.intervals.first_mut() {
            *first += bytes;
        }
    }

    /// Returns one and a quarter of the greatest bytes of an interval, for a time of another length.
    fn bytes_in(&self, time: Duration) -> usize {
        let greatest = self.intervals.iter().max().copied().unwrap_or(0) as u64;
        let bytes = Duration::from_nanos(greatest)
            .mul_div(time.as_nanos() / 1_000, Self::INTERVAL.as_nanos() / 1_000);
        usize::try_from(bytes.as_nanos().saturating_mul(5) / 4).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn whole(exchange: u64) -> Arrival {
        Arrival { exchange, part: None }
    }

    fn content(object: u32) -> Content {
        vec![(ObjectIndex(object), GroupMask::of(0))]
    }

    #[test]
    fn an_exchange_is_whole_when_all_its_fragments_are_acknowledged() {
        let mut flight = Flight::new(at(0));
        let mut open = OpenExchanges::default();
        let mut send =
            |exchange, object, now| flight.send(exchange, content(object), 100, &mut open, now);
        assert_eq!([send(7, 1, at(0)), send(7, 2, at(0)), send(8, 3, at(1))], [0, 1, 2]);
        flight.acknowledge(&[(2, 2), (0, 0)], at(20), &mut open);
        assert_eq!(open.ended(), [whole(8)]);
        flight.acknowledge(&[(0, 2)], at(40), &mut open);
        assert_eq!(open.ended(), [whole(7)]);
        assert_eq!(flight.bytes, 0);
    }

    #[test]
    fn an_overtaken_or_old_fragment_is_lost_once() {
        let mut flight = Flight::new(at(0));
        let mut open = OpenExchanges::default();
        for exchange in [0, 0, 1, 2, 3] {
            flight.send(exchange, content(5), 100, &mut open, at(0));
        }
        flight.acknowledge(&[(3, 3), (1, 1)], at(10), &mut open);
        assert_eq!(open.ended(), [whole(2), Arrival { exchange: 0, part: Some(content(5)) }]);
        assert_eq!(flight.expire(at(999), &mut open), Some(at(1_000)));
        assert_eq!(flight.expire(at(1_000), &mut open), None);
        let lost = |exchange| Arrival { exchange, part: Some(Vec::new()) };
        assert_eq!(open.ended(), [lost(1), lost(3)]);
        flight.acknowledge(&[(0, 4)], at(1_001), &mut open);
        assert_eq!(open.ended(), [], "a late acknowledgement changes nothing");
        assert_eq!(flight.bytes, 0);
    }

    #[test]
    fn the_window_follows_the_rate_of_acknowledgements() {
        let mut flight = Flight::new(at(0));
        let mut open = OpenExchanges::default();
        assert_eq!(flight.room(), Flight::WINDOW_MIN);
        for step in 0..20 {
            let number = flight.send(step, Vec::new(), 12_500, &mut open, at(step * 100));
            flight.acknowledge(&[(number, number)], at(step * 100 + 50), &mut open);
        }
        let room = flight.room();
        assert!(
            (15_000..=30_000).contains(&room),
            "{room} bytes for 125 kB/s, 50 ms and a report of 100 ms"
        );
    }

    #[test]
    fn an_exchange_of_both_classes_ends_with_its_last_fragment() {
        let [mut promised, mut losable] = [(); 2].map(|()| Flight::new(at(0)));
        let mut open = OpenExchanges::default();
        let kept = promised.send(1, content(1), 100, &mut open, at(0));
        losable.send(1, content(2), 100, &mut open, at(0));
        promised.acknowledge(&[(kept, kept)], at(10), &mut open);
        assert_eq!(open.ended(), []);
        losable.expire(at(1_000), &mut open);
        assert_eq!(open.ended(), [Arrival { exchange: 1, part: Some(content(1)) }]);
    }

    #[test]
    fn a_round_trip_beyond_the_time_limit_is_measured() {
        let mut flight = Flight::new(at(0));
        let mut open = OpenExchanges::default();
        let mut now = 0;
        for _ in 0..4 {
            let number = flight.send(1, Vec::new(), 100, &mut open, at(now));
            flight.expire(at(now + 3_000), &mut open);
            flight.acknowledge(&[(number, number)], at(now + 3_000), &mut open);
            now += 3_000;
        }
        assert_eq!(flight.round_trip, Some(Duration::from_millis(3_000)));
    }
}

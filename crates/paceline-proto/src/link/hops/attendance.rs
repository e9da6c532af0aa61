//! When a hop sends although nothing is queued for it, and when its silence means that it is down.
//!
//! An end that was asked for an acknowledgement answers, and the answer asks for nothing. So a probe and its answer prove
//! both ends to each other. The end that was asked waits longer with its own probe, so that one of them probes for both.

use crate::probes::ProbeInterval;
use paceline_sched::{Duration, Instant};

/// The shortest interval of greetings until both ends know each other's epoch, also as a part of the interval of probes, and
/// the most doublings of it.
///
/// A new TCP connection may have ten packets in flight (RFC 6928, section 2). Greetings that are not spread over a long
/// round trip would fill it, and the end would be silent until the first acknowledgement.
const GREET_EVERY: Duration = Duration::from_millis(100);
const GREET_PART: u64 = 32;
const GREET_DOUBLED_MAX: u32 = 3;
/// A neighbour that was never up and has not answered more greetings than this gets further ones more and more rarely.
const GREETED_OFTEN: u32 = 8;
const GREET_RARELY: Duration = Duration::from_secs(10);
/// A hop that is not up and was silent for this time is forgotten, or later on a slow link.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(5);
const FORGOTTEN_PART: u64 = 4;
/// An end that is probed probes by itself after so many intervals, so that it knows the round trip, too.
const OWN_PROBE: u64 = 10;
/// The most doublings of the time after which an unanswered request is repeated (RFC 9002, section 6.2).
const DOUBLED_MAX: u32 = 3;

/// The greetings that a neighbour got before it was removed: their number, and the time of the last one.
pub(super) type Greeted = (u32, Instant);

/// The times of the last frames to and from a hop, and the intervals of both ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attendance {
    /// The interval that the capacity allows, and the one that the round trip allows.
    own: ProbeInterval,
    trip: ProbeInterval,
    theirs: ProbeInterval,
    last_heard: Instant,
    last_sent: Instant,
    /// The newest request for an acknowledgement of this end; `None` before the first one, which is due at once.
    last_ask: Option<Instant>,
    /// The arrival of the newest request of the other end.
    asked_at: Option<Instant>,
    /// The requests since the last answer.
    unanswered: u32,
    /// The frames since the begin: greetings, until the hop is up.
    frames: u32,
    /// The time of a change of this end's interval that the other end may not know yet.
    changed_at: Option<Instant>,
}

impl Attendance {
    /// Returns the state of a hop that was found at `now`.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            own: ProbeInterval::SHORTEST,
            trip: ProbeInterval::SHORTEST,
            theirs: ProbeInterval::SHORTEST,
            last_heard: now,
            last_sent: Instant::ZERO,
            last_ask: None,
            asked_at: None,
            unanswered: 0,
            frames: 0,
            changed_at: None,
        }
    }

    /// Returns the state after the hop has restarted. The other end may know neither.
    pub(super) fn restarted(&self, now: Instant) -> Self {
        Self { own: self.own, trip: self.trip, theirs: self.theirs, ..Self::new(now) }
    }

    /// Returns this end's own interval.
    pub(super) fn own(&self) -> ProbeInterval {
        self.own.max(self.trip)
    }

    /// Sets the interval that the capacity allows. A probe announces a change, and is repeated once per round trip, or at the
    /// shortest interval, until it is answered.
    pub(super) fn set_own(&mut self, now: Instant, interval: ProbeInterval) {
        self.change(now, |it| it.own = interval);
    }

    /// Follows the round trip of the path, but not a slightly shorter one: each change is announced.
    pub(super) fn note_trip(&mut self, now: Instant, trip: Duration) {
        let (trip, old) = (ProbeInterval::at_least(trip), self.trip);
        let much_shorter =
            trip.time() < old.time().mul_div(3, 4) || trip == ProbeInterval::SHORTEST;
        if trip > old || much_shorter {
            self.change(now, |it| it.trip = trip);
        }
    }

    fn change(&mut self, now: Instant, set: impl FnOnce(&mut Self)) {
        let before = self.own();
        set(self);
        if self.own() != before {
            self.changed_at = Some(now);
        }
    }

    /// Returns the interval on this hop: the longer one of both ends.
    pub(super) fn interval(&self) -> ProbeInterval {
        self.own().max(self.theirs)
    }

    /// Records a frame of the other end, with its interval.
    pub(super) fn note_heard(&mut self, now: Instant, theirs: ProbeInterval) {
        self.last_heard = self.last_heard.max(now);
        self.theirs = theirs;
    }

    /// Records a request of the other end for an acknowledgement.
    pub(super) const fn note_asked(&mut self, now: Instant) {
        self.asked_at = Some(now);
    }

    /// Records the answer to a request that this end sent at `sent`.
    pub(super) fn note_answered(&mut self, sent: Instant) {
        self.unanswered = 0;
        self.changed_at = self.changed_at.filter(|changed| sent < *changed);
    }

    /// Records a frame that has left the wire at `left`, with or without a request.
    pub(super) fn note_sent(&mut self, now: Instant, left: Instant, asks: bool) {
        self.last_sent = now;
        self.frames = self.frames.saturating_add(1);
        if asks {
            self.last_ask = Some(left);
            self.unanswered = self.unanswered.saturating_add(1);
        }
    }

    /// Returns the time of the newest request, or the begin of all time.
    pub(super) fn last_ask(&self) -> Instant {
        self.last_ask.unwrap_or(Instant::ZERO)
    }

    /// Returns the number of times that the patience with an answer has doubled.
    pub(super) fn doublings(&self) -> u32 {
        self.unanswered.saturating_sub(1).min(DOUBLED_MAX)
    }

    /// Returns the number of frames since the begin, and the time of the last one.
    pub(super) const fn greeted(&self) -> Greeted {
        (self.frames, self.last_sent)
    }

    /// Continues greetings that have begun earlier.
    pub(super) const fn set_greeted(&mut self, (frames, last_sent): Greeted) {
        (self.frames, self.last_sent) = (frames, last_sent);
    }

    /// Returns the time of the next greeting, while the hop is not up. `was_up` is true if the other end has answered before.
    pub(super) fn next_greeting(&self, was_up: bool) -> Instant {
        let every = GREET_EVERY.max(self.interval().time().mul_div(1, GREET_PART));
        let doubled = self.frames.saturating_sub(1).min(GREET_DOUBLED_MAX);
        let every = every.mul_div(1 << doubled, 1);
        let often = self.frames.saturating_sub(GREETED_OFTEN);
        if was_up || often == 0 {
            return self.last_sent + every;
        }
        self.last_sent + every.mul_div(1 << often.min(10), 1).min(GREET_RARELY.max(every))
    }

    /// Returns the time of the next probe, if nothing else is sent before. `is_measured` is true if the round trip is known.
    pub(super) fn next_probe(&self, is_measured: bool) -> Instant {
        let Some(last) = self.last_ask else { return Instant::ZERO };
        if let Some(changed) = self.changed_at {
            let again = last + self.trip.time();
            return if last < changed { changed } else { again };
        }
        let every = self.interval().time();
        let own = last + every;
        let Some(asked) = self.asked_at.filter(|_| is_measured) else { return own };
        let theirs = asked + every.mul_div(3, 2);
        own.max(theirs).min(last + every.mul_div(OWN_PROBE, 1))
    }

    /// Returns the time at which a silent hop goes down, or is forgotten if it is not up.
    pub(super) fn patience_ends(&self, up: bool) -> Instant {
        let silence = self.interval().silence_max();
        let forgotten = || FORGOTTEN_AFTER.max(silence.mul_div(1, FORGOTTEN_PART));
        self.last_heard + if up { silence } else { forgotten() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Instant {
        Instant::from_millis(60_000 + millis)
    }

    #[test]
    fn greetings_during_a_round_trip_of_three_seconds_fit_a_new_tcp_connection() {
        let mut attendance = Attendance::new(at(0));
        let mut sent = Vec::new();
        while attendance.next_greeting(false) <= at(3_000) {
            let now = attendance.next_greeting(false).max(at(0));
            attendance.note_sent(now, now, false);
            sent.push(now.since(at(0)).as_micros() / 1_000);
        }
        assert_eq!(sent, [0, 100, 300, 700, 1_500, 2_300]);
        assert_eq!(attendance.restarted(at(9)).next_greeting(true), Instant::from_millis(100));
    }

    #[test]
    fn a_neighbour_that_never_answers_is_greeted_rarely() {
        let mut attendance = Attendance::new(at(0));
        let mut gaps = |was_up| {
            let gap = |_| {
                let (before, next) = (attendance.last_sent, attendance.next_greeting(was_up));
                let next = next.max(at(0));
                attendance.note_sent(next, next, false);
                next.since(before).as_micros() / 1_000
            };
            (0..15).map(gap).skip(1).collect::<Vec<_>>()
        };
        let long = [1_600, 3_200, 6_400, 10_000, 10_000, 10_000];
        let first = [100, 200, 400, 800, 800, 800, 800, 800];
        assert_eq!(gaps(false), [&first[..], &long[..]].concat());
        assert_eq!(gaps(true), [800; 14]);
    }

    #[test]
    fn an_end_that_is_probed_probes_rarely_unless_it_knows_no_round_trip() {
        let mut attendance = Attendance::new(at(0));
        attendance.note_sent(at(0), at(0), true);
        attendance.note_asked(at(10));
        assert_eq!(attendance.next_probe(false), at(600));
        assert_eq!(attendance.next_probe(true), at(910));
        for probe in 1..20 {
            attendance.note_asked(at(probe * 600));
        }
        assert_eq!(attendance.next_probe(true), at(6_000));
    }

    #[test]
    fn both_ends_use_the_longer_interval_and_announce_a_new_one() {
        let (slow, slower) = (ProbeInterval::from_tenths(50), ProbeInterval::from_tenths(70));
        let (slow, slower) = (slow.unwrap(), slower.unwrap());
        let mut attendance = Attendance::new(at(0));
        attendance.note_sent(at(0), at(0), true);
        attendance.set_own(at(10), slow);
        attendance.note_answered(at(0));
        assert_eq!(attendance.next_probe(true), at(10), "at once");
        attendance.note_sent(at(20), at(20), true);
        assert_eq!(attendance.next_probe(true), at(620), "again");
        attendance.note_answered(at(20));
        assert_eq!(attendance.next_probe(true), at(5_020));
        attendance.note_heard(at(30), slower);
        assert_eq!((attendance.interval(), attendance.patience_ends(true)), (slower, at(21_030)));
        attendance.note_heard(at(40), ProbeInterval::SHORTEST);
        assert_eq!(attendance.patience_ends(true), at(15_040));
        assert_eq!(attendance.restarted(at(50)).interval(), slow);
    }

    #[test]
    fn a_probe_waits_for_a_long_round_trip() {
        let mut attendance = Attendance::new(at(0));
        attendance.note_sent(at(0), at(0), true);
        let mut tenths = |trip: u64| {
            attendance.note_trip(at(1), Duration::from_millis(trip));
            (attendance.own().tenths(), attendance.changed_at.take().is_some())
        };
        assert_eq!(tenths(590), (6, false));
        assert_eq!(tenths(4_010), (41, true));
        assert_eq!(tenths(3_900), (41, false), "slightly shorter");
        assert_eq!(tenths(3_000), (30, true));
        assert_eq!(tenths(500), (6, true));
        attendance.note_trip(at(1), Duration::from_secs(4));
        assert_eq!(attendance.next_probe(true), at(1), "at once");
        attendance.note_sent(at(2), at(2), true);
        assert_eq!(attendance.next_probe(true), at(4_002), "again");
        assert_eq!(attendance.patience_ends(true), at(12_000));
        assert_eq!(attendance.restarted(at(9)).own().tenths(), 40);
    }

    #[test]
    fn patience_with_an_answer_doubles_up_to_three_times() {
        let mut attendance = Attendance::new(at(0));
        let doublings: Vec<u32> = (0..6)
            .map(|sent| {
                attendance.note_sent(at(sent), at(sent), true);
                attendance.doublings()
            })
            .collect();
        assert_eq!(doublings, [0, 1, 2, 3, 3, 3]);
        attendance.note_answered(at(5));
        assert_eq!(attendance.doublings(), 0);
    }
}

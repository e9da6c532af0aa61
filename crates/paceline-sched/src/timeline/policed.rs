//! Policing of samples as they arrive.
//!
//! A demoted sample is served in round robin with best effort, behind the other samples of its stream.
//! The next conforming sample of its stream replaces it, as on the links of a node: conforming samples
//! never wait for demoted ones. It has the deadline of its contract and is counted like any other
//! sample, also if it is replaced.

use super::stream::Offer;
use super::{Outcome, SampleDecision, Timeline};
use crate::discipline::{Scheduler, StreamIndex};
use crate::time::{Duration, Instant};
use core::cmp::Reverse;

impl Timeline {
    /// Schedules the next policing of a stream, not before `earliest`.
    pub(super) fn expect(&mut self, stream: StreamIndex, earliest: Instant) {
        let end = self.setup.end;
        let Some(line) = self.line(stream).filter(|line| line.spec.police.is_some()) else {
            return;
        };
        let next = line.spec.arrivals.nth(line.offered).map(|at| at.max(earliest));
        if let Some(at) = next.filter(|at| *at < end) {
            self.offers.push(Reverse((at, stream.0)));
        }
    }

    /// Polices all arrivals that are due. Returns the next decision that follows.
    pub(super) fn police(&mut self) -> Option<SampleDecision> {
        loop {
            if let Some(decision) = self.make_way() {
                return Some(decision);
            }
            let &Reverse((at, place)) = self.offers.peek().filter(|due| due.0.0 <= self.now)?;
            self.offers.pop();
            let stream = StreamIndex(place);
            let offer = self.line(stream)?.offer(at);
            match offer {
                Offer::Waits(until) => self.expect(stream, until),
                Offer::Passes | Offer::Refused(_) => self.expect(stream, at),
            }
            match offer {
                Offer::Passes => self.making_way = Some((at, stream)),
                Offer::Waits(_) => {}
                Offer::Refused(seq) => {
                    self.line(stream)?.decided += 1;
                    let outcome = Outcome::Policed;
                    return Some(SampleDecision { outcome, ..self.given_up(at, stream, seq) });
                }
            }
        }
    }

    /// Returns the decision about the next demoted sample that a conforming one replaces.
    fn make_way(&mut self) -> Option<SampleDecision> {
        let (at, stream) = self.making_way?;
        let line = self.line(stream)?;
        if line.head_makes_way()
            && let Some(head) = line.head.take()
        {
            let seq = line.seq;
            line.decided += 1;
            self.discipline.remove_head(stream);
            let (bytes, busy) = (head.sent, head.busy);
            return Some(SampleDecision { bytes, busy, ..self.given_up(at, stream, seq) });
        }
        if let Some(seq) = line.take_demoted() {
            line.decided += 1;
            self.discipline.handle_skipped(stream);
            return Some(self.given_up(at, stream, seq));
        }
        let idle = line.head.is_none();
        self.making_way = None;
        if idle {
            self.announce(stream);
        }
        None
    }

    fn given_up(&self, at: Instant, stream: StreamIndex, seq: u64) -> SampleDecision {
        SampleDecision {
            at,
            stream,
            seq,
            outcome: Outcome::Dropped,
            finish: None,
            delay: None,
            bytes: 0,
            busy: Duration::ZERO,
            window: self.discipline.window(stream),
        }
    }
}

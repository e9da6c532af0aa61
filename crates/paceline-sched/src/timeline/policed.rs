//! What policers say of samples as they arrive.
//!
//! What is demoted takes its turns among best effort, behind the other samples of its stream, and makes way for
//! the next that conforms, as on the links of a node: what was promised never waits for what was not. It has the
//! deadline of its contract and is judged as all others are, also when it makes way.

use super::stream::Offer;
use super::{Decision, Outcome, Timeline};
use crate::discipline::{Scheduler, StreamIndex};
use crate::time::{Duration, Instant};
use core::cmp::Reverse;

impl Timeline {
    /// Notes when the policers of a stream are asked next, not before `earliest`.
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

    /// Asks the policers about what arrives by now; the next sample that is given up for it.
    pub(super) fn police(&mut self) -> Option<Decision> {
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
                    return Some(Decision { outcome, ..self.given_up(at, stream, seq) });
                }
            }
        }
    }

    /// The next demoted sample that makes way for one of its stream that came and conforms.
    fn make_way(&mut self) -> Option<Decision> {
        let (at, stream) = self.making_way?;
        let line = self.line(stream)?;
        if line.head_makes_way()
            && let Some(head) = line.head.take()
        {
            let seq = line.seq;
            line.decided += 1;
            self.discipline.remove_head(stream);
            let (bytes, busy) = (head.sent, head.busy);
            return Some(Decision { bytes, busy, ..self.given_up(at, stream, seq) });
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

    fn given_up(&self, at: Instant, stream: StreamIndex, seq: u64) -> Decision {
        Decision {
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

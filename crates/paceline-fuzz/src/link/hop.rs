//! A hop of the model: its state, and the notices still to send to it.

use super::model::Aborted;
use bytes::Bytes;
use paceline_proto::link::LinkEvent;
use paceline_proto::{NodeId, ProbeInterval};
use paceline_sched::{Duration, Instant};
use std::collections::VecDeque;

const FORGOTTEN_AFTER: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Hop {
    pub(super) node: NodeId,
    pub(super) up: bool,
    /// The local epoch. `known` is the last known epoch of the other end.
    pub(super) epoch: u32,
    known: u32,
    last_heard: Instant,
    /// The interval of probes that the link has announced: it follows the round trip, which the model does not measure.
    pub(super) probes: ProbeInterval,
    /// Messages not sent in full, and the number of bytes sent of the first one.
    pub(super) control: VecDeque<Bytes>,
    pub(super) control_sent: usize,
    /// Streams to close, each with the number that its next sample would have had.
    pub(super) closes: Vec<(u32, u64)>,
    /// Closes already sent. The link may repeat them, since the other end may have missed them.
    closed: Vec<(u32, u64)>,
    pub(super) aborts: Vec<Aborted>,
}

impl Hop {
    pub(super) fn new(now: Instant, node: NodeId, epoch: u32) -> Self {
        Self {
            node,
            up: false,
            epoch,
            known: 0,
            last_heard: now,
            probes: ProbeInterval::SHORTEST,
            control: VecDeque::new(),
            control_sent: 0,
            closes: Vec::new(),
            closed: Vec::new(),
            aborts: Vec::new(),
        }
    }

    /// Handles an answer of the other end, which is in `epoch` and knows the local epoch as `knows`.
    pub(super) fn hear(&mut self, now: Instant, epoch: u32, knows: u32) -> Option<LinkEvent> {
        if epoch < self.known {
            return None;
        }
        self.last_heard = now;
        let anew = epoch > self.known;
        self.known = epoch;
        if anew && self.up {
            return Some(self.restart(now));
        }
        if knows != self.epoch || self.up {
            return None;
        }
        self.up = true;
        Some(LinkEvent::HopUp(self.node))
    }

    pub(super) fn pass(&mut self, now: Instant) -> Option<LinkEvent> {
        let silent = self.up && now.since(self.last_heard) >= self.probes.silence_max();
        silent.then(|| self.restart(now))
    }

    pub(super) fn is_forgotten(&self, now: Instant) -> bool {
        let after = FORGOTTEN_AFTER.max(self.probes.silence_max().mul_div(1, 4));
        !self.up && now.since(self.last_heard) >= after
    }

    fn restart(&mut self, now: Instant) -> LinkEvent {
        let epoch = self.epoch + 1;
        let (known, probes) = (self.known, self.probes);
        *self = Self { known, probes, ..self.found_again(now, epoch) };
        LinkEvent::HopDown(self.node)
    }

    /// Checks that the next piece of control is `payload`.
    pub(super) fn sent_control(&mut self, total: Option<usize>, last: bool, payload: &[u8]) {
        let message = self.control.front().expect("control that nobody queued");
        let begin = self.control_sent;
        let end = begin + payload.len();
        assert_eq!(total, (begin == 0).then_some(message.len()), "control from byte {begin}");
        assert_eq!(message.get(begin..end), Some(payload));
        assert_eq!(last, end == message.len());
        self.control_sent = end;
        if last {
            self.control.pop_front();
            self.control_sent = 0;
        }
    }

    pub(super) fn sent_close(&mut self, close: (u32, u64)) {
        if let Some(place) = self.closes.iter().position(|other| *other == close) {
            self.closed.push(self.closes.remove(place));
        }
        assert!(self.closed.contains(&close), "{close:?} was not closed");
    }

    /// Returns the state after the same neighbour was found again. Notices of closed streams are kept.
    pub(super) fn found_again(&mut self, now: Instant, epoch: u32) -> Self {
        let (closes, closed) = (self.closes.split_off(0), self.closed.split_off(0));
        Self { closes, closed, ..Self::new(now, self.node, epoch) }
    }

    pub(super) fn expects_abort(&self, id: u32, number: u64) -> bool {
        self.aborts.contains(&Aborted { hop: self.node, id, number })
    }

    pub(super) fn sent_abort(&mut self, id: u32, number: u64) {
        let aborted = Aborted { hop: self.node, id, number };
        let place = self.aborts.iter().position(|other| *other == aborted);
        self.aborts.remove(place.expect("an abort of a sample that was not aborted"));
    }
}

//! A hop of the model: when it is up, and what is still to be said to it.

use super::model::Aborted;
use bytes::Bytes;
use paceline_proto::NodeId;
use paceline_proto::link::LinkEvent;
use paceline_sched::{Duration, Instant};
use std::collections::VecDeque;

const SILENCE_MAX: Duration = Duration::from_millis(1_800);
const FORGOTTEN_AFTER: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Hop {
    pub(super) node: NodeId,
    pub(super) up: bool,
    /// Our epoch, and the other end's as we know it.
    pub(super) epoch: u32,
    known: u32,
    last_heard: Instant,
    /// Messages not wholly sent, and how much of the first one was.
    pub(super) control: VecDeque<Bytes>,
    pub(super) control_sent: usize,
    pub(super) closes: Vec<u32>,
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
            control: VecDeque::new(),
            control_sent: 0,
            closes: Vec::new(),
            aborts: Vec::new(),
        }
    }

    /// The other end, of `epoch`, says that it knows ours as `knows`.
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
        let silent = self.up && now.since(self.last_heard) >= SILENCE_MAX;
        silent.then(|| self.restart(now))
    }

    pub(super) fn is_forgotten(&self, now: Instant) -> bool {
        !self.up && now.since(self.last_heard) >= FORGOTTEN_AFTER
    }

    fn restart(&mut self, now: Instant) -> LinkEvent {
        *self = Self { known: self.known, ..Self::new(now, self.node, self.epoch + 1) };
        LinkEvent::HopDown(self.node)
    }

    /// The next piece of control is `payload`.
    pub(super) fn said(&mut self, total: Option<usize>, last: bool, payload: &[u8]) {
        let message = self.control.front().expect("control that nobody gave");
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

    pub(super) fn said_closed(&mut self, id: u32) {
        let place = self.closes.iter().position(|closed| *closed == id);
        self.closes.remove(place.expect("a close of what was not closed"));
    }

    pub(super) fn owes_abort(&self, id: u32, number: u64) -> bool {
        self.aborts.contains(&Aborted { hop: self.node, id, number })
    }

    pub(super) fn said_aborted(&mut self, id: u32, number: u64) {
        let aborted = Aborted { hop: self.node, id, number };
        let place = self.aborts.iter().position(|other| *other == aborted);
        self.aborts.remove(place.expect("an abort of what was not aborted"));
    }
}

//! The invariants after every step and at the end.

use super::{FLIGHT_FRAMES_MAX, Lab, ROUNDS_MAX};
use crate::link::hop::Hop;
use crate::link::line::Line;
use bytes::Bytes;
use paceline_proto::{DropReason, StreamCounters};
use paceline_sched::Duration;
use paceline_sched::discipline::StreamIndex;

impl Lab {
    /// Checks the invariants that hold after every step.
    pub(in crate::link) fn check(&self) {
        let mut seen = 0;
        for (index, spec, counters, waiting) in self.link.streams() {
            let line = &self.model.lines[&index.0];
            assert_eq!(*spec, line.spec);
            self.compare(index.0, line, counters, waiting);
            seen += 1;
        }
        assert_eq!(seen, self.model.lines.len());
        for (node, hop) in self.link.hops() {
            assert!(hop.flight_frames() <= FLIGHT_FRAMES_MAX, "{} frames", hop.flight_frames());
            let window = (12 + 3) * (self.setup.frame_bytes() + 100);
            assert!(hop.flight_bytes() <= window, "{} bytes to {node}", hop.flight_bytes());
            assert!(!self.setup.ordered() || hop.flight_frames() == 0, "{node} owes nothing");
        }
    }

    pub(super) fn compare(&self, index: u32, line: &Line, real: StreamCounters, waiting: usize) {
        let counts = &line.counts;
        let accounted = real.sent + real.drops.total();
        assert_eq!(real.offered, accounted + waiting as u64, "stream {index}: the sums agree");
        assert_eq!(real.offered, counts.offered, "stream {index}: offered");
        assert_eq!(real.sent, counts.sent, "stream {index}: sent");
        assert_eq!(real.bytes, counts.bytes, "stream {index}: bytes");
        for reason in DropReason::ALL {
            let count = counts.drops.iter().filter(|other| **other == reason).count();
            assert_eq!(real.drops.of(reason), count as u64, "stream {index}: {reason}");
        }
        if self.setup.knows_deadlines() {
            assert_eq!(real.late, counts.late, "stream {index}: late");
            assert_eq!(real.violations, line.violations(), "stream {index}: violations");
        }
        assert!(real.late <= real.sent);
    }

    /// Checks that without faults all queued samples are sent and new samples arrive.
    pub(in crate::link) fn finish(&mut self) {
        (self.setup.prompt, self.lose) = (true, 0);
        self.drain();
        let open: Vec<u32> = self.model.lines.keys().copied().collect();
        for index in open {
            let seq = self.next_sample;
            let up = self.model.lines[&index].up;
            assert!(up, "stream {index} is up in the end");
            let before = self.model.lines[&index].counts.sent;
            let taken = self.put(index, Bytes::from_static(b"last"), Duration::ZERO);
            assert!(taken, "stream {index}: room for sample {seq}");
            self.drain();
            let line = &self.model.lines[&index];
            assert!(line.counts.sent == before + 1 || line.spec.contract.is_some());
            assert!(line.queue.is_empty() && self.link.is_settled(StreamIndex(index)));
        }
        for hop in &self.hops {
            assert!(hop.control.is_empty() && hop.aborts.is_empty());
            assert!(hop.closes.is_empty() || self.setup.lossy);
        }
        self.check();
    }

    /// Lets time pass until all queues are empty and no answer is pending.
    fn drain(&mut self) {
        for _ in 0..ROUNDS_MAX {
            self.send();
            (0..self.setup.hops).for_each(|hop| self.answer(hop));
            self.send();
            let waits = self.model.lines.values().any(|line| !line.queue.is_empty());
            // A close announced in a lost frame may stay pending.
            let closed = |hop: &Hop| self.setup.lossy || hop.closes.is_empty();
            let sends = |hop: &Hop| {
                !hop.up || !hop.control.is_empty() || !hop.aborts.is_empty() || !closed(hop)
            };
            let flies = self.link.hops().any(|(_, hop)| hop.flight_frames() > 0);
            if !waits && !self.hops.iter().any(sends) && !flies {
                return;
            }
            // Samples queued for hops that are down are freed in steps, each due at once.
            for _ in 0..ROUNDS_MAX {
                if self.link.poll_timeout() > self.now {
                    break;
                }
                self.tick();
                self.send();
            }
            let wake = self.link.poll_timeout();
            assert!(wake > self.now || !self.setup.ordered(), "requests the wakeup {wake} again");
            self.now = wake.max(self.now + Duration::from_nanos(1));
            self.tick();
        }
        panic!("it never settles");
    }
}

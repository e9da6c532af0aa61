use super::*;
use crate::shell::port::{Announcements, RingEnd, ring};
use crate::shell::wake::Waker;
use bytes::Bytes;
use crossbeam_queue::ArrayQueue;
use paceline_node::install::Installation;
use paceline_proto::ingress::Stamper;
use paceline_proto::plan::OutputPlan;
use paceline_proto::video::GroupBudget;
use paceline_proto::{Encoding, Form, Kind, NodeId, Timestamp};
use paceline_sched::discipline::StreamIndex;

/// The publisher's and the engine's side of an opening.
struct Ends {
    opening: Opening,
    installs: Installs,
    stamper: Stamper,
}

impl Ends {
    fn new(room: &Arc<WaitingBytes>) -> Self {
        let (installs, stamper) = (Installs::default(), Stamper::default());
        Self { opening: Opening::new(None, room.clone()), installs, stamper }
    }

    fn put(&mut self, bytes: usize) -> PutReport {
        let payload = Bytes::from(vec![0; bytes]);
        let captured = Timestamp { nanos: 0, error: 0 };
        let (now, kind, encoding) = (Instant::ZERO, Kind::Data, Encoding::Bytes);
        let sample = self.stamper.stamp(now, captured, kind, encoding, payload);
        self.opening.put(&self.installs, now, sample)
    }

    /// Installs the output to a link.
    fn install(&self) -> RingEnd {
        let link = Announcements {
            ready: ArrayQueue::new(1),
            waker: Arc::new(Waker::default()),
            room: Event::new(),
        };
        let (port, end) = ring(StreamIndex(0), Arc::new(link));
        let plan = OutputPlan::new(Target::Hop(NodeId(1)), Form::FULL);
        let outputs = vec![(plan, Some(Port::Ring(port)))];
        self.installs.post(Installation {
            period: None,
            groups: GroupBudget::default(),
            processor: None,
            outputs,
        });
        end
    }
}

/// Returns the sequence numbers of the samples that the link received.
fn got(end: &mut RingEnd) -> Vec<u64> {
    std::iter::from_fn(|| end.consumer.pop().ok()).map(|(_, sample)| sample.seq).collect()
}

#[test]
fn queued_samples_are_sent_in_order_when_the_publisher_opens() {
    let mut ends = Ends::new(&Arc::default());
    for _ in 0..3 {
        assert!(ends.put(10).waits);
    }
    assert!(ends.opening.opened().is_none());
    let mut end = ends.install();
    let put = ends.put(10);
    assert!((put.waits, put.taken) == (true, 0), "other outputs may be missing still: {put:?}");
    assert_eq!(got(&mut end), [0; 0]);
    assert_eq!(ends.opening.open(&ends.installs, true), Missed::default());
    assert_eq!(got(&mut end), [0, 1, 2, 3]);
    let put = ends.put(10);
    assert_eq!((put.waits, put.taken), (false, 1));
    assert_eq!(got(&mut end), [4]);
    assert!(ends.opening.opened().is_some());
}

#[test]
fn samples_without_room_or_answer_are_counted_once() {
    let mut ends = Ends::new(&Arc::default());
    let change = Event::new();
    for n in 0..SAMPLES_MAX + 5 {
        assert_eq!(ends.opening.full(&change).is_some(), n >= SAMPLES_MAX);
        assert_eq!(ends.put(10).waits, n < SAMPLES_MAX);
    }
    let mut end = ends.install();
    let missed = ends.opening.open(&ends.installs, false);
    assert_eq!(missed, Missed { no_room: 5, no_answer: SAMPLES_MAX as u64 });
    assert_eq!(ends.opening.open(&ends.installs, false), Missed::default());
    assert!(got(&mut end).into_iter().eq(0..SAMPLES_MAX as u64), "the existing ones get them");
    assert!(ends.opening.full(&change).is_none());
}

#[test]
fn all_publishers_share_the_queue_byte_limit() {
    let room = Arc::new(WaitingBytes::default());
    let (mut large, mut other) = (Ends::new(&room), Ends::new(&room));
    assert!(large.put(BYTES_MAX + 1).waits, "one sample may wait, of any length");
    assert!(!other.put(1).waits);
    assert!(other.opening.full(&Event::new()).is_some());
    large.opening.open(&large.installs, true);
    assert!(other.put(1).waits, "sent samples wait no longer");
    assert!(other.put(BYTES_MAX - 1).waits);
    assert!(!other.put(1).waits);
    drop(other);
    assert_eq!(room.0.load(Ordering::Relaxed), 0);
}

use super::*;
use crate::carrier::on_wire;
use crate::form::Form;
use crate::ids::PublisherId;
use crate::probes::ProbeInterval;
use crate::receive::{Received, Receiver};
use crate::sample::{Encoding, Kind, Timestamp};
use crate::tag::{Pattern, Tag};
use crate::wire::frame::{FrameBuf, FrameHeader};
use crate::wire::{Reader, STREAMS_MAX};
use paceline_sched::{Contract, Late};

const STREAM: StreamIndex = StreamIndex(0);

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn node(id: u64) -> NodeId {
    NodeId(id)
}

fn publisher() -> PublisherId {
    PublisherId { node: node(1), index: 0 }
}

fn to(hop: NodeId, kind: Kind, contract: Option<Contract>) -> StreamSpec {
    let upstream = Duration::ZERO;
    let (publisher, form, background) = (publisher(), Form::FULL, false);
    StreamSpec {
        upstream,
        contract,
        background,
        ..StreamSpec::best_effort(publisher, hop, form, kind)
    }
}

fn sample(now: Instant, seq: u64, len: usize) -> RawSample {
    RawSample {
        seq,
        captured: Timestamp::default(),
        shift: 0,
        published_at: now,
        doubt: Default::default(),
        kind: Kind::Data,
        encoding: Encoding::Bytes,
        payload: vec![0; len].into(),
        attachment: None,
    }
}

/// One end of a hop: a link and a receiver.
struct End {
    me: NodeId,
    other: NodeId,
    link: Link,
    receiver: Receiver,
    epoch: u32,
    sent: VecDeque<Bytes>,
    got: Vec<u64>,
    lost: u64,
    control: Vec<Bytes>,
}

impl End {
    fn new(me: u64, other: u64, spec: LinkSpec) -> Self {
        let mut end = Self {
            me: node(me),
            other: node(other),
            link: Link::new(spec),
            receiver: Receiver::new(),
            epoch: 0,
            sent: VecDeque::new(),
            got: Vec::new(),
            lost: 0,
            control: Vec::new(),
        };
        end.restart(at(0));
        end
    }

    /// Removes the hop and adds it again, like a transport that has lost its state.
    fn restart(&mut self, now: Instant) {
        self.link.remove_hop(self.other);
        self.epoch += 10;
        self.link.add_hop(now, self.other, self.epoch);
        self.receiver = Receiver::new();
    }

    fn poll(&mut self, now: Instant) {
        self.link.handle_timeout(now);
        let mut frame = FrameBuf::default();
        while let Some(hop) = self.link.poll_frame(now, &mut frame) {
            assert_eq!(hop, self.other);
            self.sent.push_back(frame.to_bytes());
        }
    }

    fn hear(&mut self, now: Instant, frame: Bytes) {
        let (got, lost, control) = (&mut self.got, &mut self.lost, &mut self.control);
        let heard =
            self.receiver.handle_frame(
                now,
                self.link.epoch(self.other),
                frame,
                |item| match item {
                    Received::Sample { sample, .. } => got.push(sample.seq),
                    Received::Lost { lost: gone, .. } => *lost += gone.samples,
                    Received::Control(message) => control.push(message),
                },
            );
        self.link.handle_heard(now, self.other, &heard.unwrap());
    }

    fn hop(&self) -> &Hop {
        self.link.hops().next().unwrap().1
    }
}

fn pair(spec: LinkSpec) -> (End, End) {
    (End::new(1, 2, spec), End::new(2, 1, LinkSpec::default()))
}

/// Lets both ends exchange all frames for `rounds` × 50 ms.
fn talk(now: &mut Instant, a: &mut End, b: &mut End, rounds: usize) {
    for _ in 0..rounds {
        *now += Duration::from_millis(50);
        for end in [&mut *a, &mut *b] {
            if end.link.epoch(end.other) == 0 {
                end.restart(*now); // the hop was forgotten: add it again
            }
        }
        for _ in 0..4 {
            a.poll(*now);
            b.poll(*now);
            a.sent.drain(..).for_each(|frame| b.hear(*now, frame));
            b.sent.drain(..).for_each(|frame| a.hear(*now, frame));
        }
    }
}

fn events(link: &mut Link) -> Vec<LinkEvent> {
    core::iter::from_fn(|| link.poll_event()).collect()
}

/// Performs one step of a handshake with failures of every kind.
fn step(number: usize, now: &mut Instant, a: &mut End, b: &mut End) {
    match number {
        0 => *now += Duration::from_millis(100),
        1 => *now += Duration::from_millis(1_900),
        2 => a.poll(*now),
        3 => b.poll(*now),
        4 => a.sent.pop_front().into_iter().for_each(|frame| b.hear(*now, frame)),
        5 => b.sent.pop_front().into_iter().for_each(|frame| a.hear(*now, frame)),
        6 => drop((a.sent.pop_front(), b.sent.pop_front())),
        7 => a.restart(*now),
        _ => b.restart(*now),
    }
}

#[test]
fn both_ends_come_up_from_any_earlier_state() {
    const STEPS: usize = 9;
    const LENGTH: u32 = 5;
    for begun in [false, true] {
        for history in 0..STEPS.pow(LENGTH) {
            let (mut a, mut b) = pair(LinkSpec::default());
            let mut now = at(10_000);
            if begun {
                talk(&mut now, &mut a, &mut b, 4);
            }
            for place in 0..LENGTH {
                step(history / STEPS.pow(place) % STEPS, &mut now, &mut a, &mut b);
            }
            talk(&mut now, &mut a, &mut b, 8);
            assert!(a.hop().is_up() && b.hop().is_up(), "{begun} {history}");
            for end in [&mut a, &mut b] {
                let last = events(&mut end.link).pop();
                assert_eq!(last, Some(LinkEvent::HopUp(end.other)), "{:?} {history}", end.me);
            }
            assert!(a.link.open_stream(STREAM, to(node(2), Kind::Data, None)));
            assert!(a.link.handle_sample(now, STREAM, sample(now, 7, 10)));
            talk(&mut now, &mut a, &mut b, 1);
            assert_eq!(b.got, [7], "{begun} {history}");
        }
    }
}

#[test]
fn a_stream_continues_after_its_hop_returns() {
    let (mut a, mut b) = pair(LinkSpec::default());
    let mut now = at(1_000);
    assert!(a.link.open_stream(STREAM, to(node(2), Kind::Data, None)), "before the hop is up");
    assert!(a.link.has_room(now, STREAM));
    assert!(!a.link.handle_sample(now, STREAM, sample(now, 0, 10)));
    talk(&mut now, &mut a, &mut b, 4);
    a.link.handle_sample(now, STREAM, sample(now, 1, 10));
    talk(&mut now, &mut a, &mut b, 1);
    now += Duration::from_secs(2);
    a.link.handle_timeout(now);
    a.link.handle_sample(now, STREAM, sample(now, 2, 10));
    talk(&mut now, &mut a, &mut b, 8);
    a.link.handle_sample(now, STREAM, sample(now, 3, 10));
    talk(&mut now, &mut a, &mut b, 1);
    assert_eq!(b.got, [1, 3]);
    assert_eq!(b.lost, 0);
    let counters = a.link.close_stream(STREAM).unwrap();
    assert_eq!((counters.offered, counters.sent), (4, 2));
    assert_eq!(counters.drops.of(DropReason::LinkDown), 2);
}

#[test]
fn a_node_answers_an_unknown_peer_at_once() {
    let (mut a, mut b) = pair(LinkSpec::default());
    let now = at(1_000);
    // The first greeting reaches a peer that has not found us yet.
    a.poll(now);
    a.sent.clear();
    for _ in 0..2 {
        b.poll(now);
        b.sent.drain(..).for_each(|frame| a.hear(now, frame));
        a.poll(now);
        a.sent.drain(..).for_each(|frame| b.hear(now, frame));
    }
    assert!(a.hop().is_up() && b.hop().is_up(), "without any time");
}

#[test]
fn frames_queued_during_a_stall_do_not_prove_liveness() {
    let (mut a, mut b) = pair(LinkSpec::default());
    let mut now = at(10_000);
    talk(&mut now, &mut a, &mut b, 4);
    events(&mut a.link);
    b.poll(now + ProbeInterval::SHORTEST.time().mul_div(2, 1));
    let waited = b.sent.pop_front().expect("a probe");
    now += Duration::from_secs(10);
    a.hear(now, waited);
    assert_eq!(events(&mut a.link), [LinkEvent::HopDown(a.other)], "it was removed there");
    talk(&mut now, &mut a, &mut b, 4);
    assert_eq!(events(&mut a.link), [LinkEvent::HopUp(a.other)]);
}

#[test]
fn frames_of_an_earlier_epoch_are_ignored() {
    let (mut a, mut b) = pair(LinkSpec::default());
    let mut now = at(1_000);
    talk(&mut now, &mut a, &mut b, 4);
    a.link.open_stream(STREAM, to(node(2), Kind::Data, None));
    a.link.handle_sample(now, STREAM, sample(now, 1, 10));
    a.poll(now);
    let old: Vec<Bytes> = a.sent.drain(..).collect();
    a.restart(now);
    talk(&mut now, &mut a, &mut b, 8);
    old.into_iter().for_each(|frame| b.hear(now, frame));
    assert!(b.got.is_empty() && b.hop().is_up());
    // A duplicate frame does not count twice.
    a.link.handle_sample(now, STREAM, sample(now, 2, 10));
    a.poll(now);
    let twice: Vec<Bytes> = a.sent.drain(..).collect();
    twice.iter().chain(&twice).for_each(|frame| b.hear(now, frame.clone()));
    assert_eq!(b.got, [2]);
}

#[test]
fn a_reannounced_stream_keeps_its_started_sample() {
    let capacity = Capacity::from_bits_per_s(2_000_000).ok();
    let (mut a, mut b) = pair(LinkSpec { capacity, ..LinkSpec::default() });
    let mut now = at(1_000);
    talk(&mut now, &mut a, &mut b, 4);
    a.link.open_stream(STREAM, to(node(2), Kind::Data, None));
    a.link.open_stream(StreamIndex(1), to(node(2), Kind::Data, None));
    a.link.handle_sample(now, STREAM, sample(now, 1, 10_000));
    talk(&mut now, &mut a, &mut b, 1);
    // A frame of another stream is lost while the first stream's sample is in transit.
    a.link.handle_sample(now, StreamIndex(1), sample(now, 50, 900));
    let mut lost = 0;
    for _ in 0..40 {
        now += Duration::from_millis(6);
        a.poll(now);
        b.poll(now);
        for frame in a.sent.drain(..) {
            let gone = frame.len() < 1_150 && frame.len() > 900 && lost == 0;
            lost += usize::from(gone);
            if !gone {
                b.hear(now, frame);
            }
        }
        b.poll(now);
        b.sent.drain(..).for_each(|frame| a.hear(now, frame));
    }
    assert_eq!(b.got, [1]);
    assert_eq!(lost, 1);
}

#[test]
fn a_sample_that_misses_its_deadline_is_aborted_and_the_sums_agree() {
    let capacity = Capacity::from_bits_per_s(2_000_000).ok();
    let (mut a, mut b) = pair(LinkSpec { capacity, ..LinkSpec::default() });
    let mut now = at(1_000);
    talk(&mut now, &mut a, &mut b, 4);
    let period = Duration::from_millis(100);
    let contract = Contract::every(period).unwrap().with_late(Late::Drop);
    a.link.open_stream(STREAM, to(node(2), Kind::Data, Some(contract)));
    // 40 ms on the wire, and the other end does not acknowledge for 80 ms.
    a.link.handle_sample(now, STREAM, sample(now, 0, 9_000));
    a.poll(now);
    now += Duration::from_millis(80);
    talk(&mut now, &mut a, &mut b, 20);
    let counters = a.link.counters(STREAM).unwrap();
    assert_eq!((counters.sent, counters.violations), (0, 1));
    assert_eq!(counters.drops.of(DropReason::DeadlineMissed), 1);
    assert_eq!((b.got.len(), b.lost), (0, 1));
    a.link.handle_sample(now, STREAM, sample(now, 1, 500));
    talk(&mut now, &mut a, &mut b, 1);
    assert_eq!(b.got, [1]);
}

/// Returns the arrival time and length of the frame on a 2 Mbit/s link that carries a command. The command
/// has a deadline of 9 ms, has waited for 5.2 ms, and competes with pictures with or without a contract.
fn frame_of_a_command(pictures: Option<Contract>) -> (Duration, usize) {
    let capacity = Capacity::from_bits_per_s(2_000_000).unwrap();
    let (mut a, mut b) = pair(LinkSpec { capacity: Some(capacity), ..LinkSpec::default() });
    let mut now = at(1_000);
    talk(&mut now, &mut a, &mut b, 4);
    let contract = Contract::every(Duration::from_millis(9)).unwrap();
    a.link.open_stream(STREAM, to(node(2), Kind::Data, Some(contract)));
    a.link.open_stream(StreamIndex(1), to(node(2), Kind::Data, pictures));
    a.link.handle_sample(now, StreamIndex(1), sample(now, 9, 50_000));
    a.poll(now);
    a.link.handle_sample(now, STREAM, sample(now, 0, 64));
    a.sent.drain(..).for_each(|frame| b.hear(now, frame));
    b.poll(now);
    b.sent.drain(..).for_each(|frame| a.hear(now, frame));
    let later = now + Duration::from_micros(5_200);
    a.poll(later);
    let len = a.sent[0].len();
    ((later + capacity.time_for(on_wire(len as u64))).since(now), len)
}

#[test]
fn a_frame_does_not_grow_past_the_deadline_of_its_content() {
    let second = Contract::every(Duration::from_millis(1_000)).unwrap();
    let (took, len) = frame_of_a_command(Some(second));
    assert!(len > 700, "pictures use what is left: {len}");
    assert!(took <= Duration::from_millis(9), "{took}");
}

#[test]
fn contracted_samples_do_not_wait_for_best_effort_to_fill_the_frame() {
    let (took, len) = frame_of_a_command(None);
    assert!(len < 150, "{len}");
    assert!(took < Duration::from_millis(7), "{took}");
}

#[test]
fn work_due_between_poll_and_query_is_due_at_once() {
    let capacity = Some(Capacity::from_bits_per_s(2_000_000).unwrap());
    let (mut a, mut b) = pair(LinkSpec { capacity, ..LinkSpec::default() });
    let mut now = at(1_000);
    talk(&mut now, &mut a, &mut b, 4);
    a.link.open_stream(STREAM, to(node(2), Kind::Data, None));
    for seq in 0..4 {
        a.link.handle_sample(now, STREAM, sample(now, seq, 400));
    }
    let mut frame = FrameBuf::default();
    while a.link.poll_frame(now, &mut frame).is_some() {}
    let due = a.link.poll_timeout();
    assert!(due > now, "the rest waits for the wire");
    // A caller that polls later, because its own clock advanced, must not sleep past that time.
    a.link.handle_sample(due + Duration::from_millis(1), STREAM, sample(now, 4, 400));
    assert_eq!(a.link.poll_timeout(), due);
}

#[test]
fn stream_indices_are_checked() {
    let mut link = Link::new(LinkSpec::default());
    assert!(!link.open_stream(StreamIndex(STREAMS_MAX), to(node(2), Kind::Data, None)));
    assert!(link.open_stream(StreamIndex(5), to(node(2), Kind::Data, None)));
    assert!(!link.open_stream(StreamIndex(5), to(node(2), Kind::Data, None)));
    assert!(link.close_stream(StreamIndex(5)).is_some());
    assert!(link.close_stream(StreamIndex(5)).is_none());
    assert!(!link.handle_sample(at(0), StreamIndex(5), sample(at(0), 0, 1)));
    assert!(!link.has_room(Instant::ZERO, StreamIndex(7)));
}

#[test]
fn a_stream_closed_after_a_loss_also_closes_at_the_peer() {
    let capacity = Capacity::from_bits_per_s(2_000_000).ok();
    let (mut a, mut b) = pair(LinkSpec { capacity, ..LinkSpec::default() });
    let mut now = at(1_000);
    talk(&mut now, &mut a, &mut b, 4);
    a.link.open_stream(STREAM, to(node(2), Kind::Data, None));
    a.link.open_stream(StreamIndex(1), to(node(2), Kind::Data, None));
    a.link.handle_sample(now, STREAM, sample(now, 1, 100_000));
    talk(&mut now, &mut a, &mut b, 1);
    a.link.handle_sample(now, StreamIndex(1), sample(now, 50, 900));
    let (mut lost, mut since) = (0, 0);
    for _ in 0..20 {
        now += Duration::from_millis(6);
        a.poll(now);
        for frame in a.sent.drain(..) {
            let gone = (900..1_150).contains(&frame.len()) && lost == 0;
            lost += usize::from(gone);
            if !gone {
                b.hear(now, frame);
            }
        }
        b.poll(now);
        b.sent.drain(..).for_each(|frame| a.hear(now, frame));
        since += lost;
        if since == 4 {
            assert_eq!((a.link.frames_lost(), b.lost), (1, 0));
            a.link.close_stream(STREAM);
        }
    }
    assert_eq!((lost, b.lost), (1, 1), "the started sample is reported as lost");
}

#[test]
fn a_stream_is_settled_after_its_hop_restarts() {
    let (mut a, mut b) = pair(LinkSpec::default());
    let mut now = at(1_000);
    talk(&mut now, &mut a, &mut b, 40);
    a.link.open_stream(STREAM, to(node(2), Kind::Data, None));
    a.link.open_stream(StreamIndex(1), to(node(2), Kind::Data, None));
    a.link.handle_sample(now, STREAM, sample(now, 1, 10));
    talk(&mut now, &mut a, &mut b, 1);
    a.restart(now);
    b.restart(now);
    talk(&mut now, &mut a, &mut b, 4);
    a.link.handle_sample(now, StreamIndex(1), sample(now, 2, 10));
    a.poll(now);
    assert!(!a.link.is_settled(StreamIndex(1)) && a.link.is_settled(STREAM));
}

#[path = "tests/ahead.rs"]
mod ahead;
#[path = "tests/background.rs"]
mod background;
#[path = "tests/background_streams.rs"]
mod background_streams;
#[path = "tests/classes.rs"]
mod classes;
#[path = "tests/control.rs"]
mod control;
#[path = "tests/credit.rs"]
mod credit;
#[path = "tests/depth.rs"]
mod depth;
#[path = "tests/excess.rs"]
mod excess;
#[path = "tests/expired.rs"]
mod expired;
#[path = "tests/expiry.rs"]
mod expiry;
#[path = "tests/groups.rs"]
mod groups;
#[path = "tests/measure.rs"]
mod measure;
#[path = "tests/other_capacity.rs"]
mod other_capacity;
#[path = "tests/parted.rs"]
mod parted;
#[path = "tests/passages.rs"]
mod passages;
#[path = "tests/replaced.rs"]
mod replaced;
#[path = "tests/retire.rs"]
mod retire;
#[path = "tests/windows.rs"]
mod windows;

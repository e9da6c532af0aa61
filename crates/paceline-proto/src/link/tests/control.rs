//! Control next to samples: it gets its share, and no contract is broken for it.

use super::*;
use crate::wire::frame::FrameHeader;
use paceline_sched::LossTolerance;

const MESSAGE: usize = 600;

fn contract(deadline: u64) -> Contract {
    Contract {
        period: Duration::from_millis(20),
        deadline: Duration::from_millis(deadline),
        loss: LossTolerance::NONE,
        late: Late::Drop,
        jitter: Duration::ZERO,
    }
}

/// Records the cumulative numbers of received samples and control messages, per millisecond.
struct Busy {
    a: End,
    b: End,
    now: Instant,
    came: Vec<(usize, usize)>,
}

impl Busy {
    /// Returns a link of 800 kbit/s, on which a piece of control takes 4 ms. So there is one piece every 80
    /// ms.
    fn new(policy: Policy) -> Self {
        let capacity = Capacity::from_bits_per_s(800_000).ok();
        let (mut a, mut b) = pair(LinkSpec { capacity, policy, ..LinkSpec::default() });
        let mut now = at(1_000);
        talk(&mut now, &mut a, &mut b, 40);
        Self { a, b, now, came: Vec::new() }
    }

    fn open(&mut self, stream: StreamIndex, contract: Option<Contract>) {
        assert!(self.a.link.open_stream(stream, to(node(2), Kind::Data, contract)));
    }

    /// Runs for `millis` milliseconds; each of `streams` sends a sample of `len` bytes every 20 ms.
    fn run(&mut self, millis: usize, streams: core::ops::Range<u32>, len: usize) {
        for _ in 0..millis {
            self.now += Duration::from_millis(1);
            let seq = self.came.len() as u64 * 1_000;
            if self.came.len().is_multiple_of(20) {
                for stream in streams.clone().map(StreamIndex) {
                    self.a.link.handle_sample(self.now, stream, sample(self.now, seq, len));
                }
            }
            self.a.poll(self.now);
            self.a.sent.drain(..).for_each(|frame| self.b.hear(self.now, frame));
            self.b.poll(self.now);
            self.b.sent.drain(..).for_each(|frame| self.a.hear(self.now, frame));
            self.came.push((self.b.got.len(), self.b.control.len()));
        }
    }

    fn control(&mut self, messages: usize) {
        for _ in 0..messages {
            self.a.link.handle_control(node(2), Bytes::from(vec![7; MESSAGE]));
        }
    }
}

/// More samples are contracted than the link can carry, so the link is never idle for control.
#[test]
fn control_yields_to_contracts_until_it_is_due_and_then_gets_its_share() {
    for policy in [Policy::Vds, Policy::DWCS, Policy::Edf, Policy::DelayEdd, Policy::StaticPriority]
    {
        let mut link = Busy::new(policy);
        (0..10).for_each(|stream| link.open(StreamIndex(stream), Some(contract(100))));
        link.run(60, 0..10, 900);
        link.control(100);
        link.run(10_000, 0..10, 900);
        let first = link.came.iter().position(|&(_, control)| control > 0).unwrap();
        assert!((200..320).contains(&first), "{policy}: the first after {first} ms");
        // 5 % of 800 kbit/s are 50,000 bytes in 10 s.
        let bytes = link.b.control.len() * MESSAGE;
        assert!((30_000..50_000).contains(&bytes), "{policy}: {bytes} bytes of control");
    }
}

#[test]
fn control_precedes_best_effort_and_fills_spare_room_of_contracted_frames() {
    let mut link = Busy::new(Policy::Vds);
    (0..10).for_each(|stream| link.open(StreamIndex(stream), None));
    link.run(60, 0..10, 900);
    link.control(1);
    link.run(40, 0..10, 900);
    assert_eq!(link.b.control.len(), 1, "behind the frame on the wire");

    link.open(StreamIndex(10), Some(contract(100)));
    link.a.link.handle_sample(link.now, StreamIndex(10), sample(link.now, 1, 200));
    link.control(1);
    link.run(40, 0..10, 900);
    assert_eq!((link.b.control.len(), link.b.got.contains(&1)), (2, true));
}

#[test]
fn control_with_the_earlier_due_time_is_sent_first() {
    let mut link = Busy::new(Policy::Edf);
    (0..10).for_each(|stream| link.open(StreamIndex(stream), Some(contract(60_000))));
    link.run(60, 0..10, 900);
    link.control(1);
    link.run(40, 0..10, 900);
    assert_eq!(link.b.control.len(), 1, "{:?}", link.came.last());
}

/// A link of 2 Mbit/s with 16 neighbours, all of which are up.
struct Star {
    centre: Link,
    ends: Vec<End>,
    receivers: Vec<Receiver>,
    /// The first neighbours, which request an acknowledgement each millisecond.
    asks: usize,
    asked: usize,
    now: Instant,
}

impl Star {
    fn new() -> Self {
        let capacity = Capacity::from_bits_per_s(2_000_000).ok();
        let mut centre = Link::new(LinkSpec { capacity, ..LinkSpec::default() });
        let ends: Vec<_> = (2..18).map(|id| End::new(id, 1, LinkSpec::default())).collect();
        ends.iter().for_each(|end| centre.add_hop(at(0), end.me, 1));
        let receivers = ends.iter().map(|_| Receiver::new()).collect();
        let mut star = Self { centre, ends, receivers, asks: 0, asked: 0, now: at(0) };
        star.run(2_000);
        assert!(star.centre.hops().all(|(_, hop)| hop.is_up()));
        star
    }

    fn run(&mut self, millis: usize) {
        let mut frame = FrameBuf::default();
        for _ in 0..millis {
            self.now += Duration::from_millis(1);
            self.centre.handle_timeout(self.now);
            while let Some(hop) = self.centre.poll_frame(self.now, &mut frame) {
                let end = self.ends.iter_mut().find(|end| end.me == hop).unwrap();
                end.hear(self.now, frame.to_bytes());
            }
            for (place, end) in self.ends.iter_mut().enumerate() {
                let (receiver, asks) = (&mut self.receivers[place], place < self.asks);
                if asks {
                    end.link.handle_control(node(1), Bytes::from_static(b"?"));
                }
                end.poll(self.now);
                for frame in end.sent.drain(..) {
                    let mut frame = Vec::from(frame);
                    if asks {
                        FrameHeader::ask_now(&mut frame);
                        self.asked += 1;
                    }
                    let frame = frame.into();
                    let epoch = self.centre.epoch(end.me);
                    let heard = receiver.handle_frame(self.now, epoch, frame, |_| {}).unwrap();
                    self.centre.handle_heard(self.now, end.me, &heard);
                }
            }
        }
    }
}

#[test]
fn neighbours_share_the_control_of_a_link_equally() {
    let mut star = Star::new();
    let message = Bytes::from(vec![7; 9_000]);
    for _ in 0..40 {
        (2..17).for_each(|id| star.centre.handle_control(node(id), message.clone()));
    }
    star.run(2_000);
    // The last neighbour waits for one frame of each other.
    star.centre.handle_control(node(17), Bytes::from(vec![8; 340]));
    star.run(400);
    assert_eq!(star.ends[15].control.len(), 1, "behind many messages for others");
    let got: Vec<_> = star.ends[..15].iter().map(|end| end.control.len()).collect();
    assert!(got.iter().all(|count| count.abs_diff(got[0]) <= 1) && got[0] >= 1, "{got:?}");
}

/// Acknowledgements that others request leave half of the frames to samples without a contract.
#[test]
fn neighbours_that_request_acknowledgements_all_the_time_do_not_stop_best_effort() {
    let mut star = Star::new();
    star.centre.open_stream(StreamIndex(0), to(node(17), Kind::Data, None));
    star.asks = 15;
    star.run(500);
    let before = star.asked;
    for seq in 0..100 {
        star.centre.handle_sample(star.now, StreamIndex(0), sample(star.now, seq, 60));
        star.run(20);
    }
    assert!(star.asked - before >= 10_000, "{}", star.asked - before);
    let got = star.ends[15].got.len();
    assert!(got >= 95, "{got} of 100 samples in two seconds");
}

/// The contracted samples of one neighbour carry its own control only in its turn.
#[test]
fn a_neighbour_with_contracted_samples_has_no_more_control_than_others() {
    let mut star = Star::new();
    for stream in 0..4 {
        star.centre.open_stream(StreamIndex(stream), to(node(2), Kind::Data, Some(contract(100))));
    }
    let message = Bytes::from(vec![7; 1_000]);
    for _ in 0..200 {
        (2..5).for_each(|id| star.centre.handle_control(node(id), message.clone()));
    }
    for seq in 0..300 {
        for stream in 0..4 {
            star.centre.handle_sample(star.now, StreamIndex(stream), sample(star.now, seq, 1_100));
        }
        star.run(20);
    }
    let got: Vec<_> = star.ends[..3].iter().map(|end| end.control.len()).collect();
    assert!(got[0] >= 10 && got.iter().all(|count| count.abs_diff(got[0]) <= 2), "{got:?}");
}

#[test]
fn a_newcomer_is_greeted_next_to_neighbours_that_request_acknowledgements_all_the_time() {
    let mut star = Star::new();
    star.asks = 15;
    star.run(500);
    star.centre.add_hop(star.now, node(18), 1);
    star.ends.push(End::new(18, 1, LinkSpec::default()));
    star.ends[16].restart(star.now);
    star.receivers.push(Receiver::new());
    star.run(500);
    assert!(star.centre.hops().any(|(id, hop)| id == node(18) && hop.is_up()));
}

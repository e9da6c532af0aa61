//! Control next to samples: it gets its share, and no contract is broken for it.

use super::*;
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

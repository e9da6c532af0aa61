//! The memory of a node for its neighbours: never above its limit, shared fairly, and free after they have left.

use super::sender::Sender;
use paceline_proto::memory::{Debtor, Memory, MemoryShare, debtor};
use paceline_proto::receive::{Received, Receiver, Victim};
use paceline_proto::{DropReason, Drops};
use paceline_sched::{Duration, Instant};
use proptest::prelude::*;

/// The longest sample, in bytes.
const SAMPLE_BYTES_MAX: usize = 64 << 20;
/// The bytes of a full frame.
const FRAME_BYTES: usize = 60_000;

/// A neighbour that sends frames of its own, and the end at the node.
struct Neighbour {
    share: MemoryShare,
    receiver: Receiver,
    sender: Sender,
    whole: u64,
    drops: Drops,
}

impl Neighbour {
    fn new(memory: &Memory, datagrams: bool) -> Self {
        let share = memory.share();
        let (receiver, sender) = (Receiver::within(&share), Sender::new(datagrams));
        Self { share, receiver, sender, whole: 0, drops: Drops::default() }
    }

    fn count(&mut self, received: Received) {
        match received {
            Received::Sample { .. } => self.whole += 1,
            Received::Lost { lost, .. } => self.drops.add(lost.reason, lost.samples),
            Received::Control(_) => {}
        }
    }
}

/// A node with the receiving ends of its neighbours, the first of which is honest.
struct Host {
    now: Instant,
    memory: Memory,
    neighbours: Vec<Neighbour>,
}

impl Host {
    fn new(limit: usize, datagrams: &[bool]) -> Self {
        let memory = Memory::new(limit);
        let neighbours = datagrams.iter().map(|it| Neighbour::new(&memory, *it)).collect();
        Self { now: Instant::from_millis(1_000), memory, neighbours }
    }

    /// Passes the next frame of a neighbour's sample to the node, with `bytes` of it.
    fn send(&mut self, from: usize, stream: u32, (total, bytes): (usize, usize)) {
        self.now += Duration::from_micros(50);
        let neighbour = &mut self.neighbours[from];
        let frame = neighbour.sender.frame(stream, total, bytes);
        let mut found = Vec::new();
        neighbour.receiver.handle_frame(self.now, 1, frame, |it| found.push(it)).unwrap();
        found.into_iter().for_each(|it| neighbour.count(it));
        self.settle(from);
        assert_eq!(self.memory.excess(), 0, "at most the limit");
        let used: usize = self.neighbours.iter().map(|it| it.share.used()).sum();
        assert_eq!(used, self.memory.used());
    }

    fn settle(&mut self, own: usize) {
        while self.memory.excess() > 0 {
            let others = self.neighbours.iter().enumerate().filter(|(place, _)| *place != own);
            let others = others.map(|(place, it)| (place, it.share.samples()));
            let (place, victim) = match debtor(self.neighbours[own].share.samples(), others) {
                Debtor::Other(place) => (place, Victim::Oldest),
                Debtor::Own => (own, Victim::Newest),
            };
            let (excess, mut found) = (self.memory.excess(), Vec::new());
            let debtor = &mut self.neighbours[place];
            let freed = debtor.receiver.give_back(excess, victim, |it| found.push(it));
            found.into_iter().for_each(|it| debtor.count(it));
            assert!(freed > 0, "the debtor has samples");
        }
    }

    /// Sends a whole sample of the honest neighbour in frames, each followed by one of the others.
    fn honest(&mut self, bytes: usize, mut others: impl FnMut(&mut Self)) {
        let before = self.neighbours[0].whole;
        for at in (0..bytes).step_by(FRAME_BYTES) {
            self.send(0, 0, (bytes, FRAME_BYTES.min(bytes - at)));
            others(self);
        }
        assert_eq!(self.neighbours[0].whole, before + 1, "{:?}", self.neighbours[0].drops);
    }

    /// Lets all neighbours leave, and be forgotten.
    fn end(mut self) {
        for neighbour in &mut self.neighbours {
            neighbour.receiver.part(|_| {});
            assert_eq!(neighbour.share.samples(), 0);
        }
        self.neighbours.clear();
        assert_eq!(self.memory.used(), 0);
    }
}

#[derive(Clone, Debug)]
struct Step {
    from: usize,
    stream: u32,
    /// The length of a sample that begins.
    total: usize,
    bytes: usize,
    leaves: bool,
}

fn steps() -> impl Strategy<Value = Step> {
    let total = prop_oneof![1..100_000usize, 1_000_000..SAMPLE_BYTES_MAX, Just(SAMPLE_BYTES_MAX)];
    let all = (1..8usize, 0..6u32, total, 1..FRAME_BYTES, prop::bool::weighted(0.01));
    all.prop_map(|(from, stream, total, bytes, leaves)| Step { from, stream, total, bytes, leaves })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Seven neighbours begin samples of up to 64 MiB and finish few; an eighth one is honest.
    #[test]
    fn an_honest_neighbour_completes_its_samples_while_others_hog(
        steps in prop::collection::vec(steps(), 600),
        datagrams in prop::collection::vec(any::<bool>(), 8),
        limit in 16_000_000..200_000_000usize,
    ) {
        let mut host = Host::new(limit, &datagrams);
        let part = limit / 4 / host.neighbours.len() - 10_000;
        let mut steps = steps.into_iter().cycle();
        for bytes in [100_000, part.min(1_000_000), part.min(3_000_000), 1_000] {
            host.honest(bytes, |host| {
                for step in steps.by_ref().take(4) {
                    let Step { from, stream, total, bytes, leaves } = step;
                    if leaves {
                        host.neighbours[from] = Neighbour::new(&host.memory, datagrams[from]);
                    } else {
                        host.send(from, stream, (total, bytes));
                    }
                }
            });
        }
        prop_assert!(host.neighbours[0].drops.is_empty());
        host.end();
    }
}

/// Ten neighbours leave 64 MiB unfinished each.
#[test]
fn ten_neighbours_with_64_mib_each_use_one_budget() {
    for datagrams in [false, true] {
        let mut host = Host::new(Memory::LIMIT_DEFAULT, &[datagrams; 11]);
        let mut frames = 0;
        while frames < 10 * SAMPLE_BYTES_MAX / FRAME_BYTES / 4 {
            for hog in 1..=10 {
                host.send(hog, 0, (SAMPLE_BYTES_MAX, FRAME_BYTES));
                frames += 1;
            }
            if frames % 1_000 == 0 {
                host.honest(5_000_000, |_| {});
            }
        }
        let refused = |it: &Neighbour| it.drops.of(DropReason::TooLarge);
        let drops = host.neighbours.iter().map(refused).sum::<u64>();
        assert!(datagrams || drops >= 8, "only two have room: {drops}");
        assert!(host.memory.used() <= Memory::LIMIT_DEFAULT);
        println!("datagrams {datagrams}: the most {} bytes", host.memory.greatest());
        host.end();
    }
}

/// A sample that is larger than the memory is refused; the neighbour's other samples arrive.
#[test]
fn a_sample_beyond_the_limit_is_refused() {
    let mut host = Host::new(1 << 20, &[false]);
    host.send(0, 0, (2 << 20, FRAME_BYTES));
    assert_eq!(host.neighbours[0].drops.of(DropReason::TooLarge), 1);
    host.neighbours[0].sender.skip(0);
    host.honest(500_000, |_| {});
    host.end();
}

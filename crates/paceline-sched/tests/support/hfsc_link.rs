//! A link in virtual time that HFSC serves, with a log of the packets served.

use paceline_sched::capacity::Capacity;
use paceline_sched::hfsc::{ClassIndex, Criterion, Hfsc};
use paceline_sched::time::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// SplitMix64: its seed decides everything.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    /// Returns a number from 1 to 2^`bits`, small ones as often as large ones.
    pub(crate) fn magnitude(&mut self, bits: u64) -> u64 {
        let width = 1 + self.below(bits);
        1 + self.below(1 << width)
    }
}

/// A packet that arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) arrived: Instant,
    pub(crate) class: ClassIndex,
    pub(crate) bytes: u64,
}

/// A packet that was served.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carried {
    pub(crate) packet: Packet,
    pub(crate) criterion: Criterion,
    pub(crate) deadline: Option<Instant>,
    pub(crate) end: Instant,
}

/// Serves `arrivals`, ordered by time, until all are served or `until`. Returns the log.
pub(crate) fn carry(
    hfsc: &mut Hfsc,
    capacity: Capacity,
    arrivals: &[Packet],
    until: Instant,
) -> Vec<Carried> {
    let mut queues: BTreeMap<ClassIndex, VecDeque<Packet>> = BTreeMap::new();
    let (mut coming, mut now, mut log) = (arrivals.iter().peekable(), Instant::ZERO, Vec::new());
    while now < until {
        while let Some(&packet) = coming.next_if(|packet| packet.arrived <= now) {
            let queue = queues.entry(packet.class).or_default();
            if queue.is_empty() {
                hfsc.set_active(packet.arrived, packet.class, packet.bytes);
            }
            queue.push_back(packet);
        }
        let Some(pick) = hfsc.pick(now) else {
            let arrival = coming.peek().map(|packet| packet.arrived);
            let Some(next) = arrival.into_iter().chain(hfsc.next_change(now)).min() else { break };
            now = next;
            continue;
        };
        let deadline = hfsc.deadline(pick.class);
        let queue = queues.get_mut(&pick.class).expect("only waiting classes are picked");
        let packet = queue.pop_front().expect("only waiting classes are picked");
        hfsc.charge(now, pick, packet.bytes, queue.front().map(|next| next.bytes));
        now += capacity.time_for(packet.bytes);
        log.push(Carried { packet, criterion: pick.criterion, deadline, end: now });
    }
    log
}

/// Returns packets of random sizes in bursts with random gaps, about `bits_per_s` on average.
pub(crate) fn bursts(
    random: &mut Random,
    class: ClassIndex,
    bits_per_s: u64,
    until: Instant,
) -> Vec<Packet> {
    let (mut packets, mut arrived) = (Vec::new(), Instant::from_nanos(random.below(20_000_000)));
    while arrived < until {
        let mut burst = 0;
        for _ in 0..1 + random.below(12) {
            let bytes = 40 + random.below(1_461);
            burst += bytes;
            packets.push(Packet { arrived, class, bytes });
        }
        let mean = burst * 8_000_000_000 / bits_per_s;
        arrived += Duration::from_nanos(random.below(2 * mean + 1));
    }
    packets
}

//! Two nodes on a wire with loss, reordering and duplication.

use paceline_proto::Carrier;
use paceline_proto::control::{PublisherSpec, SubscriptionSpec};
use paceline_proto::link::{Fates, LinkSpec, RepairCounters};
use paceline_proto::sample::Kind;
use paceline_sched::{Capacity, Duration, Late};
use paceline_sim::ask::{data, payloads};
use paceline_sim::impair::Impairment;
use paceline_sim::{Delivered, LinkIx, NodeIx, Pub, Sub, WireSpec, World};

/// Returns a 2 Mbit/s radio link with 20 ms of delay.
pub(super) fn radio() -> Impairment {
    let rate = Capacity::from_bits_per_s(2_000_000).ok();
    Impairment { rate, delay: Duration::from_millis(20), ..Impairment::NONE }
}

pub(super) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(super) struct Path {
    pub(super) world: World,
    pub(super) here: NodeIx,
    pub(super) there: NodeIx,
    out: LinkIx,
    back: LinkIx,
}

impl Path {
    /// Connects two nodes and applies the impairment once the links are up.
    ///
    /// The links assume the wire's rate minus a margin, as a user would configure it.
    pub(super) fn new(seed: u64, wire: Impairment) -> Self {
        let mut world = World::new(seed);
        let (here, there) = (world.add_node("here"), world.add_node("there"));
        let carrier = Carrier::Datagrams;
        let spec = LinkSpec { capacity: wire.rate, carrier, ..LinkSpec::default() };
        let out = world.add_link(here, "out", spec.clone());
        let back = world.add_link(there, "back", spec);
        let quiet = Impairment { rate: wire.rate, delay: wire.delay, ..Impairment::NONE };
        world.join(out, back, WireSpec::datagrams(quiet), WireSpec::datagrams(quiet));
        world.run_for(millis(3_000));
        world.impair(here, there, wire);
        Self { world, here, there, out, back }
    }

    pub(super) fn publish(&mut self, spec: PublisherSpec) -> Pub {
        self.world.publish(self.here, spec)
    }

    /// Adds a subscription and waits until it is known.
    pub(super) fn subscribe(&mut self, spec: SubscriptionSpec) -> Sub {
        let subscription = self.world.subscribe(self.there, spec);
        self.world.run_for(millis(2_000));
        subscription
    }

    /// Publishes `count` samples of `bytes`, one per `period`, and waits until all are done.
    pub(super) fn run(&mut self, publisher: Pub, period: Duration, count: u64, bytes: usize) {
        self.world.every(publisher, period, count, payloads(bytes));
        self.world.run_for(period.mul_div(count, 1).saturating_add(millis(6_000)));
    }

    pub(super) fn got(&self, subscription: Sub) -> &[Delivered] {
        self.world.delivered(subscription)
    }

    /// Returns the retransmission counters and the frame counters of the forward direction.
    pub(super) fn repairs(&self) -> (RepairCounters, Fates) {
        let link = self.world.link(self.out);
        let fates = link.hops().map(|(_, hop)| hop.fates()).next().unwrap_or_default();
        (link.repair_counters(), fates)
    }

    pub(super) fn segment(&self) -> Duration {
        self.world.link(self.out).frame_time()
    }

    /// Returns true if no sample is queued, in flight or awaiting acknowledgement.
    pub(super) fn is_at_rest(&self) -> bool {
        [self.out, self.back].into_iter().all(|at| {
            let link = self.world.link(at);
            let settled = link.streams().all(|(index, ..)| link.is_settled(index));
            settled && link.hops().all(|(_, hop)| hop.is_up())
        })
    }
}

/// Declares steering commands at 100 Hz.
pub(super) fn steering() -> PublisherSpec {
    let (period, bytes_max) = (Some(millis(10)), Some(252));
    PublisherSpec { period, bytes_max, late: Late::Drop, kind: Kind::Data, ..data("steering") }
}

pub(super) fn numbers(delivered: &[Delivered]) -> Vec<u64> {
    delivered.iter().map(|sample| sample.seq).collect()
}

/// Returns the age that `per_mille` of a thousand samples do not exceed, by rank.
pub(super) fn per_mille(delivered: &[Delivered], per_mille: usize) -> Duration {
    let mut ages: Vec<_> = delivered.iter().map(|sample| sample.age).collect();
    ages.sort_unstable();
    let rank = (ages.len() * per_mille).div_ceil(1_000).max(1);
    ages.get(rank - 1).copied().unwrap_or_default()
}

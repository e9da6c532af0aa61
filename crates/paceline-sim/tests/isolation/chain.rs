//! A robot, its operator, a chain of links between them, and three streams with contracts.

use paceline_proto::control::PublisherSpec;
use paceline_sched::{Capacity, Duration, Instant, Late};
use paceline_sim::ask::{Ask as _, Declare as _, all, data, payloads, pictures};
use paceline_sim::{Delivered, LinkPlan, NodeIx, Pub, Sub, World};

/// The capacity of every link, in bit/s.
const BITS: u64 = 2_000_000;
/// The time until all contracts are granted; the measurement follows it.
const SETTLING: Duration = Duration::from_secs(5);
pub(super) const SECONDS: u64 = 60;

/// Name, samples per second, bytes, and delay bound in milliseconds.
pub(super) const STREAMS: [(&str, u64, u64, u64); 3] =
    [("steering", 100, 64, 80), ("pose", 50, 256, 120), ("camera", 10, 6_000, 300)];

/// A violation of a stream's declaration.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Misdeed {
    None,
    /// Twice the declared rate.
    Doubles,
    /// Silence for ten seconds, then all samples due in that time at once.
    Bursts,
    /// The samples of each second back to back.
    Bunches,
    /// Silence for ten seconds, then the declared rate again.
    Stalls,
}

impl Misdeed {
    /// Returns the time of sample `number` since the start.
    fn at(self, number: u64, hertz: u64) -> Duration {
        let due = |number: u64| Duration::from_secs(1).mul_div(number, hertz);
        match self {
            Self::None => due(number),
            Self::Doubles => due(number).mul_div(1, 2),
            Self::Bursts => Duration::from_secs(10).mul_div(number / (10 * hertz) + 1, 1),
            Self::Bunches => Duration::from_secs(number / hertz),
            Self::Stalls => due(number + number / (10 * hertz) * 10 * hertz),
        }
    }
}

/// The deliveries to a stream's subscription.
#[derive(Clone, Copy, Debug)]
pub(super) struct Got {
    pub(super) samples: u64,
    pub(super) p99: Duration,
    pub(super) longest: Duration,
}

impl Got {
    fn of(delivered: &[Delivered]) -> Self {
        let mut ages: Vec<Duration> = delivered.iter().map(|sample| sample.age).collect();
        ages.sort_unstable();
        let p99 = ages.get(ages.len() * 99 / 100).copied().unwrap_or_default();
        let longest = ages.last().copied().unwrap_or_default();
        Self { samples: delivered.len() as u64, p99, longest }
    }
}

pub(super) struct Chain {
    world: World,
    nodes: Vec<NodeIx>,
    streams: Vec<(Pub, Sub)>,
}

impl Chain {
    /// Creates three streams over `hops` links.
    pub(super) fn new(hops: usize, late: Late) -> Self {
        let mut world = World::new(hops as u64);
        let nodes: Vec<NodeIx> = (0..=hops).map(|k| world.add_node(&format!("n{k}"))).collect();
        let capacity = Capacity::from_bits_per_s(BITS).ok();
        for pair in nodes.windows(2) {
            world.connect(pair[0], pair[1], LinkPlan { capacity });
        }
        let mut chain = Self { world, nodes, streams: Vec::new() };
        for (name, hertz, bytes, within) in STREAMS {
            let declared = PublisherSpec { bytes_max: Some(bytes), late, ..data(name) };
            let publisher = chain.world.publish(chain.nodes[0], declared.hertz(hertz));
            let asks = all(name).within_ms(within);
            let subscription = chain.world.subscribe(chain.nodes[hops], asks);
            chain.streams.push((publisher, subscription));
        }
        chain
    }

    /// Offers every link `times` its capacity, half of it in small messages.
    pub(super) fn flood(&mut self, times: u64) {
        for (place, pair) in self.nodes.clone().windows(2).enumerate() {
            for (name, bytes, wire) in [("small", 128, 228), ("large", 65_536, 72_000)] {
                let spec = pictures(&format!("{name}/{place}"), 1, bytes);
                let publisher = self.world.publish(pair[0], spec);
                self.world.subscribe(pair[1], all(&format!("{name}/{place}")));
                let period = Duration::from_secs(1).mul_div(wire * 8 * 2, BITS * times);
                let payload = payloads(usize::try_from(bytes).unwrap_or_default());
                self.world.every(publisher, period, u64::MAX, payload);
            }
        }
    }

    /// Returns the deliveries of each stream while stream `bad` misbehaves.
    pub(super) fn run(mut self, (bad, misdeed): (usize, Misdeed)) -> Vec<Got> {
        self.world.run_for(SETTLING);
        let start: Instant = self.world.now();
        for (place, &(publisher, subscription)) in self.streams.iter().enumerate() {
            assert_eq!(self.world.grants(subscription).len(), 1, "it is granted");
            let (_, hertz, bytes, _) = STREAMS[place];
            let misdeed = if place == bad { misdeed } else { Misdeed::None };
            // Phases that drift past each other in the course of a minute.
            let off = Duration::from_micros(137 * place as u64);
            let times = move |number| start + off + misdeed.at(number, hertz);
            let payload = payloads(usize::try_from(bytes).unwrap_or_default());
            self.world.at_times(publisher, Box::new(times), u64::MAX, payload);
        }
        self.world.run_for(Duration::from_secs(SECONDS));
        let got = |(_, subscription): &(Pub, Sub)| Got::of(self.world.delivered(*subscription));
        self.streams.iter().map(got).collect()
    }

    /// Returns the most that another stream may delay a sample: one segment per link, and a millisecond.
    pub(super) fn slack(hops: usize) -> Duration {
        // 1,200 bytes, and 100 of the layers below.
        let segment = Duration::from_secs(1).mul_div(1_300 * 8, BITS);
        segment.mul_div(hops as u64, 1).saturating_add(Duration::from_millis(1))
    }
}

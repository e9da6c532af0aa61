//! The product's admission control at the paper's router: the paper's test of bursts and rates, and
//! processor time per packet for everything that the router receives.

use super::paper::{PACKET, RING, RouterCosts};
use anyhow::{Context as _, Result};
use paceline_admit::cpu::{BestEffortRegulator, CpuBudget, CpuCost};
use paceline_admit::{
    Admission, AdmissionResult, AdmissionTest, Holder, LinkParameters, LinkRefusal, StreamDemand,
    Traffic, Trunk,
};
use paceline_sched::police::Dual;
use paceline_sched::{Capacity, Duration, Instant};

/// The share of the processor that reservations may use, in nanoseconds per second: 95 %, as on the
/// links of a node.
const BUDGET: u64 = 950_000_000;
const SECOND: u64 = 1_000_000_000;
const HOLDER: Holder = Holder { origin: 1, number: 1 };
/// The deadline of the streams: one frame of the video.
pub(super) const DEADLINE: Duration = Duration::from_millis(33);

/// A request for a burst in bytes and a rate in bits per second, in packets of one length.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Request {
    pub(super) burst: u64,
    pub(super) rate: u64,
    pub(super) packet: u64,
}

impl Request {
    /// Returns the demand. Its packets arrive at the ring's rate at most, and each costs processor
    /// time of its own.
    fn demand(self) -> Result<StreamDemand> {
        let Self { burst, rate, packet } = self;
        let dual = Dual { peak_burst: packet, peak_rate: RING, burst, rate };
        let traffic = Traffic::new(dual, packet, rate.div_ceil(packet * 8))?;
        Ok(StreamDemand::new(traffic, DEADLINE)?)
    }
}

/// The router's two directions, which share one processor.
#[derive(Debug)]
pub(super) struct Host {
    /// Packets that only have to be received: best effort.
    input: Admission,
    /// Packets that have to be forwarded: high priority.
    output: Admission,
    streams: u128,
}

impl Host {
    /// Creates a router with this test for high priority.
    pub(super) fn new(costs: RouterCosts, rule: AdmissionTest) -> Result<Self> {
        let capacity = Capacity::from_bits_per_s(RING)?;
        let link = |rule, cost: CpuCost| {
            let cpu = Some(CpuBudget { cost, nanos_per_s: BUDGET });
            Admission::new(LinkParameters { cpu, ..LinkParameters::new(capacity, rule, PACKET) })
        };
        Ok(Self {
            input: link(AdmissionTest::Fifo, costs.receive),
            output: link(rule, costs.whole),
            streams: 0,
        })
    }

    /// Reserves the processor time for receiving a stream without a contract.
    pub(super) fn receive(&mut self, request: Request) -> Result<Option<LinkRefusal>> {
        self.input.set_cpu_elsewhere(self.output.ledger().held.cpu);
        self.streams += 1;
        reserve(&mut self.input, Trunk(self.streams), request)
    }

    /// Returns the product's regulator of packets without a contract, which cost `cost` each: they may use the processor time
    /// that contracts leave, as in a node.
    pub(super) fn best_effort(&self, cost: CpuCost, burst: Duration) -> BestEffortRegulator {
        let budget = CpuBudget { cost, nanos_per_s: BUDGET };
        let regulator = BestEffortRegulator::with_burst(budget, burst);
        regulator.set_rate(Instant::ZERO, BUDGET.saturating_sub(self.processor()));
        regulator
    }

    /// Reserves a stream of high priority.
    pub(super) fn forward(&mut self, request: Request) -> Result<Option<LinkRefusal>> {
        self.output.set_cpu_elsewhere(self.input.ledger().held.cpu);
        self.streams += 1;
        reserve(&mut self.output, Trunk(self.streams), request)
    }

    /// Returns the sum of the reserved bursts of high priority, in packets.
    pub(super) fn burst_packets(&self) -> u64 {
        self.output.ledger().held.burst / PACKET
    }

    /// Returns the reserved processor time, in nanoseconds per second.
    pub(super) fn processor(&self) -> u64 {
        self.input.ledger().held.cpu + self.output.ledger().held.cpu
    }
}

fn reserve(link: &mut Admission, trunk: Trunk, request: Request) -> Result<Option<LinkRefusal>> {
    match link.hold(trunk, HOLDER, &request.demand()?) {
        AdmissionResult::Granted(_) => {
            link.commit(trunk, HOLDER, None);
            Ok(None)
        }
        AdmissionResult::Refused(refusal) => Ok(Some(refusal)),
    }
}

/// Returns the largest number of packets of high priority in the queue, Σσ + Σρ T. T is the time in which the processor
/// serves none of them: the interrupts of the background's burst and one packet of it that is being forwarded.
pub(super) fn queue_bound(
    costs: RouterCosts,
    reserved: &[Request],
    background: Option<Request>,
) -> Result<u64> {
    let bursts: u64 = reserved.iter().map(|request| request.burst / PACKET).sum();
    let per_s: u64 = reserved.iter().map(|request| request.rate / (PACKET * 8)).sum();
    let Some(Request { burst, rate, packet }) = background else { return Ok(bursts) };
    let left = SECOND.checked_sub(costs.receive.of_stream(packet, rate));
    let left = left.filter(|left| *left > 0).context("the background takes all processor time")?;
    let at_once = costs.receive.of_sample(packet) * burst.div_ceil(packet);
    let time = (at_once + costs.whole.of_sample(packet)) * SECOND / left;
    Ok(bursts + per_s * time / SECOND)
}

/// Returns the delay bound of high priority in the router for these reservations, next to this
/// background.
///
/// The processor is a link: a packet of [`PACKET`] bytes takes its whole cost, lengthened by the
/// background's interrupts, and one packet of the background can be in service.
pub(super) fn delay_bound(
    costs: RouterCosts,
    reserved: &[Request],
    background: Option<Request>,
) -> Result<Duration> {
    let (all, at_once) = background.map_or((0, 0), |Request { burst, rate, packet }| {
        let one = costs.receive.of_sample(packet);
        (costs.receive.of_stream(packet, rate), one * burst.div_ceil(packet))
    });
    let left = SECOND.checked_sub(all).filter(|left| *left > 0);
    let left = left.context("the background's interrupts take all processor time")?;
    let whole = costs.whole.of_sample(PACKET);
    let capacity = Capacity::from_bits_per_s(left * PACKET * 8 / whole)?;
    let latency = Duration::from_nanos((at_once * SECOND).div_ceil(left));
    let rule = AdmissionTest::StaticPriority;
    let mut link =
        Admission::new(LinkParameters { latency, ..LinkParameters::new(capacity, rule, PACKET) });
    let mut bound = Duration::ZERO;
    for (trunk, request) in (1..).map(Trunk).zip(reserved) {
        match link.hold(trunk, HOLDER, &request.demand()?.with_level(0)) {
            AdmissionResult::Granted(grant) => bound = bound.max(grant.now),
            AdmissionResult::Refused(refusal) => anyhow::bail!("{refusal}"),
        }
    }
    Ok(bound)
}

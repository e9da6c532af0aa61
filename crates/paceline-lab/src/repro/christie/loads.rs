//! Figure 19: the four loads of §4.3.2, as the product admits and polices them, and as the paper did.

use super::admission::{DEADLINE, Host, Request, delay_bound, queue_bound};
use super::millis;
use super::paper::{
    BUFFERS, FILE_BURST, FILE_RATE, PACKET, RATE_LIMIT, RouterCosts, TimerBucket, VIDEO_BURST,
    VIDEO_RATE,
};
use super::testbed::{Background, Gate, Outcome, Regulated, Setup, Video, exact_gate, run};
use crate::bench::report::{Bound, Section, Unit};
use crate::bench::stats::{count, float};
use anyhow::{Context as _, Result};
use paceline_admit::AdmissionTest;
use paceline_admit::cpu::{BestEffortRegulator, CpuCost};
use paceline_sched::Duration;
use std::sync::Arc;

const VIDEO: Request = Request { burst: VIDEO_BURST, rate: VIDEO_RATE, packet: PACKET };
const FILE: Request = Request { burst: FILE_BURST, rate: FILE_RATE, packet: PACKET };
/// The background's burst in packets: one early packet.
const EARLY: u64 = 2;

/// The average latency under load 1 in the paper, which is an input.
const AVERAGE_ALONE: Duration = Duration::from_micros(10_100);
/// The largest error of a predicted average, as a part of the paper's.
const ERROR: f64 = 0.25;

/// One of the four loads, and the paper's figures for it.
#[derive(Clone, Copy, Debug)]
struct Load {
    name: &'static str,
    file: bool,
    /// The background's packet length in bytes and its packets per second.
    background: Option<(u64, u64)>,
    average_ms: f64,
    longest_ms: f64,
    deepest: f64,
}

const LOADS: [Load; 4] = [
    Load {
        name: "video",
        file: false,
        background: None,
        average_ms: 10.1,
        longest_ms: 22.0,
        deepest: f64::NAN,
    },
    Load {
        name: "video, file transfer",
        file: true,
        background: None,
        average_ms: 10.8,
        longest_ms: 22.0,
        deepest: f64::NAN,
    },
    Load {
        name: "video, file transfer, background of 47 Mbit/s in 4,377 bytes",
        file: true,
        background: Some((4_377, 1_342)),
        average_ms: 12.9,
        longest_ms: 22.0,
        deepest: f64::NAN,
    },
    Load {
        name: "video, file transfer, background of 7.2 Mbit/s in 128 bytes",
        file: true,
        background: Some((128, 7_031)),
        average_ms: 26.0,
        longest_ms: 33.0,
        deepest: 13.0,
    },
];

pub(super) fn sections(time: Duration) -> Result<Vec<Section>> {
    let costs = RouterCosts::of_text()?;
    let mut sections = Vec::new();
    for (number, load) in (1..).zip(LOADS) {
        sections.push(ours(costs, (number, load), time)?);
    }
    sections.push(theirs(costs, time)?);
    Ok(sections)
}

/// The admission of a load.
#[derive(Debug)]
struct Admitted {
    /// The admitted streams of high priority.
    reserved: Vec<Request>,
    /// The part of the background that the regulator passes.
    background: Option<Request>,
    /// The regulator of the background, by the cost of receiving its packets.
    at_sender: Arc<BestEffortRegulator>,
    /// The same by the cost of forwarding them.
    at_router: Arc<BestEffortRegulator>,
    burst_packets: u64,
    /// The processor time of the contracts, in nanoseconds per second.
    processor: u64,
}

impl Load {
    /// The paper's Σσ: six packets of the video, and two of the file transfer.
    const fn sum(&self) -> f64 {
        if self.file { 8.0 } else { 6.0 }
    }

    /// Reserves the contracts of the load. The rest of the processor is for its background.
    fn admit(&self, costs: RouterCosts) -> Result<Admitted> {
        let limits = AdmissionTest::SigmaRho { burst: BUFFERS * PACKET, rate: RATE_LIMIT };
        let mut host = Host::new(costs, limits)?;
        let reserved = if self.file { vec![VIDEO, FILE] } else { vec![VIDEO] };
        for request in &reserved {
            let refusal = host.forward(*request)?;
            anyhow::ensure!(refusal.is_none(), "a stream of high priority is refused: {refusal:?}");
        }
        // The regulator passes one packet more than its burst at once.
        let packet = self.background.map_or(PACKET, |(packet, _)| packet);
        let regulator = |cost: CpuCost| {
            let burst = Duration::from_nanos((EARLY - 1) * cost.of_sample(packet));
            Arc::new(host.best_effort(cost, burst))
        };
        let (at_sender, at_router) = (regulator(costs.receive), regulator(costs.whole));
        let background = self.background.map(|(packet, packets_per_s)| {
            let left = at_sender.share().nanos_per_s / costs.receive.of_sample(packet);
            let rate = packet * 8 * packets_per_s.min(left);
            Request { burst: EARLY * packet, rate, packet }
        });
        let (burst_packets, processor) = (host.burst_packets(), host.processor());
        Ok(Admitted { reserved, background, at_sender, at_router, burst_packets, processor })
    }

    /// Returns the setup with the product's policers of contracts, and its regulator of best effort at this place. The
    /// background sender still offers its whole load.
    fn policed(&self, costs: RouterCosts, regulated: &Regulated, time: Duration) -> Result<Setup> {
        let background = self.background.map(|(bytes, packets_per_s)| {
            let regulated = regulated.clone();
            Background { bytes, packets_per_s, regulated }
        });
        Ok(Setup {
            costs,
            buffers: usize::try_from(BUFFERS)?,
            video: Some(Video::of_paper(exact_gate(VIDEO_BURST, VIDEO_RATE)?, end_systems(costs)?)),
            file: if self.file { Some(exact_gate(FILE_BURST, FILE_RATE)?) } else { None },
            background,
            time,
        })
    }

    /// Returns the setup of the paper: policers with a timer, and a background that nothing limits.
    fn unpoliced(
        &self,
        costs: RouterCosts,
        end_systems: Duration,
        time: Duration,
    ) -> Result<Setup> {
        let timer = |burst, rate| TimerBucket::new(burst, rate).map(Gate::Timer);
        let video = timer(VIDEO_BURST, VIDEO_RATE).context("no update period")?;
        let background = self.background.map(|(bytes, packets_per_s)| Background {
            bytes,
            packets_per_s,
            regulated: Regulated::Not,
        });
        Ok(Setup {
            costs,
            buffers: usize::try_from(BUFFERS)?,
            video: Some(Video::of_paper(video, end_systems)),
            file: timer(FILE_BURST, FILE_RATE).filter(|_| self.file),
            background,
            time,
        })
    }
}

/// Returns the time of a frame in the end systems, for which the paper gives no figure: the part of load 1's average
/// latency that the simulated router and rings do not take.
pub(super) fn end_systems(costs: RouterCosts) -> Result<Duration> {
    let [first, ..] = LOADS;
    let outcome = run(first.unpoliced(costs, Duration::ZERO, Duration::from_secs(10))?)?;
    let sum: u64 = outcome.latencies.iter().map(|latency| latency.as_nanos()).sum();
    let average = sum.checked_div(u64::try_from(outcome.latencies.len())?).context("no frames")?;
    Ok(AVERAGE_ALONE.saturating_sub(Duration::from_nanos(average)))
}

fn late(outcome: &Outcome) -> usize {
    outcome.latencies.iter().filter(|latency| **latency > DEADLINE).count()
}

fn ours(costs: RouterCosts, (number, load): (u32, Load), time: Duration) -> Result<Section> {
    let admitted = load.admit(costs)?;
    let regulated = Regulated::AtSender(admitted.at_sender.clone());
    let outcome = run(load.policed(costs, &regulated, time)?)?;
    let bound = delay_bound(costs, &admitted.reserved, admitted.background)?;
    let title = format!("Load {number}: {}", load.name);
    let mut section = Section::new(title).against_paper().repeatable();
    section.show("average latency", Unit::Millis, outcome.average_millis(), load.average_ms);
    section.show("longest latency", Unit::Millis, outcome.longest_millis(), load.longest_ms);
    let none = Bound::AtMost(0.0);
    let late = count(late(&outcome));
    section.must("frames later than 33 ms", Unit::Count, late, f64::NAN, none);
    let deepest = count(outcome.router.deepest);
    let most = queue_bound(costs, &admitted.reserved, admitted.background)?;
    let (name, most) = ("deepest queue (bound: Σσ + Σρ T), packets", Bound::AtMost(float(most)));
    section.must(name, Unit::Count, deepest, load.deepest, most);
    section.show("Σσ, packets", Unit::Count, float(admitted.burst_packets), load.sum());
    let dropped = float(outcome.router.dropped_high);
    section.must("dropped packets of high priority", Unit::Count, dropped, f64::NAN, none);
    let longest = millis(outcome.router.longest);
    let most = Bound::AtMost(millis(bound));
    section.must("longest delay in the router", Unit::Millis, longest, f64::NAN, most);
    let received = load.background.map_or(0, |(packet, _)| costs.receive.of_sample(packet));
    let passed = float(outcome.background_packets * received) / time_s(time);
    let share = (float(admitted.processor) + passed) / 1e7;
    section.show("processor time of contracts and best effort", Unit::Percent, share, f64::NAN);
    if let Some((_, packets_per_s)) = load.background {
        let arrived = float(outcome.background_packets) / time_s(time);
        let name = "background packets that reach the router";
        section.show(name, Unit::PerSecond, arrived, float(packets_per_s));
        if arrived < 0.99 * float(packets_per_s) {
            at_router(&mut section, (costs, load), &admitted, time)?;
        }
    }
    Ok(section)
}

/// Adds the results of a regulator that drops packets only after the router has received them. They have no bounds: it
/// does not keep them.
fn at_router(
    section: &mut Section,
    (costs, load): (RouterCosts, Load),
    admitted: &Admitted,
    time: Duration,
) -> Result<()> {
    let regulated = Regulated::AtRouter(admitted.at_router.clone());
    let outcome = run(load.policed(costs, &regulated, time)?)?;
    let name = |what: &str| format!("regulated in the router only: {what}");
    section.show(&name("longest latency"), Unit::Millis, outcome.longest_millis(), f64::NAN);
    let longest = millis(outcome.router.longest);
    section.show(&name("longest delay in the router"), Unit::Millis, longest, f64::NAN);
    let deepest = count(outcome.router.deepest);
    section.show(&name("deepest queue, packets"), Unit::Count, deepest, f64::NAN);
    let left = float(admitted.at_sender.share().nanos_per_s) / 1e6;
    let rate = admitted.background.map_or(0, |passed| passed.rate);
    section.note(format!(
        "Contracts leave {left:.0} ms of processor time per second to best effort. The product's regulator charges each \
         packet of the background the time of its reception, drops the packets beyond that share in the sender, and passes \
         {:.2} Mbit/s. The paper's router supports 5.5 Mbit/s of these packets next to 27 Mbit/s; our cost of receiving them \
         derives from nearly the same measurement. The queue can exceed Σσ, the paper's bound, while the processor serves \
         interrupts and a packet of low priority.",
        float(rate) / 1e6
    ));
    section.note(
        "Not kept: a regulator in the router alone drops packets after their interrupts, which already need more than the \
         share. The bounds above hold only because the sender's node drops them. A node does not yet inform its neighbours \
         of its share: there, the share is a setting of the sender's node.",
    );
    Ok(())
}

fn time_s(time: Duration) -> f64 {
    float(time.as_nanos()) / 1e9
}

fn theirs(costs: RouterCosts, time: Duration) -> Result<Section> {
    let title = "The four loads with the paper's policers and test, simulated";
    let mut section = Section::new(title).against_paper().repeatable();
    let end_systems = end_systems(costs)?;
    section.show("time in the end systems (input)", Unit::Millis, millis(end_systems), f64::NAN);
    for (number, load) in (1..).zip(LOADS) {
        let outcome = run(load.unpoliced(costs, end_systems, time)?)?;
        rows(&mut section, (number, load), &outcome);
    }
    section.note(
        "Shows how far the simulated router resembles the real one. The average of load 1 is an input: it determines the \
         time of the end systems. The averages of loads 2 and 3 are predictions. The longest latencies of the paper are not \
         reproduced, because its end systems took times that vary. Load 4 overloads the router, and its queue exceeds Σσ = 8, \
         as in the paper. There the sender's queue is always full, which the text does not state; its average is not \
         reproduced.",
    );
    Ok(section)
}

/// Adds the results of a load with the paper's policers.
fn rows(section: &mut Section, (number, load): (u32, Load), outcome: &Outcome) {
    let name = |what: &str| format!("load {number}: {what}");
    let average = outcome.average_millis();
    let paper = load.average_ms;
    match number {
        1 => section.show(&name("average latency (input)"), Unit::Millis, average, paper),
        2 | 3 => {
            let near = Bound::Near(paper, ERROR * paper);
            section.must(&name("average latency"), Unit::Millis, average, paper, near);
        }
        _ => section.show(&name("average latency"), Unit::Millis, average, paper),
    }
    let longest = outcome.longest_millis();
    section.show(&name("longest latency"), Unit::Millis, longest, load.longest_ms);
    let sum = load.sum();
    let bound = if number == 4 { Bound::AtLeast(sum + 1.0) } else { Bound::AtMost(sum) };
    let deepest = count(outcome.router.deepest);
    section.must(&name("deepest queue, packets"), Unit::Count, deepest, load.deepest, bound);
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_secs(20);

    #[test]
    fn no_load_breaks_a_contract() {
        let costs = RouterCosts::of_text().unwrap();
        for load in LOADS {
            let admitted = load.admit(costs).unwrap();
            let regulated = Regulated::AtSender(admitted.at_sender.clone());
            let outcome = run(load.policed(costs, &regulated, TIME).unwrap()).unwrap();
            let bound = delay_bound(costs, &admitted.reserved, admitted.background).unwrap();
            assert!(outcome.router.longest <= bound, "{}: {outcome:?}", load.name);
            let most = queue_bound(costs, &admitted.reserved, admitted.background).unwrap();
            assert!(outcome.router.deepest as u64 <= most, "{}", load.name);
            assert_eq!((late(&outcome), outcome.router.dropped_high), (0, 0), "{}", load.name);
            assert_eq!(outcome.latencies.len(), 600, "{}", load.name);
        }
    }

    #[test]
    fn only_the_small_packets_are_dropped_and_without_the_regulator_they_break_the_bound() {
        let costs = RouterCosts::of_text().unwrap();
        let dropped = LOADS.map(|load| {
            let regulated = Regulated::AtSender(load.admit(costs).unwrap().at_sender);
            let outcome = run(load.policed(costs, &regulated, TIME).unwrap()).unwrap();
            let offered = load.background.map_or(0, |(_, packets_per_s)| packets_per_s * 20);
            offered.saturating_sub(outcome.background_packets + 1)
        });
        assert!(matches!(dropped, [0, 0, 0, (30_000..)]), "{dropped:?}");
        let end_systems = end_systems(costs).unwrap();
        let deepest =
            LOADS.map(|load| run(load.unpoliced(costs, end_systems, TIME).unwrap()).unwrap());
        let deepest = deepest.map(|outcome| outcome.router.deepest);
        assert!(deepest[0] <= 6 && deepest[1] <= 8 && deepest[2] <= 8, "{deepest:?}");
        assert!(deepest[3] > 8, "{deepest:?}");
    }

    #[test]
    fn the_regulator_passes_nearly_the_largest_background_that_the_paper_measured() {
        // 5.5 Mbit/s of 128 bytes next to 27 Mbit/s of high priority (§4.3.2).
        let costs = RouterCosts::of_text().unwrap();
        let background = LOADS[3].admit(costs).unwrap().background.unwrap();
        assert!((5_000_000..6_000_000).contains(&background.rate), "{background:?}");
    }

    #[test]
    fn bounds_fail_if_the_router_is_slower_or_bursts_are_larger() {
        let costs = RouterCosts::of_text().unwrap();
        let end_systems = end_systems(costs).unwrap();
        let is_met = |number: usize, setup: Setup| {
            let mut section = Section::new("planted").repeatable();
            let name = u32::try_from(number).unwrap();
            rows(&mut section, (name, LOADS[number - 1]), &run(setup).unwrap());
            section.is_met()
        };
        let setup = |number: usize| LOADS[number - 1].unpoliced(costs, end_systems, TIME).unwrap();
        assert!(is_met(2, setup(2)) && is_met(3, setup(3)) && is_met(4, setup(4)));
        // Planted: every packet of load 3 costs twice the processor time.
        let costs = RouterCosts { receive: double(costs.receive), whole: double(costs.whole) };
        assert!(!is_met(3, Setup { costs, ..setup(3) }));
        // Planted: nothing polices the file transfer.
        let file = Some(Gate::Timer(TimerBucket::new(64 * PACKET, 36_000_000).unwrap()));
        assert!(!is_met(2, Setup { file, ..setup(2) }));
        // Planted: load 4 without its background is no overload.
        assert!(!is_met(4, Setup { background: None, ..setup(4) }));
    }

    fn double(cost: CpuCost) -> CpuCost {
        let (sample_nanos, byte_picos) = (2 * cost.sample_nanos, 2 * cost.byte_picos);
        CpuCost { sample_nanos, byte_picos }
    }
}

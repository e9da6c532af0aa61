//! Figure 19: the four loads of §4.3.2, as the product admits and polices them, and as the paper did.

use super::admission::{DEADLINE, Host, Request, delay_bound};
use super::millis;
use super::paper::{
    BUFFERS, FILE_BURST, FILE_RATE, FRAME, PACKET, RATE_LIMIT, RouterCosts, TimerBucket,
    VIDEO_BURST, VIDEO_RATE,
};
use super::testbed::{Background, Gate, Outcome, Setup, exact_gate, run};
use crate::bench::report::{Bound, Section, Unit};
use crate::bench::stats::{count, float};
use anyhow::{Context as _, Result};
use paceline_admit::{AdmissionTest, LinkRefusal};
use paceline_sched::Duration;
use paceline_sched::police::{Combined, Constraint, PolicedUnit};

const VIDEO: Request = Request { burst: VIDEO_BURST, rate: VIDEO_RATE, packet: PACKET };
const FILE: Request = Request { burst: FILE_BURST, rate: FILE_RATE, packet: PACKET };
/// The background's burst in packets: one early packet.
const EARLY: u64 = 2;

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
    /// The admitted background.
    background: Option<Request>,
    /// The refusal of the background's first request.
    refused: Option<LinkRefusal>,
    burst_packets: u64,
    processor: u64,
}

impl Load {
    /// Reserves the load. If the background is refused, it asks again for the offered rate.
    fn admit(&self, costs: RouterCosts) -> Result<Admitted> {
        let limits = AdmissionTest::SigmaRho { burst: BUFFERS * PACKET, rate: RATE_LIMIT };
        let mut host = Host::new(costs, limits)?;
        let reserved = if self.file { vec![VIDEO, FILE] } else { vec![VIDEO] };
        for request in &reserved {
            let refusal = host.forward(*request)?;
            anyhow::ensure!(refusal.is_none(), "a stream of high priority is refused: {refusal:?}");
        }
        let (mut background, mut refused) = (None, None);
        if let Some((packet, packets_per_s)) = self.background {
            let burst = EARLY * packet;
            let asked = Request { burst, rate: packet * 8 * packets_per_s, packet };
            refused = host.receive(asked)?;
            background = Some(asked);
            if let Some(refusal) = refused {
                let rate = refusal.offer.rate.context("no rate is offered")?;
                let less = Request { rate, ..asked };
                let again = host.receive(less)?;
                anyhow::ensure!(again.is_none(), "the offer is refused: {again:?}");
                background = Some(less);
            }
        }
        let (burst_packets, processor) = (host.burst_packets(), host.processor());
        Ok(Admitted { reserved, background, refused, burst_packets, processor })
    }

    /// Returns the setup with the product's policers for the admitted traffic. The background sender
    /// still offers its whole load.
    fn policed(&self, costs: RouterCosts, admitted: &Admitted, time: Duration) -> Result<Setup> {
        let background = match (self.background, admitted.background) {
            (Some((bytes, packets_per_s)), Some(Request { rate, .. })) => {
                let packets = rate / (bytes * 8);
                let leaky = Constraint::leaky(PolicedUnit::Packets, EARLY, packets)?;
                let police = Some(Combined::new(&[leaky])?);
                Some(Background { bytes, packets_per_s, police })
            }
            (None, _) | (_, None) => None,
        };
        Ok(Setup {
            costs,
            buffers: usize::try_from(BUFFERS)?,
            video: Some((exact_gate(VIDEO_BURST, VIDEO_RATE)?, FRAME)),
            file: if self.file { Some(exact_gate(FILE_BURST, FILE_RATE)?) } else { None },
            background,
            time,
        })
    }

    /// Returns the setup of the paper: policers with a timer, and a background that nothing limits.
    fn unpoliced(&self, costs: RouterCosts, time: Duration) -> Result<Setup> {
        let timer = |burst, rate| TimerBucket::new(burst, rate).map(Gate::Timer);
        let video = timer(VIDEO_BURST, VIDEO_RATE).context("no update period")?;
        let background = self.background.map(|(bytes, packets_per_s)| Background {
            bytes,
            packets_per_s,
            police: None,
        });
        Ok(Setup {
            costs,
            buffers: usize::try_from(BUFFERS)?,
            video: Some((video, FRAME)),
            file: timer(FILE_BURST, FILE_RATE).filter(|_| self.file),
            background,
            time,
        })
    }
}

fn late(outcome: &Outcome) -> usize {
    outcome.latencies.iter().filter(|latency| **latency > DEADLINE).count()
}

fn ours(costs: RouterCosts, (number, load): (u32, Load), time: Duration) -> Result<Section> {
    let admitted = load.admit(costs)?;
    let outcome = run(load.policed(costs, &admitted, time)?)?;
    let bound = delay_bound(costs, &admitted.reserved, admitted.background)?;
    let title = format!("Load {number}: {}", load.name);
    let mut section = Section::new(title).against_paper();
    section.show("average latency", Unit::Millis, outcome.average_millis(), load.average_ms);
    section.show("longest latency", Unit::Millis, outcome.longest_millis(), load.longest_ms);
    let none = Bound::AtMost(0.0);
    let late = count(late(&outcome));
    section.must("frames later than 33 ms", Unit::Count, late, f64::NAN, none);
    let deepest = count(outcome.router.deepest);
    let sum = Bound::AtMost(float(admitted.burst_packets));
    section.must("deepest queue (bound: Σσ), packets", Unit::Count, deepest, load.deepest, sum);
    let dropped = float(outcome.router.dropped_high);
    section.must("dropped packets of high priority", Unit::Count, dropped, f64::NAN, none);
    let longest = millis(outcome.router.longest);
    let most = Bound::AtMost(millis(bound));
    section.must("longest delay in the router", Unit::Millis, longest, f64::NAN, most);
    let share = float(admitted.processor) / 1e7;
    section.show("reserved processor time", Unit::Percent, share, f64::NAN);
    if let Some((_, packets_per_s)) = load.background {
        let arrived = float(outcome.background_packets) / time_s(time);
        let name = "background packets that reach the router";
        section.show(name, Unit::PerSecond, arrived, float(packets_per_s));
    }
    if let (Some(refusal), Some(less)) = (admitted.refused, admitted.background) {
        section.note(refused(&refusal, less));
    }
    Ok(section)
}

/// Describes the refusal of a background, and the rate to which it is policed.
fn refused(refusal: &LinkRefusal, less: Request) -> String {
    let millis = |nanos| float(nanos) / 1e6;
    let (needed, available) = (millis(refusal.needed), millis(refusal.available));
    format!(
        "The background is refused: {needed:.0} ms of processor time per second are needed, and {available:.0} ms are \
         available. It sends the same load nevertheless, and its policer passes the offered rate, {:.2} Mbit/s. The \
         paper's router supports 5.5 Mbit/s of these packets next to 27 Mbit/s; our cost of receiving them derives from \
         nearly the same measurement.",
        float(less.rate) / 1e6
    )
}

fn time_s(time: Duration) -> f64 {
    float(time.as_nanos()) / 1e9
}

fn theirs(costs: RouterCosts, time: Duration) -> Result<Section> {
    let title = "The four loads with the paper's policers and test, simulated";
    let mut section = Section::new(title).against_paper();
    for (number, load) in (1..).zip(LOADS) {
        let outcome = run(load.unpoliced(costs, time)?)?;
        let name = |what: &str| format!("load {number}: {what}");
        let average = outcome.average_millis();
        section.show(&name("average latency"), Unit::Millis, average, load.average_ms);
        let longest = outcome.longest_millis();
        section.show(&name("longest latency"), Unit::Millis, longest, load.longest_ms);
        let deepest = count(outcome.router.deepest);
        section.show(&name("deepest queue, packets"), Unit::Count, deepest, load.deepest);
    }
    section.note(
        "Shows how far the simulated router resembles the real one. Under loads 1 to 3 the latencies lack a nearly \
         constant time: the end systems. Load 4 overloads the router, and its queue exceeds Σσ, as in the paper. The \
         text states only that this happens under no other load.",
    );
    Ok(section)
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
            let outcome = run(load.policed(costs, &admitted, TIME).unwrap()).unwrap();
            let bound = delay_bound(costs, &admitted.reserved, admitted.background).unwrap();
            assert!(outcome.router.longest <= bound, "{}: {outcome:?}", load.name);
            assert!(outcome.router.deepest as u64 <= admitted.burst_packets, "{}", load.name);
            assert_eq!((late(&outcome), outcome.router.dropped_high), (0, 0), "{}", load.name);
            assert_eq!(outcome.latencies.len(), 600, "{}", load.name);
        }
    }

    #[test]
    fn only_the_small_packets_are_refused_and_without_the_test_they_break_the_bound() {
        let costs = RouterCosts::of_text().unwrap();
        let refused = LOADS.map(|load| load.admit(costs).unwrap().refused.is_some());
        assert_eq!(refused, [false, false, false, true]);
        let deepest = LOADS.map(|load| run(load.unpoliced(costs, TIME).unwrap()).unwrap());
        let deepest = deepest.map(|outcome| outcome.router.deepest);
        assert!(deepest[0] <= 6 && deepest[1] <= 8 && deepest[2] <= 8, "{deepest:?}");
        assert!(deepest[3] > 8, "{deepest:?}");
    }

    #[test]
    fn the_offer_is_near_the_largest_background_that_the_paper_measured() {
        // 5.5 Mbit/s of 128 bytes next to 27 Mbit/s of high priority (§4.3.2).
        let costs = RouterCosts::of_text().unwrap();
        let background = LOADS[3].admit(costs).unwrap().background.unwrap();
        assert!((5_000_000..6_000_000).contains(&background.rate), "{background:?}");
    }
}

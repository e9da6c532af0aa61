//! What DRR and WF²Q+ promise, against the fluid link and by the papers' formulas.
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test may panic")]

use fluid::{FRACTION, Fluid};
use paceline_sched::discipline::{
    Class, Discipline, Eligibility, Head, Policy, Scheduler, StreamIndex, Terms,
};
use paceline_sched::time::{Duration, Instant};
use random::{Random, run};
use std::collections::VecDeque;

#[path = "support/fluid.rs"]
mod fluid;
#[path = "support/random.rs"]
#[expect(dead_code, reason = "a test picks its own")]
mod random;

/// A link of one byte per nanosecond, with the queues behind it.
struct Link {
    discipline: Discipline,
    /// Bytes and instant of arrival of what waits.
    waiting: Vec<VecDeque<(u32, u64)>>,
    /// Bytes that each stream has been served.
    served: Vec<u64>,
    now: u64,
}

fn index(stream: usize) -> StreamIndex {
    StreamIndex(u32::try_from(stream).unwrap())
}

impl Link {
    fn new(policy: Policy, rates: &[u64]) -> Self {
        let mut discipline = Discipline::new(policy, Eligibility::OncePerPeriod);
        for (stream, &rate) in rates.iter().enumerate() {
            discipline.join(index(stream), Terms::new(Class::BestEffort).with_rate(rate));
        }
        let (waiting, served) = (vec![VecDeque::new(); rates.len()], vec![0; rates.len()]);
        Self { discipline, waiting, served, now: 0 }
    }

    fn announce(&mut self, stream: usize) {
        if let Some(&(bytes, _)) = self.waiting[stream].front() {
            let head = Head::whole(Instant::from_nanos(self.now), Duration::ZERO, bytes);
            self.discipline.handle_head(index(stream), head);
        }
    }

    fn arrive(&mut self, stream: usize, bytes: u32) {
        self.waiting[stream].push_back((bytes, self.now));
        if self.waiting[stream].len() == 1 {
            self.announce(stream);
        }
    }

    /// Sends one packet: whose, its bytes, when it arrived. Then `now` is its end.
    fn send(&mut self) -> Option<(usize, u32, u64)> {
        let stream = self.discipline.pick(Instant::from_nanos(self.now))?.0 as usize;
        let (bytes, arrived) = self.waiting[stream].pop_front().unwrap();
        self.now += u64::from(bytes);
        self.served[stream] += u64::from(bytes);
        self.discipline.handle_served(index(stream), bytes, Instant::from_nanos(self.now));
        self.announce(stream);
        Some((stream, bytes, arrived))
    }
}

const LONGEST: u64 = 100;

fn length(random: &mut Random) -> u32 {
    u32::try_from(random.within(1, LONGEST)).unwrap()
}

/// The most that a stream was ahead of the fluid link and behind it, in 2^-40 bytes. Each of them
/// either always has packets or sends now and then.
fn beside_the_fluid_link(seed: u64, always: bool) -> (i128, i128) {
    let mut random = Random(seed);
    let streams = usize::try_from(random.within(2, 6)).unwrap();
    let rates: Vec<u64> = (0..streams).map(|_| random.within(1, 20)).collect();
    let mut link = Link::new(Policy::Wf2qPlus, &rates);
    let mut fluid = Fluid::new(&rates);
    let load = random.within(1, 4);
    let (mut most_ahead, mut most_behind) = (0, 0);
    for step in 0..200 {
        for stream in 0..streams {
            let count = match always {
                // The link cannot send more in all.
                true if step == 0 => 200,
                true => 0,
                false if random.once_in(load) => random.within(0, 2),
                false => 0,
            };
            for _ in 0..count {
                let bytes = length(&mut random);
                link.arrive(stream, bytes);
                fluid.arrive(stream, bytes);
            }
        }
        let Some((_, bytes, _)) = link.send() else { continue };
        fluid.run(bytes);
        for stream in 0..streams {
            let ahead = (i128::from(link.served[stream]) << FRACTION) - fluid.served(stream);
            most_ahead = most_ahead.max(ahead);
            most_behind = most_behind.max(-ahead);
        }
        if always && link.waiting.iter().any(VecDeque::is_empty) {
            break;
        }
    }
    (most_ahead, most_behind)
}

fn within(packets: i128, (ahead, behind): (i128, i128)) -> Result<(), String> {
    let most = (packets * i128::from(LONGEST)) << FRACTION;
    if ahead <= most && behind <= most {
        return Ok(());
    }
    Err(format!("{} ahead, {} behind", ahead >> FRACTION, behind >> FRACTION))
}

/// While all are backlogged, V is the fluid link's virtual time, and this is the theorem of WF²Q.
#[test]
fn backlogged_streams_stay_within_a_packet_of_the_fluid_link() {
    run("fluid", 3_000, |seed| within(1, beside_the_fluid_link(seed, true)));
}

/// While some are idle, V lags behind the fluid link's virtual time, which hands their shares on at
/// once. Then one packet is not the bound. Nothing is proven of three; they hold in every life tried.
#[test]
fn streams_that_come_and_go_stay_within_three_packets_of_the_fluid_link() {
    run("fluid", 5_000, |seed| within(3, beside_the_fluid_link(seed, false)));
    let above = (0..5_000).any(|seed| within(1, beside_the_fluid_link(seed, false)).is_err());
    assert!(above, "one packet would do: say so");
}

/// Of the rates below, all that may take part at once sum up to this.
const TOTAL: u64 = 64;

/// One stream is backlogged for good. Others join, leave, and join again when what they were served
/// has been paid for at their rate; until then their rate is not given to anybody else. Returns the
/// most that the stream fell behind its rate in any interval, in bytes times TOTAL, and its rate.
fn while_others_come_and_go(seed: u64, policy: Policy, scale: u64) -> (i64, u64) {
    let mut random = Random(seed);
    let mut rates: Vec<u64> = (0..5).map(|_| random.within(1, TOTAL / 5)).collect();
    rates[0] += TOTAL - rates.iter().sum::<u64>();
    let scaled = |rate: u64| Terms::new(Class::BestEffort).with_rate(rate * scale);
    let mut link = Link::new(policy, &[]);
    link.waiting = vec![VecDeque::new(); rates.len()];
    link.served = vec![0; rates.len()];
    link.discipline.join(index(0), scaled(rates[0]));
    let mut away: Vec<Option<u64>> = vec![Some(0); rates.len()];
    away[0] = None;
    let (mut least, mut worst) = (0, 0);
    for _ in 0..400 {
        for stream in 0..rates.len() {
            let comes = random.once_in(8);
            match away[stream] {
                Some(until) if comes && link.now >= until => {
                    link.discipline.join(index(stream), scaled(rates[stream]));
                    away[stream] = None;
                }
                None if comes && stream > 0 => {
                    link.discipline.leave(index(stream));
                    link.waiting[stream].clear();
                    // A packet on its way then counts as begun.
                    away[stream] = Some(link.now + LONGEST * TOTAL / rates[stream] + LONGEST);
                }
                _ => {}
            }
            let keeps = if stream == 0 { 3 } else { random.within(0, 2) };
            while away[stream].is_none() && (link.waiting[stream].len() as u64) < keeps {
                let bytes = length(&mut random);
                link.arrive(stream, bytes);
            }
        }
        link.send();
        let due = i64::try_from(rates[0] * link.now).unwrap();
        let behind = due - i64::try_from(TOTAL * link.served[0]).unwrap();
        least = behind.min(least);
        worst = worst.max(behind - least);
    }
    (worst, rates[0])
}

#[test]
fn nobody_takes_a_backlogged_streams_share_under_wf2q_plus() {
    run("share", 5_000, |seed| {
        let (behind, rate) = while_others_come_and_go(seed, Policy::Wf2qPlus, 1_000);
        // The worst-case fair index is at most the longest packet; and heads that come while a packet
        // is on its way count as come when it began, which is the others' share of that packet.
        let most = i64::try_from(LONGEST * (TOTAL + TOTAL - rate)).unwrap();
        if behind <= most { Ok(()) } else { Err(format!("{behind} of {most}")) }
    });
}

#[test]
fn nobody_takes_a_backlogged_streams_share_under_drr() {
    for quantum in [1 << 10, 1 << 20, 10 << 20, 1 << 27] {
        run("share", 1_000, |seed| {
            let (behind, rate) = while_others_come_and_go(seed, Policy::Drr, quantum);
            // Two turns and a packet of its own, and its share of a packet of each other.
            let turns = 2 * ((rate * quantum) >> 20);
            let most = (turns + LONGEST + 1) * TOTAL + rate * LONGEST * 4;
            if behind <= i64::try_from(most).unwrap() { Ok(()) } else { Err(format!("{behind}")) }
        });
    }
}

/// Streams 0 and 1 are backlogged, others come and go.
fn drr_pair(seed: u64) -> Result<(), String> {
    let mut random = Random(seed);
    let bits = random.within(17, 30);
    let mut rate = || random.within(1 << bits, 16 << bits);
    let rates: Vec<u64> = (0..4).map(|_| rate()).collect();
    let mut link = Link::new(Policy::Drr, &rates);
    // Normalised services over each other's quanta, S0·Q1 − S1·Q0, in 2^-20 bytes squared.
    let quanta = (i128::from(rates[0]), i128::from(rates[1]));
    let longest = i128::from(LONGEST) << 20;
    let most = quanta.0 * quanta.1 + longest * (quanta.0 + quanta.1);
    let (mut least, mut greatest) = (0, 0);
    for _ in 0..300 {
        for stream in 0..4 {
            let keeps = if stream < 2 { 3 } else { random.within(0, 3) };
            while (link.waiting[stream].len() as u64) < keeps {
                let bytes = length(&mut random);
                link.arrive(stream, bytes);
            }
        }
        link.send();
        let [first, second] = [0, 1].map(|stream| i128::from(link.served[stream]) << 20);
        let ahead = first * quanta.1 - second * quanta.0;
        (least, greatest) = (ahead.min(least), ahead.max(greatest));
        if greatest - least > most {
            return Err(format!("{rates:?}: {} of {most}", greatest - least));
        }
    }
    Ok(())
}

#[test]
fn two_backlogged_streams_share_by_their_quanta_under_drr() {
    run("DRR", 10_000, drr_pair);
}

/// Stream 0 pauses and begins again; every quantum is at least the longest packet.
fn drr_latency(seed: u64) -> Result<(), String> {
    let mut random = Random(seed);
    let rates: Vec<u64> = (0..5).map(|_| random.within(LONGEST << 20, LONGEST << 24)).collect();
    let sum: u64 = rates.iter().sum();
    let mut link = Link::new(Policy::Drr, &rates);
    let (mut began, mut before) = (None, 0);
    for _ in 0..400 {
        for stream in 0..5 {
            let keeps = if stream == 0 { 0 } else { random.within(1, 3) };
            while (link.waiting[stream].len() as u64) < keeps {
                let bytes = length(&mut random);
                link.arrive(stream, bytes);
            }
        }
        if link.waiting[0].is_empty() && random.once_in(20) {
            (began, before) = (Some(link.now), link.served[0]);
            for _ in 0..random.within(1, 60) {
                let bytes = length(&mut random);
                link.arrive(0, bytes);
            }
        }
        link.send();
        let Some(since) = began.filter(|_| !link.waiting[0].is_empty()) else { continue };
        // W ≥ Q0/F · (t − θ), with θ = 3F − 2Q0 in bytes.
        let latency = (3 * sum - 2 * rates[0]) >> 20;
        let late = i128::from(link.now - since) - i128::from(latency) - 1;
        let served = i128::from(link.served[0] - before);
        if served * i128::from(sum) < late * i128::from(rates[0]) {
            return Err(format!("{rates:?}: {served} after {late} of {latency}"));
        }
    }
    Ok(())
}

#[test]
fn the_latency_of_drr_is_three_rounds_less_two_turns_at_most() {
    run("DRR", 3_000, drr_latency);
}

/// Stream 0 keeps to a leaky bucket, others send what they like.
fn wf2q_delay(seed: u64) -> Result<(), String> {
    let mut random = Random(seed);
    let rates: Vec<u64> = (0..5).map(|_| random.within(1, 20)).collect();
    let sum: u64 = rates.iter().sum();
    let mut link = Link::new(Policy::Wf2qPlus, &rates);
    let burst = random.within(LONGEST, 4 * LONGEST);
    // The bucket, in bytes times the sum of rates, and when it was filled so far.
    let (mut bucket, mut filled) = (burst * sum, 0);
    let mut next = 0;
    for _ in 0..400 {
        for stream in 1..5 {
            for _ in 0..random.within(0, 2) {
                let bytes = length(&mut random);
                link.arrive(stream, bytes);
            }
        }
        // Whatever came while the last packet was on its way.
        while next <= link.now {
            bucket = (bucket + (next - filled) * rates[0]).min(burst * sum);
            filled = next;
            let bytes = length(&mut random);
            if u64::from(bytes) * sum <= bucket {
                bucket -= u64::from(bytes) * sum;
                link.waiting[0].push_back((bytes, next));
                if link.waiting[0].len() == 1 {
                    link.announce(0);
                }
            }
            next += if random.once_in(3) { 0 } else { random.within(1, 200) };
        }
        let Some((stream, _, arrived)) = link.send() else {
            link.now += 1;
            continue;
        };
        let delay = link.now - arrived;
        // σ/r + Lmax/C, with r = C · rate / sum.
        if stream == 0 && (delay - LONGEST.min(delay)) * rates[0] > burst * sum {
            return Err(format!("{rates:?}: {delay} for a burst of {burst}"));
        }
    }
    Ok(())
}

#[test]
fn a_leaky_bucket_waits_as_long_as_its_burst_and_a_packet_under_wf2q_plus() {
    run("WF²Q+", 5_000, wf2q_delay);
}

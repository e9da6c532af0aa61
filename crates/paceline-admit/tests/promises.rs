//! Simulates admitted sets on a link in virtual time. All sources start together and send the worst
//! traffic that they may; no packet exceeds its guaranteed delay.

use paceline_admit::{
    Admission, AdmissionResult, AdmissionTest, Holder, LinkParameters, StreamDemand, Traffic, Trunk,
};
use paceline_sched::discipline::{ServiceClass, StreamIndex, Terms};
use paceline_sched::hfsc::Curves;
use paceline_sched::police::{Conformance as Policed, Constraint, Dual, PolicedUnit, Policer};
use paceline_sched::timeline::{Ahead, Arrivals, LinkTiming, Outcome, Setup, Spec, Step, Timeline};
use paceline_sched::{Capacity, Contract, Duration, Instant, Late, LossTolerance, Policy};

struct Random(u64);

impl Random {
    fn within(&mut self, low: u64, high: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        low + (self.0 >> 33) % (high - low + 1)
    }
}

/// Returns the number of random sets: `default`, or the value of the environment variable
/// `PACELINE_SCENARIOS`.
#[expect(clippy::disallowed_methods, reason = "the caller of the test sets the duration")]
fn seeds(default: u64) -> u64 {
    let asked = std::env::var("PACELINE_SCENARIOS").ok();
    asked.and_then(|count| count.parse().ok()).unwrap_or(default)
}

/// The disciplines that space the samples of each stream and guarantee its deadlines or windows.
const SPACING: [Policy; 7] = [
    Policy::Vds,
    Policy::DWCS,
    Policy::DelayEdd,
    Policy::Edf,
    Policy::Rcsp,
    Policy::StopAndGo,
    Policy::Rpq,
];

/// 8 Mbit/s: a byte takes one microsecond, so the link needs no rounding.
const MBIT: u64 = 8;
const LONGEST: u32 = 1_200;
const END: Instant = Instant::from_millis(400);

fn capacity() -> Capacity {
    Capacity::from_bits_per_s(MBIT * 1_000_000).expect("not zero")
}

const fn holder(number: u64) -> Holder {
    Holder { origin: 0, number }
}

fn random_demand(random: &mut Random) -> StreamDemand {
    let packet = random.within(40, LONGEST.into());
    let rate = random.within(10, 1_500) * 1_000;
    let peak_burst = packet + random.within(0, 2) * random.within(0, 2_000);
    let (peak_rate, burst) = match random.within(0, 1) {
        0 => (rate, peak_burst),
        _ => (rate + random.within(1, 12_000) * 1_000, peak_burst + random.within(0, 8_000)),
    };
    let dual = Dual { peak_burst, peak_rate, burst, rate };
    let traffic = Traffic::new(dual, packet, 1 << 30).expect("within its ranges");
    StreamDemand::new(traffic, Duration::from_micros(random.within(1_000, 60_000)))
        .expect("a deadline")
}

/// Admits random demands until the link is nearly full.
fn admitted(random: &mut Random, rule: AdmissionTest) -> (Admission, Vec<StreamDemand>) {
    let mut link = Admission::new(LinkParameters::new(capacity(), rule, LONGEST.into()));
    let mut demands = Vec::new();
    for number in 0..40 {
        let mut demand = random_demand(random).with_level(u32::try_from(number % 4).unwrap_or(0));
        if number > 20 {
            // Fill the remaining capacity with small demands.
            demand = StreamDemand::new(
                Traffic::leaky(200, 40_000, 200).expect("traffic"),
                demand.deadline(),
            )
            .expect("a deadline")
            .with_level(3);
        }
        let trunk = Trunk(number.into());
        if matches!(link.hold(trunk, holder(number), &demand), AdmissionResult::Granted(_)) {
            link.commit(trunk, holder(number), None);
            demands.push(demand);
        }
    }
    (link, demands)
}

/// Returns packets as early as the dual bucket permits, starting one nanosecond after 0.
fn greedy(random: &mut Random, traffic: &Traffic) -> (Vec<u32>, Vec<Instant>) {
    let constraint = Constraint::dual(PolicedUnit::Bytes, traffic.dual()).expect("checked");
    let mut policer = Policer::new(constraint);
    let (mut sizes, mut instants) = (Vec::new(), Vec::new());
    let mut now = Instant::from_nanos(1);
    while now < END && sizes.len() < 2_000 {
        let bytes = match random.within(0, 3) {
            0 => random.within(1, traffic.packet()),
            _ => traffic.packet(),
        };
        match policer.police(now, bytes) {
            Policed::Conforms => {
                sizes.push(u32::try_from(bytes).expect("a packet"));
                instants.push(now);
            }
            Policed::At(at) => now = at,
            Policed::Never => panic!("a packet of {bytes} bytes never conforms"),
        }
    }
    (sizes, instants)
}

const fn contract(deadline: Duration) -> Contract {
    Contract {
        period: Duration::from_nanos(1),
        deadline,
        loss: LossTolerance::NONE,
        late: Late::Send,
        jitter: Duration::ZERO,
    }
}

fn terms(policy: Policy, link: &Admission, demand: &StreamDemand) -> Terms {
    let terms = Terms::new(ServiceClass::Contracted(contract(demand.deadline())));
    match policy {
        Policy::StaticPriority => terms.with_priority(demand.level()),
        Policy::Hfsc => {
            let real_time = link.curve(demand);
            assert!(real_time.is_some(), "an admitted stream has a curve");
            terms.with_curves(Curves { real_time, ..Curves::default() })
        }
        Policy::Wf2qPlus => {
            let burst = demand.traffic().burst() * 1_000_000_000;
            let left =
                demand.deadline().saturating_sub(capacity().time_for(2 * u64::from(LONGEST)));
            let share = burst / left.as_nanos() + 1;
            terms.with_rate(share.max(demand.traffic().rate().div_ceil(8)))
        }
        Policy::Fifo
        | Policy::Edf
        | Policy::DelayEdd
        | Policy::Dwcs { .. }
        | Policy::Vds
        | Policy::Rcsp
        | Policy::StopAndGo
        | Policy::Rpq
        | Policy::Drr => terms,
    }
}

fn spec(terms: Terms, sizes: Vec<u32>, arrivals: Arrivals) -> Spec {
    Spec { terms, sizes, arrivals, police: None, class: None }
}

/// Runs a random set with long packets of other traffic. Returns the largest used part of a
/// guarantee, in thousandths, and the number of packets.
fn run(random: &mut Random, policy: Policy, rule: AdmissionTest) -> (u64, u64) {
    let (link, demands) = admitted(random, rule);
    let mut streams: Vec<Spec> = demands
        .iter()
        .map(|demand| {
            let (sizes, instants) = greedy(random, demand.traffic());
            spec(terms(policy, &link, demand), sizes, Arrivals::At(instants))
        })
        .collect();
    // Under FIFO only one packet of other traffic can precede them.
    let others = if policy == Policy::Fifo {
        Arrivals::At(vec![Instant::ZERO])
    } else {
        Arrivals::Backlogged
    };
    streams.push(spec(Terms::new(ServiceClass::BestEffort), vec![LONGEST], others));
    let setup = Setup {
        policy,
        ahead: Ahead::Competes,
        link: LinkTiming::Capacity(capacity()),
        segment: LONGEST,
        end: END,
    };
    let (mut worst, mut packets) = (0, 0);
    for step in Timeline::new(setup, streams) {
        let Step::Decided(decision) = step else { continue };
        let Some(demand) = demands.get(decision.stream.0 as usize) else { continue };
        let delay = decision.delay.expect("everything is sent");
        assert!(delay <= demand.deadline(), "{policy}: {delay} of {demand:?}: {decision:?}");
        worst = worst.max(delay.as_nanos() * 1_000 / demand.deadline().as_nanos());
        packets += 1;
    }
    (worst, packets)
}

#[test]
fn no_packet_of_an_admitted_set_stays_longer_than_promised() {
    for (policy, rule, least) in [
        (Policy::Fifo, AdmissionTest::Fifo, 500),
        (Policy::StaticPriority, AdmissionTest::StaticPriority, 500),
        (Policy::Edf, AdmissionTest::Edf, 900),
        (Policy::Hfsc, AdmissionTest::Hfsc, 900),
        (Policy::Wf2qPlus, AdmissionTest::Shares, 700),
    ] {
        let (mut worst, mut packets) = (0, 0);
        for seed in 0..seeds(300) {
            let (part, sent) = run(&mut Random(seed * 7 + 1), policy, rule);
            worst = worst.max(part);
            packets += sent;
        }
        println!("{policy}: {packets} packets, the worst used {worst}/1000 of its promise");
        // Ensures that the guarantees are tight enough to be meaningful.
        assert!(worst >= least && packets > 20_000, "{policy}: {worst}/1000, {packets} packets");
    }
}

/// Returns random contracts with jitter and windows.
fn contracts(random: &mut Random) -> Vec<(Contract, u64)> {
    (0..30)
        .map(|_| {
            let period = Duration::from_micros(random.within(5, 80) * 1_000);
            let y = random.within(1, 10);
            let x = random.within(0, 2) * random.within(0, y - 1) / 2;
            let small = |number: u64| u32::try_from(number).unwrap_or(1);
            let loss = LossTolerance::new(small(x), small(y));
            // A contract with a loss tolerance has a deadline of at most y/(y − x) periods
            // (`owed.rs`).
            let most = if x == 0 { Duration::from_secs(1) } else { period.mul_div(y, y - x) };
            let contract = Contract {
                period,
                deadline: Duration::from_micros(random.within(4_000, 90_000)).min(most),
                loss: loss.unwrap_or(LossTolerance::NONE),
                late: Late::Drop,
                jitter: period.mul_div(random.within(0, 1), 2),
            };
            (contract, random.within(100, 9_000))
        })
        .collect()
}

/// The samples of a window so far, and those of them that missed.
#[derive(Clone, Copy, Default)]
struct Window {
    samples: u32,
    missed: u32,
}

impl Window {
    /// Counts a sample. Returns true if no more have missed than the contract tolerates.
    fn count(&mut self, contract: &Contract, in_time: bool) -> bool {
        self.samples += 1;
        self.missed += u32::from(!in_time);
        let is_kept = self.missed <= contract.loss.x();
        if self.samples == contract.loss.y() {
            *self = Self::default();
        }
        is_kept
    }
}

/// The results for the contracts of one link.
#[derive(Default)]
struct Windows {
    samples: u64,
    missed: u64,
    /// The largest used part of a guarantee, in thousandths.
    worst: u64,
    /// The number of sets whose full rate exceeds the capacity.
    overfull: u64,
}

/// Returns as many contracts as a link admits, until it is nearly full.
fn promised(random: &mut Random, policy: Policy) -> Vec<(Contract, u64)> {
    let rule = AdmissionTest::of(policy).expect("a test of its own");
    let mut link = Admission::new(LinkParameters::new(capacity(), rule, LONGEST.into()));
    let mut kept = Vec::new();
    for (number, (contract, bytes)) in (0..).zip(contracts(random)) {
        let demand = StreamDemand::of_contract(&contract, bytes, LONGEST.into()).expect("a demand");
        if let AdmissionResult::Granted(_) = link.hold(Trunk(number), holder(0), &demand) {
            kept.push((contract, bytes));
        }
    }
    kept
}

/// Each sample arrives as early as permitted.
fn early(contract: &Contract, end: Instant) -> Arrivals {
    let (period, jitter) = (contract.period, contract.jitter);
    let at = |n| {
        let turn = period.mul_div(n, 1);
        Instant::from_nanos(1) + turn.saturating_sub(jitter.min(turn))
    };
    Arrivals::At((0..).map(at).take_while(|at| *at < end).collect())
}

/// Returns the terms on which a link serves a contract: samples begin early as admission assumes.
fn promised_terms(contract: &Contract, bytes: u64) -> Terms {
    let early = capacity().time_for(bytes) <= contract.deadline.mul_div(2, 3);
    Terms::new(ServiceClass::Contracted(*contract)).with_early_begin(early)
}

/// Returns the streams of these contracts, which start together.
fn streams(contracts: &[(Contract, u64)], end: Instant) -> Vec<Spec> {
    let stream = |(contract, bytes): &(Contract, u64)| {
        let size = u32::try_from(*bytes).expect("small");
        spec(promised_terms(contract, *bytes), vec![size], early(contract, end))
    };
    contracts.iter().map(stream).collect()
}

/// Returns a stream with this contract that begins at any time, pauses, and is early at random.
fn with_pauses(random: &mut Random, (contract, bytes): &(Contract, u64), end: Instant) -> Spec {
    let (mut next, mut instants) = (Instant::from_millis(random.within(50, 200)), Vec::new());
    while next < end {
        let early = random.within(0, contract.jitter.as_nanos());
        instants.push(next - Duration::from_nanos(early));
        let pause = if random.within(0, 30) == 0 { random.within(0, 60_000) } else { 0 };
        next += contract.period.saturating_add(Duration::from_micros(pause));
    }
    let size = u32::try_from(*bytes).expect("small");
    spec(promised_terms(contract, *bytes), vec![size], Arrivals::At(instants))
}

/// Returns a stream with this contract that sends bursts, up to eight times as often, of whole or smaller samples.
fn beyond(random: &mut Random, (contract, bytes): &(Contract, u64), end: Instant) -> Spec {
    let size = u32::try_from((bytes / random.within(1, 4)).max(1)).expect("small");
    let (mut at, mut instants) = (Instant::from_nanos(1), Vec::new());
    while at < end {
        let burst = random.within(1, 8);
        instants.extend((0..burst).map(|_| at));
        at += contract.period.mul_div(random.within(1, burst + 1), random.within(1, 8));
    }
    spec(promised_terms(contract, *bytes), vec![size], Arrivals::At(instants))
}

/// Returns a link with these streams and long packets of other traffic.
fn timeline(policy: Policy, mut streams: Vec<Spec>, end: Instant) -> Timeline {
    streams.push(spec(Terms::new(ServiceClass::BestEffort), vec![LONGEST], Arrivals::Backlogged));
    let link = LinkTiming::Capacity(capacity());
    Timeline::new(Setup { policy, ahead: Ahead::Shares, link, segment: LONGEST, end }, streams)
}

/// Returns a link with these contracts and long packets of other traffic. All streams start together.
fn shared(policy: Policy, contracts: &[(Contract, u64)], end: Instant) -> Timeline {
    timeline(policy, streams(contracts, end), end)
}

/// The state of the windows when the streams start.
#[derive(Clone, Copy)]
enum Begun {
    /// They begin.
    Fresh,
    /// They have missed as many samples as they tolerate: the greediest state that a pause can leave.
    Used,
}

/// Returns true if every contract is kept with the greediest arrivals: all start together and send as early as
/// permitted.
fn is_kept(policy: Policy, contracts: &[(Contract, u64)], begun: Begun, end: Instant) -> bool {
    let mut timeline = shared(policy, contracts, end);
    let mut windows: Vec<Window> = Vec::new();
    for (stream, (contract, _)) in (0..).map(StreamIndex).zip(contracts) {
        let missed = match begun {
            Begun::Fresh => 0,
            Begun::Used => contract.loss.x(),
        };
        timeline.handle_skipped(stream, missed);
        windows.push(Window { samples: missed, missed });
    }
    for step in timeline {
        let Step::Decided(decision) = step else { continue };
        let place = decision.stream.0 as usize;
        let (Some((contract, _)), Some(window)) = (contracts.get(place), windows.get_mut(place))
        else {
            continue;
        };
        let in_time = decision.outcome == Outcome::OnTime
            && decision.delay.is_some_and(|delay| delay <= contract.deadline);
        if !window.count(contract, in_time) {
            return false;
        }
    }
    true
}

impl Windows {
    /// Runs a random set with long packets of other traffic and checks every sample.
    fn look(&mut self, seed: u64, policy: Policy) {
        let kept = promised(&mut Random(seed * 3 + 2), policy);
        let load = |(contract, bytes): &(Contract, u64)| {
            bytes * 8_000_000_000 / contract.period.as_nanos()
        };
        let loads: u64 = kept.iter().map(load).sum();
        self.overfull += u64::from(loads > capacity().bits_per_s());
        let mut windows = vec![Window::default(); kept.len()];
        for step in shared(policy, &kept, END) {
            let Step::Decided(decision) = step else { continue };
            let place = decision.stream.0 as usize;
            let (Some((contract, _)), Some(window)) = (kept.get(place), windows.get_mut(place))
            else {
                continue;
            };
            let in_time = decision.outcome == Outcome::OnTime;
            if in_time {
                let delay = decision.delay.expect("sent");
                assert!(delay <= contract.deadline, "{policy} {seed}: {delay} of {contract:?}");
                let part = delay.as_nanos() * 1_000 / contract.deadline.as_nanos();
                self.worst = self.worst.max(part);
            }
            self.missed += u64::from(!in_time);
            assert!(window.count(contract, in_time), "{policy} {seed}: {contract:?}");
            self.samples += 1;
        }
    }
}

#[test]
fn disciplines_that_space_samples_keep_the_windows_of_an_admitted_set() {
    for policy in SPACING {
        let (mut all, sets) = (Windows::default(), seeds(300));
        (0..sets).for_each(|seed| all.look(seed, policy));
        let Windows { samples, missed, worst, overfull } = all;
        println!(
            "{policy}: {samples} samples, {missed} missed within their windows, {worst}/1000; {overfull} of \
             {sets} sets ask for more than the link carries"
        );
        // Under Stop-and-Go a sample is rarely sent as late as at the end of the second frame.
        let least = if policy == Policy::StopAndGo { 600 } else { 800 };
        assert!(samples > 3_000 && worst > least, "{policy}: {samples} samples, {worst}/1000");
        assert_eq!(
            overfull > 50,
            policy == Policy::Vds,
            "loss tolerance frees capacity under VDS only"
        );
    }
}

/// Sources that pause, and one that sends whole or smaller samples more often than its contract allows: it harms only itself.
#[test]
fn an_admitted_set_is_kept_next_to_a_greedy_source() {
    for policy in SPACING {
        let (mut samples, mut excess) = (0_u64, 0_u64);
        for seed in 0..seeds(200) {
            let mut random = Random(seed * 5 + 1);
            let kept = promised(&mut random, policy);
            let last = u64::try_from(kept.len() - 1).expect("few");
            let greedy = usize::try_from(random.within(0, last)).expect("few");
            let end = Instant::from_millis(2_000);
            let mut streams: Vec<Spec> =
                kept.iter().map(|one| with_pauses(&mut random, one, end)).collect();
            streams[greedy] = beyond(&mut random, &kept[greedy], end);
            let mut windows = vec![Window::default(); kept.len()];
            for step in timeline(policy, streams, end) {
                let Step::Decided(decision) = step else { continue };
                let place = decision.stream.0 as usize;
                if place == greedy || place >= kept.len() {
                    excess += u64::from(place == greedy);
                    continue;
                }
                let contract = &kept[place].0;
                let in_time = decision.delay.is_some_and(|delay| delay <= contract.deadline);
                assert!(windows[place].count(contract, in_time), "{policy} {seed}: {contract:?}");
                samples += 1;
            }
        }
        println!(
            "{policy}: {samples} samples kept their windows next to {excess} of greedy sources"
        );
        assert!(samples > 3_000 && excess > 1_000, "{policy}: {samples}, {excess}");
    }
}

/// How many refused contracts the link could have kept with the greediest arrivals: at most a tenth. The figures are in
/// docs/internals/admission-tests.md.
#[test]
fn few_refused_contracts_fit_by_an_exact_simulation() {
    for policy in [Policy::Vds, Policy::DWCS, Policy::DelayEdd, Policy::Edf] {
        let rule = AdmissionTest::of(policy).expect("a test of its own");
        let (mut refused, mut fresh, mut used) = (0_u32, 0_u32, 0_u32);
        let end = Instant::from_millis(4_000);
        for seed in 0..seeds(60) {
            let mut link = Admission::new(LinkParameters::new(capacity(), rule, LONGEST.into()));
            let mut kept = Vec::new();
            for (number, one) in (0..).zip(contracts(&mut Random(seed * 3 + 2))) {
                let demand = StreamDemand::of_contract(&one.0, one.1, LONGEST.into());
                let verdict = link.hold(Trunk(number), holder(0), &demand.expect("a demand"));
                kept.push(one);
                if matches!(verdict, AdmissionResult::Granted(_)) {
                    continue;
                }
                let fits = is_kept(policy, &kept, Begun::Fresh, end);
                refused += 1;
                fresh += u32::from(fits);
                used += u32::from(fits && is_kept(policy, &kept, Begun::Used, end));
                kept.pop();
            }
            for begun in [Begun::Fresh, Begun::Used] {
                assert!(is_kept(policy, &kept, begun, end), "{policy} {seed}: an admitted set");
            }
        }
        println!(
            "{policy}: of {refused} refused contracts {fresh} would have fitted with windows that begin with the \
             streams, and {used} also with windows that have missed what they tolerate"
        );
        assert!(refused > 100 && used * 10 <= refused, "{policy}: {used} of {refused}");
    }
}

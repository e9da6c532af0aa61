//! Measures the cost of one admission test with 10,000 admitted streams, and of the exact tests of a full link: `cargo
//! run --release -p paceline-admit --example admissions`.

use paceline_admit::{
    Admission, AdmissionResult, AdmissionTest, Holder, LinkParameters, StreamDemand, Trunk,
};
use paceline_sched::{Capacity, Contract, Duration};
use std::hint::black_box;

/// The default number of admitted streams, and of further admissions and releases.
const STREAMS: u64 = 10_000;
const ROUNDS: u64 = 2_000;

const fn holder(number: u64) -> Holder {
    Holder { origin: 1, number }
}

/// Returns samples of 100 to 1,600 bytes at 1 to 20 per second, of one of `kinds` kinds.
fn demand(number: u64, kinds: u64, jitter: bool) -> Option<StreamDemand> {
    let kind = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % kinds;
    let period = Duration::from_micros(50_000 + kind * 950_000 / kinds);
    let deadline = Duration::from_nanos(20_000_000 + kind * 180_000_000 / kinds);
    let contract = Contract::every(period).ok()?.with_deadline(deadline).ok()?;
    let jitter = if jitter { period.mul_div(1, 2) } else { Duration::ZERO };
    StreamDemand::of_contract(&contract.with_jitter(jitter), 100 + kind % 1_500, 1_200).ok()
}

#[expect(clippy::disallowed_methods, reason = "an example that measures")]
fn clock() -> std::time::Instant {
    std::time::Instant::now()
}

fn measure(
    (streams, rounds): (u64, u64),
    name: &str,
    rule: AdmissionTest,
    kinds: u64,
    jitter: bool,
) -> Option<()> {
    let capacity = Capacity::from_bits_per_s(20_000_000_000).ok()?;
    let mut link = Admission::new(LinkParameters::new(capacity, rule, 1_200));
    for number in 0..streams {
        let trunk = Trunk(number.into());
        if matches!(
            link.hold(trunk, holder(number), &demand(number, kinds, jitter)?),
            AdmissionResult::Granted(_)
        ) {
            link.commit(trunk, holder(number), None);
        }
    }
    let held = link.ledger().held.streams;
    let mut nanos: Vec<u128> = Vec::new();
    for number in streams..streams.saturating_add(rounds) {
        let (trunk, demand) = (Trunk(number.into()), demand(number, kinds, jitter)?);
        let begun = clock();
        black_box(link.hold(trunk, holder(number), &demand));
        link.commit(trunk, holder(number), None);
        nanos.push(begun.elapsed().as_nanos());
        link.release(trunk, holder(number));
    }
    nanos.sort_unstable();
    let micros = |permille: usize| {
        let at = nanos.get(nanos.len() * permille / 1_000).copied().unwrap_or_default();
        format!("{}.{}", at / 1_000, at % 1_000 / 100)
    };
    println!("| {name} | {held} | {kinds} | {} | {} |", micros(500), micros(990));
    Some(())
}

/// Measures tests, and refusals with their offers, on a link that has refused `kinds` different streams in a row.
///
/// With `curves`, only the curves above the samples are tested.
fn measure_full(name: &str, rule: AdmissionTest, kinds: u64, curves: bool) -> Option<()> {
    // About as many streams fit as there are kinds.
    let capacity = Capacity::from_bits_per_s(kinds * 70_000).ok()?;
    let mut link = Admission::new(LinkParameters::new(capacity, rule, 1_200));
    let mut refused = Vec::new();
    for number in 0..8 * kinds {
        let demand = demand(number, 8 * kinds, true)?;
        let alone = demand.source().without_samples();
        let demand = if curves { demand.with_source(alone) } else { demand };
        match link.hold(Trunk(number.into()), holder(number), &demand) {
            AdmissionResult::Granted(_) => refused.clear(),
            AdmissionResult::Refused(_) => refused.push((number, demand)),
        }
        if refused.len() >= 50 {
            break;
        }
    }
    let held = link.ledger().held.streams;
    let micros = |offers: bool| {
        let time = |(number, demand): &(u64, StreamDemand)| {
            let (trunk, holder, begun) = (Trunk((*number).into()), holder(*number), clock());
            if offers {
                black_box(link.ask(trunk, holder, demand));
            } else {
                black_box(link.fits(trunk, holder, demand));
            }
            begun.elapsed().as_micros()
        };
        let mut times: Vec<u128> = refused.iter().map(time).collect();
        times.sort_unstable();
        let at = |place: usize| times.get(place).copied().unwrap_or_default();
        format!("{} | {}", at(times.len() / 2), at(times.len().saturating_sub(1)))
    };
    println!("| {name} | {held} | {} | {} | {} |", refused.len(), micros(false), micros(true));
    Some(())
}

fn main() {
    let mut numbers = std::env::args().skip(1).map_while(|text| text.parse::<u64>().ok());
    let counts = (numbers.next().unwrap_or(STREAMS), numbers.next().unwrap_or(ROUNDS));
    println!(
        "| test | streams held | different | p50 µs | p99 µs |\n| --- | --- | --- | --- | --- |"
    );
    for kinds in [32, 10_000] {
        let rules = [
            ("Σσ, Σρ", AdmissionTest::SigmaRho { burst: 1 << 40, rate: 20_000_000_000 }, false),
            ("FIFO", AdmissionTest::Fifo, false),
            ("static priority", AdmissionTest::StaticPriority, false),
            ("EDF", AdmissionTest::Edf, false),
            ("EDF, with jitter", AdmissionTest::Edf, true),
            ("VDS", AdmissionTest::Vds { coincide: false }, true),
            ("HFSC", AdmissionTest::Hfsc, false),
        ];
        for (name, rule, jitter) in rules {
            if measure(counts, name, rule, kinds, jitter).is_none() {
                println!("{name}: an invalid demand in this example");
            }
        }
    }
    println!(
        "\n| test of a full link | streams held | refused | test: p50 µs | maximum | with offers: p50 µs | maximum |\n\
         | --- | --- | --- | --- | --- | --- | --- |"
    );
    for kinds in [100, 1_000] {
        let vds = AdmissionTest::Vds { coincide: false };
        let full = [
            ("EDF, curves alone", AdmissionTest::Edf, true),
            ("EDF", AdmissionTest::Edf, false),
            ("VDS, curves alone", vds, true),
            ("VDS", vds, false),
        ];
        for (name, rule, curves) in full {
            if measure_full(name, rule, kinds, curves).is_none() {
                println!("{name}: an invalid demand in this example");
            }
        }
    }
}

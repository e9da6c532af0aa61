//! Contracts next to retransmissions: losses of one stream make no other stream late.

use super::path::{Path, millis, per_mille, radio};
use paceline_proto::Retransmit;
use paceline_proto::control::PublisherSpec;
use paceline_proto::reason::DropReason;
use paceline_sched::{Duration, Late};
use paceline_sim::ask::{Ask as _, all, data, payloads, pictures};
use paceline_sim::impair::{Impairment, Loss};
use paceline_sim::{Pub, Random, Sub};

const FOR: Duration = Duration::from_secs(20);
/// Consecutive refusals after which a link counts as full.
const REFUSED: u32 = 6;

/// Bursts that lose a tenth of all frames, mostly one or two at a time.
fn lossy() -> Impairment {
    let loss = Loss::GilbertElliott {
        good_to_bad_ppm: 70_000,
        bad_to_good_ppm: 600_000,
        loss_good_ppm: 0,
        loss_bad_ppm: 1_000_000,
    };
    Impairment { loss, delay: millis(1), ..radio() }
}

struct Asked {
    name: String,
    within: Duration,
    publisher: Pub,
    subscription: Sub,
    /// Retransmission is off, so each sample that is not lost is sent once.
    once: bool,
}

/// Requests streams until the link refuses more. All begin in phase, which is the worst case.
fn fill(path: &mut Path, chance: &mut Random) -> Vec<Asked> {
    let (mut asked, mut refused) = (Vec::new(), 0);
    let mut begin = Vec::new();
    while refused < REFUSED {
        let once = asked.len() % 2 == 0;
        let period = millis(10 + chance.below(90));
        let within = millis(15 + chance.below(105));
        let bytes = 60 + chance.place(1_400);
        let name = format!("of-{}-{refused}", asked.len());
        let spec = PublisherSpec {
            period: Some(period),
            bytes_max: Some(bytes as u64),
            waits: false,
            latch: false,
            late: Late::Drop,
            ..data(&name)
        };
        let publisher = path.publish(spec);
        let choice = if once { Retransmit::None } else { Retransmit::Selective };
        let spec = all(&name).within_ms(within.as_nanos() / 1_000_000).retransmit(choice);
        let subscription = path.subscribe(spec);
        if path.world.grants(subscription).is_empty() {
            refused += 1;
            path.world.unsubscribe(subscription);
            path.world.unpublish(publisher);
        } else {
            refused = 0;
            begin.push((publisher, period, bytes));
            asked.push(Asked { name, within, publisher, subscription, once });
        }
    }
    for (publisher, period, bytes) in begin {
        let count = FOR.as_nanos() / period.as_nanos();
        path.world.every(publisher, period, count, payloads(bytes));
    }
    asked
}

/// Returns the number of networks: the value of `PACELINE_SCENARIOS`, or 12 by default.
#[expect(clippy::disallowed_methods, reason = "the caller of the test sets the duration")]
fn path_count() -> u64 {
    std::env::var("PACELINE_SCENARIOS").map_or(12, |it| it.parse().expect("a number of paths"))
}

/// Returns the samples over full links, the pieces retransmitted, and the samples that were late.
///
/// With `back`, best effort also fills the opposite direction, so that acknowledgements wait for its frames.
fn run(back: bool) -> (u64, u64, u64) {
    let (mut samples, mut repeated, mut late) = (0, 0, 0);
    for seed in 0..path_count() {
        let mut chance = Random::new(seed);
        let mut path = Path::new(seed, lossy());
        let asked = fill(&mut path, &mut chance);
        if back {
            let film = path.world.publish(path.there, pictures("back", 50, 8_000));
            path.world.subscribe(path.here, all("back"));
            path.world.every(film, millis(20), FOR.as_nanos() / 20_000_000, payloads(8_000));
        }
        path.world.run_for(FOR.saturating_add(millis(1_000)));
        repeated += path.repairs().0.repeated;
        for Asked { name, within, publisher, subscription, once } in &asked {
            let sent = path.world.stream(path.here, path.there, *publisher);
            let got = path.got(*subscription);
            let lost = sent.drops.of(DropReason::LinkLoss);
            let mut its = sent.late + sent.offered - sent.sent - lost;
            samples += sent.offered;
            if *once {
                its += got.iter().filter(|it| it.age > *within).count() as u64;
            }
            if its > 0 {
                println!("{seed} {name} within {within}: {its} late, {sent:?}");
            }
            late += its;
        }
    }
    println!(
        "return path full {back}: {samples} samples, {repeated} pieces sent again, {late} late"
    );
    (samples, repeated, late)
}

#[test]
fn retransmissions_make_nothing_else_late() {
    for back in [false, true] {
        let (samples, repeated, late) = run(back);
        assert_eq!(late, 0);
        assert!(samples > 5_000 && repeated > 1_000, "{samples} {repeated}");
    }
}

#[test]
fn best_effort_losses_delay_no_contracted_repair() {
    let mut path = Path::new(7, lossy());
    let steady = PublisherSpec { bytes_max: Some(1_300), late: Late::Drop, ..data("steady") };
    let steady = path.publish(PublisherSpec { period: Some(millis(8)), ..steady });
    let slow = PublisherSpec { bytes_max: Some(300), late: Late::Drop, ..data("slow") };
    let slow = path.publish(PublisherSpec { period: Some(millis(50)), ..slow });
    let film = path.publish(pictures("film", 50, 4_000));
    let kept = path.subscribe(all("steady").within_ms(50).retransmit(Retransmit::None));
    let asked = path.subscribe(all("slow").within_ms(400));
    path.subscribe(all("film"));
    assert!(!path.world.grants(kept).is_empty() && !path.world.grants(asked).is_empty());
    for (publisher, period, bytes) in [(steady, 8, 1_300), (slow, 50, 300), (film, 20, 4_000)] {
        path.world.every(publisher, millis(period), 60_000 / period, payloads(bytes));
    }
    path.world.run_for(Duration::from_secs(62));
    let got = path.got(asked);
    let longest = per_mille(got, 1_000);
    println!("{} of 1200, the last after {longest}; {:?}", got.len(), path.repairs());
    assert!(got.len() >= 1_199 && longest <= millis(80), "{} {longest}", got.len());
}

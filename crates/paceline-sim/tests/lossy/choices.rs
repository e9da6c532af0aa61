//! Streams with no, selective and go-back-n retransmission on one link.

use super::path::{Path, millis, numbers, radio};
use paceline_proto::Retransmit;
use paceline_proto::reason::DropReason;
use paceline_sim::ask::{Ask as _, all, data, payloads};
use paceline_sim::impair::{Impairment, Loss};

const SAMPLES: u64 = 2_000;

fn lossy() -> Impairment {
    Impairment { loss: Loss::Random { ppm: 20_000 }, ..radio() }
}

#[test]
fn each_stream_gets_its_retransmission_mode() {
    let mut path = Path::new(21, lossy());
    let mut ends = Vec::new();
    for choice in Retransmit::ALL {
        let publisher = path.publish(data(choice.name()));
        let subscription = path.subscribe(all(choice.name()).retransmit(choice));
        ends.push((choice, publisher, subscription));
    }
    for (_, publisher, _) in &ends {
        path.world.every(*publisher, millis(10), SAMPLES, payloads(300));
    }
    path.world.run_for(millis(30_000));
    for (choice, publisher, subscription) in ends {
        let got = path.got(subscription);
        let drops = path.world.drops(subscription);
        let sent = path.world.stream(path.here, path.there, publisher);
        println!("{choice}: {} of {SAMPLES}, {drops:?} {sent:?} {:?}", got.len(), path.repairs());
        assert!(numbers(got).is_sorted_by(|a, b| a < b), "{choice}");
        assert_eq!(got.len() as u64 + drops.total(), SAMPLES, "{choice}: every sample once");
        assert_eq!((sent.offered, sent.sent), (SAMPLES, SAMPLES), "{choice}");
        if choice == Retransmit::None {
            let lost = drops.of(DropReason::LinkLoss);
            assert!((10..100).contains(&lost) && lost == drops.total(), "{drops:?}");
        } else {
            assert_eq!(drops.total(), 0, "{choice}");
        }
    }
    assert!(path.is_at_rest());
}

#[test]
fn go_back_n_repeats_later_frames_and_keeps_up() {
    let mut path = Path::new(24, lossy());
    let publisher = path.publish(data("back"));
    let reader = path.subscribe(all("back").retransmit(Retransmit::GoBackN));
    path.run(publisher, millis(10), SAMPLES, 300);
    let (repairs, fates) = path.repairs();
    println!("{repairs:?} {fates:?} {:?}", path.world.stream(path.here, path.there, publisher));
    assert!(numbers(path.got(reader)).into_iter().eq(0..SAMPLES));
    // Each loss repeats the samples of one round trip.
    assert!(repairs.repeated > 3 * 30 && repairs.repeated < SAMPLES, "{repairs:?}");
    assert!(path.is_at_rest());
}

#[test]
fn the_strictest_of_several_subscriptions_wins() {
    let mut path = Path::new(22, lossy());
    let publisher = path.publish(data("shared"));
    let careless = path.subscribe(all("shared").retransmit(Retransmit::None));
    let careful = path.subscribe(all("shared").retransmit(Retransmit::Selective));
    path.run(publisher, millis(10), SAMPLES, 300);
    assert_eq!(path.got(careful).len() as u64, SAMPLES);
    assert_eq!(path.got(careless).len() as u64, SAMPLES);
}

#[test]
fn an_abandoned_sample_is_lost_once_and_delays_nothing() {
    // A lost command cannot be repaired within 50 ms: the delay is 20 ms, and an answer takes at least 40 ms.
    let mut path = Path::new(23, lossy());
    let publisher = path.publish(super::path::steering());
    let driver = path.subscribe(all("steering").within_ms(50));
    path.run(publisher, millis(10), SAMPLES, 252);
    let (got, drops) = (path.got(driver), path.world.drops(driver));
    let (repairs, _) = path.repairs();
    println!("{} of {SAMPLES}: {drops:?} {repairs:?}", got.len());
    assert_eq!(got.len() as u64 + drops.total(), SAMPLES);
    assert!((10..100).contains(&drops.total()), "{drops:?}");
    assert_eq!(repairs.repeated, 0);
    assert!(got.iter().all(|sample| sample.age <= millis(50)));
}

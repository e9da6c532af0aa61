//! Streams with no, selective and go-back-n retransmission on one link.

use super::way::{Way, millis, numbers, radio};
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
    let mut way = Way::new(21, lossy());
    let mut ends = Vec::new();
    for choice in Retransmit::ALL {
        let publisher = way.publish(data(choice.name()));
        let subscription = way.subscribe(all(choice.name()).mended(choice));
        ends.push((choice, publisher, subscription));
    }
    for (_, publisher, _) in &ends {
        way.world.every(*publisher, millis(10), SAMPLES, payloads(300));
    }
    way.world.run_for(millis(30_000));
    for (choice, publisher, subscription) in ends {
        let got = way.got(subscription);
        let drops = way.world.drops(subscription);
        let sent = way.world.stream(way.here, way.there, publisher);
        println!("{choice}: {} of {SAMPLES}, {drops:?} {sent:?} {:?}", got.len(), way.mended());
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
    assert!(way.is_at_rest());
}

#[test]
fn go_back_n_repeats_later_frames_and_keeps_up() {
    let mut way = Way::new(24, lossy());
    let publisher = way.publish(data("back"));
    let reader = way.subscribe(all("back").mended(Retransmit::GoBackN));
    way.run(publisher, millis(10), SAMPLES, 300);
    let (mended, fates) = way.mended();
    println!("{mended:?} {fates:?} {:?}", way.world.stream(way.here, way.there, publisher));
    assert!(numbers(way.got(reader)).into_iter().eq(0..SAMPLES));
    // Each loss repeats the samples of one round trip.
    assert!(mended.repeated > 3 * 30 && mended.repeated < SAMPLES, "{mended:?}");
    assert!(way.is_at_rest());
}

#[test]
fn the_strictest_of_several_subscriptions_wins() {
    let mut way = Way::new(22, lossy());
    let publisher = way.publish(data("shared"));
    let careless = way.subscribe(all("shared").mended(Retransmit::None));
    let careful = way.subscribe(all("shared").mended(Retransmit::Selective));
    way.run(publisher, millis(10), SAMPLES, 300);
    assert_eq!(way.got(careful).len() as u64, SAMPLES);
    assert_eq!(way.got(careless).len() as u64, SAMPLES);
}

#[test]
fn an_abandoned_sample_is_lost_once_and_delays_nothing() {
    // A lost command cannot be repaired within 50 ms: the delay is 20 ms, and an answer takes at least 40 ms.
    let mut way = Way::new(23, lossy());
    let publisher = way.publish(super::way::steering());
    let driver = way.subscribe(all("steering").within_ms(50));
    way.run(publisher, millis(10), SAMPLES, 252);
    let (got, drops) = (way.got(driver), way.world.drops(driver));
    let (mended, _) = way.mended();
    println!("{} of {SAMPLES}: {drops:?} {mended:?}", got.len());
    assert_eq!(got.len() as u64 + drops.total(), SAMPLES);
    assert!((10..100).contains(&drops.total()), "{drops:?}");
    assert_eq!(mended.repeated, 0);
    assert!(got.iter().all(|sample| sample.age <= millis(50)));
}

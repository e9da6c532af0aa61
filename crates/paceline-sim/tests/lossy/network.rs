//! The effects of network impairments on a stream.

use super::way::{Way, millis, numbers, radio, steering};
use paceline_proto::control::PublisherSpec;
use paceline_sched::LossTolerance;
use paceline_sim::ask::{Ask as _, Declare as _, all, data};
use paceline_sim::impair::{Impairment, Loss};

const SAMPLES: u64 = 5_000;

#[test]
fn reordering_is_not_loss() {
    let wire = Impairment { reorder_ppm: 50_000, reorder_by: millis(3), ..radio() };
    let mut way = Way::new(1, wire);
    let steering = way.publish(steering());
    let driver = way.subscribe(all("steering").within_ms(200));
    way.run(steering, millis(2), SAMPLES, 252);
    let overtaken = way.world.wire(way.here, way.there).reordered;
    println!("{overtaken} overtaken: {:?}", way.mended());
    assert!(overtaken > 50, "{overtaken}");
    assert_eq!(way.mended().0.repeated, 0);
    assert_eq!(way.got(driver).len() as u64, SAMPLES);
    assert!(numbers(way.got(driver)).is_sorted_by(|a, b| a < b));
}

#[test]
fn strongly_reordered_frames_are_repeated_a_few_times_and_then_awaited() {
    let wire = Impairment { reorder_ppm: 50_000, reorder_by: millis(30), ..radio() };
    let mut way = Way::new(2, wire);
    let steering = way.publish(steering());
    let driver = way.subscribe(all("steering").within_ms(300));
    way.run(steering, millis(2), SAMPLES, 252);
    let (mended, fates) = way.mended();
    let overtaken = way.world.wire(way.here, way.there).reordered;
    println!("{overtaken} overtaken: {mended:?} {fates:?}");
    assert!(mended.repeated * 10 < overtaken, "{mended:?} of {overtaken}");
    assert_eq!(way.got(driver).len() as u64, SAMPLES);
}

#[test]
fn duplicates_are_delivered_once() {
    let wire = Impairment { duplicate_ppm: 300_000, ..radio() };
    let mut way = Way::new(3, wire);
    let steering = way.publish(steering());
    let driver = way.subscribe(all("steering").within_ms(200));
    way.run(steering, millis(10), SAMPLES, 252);
    assert!(way.world.wire(way.here, way.there).duplicated > 1_000);
    assert_eq!(way.mended().0.repeated, 0);
    assert!(numbers(way.got(driver)).into_iter().eq(0..SAMPLES));
}

#[test]
fn burst_losses_are_repaired_within_the_deadline() {
    // One frame in 100 begins a burst of 5 on average, in which all are lost.
    let loss = Loss::GilbertElliott {
        good_to_bad_ppm: 10_000,
        bad_to_good_ppm: 200_000,
        loss_good_ppm: 0,
        loss_bad_ppm: 1_000_000,
    };
    let mut way = Way::new(4, Impairment { loss, ..radio() });
    let steering = way.publish(steering());
    let tolerance = LossTolerance::new(1, 100).expect("a tolerance");
    let driver = way.subscribe(all("steering").within_ms(400).losing(tolerance));
    way.run(steering, millis(10), SAMPLES, 252);
    let got = way.got(driver);
    let lost = way.world.wire(way.here, way.there).lost;
    println!("{} of {SAMPLES}, {lost} frames lost: {:?}", got.len(), way.mended());
    assert!(lost > 100);
    assert!(got.len() as u64 * 1_000 >= SAMPLES * 998, "{} arrived", got.len());
    assert!(numbers(got).is_sorted_by(|a, b| a < b));
    assert!(way.is_at_rest());
}

#[test]
fn large_samples_are_repaired_piece_by_piece() {
    let loss = Loss::Random { ppm: 50_000 };
    let rate = paceline_sched::Capacity::from_bits_per_s(20_000_000).ok();
    let mut way = Way::new(7, Impairment { rate, loss, ..radio() });
    let file = way.publish(PublisherSpec { kind: paceline_proto::Kind::Data, ..data("file") });
    let reader = way.subscribe(all("file"));
    way.run(file, millis(200), 50, 200_000);
    let (mended, _) = way.mended();
    println!("{mended:?}");
    assert!(numbers(way.got(reader)).into_iter().eq(0..50));
    // One in twenty of 50 × 155 pieces, and the lost ones among the repetitions.
    assert!(mended.repeated > 200 && mended.repeated < 1_200, "{mended:?}");
    assert!(way.is_at_rest());
}

#[test]
fn after_a_blackout_samples_without_deadline_arrive_and_late_ones_do_not() {
    let mut way = Way::new(8, radio());
    let (log, steering) = (way.publish(data("log").hertz(20)), way.publish(steering()));
    let reader = way.subscribe(all("log"));
    let driver = way.subscribe(all("steering").within_ms(100));
    way.world.every(steering, millis(10), 500, paceline_sim::ask::payloads(252));
    way.world.every(log, millis(50), 100, paceline_sim::ask::payloads(100));
    way.world.run_for(millis(1_000));
    let dark = Impairment { blackout: true, ..radio() };
    way.world.impair(way.here, way.there, dark);
    way.world.run_for(millis(1_000));
    way.world.impair(way.here, way.there, radio());
    way.world.run_for(millis(10_000));
    let (mended, fates) = way.mended();
    println!("{mended:?} {fates:?} {}", way.got(driver).len());
    assert!(numbers(way.got(reader)).into_iter().eq(0..100));
    let commands = way.got(driver).len();
    assert!((380..=405).contains(&commands), "{commands}");
    assert!(way.got(driver).iter().all(|sample| !sample.late));
    // The link does not flood the path while it receives no answers.
    assert!(mended.repeated < 100, "{mended:?}");
    assert!(way.is_at_rest());
}

#[test]
fn control_arrives_at_50_percent_loss() {
    let loss = Loss::Random { ppm: 300_000 };
    let mut way = Way::new(9, Impairment { loss, ..radio() });
    for number in 0..50 {
        let _ = way.publish(data(&format!("tag/{number}")));
    }
    way.world.run_for(millis(3_000));
    let there = way.world.control(way.there);
    let known: usize = there.nodes().map(|view| view.publishers.len()).sum();
    assert_eq!(known, 50);
    assert_eq!(way.world.malformed(way.there), 0);
}

//! The effects of network impairments on a stream.

use super::path::{Path, millis, numbers, radio, steering};
use paceline_proto::control::PublisherSpec;
use paceline_sched::LossTolerance;
use paceline_sim::ask::{Ask as _, Declare as _, all, data};
use paceline_sim::impair::{Impairment, Loss};

const SAMPLES: u64 = 5_000;

#[test]
fn reordering_is_not_loss() {
    let wire = Impairment { reorder_ppm: 50_000, reorder_by: millis(3), ..radio() };
    let mut path = Path::new(1, wire);
    let steering = path.publish(steering());
    let driver = path.subscribe(all("steering").within_ms(200));
    path.run(steering, millis(2), SAMPLES, 252);
    let overtaken = path.world.wire(path.here, path.there).reordered;
    println!("{overtaken} overtaken: {:?}", path.repairs());
    assert!(overtaken > 50, "{overtaken}");
    assert_eq!(path.repairs().0.repeated, 0);
    assert_eq!(path.got(driver).len() as u64, SAMPLES);
    assert!(numbers(path.got(driver)).is_sorted_by(|a, b| a < b));
}

#[test]
fn strongly_reordered_frames_are_repeated_a_few_times_and_then_awaited() {
    let wire = Impairment { reorder_ppm: 50_000, reorder_by: millis(30), ..radio() };
    let mut path = Path::new(2, wire);
    let steering = path.publish(steering());
    let driver = path.subscribe(all("steering").within_ms(300));
    path.run(steering, millis(2), SAMPLES, 252);
    let (repairs, fates) = path.repairs();
    let overtaken = path.world.wire(path.here, path.there).reordered;
    println!("{overtaken} overtaken: {repairs:?} {fates:?}");
    assert!(repairs.repeated * 10 < overtaken, "{repairs:?} of {overtaken}");
    assert_eq!(path.got(driver).len() as u64, SAMPLES);
}

#[test]
fn duplicates_are_delivered_once() {
    let wire = Impairment { duplicate_ppm: 300_000, ..radio() };
    let mut path = Path::new(3, wire);
    let steering = path.publish(steering());
    let driver = path.subscribe(all("steering").within_ms(200));
    path.run(steering, millis(10), SAMPLES, 252);
    assert!(path.world.wire(path.here, path.there).duplicated > 1_000);
    assert_eq!(path.repairs().0.repeated, 0);
    assert!(numbers(path.got(driver)).into_iter().eq(0..SAMPLES));
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
    let mut path = Path::new(4, Impairment { loss, ..radio() });
    let steering = path.publish(steering());
    let tolerance = LossTolerance::new(1, 100).expect("a tolerance");
    let driver = path.subscribe(all("steering").within_ms(400).losing(tolerance));
    path.run(steering, millis(10), SAMPLES, 252);
    let got = path.got(driver);
    let lost = path.world.wire(path.here, path.there).lost;
    println!("{} of {SAMPLES}, {lost} frames lost: {:?}", got.len(), path.repairs());
    assert!(lost > 100);
    assert!(got.len() as u64 * 1_000 >= SAMPLES * 998, "{} arrived", got.len());
    assert!(numbers(got).is_sorted_by(|a, b| a < b));
    assert!(path.is_at_rest());
}

#[test]
fn large_samples_are_repaired_piece_by_piece() {
    let loss = Loss::Random { ppm: 50_000 };
    let rate = paceline_sched::Capacity::from_bits_per_s(20_000_000).ok();
    let mut path = Path::new(7, Impairment { rate, loss, ..radio() });
    let file = path.publish(PublisherSpec { kind: paceline_proto::Kind::Data, ..data("file") });
    let reader = path.subscribe(all("file"));
    path.run(file, millis(200), 50, 200_000);
    let (repairs, _) = path.repairs();
    println!("{repairs:?}");
    assert!(numbers(path.got(reader)).into_iter().eq(0..50));
    // One in twenty of 50 × 155 pieces, and the lost ones among the repetitions.
    assert!(repairs.repeated > 200 && repairs.repeated < 1_200, "{repairs:?}");
    assert!(path.is_at_rest());
}

#[test]
fn after_a_blackout_samples_without_deadline_arrive_and_late_ones_do_not() {
    let mut path = Path::new(8, radio());
    let (log, steering) = (path.publish(data("log").hertz(20)), path.publish(steering()));
    let reader = path.subscribe(all("log"));
    let driver = path.subscribe(all("steering").within_ms(100));
    path.world.every(steering, millis(10), 500, paceline_sim::ask::payloads(252));
    path.world.every(log, millis(50), 100, paceline_sim::ask::payloads(100));
    path.world.run_for(millis(1_000));
    let dark = Impairment { blackout: true, ..radio() };
    path.world.impair(path.here, path.there, dark);
    path.world.run_for(millis(1_000));
    path.world.impair(path.here, path.there, radio());
    path.world.run_for(millis(10_000));
    let (repairs, fates) = path.repairs();
    println!("{repairs:?} {fates:?} {}", path.got(driver).len());
    assert!(numbers(path.got(reader)).into_iter().eq(0..100));
    let commands = path.got(driver).len();
    assert!((380..=405).contains(&commands), "{commands}");
    assert!(path.got(driver).iter().all(|sample| !sample.late));
    // The link does not flood the path while it receives no answers.
    assert!(repairs.repeated < 100, "{repairs:?}");
    assert!(path.is_at_rest());
}

#[test]
fn control_arrives_at_50_percent_loss() {
    let loss = Loss::Random { ppm: 300_000 };
    let mut path = Path::new(9, Impairment { loss, ..radio() });
    for number in 0..50 {
        let _ = path.publish(data(&format!("tag/{number}")));
    }
    path.world.run_for(millis(3_000));
    let there = path.world.control(path.there);
    let known: usize = there.nodes().map(|view| view.publishers.len()).sum();
    assert_eq!(known, 50);
    assert_eq!(path.world.malformed(path.there), 0);
}

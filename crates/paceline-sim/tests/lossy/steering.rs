//! Steering commands on a radio link that loses one frame in a hundred.

use super::path::{Path, millis, numbers, per_mille, radio, steering};
use paceline_proto::control::PublisherSpec;
use paceline_proto::sample::Kind;
use paceline_sched::LossTolerance;
use paceline_sim::ask::{Ask as _, Declare as _, all, data, payloads};
use paceline_sim::impair::{Impairment, Loss};

const SAMPLES: u64 = 100_000;

fn one_in_a_hundred() -> Impairment {
    Impairment { loss: Loss::Random { ppm: 10_000 }, ..radio() }
}

#[test]
fn a_lost_command_arrives_two_segments_and_a_round_trip_later() {
    let mut path = Path::new(5, one_in_a_hundred());
    let steering = path.publish(steering());
    let asked = all("steering").within_ms(200).losing(LossTolerance::NONE);
    let driver = path.subscribe(asked);
    path.run(steering, millis(10), SAMPLES, 252);
    let got = path.got(driver);
    let (repairs, fates) = path.repairs();
    // In addition to the transit time: a frame of 252 bytes with headers, and 20 ms.
    let bound = millis(20 + 40 + 1).saturating_add(path.segment().mul_div(2, 1));
    let (p50, p999) = (per_mille(got, 500), per_mille(got, 999));
    println!("{} of {SAMPLES}: p50 {p50}, p99.9 {p999}, bound {bound}", got.len());
    println!("{repairs:?} {fates:?} {:?}", path.world.wire(path.here, path.there));
    assert!(p999 <= bound, "{p999} > {bound}");
    assert!(SAMPLES - got.len() as u64 <= SAMPLES / 10_000, "{} arrived", got.len());
    assert!(numbers(got).is_sorted_by(|a, b| a < b));
    assert!(fates.lost >= 900, "one frame in a hundred: {fates:?}");
    assert!(path.is_at_rest());
}

#[test]
fn lost_commands_are_repaired_under_a_saturating_camera() {
    let mut path = Path::new(6, one_in_a_hundred());
    let steering = path.publish(steering());
    let camera = PublisherSpec { kind: Kind::Picture, ..data("camera").hertz(30) };
    let camera = path.publish(camera);
    let driver = path.subscribe(all("steering").within_ms(200).losing(LossTolerance::NONE));
    let viewer = path.subscribe(all("camera"));
    path.world.every(camera, millis(33), SAMPLES * 10 / 33, payloads(12_000));
    path.run(steering, millis(10), SAMPLES, 252);
    let got = path.got(driver);
    // Each transmission waits for the frame on the wire, and shares its own frame with other samples. An
    // acknowledgement may be late by an eighth of a round trip before it counts as missing.
    let bound = millis(20 + 40 + 5 + 1).saturating_add(path.segment().mul_div(4, 1));
    let (p50, p999) = (per_mille(got, 500), per_mille(got, 999));
    println!("{} of {SAMPLES}: p50 {p50}, p99.9 {p999}, bound {bound}", got.len());
    println!("{:?}, {} pictures", path.repairs(), path.got(viewer).len());
    assert!(p999 <= bound, "{p999} > {bound}");
    assert!(SAMPLES - got.len() as u64 <= SAMPLES / 10_000, "{} arrived", got.len());
    assert!(path.got(viewer).len() > 10_000);
    assert!(path.is_at_rest());
}

//! Spatial scaling in virtual time, with a toy picture scaler.

use paceline_proto::control::PublisherSpec;
use paceline_proto::{DropReason, Size};
use paceline_sched::{Capacity, Duration};
use paceline_sim::ask::{Ask as _, all, payload, payloads, pictures};
use paceline_sim::{LinkPlan, NodeIx, Pub, World};

fn camera(world: &mut World) -> (NodeIx, NodeIx, Pub) {
    let (here, there) = (world.add_node("here"), world.add_node("there"));
    world.connect(here, there, LinkPlan { capacity: Capacity::from_bits_per_s(20_000_000).ok() });
    let size = Some(Size { width: 160, height: 120 });
    let camera = PublisherSpec { size, ..pictures("camera", 30, 19_200) };
    let camera = world.publish(here, camera);
    (here, there, camera)
}

const THIRTIETH: Duration = Duration::from_nanos(33_333_333);

#[test]
fn each_subscriber_gets_its_size_and_rate() {
    let mut world = World::new(1);
    let (here, there, camera) = camera(&mut world);
    let full = world.subscribe(here, all("camera"));
    let quarter = world.subscribe(there, all("camera").sized(80, 60).one_in(3));
    let late = world.subscribe(there, all("camera").sized(40, 30).scaled_here());
    world.run_for(Duration::from_secs(2));
    world.every(camera, THIRTIETH, 90, payloads(19_200));
    world.run_for(Duration::from_secs(4));
    let sizes = [(full, 90, 19_200), (quarter, 30, 4_800), (late, 90, 1_200)];
    for (subscription, count, bytes) in sizes {
        let got = world.delivered(subscription);
        assert_eq!(got.len(), count);
        assert!(got.iter().all(|sample| sample.bytes == bytes));
    }
    assert_eq!(world.streams(here, there, camera), 2);
    assert_eq!(world.stream(here, there, camera).bytes, 90 * 19_200 + 30 * 4_800);
}

#[test]
fn a_slow_scaler_takes_the_newest_picture_and_counts_the_others() {
    let mut world = World::new(1);
    let (here, there, camera) = camera(&mut world);
    world.set_scaler_time(here, Duration::from_millis(50));
    let scaled = world.subscribe(there, all("camera").sized(80, 60));
    world.run_for(Duration::from_secs(2));
    world.every(camera, THIRTIETH, 90, payloads(19_200));
    world.run_for(Duration::from_secs(4));
    let (got, sent) = (world.delivered(scaled).len(), world.stream(here, there, camera));
    assert!((58..=62).contains(&got), "{got}");
    assert_eq!(sent.drops.of(DropReason::ScalerBusy), 90 - got as u64);
    assert_eq!(sent.offered, 90);
}

#[test]
fn a_picture_that_cannot_be_scaled_has_its_reason() {
    let mut world = World::new(1);
    let (here, there, camera) = camera(&mut world);
    let scaled = world.subscribe(there, all("camera").sized(80, 60).scaled_here());
    world.run_for(Duration::from_secs(2));
    for bytes in [19_200, 100, 19_200] {
        world.put(camera, payload(0, bytes));
        world.run_for(Duration::from_millis(50));
    }
    assert_eq!(world.delivered(scaled).len(), 2);
    assert_eq!(world.drops(scaled).of(DropReason::CannotScale), 1);
    assert_eq!(world.stream(here, there, camera).sent, 3);
}

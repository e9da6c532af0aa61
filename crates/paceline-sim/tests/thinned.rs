//! Streams that are thinned: by bit rate, and several together.

use paceline_proto::control::{PublisherSpec, SubscriptionSpec};
use paceline_proto::link::LinkSpec;
use paceline_proto::reason::DropReason;
use paceline_sched::{Capacity, Duration};
use paceline_sim::ask::{Ask as _, all, blanks, data};
use paceline_sim::{NodeIx, Pub, Sub, WireSpec, World};
use std::collections::BTreeSet;

struct Rig {
    world: World,
    robot: NodeIx,
    operator: NodeIx,
}

/// Joins two nodes by a link of this capacity.
fn rig(bits_per_s: u64) -> Rig {
    let mut world = World::new(11);
    let (robot, operator) = (world.add_node("robot"), world.add_node("operator"));
    let capacity = Capacity::from_bits_per_s(bits_per_s).ok();
    let spec = LinkSpec { capacity, ..LinkSpec::default() };
    let (out, back) =
        (world.add_link(robot, "radio", spec.clone()), world.add_link(operator, "radio", spec));
    world.join(out, back, WireSpec::limited(capacity), WireSpec::limited(capacity));
    Rig { world, robot, operator }
}

/// Point clouds: 10 Hz of 5,000 bytes are 400 kbit/s.
fn points() -> PublisherSpec {
    let period = Some(Duration::from_millis(100));
    PublisherSpec { bytes_max: Some(5_000), period, ..data("points") }
}

fn limited(kbit: u32) -> SubscriptionSpec {
    let mut asked = all("points").within_ms(600);
    asked.form.bitrate = core::num::NonZeroU32::new(kbit * 1_000);
    asked
}

#[test]
fn a_bit_rate_of_data_fits_a_link_that_all_samples_do_not() {
    let Rig { mut world, robot, operator } = rig(250_000);
    let cloud = world.publish(robot, points());
    world.run_for(Duration::from_secs(3));
    let full = world.subscribe(operator, all("points").within_ms(600));
    world.run_for(Duration::from_secs(3));
    assert_eq!(world.refusals(full).len(), 1, "400 kbit/s");
    world.unsubscribe(full);
    let few = world.subscribe(operator, limited(100));
    world.run_for(Duration::from_secs(3));
    assert_eq!((world.refusals(few).len(), world.grants(few).len()), (0, 1));
    world.every(cloud, Duration::from_millis(100), 600, blanks(5_000));
    world.run_for(Duration::from_secs(62));
    let got: Vec<u64> = world.delivered(few).iter().map(|sample| sample.seq).collect();
    assert!(world.delivered(few).iter().all(|sample| !sample.late));
    assert!(got.len().abs_diff(150) <= 2, "one of four: {}", got.len());
    assert!(got[1..].windows(2).all(|pair| pair[1] - pair[0] == 4), "{got:?}");
    // Each of the others is counted, where the samples are left out.
    let drops = world.stream(robot, operator, cloud).drops;
    assert_eq!(drops.of(DropReason::OverBudget) + got.len() as u64, 600);
    assert_eq!(drops.total(), drops.of(DropReason::OverBudget), "{drops:?}");
}

/// Returns the capture times of the delivered samples, in milliseconds of the schedule.
fn instants(world: &World, (subscription, first): (Sub, u64), period: u64) -> BTreeSet<u64> {
    world.delivered(subscription).iter().map(|sample| first + sample.seq * period).collect()
}

#[test]
fn streams_that_belong_together_are_thinned_to_the_same_instants() {
    const PERIOD: u64 = 40;
    for asked in [all("stereo/*").max_hertz(4), all("stereo/*").one_in(3)] {
        let Rig { mut world, robot, operator } = rig(50_000_000);
        world.run_for(Duration::from_secs(3));
        let names = ["stereo/left", "stereo/right", "stereo/info"];
        let spec = |tag| PublisherSpec { period: Some(Duration::from_millis(PERIOD)), ..data(tag) };
        // The second publisher begins 5 captures later, and the third one 12.
        let begins = [0, 5, 12];
        let mut all_of: Vec<(Pub, Sub, u64)> = Vec::new();
        let mut at = 0;
        for (tag, begin) in names.into_iter().zip(begins) {
            world.run_for(Duration::from_millis((begin - at) * PERIOD));
            at = begin;
            let publisher = world.publish(robot, spec(tag));
            world.every(publisher, Duration::from_millis(PERIOD), 400, blanks(100));
            let tag = paceline_proto::Pattern::new(tag).unwrap();
            let subscription =
                world.subscribe(operator, SubscriptionSpec { pattern: tag, ..asked.clone() });
            all_of.push((publisher, subscription, begin * PERIOD));
        }
        world.run_for(Duration::from_secs(20));
        let seen: Vec<BTreeSet<u64>> =
            all_of.iter().map(|(_, sub, first)| instants(&world, (*sub, *first), PERIOD)).collect();
        // From a second after the last one began until the first one ended.
        let steady =
            |all: &BTreeSet<u64>| -> Vec<u64> { all.range(1_500..15_000).copied().collect() };
        let left = steady(&seen[0]);
        assert!(left.len() >= 50, "{left:?}");
        assert_eq!((&left, &left), (&steady(&seen[1]), &steady(&seen[2])));
    }
}

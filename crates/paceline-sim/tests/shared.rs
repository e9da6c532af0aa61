//! Contracts of one tag at several rates behind one hop: one stream, charged once.

use paceline_proto::control::{PublisherSpec, SubscriptionSpec};
use paceline_proto::link::LinkSpec;
use paceline_sched::{Capacity, Duration};
use paceline_sim::ask::{Ask as _, all, blanks, pictures};
use paceline_sim::{NodeIx, Sub, WireSpec, World};

const SAMPLES: u64 = 900;
const PERIOD: Duration = Duration::from_millis(33);

struct Rig {
    world: World,
    robot: NodeIx,
    operator: NodeIx,
    camera: paceline_sim::Pub,
}

/// Joins two nodes by a link that the camera at full rate fills by more than a half.
fn rig() -> Rig {
    let mut world = World::new(7);
    let (robot, operator) = (world.add_node("robot"), world.add_node("operator"));
    let capacity = Capacity::from_bits_per_s(4_000_000).ok();
    let spec = LinkSpec { capacity, ..LinkSpec::default() };
    let (out, back) =
        (world.add_link(robot, "radio", spec.clone()), world.add_link(operator, "radio", spec));
    world.join(out, back, WireSpec::limited(capacity), WireSpec::limited(capacity));
    let spec = PublisherSpec {
        bytes_max: Some(10_000),
        period: Some(PERIOD),
        ..pictures("camera", 30, 10_000)
    };
    let camera = world.publish(robot, spec);
    world.run_for(Duration::from_secs(3));
    Rig { world, robot, operator, camera }
}

fn rate(n: u32) -> SubscriptionSpec {
    let asked = all("camera").within_ms(100);
    if n > 1 { asked.one_in(n) } else { asked }
}

/// Runs the camera while subscriptions with contracts to one in n samples last; returns them and the bytes on the link.
fn bytes(rates: &[u32]) -> (Rig, Vec<Sub>, u64) {
    let mut rig = rig();
    let subscribe = |n: &u32| rig.world.subscribe(rig.operator, rate(*n));
    let subscriptions: Vec<Sub> = rates.iter().map(subscribe).collect();
    rig.world.run_for(Duration::from_secs(3));
    let before = rig.world.bytes();
    rig.world.every(rig.camera, PERIOD, SAMPLES, blanks(10_000));
    rig.world.run_for(Duration::from_secs(32));
    let sent = rig.world.bytes() - before;
    (rig, subscriptions, sent)
}

#[test]
fn contracts_at_three_rates_cross_a_link_as_the_fastest_one() {
    let (_, _, alone) = bytes(&[1]);
    // The link could not carry the three streams beside each other, in any order.
    for order in [[1, 3, 6], [6, 3, 1], [3, 1, 6]] {
        let (rig, subscriptions, sent) = bytes(&order);
        println!("{order:?}: {sent} bytes, {alone} for all samples alone");
        assert!(sent * 100 <= alone * 102, "{sent} of {alone}");
        for (n, subscription) in order.into_iter().zip(subscriptions) {
            assert_eq!(rig.world.grants(subscription).len(), 1, "{n}");
            let got: Vec<u64> =
                rig.world.delivered(subscription).iter().map(|sample| sample.seq).collect();
            let wanted: Vec<u64> =
                (0..SAMPLES).filter(|seq| seq.is_multiple_of(n.into())).collect();
            assert_eq!(got, wanted, "one in {n}");
        }
        assert_eq!(rig.world.streams(rig.robot, rig.operator, rig.camera), 1);
    }
}

#[test]
fn a_departure_leaves_the_others_undisturbed() {
    let (mut rig, subscriptions, _) = bytes(&[1, 3, 6]);
    let [all, third, sixth] = subscriptions[..] else { panic!("three") };
    let first = u64::try_from(rig.world.delivered(third).len()).unwrap();
    rig.world.every(rig.camera, PERIOD, SAMPLES, blanks(10_000));
    rig.world.run_for(Duration::from_millis(10_013));
    rig.world.unsubscribe(all);
    rig.world.run_for(Duration::from_millis(5_007));
    rig.world.unsubscribe(third);
    rig.world.run_for(Duration::from_secs(20));
    assert_eq!(first, SAMPLES / 3);
    let got: Vec<u64> = rig.world.delivered(sixth).iter().map(|sample| sample.seq).collect();
    let wanted: Vec<u64> = (0..2 * SAMPLES).filter(|seq| seq.is_multiple_of(6)).collect();
    assert_eq!(got, wanted);
    assert_eq!(rig.world.drops(sixth).total(), 0);
    rig.world.unsubscribe(sixth);
    rig.world.run_for(Duration::from_secs(2));
    assert_eq!(rig.world.control(rig.robot).grants().count(), 0);
}

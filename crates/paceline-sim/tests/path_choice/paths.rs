//! Two paths over other nodes.

use paceline_proto::link::LinkSpec;
use paceline_sched::{Capacity, Duration};
use paceline_sim::ask::{Declare as _, all, data, payloads};
use paceline_sim::{LinkPlan, NodeIx, World};

/// Creates a robot and an operator, connected over a satellite and over a mobile network.
fn diamond(seed: u64, satellite: u64, mobile: u64) -> (World, [NodeIx; 4]) {
    let mut world = World::new(seed);
    let nodes = ["robot", "satellite", "mobile", "operator"].map(|name| world.add_node(name));
    let [robot, over, under, operator] = nodes;
    for (bits, through) in [(satellite, over), (mobile, under)] {
        let capacity = Capacity::from_bits_per_s(bits).ok();
        world.connect(robot, through, LinkPlan { capacity });
        world.connect(through, operator, LinkPlan::default());
    }
    (world, nodes)
}

#[test]
fn the_faster_of_two_equal_paths_is_used_and_the_other_takes_over() {
    for (satellite, mobile) in [(1_000_000, 5_000_000), (5_000_000, 1_000_000)] {
        let (mut world, [robot, over, under, operator]) = diamond(3, satellite, mobile);
        let (wide, narrow) = if satellite > mobile { (over, under) } else { (under, over) };
        let camera = world.publish(robot, data("camera").hertz(50));
        let end = world.subscribe(operator, all("camera"));
        world.run_for(Duration::from_secs(3));
        world.every(camera, Duration::from_millis(20), 1_500, payloads(1_000));
        world.run_for(Duration::from_secs(5));
        let streams = |world: &World| [wide, narrow].map(|to| world.streams(robot, to, camera));
        assert_eq!(streams(&world), [1, 0]);
        world.cut(robot, wide);
        world.run_for(Duration::from_secs(4));
        assert_eq!(streams(&world), [0, 1]);
        let before = world.delivered(end).len();
        world.run_for(Duration::from_secs(4));
        assert!(world.delivered(end).len() - before >= 199);
        world.restore(robot, wide);
        world.run_for(Duration::from_secs(4));
        assert_eq!(streams(&world), [1, 0]);
        let before = world.delivered(end).len();
        world.run_for(Duration::from_secs(4));
        assert!(world.delivered(end).len() - before >= 199);
        world.check();
    }
}

#[test]
fn a_shorter_path_is_used_even_if_it_is_slower() {
    let (mut world, [robot, over, under, operator]) = diamond(4, 5_000_000, 5_000_000);
    let capacity = Capacity::from_bits_per_s(500_000).ok();
    let link = LinkSpec { capacity, ..LinkSpec::default() };
    world.connect(robot, operator, LinkPlan { capacity: link.capacity });
    let camera = world.publish(robot, data("camera").hertz(50));
    let end = world.subscribe(operator, all("camera"));
    world.run_for(Duration::from_secs(3));
    world.every(camera, Duration::from_millis(20), 250, payloads(100));
    world.run_for(Duration::from_secs(6));
    let streams = [operator, over, under].map(|to| world.streams(robot, to, camera));
    assert_eq!(streams, [1, 0, 0]);
    assert_eq!(world.delivered(end).len(), 250);
}

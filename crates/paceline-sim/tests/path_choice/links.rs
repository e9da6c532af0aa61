//! Two links between the same two nodes.

use paceline_proto::link::LinkSpec;
use paceline_sched::{Capacity, Duration};
use paceline_sim::ask::{Ask as _, Declare as _, all, data, payloads};
use paceline_sim::{NodeIx, WireSpec, World};

/// The indices of a wire in both directions.
type Wires = (usize, usize);

const WIDE: u64 = 20_000_000;
const NARROW: u64 = 2_000_000;

/// Creates two nodes with one link for each capacity.
fn pair(seed: u64, capacities: &[u64]) -> (World, [NodeIx; 2], Vec<Wires>) {
    let mut world = World::new(seed);
    let nodes = ["robot", "operator"].map(|name| world.add_node(name));
    let mut wires = Vec::new();
    for (at, &bits) in capacities.iter().enumerate() {
        let capacity = Capacity::from_bits_per_s(bits).ok();
        let spec = LinkSpec { capacity, ..LinkSpec::default() };
        let [a, b] = nodes.map(|node| world.add_link(node, &format!("link {at}"), spec.clone()));
        wires.push(world.join(a, b, WireSpec::limited(capacity), WireSpec::limited(capacity)));
    }
    (world, nodes, wires)
}

#[test]
fn the_faster_link_is_used_and_the_slower_takes_over_temporarily() {
    // In either order of the links.
    for capacities in [[WIDE, NARROW], [NARROW, WIDE]] {
        let (mut world, [robot, operator], wires) = pair(1, &capacities);
        let wide = wires[usize::from(capacities[1] == WIDE)];
        let narrow = wires[usize::from(capacities[0] == WIDE)];
        let commands = world.publish(robot, data("steering").hertz(100));
        let end = world.subscribe(operator, all("steering").within_ms(100));
        world.run_for(Duration::from_secs(2));
        world.every(commands, Duration::from_millis(10), 3_000, payloads(200));
        let carried = |world: &World| [wide, narrow].map(|wire| world.wire_at(wire.0).bytes);
        world.run_for(Duration::from_secs(5));
        let [on_wide, on_narrow] = carried(&world);
        assert!(on_wide > 10 * on_narrow, "{on_wide} {on_narrow}");
        let before = world.delivered(end).len();
        assert!(before > 495, "{before}");

        world.cut_wire(wide);
        world.run_for(Duration::from_secs(5));
        let during = world.delivered(end).len() - before;
        // A lost neighbour is detected after 1.8 s of silence.
        assert!(during > 300, "the narrow link does not take over: {during} in 5 s");
        let [_, after] = carried(&world);
        assert!(after > 5 * on_narrow, "{after} {on_narrow}");

        world.restore_wire(wide);
        world.run_for(Duration::from_secs(2));
        let [wide_before, narrow_before] = carried(&world);
        let before = world.delivered(end).len();
        world.run_for(Duration::from_secs(5));
        let [wide_after, narrow_after] = carried(&world);
        assert!(wide_after - wide_before > 10 * (narrow_after - narrow_before));
        assert!(world.delivered(end).len() - before >= 499);
        world.check();
    }
}

#[test]
fn either_of_two_equal_links_carries_everything_when_the_other_is_cut() {
    let (mut world, [robot, operator], wires) = pair(2, &[NARROW, NARROW]);
    let commands = world.publish(robot, data("steering").hertz(100));
    let end = world.subscribe(operator, all("steering").within_ms(100));
    world.run_for(Duration::from_secs(2));
    world.every(commands, Duration::from_millis(10), 5_000, payloads(200));
    for (cut, whole) in [(0, 1), (1, 0)] {
        world.restore_wire(wires[whole]);
        world.run_for(Duration::from_secs(3));
        world.cut_wire(wires[cut]);
        world.run_for(Duration::from_secs(3));
        let before = world.delivered(end).len();
        world.run_for(Duration::from_secs(5));
        assert!(world.delivered(end).len() - before >= 499);
    }
    world.check();
}

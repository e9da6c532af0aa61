//! Contracts with a spare: when a link or a relay fails, the samples travel on the second path, whose capacity was reserved
//! before.

use paceline_proto::control::{PublisherSpec, RefusalReason};
use paceline_proto::ids::NodeId;
use paceline_sched::{Capacity, Duration, Late};
use paceline_sim::ask::{Ask as _, Declare as _, all, data, payloads};
use paceline_sim::{LinkPlan, NodeIx, Pub, Sub, World};

const PERIOD: Duration = Duration::from_millis(10);
const WITHIN: Duration = Duration::from_millis(100);
/// The longest silence after which a hop counts as down, and the time to notify the publisher's node.
const DETECTION: Duration = Duration::from_millis(2_200);

/// A publisher at node 0 and a subscription at node 3, joined over 1 and over 2.
struct Diamond {
    world: World,
    nodes: [NodeIx; 4],
    camera: Pub,
    operator: Sub,
}

const LINKS: [(usize, usize); 4] = [(0, 1), (1, 3), (0, 2), (2, 3)];

impl Diamond {
    fn new(seed: u64, spare: bool) -> Self {
        let mut world = World::new(seed);
        let nodes = ["p", "a", "b", "s"].map(|name| world.add_node(name));
        // Each link carries one camera of 800 kbit/s, but not two.
        let plan = LinkPlan { capacity: Capacity::from_bits_per_s(1_500_000).ok() };
        for (from, to) in LINKS {
            world.connect(nodes[from], nodes[to], plan);
        }
        world.run_for(seconds(2));
        let camera = world.publish(nodes[0], camera("camera"));
        let wish = all("camera").within_ms(100);
        let operator = world.subscribe(nodes[3], if spare { wish.spared() } else { wish });
        world.run_for(seconds(1));
        Self { world, nodes, camera, operator }
    }

    /// Returns the relays of the first path and of the spare.
    fn relays(&self) -> [Option<NodeId>; 2] {
        let grants = self.world.grants(self.operator);
        let grant = grants.get(&self.world.id(self.camera)).expect("a grant");
        [&grant.hops, &grant.spare].map(|hops| hops.get(1).map(|hop| hop.node))
    }

    fn relay(&self, node: usize) -> Option<NodeId> {
        Some(self.world.node_id(self.nodes[node]))
    }

    /// Returns the bytes that contracts reserve in the queues of all links.
    fn reserved(&self) -> u64 {
        let names = ["p", "a", "b", "s"];
        let held = |(from, to): (usize, usize)| {
            let control = self.world.control(self.nodes[from]);
            let buffer = control.buffer_use(&format!("{}-{}", names[from], names[to]));
            buffer.map_or(0, |buffer| buffer.held)
        };
        let both = LINKS.into_iter().flat_map(|(a, b)| [(a, b), (b, a)]);
        both.map(held).sum()
    }

    /// Publishes for a time. Returns the longest time between two consecutive deliveries.
    fn stream(&mut self, time: Duration, fault: impl FnOnce(&mut World, &[NodeIx; 4])) -> Duration {
        let before = self.world.delivered(self.operator).len();
        let count = time.as_nanos() / PERIOD.as_nanos();
        self.world.every(self.camera, PERIOD, count, payloads(1_000));
        self.world.run_for(seconds(1));
        fault(&mut self.world, &self.nodes);
        self.world.run_for(time);
        let new = &self.world.delivered(self.operator)[before..];
        let gaps = new.iter().zip(&new[1..]).map(|(one, next)| next.at.since(one.at));
        gaps.max().unwrap_or_default()
    }

    /// Asserts that each sample was delivered in time or is reported, and that all lost ones are of one gap.
    fn assert_accounted(&self, published: u64) {
        let delivered = self.world.delivered(self.operator);
        let missing = self.world.missing(self.operator);
        assert_eq!(delivered.len() as u64 + missing, published);
        assert_eq!(self.world.reported(self.camera), missing, "each missing one has a reason");
        assert!(delivered.iter().all(|sample| !sample.late && sample.age <= WITHIN));
        let holes = delivered.windows(2).filter(|pair| pair[1].seq != pair[0].seq + 1).count();
        assert!(holes <= 1, "{holes} gaps");
    }
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn camera(tag: &str) -> PublisherSpec {
    PublisherSpec { bytes_max: Some(1_000), late: Late::Drop, ..data(tag).hertz(100) }
}

#[test]
fn a_stream_with_a_spare_continues_after_a_link_or_relay_has_failed() {
    type Fault = fn(&mut World, &[NodeIx; 4]);
    let faults: [(Fault, &str); 3] = [
        (|world, nodes| world.cut(nodes[0], nodes[1]), "the first link"),
        (|world, nodes| world.cut(nodes[1], nodes[3]), "the second link"),
        (|world, nodes| world.crash(nodes[1]), "the relay"),
    ];
    for (fault, what) in faults {
        let mut run = Diamond::new(1, true);
        assert_eq!(run.relays(), [run.relay(1), run.relay(2)]);
        // Best effort uses the reserved capacity of the spare until then: more than its link carries.
        let bulk = run.world.publish(run.nodes[0], data("bulk"));
        let reader = run.world.subscribe(run.nodes[2], all("bulk"));
        run.world.run_for(seconds(1));
        run.world.every(bulk, Duration::from_millis(4), 3_000, payloads(1_000));
        let gap = run.stream(seconds(10), fault);
        println!("{what}: {gap} between two samples");
        assert!(gap <= DETECTION, "{what}: {gap}");
        assert_eq!(run.relays(), [run.relay(2), None], "{what}");
        let on_time = run.world.delivered(run.operator).iter().all(|it| !it.late);
        assert!(on_time, "{what}");
        assert!(run.world.delivered(reader).len() > 200, "best effort is carried beside it");
        // It was never refused or withdrawn.
        assert!(run.world.refusals(run.operator).is_empty());
        let force = run.world.in_force(run.operator, run.camera);
        assert!(force.iter().all(|(_, in_force)| *in_force), "{what}: {force:?}");
        let why = run.world.unspared(run.operator).last().map(|refusal| refusal.reason);
        assert_eq!(why, Some(RefusalReason::NoSecondPath { shared: true }));
        // A link that is up again shows the samples that were in flight at the cut.
        if what == "the relay" {
            run.world.restart(run.nodes[1]);
        } else {
            for (from, to) in LINKS {
                run.world.restore(run.nodes[from], run.nodes[to]);
            }
        }
        run.world.run_for(seconds(10));
        assert!(run.relays()[1].is_some(), "{what}: a new spare");
        run.stream(seconds(2), |_, _| {});
        if what != "the relay" {
            run.assert_accounted(1_200);
        }
        run.world.unsubscribe(run.operator);
        run.world.run_for(seconds(2));
        assert_eq!(run.reserved(), 0, "{what}");
    }
}

#[test]
fn links_that_fail_and_return_in_turn_lose_only_the_samples_of_each_gap() {
    let mut run = Diamond::new(2, true);
    let mut published = 0;
    for round in 0..6 {
        let carried = if run.relays()[0] == run.relay(1) { 1 } else { 2 };
        let (from, to) = if round % 2 == 0 { (0, carried) } else { (carried, 3) };
        let before = run.world.missing(run.operator);
        let gap = run.stream(seconds(6), |world, nodes| world.cut(nodes[from], nodes[to]));
        published += 600;
        assert!(gap <= DETECTION, "round {round}: {gap}");
        let lost = run.world.missing(run.operator) - before;
        assert!(lost <= DETECTION.as_nanos() / PERIOD.as_nanos(), "round {round}: {lost}");
        run.world.restore(run.nodes[from], run.nodes[to]);
        run.world.run_for(seconds(4));
        // The next samples find both paths again.
        assert!(run.relays()[1].is_some(), "round {round}: a new spare");
    }
    let gap = run.stream(seconds(1), |_, _| {});
    published += 100;
    assert!(gap > Duration::ZERO);
    let delivered = run.world.delivered(run.operator);
    assert!(delivered.iter().all(|sample| !sample.late));
    assert!(delivered.windows(2).all(|pair| pair[0].seq < pair[1].seq), "in order, once");
    let missing = run.world.missing(run.operator);
    assert_eq!(delivered.len() as u64 + missing, published);
    assert_eq!(run.world.reported(run.camera), missing);
    run.world.unsubscribe(run.operator);
    run.world.run_for(seconds(2));
    assert_eq!(run.reserved(), 0);
}

/// The capacity of the second path is the subscription's: a later contract is refused there. Without a spare it is granted,
/// and the first one ends with its path.
#[test]
fn only_a_spare_holds_the_second_path_against_other_contracts() {
    for spare in [true, false] {
        let mut run = Diamond::new(3, spare);
        // Its only path leads over the second relay.
        let other = run.world.publish(run.nodes[0], camera("other"));
        let reader = run.world.subscribe(run.nodes[2], all("other").within_ms(100));
        run.world.run_for(seconds(2));
        let is_granted = run.world.grants(reader).contains_key(&run.world.id(other));
        assert_eq!(is_granted, !spare);
        run.stream(seconds(8), |world, nodes| world.cut(nodes[1], nodes[3]));
        let last = run.world.delivered(run.operator).last().map(|sample| sample.seq);
        assert_eq!(last == Some(799), spare, "{last:?}");
    }
}

//! Proxies whose node fails, in virtual time.
#![cfg(test)]

use paceline_proto::control::{RefusalReason, SubscriptionSpec};
use paceline_sched::{Capacity, Duration, Instant};
use paceline_sim::ask::{Ask as _, Declare as _, all, data, payloads};
use paceline_sim::{LinkPlan, NodeIx, Pub, Sub, World};

const STEP: Duration = Duration::from_millis(10);
/// The longest time until every stream runs again or is refused, after the network has settled.
const WITHIN: Duration = Duration::from_secs(2);
const RELAYS: [&str; 3] = ["mast", "hill", "tower"];

/// Three relays between a robot and two receivers, each of which is linked to all relays.
struct Mesh {
    world: World,
    robot: NodeIx,
    relays: [NodeIx; 3],
    ends: [NodeIx; 2],
    pose: Pub,
    streams: Vec<Sub>,
    chance: u64,
}

impl Mesh {
    fn new(seed: u64) -> Self {
        let mut world = World::new(seed);
        let robot = world.add_node("robot");
        let relays = RELAYS.map(|name| world.add_node(name));
        let ends = ["operator", "office"].map(|name| world.add_node(name));
        let plan = LinkPlan { capacity: Capacity::from_bits_per_s(5_000_000).ok() };
        for relay in relays {
            [robot, ends[0], ends[1]].iter().for_each(|&end| world.connect(relay, end, plan));
        }
        world.run_for(Duration::from_secs(3));
        let pose = world.publish(robot, data("pose").hertz(50));
        let mut mesh = Self { world, robot, relays, ends, pose, streams: Vec::new(), chance: seed };
        for (number, end) in ends.into_iter().enumerate() {
            let third = || all("pose").one_in(3);
            let specs: [SubscriptionSpec; 4] = [
                third().scaled_at("mast").within_ms(400),
                third().scaled_anywhere().within_ms(400),
                all("pose").one_in(5).scaled_at(RELAYS[number + 1]),
                all("pose").one_in(2).scaled_anywhere(),
            ];
            let declared = specs.map(|spec| mesh.world.subscribe(end, spec));
            mesh.streams.extend(declared);
        }
        mesh.world.every(pose, Duration::from_millis(20), 10_000_000, payloads(500));
        mesh.world.run_for(Duration::from_secs(3));
        mesh
    }

    fn below(&mut self, most: u64) -> u64 {
        self.chance = self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        (self.chance >> 33) % most
    }

    /// Returns true if a sample that was published after `since` has arrived.
    fn runs(&self, stream: Sub, since: Instant) -> bool {
        let newest = self.world.delivered(stream).last();
        newest.is_some_and(|sample| sample.at.since(since) > sample.age)
    }

    /// Returns true if a stream was refused for the lack of its proxy or path since its first `before` refusals.
    fn is_refused(&self, stream: Sub, before: usize) -> bool {
        let refusals = self.world.refusals(stream).get(before..).unwrap_or_default();
        refusals.iter().any(|(_, refusal)| matches!(refusal.reason, RefusalReason::NoProxy { .. }))
    }

    /// Crashes a relay. Returns the time until the network has settled, and from then until every stream runs again or
    /// is refused with the reason.
    fn crash(&mut self, relay: usize) -> (Duration, Duration) {
        let began = self.world.now();
        let before: Vec<usize> =
            self.streams.iter().map(|stream| self.world.refusals(*stream).len()).collect();
        self.world.crash(self.relays[relay]);
        let name = RELAYS[relay];
        let knows =
            |world: &World, node: NodeIx| world.control(node).nodes().any(|view| view.name == name);
        let rest = [self.robot, self.ends[0], self.ends[1]];
        while rest.iter().any(|node| knows(&self.world, *node)) {
            self.world.run_for(STEP);
            assert!(self.world.now().since(began) < Duration::from_secs(10), "it never settles");
        }
        let settled = self.world.now();
        let is_answered = |mesh: &Self| {
            let all = mesh.streams.iter().zip(&before);
            all.map(|(stream, before)| {
                mesh.runs(*stream, settled) || mesh.is_refused(*stream, *before)
            })
            .collect::<Vec<bool>>()
        };
        loop {
            let answered = is_answered(self);
            if answered.iter().all(|it| *it) {
                break;
            }
            let waited = self.world.now().since(settled);
            assert!(waited <= WITHIN, "after {name}: {answered:?}");
            self.world.run_for(STEP);
        }
        (settled.since(began), self.world.now().since(settled))
    }

    fn restart(&mut self, relay: usize) {
        self.world.restart(self.relays[relay]);
        let pause = 3_000 + self.below(3_000);
        self.world.run_for(Duration::from_millis(pause));
        let since = self.world.now();
        self.world.run_for(Duration::from_millis(500));
        let silent = self.streams.iter().position(|stream| !self.runs(*stream, since));
        assert_eq!(silent, None, "it does not run after the return of {}", RELAYS[relay]);
    }
}

fn fail(seed: u64, failures: usize) {
    let mut mesh = Mesh::new(seed);
    let mut longest = (Duration::ZERO, Duration::ZERO);
    for _ in 0..failures {
        let relay = usize::try_from(mesh.below(3)).unwrap();
        let (settled, answered) = mesh.crash(relay);
        longest = (longest.0.max(settled), longest.1.max(answered));
        mesh.restart(relay);
    }
    println!(
        "seed {seed}: {failures} failures: the network settles within {}, then every stream runs or is refused within {}",
        longest.0, longest.1
    );
    for stream in std::mem::take(&mut mesh.streams) {
        mesh.world.unsubscribe(stream);
    }
    mesh.world.run_for(Duration::from_secs(10));
    let nodes = [mesh.robot, mesh.ends[0], mesh.ends[1]].into_iter().chain(mesh.relays);
    let held: Vec<usize> = nodes.map(|node| mesh.world.control(node).grants().count()).collect();
    assert_eq!(held, [0; 6], "nothing stays reserved");
    assert!(mesh.world.streams(mesh.robot, mesh.relays[0], mesh.pose) == 0);
}

#[test]
fn every_stream_runs_again_or_is_refused_after_the_failure_of_a_proxy() {
    (0..2).for_each(|seed| fail(seed, 10));
}

#[test]
#[ignore = "minutes: cargo xtask long runs it"]
fn a_thousand_failures_of_proxies() {
    (100..120).for_each(|seed| fail(seed, 50));
}

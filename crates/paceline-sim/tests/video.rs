//! Video in virtual time: delivered pictures can always be decoded, and the sums agree.

#![cfg(test)]

use paceline_proto::link::LinkSpec;
use paceline_proto::{DropReason, Kind};
use paceline_sched::{Capacity, Duration, Late, LossTolerance};
use paceline_sim::ask::{Ask as _, all, undecodable, video, video_kind, video_payload};
use paceline_sim::{LinkPlan, NodeIx, Pub, Random, Sub, WireSpec, World};

const GROUPS: [&str; 6] =
    ["I", "IPPPPP", "IBBPBBPBB", "IPBPBPPB", "IBBB", "IPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP"];

/// A world with one camera. Its path to subscribers is cut, lossy, slow, or all of these.
struct History {
    world: World,
    chance: Random,
    nodes: Vec<NodeIx>,
    pairs: Vec<(NodeIx, NodeIx)>,
    camera: Pub,
    group: &'static str,
    number: u64,
    subscriptions: Vec<Sub>,
}

impl History {
    fn new(seed: u64) -> Self {
        let (mut world, mut chance) = (World::new(seed), Random::new(!seed));
        let count = 2 + chance.below(3);
        let nodes: Vec<_> = (0..count).map(|k| world.add_node(&format!("n{k}"))).collect();
        let mut pairs: Vec<_> = nodes.windows(2).map(|pair| (pair[0], pair[1])).collect();
        if nodes.len() > 2 && chance.chance(300) {
            pairs.push((nodes[0], nodes[nodes.len() - 1]));
        }
        for &(a, b) in &pairs {
            let bits = chance.one_of(&[0, 500_000, 2_000_000, 20_000_000]).unwrap();
            world.connect(a, b, LinkPlan { capacity: Capacity::from_bits_per_s(bits).ok() });
        }
        let group = chance.one_of(&GROUPS).unwrap();
        let mut spec = video("camera", 30, 12_000);
        spec.late = if chance.chance(500) { Late::Drop } else { Late::Send };
        let camera = world.publish(nodes[0], spec);
        Self { world, chance, nodes, pairs, camera, group, number: 0, subscriptions: Vec::new() }
    }

    fn subscribe(&mut self) {
        let node = self.chance.one_of(&self.nodes).unwrap();
        let mut asked = all("camera");
        match self.chance.below(8) {
            0 => asked = asked.max_hertz(10),
            1 => asked = asked.max_hertz(20).scaled_here(),
            2 => asked = asked.one_in(2),
            3 => asked = asked.within_ms(150),
            4 => asked = asked.within_ms(600).losing(LossTolerance::new(3, 10).unwrap()),
            5 => asked = asked.sized(20, 10),
            _ => {}
        }
        self.subscriptions.push(self.world.subscribe(node, asked));
    }

    fn film(&mut self) {
        let (pictures, bytes) = (self.chance.below(60), self.chance.one_of(&[300, 3_000, 12_000]));
        let period = self.chance.one_of(&[1, 33, 33, 33]).unwrap();
        for _ in 0..pictures {
            let kind = video_kind(self.group, self.number);
            let bytes = bytes.unwrap() / if kind == Kind::VideoI { 1 } else { 3 };
            self.world.put(self.camera, video_payload(self.number, kind, bytes));
            self.number += 1;
            self.world.run_for(Duration::from_millis(period));
        }
    }

    fn step(&mut self) {
        let (a, b) = self.chance.one_of(&self.pairs).unwrap();
        match self.chance.below(20) {
            0..3 if self.subscriptions.len() < 8 => self.subscribe(),
            3 if self.subscriptions.len() > 1 => {
                let place = self.chance.place(self.subscriptions.len());
                self.world.unsubscribe(self.subscriptions[place]);
            }
            4 => self.world.cut(a, b),
            5 | 6 => self.world.restore(a, b),
            7 => self.world.set_loss(a, b, 30),
            8 => self.world.set_loss(a, b, 0),
            9 => self.world.stall(b),
            10 => self.nodes.iter().for_each(|&node| self.world.resume(node)),
            11 => self.world.run_for(Duration::from_millis(self.chance.below(4_000))),
            _ => self.film(),
        }
    }

    fn check(&self, seed: u64) {
        for &subscription in &self.subscriptions {
            let delivered = self.world.delivered(subscription);
            let bad = undecodable(self.group, delivered);
            assert_eq!(bad, None, "seed {seed}: {subscription:?} of {}", self.group);
        }
    }
}

#[test]
fn delivered_video_can_be_decoded() {
    let (mut delivered, mut dropped) = (0, 0);
    for seed in 0..200 {
        let mut history = History::new(seed);
        history.subscribe();
        history.world.run_for(Duration::from_secs(2));
        (0..40).for_each(|_| history.step());
        history.check(seed);
        // Everything recovers in the end.
        for &(a, b) in &history.pairs {
            history.world.restore(a, b);
            history.world.set_loss(a, b, 0);
        }
        history.nodes.iter().for_each(|&node| history.world.resume(node));
        history.world.run_for(Duration::from_secs(60));
        let end = history.world.subscribe(history.nodes[1], all("camera"));
        history.subscriptions.push(end);
        history.world.run_for(Duration::from_secs(2));
        let first = history.number;
        for number in first..first + 90 {
            let kind = video_kind(history.group, number);
            history.world.put(history.camera, video_payload(number, kind, 300));
            history.world.run_for(Duration::from_millis(100));
        }
        history.check(seed);
        let got = history.world.delivered(end);
        assert!(got.len() >= 90 - history.group.len(), "seed {seed}: {} arrived", got.len());
        for &sub in &history.subscriptions {
            delivered += history.world.delivered(sub).len() as u64;
            dropped += history.world.drops(sub).total();
        }
    }
    println!("{delivered} delivered, {dropped} lost before the subscriber");
    assert!(delivered > 10_000 && dropped > 100, "the histories test something");
}

/// The result of one camera on a link of at most 2 Mbit/s between two nodes.
struct Shot {
    delivered: Vec<paceline_sim::Delivered>,
    drops: paceline_proto::reason::Drops,
    violations: u64,
    late: u64,
}

fn shoot(group: &str, bytes: [usize; 3], limits: [u64; 2], within: Option<(u64, u32)>) -> Shot {
    let mut world = World::new(11);
    let (here, there) = (world.add_node("here"), world.add_node("there"));
    let [link, wire] = limits.map(|bits| Capacity::from_bits_per_s(bits).ok());
    let spec = LinkSpec { capacity: link, ..LinkSpec::default() };
    let (a, b) = (world.add_link(here, "a", spec), world.add_link(there, "b", LinkSpec::default()));
    let thin = WireSpec::limited(wire);
    world.join(a, b, thin, WireSpec::default());
    // The declared size is too small, so that the contract is admitted and the link is overloaded.
    let mut spec = video("camera", 30, 100);
    spec.late = Late::Drop;
    let camera = world.publish(here, spec);
    let mut asked = all("camera");
    if let Some((millis, misses)) = within {
        asked = asked.within_ms(millis).losing(LossTolerance::new(misses, 10).unwrap());
    }
    let seen = world.subscribe(there, asked);
    world.run_for(Duration::from_secs(2));
    let period = Duration::from_secs(1).mul_div(1, 30);
    let payloads = paceline_sim::ask::video_payloads(group, bytes);
    world.every(camera, period, 900, payloads);
    world.run_for(Duration::from_secs(60));
    let delivered = world.delivered(seen).to_vec();
    assert_eq!(undecodable(group, &delivered), None);
    let stream = world.stream(here, there, camera);
    assert_eq!((stream.offered, stream.sent + stream.drops.total()), (900, 900), "{stream:?}");
    // The sink counts samples that arrived too late, and counts aborted samples a second time.
    let (got, at_sink) = (delivered.len() as u64, world.drops(seen).total());
    assert!(got <= stream.sent && stream.sent <= got + at_sink, "{got} {at_sink} {stream:?}");
    Shot { delivered, drops: stream.drops, violations: stream.violations, late: stream.late }
}

/// Returns the number of delivered samples of each kind: I, P, B.
fn by_kind(shot: &Shot) -> [usize; 3] {
    [Kind::VideoI, Kind::VideoP, Kind::VideoB]
        .map(|kind| shot.delivered.iter().filter(|sample| sample.kind == kind).count())
}

#[test]
fn best_effort_video_is_shed_in_order() {
    const GROUP: &str = "IBBPBBPBBPBB"; // 75 I, 225 P, 600 B
    for p_bytes in [4_000, 8_000, 14_000, 22_000, 40_000, 90_000] {
        let shot = shoot(GROUP, [16_000, p_bytes, 9_000], [2_000_000; 2], None);
        let [i, p, b] = by_kind(&shot);
        println!(
            "P of {p_bytes}: {i} I, {p} P, {b} B; {:?}",
            shot.drops.iter().collect::<Vec<_>>()
        );
        assert_eq!(i, 75, "no I is shed while there are Ps");
        assert!(b < 600);
        // Per second: 2.5 I, 7.5 P.
        let references = 40_000 + p_bytes * 15 / 2;
        if references < 230_000 {
            assert_eq!(p, 225, "no P is shed while there are Bs");
        } else {
            assert!(b < 20, "{b} Bs next to lost Ps");
        }
        let age = shot.delivered.iter().map(|sample| sample.age).max().unwrap();
        assert!(age < Duration::from_secs(15), "{age}");
    }
}

#[test]
fn an_overloaded_contracted_stream_is_shed_in_order() {
    const GROUP: &str = "IBBPBBPBBPBB";
    // The link carries 218 kB of payload per second. With Ps of 6,000 bytes it is offered 265 kB, so dropping
    // a fifth is enough.
    for (p_bytes, misses) in
        [(4_000, 7), (8_000, 7), (6_000, 2), (14_000, 7), (8_000, 0), (40_000, 9), (40_000, 0)]
    {
        let limits = [2_000_000; 2];
        let shot = shoot(GROUP, [16_000, p_bytes, 9_000], limits, Some((300, misses)));
        let [i, p, b] = by_kind(&shot);
        println!(
            "P of {p_bytes}, {misses}/10: {i} I, {p} P, {b} B; {} violations, {} late; {:?}",
            shot.violations,
            shot.late,
            shot.drops.iter().collect::<Vec<_>>()
        );
        match (p_bytes, misses) {
            (40_000, 9) => {
                assert_eq!((i, shot.violations), (75, 0), "the contract is kept without Bs");
                assert!(p > 100 && b < 10, "{p} P, {b} B");
            }
            // No loss is permitted, but some is necessary. Once the contract is broken, samples are dropped
            // in order.
            (_, 0) => {
                assert!(shot.violations > 0);
                assert!(i >= 74 && (p >= 225 - 12 || b < 20), "{i} I, {p} P, {b} B");
            }
            _ => {
                assert_eq!((i, p, shot.violations), (75, 225, 0));
                assert_eq!(shot.drops.total(), shot.drops.of(DropReason::QueueFull), "only Bs");
            }
        }
    }
}

/// Runs two contracted cameras that the link could carry alone. Neither can predict the load of the other.
#[test]
fn contracted_streams_that_share_a_link_lose_b_pictures_first() {
    const GROUP: &str = "IBBPBBPBBPBB";
    let mut world = World::new(12);
    let (here, there) = (world.add_node("here"), world.add_node("there"));
    world.connect(here, there, LinkPlan { capacity: Capacity::from_bits_per_s(2_000_000).ok() });
    let cameras = ["left", "right"].map(|tag| world.publish(here, video(tag, 30, 100)));
    let seen = ["left", "right"].map(|tag| {
        let loss = LossTolerance::new(7, 10).unwrap();
        world.subscribe(there, all(tag).within_ms(300).losing(loss))
    });
    world.run_for(Duration::from_secs(2));
    for camera in cameras {
        // 60 kB/s of references and 120 kB/s of Bs for each; the link has 240 kB/s for both.
        let payloads = paceline_sim::ask::video_payloads(GROUP, [9_000, 5_000, 6_000]);
        world.every(camera, Duration::from_secs(1).mul_div(1, 30), 900, payloads);
    }
    world.run_for(Duration::from_secs(35));
    for (camera, seen) in cameras.into_iter().zip(seen) {
        let delivered = world.delivered(seen);
        assert_eq!(undecodable(GROUP, delivered), None);
        let references = delivered.iter().filter(|sample| sample.kind != Kind::VideoB).count();
        let counters = world.stream(here, there, camera);
        println!("{references} of 300 references, {} in all: {counters:?}", delivered.len());
        assert!(references >= 270, "{references}");
        assert!(delivered.len() < 700);
    }
}

#[test]
fn a_stream_that_keeps_its_contract_sheds_nothing() {
    let shot = shoot("IBBPBBPBBPBB", [9_000, 4_000, 2_000], [2_000_000; 2], Some((300, 7)));
    assert_eq!((by_kind(&shot), shot.violations), ([75, 225, 600], 0));
    assert_eq!(shot.drops.total(), 0);
}

#[test]
fn dependent_pictures_are_dropped_with_their_reference() {
    // An I takes 800 ms and misses its deadline of 300 ms, so nothing of its group is sent.
    let shot = shoot("IPPPPPPPPPPPPPP", [200_000, 1_000, 1_000], [2_000_000; 2], Some((300, 7)));
    assert_eq!(by_kind(&shot), [0, 0, 0]);
    assert_eq!(shot.drops.of(DropReason::DeadlineMissed), 60);
    assert_eq!(shot.drops.of(DropReason::Undecodable), 840);
    assert_eq!(shot.violations, 90, "each of 90 windows is counted, and violated, once");
}

#[test]
fn too_dense_video_is_recoded() {
    let mut world = World::new(3);
    let (here, there) = (world.add_node("here"), world.add_node("there"));
    world.connect(here, there, LinkPlan::default());
    let camera = world.publish(here, video("camera", 30, 900));
    let [ten, small] = [all("camera").max_hertz(10), all("camera").sized(16, 16).one_in(2)]
        .map(|asked| world.subscribe(there, asked));
    world.run_for(Duration::from_secs(2));
    let payloads = paceline_sim::ask::video_payloads("IPPPPPPPPP", [900, 500, 200]);
    world.every(camera, Duration::from_secs(1).mul_div(1, 30), 300, payloads);
    world.run_for(Duration::from_secs(11));
    let ten = world.delivered(ten);
    assert!((97..=103).contains(&ten.len()), "{}", ten.len());
    assert_eq!(undecodable("IPPPPPPPPP", ten), None);
    let small = world.delivered(small);
    assert_eq!(small.len(), 150);
    assert!(small.iter().all(|sample| sample.bytes == 256 && sample.kind == Kind::VideoI));
}

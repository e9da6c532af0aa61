//! Random histories of small worlds: the sums agree at any time, and everything recovers in the end.

use paceline_sched::{Capacity, Duration};
use paceline_sim::ask::{Ask as _, all, data, payload, pictures};
use paceline_sim::impair::Impairment;
use paceline_sim::{LinkPlan, NodeIx, Pub, Random, Sub, World};

const TAGS: [&str; 4] = ["a", "a/b", "camera/a", "camera/b"];
const PATTERNS: [&str; 5] = ["**", "a/**", "camera/*", "a", "camera/b"];

struct History {
    world: World,
    chance: Random,
    nodes: Vec<NodeIx>,
    pairs: Vec<(NodeIx, NodeIx)>,
    cut: Vec<bool>,
    publishers: Vec<(Pub, &'static str)>,
    subscriptions: Vec<(Sub, &'static str)>,
}

impl History {
    fn new(seed: u64) -> Self {
        let (mut world, mut chance) = (World::new(seed), Random::new(!seed));
        let count = 2 + chance.below(4);
        let nodes: Vec<_> = (0..count).map(|k| world.add_node(&format!("n{k}"))).collect();
        let mut pairs = Vec::new();
        for (place, &node) in nodes.iter().enumerate().skip(1) {
            pairs.extend(nodes.get(chance.place(place)).map(|&other| (other, node)));
        }
        if let [first, _, .., last] = nodes[..]
            && !pairs.contains(&(first, last))
            && chance.chance(500)
        {
            pairs.push((first, last));
        }
        for &(a, b) in &pairs {
            let bits = chance.one_of(&[0, 1_000_000, 20_000_000]).unwrap_or_default();
            world.connect(a, b, LinkPlan { capacity: Capacity::from_bits_per_s(bits).ok() });
        }
        let cut = vec![false; pairs.len()];
        let (publishers, subscriptions) = (Vec::new(), Vec::new());
        Self { world, chance, nodes, pairs, cut, publishers, subscriptions }
    }

    fn publish(&mut self) {
        let (Some(node), Some(tag)) = (self.chance.one_of(&self.nodes), self.chance.one_of(&TAGS))
        else {
            return;
        };
        let spec = if tag.starts_with("camera") { pictures(tag, 30, 9_000) } else { data(tag) };
        let publisher = self.world.publish(node, spec);
        self.publishers.push((publisher, tag));
    }

    fn subscribe(&mut self) {
        let chosen = (self.chance.one_of(&self.nodes), self.chance.one_of(&PATTERNS));
        let (Some(node), Some(pattern)) = chosen else { return };
        let mut asked = all(pattern);
        match self.chance.below(9) {
            0 => asked = asked.max_hertz(10),
            1 => asked = asked.one_in(2).scaled_here(),
            2 => asked = asked.within_ms(400),
            3 => asked = asked.sized(40, 20),
            4 => asked = asked.sized(40, 20).scaled_at("n1"),
            5 => asked = asked.one_in(2).scaled_at("n2").within_ms(400),
            6 => asked = asked.one_in(3).scaled_anywhere(),
            _ => {}
        }
        let subscription = self.world.subscribe(node, asked);
        self.subscriptions.push((subscription, pattern));
    }

    fn step(&mut self) {
        match self.chance.below(40) {
            0 if self.publishers.len() < 8 => self.publish(),
            1 | 2 if self.subscriptions.len() < 12 => self.subscribe(),
            3 if !self.publishers.is_empty() => {
                let place = self.chance.place(self.publishers.len());
                self.world.unpublish(self.publishers.swap_remove(place).0);
            }
            4 if !self.subscriptions.is_empty() => {
                let place = self.chance.place(self.subscriptions.len());
                self.world.unsubscribe(self.subscriptions.swap_remove(place).0);
            }
            5 => self.cut_or_restore(),
            6 => {
                let (pair, loss) = (self.chance.one_of(&self.pairs), [0, 0, 20, 200]);
                let per_mille = self.chance.one_of(&loss).unwrap_or_default();
                pair.into_iter().for_each(|(a, b)| self.world.set_loss(a, b, per_mille));
            }
            7 => {
                let node = self.chance.one_of(&self.nodes);
                node.into_iter().for_each(|node| self.world.stall(node));
            }
            8 => self.nodes.iter().for_each(|&node| self.world.resume(node)),
            9 => self.run(4_000),
            10 => self.impair(),
            11..20 => self.run(200),
            _ => self.put(),
        }
    }

    fn cut_or_restore(&mut self) {
        let place = self.chance.place(self.pairs.len());
        let (Some(&(a, b)), Some(cut)) = (self.pairs.get(place), self.cut.get_mut(place)) else {
            return;
        };
        *cut = !*cut;
        match cut {
            true => self.world.cut(a, b),
            false => self.world.restore(a, b),
        }
    }

    fn impair(&mut self) {
        let Some((a, b)) = self.chance.one_of(&self.pairs) else { return };
        let mut of = |most: u64| Duration::from_millis(self.chance.below(most));
        let (delay, jitter) = (of(50), of(20));
        let (usual, blackout) = (self.world.impairment(a, b), self.chance.chance(200));
        self.world.impair(a, b, Impairment { delay, jitter, blackout, ..usual });
    }

    fn run(&mut self, most: u64) {
        let millis = self.chance.below(most);
        self.world.run_for(Duration::from_millis(millis));
    }

    fn put(&mut self) {
        let bytes = self.chance.one_of(&[0, 10, 900, 5_000]).unwrap_or_default();
        for _ in 0..self.chance.below(20) {
            let Some((publisher, tag)) = self.chance.one_of(&self.publishers) else { return };
            let times = if tag.starts_with("camera") { 40 } else { 1 };
            self.world.put(publisher, payload(0, bytes * times));
        }
    }

    fn end_faults(&mut self) {
        for &(a, b) in &self.pairs {
            self.world.restore(a, b);
            let rate = self.world.impairment(a, b).rate;
            self.world.impair(a, b, Impairment { rate, ..Impairment::NONE });
        }
        self.nodes.iter().for_each(|&node| self.world.resume(node));
        // Time to find each other, to compare digests once, and to drain the queues.
        self.world.run_for(Duration::from_secs(300));
    }

    /// Checks that every node knows the whole registry and that samples arrive.
    fn check_end(&mut self, seed: u64) {
        for &node in &self.nodes {
            let known = self.world.control(node).nodes();
            let (nodes, publishers, subscriptions) = known.fold((0, 0, 0), |sum, view| {
                (sum.0 + 1, sum.1 + view.publishers.len(), sum.2 + view.subscriptions.len())
            });
            let all = (self.nodes.len(), self.publishers.len(), self.subscriptions.len());
            assert_eq!((nodes, publishers, subscriptions), all, "seed {seed}: {node:?}");
        }
        let before: Vec<usize> =
            self.subscriptions.iter().map(|&(sub, _)| self.world.delivered(sub).len()).collect();
        // The lowest requested rate is one in three: 10 Hz of a camera that declares 30 Hz.
        for _ in 0..12 {
            for &(publisher, _) in &self.publishers {
                self.world.put(publisher, payload(0, 2_000));
            }
            self.world.run_for(Duration::from_secs(2));
        }
        for (&(sub, pattern), before) in self.subscriptions.iter().zip(before) {
            let heard = self.world.heard(sub).len();
            let got = self.world.delivered(sub).len() - before;
            let what =
                || format!("seed {seed}: {pattern} {got} of {heard}: {:?}", self.world.drops(sub));
            assert!(got >= 4 * heard && got <= 12 * heard, "{}", what());
        }
    }
}

fn run(seed: u64, steps: usize) -> History {
    let mut history = History::new(seed);
    for _ in 0..3 {
        history.publish();
        history.subscribe();
    }
    (0..steps).for_each(|_| history.step());
    history
}

#[test]
fn counters_agree_and_all_streams_recover() {
    for seed in 0..300 {
        let mut history = run(seed, 150);
        history.end_faults();
        history.check_end(seed);
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let outcome = |seed| {
        let history = run(seed, 120);
        let subscriptions = history.subscriptions.iter();
        let got: Vec<_> =
            subscriptions.map(|&(sub, _)| history.world.delivered(sub).to_vec()).collect();
        (got, history.world.now(), history.world.turns())
    };
    for seed in [3, 5] {
        assert!(outcome(seed) == outcome(seed), "seed {seed}");
    }
}

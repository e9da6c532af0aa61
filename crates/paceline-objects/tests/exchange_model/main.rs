//! Random histories of an owner against a naive model: gaps per object and observer, fidelity, promised places,
//! budgets, and that nothing is lost.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test may panic")]

mod network;
mod random;
mod rules;

use network::{Fate, Network};
use paceline_objects::contract::{PromisedService, UpdateSizes};
use paceline_objects::exchange::{ExchangeList, ExchangeSettings, ObjectFacts, Observer};
use paceline_objects::semantic::{ExchangeTerms, PairView};
use paceline_objects::{
    ErrorControl, GroupMask, InteractorModules, Motion, ObjectContract, ObjectIndex, PeerId,
    UpdatePolicing,
};
use paceline_sched::{Duration, Instant};
use random::Random;
use rules::Rules;

const LARGEST: u64 = 300;

struct World {
    random: Random,
    list: ExchangeList,
    rules: Rules,
    network: Network,
    now: Instant,
    next_object: u32,
    next_peer: u64,
    version: u64,
    fate: Fate,
    budget: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let settings = ExchangeSettings {
            evaluate_every: Duration::from_secs(1),
            fallback: ExchangeTerms::every(Duration::from_millis(100)),
            ..ExchangeSettings::default()
        };
        Self {
            random: Random::new(seed),
            list: ExchangeList::new(settings),
            rules: Rules::default(),
            network: Network::default(),
            now: Instant::from_millis(1),
            next_object: 0,
            next_peer: 0,
            version: 0,
            fate: Fate::Random,
            budget: 500,
        }
    }

    fn step(&mut self) {
        match self.random.below(32) {
            0 => self.create(),
            1 => self.delete(),
            2 => self.join(),
            3 if self.random.percent(30) => self.leave(),
            3 => self.promise(),
            4..8 => self.set_terms(),
            8 => self.budget = self.random.below(3) * 400,
            9..16 => self.advance(),
            _ => self.change(),
        }
    }

    fn object(&mut self) -> Option<ObjectIndex> {
        let count = u64::try_from(self.rules.objects.len()).unwrap();
        let place = self.random.below(count.max(1));
        self.rules.objects.keys().nth(usize::try_from(place).unwrap()).copied()
    }

    fn peer(&mut self) -> Option<PeerId> {
        let count = u64::try_from(self.rules.peers.len()).unwrap();
        let place = self.random.below(count.max(1));
        self.rules.peers.keys().nth(usize::try_from(place).unwrap()).copied()
    }

    fn motion(&mut self) -> Option<Motion> {
        if self.random.percent(20) {
            return None;
        }
        let mut component = || f64::from(u32::try_from(self.random.below(200)).unwrap()) - 100.0;
        let position = [component(), component(), 0.0];
        Some(Motion { position, velocity: [component(), 0.0, 0.0], at: self.now })
    }

    fn create(&mut self) {
        if self.rules.objects.len() >= 12 {
            return;
        }
        let object = ObjectIndex(self.next_object);
        self.next_object += 1;
        let groups = 1 + self.random.below(4);
        let bytes: Vec<u32> =
            (0..groups).map(|_| 1 + u32::try_from(self.random.below(60)).unwrap()).collect();
        let motion = self.motion();
        let facts = ObjectFacts { motion, motion_groups: GroupMask::of(0), group_bytes: &bytes };
        self.list.create(object, &facts, self.now).unwrap();
        self.version += 1;
        let model = self.rules.objects.entry(object).or_default();
        model.versions = vec![self.version; bytes.len()];
        model.bytes = bytes;
    }

    fn change(&mut self) {
        let Some(object) = self.object() else { return };
        let motion = self.motion();
        self.version += 1;
        let groups = GroupMask(u32::try_from(self.random.below(16)).unwrap());
        let model = self.rules.objects.get_mut(&object).unwrap();
        for (group, version) in model.versions.iter_mut().enumerate() {
            if groups.has(group) {
                *version = self.version;
            }
        }
        let facts =
            ObjectFacts { motion, motion_groups: GroupMask::of(0), group_bytes: &model.bytes };
        self.list.change(object, &facts, groups, self.now).unwrap();
    }

    fn delete(&mut self) {
        let Some(object) = self.object() else { return };
        self.list.delete(object, self.now).unwrap();
        self.rules.objects.remove(&object);
        for peer in self.rules.peers.values_mut() {
            if let Some(terms) = peer.terms.remove(&object) {
                peer.ended.insert(object, terms);
            }
        }
    }

    fn join(&mut self) {
        if self.rules.peers.len() >= 4 {
            return;
        }
        let peer = PeerId(self.next_peer.into());
        self.next_peer += 1;
        self.list.join(peer, Observer::EVERYWHERE, self.now).unwrap();
        let modules = InteractorModules {
            error_control: ErrorControl::ALL[usize::from(self.random.percent(30))],
            policing: UpdatePolicing::ALL[usize::from(self.random.percent(30))],
            fragment_bytes: None,
        };
        self.list.choose(peer, modules, self.now).unwrap();
        self.rules.peers.insert(peer, Default::default());
    }

    fn leave(&mut self) {
        let Some(peer) = self.peer() else { return };
        self.list.leave(peer);
        self.network.forget(peer);
        self.rules.peers.remove(&peer);
    }

    fn set_terms(&mut self) {
        let (Some(peer), Some(object)) = (self.peer(), self.object()) else { return };
        let model = self.rules.peers.get_mut(&peer).unwrap();
        if self.random.percent(15) {
            self.list.set_terms(peer, object, None, self.now).unwrap();
            if let Some(terms) = model.terms.remove(&object) {
                model.ended.insert(object, terms);
            }
            return;
        }
        let gap = Duration::from_micros(1_000 + self.random.below(60_000));
        let terms = ExchangeTerms {
            gap,
            refresh: gap.saturating_add(Duration::from_millis(self.random.below(400))),
            fidelity_permille: u16::try_from(1 + self.random.below(1_000)).unwrap(),
            tolerance: f64::from(u32::try_from(self.random.below(3)).unwrap()) * 20.0,
            weight: f64::from(u32::try_from(1 + self.random.below(40)).unwrap()),
        };
        self.list.set_terms(peer, object, Some(terms), self.now).unwrap();
        model.terms.insert(object, terms);
        model.ended.remove(&object);
    }

    fn promise(&mut self) {
        let Some(peer) = self.peer() else { return };
        let contract = ObjectContract {
            max_updates: u32::try_from(1 + self.random.below(9)).unwrap(),
            per: Duration::from_millis(70),
            refresh: Duration::from_millis(150),
            bytes: 50 + u32::try_from(self.random.below(200)).unwrap(),
            delay: Duration::from_millis(20),
            fidelity_permille: u16::try_from(1 + self.random.below(1_000)).unwrap(),
        };
        let count = usize::try_from(1 + self.random.below(4)).unwrap();
        let sizes = UpdateSizes {
            groups: 4,
            largest_group: 60,
            fragment_bytes: u32::try_from(LARGEST).unwrap(),
        };
        let headers = ExchangeSettings::default().headers();
        let service = PromisedService::new(contract, count, &sizes, &headers);
        let promised = self.random.percent(80).then_some(service);
        self.list.promise(peer, promised, self.now).unwrap();
        self.rules.peers.get_mut(&peer).unwrap().promise(promised);
    }

    /// Lets time pass, with every wake-up in between.
    fn advance(&mut self) {
        let until = self.now + Duration::from_micros(self.random.below(12_000));
        self.run(until);
    }

    fn run(&mut self, until: Instant) {
        loop {
            self.drain();
            let wakes = self.list.next_wake().into_iter().chain(self.network.next());
            let next = wakes.min().unwrap_or(Instant::FAR);
            assert!(next > self.now, "it wants to wake up without anything to do");
            if next > until {
                break;
            }
            self.now = next;
            self.network.advance(&mut self.list, self.now);
        }
        self.now = until;
    }

    fn drain(&mut self) {
        while let Some(batch) = self.list.next_batch(self.now) {
            let decided = batch.decide(&mut |pair: &PairView<'_>| pair.facts.terms, &()).unwrap();
            for (object, terms) in &decided.terms {
                assert_eq!(*terms, self.rules.peers[&batch.peer].terms.get(object).copied());
            }
            assert!(self.list.accept(&decided, self.now));
        }
        while let Some(message) = self.list.poll(self.now, &self.budget, LARGEST) {
            let versions = self.rules.check(&message, self.budget, LARGEST, self.now);
            self.network.send(message, versions, self.fate, &mut self.random, self.now);
        }
        let counters = self.list.counters();
        assert_eq!(
            counters.offered + counters.lost,
            counters.carried + counters.suppressed_total() + self.list.waiting(),
            "an update without a reason: {counters:?}"
        );
    }

    /// Checks that after a quiet time every observer has the newest version of everything it has interest in.
    fn settle(&mut self) {
        self.fate = Fate::Good;
        self.budget = u64::MAX;
        self.run(self.now + Duration::from_secs(5));
        for (peer, model) in &self.rules.peers {
            for object in model.terms.keys() {
                let replica = &self.network.replicas[&(*peer, *object)];
                assert!(replica.exists, "{object} at {peer}");
                let groups: Vec<_> = replica.groups.values().map(|(_, version)| *version).collect();
                assert_eq!(groups, self.rules.objects[object].versions, "{object} at {peer}");
            }
            for object in model.ended.keys() {
                let replica = self.network.replicas.get(&(*peer, *object));
                assert!(replica.is_none_or(|replica| !replica.exists), "{object} at {peer}");
            }
        }
        let interests: usize = self.rules.peers.values().map(|peer| peer.terms.len()).sum();
        assert_eq!(self.list.pairs(), interests, "a pair that is not needed");
        assert_eq!(self.list.waiting(), 0);
    }
}

/// Runs `histories` of `steps` operations each and returns the number of updates that were checked.
fn run(histories: u64, steps: u64) -> u64 {
    let mut checked = 0;
    for seed in 0..histories {
        let mut world = World::new(seed);
        for _ in 0..steps / 2 {
            world.step();
        }
        world.settle();
        world.fate = Fate::Random;
        for _ in 0..steps / 2 {
            world.step();
        }
        world.settle();
        checked += world.rules.checked;
    }
    checked
}

#[test]
fn a_million_operations_obey_the_rules_and_lose_nothing() {
    let checked = run(500, 2_000);
    assert!(checked > 400_000, "only {checked} updates were checked");
}

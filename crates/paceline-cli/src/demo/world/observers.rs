//! The observers of the town, and how well they see it.

use super::super::children::free_ports;
use super::town::{Car, Town};
use crate::args;
use paceline::world::{Interest, ObjectContract, ObjectView, ServiceEvent, SharedWorld};
use paceline::{LinkConfig, Node};
use paceline_http::{ContractState, WorldReading};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Cars within this distance are near, in metres.
const NEAR: f64 = 100.0;
const TOWER: &str = "tower";
/// The observer behind the thin link, and the name of this link.
pub(super) const RADIO: &str = "radio";
/// The capacity of the radio link in the beginning, and of the other links.
pub(super) const RADIO_CAPACITY: &str = "256kbit";
const OTHER_CAPACITY: &str = "10mbit";
/// The nearest distance of the observers' interest, and how much farther a car may be that leaves it.
const NEAREST: f64 = NEAR * 1.2;
const NEAREST_SLACK: f64 = 0.1;
const WORLD: &str = "town";
/// The radio operator's contract: cars, updates per second, bytes and delay.
const PROMISED: (usize, u32, u32, Duration) = (12, 5, 64, Duration::from_millis(300));
/// The age beyond which a promised car is late: the gap, the delay, and the time between two readings.
pub(super) const AGE_MAX: Duration = Duration::from_millis(200 + 300 + 60);

/// An observer, which follows a car.
pub(super) struct Watcher {
    world: SharedWorld,
    // Open as long as the observer.
    _node: Node,
    follows: usize,
    pub(super) reading: WorldReading,
    pub(super) position: [f64; 2],
    /// The reason why the contract is not in force.
    why: Option<String>,
    /// Since when each car has been near.
    near_since: Vec<Option<Instant>>,
    second: Sums,
    bytes: u64,
    pub(super) seen: Vec<Seen>,
}

/// A car as an observer sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) car: usize,
    pub(super) position: [f64; 2],
    pub(super) error: f64,
    pub(super) age: Duration,
}

#[derive(Default)]
struct Sums {
    near: (f64, u32),
    far: (f64, u32),
    age: Duration,
    most: usize,
}

/// The node of the town and its observers.
pub(super) struct Observers {
    // Closed before the town, so that they do not look for it.
    pub(super) watchers: Vec<Watcher>,
    town: SharedWorld,
    node: Node,
    promised: Promised,
}

/// The readings of promised cars.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Promised {
    pub(super) read: u64,
    /// The readings that were older than the contract permits.
    pub(super) late: u64,
    /// The greatest age.
    pub(super) oldest: Duration,
}

impl Promised {
    fn add(&mut self, other: Self) {
        self.read += other.read;
        self.late += other.late;
        self.oldest = self.oldest.max(other.oldest);
    }
}

impl Observers {
    pub(super) fn open() -> anyhow::Result<Self> {
        let names = ["pilot", TOWER, RADIO];
        let ports = free_ports::<3>()?;
        let mut builder = Node::builder().name("town").isolated();
        for (name, port) in names.into_iter().zip(ports) {
            let capacity = if name == RADIO { RADIO_CAPACITY } else { OTHER_CAPACITY };
            let capacity = args::capacity(capacity).map_err(anyhow::Error::msg)?;
            let link = LinkConfig::new(name).listen(&format!("tcp/127.0.0.1:{port}"));
            builder = builder.link(link.capacity(capacity));
        }
        let node = builder.open()?;
        let town = node.world(WORLD).join()?;
        let watchers = names
            .into_iter()
            .zip(ports)
            .enumerate()
            .map(|(number, (name, port))| Watcher::open(name, port, number))
            .collect::<anyhow::Result<Vec<_>>>()?;
        Ok(Self { town, node, watchers, promised: Promised::default() })
    }

    pub(super) const fn town(&self) -> &SharedWorld {
        &self.town
    }

    pub(super) const fn town_node(&self) -> &Node {
        &self.node
    }

    /// Lets all observers look at the town; `counts` states whether promised cars are counted.
    pub(super) fn look(&mut self, town: &Town, counts: bool) {
        for watcher in &mut self.watchers {
            let promised = watcher.look(town);
            if counts {
                self.promised.add(promised);
            }
        }
    }

    /// Ends a second.
    pub(super) fn second(&mut self) {
        let status = self.node.status_of(&[self.node.id()], Duration::from_millis(300));
        let links = status.first().map(|status| status.links.as_slice()).unwrap_or_default();
        for watcher in &mut self.watchers {
            let link = links.iter().find(|link| link.name == watcher.reading.name);
            let bytes =
                link.map(|link| link.streams.iter().map(|stream| stream.counters.bytes).sum());
            watcher.second(bytes.unwrap_or(0));
        }
    }

    pub(super) fn readings(&self) -> Vec<&WorldReading> {
        self.watchers.iter().map(|watcher| &watcher.reading).collect()
    }

    /// Returns the readings of promised cars.
    pub(super) const fn promised(&self) -> Promised {
        self.promised
    }

    pub(super) fn granted(&self) -> bool {
        self.watchers.iter().any(|watcher| watcher.reading.contract == ContractState::Granted)
    }

    /// Returns the reason why the contract is not in force.
    pub(super) fn why(&self) -> Option<&str> {
        self.watchers.iter().find_map(|watcher| watcher.why.as_deref())
    }
}

impl Watcher {
    fn open(name: &'static str, port: u16, number: usize) -> anyhow::Result<Self> {
        let link = LinkConfig::new(name).connect(&format!("tcp/127.0.0.1:{port}"));
        let node = Node::builder().name(name).isolated().link(link).open()?;
        let world = node.world(WORLD).join()?;
        let ms = Duration::from_millis;
        let steps = [(NEAREST, ms(50)), (400.0, ms(200)), (1_500.0, ms(1_000))];
        let interest = match name {
            TOWER => Interest::every(ms(500)),
            RADIO => {
                let (objects, updates, bytes, delay) = PROMISED;
                let contract = ObjectContract::per_second(updates, bytes, delay);
                Interest::by_distance(&steps).with_contract(contract, objects)
            }
            _ => Interest::by_distance(&steps),
        };
        world.observe(Some(interest))?;
        let contract = if name == RADIO { ContractState::Requested } else { ContractState::None };
        let reading = WorldReading {
            name,
            cars: 0,
            near: 0,
            near_error_m: 0.0,
            far_error_m: 0.0,
            near_age_ms: 0,
            bits_per_s: 0,
            contract,
        };
        Ok(Self {
            world,
            _node: node,
            follows: number * 7,
            reading,
            position: [0.0; 2],
            why: None,
            near_since: Vec::new(),
            second: Sums::default(),
            bytes: 0,
            seen: Vec::new(),
        })
    }

    /// Processes the events of the contract.
    fn hear(&mut self) {
        while let Some(event) = self.world.try_service() {
            let (contract, why) = match event {
                ServiceEvent::Granted(_) => (ContractState::Granted, None),
                ServiceEvent::Refused(refusal, _) => {
                    (ContractState::Refused, Some(refusal.to_string()))
                }
                // It stays in force.
                ServiceEvent::EndsTooSlow(..)
                    if self.reading.contract == ContractState::Granted =>
                {
                    continue;
                }
                ServiceEvent::EndsTooSlow(_, _, least) => {
                    (ContractState::Refused, Some(too_slow(least)))
                }
                ServiceEvent::Withdrawn(_) | _ => {
                    let why = "the town no longer reserves it; its link may have failed";
                    (ContractState::Withdrawn, Some(why.to_owned()))
                }
            };
            (self.reading.contract, self.why) = (contract, why);
        }
    }

    /// Looks at the town from the followed car, and returns the readings of promised cars.
    fn look(&mut self, town: &Town) -> Promised {
        self.hear();
        if let Some(Car { position, velocity, .. }) = town.cars.get(self.follows) {
            self.position = *position;
            let [[x, y], [east, north]] = [*position, *velocity];
            self.world.look([x, y, 0.0], [east, north, 0.0], None);
        }
        self.near_since.resize(town.cars.len(), None);
        let now = Instant::now();
        let objects = self.world.objects();
        self.seen = objects.iter().filter_map(|object| seen(object, town)).collect();
        let ages: BTreeMap<_, _> = self.seen.iter().map(|seen| (seen.car, seen.age)).collect();
        for seen in &self.seen {
            let Some(car) = town.cars.get(seen.car) else { continue };
            let is_near = distance(car.position, self.position) <= NEAR;
            let sum = if is_near { &mut self.second.near } else { &mut self.second.far };
            *sum = (sum.0 + seen.error, sum.1 + 1);
        }
        // The contract covers the cars of the nearest distance, also of those that are just leaving it, if they are few.
        let nearest = NEAREST * (1.0 + NEAREST_SLACK);
        let candidates =
            town.cars.iter().filter(|car| distance(car.position, self.position) <= nearest);
        let all_promised =
            self.reading.contract == ContractState::Granted && candidates.count() <= PROMISED.0;
        let mut promised = Promised::default();
        let mut near = 0;
        for ((number, car), near_since) in town.cars.iter().enumerate().zip(&mut self.near_since) {
            if distance(car.position, self.position) > NEAR {
                *near_since = None;
                continue;
            }
            near += 1;
            let since = *near_since.get_or_insert(now);
            // A car that was never received is as old as its time near.
            let age = ages.get(&number).copied().unwrap_or(now.duration_since(since));
            self.second.age = self.second.age.max(age);
            // A car that has just come near is promised from the next evaluation and exchange on.
            if all_promised && now.duration_since(since) > Duration::from_secs(1) {
                let late = u64::from(age > AGE_MAX);
                promised.add(Promised { read: 1, late, oldest: age });
            }
        }
        self.second.most = self.second.most.max(near);
        promised
    }

    fn second(&mut self, bytes: u64) {
        let Sums { near, far, age, most } = std::mem::take(&mut self.second);
        let mean = |(sum, count): (f64, u32)| if count == 0 { 0.0 } else { sum / f64::from(count) };
        self.reading.cars = self.seen.len();
        self.reading.near = most;
        self.reading.near_error_m = rounded(mean(near));
        self.reading.far_error_m = rounded(mean(far));
        self.reading.near_age_ms = millis(age);
        self.reading.bits_per_s = bytes.saturating_sub(self.bytes) * 8;
        self.bytes = bytes;
    }
}

/// Names the reason of a contract for which both ends are too slow.
fn too_slow(least: Duration) -> String {
    format!(
        "on this busy host the programs at both ends need so much of its delay of {} ms that too little is left for the link \
         (it needs at least {} ms); end other programs and start the demo again",
        millis(PROMISED.3),
        millis(least)
    )
}

fn seen(object: &ObjectView, town: &Town) -> Option<Seen> {
    let car: usize = object.path.strip_prefix("car/")?.parse().ok()?;
    let [x, y, _] = object.position?;
    let error = distance([x, y], town.cars.get(car)?.position);
    Some(Seen { car, position: [x, y], error, age: object.age })
}

fn distance([x, y]: [f64; 2], [east, north]: [f64; 2]) -> f64 {
    (x - east).hypot(y - north)
}

fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

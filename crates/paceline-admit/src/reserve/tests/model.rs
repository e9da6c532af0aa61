//! Every order of events of small worlds, and random orders of larger ones.

use super::world::Flight;
use super::*;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The number of events that may still happen.
#[derive(Clone, Debug, Hash)]
struct Budget {
    drops: u32,
    doubles: u32,
    ticks: u32,
    restarts: Vec<usize>,
    requests: Vec<(usize, Vec<u64>, u64, bool)>,
    closes: u32,
}

#[derive(Clone, Debug)]
enum Event {
    Deliver(usize),
    Drop(usize),
    Double(usize),
    Tick,
    Restart(usize),
    Request(usize),
    Close(usize, Key),
}

/// Returns a request, bidirectional if the last flag is set. The second node of a longer path scales a stream of an odd
/// rate.
fn request((_, path, mbit, both): &(usize, Vec<u64>, u64, bool)) -> Request {
    let there = forward(path, *mbit);
    let back = there.forward.map(|it| Wanted { trunk: Trunk(it.trunk.0 + 1), ..it });
    let scaled = there.forward.filter(|_| mbit % 2 == 1 && path.len() > 2 && !both).map(|it| {
        let wanted = wanted(it.trunk.0 + 2, (mbit / 2).max(1));
        Scaled { at: 1, wanted }
    });
    if *both { Request { backward: back, ..there } } else { Request { scaled, ..there } }
}

/// Returns the reservations that start or end at each node.
fn keys(world: &World) -> Vec<(usize, Key)> {
    let mut keys = Vec::new();
    for (at, node) in world.nodes.iter().enumerate() {
        let ends = |entry: &Entry| {
            let version = entry.newest().unwrap();
            version.previous().is_none() || version.next().is_none()
        };
        let own = node.entries.iter().filter(|(_, entry)| ends(entry));
        keys.extend(own.map(|(key, _)| (at, *key)));
    }
    keys
}

fn events(world: &World, left: &Budget) -> Vec<Event> {
    let mut events = Vec::new();
    let mut seen: Vec<&Flight> = Vec::new();
    for (place, flight) in world.flight.iter().enumerate() {
        if seen.contains(&flight) {
            continue;
        }
        seen.push(flight);
        events.push(Event::Deliver(place));
        if left.drops > 0 {
            events.push(Event::Drop(place));
        }
        if left.doubles > 0 {
            events.push(Event::Double(place));
        }
    }
    if left.ticks > 0 && world.next_wake() < Instant::FAR {
        events.push(Event::Tick);
    }
    events.extend(left.restarts.iter().map(|node| Event::Restart(*node)));
    if !left.requests.is_empty() {
        events.push(Event::Request(0));
    }
    if left.closes > 0 {
        events.extend(keys(world).into_iter().map(|(at, key)| Event::Close(at, key)));
    }
    events
}

fn apply(world: &mut World, left: &mut Budget, event: &Event) {
    match event {
        Event::Deliver(place) => world.deliver(*place),
        Event::Drop(place) => {
            left.drops -= 1;
            world.flight.remove(*place);
        }
        Event::Double(place) => {
            left.doubles -= 1;
            let again = world.flight[*place].clone();
            world.flight.push(again);
        }
        Event::Tick => {
            left.ticks -= 1;
            world.tick(Instant::FAR);
        }
        Event::Restart(node) => {
            left.restarts.retain(|other| other != node);
            world.restart(*node, false);
        }
        Event::Request(place) => {
            let wanted = left.requests.remove(*place);
            _ = world.request(wanted.0, &request(&wanted));
        }
        Event::Close(at, key) => {
            left.closes -= 1;
            world.close(*at, *key);
        }
    }
}

fn life() -> Duration {
    Timing::default().life(Timing::default().refresh)
}

/// I2: after any events, if all messages are lost from now on, everything is released within L and
/// a timeout.
fn check_cut(world: &World) {
    let mut cut = world.clone();
    let end = cut.now + life().saturating_add(Timing::default().tentative);
    while cut.now < end {
        cut.flight.clear();
        cut.tick(end);
    }
    assert!(cut.holds_nothing(), "I2: reserved without refreshes: {:?}", cut.nodes);
    cut.flight.clear();
    let later = cut.now + millis(20_000);
    while cut.now < later {
        cut.tick(later);
        cut.flight.clear();
    }
    assert!(cut.nodes.iter().all(Reservations::is_idle));
}

/// I4, I7, I8: once the network works again, every reservation is installed in the same version on
/// its whole path or nowhere. Closing all leaves nothing.
fn check_settled(world: &World) {
    let mut whole = world.clone();
    // One lifetime for reservations without refreshes, and another for nodes that learn of the end
    // only by that.
    whole.run(life().saturating_add(life()).saturating_add(Timing::default().tentative));
    for (at, node) in whole.nodes.iter().enumerate() {
        for (key, entry) in &node.entries {
            assert!(entry.tentative.is_none(), "no request waits forever: {key:?} at {at}");
            let version = entry.installed.as_ref().unwrap();
            for other in &version.ask.path {
                let there = &whole.nodes[usize::try_from(other.0).unwrap()];
                assert_eq!(
                    there.installed(*key),
                    Some(version.stamp()),
                    "{key:?} at {at} and {other}"
                );
            }
        }
    }
    for (at, key) in keys(&whole) {
        assert!(whole.close(at, key));
    }
    whole.check_empty_after(millis(20_000));
}

fn hash(world: &World, left: &Budget) -> u64 {
    let mut hasher = DefaultHasher::new();
    // The order of messages in flight is irrelevant.
    let mut flight: Vec<String> = world.flight.iter().map(|flight| format!("{flight:?}")).collect();
    flight.sort_unstable();
    (flight, left, world.now.as_nanos()).hash(&mut hasher);
    format!("{:?}", world.nodes).hash(&mut hasher);
    hasher.finish()
}

/// Explores all continuations, up to the budget or `depth` events. Returns the number of states.
fn explore(nodes: usize, budget: Budget, depth: usize) -> usize {
    let mut seen = HashSet::new();
    let mut world = World::row(nodes);
    world.keeps = false;
    let mut open = vec![(world, budget, 0)];
    while let Some((world, left, deep)) = open.pop() {
        if !seen.insert((hash(&world, &left), deep)) {
            continue;
        }
        check_cut(&world);
        check_settled(&world);
        if deep == depth {
            continue;
        }
        for event in events(&world, &left) {
            let (mut next, mut after) = (world.clone(), left.clone());
            apply(&mut next, &mut after, &event);
            open.push((next, after, deep + 1));
        }
    }
    seen.len()
}

fn budget() -> Budget {
    Budget { drops: 1, doubles: 1, ticks: 2, restarts: Vec::new(), requests: Vec::new(), closes: 1 }
}

#[test]
fn one_reservation_over_one_hop_survives_every_event_order() {
    let requests = vec![(0, vec![0, 1], 4, true)];
    let states = explore(2, Budget { restarts: vec![0, 1], requests, ..budget() }, 7);
    println!("{states} states");
    assert!(states > 1_000, "{states}");
}

#[test]
fn one_reservation_over_two_hops_survives_every_event_order() {
    let requests = vec![(0, vec![0, 1, 2], 4, false)];
    let states = explore(3, Budget { restarts: vec![1], requests, ..budget() }, 7);
    println!("{states} states");
    assert!(states > 1_000, "{states}");
}

#[test]
fn two_reservations_for_one_link_survive_every_event_order() {
    let requests = vec![(0, vec![0, 1], 6, false), (1, vec![1, 0], 6, true)];
    let states = explore(2, Budget { requests, doubles: 0, ..budget() }, 8);
    println!("{states} states");
    assert!(states > 1_000, "{states}");
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit.max(1)
    }
}

/// One random history among four nodes with five reservations.
fn history(seed: u64) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut world = World::row(4);
    world.keeps = false;
    let ways = [vec![0, 1, 2, 3], vec![3, 2, 1], vec![1, 2], vec![2, 1, 0], vec![1, 0]];
    for _ in 0..45 {
        let event = random.below(20);
        let place = random.below(world.flight.len());
        match event {
            0..=2 => {
                let path = ways[random.below(ways.len())].clone();
                let at = usize::try_from(path[0]).unwrap();
                let asked = request(&(at, path, 1 + random.below(6) as u64, random.below(2) == 0));
                let own: Vec<Key> = keys(&world)
                    .into_iter()
                    .filter(|(node, key)| *node == at && key.origin.0 == at as u64)
                    .map(|(_, key)| key)
                    .collect();
                match own.first().filter(|_| random.below(3) == 0) {
                    Some(key) => _ = world.change(at, *key, &asked),
                    None => _ = world.request(at, &asked),
                }
            }
            3 => {
                let all = keys(&world);
                if let Some((at, key)) = all.get(random.below(all.len())) {
                    world.close(*at, *key);
                }
            }
            4 if random.below(4) == 0 => world.restart(random.below(4), random.below(2) == 0),
            5 | 6 => world.tick(Instant::FAR),
            7 if !world.flight.is_empty() => _ = world.flight.remove(place),
            8 if !world.flight.is_empty() => {
                let again = world.flight[place].clone();
                world.flight.push(again);
            }
            _ if !world.flight.is_empty() => world.deliver(place),
            _ => {}
        }
    }
    check_cut(&world);
    check_settled(&world);
}

/// Histories of 45 events: 10,000, or the number in the environment variable `PACELINE_HISTORIES`.
#[test]
#[expect(clippy::disallowed_methods, reason = "the caller of the test sets the duration")]
fn random_histories_leak_and_duplicate_nothing() {
    let asked = std::env::var("PACELINE_HISTORIES").ok();
    let count = asked.and_then(|count| count.parse().ok()).unwrap_or(10_000);
    for seed in 0..count {
        let run = std::panic::catch_unwind(|| history(seed));
        assert!(run.is_ok(), "seed {seed}");
    }
}

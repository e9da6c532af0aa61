//! Random histories. `PACELINE_HISTORIES` sets their number.

use super::network::{CAPACITY, Network, Random};
use crate::medium::{Holding, allottable, least_rate};
use paceline_sched::Duration;

/// Returns 300, or the number in the environment variable.
#[expect(clippy::disallowed_methods, reason = "the caller of the test sets the duration")]
fn histories() -> u64 {
    std::env::var("PACELINE_HISTORIES").ok().and_then(|it| it.parse().ok()).unwrap_or(300)
}

/// The shortest time between two joins: one rate for joining links is in use until the manager has made room, which may take
/// this time if a link is lost meanwhile.
const JOIN_EVERY: Duration = Duration::from_secs(4);

/// The events of a history.
#[derive(Clone, Copy, PartialEq)]
enum Faults {
    /// Nodes join and crash, or lose all their neighbours and return.
    Crashes,
    /// The network falls into two parts, too, and heals.
    Partitions,
}

/// Runs a history. Returns the network after its last event.
fn run(seed: u64, faults: Faults) -> Network {
    let mut choice = Random(seed ^ 0x9e37_79b9);
    let mut net = Network::new(seed);
    let mut next_id = choice.below(100) + 100;
    for _ in 0..=choice.below(3) {
        net.join(next_id);
        next_id += 7;
    }
    let mut joined = None;
    for _ in 0..60 {
        let ids = net.ids();
        let one = ids.get(usize::try_from(choice.below(ids.len() as u64)).unwrap()).copied();
        match (choice.below(20), one) {
            (0, _) if ids.len() < 8 && joined.is_none_or(|at| net.now >= at + JOIN_EVERY) => {
                joined = Some(net.now);
                // Half of the new nodes have a lower identity, and become the manager.
                let id = if choice.below(2) == 0 { next_id } else { 1_000 - next_id };
                next_id += 1;
                net.join(id);
            }
            (1, Some(one)) if ids.len() > 1 => net.kill(one),
            (4, Some(one)) if faults == Faults::Crashes && net.isolated().is_empty() => {
                net.isolate(one);
            }
            (4 | 5, _) if faults == Faults::Partitions => net.heal(),
            // A return is a join.
            (5, _) if joined.is_none_or(|at| net.now >= at + JOIN_EVERY) => {
                for id in net.isolated() {
                    joined = Some(net.now);
                    net.unite(id);
                }
            }
            // The manager crashes more often than others.
            (2, _) if ids.len() > 1 => net.kill(ids[0]),
            (3, _) if faults == Faults::Partitions => {
                let by = choice.below(3) + 2;
                net.part(|id| id % by == 0);
            }
            (6..=8, Some(one)) => net.release(one),
            (_, Some(one)) => net.request(one, 20_000 + choice.below(600_000)),
            (_, None) => {}
        }
        let until = net.now + Duration::from_millis(choice.below(800));
        while net.advance(until) {
            if faults == Faults::Crashes {
                // The rate that is kept for joining links suffices for one at a time.
                let (sum, holds) = (net.sum(), net.holds());
                assert!(sum <= CAPACITY, "seed {seed}: {sum} at {} of {holds:?}", net.now);
            }
        }
    }
    let joined = net.now + JOIN_EVERY;
    while net.advance(joined) {}
    net.isolated().into_iter().for_each(|id| net.unite(id));
    net
}

fn settle(net: &mut Network) {
    let end = net.now + Duration::from_secs(10);
    while net.advance(end) {}
}

/// Every contract ends: nothing is reserved, and the links share the medium evenly.
fn end(net: &mut Network, seed: u64) {
    net.ids().into_iter().for_each(|id| net.release(id));
    settle(net);
    assert_eq!(net.needs(), 0, "seed {seed}");
    assert!(net.sum() <= allottable(CAPACITY), "seed {seed}: {:?}", net.holds());
    let holds: Vec<u64> = net.holds().values().map(|it| it.holds).collect();
    let (least, most) = (holds.iter().min().unwrap(), holds.iter().max().unwrap());
    assert!(most - least <= CAPACITY / 128, "seed {seed}: {holds:?}");
    let links = holds.len() as u64;
    assert!(net.sum() > allottable(CAPACITY) * 9 / 10, "seed {seed}: {links} links have {holds:?}");
}

#[test]
fn crashes_and_joins_never_exceed_the_capacity() {
    let (mut granted, mut refused) = (0, 0);
    for seed in 0..histories() {
        let mut net = run(seed, Faults::Crashes);
        assert_eq!(net.forced, 0, "seed {seed}: a contract was lost");
        settle(&mut net);
        end(&mut net, seed);
        (granted, refused) = (granted + net.granted, refused + net.refused);
    }
    println!("{granted} requests granted, {refused} refused");
    assert!(granted > histories() * 5 && refused > histories());
}

#[test]
fn a_healed_partition_ends_within_the_capacity() {
    let mut forced = 0;
    for seed in 0..histories() {
        let mut net = run(seed, Faults::Partitions);
        net.heal();
        settle(&mut net);
        assert!(net.sum() <= CAPACITY, "seed {seed}: {:?}", net.holds());
        // A sixteenth of the least rate remains for each link, rounded down.
        let has_rate = |it: &Holding| it.need <= it.holds && it.holds >= least_rate(CAPACITY) / 17;
        assert!(net.holds().values().all(has_rate), "seed {seed}: {:?}", net.holds());
        end(&mut net, seed);
        forced += net.forced;
    }
    println!("{forced} links lost contracts after partitions");
    assert!(forced > 0, "no partition gave anything twice");
}

//! A small version of the scale networks.

use paceline_sched::{Capacity, Duration};
use paceline_sim::scale::{Network, ScalePlan, registry};

const SMALL: ScalePlan = ScalePlan {
    nodes: 23,
    site: 5,
    streams: 300,
    hertz: 10,
    bytes: 100,
    capacity: None,
    backbone: None,
    seconds: 3,
    phases: 1,
};

#[test]
fn every_sample_takes_two_hops_and_is_delivered_once() {
    let capacity = Capacity::from_bits_per_s(10_000_000).ok();
    for plan in
        [SMALL, ScalePlan { phases: 40, ..SMALL }, ScalePlan { capacity, phases: 7, ..SMALL }]
    {
        let outcome = Network::new(1, plan).run();
        assert_eq!((outcome.published, outcome.delivered), (9_000, 9_000));
        assert_eq!(outcome.hops, 18_000);
        assert!(outcome.ages.max() <= Duration::from_millis(40), "{}", outcome.ages.max());
        assert_eq!(Network::new(1, plan).run(), outcome, "the same again");
    }
}

#[test]
fn a_full_backbone_limits_only_the_streams_that_cross_it() {
    let mbit = Capacity::from_bits_per_s(1_000_000).ok();
    let full = |nodes: usize| {
        let sites = nodes / 5;
        let load = ScalePlan { streams: nodes - sites, hertz: 250, bytes: 1_000, ..SMALL };
        let plan = ScalePlan { nodes, capacity: mbit, backbone: mbit, phases: 10, ..load };
        let alone = Network::new(1, ScalePlan { backbone: None, ..plan }).run();
        let joined = Network::new(1, plan).run();
        let each = alone.delivered / (nodes - sites) as u64;
        let local = (joined.delivered - joined.crossed) / (nodes - 2 * sites) as u64;
        // The links of the ends stay full, with less than 2 % for the registry of the whole network.
        assert!(local * 100 >= each * 98 && local <= each, "{nodes}: {local} of {each}");
        joined.crossed
    };
    // Twice the middle link: 108 samples per second in each direction, for 4 s with the backlog.
    let (few, many) = (full(20), full(40));
    println!("{few} {many}");
    for crossed in [few, many] {
        assert!((600..=2 * 4 * 112).contains(&crossed), "{crossed}");
    }
}

#[test]
fn simultaneous_events_share_iterations() {
    let turns = |plan| Network::new(1, plan).run().turns;
    let (few, many) = (turns(SMALL), turns(ScalePlan { streams: 3_000, ..SMALL }));
    assert!(many <= few * 2, "ten times the samples at the same instants: {few} and {many}");
}

#[test]
fn a_change_costs_a_link_the_same_in_a_larger_network() {
    let capacity = Capacity::from_bits_per_s(1_000_000).ok();
    let network =
        |nodes| registry(1, ScalePlan { nodes, site: nodes, streams: nodes, capacity, ..SMALL });
    let (small, large) = (network(5), network(20));
    println!("{small:?} {large:?}");
    assert_eq!((small.links, large.links), (4, 19));
    assert!(small.change > 0 && large.change <= small.change * 2, "{small:?} {large:?}");
    assert!(large.rest > small.rest && large.rest < 2_000, "{small:?} {large:?}");
    for cost in [small, large] {
        assert!(cost.known_after <= Duration::from_millis(50), "{cost:?}");
    }
}

//! Links that share a medium: requests beyond the rate of a link, the death of the manager, partitions, and the end of all
//! contracts.

use super::net::{Net, camera, id, link, promised};
use paceline_proto::control::{RefusalReason, SubscriptionSpec};
use paceline_proto::medium::Medium;
use paceline_proto::{PublisherId, SubscriptionId};
use paceline_sched::{Capacity, Duration};
use proptest::prelude::*;
use proptest::sample::Index;

/// A medium that carries five cameras, each of 2.4 Mbit/s on the wire.
const CAPACITY: u64 = 16_000_000;
const ALL: u64 = CAPACITY / 32 * 30;

/// Nodes with one radio each on one medium.
struct Air {
    net: Net,
    alive: Vec<usize>,
}

fn medium(bits: u64) -> Medium {
    let capacity = Capacity::from_bits_per_s(bits).unwrap();
    Medium { name: "air".to_owned(), capacity, access: Duration::ZERO }
}

impl Air {
    /// Returns nodes that `hops` join.
    fn new(nodes: usize, hops: &[(usize, usize)]) -> Self {
        let mut net = Net::new(nodes);
        for node in 0..nodes {
            net.nodes[node].set_medium("radio", medium(CAPACITY));
            net.drain(node);
        }
        let mut air = Self { net, alive: (0..nodes).collect() };
        hops.iter().for_each(|&(one, other)| air.join(one, other));
        air.run(4_000);
        air
    }

    fn join(&mut self, one: usize, other: usize) {
        let radio = || link("radio", Some(CAPACITY / 8));
        self.net.join_over(one, other, radio(), radio());
    }

    fn run(&mut self, millis: u64) {
        self.net.run(Duration::from_millis(millis));
    }

    /// Returns the sum of the rates of all living nodes.
    fn sum(&self) -> u64 {
        self.alive.iter().map(|node| self.net.seen[*node].rates["radio"]).sum()
    }

    fn kill(&mut self, node: usize) {
        let others: Vec<usize> = self.alive.iter().copied().filter(|it| *it != node).collect();
        for other in others {
            if self.net.up.contains(&(node, other)) {
                self.net.part(node, other);
            }
        }
        self.alive.retain(|it| *it != node);
    }

    fn request(&mut self, from: usize, to: usize, tag: &str) -> (SubscriptionId, PublisherId) {
        let publisher = self.net.publish(from, camera(tag));
        let spec = SubscriptionSpec { revision: 0, ..promised(tag) };
        (self.net.subscribe(to, spec), publisher)
    }

    fn is_granted(&self, (subscription, publisher): (SubscriptionId, PublisherId)) -> bool {
        let to = usize::try_from(subscription.node.0 - 1).unwrap();
        self.net.seen[to].granted.contains_key(&(subscription, publisher))
    }

    /// Returns the reserved sum, as a node knows it.
    fn reserved(&self, node: usize) -> u64 {
        self.net.nodes[node].medium("radio").unwrap().0.reserved
    }
}

#[test]
fn a_request_beyond_the_rate_of_a_link_gets_what_the_others_leave() {
    let mut air = Air::new(3, &[(0, 2), (1, 2)]);
    let (view, rate) = air.net.nodes[1].medium("radio").unwrap();
    assert_eq!((view.manager, view.links, view.allottable), (id(0), 3, ALL));
    assert!(rate > ALL * 3 / 10 && air.sum() <= ALL, "a third each: {rate}");
    let of: Vec<_> = (0..4).map(|n| air.request(n % 2, 2, &format!("camera{n}"))).collect();
    air.run(1_500);
    assert!(of.iter().all(|it| air.is_granted(*it)), "four cameras fit");
    assert_eq!(air.net.seen[2].refused, [], "none was refused before it was granted");
    assert!(air.sum() <= ALL, "{} of {ALL}", air.sum());
    // One link would carry more cameras alone, but the medium does not carry seven.
    let more: Vec<_> = (4..7).map(|n| air.request(n % 2, 2, &format!("camera{n}"))).collect();
    air.run(3_000);
    let granted = more.iter().filter(|it| air.is_granted(**it)).count();
    assert!(granted < 3 && air.sum() <= ALL);
    let refused = &air.net.seen[2].refused[0];
    let RefusalReason::Medium { needed, available } = refused.reason else { panic!("{refused}") };
    assert_eq!((refused.class.as_str(), available), ("air", ALL));
    assert!(needed > ALL && needed < ALL + 3_600_000, "{refused}");
    assert!(refused.to_string().contains("the medium 'air' of link 'radio' of 'node"), "{refused}");
    // When contracts end, the refused ones get their room.
    of.iter().take(3).for_each(|(subscription, _)| air.net.unsubscribe(*subscription));
    air.run(12_000);
    assert!(more.iter().all(|it| air.is_granted(*it)), "{:?}", air.net.seen[2].refused);
    assert!(air.sum() <= ALL);
    for (subscription, _) in of.iter().skip(3).chain(&more) {
        air.net.unsubscribe(*subscription);
    }
    air.run(3_000);
    assert_eq!([0, 1, 2].map(|node| air.reserved(node)), [0; 3]);
    assert!(air.sum() <= ALL && air.sum() > ALL * 9 / 10);
}

#[test]
fn another_node_takes_over_when_the_manager_dies() {
    let mut air = Air::new(4, &[(0, 3), (1, 3), (2, 3)]);
    let first = air.request(1, 3, "first");
    let second = air.request(2, 3, "second");
    air.run(1_500);
    assert!(air.is_granted(first) && air.is_granted(second));
    assert_eq!(air.net.nodes[3].medium("radio").unwrap().0.manager, id(0));
    air.kill(0);
    air.run(500);
    assert_eq!(air.net.nodes[3].medium("radio").unwrap().0.manager, id(1));
    let third = air.request(2, 3, "third");
    let fourth = air.request(1, 3, "fourth");
    let fifth = air.request(1, 3, "fifth");
    for _ in 0..80 {
        air.run(100);
        assert!(air.sum() <= CAPACITY, "{}", air.sum());
    }
    assert!([first, second, third, fourth].into_iter().all(|it| air.is_granted(it)));
    let sixth = air.request(1, 3, "sixth");
    air.run(5_000);
    assert!(!air.is_granted(sixth) && air.sum() <= ALL, "{}", air.sum());
    let granted = air.is_granted(fifth);
    let reserved = air.reserved(3);
    assert!(reserved <= ALL && reserved > 2_400_000 * (4 + u64::from(granted)), "{reserved}");
}

#[test]
fn a_link_that_lost_all_its_neighbours_returns_at_the_least_rate() {
    let mut air = Air::new(4, &[(0, 3), (1, 3), (2, 3)]);
    let first = air.request(0, 3, "first");
    air.run(1_500);
    for away in [500, 2_900, 4_000, 6_000] {
        air.net.part(1, 3);
        air.run(away);
        assert_eq!(air.net.nodes[1].medium("radio"), None);
        assert_eq!(air.net.seen[1].rates["radio"], CAPACITY / 32, "{away}");
        air.join(1, 3);
        for _ in 0..500 {
            air.run(10);
            assert!(air.sum() <= CAPACITY, "after {away} ms: {}", air.sum());
        }
        let rates = [0, 1, 2, 3].map(|node| air.net.seen[node].rates["radio"]);
        assert!(air.sum() > ALL * 9 / 10 && rates[1] > CAPACITY / 16, "{rates:?}");
    }
    assert!(air.is_granted(first));
}

#[test]
fn the_rate_of_a_link_never_exceeds_its_own_capacity() {
    let mut net = Net::new(2);
    for node in 0..2 {
        net.nodes[node].set_medium("radio", medium(CAPACITY));
        net.drain(node);
    }
    let radio = |bits| link("radio", Some(bits / 8));
    net.join_over(0, 1, radio(9_600), radio(CAPACITY));
    net.drain(0);
    net.settle();
    assert_eq!(net.seen[0].rates["radio"], 9_600, "less than the least rate of the medium");
    net.run(Duration::from_secs(4));
    let rates = [0, 1].map(|node| net.nodes[node].medium("radio").unwrap().1);
    assert!(rates[0] == 9_600 && rates[1] > ALL * 4 / 10, "{rates:?}");
    assert_eq!(net.seen[0].rates["radio"], 9_600);
}

#[test]
fn a_healed_partition_keeps_the_contracts_that_fit() {
    let mut air = Air::new(4, &[(0, 1), (1, 2), (2, 3)]);
    air.net.part(1, 2);
    air.run(4_000);
    let managers = [0, 1, 2, 3].map(|n| air.net.nodes[n].medium("radio").unwrap().0.manager);
    assert_eq!(managers, [id(0), id(0), id(2), id(2)]);
    let left: Vec<_> = (0..4).map(|n| air.request(0, 1, &format!("left{n}"))).collect();
    let right: Vec<_> = (0..4).map(|n| air.request(2, 3, &format!("right{n}"))).collect();
    air.run(4_000);
    assert!(left.iter().chain(&right).all(|it| air.is_granted(*it)), "each side has all of it");
    assert!(air.sum() > CAPACITY, "two managers");
    air.join(1, 2);
    air.run(8_000);
    assert!(air.sum() <= ALL, "{}", air.sum());
    assert!(left.iter().all(|it| air.is_granted(*it)), "the lower identity keeps its contracts");
    let kept = right.iter().filter(|it| air.is_granted(**it)).count();
    assert!((1..=2).contains(&kept), "{kept} of the others fit");
    let lost = air.net.seen[3].refused.last().unwrap();
    assert!(matches!(lost.reason, RefusalReason::Medium { .. }), "{lost}");
    assert_eq!(lost.link, "radio");
    let all = left.iter().chain(&right);
    all.for_each(|(subscription, _)| air.net.unsubscribe(*subscription));
    air.run(3_000);
    assert_eq!([0, 1, 2, 3].map(|node| air.reserved(node)), [0; 4]);
}

#[test]
fn the_smallest_configured_capacity_counts_and_others_are_named() {
    let mut air = Air::new(3, &[(0, 2), (1, 2)]);
    air.net.nodes[1].set_medium("radio", medium(CAPACITY / 2));
    air.net.drain(1);
    air.run(2_000);
    for (node, differs) in [(0, (id(1), CAPACITY / 2)), (1, (id(0), CAPACITY))] {
        let (view, _) = air.net.nodes[node].medium("radio").unwrap();
        assert_eq!((view.capacity, view.differs), (CAPACITY / 2, Some(differs)));
    }
    assert!(air.sum() <= ALL / 2, "{}", air.sum());
}

#[test]
fn a_wait_for_the_medium_is_a_part_of_the_bound() {
    let mut net = Net::new(2);
    // Twice the target token rotation time of 8 ms, the usual one.
    let access = Duration::from_millis(16);
    for node in 0..2 {
        net.nodes[node].set_medium("radio", Medium { access, ..medium(100_000_000) });
        net.drain(node);
    }
    let radio = || link("radio", Some(100_000_000 / 8));
    net.join_over(0, 1, radio(), radio());
    net.run(Duration::from_secs(4));
    let of = net.publish(0, camera("camera"));
    let ask = |net: &mut Net, millis| {
        let within = Some(Duration::from_millis(millis));
        let subscription = net.subscribe(1, SubscriptionSpec { within, ..promised("camera") });
        net.run(Duration::from_secs(2));
        net.seen[1].granted.contains_key(&(subscription, of))
    };
    // A picture of 10,900 bytes takes about 2 ms in several frames: L + 2·TTRT.
    assert!(!ask(&mut net, 16), "no frame is sent for so long");
    assert!(ask(&mut net, 22));
}

#[derive(Clone, Debug)]
enum Step {
    Request(Index, Index),
    End(Index),
    Kill(Index),
    Run(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => any::<(Index, Index)>().prop_map(|(from, to)| Step::Request(from, to)),
        2 => any::<Index>().prop_map(Step::End),
        1 => any::<Index>().prop_map(Step::Kill),
        3 => (1..2_000_u64).prop_map(Step::Run),
    ];
    prop::collection::vec(step, 1..25)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn random_requests_and_deaths_never_exceed_the_medium(steps in steps()) {
        let mut air = Air::new(5, &[(0, 4), (1, 4), (2, 4), (3, 4), (0, 1), (1, 2), (2, 3)]);
        let mut asked: Vec<SubscriptionId> = Vec::new();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Request(from, to) => {
                    let (from, to) = (*from.get(&air.alive), *to.get(&air.alive));
                    asked.push(air.request(from, to, &format!("tag{number}")).0);
                }
                Step::End(which) if !asked.is_empty() => {
                    let subscription = asked.swap_remove(which.index(asked.len()));
                    air.net.unsubscribe(subscription);
                }
                // The center stays, so that nobody is alone.
                Step::Kill(which) if air.alive.len() > 2 => {
                    let node = air.alive[which.index(air.alive.len() - 1)];
                    air.kill(node);
                    asked.retain(|it| *it != SubscriptionId { node: id(node), ..*it });
                }
                Step::Run(millis) => air.run(millis),
                Step::End(_) | Step::Kill(_) => {}
            }
            air.net.settle();
            prop_assert!(air.sum() <= CAPACITY, "{}", air.sum());
        }
        air.run(5_000);
        for subscription in asked {
            air.net.unsubscribe(subscription);
        }
        air.run(6_000);
        for &node in &air.alive {
            let Some((view, _)) = air.net.nodes[node].medium("radio") else { continue };
            prop_assert_eq!(view.reserved, 0);
            prop_assert!(view.allotted <= ALL);
        }
    }
}

//! Random networks and changes in which most subscriptions request a contract with a spare.

use super::net::{Net, id, index};
use super::random::{Histories, NODES, Step, assert_admitted, make, step};
use paceline_proto::control::{Control, Grant, GrantedHop, SubscriptionSpec};
use paceline_proto::{NodeId, PublisherId, SubscriptionId};
use paceline_sched::Duration;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// The default number of histories.
const HISTORIES: u32 = 60;

type Key = (SubscriptionId, PublisherId);

/// Returns the hops of a path to `to`.
fn hops(path: &[GrantedHop], to: NodeId) -> Vec<(NodeId, NodeId)> {
    let next = path.iter().skip(1).map(|hop| hop.node).chain([to]);
    path.iter().map(|hop| hop.node).zip(next).collect()
}

impl Net {
    /// Returns the links of both ends of each hop of a path to `to`.
    fn link_ends(&self, path: &[GrantedHop], to: NodeId) -> BTreeSet<(NodeId, String)> {
        let ends = hops(path, to).into_iter().flat_map(|(from, to)| [(from, to), (to, from)]);
        ends.map(|(node, next)| {
            let mut views = self.nodes[index(node)].nodes();
            let own = views.find(|view| view.id == node).unwrap();
            (node, own.neighbours[&next].link_name.clone())
        })
        .collect()
    }

    fn is_whole(&self, path: &[GrantedHop], to: NodeId) -> bool {
        hops(path, to).iter().all(|(from, to)| self.up.contains(&(index(*from), index(*to))))
    }

    /// Returns the requests with a spare, and their grants as the subscriptions know them.
    fn spared(&self) -> BTreeMap<Key, Option<&Grant>> {
        let mut spared = BTreeMap::new();
        for (node, seen) in self.seen.iter().enumerate() {
            let views: Vec<_> = self.nodes[node].nodes().collect();
            let asks = |spec: &SubscriptionSpec| spec.spare && spec.within.is_some();
            let own = views.iter().find(|view| view.id == id(node)).unwrap();
            let wanted = own.subscriptions.iter().filter(|(_, spec)| asks(spec));
            for (&subscription, _) in wanted {
                for publisher in views.iter().flat_map(|view| view.publishers.keys()) {
                    let key = (subscription, *publisher);
                    spared.insert(key, seen.granted.get(&key));
                }
            }
        }
        spared
    }

    /// Asserts that each contract with a spare has two paths without a common link, or a refusal of its spare, and that
    /// nothing is reserved for the others.
    fn assert_both_or_neither(&self) {
        for (key, grant) in self.spared() {
            let (to, from) = (key.0.node, index(key.1.node));
            let reserves = |node: &Control| {
                node.grants().any(|grant| (grant.subscription, grant.publisher) == key)
            };
            let Some(grant) = grant else {
                assert!(!self.nodes.iter().any(reserves), "{key:?} is reserved without a grant");
                continue;
            };
            let ends = self.link_ends(&grant.hops, to);
            assert!(self.is_whole(&grant.hops, to) && self.is_whole(&grant.spare, to), "{grant:?}");
            assert!(ends.is_disjoint(&self.link_ends(&grant.spare, to)), "{grant:?}");
            let mut views = self.nodes[from].nodes();
            let refusals = views.find(|view| view.id == key.1.node).unwrap().refusals;
            let refused = refusals.get(&key).is_some_and(|refusal| refusal.spare);
            assert_eq!(refused, grant.spare.is_empty(), "{grant:?}");
        }
    }

    /// Cuts a hop of a contract with a spare, and asserts that the spare carries its samples without an interruption of
    /// the contract.
    fn assert_takeover(&mut self, which: Index) -> bool {
        let spared = self.spared();
        let with_both: Vec<&Grant> =
            spared.into_values().flatten().filter(|grant| !grant.spare.is_empty()).collect();
        if with_both.is_empty() {
            return false;
        }
        let grant = with_both[which.index(with_both.len())].clone();
        let (key, to) = ((grant.subscription, grant.publisher), grant.subscription.node);
        let cut = hops(&grant.hops, to);
        let (one, other) = cut[which.index(cut.len())];
        self.part(index(one), index(other));
        self.settle_looking(|net| {
            assert!(
                net.seen[index(to)].granted.contains_key(&key),
                "the promise of {grant:?} stays"
            );
        });
        let now = &self.seen[index(to)].granted[&key];
        assert!(self.is_whole(&now.hops, to), "{now:?}");
        assert!(self.heard(key.0).contains(&key.1));
        true
    }

    /// Ends all subscriptions, and asserts that nothing stays reserved.
    fn assert_all_ends(&mut self, users: Vec<SubscriptionId>) {
        users.into_iter().for_each(|user| self.unsubscribe(user));
        self.run(Duration::from_secs(30));
        assert_eq!(self.held(), vec![0; self.nodes.len()]);
        let buffered = self.nodes.iter().map(|node| node.host_buffer_use().held);
        assert_eq!(buffered.sum::<u64>(), 0);
    }
}

/// Runs a history. Returns true if a spare took over.
fn check(steps: Vec<Step>, which: Index) -> bool {
    let (mut net, mut users) = (Net::new(NODES), Vec::new());
    steps.into_iter().for_each(|step| make(&mut net, &mut users, step));
    net.run(Duration::from_secs(5));
    assert_admitted(&mut net);
    net.assert_both_or_neither();
    let took_over = net.assert_takeover(which);
    if took_over {
        assert_admitted(&mut net);
        net.assert_both_or_neither();
    }
    net.assert_all_ends(users);
    took_over
}

/// 60 histories, or the number in the environment variable `PACELINE_HISTORIES`.
#[test]
#[expect(clippy::disallowed_methods, reason = "the caller of the test sets the duration")]
fn spares_take_over_and_leave_nothing_reserved() {
    let asked = std::env::var("PACELINE_HISTORIES").ok();
    let cases = asked.and_then(|count| count.parse().ok()).unwrap_or(HISTORIES);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let chance = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let of = Histories { or_stop: true, spares: true, ..Histories::default() };
    let histories = (prop::collection::vec(step(of), 20..80), any::<Index>());
    let takeovers = Cell::new(0);
    let result = TestRunner::new_with_rng(config, chance).run(&histories, |(steps, which)| {
        takeovers.set(takeovers.get() + u32::from(check(steps, which)));
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    println!("{cases} histories, {} takeovers", takeovers.get());
    assert!(takeovers.get() >= cases / 10, "{}", takeovers.get());
}

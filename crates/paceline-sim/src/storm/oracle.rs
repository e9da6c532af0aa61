//! The invariants during and after a chaos test.

use crate::handle::{NodeIx, Pub, Sub};
use crate::world::World;
use paceline_proto::control::{PublisherSpec, SubscriptionSpec};
use paceline_proto::form::{Proxy, Rate};
use paceline_proto::ids::PublisherId;
use paceline_sched::Late;
use std::collections::BTreeMap;

/// The deliveries to a subscription checked so far, with the next sequence number of each publisher.
#[derive(Debug)]
struct Seen {
    subscription: Sub,
    samples: usize,
    next: BTreeMap<PublisherId, u64>,
}

/// Checks deliveries.
#[derive(Debug)]
pub(super) struct Oracle {
    seed: u64,
    seen: Vec<Seen>,
    /// The publisher of each id, including ids of earlier incarnations.
    ids: BTreeMap<PublisherId, usize>,
}

impl Oracle {
    pub(super) const fn new(seed: u64) -> Self {
        Self { seed, seen: Vec::new(), ids: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, subscription: Sub) {
        self.seen.push(Seen { subscription, samples: 0, next: BTreeMap::new() });
    }

    /// Checks that new deliveries are in order, not duplicated, requested, and in time where required.
    pub(super) fn check(
        &mut self,
        world: &World,
        publishers: &[(Pub, PublisherSpec)],
        subscriptions: &[(Sub, SubscriptionSpec)],
    ) {
        let ids = publishers.iter().enumerate().map(|(place, (it, _))| (world.id(*it), place));
        self.ids.extend(ids);
        for (seen, (_, spec)) in self.seen.iter_mut().zip(subscriptions) {
            let delivered = world.delivered(seen.subscription);
            for sample in delivered.get(seen.samples..).unwrap_or_default() {
                let what = || format!("seed {}: {:?}: {sample:?}", self.seed, seen.subscription);
                let place = self.ids.get(&sample.publisher);
                let Some((_, publisher)) = place.and_then(|place| publishers.get(*place)) else {
                    panic!("of nobody: {}", what());
                };
                assert!(spec.pattern.matches(&publisher.tag), "not asked for: {}", what());
                let next = seen.next.entry(sample.publisher).or_default();
                assert!(sample.seq >= *next, "twice or out of order, {next} is next: {}", what());
                *next = sample.seq + 1;
                let late = spec.within.is_some_and(|within| sample.age > within);
                assert_eq!(late, sample.late, "{}", what());
                assert!(!late || publisher.late == Late::Send, "late: {}", what());
            }
            seen.samples = delivered.len();
        }
    }

    /// Checks that every node knows all nodes, publishers and subscriptions.
    pub(super) fn check_known(&self, world: &World, nodes: &[NodeIx], publishers: usize) {
        let all = (nodes.len(), publishers, self.seen.len());
        for &node in nodes {
            let known = world.control(node).nodes().fold((0, 0, 0), |sum, view| {
                (sum.0 + 1, sum.1 + view.publishers.len(), sum.2 + view.subscriptions.len())
            });
            assert_eq!(known, all, "seed {}: the knowledge of {node:?}", self.seed);
        }
    }

    /// Returns the number of samples delivered to each subscription.
    pub(super) fn mark(&self, world: &World) -> Vec<usize> {
        self.seen.iter().map(|seen| world.delivered(seen.subscription).len()).collect()
    }

    /// Checks the deliveries since `before`.
    ///
    /// Each subscription must have found every publisher with a matching tag, unless its request for a
    /// contract or a proxy may be refused. It must have received samples from each of its publishers. Under contracts
    /// without loss tolerance, no sample may be late.
    pub(super) fn check_calm(
        &self,
        world: &World,
        publishers: &[(Pub, PublisherSpec)],
        before: &[usize],
    ) {
        for (seen, &before) in self.seen.iter().zip(before) {
            let subscription = seen.subscription;
            let spec = world.asks(subscription);
            let heard = world.heard(subscription);
            let what = || format!("seed {}: {subscription:?} {spec:?}", self.seed);
            let wanted = publishers.iter().filter(|(_, p)| spec.pattern.matches(&p.tag)).count();
            // No path without a loop may lead through a named proxy.
            let refusable = spec.wants_contract() || matches!(spec.proxy, Proxy::Node(_));
            assert!(heard.len() == wanted || refusable, "hears {}: {}", heard.len(), what());
            let got = world.delivered(subscription).get(before..).unwrap_or_default();
            for &publisher in heard {
                let of = got.iter().filter(|sample| sample.publisher == publisher).count();
                assert!(
                    of > 0,
                    "nothing of {publisher:?}: {}: {:?}",
                    what(),
                    world.drops(subscription)
                );
                let late = got.iter().filter(|s| s.publisher == publisher && s.late).count();
                let promised = spec.loss.is_none() && spec.form.rate == Rate::ALL;
                assert!(late == 0 || !promised, "{late} of {of} late: {}", what());
            }
        }
    }

    pub(super) fn delivered(&self, world: &World) -> u64 {
        self.seen.iter().map(|seen| world.counted(seen.subscription).samples).sum()
    }
}

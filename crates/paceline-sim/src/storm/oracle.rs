//! What must hold in a storm, and after it.

use crate::net::{NodeIx, Pub, Sub};
use crate::world::World;
use paceline_proto::control::{PublisherSpec, SubscriptionSpec};
use paceline_proto::form::Rate;
use paceline_proto::ids::PublisherId;
use paceline_sched::Late;
use std::collections::BTreeMap;

/// What a subscription has got of each publisher, so far as was looked.
#[derive(Debug)]
struct Seen {
    subscription: Sub,
    samples: usize,
    next: BTreeMap<PublisherId, u64>,
}

/// Looks at what subscriptions get.
#[derive(Debug)]
pub(super) struct Oracle {
    seed: u64,
    seen: Vec<Seen>,
    /// Which publisher every id was, of incarnations that are over, too.
    ids: BTreeMap<PublisherId, usize>,
}

impl Oracle {
    pub(super) const fn new(seed: u64) -> Self {
        Self { seed, seen: Vec::new(), ids: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, subscription: Sub) {
        self.seen.push(Seen { subscription, samples: 0, next: BTreeMap::new() });
    }

    /// What is new is in order, once, asked for, and in time where it must be.
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

    /// Everybody knows all nodes, publishers and subscriptions.
    pub(super) fn check_known(&self, world: &World, nodes: &[NodeIx], publishers: usize) {
        let all = (nodes.len(), publishers, self.seen.len());
        for &node in nodes {
            let known = world.control(node).nodes().fold((0, 0, 0), |sum, view| {
                (sum.0 + 1, sum.1 + view.publishers.len(), sum.2 + view.subscriptions.len())
            });
            assert_eq!(known, all, "seed {}: what {node:?} knows of all", self.seed);
        }
    }

    /// How much each subscription has got.
    pub(super) fn mark(&self, world: &World) -> Vec<usize> {
        self.seen.iter().map(|seen| world.delivered(seen.subscription).len()).collect()
    }

    /// Since `before`, each subscription has heard every publisher whose tag it asked for, unless it asks
    /// for a promise and may be refused, and has got something of each that it hears. Nothing of what was
    /// promised without a loss tolerance was late.
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
            let refusable = spec.wants_contract();
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
                let promised = spec.loss.is_none() && spec.form.rate == Rate::All;
                assert!(late == 0 || !promised, "{late} of {of} late: {}", what());
            }
        }
    }

    pub(super) fn delivered(&self, world: &World) -> u64 {
        self.seen.iter().map(|seen| world.counted(seen.subscription).samples).sum()
    }
}

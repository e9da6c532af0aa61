//! What is known of a request before any node is asked: its paths, and the opposite stream that it is tied to.

use super::query::{Half, Query};
use crate::control::contracts::admission::{bitrate_obstacle, form_obstacle, no_second_path};
use crate::control::contracts::booking::{Replaced, wanted};
use crate::control::contracts::pair::Pair;
use crate::control::contracts::tie::tie_of;
use crate::control::data::best_effort::BestEffort;
use crate::control::data::grant::Grant;
use crate::control::data::ids::PairKey;
use crate::control::data::opposite::OppositeStream;
use crate::control::data::refusal::{Refusal, RefusalReason};
use crate::control::data::route::Place;
use crate::control::data::second::SecondPaths;
use crate::control::data::spec::{PublisherSpec, SubscriptionSpec};
use crate::control::data::split::Split;
use crate::control::membership::blank::blank;
use crate::control::membership::graph::Tree;
use crate::control::paths::StreamPath;
use crate::control::{Control, cut};
use crate::form::Proxy;
use crate::ids::NodeId;
use crate::tag::Tag;

/// The answer of a survey if no node has an obstacle.
#[derive(Debug)]
pub(super) struct Hoped {
    pub(super) grant: Option<Grant>,
    pub(super) opposite: Option<Box<OppositeStream>>,
}

/// What is known of a request before any node is asked.
pub(super) enum Prospect {
    /// The nodes of the paths decide.
    Open(Box<Query>, Box<Hoped>),
    /// No node could grant it. If the opposite stream is the reason, its obstacle.
    Refused(Box<Refusal>, Option<Box<OppositeStream>>),
}

impl Prospect {
    fn open(query: Query, hoped: Hoped) -> Self {
        Self::Open(Box::new(query), Box::new(hoped))
    }
}

impl Control {
    /// Finds the paths of a request, and the opposite pair if it is tied to one.
    pub(super) fn prospect(
        &mut self,
        pair: PairKey,
        request: SubscriptionSpec,
    ) -> Option<Prospect> {
        let publisher = pair.1;
        let spec = self.publisher(publisher)?;
        if let Some(refusal) = self.impossible(pair, spec, &request) {
            return Some(Prospect::Refused(Box::new(refusal), None));
        }
        let first = self.half(pair, request)?;
        if let Some(refusal) = self.unkept(&first) {
            return Some(Prospect::Refused(Box::new(refusal), None));
        }
        if first.request.wants_spare() && first.split.is_limited() {
            return Some(self.spare_prospect(first));
        }
        let grant = self.hoped(&first);
        let tree = Tree::new(&self.membership.registry, self.me);
        let tie = tie_of(&self.membership.registry, &tree, pair, (&spec.tag, &first.request));
        let Some((tag, other)) = first.request.with.clone().zip(tie) else {
            let hoped = Hoped { grant, opposite: None };
            return Some(Prospect::open(Query::new(first, None, false), hoped));
        };
        let Some(key) = other else {
            let refusal = self.opposed(pair, publisher.node, (&tag, true));
            return Some(Prospect::Refused(Box::new(refusal), None));
        };
        Some(match self.opposite_half(key) {
            Ok(half) => {
                let opposite = OppositeStream { tag, grant: self.hoped(&half), refusal: None };
                // Of two pairs that name each other, the first one leads.
                let follows = half.request.with.as_ref() == Some(&spec.tag) && key < pair;
                let (first, second) = if follows { (half, first) } else { (first, half) };
                let hoped = Hoped { grant, opposite: Some(Box::new(opposite)) };
                Prospect::open(Query::new(first, Some(second), follows), hoped)
            }
            Err(reason) => {
                let refusal = self.opposed(pair, key.1.node, (&tag, false));
                let opposite = OppositeStream { tag, grant: None, refusal: reason.map(|it| *it) };
                Prospect::Refused(Box::new(refusal), Some(Box::new(opposite)))
            }
        })
    }

    /// Finds both paths of a request with a spare, whose shortest path is that of `shortest`.
    fn spare_prospect(&mut self, shortest: Half) -> Prospect {
        let Half { pair, request, path, .. } = &shortest;
        let tree = Tree::new(&self.membership.registry, pair.1.node);
        let finder = self.second_paths(&tree);
        let (paths, met) = finder.both(*pair, request.encrypted, path.clone());
        let Some(second) = paths.second else {
            let refusal = no_second_path(
                &self.membership.registry,
                &finder,
                *pair,
                (path, request.encrypted),
                met,
            );
            return Prospect::Refused(Box::new(refusal), None);
        };
        let [first, second] = [paths.first, second].map(|path| {
            let split = Split::of(&self.membership.registry, &path);
            let split = split.with_proxy(PublisherSpec::proxy_at_end(request, split.hops()));
            Half { path, split, ..shortest.clone() }
        });
        let spare = self.hoped(&second).map(|grant| grant.hops).unwrap_or_default();
        let grant = self.hoped(&first).map(|grant| Grant { spare, ..grant });
        let hoped = Hoped { grant, opposite: None };
        Prospect::open(Query::new(first, Some(second), false), hoped)
    }

    /// Returns the refusal of a pair whose publisher cannot deliver the requested form, or has no path through the
    /// requested proxy.
    fn impossible(
        &self,
        pair: PairKey,
        spec: &PublisherSpec,
        request: &SubscriptionSpec,
    ) -> Option<Refusal> {
        let (reason, link) = match (self.route(pair, &request.proxy), &request.proxy) {
            (Some(Err(reason)), Proxy::Node(name)) => (reason, cut(name)),
            _ => (form_obstacle(spec, spec.form_of(request.form))?, String::new()),
        };
        Some(Refusal { link, ..blank(pair, pair.1.node, &self.membership.registry, reason) })
    }

    /// Returns the refusal of a pair whose coder could not keep a contract.
    fn unkept(&self, half: &Half) -> Option<Refusal> {
        let reason = bitrate_obstacle(self.publisher(half.pair.1)?, &half.request, half.split)?;
        Some(blank(half.pair, half.pair.1.node, &self.membership.registry, reason))
    }

    /// Returns a pair with its path as the registry has it.
    fn half(&self, pair: PairKey, request: SubscriptionSpec) -> Option<Half> {
        let spec = self.publisher(pair.1)?;
        let StreamPath { nodes: path, proxy, .. } = self.way(pair, spec, &request)?;
        let proxy = path.iter().position(|node| *node == proxy).unwrap_or_default();
        let split = Split::of(&self.membership.registry, &path).with_proxy(proxy);
        Some(Half { pair, replaced: Replaced::Only, request, path, split })
    }

    /// Returns the opposite pair, or its refusal if it can have no contract; none is known if its traffic is unknown.
    fn opposite_half(&self, pair: PairKey) -> Result<Half, Option<Box<Refusal>>> {
        let record = self.membership.registry.record(pair.1.node);
        let spec = record.and_then(|record| record.publishers.get(&pair.1)).ok_or(None)?;
        let request = self.subscription(pair.0).ok_or(None)?;
        if let Some(refusal) = self.impossible(pair, spec, request) {
            return Err(Some(Box::new(refusal)));
        }
        let half = self.half(pair, request.clone()).ok_or(None)?;
        if let Some(refusal) = self.unkept(&half) {
            return Err(Some(Box::new(refusal)));
        }
        let place = Place::on(&half.path, half.split, pair.1.node).ok_or(None)?;
        let unknown = Pair::at(pair, spec, request, place).best_effort();
        match unknown {
            Some(BestEffort::RateUnknown | BestEffort::SizeUnknown) => Err(None),
            Some(BestEffort::NoCapacity | BestEffort::Idle | BestEffort::Refused) | None => {
                Ok(half)
            }
        }
    }

    /// Returns the contract of a pair if every node of its path grants it.
    fn hoped(&self, half: &Half) -> Option<Grant> {
        let Half { pair, request, path, split, .. } = half;
        let spec = self.publisher(pair.1)?;
        let behind = spec.form_behind(request, path, *split);
        let demanded = wanted(pair.1, spec, request, (*split, behind))?;
        Some(self.grant_of(*pair, request, path, &demanded))
    }

    /// Returns the refusal of a pair by `node` because the opposite stream `tag` has no contract.
    pub(super) fn opposed(
        &self,
        pair: PairKey,
        node: NodeId,
        (tag, missing): (&Tag, bool),
    ) -> Refusal {
        let reason = RefusalReason::Opposite { missing };
        Refusal { link: cut(tag.as_str()), ..blank(pair, node, &self.membership.registry, reason) }
    }
}

//! The links of a medium in the records of all reachable nodes.

use crate::control::membership::registry::Registry;
use crate::ids::NodeId;
use crate::medium::{
    Allotments, Holding, LinkKey, Medium, MediumLink, MediumView, allottable, least_rate,
};
use std::collections::BTreeMap;

/// The links of a medium.
pub(super) struct Members<'r>(BTreeMap<LinkKey, &'r MediumLink>);

impl<'r> Members<'r> {
    pub(super) fn of(registry: &'r Registry, name: &str) -> Self {
        let reachable = registry
            .all()
            .filter(|(node, _)| *node == registry.me() || registry.is_reachable(*node));
        let links = reachable.flat_map(|(node, record)| {
            record.media.iter().map(move |(index, link)| ((node, *index), link))
        });
        Self(links.filter(|(_, link)| link.medium.name == name).collect())
    }

    /// Returns the smallest configured capacity, in bits per second.
    pub(super) fn capacity(&self) -> Option<u64> {
        self.0.values().map(|link| link.medium.capacity.bits_per_s()).min()
    }

    /// Returns the first link, whose node is the manager.
    pub(super) fn first(&self) -> Option<(LinkKey, &'r MediumLink)> {
        self.0.first_key_value().map(|(key, link)| (*key, *link))
    }

    pub(super) fn manager(&self) -> Option<NodeId> {
        Some(self.first()?.0.0)
    }

    /// Returns the links of a node.
    pub(super) fn of_node(&self, node: NodeId) -> impl Iterator<Item = (LinkKey, &'r MediumLink)> {
        self.0.range((node, 0)..=(node, u32::MAX)).map(|(key, link)| (*key, *link))
    }

    /// Returns the allotments that a manager has announced.
    pub(super) fn allotments_of(&self, manager: NodeId) -> Option<&'r Allotments> {
        self.of_node(manager).find_map(|(_, link)| link.allotments.as_ref())
    }

    pub(super) fn holdings(&self) -> BTreeMap<LinkKey, Holding> {
        self.0.iter().map(|(key, link)| (*key, link.holding)).collect()
    }

    /// Returns the rate that the contracts of the other links leave to a link, and the rate that they need.
    pub(super) fn left_for(&self, key: LinkKey) -> Option<(u64, u64)> {
        let capacity = self.capacity()?;
        let others = self.0.iter().filter(|(other, _)| **other != key);
        let needs = others.map(|(_, link)| link.holding.need.max(least_rate(capacity)));
        let needs = needs.fold(0, u64::saturating_add);
        Some((allottable(capacity).saturating_sub(needs), needs))
    }

    /// Returns the medium as this node knows it, which has configured it as `own`.
    pub(super) fn view(&self, own: &Medium) -> Option<MediumView> {
        let (capacity, mine) = (self.capacity()?, own.capacity.bits_per_s());
        let sum = |rate: fn(&Holding) -> u64| {
            self.0.values().fold(0, |sum: u64, link| sum.saturating_add(rate(&link.holding)))
        };
        let bits =
            |(key, link): (&LinkKey, &&MediumLink)| (key.0, link.medium.capacity.bits_per_s());
        Some(MediumView {
            name: own.name.clone(),
            capacity,
            allottable: allottable(capacity),
            allotted: sum(|it| it.holds),
            reserved: sum(|it| it.need),
            links: self.0.len(),
            manager: self.manager()?,
            differs: self.0.iter().map(bits).find(|(_, bits)| *bits != mine),
        })
    }
}

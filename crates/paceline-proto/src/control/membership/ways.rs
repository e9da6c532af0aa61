//! The links to each neighbour, and the one in use.

use crate::ids::NodeId;
use paceline_sched::Capacity;
use std::collections::BTreeMap;

/// The effect of a link change on the link in use to a neighbour.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WayChange {
    /// No change.
    Same,
    /// The neighbour became reachable, over this link.
    Up(usize),
    /// The neighbour is now reached over this link instead of another one, whose queue must be closed first.
    Moved(usize),
    /// The neighbour became unreachable.
    Down,
}

/// The links to each neighbour of a node.
///
/// The link with the largest capacity is used; a link without a capacity counts as the largest. Of equal
/// links, the latest to come up is used, because it is known to work. The others are on standby.
#[derive(Clone, Debug, Default)]
pub struct Ways {
    /// The links to each neighbour and their capacities in bit/s, in the order in which they came up. Every
    /// neighbour has at least one.
    links: BTreeMap<NodeId, Vec<(usize, u64)>>,
}

impl Ways {
    /// Adds a link to a neighbour.
    pub fn up(&mut self, node: NodeId, link: usize, capacity: Option<Capacity>) -> WayChange {
        let before = self.link(node);
        let links = self.links.entry(node).or_default();
        links.retain(|(known, _)| *known != link);
        links.push((link, capacity.map_or(u64::MAX, Capacity::bits_per_s)));
        self.change(node, before)
    }

    /// Removes a link to a neighbour.
    pub fn down(&mut self, node: NodeId, link: usize) -> WayChange {
        let before = self.link(node);
        if let Some(links) = self.links.get_mut(&node) {
            links.retain(|(known, _)| *known != link);
            if links.is_empty() {
                self.links.remove(&node);
            }
        }
        self.change(node, before)
    }

    /// Returns the link in use to a neighbour; `None` if it is unreachable.
    #[must_use]
    pub fn link(&self, node: NodeId) -> Option<usize> {
        let links = self.links.get(&node)?;
        links.iter().max_by_key(|(_, carries)| *carries).map(|(link, _)| *link)
    }

    /// Returns the neighbours that a link leads to, in use or on standby.
    #[must_use]
    pub fn behind(&self, link: usize) -> Vec<NodeId> {
        let leads = |links: &[(usize, u64)]| links.iter().any(|(known, _)| *known == link);
        self.links.iter().filter(|(_, links)| leads(links)).map(|(&node, _)| node).collect()
    }

    fn change(&self, node: NodeId, before: Option<usize>) -> WayChange {
        match (before, self.link(node)) {
            (None, None) => WayChange::Same,
            (None, Some(link)) => WayChange::Up(link),
            (Some(_), None) => WayChange::Down,
            (Some(before), Some(link)) if before == link => WayChange::Same,
            (Some(_), Some(link)) => WayChange::Moved(link),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(7);

    fn bits(bits: u64) -> Option<Capacity> {
        Some(Capacity::from_bits_per_s(bits).unwrap())
    }

    #[test]
    fn the_link_with_the_most_capacity_is_used_and_the_others_stand_by() {
        let mut ways = Ways::default();
        assert_eq!(ways.up(NODE, 3, bits(1_000_000)), WayChange::Up(3));
        assert_eq!(ways.up(NODE, 1, bits(500_000)), WayChange::Same);
        assert_eq!(ways.up(NODE, 2, None), WayChange::Moved(2));
        assert_eq!(ways.down(NODE, 1), WayChange::Same);
        assert_eq!(ways.down(NODE, 2), WayChange::Moved(3));
        assert_eq!((ways.behind(3), ways.behind(2)), (vec![NODE], vec![]));
        assert_eq!(ways.down(NODE, 3), WayChange::Down);
        assert_eq!(ways.down(NODE, 3), WayChange::Same);
        assert_eq!(ways.link(NODE), None);
    }

    #[test]
    fn among_equal_links_the_latest_is_used() {
        let mut ways = Ways::default();
        ways.up(NODE, 0, None);
        assert_eq!(ways.up(NODE, 1, None), WayChange::Moved(1));
        // A repeated report changes nothing.
        assert_eq!(ways.up(NODE, 1, None), WayChange::Same);
        assert_eq!(ways.up(NODE, 0, None), WayChange::Moved(0));
    }
}

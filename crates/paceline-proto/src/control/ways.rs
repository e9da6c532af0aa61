//! Over which links each neighbour is reached, and which of them is used.

use crate::ids::NodeId;
use paceline_sched::Capacity;
use std::collections::BTreeMap;

/// What became of the way to a neighbour.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WayChange {
    /// It is as it was.
    Same,
    /// The neighbour is reached over this link now and was reached over none before.
    Up(usize),
    /// It is reached over this link now and was reached over another one: what was queued there is to be
    /// closed first.
    Moved(usize),
    /// It is not reached any more.
    Down,
}

/// Over which links each neighbour of a node is reached.
///
/// The link that carries the most is used, one without a capacity before all; of equal ones that
/// which came up last, since it is known to be alive. The others stand by.
#[derive(Clone, Debug, Default)]
pub struct Ways {
    /// The links that lead to a neighbour and what they carry, in the order in which they came up.
    /// Nobody is here without one.
    links: BTreeMap<NodeId, Vec<(usize, u64)>>,
}

impl Ways {
    /// A link leads to a neighbour.
    pub fn up(&mut self, node: NodeId, link: usize, capacity: Option<Capacity>) -> WayChange {
        let before = self.link(node);
        let links = self.links.entry(node).or_default();
        links.retain(|(known, _)| *known != link);
        links.push((link, capacity.map_or(u64::MAX, Capacity::bits_per_s)));
        self.change(node, before)
    }

    /// A link leads to a neighbour no longer.
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

    /// The link to a neighbour that is used; `None` if it is not reached.
    #[must_use]
    pub fn link(&self, node: NodeId) -> Option<usize> {
        let links = self.links.get(&node)?;
        links.iter().max_by_key(|(_, carries)| *carries).map(|(link, _)| *link)
    }

    /// The neighbours that a link leads to, used or standing by.
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
    fn the_link_that_carries_the_most_is_used_and_the_others_stand_by() {
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
    fn of_equal_links_the_one_that_came_up_last_is_used() {
        let mut ways = Ways::default();
        ways.up(NODE, 0, None);
        assert_eq!(ways.up(NODE, 1, None), WayChange::Moved(1));
        // It says so again: nothing moves.
        assert_eq!(ways.up(NODE, 1, None), WayChange::Same);
        assert_eq!(ways.up(NODE, 0, None), WayChange::Moved(0));
    }
}

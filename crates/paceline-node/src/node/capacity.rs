//! Changes of the capacity of a link.

use super::Node;
use crate::capacity::{CapacityChange, CapacityFollower};
use paceline_proto::capacity::LinkCapacity;
use paceline_proto::control::WayChange;
use paceline_sched::{Capacity, Instant};

impl Node {
    /// Measures the capacity of a link, within the range of `setting`. Contracts use its minimum until something is measured.
    /// Call it before the link has neighbours. Does nothing for a fixed capacity, and for a link without one.
    ///
    /// ```
    /// use paceline_node::Node;
    /// use paceline_proto::NodeId;
    /// use paceline_proto::capacity::LinkCapacity;
    /// use paceline_proto::link::LinkSpec;
    ///
    /// let radio: LinkCapacity = "auto 1mbit..50mbit".parse().unwrap();
    /// let mut robot = Node::new(NodeId(1), "robot");
    /// let spec = LinkSpec { capacity: Some(radio.first()), ..LinkSpec::default() };
    /// let link = robot.add_link("radio", spec);
    /// robot.measure(link, radio);
    /// assert!(robot.links()[link].link().is_measured());
    /// ```
    pub fn measure(&mut self, link: usize, setting: LinkCapacity) {
        let Some(end) = self.links.get_mut(link).filter(|end| end.spec.capacity.is_some()) else {
            return;
        };
        if setting.is_measured() {
            end.link.measure(setting);
            end.setting = Some(setting);
            end.follower = CapacityFollower::new(Some(setting));
            self.control.set_measured(&end.name, true);
            self.touched = true;
        }
    }

    /// Changes the capacity of a link: the link keeps its queues and streams, and admission tests all contracts on it again.
    /// Returns false without any change for a link without a capacity, and for one that is [measured](Self::measure).
    pub fn set_capacity(&mut self, now: Instant, link: usize, capacity: Capacity) -> bool {
        let Some(end) = self.links.get_mut(link).filter(|end| !end.is_measured()) else {
            return false;
        };
        if !end.link.set_capacity(now, capacity) {
            return false;
        }
        self.apply_capacity(now, link, capacity);
        true
    }

    /// Follows the measurement of a link. Returns true if something has changed.
    pub(super) fn follow_capacity(&mut self, now: Instant, link: usize) -> bool {
        let Some(end) = self.links.get_mut(link) else { return false };
        if !end.link.hops().any(|(_, hop)| hop.is_up()) {
            return false;
        }
        match end.follower.poll(now, &end.link) {
            None => return false,
            Some(CapacityChange::Falls(fall)) => {
                let name = end.name.clone();
                self.control.handle_fall(now, &name, &fall);
            }
            Some(CapacityChange::Repairs(share)) => {
                let name = end.name.clone();
                self.control.set_repairs(&name, share);
            }
            Some(
                CapacityChange::Measured(measured) | CapacityChange::Contradicted { measured, .. },
            ) => {
                end.has_measurement = true;
                self.apply_capacity(now, link, measured);
            }
            Some(CapacityChange::Stated(stated)) => self.apply_capacity(now, link, stated),
        }
        true
    }

    /// Lets admission evaluate every contract on the link again with this capacity.
    fn apply_capacity(&mut self, now: Instant, link: usize, capacity: Capacity) {
        let Some(end) = self.links.get_mut(link) else { return };
        end.spec.capacity = Some(capacity);
        end.touched = true;
        self.touched = true;
        let behind = self.ways.behind(link);
        for node in behind {
            // The route to the node may move to or from this link. If it stays here, its capacity has changed.
            let mut change = self.ways.up(node, link, Some(capacity));
            if change == WayChange::Same && self.ways.link(node) == Some(link) {
                change = WayChange::Up(link);
            }
            self.change_path(now, node, change);
        }
    }
}

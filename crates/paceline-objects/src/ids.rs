//! Identifiers of participants and objects.

use std::fmt;

/// Identifies one incarnation of a participant of a world: the node that sends its packets in the upper 64 bits, and
/// a number that is drawn at random when it joins.
///
/// A packet counts only if this node has sent it, which any receiver can check without knowing the participant.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PeerId(pub u128);

impl PeerId {
    /// Returns the identifier of a participant of a node.
    #[must_use]
    pub const fn of_node(node: u64, number: u64) -> Self {
        Self((node as u128) << 64 | number as u128)
    }

    /// Returns the number of the node that sends its packets.
    #[must_use]
    pub const fn node(self) -> u64 {
        (self.0 >> 64) as u64
    }
}

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Identifies an object among those that one participant owns or has owned; never used twice by it.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ObjectIndex(pub u32);

impl fmt::Display for ObjectIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

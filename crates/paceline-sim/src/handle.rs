//! The handles of a network's nodes, publishers and subscriptions.

use bytes::Bytes;
use paceline_sched::Capacity;

/// A node of a network.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct NodeIx(pub usize);

/// A publisher of a network.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Pub(pub usize);

/// A subscription of a network.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Sub(pub usize);

/// Creates the n-th payload of a publisher.
pub type Payload = Box<dyn FnMut(u64) -> Bytes + Send>;

/// The properties of the link between two nodes.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkPlan {
    /// The capacity of each direction; `None` means unlimited.
    pub capacity: Option<Capacity>,
}

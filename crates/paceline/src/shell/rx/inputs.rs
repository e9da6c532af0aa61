//! The inputs of neighbours on their way from the threads of the links to the engine.

use super::super::lock;
use bytes::Bytes;
use paceline_node::capacity::CapacityChange;
use paceline_proto::NodeId;
use paceline_proto::memory::Charge;
use paceline_proto::rights::PeerName;
use std::sync::Mutex;

/// An input of a neighbour.
#[derive(Debug)]
pub(crate) enum NeighbourInput {
    /// A control message, and the memory that it uses until the engine has handled it.
    Message(Bytes, Charge),
    /// A change of the hop to it on a link.
    Hop {
        link: usize,
        up: bool,
        /// The name in the neighbour's certificate, if it has one.
        peer: Option<PeerName>,
    },
    /// A change of the capacity of a link that leads to it, for admission.
    Capacity { link: usize, change: CapacityChange },
}

/// The inputs that the engine has not collected, in the order of their arrival: a hop comes up before its messages, and goes
/// down behind them. The memory of the messages is bounded by the shares of the neighbours.
#[derive(Debug, Default)]
pub(crate) struct NeighbourInputs(Mutex<Vec<(NodeId, NeighbourInput)>>);

impl NeighbourInputs {
    /// Adds an input. Returns true if it is the first one, so that the engine must be woken.
    pub(super) fn push(&self, from: NodeId, input: NeighbourInput) -> bool {
        let mut all = lock(&self.0);
        all.push((from, input));
        all.len() == 1
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }

    /// Takes all inputs.
    pub(crate) fn collect(&self) -> Vec<(NodeId, NeighbourInput)> {
        std::mem::take(&mut *lock(&self.0))
    }
}

//! The control messages of neighbours on their way from the threads of the links to the engine.

use super::super::lock;
use bytes::Bytes;
use paceline_proto::NodeId;
use paceline_proto::memory::Charge;
use std::sync::Mutex;

/// A control message of a neighbour.
#[derive(Debug)]
pub(crate) struct ControlMessage {
    pub(crate) from: NodeId,
    pub(crate) message: Bytes,
    /// The memory that it uses until the engine has handled it.
    pub(crate) charge: Charge,
}

/// The messages that the engine has not collected, in the order of their arrival. Their memory is bounded by the shares of
/// the neighbours.
#[derive(Debug, Default)]
pub(crate) struct ControlMessages(Mutex<Vec<ControlMessage>>);

impl ControlMessages {
    /// Adds a message. Returns true if it is the first one, so that the engine must be woken.
    pub(super) fn push(&self, message: ControlMessage) -> bool {
        let mut all = lock(&self.0);
        all.push(message);
        all.len() == 1
    }

    /// Takes all messages.
    pub(crate) fn collect(&self) -> Vec<ControlMessage> {
        std::mem::take(&mut *lock(&self.0))
    }
}

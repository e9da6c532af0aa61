//! The node.

use crate::config::NodeBuilder;
use crate::error::{OpenError, PublishError, SubscribeError};
use crate::publisher::PublisherBuilder;
use crate::status::NodeStatus;
use crate::subscriber::SubscriberBuilder;
use paceline_proto::NodeId;
use std::time::Duration;

/// One Paceline engine. Clones are handles of the same node; the last one to go closes it.
#[derive(Clone)]
pub struct Node { _p: () }

impl Node {
    /// Opens an embedded node: it joins the node of this host, or becomes it.
    ///
    /// # Errors
    /// [`OpenError`] names what is wrong and the mend.
    pub fn open() -> Result<Self, OpenError> { todo!() }
    /// Opens a node with a name, links or a folder of its own.
    pub fn builder() -> NodeBuilder { todo!() }
    pub(crate) fn open_with(builder: NodeBuilder) -> Result<Self, OpenError> { todo!() }
    /// Who it is.
    pub fn id(&self) -> NodeId { todo!() }
    /// What people call it.
    pub fn name(&self) -> &str { todo!() }
    /// A publisher on `tag`, to be declared.
    ///
    /// # Errors
    /// [`PublishError::Tag`].
    pub fn publisher(&self, tag: &str) -> Result<PublisherBuilder<'_>, PublishError> { todo!() }
    /// A subscriber to `pattern`, to be declared.
    ///
    /// # Errors
    /// [`SubscribeError::Pattern`].
    pub fn subscriber(&self, pattern: &str) -> Result<SubscriberBuilder<'_>, SubscribeError> { todo!() }
    /// What every reachable node says of itself; nodes that do not answer within `timeout` are left out.
    pub fn status(&self, timeout: Duration) -> Vec<NodeStatus> { todo!() }
    /// The reachable nodes, by name, without asking them.
    pub fn nodes(&self) -> Vec<(NodeId, String)> { todo!() }
    /// Closes the node now; what is still queued is sent for at most 200 ms.
    pub fn close(self) { todo!() }
}

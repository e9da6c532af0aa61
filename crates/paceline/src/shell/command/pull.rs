//! The commands of pulls and their answers.

use paceline_proto::pull::{Answer, Question};
use paceline_proto::{NodeId, Tag};
use std::sync::mpsc::Sender;

/// A pull command of the engine.
pub(crate) enum PullCommand {
    /// Returns this node's identifier and the number of a new pull.
    Number(Sender<(NodeId, u64)>),
    /// Returns the nodes with buffers of a tag, and all reachable nodes.
    Holders(Tag, Sender<Holders>),
    /// Sends a request to a node. The answer carries `token`; without `reply` the answer is
    /// ignored.
    Ask { to: NodeId, question: Question, token: u64, reply: Option<Sender<Reply>> },
    /// Sends the answer to a request of node `to`.
    Answer { request: u64, to: NodeId, answer: Answer },
}

/// The nodes with buffers of a tag.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holders {
    /// The nodes with buffers and their distance in hops, nearest first.
    pub(crate) holders: Vec<(NodeId, usize)>,
    /// All reachable nodes and their names.
    pub(crate) nodes: Vec<(NodeId, String)>,
    /// The smallest capacity of any link, in bits per second.
    pub(crate) thinnest: Option<u64>,
    /// True if the registry is complete, so that no other reachable node has a buffer.
    pub(crate) are_complete: bool,
}

impl Holders {
    /// Returns the name of a node, or its identifier if it is unreachable.
    pub(crate) fn name(&self, node: NodeId) -> String {
        let found = self.nodes.iter().find(|(id, _)| *id == node);
        found.map_or_else(|| node.to_string(), |(_, name)| name.clone())
    }

    /// Returns true if the node is reachable.
    pub(crate) fn reaches(&self, node: NodeId) -> bool {
        self.nodes.iter().any(|(id, _)| *id == node)
    }
}

/// The answer of a node.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    /// The node that answered.
    pub(crate) node: NodeId,
    /// The token of the request.
    pub(crate) token: u64,
    /// The answer.
    pub(crate) answer: Answer,
}

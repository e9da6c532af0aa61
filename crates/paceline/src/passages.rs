//! When single samples came to the links of their way, and when they left them.

use crate::node::Node;
use crate::shell::engine::Command;
use paceline_proto::link::Passage;
use paceline_proto::{Form, NodeId, PublisherId};
use std::time::{Duration, Instant};

/// What a node tells of the last samples of a publisher that it has sent on.
#[derive(Clone, Debug, PartialEq)]
pub struct NodePassages {
    /// The node.
    pub node: NodeId,
    /// The publisher's streams there.
    pub streams: Vec<StreamPassages>,
}

/// The samples of one stream on one link.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamPassages {
    /// The link.
    pub link: String,
    /// The next hop.
    pub hop: NodeId,
    /// In which form they leave.
    pub form: Form,
    /// Those that came last, the oldest first, at most [`PASSAGES_MAX`](crate::PASSAGES_MAX).
    pub passages: Vec<Passage>,
}

impl Node {
    /// Asks `nodes` when samples of `publisher` passed them, from number `from` on, and has them keep that of those that
    /// follow, for five seconds or until it is asked again. What they tell is up to 250 ms old. Those that do not answer
    /// within `timeout` are left out.
    #[must_use]
    pub fn passages(
        &self,
        publisher: PublisherId,
        nodes: &[NodeId],
        from: u64,
        timeout: Duration,
    ) -> Vec<NodePassages> {
        let until = Instant::now() + timeout;
        let (reply, answers) = std::sync::mpsc::channel();
        let command = Command::Passages { publisher, nodes: nodes.to_vec(), from, reply };
        let mut found: Vec<NodePassages> = Vec::new();
        if self.commands().send(command) {
            while let Some(left) = until.checked_duration_since(Instant::now())
                && found.len() < nodes.len()
                && let Ok(answer) = answers.recv_timeout(left)
            {
                found.push(answer);
            }
        }
        found
    }
}

//! Traces of single samples: their arrival and departure times on each link of a path.

use crate::node::Node;
use crate::shell::command::Command;
use crate::status::NodePassages;
use paceline_proto::{NodeId, PublisherId};
use std::time::{Duration, Instant};

impl Node {
    /// Asks `nodes` for the trace of `publisher`'s samples from sequence number `from` on.
    ///
    /// The nodes keep tracing this publisher for 5 s, or until the next call. Traces are up to 250
    /// ms old. Blocks for at most `timeout`; nodes that do not answer in time are left out.
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

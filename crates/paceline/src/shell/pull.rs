//! Pull: buffers of this node, the thread that answers for them, and the threads that pull.
//!
//! ```text
//! holder: sink ──► HeldBuffer ◄── paceline-pull: what is asked ──► paceline-feed, one a pull: Carrier
//! puller: paceline-fetch, one a pull: asks, fetches page by page ──► Pipe ──► Pulled
//! ```
//!
//! The engine carries questions and answers, and waits for none of these.

mod carrier;
mod feeder;
mod fetch;
mod held;
mod holder;
mod ledger;
mod lookup;
mod making;
mod pipe;
mod puller;

pub(crate) use held::HeldBuffer;
pub(crate) use holder::Holder;
pub(crate) use lookup::Wanted;
pub(crate) use pipe::{Pipe, Told};
pub(crate) use puller::start;

use paceline_proto::pull::{Answer, Question};
use paceline_proto::{NodeId, Tag};
use std::sync::mpsc::Sender;

/// What the engine is asked to do for pulls.
pub(crate) enum PullCommand {
    /// A number for a new pull, and this node.
    Number(Sender<(NodeId, u64)>),
    /// Who holds a tag, and who there is.
    Holders(Tag, Sender<Holders>),
    /// Ask a node; the answer comes with `token`. Without `reply` none is waited for.
    Ask { to: NodeId, question: Question, token: u64, reply: Option<Sender<Reply>> },
    /// What was found out for a question of `to`.
    Answer { request: u64, to: NodeId, answer: Answer },
}

/// Who holds a tag.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holders {
    /// The nodes that hold it and how many hops away they are, nearest first.
    pub(crate) holders: Vec<(NodeId, usize)>,
    /// All nodes that can be reached, and their names.
    pub(crate) nodes: Vec<(NodeId, String)>,
    /// The least capacity of any link of theirs, in bits per second.
    pub(crate) thinnest: Option<u64>,
}

impl Holders {
    /// The name of a node; its id if it is gone.
    pub(crate) fn name(&self, node: NodeId) -> String {
        let found = self.nodes.iter().find(|(id, _)| *id == node);
        found.map_or_else(|| node.to_string(), |(_, name)| name.clone())
    }

    /// True if the node can be reached.
    pub(crate) fn reaches(&self, node: NodeId) -> bool {
        self.nodes.iter().any(|(id, _)| *id == node)
    }
}

/// An answer of a node.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    /// Who answered.
    pub(crate) node: NodeId,
    /// What the question was sent with.
    pub(crate) token: u64,
    /// What it said.
    pub(crate) answer: Answer,
}

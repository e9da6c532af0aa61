//! The topics of questions between nodes.

use bytes::Bytes;

/// The topic of a question: the first byte of its body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Topic {
    /// The node's status; the rest of the body is empty.
    Status,
    /// The contents of pull buffers: a [`crate::pull::Question`] follows.
    Pull,
    /// The capacity of this node's link of a path for a stream. [`Control`](crate::control::Control) answers it.
    Room,
    /// A changed request for a subscription of the node. `Control` handles it.
    Change,
    /// The delivery statistics of the node's subscriptions: their numbers follow.
    Feedback,
    /// The excess that the sender's link counted on streams to the node. `Control` handles it without an
    /// answer.
    Excess,
    /// A refusal of a subscription of the node that does not fit into the sender's record. `Control`
    /// handles it without an answer.
    Refused,
    /// The times at which samples of a publisher passed the node's links: the publisher and the first
    /// sequence number follow.
    Passages,
    /// The outcome of a change of a subscription of the node. `Control` answers it.
    Outcome,
    /// The time by the node's clock: a packet of NTP follows.
    Time,
    /// A reduction of an elastic contract of a subscription of the node, for a more important one. `Control` handles it
    /// without an answer.
    Relax,
    /// A forecast that a link of a path will soon no longer carry a contract of the node. `Control` handles it without an answer.
    Warning,
}

impl Topic {
    /// Returns the topic's byte.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Status => 0,
            Self::Pull => 1,
            Self::Room => 2,
            Self::Change => 3,
            Self::Feedback => 4,
            Self::Excess => 5,
            Self::Refused => 6,
            Self::Passages => 7,
            Self::Outcome => 8,
            Self::Time => 9,
            Self::Relax => 10,
            Self::Warning => 11,
        }
    }

    /// Splits a question into its topic and the rest; returns `None` if the topic is unknown.
    #[must_use]
    pub fn split(mut question: Bytes) -> Option<(Self, Bytes)> {
        let topic = match question.first()? {
            0 => Self::Status,
            1 => Self::Pull,
            2 => Self::Room,
            3 => Self::Change,
            4 => Self::Feedback,
            5 => Self::Excess,
            6 => Self::Refused,
            7 => Self::Passages,
            8 => Self::Outcome,
            9 => Self::Time,
            10 => Self::Relax,
            11 => Self::Warning,
            _ => return None,
        };
        Some((topic, question.split_off(1)))
    }
}

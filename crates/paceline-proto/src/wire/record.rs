//! The control messages about records, by their first bytes.

use crate::ids::NodeId;

/// The code of a message with the versions of all records.
pub(crate) const DIGEST: u8 = 1;
/// The code of a message with one change.
pub(crate) const DELTA: u8 = 3;
/// The code of a message with the whole record.
pub(crate) const SNAPSHOT: u8 = 4;
/// The code of a message by which the receiver forgets all records from the sender.
pub(crate) const FORGET: u8 = 8;
/// The code of a message with the token of a node, by which others decide on its record.
pub(crate) const TOKEN: u8 = 9;

/// The meaning of a control message for records.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum RecordMessage {
    /// It states the versions of all records.
    Digest,
    /// It changes a part of the node's record.
    Part(NodeId),
    /// It replaces the node's record.
    Whole(NodeId),
    /// It removes all records that the sender has sent.
    Forget,
    /// It precedes the record of its node.
    Token,
}

impl RecordMessage {
    /// Returns the meaning of a message; `None` for messages that do not concern records.
    pub(crate) fn of(message: &[u8]) -> Option<Self> {
        let (kind, rest) = message.split_first()?;
        let node = || rest.first_chunk().map(|node| NodeId(u64::from_le_bytes(*node)));
        match *kind {
            DIGEST => Some(Self::Digest),
            DELTA => node().map(Self::Part),
            SNAPSHOT => node().map(Self::Whole),
            FORGET => Some(Self::Forget),
            TOKEN => Some(Self::Token),
            _ => None,
        }
    }

    /// Returns the node whose record changes.
    pub(crate) const fn changed(self) -> Option<NodeId> {
        match self {
            Self::Part(node) | Self::Whole(node) => Some(node),
            Self::Digest | Self::Forget | Self::Token => None,
        }
    }
}

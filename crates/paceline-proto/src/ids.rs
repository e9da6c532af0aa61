//! Identifiers of nodes, publishers, subscriptions and sources.

use core::fmt;
use core::str::FromStr;

/// Identifies one incarnation of a node.
///
/// A node draws the number at random when it starts. A restarted node is therefore a new node, and its old
/// state cannot be mistaken for new state.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct NodeId(pub u64);

/// The error for a text that is no id of a node, a publisher or a subscription.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "must be 16 hexadecimal digits, and for a publisher or a subscription a dot and a number, such as 00112233aabbccdd.0"
)]
pub struct IdError;

impl FromStr for NodeId {
    type Err = IdError;

    /// Parses 16 hexadecimal digits.
    fn from_str(text: &str) -> Result<Self, IdError> {
        let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let id = u64::from_str_radix(text, 16).ok().filter(|_| digits);
        id.map(Self).ok_or(IdError)
    }
}

/// Parses a node's id, a dot and an index.
fn parse_indexed(text: &str) -> Result<(NodeId, u32), IdError> {
    let (node, index) = text.split_once('.').ok_or(IdError)?;
    let digits = index.bytes().all(|byte| byte.is_ascii_digit());
    let index = index.parse().ok().filter(|_| digits).ok_or(IdError)?;
    Ok((node.parse()?, index))
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Identifies a publisher by its node and its index there.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PublisherId {
    /// The node that the publisher runs on.
    pub node: NodeId,
    /// The index on that node, never reused.
    pub index: u32,
}

impl FromStr for PublisherId {
    type Err = IdError;

    /// Parses a node's id, a dot and the index.
    fn from_str(text: &str) -> Result<Self, IdError> {
        parse_indexed(text).map(|(node, index)| Self { node, index })
    }
}

impl fmt::Display for PublisherId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.node, self.index)
    }
}

/// Identifies a subscription by its node and its index there.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SubscriptionId {
    /// The node that delivers samples to the subscription.
    pub node: NodeId,
    /// The index on that node, never reused.
    pub index: u32,
}

impl FromStr for SubscriptionId {
    type Err = IdError;

    /// Parses a node's id, a dot and the index.
    fn from_str(text: &str) -> Result<Self, IdError> {
        parse_indexed(text).map(|(node, index)| Self { node, index })
    }
}

impl fmt::Display for SubscriptionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.node, self.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        let node = NodeId(0xb0b);
        assert_eq!(node.to_string().parse(), Ok(node));
        let publisher = PublisherId { node, index: 7 };
        assert_eq!(publisher.to_string().parse(), Ok(publisher));
        let subscription = SubscriptionId { node, index: u32::MAX };
        assert_eq!(subscription.to_string().parse(), Ok(subscription));
        for wrong in [
            "",
            ".",
            "b0b",
            "b0b.7",
            "0000000000000b0b",
            "0000000000000b0b.-1",
            "0000000000000b0b.+1",
            "0000000000000b0b.",
            "+000000000000b0b.1",
            "0000000000000b0b.4294967296",
            "../../etc",
        ] {
            assert_eq!(wrong.parse::<PublisherId>(), Err(IdError), "{wrong}");
            assert_eq!(wrong.parse::<SubscriptionId>(), Err(IdError), "{wrong}");
        }
        assert_eq!("+000000000000b0b".parse::<NodeId>(), Err(IdError));
    }
}

//! What the `Control` of one node says to that of a neighbour, and its bytes.

use super::codec::record::{put_change, put_record, read_change, read_record};
use super::registry::{Change, NODES_MAX, Record};
use crate::ids::NodeId;
use crate::wire::{Reader, WireError, Writer};
use bytes::Bytes;

/// The longest answer to a status request, in bytes.
pub const STATUS_BYTES_MAX: usize = 1 << 20;

/// Versions stay far from where counting up would overflow.
pub(crate) const VERSION_MAX: u64 = 1 << 62;

const DIGEST: u8 = 1;
const NEED: u8 = 2;
const DELTA: u8 = 3;
const SNAPSHOT: u8 = 4;
const STATUS_REQUEST: u8 = 5;
const STATUS_REPLY: u8 = 6;

/// A status request or its answer on its way.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Errand {
    pub(crate) request: u64,
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    /// How many hops it may still take.
    pub(crate) ttl: u8,
}

/// One message between neighbours.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Message {
    /// The version of each record that the sender has.
    Digest(Vec<(NodeId, u64)>),
    /// The sender misses changes of this node's record.
    Need(NodeId),
    /// The change that leads to `version`.
    Delta { node: NodeId, version: u64, change: Change },
    /// A whole record.
    Snapshot { node: NodeId, record: Record },
    /// Someone wants a node's status.
    StatusRequest(Errand),
    /// The answer.
    StatusReply(Errand, Bytes),
}

fn put_node(out: &mut Vec<u8>, kind: u8, node: NodeId) {
    out.put_u8(kind);
    out.put_u64(node.0);
}

fn put_errand(out: &mut Vec<u8>, kind: u8, errand: &Errand) {
    put_node(out, kind, errand.from);
    out.put_u64(errand.to.0);
    out.put_varint(errand.request);
    out.put_u8(errand.ttl);
}

fn read_errand(reader: &mut Reader) -> Result<Errand, WireError> {
    Ok(Errand {
        from: NodeId(reader.u64("status from")?),
        to: NodeId(reader.u64("status to")?),
        request: reader.varint("status request")?,
        ttl: reader.u8("status ttl")?,
    })
}

fn read_digest(reader: &mut Reader) -> Result<Vec<(NodeId, u64)>, WireError> {
    let count = reader.len(NODES_MAX, "digest nodes")?;
    let mut versions = Vec::with_capacity(count.min(reader.remaining() / 9));
    for _ in 0..count {
        let node = NodeId(reader.u64("digest node")?);
        versions.push((node, reader.varint_max(VERSION_MAX, "digest version")?));
    }
    Ok(versions)
}

/// The bytes of a snapshot, without a copy of the record.
pub(crate) fn snapshot(node: NodeId, record: &Record) -> Bytes {
    let mut out = Vec::new();
    put_node(&mut out, SNAPSHOT, node);
    put_record(&mut out, record);
    out.into()
}

impl Message {
    /// True if `bytes` begin as a digest does.
    pub(crate) fn is_digest(bytes: &[u8]) -> bool {
        bytes.first() == Some(&DIGEST)
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        match self {
            Self::Digest(versions) => {
                out.put_u8(DIGEST);
                out.put_varint(versions.len() as u64);
                for (node, version) in versions {
                    out.put_u64(node.0);
                    out.put_varint(*version);
                }
            }
            Self::Need(node) => put_node(&mut out, NEED, *node),
            Self::Delta { node, version, change } => {
                put_node(&mut out, DELTA, *node);
                out.put_varint(*version);
                put_change(&mut out, change);
            }
            Self::Snapshot { node, record } => return snapshot(*node, record),
            Self::StatusRequest(errand) => put_errand(&mut out, STATUS_REQUEST, errand),
            Self::StatusReply(errand, rows) => {
                put_errand(&mut out, STATUS_REPLY, errand);
                out.put_varint(rows.len() as u64);
                out.put_bytes(rows);
            }
        }
        out.into()
    }

    pub(crate) fn decode(bytes: Bytes) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        let message = match reader.u8("control message")? {
            DIGEST => Self::Digest(read_digest(&mut reader)?),
            NEED => Self::Need(NodeId(reader.u64("node")?)),
            DELTA => Self::Delta {
                node: NodeId(reader.u64("node")?),
                version: reader.varint_max(VERSION_MAX, "version")?,
                change: read_change(&mut reader)?,
            },
            SNAPSHOT => {
                let node = NodeId(reader.u64("node")?);
                Self::Snapshot { node, record: read_record(&mut reader, node)? }
            }
            STATUS_REQUEST => Self::StatusRequest(read_errand(&mut reader)?),
            STATUS_REPLY => {
                let errand = read_errand(&mut reader)?;
                let len = reader.len(STATUS_BYTES_MAX, "status rows")?;
                Self::StatusReply(errand, reader.bytes(len, "status rows")?)
            }
            _ => return Err(WireError::Invalid("control message")),
        };
        reader.finish()?;
        Ok(message)
    }
}

#[cfg(test)]
mod tests;

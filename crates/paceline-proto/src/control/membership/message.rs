//! Control messages between neighbours, and their encoding.

use super::records::{put_change, put_record, read_change, read_least_held, read_record};
use super::registry::{Change, NODES_MAX, Record, VERSION_MAX};
use crate::control::data::ids::NAME_BYTES_MAX;
use crate::ids::NodeId;
use crate::rights::PeerName;
use crate::text::is_plain;
use crate::wire::record::{DELTA, DIGEST, FORGET, SNAPSHOT, TOKEN};
use crate::wire::{Reader, WireError, Writer};
use bytes::Bytes;
use paceline_admit::reserve;

/// The longest question to a node, in bytes.
pub const QUESTION_BYTES_MAX: usize = 8_192;
/// The longest answer, in bytes.
pub const ANSWER_BYTES_MAX: usize = 1 << 20;

const NEED: u8 = 2;
const QUESTION: u8 = 5;
const ANSWER: u8 = 6;
const RESERVE: u8 = 7;

const OF_HOST: u8 = 0;
const UNKNOWN: u8 = 1;
const USER: u8 = 2;
const CERTIFIED: u8 = 3;

/// The longest token, in bytes.
pub const TOKEN_BYTES_MAX: usize = 8_192;

/// The addressing of a question or answer in transit.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Errand {
    pub(crate) request: u64,
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    /// The number of hops that remain.
    pub(crate) ttl: u8,
    /// The identity of the asking node for the processes of a host, by the one that met it; `None` for theirs.
    pub(crate) who: Option<PeerName>,
}

/// One message between neighbours.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Message {
    /// The version of each record that the sender has.
    Digest(Vec<(NodeId, u64)>),
    /// The sender lacks changes of this node's record.
    Need(NodeId),
    /// The change that results in `version`.
    Delta { node: NodeId, version: u64, change: Change },
    /// A whole record.
    Snapshot { node: NodeId, record: Record },
    /// A question to a node.
    Question(Errand, Bytes),
    /// The answer to a question.
    Answer(Errand, Bytes),
    /// A reservation on a path that includes both neighbours, encoded by [`paceline_admit::reserve::codec`].
    Reserve(Box<reserve::ReserveMessage>),
    /// The rights of the receiver have changed: it forgets the records that the sender delivered, and the
    /// sender delivers them as the receiver may see them now.
    Forget,
    /// A token that grants rights to `node`, for the sender's neighbours.
    Token { node: NodeId, token: Bytes },
}

fn put_node(out: &mut Vec<u8>, kind: u8, node: NodeId) {
    out.put_u8(kind);
    out.put_u64(node.0);
}

fn put_errand(out: &mut Vec<u8>, kind: u8, errand: &Errand, body: &Bytes) {
    put_node(out, kind, errand.from);
    out.put_u64(errand.to.0);
    out.put_varint(errand.request);
    out.put_u8(errand.ttl);
    put_identity(out, errand.who.as_ref());
    out.put_varint(body.len() as u64);
    out.put_bytes(body);
}

/// Writes an identity. One that the reader would refuse is unknown there.
fn put_identity(out: &mut Vec<u8>, who: Option<&PeerName>) {
    let is_readable = |name: &str| name.len() <= NAME_BYTES_MAX && is_plain(name);
    let mut put = |kind, name: &str| {
        out.put_u8(kind);
        out.put_text(name);
    };
    match who {
        Some(PeerName::User(name)) if is_readable(name) => put(USER, name),
        Some(PeerName::Certified(name)) if is_readable(name) => put(CERTIFIED, name),
        None | Some(PeerName::Host) => out.put_u8(OF_HOST),
        Some(PeerName::Unknown | PeerName::User(_) | PeerName::Certified(_)) => out.put_u8(UNKNOWN),
    }
}

fn read_identity(reader: &mut Reader) -> Result<Option<PeerName>, WireError> {
    let name = |reader: &mut Reader| reader.text(NAME_BYTES_MAX, "identity");
    Ok(match reader.u8("kind of identity")? {
        OF_HOST => None,
        UNKNOWN => Some(PeerName::Unknown),
        USER => Some(PeerName::User(name(reader)?)),
        CERTIFIED => Some(PeerName::Certified(name(reader)?)),
        _ => return Err(WireError::Invalid("kind of identity")),
    })
}

fn read_errand(reader: &mut Reader, bytes_max: usize) -> Result<(Errand, Bytes), WireError> {
    let errand = Errand {
        from: NodeId(reader.u64("asked from")?),
        to: NodeId(reader.u64("asked to")?),
        request: reader.varint("question number")?,
        ttl: reader.u8("question ttl")?,
        who: read_identity(reader)?,
    };
    let len = reader.len(bytes_max, "body length")?;
    Ok((errand, reader.bytes(len, "body")?))
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

/// Encodes a snapshot without a copy of the record.
pub(crate) fn snapshot(node: NodeId, record: &Record) -> Bytes {
    let mut out = Vec::new();
    put_node(&mut out, SNAPSHOT, node);
    put_record(&mut out, record);
    out.into()
}

impl Message {
    /// Returns true if `bytes` start with the code of a digest.
    pub(crate) fn is_digest(bytes: &[u8]) -> bool {
        bytes.first() == Some(&DIGEST)
    }

    /// Returns the node of a whole record and the least memory that it needs, if the message `bytes` is one. Reads no entry.
    pub(crate) fn least_held(bytes: &Bytes) -> Result<Option<(NodeId, usize)>, WireError> {
        let mut reader = Reader::new(bytes.clone());
        if reader.u8("control message")? != SNAPSHOT {
            return Ok(None);
        }
        let node = NodeId(reader.u64("node")?);
        read_least_held(&mut reader).map(|held| Some((node, held)))
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
            Self::Question(errand, body) => put_errand(&mut out, QUESTION, errand, body),
            Self::Answer(errand, body) => put_errand(&mut out, ANSWER, errand, body),
            Self::Reserve(message) => {
                out.put_u8(RESERVE);
                reserve::codec::encode(message, &mut out);
            }
            Self::Forget => out.put_u8(FORGET),
            Self::Token { node, token } => {
                put_node(&mut out, TOKEN, *node);
                out.put_varint(token.len() as u64);
                out.put_bytes(token);
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
            QUESTION => {
                let (errand, body) = read_errand(&mut reader, QUESTION_BYTES_MAX)?;
                Self::Question(errand, body)
            }
            ANSWER => {
                let (errand, body) = read_errand(&mut reader, ANSWER_BYTES_MAX)?;
                Self::Answer(errand, body)
            }
            RESERVE => {
                let body = reader.bytes(reader.remaining(), "reservation")?;
                let message = reserve::codec::decode(&body);
                Self::Reserve(Box::new(message.map_err(|_| WireError::Invalid("reservation"))?))
            }
            FORGET => Self::Forget,
            TOKEN => {
                let node = NodeId(reader.u64("node")?);
                let len = reader.len(TOKEN_BYTES_MAX, "token length")?;
                Self::Token { node, token: reader.bytes(len, "token")? }
            }
            _ => return Err(WireError::Invalid("control message")),
        };
        reader.finish()?;
        Ok(message)
    }
}

/// Decodes a message and encodes it again, to test that both agree. The message types are private to
/// `Control`.
///
/// # Errors
/// Returns [`WireError`] if the message cannot be decoded.
#[doc(hidden)]
pub fn rewrite_message(message: Bytes) -> Result<Bytes, WireError> {
    let read = Message::decode(message)?;
    let written = read.encode();
    match Message::decode(written.clone()) {
        Ok(again) if again == read => Ok(written),
        Ok(_) | Err(_) => Err(WireError::Invalid("control message that was written again")),
    }
}

#[cfg(test)]
mod tests;

//! Nodes of this process that a program steps itself: they are neighbours over the link between the processes of the host.

use super::Transport;
use super::inbox::{Inbox, Record};
use super::meet::meet;
use super::outbox::MESSAGE;
use super::unix;
use crate::identity::Introduction;
use bytes::Bytes;
use paceline_proto::NodeId;
use std::io;
use std::os::unix::net::UnixStream as StdStream;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// The place of these nodes in messages.
const PLACE: &str = "this process";

/// The connection of a node that a program steps itself ([`paceline_node::Node`]) to a node of this process.
///
/// The stepped node is a neighbour, as every process of the host is one. Its frames for the neighbour go into
/// [`AttachedWriter::write`], and those of the neighbour come from [`Self::read`].
#[derive(Debug)]
pub struct Attachment {
    id: NodeId,
    neighbour: NodeId,
    inbox: Inbox<OwnedReadHalf>,
    writer: Option<AttachedWriter>,
}

/// The frames to the neighbour.
#[derive(Debug)]
pub struct AttachedWriter {
    writer: OwnedWriteHalf,
    records: Vec<u8>,
}

impl Attachment {
    /// Exchanges introductions over one end of a socket pair. The other end belongs to the neighbour.
    pub(crate) async fn meet(stream: StdStream, nonce: [u8; 16]) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let (mut reader, mut writer) = UnixStream::from_std(stream)?.into_split();
        let own = Introduction::anonymous(nonce);
        let met = meet(&mut reader, &mut writer, &own, None).await;
        let neighbour = met.map_err(io::Error::other)?;
        let writer = AttachedWriter { writer, records: Vec::new() };
        Ok(Self { id: own.id(), neighbour, inbox: Inbox::new(reader), writer: Some(writer) })
    }

    /// Returns the id that the stepped node must have.
    #[must_use]
    pub const fn id(&self) -> NodeId {
        self.id
    }

    /// Returns the id of the neighbour.
    #[must_use]
    pub const fn neighbour(&self) -> NodeId {
        self.neighbour
    }

    /// Returns the writer; `None` from the second call on.
    pub const fn take_writer(&mut self) -> Option<AttachedWriter> {
        self.writer.take()
    }

    /// Waits for frames of the neighbour, and adds them to `frames`. Returns false at the end of the connection. Nothing is lost if
    /// the caller stops waiting.
    pub async fn read(&mut self, frames: &mut Vec<Bytes>) -> bool {
        if !self.inbox.fill().await.unwrap_or_default() {
            return false;
        }
        while let Some(record) = self.inbox.next() {
            match record {
                Record::Frame(frame) => frames.push(frame),
                Record::Alive | Record::Message(_) => {}
                Record::Close(_) => return false,
            }
        }
        true
    }
}

impl AttachedWriter {
    /// Writes frames to the neighbour, each of at most 65,000 bytes; longer ones are left out.
    ///
    /// # Errors
    /// Returns the error of the socket, after which the connection has ended.
    pub async fn write(&mut self, frames: impl IntoIterator<Item = Bytes>) -> io::Result<()> {
        self.records.clear();
        for frame in frames {
            let length =
                u16::try_from(frame.len()).ok().filter(|length| (1..MESSAGE).contains(length));
            let Some(length) = length else { continue };
            self.records.extend_from_slice(&length.to_be_bytes());
            self.records.extend_from_slice(&frame);
        }
        self.writer.write_all(&self.records).await
    }
}

impl Transport {
    /// Accepts a process at the end of a socket pair.
    pub(crate) fn attach(&self, stream: StdStream) {
        let shared = self.shared.clone();
        let _entered = self.runtime.enter();
        let stream = stream.set_nonblocking(true).and_then(|()| UnixStream::from_std(stream));
        match stream {
            Ok(stream) => {
                let serve = |began| unix::serve(shared.clone(), PLACE.into(), stream, began);
                shared.handshakes.begin(serve);
            }
            Err(error) => shared.turned_away(PLACE, &error.to_string()),
        }
    }
}

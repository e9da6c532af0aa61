//! What carries the messages of a browser: a WebSocket, or WebTransport.

use crate::websocket::Socket;
use bytes::{Buf as _, Bytes, BytesMut};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::AsyncWriteExt as _;
use tokio_tungstenite::tungstenite::Message;
use web_transport_quinn::{RecvStream, SendStream, Session};

/// The bit of a record's length that marks a binary message.
const BINARY: u32 = 1 << 31;
/// The bytes before a record.
const HEAD: usize = 4;
/// The bytes of one read.
const READ_BYTES: usize = 64 << 10;

/// A message to a browser.
#[derive(Debug)]
pub(super) enum Out {
    Text(String),
    Binary(Bytes),
}

/// A message of a browser.
#[derive(Debug)]
pub(super) enum Arrived {
    Text(String),
    Binary(Bytes),
}

/// The messages of a browser.
pub(super) enum BrowserReader {
    Socket(SplitStream<Socket>),
    Transport(Box<TransportReader>),
}

/// The messages to a browser.
pub(super) enum BrowserWriter {
    Socket(SplitSink<Socket, Message>),
    Transport(Box<(Session, SendStream)>),
}

/// The records of a stream, and datagrams.
pub(super) struct TransportReader {
    session: Session,
    stream: RecvStream,
    buffer: BytesMut,
    message_max: usize,
}

impl BrowserReader {
    /// Returns the next message; `None` at the end of the connection. Nothing is lost if the caller stops waiting.
    pub(super) async fn next(&mut self) -> Option<Arrived> {
        match self {
            Self::Socket(socket) => loop {
                match socket.next().await? {
                    Ok(Message::Binary(bytes)) => return Some(Arrived::Binary(bytes)),
                    Ok(Message::Text(text)) => {
                        return Some(Arrived::Text(text.as_str().to_owned()));
                    }
                    Ok(Message::Close(_)) | Err(_) => return None,
                    Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => {}
                }
            },
            Self::Transport(reader) => reader.next().await,
        }
    }
}

impl TransportReader {
    pub(super) fn new(session: Session, stream: RecvStream, message_max: usize) -> Self {
        Self { session, stream, buffer: BytesMut::new(), message_max }
    }

    async fn next(&mut self) -> Option<Arrived> {
        loop {
            match self.record() {
                Ok(Some(record)) => return Some(record),
                Ok(None) => {}
                // It is no browser.
                Err(TooLong) => return None,
            }
            tokio::select! {
                datagram = self.session.read_datagram() => {
                    return datagram.ok().map(Arrived::Binary);
                }
                chunk = self.stream.read_chunk(READ_BYTES, true) => {
                    self.buffer.extend_from_slice(&chunk.ok()??.bytes);
                }
            }
        }
    }

    /// Returns the next record that has arrived whole.
    fn record(&mut self) -> Result<Option<Arrived>, TooLong> {
        let Some(head) = self.buffer.first_chunk::<HEAD>() else { return Ok(None) };
        let head = u32::from_le_bytes(*head);
        let length = usize::try_from(head & !BINARY).unwrap_or(usize::MAX);
        if length > self.message_max {
            return Err(TooLong);
        }
        if self.buffer.len() < HEAD + length {
            return Ok(None);
        }
        self.buffer.advance(HEAD);
        let bytes = self.buffer.split_to(length).freeze();
        Ok(Some(if head & BINARY != 0 {
            Arrived::Binary(bytes)
        } else {
            Arrived::Text(String::from_utf8_lossy(&bytes).into_owned())
        }))
    }
}

/// A record is longer than any message.
struct TooLong;

impl BrowserWriter {
    /// Sends a message. Returns false at the end of the connection.
    pub(super) async fn send(&mut self, message: Out) -> bool {
        match self {
            Self::Socket(socket) => {
                let message = match message {
                    Out::Text(text) => Message::text(text),
                    Out::Binary(bytes) => Message::binary(bytes),
                };
                socket.send(message).await.is_ok()
            }
            Self::Transport(ends) => send_over(ends, message).await,
        }
    }

    /// Ends the connection.
    pub(super) async fn close(mut self) {
        match &mut self {
            Self::Socket(socket) => drop(socket.close().await),
            Self::Transport(ends) => {
                let (session, stream) = ends.as_mut();
                let _ = stream.shutdown().await;
                session.close(0, b"");
            }
        }
    }
}

async fn send_over((session, stream): &mut (Session, SendStream), message: Out) -> bool {
    match message {
        // A path with small packets carries a longer one in order.
        Out::Binary(bytes) if bytes.len() <= session.max_datagram_size() => {
            session.send_datagram(bytes).is_ok()
        }
        Out::Binary(bytes) => write_record(stream, BINARY, &bytes).await,
        Out::Text(text) => write_record(stream, 0, text.as_bytes()).await,
    }
}

async fn write_record(stream: &mut SendStream, mark: u32, bytes: &[u8]) -> bool {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX) & !BINARY;
    let mut record = Vec::with_capacity(HEAD + bytes.len());
    record.extend_from_slice(&(length | mark).to_le_bytes());
    record.extend_from_slice(bytes);
    stream.write_all(&record).await.is_ok()
}

//! The messages between the two ends of an invitation, and the causes of failures.

use super::authority::Issued;
use rustls::crypto::CryptoProvider;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};

/// The longest time of one exchange. It begins with the connection, and slow bytes do not extend it.
pub(super) const EXCHANGE_WITHIN: Duration = Duration::from_secs(10);
/// The longest request and the longest answer in bytes.
pub(super) const ASK_BYTES_MAX: u64 = 4 << 10;
pub(super) const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// The request of the joining end.
#[derive(Serialize, Deserialize)]
pub(super) struct Ask {
    pub(super) secret: Vec<u8>,
    /// The public key, an uncompressed point of P-256.
    pub(super) key: Vec<u8>,
}

/// The answer: the files of the new node, or the reason for a refusal.
#[derive(Serialize, Deserialize)]
pub(super) enum Answer {
    Issued(Issued),
    Refused(String),
}

/// The cause of a failed exchange.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Failure {
    WrongCode,
    /// The handshake took too long.
    SlowTls,
    /// The message took too long.
    SlowMessage,
    Tls(String),
    /// The connection was closed before a message.
    Closed,
    Message(String),
    /// The connection made room for another one.
    Displaced,
}

impl Failure {
    /// Returns the cause of an error of a connection.
    pub(super) fn of(error: &io::Error) -> Self {
        use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        match [BrokenPipe, ConnectionReset, UnexpectedEof].contains(&error.kind()) {
            true => Self::Closed,
            false => Self::Tls(error.to_string()),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let within = EXCHANGE_WITHIN.as_secs();
        match self {
            Self::WrongCode => f.write_str("wrong code"),
            Self::SlowTls => write!(f, "timed out: no TLS handshake within {within} s"),
            Self::SlowMessage => write!(f, "timed out: no message within {within} s"),
            Self::Tls(why) => write!(f, "TLS failed: {why}"),
            Self::Closed => f.write_str("the connection was closed before a message"),
            Self::Message(why) => write!(f, "not a message of paceline trust: {why}"),
            Self::Displaced => f.write_str("closed to make room for newer connections"),
        }
    }
}

impl std::error::Error for Failure {}

/// Returns the algorithms of both ends.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Sends a message.
pub(super) async fn send(
    to: &mut (impl AsyncWrite + Unpin),
    message: &impl Serialize,
) -> Result<(), Failure> {
    let mut line =
        serde_json::to_vec(message).map_err(|error| Failure::Message(error.to_string()))?;
    line.push(b'\n');
    to.write_all(&line).await.map_err(|error| Failure::of(&error))?;
    to.flush().await.map_err(|error| Failure::of(&error))
}

/// Receives a message of at most `bytes_max`.
pub(super) async fn receive<T: for<'d> Deserialize<'d>>(
    from: &mut (impl AsyncRead + Unpin),
    bytes_max: u64,
) -> Result<T, Failure> {
    let mut line = Vec::new();
    let mut reader = BufReader::new(from.take(bytes_max));
    let read = reader.read_until(b'\n', &mut line).await;
    match read {
        Ok(_) if line.is_empty() => Err(Failure::Closed),
        Ok(_) => serde_json::from_slice(&line).map_err(|error| Failure::Message(error.to_string())),
        Err(error) => Err(Failure::of(&error)),
    }
}

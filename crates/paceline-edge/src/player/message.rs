//! Requests, and packets between them, from the bytes of a connection.

use rtsp_types::headers::{AUTHORIZATION, CSEQ, REQUIRE, SESSION, TRANSPORT, USER_AGENT};
use rtsp_types::{HeaderName, Message, Method, ParseError, Request, Version};
use thiserror::Error;
use url::Url;

/// Longest request in bytes.
const REQUEST_BYTES_MAX: usize = 16 * 1024;
/// Longest value of a header that is read.
const VALUE_BYTES_MAX: usize = 2_048;
/// The bytes before a packet in the connection (RFC 2326, 10.12).
const FRAME_BYTES: usize = 4;

/// The reason why bytes are no request. The connection has no further requests that could be found.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum RtspError {
    /// It is too long.
    #[error("the request has more than {REQUEST_BYTES_MAX} bytes")]
    Long,
    /// It cannot be read.
    #[error("the request is not RTSP, or its address is not rtsp://HOST/TAG")]
    Syntax,
}

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlayerMethod {
    /// Lists the methods.
    Options,
    /// Requests a description.
    Describe,
    /// Requests a track.
    Setup,
    /// Starts the packets.
    Play,
    /// Stops the packets.
    Pause,
    /// Ends the session.
    Teardown,
    /// `GET_PARAMETER` or `SET_PARAMETER`: keeps the session alive.
    KeepAlive,
    /// A method that is not served.
    Other,
}

/// A request of a player.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayerRequest {
    /// The method.
    pub method: PlayerMethod,
    /// The method as it was written, for the check of a login.
    pub(super) word: String,
    /// The address; `None` for `*`.
    pub url: Option<Url>,
    /// The number that the answer repeats.
    pub(super) cseq: Option<u32>,
    /// The session.
    pub(super) session: Option<String>,
    /// The transports that the player proposes.
    pub(super) transport: Option<String>,
    /// The login.
    pub(super) authorization: Option<String>,
    /// The features that it requires.
    pub(super) require: Option<String>,
    /// The name of the player, without control characters.
    pub agent: Option<String>,
    /// True for RTSP 1.0.
    pub(super) known_version: bool,
    /// True if it has a body.
    pub(super) has_body: bool,
}

/// A message of a player.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlayerMessage {
    /// A request.
    Request(Box<PlayerRequest>),
    /// A packet on a channel of the connection, such as a report.
    Packet {
        /// The channel.
        channel: u8,
        /// The packet.
        bytes: Vec<u8>,
    },
}

/// Cuts the bytes of a connection into messages.
///
/// ```
/// use paceline_edge::{PlayerMessage, PlayerMethod, PlayerReader};
///
/// let mut reader = PlayerReader::default();
/// reader.push(b"OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n$\x01\x00\x02ab");
/// let Some(PlayerMessage::Request(request)) = reader.poll()? else { panic!() };
/// assert_eq!(request.method, PlayerMethod::Options);
/// assert_eq!(reader.poll()?, Some(PlayerMessage::Packet { channel: 1, bytes: b"ab".to_vec() }));
/// assert_eq!(reader.poll()?, None);
/// # Ok::<(), paceline_edge::RtspError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct PlayerReader {
    bytes: Vec<u8>,
    /// The bytes that the next message has at least.
    needed: usize,
}

impl PlayerReader {
    /// Adds received bytes. Call [`Self::poll`] until it returns `None` afterwards: no more than one message waits.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns true if a part of a message waits.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Returns the next whole message.
    ///
    /// # Errors
    /// [`RtspError`] for bytes that are no message. Close the connection then.
    pub fn poll(&mut self) -> Result<Option<PlayerMessage>, RtspError> {
        let blank = self.bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        self.bytes.drain(..blank);
        if self.bytes.first() == Some(&b'$') {
            return Ok(self.packet());
        }
        if self.bytes.len() < self.needed || !self.has_head() {
            return self.wait();
        }
        match Message::<Vec<u8>>::parse(&self.bytes) {
            Ok((message, length)) => {
                self.bytes.drain(..length.min(self.bytes.len()));
                self.needed = 0;
                match message {
                    Message::Request(request) => {
                        Ok(Some(PlayerMessage::Request(Box::new(PlayerRequest::of(&request)))))
                    }
                    Message::Response(_) | Message::Data(_) => Err(RtspError::Syntax),
                }
            }
            Err(ParseError::Incomplete(more)) => {
                let more = more.map_or(1, std::num::NonZero::get);
                self.needed = self.bytes.len().saturating_add(more);
                if self.needed > REQUEST_BYTES_MAX { Err(RtspError::Long) } else { self.wait() }
            }
            Err(ParseError::Error) => Err(RtspError::Syntax),
        }
    }

    fn wait(&self) -> Result<Option<PlayerMessage>, RtspError> {
        if self.bytes.len() > REQUEST_BYTES_MAX { Err(RtspError::Long) } else { Ok(None) }
    }

    /// Returns true if the headers of a request are complete.
    fn has_head(&self) -> bool {
        self.bytes.windows(4).any(|bytes| bytes == b"\r\n\r\n")
    }

    fn packet(&mut self) -> Option<PlayerMessage> {
        let &[_, channel, a, b] = self.bytes.first_chunk::<FRAME_BYTES>()?;
        let end = FRAME_BYTES + usize::from(u16::from_be_bytes([a, b]));
        let bytes = self.bytes.get(FRAME_BYTES..end)?.to_vec();
        self.bytes.drain(..end);
        Some(PlayerMessage::Packet { channel, bytes })
    }
}

impl PlayerRequest {
    fn of(request: &Request<Vec<u8>>) -> Self {
        let value = |name: &HeaderName| {
            let value = request.header(name).map(|value| value.as_str().trim().to_owned());
            value.filter(|value| value.len() <= VALUE_BYTES_MAX)
        };
        let method = match request.method() {
            Method::Options => PlayerMethod::Options,
            Method::Describe => PlayerMethod::Describe,
            Method::Setup => PlayerMethod::Setup,
            Method::Play => PlayerMethod::Play,
            Method::Pause => PlayerMethod::Pause,
            Method::Teardown => PlayerMethod::Teardown,
            Method::GetParameter | Method::SetParameter => PlayerMethod::KeepAlive,
            Method::PlayNotify
            | Method::Redirect
            | Method::Announce
            | Method::Record
            | Method::Extension(_) => PlayerMethod::Other,
        };
        let plain = |text: String| text.chars().filter(|c| !c.is_control()).take(80).collect();
        Self {
            method,
            word: <&str>::from(request.method()).to_owned(),
            url: request.request_uri().cloned(),
            cseq: value(&CSEQ).and_then(|text| text.parse().ok()),
            session: value(&SESSION)
                .map(|text| text.split(';').next().unwrap_or_default().trim().to_owned()),
            transport: value(&TRANSPORT),
            authorization: value(&AUTHORIZATION),
            require: value(&REQUIRE),
            agent: value(&USER_AGENT).map(plain),
            known_version: request.version() == Version::V1_0,
            has_body: !request.body().is_empty(),
        }
    }
}

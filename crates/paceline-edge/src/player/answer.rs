//! Answers to requests.

use super::message::PlayerRequest;
use rtsp_types::headers::{CSEQ, SERVER};
use rtsp_types::{HeaderName, Response, StatusCode, Version};

/// Most characters of a reason. ffmpeg shows 255 bytes.
const REASON_MAX: usize = 400;

/// The status of an answer (RFC 2326, 11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlayerStatus {
    /// The request is carried out.
    Ok,
    /// The request cannot be read, or an option of its address is wrong.
    BadRequest,
    /// A login is missing or wrong.
    Unauthorized,
    /// Nobody publishes the tag.
    NotFound,
    /// The method is not served.
    MethodNotAllowed,
    /// Players do not read the samples.
    UnsupportedMediaType,
    /// A parameter is not known.
    ParameterNotUnderstood,
    /// A path refuses the contract.
    NotEnoughBandwidth,
    /// There is no such session.
    SessionNotFound,
    /// The method is not possible now.
    NotValidInThisState,
    /// A session has one address.
    AggregateNotAllowed,
    /// No proposed transport is served.
    UnsupportedTransport,
    /// The server cannot take more players, or the path does not answer.
    ServiceUnavailable,
    /// The version of RTSP is not served.
    VersionNotSupported,
    /// A required feature is not served.
    OptionNotSupported,
}

impl PlayerStatus {
    const fn code(self) -> StatusCode {
        match self {
            Self::Ok => StatusCode::Ok,
            Self::BadRequest => StatusCode::BadRequest,
            Self::Unauthorized => StatusCode::Unauthorized,
            Self::NotFound => StatusCode::NotFound,
            Self::MethodNotAllowed => StatusCode::MethodNotAllowed,
            Self::UnsupportedMediaType => StatusCode::UnsupportedMediaType,
            Self::ParameterNotUnderstood => StatusCode::ParameterNotUnderstood,
            Self::NotEnoughBandwidth => StatusCode::NotEnoughBandwidth,
            Self::SessionNotFound => StatusCode::SessionNotFound,
            Self::NotValidInThisState => StatusCode::MethodNotValidInThisState,
            Self::AggregateNotAllowed => StatusCode::AggregateOperationNotAllowed,
            Self::UnsupportedTransport => StatusCode::UnsupportedTransport,
            Self::ServiceUnavailable => StatusCode::ServiceUnavailable,
            Self::VersionNotSupported => StatusCode::RTSPVersionNotSupported,
            Self::OptionNotSupported => StatusCode::OptionNotSupported,
        }
    }

    /// Returns the usual words for the status.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::BadRequest => "Bad Request",
            Self::Unauthorized => "Unauthorized",
            Self::NotFound => "Not Found",
            Self::MethodNotAllowed => "Method Not Allowed",
            Self::UnsupportedMediaType => "Unsupported Media Type",
            Self::ParameterNotUnderstood => "Parameter Not Understood",
            Self::NotEnoughBandwidth => "Not Enough Bandwidth",
            Self::SessionNotFound => "Session Not Found",
            Self::NotValidInThisState => "Method Not Valid in This State",
            Self::AggregateNotAllowed => "Aggregate Operation Not Allowed",
            Self::UnsupportedTransport => "Unsupported Transport",
            Self::ServiceUnavailable => "Service Unavailable",
            Self::VersionNotSupported => "RTSP Version Not Supported",
            Self::OptionNotSupported => "Option Not Supported",
        }
    }
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayerAnswer {
    status: PlayerStatus,
    reason: String,
    headers: Vec<(HeaderName, String)>,
    body: Vec<u8>,
}

impl PlayerAnswer {
    /// Returns the answer to a request that is carried out.
    #[must_use]
    pub fn ok() -> Self {
        Self {
            status: PlayerStatus::Ok,
            reason: String::new(),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// Returns a refusal. The reason follows the usual words of the status, because players show the status line alone; it is the
    /// body as well.
    #[must_use]
    pub fn refusal(status: PlayerStatus, reason: &str) -> Self {
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let reason: String = reason.chars().map(plain).take(REASON_MAX).collect();
        let body = format!("{reason}\r\n").into_bytes();
        let headers = vec![(rtsp_types::headers::CONTENT_TYPE, "text/plain".to_owned())];
        Self { status, reason, headers, body }
    }

    /// Returns the status.
    #[must_use]
    pub const fn status(&self) -> PlayerStatus {
        self.status
    }

    /// Returns the reason of a refusal.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    pub(super) fn header(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        let value: String = value.into();
        self.headers.push((name, value.replace(['\r', '\n'], " ")));
        self
    }

    pub(super) fn body(mut self, kind: &str, body: Vec<u8>) -> Self {
        self.body = body;
        self.header(rtsp_types::headers::CONTENT_TYPE, kind)
    }

    /// Returns the answer as it is sent.
    #[must_use]
    pub fn to_bytes(&self, request: Option<&PlayerRequest>) -> Vec<u8> {
        let words = self.status.words();
        let line = match self.reason.as_str() {
            "" => words.to_owned(),
            reason => format!("{words}: {reason}"),
        };
        let mut response = Response::builder(Version::V1_0, self.status.code()).reason_phrase(line);
        if let Some(cseq) = request.and_then(|request| request.cseq) {
            response = response.header(CSEQ, cseq.to_string());
        }
        response = response.header(SERVER, "Paceline");
        for (name, value) in &self.headers {
            response = response.header(name.clone(), value.clone());
        }
        let mut bytes = Vec::new();
        let written = match self.body.as_slice() {
            [] => response.empty().write(&mut bytes),
            body => response.build(body).write(&mut bytes),
        };
        // Memory takes everything.
        written.map(|()| bytes).unwrap_or_default()
    }
}

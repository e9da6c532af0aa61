//! Connections that leave HTTP for the WebSocket protocol (RFC 6455).

use super::answer::{self, Answer};
use super::guard::Refused;
use hyper::header::{
    CONNECTION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

/// A connection after the upgrade.
pub(crate) type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// The texts and protocols of a place that serves WebSocket.
pub(crate) struct WebSocketPlace {
    /// The answer to a request that is not one of WebSocket.
    pub(crate) instead: &'static str,
    /// The protocols in words, for the error.
    pub(crate) protocols: &'static str,
    /// Chooses a protocol from the ones that the client offers.
    pub(crate) choose: fn(&str) -> Option<&'static str>,
}

impl WebSocketPlace {
    /// Answers a request for a connection.
    ///
    /// # Errors
    /// Returns the status and the reason if it is no such request.
    pub(crate) fn begin<B>(
        &self,
        request: &mut Request<B>,
    ) -> Result<(Answer, OnUpgrade), Refused> {
        let bad = |error: String| (StatusCode::BAD_REQUEST, error);
        let headers = request.headers();
        if !has_word(headers, UPGRADE, "websocket") || !has_word(headers, CONNECTION, "upgrade") {
            return Err((StatusCode::UPGRADE_REQUIRED, self.instead.to_owned()));
        }
        if headers.get(SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
            return Err(bad("Sec-WebSocket-Version must be 13".to_owned()));
        }
        let key = headers.get(SEC_WEBSOCKET_KEY);
        let key = key.ok_or_else(|| bad("Sec-WebSocket-Key is missing".to_owned()))?;
        let accept = HeaderValue::try_from(derive_accept_key(key.as_bytes()));
        let accept = accept.map_err(|error| bad(format!("Sec-WebSocket-Key: {error}")))?;
        let offered = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
        let offered: Vec<&str> = offered.filter_map(|value| value.to_str().ok()).collect();
        let protocol = (self.choose)(&offered.join(",")).ok_or_else(|| {
            let given = if offered.is_empty() { "none".to_owned() } else { offered.join(", ") };
            bad(format!("the protocol must be {}, not {given}", self.protocols))
        })?;
        let mut answer = answer::nothing();
        *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = answer.headers_mut();
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
        headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
        Ok((answer, hyper::upgrade::on(request)))
    }
}

fn has_word(headers: &HeaderMap, name: HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|one| one.trim().eq_ignore_ascii_case(word))
}

/// Waits for the connection, whose messages have at most `message_max` bytes. At most `waiting_max` bytes wait for the client
/// besides the message that is being sent.
pub(crate) async fn connected(
    upgraded: OnUpgrade,
    (message_max, waiting_max): (usize, usize),
) -> Option<Socket> {
    let io = match upgraded.await {
        Ok(io) => io,
        Err(error) => {
            tracing::debug!("a connection of WebSocket did not begin: {error}");
            return None;
        }
    };
    let config = WebSocketConfig::default()
        .max_message_size(Some(message_max))
        .max_frame_size(Some(message_max))
        .write_buffer_size(0)
        .max_write_buffer_size(waiting_max);
    let io = TokioIo::new(io);
    Some(WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await)
}

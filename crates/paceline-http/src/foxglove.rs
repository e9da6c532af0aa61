//! A live connection of Foxglove: the topics of the network as channels of its WebSocket protocol, each at the contract that
//! the viewer requests (docs/guides/foxglove.md).
//!
//! The query of the address that is opened is the request for every topic, `ws://127.0.0.1:8765/?max_hz=10&within=200ms`; a
//! parameter with the name of a tag replaces it for that tag.

mod channels;
mod feed;
mod protocol;
mod session;

use super::answer::{self, Answer};
use super::guard::Refused;
use super::request::{TOKEN, ViewerRequest};
use hyper::header::{
    CONNECTION, HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use paceline::Node;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

/// The largest message of a client in bytes. A thousand subscriptions need 40 kB.
const MESSAGE_MAX: usize = 256 << 10;
/// The bytes that may wait for a client besides the message that is being sent.
const WAITING_MAX: usize = 1 << 20;

/// A connection that is about to leave HTTP.
pub(super) struct Upgrade {
    upgraded: OnUpgrade,
    request: ViewerRequest,
}

/// Answers the request of a viewer for a connection.
///
/// # Errors
/// Returns the status and the reason if it is no such request, or the query is wrong.
pub(super) fn upgrade<B>(request: &mut Request<B>) -> Result<(Answer, Upgrade), Refused> {
    let bad = |error: String| (StatusCode::BAD_REQUEST, error);
    let headers = request.headers();
    if !has_word(headers, UPGRADE, "websocket") || !has_word(headers, CONNECTION, "upgrade") {
        let error = "this port serves Foxglove: choose 'Open connection' there, and give ws:// with this address";
        return Err((StatusCode::UPGRADE_REQUIRED, error.to_owned()));
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
    let protocol = protocol::subprotocol(&offered.join(",")).ok_or_else(|| {
        let given = if offered.is_empty() { "none".to_owned() } else { offered.join(", ") };
        bad(format!(
            "the protocol must be foxglove.sdk.v1 or foxglove.websocket.v1, not {given}: use a client of Foxglove"
        ))
    })?;
    let wanted =
        ViewerRequest::from_query(request.uri().query().unwrap_or_default()).map_err(bad)?;
    let mut answer = answer::nothing();
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = answer.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
    Ok((answer, Upgrade { upgraded: hyper::upgrade::on(request), request: wanted }))
}

/// Returns the token of a query.
pub(super) fn token(query: &str) -> Option<&str> {
    query.split('&').find_map(|pair| pair.strip_prefix(TOKEN)?.strip_prefix('='))
}

fn has_word(headers: &HeaderMap, name: hyper::header::HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|one| one.trim().eq_ignore_ascii_case(word))
}

impl Upgrade {
    /// Serves the connection until either side ends it.
    pub(super) async fn serve(self, node: Node) {
        let io = match self.upgraded.await {
            Ok(io) => io,
            Err(error) => {
                tracing::debug!("Foxglove: a connection did not begin: {error}");
                return;
            }
        };
        let config = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE_MAX))
            .max_frame_size(Some(MESSAGE_MAX))
            .write_buffer_size(0)
            .max_write_buffer_size(WAITING_MAX);
        let io = TokioIo::new(io);
        let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
        session::run(socket, node, self.request).await;
    }
}

/// A connection after the upgrade.
type Socket = WebSocketStream<TokioIo<Upgraded>>;

#[cfg(test)]
mod tests {
    use super::token;

    #[test]
    fn a_token_is_one_of_the_options_of_an_address() {
        assert_eq!(token("max_hz=5&token=0123456789abcdef"), Some("0123456789abcdef"));
        assert_eq!(token("max_hz=5&tokens=0123456789abcdef"), None);
        assert_eq!(token(""), None);
    }
}

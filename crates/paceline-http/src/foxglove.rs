//! A live connection of Foxglove: the topics of the network as channels of its WebSocket protocol, each at the contract that
//! the viewer requests (docs/guides/foxglove.md).
//!
//! The query of the address that is opened is the request for every topic, `ws://127.0.0.1:8765/?max_hz=10&within=200ms`; a
//! parameter with the name of a tag replaces it for that tag.

mod channels;
mod feed;
mod protocol;
mod session;

use super::answer::Answer;
use super::guard::Refused;
use super::request::{TOKEN, ViewerRequest};
use super::websocket::{WebSocketPlace, connected};
use hyper::upgrade::OnUpgrade;
use hyper::{Request, StatusCode};
use paceline::Node;

/// The largest message of a client in bytes. A thousand subscriptions need 40 kB.
const MESSAGE_MAX: usize = 256 << 10;
/// The bytes that may wait for a client besides the message that is being sent.
const WAITING_MAX: usize = 1 << 20;
/// What the port serves.
const PLACE: WebSocketPlace = WebSocketPlace {
    instead: "this port serves Foxglove: choose 'Open connection' there, and give ws:// with this address",
    protocols: "foxglove.sdk.v1 or foxglove.websocket.v1 of a client of Foxglove",
    choose: protocol::subprotocol,
};

/// A connection that is about to leave HTTP.
pub(super) struct ViewerUpgrade {
    upgraded: OnUpgrade,
    request: ViewerRequest,
}

/// Answers the request of a viewer for a connection.
///
/// # Errors
/// Returns the status and the reason if it is no such request, or the query is wrong.
pub(super) fn upgrade<B>(request: &mut Request<B>) -> Result<(Answer, ViewerUpgrade), Refused> {
    let wanted = ViewerRequest::from_query(request.uri().query().unwrap_or_default());
    let (answer, upgraded) = PLACE.begin(request)?;
    let request = wanted.map_err(|error| (StatusCode::BAD_REQUEST, error))?;
    Ok((answer, ViewerUpgrade { upgraded, request }))
}

/// Returns the token of a query.
pub(super) fn token(query: &str) -> Option<&str> {
    query.split('&').find_map(|pair| pair.strip_prefix(TOKEN)?.strip_prefix('='))
}

impl ViewerUpgrade {
    /// Serves the connection until either side ends it.
    pub(super) async fn serve(self, node: Node) {
        if let Some(socket) = connected(self.upgraded, (MESSAGE_MAX, WAITING_MAX)).await {
            session::run(socket, node, self.request).await;
        }
    }
}

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

//! Browsers as peers: subscriptions with contracts, and publishers, for a page (docs/guides/browser.md).
//!
//! The nodes of the browsers are values of [`paceline_edge::browser`]; this module is their I/O: a WebSocket for each browser, and
//! one task that steps all of them.

mod browsers;
mod carrier;
mod connection;
mod hub;
mod protocol;
mod timer;
mod transport;
mod words;

pub(crate) use browsers::Browsers;

use super::answer::Answer;
use super::guard::Refused;
use super::websocket::{WebSocketPlace, connected};
use carrier::{BrowserReader, BrowserWriter};
use futures_util::StreamExt as _;
use hyper::Request;
use hyper::upgrade::OnUpgrade;

/// The path of a browser's connection.
pub(super) const PATH: &str = "/api/v1/browser";
/// The path at which a page asks for a connection over WebTransport.
pub(super) const TRANSPORT_PATH: &str = "/api/v1/webtransport";
/// The protocol of its messages.
const PROTOCOL: &str = "paceline.browser.v1";
/// The largest message of a browser in bytes: a sample, at most a picture of a camera.
const MESSAGE_MAX: usize = 16 << 20;
/// The bytes that may wait for a browser besides the message that is being sent. The window of its link is smaller.
const WAITING_MAX: usize = 4 << 20;
const PLACE: WebSocketPlace = WebSocketPlace {
    instead: "this path is for connect() of /client.js: see docs/guides/browser.md",
    protocols: PROTOCOL,
    choose: |offered| offered.split(',').any(|one| one.trim() == PROTOCOL).then_some(PROTOCOL),
};

/// The rights of a browser.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum BrowserRights {
    /// It may subscribe.
    Read,
    /// It may also publish.
    Change,
}

/// A connection that is about to leave HTTP.
pub(crate) struct BrowserUpgrade {
    upgraded: OnUpgrade,
    rights: BrowserRights,
    from: String,
}

/// Answers the request of a browser for a connection.
///
/// # Errors
/// Returns the status and the reason if it is no such request.
pub(super) fn upgrade<B>(
    request: &mut Request<B>,
    rights: BrowserRights,
    from: &str,
) -> Result<(Answer, BrowserUpgrade), Refused> {
    let (answer, upgraded) = PLACE.begin(request)?;
    Ok((answer, BrowserUpgrade { upgraded, rights, from: from.to_owned() }))
}

impl BrowserUpgrade {
    /// Serves the connection until either side ends it.
    pub(super) async fn serve(self, browsers: &Browsers) {
        if let Some(socket) = connected(self.upgraded, (MESSAGE_MAX, WAITING_MAX)).await {
            let (to, from) = socket.split();
            let ends = (BrowserReader::Socket(from), BrowserWriter::Socket(to));
            connection::run(ends, &browsers.hub, self.rights, &self.from).await;
        }
    }
}

//! What every request needs: the newest reading and the source.

use super::access::Access;
use super::api::State;
use super::guard::Guard;
use super::history::History;
use super::source::Source;
use super::webrtc;
use crate::browser::{BrowserUpgrade, Browsers};
use crate::foxglove::ViewerUpgrade;
use crate::slots::{Client, Slot};
use hyper::body::Bytes;
use paceline::Node;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::watch;

/// One reading, serialised once for all clients.
pub(super) struct Tick {
    pub(super) state: State,
    event: OnceLock<Bytes>,
}

impl Tick {
    pub(super) const fn new(state: State) -> Self {
        Self { state, event: OnceLock::new() }
    }

    /// Returns the reading as a server-sent event.
    pub(super) fn event(&self) -> Bytes {
        let written = || {
            let text = serde_json::to_string(&self.state).unwrap_or_default();
            Bytes::from(format!("event: state\ndata: {text}\n\n"))
        };
        self.event.get_or_init(written).clone()
    }
}

/// The newest reading; `None` before the first.
pub(super) type Ticks = watch::Receiver<Option<Arc<Tick>>>;

/// The shared state of all requests.
pub(super) struct Served {
    pub(super) guard: Guard,
    pub(super) access: Option<Access>,
    pub(super) source: Arc<dyn Source>,
    pub(super) ticks: Ticks,
    pub(super) history: Arc<History>,
    /// The node whose samples are served to Foxglove; `None` for the page and the API.
    pub(super) foxglove: Option<Node>,
    /// The browsers that are peers; `None` if the server combines several nodes.
    pub(super) browsers: Option<Browsers>,
    /// The sessions of WebRTC, if they are served.
    pub(super) webrtc: Option<Arc<webrtc::Shared>>,
}

/// A connection that is about to leave HTTP.
pub(super) enum Upgrade {
    /// For Foxglove.
    Viewer(ViewerUpgrade),
    /// For a browser with contracts.
    Browser(BrowserUpgrade),
}

/// The connection that sent a request.
pub(super) struct Peer {
    /// Its address for the audit log.
    pub(super) from: String,
    /// Its owner while no token says more.
    pub(super) client: Client,
    pub(super) slot: Slot,
    /// The connection of WebSocket that follows this one.
    pub(super) upgrade: Mutex<Option<Upgrade>>,
}

impl Peer {
    /// Takes the connection that follows this one, if any.
    pub(super) fn take_upgrade(&self) -> Option<Upgrade> {
        self.upgrade.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

//! The browsers of an HTTP server.

use super::BrowserRights;
use super::hub::HubTask;
use super::transport::{Offered, TransportServer};
use crate::address::HttpAddress;
use paceline::Node;
use std::sync::Arc;

/// The browsers of a server.
pub(crate) struct Browsers {
    pub(super) hub: Arc<HubTask>,
    /// The server of WebTransport; `None` on a unix socket, or if its port is in use.
    transport: Option<Arc<TransportServer>>,
}

impl Browsers {
    /// Serves browsers for a node, next to an HTTP server at this address. Call it on the runtime that serves them.
    pub(crate) fn start(node: Node, address: &HttpAddress) -> Self {
        let transport = match address {
            HttpAddress::Unix(_) => None,
            HttpAddress::Tcp(address) => match TransportServer::open(*address) {
                Ok(server) => Some(Arc::new(server)),
                Err(error) => {
                    tracing::info!("no WebTransport, browsers use WebSocket: {error:#}");
                    None
                }
            },
        };
        let hub = Arc::new(HubTask::new(node));
        if let Some(server) = transport.clone() {
            tokio::spawn(server.run(hub.clone()));
        }
        Self { hub, transport }
    }

    /// Returns the parameters of a connection over WebTransport; `None` if it is not served.
    pub(crate) fn offer(&self, rights: BrowserRights) -> Option<anyhow::Result<Offered>> {
        Some(self.transport.as_ref()?.offer(rights))
    }
}

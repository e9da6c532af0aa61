//! The HTTP server of a node: a JSON API, server-sent events, metrics and the dashboard (docs/reference/dashboard.md).
//!
//! ```
//! let node = paceline::Node::builder().isolated().open()?;
//! let server = paceline_http::serve(&node, "127.0.0.1:0")?;
//! println!("dashboard: {}", server.url());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! One thread serves all clients. The server is not involved in the delivery of samples. It queries the engine once per
//! second, and requests pictures only while a client displays them. Dropping the [`HttpServer`] ends it.
//!
//! [`HttpServer::start`] serves other hosts, with TLS and tokens ([`Access`]), and other data than one node ([`Source`]). [`HttpServer::foxglove`] serves samples to Foxglove (docs/guides/foxglove.md),
//! [`RtspServer`] serves them to players of RTSP (docs/guides/players.md), and [`WebrtcServer`] to browsers (docs/guides/webrtc.md).

mod access;
mod address;
mod answer;
mod api;
mod browser;
pub mod change;
mod datagrams;
mod events;
mod far;
mod feeds;
mod foxglove;
mod gateway;
mod guard;
mod history;
mod look;
mod metrics;
mod pages;
mod patience;
mod pictures;
mod request;
mod route;
mod rtsp;
mod served;
mod server;
pub mod slots;
mod source;
pub mod status;
mod values;
mod watched;
mod webrtc;
mod websocket;

pub use access::Access;
pub use address::{HttpAddress, HttpFiles, PORT};
pub use api::{
    Change, Comparison, ContractState, Known, ObserverState, State, Switch, WorldReading,
    WorldState,
};
pub use gateway::{Compare, Gateway, SwitchTurn};
pub use hyper::StatusCode;
pub use pictures::Shown;
pub use rtsp::{RtspAddress, RtspServer, read_login};
pub use server::HttpServer;
pub use source::{Neighbours, OwnSource, Source};
pub use watched::NoPicture;
pub use webrtc::{WebrtcAddress, WebrtcServer};

use paceline::Node;
use paceline_tool::exit;
use std::sync::Arc;

/// Serves `node` on an address of this host, such as `127.0.0.1:8470` or `unix:/run/paceline/api.sock`; port 0 selects
/// a free one. While a page is open, it includes all nodes that answer, with at most 2 % of the smallest link.
///
/// # Errors
/// Returns an error if the address is invalid, in use, or reachable by other hosts, which needs TLS and tokens.
pub fn serve(node: &Node, address: &str) -> anyhow::Result<HttpServer> {
    let address: HttpAddress = address.parse().map_err(exit::usage)?;
    HttpServer::start(&address, None, Arc::new(OwnSource::new(node, Neighbours::All)))
}

//! The demo's dashboard: all of its nodes, and switches for additional load.

use super::children::{Children, Orders};
use super::fifo;
use super::scenario::Role;
use paceline_http::{Gateway, HttpServer, Source, Switch};
use paceline_http::{HttpAddress, PORT};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// The name of the switch that overloads the thin link, on the page and in commands to the
/// children.
pub(crate) const FLOOD: &str = "flood";
/// The name of the switch that requests more than the thin link's capacity.
pub(crate) const GREED: &str = "greed";

/// Starts the HTTP server.
pub(crate) fn serve(
    address: Option<&HttpAddress>,
    children: &Children,
) -> anyhow::Result<HttpServer> {
    let orders = children.orders();
    let turn = Box::new(move |name: &str, on: bool| turn(&orders, name, on));
    let source = Arc::new(Gateway::new(children.sockets(), switches(), turn, compare));
    start(address, source)
}

/// Starts a server at `address`, by default at the usual port or, if that is in use, at a free one.
pub(super) fn start(
    address: Option<&HttpAddress>,
    source: Arc<impl Source>,
) -> anyhow::Result<HttpServer> {
    if let Some(address) = address {
        return HttpServer::start(address, None, source);
    }
    let usual = HttpAddress::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)));
    HttpServer::start(&usual, None, source.clone()).or_else(|_| {
        // The default port is in use, probably by another demo; use any other port.
        let any = HttpAddress::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        HttpServer::start(&any, None, source)
    })
}

fn compare() -> Option<bytes::Bytes> {
    serde_json::to_vec(&fifo::compare()?).ok().map(Into::into)
}

fn switches() -> Vec<Switch> {
    let switch = |name: &str, label: &str, about: &str| Switch {
        name: name.to_owned(),
        label: label.to_owned(),
        about: about.to_owned(),
        on: false,
    };
    vec![
        switch(
            FLOOD,
            "Flood the thin link",
            "The operator also subscribes to robot/bulk without a contract, at six times the \
             capacity of the link.",
        ),
        switch(
            GREED,
            "Request too much",
            "The operator also requests every full-size picture within 200 ms, which exceeds the \
             link.",
        ),
    ]
}

fn turn(orders: &Orders, name: &str, on: bool) -> bool {
    let roles: &[Role] = match name {
        FLOOD => &[Role::Robot, Role::Operator],
        GREED => &[Role::Operator],
        _ => return false,
    };
    orders.give(roles, &format!("{name} {}", if on { "on" } else { "off" }))
}

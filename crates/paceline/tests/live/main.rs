//! Nodes of one process over real Zenoh sessions and real sockets.

mod faults;
mod meeting;
mod pictures;
mod refusals;
mod support;
mod thin_link;

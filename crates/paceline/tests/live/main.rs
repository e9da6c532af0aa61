//! Nodes of one process over real Zenoh sessions and real sockets.
#![cfg(test)]

mod cable;
mod counts;
mod faults;
mod meeting;
mod net;
mod pictures;
mod refusals;
mod scenarios;
mod support;
mod thin_link;

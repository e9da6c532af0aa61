//! HTTP for people and programs that look at a node: a JSON API, server-sent events, metrics and the page
//! (docs/dashboard.md).
//!
//! One thread serves all clients. Nothing here is on the way of a sample: it asks the engine once a second,
//! and pictures only while somebody looks at them.

mod address;
mod answer;
mod api;
mod events;
mod gateway;
mod guard;
mod metrics;
mod pages;
mod patience;
mod pictures;
mod route;
mod server;
mod source;

pub(crate) use address::{HttpAddress, PORT};
pub(crate) use api::Switch;
pub(crate) use gateway::Gateway;
pub(crate) use server::Http;
pub(crate) use source::{Neighbours, OwnSource};

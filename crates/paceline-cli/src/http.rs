//! The HTTP server of a node: a JSON API, server-sent events, metrics and the dashboard
//! (docs/reference/dashboard.md).
//!
//! One thread serves all clients. The server is not involved in the delivery of samples. It queries
//! the engine once per second, and requests pictures only while a client displays them.

mod access;
mod answer;
mod api;
mod events;
mod gateway;
mod guard;
mod history;
mod look;
mod metrics;
mod pages;
mod patience;
mod pictures;
mod route;
mod served;
mod server;
mod source;
mod values;
mod watched;

pub(crate) use access::Access;
pub(crate) use api::{
    Change, Comparison, ContractState, ObserverState, Reading, State, Switch, WorldState,
};
pub(crate) use gateway::Gateway;
pub(crate) use pictures::Shown;
pub(crate) use server::Http;
pub(crate) use source::{Neighbours, OwnSource, Source};
pub(crate) use watched::NoPicture;

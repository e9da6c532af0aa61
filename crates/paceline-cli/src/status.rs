//! The status of all reachable nodes: the document of `paceline ls --json`, described in docs/json.md.

mod document;
mod gather;
mod neighbour;
mod reservation;
mod tags;
mod timed;

#[cfg(test)]
pub(crate) use document::{
    Ages, Closed, Contract, RequestedForm, Stalled, tests::status as test_status,
};
pub(crate) use document::{
    Buffer, Class, Document, Link, Muted, Node, Publisher, Repaired, Stream, Subscription, Unread,
    bits_per_s,
};
pub(crate) use gather::{Reader, settle, settle_and, wait_for};
#[cfg(test)]
pub(crate) use neighbour::Neighbour;
pub(crate) use neighbour::NeighbourMemory;
#[cfg(test)]
pub(crate) use reservation::Processor;
pub(crate) use reservation::{QueueBuffer, Reservation, ReservedHop};
pub(crate) use tags::{describe as describe_tags, published as published_tags, some as some_names};
#[cfg(test)]
pub(crate) use timed::NodeClock;
pub(crate) use timed::Timed;

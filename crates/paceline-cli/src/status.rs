//! Waiting for the status of other nodes, and lists of the tags in it.

mod refusal;
mod settle;
mod tags;

pub(crate) use refusal::PolicyQuery;
pub(crate) use settle::{settle, settle_and, settle_hops, wait_for};
pub(crate) use tags::{describe as describe_tags, published as published_tags, some as some_names};
#[cfg(test)]
#[path = "../../paceline-http/src/status/tests/example.rs"]
pub(crate) mod example;

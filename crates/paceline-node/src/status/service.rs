//! Several nodes together: the place of losses on a path, and a summary of all subscriptions.

use super::health::{HealthState, SubscriptionHealth};
use super::node::NodeStatus;
use super::stream::StreamStatus;
use super::subscription::SubscriptionStatus;
use super::units::by_name;
use paceline_proto::{DropReason, Drops, NodeId, PublisherId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The most hops of a path that are followed.
const HOPS_MAX: usize = 8;
/// The number of subscriptions that a summary names; further ones are counted.
const NAMES_MAX: usize = 2;

/// The time for which a window beyond its target counts as current.
const NOW: Duration = Duration::from_secs(10);

/// The state of all subscriptions of a document, in one sentence.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct NetworkHealth {
    /// The worst state of a subscription: `broken`, `short`, `refused`, `served` or `silent`; `no_publisher` without any.
    #[serde(with = "by_name")]
    #[cfg_attr(feature = "typescript", ts(type = "Health[\"state\"]"))]
    pub state: HealthState,
    /// The sentence.
    pub text: String,
}

/// Adds the place and the reason of losses that happened before the node of a subscription, as far as the status of the nodes on
/// its path shows them, and names a node of the path whose processor is too busy.
pub fn explain(nodes: &mut [NodeStatus]) {
    explain_losses(nodes);
    explain_busy(nodes);
}

/// Names a busy processor as the cause of late samples, and of lost ones of contracts: admission includes the links, but not the
/// load of other programs.
fn explain_busy(nodes: &mut [NodeStatus]) {
    let is_busy = |node: &&NodeStatus| node.processor_wait.is_some_and(|wait| wait.is_much());
    let busy: Vec<(NodeId, String)> = nodes
        .iter()
        .filter(is_busy)
        .filter_map(|node| Some((node.id, node.processor_wait?.in_words(&node.name))))
        .collect();
    for node in nodes {
        let here = node.id;
        for subscription in &mut node.subscriptions {
            let SubscriptionStatus { health, publishers, .. } = subscription;
            if health.late == 0 && health.state != HealthState::Broken {
                continue;
            }
            let ends = |id: NodeId| id == here || publishers.iter().any(|from| from.node == id);
            let Some((_, cause)) = busy.iter().find(|(id, _)| ends(*id)) else { continue };
            health.reason = Some(match health.reason.take() {
                // A server of several nodes gets documents that name it already.
                Some(reason) if reason.contains(cause) => reason,
                Some(reason) => format!("{reason}; {cause}"),
                None => cause.clone(),
            });
        }
    }
}

fn explain_losses(nodes: &mut [NodeStatus]) {
    let mut found = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        for (row, subscription) in node.subscriptions.iter().enumerate() {
            let SubscriptionHealth { lost, lost_before, late, state, .. } = subscription.health;
            let is_before = lost_before.saturating_mul(2) > lost && lost >= late;
            let place = if is_before {
                largest_loss(nodes, node.id, subscription)
            } else if lost == 0 && state == HealthState::Short {
                longest_queue(nodes, node.id, subscription)
            } else {
                None
            };
            found.extend(place.map(|place| (at, row, place)));
        }
    }
    for (at, row, place) in found {
        let Some(subscription) = nodes.get_mut(at).and_then(|node| node.subscriptions.get_mut(row))
        else {
            continue;
        };
        subscription.health.set_place(&place);
    }
}

/// Returns the place with the most drops on the path of a subscription, and their reason.
fn largest_loss(
    nodes: &[NodeStatus],
    to: NodeId,
    subscription: &SubscriptionStatus,
) -> Option<String> {
    let mut most: Option<(u64, String)> = None;
    let hops = subscription
        .publishers
        .iter()
        .flat_map(|publisher| hops(nodes, *publisher, to, subscription));
    for (node, link, stream) in hops {
        let place = format!("on link '{link}' of '{}'", node.name);
        note(&mut most, &stream.counters.dropped, &place);
    }
    if most.is_none() {
        let queue = longest_queue(nodes, to, subscription);
        most = queue.map(|place| (0, format!("or still waiting {place}")));
    }
    let mut sources = subscription.publishers.iter().filter(|publisher| publisher.node != to);
    while most.is_none()
        && let Some(publisher) = sources.next()
    {
        let source = nodes.iter().find(|node| node.id == publisher.node);
        source
            .into_iter()
            .for_each(|node| note(&mut most, &node.dropped, &format!("at '{}'", node.name)));
    }
    most.map(|(_, place)| place)
}

/// Returns the link on the path of a subscription at which the most samples wait, if they are more than a few: it cannot send them
/// in time.
fn longest_queue(
    nodes: &[NodeStatus],
    to: NodeId,
    subscription: &SubscriptionStatus,
) -> Option<String> {
    let hops = subscription
        .publishers
        .iter()
        .flat_map(|publisher| hops(nodes, *publisher, to, subscription));
    let queues = hops.filter(|(_, _, stream)| {
        let waiting = waiting(stream);
        waiting > 2 && waiting > stream.counters.offered / 10
    });
    let longest = queues.max_by_key(|(_, _, stream)| waiting(stream));
    longest.map(|(node, link, _)| format!("on link '{link}' of '{}'", node.name))
}

/// Returns the hops from a node back to a publisher, as far as the status of the nodes shows them.
fn hops<'a>(
    nodes: &'a [NodeStatus],
    publisher: PublisherId,
    to: NodeId,
    subscription: &'a SubscriptionStatus,
) -> impl Iterator<Item = (&'a NodeStatus, &'a str, &'a StreamStatus)> {
    let first = stream_to(nodes, publisher, to, subscription);
    let next = move |(node, _, _): &(&'a NodeStatus, &'a str, &'a StreamStatus)| {
        stream_to(nodes, publisher, node.id, subscription)
    };
    std::iter::successors(first, next).take(HOPS_MAX)
}

/// Keeps the reason with the most drops.
fn note(most: &mut Option<(u64, String)>, drops: &Drops, place: &str) {
    for (reason, count) in drops.iter().filter(|(reason, _)| *reason != DropReason::NoRoute) {
        if most.as_ref().is_none_or(|(known, _)| count > *known) {
            *most = Some((count, format!("{place} ({reason})")));
        }
    }
}

/// Returns the number of samples that a stream has neither sent nor dropped.
fn waiting(stream: &StreamStatus) -> u64 {
    let counters = &stream.counters;
    counters.offered.saturating_sub(counters.sent.saturating_add(counters.dropped.total()))
}

/// Returns the stream that brings a publisher's samples to the node `to`, with its node and the name of its link.
fn stream_to<'a>(
    nodes: &'a [NodeStatus],
    publisher: PublisherId,
    to: NodeId,
    subscription: &SubscriptionStatus,
) -> Option<(&'a NodeStatus, &'a str, &'a StreamStatus)> {
    let links = nodes.iter().flat_map(|node| node.links.iter().map(move |link| (node, link)));
    let streams = links.flat_map(|(node, link)| {
        link.streams.iter().map(move |stream| (node, link.name.as_str(), stream))
    });
    let here = streams.filter(|(_, _, stream)| stream.publisher == publisher && stream.hop == to);
    // The form of the request first: another subscription of the same node may have another stream.
    here.max_by_key(|(_, _, stream)| stream.form == subscription.form)
}

impl NetworkHealth {
    /// Returns the summary of the subscriptions of these nodes.
    #[must_use]
    pub fn of(nodes: &[NodeStatus]) -> Self {
        let all: Vec<(String, HealthState)> = nodes
            .iter()
            .flat_map(|node| node.subscriptions.iter().map(move |row| (node, row)))
            .map(|(node, row)| (format!("{} {}", node.name, row.pattern), row.health.state))
            .collect();
        let named = |state| {
            let names = all.iter().filter(|(_, of)| *of == state);
            names.map(|(name, _)| name.as_str()).collect::<Vec<_>>()
        };
        let [broken, short, refused, served] = [
            named(HealthState::Broken),
            named(HealthState::Short),
            named(HealthState::Refused),
            named(HealthState::Served),
        ];
        let mut parts = Vec::new();
        if !broken.is_empty() {
            let are = if broken.len() == 1 { "contract is" } else { "contracts are" };
            parts.push(format!("{} {are} broken now: {}", broken.len(), list(&broken)));
        }
        if !short.is_empty() {
            let get = if short.len() == 1 { "subscription gets" } else { "subscriptions get" };
            parts.push(format!("{} {get} less than requested: {}", short.len(), list(&short)));
        }
        if !refused.is_empty() {
            let are = if refused.len() == 1 { "subscription is" } else { "subscriptions are" };
            parts.push(format!("{} {are} refused: {}", refused.len(), list(&refused)));
        }
        if !served.is_empty() {
            let others = if parts.is_empty() { "" } else { "other " };
            let are = if served.len() == 1 { "subscription is" } else { "subscriptions are" };
            parts.push(format!("{} {others}{are} served as requested", served.len()));
        }
        let state = if !broken.is_empty() {
            HealthState::Broken
        } else if !short.is_empty() {
            HealthState::Short
        } else if !refused.is_empty() {
            HealthState::Refused
        } else if !served.is_empty() {
            HealthState::Served
        } else if all.is_empty() {
            HealthState::NoPublisher
        } else {
            HealthState::Silent
        };
        match (parts.is_empty(), all.is_empty()) {
            (false, _) => Self { state, text: parts.join("; ") },
            (true, true) => Self::of_streams(nodes),
            (true, false) => Self { state, text: "no samples are arriving".to_owned() },
        }
    }

    /// Returns the summary of nodes without subscriptions: of their streams to other nodes.
    fn of_streams(nodes: &[NodeStatus]) -> Self {
        let links = nodes.iter().flat_map(|node| &node.links);
        let streams: Vec<&StreamStatus> = links.flat_map(|link| &link.streams).collect();
        let missed = streams.iter().filter(|stream| stream.broken_ago.is_some_and(|ago| ago < NOW));
        let (state, text) = match (streams.len(), missed.count()) {
            (0, _) => (HealthState::NoPublisher, "no subscriptions yet".to_owned()),
            (1, 0) => (HealthState::Served, "1 stream leads to other nodes, in time".to_owned()),
            (all, 0) => {
                (HealthState::Served, format!("{all} streams lead to other nodes, in time"))
            }
            (all, missed) => {
                let text =
                    format!("{missed} of {all} streams to other nodes miss the target of a link");
                (HealthState::Short, text)
            }
        };
        Self { state, text }
    }
}

/// Names the first entries, and counts the rest.
fn list(names: &[&str]) -> String {
    let shown = names.iter().take(NAMES_MAX).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

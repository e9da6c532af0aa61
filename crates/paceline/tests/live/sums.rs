//! The counters of publishers, links and subscribers agree: every sample is delivered or has one reason.

use crate::support::SOON;
use paceline::{Form, Node, NodeId, NodeStatus, PublisherId, SubscriptionStatus};
use std::time::{Duration, Instant};

/// Waits until all counters of these nodes agree. Call it when the publishers have stopped, and before anything is
/// closed.
///
/// For every subscription of these nodes it compares the samples that were delivered or dropped with the samples that
/// the links towards its node have begun to send, and those with what the links were offered. It also checks that no
/// link that keeps frames in order has lost one.
///
/// # Panics
/// If they do not agree within ten seconds, or if there is nothing to compare.
pub(crate) fn check(nodes: &[&Node]) {
    let began = Instant::now();
    let mut before = Vec::new();
    loop {
        let statuses: Vec<_> = nodes.iter().filter_map(|node| status_of(node)).collect();
        let (mut compared, mut wrong) = compare(&statuses);
        if compared.is_empty() {
            wrong.push("no subscription whose samples are counted on the way to it".to_owned());
        }
        // Counters of links are up to a quarter of a second old: only what has come to rest is compared.
        let at_rest = compared == before;
        if wrong.is_empty() && at_rest && statuses.len() == nodes.len() {
            return;
        }
        assert!(began.elapsed() < SOON, "the sums disagree:\n{}", wrong.join("\n"));
        std::mem::swap(&mut before, &mut compared);
        std::thread::sleep(Duration::from_millis(600));
    }
}

fn status_of(node: &Node) -> Option<NodeStatus> {
    node.status_of(&[node.id()], SOON).into_iter().find(|status| status.id == node.id())
}

/// What was compared, as the number of samples for each subscription, and the comparisons that failed.
fn compare(nodes: &[NodeStatus]) -> (Vec<u64>, Vec<String>) {
    let (mut compared, mut wrong) = (Vec::new(), Vec::new());
    for node in nodes {
        for link in &node.links {
            let what = format!("link {} of {}", link.name, node.name);
            if link.frames_lost > 0 {
                wrong
                    .push(format!("{what} lost {} frames though it keeps order", link.frames_lost));
            }
            for stream in &link.streams {
                let counters = &stream.counters;
                if counters.offered != counters.sent + counters.drops.total() {
                    wrong.push(format!("{what}: {counters:?}"));
                }
            }
        }
        for subscription in &node.subscriptions {
            let Some(came) = samples_for(nodes, node.id, subscription) else { continue };
            compared.push(came);
            let counted = subscription.delivered + subscription.drops.total();
            if came != counted {
                wrong.push(format!(
                    "'{}' at {}: {came} samples were sent to it, {} delivered, dropped: {:?}",
                    subscription.pattern, node.name, subscription.delivered, subscription.drops
                ));
            }
        }
    }
    (compared, wrong)
}

/// The samples sent towards a subscription in the form it asks for; `None` if its node scales them itself.
fn samples_for(nodes: &[NodeStatus], to: NodeId, subscription: &SubscriptionStatus) -> Option<u64> {
    let publishers = subscription.publishers.iter();
    publishers.map(|publisher| begun(nodes, to, *publisher, subscription.form)).sum()
}

fn begun(nodes: &[NodeStatus], to: NodeId, publisher: PublisherId, form: Form) -> Option<u64> {
    if publisher.node == to {
        let own = nodes.iter().find(|node| node.id == to)?;
        let its = own.publishers.iter().find(|status| status.id == publisher)?;
        return (form == Form::FULL).then_some(its.published);
    }
    let streams = nodes.iter().flat_map(|node| &node.links).flat_map(|link| &link.streams);
    let its = streams.filter(|it| it.hop == to && it.publisher == publisher && it.form == form);
    let begun = its.map(|stream| stream.counters.sent + stream.counters.aborted);
    begun.reduce(|sum, more| sum + more)
}

//! Consistency of the counters of publishers, links and subscribers: every sample is delivered or
//! has exactly one drop reason.

use crate::support::SOON;
use paceline::Node;
use paceline::status::{LinkStatus, NodeStatus, SubscriptionStatus};
use std::time::{Duration, Instant};

/// Waits until all counters of these nodes agree. Call it when the publishers have stopped, and
/// before anything is closed.
///
/// - On a link, offered samples equal sent plus dropped ones, for open streams and for closed ones.
/// - Samples that the links towards a node have begun to send equal the delivered plus the dropped
///   ones of its subscription.
/// - Samples published on a subscription's own node also equal its delivered plus dropped ones.
/// - These two are at least as many, instead of equal, in two cases: streams to that node were
///   closed, which are counted together; or several subscriptions share a stream, which one may
///   have joined late.
/// - No ordered link has lost a frame.
///
/// # Panics
/// Panics if the counters do not agree within 10 s, or if there is nothing to compare.
pub(crate) fn check(nodes: &[&Node]) {
    wait_for(nodes, |status| compare(status, false));
}

/// As [`check`], after connections were cut: frames in flight were lost.
pub(crate) fn check_after_cuts(nodes: &[&Node]) {
    wait_for(nodes, |status| compare(status, true));
}

fn wait_for(nodes: &[&Node], compare: impl Fn(&[NodeStatus]) -> (Vec<u64>, Vec<String>)) {
    let began = Instant::now();
    let mut before = Vec::new();
    loop {
        let statuses: Vec<_> = nodes.iter().filter_map(|node| status_of(node)).collect();
        let (mut compared, mut wrong) = compare(&statuses);
        if compared.is_empty() {
            wrong.push("no samples were counted".to_owned());
        }
        // Link counters are up to 250 ms old, so compare only counters that no longer change.
        let at_rest = compared == before;
        if wrong.is_empty() && at_rest && statuses.len() == nodes.len() {
            return;
        }
        assert!(began.elapsed() < SOON, "the sums disagree:\n{}", wrong.join("\n"));
        std::mem::swap(&mut before, &mut compared);
        std::thread::sleep(Duration::from_millis(350));
    }
}

fn status_of(node: &Node) -> Option<NodeStatus> {
    node.status_of(&[node.id()], SOON).into_iter().find(|status| status.id == node.id())
}

/// Returns the compared values and the failed comparisons.
fn compare(nodes: &[NodeStatus], cut: bool) -> (Vec<u64>, Vec<String>) {
    let (mut compared, mut wrong) = (Vec::new(), Vec::new());
    for node in nodes {
        for link in &node.links {
            let what = format!("link {} of {}", link.name, node.name);
            if link.frames_lost > 0 && !cut {
                wrong
                    .push(format!("{what} lost {} frames though it keeps order", link.frames_lost));
            }
            let open = link.streams.iter().map(|stream| &stream.counters);
            for counters in open.chain([&link.closed]) {
                compared.push(counters.offered);
                if counters.offered != counters.sent + counters.dropped.total() {
                    wrong.push(format!("{what}: {counters:?}"));
                }
            }
        }
        for subscription in &node.subscriptions {
            let counted = subscription.delivered + subscription.dropped.total();
            compared.push(counted);
            if let Some((came, exact)) = came_to(nodes, node, subscription)
                && (counted > came || (exact && counted < came))
            {
                let SubscriptionStatus { pattern, delivered, dropped: drops, .. } = subscription;
                let at = format!("'{pattern}' at {}", node.name);
                wrong.push(format!(
                    "{at}: {came} samples arrived, {delivered} were delivered, dropped: {drops:?}"
                ));
            }
        }
    }
    compared.retain(|samples| *samples > 0);
    (compared, wrong)
}

/// Returns the number of samples that reached a subscription's node in the requested form, and
/// whether the subscription counts all of them; `None` if unknown.
fn came_to(
    nodes: &[NodeStatus],
    to: &NodeStatus,
    subscription: &SubscriptionStatus,
) -> Option<(u64, bool)> {
    let leads_there = |link: &&LinkStatus| link.hops.contains(&to.id);
    let links = || nodes.iter().flat_map(|node| &node.links).filter(leads_there);
    if links().any(|link| link.closed.offered > 0) {
        return None;
    }
    let (mut sum, mut exact) = (None, true);
    for publisher in &subscription.publishers {
        let same = |other: &&SubscriptionStatus| {
            other.form == subscription.form && other.publishers.contains(publisher)
        };
        exact &= publisher.node != to.id && to.subscriptions.iter().filter(same).count() == 1;
        let came = if publisher.node == to.id {
            to.publishers.iter().find(|status| status.id == *publisher)?.published
        } else {
            let streams = links().flat_map(|link| &link.streams);
            let its = streams.filter(|it| {
                it.hop == to.id && it.publisher == *publisher && it.form == subscription.form
            });
            its.map(|it| it.counters.sent + it.counters.aborted).reduce(|sum, more| sum + more)?
        };
        sum = Some(sum.unwrap_or(0) + came);
    }
    Some((sum?, exact))
}

//! Waits until all current subscribers are connected, so that they receive the first samples: video can be
//! decoded only from its first picture on.

use paceline::status::{NodeStatus, SubscriptionStatus};
use paceline::{Node, Pattern, Publisher};
use paceline_tool::stop::Stop;
use std::time::{Duration, Instant};

/// Time limit of the wait.
const WITHIN: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(25);

/// Waits until every subscription to one of `publishers` receives it, and the number of nodes is stable.
pub(crate) fn wait<'a>(
    node: &Node,
    publishers: impl Iterator<Item = &'a Publisher> + Clone,
    stop: &Stop,
) {
    let until = Instant::now() + WITHIN;
    let mut nodes = 0;
    while !stop.requested() && Instant::now() < until {
        let status = node.status(WITHIN / 4);
        let more = std::mem::replace(&mut nodes, status.len()) != status.len();
        if !more && publishers.clone().all(|publisher| is_heard(&status, publisher)) {
            return;
        }
        std::thread::sleep(AGAIN);
    }
}

fn is_heard(status: &[NodeStatus], publisher: &Publisher) -> bool {
    let wants = |subscription: &&SubscriptionStatus| {
        Pattern::new(&subscription.pattern).is_ok_and(|pattern| pattern.matches(publisher.tag()))
    };
    let hears = |subscription: &SubscriptionStatus| {
        subscription.publishers.contains(&publisher.id()) || !subscription.refusals.is_empty()
    };
    status.iter().flat_map(|node| &node.subscriptions).filter(wants).all(hears)
}

//! Refusals of publishers that are not shown.

use paceline::contract::Refusal;
use paceline::{Node, Pattern, Subscriber, SubscriberEvent};
use std::time::{Duration, Instant};

/// The rate of the request, in samples per second: it must cost nothing where it is granted.
const HZ: f64 = 0.001;
/// The longest time for an answer.
const WITHIN: Duration = Duration::from_secs(1);

/// Asks other nodes whether their policies allow a subscription. A node does not show its publishers to peers that may not
/// subscribe to them, but it refuses their subscriptions.
#[derive(Default)]
pub(crate) enum PolicyQuery {
    #[default]
    New,
    Asked(Box<Subscriber>, Instant),
    Ended,
}

impl PolicyQuery {
    /// Returns a refusal for all publishers that `pattern` matches, once a node has answered. Never blocks.
    pub(crate) fn refusal(&mut self, node: &Node, pattern: &Pattern) -> Option<Refusal> {
        if matches!(self, Self::New) {
            let asked = node.subscriber(pattern.as_str()).max_hz(HZ).declare();
            let until = Instant::now() + WITHIN;
            *self = asked.map_or(Self::Ended, |asked| Self::Asked(Box::new(asked), until));
        }
        let Self::Asked(subscriber, until) = self else { return None };
        while let Some(event) = subscriber.try_event() {
            if let SubscriberEvent::Refused(_, refusal) = event
                && refusal.is_for_all()
            {
                *self = Self::Ended;
                return Some(refusal);
            }
        }
        if Instant::now() >= *until {
            *self = Self::Ended;
        }
        None
    }
}

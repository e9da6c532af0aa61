//! One running query rule: queryables of plain programs at other nodes answer the queries of plain
//! programs here, and vice versa.
//!
//! Nodes with a rule of the same tag announce their queryables on `TAG/@offers`. Each node declares
//! the others' queryables to its own programs. So Zenoh selects the queryables for each query, and
//! a query without a queryable is never sent. A query is a sample on `TAG/@ask/NODE`, its answers
//! are samples on `TAG/@answer/NODE`. They are scheduled, bounded and admitted as all samples are.

mod answerer;
mod asker;
mod asking;
mod channel;
mod dispatch;
mod lane;
mod message;
mod offers;
mod plainly;
mod pool;
mod waiting;

use crate::lock;
use crate::rule::QueryRule;
use crate::tokens::Own;
use answerer::Answerer;
use asker::Asker;
use offers::Offers;
use paceline::status::NodeId;
use paceline::{LogLimit, Node, SubscribeError, Subscriber, SubscriberBuilder, SubscriberEvent};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;
use zenoh::Session;

/// The parameter that marks a query sent for another node; its value is that node's id. Without it,
/// two nodes with connected plain sides would query each other forever. Zenoh reserves names with a
/// leading underscore for systems that forward queries.
const MARK: &str = "_paceline";
/// The longest delay until the end of the rule, or a change of nodes, is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The subscriber's queue length, in samples.
const QUEUE: usize = 256;
/// The number of remembered node names. The cache is cleared above it.
const NAMES_MAX: usize = 1_024;

/// A running query rule. Stops when dropped.
pub(crate) struct Queries {
    rule: QueryRule,
    // Dropped first, so that other nodes stop sending queries.
    _offers: Option<Offers>,
    _answerer: Option<Answerer>,
    _asker: Option<Asker>,
}

impl Queries {
    /// Starts carrying the rule's queries.
    pub(crate) fn open(
        node: &Node,
        session: &Session,
        number: usize,
        rule: &QueryRule,
    ) -> zenoh::Result<Self> {
        let own_tokens = Own::default();
        let common = || Common {
            own_tokens: own_tokens.clone(),
            node: node.clone(),
            session: session.clone(),
            number,
            rule: rule.clone(),
            log_limit: LogLimit::new(),
            names: Mutex::default(),
        };
        let (mut offers, mut answerer, mut asker) = (None, None, None);
        if rule.answers {
            answerer = Some(Answerer::open(common())?);
            offers = Some(Offers::open(common())?);
        }
        if rule.asks {
            asker = Some(Asker::open(common())?);
        }
        Ok(Self { rule: rule.clone(), _offers: offers, _answerer: answerer, _asker: asker })
    }

    pub(crate) const fn rule(&self) -> &QueryRule {
        &self.rule
    }
}

/// State shared by all parts of a running rule.
struct Common {
    /// The tokens of other nodes' programs that the rule declares here.
    own_tokens: Own,
    node: Node,
    session: Session,
    number: usize,
    rule: QueryRule,
    log_limit: LogLimit,
    /// The names of nodes seen so far, for log lines about nodes that have left.
    names: Mutex<BTreeMap<NodeId, String>>,
}

impl Common {
    fn offers_tag(&self) -> String {
        format!("{}/@offers", self.rule.tag)
    }

    fn ask_tag(&self, node: NodeId) -> String {
        format!("{}/@ask/{node}", self.rule.tag)
    }

    fn answer_tag(&self, node: NodeId) -> String {
        format!("{}/@answer/{node}", self.rule.tag)
    }

    /// Subscribes to `tag` with the contract of the rule.
    fn subscribe(&self, tag: &str) -> Result<Subscriber, SubscribeError> {
        let builder: SubscriberBuilder<'_> = self.node.subscriber(tag).queue(QUEUE);
        match self.rule.within {
            Some(within) => builder.within(within).declare(),
            None => builder.declare(),
        }
    }

    /// Returns the nodes that publish to a subscriber, if the set has changed. Logs refusals.
    fn heard(&self, subscriber: &Subscriber) -> Option<Vec<NodeId>> {
        let mut heard = None;
        while let Some(event) = subscriber.try_event() {
            match event {
                SubscriberEvent::Publishers(publishers) => {
                    let nodes = publishers.iter().map(|publisher| publisher.node);
                    let others: Vec<_> = nodes.filter(|node| *node != self.node.id()).collect();
                    self.remember(&others);
                    heard = Some(others);
                }
                SubscriberEvent::Refused(publisher, refusal) => {
                    self.warn(|| format!("{publisher} was refused: {refusal}"));
                }
                SubscriberEvent::Granted(_)
                | SubscriberEvent::NoSpare(_)
                | SubscriberEvent::Withdrawn(_)
                | SubscriberEvent::BestEffort(..)
                | SubscriberEvent::Excess { .. }
                | SubscriberEvent::Silent(_)
                | SubscriberEvent::Resumed(_)
                | SubscriberEvent::ChangeRefused { .. }
                | SubscriberEvent::Changed { .. }
                | SubscriberEvent::Adapted { .. }
                | SubscriberEvent::Warned(..) => {}
                // An event of a later version.
                _ => {}
            }
        }
        heard
    }

    fn remember(&self, nodes: &[NodeId]) {
        let mut names = lock(&self.names);
        if names.len() > NAMES_MAX {
            names.clear();
        }
        let known = self.node.nodes().into_iter().filter(|(node, _)| nodes.contains(node));
        names.extend(known);
    }

    /// Returns the name of a node, or its id if the name is unknown.
    fn name(&self, id: NodeId) -> String {
        lock(&self.names).get(&id).cloned().unwrap_or_else(|| id.to_string())
    }

    /// Logs a problem of this rule, rate-limited.
    fn warn(&self, what: impl FnOnce() -> String) {
        if let Some(suppressed) = self.log_limit.pass() {
            tracing::warn!(
                "query {} (key '{}'): {}{suppressed}",
                self.number,
                self.rule.key,
                what()
            );
        }
    }
}

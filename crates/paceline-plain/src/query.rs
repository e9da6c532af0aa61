//! One query rule at work: queries of plain programs here are answered by queryables of plain programs at
//! other nodes, and the other way round.
//!
//! Nodes that have a rule with the same tag tell each other on `TAG/@offers` which queryables there are; each
//! declares those of the others to its own programs, so that Zenoh itself decides who is asked, and what nobody
//! answers is asked of nobody. A query is a sample on `TAG/@ask/NODE`, its answers are samples on
//! `TAG/@answer/NODE`: scheduled, bounded and admitted as all samples are.

mod answerer;
mod asker;
mod asking;
mod lane;
mod message;
mod offers;
mod plainly;
mod rota;
mod waiting;
mod way;

use crate::lock;
use crate::rule::QueryRule;
use answerer::Answerer;
use asker::Asker;
use offers::Offers;
use paceline::{
    LogLimit, Node, NodeId, SubscribeError, Subscriber, SubscriberBuilder, SubscriberEvent,
};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;
use zenoh::Session;

/// The parameter of what a node asks its programs for another one, with that node's id: without it two nodes
/// whose plain sides meet would ask each other for ever. Zenoh leaves names that begin so to those who carry
/// queries.
const MARK: &str = "_paceline";
/// How soon a rule ends, and a change of nodes is seen.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Samples that wait to be looked at.
const QUEUE: usize = 256;
/// Nodes that may have been heard before all names are learnt anew.
const NAMES_MAX: usize = 1_024;

/// A rule at work; it ends when dropped.
pub(crate) struct Queries {
    rule: QueryRule,
    // What others may ask goes first: they hear of it.
    _offers: Option<Offers>,
    _answerer: Option<Answerer>,
    _asker: Option<Asker>,
}

impl Queries {
    /// Carries the rule's queries from now on.
    pub(crate) fn open(
        node: &Node,
        session: &Session,
        number: usize,
        rule: &QueryRule,
    ) -> zenoh::Result<Self> {
        let common = || Common {
            node: node.clone(),
            session: session.clone(),
            number,
            rule: rule.clone(),
            said: LogLimit::new(),
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

    /// The rule.
    pub(crate) const fn rule(&self) -> &QueryRule {
        &self.rule
    }
}

/// What every part of a rule at work knows.
struct Common {
    node: Node,
    session: Session,
    number: usize,
    rule: QueryRule,
    said: LogLimit,
    /// Names of nodes that were heard: one that is gone is told of by its name.
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

    /// What comes on `tag`, as the rule asks for it.
    fn subscribe(&self, tag: &str) -> Result<Subscriber, SubscribeError> {
        let builder: SubscriberBuilder<'_> = self.node.subscriber(tag)?.queue(QUEUE)?;
        match self.rule.within {
            Some(within) => builder.within(within)?.declare(),
            None => builder.declare(),
        }
    }

    /// The nodes that a subscriber hears now, if that has changed. Refusals are said.
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
                    self.say(|| format!("{publisher} was refused: {refusal}"));
                }
                SubscriberEvent::Granted(_)
                | SubscriberEvent::Over(_)
                | SubscriberEvent::Unpromised(..)
                | SubscriberEvent::Excess { .. }
                | SubscriberEvent::ChangeRefused { .. }
                | SubscriberEvent::Changed { .. } => {}
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

    /// What people call a node.
    fn name(&self, id: NodeId) -> String {
        lock(&self.names).get(&id).cloned().unwrap_or_else(|| id.to_string())
    }

    /// Logs what is wrong with this rule, limited.
    fn say(&self, what: impl FnOnce() -> String) {
        if let Some(suppressed) = self.said.pass() {
            tracing::warn!(
                "query {} (key '{}'): {}{suppressed}",
                self.number,
                self.rule.key,
                what()
            );
        }
    }
}

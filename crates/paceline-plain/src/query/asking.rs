//! Queries of programs here that wait for other nodes, and their answers.

use super::channel::Channel;
use super::dispatch::Dispatches;
use super::lane::{Buffered, Lane};
use super::message::{Body, Message};
use super::offers::Keys;
use super::plainly::ask;
use super::pool::Work;
use super::waiting::{Missing, Waiting, Why};
use super::{Common, MARK};
use crate::answer::RULE_ENDS;
use crate::lock;
use paceline::Sample;
use paceline::status::{DropReason, NodeId};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;
use zenoh::query::Query;

/// The number of undelivered refusals. Further refused queries end without a message.
const REFUSALS_MAX: usize = 256;

pub(super) struct Asking {
    pub(super) common: Arc<Common>,
    state: Mutex<State>,
    buffered: Arc<Buffered>,
}

pub(super) struct State {
    pub(super) waiting: Waiting<Arc<Lane>>,
    pub(super) peers: BTreeMap<NodeId, Peer>,
    pub(super) refusals: VecDeque<Work>,
    dispatches: Dispatches,
}

/// A node that can be queried.
pub(super) struct Peer {
    pub(super) channel: Channel,
    pub(super) offers: Keys,
    /// True if messages pass in both directions.
    pub(super) ready: bool,
}

impl Asking {
    pub(super) fn new(common: Common) -> Self {
        let waiting = Waiting::new(common.rule.at_once, common.rule.patience);
        let (peers, refusals) = (BTreeMap::new(), VecDeque::new());
        let state = State { waiting, peers, refusals, dispatches: Dispatches::default() };
        Self { common: Arc::new(common), state: Mutex::new(state), buffered: Arc::default() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Handles one query, which `queryable` received. Runs on a thread of Zenoh and never blocks.
    pub(super) fn ask(&self, query: &Query, queryable: &str) {
        if let Some(from) = query.parameters().get(MARK) {
            self.common.node.note_dropped(DropReason::Loop, 1);
            let key = query.key_expr();
            return self.common.warn(|| {
                format!(
                    "a loop: node {from} queries '{key}' on its plain side, which is connected to \
                     this one; its queries are not forwarded here. Separate the two sides, or use \
                     other keys"
                )
            });
        }
        if let Err((reason, what)) = self.carry(query, queryable) {
            self.common.node.note_dropped(reason, 1);
            self.common.warn(|| format!("'{}' was not queried: {what}", query.key_expr()));
            self.refuse(query, what);
        }
    }

    /// Queues a refusal for a thread that may block on the program.
    fn refuse(&self, query: &Query, what: String) {
        let mut state = self.state();
        if state.refusals.len() < REFUSALS_MAX {
            let refusal = self.lane(query).refuse(&self.common, what);
            state.refusals.extend(refusal);
        }
    }

    fn lane(&self, query: &Query) -> Arc<Lane> {
        Arc::new(Lane::new(query.clone(), self.buffered.clone()))
    }

    fn carry(&self, query: &Query, queryable: &str) -> Result<(), (DropReason, String)> {
        let rule = &self.common.rule;
        let body = Body::Ask(ask(query, rule.patience));
        let bytes = Message { query: 0, body: body.clone() }.encode().len();
        if u64::try_from(bytes).unwrap_or(u64::MAX) > rule.bytes_max {
            let most = rule.bytes_max;
            let what = format!(
                "the query has {bytes} bytes, but its rule accepts at most {most}; raise max_bytes"
            );
            return Err((DropReason::TooLarge, what));
        }
        let mut state = self.state();
        let (key, now) = (query.key_expr(), Instant::now());
        let (thread, place) = (std::thread::current().id(), std::ptr::from_ref(key).addr());
        let repeats = state.dispatches.repeats(now, thread, (place, key.as_str()), queryable);
        // The key stays allocated while the query waits.
        if repeats || state.waiting.any(|other| std::ptr::eq(other.key(), key)) {
            return Ok(());
        }
        if state.waiting.is_full() {
            let most = rule.at_once;
            let what = format!("{most} queries already wait; try again later, or raise at_once");
            return Err((DropReason::QueueFull, what));
        }
        let matches =
            |peer: &Peer| peer.offers.keys().any(|key| key.0.intersects(query.key_expr()));
        let ready = state.peers.iter().filter(|(_, peer)| peer.ready && matches(peer));
        let nodes: Vec<_> =
            ready.map(|(node, peer)| (*node, peer.channel.line().clone())).collect();
        let asked = nodes.iter().map(|(node, _)| *node);
        let number = state.waiting.ask(now, self.lane(query), asked);
        let message = Message { query: number, body }.encode();
        let full =
            nodes.iter().find(|(_, line)| !line.send(message.clone())).map(|(node, _)| *node);
        let Some(node) = full else { return Ok(()) };
        let ended = state.waiting.ended(now, number, node, 0);
        drop(state);
        drop(ended);
        let name = self.common.name(node);
        Err((
            DropReason::QueueFull,
            format!("the queue of the link to node {name} is full; try again later"),
        ))
    }

    /// Returns the work for a message of a node.
    pub(super) fn answer(&self, delivery: &Sample) -> Option<Work> {
        let node = delivery.publisher.node;
        let Some(Message { query: number, body }) = Message::decode(&delivery.payload) else {
            self.common.node.note_dropped(DropReason::NotExported, 1);
            self.common.warn(|| format!("node {node} sent an invalid message"));
            return None;
        };
        match body {
            Body::End(of) => {
                let ended = self.state().waiting.ended(Instant::now(), number, node, of)?;
                // Dropping the last reference reports the end of the query to the program.
                Some(Box::new(move || drop(ended)))
            }
            Body::Sample(_) | Body::Deletion(_) | Body::Error(_) => {
                let lane = self.state().waiting.answered(number, node);
                let Some(lane) = lane else {
                    // The query has ended, or this node never sent it to that node.
                    self.common.node.note_dropped(DropReason::DeadlineMissed, 1);
                    return None;
                };
                lane.give(&self.common, body, delivery.payload.len())
            }
            Body::Ask(_) => {
                self.common.node.note_dropped(DropReason::NotExported, 1);
                None
            }
        }
    }

    /// Reports missing answers to the program.
    pub(super) fn report(&self, missing: Missing<Arc<Lane>>) -> Option<Work> {
        let Missing { query: lane, node, why } = missing;
        let name = self.common.name(node);
        let (reason, count, what) = match why {
            Why::TimedOut => {
                let patience = self.common.rule.patience;
                let what = format!("node {name} has not answered within {patience:?} (timeout)");
                (DropReason::DeadlineMissed, 1, what)
            }
            Why::Left => (DropReason::LinkDown, 1, format!("node {name} left before it answered")),
            Why::Ended => {
                let what = format!("the rule ended here before node {name} answered: {RULE_ENDS}");
                (DropReason::NotExported, 1, what)
            }
            Why::Lost(count) => {
                let what = format!("{count} answers of node {name} were dropped there");
                (DropReason::LinkLoss, count, what)
            }
        };
        self.common.node.note_dropped(reason, count);
        self.common.warn(|| format!("'{}': {what}", lane.key()));
        lane.refuse(&self.common, what)
    }
}

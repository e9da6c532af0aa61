//! Forwards queries of programs at other nodes to the queryables of programs here.

use super::channel::{Channel, Line};
use super::message::{Ask, Body, Message, Value};
use super::plainly::answer;
use super::pool::{Next, Watch, Work, WorkerPool};
use super::{Common, LOOK_EVERY, MARK};
use crate::{convert, history};
use paceline::status::{DropReason, NodeId};
use paceline::{RecvError, Sample, Subscriber};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use zenoh::Wait;
use zenoh::bytes::Encoding;
use zenoh::key_expr::keyexpr;
use zenoh::query::{ConsolidationMode, Parameters, Reply, Selector};
use zenoh::sample::{Locality, SampleKind};

/// Answers other nodes. Stops when dropped.
pub(super) struct Answerer {
    _rota: WorkerPool,
}

impl Answerer {
    pub(super) fn open(common: Common) -> zenoh::Result<Self> {
        let asks = common.subscribe(&common.ask_tag(common.node.id()))?;
        let name = format!("paceline-answer-{}", common.number);
        let worker = Worker { common: Arc::new(common), asks, askers: BTreeMap::new() };
        Ok(Self { _rota: WorkerPool::open(name, worker)? })
    }
}

struct Worker {
    common: Arc<Common>,
    asks: Subscriber,
    askers: BTreeMap<NodeId, Peer>,
}

/// A node that sends queries.
struct Peer {
    channel: Channel,
    /// The number of its queries in progress.
    running: Arc<AtomicUsize>,
}

impl Watch for Worker {
    fn next(&mut self) -> Next {
        if let Some(askers) = self.common.heard(&self.asks) {
            self.meet(&askers);
        }
        match self.asks.recv_timeout(LOOK_EVERY) {
            Ok(delivery) => self.answer(&delivery).map_or(Next::Nothing, Next::Work),
            Err(RecvError::Closed) => Next::Over,
            Err(_) => Next::Nothing,
        }
    }

    fn end(self) -> Vec<Work> {
        Vec::new()
    }
}

impl Worker {
    /// Opens a channel to each node that may send queries, before the first one arrives.
    fn meet(&mut self, askers: &[NodeId]) {
        self.askers.retain(|node, _| askers.contains(node));
        for node in askers {
            if self.askers.contains_key(node) {
                continue;
            }
            match Channel::open(&self.common, &self.common.answer_tag(*node)) {
                Ok(channel) => {
                    let running = Arc::new(AtomicUsize::new(0));
                    self.askers.insert(*node, Peer { channel, running });
                }
                Err(error) => self.common.warn(|| error.to_string()),
            }
        }
    }

    /// Returns the work for a message of a node.
    fn answer(&self, delivery: &Sample) -> Option<Work> {
        let node = delivery.publisher.node;
        let message = Message::decode(&delivery.payload);
        let (Some(Message { query, body: Body::Ask(ask) }), Some(peer)) =
            (message, self.askers.get(&node))
        else {
            self.common.node.note_dropped(DropReason::NotExported, 1);
            self.common.warn(|| format!("node {node} sent an invalid query"));
            return None;
        };
        peer.running.fetch_add(1, Ordering::Relaxed);
        let answers = Answers {
            common: self.common.clone(),
            line: peer.channel.line().clone(),
            running: peer.running.clone(),
            query,
            given: AtomicU64::new(0),
        };
        let answers = Arc::new(answers);
        let most = self.common.rule.at_once;
        if peer.running.load(Ordering::Relaxed) > most {
            self.common.node.note_dropped(DropReason::QueueFull, 1);
            let name = self.common.node.name();
            let what = format!(
                "{most} queries already wait at node {name}; try again later, or raise at_once there"
            );
            answers.refuse(what);
            return None;
        }
        // The call blocks on a program that does not read.
        Some(Box::new(move || {
            if let Err(what) = Answers::ask(&answers, node, ask) {
                answers.refuse(what);
            }
        }))
    }
}

/// The answers to one query. Dropping it sends the end of the answers.
struct Answers {
    common: Arc<Common>,
    line: Arc<Line>,
    running: Arc<AtomicUsize>,
    query: u64,
    given: AtomicU64,
}

impl Answers {
    /// Sends the query to the programs here. Each reply is forwarded. The end follows when Zenoh
    /// drops the callback.
    fn ask(answers: &Arc<Self>, node: NodeId, ask: Ask) -> Result<(), String> {
        let Common { rule, session, .. } = &*answers.common;
        let to_text = |error: zenoh::Error| error.to_string();
        let asked = <&keyexpr>::try_from(ask.key.as_str()).map_err(to_text)?;
        let Some(key) = history::narrowed(&rule.key, asked) else {
            return Err(format!("'{asked}' exceeds this rule; query '{}'", rule.key));
        };
        let mut parameters = Parameters::from(ask.parameters);
        parameters.insert(MARK, node.to_string());
        let patience = Duration::from_millis(ask.patience_ms.into()).min(rule.patience);
        let to = answers.clone();
        let mut get = session
            .get(Selector::owned(key, parameters))
            .allowed_destination(Locality::Remote)
            .consolidation(ConsolidationMode::None)
            .timeout(patience)
            .attachment(ask.attachment.map(|bytes| bytes.to_vec()));
        if let Some(Value { encoding, payload }) = ask.value {
            get = get.payload(payload).encoding(Encoding::from(encoding));
        }
        get.callback(move |reply| to.give(reply)).wait().map_err(to_text)
    }

    /// Forwards one reply. Runs on a thread of Zenoh and never blocks.
    fn give(&self, reply: Reply) {
        let body = match reply.into_result() {
            Ok(sample) if sample.kind() == SampleKind::Delete => Body::Deletion(answer(&sample)),
            Ok(sample) => Body::Sample(answer(&sample)),
            Err(error) => Body::Error(Value {
                encoding: error.encoding().to_string(),
                payload: convert::payload(error.payload()),
            }),
        };
        let message = Message { query: self.query, body }.encode();
        let most = self.common.rule.bytes_max;
        if u64::try_from(message.len()).unwrap_or(u64::MAX) > most {
            self.common.node.note_dropped(DropReason::TooLarge, 1);
            let (bytes, name) = (message.len(), self.common.node.name());
            let what = format!(
                "an answer has {bytes} bytes, but the rule of node {name} accepts at most {most}; raise max_bytes there"
            );
            return self.refuse(what);
        }
        self.send(message);
    }

    fn refuse(&self, what: String) {
        self.common.warn(|| what.clone());
        let value = Value { encoding: Encoding::TEXT_PLAIN.to_string(), payload: what.into() };
        self.send(Message { query: self.query, body: Body::Error(value) }.encode());
    }

    fn send(&self, message: bytes::Bytes) {
        // Counted before sending, so that the asking node detects an answer that found no room.
        self.given.fetch_add(1, Ordering::Relaxed);
        if !self.line.send(message) {
            self.common.warn(|| {
                "answers arrive faster than the link sends them; some are dropped".to_owned()
            });
        }
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        let body = Body::End(self.given.load(Ordering::Relaxed));
        self.line.send_end(Message { query: self.query, body }.encode());
        self.running.fetch_sub(1, Ordering::Relaxed);
    }
}

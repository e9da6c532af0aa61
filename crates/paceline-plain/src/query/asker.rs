//! Queries of programs here for queryables at other nodes, which are declared here in their place.

use super::message::{Body, Message, Value};
use super::offers::{self, Key, Keys, OFFERS_MAX};
use super::plainly::{ask, refuse, reply, stamp};
use super::waiting::{Missing, Waiting, Why};
use super::way::Way;
use super::{Common, LOOK_EVERY, MARK};
use crate::lock;
use paceline::{Delivery, DropReason, NodeId, Subscriber};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;
use zenoh::Wait;
use zenoh::bytes::Encoding;
use zenoh::query::{Query, Queryable};
use zenoh::sample::Locality;

/// Asks other nodes; ends when dropped.
pub(super) struct Asker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    common: Common,
    state: Mutex<State>,
    ended: AtomicBool,
}

struct State {
    waiting: Waiting<Query>,
    peers: BTreeMap<NodeId, Peer>,
}

/// A node that can be asked.
struct Peer {
    way: Way,
    offers: Keys,
    /// It hears what it is asked, and is heard.
    ready: bool,
}

impl Asker {
    pub(super) fn open(common: Common) -> zenoh::Result<Self> {
        let offers = common.node.subscriber(&common.offers_tag())?.declare()?;
        let answers = common.subscribe(&common.answer_tag(common.node.id()))?;
        let waiting = Waiting::new(common.rule.at_once, common.rule.patience);
        let state = Mutex::new(State { waiting, peers: BTreeMap::new() });
        let named = std::thread::Builder::new().name(format!("paceline-ask-{}", common.number));
        let shared = Arc::new(Shared { common, state, ended: AtomicBool::new(false) });
        let worker = Worker {
            shared: shared.clone(),
            offers,
            answers,
            heard: BTreeSet::new(),
            declared: BTreeMap::new(),
        };
        let thread = named.spawn(move || worker.run())?;
        Ok(Self { shared, thread: Some(thread) })
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Worker {
    shared: Arc<Shared>,
    offers: Subscriber,
    answers: Subscriber,
    /// The nodes whose answers come here.
    heard: BTreeSet<NodeId>,
    /// The queryables that stand for those of others.
    declared: BTreeMap<Key, (bool, Queryable<()>)>,
}

impl Worker {
    fn run(mut self) {
        let mut looked = None::<Instant>;
        while !self.shared.ended.load(Ordering::Relaxed) {
            let now = Instant::now();
            if looked.is_none_or(|looked| now >= looked + LOOK_EVERY) {
                looked = Some(now);
                self.look(now);
            }
            let next = lock(&self.shared.state).waiting.next_end();
            let wait = next.map_or(LOOK_EVERY, |end| end.saturating_duration_since(now));
            match self.answers.recv_timeout(wait.min(LOOK_EVERY)) {
                Ok(delivery) => self.shared.answer(delivery),
                Err(paceline::RecvError::Closed) => break,
                Err(_) => {}
            }
        }
        // Nobody asks any more before those who wait are told.
        self.declared.clear();
        let missing = lock(&self.shared.state).waiting.only(&BTreeSet::new());
        self.shared.tell(missing);
    }

    /// What has changed at other nodes, and what has waited for long enough.
    fn look(&mut self, now: Instant) {
        if let Some(there) = self.shared.common.heard(&self.offers) {
            let there: BTreeSet<_> = there.into_iter().collect();
            let mut gone = Vec::new();
            let mut state = lock(&self.shared.state);
            while let Some(node) = state.peers.keys().find(|node| !there.contains(node)).copied() {
                gone.extend(state.peers.remove(&node));
            }
            drop(state);
            // Their ways wait for their threads: not under the lock.
            drop(gone);
        }
        while let Some(delivery) = self.offers.try_recv() {
            self.learn(&delivery);
        }
        if let Some(heard) = self.shared.common.heard(&self.answers) {
            self.heard = heard.into_iter().collect();
        }
        let mut state = lock(&self.shared.state);
        for (node, peer) in &mut state.peers {
            peer.ready = peer.way.stands() && self.heard.contains(node);
        }
        let mut missing = state.waiting.only(&self.heard);
        missing.extend(state.waiting.expired(now));
        let mut wanted = Keys::new();
        for peer in state.peers.values().filter(|peer| peer.ready) {
            for (key, complete) in &peer.offers {
                *wanted.entry(key.clone()).or_default() |= complete;
            }
        }
        drop(state);
        self.shared.tell(missing);
        self.declare(&wanted);
    }

    /// What a node can be asked.
    fn learn(&self, delivery: &Delivery) {
        let common = &self.shared.common;
        let node = delivery.publisher.node;
        if node == common.node.id() {
            return;
        }
        let carried = |(key, complete): (Key, bool)| {
            common.rule.key.narrowed(&key.0).map(|key| (Key(key), complete))
        };
        let offers: Keys =
            offers::read(&delivery.payload).into_iter().filter_map(carried).collect();
        if let Some(peer) = lock(&self.shared.state).peers.get_mut(&node) {
            peer.offers = offers;
            return;
        }
        match Way::open(common, &common.ask_tag(node)) {
            Ok(way) => {
                let peer = Peer { way, offers, ready: false };
                lock(&self.shared.state).peers.insert(node, peer);
            }
            Err(error) => tracing::error!("query {}: {error}", common.number),
        }
    }

    /// Makes what is declared here what is `wanted`.
    fn declare(&mut self, wanted: &Keys) {
        let is_same = |key: &Key, complete: bool| wanted.get(key) == Some(&complete);
        self.declared.retain(|key, (complete, _)| is_same(key, *complete));
        for (key, complete) in wanted.iter().take(OFFERS_MAX) {
            if self.declared.contains_key(key) {
                continue;
            }
            let shared = self.shared.clone();
            let queryable = self
                .shared
                .common
                .session
                .declare_queryable(key.0.clone())
                .complete(*complete)
                .allowed_origin(Locality::Remote)
                .callback(move |query| shared.ask(&query))
                .wait();
            match queryable {
                Ok(queryable) => drop(self.declared.insert(key.clone(), (*complete, queryable))),
                Err(error) => tracing::debug!("queryable {}: {error}", key.0),
            }
        }
    }
}

impl Shared {
    /// On a thread of Zenoh's: never waits.
    fn ask(&self, query: &Query) {
        if let Some(from) = query.parameters().get(MARK) {
            self.common.node.note_dropped(DropReason::Loop, 1);
            let key = query.key_expr();
            return self.common.say(|| {
                format!(
                    "a loop: node {from} asks its plain side for '{key}', which meets this one: its queries \
                     are not carried on here; part the two sides, or take other keys"
                )
            });
        }
        if let Err((reason, what)) = self.carry(query) {
            self.common.node.note_dropped(reason, 1);
            self.common.say(|| format!("'{}' was not asked: {what}", query.key_expr()));
            refuse(query, &what);
        }
    }

    fn carry(&self, query: &Query) -> Result<(), (DropReason, String)> {
        let Common { rule, .. } = &self.common;
        let body = Body::Ask(ask(query, rule.patience));
        let bytes = Message { query: 0, body: body.clone() }.encode().len();
        if u64::try_from(bytes).unwrap_or(u64::MAX) > rule.bytes_max {
            let most = rule.bytes_max;
            let what = format!(
                "the query has {bytes} bytes, its rule takes at most {most}: raise max_bytes"
            );
            return Err((DropReason::TooLarge, what));
        }
        let mut state = lock(&self.state);
        // One that matches several of the queryables declared here comes once for each: all of them have the one
        // key of the one query in memory, which stays there while it waits.
        if state.waiting.any(|other| std::ptr::eq(other.key_expr(), query.key_expr())) {
            return Ok(());
        }
        if state.waiting.is_full() {
            let most = rule.at_once;
            let what = format!("{most} queries wait already: ask again later, or raise at_once");
            return Err((DropReason::QueueFull, what));
        }
        let matches =
            |peer: &Peer| peer.offers.keys().any(|key| key.0.intersects(query.key_expr()));
        let ready = state.peers.iter().filter(|(_, peer)| peer.ready && matches(peer));
        let nodes: Vec<_> = ready.map(|(node, peer)| (*node, peer.way.line().clone())).collect();
        let now = Instant::now();
        let asked = nodes.iter().map(|(node, _)| *node);
        let number = state.waiting.ask(now, query.clone(), asked);
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
            format!("too much waits for the link to node {name}: ask again later"),
        ))
    }

    fn answer(&self, delivery: Delivery) {
        let node = delivery.publisher.node;
        let Some(Message { query: number, body }) = Message::decode(&delivery.payload) else {
            self.common.node.note_dropped(DropReason::NotExported, 1);
            return self.common.say(|| format!("node {node} says what is not understood here"));
        };
        if let Body::End(of) = body {
            let ended = lock(&self.state).waiting.ended(Instant::now(), number, node, of);
            return drop(ended);
        }
        let query = lock(&self.state).waiting.answered(number, node);
        let replied = match (query, body) {
            (Some(query), Body::Sample(sample)) => reply(&query, sample),
            (Some(query), Body::Deletion(sample)) => {
                let stamp = stamp(&sample);
                let attachment = sample.attachment.map(|bytes| bytes.to_vec());
                query.reply_del(sample.key).attachment(attachment).timestamp(stamp).wait()
            }
            (Some(query), Body::Error(Value { encoding, payload })) => {
                query.reply_err(payload).encoding(Encoding::from(encoding)).wait()
            }
            // Of a query that ended, or from a node that this one never asked.
            (None, _) | (_, Body::Ask(_) | Body::End(_)) => {
                return self.common.node.note_dropped(DropReason::DeadlineMissed, 1);
            }
        };
        if let Err(error) = replied {
            self.common.node.note_dropped(DropReason::NotExported, 1);
            tracing::debug!("query {}: an answer was not given: {error}", self.common.number);
        }
    }

    /// Tells those who asked what they do not get.
    fn tell(&self, missing: Vec<Missing<Query>>) {
        for Missing { query, node, why } in missing {
            let name = self.common.name(node);
            let (reason, count, what) = match why {
                Why::TimedOut => {
                    let patience = self.common.rule.patience;
                    let what =
                        format!("node {name} has not answered within {patience:?} (timeout)");
                    (DropReason::DeadlineMissed, 1, what)
                }
                Why::Gone => {
                    (DropReason::LinkDown, 1, format!("node {name}, which was asked, has gone"))
                }
                Why::Lost(count) => {
                    let what = format!(
                        "{count} answers of node {name} did not come: they are dropped there"
                    );
                    (DropReason::LinkLoss, count, what)
                }
            };
            self.common.node.note_dropped(reason, count);
            self.common.say(|| format!("'{}': {what}", query.key_expr()));
            refuse(&query, &what);
        }
    }
}

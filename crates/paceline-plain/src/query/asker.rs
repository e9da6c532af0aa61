//! Forwards queries of programs here to queryables at other nodes. Local queryables represent the
//! remote ones.

use super::asking::{Asking, Peer};
use super::channel::Channel;
use super::offers::{self, Key, Keys, OFFERS_MAX};
use super::pool::{Next, Watch, Work, WorkerPool};
use super::{Common, LOOK_EVERY};
use crate::{history, lock};
use paceline::status::NodeId;
use paceline::{RecvError, Sample, Subscriber};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;
use zenoh::Wait;
use zenoh::liveliness::LivelinessToken;
use zenoh::query::Queryable;
use zenoh::sample::Locality;

/// Sends queries to other nodes. Stops when dropped.
pub(super) struct Asker {
    _rota: WorkerPool,
}

impl Asker {
    pub(super) fn open(common: Common) -> zenoh::Result<Self> {
        let offers = common.node.subscriber(&common.offers_tag()).declare()?;
        let answers = common.subscribe(&common.answer_tag(common.node.id()))?;
        let name = format!("paceline-ask-{}", common.number);
        let worker = Worker {
            asking: Arc::new(Asking::new(common)),
            offers,
            answers,
            heard: BTreeSet::new(),
            declared: BTreeMap::new(),
            looked: None,
            todo: VecDeque::new(),
        };
        Ok(Self { _rota: WorkerPool::open(name, worker)? })
    }
}

/// A queryable here that represents remote ones.
struct Declared {
    complete: bool,
    /// The token of an AdvancedPublisher, which makes subscribers query its history. Undeclared first.
    _token: Option<LivelinessToken>,
    _queryable: Queryable<()>,
}

struct Worker {
    asking: Arc<Asking>,
    offers: Subscriber,
    answers: Subscriber,
    /// The nodes whose answers can reach this node.
    heard: BTreeSet<NodeId>,
    /// The local queryables that represent remote ones, with their completeness.
    declared: BTreeMap<Key, Declared>,
    looked: Option<Instant>,
    /// Messages to deliver to programs here.
    todo: VecDeque<Work>,
}

impl Watch for Worker {
    fn next(&mut self) -> Next {
        let now = Instant::now();
        if self.looked.is_none_or(|looked| now >= looked + LOOK_EVERY) {
            self.looked = Some(now);
            self.look(now);
        }
        if let Some(work) = self.todo.pop_front() {
            return Next::Work(work);
        }
        let next = self.asking.state().waiting.next_end();
        let wait = next.map_or(LOOK_EVERY, |end| end.saturating_duration_since(now));
        match self.answers.recv_timeout(wait.min(LOOK_EVERY)) {
            Ok(delivery) => self.asking.answer(&delivery).map_or(Next::Nothing, Next::Work),
            Err(RecvError::Closed) => Next::Over,
            Err(_) => Next::Nothing,
        }
    }

    fn end(self) -> Vec<Work> {
        // Undeclare first, so that no new query arrives while the waiting ones are refused.
        drop(self.declared);
        let missing = self.asking.state().waiting.remove_all();
        let asking = &self.asking;
        let refusals = std::mem::take(&mut asking.state().refusals);
        let missing = missing.into_iter().filter_map(|missing| asking.report(missing));
        self.todo.into_iter().chain(refusals).chain(missing).collect()
    }
}

impl Worker {
    /// Updates the state of other nodes and ends expired queries.
    fn look(&mut self, now: Instant) {
        if let Some(present) = self.asking.common.heard(&self.offers) {
            let present: BTreeSet<_> = present.into_iter().collect();
            let mut removed = Vec::new();
            let mut state = self.asking.state();
            while let Some(node) = state.peers.keys().find(|node| !present.contains(node)).copied()
            {
                removed.extend(state.peers.remove(&node));
            }
            drop(state);
            // Dropping a channel joins its thread, so drop it without the lock.
            drop(removed);
        }
        while let Some(delivery) = self.offers.try_recv() {
            self.learn(&delivery);
        }
        if let Some(heard) = self.asking.common.heard(&self.answers) {
            self.heard = heard.into_iter().collect();
        }
        let mut state = self.asking.state();
        for (node, peer) in &mut state.peers {
            peer.ready = peer.channel.stands() && self.heard.contains(node);
        }
        let mut missing = state.waiting.only(&self.heard);
        missing.extend(state.waiting.expired(now));
        let mut wanted = Keys::new();
        for peer in state.peers.values().filter(|peer| peer.ready) {
            for (key, complete) in &peer.offers {
                *wanted.entry(key.clone()).or_default() |= complete;
            }
        }
        self.todo.extend(state.refusals.drain(..));
        drop(state);
        let reports = missing.into_iter().filter_map(|missing| self.asking.report(missing));
        self.todo.extend(reports);
        self.declare(&wanted);
    }

    /// Updates the queryables of a node.
    fn learn(&self, delivery: &Sample) {
        let common = &self.asking.common;
        let node = delivery.publisher.node;
        if node == common.node.id() {
            return;
        }
        let carried = |(key, complete): (Key, bool)| {
            history::narrowed(&common.rule.key, &key.0).map(|key| (Key(key), complete))
        };
        let offers: Keys =
            offers::read(&delivery.payload).into_iter().filter_map(carried).collect();
        if let Some(peer) = self.asking.state().peers.get_mut(&node) {
            peer.offers = offers;
            return;
        }
        match Channel::open(common, &common.ask_tag(node)) {
            Ok(channel) => {
                let peer = Peer { channel, offers, ready: false };
                self.asking.state().peers.insert(node, peer);
            }
            Err(error) => common.warn(|| error.to_string()),
        }
    }

    /// Makes the local queryables equal to `wanted`.
    fn declare(&mut self, wanted: &Keys) {
        let is_same = |key: &Key, complete: bool| wanted.get(key) == Some(&complete);
        let own = &self.asking.common.own_tokens;
        self.declared.retain(|key, declared| {
            let stays = is_same(key, declared.complete);
            if !stays {
                lock(own).remove(key.0.as_str());
            }
            stays
        });
        for (key, complete) in wanted.iter().take(OFFERS_MAX) {
            if self.declared.contains_key(key) {
                continue;
            }
            match self.represent(key, *complete) {
                Ok(declared) => drop(self.declared.insert(key.clone(), declared)),
                Err(error) => tracing::debug!("queryable {}: {error}", key.0),
            }
        }
    }

    fn represent(&self, key: &Key, complete: bool) -> zenoh::Result<Declared> {
        let (asking, name) = (self.asking.clone(), key.0.to_string());
        let session = &self.asking.common.session;
        let queryable = session
            .declare_queryable(key.0.clone())
            .complete(complete)
            .allowed_origin(Locality::Remote)
            .callback(move |query| asking.ask(&query, &name))
            .wait()?;
        // After the queryable, which the subscribers query at once.
        let token = history::is_history(&key.0).then(|| {
            lock(&self.asking.common.own_tokens).insert(key.0.to_string());
            let token = session.liveliness().declare_token(key.0.clone()).wait();
            token.inspect_err(|_| _ = lock(&self.asking.common.own_tokens).remove(key.0.as_str()))
        });
        Ok(Declared { complete, _token: token.transpose()?, _queryable: queryable })
    }
}

//! The thread that answers requests for this node's buffers.

use super::super::command::{Command, Commands, PullCommand};
use super::super::held::HeldBuffer;
use super::feeder::{self, Ending, Feeder, Page};
use super::making::Units;
use crate::shell::realtime;
use paceline_proto::pull::{Answer, Fetch, Find, Found, Question};
use paceline_proto::{NodeId, RawSample, SubscriptionId};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The limit of queued requests. Others are dropped; the caller repeats them.
const QUESTIONS_MAX: usize = 256;
/// The limit of concurrent pulls.
const FEEDERS_MAX: usize = 64;
/// The interval at which expired samples are dropped if no new ones arrive.
const EXPIRE_EVERY: Duration = Duration::from_millis(250);

type Buffers = Mutex<BTreeMap<SubscriptionId, Arc<HeldBuffer>>>;

fn lock(buffers: &Buffers) -> MutexGuard<'_, BTreeMap<SubscriptionId, Arc<HeldBuffer>>> {
    buffers.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Asked {
    request: u64,
    from: NodeId,
    question: Question,
}

/// The engine's handle of the thread, which starts with the first buffer or request and ends when
/// this is dropped.
pub(crate) struct Holder {
    buffers: Arc<Buffers>,
    commands: Commands,
    thread: Option<SyncSender<Asked>>,
}

impl Holder {
    pub(crate) fn new(commands: Commands) -> Self {
        Self { buffers: Arc::default(), commands, thread: None }
    }

    /// Registers a buffer.
    pub(crate) fn hold(&mut self, id: SubscriptionId, buffer: Arc<HeldBuffer>) {
        lock(&self.buffers).insert(id, buffer);
        self.thread();
    }

    /// Removes a buffer.
    pub(crate) fn release(&self, id: SubscriptionId) {
        lock(&self.buffers).remove(&id);
    }

    /// Returns the buffers in the order of their identifiers.
    pub(crate) fn buffers(&self) -> Vec<(SubscriptionId, Arc<HeldBuffer>)> {
        lock(&self.buffers).iter().map(|(id, buffer)| (*id, buffer.clone())).collect()
    }

    /// Queues a request. Never blocks.
    pub(crate) fn ask(&mut self, request: u64, from: NodeId, question: Question) {
        let asked = Asked { request, from, question };
        if let Some(thread) = self.thread()
            && thread.try_send(asked).is_err()
        {
            crate::warn_limited!(
                "the pull buffers' queue of {QUESTIONS_MAX} queries is full; one query was dropped"
            );
        }
    }

    fn thread(&mut self) -> Option<&SyncSender<Asked>> {
        if self.thread.is_none() {
            let (sender, inbox) = sync_channel(QUESTIONS_MAX);
            let responder = Responder {
                inbox,
                buffers: self.buffers.clone(),
                commands: self.commands.clone(),
                feeders: BTreeMap::new(),
                ending: Vec::new(),
            };
            let named = std::thread::Builder::new().name("paceline-pull".to_owned());
            let run = move || {
                realtime::leave();
                responder.run()
            };
            match named.spawn(run) {
                Ok(_) => self.thread = Some(sender),
                Err(error) => {
                    crate::log_limited!(error, "cannot start the thread of pull buffers: {error}")
                }
            }
        }
        self.thread.as_ref()
    }
}

struct Responder {
    inbox: Receiver<Asked>,
    buffers: Arc<Buffers>,
    commands: Commands,
    feeders: BTreeMap<(NodeId, u64), Feeder>,
    /// Feeders of ended pulls, which still send their last page.
    ending: Vec<Ending>,
}

impl Responder {
    fn run(mut self) {
        let mut expire_at = Instant::now() + EXPIRE_EVERY;
        loop {
            match self.inbox.recv_timeout(expire_at.saturating_duration_since(Instant::now())) {
                Ok(asked) => self.handle(asked),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if Instant::now() >= expire_at {
                expire_at = Instant::now() + EXPIRE_EVERY;
                self.held().iter().for_each(|buffer| buffer.expire());
            }
        }
    }

    fn held(&self) -> Vec<Arc<HeldBuffer>> {
        lock(&self.buffers).values().cloned().collect()
    }

    fn handle(&mut self, Asked { request, from, question }: Asked) {
        let answer = match question {
            Question::Find(find) => Some(Answer::Held(self.find(&find))),
            Question::Fetch(fetch) => self.fetch(from, request, fetch),
            Question::Done { pull } => {
                let over = self.feeders.remove(&(from, pull));
                self.ending.extend(over.map(Feeder::end));
                None
            }
            // The engine answers it.
            Question::Order { .. } => None,
        };
        let Some(answer) = answer else { return };
        let answer = PullCommand::Answer { request, to: from, answer };
        self.commands.send(Command::Pull(answer));
    }

    fn find(&self, find: &Find) -> Found {
        Found::union(self.held().iter().map(|buffer| buffer.find(find)).collect())
    }

    /// Queues a request at the feeder of its pull. Returns an answer only if the feeder does not
    /// answer.
    fn fetch(&mut self, from: NodeId, request: u64, fetch: Fetch) -> Option<Answer> {
        let pull = (from, fetch.pull);
        let buffers = self.held();
        let (tag, publisher) = (fetch.tag.clone(), fetch.publisher);
        let held = |seq: u64| buffers.iter().find_map(|b| b.fetch(&tag, publisher, seq));
        let kept: BTreeMap<u64, RawSample> =
            fetch.seqs.iter().filter_map(|&seq| Some((seq, held(seq)?))).collect();
        self.feeders.retain(|_, feeder| feeder.is_alive());
        self.ending.retain(Ending::is_alive);
        // The feeder may still have a transformed sample whose original has been dropped.
        if kept.is_empty() && !self.feeders.contains_key(&pull) {
            let (failed, why) = (Vec::new(), String::new());
            return Some(Answer::Fetching { missing: fetch.seqs, failed, why });
        }
        if !self.feeders.contains_key(&pull) {
            if self.feeders.len() + self.ending.len() >= FEEDERS_MAX {
                return Some(Answer::Refused(format!(
                    "this node already serves {FEEDERS_MAX} pulls; try again later"
                )));
            }
            match feeder::start(pull, self.commands.clone()) {
                Ok(feeder) => self.feeders.insert(pull, feeder),
                Err(error) => {
                    return Some(Answer::Refused(format!("cannot start a thread: {error}")));
                }
            };
        }
        let page = Page { request, units: Units { buffers, tag, publisher, kept }, fetch };
        let sent = self.feeders.get(&pull).is_some_and(|feeder| feeder.send(page));
        let refuse = || Answer::Refused("earlier fetched samples are still being sent".to_owned());
        (!sent).then(refuse)
    }
}

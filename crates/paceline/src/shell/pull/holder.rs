//! The holder's side: a thread that looks into this node's buffers for whoever asks.

use super::super::engine::{Command, Commands};
use super::feeder::{self, Ending, Feeder, Page};
use super::making::Units;
use super::{HeldBuffer, PullCommand};
use paceline_proto::pull::{Answer, Fetch, Find, Found, Question};
use paceline_proto::{NodeId, Sample, SubscriptionId};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Questions that wait; more are dropped, and asked again by who asked.
const QUESTIONS_MAX: usize = 256;
/// Pulls that are served at once.
const FEEDERS_MAX: usize = 64;
/// How often what is too old goes although nothing new comes.
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

/// The engine's side of it. The thread starts with the first buffer or question, and ends when this is
/// dropped.
pub(crate) struct Holder {
    buffers: Arc<Buffers>,
    commands: Commands,
    thread: Option<SyncSender<Asked>>,
}

impl Holder {
    pub(crate) fn new(commands: Commands) -> Self {
        Self { buffers: Arc::default(), commands, thread: None }
    }

    /// A buffer of this node.
    pub(crate) fn hold(&mut self, id: SubscriptionId, buffer: Arc<HeldBuffer>) {
        lock(&self.buffers).insert(id, buffer);
        self.thread();
    }

    /// It is gone.
    pub(crate) fn release(&self, id: SubscriptionId) {
        lock(&self.buffers).remove(&id);
    }

    /// The buffers, in the order of their ids.
    pub(crate) fn buffers(&self) -> Vec<(SubscriptionId, Arc<HeldBuffer>)> {
        lock(&self.buffers).iter().map(|(id, buffer)| (*id, buffer.clone())).collect()
    }

    /// Somebody asks. Never waits.
    pub(crate) fn ask(&mut self, request: u64, from: NodeId, question: Question) {
        let asked = Asked { request, from, question };
        if let Some(thread) = self.thread()
            && thread.try_send(asked).is_err()
        {
            crate::warn_limited!(
                "{QUESTIONS_MAX} questions wait for the pull buffers; one was dropped"
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
            match named.spawn(move || responder.run()) {
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
    /// Of pulls that are over: they end when what they are sending has gone.
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
        };
        let Some(answer) = answer else { return };
        let answer = PullCommand::Answer { request, to: from, answer };
        self.commands.send(Command::Pull(answer));
    }

    fn find(&self, find: &Find) -> Found {
        Found::union(self.held().iter().map(|buffer| buffer.find(find)).collect())
    }

    /// Hands what is fetched to the feeder of the pull. What is answered already, if the feeder does not.
    fn fetch(&mut self, from: NodeId, request: u64, fetch: Fetch) -> Option<Answer> {
        let pull = (from, fetch.pull);
        let buffers = self.held();
        let (tag, publisher) = (fetch.tag.clone(), fetch.publisher);
        let held = |seq: u64| buffers.iter().find_map(|b| b.fetch(&tag, publisher, seq));
        let kept: BTreeMap<u64, Sample> =
            fetch.seqs.iter().filter_map(|&seq| Some((seq, held(seq)?))).collect();
        self.feeders.retain(|_, feeder| feeder.is_alive());
        self.ending.retain(Ending::is_alive);
        // What was made of it may still be there, though it is held no more.
        if kept.is_empty() && !self.feeders.contains_key(&pull) {
            let (failed, why) = (Vec::new(), String::new());
            return Some(Answer::Fetching { missing: fetch.seqs, failed, why });
        }
        if !self.feeders.contains_key(&pull) {
            if self.feeders.len() + self.ending.len() >= FEEDERS_MAX {
                return Some(Answer::Refused(format!(
                    "this node serves {FEEDERS_MAX} pulls already; pull again later"
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
        let refuse = || Answer::Refused("what was fetched before is still being sent".to_owned());
        (!sent).then(refuse)
    }
}

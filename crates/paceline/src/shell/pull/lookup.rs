//! The first phase of a pull: finds the nodes with buffers and their selected samples.

use super::super::command::{Command, Commands, Holders, PullCommand, Reply};
use super::Pipe;
use crate::summary::PullError;
use paceline_proto::pull::{Answer, Answered, Find, Found, ITEMS_MAX, PullPlan, Question, merge};
use paceline_proto::{Form, NodeId};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// The longest time until a new buffer or node is known.
pub(super) const NEWS_WITHIN: Duration = Duration::from_secs(2);
/// The interval of checks for it.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(25);
/// The reaction time to the end of the pull.
const SLICE: Duration = Duration::from_millis(100);
/// The timeout for short messages.
const PATIENCE: Duration = Duration::from_secs(2);
/// A pull is assumed to get at least one part in this many of a link's capacity.
const SHARE: u64 = 4;
/// The largest number of requests to a node.
pub(super) const ASKED_MAX: u32 = 3;
/// The largest number of pages in a node's answer: enough for any number of samples and publishers.
const PAGES_MAX: u64 = 1_024;
/// The approximate size of an answer's page in bytes.
const PAGE_BYTES: u64 = 16 << 10;

/// The request of a pull.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) find: Find,
    /// The requested picture and sound form; the rate is in `find`.
    pub(crate) form: Form,
    /// The only node to ask, by name or identifier.
    pub(crate) from: Option<String>,
    /// The samples of a buffer to order at that node first.
    pub(crate) order: Option<u32>,
    /// The end of the pull's timeout.
    pub(crate) until: Option<Instant>,
    /// Fails at once without a buffer in a complete registry.
    pub(crate) at_once: bool,
}

/// The result of a lookup.
pub(super) struct Lookup {
    pub(super) plan: PullPlan,
    pub(super) answers: Vec<Answered>,
    pub(super) holders: Holders,
    /// The nodes that did not answer.
    pub(super) silent: Vec<NodeId>,
}

impl Wanted {
    /// Returns the time `within` from now, but not after the end of the pull.
    pub(super) fn until(&self, within: Duration) -> Instant {
        let until = Instant::now() + within;
        self.until.map_or(until, |end| end.min(until))
    }

    /// Returns true if the pull has timed out.
    pub(super) fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}

impl Holders {
    /// Reads the state from the engine.
    pub(super) fn now(commands: &Commands, find: &Find) -> Result<Self, PullError> {
        let (reply, answer) = channel();
        commands.send(Command::Pull(PullCommand::Holders(find.tag.clone(), reply)));
        answer.recv().map_err(|_| PullError::Closed)
    }

    /// Returns the timeout for `bytes`: a multiple of their time on the link with the smallest
    /// capacity.
    pub(super) fn patience(&self, bytes: u64) -> Duration {
        let bits_per_s = self.thinnest.unwrap_or(u64::MAX).max(1);
        let nanos = u128::from(bytes) * 8 * 1_000_000_000 * u128::from(SHARE);
        let nanos = u64::try_from(nanos / u128::from(bits_per_s)).unwrap_or(u64::MAX);
        PATIENCE.saturating_add(Duration::from_nanos(nanos))
    }

    fn names(&self) -> Vec<String> {
        self.nodes.iter().map(|(_, name)| name.clone()).collect()
    }

    /// Returns the node whose name or identifier is `asked`.
    pub(super) fn node(&self, asked: &str) -> Result<NodeId, PullError> {
        let is = |(id, name): &&(NodeId, String)| name == asked || id.to_string() == asked;
        let mut found = self.nodes.iter().filter(is);
        match (found.next(), found.next()) {
            (Some((id, _)), None) => Ok(*id),
            (None, _) => Err(PullError::NoNode { asked: asked.to_owned(), there: self.names() }),
            (Some((one, _)), Some((other, _))) => {
                Err(PullError::TwoNodes { asked: asked.to_owned(), ids: [*one, *other] })
            }
        }
    }

    /// Returns the nodes to ask.
    fn chosen(&self, wanted: &Wanted) -> Result<Vec<(NodeId, usize)>, PullError> {
        let tag = &wanted.find.tag;
        let node = wanted.from.as_deref().map(|from| self.node(from)).transpose()?;
        if self.holders.is_empty() {
            return Err(PullError::NoBuffer(tag.clone()));
        }
        let Some(node) = node else { return Ok(self.holders.clone()) };
        let chosen: Vec<_> = self.holders.iter().filter(|(id, _)| *id == node).copied().collect();
        if chosen.is_empty() {
            return Err(PullError::NotHeldBy {
                node: self.name(node),
                tag: tag.clone(),
                holders: self.holders.iter().map(|(id, _)| self.name(*id)).collect(),
            });
        }
        Ok(chosen)
    }
}

/// Finds the requested samples.
pub(super) fn look(commands: &Commands, wanted: &Wanted, pipe: &Pipe) -> Result<Lookup, PullError> {
    let (holders, chosen) = holders(commands, wanted, pipe)?;
    let (replies, inbox) = channel();
    let asking = Asking {
        commands,
        wanted,
        pipe,
        replies,
        holders: &holders,
        each: chosen.iter().map(|&(node, hops)| Asked::new(node, hops)).collect(),
    };
    let (answers, silent, refused) = asking.run(&inbox);
    if answers.is_empty() {
        return Err(match refused {
            Some(why) => PullError::Refused(why),
            None => PullError::NoAnswer(silent.iter().map(|node| holders.name(*node)).collect()),
        });
    }
    let plan = merge(&wanted.find, wanted.form.size.is_some(), &answers);
    if let Some(why) = plan.explain(&wanted.find) {
        return Err(PullError::Nothing(why));
    }
    Ok(Lookup { plan, answers, holders, silent })
}

/// Waits for nodes with buffers: a node that was just opened knows none.
fn holders(
    commands: &Commands,
    wanted: &Wanted,
    pipe: &Pipe,
) -> Result<(Holders, Vec<(NodeId, usize)>), PullError> {
    let until = wanted.until(NEWS_WITHIN);
    loop {
        let holders = Holders::now(commands, &wanted.find)?;
        match holders.chosen(wanted) {
            Ok(chosen) => return Ok((holders, chosen)),
            Err(error) if wanted.at_once && holders.are_complete => return Err(error),
            Err(error) if Instant::now() >= until || pipe.is_closed() => return Err(error),
            Err(_) => std::thread::sleep(LOOK_EVERY),
        }
    }
}

/// The state of a request to one node.
struct Asked {
    node: NodeId,
    hops: usize,
    found: Found,
    /// The requested page. Answers with another number are ignored.
    page: u64,
    asked: u32,
    again_at: Instant,
    state: State,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum State {
    Waits,
    Answered,
    Failed,
}

impl Asked {
    fn new(node: NodeId, hops: usize) -> Self {
        let (found, page, state) = (Found::default(), 0, State::Waits);
        Self { node, hops, found, page, asked: 0, again_at: Instant::now(), state }
    }
}

struct Asking<'a> {
    commands: &'a Commands,
    wanted: &'a Wanted,
    pipe: &'a Pipe,
    replies: Sender<Reply>,
    holders: &'a Holders,
    each: Vec<Asked>,
}

impl Asking<'_> {
    /// Returns all answers, the nodes without one, and the reason of a refusal.
    fn run(mut self, inbox: &Receiver<Reply>) -> (Vec<Answered>, Vec<NodeId>, Option<String>) {
        let mut refused = None;
        while self.each.iter().any(|asked| asked.state == State::Waits) {
            if self.wanted.is_over() || self.pipe.is_closed() {
                break;
            }
            self.ask();
            match inbox.recv_timeout(SLICE) {
                Ok(reply) => self.take(reply, &mut refused),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let (answered, failed): (Vec<_>, Vec<_>) =
            self.each.into_iter().partition(|asked| asked.state == State::Answered);
        let answers = answered.into_iter().map(|Asked { node, hops, found, .. }| Answered {
            node,
            hops,
            found,
        });
        (answers.collect(), failed.into_iter().map(|asked| asked.node).collect(), refused)
    }

    fn ask(&mut self) {
        let now = Instant::now();
        let patience = self.holders.patience(PAGE_BYTES);
        for asked in self.each.iter_mut().filter(|asked| asked.state == State::Waits) {
            if now < asked.again_at {
                continue;
            }
            if asked.asked == ASKED_MAX {
                asked.state = State::Failed;
                continue;
            }
            asked.asked += 1;
            asked.again_at = now + patience;
            let find = Find { after: asked.found.next(), ..self.wanted.find.clone() };
            self.commands.send(Command::Pull(PullCommand::Ask {
                to: asked.node,
                question: Question::Find(find),
                token: asked.page,
                reply: Some(self.replies.clone()),
            }));
        }
    }

    fn take(&mut self, reply: Reply, refused: &mut Option<String>) {
        let waits = |asked: &&mut Asked| {
            (asked.node, asked.page, asked.state) == (reply.node, reply.token, State::Waits)
        };
        let Some(asked) = self.each.iter_mut().find(waits) else { return };
        match reply.answer {
            Answer::Held(page) => {
                let before = asked.found.next();
                asked.found.append(page);
                let (next, items) = (asked.found.next(), asked.found.len());
                // Stop if a page makes no progress, to prevent an endless loop.
                if next > before && items < ITEMS_MAX && asked.page < PAGES_MAX {
                    asked.page += 1;
                    (asked.asked, asked.again_at) = (0, Instant::now());
                } else {
                    asked.state = State::Answered;
                }
            }
            Answer::Refused(why) => {
                asked.state = State::Failed;
                *refused = Some(format!("node {}: {why}", self.holders.name(reply.node)));
            }
            Answer::Fetching { .. } | Answer::Ordered => asked.state = State::Failed,
        }
    }
}

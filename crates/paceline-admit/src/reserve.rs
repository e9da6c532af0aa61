//! Reservations hop by hop, as a value: messages, requests and time in; messages, answers and what to
//! install out.
//!
//! One round trip: ADMIT reserves tentatively at every node of a path, the other end says yes, and ACCEPT
//! makes it lasting on the way back, where every node gives back what it turned out not to need. Any no
//! gives everything back. State is soft: what nobody refreshes ends, so neither a lost message nor a dead
//! node can keep capacity. Repeated, late and reordered messages change nothing, because of two versions
//! the older never does.
//!
//! | at a node | means | ends by |
//! |---|---|---|
//! | tentative | counted, and carried as best effort | ACCEPT, DENY, or a wait without answer |
//! | installed | policed and kept | CLOSE, or no refresh from one of both sides for a life L |
//! | past | remembered, holds nothing | time |
//!
//! A change is a tentative version beside the installed one, which stays until the new one is certain. Data
//! goes along the message (forward), against it (backward), or both: then both or neither is held.
//!
//! Nothing proves who sends: a message counts only if it comes from the neighbour before or after this
//! node on the path of what it names. Whoever can speak as that neighbour can end its reservations.
//!
//! Papers: seed 003 §4.1.2 (REQUEST_ADMIT, REQUEST_ACCEPT, REQUEST_DENIED, NOTIFY_CLOSE, RECVD_CLOSE,
//! REQUEST_STATUS, REPORT_STATUS) and §2.3.1 (Tenet: reserve on the way out, relax on the way back); RFC
//! 2205 (soft state, refreshes, blockade); RFC 2961 (lists of refreshes, retransmission).

pub mod codec;
mod expire;
mod hop;
mod legs;
pub mod message;
mod origin;
mod state;
#[cfg(test)]
mod tests;
mod timing;

pub use message::{Key, Message, Name, Node, Reason, Stamp, Wanted, bears_loss};
pub use origin::{Request, RequestError};
pub use timing::Timing;

use crate::demand::Demand;
use crate::link::{Admission, Holder, Trunk};
use message::{Admit, HopShare, NAMES_MAX, Report, Standing};
use paceline_sched::{Duration, Instant};
use state::{Entry, Past};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use timing::Jitter;

/// A link of this node, by a number of the caller's. Several neighbours may be behind one.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LinkId(pub u32);

/// What a path holds for whoever asked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Granted {
    /// From this node to the other end.
    pub path: Vec<Node>,
    /// The delay from end to end that is promised in the direction of the path.
    pub forward: Option<Duration>,
    /// The same against it.
    pub backward: Option<Duration>,
    /// What each node holds, in the order of the path.
    pub hops: Vec<HopShare>,
}

/// What becomes of a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Answer {
    /// All of the path holds it.
    Granted(Granted),
    /// Nothing of it is held; after a change what was there before still is.
    Denied {
        /// The node that said no.
        node: Node,
        /// Why.
        reason: Reason,
    },
}

/// What follows from an input, in order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Output {
    /// A message for a neighbour.
    Send {
        /// Which one.
        to: Node,
        /// What.
        message: Message,
    },
    /// The answer to [`Reservations::request`] or [`Reservations::change`].
    Answer {
        /// Of which reservation.
        key: Key,
        /// What.
        answer: Answer,
    },
    /// This node is the other end: say [`Reservations::answer`], before the asking times out.
    Asked {
        /// Which version of which reservation.
        name: Name,
        /// What it is for.
        label: Vec<u8>,
        /// What would come here.
        forward: Option<Wanted>,
        /// What would leave here.
        backward: Option<Wanted>,
    },
    /// Hold the stream to this from now on: its policers and its contract on the link.
    Install {
        /// On which link.
        link: LinkId,
        /// Which stream.
        trunk: Trunk,
        /// To what.
        demand: Demand,
    },
    /// The stream has no promise on the link any more.
    Release {
        /// On which link.
        link: LinkId,
        /// Which stream.
        trunk: Trunk,
    },
    /// A reservation that had its end here is over, though nobody here closed it.
    Ended {
        /// Which.
        key: Key,
        /// Why; `None` if the other end closed it.
        reason: Option<Reason>,
        /// The node that said so, as far as it is known.
        node: Node,
    },
    /// What a neighbour holds, as [`Reservations::ask_status`] asked.
    Status {
        /// Whose.
        from: Node,
        /// One page of it.
        report: Report,
    },
}

/// One reservation that is installed at a node.
#[derive(Clone, Copy, Debug)]
pub struct Held<'a> {
    /// Which version of which.
    pub name: Name,
    /// From its origin to the other end.
    pub path: &'a [Node],
    /// How the hops share a delay bound; empty: evenly.
    pub weights: &'a [u32],
    /// What it is for, in its origin's words.
    pub label: &'a [u8],
    /// This node's place in the path.
    pub at: usize,
    /// What goes along the path.
    pub forward: Option<&'a Wanted>,
    /// What goes against it.
    pub backward: Option<&'a Wanted>,
}

/// What the other end says to a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Decision {
    /// Yes; the nodes of the path may take so much longer than was asked for, together.
    Accept {
        /// How much: RFC 2212's slack.
        slack: Duration,
    },
    /// No.
    Decline,
}

/// A neighbour that answers.
#[derive(Clone, Copy, Debug)]
struct Neighbour {
    link: LinkId,
    epoch: u64,
}

/// All reservations that go through or end at one node.
#[derive(Clone, Debug)]
pub struct Reservations {
    me: Node,
    epoch: u64,
    timing: Timing,
    jitter: Jitter,
    now: Instant,
    links: BTreeMap<LinkId, Admission>,
    neighbours: BTreeMap<Node, Neighbour>,
    entries: BTreeMap<Key, Entry>,
    past: BTreeMap<Key, Past>,
    wakes: BTreeSet<(Instant, Key)>,
    armed: BTreeMap<Key, Instant>,
    /// The newest epoch of an origin that was heard of by a neighbour.
    epochs: BTreeMap<(Node, Node), u64>,
    next_number: u64,
    outputs: VecDeque<Output>,
    ignored: u64,
}

impl Reservations {
    /// The most reservations of a node; as many that ended are remembered.
    pub const MAX: usize = 1 << 16;

    /// A node that holds nothing. `epoch` is larger after every start; `seed` differs by node.
    #[must_use]
    pub fn new(me: Node, epoch: u64, timing: Timing, seed: u64) -> Self {
        Self {
            me,
            epoch,
            timing,
            jitter: Jitter(seed),
            now: Instant::ZERO,
            links: BTreeMap::new(),
            neighbours: BTreeMap::new(),
            entries: BTreeMap::new(),
            past: BTreeMap::new(),
            wakes: BTreeSet::new(),
            armed: BTreeMap::new(),
            epochs: BTreeMap::new(),
            next_number: 0,
            outputs: VecDeque::new(),
            ignored: 0,
        }
    }

    /// Adds a link that holds nothing yet.
    pub fn add_link(&mut self, link: LinkId, admission: Admission) {
        self.links.entry(link).or_insert(admission);
        self.share_processor();
    }

    /// What all links hold of the host's processors together, tentative or not, in nanoseconds per second.
    #[must_use]
    pub fn processor_held(&self) -> u64 {
        self.links.values().fold(0, |sum, link| sum.saturating_add(link.ledger().held.cpu))
    }

    /// A link, with what it holds.
    #[must_use]
    pub fn link(&self, link: LinkId) -> Option<&Admission> {
        self.links.get(&link)
    }

    /// A link, to reserve what it needs for itself, and to tell what streams use. Trunks of reservations
    /// must be left alone.
    pub fn link_mut(&mut self, link: LinkId) -> Option<&mut Admission> {
        self.links.get_mut(&link)
    }

    /// A neighbour answers, over this link. One that was started anew (another `epoch`) has lost what it
    /// held, and so has every path through it.
    pub fn set_neighbour(&mut self, now: Instant, node: Node, link: LinkId, epoch: u64) {
        self.advance(now);
        let before = self.neighbours.insert(node, Neighbour { link, epoch });
        if before.is_some_and(|before| before.epoch != epoch || before.link != link) {
            self.lose(node);
        }
    }

    /// A neighbour answers no more.
    pub fn lose_neighbour(&mut self, now: Instant, node: Node) {
        self.advance(now);
        if self.neighbours.remove(&node).is_some() {
            self.lose(node);
        }
    }

    /// A message came from a neighbour.
    pub fn handle_message(&mut self, now: Instant, from: Node, message: Message) {
        self.advance(now);
        if !self.neighbours.contains_key(&from) {
            self.ignored += 1;
            return;
        }
        match message {
            Message::Admit(admit) => self.handle_admit(from, admit),
            Message::Accept(accept) => self.handle_accept(from, accept),
            Message::Deny(deny) => self.handle_deny(from, deny),
            Message::Close(name) => self.handle_close(from, name),
            Message::Closed(name) => self.handle_closed(from, name),
            Message::Refresh(refresh) => self.handle_refresh(from, &refresh),
            Message::Status { page } => {
                let report = self.report(page);
                self.send(from, Message::Report(report));
            }
            Message::Report(report) => self.outputs.push_back(Output::Status { from, report }),
        }
    }

    /// Lets time pass; call it at [`Reservations::next_wake`] at the latest.
    pub fn tick(&mut self, now: Instant) {
        self.advance(now);
        self.expire();
    }

    /// What follows from the inputs so far; drain it after each.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When time alone changes something; [`Instant::FAR`] if it does not.
    #[must_use]
    pub fn next_wake(&self) -> Instant {
        self.wakes.first().map_or(Instant::FAR, |(at, _)| *at)
    }

    /// Asks a neighbour what it holds.
    pub fn ask_status(&mut self, to: Node, page: u32) {
        self.send(to, Message::Status { page });
    }

    /// One page of what this node holds.
    #[must_use]
    pub fn report(&self, page: u32) -> Report {
        let pages = self.entries.len().div_ceil(NAMES_MAX).max(1);
        let first = usize::try_from(page).unwrap_or(usize::MAX).saturating_mul(NAMES_MAX);
        let standings = self.entries.iter().skip(first).take(NAMES_MAX);
        let rates = |of: fn(&Admission) -> u64| self.links.values().map(of).sum();
        Report {
            page,
            pages: u32::try_from(pages).unwrap_or(u32::MAX),
            held: rates(|link| link.ledger().held.rate),
            installed: rates(|link| link.ledger().installed.rate),
            standings: standings.filter_map(|(_, entry)| self.standing(entry)).collect(),
        }
    }

    fn standing(&self, entry: &Entry) -> Option<Standing> {
        let version = entry.installed.as_ref().or(entry.tentative.as_ref())?;
        let installed = entry.installed.is_some();
        let end = if installed { entry.up_until.min(entry.down_until) } else { version.until };
        Some(Standing { name: version.ask.name, installed, left: end.since(self.now) })
    }

    /// The version of a reservation that is installed here.
    #[must_use]
    pub fn installed(&self, key: Key) -> Option<Stamp> {
        Some(self.entries.get(&key)?.installed.as_ref()?.stamp())
    }

    /// How many reservations it holds, tentative or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Everything that is installed here.
    pub fn standing_here(&self) -> impl Iterator<Item = Held<'_>> {
        self.entries.values().filter_map(|entry| {
            let version = entry.installed.as_ref()?;
            let Admit { name, path, weights, label, forward, backward, .. } = &version.ask;
            Some(Held {
                name: *name,
                path,
                weights,
                label,
                at: version.at,
                forward: forward.as_ref(),
                backward: backward.as_ref(),
            })
        })
    }

    /// What the name `trunk` of a stream stands for on the link to `next`: what goes to two neighbours over one
    /// link goes over it twice.
    #[must_use]
    pub fn trunk_to(trunk: Trunk, next: Node) -> Trunk {
        legs::trunk_to(trunk, next)
    }

    /// The name under which a reservation holds its parts of links.
    #[must_use]
    pub fn holder(name: Name) -> Holder {
        legs::holder(name)
    }

    /// True if it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Messages that named nothing that their sender has a part in, or came too late.
    #[must_use]
    pub const fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Time never goes back here: an earlier instant counts as the last one.
    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    fn send(&mut self, to: Node, message: Message) {
        self.outputs.push_back(Output::Send { to, message });
    }

    /// Notes when time changes something about `key`.
    fn rearm(&mut self, key: Key) {
        let entry = self.entries.get(&key).map(Entry::next_wake);
        let past = self.past.get(&key).map(Past::next_wake);
        let at = entry.into_iter().chain(past).min().filter(|at| *at < Instant::FAR);
        let before = match at {
            Some(at) => self.armed.insert(key, at),
            None => self.armed.remove(&key),
        };
        if before == at {
            return;
        }
        if let Some(before) = before {
            self.wakes.remove(&(before, key));
        }
        if let Some(at) = at {
            self.wakes.insert((at, key));
        }
    }
}

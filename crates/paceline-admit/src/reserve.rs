//! The hop-by-hop reservation protocol as a state machine. Inputs are messages, requests and time;
//! outputs are messages, answers and demands to install.
//!
//! A reservation takes one round trip. ADMIT reserves tentatively at every node of a path. The
//! other end accepts, and ACCEPT installs the reservation on the return path, where every node
//! releases its surplus. A denial releases everything. State is soft: a reservation without
//! refreshes expires, so neither a lost message nor a failed node can block capacity. Repeated,
//! late and reordered messages have no effect, because an older version never replaces a newer one.
//!
//! | state at a node | meaning | ends by |
//! |---|---|---|
//! | tentative | counted, but carried as best effort | ACCEPT, DENY or timeout |
//! | installed | policed and guaranteed | CLOSE, or no refresh from one side for a lifetime L |
//! | past | remembered without resources | timeout |
//!
//! A change is a tentative version in addition to the installed one, which remains until the new
//! one is certain. Data flows along the path of the message (forward), against it (backward), or
//! both; a bidirectional request reserves both directions or none.
//!
//! Senders are not authenticated. A message counts only if it arrives from the previous or next
//! node on the path of the reservation. A node that can impersonate this neighbour can end its
//! reservations.
//!
//! Papers: Christie 1995, §4.1.2 (REQUEST_ADMIT, REQUEST_ACCEPT, REQUEST_DENIED, NOTIFY_CLOSE,
//! RECVD_CLOSE; REQUEST_STATUS and REPORT_STATUS are not implemented) and §2.3.1 (Tenet: reserve on
//! the forward path, relax on the return path); RFC 2205 (soft state, refreshes, blockade); RFC 2961 (lists of
//! refreshes, retransmission).

mod classes;
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

pub use legs::Here;
pub use message::{
    Key, Name, NodeIndex, Reason, ReserveMessage, Scaled, Stamp, Wanted, bears_loss,
};
pub use origin::{Request, RequestError};
pub use timing::Timing;

use crate::demand::StreamDemand;
use crate::link::{Admission, Holder, Trunk};
use message::{Admit, HopShare};
use paceline_sched::{Duration, Instant};
use state::{Entry, Past};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use timing::Jitter;

/// The caller's number of a link of this node. Several neighbours may share a link.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LinkId(pub u32);

/// The contract that a path has granted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Granted {
    /// The nodes from this one to the other end.
    pub path: Vec<NodeIndex>,
    /// The guaranteed end-to-end delay in the direction of the path.
    pub forward: Option<Duration>,
    /// The guaranteed end-to-end delay against it.
    pub backward: Option<Duration>,
    /// The reservation at each node, in path order.
    pub hops: Vec<HopShare>,
}

/// The answer to a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PathAnswer {
    /// The whole path has installed the reservation.
    Granted(Granted),
    /// Nothing of the request is reserved. After a change request, the previous reservation
    /// remains.
    Denied {
        /// The node that denied it.
        node: NodeIndex,
        /// The reason.
        reason: Reason,
    },
}

/// An output of the state machine. Outputs are in order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ReserveOutput {
    /// Send a message to a neighbour.
    Send {
        /// The neighbour.
        to: NodeIndex,
        /// The message.
        message: ReserveMessage,
    },
    /// The answer to [`Reservations::request`] or [`Reservations::change`].
    Answer {
        /// The reservation.
        key: Key,
        /// The answer.
        answer: PathAnswer,
    },
    /// This node is the other end of a request. Call [`Reservations::answer`] before the request
    /// times out.
    Asked {
        /// The reservation and its version.
        name: Name,
        /// The label of the request.
        label: Vec<u8>,
        /// The stream that would arrive here.
        forward: Option<Wanted>,
        /// The stream that would leave here.
        backward: Option<Wanted>,
    },
    /// Install the policer and the contract of a stream on a link.
    Install {
        /// The link.
        link: LinkId,
        /// The stream.
        trunk: Trunk,
        /// The demand to enforce.
        demand: StreamDemand,
    },
    /// Remove the contract of a stream on a link.
    Release {
        /// The link.
        link: LinkId,
        /// The stream.
        trunk: Trunk,
    },
    /// A reservation that ends at this node was terminated, but not by this node.
    Ended {
        /// The reservation.
        key: Key,
        /// The reason; `None` if the other end closed it.
        reason: Option<Reason>,
        /// The node that reported it, if known.
        node: NodeIndex,
    },
    /// A reservation of this node was closed after its idle time without
    /// [`Reservations::handle_used`].
    Idle {
        /// The reservation.
        key: Key,
    },
}

/// A reservation that is installed at this node.
#[derive(Clone, Copy, Debug)]
pub struct HeldReservation<'a> {
    /// The reservation and its version.
    pub name: Name,
    /// The nodes from the origin to the other end.
    pub path: &'a [NodeIndex],
    /// The weights by which the hops share the delay bound. Empty for equal shares.
    pub weights: &'a [u32],
    /// The label that the origin chose.
    pub label: &'a [u8],
    /// The index of this node in the path.
    pub at: usize,
    /// The stream along the path.
    pub forward: Option<&'a Wanted>,
    /// The stream against the path.
    pub backward: Option<&'a Wanted>,
    /// The form of the stream along the path from a node on.
    pub scaled: Option<&'a Scaled>,
}

/// A demand that a link of this node has refused.
#[derive(Clone, Copy, Debug)]
pub struct RefusedDemand {
    /// The link.
    pub link: LinkId,
    /// The stream.
    pub trunk: Trunk,
    /// The reservation.
    pub holder: Holder,
    /// The demand.
    pub demand: StreamDemand,
}

/// The decision of the other end on a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Decision {
    /// Accept, and allow the nodes of the path to exceed the requested delay by `slack` in total.
    Accept {
        /// The slack of RFC 2212.
        slack: Duration,
    },
    /// Decline.
    Decline,
}

/// A reachable neighbour.
#[derive(Clone, Copy, Debug)]
struct Neighbour {
    link: LinkId,
    epoch: u64,
}

/// All reservations that pass through or end at one node.
#[derive(Clone, Debug)]
pub struct Reservations {
    me: NodeIndex,
    epoch: u64,
    timing: Timing,
    jitter: Jitter,
    now: Instant,
    links: BTreeMap<LinkId, Admission>,
    /// The link that stands for the subscribers of this node.
    delivery: Option<LinkId>,
    neighbours: BTreeMap<NodeIndex, Neighbour>,
    entries: BTreeMap<Key, Entry>,
    past: BTreeMap<Key, Past>,
    wakes: BTreeSet<(Instant, Key)>,
    armed: BTreeMap<Key, Instant>,
    /// The newest epoch of an origin, by origin and the neighbour that reported it.
    epochs: BTreeMap<(NodeIndex, NodeIndex), u64>,
    next_number: u64,
    outputs: VecDeque<ReserveOutput>,
    refused: Vec<RefusedDemand>,
    ignored: u64,
}

impl Reservations {
    /// The maximum number of reservations at a node, and of remembered past ones.
    pub const MAX: usize = 1 << 16;
    /// The maximum number of refused demands for [`Self::take_refused`].
    pub const REFUSED_MAX: usize = 64;

    /// Creates a node without reservations. `epoch` must increase at every start; `seed` must
    /// differ between nodes.
    #[must_use]
    pub fn new(me: NodeIndex, epoch: u64, timing: Timing, seed: u64) -> Self {
        Self {
            me,
            epoch,
            timing,
            jitter: Jitter(seed),
            now: Instant::ZERO,
            links: BTreeMap::new(),
            delivery: None,
            neighbours: BTreeMap::new(),
            entries: BTreeMap::new(),
            past: BTreeMap::new(),
            wakes: BTreeSet::new(),
            armed: BTreeMap::new(),
            epochs: BTreeMap::new(),
            next_number: 0,
            outputs: VecDeque::new(),
            refused: Vec::new(),
            ignored: 0,
        }
    }

    /// Adds a link without reservations.
    pub fn add_link(&mut self, link: LinkId, admission: Admission) {
        self.links.entry(link).or_insert(admission);
        self.share_host();
    }

    /// Sets the link that stands for the subscribers of this node, on which paths that end here reserve queue space.
    /// Its test should be [`AdmissionTest::Delivery`](crate::AdmissionTest::Delivery).
    pub const fn set_delivery(&mut self, link: LinkId) {
        self.delivery = Some(link);
    }

    /// Returns the queue space reserved by all links with [`LinkParameters::host_buffer`], tentative or installed, in
    /// bytes.
    ///
    /// [`LinkParameters::host_buffer`]: crate::LinkParameters::host_buffer
    #[must_use]
    pub fn host_buffer_held(&self) -> u64 {
        legs::HostUse::of(self.links.values()).host_buffer
    }

    /// Returns the processor time reserved by all links, tentative or installed, in nanoseconds per
    /// second.
    #[must_use]
    pub fn processor_held(&self) -> u64 {
        legs::HostUse::of(self.links.values()).processor
    }

    /// Returns a link with its reservations.
    #[must_use]
    pub fn link(&self, link: LinkId) -> Option<&Admission> {
        self.links.get(&link)
    }

    /// Returns a link, for the caller's own reservations and for reporting measured rates. Do not
    /// change trunks of this protocol.
    pub fn link_mut(&mut self, link: LinkId) -> Option<&mut Admission> {
        self.links.get_mut(&link)
    }

    /// Registers a reachable neighbour on a link. A different `epoch` or link means that it
    /// restarted and lost its reservations, so every path through it ends.
    pub fn set_neighbour(&mut self, now: Instant, node: NodeIndex, link: LinkId, epoch: u64) {
        self.advance(now);
        let before = self.neighbours.insert(node, Neighbour { link, epoch });
        if before.is_some_and(|before| before.epoch != epoch || before.link != link) {
            self.lose(node);
        }
    }

    /// Removes a neighbour that is no longer reachable.
    pub fn lose_neighbour(&mut self, now: Instant, node: NodeIndex) {
        self.advance(now);
        if self.neighbours.remove(&node).is_some() {
            self.lose(node);
        }
    }

    /// Handles a message of a neighbour.
    pub fn handle_message(&mut self, now: Instant, from: NodeIndex, message: ReserveMessage) {
        self.handle_message_on(now, from, message, Here::default());
    }

    /// As [`Reservations::handle_message`], for a request whose stream leaves here as `here` says.
    pub fn handle_message_on(
        &mut self,
        now: Instant,
        from: NodeIndex,
        message: ReserveMessage,
        here: Here,
    ) {
        self.advance(now);
        if !self.neighbours.contains_key(&from) {
            self.ignored += 1;
            return;
        }
        match message {
            ReserveMessage::Admit(admit) => self.handle_admit(from, *admit, here),
            ReserveMessage::Accept(accept) => self.handle_accept(from, accept),
            ReserveMessage::Deny(deny) => self.handle_deny(from, deny),
            ReserveMessage::Close(name) => self.handle_close(from, name),
            ReserveMessage::Closed(name) => self.handle_closed(from, name),
            ReserveMessage::Refresh(refresh) => self.handle_refresh(from, &refresh),
        }
    }

    /// Advances time. Call it at [`Reservations::next_wake`] at the latest.
    pub fn tick(&mut self, now: Instant) {
        self.advance(now);
        self.expire();
    }

    /// Returns the next output. Drain the outputs after each input.
    pub fn poll_output(&mut self) -> Option<ReserveOutput> {
        self.outputs.pop_front()
    }

    /// Takes the last demands that links of this node have refused, at most [`Self::REFUSED_MAX`]. A link whose capacity may grow
    /// for them can be changed before they are requested again.
    pub fn take_refused(&mut self) -> Vec<RefusedDemand> {
        core::mem::take(&mut self.refused)
    }

    /// Returns the next instant at which time alone causes a change; [`Instant::FAR`] if there is
    /// none.
    #[must_use]
    pub fn next_wake(&self) -> Instant {
        self.wakes.first().map_or(Instant::FAR, |(at, _)| *at)
    }

    /// Returns the installed version of a reservation.
    #[must_use]
    pub fn installed(&self, key: Key) -> Option<Stamp> {
        Some(self.entries.get(&key)?.installed.as_ref()?.stamp())
    }

    /// Returns the number of reservations, tentative or installed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns all installed reservations.
    pub fn standing_here(&self) -> impl Iterator<Item = HeldReservation<'_>> {
        self.entries.values().filter_map(|entry| {
            let version = entry.installed.as_ref()?;
            let Admit { name, path, weights, label, forward, backward, scaled, .. } = &version.ask;
            Some(HeldReservation {
                name: *name,
                path,
                weights,
                label,
                at: version.at,
                forward: forward.as_ref(),
                backward: backward.as_ref(),
                scaled: scaled.as_deref(),
            })
        })
    }

    /// Returns the name of the stream `trunk` on the link to `next`. Streams to two neighbours on
    /// the same link are sent twice, so they have different names.
    #[must_use]
    pub fn trunk_to(trunk: Trunk, next: NodeIndex) -> Trunk {
        legs::trunk_to(trunk, next)
    }

    /// Returns the name of a reservation in the admission tests of links.
    #[must_use]
    pub fn holder(name: Name) -> Holder {
        legs::holder(name)
    }

    /// Returns true if there are no reservations.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the number of ignored messages: late ones, and those about reservations that do not
    /// pass through their sender.
    #[must_use]
    pub const fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Advances the time. An earlier instant counts as the last one, so time never decreases.
    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    fn send(&mut self, to: NodeIndex, message: ReserveMessage) {
        self.outputs.push_back(ReserveOutput::Send { to, message });
    }

    /// Updates the timer of `key`.
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

//! The origin of reservations: requests, changes, answers, refreshes and closing.

use super::legs::Here;
use super::message::{
    Accept, Admit, Deny, HopShare, Key, LABEL_MAX, NAMES_MAX, Name, NodeIndex, PATH_MAX, Reason,
    Refresh, ReserveMessage, Scaled, Stamp, Wanted,
};
use super::state::{Entry, Freed, Origin, Version};
use super::{Granted, LinkId, PathAnswer, Reservations, ReserveOutput};
use core::fmt;
use paceline_sched::{Duration, Instant};

/// A request. A publisher requests forward, a subscriber backward, a conversation both.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Request {
    /// The nodes from this one to the other end, both included.
    pub path: Vec<NodeIndex>,
    /// The weights by which the hops share the delay bound, each at least 1. Empty for equal
    /// shares.
    pub weights: Vec<u32>,
    /// A label for the callers at all nodes of the path.
    pub label: Vec<u8>,
    /// The stream that leaves here.
    pub forward: Option<Wanted>,
    /// The stream that arrives here.
    pub backward: Option<Wanted>,
    /// The form of `forward` from a node of the path on, which scales it.
    pub scaled: Option<Scaled>,
    /// This node's link for the stream that leaves here: a class of the next node's link. `None` for
    /// that link itself.
    pub link: Option<LinkId>,
    /// The processor time of this node for the stream that leaves here besides forwarding, in nanoseconds per second,
    /// such as that of scaling.
    pub work: u64,
    /// The reservation is closed after this time without [`Reservations::handle_used`]; `None` for
    /// never.
    pub idle: Option<Duration>,
}

/// Why a request was not sent. Nothing is reserved.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum RequestError {
    /// The path does not start here, contains a node twice, or is too short or too long.
    Path {
        /// The number of nodes.
        nodes: usize,
    },
    /// The number of weights differs from the number of hops, or a weight is 0.
    Weights {
        /// The number of weights.
        weights: usize,
        /// The number of hops.
        hops: usize,
    },
    /// Neither direction is requested.
    Nothing,
    /// Both directions have the same trunk, or the stream before and behind the node that scales it.
    OneTrunk,
    /// The node that scales is not between the ends of the path, or both directions are requested.
    Scaled {
        /// Its index in the path.
        at: usize,
    },
    /// The label is too long.
    Label {
        /// Its length in bytes.
        bytes: usize,
    },
    /// A delay bound is shorter than one nanosecond per hop.
    NoTime,
    /// This node has no such reservation.
    UnknownKey,
    /// A request for it is pending.
    Pending,
    /// This node denies it.
    Denied(Reason),
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path { nodes } => write!(
                f,
                "path of {nodes} nodes: must be from 2 to {PATH_MAX} different nodes, this one first"
            ),
            Self::Weights { weights, hops } => {
                write!(
                    f,
                    "{weights} weights for {hops} hops: must be one above 0 for each hop, or none at all"
                )
            }
            Self::Nothing => f.write_str("no traffic in either direction; request at least one"),
            Self::Label { bytes } => {
                write!(f, "label of {bytes} bytes: must be at most {LABEL_MAX}")
            }
            Self::OneTrunk => {
                f.write_str("one trunk in both directions; use a separate trunk for each")
            }
            Self::Scaled { at } => write!(
                f,
                "node {at} of the path scales the stream: must be between the ends, and forward only"
            ),
            Self::NoTime => {
                f.write_str("delay bound of less than 1 ns per hop; request a longer one")
            }
            Self::UnknownKey => f.write_str("this node has no such reservation"),
            Self::Pending => {
                f.write_str("the reservation is still being requested; wait for the answer")
            }
            Self::Denied(reason) => reason.fmt(f),
        }
    }
}

impl core::error::Error for RequestError {}

impl Request {
    fn check(&self, me: NodeIndex) -> Result<(), RequestError> {
        let nodes = self.path.len();
        let twice = (1..nodes)
            .any(|at| self.path.iter().take(at).any(|node| self.path.get(at) == Some(node)));
        if !(2..=PATH_MAX).contains(&nodes) || self.path.first() != Some(&me) || twice {
            return Err(RequestError::Path { nodes });
        }
        let (weights, hops) = (self.weights.len(), nodes - 1);
        if weights > 0 && weights != hops || self.weights.contains(&0) {
            return Err(RequestError::Weights { weights, hops });
        }
        if self.label.len() > LABEL_MAX {
            return Err(RequestError::Label { bytes: self.label.len() });
        }
        let wanted = [self.forward, self.backward];
        if wanted.iter().flatten().any(|it| it.within.as_nanos() < nodes as u64 - 1) {
            return Err(RequestError::NoTime);
        }
        if let Some(Scaled { at, wanted }) = self.scaled {
            if at == 0 || at + 1 >= nodes || self.backward.is_some() {
                return Err(RequestError::Scaled { at });
            }
            if self.forward.is_some_and(|before| before.trunk == wanted.trunk) {
                return Err(RequestError::OneTrunk);
            }
        }
        match (self.forward, self.backward) {
            (None, None) => Err(RequestError::Nothing),
            (Some(a), Some(b)) if a.trunk == b.trunk => Err(RequestError::OneTrunk),
            (Some(_), _) | (None, Some(_)) => Ok(()),
        }
    }
}

impl Reservations {
    /// Requests a reservation along a path. The answer is an [`ReserveOutput::Answer`].
    ///
    /// # Errors
    /// [`RequestError`] if the request is inconsistent, or if a link of this node denies it.
    pub fn request(&mut self, now: Instant, request: &Request) -> Result<Key, RequestError> {
        self.advance(now);
        request.check(self.me)?;
        if self.entries.len() >= Self::MAX {
            return Err(RequestError::Denied(Reason::Full));
        }
        let key = Key { origin: self.me, number: self.next_number };
        let origin = Origin {
            seq: 0,
            announced: self.timing.refresh,
            refresh_at: Instant::FAR,
            retry_at: Instant::FAR,
            tries: 0,
            repairs: false,
            idle: request.idle,
            asked_idle: request.idle,
            used_at: self.now,
        };
        let version = self.ask(key, 1, origin.announced, request).map_err(RequestError::Denied)?;
        self.next_number += 1;
        self.entries.insert(key, Entry::new(Some(origin)));
        self.sent(key, version, false);
        Ok(key)
    }

    /// Requests a change under the same key, possibly along another path. The granted reservation
    /// remains until the answer, and after a denial.
    ///
    /// # Errors
    /// As [`Reservations::request`], and if the reservation does not exist or a request is pending.
    pub fn change(
        &mut self,
        now: Instant,
        key: Key,
        request: &Request,
    ) -> Result<(), RequestError> {
        self.advance(now);
        request.check(self.me)?;
        let entry = self.entries.get(&key).filter(|entry| entry.origin.is_some());
        let entry = entry.ok_or(RequestError::UnknownKey)?;
        let Some(origin) = entry.origin.filter(|_| entry.tentative.is_none()) else {
            return Err(RequestError::Pending);
        };
        let asked = self.ask(key, origin.seq + 1, origin.announced, request);
        let version = asked.map_err(RequestError::Denied)?;
        self.sent(key, version, false);
        if let Some(origin) = self.entries.get_mut(&key).and_then(|entry| entry.origin.as_mut()) {
            origin.asked_idle = request.idle;
        }
        Ok(())
    }

    /// Reserves at this node.
    fn ask(
        &mut self,
        key: Key,
        seq: u64,
        period: Duration,
        request: &Request,
    ) -> Result<Version, Reason> {
        let ask = Admit {
            name: Name { key, stamp: Stamp { epoch: self.epoch, seq } },
            path: request.path.clone(),
            weights: request.weights.clone(),
            label: request.label.clone(),
            period,
            forward: request.forward,
            backward: request.backward,
            scaled: request.scaled.map(Box::new),
            spent: Duration::ZERO,
        };
        self.neighbours.get(ask.path.get(1).ok_or(Reason::NoRoute)?).ok_or(Reason::NoRoute)?;
        self.reserve(ask, 0, Here { link: request.link, work: request.work, delivered: None })
    }

    /// Records a version of an own reservation and sends its request.
    fn sent(&mut self, key: Key, version: Version, repairs: bool) {
        let (next, message) =
            (version.next(), ReserveMessage::Admit(Box::new(version.onward.clone())));
        let retry_at = self.now + self.timing.retry_after(0);
        if let Some(entry) = self.entries.get_mut(&key) {
            if let Some(origin) = &mut entry.origin {
                origin.seq = version.stamp().seq;
                (origin.retry_at, origin.tries, origin.repairs) = (retry_at, 0, repairs);
            }
            entry.tentative = Some(version);
        }
        if let Some(next) = next {
            self.send(next, message);
        }
        self.rearm(key);
    }

    /// Requests the installed version again, because a node of the path does not know it.
    pub(super) fn ask_again(&mut self, key: Key) {
        let Some(entry) = self.entries.get(&key) else { return };
        let (Some(installed), Some(origin), None) =
            (&entry.installed, entry.origin, &entry.tentative)
        else {
            return;
        };
        let request = Request {
            path: installed.ask.path.clone(),
            weights: installed.ask.weights.clone(),
            label: installed.ask.label.clone(),
            forward: installed.ask.forward,
            backward: installed.ask.backward,
            scaled: installed.ask.scaled.as_deref().copied(),
            link: installed.forward.map(|leg| leg.link),
            work: installed.forward.map_or(0, |leg| leg.demand.work()),
            idle: origin.idle,
        };
        match self.ask(key, origin.seq + 1, origin.announced, &request) {
            Ok(version) => self.sent(key, version, true),
            Err(reason) => self.end(key, reason, None, self.me),
        }
    }

    /// Handles the positive answer of the whole path.
    pub(super) fn granted(&mut self, key: Key, accept: Accept) {
        let wait = self.jitter.around(self.timing.refresh);
        let refresh_at = self.now + wait;
        let now = self.now;
        let Some(entry) = self.entries.get_mut(&key) else { return };
        let Some(ask) = entry.installed.as_ref().map(|version| version.ask.clone()) else { return };
        let repaired = entry.origin.is_some_and(|origin| origin.repairs);
        if let Some(origin) = &mut entry.origin {
            if !repaired {
                (origin.idle, origin.used_at) = (origin.asked_idle, now);
            }
            (origin.refresh_at, origin.repairs) = (refresh_at, false);
        }
        let Some(granted) = judge(&ask, accept) else {
            // Do not rely on an answer that contradicts the request.
            self.end(key, Reason::Contradiction, None, self.me);
            return;
        };
        if !repaired {
            self.outputs
                .push_back(ReserveOutput::Answer { key, answer: PathAnswer::Granted(granted) });
        }
    }

    pub(super) fn answer_denied(&mut self, key: Key, deny: Deny) {
        if let Some(entry) = self.entries.get_mut(&key)
            && let Some(origin) = entry.origin.as_mut().filter(|origin| origin.repairs)
        {
            let end = entry.installed.as_ref().and_then(|version| version.ask.path.last());
            if deny.reason == Reason::Declined && end == Some(&deny.node) {
                // The other end has changed its request. The installed version stays until the new request arrives.
                origin.repairs = false;
                return;
            }
            // The installed version has lost a node, which now refuses it.
            return self.end(key, deny.reason, None, deny.node);
        }
        let answer = PathAnswer::Denied { node: deny.node, reason: deny.reason };
        self.outputs.push_back(ReserveOutput::Answer { key, answer });
    }

    /// Closes a reservation that starts or ends here. Returns false if there is none.
    pub fn close(&mut self, now: Instant, key: Key) -> bool {
        self.advance(now);
        let Some(entry) = self.entries.get(&key) else { return false };
        let Some(version) = entry.newest() else { return false };
        if version.previous().is_some() && version.next().is_some() {
            return false;
        }
        if let Some(Freed { name, previous, onward }) = self.free(key) {
            // The origin closes all paths; during a change there may be two.
            let others = previous.map_or(onward, |previous| vec![previous]);
            self.close_all(&others, name);
        }
        self.rearm(key);
        true
    }

    /// Reports data of a reservation, which restarts its idle time.
    pub fn handle_used(&mut self, now: Instant, key: Key) {
        self.advance(now);
        let origin = self.entries.get_mut(&key).and_then(|entry| entry.origin.as_mut());
        if let Some(origin) = origin {
            origin.used_at = self.now;
            self.rearm(key);
        }
    }

    /// Closes the reservations of this node that were not used for their idle time. Call this after each report of use
    /// ([`Self::handle_used`]): data that is not reported yet must not lose its reservation.
    pub fn close_unused(&mut self, now: Instant) {
        self.advance(now);
        let unused = |entry: &Entry| {
            let origin = entry.origin.as_ref().filter(|_| entry.installed.is_some());
            let idle = origin.and_then(|origin| Some(origin.used_at + origin.idle?));
            idle.is_some_and(|idle| idle <= self.now)
        };
        let all = self.entries.iter();
        let keys: Vec<Key> = all.filter(|(_, it)| unused(it)).map(|(key, _)| *key).collect();
        for key in keys {
            self.close(self.now, key);
            self.outputs.push_back(ReserveOutput::Idle { key });
        }
    }

    /// Retransmits requests and sends due refreshes.
    pub(super) fn tend(&mut self, key: Key, refreshes: &mut Vec<(NodeIndex, Duration, Name)>) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        let Some(origin) = &mut entry.origin else { return };
        let mut again = None;
        if let Some(version) = entry.tentative.as_ref().filter(|_| origin.retry_at <= self.now) {
            if origin.tries < self.timing.retries {
                origin.tries += 1;
                origin.retry_at = self.now + self.timing.retry_after(origin.tries);
                again = version.next().map(|next| (next, version.onward.clone()));
            } else {
                origin.retry_at = Instant::FAR;
            }
        }
        if let Some(version) = entry.installed.as_ref().filter(|_| origin.refresh_at <= self.now) {
            origin.announced = self.timing.next_period(origin.announced);
            origin.refresh_at = self.now + self.jitter.around(origin.announced);
            if let Some(next) = version.next() {
                refreshes.push((next, origin.announced, version.ask.name));
            }
        }
        if let Some((next, onward)) = again {
            self.send(next, ReserveMessage::Admit(Box::new(onward)));
        }
    }

    /// Sends one message per neighbour and period R for all due refreshes.
    pub(super) fn send_refreshes(&mut self, mut due: Vec<(NodeIndex, Duration, Name)>) {
        due.sort_unstable();
        for group in due.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            for names in group.chunks(NAMES_MAX) {
                let Some(&(to, period, _)) = names.first() else { continue };
                let names = names.iter().map(|(_, _, name)| *name).collect();
                self.send(to, ReserveMessage::Refresh(Refresh { back: false, period, names }));
            }
        }
    }
}

/// Returns the contract of an answer, or `None` if it contradicts the request. It must list every
/// node once, each with at least the rate, and the sum of the delays must be within the bound.
fn judge(ask: &Admit, accept: Accept) -> Option<Granted> {
    let mut hops = accept.hops;
    hops.reverse();
    if !hops.iter().map(|hop| hop.node).eq(ask.path.iter().copied()) {
        return None;
    }
    let last = hops.len() - 1;
    let sum = |wanted: Option<Wanted>,
               of: fn(&HopShare) -> Option<super::message::Share>,
               without: usize| {
        let Some(wanted) = wanted else { return Some(None) };
        let mut bound = Duration::ZERO;
        for (at, hop) in hops.iter().enumerate().filter(|(at, _)| *at != without) {
            let here = ask.forward_at(at).filter(|_| ask.backward.is_none()).unwrap_or(wanted);
            let share = of(hop).filter(|share| share.rate >= here.traffic.rate())?;
            bound = bound.saturating_add(share.bound);
        }
        Some(Some((bound, wanted.within)))
    };
    let forward = sum(ask.forward, |hop| hop.forward, last)?;
    let backward = sum(ask.backward, |hop| hop.backward, 0)?;
    // Forward, the other end may have added slack; backward it has none to add.
    if backward.is_some_and(|(bound, within)| bound > within) {
        return None;
    }
    let bound = |sum: Option<(Duration, Duration)>| sum.map(|(bound, _)| bound);
    Some(Granted {
        path: ask.path.clone(),
        forward: bound(forward),
        backward: bound(backward),
        hops,
    })
}

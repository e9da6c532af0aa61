//! The state of a reservation at a node.

use super::LinkId;
use super::message::{Accept, Admit, Deny, Name, NodeIndex, Stamp};
use crate::demand::StreamDemand;
use crate::link::Trunk;
use paceline_sched::{Duration, Instant};

/// The reservation on one link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leg {
    pub(super) link: LinkId,
    pub(super) trunk: Trunk,
    /// The demand as the discipline of the link sees it.
    pub(super) demand: StreamDemand,
    /// The trunk that it replaces there once it is installed.
    pub(super) instead: Option<Trunk>,
    /// Its share of the delay bound.
    pub(super) bound: Duration,
}

/// One version, tentative or installed.
#[derive(Clone, Debug)]
pub(super) struct Version {
    /// The request as it was received.
    pub(super) ask: Admit,
    /// The request as it was forwarded; the same at the other end.
    pub(super) onward: Admit,
    /// The index of this node in the path.
    pub(super) at: usize,
    pub(super) forward: Option<Leg>,
    pub(super) backward: Option<Leg>,
    /// The timeout of the answer.
    pub(super) until: Instant,
    /// The answer, once sent.
    pub(super) answer: Option<Accept>,
}

impl Version {
    pub(super) const fn stamp(&self) -> Stamp {
        self.ask.name.stamp
    }

    pub(super) fn previous(&self) -> Option<NodeIndex> {
        self.ask.path.get(self.at.checked_sub(1)?).copied()
    }

    pub(super) fn next(&self) -> Option<NodeIndex> {
        self.ask.path.get(self.at + 1).copied()
    }

    pub(super) fn legs(&self) -> impl Iterator<Item = Leg> + use<> {
        [self.forward, self.backward].into_iter().flatten()
    }

    pub(super) fn touches(&self, node: NodeIndex) -> bool {
        self.previous() == Some(node) || self.next() == Some(node)
    }
}

/// The state that only the origin keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    /// The number of the last request.
    pub(super) seq: u64,
    /// The period R of the last refresh.
    pub(super) announced: Duration,
    pub(super) refresh_at: Instant,
    pub(super) retry_at: Instant,
    pub(super) tries: u32,
    /// True if the pending request only restores the installed version.
    pub(super) repairs: bool,
    pub(super) idle: Option<Duration>,
    /// The idle time of the last request, which replaces `idle` once it is granted.
    pub(super) asked_idle: Option<Duration>,
    pub(super) used_at: Instant,
}

/// A reservation with resources.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) installed: Option<Version>,
    pub(super) tentative: Option<Version>,
    /// The expiry without a refresh of the origin, and without an echo of the other end.
    pub(super) up_until: Instant,
    pub(super) down_until: Instant,
    pub(super) origin: Option<Origin>,
}

impl Entry {
    pub(super) const fn new(origin: Option<Origin>) -> Self {
        let far = Instant::FAR;
        Self { installed: None, tentative: None, up_until: far, down_until: far, origin }
    }

    pub(super) fn newest(&self) -> Option<&Version> {
        self.tentative.as_ref().or(self.installed.as_ref())
    }

    /// Returns the next nodes of both versions.
    pub(super) fn onward(&self) -> Vec<NodeIndex> {
        let versions = [&self.tentative, &self.installed];
        let mut nodes: Vec<NodeIndex> =
            versions.iter().filter_map(|version| version.as_ref()?.next()).collect();
        nodes.dedup();
        nodes
    }

    pub(super) fn newest_name(&self) -> Option<Name> {
        self.newest().map(|version| version.ask.name)
    }

    pub(super) fn next_wake(&self) -> Instant {
        let mut at = Instant::FAR;
        if let Some(tentative) = &self.tentative {
            at = at.min(tentative.until);
        }
        if self.installed.is_some() {
            at = at.min(self.up_until).min(self.down_until);
        }
        let Some(origin) = &self.origin else { return at };
        if self.tentative.is_some() {
            at = at.min(origin.retry_at);
        }
        if self.installed.is_some() {
            at = at.min(origin.refresh_at);
        }
        at
    }
}

/// The remains of a released entry.
#[derive(Clone, Debug)]
pub(super) struct Freed {
    /// Its newest version.
    pub(super) name: Name,
    /// The previous node of that version.
    pub(super) previous: Option<NodeIndex>,
    /// The next nodes of all versions.
    pub(super) onward: Vec<NodeIndex>,
}

/// The maximum number of unanswered CLOSE messages of one reservation. Above it the oldest is no
/// longer retransmitted, and the reservation there expires by itself.
pub(super) const CLOSING_MAX: usize = 8;

/// An unanswered CLOSE.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closing {
    pub(super) to: NodeIndex,
    pub(super) name: Name,
    pub(super) at: Instant,
    pub(super) tries: u32,
}

/// A past reservation, remembered so that late messages do not restore it.
#[derive(Clone, Debug)]
pub(super) struct Past {
    pub(super) stamp: Stamp,
    pub(super) until: Instant,
    /// The denial that ended it. It is repeated for repeated requests.
    pub(super) denied: Option<Deny>,
    /// Until this time newer versions get the same denial without a test, because this node denied
    /// it.
    pub(super) blocked_until: Instant,
    /// The number of consecutive refusals.
    pub(super) refusals: u32,
    /// The unanswered CLOSE messages: to the next node, and to the old path of a change.
    pub(super) closing: Vec<Closing>,
}

impl Past {
    pub(super) fn next_wake(&self) -> Instant {
        // Not removed before each CLOSE is answered or given up, however short the memory time is.
        let closing = self.closing.iter().map(|closing| closing.at).min();
        closing.unwrap_or_else(|| self.until.max(self.blocked_until))
    }
}

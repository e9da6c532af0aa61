//! What a node remembers of a reservation.

use super::LinkId;
use super::message::{Accept, Admit, Deny, Name, Node, Stamp};
use crate::demand::Demand;
use crate::link::Trunk;
use paceline_sched::{Duration, Instant};

/// What is held on one link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leg {
    pub(super) link: LinkId,
    pub(super) trunk: Trunk,
    /// As the link's discipline sees it.
    pub(super) demand: Demand,
    /// What it takes the place of there, until it is installed.
    pub(super) instead: Option<Trunk>,
    /// Its part of the delay bound.
    pub(super) bound: Duration,
}

/// One version, tentative or installed.
#[derive(Clone, Debug)]
pub(super) struct Version {
    /// As it arrived here.
    pub(super) ask: Admit,
    /// As it was sent on; the same at the other end.
    pub(super) onward: Admit,
    /// This node's place in the path.
    pub(super) at: usize,
    pub(super) forward: Option<Leg>,
    pub(super) backward: Option<Leg>,
    /// Until when it waits for its answer.
    pub(super) until: Instant,
    /// What was answered.
    pub(super) answer: Option<Accept>,
}

impl Version {
    pub(super) const fn stamp(&self) -> Stamp {
        self.ask.name.stamp
    }

    pub(super) fn previous(&self) -> Option<Node> {
        self.ask.path.get(self.at.checked_sub(1)?).copied()
    }

    pub(super) fn next(&self) -> Option<Node> {
        self.ask.path.get(self.at + 1).copied()
    }

    pub(super) fn legs(&self) -> impl Iterator<Item = Leg> + use<> {
        [self.forward, self.backward].into_iter().flatten()
    }

    pub(super) fn touches(&self, node: Node) -> bool {
        self.previous() == Some(node) || self.next() == Some(node)
    }
}

/// What only the origin keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    /// Of what was last asked.
    pub(super) seq: u64,
    /// R as it was last told.
    pub(super) told: Duration,
    pub(super) refresh_at: Instant,
    pub(super) retry_at: Instant,
    pub(super) tries: u32,
    /// What is pending only asks anew for what is installed.
    pub(super) repairs: bool,
    pub(super) idle: Option<Duration>,
    pub(super) used_at: Instant,
}

/// A reservation that holds something.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) installed: Option<Version>,
    pub(super) tentative: Option<Version>,
    /// Until when it lives without a refresh from the origin, and without an echo from the other end.
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

    /// The next nodes of both versions.
    pub(super) fn onward(&self) -> Vec<Node> {
        let versions = [&self.tentative, &self.installed];
        let mut nodes: Vec<Node> =
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
            at = at.min(origin.idle.map_or(Instant::FAR, |idle| origin.used_at + idle));
        }
        at
    }
}

/// What was forgotten of an entry that held something.
#[derive(Clone, Debug)]
pub(super) struct Freed {
    /// Its newest version.
    pub(super) name: Name,
    /// Whoever asked for that.
    pub(super) previous: Option<Node>,
    /// The nodes behind this one that hold a part of any version.
    pub(super) onward: Vec<Node>,
}

/// The most CLOSEs of one reservation that wait for their answers; over it the oldest is not repeated, and
/// what it was for ends by itself.
pub(super) const CLOSING_MAX: usize = 8;

/// A CLOSE that was not answered yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closing {
    pub(super) to: Node,
    pub(super) name: Name,
    pub(super) at: Instant,
    pub(super) tries: u32,
}

/// A reservation that holds nothing any more: late messages of it revive nothing.
#[derive(Clone, Debug)]
pub(super) struct Past {
    pub(super) stamp: Stamp,
    pub(super) until: Instant,
    /// It ended with this no, which is said again to whoever asks again.
    pub(super) denied: Option<Deny>,
    /// Until when newer versions get the same no without a test: it was said here.
    pub(super) blocked_until: Instant,
    /// How many refusals in a row.
    pub(super) refusals: u32,
    /// What was told to close: behind this node, and where a change parted from what was installed.
    pub(super) closing: Vec<Closing>,
}

impl Past {
    pub(super) fn next_wake(&self) -> Instant {
        // It is not forgotten before its CLOSE is answered or given up, however short its memory is.
        let closing = self.closing.iter().map(|closing| closing.at).min();
        closing.unwrap_or_else(|| self.until.max(self.blocked_until))
    }
}

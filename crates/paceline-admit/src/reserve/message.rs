//! What nodes say to each other about reservations.
//!
//! The path is in the message: whoever asks has the whole graph (`paceline-proto`'s control), the nodes
//! between need not agree on it at that moment, and what follows a reservation, its answer, refreshes and
//! its end, takes the same way however routes change meanwhile.

use crate::link::Trunk;
use crate::traffic::Traffic;
use crate::verdict::Refusal;
use core::fmt;
use paceline_sched::{Duration, LossTolerance};

/// A node, by the number that its neighbours know it by.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Node(pub u64);

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A reservation: who asked for it, and its number there.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Key {
    /// The node whose caller asked.
    pub origin: Node,
    /// Never used twice by one incarnation of it.
    pub number: u64,
}

/// Which version of a reservation: how often its origin was started, and how often it asked since.
/// The older of two never changes anything.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Stamp {
    /// Counts the origin's starts.
    pub epoch: u64,
    /// Counts what it asked for under this key.
    pub seq: u64,
}

/// One version of one reservation.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Name {
    /// Which reservation.
    pub key: Key,
    /// Which version.
    pub stamp: Stamp,
}

/// What is asked for in one direction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Wanted {
    /// The stream, by the same name on every link of the path.
    pub trunk: Trunk,
    /// What its source sends.
    pub traffic: Traffic,
    /// By how much it may have bunched up where it arrives; in a request where it enters the path.
    pub bunched: Duration,
    /// The longest from one end of the path to the other.
    pub within: Duration,
    /// How many samples of a window may miss, if they are given up when they are late: on the hop that has most
    /// of the delay, the first of several ([`bears_loss`]).
    pub loss: LossTolerance,
    /// Static priority, if it asks for a level.
    pub level: Option<u32>,
}

/// Whether hop `hop` of a path, from 0 on, may miss what is tolerated, of hops with these parts of the delay: it
/// has the longest one, and of several it is the first. Two hops that each missed as much would miss more together.
pub fn bears_loss<T: Ord>(parts: impl IntoIterator<Item = T, IntoIter: Clone>, hop: usize) -> bool {
    let parts = parts.into_iter();
    let longest = parts.clone().max();
    let first = longest.and_then(|longest| parts.into_iter().position(|part| part == longest));
    first.unwrap_or_default() == hop
}

/// Asks every node of a path for its part.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Admit {
    /// Which version of which reservation.
    pub name: Name,
    /// From the origin to the other end, both included.
    pub path: Vec<Node>,
    /// How the hops share a delay bound: each takes the part that its weight is of all weights. Empty: evenly.
    pub weights: Vec<u32>,
    /// What it is for, as the callers at the nodes of the path understand it: at most [`LABEL_MAX`] bytes that
    /// are carried and kept as they are.
    pub label: Vec<u8>,
    /// R: how often the origin refreshes. Whoever holds the reservation counts its life from it.
    pub period: Duration,
    /// What goes the way of this message.
    pub forward: Option<Wanted>,
    /// What goes against it.
    pub backward: Option<Wanted>,
    /// What the nodes before this one have promised of `forward`'s delay.
    pub spent: Duration,
}

impl Admit {
    /// True if there is a weight for each hop, or none at all.
    pub(super) fn is_weighed(&self) -> bool {
        self.weights.is_empty() || self.weights.len() + 1 == self.path.len()
    }

    /// What the hops from the one that leaves node `at` of the path on weigh together; the first hop is 0.
    pub(super) fn weight_from(&self, at: usize) -> u64 {
        if self.weights.is_empty() {
            return self.path.len().saturating_sub(at + 1) as u64;
        }
        self.weights.iter().skip(at).map(|weight| u64::from(*weight)).sum()
    }

    /// What the hop between the nodes `at` and `at + 1` of the path takes of `left`, what is left for it and
    /// those behind it.
    pub(super) fn part(&self, at: usize, left: Duration) -> Duration {
        let (all, behind) = (self.weight_from(at), self.weight_from(at + 1));
        if all == 0 { Duration::ZERO } else { left.mul_div(all - behind, all) }
    }
}

/// What one node holds in one direction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Share {
    /// Bits per second.
    pub rate: u64,
    /// Bytes at once.
    pub burst: u64,
    /// Its part of the delay.
    pub bound: Duration,
}

/// What one node of a path holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HopShare {
    /// Which one.
    pub node: Node,
    /// On its link to the next one.
    pub forward: Option<Share>,
    /// On its link to the one before.
    pub backward: Option<Share>,
}

/// Says yes, from the other end back to the origin.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Accept {
    /// Which version of which reservation.
    pub name: Name,
    /// What of `forward`'s delay is left to share among the nodes still to come.
    pub slack: Duration,
    /// By how much `backward` may have bunched up where it arrives at the node that reads this.
    pub backward: Option<Duration>,
    /// What the nodes behind hold, the last of the path first.
    pub hops: Vec<HopShare>,
}

/// Why a node said no, or gave up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// Its link cannot promise it.
    Refused {
        /// On the link in the message's direction, or else against it.
        forward: bool,
        /// The number that did not fit, and what would.
        refusal: Refusal,
    },
    /// No answer came in time.
    Timeout,
    /// The next node is gone, or nothing was heard from there for the reservation's life.
    PeerLost,
    /// It holds no such version; asks for it anew.
    Unknown,
    /// Whoever was asked at the other end does not want it.
    Declined,
    /// The next node of the path is no neighbour of it.
    NoRoute,
    /// It has no place for another reservation.
    Full,
    /// What was asked for is no demand for its link: a deadline of nothing, say.
    Impossible,
    /// An answer claims what cannot be: other nodes, less than was asked for, a longer delay.
    Contradiction,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { forward, refusal } => {
                write!(f, "{}: {refusal}", if *forward { "forward" } else { "backward" })
            }
            Self::Timeout => f.write_str("no answer in time; ask again later"),
            Self::PeerLost => f.write_str("the next node is gone; ask again with another path"),
            Self::Unknown => f.write_str("not reserved here; ask again"),
            Self::Declined => f.write_str("declined at the other end"),
            Self::NoRoute => f.write_str("no such neighbour; ask again with another path"),
            Self::Full => f.write_str("no place for another reservation; ask again later"),
            Self::Impossible => {
                f.write_str("a part of the delay bound is nothing or beyond a day; ask for another")
            }
            Self::Contradiction => f.write_str("the answer contradicts what was asked for"),
        }
    }
}

/// Says no, back to the origin.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Deny {
    /// Which version of which reservation.
    pub name: Name,
    /// The node that says so.
    pub node: Node,
    /// Why.
    pub reason: Reason,
    /// How long it will say so again without looking.
    pub retry: Duration,
}

/// Keeps reservations alive: from the origin on, and as an echo from the other end back.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refresh {
    /// It is the echo.
    pub back: bool,
    /// R of the origin.
    pub period: Duration,
    /// Which.
    pub names: Vec<Name>,
}

/// Where one reservation stands at a node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Standing {
    /// Which version of which reservation.
    pub name: Name,
    /// Installed; else tentative.
    pub installed: bool,
    /// What is left of its life, or of its wait for an answer.
    pub left: Duration,
}

/// What a node holds: one page of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Report {
    /// Which page, from 0.
    pub page: u32,
    /// How many there are.
    pub pages: u32,
    /// Of all its links: bits per second held, and installed of that.
    pub held: u64,
    /// Bits per second installed.
    pub installed: u64,
    /// Reservations in the order of their keys.
    pub standings: Vec<Standing>,
}

/// One message between neighbours.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Message {
    /// Reserve tentatively, and ask the next.
    Admit(Admit),
    /// Make it lasting.
    Accept(Accept),
    /// Give it back.
    Deny(Deny),
    /// Give everything of this version and older ones back, and tell the next.
    Close(Name),
    /// That was done.
    Closed(Name),
    /// Keep it.
    Refresh(Refresh),
    /// What do you hold?
    Status {
        /// Which page, from 0.
        page: u32,
    },
    /// This.
    Report(Report),
}

/// The most nodes of a path.
pub const PATH_MAX: usize = 32;
/// The longest label.
pub const LABEL_MAX: usize = 1_024;
/// The most reservations that one [`Refresh`] or [`Report`] names.
pub const NAMES_MAX: usize = 64;
/// The shortest and the longest R.
pub const PERIODS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(3_600));

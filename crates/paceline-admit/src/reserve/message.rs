//! The messages of the reservation protocol.
//!
//! A message contains the path. The origin knows the whole graph (`paceline-proto`'s control), and
//! the nodes between need not agree on it at that moment. Answers, refreshes and the end of a
//! reservation follow the same path, even if routes change meanwhile.

use crate::link::Trunk;
use crate::traffic::Traffic;
use crate::verdict::LinkRefusal;
use core::fmt;
use paceline_sched::{Duration, LossTolerance};

/// The number of a node.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct NodeIndex(pub u64);

impl fmt::Display for NodeIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The key of a reservation: its origin and a number.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Key {
    /// The node that requested it.
    pub origin: NodeIndex,
    /// A number that one incarnation of the origin never reuses.
    pub number: u64,
}

/// The version of a reservation. Of two versions, the older one never has an effect.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Stamp {
    /// The number of starts of the origin.
    pub epoch: u64,
    /// The number of requests under this key.
    pub seq: u64,
}

/// One version of one reservation.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Name {
    /// The reservation.
    pub key: Key,
    /// The version.
    pub stamp: Stamp,
}

/// The request in one direction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Wanted {
    /// The stream, with the same name on every link of the path.
    pub trunk: Trunk,
    /// The traffic at the source.
    pub traffic: Traffic,
    /// The delay variation at the receiving node; in a request, at the start of the path.
    pub bunched: Duration,
    /// The end-to-end delay bound.
    pub within: Duration,
    /// The loss tolerance, for late samples that are dropped. Only the hop with the largest share
    /// of the delay may use it, the first of several equal ones ([`bears_loss`]).
    pub loss: LossTolerance,
    /// The static priority level, if one is requested.
    pub level: Option<u32>,
}

/// The stream behind a node of the path that scales it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Scaled {
    /// The index of that node in the path: neither the first nor the last one.
    pub at: usize,
    /// The scaled stream. In a request, its delay variation is that of scaling, up to that node.
    pub wanted: Wanted,
}

/// Returns true if hop `hop` of a path, from 0, may use the loss tolerance, given the hops' shares
/// of the delay. It is the first hop with the largest share. If two hops used the whole tolerance,
/// they could miss more together.
pub fn bears_loss<T: Ord>(parts: impl IntoIterator<Item = T, IntoIter: Clone>, hop: usize) -> bool {
    let parts = parts.into_iter();
    let longest = parts.clone().max();
    let first = longest.and_then(|longest| parts.into_iter().position(|part| part == longest));
    first.unwrap_or_default() == hop
}

/// A request to every node of a path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Admit {
    /// The reservation and its version.
    pub name: Name,
    /// The nodes from the origin to the other end, both included.
    pub path: Vec<NodeIndex>,
    /// The weights by which the hops share the delay bound. Empty for equal shares.
    pub weights: Vec<u32>,
    /// A label for the callers at the nodes of the path, carried unchanged: at most [`LABEL_MAX`]
    /// bytes.
    pub label: Vec<u8>,
    /// R, the refresh period of the origin, which determines the lifetime of the reservation.
    pub period: Duration,
    /// The stream in the direction of this message.
    pub forward: Option<Wanted>,
    /// The stream against it.
    pub backward: Option<Wanted>,
    /// The form of `forward` from a node of the path on.
    pub scaled: Option<Box<Scaled>>,
    /// The part of `forward`'s delay that earlier nodes have reserved.
    pub spent: Duration,
}

impl Admit {
    /// Returns the stream in the direction of this message on the hop after node `at`.
    pub(super) fn forward_at(&self, at: usize) -> Option<Wanted> {
        match &self.scaled {
            Some(scaled) if at >= scaled.at => Some(scaled.wanted),
            Some(_) | None => self.forward,
        }
    }

    /// Returns true if the node that scales, if any, is between the ends, and the stream has another name behind it.
    pub(super) fn scales_between(&self) -> bool {
        let Some(Scaled { at, wanted }) = self.scaled.as_deref().copied() else { return true };
        let before = self.forward.filter(|_| self.backward.is_none());
        let other = before.is_some_and(|before| before.trunk != wanted.trunk);
        at > 0 && at + 1 < self.path.len() && other
    }

    /// Returns true if there is one weight per hop, or none.
    pub(super) fn is_weighed(&self) -> bool {
        self.weights.is_empty() || self.weights.len() + 1 == self.path.len()
    }

    /// Returns the sum of the weights of all hops from node `at` on; the first hop has index 0.
    pub(super) fn weight_from(&self, at: usize) -> u64 {
        if self.weights.is_empty() {
            return self.path.len().saturating_sub(at + 1) as u64;
        }
        self.weights.iter().skip(at).map(|weight| u64::from(*weight)).sum()
    }

    /// Returns the share of the hop between nodes `at` and `at + 1` in `left`, the remaining delay
    /// of this and all later hops.
    pub(super) fn part(&self, at: usize, left: Duration) -> Duration {
        let (all, behind) = (self.weight_from(at), self.weight_from(at + 1));
        if all == 0 { Duration::ZERO } else { left.mul_div(all - behind, all) }
    }
}

/// The reservation of one node in one direction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Share {
    /// The rate in bits per second.
    pub rate: u64,
    /// The burst in bytes.
    pub burst: u64,
    /// The delay bound of this hop.
    pub bound: Duration,
}

/// The reservations of one node of a path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HopShare {
    /// The node.
    pub node: NodeIndex,
    /// On its link to the next node.
    pub forward: Option<Share>,
    /// On its link to the previous node.
    pub backward: Option<Share>,
}

/// A positive answer, from the other end back to the origin.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Accept {
    /// The reservation and its version.
    pub name: Name,
    /// The unused part of `forward`'s delay, to share among the nodes still ahead.
    pub slack: Duration,
    /// The delay variation of `backward` at the node that receives this.
    pub backward: Option<Duration>,
    /// The reservations of the nodes behind, the last of the path first.
    pub hops: Vec<HopShare>,
}

/// Why a node denied or ended a reservation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// The admission test of its link failed.
    Refused {
        /// True for the link in the direction of the message, false for the one against it.
        forward: bool,
        /// The exceeded limit and an offer.
        refusal: LinkRefusal,
    },
    /// No answer arrived in time.
    Timeout,
    /// The next node is unreachable, or sent no refresh for the lifetime of the reservation.
    PeerLost,
    /// The node does not know this version and asks for a new request.
    Unknown,
    /// The other end declined.
    Declined,
    /// The next node of the path is not a neighbour.
    NoRoute,
    /// The node has reached its limit of reservations.
    Full,
    /// The request is not a valid demand for its link, for example because of a deadline of zero.
    Impossible,
    /// An answer contradicts the request: it has other nodes, a lower rate or a longer delay.
    Contradiction,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { forward, refusal } => {
                write!(f, "{}: {refusal}", if *forward { "forward" } else { "backward" })
            }
            Self::Timeout => f.write_str("no answer in time; try again later"),
            Self::PeerLost => f.write_str("the next node is gone; try another path"),
            Self::Unknown => f.write_str("not reserved here; try again"),
            Self::Declined => f.write_str("declined by the peer"),
            Self::NoRoute => f.write_str("no such neighbour; try another path"),
            Self::Full => f.write_str("the reservation table is full; try again later"),
            Self::Impossible => {
                f.write_str("a part of the delay bound is zero or above one day; try another bound")
            }
            Self::Contradiction => f.write_str("the answer contradicts the request"),
        }
    }
}

/// A negative answer, back to the origin.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Deny {
    /// The reservation and its version.
    pub name: Name,
    /// The denying node.
    pub node: NodeIndex,
    /// The reason.
    pub reason: Reason,
    /// The time for which the node repeats this denial without a new test.
    pub retry: Duration,
}

/// Refreshes reservations: sent by the origin, and echoed by the other end.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refresh {
    /// True for the echo.
    pub back: bool,
    /// The refresh period R of the origin.
    pub period: Duration,
    /// The refreshed reservations.
    pub names: Vec<Name>,
}

/// A message between neighbours.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ReserveMessage {
    /// Requests a tentative reservation, here and at the next node.
    Admit(Box<Admit>),
    /// Installs a tentative reservation.
    Accept(Accept),
    /// Cancels a tentative reservation.
    Deny(Deny),
    /// Releases this version and older ones, here and at the next node.
    Close(Name),
    /// Acknowledges a CLOSE.
    Closed(Name),
    /// Refreshes reservations.
    Refresh(Refresh),
}

/// The maximum number of nodes of a path.
pub const PATH_MAX: usize = 32;
/// The maximum length of a label in bytes.
pub const LABEL_MAX: usize = 1_024;
/// The maximum number of reservations in one [`Refresh`].
pub const NAMES_MAX: usize = 64;
/// The minimum and the maximum of R.
pub const PERIODS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(3_600));

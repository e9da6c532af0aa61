//! Contracts of pairs of a subscription and a publisher: requests, reservations along the path, answers, changes, and the
//! streams that result. Paths are given to it as plain data.

pub(super) mod admission;
pub(super) mod booking;
pub(super) mod change;
mod contract;
pub(super) mod excess;
mod granted;
mod idle;
pub(super) mod linger;
pub(super) mod links;
pub(super) mod outcome;
pub(super) mod pair;
mod pairs;
mod passing;
pub(super) mod refusal_overflow;
mod request;
mod reserve;
pub(super) mod shares;
pub(super) mod streams;
pub(super) mod survey;
pub(super) mod tie;

use super::data::best_effort::BestEffort;
use super::data::grant::Grant;
use super::data::ids::PairKey;
use super::data::refusal::Refusal;
use crate::ids::NodeId;
use admission::Admission;
use std::collections::{BTreeMap, BTreeSet};

/// The contracts of this node.
#[derive(Debug)]
pub(super) struct Contracts {
    pub(super) admission: Admission,
    pub(super) surveys: survey::State,
    pub(super) lingering: linger::Lingering,
    pub(super) changes: change::State,
    /// The pairs with a reservation here whose subscription was in the registry.
    pub(super) announced: BTreeSet<PairKey>,
    pub(super) reported: Reported,
}

/// The last answers to local subscriptions and publishers.
#[derive(Debug, Default)]
pub(super) struct Reported {
    /// The refusals of local subscriptions and publishers.
    pub(super) refused: BTreeMap<PairKey, Refusal>,
    /// The grants of local subscriptions and publishers.
    pub(super) granted: BTreeMap<PairKey, Grant>,
    /// The pairs whose opposite contract is not granted, so that they are not carried.
    pub(super) incomplete: BTreeSet<PairKey>,
    /// The refusals of spares of local subscriptions.
    pub(super) unspared: BTreeMap<PairKey, Refusal>,
    /// The best-effort streams of local subscriptions that requested a promise.
    pub(super) best_effort: BTreeMap<PairKey, BestEffort>,
}

impl Contracts {
    /// Creates the contracts of node `me`, which has none.
    pub(super) fn new(me: NodeId) -> Self {
        Self {
            admission: Admission::new(me),
            surveys: survey::State::default(),
            lingering: linger::Lingering::default(),
            changes: change::State::default(),
            announced: BTreeSet::new(),
            reported: Reported::default(),
        }
    }
}

//! Contracts of pairs of a subscription and a publisher: requests, reservations along the path, answers, changes, and the
//! streams that result. Paths are given to it as plain data.

pub(super) mod admission;
pub(super) mod booking;
pub(super) mod change;
mod contract;
pub(super) mod elastic;
pub(super) mod excess;
mod forecast;
mod granted;
mod idle;
pub(super) mod least;
pub(super) mod linger;
pub(super) mod links;
pub(super) mod medium;
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
    pub(super) elastic: elastic::State,
    pub(super) forecasts: forecast::State,
    pub(super) least: least::Known,
    pub(super) media: medium::State,
    /// The pairs with a reservation here whose subscription was in the registry.
    pub(super) announced: BTreeSet<PairKey>,
    /// The last answers to local subscriptions and publishers.
    pub(super) answers: BTreeMap<PairKey, Answer>,
}

/// The answer to a pair at its ends.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) refused: Option<Refusal>,
    pub(super) granted: Option<Grant>,
    /// The refusal of the spare of a granted pair; known to the subscription only.
    pub(super) unspared: Option<Refusal>,
    /// The reason why the pair is best effort although it requests a promise; known to the subscription only.
    pub(super) best_effort: Option<BestEffort>,
}

impl Answer {
    /// Returns true if the pair is granted or refused.
    pub(super) const fn is_decided(&self) -> bool {
        self.granted.is_some() || self.refused.is_some()
    }
}

impl Contracts {
    /// Creates the contracts of node `me`, which has none.
    pub(super) fn new(me: NodeId) -> Self {
        Self {
            admission: Admission::new(me),
            surveys: survey::State::default(),
            lingering: linger::Lingering::default(),
            changes: change::State::default(),
            elastic: elastic::State::default(),
            forecasts: forecast::State::default(),
            least: least::Known::default(),
            media: medium::State::default(),
            announced: BTreeSet::new(),
            answers: BTreeMap::new(),
        }
    }
}

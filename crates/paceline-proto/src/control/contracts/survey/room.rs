//! A node's link of a pair's path, and the pair's stream on it.

use super::super::contract::demand_of;
use super::super::links::Seat;
use super::super::request::Ask;
use super::offer::Tried;
use crate::control::data::spec::{HopInfo, PublisherSpec};
use crate::form::Form;
use crate::ids::NodeId;
use paceline_admit::{Admission, StreamDemand, Trunk};
use std::borrow::Cow;

/// A pair's stream on a node's link of its path.
pub(super) struct Leg<'c> {
    pub(super) spec: &'c PublisherSpec,
    /// The hop to the next node; `None` at the end of the path.
    pub(super) hop: Option<&'c HopInfo>,
    pub(super) seat: Seat,
    pub(super) trunk: Trunk,
    pub(super) form: Form,
    pub(super) ask: Ask,
    pub(super) next: NodeId,
}

impl Leg<'_> {
    /// Returns the demand of the stream; `None` if it is unknown or nothing is promised.
    pub(super) fn demand(&self) -> Option<StreamDemand> {
        demand_of(self.spec, self.form, &self.ask)?
    }
}

/// A link as a request would find it.
pub(super) struct Room<'c> {
    pub(super) link: Cow<'c, Admission>,
    /// The earlier reservation of the pair, which the request would replace.
    pub(super) before: Option<StreamDemand>,
}

impl Room<'_> {
    /// Returns the request of a stream for this link.
    pub(super) fn of<'r>(&'r self, leg: &'r Leg<'_>) -> Tried<'r> {
        let Leg { spec, form, trunk, ask, .. } = leg;
        let (link, before) = (&*self.link, self.before.as_ref());
        Tried { spec, form: *form, ask: *ask, link, trunk: *trunk, before }
    }
}

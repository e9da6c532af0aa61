//! The place of an observer, and the facts of an object that it sees.

use super::objects::ObjectState;
use super::pair::{Ending, Pair};
use super::settings::ExchangeError;
use crate::ids::{ObjectIndex, PeerId};
use crate::motion::{Motion, distance};
use crate::semantic::PairFacts;
use paceline_sched::Instant;

/// Where an observer is and looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observer {
    /// Its position and velocity. None if every object is in its range.
    pub motion: Option<Motion>,
    /// The direction of its view, of any length. None if it looks everywhere.
    pub view: Option<[f64; 3]>,
    /// The distance up to which objects are evaluated, infinite for all.
    pub range: f64,
}

impl Observer {
    /// An observer for whom every object is in range.
    pub const EVERYWHERE: Self = Self { motion: None, view: None, range: f64::INFINITY };

    /// Returns an observer that stands at `position` and looks everywhere.
    #[must_use]
    pub const fn at(position: [f64; 3], range: f64, now: Instant) -> Self {
        Self { motion: Some(Motion::standing(position, now)), view: None, range }
    }

    pub(super) fn check(&self, peer: PeerId) -> Result<(), ExchangeError> {
        let finite = self.motion.is_none_or(|motion| motion.is_finite())
            && self.view.is_none_or(|view| view.iter().all(|component| component.is_finite()));
        if finite && self.range >= 0.0 { Ok(()) } else { Err(ExchangeError::Observer(peer)) }
    }

    pub(super) fn position_at(&self, now: Instant) -> Option<[f64; 3]> {
        self.motion.map(|motion| motion.position_at(now))
    }

    /// Returns the facts of an object for a semantic function.
    pub(super) fn facts(
        &self,
        object: ObjectIndex,
        state: &ObjectState,
        pair: Option<&Pair>,
        now: Instant,
    ) -> PairFacts {
        let from = self.position_at(now);
        let to = state.motion.map(|motion| motion.position_at(now));
        let between = from.zip(to);
        let last = pair.and_then(|pair| pair.last);
        let interest = pair.filter(|pair| pair.ending != Some(Ending::Withdrawn));
        PairFacts {
            object,
            distance: between.map(|(from, to)| distance(from, to)),
            angle: between.zip(self.view).and_then(|((from, to), view)| angle(from, to, view)),
            error: pair.and_then(|pair| pair.error(state, now)).unwrap_or(0.0),
            speed: state.motion.map_or(0.0, |motion| distance([0.0; 3], motion.velocity)),
            age: last.map(|last| now.since(last)),
            terms: interest.map(|pair| pair.terms),
        }
    }
}

/// Returns the angle between `view` and the direction from one position to another.
fn angle(from: [f64; 3], to: [f64; 3], view: [f64; 3]) -> Option<f64> {
    let lengths = distance(from, to) * distance([0.0; 3], view);
    let direction = to.iter().zip(from).map(|(to, from)| to - from);
    let product: f64 = direction.zip(view).map(|(component, view)| component * view).sum();
    (lengths > 0.0).then(|| (product / lengths).clamp(-1.0, 1.0).acos())
}

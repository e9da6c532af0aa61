//! Semantic functions by distance, time and field of view.

use super::terms::{ExchangeTerms, TermsError};
use super::{PairView, SemanticError, SemanticFunction};
use thiserror::Error;

/// Exchanges every object in range at fixed terms: the condition of time alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Periodic(pub ExchangeTerms);

impl SemanticFunction for Periodic {
    fn decide(&mut self, _pair: &PairView<'_>) -> Result<Option<ExchangeTerms>, SemanticError> {
        Ok(Some(self.0))
    }
}

/// The terms of objects up to a distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DistanceStep {
    /// The distance, in units of the world: finite, more than 0.
    pub within: f64,
    /// The terms of nearer objects.
    pub terms: ExchangeTerms,
}

/// Terms by distance: near objects often and exactly, far ones seldom and roughly, those beyond the last step not at
/// all.
///
/// An object changes to a farther step only when it is 10 % beyond the border, so one that moves along a border does
/// not change its terms all the time. Objects without a distance get the terms of the nearest step.
#[derive(Clone, Debug, PartialEq)]
pub struct DistanceLadder {
    steps: Vec<DistanceStep>,
}

impl DistanceLadder {
    /// How much farther than the border of its step an object may go, as a share of the border.
    pub const HYSTERESIS: f64 = 0.1;

    /// Creates a ladder of steps in ascending order of distance.
    ///
    /// # Errors
    /// There are no steps, their order is wrong, or the terms of one are out of range.
    pub fn new(steps: Vec<DistanceStep>) -> Result<Self, LadderError> {
        let mut border = 0.0;
        for step in &steps {
            if !step.within.is_finite() || step.within <= border {
                return Err(LadderError::Border { within: step.within, before: border });
            }
            step.terms.check()?;
            border = step.within;
        }
        if steps.is_empty() { Err(LadderError::Empty) } else { Ok(Self { steps }) }
    }

    /// Returns the distance beyond which there is no interest.
    #[must_use]
    pub fn range(&self) -> f64 {
        self.steps.last().map_or(0.0, |step| step.within)
    }

    fn inside(&self, number: usize, distance: f64, current: Option<usize>) -> bool {
        let slack = if current.is_some_and(|current| current <= number) {
            1.0 + Self::HYSTERESIS
        } else {
            1.0
        };
        self.steps.get(number).is_some_and(|step| distance <= step.within * slack)
    }
}

impl SemanticFunction for DistanceLadder {
    fn decide(&mut self, pair: &PairView<'_>) -> Result<Option<ExchangeTerms>, SemanticError> {
        let distance = pair.facts.distance.unwrap_or(0.0);
        let current = pair
            .facts
            .terms
            .and_then(|terms| self.steps.iter().position(|step| step.terms == terms));
        let step = (0..self.steps.len()).find(|number| self.inside(*number, distance, current));
        Ok(step.and_then(|step| self.steps.get(step)).map(|step| step.terms))
    }
}

/// Exchanges an object only if two functions have interest, at the less demanding terms of the two: the longer gap,
/// refresh, the greater tolerance, the lower fidelity and weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Both<A, B>(pub A, pub B);

impl<A: SemanticFunction, B: SemanticFunction> SemanticFunction for Both<A, B> {
    fn decide(&mut self, pair: &PairView<'_>) -> Result<Option<ExchangeTerms>, SemanticError> {
        let Some((first, second)) = self.0.decide(pair)?.zip(self.1.decide(pair)?) else {
            return Ok(None);
        };
        Ok(Some(ExchangeTerms {
            gap: first.gap.max(second.gap),
            refresh: first.refresh.max(second.refresh),
            fidelity_permille: first.fidelity_permille.min(second.fidelity_permille),
            tolerance: first.tolerance.max(second.tolerance),
            weight: first.weight.min(second.weight),
        }))
    }
}

/// Exchanges objects in view by one function, and others at fixed terms or not at all.
///
/// An object that is in view leaves it 10 % beyond the angle. Objects without an angle are in view.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FieldOfView<F> {
    /// The greatest angle between the direction of view and an object in view, from 0 to π radians.
    pub half_angle: f64,
    /// Decides on objects in view.
    pub inside: F,
    /// The terms of objects out of view. None for no interest.
    pub outside: Option<ExchangeTerms>,
}

impl<F: SemanticFunction> SemanticFunction for FieldOfView<F> {
    fn decide(&mut self, pair: &PairView<'_>) -> Result<Option<ExchangeTerms>, SemanticError> {
        let was_inside = pair.facts.terms.is_some() && pair.facts.terms != self.outside;
        let slack = if was_inside { 1.1 } else { 1.0 };
        if pair.facts.angle.is_none_or(|angle| angle <= self.half_angle * slack) {
            self.inside.decide(pair)
        } else {
            Ok(self.outside)
        }
    }
}

/// The error of a [`DistanceLadder`].
#[derive(Clone, Copy, Debug, Error, PartialEq)]
pub enum LadderError {
    /// There are no steps.
    #[error("a ladder of distances needs at least one step")]
    Empty,
    /// A border that is not finite, or not beyond the one before.
    #[error("distance {within}: must be finite and more than {before}, the distance before it")]
    Border {
        /// The value.
        within: f64,
        /// The border before it.
        before: f64,
    },
    /// The terms of a step.
    #[error(transparent)]
    Terms(#[from] TermsError),
}

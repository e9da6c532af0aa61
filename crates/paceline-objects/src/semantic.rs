//! Semantic functions: when, with whom and at which fidelity an object is exchanged.
//!
//! Paper: West and Schwan 1997, sections 2 (consistency constraints) and 3.1.

mod builtin;
mod declared;
mod terms;

pub use builtin::{Both, DistanceLadder, DistanceStep, FieldOfView, LadderError, Periodic};
pub use declared::{DeclaredError, DeclaredFunction, DeclaredRule};
pub use terms::{ExchangeTerms, TermsError};

use crate::ids::{ObjectIndex, PeerId};
use crate::schema::FieldValue;
use paceline_sched::{Duration, Instant};
use thiserror::Error;

/// The facts of an object and an observer when a semantic function is evaluated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairFacts {
    /// The object.
    pub object: ObjectIndex,
    /// The distance of the object from the observer, both extrapolated to now, in units of the world. None if one of
    /// them has no position.
    pub distance: Option<f64>,
    /// The angle between the direction of the observer's view and the object, from 0 to π radians. None if there is
    /// no such direction, or if both are at the same place.
    pub angle: Option<f64>,
    /// The distance between the object's position and the one that its replica extrapolates from the last update.
    /// 0 if the object has no position, or nothing was sent.
    pub error: f64,
    /// The speed of the object, in units per second.
    pub speed: f64,
    /// The time since the last exchange of this object with this observer. None if there was none.
    pub age: Option<Duration>,
    /// The terms in force. None if the observer has no interest at present.
    pub terms: Option<ExchangeTerms>,
}

/// The fields of objects.
pub trait FieldSource {
    /// Returns the value of a field, and None if there is no such object, no such field or no value.
    fn field(&self, object: ObjectIndex, name: &str) -> Option<&FieldValue>;

    /// Returns the path of an object in the world, and None if there is no such object or paths are not known.
    fn path(&self, _object: ObjectIndex) -> Option<&str> {
        None
    }

    /// Returns the names and values of all fields of an object that have one; none if they cannot be listed.
    fn fields(&self, _object: ObjectIndex) -> Vec<(&str, &FieldValue)> {
        Vec::new()
    }
}

/// No fields, for semantic functions that use positions only.
impl FieldSource for () {
    fn field(&self, _object: ObjectIndex, _name: &str) -> Option<&FieldValue> {
        None
    }
}

/// An object and an observer as a semantic function sees them.
#[derive(Clone, Copy)]
pub struct PairView<'a> {
    /// The observer.
    pub peer: PeerId,
    /// The facts of the two.
    pub facts: &'a PairFacts,
    /// The fields of objects.
    pub fields: &'a (dyn FieldSource + Sync),
}

impl PairView<'_> {
    /// Returns a field of the object.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&FieldValue> {
        self.fields.field(self.facts.object, name)
    }

    /// Returns the path of the object in the world.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        self.fields.path(self.facts.object)
    }
}

/// Decides when, with whom and at which fidelity an object is exchanged.
pub trait SemanticFunction: Send {
    /// Returns the terms of the exchange of an object with an observer, and None if the observer has no interest in
    /// the object.
    ///
    /// # Errors
    /// The reason for which the function is to be disabled.
    fn decide(&mut self, pair: &PairView<'_>) -> Result<Option<ExchangeTerms>, SemanticError>;

    /// Returns the terms of several objects with one observer, in their order. By default it decides on one after the
    /// other.
    ///
    /// # Errors
    /// The first reason for which the function is to be disabled.
    fn decide_all(
        &mut self,
        peer: PeerId,
        pairs: &[PairFacts],
        fields: &(dyn FieldSource + Sync),
    ) -> Result<Vec<Option<ExchangeTerms>>, SemanticError> {
        pairs.iter().map(|facts| self.decide(&PairView { peer, facts, fields })).collect()
    }
}

impl<F> SemanticFunction for F
where
    F: FnMut(&PairView<'_>) -> Option<ExchangeTerms> + Send,
{
    fn decide(&mut self, pair: &PairView<'_>) -> Result<Option<ExchangeTerms>, SemanticError> {
        Ok(self(pair))
    }
}

/// The objects in range of one observer, to be evaluated.
#[derive(Clone, Debug, PartialEq)]
pub struct EvaluationBatch {
    /// The observer.
    pub peer: PeerId,
    /// The number of the batch among those of the observer.
    pub number: u64,
    /// When the facts held.
    pub at: Instant,
    /// The objects.
    pub pairs: Vec<PairFacts>,
}

impl EvaluationBatch {
    /// Evaluates all its pairs and checks the terms.
    ///
    /// # Errors
    /// The first reason for which the function is to be disabled.
    pub fn decide(
        &self,
        function: &mut (impl SemanticFunction + ?Sized),
        fields: &(dyn FieldSource + Sync),
    ) -> Result<DecidedTerms, SemanticError> {
        let terms = function.decide_all(self.peer, &self.pairs, fields)?;
        for terms in terms.iter().flatten() {
            terms.check()?;
        }
        Ok(self.decided(terms))
    }

    /// Returns the decisions of terms that were evaluated elsewhere, in the order of [`Self::pairs`]; pairs without
    /// terms keep those in force.
    #[must_use]
    pub fn decided(&self, terms: Vec<Option<ExchangeTerms>>) -> DecidedTerms {
        let objects = self.pairs.iter().map(|pair| pair.object);
        DecidedTerms { peer: self.peer, number: self.number, terms: objects.zip(terms).collect() }
    }
}

/// The terms that a semantic function decided for a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct DecidedTerms {
    /// The observer.
    pub peer: PeerId,
    /// The number of the batch.
    pub number: u64,
    /// The terms of each object, None without interest.
    pub terms: Vec<(ObjectIndex, Option<ExchangeTerms>)>,
}

/// Why a semantic function is disabled. Its observer then receives objects by the fallback rule.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SemanticError {
    /// A decided value is out of range.
    #[error(transparent)]
    Terms(#[from] TermsError),
    /// A declared function failed.
    #[error(transparent)]
    Declared(#[from] DeclaredError),
    /// It did not return in time.
    #[error("the semantic function took longer than {0} for a batch of objects; make it cheaper")]
    TooSlow(Duration),
    /// It failed by itself: a panic or an exception.
    #[error("the semantic function failed: {0}")]
    Failed(String),
}

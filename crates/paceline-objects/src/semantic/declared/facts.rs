//! The variables of an expression.

use crate::motion::seconds;
use crate::schema::FieldValue;
use crate::semantic::PairView;
use cel::common::types::{CelBool, CelBytes, CelDouble, CelInt, CelString};
use cel::common::value::CowVal;
use cel::context::VariableResolver;

/// The longest text or bytes of a field that expressions may use; longer ones are not found.
const FIELD_MAX: usize = 1_024;

/// What an expression sees of a pair.
pub(super) struct Facts<'a> {
    pair: &'a PairView<'a>,
    distance: CelDouble,
    angle: CelDouble,
    error: CelDouble,
    speed: CelDouble,
    age: CelDouble,
    interested: CelBool,
}

impl<'a> Facts<'a> {
    pub(super) fn new(pair: &'a PairView<'a>) -> Self {
        let facts = pair.facts;
        Self {
            pair,
            distance: facts.distance.unwrap_or(0.0).into(),
            angle: facts.angle.unwrap_or(0.0).into(),
            error: facts.error.into(),
            speed: facts.speed.into(),
            age: facts.age.map_or(3_600.0, |age| seconds(age).min(3_600.0)).into(),
            interested: facts.terms.is_some().into(),
        }
    }

    fn field(&self, name: &str) -> Option<CowVal<'_, '_>> {
        if let Some(value) = self.pair.field(name) {
            return constant(value);
        }
        let (vector, axis) = name.split_once('.')?;
        let axis = ["x", "y", "z"].into_iter().position(|known| known == axis)?;
        match self.pair.field(vector)? {
            FieldValue::Vector(values) => values.get(axis).map(|value| number(*value)),
            FieldValue::Bool(_)
            | FieldValue::Int(_)
            | FieldValue::Float(_)
            | FieldValue::Text(_)
            | FieldValue::Bytes(_) => None,
        }
    }
}

fn number<'b>(value: f64) -> CowVal<'b, 'b> {
    CowVal::owned(CelDouble::from(value))
}

fn constant(value: &FieldValue) -> Option<CowVal<'_, '_>> {
    match value {
        FieldValue::Bool(value) => Some(CowVal::owned(CelBool::from(*value))),
        FieldValue::Int(value) => Some(CowVal::owned(CelInt::from(*value))),
        FieldValue::Float(value) => Some(number(*value)),
        FieldValue::Vector(_) => None,
        FieldValue::Text(text) if text.len() > FIELD_MAX => None,
        FieldValue::Text(text) => Some(CowVal::owned(CelString::from(text.as_str()))),
        FieldValue::Bytes(bytes) if bytes.len() > FIELD_MAX => None,
        FieldValue::Bytes(bytes) => Some(CowVal::owned(CelBytes::from(bytes.to_vec()))),
    }
}

impl VariableResolver for Facts<'_> {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        match variable {
            "distance" => Some(CowVal::Borrowed(&self.distance)),
            "angle" => Some(CowVal::Borrowed(&self.angle)),
            "error" => Some(CowVal::Borrowed(&self.error)),
            "speed" => Some(CowVal::Borrowed(&self.speed)),
            "age" => Some(CowVal::Borrowed(&self.age)),
            "interested" => Some(CowVal::Borrowed(&self.interested)),
            _ => self.field(variable.strip_prefix("object.")?),
        }
    }
}

//! Values of fields.

use crate::errors;
use paceline::world::{FieldKind, FieldValue, Schema};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// Reads three numbers of any sequence or array.
pub(super) fn vector(name: &str, value: &Bound<'_, PyAny>) -> PyResult<[f64; 3]> {
    let read = || -> PyResult<Vec<f64>> { value.try_iter()?.map(|part| part?.extract()).collect() };
    let parts = read().ok().and_then(|parts| <[f64; 3]>::try_from(parts).ok());
    match parts {
        Some(parts) if parts.iter().all(|part| part.is_finite()) => Ok(parts),
        Some(_) | None => Err(errors::wrong_type(format!(
            "{name}={}: it must be three finite numbers, such as (1.0, 0.0, 2.5)",
            value.repr()?
        ))),
    }
}

/// Reads the fields of a dict and of keyword arguments by the types of a schema.
pub(super) fn read(
    schema: &Schema,
    values: Option<&Bound<'_, PyDict>>,
    fields: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<(String, FieldValue)>> {
    let mut found = Vec::new();
    for (name, value) in [values, fields].into_iter().flatten().flatten() {
        let name: String = name
            .extract()
            .map_err(|_| errors::wrong_type("fields: their names must be text".to_owned()))?;
        let index = schema.field(&name).and_then(|index| schema.fields().get(index));
        let Some(field) = index else {
            let known: Vec<_> = schema.fields().iter().map(|field| field.name.as_str()).collect();
            return Err(errors::value(format!(
                "field '{name}' is not in the schema '{schema}'; it has {}",
                known.join(", ")
            )));
        };
        found.push((name.clone(), one(&name, field.kind, &value)?));
    }
    Ok(found)
}

fn one(name: &str, kind: FieldKind, value: &Bound<'_, PyAny>) -> PyResult<FieldValue> {
    let read = match kind {
        FieldKind::Bool => value.extract().map(FieldValue::Bool),
        FieldKind::Int => value.extract().map(FieldValue::Int),
        FieldKind::Float => value.extract().map(FieldValue::Float),
        FieldKind::Vector => return vector(name, value).map(FieldValue::Vector),
        FieldKind::Text => value.extract().map(FieldValue::Text),
        FieldKind::Bytes => value.extract::<Vec<u8>>().map(|bytes| FieldValue::Bytes(bytes.into())),
    };
    match read {
        Ok(value) => Ok(value),
        Err(_) => {
            Err(errors::wrong_type(format!("{name}={}: it must be of type {kind}", value.repr()?)))
        }
    }
}

/// Returns the fields as the Rust API takes them.
pub(super) fn borrowed(fields: &[(String, FieldValue)]) -> Vec<(&str, FieldValue)> {
    fields.iter().map(|(name, value)| (name.as_str(), value.clone())).collect()
}

/// Returns a dict from field to value.
pub(super) fn dict<'py, 'a>(
    py: Python<'py>,
    fields: impl Iterator<Item = (&'a str, &'a FieldValue)>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in fields {
        match value {
            FieldValue::Bool(value) => dict.set_item(name, value)?,
            FieldValue::Int(value) => dict.set_item(name, value)?,
            FieldValue::Float(value) => dict.set_item(name, value)?,
            FieldValue::Vector([x, y, z]) => dict.set_item(name, (x, y, z))?,
            FieldValue::Text(value) => dict.set_item(name, value)?,
            FieldValue::Bytes(value) => dict.set_item(name, PyBytes::new(py, value))?,
        }
    }
    Ok(dict)
}

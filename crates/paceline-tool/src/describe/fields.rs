//! The fields of a JSON object, by name and range. Every error names the field and suggests a fix.

use super::json::Json;
use paceline_sched::units::{self, Quantity};
use std::fmt::Display;
use std::ops::RangeInclusive;

/// The longest time in nanoseconds: almost 32 years.
pub const TIME_MAX: u64 = 1_000_000_000_000_000_000;

/// An object whose fields are removed one after the other.
#[derive(Debug)]
pub struct Fields {
    path: String,
    known: &'static [&'static str],
    entries: Vec<(String, Json)>,
}

impl Fields {
    /// Opens the object at `path`, which is empty for the document. All its fields must be `known`.
    ///
    /// # Errors
    /// Returns an error if the value is not an object, or has an unknown or duplicate field.
    pub fn open(path: String, value: Json, known: &'static [&'static str]) -> Result<Self, String> {
        let Json::Object(entries) = value else {
            let place = if path.is_empty() { "the document" } else { &path };
            return Err(format!(
                "{place} is {value}: must be an object with the fields {}",
                listed(known)
            ));
        };
        let fields = Self { path, known, entries };
        for (place, (name, _)) in fields.entries.iter().enumerate() {
            fields.check_name(name)?;
            if fields.entries.iter().skip(place + 1).any(|(other, _)| other == name) {
                return Err(format!("{}is given twice: keep one", fields.before(name)));
            }
        }
        Ok(fields)
    }

    /// Returns an error if a field name is unknown.
    pub fn check_name(&self, name: &str) -> Result<(), String> {
        if self.known.contains(&name) {
            return Ok(());
        }
        let shown = Json::Text(name.to_owned());
        let place = if self.path.is_empty() { String::new() } else { format!("{}: ", self.path) };
        if let Some((present, example)) = units::renamed(name, self.known) {
            let present = Json::Text(present.to_owned());
            return Err(format!("{place}unknown field {shown}: write {present}: \"{example}\""));
        }
        Err(format!("{place}unknown field {shown}: the fields are {}", listed(self.known)))
    }

    fn before(&self, name: &str) -> String {
        format!("{} ", self.at(name))
    }

    /// Returns the path of a field.
    pub fn at(&self, name: &str) -> String {
        match self.path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        }
    }

    /// Removes and returns the value of a field; `null` counts as missing.
    pub fn take(&mut self, name: &str) -> Option<Json> {
        let place = self.entries.iter().position(|(found, _)| found == name)?;
        let (_, value) = self.entries.swap_remove(place);
        (value != Json::Null).then_some(value)
    }

    /// Returns true if a field is present.
    pub fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|(found, value)| found == name && *value != Json::Null)
    }

    /// Returns the error for a missing field.
    pub fn missing(&self, name: &str, fix: &str) -> String {
        format!("{} is missing: {fix}", self.at(name))
    }

    /// Reads a whole number in a range.
    pub fn whole(
        &mut self,
        name: &str,
        range: RangeInclusive<u64>,
        fix: &str,
    ) -> Result<Option<u64>, String> {
        self.take(name).map(|value| whole(&self.at(name), &value, range, fix)).transpose()
    }

    /// Reads a duration of at least `least` nanoseconds; returns nanoseconds.
    pub fn nanos(&mut self, name: &str, least: u64) -> Result<Option<u64>, String> {
        self.amount(name, Quantity::Duration, least..=TIME_MAX, "for example 10ms")
    }

    /// Reads a size; returns bytes.
    pub fn size(
        &mut self,
        name: &str,
        range: RangeInclusive<u64>,
        fix: &str,
    ) -> Result<Option<u64>, String> {
        self.amount(name, Quantity::Size, range, fix)
    }

    /// Reads a rate; returns bits per second.
    pub fn rate(
        &mut self,
        name: &str,
        range: RangeInclusive<u64>,
        fix: &str,
    ) -> Result<Option<u64>, String> {
        self.amount(name, Quantity::Rate, range, fix)
    }

    fn amount(
        &mut self,
        name: &str,
        quantity: Quantity,
        range: RangeInclusive<u64>,
        fix: &str,
    ) -> Result<Option<u64>, String> {
        let value = self.take(name);
        value.map(|value| amount(&self.at(name), &value, quantity, &range, fix)).transpose()
    }

    /// Reads a boolean.
    pub fn flag(&mut self, name: &str, fix: &str) -> Result<Option<bool>, String> {
        match self.take(name) {
            None => Ok(None),
            Some(Json::Bool(value)) => Ok(Some(value)),
            Some(other) => {
                Err(format!("{} is {other}: must be true or false; {fix}", self.at(name)))
            }
        }
    }

    /// Reads text by `read`, whose error states the rule.
    pub fn text<T, E: Display>(
        &mut self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, String> {
        match self.take(name) {
            None => Ok(None),
            Some(Json::Text(text)) => read(&text).map(Some).map_err(|error| {
                format!("{} is {}: {error}", self.at(name), Json::Text(text.clone()))
            }),
            Some(other) => Err(format!("{} is {other}: must be text", self.at(name))),
        }
    }
}

/// Converts `value`, text with a number and a unit, to a quantity in base units.
pub fn amount(
    place: &str,
    value: &Json,
    quantity: Quantity,
    range: &RangeInclusive<u64>,
    fix: &str,
) -> Result<u64, String> {
    let text = match value {
        Json::Text(text) => text.clone(),
        // A bare number counts as text, so that the error can suggest a unit.
        Json::Number(number) => number.to_string(),
        Json::Null | Json::Bool(_) | Json::List(_) | Json::Object(_) => {
            return Err(format!("{place} is {value}: must be text with a unit; {fix}"));
        }
    };
    units::in_range(&text, quantity, range)
        .map_err(|error| format!("{place} is {value}: {error}; {fix}"))
}

/// Converts `value` to a whole number in a range.
fn whole(place: &str, value: &Json, range: RangeInclusive<u64>, fix: &str) -> Result<u64, String> {
    let found = match value {
        Json::Number(number) => number.as_u64().filter(|found| range.contains(found)),
        Json::Null | Json::Bool(_) | Json::Text(_) | Json::List(_) | Json::Object(_) => None,
    };
    found.ok_or_else(|| {
        let (least, most) = range.into_inner();
        format!("{place} is {value}: must be a whole number from {least} to {most}; {fix}")
    })
}

/// Formats names as a list in a sentence.
fn listed(names: &[&str]) -> String {
    match names {
        [most @ .., last] if !most.is_empty() => format!("{} and {last}", most.join(", ")),
        all => all.join(""),
    }
}

//! Reads single values of the file.

use std::fmt::Display;
use toml::de::DeValue;

/// Reads a truth value. `rule` is the error for any other value.
pub(super) fn truth(value: &DeValue<'_>, rule: &str) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| rule.to_owned())
}

/// Reads a text value by `read`. `rule` is the error for a value that is not text.
pub(super) fn text<T>(
    value: &DeValue<'_>,
    rule: &str,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, String> {
    value.as_str().ok_or_else(|| rule.to_owned()).and_then(read)
}

/// Reads an integer from 1 to `max`. `rule` is the error for any other value.
pub(super) fn whole(value: &DeValue<'_>, max: u64, rule: &str) -> Result<u64, String> {
    let read = value
        .as_integer()
        .and_then(|number| u64::from_str_radix(number.as_str(), number.radix()).ok());
    read.filter(|number| (1..=max).contains(number)).ok_or_else(|| rule.to_owned())
}

/// Reads a rate in Hz, an integer or a float.
pub(super) fn hertz(value: &DeValue<'_>, rule: &str) -> Result<f64, String> {
    let integer = value.as_integer().filter(|number| number.radix() == 10);
    let number = integer.map(|it| it.as_str()).or_else(|| value.as_float().map(|it| it.as_str()));
    let number = number.and_then(|number| number.replace('_', "").parse::<f64>().ok());
    number.filter(|hz| (0.001..=1e6).contains(hz)).ok_or_else(|| rule.to_owned())
}

/// Converts the error to its text.
pub(super) fn text_error<T, E: Display>(result: Result<T, E>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}

//! The request of a browser as options of `paceline sub`.

use serde_json::{Map, Value};

/// The longest value of an option in bytes.
const VALUE_MAX: usize = 256;

/// Writes the fields of a request, `{"max_hz": 10, "size": "320x240"}`, as options: `--max-hz 10 --size 320x240`.
///
/// # Errors
/// Returns the name of a field whose value is no text and no number.
pub(super) fn of_fields(fields: &Map<String, Value>) -> Result<String, String> {
    let mut words = Vec::new();
    for (name, value) in fields {
        let value = match value {
            Value::Null => continue,
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                return Err(format!("{name}: {value} must be text or a number"));
            }
        };
        let plain = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
        if !plain(name) || !plain(&value) || name.starts_with('-') || value.len() > VALUE_MAX {
            return Err(format!("{name}: '{value}' must be one word of at most {VALUE_MAX} bytes"));
        }
        words.push(format!("--{}={value}", name.replace('_', "-")));
    }
    Ok(words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::of_fields;
    use serde_json::json;

    #[test]
    fn fields_become_options_and_nothing_else() {
        let words = |value: serde_json::Value| of_fields(value.as_object().unwrap());
        let all = json!({"max_hz": 10.5, "size": "320x240", "within": "200ms", "loss": null});
        assert_eq!(words(all).unwrap(), "--max-hz=10.5 --size=320x240 --within=200ms");
        assert_eq!(words(json!({})).unwrap(), "");
        for wrong in [
            json!({"max_hz": "10 --every 2"}),
            json!({"max hz": 10}),
            json!({"-x": 1}),
            json!({"max_hz": ""}),
            json!({"max_hz": [10]}),
            json!({"max_hz": "1".repeat(300)}),
        ] {
            assert!(words(wrong.clone()).is_err(), "{wrong}");
        }
    }
}

//! Decoding of payloads by their encoding.

use crate::payload::picture_size;
use paceline::{Encoding, Sample};
use paceline_media::audio::AudioFormat;
use paceline_tool::show;
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write as _;

/// Prefix of the encoding of a telemetry log's messages.
const ULOG: &str = "application/x-ulog;message=";

/// A decoded payload.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Payload {
    Text(String),
    /// JSON, parsed and as received.
    Json(Value, String),
    /// A picture, sound or video.
    Media,
    /// A telemetry log message: its name, its time in microseconds, and all of its bytes.
    Telemetry(String, u64, Bytes),
    /// Any other payload.
    Bytes(Bytes),
}

/// The first bytes of a payload, as hexadecimal digits.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bytes {
    digits: String,
    left_out: usize,
}

/// The JSON output of a payload: at most one of these kinds.
#[derive(Serialize)]
pub(super) struct PayloadLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    json: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hex: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<usize>,
}

impl Payload {
    /// Decodes a sample; keeps the first `max` bytes of a binary payload.
    pub(super) fn read(delivery: &Sample, max: usize) -> Self {
        let payload = &delivery.payload[..];
        let (name, utf8) = (delivery.encoding.as_str(), std::str::from_utf8(payload));
        if let Some(message) = name.strip_prefix(ULOG) {
            // Each message starts with its time.
            if let Some(time) = payload.first_chunk::<8>() {
                let time = u64::from_le_bytes(*time);
                return Self::Telemetry(message.to_owned(), time, Bytes::first(payload, max));
            }
        }
        let is_json = delivery.encoding == Encoding::Json || name.starts_with("application/json");
        match utf8 {
            Ok(text) if is_json => match serde_json::from_str(text) {
                Ok(value) => Self::Json(value, text.to_owned()),
                Err(_) => Self::Text(text.to_owned()),
            },
            Ok(text) if delivery.encoding == Encoding::Text || name.starts_with("text/") => {
                Self::Text(text.to_owned())
            }
            _ if ["image/", "video/", "audio/"].iter().any(|kind| name.starts_with(kind)) => {
                Self::Media
            }
            _ => Self::Bytes(Bytes::first(payload, max)),
        }
    }

    /// Returns a JSON field by its path: names and array indices joined by dots.
    ///
    /// # Errors
    /// Returns the reason as a phrase that follows the sample's name.
    pub(super) fn field(&self, path: &str) -> Result<Self, String> {
        let Self::Json(value, _) = self else { return Err("is not JSON".to_owned()) };
        let mut at = value;
        for name in path.split('.') {
            let found = match at.as_array() {
                Some(all) => name.parse().ok().and_then(|place: usize| all.get(place)),
                None => at.get(name),
            };
            at = found.ok_or_else(|| {
                let there = match at {
                    Value::Object(all) => all.keys().cloned().collect::<Vec<_>>().join(", "),
                    Value::Array(all) => format!("indices below {}", all.len()),
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                        "no fields".to_owned()
                    }
                };
                format!("has no {name}; it has {there}")
            })?;
        }
        let written = at.as_str().map_or_else(|| at.to_string(), ToOwned::to_owned);
        Ok(Self::Json(at.clone(), written))
    }

    /// Formats the payload as text.
    pub(super) fn text(&self, delivery: &Sample) -> String {
        match self {
            Self::Text(text) | Self::Json(_, text) => text.clone(),
            Self::Media => media(delivery),
            Self::Telemetry(message, time, bytes) => {
                format!("{message} timestamp {time} us, {} bytes: {bytes}", delivery.payload.len())
            }
            Self::Bytes(bytes) => {
                format!("{}, {} bytes: {bytes}", delivery.encoding, delivery.payload.len())
            }
        }
    }

    /// Returns the payload as fields of JSON.
    pub(super) fn line(&self) -> PayloadLine<'_> {
        let mut line = PayloadLine { text: None, json: None, hex: None, left_out: None };
        match self {
            Self::Text(text) => line.text = Some(text),
            Self::Json(value, _) => line.json = Some(value),
            Self::Media => {}
            Self::Telemetry(_, _, bytes) | Self::Bytes(bytes) => {
                line.hex = Some(&bytes.digits);
                line.left_out = Some(bytes.left_out);
            }
        }
        line
    }
}

impl Bytes {
    fn first(payload: &[u8], max: usize) -> Self {
        let shown = payload.get(..max).unwrap_or(payload);
        let mut digits = String::with_capacity(shown.len() * 2);
        for byte in shown {
            let _ = write!(digits, "{byte:02x}");
        }
        Self { digits, left_out: payload.len() - shown.len() }
    }
}

impl std::fmt::Display for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.digits)?;
        if self.left_out > 0 { f.write_str("...") } else { Ok(()) }
    }
}

/// Describes a picture, sound or video in one line.
fn media(delivery: &Sample) -> String {
    let mut text = String::new();
    if let Some(size) = picture_size(delivery) {
        let _ = write!(text, "{size} ");
    }
    let sound: Result<AudioFormat, _> = delivery.encoding.as_str().parse();
    match sound {
        Ok(sound) => {
            let _ = write!(text, "{sound}");
        }
        Err(_) => {
            let _ = write!(text, "{}", delivery.encoding);
        }
    }
    if delivery.kind.is_video() {
        let _ = write!(text, " {}", delivery.kind);
    }
    let age = show::millis(show::micros(delivery.age));
    let _ = write!(text, ", {} bytes, seq {}, age {age} ms", delivery.payload.len(), delivery.seq);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::test_delivery;

    fn delivery(encoding: &str, payload: &[u8]) -> Sample {
        test_delivery(Encoding::new(encoding), payload.to_vec())
    }

    fn texts(encoding: &str, payload: &[u8]) -> (String, String) {
        let delivery = delivery(encoding, payload);
        let payload = Payload::read(&delivery, 4);
        (payload.text(&delivery), serde_json::to_string(&payload.line()).unwrap())
    }

    #[test]
    fn each_encoding_has_its_description() {
        let two = |text: &str, json: &str| (text.to_owned(), json.to_owned());
        assert_eq!(texts("text/plain", b"hello"), two("hello", r#"{"text":"hello"}"#));
        let json = texts("application/json", b"{\"x\": [1, 2]}");
        assert_eq!(json, two("{\"x\": [1, 2]}", r#"{"json":{"x":[1,2]}}"#));
        let broken = texts("application/json", b"{\"x\":");
        assert_eq!(broken, two("{\"x\":", r#"{"text":"{\"x\":"}"#));
        assert_eq!(
            texts("application/octet-stream", b"\x00\xffabc"),
            two(
                "application/octet-stream, 5 bytes: 00ff6162...",
                r#"{"hex":"00ff6162","left_out":1}"#
            )
        );
        assert_eq!(
            texts("image/jpeg", b"\xff\xd8rubbish"),
            two("image/jpeg, 9 bytes, seq 7, age 1.23 ms", "{}"),
        );
        let raw = texts("video/raw;format=i420;width=2;height=2", &[0; 6]);
        assert!(raw.0.starts_with("2x2 video/raw"), "{raw:?}");
        let mut message = 1_000_000u64.to_le_bytes().to_vec();
        message.push(9);
        assert_eq!(
            texts("application/x-ulog;message=att", &message).0,
            "att timestamp 1000000 us, 9 bytes: 40420f00..."
        );
        assert!(
            texts("application/x-ulog;message=att", b"abc").0.starts_with("application/x-ulog")
        );
        assert!(texts("text/plain", b"\xff\xfe").0.starts_with("text/plain, 2 bytes: fffe"));
    }

    #[test]
    fn a_field_is_found_by_its_path_or_the_fields_are_listed() {
        let payload = |text: &[u8]| Payload::read(&delivery("application/json", text), 4);
        let json = payload(br#"{"a": {"b": [1, {"c": "d"}]}, "e": null}"#);
        let text = |path| json.field(path).map(|part| part.text(&delivery("x/y", b"")));
        assert_eq!(text("a.b.1.c"), Ok("d".to_owned()));
        assert_eq!(text("a.b.0"), Ok("1".to_owned()));
        assert_eq!(text("a.b"), Ok(r#"[1,{"c":"d"}]"#.to_owned()));
        assert_eq!(text("e"), Ok("null".to_owned()));
        assert_eq!(text("x"), Err("has no x; it has a, e".to_owned()));
        assert_eq!(text("a.b.7"), Err("has no 7; it has indices below 2".to_owned()));
        assert_eq!(text("a.b.0.z"), Err("has no z; it has no fields".to_owned()));
        let other = Payload::read(&delivery("text/plain", b"{}"), 4);
        assert_eq!(other.field("a"), Err("is not JSON".to_owned()));
    }
}

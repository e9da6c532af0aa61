//! Payloads of text and JSON as one line.

use paceline::text::escape;
use paceline::{Encoding, Sample};

/// Returns a payload of text or JSON as one line: line breaks of JSON become spaces, and those of text are escaped. `None` for
/// other payloads.
pub(crate) fn text_line(sample: &Sample) -> Option<String> {
    let (encoding, text) = (sample.encoding.as_str(), std::str::from_utf8(&sample.payload).ok()?);
    let text = text.trim_end_matches(['\r', '\n']);
    if sample.encoding == Encoding::Json || encoding.starts_with("application/json") {
        // A string of JSON contains no line breaks.
        let parts: Vec<&str> =
            text.lines().map(str::trim).filter(|part| !part.is_empty()).collect();
        return Some(escape(&parts.join(" ")).into_owned());
    }
    let is_text = sample.encoding == Encoding::Text || encoding.starts_with("text/");
    is_text.then(|| escape(text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::test_delivery;

    #[test]
    fn text_and_json_are_one_line() {
        let line = |encoding: &str, payload: &[u8]| {
            text_line(&test_delivery(Encoding::new(encoding), payload.to_vec()))
        };
        assert_eq!(line("text/plain", b"left\n"), Some("left".to_owned()));
        assert_eq!(line("text/plain", b"a\nb\x1b[2J"), Some("a\\nb\\u{1b}[2J".to_owned()));
        let json = "{\n  \"x\": 3.5,\n  \"y\": 1\n}\n";
        let one = Some("{ \"x\": 3.5, \"y\": 1 }".to_owned());
        assert_eq!(line("application/json", json.as_bytes()), one);
        assert_eq!(line("image/jpeg", b"text"), None);
        assert_eq!(line("text/plain", b"\xff"), None);
    }
}

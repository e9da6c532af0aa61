//! The status on the wire: its JSON form, compressed as an LZ4 block after its length.
//!
//! A later version adds fields with `#[serde(default)]`, so nodes of both versions understand each other.

use super::NodeStatus;
use paceline_proto::control::ANSWER_BYTES_MAX;
use paceline_proto::text::{escape, is_plain};
use serde::Serialize as _;
use serde_json::ser::{CharEscape, Formatter, Serializer};
use std::io::{self, Write};

/// The longest JSON form of a status that is sent or accepted, in bytes.
const JSON_BYTES_MAX: usize = 16 << 20;
/// The most rows of one kind in the first attempt to encode a status.
const ROWS_MAX: usize = 4_096;

/// The error for bytes that are no status.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StatusError {
    /// The status would be longer than 16 MiB, or its length is missing.
    #[error("its length is missing or more than 16 MiB")]
    Length,
    /// The bytes cannot be decompressed to the text of this length.
    #[error("it cannot be decompressed")]
    Compression,
    /// It contains characters that are not plain text.
    #[error("it contains characters that are not plain text")]
    NotPlain,
    /// A field is missing or invalid.
    #[error("{0}")]
    Field(String),
}

impl NodeStatus {
    /// Encodes the status as the answer to another node, at most [`ANSWER_BYTES_MAX`] bytes. Characters that are not plain
    /// text are escaped. If rows do not fit, the last ones of each kind are left out and counted in
    /// [`left_out`](Self::left_out).
    #[must_use]
    pub fn to_wire(&self) -> Vec<u8> {
        let mut rows = ROWS_MAX;
        if self.longest_list() <= rows
            && let Some(bytes) = self.compressed()
        {
            return bytes;
        }
        loop {
            let shortened = self.shortened(rows);
            match shortened.compressed() {
                Some(bytes) => return bytes,
                // Without rows, a status has a few kilobytes.
                None if rows == 0 => return Vec::new(),
                None => rows /= 2,
            }
        }
    }

    /// Decodes a status that [`Self::to_wire`] encoded.
    ///
    /// # Errors
    /// Returns [`StatusError`] if the bytes are no status.
    pub fn from_wire(bytes: &[u8]) -> Result<Self, StatusError> {
        let (len, rest) = bytes.split_first_chunk().ok_or(StatusError::Length)?;
        let len = usize::try_from(u32::from_le_bytes(*len)).unwrap_or(usize::MAX);
        if len > JSON_BYTES_MAX {
            return Err(StatusError::Length);
        }
        let json = lz4_flex::block::decompress(rest, len).map_err(|_| StatusError::Compression)?;
        if json.len() != len {
            return Err(StatusError::Compression);
        }
        let json = str::from_utf8(&json).map_err(|_| StatusError::NotPlain)?;
        if !is_plain_json(json) {
            return Err(StatusError::NotPlain);
        }
        serde_json::from_str(json)
            .map_err(|error| StatusError::Field(escape(&error.to_string()).into_owned()))
    }

    /// Returns the bytes of the status; `None` if they are too many.
    fn compressed(&self) -> Option<Vec<u8>> {
        let mut json = Vec::new();
        // Neither the structs nor a vector have errors.
        self.serialize(&mut Serializer::with_formatter(&mut json, PlainJson)).ok()?;
        let len = u32::try_from(json.len()).ok().filter(|_| json.len() <= JSON_BYTES_MAX)?;
        let bytes = [&len.to_le_bytes()[..], &lz4_flex::block::compress(&json)].concat();
        (bytes.len() <= ANSWER_BYTES_MAX).then_some(bytes)
    }

    fn longest_list(&self) -> usize {
        let streams = self.links.iter().map(|link| link.streams.len()).max().unwrap_or_default();
        let lists = [
            self.publishers.len(),
            self.subscriptions.len(),
            self.buffers.len(),
            self.links.len(),
            self.reservations.len(),
            streams,
        ];
        lists.into_iter().max().unwrap_or_default()
    }

    /// Returns the status with at most `rows` rows of each kind.
    fn shortened(&self, rows: usize) -> Self {
        let mut short = self.clone();
        let mut left_out = 0;
        left_out += shorten(&mut short.publishers, rows);
        left_out += shorten(&mut short.subscriptions, rows);
        left_out += shorten(&mut short.buffers, rows);
        left_out += shorten(&mut short.links, rows);
        left_out += shorten(&mut short.reservations, rows);
        for link in &mut short.links {
            left_out += shorten(&mut link.streams, rows);
            left_out += shorten(&mut link.neighbours, rows);
            left_out += shorten(&mut link.classes, rows);
            link.hops.truncate(link.neighbours.len());
        }
        short.left_out += left_out as u64;
        short
    }
}

/// Shortens a list to `rows` rows and returns the number of the removed ones.
fn shorten<T>(list: &mut Vec<T>, rows: usize) -> usize {
    let removed = list.len().saturating_sub(rows);
    list.truncate(rows);
    removed
}

/// Compact JSON in which every text is [plain](paceline_proto::text).
struct PlainJson;

impl Formatter for PlainJson {
    fn write_string_fragment<W: Write + ?Sized>(
        &mut self,
        to: &mut W,
        text: &str,
    ) -> io::Result<()> {
        if is_plain(text) {
            return to.write_all(text.as_bytes());
        }
        to.write_all(escape(text).replace('\\', "\\\\").as_bytes())
    }

    fn write_char_escape<W: Write + ?Sized>(
        &mut self,
        to: &mut W,
        escaped: CharEscape,
    ) -> io::Result<()> {
        match escaped {
            CharEscape::Quote => to.write_all(b"\\\""),
            CharEscape::ReverseSolidus => to.write_all(b"\\\\"),
            CharEscape::Solidus => to.write_all(b"/"),
            CharEscape::Backspace => to.write_all(b"\\\\u{8}"),
            CharEscape::FormFeed => to.write_all(b"\\\\u{c}"),
            CharEscape::LineFeed => to.write_all(b"\\\\n"),
            CharEscape::CarriageReturn => to.write_all(b"\\\\r"),
            CharEscape::Tab => to.write_all(b"\\\\t"),
            CharEscape::AsciiControl(code) => write!(to, "\\\\u{{{code:x}}}"),
        }
    }
}

/// Returns true if a JSON text contains plain characters only, and no escape but those of `"` and `\`: then each of its strings
/// is plain.
fn is_plain_json(json: &str) -> bool {
    if !is_plain(json) {
        return false;
    }
    let mut chars = json.bytes();
    while let Some(byte) = chars.next() {
        if byte == b'\\' && !matches!(chars.next(), Some(b'"' | b'\\')) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests;

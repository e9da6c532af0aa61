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
/// The most commas in it: they limit the number of values, and so the memory of the decoder.
const COMMAS_MAX: usize = 1_000_000;
/// The longest text that is sent; the rest is cut off. Escaped `"` and `\` count twice.
const TEXT_BYTES_MAX: usize = 1_024;
/// The longest text that is accepted: an escape of several bytes may exceed the limit of the sender.
const TEXT_BYTES_ACCEPTED: usize = TEXT_BYTES_MAX + 16;
/// The longest description of an invalid field.
const ERROR_CHARS_MAX: usize = 200;

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
    /// A text is longer than a node sends, or there are more than a million values.
    #[error("it has a text of more than 1 KiB, or more than a million values")]
    Size,
    /// A field is missing or invalid.
    #[error("{0}")]
    Field(String),
}

impl NodeStatus {
    /// Encodes the status as the answer to another node, at most [`ANSWER_BYTES_MAX`] bytes. Characters that are not plain
    /// text are escaped, and texts are cut after 1 KiB. If rows do not fit, the last ones of each kind are left out and counted
    /// in [`left_out`](Self::left_out).
    #[must_use]
    pub fn to_wire(&self) -> Vec<u8> {
        if let Some(bytes) = self.compressed() {
            return bytes;
        }
        let mut rows = self.longest_list() / 2;
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
        check_texts(json)?;
        let invalid = |error: serde_json::Error| {
            let text: String = error.to_string().chars().take(ERROR_CHARS_MAX).collect();
            StatusError::Field(escape(&text).into_owned())
        };
        serde_json::from_str(json).map_err(invalid)
    }

    /// Returns the bytes of the status; `None` if they are too many.
    fn compressed(&self) -> Option<Vec<u8>> {
        let mut json = Vec::new();
        // Neither the structs nor a vector have errors.
        self.serialize(&mut Serializer::with_formatter(&mut json, PlainJson::default())).ok()?;
        if json.iter().filter(|byte| **byte == b',').count() > COMMAS_MAX {
            return None;
        }
        let len = u32::try_from(json.len()).ok().filter(|_| json.len() <= JSON_BYTES_MAX)?;
        let bytes = [&len.to_le_bytes()[..], &lz4_flex::block::compress(&json)].concat();
        (bytes.len() <= ANSWER_BYTES_MAX).then_some(bytes)
    }

    fn longest_list(&self) -> usize {
        let streams = self.links.iter().map(|link| link.streams.len()).max().unwrap_or_default();
        let ends = self.subscriptions.iter().map(|it| it.publishers.len().max(it.refusals.len()));
        let lists = [
            self.publishers.len(),
            self.subscriptions.len(),
            self.buffers.len(),
            self.links.len(),
            self.reservations.len(),
            streams,
            ends.max().unwrap_or_default(),
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
        let removed = short.links.iter().skip(rows);
        left_out += removed.map(|link| link.streams.len() + link.classes.len()).sum::<usize>();
        left_out += shorten(&mut short.links, rows);
        left_out += shorten(&mut short.reservations, rows);
        for subscription in &mut short.subscriptions {
            left_out += shorten(&mut subscription.publishers, rows);
            left_out += shorten(&mut subscription.refusals, rows);
            subscription.scaled_at.truncate(subscription.publishers.len());
        }
        for link in &mut short.links {
            left_out += shorten(&mut link.muted, rows);
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

/// Compact JSON in which every text is [plain](paceline_proto::text), and cut after [`TEXT_BYTES_MAX`].
#[derive(Default)]
struct PlainJson {
    /// The bytes of the current text so far.
    written: usize,
}

impl PlainJson {
    /// Writes a part of a text, as far as it fits.
    fn write_part<W: Write + ?Sized>(&mut self, to: &mut W, part: &str) -> io::Result<()> {
        let mut end = part.len().min(TEXT_BYTES_MAX.saturating_sub(self.written));
        // A part is cut between two characters, and never between a backslash and its character.
        let is_cut = |end: usize| {
            end < part.len() && part.as_bytes().get(end.wrapping_sub(1)) == Some(&b'\\')
        };
        while !part.is_char_boundary(end) || is_cut(end) {
            end -= 1;
        }
        self.written += if end < part.len() { TEXT_BYTES_MAX } else { end };
        to.write_all(part.get(..end).unwrap_or_default().as_bytes())
    }
}

impl PlainJson {
    /// Writes an escaped character if it fits as a whole.
    fn write_escape<W: Write + ?Sized>(&mut self, to: &mut W, shown: &str) -> io::Result<()> {
        self.written += shown.len();
        if self.written > TEXT_BYTES_MAX { Ok(()) } else { to.write_all(shown.as_bytes()) }
    }
}

impl Formatter for PlainJson {
    fn begin_string<W: Write + ?Sized>(&mut self, to: &mut W) -> io::Result<()> {
        self.written = 0;
        to.write_all(b"\"")
    }

    fn write_string_fragment<W: Write + ?Sized>(
        &mut self,
        to: &mut W,
        text: &str,
    ) -> io::Result<()> {
        match is_plain(text) {
            true => self.write_part(to, text),
            false => self.write_part(to, &escape(text).replace('\\', "\\\\")),
        }
    }

    fn write_char_escape<W: Write + ?Sized>(
        &mut self,
        to: &mut W,
        escaped: CharEscape,
    ) -> io::Result<()> {
        let shown = match escaped {
            CharEscape::Quote => "\\\"",
            CharEscape::ReverseSolidus => "\\\\",
            CharEscape::Solidus => "/",
            CharEscape::Backspace => "\\\\u{8}",
            CharEscape::FormFeed => "\\\\u{c}",
            CharEscape::LineFeed => "\\\\n",
            CharEscape::CarriageReturn => "\\\\r",
            CharEscape::Tab => "\\\\t",
            CharEscape::AsciiControl(code) => {
                return self.write_escape(to, &format!("\\\\u{{{code:x}}}"));
            }
        };
        self.write_escape(to, shown)
    }
}

/// Checks that a JSON text contains plain characters only, and no escape but those of `"` and `\`: then each of its strings is
/// plain. Also checks the length of its strings and the number of its values.
fn check_texts(json: &str) -> Result<(), StatusError> {
    if !is_plain(json) {
        return Err(StatusError::NotPlain);
    }
    let (mut bytes, mut text, mut commas) = (json.bytes(), None, 0);
    while let Some(byte) = bytes.next() {
        match (byte, &mut text) {
            (b'\\', _) if !matches!(bytes.next(), Some(b'"' | b'\\')) => {
                return Err(StatusError::NotPlain);
            }
            (b'"', Some(_)) => text = None,
            (b'"', None) => text = Some(0),
            (_, Some(length)) => *length += 1,
            (b',', None) => commas += 1,
            (_, None) => {}
        }
        if text.is_some_and(|length| length > TEXT_BYTES_ACCEPTED) || commas > COMMAS_MAX {
            return Err(StatusError::Size);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;

//! Reading and writing of fields: little-endian integers, and LEB128 for counts.

use crate::text::is_plain;
use bytes::Bytes;

/// An error in bytes received from a link.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The bytes end inside a field.
    #[error("truncated inside {0}")]
    Truncated(&'static str),
    /// The frame has another version of the wire format.
    #[error("wire format version {0}: this node speaks version {version}", version = super::VERSION)]
    Version(u8),
    /// A field has a value that its type does not allow.
    #[error("invalid {0}")]
    Invalid(&'static str),
    /// A length or count exceeds its bound.
    #[error("{field} is {value}: at most {max}")]
    TooLarge {
        /// The name of the field.
        field: &'static str,
        /// The received value.
        value: u64,
        /// The maximum value.
        max: u64,
    },
    /// Bytes follow the last field.
    #[error("{0} bytes left over")]
    Trailing(usize),
}

/// Reads fields from the front of shared bytes. Byte strings are slices of them, not copies.
#[derive(Clone, Debug)]
pub struct Reader {
    rest: Bytes,
}

impl Reader {
    /// Returns a reader at the start of `bytes`.
    #[must_use]
    pub const fn new(bytes: Bytes) -> Self {
        Self { rest: bytes }
    }

    /// Returns `true` if everything was read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the number of unread bytes.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// Returns [`WireError::Trailing`] if bytes are left.
    pub fn finish(self) -> Result<(), WireError> {
        if self.rest.is_empty() { Ok(()) } else { Err(WireError::Trailing(self.rest.len())) }
    }

    /// Reads the next `len` bytes.
    ///
    /// # Errors
    /// Returns [`WireError::Truncated`] if there are fewer.
    pub fn bytes(&mut self, len: usize, field: &'static str) -> Result<Bytes, WireError> {
        if len > self.rest.len() {
            return Err(WireError::Truncated(field));
        }
        Ok(self.rest.split_to(len))
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// Returns [`WireError::Truncated`] at the end.
    pub fn u8(&mut self, field: &'static str) -> Result<u8, WireError> {
        let byte = self.rest.first().copied().ok_or(WireError::Truncated(field))?;
        bytes::Buf::advance(&mut self.rest, 1);
        Ok(byte)
    }

    /// Reads four bytes, little-endian.
    ///
    /// # Errors
    /// Returns [`WireError::Truncated`] if there are fewer.
    pub fn u32(&mut self, field: &'static str) -> Result<u32, WireError> {
        let bytes = self.rest.first_chunk::<4>().copied().ok_or(WireError::Truncated(field))?;
        bytes::Buf::advance(&mut self.rest, 4);
        Ok(u32::from_le_bytes(bytes))
    }

    /// Reads eight bytes, little-endian.
    ///
    /// # Errors
    /// Returns [`WireError::Truncated`] if there are fewer.
    pub fn u64(&mut self, field: &'static str) -> Result<u64, WireError> {
        let bytes = self.rest.first_chunk::<8>().copied().ok_or(WireError::Truncated(field))?;
        bytes::Buf::advance(&mut self.rest, 8);
        Ok(u64::from_le_bytes(bytes))
    }

    /// Reads an unsigned LEB128 number of at most 64 bits, in its shortest form.
    ///
    /// # Errors
    /// Returns [`WireError::Truncated`] at the end, and [`WireError::Invalid`] for a number that is not in
    /// its shortest form.
    pub fn varint(&mut self, field: &'static str) -> Result<u64, WireError> {
        let mut value = 0u64;
        for (place, &byte) in self.rest.iter().take(10).enumerate() {
            let bits = u64::from(byte & 0x7f);
            let shift = 7 * place;
            if place == 9 && bits > 1 || place > 0 && byte == 0 {
                return Err(WireError::Invalid(field));
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                bytes::Buf::advance(&mut self.rest, place + 1);
                return Ok(value);
            }
        }
        let err = if self.rest.len() < 10 { WireError::Truncated } else { WireError::Invalid };
        Err(err(field))
    }

    /// Reads a LEB128 number of at most `max`.
    ///
    /// # Errors
    /// Like [`Self::varint`]; returns [`WireError::TooLarge`] above `max`.
    pub fn varint_max(&mut self, max: u64, field: &'static str) -> Result<u64, WireError> {
        let value = self.varint(field)?;
        if value > max {
            return Err(WireError::TooLarge { field, value, max });
        }
        Ok(value)
    }

    /// Reads a LEB128 number of at most 32 bits.
    ///
    /// # Errors
    /// Like [`Self::varint_max`].
    pub fn varint32(&mut self, field: &'static str) -> Result<u32, WireError> {
        let value = self.varint_max(u64::from(u32::MAX), field)?;
        u32::try_from(value).map_err(|_| WireError::Invalid(field))
    }

    /// Reads a count or length of at most `max`.
    ///
    /// # Errors
    /// Like [`Self::varint_max`].
    pub fn len(&mut self, max: usize, field: &'static str) -> Result<usize, WireError> {
        let value = self.varint_max(max as u64, field)?;
        usize::try_from(value).map_err(|_| WireError::Invalid(field))
    }

    /// Reads a length of at most `max`, and plain UTF-8 text of that length in bytes.
    ///
    /// Names and messages of other nodes reach terminals and logs. So this function is the one point that
    /// refuses text which is not [plain](crate::text).
    ///
    /// # Errors
    /// Like [`Self::len`] and [`Self::bytes`]; returns [`WireError::Invalid`] if the bytes are not plain text
    /// in UTF-8.
    pub fn text(&mut self, max: usize, field: &'static str) -> Result<String, WireError> {
        let len = self.len(max, field)?;
        let bytes = self.bytes(len, field)?;
        let text = core::str::from_utf8(&bytes).ok().filter(|text| is_plain(text));
        text.map(str::to_owned).ok_or(WireError::Invalid(field))
    }

    /// Reads a flag byte, 0 or 1.
    ///
    /// # Errors
    /// Returns [`WireError::Truncated`] at the end, and [`WireError::Invalid`] for any other byte.
    pub fn flag(&mut self, field: &'static str) -> Result<bool, WireError> {
        match self.u8(field)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(WireError::Invalid(field)),
        }
    }
}

/// Appends fields to a buffer.
pub trait Writer {
    /// Appends one byte.
    fn put_u8(&mut self, value: u8);
    /// Appends bytes unchanged.
    fn put_bytes(&mut self, bytes: &[u8]);

    /// Appends four bytes, little-endian.
    fn put_u32(&mut self, value: u32) {
        self.put_bytes(&value.to_le_bytes());
    }

    /// Appends eight bytes, little-endian.
    fn put_u64(&mut self, value: u64) {
        self.put_bytes(&value.to_le_bytes());
    }

    /// Appends an unsigned LEB128 number.
    fn put_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.put_u8((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        #[expect(clippy::cast_possible_truncation, reason = "below 0x80")]
        self.put_u8(value as u8);
    }

    /// Appends a length and the text's bytes.
    fn put_text(&mut self, text: &str) {
        self.put_varint(text.len() as u64);
        self.put_bytes(text.as_bytes());
    }

    /// Appends a flag byte.
    fn put_flag(&mut self, flag: bool) {
        self.put_u8(u8::from(flag));
    }
}

impl Writer for Vec<u8> {
    fn put_u8(&mut self, value: u8) {
        self.push(value);
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Returns the number of bytes that [`Writer::put_varint`] appends for `value`.
#[must_use]
pub const fn varint_len(value: u64) -> usize {
    (70 - (value | 1).leading_zeros() as usize) / 7
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_round_trip(values in prop::collection::vec(any::<u64>(), 0..20), shift in 0u32..64) {
            let mut out = Vec::new();
            for value in &values {
                let before = out.len();
                out.put_varint(value >> shift);
                prop_assert_eq!(out.len() - before, varint_len(value >> shift));
            }
            let mut reader = Reader::new(out.into());
            for value in &values {
                prop_assert_eq!(reader.varint("n"), Ok(value >> shift));
            }
            prop_assert_eq!(reader.finish(), Ok(()));
        }
    }

    #[test]
    fn text_is_plain_or_refused() {
        let read = |text: &str| {
            let mut out = Vec::new();
            out.put_text(text);
            Reader::new(out.into()).text(255, "name")
        };
        assert_eq!(read("robot \u{fc}"), Ok("robot \u{fc}".to_owned()));
        for bad in ["a\x1b[31m", "a\nerror: b", "\u{202e}tobor", "\u{9b}2J", "\0"] {
            assert_eq!(read(bad), Err(WireError::Invalid("name")), "{bad:?}");
        }
        let bytes = Bytes::from_static(&[1, 0xff]);
        assert_eq!(Reader::new(bytes).text(255, "name"), Err(WireError::Invalid("name")));
    }

    #[test]
    fn only_the_shortest_form_is_a_number() {
        let read = |bytes: &'static [u8]| Reader::new(Bytes::from_static(bytes)).varint("n");
        assert_eq!(read(&[0x80, 0x00]), Err(WireError::Invalid("n")));
        assert_eq!(read(&[0x80]), Err(WireError::Truncated("n")));
        assert_eq!(read(&[]), Err(WireError::Truncated("n")));
        assert_eq!(read(&[0xff; 10]), Err(WireError::Invalid("n")));
        assert_eq!(read(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]), Ok(u64::MAX));
    }
}

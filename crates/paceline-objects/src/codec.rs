//! Numbers, text and bytes of packets: little-endian, with integers of variable length (LEB128) for counts.

use crate::ids::PeerId;
use std::fmt;

/// The error of a packet that cannot be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PacketError {
    /// It ends too early.
    Short,
    /// It has bytes after its end.
    Long,
    /// A count or length exceeds its limit.
    Limit,
    /// A version, kind or flag that this program does not know.
    Unknown(u8),
    /// Text that is not UTF-8.
    Text,
    /// A number that is not finite.
    NotFinite,
    /// A schema, path or rule that is not well-formed.
    Form,
}

impl fmt::Display for PacketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => f.write_str("the packet ends too early"),
            Self::Long => f.write_str("the packet has bytes after its end"),
            Self::Limit => f.write_str("a count or length of the packet exceeds its limit"),
            Self::Unknown(value) => write!(
                f,
                "version, kind or flag {value} is not known; use the same Paceline version"
            ),
            Self::Text => f.write_str("text of the packet is not UTF-8"),
            Self::NotFinite => f.write_str("a number of the packet is not finite"),
            Self::Form => f.write_str("a schema, path or rule of the packet is not well-formed"),
        }
    }
}

impl std::error::Error for PacketError {}

/// Writes a packet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes.push(value);
        self
    }

    pub(crate) fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn peer(&mut self, peer: PeerId) -> &mut Self {
        self.bytes.extend_from_slice(&peer.0.to_le_bytes());
        self
    }

    pub(crate) fn f64(&mut self, value: f64) -> &mut Self {
        self.u64(value.to_bits())
    }

    /// A number as 32 bits; a finite one that exceeds them becomes the greatest finite one.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "rounding to 32 bits is what the format states"
    )]
    pub(crate) fn f32(&mut self, value: f64) -> &mut Self {
        self.u32((value.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32).to_bits())
    }

    pub(crate) fn varint(&mut self, mut value: u64) -> &mut Self {
        while value >= 0x80 {
            self.bytes.push(u8::try_from(value & 0x7f).unwrap_or_default() | 0x80);
            value >>= 7;
        }
        self.bytes.push(u8::try_from(value).unwrap_or_default());
        self
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    pub(crate) fn block(&mut self, bytes: &[u8]) -> &mut Self {
        self.varint(bytes.len() as u64).raw(bytes)
    }

    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.block(text.as_bytes())
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Returns the FNV-1a hash of bytes.
pub(crate) fn fnv(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Returns the number of bytes of a variable-length integer.
pub(crate) const fn varint_len(value: u64) -> usize {
    let bits = 64 - value.leading_zeros() as usize;
    if bits == 0 { 1 } else { bits.div_ceil(7) }
}

/// Reads a packet.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns an error unless everything was read.
    pub(crate) const fn end(&self) -> Result<(), PacketError> {
        if self.rest.is_empty() { Ok(()) } else { Err(PacketError::Long) }
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], PacketError> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or(PacketError::Short)?;
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], PacketError> {
        self.take(N)?.try_into().map_err(|_| PacketError::Short)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, PacketError> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(crate) fn u16(&mut self) -> Result<u16, PacketError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, PacketError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, PacketError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn peer(&mut self) -> Result<PeerId, PacketError> {
        Ok(PeerId(u128::from_le_bytes(self.array()?)))
    }

    /// Reads a finite number of 64 bits.
    pub(crate) fn f64(&mut self) -> Result<f64, PacketError> {
        let value = f64::from_bits(self.u64()?);
        if value.is_finite() { Ok(value) } else { Err(PacketError::NotFinite) }
    }

    /// Reads a finite number of 32 bits.
    pub(crate) fn f32(&mut self) -> Result<f64, PacketError> {
        let value = f32::from_bits(self.u32()?);
        if value.is_finite() { Ok(f64::from(value)) } else { Err(PacketError::NotFinite) }
    }

    pub(crate) fn varint(&mut self) -> Result<u64, PacketError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                return Err(PacketError::Limit);
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(PacketError::Limit)
    }

    /// Reads a count or length of at most `limit`.
    pub(crate) fn count(&mut self, limit: usize) -> Result<usize, PacketError> {
        usize::try_from(self.varint()?)
            .ok()
            .filter(|count| *count <= limit)
            .ok_or(PacketError::Limit)
    }

    /// Reads a number of at most 32 bits.
    pub(crate) fn varint32(&mut self) -> Result<u32, PacketError> {
        u32::try_from(self.varint()?).map_err(|_| PacketError::Limit)
    }

    pub(crate) fn block(&mut self, limit: usize) -> Result<&'a [u8], PacketError> {
        let len = self.count(limit)?;
        self.take(len)
    }

    pub(crate) fn text(&mut self, limit: usize) -> Result<&'a str, PacketError> {
        std::str::from_utf8(self.block(limit)?).map_err(|_| PacketError::Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn integers_of_variable_length_return(value: u64) {
            let mut writer = Writer::default();
            writer.varint(value);
            let bytes = writer.finish();
            prop_assert_eq!(bytes.len(), varint_len(value));
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.varint(), Ok(value));
            prop_assert_eq!(reader.end(), Ok(()));
        }

        #[test]
        fn any_bytes_give_a_value_or_an_error(bytes: Vec<u8>) {
            let mut reader = Reader::new(&bytes);
            while reader.varint().is_ok() && reader.text(16).is_ok() && reader.f32().is_ok() {}
        }
    }

    #[test]
    fn an_integer_of_more_than_64_bits_is_an_error() {
        assert_eq!(Reader::new(&[0xff; 11]).varint(), Err(PacketError::Limit));
        let mut two = [0x80; 10];
        two[9] = 2;
        assert_eq!(Reader::new(&two).varint(), Err(PacketError::Limit));
    }

    #[test]
    fn numbers_that_are_not_finite_are_errors() {
        let mut writer = Writer::default();
        writer.f64(f64::NAN);
        assert_eq!(Reader::new(&writer.finish()).f64(), Err(PacketError::NotFinite));
        let mut writer = Writer::default();
        writer.f32(1e300);
        assert_eq!(Reader::new(&writer.finish()).f32(), Ok(f64::from(f32::MAX)));
    }
}

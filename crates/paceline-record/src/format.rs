//! The records of MCAP (specification: mcap.dev/spec). Numbers are little-endian. A length precedes
//! each text; kind and length precede each record.

use std::collections::BTreeMap;

/// The first and the last bytes of a file.
pub(crate) const MAGIC: [u8; 8] = [0x89, b'M', b'C', b'A', b'P', 0x30, b'\r', b'\n'];
/// The length of a record's kind and length fields, in bytes.
pub(crate) const HEAD: u64 = 9;

pub(crate) const HEADER: u8 = 0x01;
pub(crate) const FOOTER: u8 = 0x02;
pub(crate) const SCHEMA: u8 = 0x03;
pub(crate) const CHANNEL: u8 = 0x04;
pub(crate) const MESSAGE: u8 = 0x05;
pub(crate) const CHUNK: u8 = 0x06;
pub(crate) const MESSAGE_INDEX: u8 = 0x07;
pub(crate) const CHUNK_INDEX: u8 = 0x08;
pub(crate) const ATTACHMENT: u8 = 0x09;
pub(crate) const STATISTICS: u8 = 0x0b;
pub(crate) const METADATA: u8 = 0x0c;
pub(crate) const SUMMARY_OFFSET: u8 = 0x0e;
pub(crate) const DATA_END: u8 = 0x0f;

/// Returns the kind and the length of the record that begins with these bytes; `None` if they are too few.
pub(crate) fn head(bytes: &[u8]) -> Option<(u8, u64)> {
    let (kind, rest) = bytes.split_first()?;
    rest.first_chunk().map(|length| (*kind, u64::from_le_bytes(*length)))
}

/// Encodes a length. Longer content was rejected earlier.
pub(crate) fn len32(bytes: usize) -> [u8; 4] {
    u32::try_from(bytes).unwrap_or(u32::MAX).to_le_bytes()
}

/// Builds the content of a record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content(pub(crate) Vec<u8>);

impl Content {
    pub(crate) fn u16(mut self, value: u16) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn u8(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }

    /// Appends text or bytes after a 32-bit length.
    pub(crate) fn text(mut self, text: impl AsRef<[u8]>) -> Self {
        let text = text.as_ref();
        self.0.extend(len32(text.len()));
        self.0.extend_from_slice(text);
        self
    }

    pub(crate) fn texts(self, map: &BTreeMap<String, String>) -> Self {
        let mut inner = Self::default();
        for (name, value) in map {
            inner = inner.text(name).text(value);
        }
        self.text(inner.0)
    }

    /// Appends the content to `to` as a record of this kind.
    pub(crate) fn append(&self, kind: u8, to: &mut Vec<u8>) {
        to.push(kind);
        to.extend((self.0.len() as u64).to_le_bytes());
        to.extend_from_slice(&self.0);
    }
}

/// Appends a message record without an intermediate copy.
pub(crate) fn append_message(
    to: &mut Vec<u8>,
    channel: u16,
    sequence: u32,
    (log_time, publish_time): (u64, u64),
    data: &[u8],
) {
    to.push(MESSAGE);
    to.extend((2 + 4 + 8 + 8 + data.len() as u64).to_le_bytes());
    to.extend(channel.to_le_bytes());
    to.extend(sequence.to_le_bytes());
    to.extend(log_time.to_le_bytes());
    to.extend(publish_time.to_le_bytes());
    to.extend_from_slice(data);
}

/// Parses the content of a record. Returns `None` if it is too short.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts<'a>(pub(crate) &'a [u8]);

impl<'a> Parts<'a> {
    pub(crate) fn take(&mut self, bytes: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(bytes).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N as u64)?.first_chunk().copied()
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads text. Invalid UTF-8 is replaced.
    pub(crate) fn text(&mut self) -> Option<String> {
        let length = self.u32()?;
        self.take(u64::from(length)).map(|text| String::from_utf8_lossy(text).into_owned())
    }

    pub(crate) fn texts(&mut self) -> Option<BTreeMap<String, String>> {
        let length = self.u32()?;
        let mut inner = Parts(self.take(u64::from(length))?);
        let mut map = BTreeMap::new();
        while !inner.0.is_empty() {
            map.insert(inner.text()?, inner.text()?);
        }
        Some(map)
    }

    /// Reads the next record: its kind and content.
    pub(crate) fn record(&mut self) -> Option<(u8, &'a [u8])> {
        let [kind] = self.array()?;
        let length = self.u64()?;
        Some((kind, self.take(length)?))
    }
}

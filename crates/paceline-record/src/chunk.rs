//! Chunks: groups of records, compressed, with a checksum.

use crate::format::{CHUNK, CHUNK_INDEX, Content, HEAD, MESSAGE_INDEX, Parts, append_message};
use lz4_flex::frame::{FrameDecoder, FrameEncoder};
use ruzstd::decoding::StreamingDecoder;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{Read, Write as _};

/// The compression of chunks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Compression {
    /// LZ4, which is fast.
    Lz4,
    /// No compression.
    None,
}

impl Compression {
    const fn name(self) -> &'static str {
        match self {
            Self::Lz4 => "lz4",
            Self::None => "",
        }
    }
}

/// A chunk being filled.
#[derive(Debug, Default)]
pub(crate) struct Open {
    records: Vec<u8>,
    /// The log time and offset of each message, by channel.
    index: BTreeMap<u16, Vec<(u64, u64)>>,
    times: Option<(u64, u64)>,
}

impl Open {
    /// Returns the uncompressed length so far, in bytes.
    pub(crate) const fn len(&self) -> usize {
        self.records.len()
    }

    pub(crate) fn record(&mut self, content: &Content, kind: u8) {
        content.append(kind, &mut self.records);
    }

    pub(crate) fn message(&mut self, channel: u16, sequence: u32, times: (u64, u64), data: &[u8]) {
        let (log_time, _) = times;
        self.index.entry(channel).or_default().push((log_time, self.records.len() as u64));
        let (from, to) = self.times.unwrap_or((log_time, log_time));
        self.times = Some((from.min(log_time), to.max(log_time)));
        append_message(&mut self.records, channel, sequence, times, data);
    }

    /// Appends the chunk and its message indexes to `to`; `at` is its offset in the file. Returns
    /// the content of the chunk index, or `None` if the chunk is empty.
    pub(crate) fn close(
        &mut self,
        compression: Compression,
        at: u64,
        to: &mut Vec<u8>,
    ) -> Option<Content> {
        if self.records.is_empty() {
            return None;
        }
        let Self { records, index, times } = std::mem::take(self);
        let (from, until) = times.unwrap_or((0, 0));
        let size = records.len() as u64;
        let checksum = crc32fast::hash(&records);
        let packed = match compression {
            Compression::Lz4 => pack(&records),
            Compression::None => records,
        };
        let begin = to.len();
        Content::default()
            .u64(from)
            .u64(until)
            .u64(size)
            .u32(checksum)
            .text(compression.name())
            .u64(packed.len() as u64)
            .append_with(CHUNK, &packed, to);
        let length = (to.len() - begin) as u64;
        let mut places = Content::default();
        let indexes = to.len();
        for (channel, entries) in index {
            places = places.u16(channel).u64(at + (to.len() - begin) as u64);
            let entries = entries
                .iter()
                .fold(Content::default(), |list, (time, place)| list.u64(*time).u64(*place));
            Content::default().u16(channel).text(entries.0).append(MESSAGE_INDEX, to);
        }
        let content = Content::default()
            .u64(from)
            .u64(until)
            .u64(at)
            .u64(length)
            .text(places.0)
            .u64((to.len() - indexes) as u64)
            .text(compression.name())
            .u64(packed.len() as u64)
            .u64(size);
        Some(content)
    }
}

impl Content {
    /// Appends a record whose content is followed by `more`.
    fn append_with(&self, kind: u8, more: &[u8], to: &mut Vec<u8>) {
        to.reserve(usize::try_from(HEAD).unwrap_or_default() + self.0.len() + more.len());
        to.push(kind);
        to.extend(((self.0.len() + more.len()) as u64).to_le_bytes());
        to.extend_from_slice(&self.0);
        to.extend_from_slice(more);
    }
}

/// The record kind of a chunk index.
pub(crate) const INDEX: u8 = CHUNK_INDEX;

fn pack(records: &[u8]) -> Vec<u8> {
    let mut encoder = FrameEncoder::new(Vec::with_capacity(records.len() / 2));
    // Writing to memory cannot fail. If it did, the checksum would reveal it.
    let written = encoder.write_all(records);
    written.ok().and_then(|()| encoder.finish().ok()).unwrap_or_default()
}

/// Decompresses the records of a chunk, up to `max` bytes.
pub(crate) fn unpack(content: &[u8], max: u64) -> Result<Cow<'_, [u8]>, String> {
    let mut parts = Parts(content);
    let (size, checksum, compression, packed) =
        head(&mut parts).ok_or("it is shorter than declared")?;
    if size > max {
        return Err(format!("it declares {size} bytes; must be at most {max}"));
    }
    if !parts.0.is_empty() {
        return Err("its records are shorter than it".to_owned());
    }
    let records = match compression.as_str() {
        "" => Cow::Borrowed(packed),
        "lz4" => Cow::Owned(all(FrameDecoder::new(packed), size)?),
        "zstd" => {
            let decoder = StreamingDecoder::new(packed).map_err(|error| error.to_string())?;
            Cow::Owned(all(decoder, size)?)
        }
        other => {
            return Err(format!(
                "it is compressed with '{other}'; only lz4 and zstd can be read; convert it with another tool"
            ));
        }
    };
    if records.len() as u64 != size {
        return Err(format!("it has {} bytes and declares {size}", records.len()));
    }
    // 0 means that the checksum was omitted.
    let found = crc32fast::hash(&records);
    match checksum == 0 || checksum == found {
        true => Ok(records),
        false => Err(format!("its checksum is {found:08x} and it declares {checksum:08x}")),
    }
}

/// Returns true if these bytes are the whole content of a chunk: a known compression, and the records to the end.
pub(crate) fn is_plausible(content: &[u8]) -> bool {
    let mut parts = Parts(content);
    head(&mut parts).is_some_and(|(size, _, compression, packed)| match compression.as_str() {
        "" => parts.0.is_empty() && packed.len() as u64 == size,
        compression => parts.0.is_empty() && matches!(compression, "lz4" | "zstd"),
    })
}

/// Returns true if the records of a chunk are compressed.
pub(crate) fn is_packed(content: &[u8]) -> bool {
    head(&mut Parts(content)).is_some_and(|(_, _, compression, _)| !compression.is_empty())
}

/// Returns the length of the fields before the records of a chunk without compression, which may be cut off; `None` for
/// other contents.
pub(crate) fn open_head(content: &[u8]) -> Option<u64> {
    let mut parts = Parts(content);
    parts.take(16)?;
    let size = parts.u64()?;
    parts.u32()?;
    let compression = parts.text()?;
    let packed = parts.u64()?;
    let length = (content.len() - parts.0.len()) as u64;
    (compression.is_empty() && size == packed).then_some(length)
}

fn head<'a>(parts: &mut Parts<'a>) -> Option<(u64, u32, String, &'a [u8])> {
    parts.take(16)?;
    let (size, checksum, compression) = (parts.u64()?, parts.u32()?, parts.text()?);
    let packed = parts.u64()?;
    Some((size, checksum, compression, parts.take(packed)?))
}

/// Reads the output of a decoder, but at most one byte more than `size`.
fn all(decoder: impl Read, size: u64) -> Result<Vec<u8>, String> {
    let mut records = Vec::new();
    let read = decoder.take(size.saturating_add(1)).read_to_end(&mut records);
    read.map_err(|error| format!("it can't be decompressed: {error}"))?;
    Ok(records)
}

//! Reads the messages of a file one by one, up to the last complete record. Files may be larger
//! than memory and have any content.

use crate::chunk;
use crate::format::{CHANNEL, CHUNK, DATA_END, HEAD, MAGIC, MESSAGE, Parts, SCHEMA};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read};
use std::sync::Arc;

/// The longest record and the largest decompressed chunk, in bytes: four times the largest sample.
const RECORD_MAX: u64 = 256 << 20;

/// A channel of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Channel {
    /// The topic.
    pub topic: String,
    /// The encoding of its messages.
    pub message_encoding: String,
    /// The name of the schema; empty without one.
    pub schema: String,
    /// The metadata of the channel.
    pub metadata: BTreeMap<String, String>,
}

/// A message of a file.
#[derive(Clone, Debug)]
pub struct Message {
    /// The number of its channel.
    pub id: u16,
    /// Its channel.
    pub channel: Arc<Channel>,
    /// The sequence number.
    pub sequence: u32,
    /// The arrival time at the recorder, in nanoseconds since 1970.
    pub log_time: u64,
    /// The publication time, in nanoseconds since 1970.
    pub publish_time: u64,
    /// The encoded message.
    pub data: Vec<u8>,
}

/// Why reading stopped. Earlier messages remain valid.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file does not start as an MCAP file.
    #[error(
        "is not an MCAP file: it does not begin with the MCAP magic bytes; use a file of paceline record"
    )]
    NoMcap,
    /// The file ends within a record or without an end record.
    #[error("is cut off: {}", cut(*.whole, *.needed, *.left))]
    Cut {
        /// The length of the complete part in bytes.
        whole: u64,
        /// The length of the incomplete record in bytes.
        needed: u64,
        /// The number of its bytes that are present.
        left: u64,
    },
    /// A record exceeds the length limit.
    #[error("byte {at}: a record of {bytes} bytes; must be at most {RECORD_MAX}")]
    TooLong {
        /// The offset of the record.
        at: u64,
        /// The claimed length in bytes.
        bytes: u64,
    },
    /// A record is invalid.
    #[error("byte {at}: {what}")]
    Corrupt {
        /// The offset of the record.
        at: u64,
        /// The problem.
        what: String,
    },
    /// Reading failed.
    #[error("byte {at}: cannot read: {what}")]
    Io {
        /// The offset.
        at: u64,
        /// The error of the operating system.
        what: io::Error,
    },
}

impl ReadError {
    /// Returns true if the file is only truncated, for example because a recorder was killed or a
    /// disk was full.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        matches!(self, Self::Cut { .. })
    }
}

/// Reads a file from start to end.
pub struct McapReader<R> {
    from: R,
    at: u64,
    schemas: BTreeMap<u16, String>,
    channels: BTreeMap<u16, Arc<Channel>>,
    ready: VecDeque<Message>,
    /// The number of messages of undeclared channels.
    strays: u64,
    done: bool,
}

impl<R: Read> McapReader<R> {
    /// Reads the start of a file.
    ///
    /// # Errors
    /// [`ReadError::NoMcap`], [`ReadError::Io`].
    pub fn new(mut from: R) -> Result<Self, ReadError> {
        let mut magic = Vec::new();
        let length = MAGIC.len() as u64;
        let read = from.by_ref().take(length).read_to_end(&mut magic);
        read.map_err(|what| ReadError::Io { at: 0, what })?;
        if magic != MAGIC {
            return Err(ReadError::NoMcap);
        }
        Ok(Self {
            from,
            at: length,
            schemas: BTreeMap::new(),
            channels: BTreeMap::new(),
            ready: VecDeque::new(),
            strays: 0,
            done: false,
        })
    }

    /// Returns the number of messages of undeclared channels so far.
    #[must_use]
    pub const fn strays(&self) -> u64 {
        self.strays
    }

    /// Returns the offset up to which the file was read and is complete.
    #[must_use]
    pub const fn whole(&self) -> u64 {
        self.at
    }

    /// Returns the next message in file order; `None` at the end.
    ///
    /// # Errors
    /// [`ReadError`]. Later calls return `None`.
    pub fn next_message(&mut self) -> Result<Option<Message>, ReadError> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Ok(Some(message));
            }
            if self.done {
                return Ok(None);
            }
            if let Err(error) = self.record() {
                self.done = true;
                // Discard all messages of a broken chunk, because its checksum cannot be right.
                self.ready.clear();
                return Err(error);
            }
        }
    }

    /// Reads one record of the file.
    fn record(&mut self) -> Result<(), ReadError> {
        let at = self.at;
        let mut head = Vec::new();
        self.read(HEAD, &mut head, HEAD)?;
        let Some((kind, length)) = head.split_first() else { return Ok(()) };
        let length = length.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        if length > RECORD_MAX {
            return Err(ReadError::TooLong { at, bytes: length });
        }
        let mut body = Vec::new();
        self.read(length, &mut body, HEAD.saturating_add(length))?;
        match *kind {
            // Only the index follows, which repeats the records before.
            DATA_END => self.done = true,
            CHUNK => self.chunk(at, &body)?,
            kind => self.plain(at, kind, &body)?,
        }
        self.at = at.saturating_add(HEAD).saturating_add(length);
        Ok(())
    }

    /// Reads `length` bytes of a record of `needed` bytes.
    fn read(&mut self, length: u64, into: &mut Vec<u8>, needed: u64) -> Result<(), ReadError> {
        let read = self.from.by_ref().take(length).read_to_end(into);
        read.map_err(|what| ReadError::Io { at: self.at, what })?;
        if (into.len() as u64) < length {
            let left = needed - length + into.len() as u64;
            return Err(ReadError::Cut { whole: self.at, needed, left });
        }
        Ok(())
    }

    fn chunk(&mut self, at: u64, body: &[u8]) -> Result<(), ReadError> {
        let corrupt = |what: String| ReadError::Corrupt { at, what: format!("a chunk: {what}") };
        let records = chunk::unpack(body, RECORD_MAX).map_err(corrupt)?;
        let mut parts = Parts(&records);
        while !parts.0.is_empty() {
            let short = || corrupt("one of its records is longer than it".to_owned());
            let (kind, body) = parts.record().ok_or_else(short)?;
            self.plain(at, kind, body)?;
        }
        Ok(())
    }

    /// Handles a record other than a chunk.
    fn plain(&mut self, at: u64, kind: u8, body: &[u8]) -> Result<(), ReadError> {
        let mut parts = Parts(body);
        let (what, read) = match kind {
            SCHEMA => ("a schema", self.schema(&mut parts)),
            CHANNEL => ("a channel", self.channel(at, &mut parts)?),
            MESSAGE => ("a message", self.message(&mut parts)),
            // Headers, indexes, attachments, metadata and unknown records are not needed for a
            // replay.
            _ => return Ok(()),
        };
        let short = || format!("{what} of {} bytes, which is shorter than declared", body.len());
        read.ok_or_else(|| ReadError::Corrupt { at, what: short() })
    }

    fn schema(&mut self, parts: &mut Parts<'_>) -> Option<()> {
        let (id, name) = (parts.u16()?, parts.text()?);
        self.schemas.insert(id, name);
        Some(())
    }

    fn channel(&mut self, at: u64, parts: &mut Parts<'_>) -> Result<Option<()>, ReadError> {
        let Some((id, read)) = self.read_channel(parts) else { return Ok(None) };
        let known = self.channels.entry(id).or_insert_with(|| Arc::new(read.clone()));
        if known.topic != read.topic || known.message_encoding != read.message_encoding {
            let (is, was) = (&read.topic, &known.topic);
            let what = format!("channel {id} is '{is}' here and '{was}' before");
            return Err(ReadError::Corrupt { at, what });
        }
        Ok(Some(()))
    }

    fn read_channel(&self, parts: &mut Parts<'_>) -> Option<(u16, Channel)> {
        let (id, schema) = (parts.u16()?, parts.u16()?);
        let channel = Channel {
            topic: parts.text()?,
            message_encoding: parts.text()?,
            schema: self.schemas.get(&schema).cloned().unwrap_or_default(),
            metadata: parts.texts()?,
        };
        Some((id, channel))
    }

    fn message(&mut self, parts: &mut Parts<'_>) -> Option<()> {
        let (id, sequence) = (parts.u16()?, parts.u32()?);
        let (log_time, publish_time) = (parts.u64()?, parts.u64()?);
        match self.channels.get(&id) {
            Some(channel) => self.ready.push_back(Message {
                id,
                channel: Arc::clone(channel),
                sequence,
                log_time,
                publish_time,
                data: parts.0.to_vec(),
            }),
            None => self.strays += 1,
        }
        Some(())
    }
}

fn cut(whole: u64, needed: u64, left: u64) -> String {
    match left {
        0 => format!("it is complete up to byte {whole}, where it stops without an end record"),
        _ => format!(
            "it is complete up to byte {whole}; of the {needed} bytes of the next record, {left} are present"
        ),
    }
}

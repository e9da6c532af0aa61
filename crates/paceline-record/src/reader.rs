//! A file's messages, one by one, up to where it is whole. Files may be longer than memory, and anything.

use crate::chunk;
use crate::format::{CHANNEL, CHUNK, DATA_END, HEAD, MAGIC, MESSAGE, Parts, SCHEMA};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read};
use std::sync::Arc;

/// The longest record, and the most that a chunk may hold once it is decompressed: four of our longest samples.
const RECORD_MAX: u64 = 256 << 20;

/// A channel of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Channel {
    /// Its topic.
    pub topic: String,
    /// How its messages are written.
    pub message_encoding: String,
    /// The name of their schema; empty if it has none.
    pub schema: String,
    /// What is written beside it.
    pub metadata: BTreeMap<String, String>,
}

/// A message of a file.
#[derive(Clone, Debug)]
pub struct Message {
    /// Its channel's number in the file.
    pub id: u16,
    /// Its channel.
    pub channel: Arc<Channel>,
    /// Its number.
    pub sequence: u32,
    /// When it came to the recorder.
    pub log_time: u64,
    /// When it was published.
    pub publish_time: u64,
    /// The message.
    pub data: Vec<u8>,
}

/// Why a file can't be read on. What came before stays true.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It does not begin as MCAP does.
    #[error(
        "is no MCAP file: it does not begin with the bytes that each of them begins with; give one that does"
    )]
    NoMcap,
    /// It ends before its end.
    #[error("is cut off: {}", cut(*.whole, *.needed, *.left))]
    Cut {
        /// Up to where it is whole.
        whole: u64,
        /// What the record there has.
        needed: u64,
        /// What of it is there.
        left: u64,
    },
    /// A record is longer than any may be.
    #[error("byte {at}: a record of {bytes} bytes; at most {RECORD_MAX} are read")]
    TooLong {
        /// Where.
        at: u64,
        /// How long it claims to be.
        bytes: u64,
    },
    /// A record is not what it should be.
    #[error("byte {at}: {what}")]
    Corrupt {
        /// Where.
        at: u64,
        /// What is wrong with it.
        what: String,
    },
    /// It can't be read.
    #[error("byte {at}: cannot read: {what}")]
    Io {
        /// Where.
        at: u64,
        /// What the system says.
        what: io::Error,
    },
}

impl ReadError {
    /// True if the file only ends too early: a recorder was killed, a disk was full.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        matches!(self, Self::Cut { .. })
    }
}

/// Reads a file from its beginning to its end.
pub struct Reader<R> {
    from: R,
    at: u64,
    schemas: BTreeMap<u16, String>,
    channels: BTreeMap<u16, Arc<Channel>>,
    ready: VecDeque<Message>,
    /// Messages of channels that the file does not say.
    strays: u64,
    done: bool,
}

impl<R: Read> Reader<R> {
    /// Reads the beginning.
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

    /// Messages so far of channels that the file does not say.
    #[must_use]
    pub const fn strays(&self) -> u64 {
        self.strays
    }

    /// Up to where the file was read and is whole.
    #[must_use]
    pub const fn whole(&self) -> u64 {
        self.at
    }

    /// The next message, in the order of the file; `None` at its end.
    ///
    /// # Errors
    /// [`ReadError`]; nothing comes after it.
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
                // Nothing of a broken chunk: its checksum can't hold.
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
            // The index follows, which repeats what was read.
            DATA_END => self.done = true,
            CHUNK => self.chunk(at, &body)?,
            kind => self.plain(at, kind, &body)?,
        }
        self.at = at.saturating_add(HEAD).saturating_add(length);
        Ok(())
    }

    /// Reads `length` bytes of a record that has `needed`.
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

    /// A record that is no chunk.
    fn plain(&mut self, at: u64, kind: u8, body: &[u8]) -> Result<(), ReadError> {
        let mut parts = Parts(body);
        let (what, read) = match kind {
            SCHEMA => ("a schema", self.schema(&mut parts)),
            CHANNEL => ("a channel", self.channel(at, &mut parts)?),
            MESSAGE => ("a message", self.message(&mut parts)),
            // Headers, indexes, attachments, metadata, and what is not known: nothing to be replayed.
            _ => return Ok(()),
        };
        let short = || format!("{what} of {} bytes, which is shorter than it says", body.len());
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
        0 => format!("it is whole to byte {whole}, where it stops without an end"),
        _ => format!(
            "it is whole to byte {whole}, and of the {needed} bytes of the record there {left} are left"
        ),
    }
}

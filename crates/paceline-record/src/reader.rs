//! Reads the messages of a file one by one, up to the last complete record. Files may be larger
//! than memory and have any content.

mod contents;
mod proof;
mod window;

use crate::chunk;
use crate::format::{self, CHANNEL, CHUNK, DATA_END, FOOTER, HEAD, MAGIC, SCHEMA};
use contents::Contents;
pub use contents::Declarations;
use paceline_media::Damage;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read};
use std::sync::Arc;
use window::Window;

/// The longest record and the largest decompressed chunk, in bytes: four times the largest sample.
const RECORD_MAX: u64 = 256 << 20;
/// The number of bytes that are searched at once.
const SEARCH_BYTES: u64 = 1 << 16;

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
///
/// After a damaged place, reading continues at the next record that proves to be one by its content. A damaged chunk
/// without compression is read record by record; one with compression is skipped, since its content depends on each of
/// its bytes.
pub struct McapReader<R> {
    window: Window<R>,
    contents: Contents,
    damage: Damage,
    /// Records before this offset belong to a damaged chunk.
    doubtful_to: u64,
    /// True behind the end record.
    ended: bool,
    done: bool,
}

/// The result of reading a record.
enum Taken {
    /// The record was read and has this length.
    Whole(u64),
    /// The bytes are no record, or a damaged one.
    Damaged(String),
    /// A damaged chunk, with its first record at this distance.
    Unpacked(u64, String),
    /// The file ends within a chunk without compression, with its first record at this distance.
    Open(u64),
}

impl<R: Read> McapReader<R> {
    /// Reads the start of a file.
    ///
    /// # Errors
    /// [`ReadError::NoMcap`], [`ReadError::Io`].
    pub fn new(from: R) -> Result<Self, ReadError> {
        Self::knowing(from, Declarations::default())
    }

    /// Reads the start of a file whose channels are known. The record that declares a channel may be damaged, and be
    /// repeated at the end of the file: [`McapReader::declarations`] returns it after the first pass.
    ///
    /// # Errors
    /// [`ReadError::NoMcap`], [`ReadError::Io`].
    pub fn knowing(from: R, known: Declarations) -> Result<Self, ReadError> {
        let mut window = Window::new(from);
        let length = MAGIC.len() as u64;
        if window.see(length)? != MAGIC {
            return Err(ReadError::NoMcap);
        }
        window.skip(length);
        let fixed = !known.is_empty();
        let contents = Contents { declared: known, ready: VecDeque::new(), fixed, strays: 0 };
        let damage = Damage::default();
        Ok(Self { window, contents, damage, doubtful_to: 0, ended: false, done: false })
    }

    /// Returns the number of messages of undeclared channels so far.
    #[must_use]
    pub const fn strays(&self) -> u64 {
        self.contents.strays
    }

    /// Returns the channels that were declared so far.
    #[must_use]
    pub const fn declarations(&self) -> &Declarations {
        &self.contents.declared
    }

    /// Returns the offset up to which the file was read and is complete.
    #[must_use]
    pub const fn whole(&self) -> u64 {
        self.window.at()
    }

    /// Returns the damaged places so far.
    #[must_use]
    pub const fn damage(&self) -> &Damage {
        &self.damage
    }

    /// Returns the next message in file order; `None` at the end.
    ///
    /// # Errors
    /// [`ReadError::Cut`], [`ReadError::Io`]. Later calls return `None`.
    pub fn next_message(&mut self) -> Result<Option<Message>, ReadError> {
        loop {
            if let Some(message) = self.contents.ready.pop_front() {
                return Ok(Some(message));
            }
            if self.done {
                return Ok(None);
            }
            if let Err(error) = self.record() {
                self.done = true;
                // The index behind the end record is not needed.
                return if self.ended && error.is_cut() { Ok(None) } else { Err(error) };
            }
        }
    }

    /// Reads one record of the file, or skips a damaged place.
    fn record(&mut self) -> Result<(), ReadError> {
        match self.take()? {
            Taken::Whole(bytes) => self.window.skip(bytes),
            Taken::Unpacked(head, what) => {
                self.damage.add(self.window.at(), 0, || what);
                self.window.skip(head);
            }
            Taken::Open(head) => self.window.skip(head),
            Taken::Damaged(what) => self.resume(what)?,
        }
        Ok(())
    }

    fn take(&mut self) -> Result<Taken, ReadError> {
        let at = self.window.at();
        let head = self.window.see(HEAD)?;
        let Some((kind, length)) = format::head(head) else {
            return Err(ReadError::Cut { whole: at, needed: HEAD, left: head.len() as u64 });
        };
        if length > RECORD_MAX {
            return Ok(Taken::Damaged(format!(
                "a record of {length} bytes; must be at most {RECORD_MAX}"
            )));
        }
        let whole = HEAD + length;
        let left = self.window.see(whole)?.len() as u64;
        if left < whole {
            return self.overlong(kind, whole, left);
        }
        // The kind of the next record shows whether this one ends there.
        let seen = self.window.see(whole + HEAD)?;
        let (_, next) = at_most(seen, whole);
        let (ends, is_last) = (proof::may_begin(next), proof::is_end(next));
        if !ends && kind != CHUNK && self.next_begins_within(whole)? {
            return Ok(Taken::Damaged("a record overlaps the next one".to_owned()));
        }
        let (record, _) = at_most(self.window.see(whole)?, whole);
        let body = record.get(9..).unwrap_or_default();
        let doubtful = at < self.doubtful_to || !ends || !proof::is_readable(kind, body);
        let known = &self.contents.declared;
        // The content of schemas, channels and chunks shows whether it belongs to them.
        let opaque = !matches!(kind, SCHEMA | CHANNEL | CHUNK);
        if (doubtful || opaque) && proof::contains_records(kind, body, known, doubtful) {
            return Ok(Taken::Damaged("a record contains others".to_owned()));
        }
        match kind {
            CHUNK => {
                let taken = unpack(&mut self.contents, body);
                match taken {
                    Taken::Unpacked(..) => self.doubtful_to = at + whole,
                    Taken::Whole(_) | Taken::Damaged(_) | Taken::Open(_) => {
                        self.contents.declared.packed |= chunk::is_packed(body);
                    }
                }
                return Ok(taken);
            }
            DATA_END if length == 4 => self.ended = true,
            FOOTER if self.ended || is_last => self.done = true,
            FOOTER => return Ok(Taken::Damaged("a footer within the file".to_owned())),
            kind => {
                if let Err(what) = self.contents.plain(kind, body) {
                    return Ok(Taken::Damaged(what));
                }
            }
        }
        Ok(Taken::Whole(whole))
    }

    /// Returns true if a record begins within the first one, of `whole` bytes, and ends behind it, or if the first one contains
    /// the end record: its length is damaged.
    fn next_begins_within(&mut self, whole: u64) -> Result<bool, ReadError> {
        let packed = self.contents.declared.packed && self.window.at() >= self.doubtful_to;
        for at in HEAD..whole {
            let (_, seen) = at_most(self.window.see(at + HEAD)?, at);
            let Some((kind, length)) = format::head(seen) else { break };
            let end = at.saturating_add(HEAD).saturating_add(length);
            let contained = end <= whole && kind != DATA_END;
            if contained || length > RECORD_MAX || !proof::may_prove(kind, packed) {
                continue;
            }
            let (_, next) = at_most(self.window.see(end)?, at);
            let is_whole = next.len() as u64 == HEAD + length;
            if is_whole && proof::proves(next, &self.contents.declared) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Decides about a record that is longer than the rest of the file.
    fn overlong(&mut self, kind: u8, whole: u64, left: u64) -> Result<Taken, ReadError> {
        let at = self.window.at();
        let seen = self.window.see(left)?;
        let body = seen.get(9..).unwrap_or_default();
        if kind == CHUNK
            && let Some(head) = chunk::open_head(body)
        {
            return Ok(Taken::Open(HEAD + head));
        }
        match proof::find(seen, 1, &self.contents.declared) {
            Some(_) => Ok(Taken::Damaged("a record is longer than the file".to_owned())),
            None => Err(ReadError::Cut { whole: at, needed: whole, left }),
        }
    }

    /// Skips a damaged place: continues at the next record that proves to be one.
    fn resume(&mut self, what: String) -> Result<(), ReadError> {
        let at = self.window.at();
        self.window.skip(1);
        loop {
            let seen = self.window.see(SEARCH_BYTES)?;
            if seen.is_empty() {
                break;
            }
            let packed = self.contents.declared.packed && at >= self.doubtful_to;
            let candidate = seen.iter().position(|kind| proof::may_prove(*kind, packed));
            let skipped = candidate.unwrap_or(seen.len()) as u64;
            self.window.skip(skipped);
            if candidate.is_none() {
                continue;
            }
            if self.is_at_proof()? {
                break;
            }
            self.window.skip(1);
        }
        let bytes = self.window.at() - at;
        if self.ended {
            return Ok(());
        }
        self.damage.add(at, bytes, || what);
        Ok(())
    }

    /// Returns true if the next bytes are a record that proves to be one.
    fn is_at_proof(&mut self) -> Result<bool, ReadError> {
        let Some((kind, length)) = format::head(self.window.see(HEAD)?) else { return Ok(false) };
        let whole = HEAD.saturating_add(length);
        if length > RECORD_MAX || !self.window.has(whole)? {
            return Ok(false);
        }
        let (record, next) = at_most(self.window.see(whole + HEAD)?, whole);
        let ends = kind != FOOTER || proof::is_end(next);
        Ok(ends && proof::proves(record, &self.contents.declared))
    }
}

/// Splits bytes after the first `length`, or at their end.
fn at_most(bytes: &[u8], length: u64) -> (&[u8], &[u8]) {
    let at = usize::try_from(length).unwrap_or(usize::MAX);
    bytes.split_at_checked(at).unwrap_or((bytes, &[]))
}

/// Reads the records of a chunk.
fn unpack(contents: &mut Contents, body: &[u8]) -> Taken {
    let read = chunk::unpack(body, RECORD_MAX).and_then(|records| contents.records(&records));
    match (read, chunk::open_head(body)) {
        (Ok(()), _) => Taken::Whole(HEAD + body.len() as u64),
        (Err(what), Some(head)) => Taken::Unpacked(HEAD + head, format!("a chunk: {what}")),
        (Err(what), None) => Taken::Damaged(format!("a chunk: {what}")),
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

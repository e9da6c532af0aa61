//! Questions of a puller, answers of a holder, and their encoding.
//!
//! Both are sent by [`crate::control::Control::ask`] and [`crate::control::Control::answer`].

use super::holding::{Cursor, Find, Found, Held, Holding, PAGE_HOLDINGS, PAGE_ITEMS, SampleSpan};
use super::selection::Selection;
use crate::form::{Audio, Size};
use crate::ids::{NodeId, PublisherId};
use crate::sample::Kind;
use crate::tag::{TAG_BYTES_MAX, Tag};
use crate::text::escape;
use crate::topic::Topic;
use crate::wire::segment::{read_audio, read_rate, write_audio, write_rate};
use crate::wire::{Reader, WireError, Writer};
use bytes::Bytes;

/// The most sequence numbers per fetch, and per list of missing ones.
pub const SEQS_MAX: usize = 256;
/// The most sequence numbers that a fetch announces as next.
pub const NEXT_MAX: usize = 32;
/// The longest reason of a refused question, in bytes.
pub const REFUSED_BYTES_MAX: usize = 255;

const FIND: u8 = 0;
const FETCH: u8 = 1;
const DONE: u8 = 2;
const ORDER: u8 = 3;

const HELD: u8 = 0;
const FETCHING: u8 = 1;
const REFUSED: u8 = 2;
const ORDERED: u8 = 3;

const NEWEST: u8 = 0;
const NTH: u8 = 1;
const SEQ: u8 = 2;
const TIME: u8 = 3;

const MAKES_SIZE: u8 = 1;
const MAKES_AUDIO: u8 = 1 << 1;
const MAKES_CODED: u8 = 1 << 2;
const MAKES_FRESH: u8 = 1 << 3;

const HAS_PUBLISHER: u8 = 1;
const HAS_AFTER: u8 = 1 << 1;

/// A puller's question to a holder.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Question {
    /// Searches the holder's buffers. Answered by [`Answer::Held`].
    Find(Find),
    /// Requests samples on the [private tag](super::private_tag). Answered by [`Answer::Fetching`] with the
    /// samples that will be missing.
    Fetch(Fetch),
    /// Ends the pull, so that its private tag can be removed. Needs no answer.
    Done {
        /// The pull's number at the puller.
        pull: u64,
    },
    /// Orders a buffer of the newest samples of a tag, or renews it. Answered by [`Answer::Ordered`].
    Order {
        /// The tag.
        tag: Tag,
        /// The number of samples.
        samples: u32,
    },
}

/// A request for samples.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fetch {
    /// The pull's number at the puller.
    pub pull: u64,
    /// The tag.
    pub tag: Tag,
    /// The publisher.
    pub publisher: PublisherId,
    /// The conversion of the samples before they are sent.
    pub making: Making,
    /// The sequence numbers, in increasing order: at most [`SEQS_MAX`], others are not sent.
    pub seqs: Vec<u64>,
    /// For re-encoded video, the sequence numbers of the next request, at most [`NEXT_MAX`]: a decoder may
    /// return several pictures at once.
    pub next: Vec<u64>,
    /// For re-encoded video, start with a picture that is decodable by itself, because the pictures before
    /// were lost.
    pub fresh: bool,
}

/// The conversion that a holder applies to samples before it sends them. A size applies only to pictures, and
/// an audio format only to sound.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Making {
    /// The picture size.
    pub size: Option<Size>,
    /// The sampling rate and number of channels of sound.
    pub audio: Option<Audio>,
    /// True to re-encode only the requested pictures of a video, from all that they depend on.
    pub coded: bool,
}

/// A holder's answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Answer {
    /// One page of a search result.
    Held(Found),
    /// The holder published the requested samples, except those listed here.
    Fetching {
        /// Samples that are no longer stored, or whose references are not: at most [`SEQS_MAX`].
        missing: Vec<u64>,
        /// Samples that are stored but whose conversion failed: at most [`SEQS_MAX`].
        failed: Vec<u64>,
        /// The reason of the first failure, at most [`REFUSED_BYTES_MAX`] bytes; empty if there is none.
        why: String,
    },
    /// The holder refuses the question; contains the reason. It is truncated to [`REFUSED_BYTES_MAX`] bytes.
    Refused(String),
    /// The holder keeps the ordered buffer.
    Ordered,
}

impl Question {
    /// Returns the tag whose samples are wanted; `None` for the end of a pull.
    #[must_use]
    pub const fn tag(&self) -> Option<&Tag> {
        match self {
            Self::Find(Find { tag, .. })
            | Self::Fetch(Fetch { tag, .. })
            | Self::Order { tag, .. } => Some(tag),
            Self::Done { .. } => None,
        }
    }
}

fn put_publisher(out: &mut Vec<u8>, publisher: PublisherId) {
    out.put_u64(publisher.node.0);
    out.put_varint(u64::from(publisher.index));
}

fn read_publisher(reader: &mut Reader) -> Result<PublisherId, WireError> {
    let node = NodeId(reader.u64("publisher node")?);
    Ok(PublisherId { node, index: reader.varint32("publisher")? })
}

fn put_selection(out: &mut Vec<u8>, selection: &Selection) {
    match *selection {
        Selection::Newest(n) => {
            out.put_u8(NEWEST);
            out.put_varint(u64::from(n));
        }
        Selection::Nth(n) => {
            out.put_u8(NTH);
            out.put_varint(u64::from(n));
        }
        Selection::Seq { first, last } => {
            out.put_u8(SEQ);
            out.put_varint(first);
            out.put_varint(last.wrapping_sub(first));
        }
        Selection::Time { from_ns, to_ns } => {
            out.put_u8(TIME);
            out.put_u64(from_ns);
            out.put_varint(to_ns.wrapping_sub(from_ns));
        }
    }
}

fn read_selection(reader: &mut Reader) -> Result<Selection, WireError> {
    let bad = WireError::Invalid("selection");
    match reader.u8("selection")? {
        NEWEST => Selection::newest(reader.varint32("selection")?).map_err(|_| bad),
        NTH => Selection::nth(reader.varint32("selection")?).map_err(|_| bad),
        SEQ => {
            let first = reader.varint("selection")?;
            let last = first.checked_add(reader.varint("selection")?).ok_or(bad)?;
            Ok(Selection::Seq { first, last })
        }
        TIME => {
            let from_ns = reader.u64("selection")?;
            let to_ns = from_ns.checked_add(reader.varint("selection")?).ok_or(bad)?;
            Ok(Selection::Time { from_ns, to_ns })
        }
        _ => Err(bad),
    }
}

fn put_tag(out: &mut Vec<u8>, tag: &Tag) {
    out.put_text(tag.as_str());
}

fn read_tag(reader: &mut Reader) -> Result<Tag, WireError> {
    Tag::new(&reader.text(TAG_BYTES_MAX, "tag")?).map_err(|_| WireError::Invalid("tag"))
}

fn put_seqs(out: &mut Vec<u8>, seqs: &[u64], max: usize) {
    let seqs = seqs.get(..max).unwrap_or(seqs);
    out.put_varint(seqs.len() as u64);
    seqs.iter().for_each(|&seq| out.put_varint(seq));
}

fn read_seqs(reader: &mut Reader, max: usize) -> Result<Vec<u64>, WireError> {
    let count = reader.len(max, "sequence numbers")?;
    (0..count).map(|_| reader.varint("sequence number")).collect()
}

const fn has(there: bool, mask: u8) -> u8 {
    if there { mask } else { 0 }
}

fn put_making(out: &mut Vec<u8>, Making { size, audio, coded }: Making, fresh: bool) {
    let scaled = has(size.is_some(), MAKES_SIZE) | has(audio.is_some(), MAKES_AUDIO);
    out.put_u8(scaled | has(coded, MAKES_CODED) | has(fresh, MAKES_FRESH));
    if let Some(Size { width, height }) = size {
        out.put_varint(u64::from(width));
        out.put_varint(u64::from(height));
    }
    if let Some(audio) = audio {
        write_audio(audio, out);
    }
}

/// Reads the conversion, and whether to start with an independent picture.
fn read_making(reader: &mut Reader) -> Result<(Making, bool), WireError> {
    let flags = reader.u8("making")?;
    if flags & !(MAKES_SIZE | MAKES_AUDIO | MAKES_CODED | MAKES_FRESH) != 0 {
        return Err(WireError::Invalid("making"));
    }
    let mut making = Making { coded: flags & MAKES_CODED != 0, ..Making::default() };
    if flags & MAKES_SIZE != 0 {
        let size = Size { width: reader.varint32("width")?, height: reader.varint32("height")? };
        if size.width == 0 || size.height == 0 {
            return Err(WireError::Invalid("size"));
        }
        making.size = Some(size);
    }
    if flags & MAKES_AUDIO != 0 {
        making.audio = Some(read_audio(reader)?);
    }
    Ok((making, flags & MAKES_FRESH != 0))
}

fn put_fetch(out: &mut Vec<u8>, fetch: &Fetch) {
    let Fetch { pull, tag, publisher, making, seqs, next, fresh } = fetch;
    out.put_varint(*pull);
    put_tag(out, tag);
    put_publisher(out, *publisher);
    put_making(out, *making, *fresh);
    put_seqs(out, seqs, SEQS_MAX);
    put_seqs(out, next, NEXT_MAX);
}

fn read_fetch(reader: &mut Reader) -> Result<Fetch, WireError> {
    let (pull, tag) = (reader.varint("pull")?, read_tag(reader)?);
    let publisher = read_publisher(reader)?;
    let (making, fresh) = read_making(reader)?;
    let (seqs, next) = (read_seqs(reader, SEQS_MAX)?, read_seqs(reader, NEXT_MAX)?);
    Ok(Fetch { pull, tag, publisher, making, seqs, next, fresh })
}

/// Appends a reason, truncated to the limit.
fn put_reason(out: &mut Vec<u8>, reason: &str) {
    // The other end accepts only plain text.
    let reason = escape(reason);
    let mut end = reason.len().min(REFUSED_BYTES_MAX);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    out.put_text(reason.get(..end).unwrap_or_default());
}

fn put_find(out: &mut Vec<u8>, find: &Find) {
    let Find { tag, publisher, selection, rate, after } = find;
    out.put_u8(has(publisher.is_some(), HAS_PUBLISHER) | has(after.is_some(), HAS_AFTER));
    put_tag(out, tag);
    if let Some(publisher) = publisher {
        put_publisher(out, *publisher);
    }
    put_selection(out, selection);
    write_rate(*rate, out);
    if let Some(Cursor { publisher, seq }) = after {
        put_publisher(out, *publisher);
        out.put_varint(*seq);
    }
}

fn read_find(reader: &mut Reader) -> Result<Find, WireError> {
    let flags = reader.u8("find")?;
    if flags & !(HAS_PUBLISHER | HAS_AFTER) != 0 {
        return Err(WireError::Invalid("find"));
    }
    let tag = read_tag(reader)?;
    let publisher = if flags & HAS_PUBLISHER != 0 { Some(read_publisher(reader)?) } else { None };
    let (selection, rate) = (read_selection(reader)?, read_rate(reader)?);
    let after = if flags & HAS_AFTER != 0 {
        let publisher = read_publisher(reader)?;
        Some(Cursor { publisher, seq: reader.varint("sequence number")? })
    } else {
        None
    };
    Ok(Find { tag, publisher, selection, rate, after })
}

/// Maps differences of small magnitude and either sign to small numbers.
const fn zigzag(difference: i64) -> u64 {
    ((difference << 1) ^ (difference >> 63)).cast_unsigned()
}

const fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

fn put_holding(out: &mut Vec<u8>, holding: &Holding) {
    put_publisher(out, holding.publisher);
    let SampleSpan { oldest_seq, newest_seq, oldest_ns, newest_ns } = holding.span;
    out.put_varint(oldest_seq);
    out.put_varint(newest_seq.wrapping_sub(oldest_seq));
    out.put_u64(oldest_ns);
    out.put_u64(newest_ns);
    out.put_varint(holding.items.len() as u64);
    let (mut next, mut at) = (0u64, oldest_ns);
    for item in &holding.items {
        out.put_varint(item.seq.wrapping_sub(next));
        out.put_varint(zigzag(item.captured_ns.wrapping_sub(at).cast_signed()));
        out.put_varint(u64::from(item.bytes));
        out.put_u8(item.kind.code());
        (next, at) = (item.seq.wrapping_add(1), item.captured_ns);
    }
}

fn read_holding(reader: &mut Reader, room: usize) -> Result<Holding, WireError> {
    let publisher = read_publisher(reader)?;
    let oldest_seq = reader.varint("oldest")?;
    let newest_seq = oldest_seq.checked_add(reader.varint("newest")?);
    let newest_seq = newest_seq.ok_or(WireError::Invalid("newest"))?;
    let (oldest_ns, newest_ns) = (reader.u64("oldest")?, reader.u64("newest")?);
    let span = SampleSpan { oldest_seq, newest_seq, oldest_ns, newest_ns };
    let count = reader.len(room, "items")?;
    // An item takes at least four bytes, so the allocation is bounded by the input.
    let mut items: Vec<Held> = Vec::with_capacity(count.min(reader.remaining() / 4));
    let mut at = oldest_ns;
    for _ in 0..count {
        let step = reader.varint("sequence number")?;
        let next = items.last().map_or(Some(0), |last| last.seq.checked_add(1));
        let seq = next.and_then(|next| next.checked_add(step));
        at = at.wrapping_add_signed(unzigzag(reader.varint("captured")?));
        items.push(Held {
            seq: seq.ok_or(WireError::Invalid("sequence number"))?,
            captured_ns: at,
            bytes: reader.varint32("bytes")?,
            kind: Kind::from_code(reader.u8("kind")?).ok_or(WireError::Invalid("kind"))?,
        });
    }
    Ok(Holding { publisher, span, items })
}

fn put_found(out: &mut Vec<u8>, found: &Found) {
    out.put_flag(found.more);
    out.put_varint(found.holdings.len() as u64);
    found.holdings.iter().for_each(|holding| put_holding(out, holding));
}

fn read_found(reader: &mut Reader) -> Result<Found, WireError> {
    let more = reader.flag("more")?;
    let count = reader.len(PAGE_HOLDINGS, "publishers")?;
    if more && count == 0 {
        return Err(WireError::Invalid("more"));
    }
    let mut holdings: Vec<Holding> = Vec::new();
    let mut room = PAGE_ITEMS;
    for _ in 0..count {
        let holding = read_holding(reader, room)?;
        if holdings.last().is_some_and(|last| last.publisher >= holding.publisher) {
            return Err(WireError::Invalid("publishers"));
        }
        room -= holding.items.len();
        holdings.push(holding);
    }
    Ok(Found { holdings, more })
}

impl Question {
    /// Encodes the question, including its [`Topic`].
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut out = vec![Topic::Pull.code()];
        match self {
            Self::Find(find) => {
                out.put_u8(FIND);
                put_find(&mut out, find);
            }
            Self::Fetch(fetch) => {
                out.put_u8(FETCH);
                put_fetch(&mut out, fetch);
            }
            Self::Done { pull } => {
                out.put_u8(DONE);
                out.put_varint(*pull);
            }
            Self::Order { tag, samples } => {
                out.put_u8(ORDER);
                put_tag(&mut out, tag);
                out.put_varint(u64::from(*samples));
            }
        }
        out.into()
    }

    /// Decodes the body after the topic ([`Topic::split`]).
    ///
    /// # Errors
    /// Returns [`WireError`] for malformed input. No length is trusted before its bytes have arrived.
    pub fn decode(bytes: Bytes) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        let question = match reader.u8("pull question")? {
            FIND => Self::Find(read_find(&mut reader)?),
            FETCH => Self::Fetch(read_fetch(&mut reader)?),
            DONE => Self::Done { pull: reader.varint("pull")? },
            ORDER => {
                let tag = read_tag(&mut reader)?;
                Self::Order { tag, samples: reader.varint32("samples")? }
            }
            _ => return Err(WireError::Invalid("pull question")),
        };
        reader.finish()?;
        Ok(question)
    }
}

impl Answer {
    /// Encodes the answer. A result larger than a page is truncated and marked as incomplete.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        match self {
            Self::Held(found) => {
                out.put_u8(HELD);
                if found.is_page() {
                    put_found(&mut out, found);
                } else {
                    let mut page = found.clone();
                    page.cut();
                    put_found(&mut out, &page);
                }
            }
            Self::Fetching { missing, failed, why } => {
                out.put_u8(FETCHING);
                put_seqs(&mut out, missing, SEQS_MAX);
                put_seqs(&mut out, failed, SEQS_MAX);
                put_reason(&mut out, why);
            }
            Self::Refused(reason) => {
                out.put_u8(REFUSED);
                put_reason(&mut out, reason);
            }
            Self::Ordered => out.put_u8(ORDERED),
        }
        out.into()
    }

    /// Decodes an answer.
    ///
    /// # Errors
    /// Returns [`WireError`] for malformed input. No length is trusted before its bytes have arrived.
    pub fn decode(bytes: Bytes) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        let answer = match reader.u8("pull answer")? {
            HELD => Self::Held(read_found(&mut reader)?),
            FETCHING => Self::Fetching {
                missing: read_seqs(&mut reader, SEQS_MAX)?,
                failed: read_seqs(&mut reader, SEQS_MAX)?,
                why: reader.text(REFUSED_BYTES_MAX, "reason")?,
            },
            REFUSED => Self::Refused(reader.text(REFUSED_BYTES_MAX, "reason")?),
            ORDERED => Self::Ordered,
            _ => return Err(WireError::Invalid("pull answer")),
        };
        reader.finish()?;
        Ok(answer)
    }
}

#[cfg(test)]
mod tests;

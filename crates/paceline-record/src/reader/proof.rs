//! Records that prove by their content that they are records. After a damaged place, reading continues at the first of
//! these.

use super::{Declarations, RECORD_MAX};
use crate::chunk;
use crate::format::{
    self, ATTACHMENT, CHANNEL, CHUNK, DATA_END, FOOTER, HEAD, MAGIC, MESSAGE, MESSAGE_INDEX,
    METADATA, Parts, SCHEMA,
};

/// The length of a message record without its data.
const MESSAGE_MIN: u64 = 22;
/// The number of successive records that hardly any content has.
const CHAIN: u32 = 3;
/// The length of an entry of a message index.
const INDEX_ENTRY: u64 = 16;

/// Returns true if a record of this kind can prove that it is one. The content of `packed` chunks may look like messages.
pub(super) const fn may_prove(kind: u8, packed: bool) -> bool {
    match kind {
        SCHEMA | CHANNEL | MESSAGE => !packed,
        kind => matches!(kind, CHUNK | MESSAGE_INDEX | ATTACHMENT | METADATA | DATA_END | FOOTER),
    }
}

/// Returns true if these bytes may be the beginning of a record, or the end of the file.
pub(super) fn may_begin(bytes: &[u8]) -> bool {
    match format::head(bytes) {
        None => true,
        Some((MESSAGE, length)) => (MESSAGE_MIN..=RECORD_MAX).contains(&length),
        Some((kind, length)) => matches!(kind, 1..=15 | 0x80..) && length <= RECORD_MAX,
    }
}

/// Returns true if the file ends here, behind its footer.
pub(super) fn is_end(bytes: &[u8]) -> bool {
    MAGIC.starts_with(bytes.get(..MAGIC.len()).unwrap_or(bytes))
}

/// Returns true if these bytes are a whole record that can hardly be anything else.
pub(super) fn proves(record: &[u8], known: &Declarations) -> bool {
    let Some((kind, _)) = format::head(record) else { return false };
    let body = record.get(9..).unwrap_or_default();
    let mut parts = Parts(body);
    match kind {
        MESSAGE => {
            body.len() as u64 >= MESSAGE_MIN && parts.u16().is_some_and(|id| known.has_channel(id))
        }
        CHUNK => chunk::is_plausible(body),
        DATA_END => body.len() == 4,
        FOOTER => body.len() == 20,
        kind => declares(kind, &mut parts).is_some() && parts.0.is_empty(),
    }
}

/// Returns false if the content can't be that of a record of this kind.
pub(super) fn is_readable(kind: u8, body: &[u8]) -> bool {
    match kind {
        MESSAGE_INDEX | METADATA | ATTACHMENT => declares(kind, &mut Parts(body)).is_some(),
        DATA_END => body.len() == 4,
        FOOTER => body.len() == 20,
        kind => kind == CHUNK || !chunk::is_plausible(body),
    }
}

/// Reads a record that consists of texts and numbers, to its end.
fn declares(kind: u8, parts: &mut Parts<'_>) -> Option<()> {
    let plain = |parts: &mut Parts<'_>| {
        let text = parts.text()?;
        (!text.contains(|c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER))
            .then_some(text)
    };
    match kind {
        SCHEMA => {
            (parts.u16()? != 0).then_some(())?;
            plain(parts)?;
            plain(parts)?;
            let bytes = parts.u32()?;
            parts.take(bytes.into()).map(drop)
        }
        CHANNEL => {
            parts.take(4)?;
            (!plain(parts)?.is_empty()).then_some(())?;
            plain(parts)?;
            parts.texts().map(drop)
        }
        MESSAGE_INDEX => {
            parts.u16()?;
            let bytes = parts.u32()?;
            (u64::from(bytes) % INDEX_ENTRY == 0).then_some(())?;
            parts.take(bytes.into()).map(drop)
        }
        METADATA => {
            plain(parts)?;
            parts.texts().map(drop)
        }
        ATTACHMENT => {
            parts.take(16)?;
            plain(parts)?;
            plain(parts)?;
            let bytes = parts.u64()?;
            parts.take(bytes)?;
            parts.u32().map(drop)
        }
        _ => None,
    }
}

/// Returns the offset of the first record in `bytes`, from offset `from` on, that proves to be one.
pub(super) fn find(bytes: &[u8], from: usize, known: &Declarations) -> Option<usize> {
    (from..bytes.len()).find(|at| record_at(bytes, *at, known).is_some())
}

/// Returns the length of the record at this offset if it proves to be one.
fn record_at(bytes: &[u8], at: usize, known: &Declarations) -> Option<usize> {
    let rest = bytes.get(at..)?;
    let (kind, length) = format::head(rest).filter(|(kind, _)| may_prove(*kind, false))?;
    let whole = usize::try_from(HEAD.checked_add(length)?).ok()?;
    let record = rest.get(..whole)?;
    // An end record within another one is no proof.
    (!matches!(kind, DATA_END | FOOTER) && proves(record, known)).then_some(whole)
}

/// Returns true if a record seems to contain others because its kind or length is damaged: it ends with whole records, or
/// contains [`CHAIN`] successive ones. Messages, attachments and records of applications may carry recordings, which end
/// otherwise. If the record is `doubtful`, because no record follows it or because its chunk is damaged, one whole record
/// in it suffices.
pub(super) fn contains_records(
    kind: u8,
    body: &[u8],
    known: &Declarations,
    doubtful: bool,
) -> bool {
    if kind == CHUNK {
        return false;
    }
    let of_known = || Parts(body).u16().is_some_and(|id| known.has_channel(id));
    let carries = kind == ATTACHMENT || kind >= 0x80 || kind == MESSAGE && of_known();
    let mut from = 0;
    while let Some(at) = find(body, from, known) {
        if doubtful {
            return true;
        }
        let (mut end, mut chain) = (at, 0);
        while let Some(length) = record_at(body, end, known) {
            end += length;
            chain += 1;
        }
        if end == body.len() || chain >= CHAIN && !carries {
            return true;
        }
        // The records within this chain have the same end.
        from = end.max(at + 1);
    }
    false
}

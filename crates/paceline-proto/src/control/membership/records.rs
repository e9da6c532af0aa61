//! The encoding of records and of their changes. Tables are in strictly increasing order of their ids, so
//! every record has exactly one encoding.
//!
//! An entry is its key, a length and a body of that length. Keys, lengths and the order of tables are those of the
//! message: an error there refuses it. An error in a body concerns that entry alone ([`Unread`]).

use crate::control::data::codec::{
    REVISION_MAX, put_hop, put_pair, put_publisher, put_subscription, read_hop, read_pair,
    read_publisher, read_subscription,
};
use crate::control::data::codec::{put_medium, put_refusal_of, read_medium, read_refusal_of};
use crate::control::data::ids::{NAME_BYTES_MAX, PairKey};
use crate::control::data::spec::PublisherSpec;
use crate::control::membership::registry::{
    Change, EntryKey, MARKS, MEDIA, Mark, NEIGHBOURS, PLACES, PUBLISHERS, REFUSALS, Read, Record,
    SUBSCRIPTIONS, Table, Unread, VERSION_MAX, least_held,
};
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use crate::wire::{Reader, WireError, Writer};
use bytes::Bytes;
use std::sync::Arc;

/// The longest body of an entry, in bytes: a publisher with all its measured forms has less than half of it.
const BODY_BYTES_MAX: usize = 8_192;

// The kinds of changes: each even one sets an entry, and the next one removes it.
const PUBLISHER: u8 = 0;
const SUBSCRIPTION: u8 = 2;
const NEIGHBOUR: u8 = 4;
const REFUSAL: u8 = 6;
const MARK: u8 = 8;
const PLACE: u8 = 10;
const MEDIUM: u8 = 12;
const REMOVED: u8 = 1;

fn put_key(out: &mut Vec<u8>, key: EntryKey, removed: u8) {
    match key {
        EntryKey::Publisher(index) => {
            out.put_u8(PUBLISHER | removed);
            out.put_varint(index.into());
        }
        EntryKey::Subscription(index) => {
            out.put_u8(SUBSCRIPTION | removed);
            out.put_varint(index.into());
        }
        EntryKey::Neighbour(node) => {
            out.put_u8(NEIGHBOUR | removed);
            out.put_u64(node.0);
        }
        EntryKey::Refusal((of, by)) => {
            out.put_u8(REFUSAL | removed);
            put_pair(out, of, by);
        }
        EntryKey::Mark((of, by)) => {
            out.put_u8(MARK | removed);
            put_pair(out, of, by);
        }
        EntryKey::Place((of, by)) => {
            out.put_u8(PLACE | removed);
            put_pair(out, of, by);
        }
        EntryKey::Medium(index) => {
            out.put_u8(MEDIUM | removed);
            out.put_varint(index.into());
        }
    }
}

/// Reads the place of a changed entry, and whether the entry is removed.
fn read_key(reader: &mut Reader) -> Result<(EntryKey, bool), WireError> {
    let kind = reader.u8("change")?;
    let key = match kind & !REMOVED {
        PUBLISHER => EntryKey::Publisher(reader.varint32("publisher")?),
        SUBSCRIPTION => EntryKey::Subscription(reader.varint32("subscription")?),
        NEIGHBOUR => EntryKey::Neighbour(NodeId(reader.u64("neighbour")?)),
        REFUSAL => EntryKey::Refusal(read_pair(reader)?),
        MARK => EntryKey::Mark(read_pair(reader)?),
        PLACE => EntryKey::Place(read_pair(reader)?),
        MEDIUM => EntryKey::Medium(reader.varint32("link on a medium")?),
        _ => return Err(WireError::Invalid("change")),
    };
    Ok((key, kind & REMOVED != 0))
}

/// Appends the length and the bytes of a body.
fn put_body(out: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>)) {
    let mut body = Vec::new();
    put(&mut body);
    put_bytes(out, &body);
}

fn put_bytes(out: &mut Vec<u8>, body: &[u8]) {
    out.put_varint(body.len() as u64);
    out.put_bytes(body);
}

/// Reads a body. One that cannot be read is kept as it is.
fn read_body<V>(
    reader: &mut Reader,
    read: impl FnOnce(&mut Reader) -> Result<V, WireError>,
) -> Result<Read<V>, WireError> {
    let len = reader.len(BODY_BYTES_MAX, "length of an entry")?;
    let bytes = reader.bytes(len, "entry")?;
    let mut body = Reader::new(bytes.clone());
    let value = read(&mut body).and_then(|value| body.finish().map(|()| value));
    // A part of the message would keep all of it in memory.
    Ok(value.map_err(|error| Unread { bytes: Bytes::copy_from_slice(&bytes), error }))
}

pub(in crate::control) fn put_change(out: &mut Vec<u8>, change: &Change) {
    put_key(out, change.key(), if matches!(change, Change::Remove(_)) { REMOVED } else { 0 });
    match change {
        Change::Publish(_, spec) => put_body(out, |out| put_publisher(out, spec)),
        Change::Subscribe(_, spec) => put_body(out, |out| put_subscription(out, spec)),
        Change::HopUp(_, hop) => put_body(out, |out| put_hop(out, hop)),
        Change::Refuse(refusal) => put_body(out, |out| put_refusal_of(out, refusal)),
        Change::Mark(_, revision, mark) => put_body(out, |out| put_mark(out, (*revision, *mark))),
        Change::Place(_, place) => put_body(out, |out| out.put_u64(place.0)),
        Change::Medium(_, link) => put_body(out, |out| put_medium(out, link)),
        Change::Unread(_, unread) => put_bytes(out, &unread.bytes),
        Change::Remove(_) => {}
    }
}

fn put_mark(out: &mut Vec<u8>, (revision, mark): (u64, Mark)) {
    out.put_varint(revision);
    out.put_u8(mark.code());
}

fn read_mark(reader: &mut Reader) -> Result<(u64, Mark), WireError> {
    let revision = reader.varint_max(REVISION_MAX, "revision")?;
    let mark = Mark::from_code(reader.u8("mark")?).ok_or(WireError::Invalid("mark"))?;
    Ok((revision, mark))
}

fn read_spec(reader: &mut Reader) -> Result<Arc<PublisherSpec>, WireError> {
    read_publisher(reader).map(Arc::new)
}

fn read_place(reader: &mut Reader) -> Result<NodeId, WireError> {
    reader.u64("place").map(NodeId)
}

pub(in crate::control) fn read_change(reader: &mut Reader) -> Result<Change, WireError> {
    let (key, removed) = read_key(reader)?;
    if removed {
        return Ok(Change::Remove(key));
    }
    let change = match key {
        EntryKey::Publisher(index) => {
            read_body(reader, read_spec)?.map(|spec| Change::Publish(index, spec))
        }
        EntryKey::Subscription(index) => {
            read_body(reader, read_subscription)?.map(|spec| Change::Subscribe(index, spec))
        }
        EntryKey::Neighbour(node) => {
            read_body(reader, read_hop)?.map(|hop| Change::HopUp(node, hop))
        }
        EntryKey::Refusal(pair) => {
            read_body(reader, |reader| read_refusal_of(reader, pair))?.map(Change::Refuse)
        }
        EntryKey::Mark(pair) => {
            read_body(reader, read_mark)?.map(|(revision, mark)| Change::Mark(pair, revision, mark))
        }
        EntryKey::Place(pair) => {
            read_body(reader, read_place)?.map(|place| Change::Place(pair, place))
        }
        EntryKey::Medium(index) => {
            read_body(reader, read_medium)?.map(|link| Change::Medium(index, Box::new(link)))
        }
    };
    Ok(change.unwrap_or_else(|unread| Change::Unread(key, unread)))
}

fn put_table<K: Ord + Copy, V>(
    out: &mut Vec<u8>,
    table: &Table<K, V>,
    put_key: impl Fn(&mut Vec<u8>, K),
    put: impl Fn(&mut Vec<u8>, &V),
) {
    out.put_varint(table.entries() as u64);
    for (key, entry) in table.all() {
        put_key(out, key);
        match entry {
            Ok(value) => put_body(out, |out| put(out, value)),
            Err(unread) => put_bytes(out, &unread.bytes),
        }
    }
}

fn put_index(out: &mut Vec<u8>, index: u32) {
    out.put_varint(index.into());
}

fn put_pair_key(out: &mut Vec<u8>, pair: PairKey) {
    put_pair(out, pair.0, pair.1);
}

pub(in crate::control) fn put_record(out: &mut Vec<u8>, record: &Record) {
    out.put_varint(record.version);
    out.put_text(&record.name);
    let publisher = |out: &mut Vec<u8>, id: PublisherId| put_index(out, id.index);
    put_table(out, &record.publishers, publisher, |out, spec| put_publisher(out, spec));
    let subscription = |out: &mut Vec<u8>, id: SubscriptionId| put_index(out, id.index);
    put_table(out, &record.subscriptions, subscription, put_subscription);
    put_table(out, &record.neighbours, |out, node| out.put_u64(node.0), put_hop);
    put_table(out, &record.refusals, put_pair_key, put_refusal_of);
    put_table(out, &record.marks, put_pair_key, |out, mark| put_mark(out, *mark));
    put_table(out, &record.places, put_pair_key, |out, place| out.put_u64(place.0));
    if record.media.entries() > 0 {
        put_table(out, &record.media, put_index, put_medium);
    }
}

/// Reads a table entry by entry, so that allocations never exceed the size of the input.
fn read_table<K: Ord + Copy, V>(
    reader: &mut Reader,
    (max, field): (usize, &'static str),
    read_key: impl Fn(&mut Reader) -> Result<K, WireError>,
    read: impl Fn(&mut Reader, K) -> Result<V, WireError>,
) -> Result<Table<K, V>, WireError> {
    let count = reader.len(max, field)?;
    let (mut table, mut last) = (Table::default(), None);
    for _ in 0..count {
        let key = read_key(reader)?;
        if last.replace(key).is_some_and(|last| last >= key) {
            return Err(WireError::Invalid(field));
        }
        let entry = read_body(reader, |reader| read(reader, key))?;
        table.set(key, entry, (max, field))?;
    }
    Ok(table)
}

/// Returns the least memory of a record, without reading its entries.
pub(in crate::control) fn read_least_held(reader: &mut Reader) -> Result<usize, WireError> {
    reader.varint_max(VERSION_MAX, "version")?;
    let name = reader.len(NAME_BYTES_MAX, "name")?;
    reader.bytes(name, "name")?;
    let (max, field) = PUBLISHERS;
    let publishers = reader.len(max, field)?;
    for _ in 0..publishers {
        reader.varint32("publisher")?;
        let len = reader.len(BODY_BYTES_MAX, "length of an entry")?;
        reader.bytes(len, "entry")?;
    }
    let (max, field) = SUBSCRIPTIONS;
    Ok(least_held(publishers, reader.len(max, field)?))
}

pub(in crate::control) fn read_record(
    reader: &mut Reader,
    node: NodeId,
) -> Result<Record, WireError> {
    let publisher = |reader: &mut Reader| {
        let index = reader.varint32("publisher")?;
        Ok(PublisherId { node, index })
    };
    let subscription = |reader: &mut Reader| {
        let index = reader.varint32("subscription")?;
        Ok(SubscriptionId { node, index })
    };
    let neighbour = |reader: &mut Reader| reader.u64("neighbour").map(NodeId);
    let medium = |reader: &mut Reader| reader.varint32("link on a medium");
    let record = Record {
        version: reader.varint_max(VERSION_MAX, "version")?,
        name: reader.text(NAME_BYTES_MAX, "name")?,
        publishers: read_table(reader, PUBLISHERS, publisher, |reader, _| read_spec(reader))?,
        subscriptions: read_table(reader, SUBSCRIPTIONS, subscription, |reader, _| {
            read_subscription(reader)
        })?,
        neighbours: read_table(reader, NEIGHBOURS, neighbour, |reader, _| read_hop(reader))?,
        refusals: read_table(reader, REFUSALS, read_pair, read_refusal_of)?,
        marks: read_table(reader, MARKS, read_pair, |reader, _| read_mark(reader))?,
        places: read_table(reader, PLACES, read_pair, |reader, _| read_place(reader))?,
        media: Table::default(),
    };
    if reader.remaining() == 0 {
        return Ok(record);
    }
    let media = read_table(reader, MEDIA, medium, |reader, _| read_medium(reader))?;
    // A record has one encoding: nothing stands for an empty table.
    if media.entries() == 0 {
        return Err(WireError::Invalid("links on media"));
    }
    Ok(Record { media, ..record })
}

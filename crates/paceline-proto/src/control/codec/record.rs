//! The encoding of records and of their changes. Tables are in strictly increasing order of their ids, so
//! every record has exactly one encoding.

use super::{
    REVISION_MAX, put_hop, put_pair, put_publisher, put_refusal, put_subscription, read_hop,
    read_pair, read_publisher, read_refusal, read_subscription,
};
use crate::control::registry::{
    Change, MARKS_MAX, Mark, NAME_BYTES_MAX, NEIGHBOURS_MAX, PLACES_MAX, PUBLISHERS_MAX, PairKey,
    REFUSALS_MAX, Record, SUBSCRIPTIONS_MAX, VERSION_MAX,
};
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use crate::wire::{Reader, WireError, Writer};
use std::collections::BTreeMap;
use std::sync::Arc;

const PUBLISH: u8 = 0;
const UNPUBLISH: u8 = 1;
const SUBSCRIBE: u8 = 2;
const UNSUBSCRIBE: u8 = 3;
const HOP_UP: u8 = 4;
const HOP_DOWN: u8 = 5;
const REFUSE: u8 = 6;
const RELEASE: u8 = 7;
const MARK: u8 = 8;
const UNMARK: u8 = 9;
const PLACE: u8 = 10;
const UNPLACE: u8 = 11;

fn put_kind(out: &mut Vec<u8>, kind: u8, index: u32) {
    out.put_u8(kind);
    out.put_varint(u64::from(index));
}

pub(in crate::control) fn put_change(out: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Publish(index, spec) => {
            put_kind(out, PUBLISH, *index);
            put_publisher(out, spec);
        }
        Change::Unpublish(index) => put_kind(out, UNPUBLISH, *index),
        Change::Subscribe(index, spec) => {
            put_kind(out, SUBSCRIBE, *index);
            put_subscription(out, spec);
        }
        Change::Unsubscribe(index) => put_kind(out, UNSUBSCRIBE, *index),
        Change::HopUp(node, hop) => {
            out.put_u8(HOP_UP);
            out.put_u64(node.0);
            put_hop(out, hop);
        }
        Change::HopDown(node) => {
            out.put_u8(HOP_DOWN);
            out.put_u64(node.0);
        }
        Change::Refuse(refusal) => {
            out.put_u8(REFUSE);
            put_refusal(out, refusal);
        }
        Change::Release(subscription, publisher) => {
            out.put_u8(RELEASE);
            put_pair(out, *subscription, *publisher);
        }
        Change::Mark(key, revision, mark) => {
            out.put_u8(MARK);
            put_mark(out, *key, (*revision, *mark));
        }
        Change::Unmark(subscription, publisher) => {
            out.put_u8(UNMARK);
            put_pair(out, *subscription, *publisher);
        }
        Change::Place(key, place) => {
            out.put_u8(PLACE);
            put_place(out, *key, *place);
        }
        Change::Unplace(subscription, publisher) => {
            out.put_u8(UNPLACE);
            put_pair(out, *subscription, *publisher);
        }
    }
}

fn put_place(out: &mut Vec<u8>, key: PairKey, place: NodeId) {
    put_pair(out, key.0, key.1);
    out.put_u64(place.0);
}

fn read_place(reader: &mut Reader) -> Result<(PairKey, NodeId), WireError> {
    Ok((read_pair(reader)?, NodeId(reader.u64("place")?)))
}

fn put_mark(out: &mut Vec<u8>, key: PairKey, (revision, mark): (u64, Mark)) {
    put_pair(out, key.0, key.1);
    out.put_varint(revision);
    out.put_u8(mark.code());
}

fn read_mark(reader: &mut Reader) -> Result<(PairKey, (u64, Mark)), WireError> {
    let (key, revision) = (read_pair(reader)?, reader.varint_max(REVISION_MAX, "revision")?);
    let mark = Mark::from_code(reader.u8("mark")?).ok_or(WireError::Invalid("mark"))?;
    Ok((key, (revision, mark)))
}

pub(in crate::control) fn read_change(reader: &mut Reader) -> Result<Change, WireError> {
    match reader.u8("change")? {
        PUBLISH => {
            let index = reader.varint32("publisher")?;
            Ok(Change::Publish(index, Arc::new(read_publisher(reader)?)))
        }
        UNPUBLISH => reader.varint32("publisher").map(Change::Unpublish),
        SUBSCRIBE => {
            let index = reader.varint32("subscription")?;
            Ok(Change::Subscribe(index, read_subscription(reader)?))
        }
        UNSUBSCRIBE => reader.varint32("subscription").map(Change::Unsubscribe),
        HOP_UP => {
            let node = NodeId(reader.u64("neighbour")?);
            Ok(Change::HopUp(node, read_hop(reader)?))
        }
        HOP_DOWN => reader.u64("neighbour").map(|node| Change::HopDown(NodeId(node))),
        REFUSE => read_refusal(reader).map(Change::Refuse),
        RELEASE => {
            let (subscription, publisher) = read_pair(reader)?;
            Ok(Change::Release(subscription, publisher))
        }
        MARK => {
            let (key, (revision, mark)) = read_mark(reader)?;
            Ok(Change::Mark(key, revision, mark))
        }
        UNMARK => read_pair(reader).map(|(of, by)| Change::Unmark(of, by)),
        PLACE => read_place(reader).map(|(key, place)| Change::Place(key, place)),
        UNPLACE => read_pair(reader).map(|(of, by)| Change::Unplace(of, by)),
        _ => Err(WireError::Invalid("change")),
    }
}

pub(in crate::control) fn put_record(out: &mut Vec<u8>, record: &Record) {
    out.put_varint(record.version);
    out.put_text(&record.name);
    out.put_varint(record.publishers.len() as u64);
    for (id, spec) in &record.publishers {
        out.put_varint(u64::from(id.index));
        put_publisher(out, spec);
    }
    out.put_varint(record.subscriptions.len() as u64);
    for (id, spec) in &record.subscriptions {
        out.put_varint(u64::from(id.index));
        put_subscription(out, spec);
    }
    out.put_varint(record.neighbours.len() as u64);
    for (node, hop) in &record.neighbours {
        out.put_u64(node.0);
        put_hop(out, hop);
    }
    out.put_varint(record.refusals.len() as u64);
    for refusal in record.refusals.values() {
        put_refusal(out, refusal);
    }
    out.put_varint(record.marks.len() as u64);
    for (key, mark) in &record.marks {
        put_mark(out, *key, *mark);
    }
    out.put_varint(record.places.len() as u64);
    for (key, place) in &record.places {
        put_place(out, *key, *place);
    }
}

/// Reads a table entry by entry, so that allocations never exceed the size of the input.
fn read_table<K: Ord + Copy, V>(
    reader: &mut Reader,
    max: usize,
    field: &'static str,
    read: impl Fn(&mut Reader) -> Result<(K, V), WireError>,
) -> Result<BTreeMap<K, V>, WireError> {
    let count = reader.len(max, field)?;
    let mut table = BTreeMap::new();
    for _ in 0..count {
        let (key, value) = read(reader)?;
        if table.last_key_value().is_some_and(|(last, _)| *last >= key) {
            return Err(WireError::Invalid(field));
        }
        table.insert(key, value);
    }
    Ok(table)
}

pub(in crate::control) fn read_record(
    reader: &mut Reader,
    node: NodeId,
) -> Result<Record, WireError> {
    Ok(Record {
        version: reader.varint_max(VERSION_MAX, "version")?,
        name: reader.text(NAME_BYTES_MAX, "name")?,
        publishers: read_table(reader, PUBLISHERS_MAX, "publishers", |reader| {
            let index = reader.varint32("publisher")?;
            Ok((PublisherId { node, index }, Arc::new(read_publisher(reader)?)))
        })?,
        subscriptions: read_table(reader, SUBSCRIPTIONS_MAX, "subscriptions", |reader| {
            let index = reader.varint32("subscription")?;
            Ok((SubscriptionId { node, index }, read_subscription(reader)?))
        })?,
        neighbours: read_table(reader, NEIGHBOURS_MAX, "neighbours", |reader| {
            let neighbour = NodeId(reader.u64("neighbour")?);
            Ok((neighbour, read_hop(reader)?))
        })?,
        refusals: read_table(reader, REFUSALS_MAX, "refusals", |reader| {
            let refusal = read_refusal(reader)?;
            Ok(((refusal.subscription, refusal.publisher), refusal))
        })?,
        marks: read_table(reader, MARKS_MAX, "marks", read_mark)?,
        places: read_table(reader, PLACES_MAX, "places", read_place)?,
    })
}

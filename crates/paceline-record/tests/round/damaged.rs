//! Damaged files: everything that is not damaged is read.

use crate::support::{Owned, file, read_damaged, some};
use paceline_record::{Compression, McapReader, Message};
use proptest::prelude::*;
use std::collections::BTreeSet;

const CHANNEL: u8 = 4;
const MESSAGE: u8 = 5;
const CHUNK: u8 = 6;
const DATA_END: u8 = 15;

/// The form of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Form {
    Packed,
    Chunks,
    /// Without chunks, as other programs write it.
    Plain,
}

/// A record of a file: its kind, its offset, and its length with the head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) kind: u8,
    pub(crate) at: usize,
    pub(crate) length: usize,
}

/// Returns the records from `from` to `to`.
pub(crate) fn records(bytes: &[u8], from: usize, to: usize) -> Vec<Record> {
    let mut found = Vec::new();
    let mut at = from;
    while at + 9 <= to {
        let length = u64::from_le_bytes(bytes[at + 1..at + 9].try_into().unwrap());
        let length = 9 + usize::try_from(length).unwrap();
        found.push(Record { kind: bytes[at], at, length });
        at += length;
    }
    found
}

/// Returns a file of another program with the records of the chunks of this one, without the chunks.
pub(crate) fn without_chunks(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes[..8].to_vec();
    for record in records(bytes, 8, bytes.len() - 8) {
        let body = record.at + 9;
        match record.kind {
            // The fields before the records of a chunk without compression have 40 bytes.
            CHUNK => out.extend(&bytes[body + 40..record.at + record.length]),
            // Message indexes and chunk indexes describe chunks.
            7 | 8 => {}
            _ => out.extend(&bytes[record.at..record.at + record.length]),
        }
    }
    out.extend(&bytes[..8]);
    out
}

fn samples(count: u64) -> Vec<Owned> {
    let mut all = some(count);
    for (number, sample) in all.iter_mut().enumerate() {
        // Real payloads differ, and contain many zeros.
        let bytes = sample.payload.iter().enumerate();
        let noise = |(at, byte): (usize, &u8)| match (at + number) % 3 {
            0 => 0,
            1 => byte.wrapping_mul(u8::try_from(at % 251).unwrap()),
            _ => *byte,
        };
        if sample.encoding == "image/jpeg" {
            sample.payload = bytes.map(noise).collect();
        }
    }
    all
}

fn made(form: Form, count: u64) -> Vec<u8> {
    let compression = if form == Form::Packed { Compression::Lz4 } else { Compression::None };
    let bytes = file(&samples(count), 7, compression);
    if form == Form::Plain { without_chunks(&bytes) } else { bytes }
}

/// The channel, number and data of a message.
type Key = (u16, u32, Vec<u8>);

fn key(message: &Message) -> Key {
    (message.id, message.sequence, message.data.clone())
}

/// Returns the messages of a whole file, each with the bytes that it depends on.
fn parts(bytes: &[u8], form: Form) -> Vec<(Key, (usize, usize))> {
    let (messages, damage) = read_damaged(bytes);
    assert!(damage.is_empty(), "{damage}");
    let mut places = Vec::new();
    for record in records(bytes, 8, bytes.len() - 8) {
        let whole = (record.at, record.at + record.length);
        match (record.kind, form) {
            (CHUNK, Form::Packed) => {
                let count = messages[places.len()..].iter();
                let chunk = count.take(7).filter(|message| message.channel.is_samples()).count();
                places.extend(std::iter::repeat_n(whole, chunk));
            }
            (CHUNK, _) => {
                let inner = records(bytes, record.at + 9 + 40, whole.1);
                let inner = inner.iter().filter(|record| record.kind == MESSAGE);
                places.extend(inner.map(|record| (record.at, record.at + record.length)));
            }
            (MESSAGE, _) => places.push(whole),
            _ => {}
        }
    }
    assert_eq!(places.len(), messages.len());
    messages.iter().map(key).zip(places).collect()
}

/// Returns the offsets that must stay: the magic bytes, and in files without an index the declarations.
fn first_damage(bytes: &[u8]) -> usize {
    // Without damage to the first record.
    records(bytes, 8, bytes.len() - 8)[0].length + 8
}

#[derive(Clone, Debug)]
struct Hit {
    at: prop::sample::Index,
    bytes: Vec<u8>,
}

fn hits() -> impl Strategy<Value = Vec<Hit>> {
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 1..4),
        prop::collection::vec(any::<u8>(), 1..700),
        (1..900usize).prop_map(|length| vec![0; length]),
    ];
    let one = (any::<prop::sample::Index>(), bytes).prop_map(|(at, bytes)| Hit { at, bytes });
    prop::collection::vec(one, 1..5)
}

/// Damages a file between its declarations and its end, and checks the messages that are read.
fn check(form: Form, hits: &[Hit]) -> Result<(usize, usize), TestCaseError> {
    let whole = made(form, 84);
    let mut bytes = whole.clone();
    let from = first_damage(&whole);
    let end = records(&whole, 8, whole.len() - 8).into_iter();
    let end = end.filter(|record| record.kind == DATA_END).map(|record| record.at).next().unwrap();
    for hit in hits {
        let at = from + hit.at.index(end - from);
        for (byte, new) in bytes[at..end].iter_mut().zip(&hit.bytes) {
            *byte = *new;
        }
    }
    check_bytes(form, &whole, &bytes)
}

/// Checks that every message whose bytes are those of the `whole` file is read.
fn check_bytes(form: Form, whole: &[u8], bytes: &[u8]) -> Result<(usize, usize), TestCaseError> {
    let parts = parts(whole, form);
    let intact = |(from, to): (usize, usize)| whole[from..to] == bytes[from..to];
    let (found, damage) = read_damaged(bytes);
    let found: Vec<_> = found.iter().map(key).collect();
    let mut place = 0;
    let expected: Vec<_> = parts.iter().filter(|(_, at)| intact(*at)).collect();
    for (message, at) in &expected {
        let rest = found[place..].iter().position(|one| one == message);
        prop_assert!(
            rest.is_some(),
            "{form:?}, message {} of {} at {at:?}: {damage}",
            message.1,
            message.0
        );
        place += rest.unwrap_or_default() + 1;
    }
    prop_assert!(damage.is_empty() || bytes != whole);
    Ok((expected.len(), parts.len()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_undamaged_message_of_a_chunk_is_read(hits in hits()) {
        check(Form::Chunks, &hits)?;
    }

    #[test]
    fn every_undamaged_chunk_is_read(hits in hits()) {
        check(Form::Packed, &hits)?;
    }

    #[test]
    fn every_undamaged_message_without_chunks_is_read(hits in hits()) {
        check(Form::Plain, &hits)?;
    }
}

#[test]
fn records_of_a_damaged_kind_or_length_hide_no_others() {
    for form in [Form::Plain, Form::Chunks] {
        let whole = made(form, 21);
        let mut heads = records(&whole, 8, whole.len() - 8);
        for chunk in heads.clone().iter().filter(|record| record.kind == CHUNK) {
            heads.extend(records(&whole, chunk.at + 49, chunk.at + chunk.length));
        }
        let end = heads.iter().find(|record| record.kind == DATA_END).unwrap().at;
        for record in heads.iter().filter(|record| (first_damage(&whole)..end).contains(&record.at))
        {
            let kinds = (0..=16).chain([0x80, 0xff]).map(|kind| (kind, whole[record.at + 1]));
            let other = |by: u8| (record.kind, whole[record.at + 1].wrapping_add(by));
            let lengths = [1, 2, 13, 14, 39, 128, 254, 255].map(other);
            for (kind, length) in kinds.chain(lengths) {
                let mut bytes = whole.clone();
                (bytes[record.at], bytes[record.at + 1]) = (kind, length);
                let checked = check_bytes(form, &whole, &bytes);
                assert!(checked.is_ok(), "{record:?} as {kind}, {length}: {checked:?}");
            }
        }
    }
}

/// The bytes of a record that begins in the last bytes of a file are too few to decide about it.
#[test]
fn a_damaged_place_may_reach_to_the_end_of_the_file() {
    for kind in 1..=DATA_END {
        for rest in 0..9 {
            let mut bytes = b"\x89MCAP0\r\n".to_vec();
            // A record that is longer than any, and the beginning of another one.
            bytes.extend([0xff; 20]);
            bytes.push(kind);
            bytes.resize(bytes.len() + rest, 0);
            let mut reader = McapReader::new(&bytes[..]).unwrap();
            assert!(!matches!(reader.next_message(), Ok(Some(_))), "kind {kind}, {rest} bytes");
            assert_eq!(reader.damage().places, 1, "kind {kind}, {rest} bytes");
        }
    }
}

#[test]
fn channels_of_a_damaged_chunk_are_found_at_the_end_of_the_file() {
    for form in [Form::Packed, Form::Chunks] {
        let mut bytes = made(form, 21);
        let chunk = records(&bytes, 8, bytes.len() - 8)[1];
        assert_eq!(chunk.kind, CHUNK);
        bytes[chunk.at..chunk.at + chunk.length].fill(0);
        let (messages, damage) = read_damaged(&bytes);
        assert_eq!((messages.len(), damage.places), (14, 1), "{form:?}: {damage}");
        let topics: BTreeSet<&str> =
            messages.iter().map(|one| one.channel.topic.as_str()).collect();
        assert_eq!(topics, BTreeSet::from(["robot/camera", "robot/pose"]));
        assert!(messages.iter().all(|message| message.channel.metadata.contains_key("encoding")));
    }
}

#[test]
fn a_damaged_checksum_loses_no_message_of_a_chunk_without_compression() {
    let mut bytes = made(Form::Chunks, 21);
    let chunk = records(&bytes, 8, bytes.len() - 8)[1];
    bytes[chunk.at + 9 + 24] ^= 1;
    let (messages, damage) = read_damaged(&bytes);
    assert_eq!((messages.len(), damage.places), (21, 1), "{damage}");
    assert!(damage.to_string().contains("a chunk: its checksum is "), "{damage}");
}

#[test]
fn a_cut_chunk_without_compression_is_read_to_its_last_record() {
    let bytes = made(Form::Chunks, 21);
    let chunk = records(&bytes, 8, bytes.len() - 8)[1];
    let inner = records(&bytes, chunk.at + 49, chunk.at + chunk.length);
    let third = inner.iter().filter(|record| record.kind == MESSAGE).nth(3).unwrap();
    assert!(inner.iter().any(|record| record.kind == CHANNEL));
    let (messages, damage) = read_damaged(&bytes[..third.at + 5]);
    assert_eq!((messages.len(), damage.is_empty()), (3, true), "a cut is no damage");
}

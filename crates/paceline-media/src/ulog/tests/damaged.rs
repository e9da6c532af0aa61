//! Damaged logs: everything that is not damaged is read.

use super::writer::{Writer, log};
use crate::ulog::ULog;
use proptest::prelude::*;

/// The records of a log: their offsets and lengths.
fn records(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 16;
    while at < bytes.len() {
        let len = 3 + usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
        found.push((at, len));
        at += len;
    }
    found
}

/// The damage of one place: zeros, or random bytes.
#[derive(Clone, Debug)]
struct Hit {
    at: prop::sample::Index,
    bytes: Vec<u8>,
}

fn hits() -> impl Strategy<Value = Vec<Hit>> {
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 1..80),
        (1..600usize).prop_map(|len| vec![0; len]),
    ];
    prop::collection::vec((any::<prop::sample::Index>(), bytes), 1..6)
        .prop_map(|hits| hits.into_iter().map(|(at, bytes)| Hit { at, bytes }).collect())
}

/// Returns a log with a synchronisation mark and texts between its data, and the offset of its first data.
fn long_log() -> (Vec<u8>, usize) {
    let mut writer = Writer { bytes: log() };
    for number in 0..300_u64 {
        writer.data(0, number * 1_000, &[number.to_le_bytes()[0]; 12]);
        if number % 50 == 0 {
            writer.record(b'S', b"\x2f\x73\x13\x20\x25\x0c\xbb\x12");
            writer.record(b'L', b"6\0\0\0\0\0\0\0\0a text of the flight");
            writer.record(b'P', b"\x0bint32_t A_B\0\0\0\0");
        }
        if number % 70 == 0 {
            writer.record(b'?', &[7; 40]);
        }
    }
    let first = records(&writer.bytes);
    let first = first.iter().find(|(at, _)| writer.bytes[at + 2] == b'D');
    let at = first.map_or(0, |(at, _)| *at);
    (writer.bytes, at)
}

/// Applies the damage behind `from`, and returns the positions of all undamaged messages.
fn damage(bytes: &mut [u8], from: usize, hits: &[Hit]) -> Vec<(usize, usize)> {
    let whole = bytes.to_vec();
    for hit in hits {
        let at = from + hit.at.index(bytes.len() - from);
        for (byte, new) in bytes[at..].iter_mut().zip(&hit.bytes) {
            *byte = *new;
        }
    }
    let is_whole = |(at, len): &(usize, usize)| whole[*at..at + len] == bytes[*at..at + len];
    let data = |(at, _): &(usize, usize)| whole[at + 2] == b'D';
    records(&whole).into_iter().filter(data).filter(is_whole).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_undamaged_message_is_read_in_order(hits in hits()) {
        let (mut bytes, first) = long_log();
        let expected = damage(&mut bytes, first, &hits);
        let log = ULog::parse(&bytes).unwrap();
        let found: Vec<usize> = log.index.iter().map(|entry| entry.at - 5).collect();
        prop_assert!(found.windows(2).all(|two| two[0] < two[1]));
        for (at, _) in expected {
            prop_assert!(found.binary_search(&at).is_ok(), "the message at {at}: {}", log.damage());
        }
        prop_assert!(log.damage().bytes < 5 * 700, "{}", log.damage());
    }

    #[test]
    fn damaged_definitions_cost_only_their_own_topics(
        at in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 1..60),
    ) {
        let (mut log, first) = long_log();
        let whole = ULog::parse(&log).unwrap();
        let at = 16 + at.index(first - 16);
        for (byte, new) in log[at..].iter_mut().zip(&bytes) {
            *byte = *new;
        }
        // Two definitions belong to each topic, and the damage meets at most a few of the nine.
        if let Ok(damaged) = ULog::parse(&log) {
            let names = |log: &ULog| log.topics().iter().map(|topic| topic.name.clone()).collect::<Vec<_>>();
            prop_assert!(names(&damaged).len() + 4 >= names(&whole).len(), "{:?}", names(&damaged));
        }
    }
}

#[test]
fn a_damaged_length_that_ends_at_another_record_hides_nothing() {
    let mut writer = Writer::new();
    writer.format("t:uint64_t timestamp;").subscribe(0, "t", 0);
    let at = writer.bytes.len();
    writer.record(b'?', &[1, 2, 3]).data(0, 1, &[]).data(0, 2, &[]);
    // The record of the future now seems to contain the first message.
    writer.bytes[at] = 3 + 13;
    let log = ULog::parse(&writer.bytes).unwrap();
    assert_eq!(log.messages().map(|message| message.time_us).collect::<Vec<_>>(), [1, 2]);
    let said = "a damaged place of 6 bytes at byte 47 is skipped: a record contains others";
    assert_eq!(log.damage().to_string(), said);
}

#[test]
fn a_damaged_end_of_a_subscription_ends_no_other_one() {
    let (mut bytes, _) = long_log();
    let end = records(&bytes).into_iter().find(|(at, _)| bytes[at + 2] == b'R');
    let (at, _) = end.unwrap();
    let whole = ULog::parse(&bytes).unwrap().index.len();
    // The end of topic 1 becomes that of topic 0, whose messages follow.
    assert_eq!(bytes[at + 3..at + 5], [1, 0]);
    bytes[at + 3] = 0;
    assert_eq!(ULog::parse(&bytes).unwrap().index.len(), whole);
    // Reading continues at a message of that number too: the next record lacks its length.
    bytes[at + 5..at + 7].fill(0);
    assert_eq!(ULog::parse(&bytes).unwrap().index.len(), whole - 1);
}

//! Truncated and corrupted files.

use crate::support::{file, read, read_damaged, some};
use paceline_record::{Compression, ReadError, Recording, ending};
use proptest::prelude::*;

#[test]
fn a_truncated_file_gives_every_complete_record() {
    let all = some(30);
    let whole = file(&all, 5, Compression::None);
    let mut most = 0;
    for end in 0..whole.len() {
        let (messages, error) = read(&whole[..end]);
        assert!(messages.len() >= most, "cut at {end}: {} after {most}", messages.len());
        most = messages.len();
        match error {
            Some(ReadError::NoMcap) => assert!(end < 8),
            Some(ReadError::Cut { whole, needed, left }) => {
                assert_eq!(whole + left, end as u64);
                assert!(left < needed);
            }
            None => assert_eq!(most, 30, "the index may lack"),
            Some(error) => panic!("cut at {end}: {error}"),
        }
    }
}

#[test]
fn a_file_ends_well_after_any_chunk() {
    let all = some(20);
    let mut recording = Recording::new(Compression::Lz4, "test");
    let mut bytes = Vec::new();
    for (number, sample) in all.iter().enumerate() {
        recording.sample(&sample.sample(), Default::default).expect("few channels");
        recording.flush();
        bytes.extend(recording.take());
        let ended = [&bytes[..], &ending()].concat();
        let (messages, error) = read(&ended);
        assert_eq!((messages.len(), error.is_none()), (number + 1, true));
    }
}

#[test]
fn faults_are_named_with_their_position() {
    let foreign = read(b"RIFF....").1.expect("an error").to_string();
    assert!(foreign.starts_with("is not an MCAP file"));
    let said = |bytes: &[u8]| {
        let (at, what) = read_damaged(bytes).1.first.expect("damage");
        format!("byte {at}: {what}")
    };
    let whole = file(&some(10), 5, Compression::None);
    // The first chunk follows the magic and the header record (head, two texts, one of them
    // `test`).
    let chunk = 8 + 9 + 4 + 8;
    assert_eq!(whole[chunk], 6);
    let mut flipped = whole.clone();
    flipped[chunk + 200] ^= 1;
    assert!(said(&flipped).starts_with("byte 29: a chunk: its checksum is "), "{}", said(&flipped));
    let mut long = whole.clone();
    long[chunk + 8] = 0xff;
    assert!(said(&long).contains("byte 29: a record of "), "{}", said(&long));
    let mut other = whole;
    // The name of the compression is empty. Its length follows three numbers and a checksum.
    let at = chunk + 9 + 8 + 8 + 8 + 4;
    other.splice(at..at + 4, [2, 0, 0, 0, b'x', b'z']);
    let length = u64::from_le_bytes(other[chunk + 1..chunk + 9].try_into().expect("eight")) + 2;
    other[chunk + 1..chunk + 9].copy_from_slice(&length.to_le_bytes());
    assert!(
        said(&other).contains(
            "byte 29: a chunk: it is compressed with 'xz'; only lz4 and zstd can be read"
        )
    );
}

#[test]
fn an_excessive_chunk_size_allocates_nothing() {
    let mut bytes = file(&some(4), 4, Compression::Lz4);
    let at = 29 + 9 + 16;
    bytes[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
    let (_, error) = read_damaged(&bytes).1.first.expect("damage");
    assert!(error.contains("it declares 18446744073709551615 bytes; must be at most 268435456"));
}

proptest! {
    #[test]
    fn broken_bytes_never_panic(
        hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        packed in any::<bool>(),
    ) {
        let compression = if packed { Compression::Lz4 } else { Compression::None };
        let mut bytes = file(&some(12), 4, compression);
        for (at, value) in hits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let (messages, _) = read(&bytes);
        prop_assert!(messages.len() <= 100);
        let _ = paceline_record::Judgement::of(&bytes[..]);
    }
}
